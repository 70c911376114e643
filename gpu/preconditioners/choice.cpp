#include "gpu/preconditioners/choice.hpp"

#include "gpu/core/threads.hpp"

#include <algorithm>
#include <cmath>

namespace poisson {

namespace {

/// Measured on one H200, and per core of an Intel Xeon.
struct Tuning {
  double bandwidth;          ///< bytes per second
  double pass;               ///< seconds that an iteration takes at least
  double box_setup;          ///< seconds per row of multigrid on boxes
  double box_cycle;          ///< cycle of multigrid on boxes, in bytes per row
  double steps_of_cycle;     ///< passes of a cycle that depend on each other, times their latency
  double aggregation;        ///< seconds per entry of the setup by aggregation; on the host per core
  double aggregation_least;  ///< seconds that it takes at least
  double upload;             ///< seconds per entry of CSR
};
constexpr Tuning cuda_tuning{4e12, 1.5e-5, 1.1e-9, 900, 2.5e-4, 4.5e-10, 8e-3, 9e-10};
constexpr Tuning cpu_tuning{1.5e10, 5e-6, 2e-7, 900, 2e-5, 1.25e-7, 0, 0};

/// By aggregation: entries of all levels over those of the finest, and its iterations to a digit.
constexpr double aggregation_complexity = 1.3, box_iterations = 0.8, lattice_iterations = 1.1;
/// Elements take 0.8 to 1.2 on porous images, refined boxes and curved meshes, and half of the setup of a matrix of which nothing
/// is known.
constexpr double aggregation_iterations = 1.3, aggregation_iterations_of_general = 1.8, setup_of_general = 2;
/// Without preconditioner, where no levels are known: iterations over those on a cube with given values all around. They go with
/// the way from the nodes to given values, in cells: balls, shells and L's with such values all around took 0.9 to 1.2 times as
/// many, cubes with one such face 1.3, channels through a porous image 4.6, a bar of 200 cells 8. Twice is seldom far off in time,
/// since multigrid does not depend on the way.
constexpr double iterations_of_shape = 2;
/// Lowering the order: iterations to a digit that an order costs; passes over the matrix in a cycle and in the setup.
constexpr double iterations_of_order = 0.25, products_of_cycle = 3, products_of_setup = 20;
constexpr double badly_scaled = 10;
constexpr double negligible = 1e-3;  ///< seconds
/// Incomplete factors: of the iterations without them, and seconds per entry of the setup and of an application; on the host rows
/// mostly wait for each other, on a device colors do.
constexpr double share_of_incomplete = 0.2;
struct IncompleteTuning {
  double setup, apply, steps;
};
constexpr IncompleteTuning incomplete_on_cuda{6e-9, 1e-11, 1e-4}, incomplete_on_cpu{4e-8, 4e-9, 0};

}  // namespace

std::vector<PreconditionerEstimate> choose_preconditioner(SystemTraits const& traits) {
  bool const cpu = traits.backend == Backend::cpu;
  Tuning const& tuning = cpu ? cpu_tuning : cuda_tuning;
  auto const n = static_cast<double>(traits.n_rows), nnz = static_cast<double>(traits.nnz);
  double const iteration = tuning.pass + static_cast<double>(traits.bytes_per_iteration) / tuning.bandwidth;
  auto const whole = [](double value) { return static_cast<std::int64_t>(std::max(1.0, std::round(value))); };

  bool const scale = traits.diagonal_span > badly_scaled && std::isfinite(traits.diagonal_span);
  bool const has_levels = traits.is_box || traits.has_lattice_levels || traits.lowered_from > 0;
  bool const general = traits.general && !has_levels;
  PreconditionerEstimate const plain{scale ? PreconditionerKind::jacobi : PreconditionerKind::none,
                                     whole((general                               ? std::sqrt(n)
                                            : has_levels && traits.box_nodes == 0 ? std::cbrt(n)
                                                                                  : iterations_of_shape * std::cbrt(n)) *
                                           traits.digits / 4),
                                     0,
                                     iteration + (scale ? 16 * n / tuning.bandwidth : 0),
                                     {}};
  PreconditionerEstimate multigrid{PreconditionerKind::multigrid, 0, 0, 0, traits.no_entries};
  if (traits.is_box || traits.has_lattice_levels) {
    multigrid.refusal.clear();
    multigrid.iterations = whole((traits.is_box ? box_iterations : lattice_iterations) * traits.digits);
    double const of_levels = traits.box_nodes > 0 ? static_cast<double>(traits.box_nodes) : n;
    multigrid.setup_seconds = tuning.box_setup * of_levels + tuning.steps_of_cycle;
    multigrid.iteration_seconds = iteration + tuning.steps_of_cycle + tuning.box_cycle * of_levels / tuning.bandwidth;
  } else if (traits.lowered_from > 0) {
    double const p = traits.lowered_from, vertices = n / (p * p * p),
                 products = p > 1 ? products_of_cycle + 2 * std::max(p - 2, 0.0) : 0;
    multigrid.refusal.clear();
    multigrid.iterations = whole((lattice_iterations + iterations_of_order * (p - 1)) * traits.digits);
    multigrid.setup_seconds = products_of_setup * iteration + tuning.box_setup * vertices + tuning.steps_of_cycle;
    multigrid.iteration_seconds =
        (1 + products) * iteration + tuning.steps_of_cycle + tuning.box_cycle * vertices / tuning.bandwidth;
  } else if (multigrid.refusal.empty()) {
    multigrid.iterations = whole((general ? aggregation_iterations_of_general : aggregation_iterations) * traits.digits);
    multigrid.setup_seconds = tuning.aggregation_least +
                              (general ? setup_of_general : 1) * tuning.aggregation * nnz / (cpu ? thread_count() : 1) +
                              (traits.has_csr ? 0 : tuning.upload * nnz) + tuning.steps_of_cycle;
    multigrid.iteration_seconds =
        iteration + tuning.steps_of_cycle + aggregation_complexity * (4 * 8 * nnz + 150 * n) / tuning.bandwidth;
  }
  std::vector<PreconditionerEstimate> result{plain, multigrid};
  if (general) {
    IncompleteTuning const& incomplete = cpu ? incomplete_on_cpu : incomplete_on_cuda;
    result.push_back({traits.symmetric ? PreconditionerKind::ic0 : PreconditionerKind::ilu0,
                      whole(share_of_incomplete * static_cast<double>(plain.iterations)), incomplete.setup * nnz,
                      iteration + incomplete.steps + incomplete.apply * nnz, traits.no_entries});
  }
  // What takes no time to speak of needs nothing that may fail.
  auto const seconds = [&](PreconditionerEstimate const& one) {
    return general && one.kind == plain.kind && one.seconds() < negligible ? 0 : one.seconds();
  };
  std::stable_sort(result.begin(), result.end(), [&](PreconditionerEstimate const& a, PreconditionerEstimate const& b) {
    return a.refusal.empty() != b.refusal.empty() ? a.refusal.empty() : a.refusal.empty() && seconds(a) < seconds(b);
  });
  return result;
}

}  // namespace poisson
