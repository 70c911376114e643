#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/box_problem.hpp"
#include "gpu/core/field_data.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/elements/element_solution.hpp"
#include "gpu/kernels/box_solution.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace poisson {

/// What is asked of a solution of a BoxProblem by trilinear elements. `u` has the values at all nodes of the box, x fastest.
/// Integrals are over problem.cells_in_sums. Besides u, the backend's memory holds a few numbers for each plane of nodes, of
/// several materials a byte a cell, and k of a few planes of cells where the host evaluates it.
class BoxSolution final : public ElementSolution {
public:
  /// Preconditions: less than 2^31 nodes; k is no full tensor; what problem.coefficient_on_host refers to outlives this object.
  BoxSolution(Context& context, BoxProblem const& problem);

  [[nodiscard]] ValueRange range(double const* u) const;
  /// Numbers of nodes.
  [[nodiscard]] ExtremeNodes first_places(double const* u, double low, double high) const override;

  struct Integrals {
    double volume = 0, u = 0, gradients = 0;  ///< of 1, u, and grad u . k grad u, by two Gauss points per direction
  };
  /// Precondition: k is positive and finite at the Gauss points, as it is where a system was assembled.
  [[nodiscard]] Integrals integrals(double const* u) const;
  [[nodiscard]] std::vector<OfMaterial> of_materials(double const* u) const override;

  /// DataError has the first place where `exact` is not finite, of points by cell in z and y, point in z, y and x, cell in x, then
  /// of nodes.
  [[nodiscard]] Errors errors(double const* u, ExpressionCode const& exact, double shift, int points) const override;
  [[nodiscard]] Mean mean_of_exact(ExpressionCode const& exact, int points) const override;

  /// Whether of_side can be asked: the backend evaluates k and f, or k is constant in each material.
  [[nodiscard]] bool has_sides() const {
    return !coefficient_on_host_ && !source_on_host_ && coefficients_.empty() == k_of_materials_.empty();
  }
  /// Of side 2 d, or 2 d + 1, in direction d: the area of the faces of these cells and the integral of u over them, the least and
  /// the largest value at their nodes, and the flux -k du/dn. Where u is prescribed, or the side periodic, the flux is that of the
  /// residuals of these nodes, which must lie inside of the side: all cells around them are here, and they are on no other side.
  /// Elsewhere it is that of the faces. Numbers are those of the box. Preconditions: has_sides(); there are faces.
  struct OfSide {
    double area = 0;
    SideSums sums;
  };
  [[nodiscard]] OfSide of_side(double const* u, int side, BoxProblem::Cells const& faces, BoxProblem::Cells const& nodes) const;

  /// out = u at count[0] x count[1] x count[2] nodes from node `first` on, x fastest. Precondition: they are nodes of the box.
  void copy_part(double const* u, std::array<std::int64_t, 3> const& first, std::array<std::int64_t, 3> const& count,
                 HostVector<double>& out) const;

private:
  using Places = std::array<HostVector<double>, 3>;
  /// An expression at the places of a tensor product, in the backend's memory.
  struct OnPlaces {
    BoxFunction function;
    Array<Instruction> code;
    std::array<Array<double>, 3> at;
  };
  /// The same over the cells that count in `box`, with this k.
  [[nodiscard]] Integrals integrals(double const* u, BoxCells const& box, std::vector<ExpressionCode> const& coefficient) const;
  [[nodiscard]] OnPlaces evaluated_on(ExpressionCode const& code, Places const& places) const;
  [[nodiscard]] Places points_of(BoxQuadrature const& quadrature) const;
  /// Throws DataError for the lowest of these points, if there is one.
  void check_points(std::int64_t failed, int points, Places const& places) const;
  /// Calls body(first, end) for slabs of `n` planes.
  void for_slabs(std::int64_t n, Backend sized_for, std::function<void(std::int64_t first, std::int64_t end)> const& body) const;
  /// The value at the lowest node of the cells that count.
  [[nodiscard]] double const* lowest(double const* u) const;

  Context& context_;
  BoxSolutionKernels const& kernels_;
  std::vector<ExpressionCode> coefficient_;
  BoxProblem::PlaneValues coefficient_on_host_, source_on_host_;
  ExpressionCode source_;
  std::array<BoxProblem::Face, 6> faces_;
  Places nodes_of_box_, edges_of_box_;
  std::array<std::int64_t, 3> cells_of_box_;
  std::array<std::int64_t, 3> first_;  ///< of the cells that count
  double volume_;                      ///< of these
  Places nodes_;                       ///< of these
  std::array<Array<double>, 3> edges_;
  BoxCells box_;
  std::vector<std::vector<ExpressionCode>> coefficients_;  ///< of materials, where there are several
  Array<std::uint8_t> materials_;                          ///< of all cells of the box
  std::vector<std::array<double, 3>> k_of_materials_;      ///< of each: kx, ky, kz, where all are constant
};

}  // namespace poisson
