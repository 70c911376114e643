#pragma once

#include "assembly/system/fields.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/names.hpp"

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// What estimates of errors are about, and what they tell.
namespace poisson::assembly {

/// How an error is estimated.
///
/// local_problems: on every cell the problem of the error is solved with the polynomials of the next order that vanish at the nodes
/// of the element (Bank and Weiser, Some a posteriori error estimators for elliptic partial differential equations, Mathematics of
/// Computation 44 (1985)). Nothing in it is an unknown constant; it is no bound.
///
/// residual: h^2 / (p^2 k) times the square of f + div k grad u, and h / (p (k_1 + k_2)) times those of the jumps of k du/dn at
/// faces (Bernardi and Verfuerth, Adaptive finite element methods for elliptic equations with non-smooth coefficients, Numerische
/// Mathematik 85 (2000)). A bound up to a constant that depends on the shapes of cells, and is taken for 1.
///
/// equilibrated: a flux whose divergence is f and which leaves every cell for its neighbour, less the flux of u
/// (system/equilibrated_flux.hpp). A bound without unknown constants. For the energy norm only.
enum class Estimator { local_problems, residual, equilibrated };
}  // namespace poisson::assembly

template <>
struct poisson::Names<poisson::assembly::Estimator> {
  static constexpr std::array<Named<assembly::Estimator>, 3> values{{{assembly::Estimator::local_problems, "local_problems"},
                                                                     {assembly::Estimator::residual, "residual"},
                                                                     {assembly::Estimator::equilibrated, "equilibrated"}}};
};

namespace poisson::assembly {

/// The right-hand side of a problem -div(k grad w) = l on the same mesh and with the same kinds of conditions, in place of sources
/// and boundary values.
struct LoadOfEstimate {
  /// Of a material or a boundary.
  struct OfPart {
    double density = 0;  ///< what enters per unit of volume or area
    double of_size = 0;  ///< what the target changes by for each unit of volume or area more, beside what u has there
  };
  double of_problem = 0;  ///< times the sources and the natural boundary values of the problem, without point loads
  std::map<unsigned, OfPart> in_material{}, on_boundary{};
  std::map<unsigned, double> robin{};                     ///< times alpha of a boundary with a Robin condition enters there
  std::vector<std::pair<LocatedPoint, double>> points{};  ///< what enters there
  /// Times what flows out through a boundary where u is given, or into such a surface inside the mesh, is in the target. The dual
  /// solution is this factor there, and a mean of both where two of these boundaries meet.
  std::map<unsigned, double> flux{};

  /// Of a material, or a boundary; nothing where it is not listed.
  [[nodiscard]] static OfPart in(std::map<unsigned, OfPart> const& parts, unsigned id) {
    auto const found = parts.find(id);
    return found == parts.end() ? OfPart{} : found->second;
  }
  [[nodiscard]] double times_alpha(unsigned boundary) const { return factor(robin, boundary); }
  [[nodiscard]] double times_flux(unsigned boundary) const { return factor(flux, boundary); }
  [[nodiscard]] static double factor(std::map<unsigned, double> const& of, unsigned boundary) {
    auto const found = of.find(boundary);
    return found == of.end() ? 0 : found->second;
  }
};

/// What is estimated of every cell.
struct ErrorIndicators {
  HostVector<double> squares;     ///< of the error's energy norm (int k |grad e|^2)^1/2
  HostVector<double> signed_;     ///< of a target: its parts of J(u) - J(u_h); else empty
  HostVector<double> weights;     ///< of a target: what the error of each cell may change it by; else empty
  HostVector<double> of_shape{};  ///< of a target: its parts of what LocalCells::gaps tell; else empty
  HostVector<double>
      of_edges{};            ///< of a target with fluxes: its parts of what happens where boundaries with given u meet; else empty
  bool is_bound = false;     ///< whether the error is proven to be no larger, but for rounding
  std::string why_no_bound;  ///< of Estimator::equilibrated where it is none
};

}  // namespace poisson::assembly
