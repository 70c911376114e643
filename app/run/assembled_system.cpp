#include "app/run/assembled_system.hpp"

#include "app/run/balance.hpp"
#include "app/run/system_solver.hpp"
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

AssembledSystem::AssembledSystem(assembly::Discretization& discretization, RunConfig const& config, AssemblyPlan plan,
                                 RunDevice& device)
    : discretization_(discretization), config_(config), plan_(std::move(plan)) {
  if (plan_.route != Route::csr && assemble_elements(device.context()))
    return;
  system_ = discretization.assemble();
  matrix_ = std::make_shared<CsrMatrix const>(std::move(system_.matrix));
  nnz_ = matrix_->nnz();
}

bool AssembledSystem::assemble_elements(Context& context) {
  Format const format = plan_.format;
  auto const require = [&](std::int64_t bytes) {
    require_memory(context, bytes, "the matrix in " + std::string(name_of(format)) + ", with its assembly,",
                   "use a coarser mesh or the cpu backend");
  };
  try {
    if (plan_.route == Route::box) {
      BoxProblem const box = *discretization_.box_problem();
      require(BoxSystem::peak_bytes(box, format, context.backend()));
      elements_ = std::make_unique<BoxSystem>(context, box, format);
    } else {
      if (format == Format::half_cds && discretization_.summary().lattices == 0)
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

void AssembledSystem::store(SystemSolver& solver) {
  if (elements_)
    solver.adopt({.local = elements_->take_matrix(), .rows = {}, .rim_rows = {}, .rhs = {}}, {}, nullptr, nullptr, plan_.choice);
  else
    solver.convert({{}, matrix_});
}

OrderOneProvider AssembledSystem::order_one(RunDevice& device) const {
  if (!plan_.has_order_one)
    return {};
  return [this, order = config_.problem.order, &device] {
    try {
      if (lowered_)
        return make_order_one(device.context(), *lowered_);
      auto box = discretization_.box_problem_of_order_one();
      if (box && order == 1)
        return make_order_one(device.context(), *box);
      return make_order_one(device.context(), LoweredProblem(discretization_.lattice_problem(), std::move(box)));
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
