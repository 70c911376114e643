#include "app/run/assembled_system.hpp"

#include "app/run/format_choice.hpp"
#include "gpu/core/memory.hpp"

#include <array>
#include <cstdint>
#include <utility>

namespace poisson::app {

MatrixPlan plan_matrix(RunConfig const& config, Backend backend) {
  assembly::MeshSpec const& mesh = config.problem.mesh;
  MatrixOptions const& matrix = config.matrix;
  bool const wanted = !matrix.format || *matrix.format == Format::half_cds;
  if (!wanted || !mesh.file.empty() || mesh.generator != "box" || config.problem.order != 1 || !config.analysis.empty() ||
      matrix.precision != MatrixPrecision::double_ || matrix.conversion != Conversion::automatic || mesh.refinements < 0 ||
      mesh.refinements > 30)
    return {};
  std::array<std::int64_t, 3> cells = mesh.cells;
  for (std::int64_t& n : cells) {
    if (n < 1 || n > std::int64_t{1} << 31)
      return {};
    n <<= mesh.refinements;
  }
  if (!BoxSystem::fits(cells))
    return {};
  MatrixPlan plan{
      backend == Backend::cuda ? assembly::AssembledInto::half_cds_on_device : assembly::AssembledInto::half_cds_on_host, {}};
  if (matrix.format)
    return plan;
  MatrixShape shape{1, 1, 27, true};
  for (std::int64_t const n : cells) {
    shape.n_rows *= n + 1;
    shape.nnz *= 3 * n + 1;
  }
  plan.choice = choose_format(shape, matrix.format_options(), backend, forecast_of(matrix, config.solver, shape.n_rows));
  return plan.choice->format == Format::half_cds ? plan : MatrixPlan{};
}

AssembledSystem::AssembledSystem(assembly::Discretization& discretization, MatrixPlan const& plan, Stages& stages)
    : discretization_(discretization) {
  if (plan.into != assembly::AssembledInto::csr) {
    assemble_box(plan, stages);
    return;
  }
  system_ = discretization.assemble();
  matrix_ = std::make_shared<CsrMatrix const>(std::move(system_.matrix));
  nnz_ = matrix_->nnz();
}

void AssembledSystem::assemble_box(MatrixPlan const& plan, Stages& stages) {
  std::optional<BoxProblem> const problem = discretization_.box_problem();
  Context& context = stages.context();
  require_memory(context, BoxSystem::peak_bytes(*problem, context.backend()), "the matrix in half_cds, with its assembly,",
                 "use a coarser mesh or the cpu backend");
  try {
    box_.emplace(context, *problem);
  } catch (BoxDataError const& error) {
    discretization_.refuse(error);
  }
  system_.pure_neumann = box_->pure_neumann();
  system_.integral_f = box_->source().sum;
  if (system_.pure_neumann)
    system_.compatibility_defect = assembly::Discretization::compatibility_defect(
        box_->source().sum + box_->boundary().sum, box_->source().absolute + box_->boundary().absolute);
  nnz_ = box_->nnz();
  system_.rhs = box_->take_rhs();
  // On a device the host has time for this while the device solves.
  bool const beside = plan.into == assembly::AssembledInto::half_cds_on_device;
  source_warning_ = std::async(beside ? std::launch::async : std::launch::deferred, [this] {
    return discretization_.source_warning(box_->source().sum, box_->source().absolute, box_->largest_source_of_lines());
  });
}

void AssembledSystem::store(MatrixPlan const& plan, Stages& stages) {
  if (box_)
    stages.adopt(box_->take_matrix(), plan.choice);
  else
    stages.convert(matrix_);
}

std::string AssembledSystem::source_warning() {
  return source_warning_.valid() ? source_warning_.get() : system_.source_warning;
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
