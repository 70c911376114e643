#include "app/run/assembled_system.hpp"

#include "app/run/format_choice.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"

#include <array>
#include <cstdint>
#include <utility>

namespace poisson::app {

namespace {

using assembly::AssembledInto;

/// Cells of the box that the run is on, if it is one that gpu/elements can assemble.
std::optional<std::array<std::int64_t, 3>> box_cells(assembly::ProblemSpec const& problem) {
  assembly::MeshSpec const& mesh = problem.mesh;
  if (!mesh.file.empty() || mesh.generator != "box" || problem.order != 1 || mesh.refinements < 0 || mesh.refinements > 30)
    return std::nullopt;
  std::array<std::int64_t, 3> cells = mesh.cells;
  for (std::int64_t& n : cells) {
    if (n < 1 || n > std::int64_t{1} << 31)
      return std::nullopt;
    n <<= mesh.refinements;
  }
  return BoxSystem::fits(cells) ? std::optional(cells) : std::nullopt;
}

[[noreturn]] void refuse_matrix_free(std::string const& reason) {
  throw InputError("matrix.format",
                   "matrix_free is for boxes of at least 2 x 2 x 2 cells with elements of order 1 and a coefficient that "
                   "is constant, and " +
                       reason + "; use half_cds, or auto");
}

}  // namespace

MatrixPlan plan_matrix(RunConfig const& config, Backend backend) {
  MatrixOptions const& matrix = config.matrix;
  bool const free = matrix.format == Format::matrix_free;
  auto const cells = box_cells(config.problem);
  if (free) {
    if (!cells)
      refuse_matrix_free("this mesh or element is not");
    if (!config.analysis.empty() || matrix.precision != MatrixPrecision::double_)
      refuse_matrix_free(matrix.precision != MatrixPrecision::double_ ? "has no entries to store in another precision"
                                                                      : "has no matrix for analysis.svd");
    return {backend == Backend::cuda ? AssembledInto::matrix_free_on_device : AssembledInto::matrix_free_on_host, {}};
  }
  bool const wanted = !matrix.format || *matrix.format == Format::half_cds;
  if (!wanted || !cells || !config.analysis.empty() || matrix.precision != MatrixPrecision::double_ ||
      matrix.conversion != Conversion::automatic)
    return {};
  MatrixPlan plan{backend == Backend::cuda ? AssembledInto::half_cds_on_device : AssembledInto::half_cds_on_host, {}};
  if (matrix.format)
    return plan;
  MatrixShape shape{1, 1, 27, true};
  for (std::int64_t const n : *cells) {
    shape.n_rows *= n + 1;
    shape.nnz *= 3 * n + 1;
  }
  plan.choice = choose_format(shape, matrix.format_options(), backend, forecast_of(matrix, config.solver, shape.n_rows));
  return plan.choice->format == Format::half_cds ? plan : MatrixPlan{};
}

AssembledSystem::AssembledSystem(assembly::Discretization& discretization, MatrixPlan const& plan, Stages& stages)
    : discretization_(discretization) {
  if (plan.into != AssembledInto::csr) {
    assemble_box(plan, stages);
    return;
  }
  system_ = discretization.assemble();
  matrix_ = std::make_shared<CsrMatrix const>(std::move(system_.matrix));
  nnz_ = matrix_->nnz();
}

void AssembledSystem::assemble_box(MatrixPlan const& plan, Stages& stages) {
  std::optional<BoxProblem> const problem = discretization_.box_problem();
  bool const free = plan.into == AssembledInto::matrix_free_on_host || plan.into == AssembledInto::matrix_free_on_device;
  if (free && !BoxSystem::can_be_matrix_free(*problem))
    refuse_matrix_free("this coefficient varies");
  Format const format = free ? Format::matrix_free : Format::half_cds;
  Context& context = stages.context();
  require_memory(context, BoxSystem::peak_bytes(*problem, format, context.backend()),
                 "the matrix in " + std::string(name_of(format)) + ", with its assembly,", "use a coarser mesh or the cpu backend");
  try {
    box_.emplace(context, *problem, format);
  } catch (DataError const& error) {
    discretization_.refuse(error);
  }
  system_.pure_neumann = box_->pure_neumann();
  system_.integral_f = box_->source().sum;
  if (system_.pure_neumann)
    system_.compatibility_defect = assembly::Discretization::compatibility_defect(
        box_->source().sum + box_->boundary().sum, box_->source().absolute + box_->boundary().absolute);
  nnz_ = box_->nnz();
  system_.rhs = box_->take_rhs();
  auto const check = [this] {
    return discretization_.source_warning(box_->source().sum, box_->source().absolute, box_->largest_source_of_lines());
  };
  if (context.backend() == Backend::cuda)  // the host has time for it while the device solves
    source_warning_ = std::async(std::launch::async, check);
  else
    system_.source_warning = check();
}

void AssembledSystem::store(MatrixPlan const& plan, Stages& stages) {
  if (box_)
    stages.adopt(box_->take_matrix(), plan.choice);
  else
    stages.convert(matrix_);
}

std::string AssembledSystem::source_warning() {
  if (source_warning_.valid())
    try {
      system_.source_warning = source_warning_.get();
    } catch (Interrupted const&) {  // of the solve, whose result counts
    }
  return system_.source_warning;
}

HostVector<double> AssembledSystem::reconstruct(HostVector<double> x) const {
  if (!box_)
    return discretization_.reconstruct(system_, std::move(x));
  box_->set_dirichlet(x);
  if (system_.pure_neumann)
    discretization_.subtract_mean(x);
  return x;
}

}  // namespace poisson::app
