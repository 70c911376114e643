#include "app/run/assembled_system.hpp"

#include "app/run/balance.hpp"
#include "app/run/format_choice.hpp"
#include "assembly/system/boundary_flux.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/elements/order_one.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace poisson::app {

namespace {

using assembly::AssembledInto;

/// Whether gpu/elements can assemble the box that the run is on.
bool is_box(assembly::ProblemSpec const& problem, assembly::MeshSummary const& mesh) {
  return mesh.box_for_elements && problem.order == 1 && BoxSystem::fits(problem.mesh.refined_cells());
}

/// Whether gpu/elements takes the problem, if its mesh fits.
bool is_for_elements(RunConfig const& config, assembly::MeshSummary const& mesh) {
  return !mesh.periodic && !mesh.only_csr && mesh.conditioned_surfaces.empty() && config.problem.has_one_source() &&
         !config.problem.has_full_tensor() && config.fields.empty();
}

/// Whether nothing that is asked for needs CSR.
bool needs_no_csr(RunConfig const& config) {
  return config.analysis.empty() && config.matrix.precision == MatrixPrecision::double_ &&
         config.matrix.conversion == Conversion::automatic;
}

/// Whether regions may give the cells of one lattice several materials.
bool has_regions(RunConfig const& config) {
  assembly::MeshSpec const& mesh = config.problem.mesh;
  return std::any_of(mesh.regions.begin(), mesh.regions.end(), [&](auto const& region) { return !mesh.is_void(region); });
}

/// Whether a matrix can be made without CSR, if its format can. Of boxes with half_cds is_box tells.
bool can_be_assembled_as_stored(RunConfig const& config, assembly::MeshSummary const& mesh) {
  return is_for_elements(config, mesh) && !has_regions(config) && needs_no_csr(config);
}

/// Whether a box's products come from one stencil, so that only its right-hand side has values at points.
bool has_stencil(RunConfig const& config, assembly::MeshSummary const& mesh) {
  return mesh.stencil_faces > 0 && is_box(config.problem, mesh);
}

/// Whether the preconditioner is multigrid, or may become it.
bool may_take_multigrid(RunConfig const& config) {
  return config.solver.preconditioner == PreconditionerKind::multigrid ||
         config.solver.preconditioner == PreconditionerKind::automatic;
}

/// Whether the matrix can be matrix_free where the mesh allows it: nothing that is asked for needs entries.
bool can_be_matrix_free(RunConfig const& config, assembly::MeshSummary const& mesh) {
  PreconditionerKind const preconditioner = config.solver.preconditioner;
  return can_be_assembled_as_stored(config, mesh) &&
         (!needs_csr(preconditioner) || preconditioner == PreconditionerKind::multigrid);
}

}  // namespace

MatrixShape shape_of(RunConfig const& config, assembly::MeshSummary const& mesh) {
  MatrixShape shape{mesh.dofs, mesh.nnz, mesh.n_diagonals, true};
  // With analyses, or when the format is to be converted to in a certain way, there is a CSR matrix, and half_cds is made from it.
  if (config.problem.order == 1 && can_be_assembled_as_stored(config, mesh)) {
    shape.n_lattices = mesh.lattices;
    shape.lattice_nodes = mesh.lattice_nodes;
  }
  // With elements of order 1 the formats are faster, unless one stencil says it all.
  if (config.problem.order > 1 && can_be_matrix_free(config, mesh)) {
    shape.n_cells = mesh.cells;
    shape.order = config.problem.order;
  }
  PreconditionerKind const preconditioner = config.solver.preconditioner;
  bool const csr_for_solver = needs_csr(preconditioner) && preconditioner != PreconditionerKind::multigrid;
  if (has_stencil(config, mesh) && needs_no_csr(config) && !csr_for_solver) {
    shape.n_cells = mesh.cells;
    shape.order = 1;
    shape.stencil_faces = mesh.stencil_faces;
  }
  return shape;
}

bool has_order_one(RunConfig const& config, assembly::MeshSummary const& mesh) {
  if (is_box(config.problem, mesh))
    return true;
  return is_for_elements(config, mesh) && (mesh.lattices == 0 || !has_regions(config)) &&
         (config.problem.order > 1 || mesh.lattices > 0);
}

MatrixPlan plan_matrix(RunConfig const& config, Backend backend, assembly::MeshSummary const& mesh) {
  MatrixOptions const& matrix = config.matrix;
  bool const free = matrix.format == Format::matrix_free, box = is_box(config.problem, mesh);
  bool const may_lower = may_take_multigrid(config);
  if (free) {
    if (!config.analysis.empty())
      throw InputError("matrix.format", "matrix_free has no matrix for analysis.svd; use another format, or auto");
    if (has_regions(config) && mesh.lattices > 0)
      throw InputError("matrix.format",
                       "matrix_free has one material for each coarse cell, and problem.mesh.regions may give it several; "
                       "use another format, or auto");
    if (mesh.periodic)
      throw InputError("matrix.format", "matrix_free does not join periodic boundaries; use another format, or auto");
    if (!mesh.conditioned_surfaces.empty())
      throw InputError("matrix.format",
                       "matrix_free does not take conditions on surfaces inside the mesh; use another format, or auto");
    if (!config.problem.has_one_source() && !has_stencil(config, mesh))
      throw InputError("matrix.format", "matrix_free has one source for the whole mesh, and problem.source differs by material; "
                                        "use another format, or auto");
    if (!config.fields.empty() && !has_stencil(config, mesh))
      throw InputError("matrix.format", "matrix_free takes expressions in x, y and z, and no fields from files (problem.fields); "
                                        "use another format, or auto");
    if (config.problem.has_full_tensor())
      throw InputError("matrix.format", "matrix_free takes one or three components of problem.coefficient, and this one is a full "
                                        "tensor; use another format, or auto");
    if (mesh.only_csr)
      throw InputError(
          "matrix.format",
          "matrix_free has order + 1 Gauss points in each direction, and cells whose maps are not of a higher order "
          "than the elements; here there are " +
              std::to_string(mesh.gauss_points) +
              (config.problem.quadrature ? " points (problem.quadrature)" : " points, for the curved cells of the mesh file") +
              "; use another format, or auto");
    if (matrix.precision != MatrixPrecision::double_)
      throw InputError("solver.matrix_precision", "matrix_free has no entries to store in another precision; use double");
    return {backend == Backend::cuda ? AssembledInto::matrix_free_on_device : AssembledInto::matrix_free_on_host, {}, may_lower};
  }
  MatrixShape const shape = shape_of(config, mesh);
  bool const half_cds = (!matrix.format || *matrix.format == Format::half_cds) &&
                        ((box && needs_no_csr(config)) || (shape.n_lattices > 0 && can_be_assembled_as_stored(config, mesh)));
  if (!half_cds && (matrix.format || shape.n_cells == 0))
    return {};
  MatrixPlan plan{backend == Backend::cuda ? AssembledInto::half_cds_on_device : AssembledInto::half_cds_on_host, {}, may_lower};
  if (matrix.format)
    return plan;
  plan.choice = choose_format(shape, matrix.format_options(), backend, forecast_of(matrix, config.solver, shape.n_rows));
  // The seconds of a product leave out assembly and multigrid's setup, which take longer with csr: on two cores a run with 1.8
  // million unknowns of order 2 on a ball takes twice the time, on a box 10 % more, and of order 3 70 %.
  if (plan.choice->format != Format::matrix_free && config.problem.order > 1 && (mesh.lattices > 0 || mesh.lexicographic) &&
      may_lower && can_be_matrix_free(config, mesh)) {
    plan.choice->format = Format::matrix_free;
    plan.choice->note = "fastest to assemble above order 1";
  }
  if (plan.choice->format == Format::matrix_free)
    plan.into = backend == Backend::cuda ? AssembledInto::matrix_free_on_device : AssembledInto::matrix_free_on_host;
  else if (!half_cds || plan.choice->format != Format::half_cds)
    return {};
  return plan;
}

AssembledSystem::AssembledSystem(assembly::Discretization& discretization, RunConfig const& config, MatrixPlan plan, Stages& stages)
    : discretization_(discretization), config_(config), plan_(std::move(plan)) {
  if (plan_.into != AssembledInto::csr && assemble_elements(stages))
    return;
  system_ = discretization.assemble();
  matrix_ = std::make_shared<CsrMatrix const>(std::move(system_.matrix));
  nnz_ = matrix_->nnz();
}

bool AssembledSystem::assemble_elements(Stages& stages) {
  bool const free = plan_.into == AssembledInto::matrix_free_on_host || plan_.into == AssembledInto::matrix_free_on_device;
  Format const format = free ? Format::matrix_free : Format::half_cds;
  Context& context = stages.context();
  auto const require = [&](std::int64_t bytes) {
    require_memory(context, bytes, "the matrix in " + std::string(name_of(format)) + ", with its assembly,",
                   "use a coarser mesh or the cpu backend");
  };
  try {
    std::optional<BoxProblem> const box = discretization_.box_problem();
    if (box && BoxSystem::can_assemble(*box, format)) {
      require(BoxSystem::peak_bytes(*box, format, context.backend()));
      elements_ = std::make_unique<BoxSystem>(context, *box, format);
    } else {
      if (!free && discretization_.summary().lattices == 0)
        return false;  // the mesh could not be made of lattices, after all
      LatticeProblem const problem = discretization_.lattice_problem();
      require(LatticeSystem::peak_bytes(problem, context.backend(), format));
      elements_ = std::make_unique<LatticeSystem>(context, problem, format);
      if (plan_.may_lower && problem.layout.order > 1)
        lowered_.emplace(problem, discretization_.box_problem_of_order_one());
    }
  } catch (DataError const& error) {
    discretization_.refuse(error);
  }
  system_.pure_neumann = elements_->pure_neumann();
  FieldSums const points = discretization_.point_loads().integrals;
  system_.integral_f = elements_->source().sum + points.sum;
  if (system_.pure_neumann)
    system_.compatibility_defect = assembly::Discretization::compatibility_defect(
        elements_->source().sum + elements_->boundary().sum + points.sum,
        elements_->source().absolute + elements_->boundary().absolute + points.absolute);
  nnz_ = elements_->nnz();
  system_.rhs = elements_->take_rhs();
  add_point_loads();
  auto const check = [this] {
    return discretization_.source_warning(elements_->source().sum, elements_->source().absolute,
                                          elements_->largest_source_of_lines());
  };
  if (context.backend() == Backend::cuda)  // the host has time for it while the device solves
    source_warning_ = std::async(std::launch::async | std::launch::deferred, check);
  else
    system_.source_warning = check();
  return true;
}

HostVector<double> AssembledSystem::fixed_values() const {
  // Which unknowns have Dirichlet values shows when they are set.
  HostVector<double> fixed;
  fixed.resize(system_.rhs.size(), std::numeric_limits<double>::quiet_NaN());
  elements_->set_dirichlet(fixed);
  return fixed;
}

HostVector<double> AssembledSystem::residual(std::span<double const> u, std::span<double const> u_low) const {
  HostVector<double> r = discretization_.residual(u, u_low).values;
  if (pure_neumann())
    discretization_.make_compatible(r);
  if (!elements_) {
    system_.constraints.restrict_to_free(r);
    return r;
  }
  HostVector<double> const fixed = fixed_values();
  for (std::size_t i = 0; i < r.size(); ++i)
    if (!std::isnan(fixed[i]))
      r[i] = 0;
  return r;
}

std::optional<std::size_t> AssembledSystem::held() const {
  if (!system_.holds_an_unknown)
    return std::nullopt;
  auto const& mask = system_.constraints.mask();  // the first that is free
  return static_cast<std::size_t>(std::find(mask.begin(), mask.end(), std::uint8_t{0}) - mask.begin());
}

HostVector<double> AssembledSystem::fixed_rows() const {
  HostVector<double> fixed;
  if (!elements_) {
    auto const& mask = system_.constraints.mask();
    fixed.assign(mask.begin(), mask.end());
    return fixed;
  }
  fixed = fixed_values();
  std::transform(fixed.begin(), fixed.end(), fixed.begin(), [](double value) { return std::isnan(value) ? 0.0 : 1.0; });
  return fixed;
}

void AssembledSystem::correct(std::span<double const> d, double sign, std::span<double> u, std::span<double> u_low) const {
  auto const of_unknown = [&](std::size_t i) {
    auto const unknown = static_cast<std::int64_t>(i);
    if (elements_ || !system_.constraints.constrained(unknown))
      return d[i];
    double sum = 0;
    for (auto const& [free, weight] : system_.constraints.row(unknown))
      sum += weight * d[static_cast<std::size_t>(free)];
    return sum;
  };
  HostVector<double> all(u.size());
  for (std::size_t i = 0; i < u.size(); ++i)
    all[i] = of_unknown(i);
  if (pure_neumann())
    discretization_.subtract_mean(all);
  for (std::size_t i = 0; i < u.size(); ++i)
    add_to_pair(sign * all[i], u[i], u_low[i]);
}

void AssembledSystem::add_point_loads() {
  auto const& loads = discretization_.point_loads().loads;
  if (loads.empty())
    return;
  HostVector<double> const fixed = fixed_values();  // whose rows stay empty
  for (auto const& load : loads)
    if (std::isnan(fixed[load.unknown]))
      system_.rhs[load.unknown] += load.value;
  if (system_.pure_neumann)
    discretization_.make_compatible(system_.rhs);
}

void AssembledSystem::store(Stages& stages) {
  if (elements_)
    stages.adopt(elements_->take_matrix(), plan_.choice);
  else
    stages.convert(matrix_);
}

OrderOneProvider AssembledSystem::order_one(Stages& stages) const {
  if (!has_order_one(config_, discretization_.summary()))
    return {};
  return [this, order = config_.problem.order, &stages] {
    try {
      if (lowered_)
        return make_order_one(stages.context(), *lowered_);
      auto box = discretization_.box_problem_of_order_one();
      if (box && order == 1)
        return make_order_one(stages.context(), *box);
      return make_order_one(stages.context(), LoweredProblem(discretization_.lattice_problem(), std::move(box)));
    } catch (DataError const&) {  // cells whose vertices alone do not make a cell
      return OrderOne{};
    }
  };
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
  if (!elements_)
    return discretization_.reconstruct(system_, std::move(x));
  elements_->set_dirichlet(x);
  if (system_.pure_neumann)
    discretization_.subtract_mean(x);
  return x;
}

}  // namespace poisson::app
