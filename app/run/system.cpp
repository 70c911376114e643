#include "app/run/system.hpp"

#include "app/run/balance.hpp"
#include "app/run/nested_spaces.hpp"
#include "app/run/run_device.hpp"
#include "app/run/system_solver.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "assembly/system/boundary_flux.hpp"
#include "assembly/system/integrals.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/elements/box_solution.hpp"
#include "gpu/elements/lattice_solution.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace poisson::app {

System::System(Domain& mesh, Team& team, RunConfig const& config, AssemblyPlan plan, ContextProvider const& context,
               bool has_matrix)
    : System(mesh, team, config, std::move(plan), context, has_matrix, RowsAlone()) {
  if (mesh.is_whole() && plan_.route == Route::csr)  // Discretization::assemble knows the whole
    return;
  Communicator& ranks = team.communicator();
  sum_sources();
  if (mesh.pure_neumann ? *mesh.pure_neumann : !any_of_ranks(ranks, anchored_))
    make_compatible();
  holds_an_unknown_ = pure_neumann() && (has_ties_ || ties_of_box_);
  if (holds_an_unknown_ && ties_of_box_)  // gpu/elements holds it in the matrix
    context_().set_zero(b_.change_on(context_()).data(), sizeof(double));
  else if (holds_an_unknown_)
    hold_first_unknown(mesh_, team_, rows_, b_);
  // While a device solves the host has time for it.
  check_source(plan_.route != Route::csr && plan_.backend == Backend::cuda);
}

FieldSums System::source_of_own_cells() const {
  if (source_)
    return *source_;
  return mesh_.own ? mesh_.own->source_integral() : FieldSums{};
}

void System::sum_sources() {
  double of_cells = 0, of_points = 0;
  team_.together([&] {
    of_cells = source_of_own_cells().sum;
    if (mesh_.around)
      of_points = mesh_.around->point_loads().integrals.sum;
  });
  Communicator& ranks = team_.communicator();
  integral_f_ = sum_over(ranks, of_cells) + of_first(ranks, of_points);  // every part knows all points
}

/// What gpu/elements has found in the lines of its cells, for own cells.
assembly::SourceLines System::source_lines() const {
  assembly::SourceLines lines;
  if (largest_of_lines_.empty())
    return lines;
  auto const of_own = [&](HostVector<double> const& values) {
    if (values.empty() || plan_.route != Route::box || mesh_.is_whole())
      return std::vector<double>(values.begin(), values.end());
    assembly::BoxPart const own = mesh_.own_in_around();  // the values are of the cells around
    std::vector<double> of_part;
    for (std::int64_t z = own.first[2]; z < own.first[2] + own.cells[2]; ++z)
      for (std::int64_t y = own.first[1]; y < own.first[1] + own.cells[1]; ++y)
        of_part.push_back(values[static_cast<std::size_t>(z * mesh_.part_around.cells[1] + y)]);
    return of_part;
  };
  lines.largest = of_own(largest_of_lines_);
  lines.largest_of_lattice = of_own(source_lattice_.largest);
  lines.lattice_steps = source_lattice_.steps;
  if (mesh_.is_whole())
    lines.length = mesh_.whole.cells / std::ssize(lines.largest);
  else if (plan_.route == Route::box)
    lines.length = mesh_.part.cells[0];
  else if (plan_.route == Route::lattices)
    lines.length = mesh_.pieces->pieces->n;
  lines.cell = [n = lines.length](std::int64_t line, std::int64_t i) { return line * n + i; };
  return lines;
}

void System::check_source(bool beside) {
  checks_source_ = beside;
  auto const find = [this]() -> assembly::SourceFindings {
    if (!mesh_.own)
      return {};
    return source_ && !plan_.source_on_host ? mesh_.own->source_findings(source_->absolute, source_lines())
                                            : mesh_.own->source_findings();
  };
  findings_ = std::async(beside ? std::launch::async | std::launch::deferred : std::launch::deferred, find);
}

std::string System::source_warning() {
  if (!findings_.valid())
    return source_warning_;
  assembly::SourceFindings mine, all;
  team_.together([&] {
    try {
      mine = findings_.get();
    } catch (Interrupted const&) {  // of the solve, whose result counts
      if (!checks_source_)
        throw;
    }
    free_memory(largest_of_lines_);
    source_lattice_ = {};
  });
  for (assembly::SourceFindings const& of_rank : gather(team_.communicator(), mine))
    all.add(of_rank);
  return source_warning_ = all.warning();
}

void System::make_compatible() {
  Communicator& ranks = team_.communicator();
  FieldSums of_cells, of_points;
  assembly::ExactMean exact;
  bool has_exact = false, is_shifted = false;  // is_shifted: gpu/elements has made b sum to 0
  HostVector<double> weights_of_free;
  team_.together([&] {
    if (mesh_.around) {
      of_points = mesh_.around->point_loads().integrals;
      is_shifted = mesh_.is_whole() && mesh_.around->point_loads().loads.empty();
    }
    if (!is_shifted)
      weights_of_free = weights();
    if (!mesh_.own)
      return;
    FieldSums const source = source_of_own_cells(),
                    boundary = mesh_.is_whole() ? elements_->boundary() : mesh_.own->boundary_integral();
    of_cells = {source.sum + boundary.sum, source.absolute + boundary.absolute};
    if (has_exact = !mesh_.is_whole() && mesh_.own->has_exact(); has_exact)
      exact = mesh_.own->mean_of_exact();
  });
  of_cells = {sum_over(ranks, of_cells.sum), sum_over(ranks, of_cells.absolute)};
  of_points = of_first(ranks, of_points);  // every part knows all points
  exact = {sum_over(ranks, exact.integral), sum_over(ranks, exact.volume)};
  team_.together([&] {
    compatibility_defect_ =
        assembly::Discretization::compatibility_defect(of_cells.sum + of_points.sum, of_cells.absolute + of_points.absolute);
    if (has_exact)
      mesh_.own->set_mean_of_exact(exact.mean());
  });
  if ((has_ties_ || ties_of_box_) && !weights_of_free.empty())
    fold(weights_of_free);
  if (!any_of_ranks(ranks, is_shifted))
    subtract_constant_source(b_.change_on_host(), weights_of_free);
}

void System::subtract_constant_source(std::span<double> f, std::span<double const> weights) const {
  Communicator& ranks = team_.communicator();
  double const density = sum_over(ranks, assembly::ordered_sum(f)) / sum_over(ranks, assembly::ordered_sum(weights));
  for (std::size_t i = 0; i < f.size(); ++i)
    f[i] -= density * weights[i];
}

void System::subtract_mean(std::span<double> u) const {
  Communicator& ranks = team_.communicator();
  HostVector<double> const of_rows = weights();
  HostVector<double> storage;
  if (!mesh_.is_whole())
    storage = mesh_.of_own_rows(u);
  std::span<double const> const own = mesh_.is_whole() ? std::span<double const>(u) : storage;
  double const mean = sum_over(ranks, assembly::ordered_dot(of_rows, own)) / sum_over(ranks, assembly::ordered_sum(of_rows));
  for (double& value : u)
    value -= mean;
}

HostVector<double> System::weights() const {
  return mesh_.around ? mesh_.of_own_rows(mesh_.around->integration_weights()) : HostVector<double>{};
}

void System::store(SystemSolver& solver) {
  std::shared_ptr<RankBlocks const> blocks;
  if (plan_.has_box_levels && mesh_.box)
    blocks = std::make_shared<RankBlocks const>(mesh_.box->node_blocks());
  else if (ties_of_box_)
    blocks = std::make_shared<RankBlocks const>(*ties_of_box_);
  if (block_)
    solver.adopt(std::move(*block_), std::move(rows_.neighbors), blocks, lattices_, plan_.choice);
  else
    solver.convert(
        std::move(rows_), blocks, [this] { return mesh_.row_numbers(); }, plan_.whole_is_taken);
}

OrderOne System::order_one_of_box(Context& context) const {
  RunConfig config = config_;
  config.problem.order = 1;
  config.matrix.format = Format::half_cds;
  OrderOne result;
  Domain mesh = make_domain(config, team_);
  System system(
      mesh, team_, config, plan_for(mesh, team_, config, plan_.backend), [&]() -> Context& { return context; }, false, RowsAlone());
  std::vector<RankNeighbor> const& neighbors = system.rows_.neighbors;
  if (system.block_) {
    result.own_rows = std::make_unique<RankMatrix>(std::move(system.block_->local), std::move(system.block_->rim), neighbors,
                                                   team_.communicator());
  } else {
    SplitRows rows;
    std::unique_ptr<Matrix> local;
    team_.together([&] {
      rows = split(system.rows_);
      local = make_matrix(Format::csr, rows.local, context);
    });
    result.own_rows = std::make_unique<RankMatrix>(std::move(local), rows, neighbors, team_.communicator());
  }
  result.blocks = std::make_shared<RankBlocks const>(mesh.box->node_blocks());
  result.fixed = fixed_of_box_;
  return result;
}

OrderOneProvider System::order_one(RunDevice& device) const {
  if (!mesh_.is_whole() && plan_.route == Route::cells && mesh_.box && plan_.may_lower)
    return [this, &device] {
      try {
        return order_one_of_box(device.context());
      } catch (InputError const&) {  // of k at points where elements of higher order have none
        team_.caught();
        return OrderOne{};
      }
    };
  if (mesh_.is_whole() ? !plan_.has_order_one : !lowered_)
    return {};
  return [this, order = config_.problem.order, &device] {
    try {
      if (lowered_)
        return make_order_one(device.context(), *lowered_, coordinates_);
      auto box = mesh_.own->box_problem_of_order_one();
      if (box && order == 1)
        return make_order_one(device.context(), *box);
      return make_order_one(device.context(), LoweredProblem(mesh_.own->lattice_problem(), std::move(box)));
    } catch (DataError const&) {  // cells whose vertices alone do not make a cell
      return OrderOne{};
    }
  };
}

RankNestedProvider System::nested_spaces() const {
  if (!has_nested_spaces(config_, mesh_.whole, plan_.route, mesh_.is_whole(), mesh_.pieces != nullptr))
    return {};
  return [this] {
    RankNestedSpaces result =
        mesh_.pieces != nullptr ? nested_lattices(mesh_, team_, config_.problem.order) : space_of_order_one(mesh_, team_);
    result.order = config_.problem.order;
    if (config_.is_box())
      result.blocks = std::make_shared<RankBlocks const>(
          assembly::BoxPartition(config_.problem.mesh.refined_cells(), 1, team_.size()).node_blocks());
    return result;
  };
}

template <class Action>
void System::for_tied(Action const& action) const {
  if (!ties_of_box_)
    return;
  NodeBox const whole = ties_of_box_->whole();
  for (std::size_t d = 0; d < 3; ++d) {
    if (!ties_of_box_->periodic[d])
      continue;
    NodeBox side = whole;
    side.low[d] = whole.high[d] - 1;
    for (std::size_t e = 0; e < d; ++e)  // nodes that an earlier direction ties are there already
      side.high[e] -= ties_of_box_->periodic[e] ? 1 : 0;
    side.for_all([&](std::array<std::int64_t, 3> const& node) {
      std::int64_t const tied = whole.index(node);
      action(static_cast<std::size_t>(tied), static_cast<std::size_t>(ties_of_box_->root(tied)));
    });
  }
}

void System::fold(HostVector<double>& f) const {
  if (!ties_of_box_)
    return restrict_to_free(mesh_, team_, f);
  for_tied([&](std::size_t tied, std::size_t root) {
    f[root] += f[tied];
    f[tied] = 0;
  });
}

HostVector<double> System::fixed_around() const {
  HostVector<double> fixed(mesh_.n_around(), 0.0);
  if (elements_ != nullptr) {  // which unknowns have Dirichlet values shows when they are set
    std::fill(fixed.begin(), fixed.end(), std::numeric_limits<double>::quiet_NaN());
    elements_->set_dirichlet(fixed);
    std::transform(fixed.begin(), fixed.end(), fixed.begin(), [](double value) { return std::isnan(value) ? 0.0 : 1.0; });
    for_tied([&](std::size_t tied, std::size_t) { fixed[tied] = 1; });
  } else if (mesh_.around) {
    std::copy(constraints_.mask().begin(), constraints_.mask().end(), fixed.begin());
    for (std::int32_t const unknown : given_.unknowns)
      fixed[static_cast<std::size_t>(unknown)] = 1;
  }
  return fixed;
}

HostVector<double> System::fixed_rows() const {
  HostVector<double> fixed = fixed_around();
  for (RankTie const& tie : mesh_.ties)
    fixed[static_cast<std::size_t>(tie.unknown)] = 1;
  return mesh_.of_own_rows(std::move(fixed));
}

std::unique_ptr<ElementSolution> System::element_solution() {
  if (mesh_.own == nullptr)
    return nullptr;
  if (mesh_.whole.box_for_elements && (!mesh_.whole.periodic || whole_box_ != nullptr))
    if (BoxProblem const problem = problem_of_box();
        problem.coefficient.size() < tensor_entries && (problem.materials || mesh_.whole.material_ids.size() == 1))
      return std::make_unique<BoxSolution>(context_(), problem);
  if (asks_host_about(config_, mesh_.whole, plan_))
    return nullptr;
  try {
    return std::make_unique<LatticeSolution>(context_(), lattice_geometry(), std::move(coordinates_));
  } catch (OutOfMemoryError const&) {  // the host has u and the coordinates
    return nullptr;
  }
}

LatticeGeometry System::lattice_geometry() const {
  if (mesh_.is_whole())
    return mesh_.around->lattice_geometry();
  if (plan_.route != Route::lattices)
    return mesh_.own->lattice_geometry(*mesh_.around, mesh_.list_in_own());
  return mesh_.around->lattice_geometry();
}

BoxResidual const* System::residual_of_box() const {
  if (whole_box_ == nullptr || box_residual_)
    return box_residual_.get();
  BoxProblem const problem = problem_of_box();
  if (!BoxResidual::knows(problem))
    return nullptr;
  std::vector<std::pair<std::int64_t, double>> loads;
  for (auto const& load : mesh_.around->point_loads().loads)
    loads.emplace_back(load.unknown, load.value);
  box_residual_ = std::make_unique<BoxResidual>(context_(), problem, loads);
  return box_residual_.get();
}

Field System::coordinate(std::size_t direction, double origin) const {
  return whole_box_ != nullptr ? Field(whole_box_->coordinate(direction, origin)) : Field();
}

Field System::forces_in_void_box(FieldPair const& u) const {
  Context& context = context_();
  auto const& kernels = kernels_for<RimKernels<double>>(context);
  if (!void_box_residual_) {
    std::vector<std::pair<std::int64_t, double>> loads;
    if (auto const& of_points = mesh_.around->point_loads().loads; !of_points.empty()) {
      HostVector<std::int32_t> nodes(static_cast<std::size_t>(void_box_nodes_.size()));
      void_box_nodes_.download(std::span<std::int32_t>(nodes));
      for (auto const& load : of_points)
        loads.emplace_back(nodes[static_cast<std::size_t>(load.unknown)], load.value);
    }
    void_box_residual_ = std::make_unique<BoxResidual>(context, *void_box_, loads);
  }
  std::int64_t n_of_box = 1;
  for (std::int64_t const cells : void_box_->cells)
    n_of_box *= cells + 1;
  auto const in_box = [&](Field const& field) {
    Array<double> result(context, field.empty() ? 0 : n_of_box);
    if (field.empty())
      return result;
    result.set_zero();
    kernels.put(context, void_box_nodes_.size(), void_box_nodes_.data(), field.on(context).data(), result.data());
    return result;
  };
  Array<double> const high = in_box(u.high), low = in_box(u.low);
  Array<double> of_box(context, n_of_box), r(context, void_box_nodes_.size());
  (*void_box_residual_)(high.data(), u.low.empty() ? nullptr : low.data(), of_box.data());
  kernels.pack(context, void_box_nodes_.size(), void_box_nodes_.data(), of_box.data(), r.data());
  return Field(std::move(r));
}

Field System::forces(FieldPair const& u) const {
  if (void_box_)
    return forces_in_void_box(u);
  if (BoxResidual const* const of_box = residual_of_box()) {
    Context& context = context_();
    Array<double> r(context, u.high.size());
    (*of_box)(u.high.on(context).data(), u.low.empty() ? nullptr : u.low.on(context).data(), r.data());
    return Field(std::move(r));
  }
  HostVector<double> r;
  team_.together([&] {
    if (mesh_.around)
      r = mesh_.of_own_rows(mesh_.around->residual(u.high.host(), u.low.host()).values);
  });
  return Field(std::move(r));
}

Field System::residual(FieldPair const& u) const {
  Field f = forces(u);
  if (residual_of_box() != nullptr) {
    double* const values = f.change_on(context_()).data();
    if (pure_neumann())
      whole_box_->subtract_constant_source(values);
    whole_box_->restrict_to_free(values);
    return f;
  }
  HostVector<double> r = f.take_host();
  if (pure_neumann())
    subtract_constant_source(r, weights());
  if (mesh_.is_whole() && elements_ == nullptr) {
    constraints_.restrict_to_free(r);
    return Field(std::move(r));
  }
  if (mesh_.whole.periodic)
    fold(r);
  HostVector<double> const fixed = mesh_.of_own_rows(fixed_around());
  for (std::size_t i = 0; i < r.size(); ++i)
    if (fixed[i] != 0)
      r[i] = 0;
  return Field(std::move(r));
}

std::optional<std::size_t> System::held() const {
  for (std::size_t i = 0; holds_an_unknown_ && i < mesh_.n_around(); ++i)
    if (mesh_.place(i) < mesh_.n_rows && mesh_.around_of_whole(static_cast<std::int64_t>(i)) == 0)
      return static_cast<std::size_t>(mesh_.place(i));
  return std::nullopt;
}

HostVector<double> System::restricted(HostVector<double> f) const {
  constraints_.restrict_to_free(f);
  return f;
}

HostVector<double> System::unconstrained(HostVector<double> x) const {
  for (std::int64_t i = 0; i < constraints_.size(); ++i)
    if (constraints_.constrained(i))
      x[i] = 0;
  return x;
}

void System::correct(Field const& correction, double sign, FieldPair& u) const {
  if (whole_box_ != nullptr) {
    Context& context = context_();
    Array<double> all = correction.on(context).copy_to(context);
    whole_box_->extend_to_tied(all.data());
    if (pure_neumann())
      whole_box_->subtract_mean(all.data());
    add(Field(std::move(all)), sign, u, true);
    return;
  }
  std::span<double const> const d = correction.host();
  Field all = around_of_rows(Field(HostVector<double>(d.begin(), d.end())));
  std::span<double> const values = all.change_on_host();
  if (mesh_.is_whole())
    for (std::int64_t i = 0; i < constraints_.size(); ++i)
      if (constraints_.constrained(i)) {
        double sum = 0;
        for (auto const& [free, weight] : constraints_.row(i))
          sum += weight * d[static_cast<std::size_t>(free)];
        values[static_cast<std::size_t>(i)] = sum;
      }
  if (pure_neumann())
    subtract_mean(values);
  add(all, sign, u, true);
}

Field System::around_of_rows(Field x) const {
  if (mesh_.is_whole())
    return x;
  bool const tied = mesh_.whole.periodic && !ties_of_box_;
  Context& context = context_();
  Array<double> all = with_ghosts(context, team_.communicator(), tied ? neighbors_ : mesh_.neighbors, x.on(context));
  if (mesh_.places.block() == nullptr && !tied)
    return Field(std::move(all));
  Array<double> u(context, static_cast<std::int64_t>(mesh_.places.size()));
  if (BlockPlaces const* const block = mesh_.places.block(); block != nullptr && !tied) {
    auto const copy = [&](NodeBox const& nodes, std::int64_t first) {
      if (nodes.size() > 0)
        kernels_for<BlockKernels<double>>(context).copy(context, common_nodes(nodes, nodes, block->around()), all.data() + first,
                                                        u.data());
    };
    copy(block->own(), 0);
    for (auto const& [nodes, first] : block->ghosts())
      copy(nodes, first);
    return Field(std::move(u));
  }
  HostVector<std::int32_t> const list = tied ? places_ : mesh_.places.list();
  Array<std::int32_t> const places(context, std::span<std::int32_t const>(list));
  kernels_for<RimKernels<double>>(context).pack(context, places.size(), places.data(), all.data(), u.data());
  return Field(std::move(u));
}

Field System::reconstruct(Field x) const {
  Field u = around_of_rows(std::move(x));
  if (!offsets_.empty()) {
    std::span<double> const values = u.change_on_host();
    for (std::size_t i = 0; i < offsets_.size(); ++i)
      values[i] += offsets_[i];
  }
  if (elements_ != nullptr) {
    double* const values = u.change_on(elements_->context()).data();
    elements_->set_dirichlet(values);
    elements_->set_tied(values);
  } else if (mesh_.around) {
    set_constrained(u);
  }
  if (pure_neumann() && whole_box_ != nullptr)
    whole_box_->subtract_mean(u.change_on(whole_box_->context()).data());
  else if (pure_neumann())
    subtract_mean(u.change_on_host());
  return u;
}

void System::set_constrained(Field& u) const {
  Context* const context = u.context();
  std::vector<std::int32_t> unknowns = given_.unknowns;
  std::vector<double> values = given_.values;
  if (context == nullptr || context->backend() == Backend::cpu || constraints_.has_entries()) {
    std::span<double> const host = u.change_on_host();
    constraints_.expand(host);
    for (std::size_t i = 0; i < unknowns.size(); ++i)
      host[static_cast<std::size_t>(unknowns[i])] = values[i];
    return;
  }
  for (std::int64_t i = 0; i < constraints_.size(); ++i)
    if (constraints_.constrained(i)) {
      unknowns.push_back(static_cast<std::int32_t>(i));
      values.push_back(constraints_.value(i));
    }
  Array<std::int32_t> const places(*context, std::span<std::int32_t const>(unknowns));
  Array<double> const given(*context, std::span<double const>(values));
  kernels_for<RimKernels<double>>(*context).put(*context, given.size(), places.data(), given.data(), u.change_on(*context).data());
}

}  // namespace poisson::app
