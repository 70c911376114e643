#pragma once

#include "app/config/run_config.hpp"
#include "assembly/discretization.hpp"
#include "gpu/solvers/solver.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// analysis.effective: what follows from the solutions of its problems. docs/theory.md has the definitions.
namespace poisson::app {

/// A tensor by rows: [i][j] is the mean flux along i for the mean gradient 1 along j, with the sign that k has.
using Tensor3 = std::array<std::array<double, 3>, 3>;

/// The eigenvalues of the symmetric part of a tensor, the largest first, and their directions, of length 1, with a positive
/// largest entry.
struct PrincipalValues {
  std::array<double, 3> values{};
  std::array<std::array<double, 3>, 3> directions{};  ///< [i] belongs to values[i]
};
[[nodiscard]] PrincipalValues principal_values(Tensor3 const& tensor);

/// max |a_ij - a_ji| / max |a_ij|; 0 of a tensor of zeros.
[[nodiscard]] double symmetry_defect(Tensor3 const& tensor);

/// A part of the box with one material.
struct EffectivePhase {
  std::string name;             ///< or its id
  std::vector<unsigned> ids{};  ///< of the mesh; none: void
  double fraction = 0;          ///< of the volume of the box
  std::optional<double> k{};    ///< where it is one constant number; 0 of void cells
};

/// Bounds of the effective k of a mixture of isotropic phases. The first two hold for all mixtures, in every direction, the others
/// for those that are isotropic as a whole.
struct EffectiveBounds {
  double reuss = 0, voigt = 0;
  double hashin_shtrikman_lower = 0, hashin_shtrikman_upper = 0;
};
/// Precondition: all phases have k >= 0. Source: Hashin and Shtrikman, J. Appl. Phys. 33 (1962) 3125, for any number of phases.
[[nodiscard]] EffectiveBounds effective_bounds(std::vector<EffectivePhase> const& phases);

/// One of the problems.
struct EffectiveSolve {
  bool periodic = true;
  Direction direction = Direction::x;
  SolverStatus status = SolverStatus::interrupted;
  std::int64_t iterations = 0;
  double residual_true = std::numeric_limits<double>::quiet_NaN();  ///< ||b - A x|| / ||b||
  double seconds = 0;                                               ///< of the iterations; of all that were iterated together
};

/// The tensor by the fluxes and by the energies of three problems. Those of fixed conditions have energies on the diagonal alone.
struct EffectiveTensor {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  static constexpr Tensor3 unknown_tensor{{{unknown, unknown, unknown}, {unknown, unknown, unknown}, {unknown, unknown, unknown}}};
  Tensor3 by_flux = unknown_tensor, by_energy = unknown_tensor;

  bool may_vanish = false;                   ///< there is void: along some directions nothing may conduct
  static constexpr double rounding = 1e-12;  ///< what is left of a direction along which nothing conducts, beside others

  /// The largest difference between the two, of entry (i, j) relative to the root of the diagonal's entries i and j: that of a
  /// direction counts, however much better another one conducts.
  [[nodiscard]] double difference() const;
};

/// A part of the box, and its tensor.
struct SubVolume {
  std::array<std::int64_t, 3> first{};               ///< its first cell
  Tensor3 tensor = EffectiveTensor::unknown_tensor;  ///< by fluxes; NaN where a problem was not solved
  std::vector<double> fractions{};                   ///< of its volume, of each material of the whole
};
/// What is found in sub-volumes, entry by entry: the mean, and the deviation of a single one, with n - 1.
struct SubVolumeStatistics {
  Tensor3 mean{}, deviation{};
};
[[nodiscard]] SubVolumeStatistics statistics_of(std::vector<SubVolume> const& sub_volumes);

struct EffectiveResult {
  EffectiveConditions conditions{};
  std::optional<EffectiveTensor> periodic{}, fixed{};  ///< those that were asked for
  std::vector<EffectivePhase> phases{};                ///< by the lowest id; void cells are last
  std::optional<EffectiveBounds> bounds{};             ///< where every phase has one constant number k
  std::vector<EffectiveSolve> solves{};
  EffectiveSpec::SubVolumes sub_volumes_asked{};
  std::vector<SubVolume> sub_volumes{};  ///< those that were asked for, with the conditions of tensor()

  /// The one whose entries are called effective.xx and so on: that of periodic conditions, if there is one.
  [[nodiscard]] EffectiveTensor const& tensor() const { return periodic ? *periodic : *fixed; }
  /// The phase that conducts, where there is one and void cells beside it; else null.
  [[nodiscard]] EffectivePhase const* conductor() const;
  /// K_ii / k of the conducting phase, and the tortuosity factor: its fraction of the volume over that. Preconditions: conductor().
  [[nodiscard]] std::array<double, 3> relative_diffusivity() const;
  [[nodiscard]] std::array<double, 3> tortuosity_factor() const;
  /// Whether all numbers are there.
  [[nodiscard]] bool is_solved() const { return !solves.empty(); }
};

/// k of the material with this id: its expressions; null where it has none. An id counts before a name, a name before the default.
[[nodiscard]] assembly::CoefficientExpressions const* coefficient_of(assembly::ProblemSpec const& problem,
                                                                     assembly::MeshSummary const& mesh, unsigned id);

/// What is known of the result before anything is solved; the numbers to come are NaN. Fractions are 0.
[[nodiscard]] EffectiveResult expected_effective(RunConfig const& config, assembly::MeshSummary const& mesh);
/// Sets the fractions of the phases, and the bounds, from the volumes of materials by id, and the volume of the box.
void set_fractions(EffectiveResult& result, std::map<unsigned, double> const& volumes, double volume);

/// The names and values of quantities, effective.xx and so on.
[[nodiscard]] std::vector<std::pair<std::string, double>> effective_quantities(EffectiveResult const& result);

/// `effective` of result.json.
[[nodiscard]] nlohmann::ordered_json json_of(EffectiveResult const& result);

}  // namespace poisson::app
