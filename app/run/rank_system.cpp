#include "app/run/rank_system.hpp"

#include "app/run/balance.hpp"
#include "app/run/system_solver.hpp"
#include "assembly/system/boundary_flux.hpp"
#include "assembly/system/lattice_problem.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/elements/lattice_rows.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace poisson::app {

namespace {

/// The rows of this rank from the matrix of the cells around them, whose unknowns have these places (Domain::places). Columns
/// ascend.
std::shared_ptr<CsrMatrix const> rows_in(CsrMatrix assembled, HostVector<std::int32_t> const& places, std::int64_t n_rows,
                                         std::int64_t n_ghosts) {
  std::size_t in_order = 0;
  while (in_order < places.size() && places[in_order] == static_cast<std::int32_t>(in_order))
    ++in_order;
  if (in_order == places.size()) {  // the first rows as they are
    auto const nnz = static_cast<std::size_t>(assembled.row_ptr[n_rows]);
    assembled.n_rows = n_rows;
    assembled.n_columns = n_rows + n_ghosts;
    assembled.row_ptr.resize(static_cast<std::size_t>(n_rows) + 1);
    assembled.columns.resize(nnz);
    assembled.values.resize(nnz);
    return std::make_shared<CsrMatrix const>(std::move(assembled));
  }
  auto result = std::make_shared<CsrMatrix>();
  result->n_rows = n_rows;
  result->n_columns = n_rows + n_ghosts;
  result->row_ptr.resize(static_cast<std::size_t>(n_rows) + 1);
  result->row_ptr[0] = 0;
  HostVector<std::int64_t> from(static_cast<std::size_t>(n_rows));
  for (std::int64_t node = 0; node < assembled.n_rows; ++node)
    if (auto const row = static_cast<std::size_t>(places[static_cast<std::size_t>(node)]);
        static_cast<std::int64_t>(row) < n_rows) {
      from[row] = node;
      result->row_ptr[row + 1] = assembled.row_ptr[node + 1] - assembled.row_ptr[node];
    }
  for (std::size_t row = 0; row < from.size(); ++row)
    result->row_ptr[row + 1] += result->row_ptr[row];
  auto const nnz = static_cast<std::size_t>(result->row_ptr.back());
  result->columns.resize(nnz);
  result->values.resize(nnz);
  std::vector<std::pair<std::int32_t, double>> entries;
  for (std::size_t row = 0; row < from.size(); ++row) {
    entries.clear();
    for (auto e = static_cast<std::size_t>(assembled.row_ptr[from[row]]);
         e < static_cast<std::size_t>(assembled.row_ptr[from[row] + 1]); ++e)
      entries.emplace_back(places[static_cast<std::size_t>(assembled.columns[e])], assembled.values[e]);
    std::sort(entries.begin(), entries.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    auto out = static_cast<std::size_t>(result->row_ptr[row]);
    for (auto const& [column, value] : entries) {
      result->columns[out] = column;
      result->values[out++] = value;
    }
  }
  return result;
}

}  // namespace

RankSystem::RankSystem(Domain& mesh, Team& team, RunConfig const& config, AssemblyPlan plan, Context& context)
    : RankSystem(mesh, team, config, std::move(plan), Empty()) {
  assemble_rows(context);
  sum_sources();
  Communicator& ranks = team.communicator();
  if (!block_)
    nnz_ = sum_over(ranks, rows_.matrix->nnz());
  if (mesh.pure_neumann ? *mesh.pure_neumann : !any_of_ranks(ranks, anchored_))
    make_compatible();
  if (holds_an_unknown())
    hold_first_unknown(mesh_, team_, rows_, b_);
}

/// The matrix and the right-hand side without what must be known of the whole.
void RankSystem::assemble_rows(Context& context) {
  switch (plan_.route) {
  case Route::csr:
    assemble();
    break;
  case Route::box:
    assemble_block(context);
    break;
  case Route::lattices:
  case Route::cells:
    assemble_lattices(config_.problem.order, context);
  }
}

/// Own cells as lattices, with unknowns as mesh_.places numbers them. `around`: the Dirichlet values of the unknowns around.
LatticeProblem RankSystem::problem_of_cells(int order, std::span<double const> around) const {
  std::vector<double> dirichlet(around.size());
  for (std::size_t unknown = 0; unknown < around.size(); ++unknown)
    dirichlet[static_cast<std::size_t>(mesh_.places[unknown])] = around[unknown];
  if (!mesh_.own)
    return assembly::problem_without_cells(order, dirichlet);
  std::vector<std::int32_t> number;
  number.reserve(mesh_.in_own.size());
  for (std::int32_t const unknown : mesh_.in_own)
    number.push_back(mesh_.places[static_cast<std::size_t>(unknown)]);
  return mesh_.own->lattice_problem(number, dirichlet, !plan_.source_on_host);
}

void RankSystem::assemble_lattices(int order, Context& context) {
  Format const format = plan_.format;
  auto lattices = std::make_shared<RankLattices>();
  HostVector<std::uint8_t> fixed;
  std::int64_t emptied = 0;
  HostVector<double> rhs;
  std::unique_ptr<Matrix> matrix;
  team_.together([&] {
    std::optional<assembly::OwnPieces> pieces;
    LatticeProblem problem;
    std::vector<double> const dirichlet = mesh_.around ? mesh_.around->dirichlet_values() : std::vector<double>{};
    if (plan_.route == Route::cells) {
      mesh_.own_nodes = {};
      mesh_.around_cells = {};
      problem = problem_of_cells(order, dirichlet);
    } else {
      pieces.emplace(mesh_.pieces, team_.rank(), std::ssize(mesh_.places), mesh_.n_rows, std::move(mesh_.own_nodes),
                     std::move(mesh_.around_cells));
      // Own unknowns were rows in the order of their numbers in the whole mesh.
      for (RankNeighbor& neighbor : mesh_.neighbors)
        for (std::int32_t& row : neighbor.sent)
          row = pieces->number[static_cast<std::size_t>(row)];
      mesh_.places = pieces->number;
      lattices->cut = pieces->cut();
      problem = mesh_.around->lattice_problem(*pieces);
    }
    lattices->n_rows = mesh_.n_rows;
    lattices->neighbors = mesh_.neighbors;
    anchored_ = !problem.pure_neumann;
    problem.pure_neumann = false;  // what the whole is shows later
    require_memory(context, LatticeSystem::peak_bytes(problem, context.backend(), format),
                   "the matrix in " + std::string(name_of(format)) + ", with its assembly,",
                   "use more ranks, a coarser mesh or the cpu backend");
    try {
      LatticeSystem system(context, problem, format);
      source_ = system.source();
      largest_of_lines_ = system.largest_source_of_lines();
      rhs = system.take_rhs();
      matrix = system.take_matrix();
    } catch (DataError const& error) {
      if (!pieces)
        mesh_.own->refuse(error);
      DataError in_cell = error;
      in_cell.part = pieces->cell_of(error.part);
      mesh_.around->refuse(in_cell);
    }
    if (format == Format::matrix_free) {
      if (mesh_.around)
        emptied = mesh_.around->emptied_entries(dirichlet, mesh_.have_rows());
      if (plan_.may_lower && pieces)
        lowered_.emplace(problem);
      else if (plan_.may_lower && mesh_.box)
        fixed_ = problem.fixed;
    }
    lattices->layout = std::move(problem.layout);
    fixed = std::move(problem.fixed);
    constraints_ = assembly::Constraints(static_cast<std::int64_t>(mesh_.places.size()));
    for (std::size_t i = 0; i < mesh_.places.size(); ++i)
      if (auto const on_rim = static_cast<std::int64_t>(mesh_.places[i]) - lattices->layout.n_inner();
          on_rim >= 0 && fixed[static_cast<std::size_t>(on_rim)] != 0)
        constraints_.set(static_cast<std::int32_t>(i), problem.fixed_value[static_cast<std::size_t>(on_rim)]);
    constraints_.close();
  });
  rows_.neighbors = mesh_.neighbors;
  if (format == Format::matrix_free) {
    block_ = rows_of_operator(team_.communicator(), lattices, std::move(matrix), rhs, std::move(fixed));
  } else {
    LatticeRows rows = rows_of_lattices(team_.communicator(), *lattices, std::move(matrix), rhs, fixed);
    emptied = rows.emptied;
    block_ = std::move(rows.block);
  }
  nnz_ = mesh_.whole.nnz - sum_over(team_.communicator(), emptied);
  b_ = std::move(block_->rhs);
  lattices_ = std::move(lattices);
  team_.together([&] {
    if (plan_.source_on_host) {
      largest_of_lines_ = {};
      if (mesh_.own)
        source_ = mesh_.own->source_integral();
    }
    if (mesh_.around && plan_.source_on_host)
      b_ = mesh_.of_own_rows(mesh_.around->assemble().rhs);
    else if (mesh_.around)
      add_point_loads();
  });
}

void RankSystem::assemble_block(Context& context) {
  std::array<bool, 6> dirichlet{};
  team_.together([&] {
    rows_.neighbors = mesh_.neighbors;
    block_.emplace();
    if (!mesh_.around) {
      auto const empty = std::make_shared<CsrMatrix>();
      empty->row_ptr.push_back(0);
      block_->local = make_matrix(Format::csr, empty, context);
      block_->rows.couplings = empty;
      block_->rim_rows = *empty;
      return;
    }
    BoxProblem problem = *mesh_.around->box_problem();
    assembly::BoxPart const cells = mesh_.part_around, own = mesh_.part;
    BoxProblem::Cells in_sums;
    for (std::size_t d = 0; d < 3; ++d) {
      in_sums.first[d] = own.first[d] - cells.first[d];
      in_sums.end[d] = in_sums.first[d] + own.cells[d];
    }
    problem.cells_in_sums = in_sums;
    Format const format = plan_.format;
    require_memory(context, BoxSystem::peak_bytes(problem, format, context.backend()),
                   "the matrix in " + std::string(name_of(format)) + ", with its assembly,",
                   "use more ranks, a coarser mesh or the cpu backend");
    try {
      box_system_ = std::make_unique<BoxSystem>(context, problem, format);
    } catch (DataError const& error) {
      mesh_.around->refuse(error);
    }
    largest_of_lines_ = box_system_->largest_source_of_lines();
    auto const me = static_cast<std::size_t>(team_.rank());
    NodeBox around;
    for (std::size_t d = 0; d < 3; ++d) {
      around.low[d] = cells.first[d];
      around.high[d] = cells.first[d] + cells.cells[d] + 1;
    }
    block_ = take_block(*box_system_, around, mesh_.box->node_blocks().own[me], mesh_.places, context);
    b_ = std::move(block_->rhs);
    anchored_ = box_system_->anchored();
    add_point_loads();
    for (std::size_t face = 0; face < dirichlet.size(); ++face)
      dirichlet[face] = problem.faces[face].type == BoxProblem::Face::Type::dirichlet;
  });
  // Nodes without a Dirichlet value are a box, too.
  std::array<std::int64_t, 3> nodes = mesh_.box->node_blocks().nodes, free = nodes;
  combine_lists(team_.communicator(), std::span<bool>(dirichlet), [](bool& one, bool other) { one = one || other; });
  for (std::size_t face = 0; face < dirichlet.size(); ++face)
    free[face / 2] -= dirichlet[face] ? 1 : 0;
  nnz_ = (3 * free[0] - 2) * (3 * free[1] - 2) * (3 * free[2] - 2) + nodes[0] * nodes[1] * nodes[2] - free[0] * free[1] * free[2];
}

void RankSystem::add_point_loads() {
  auto const& loads = mesh_.around->point_loads().loads;
  if (loads.empty())
    return;
  std::vector<double> const fixed = mesh_.around->dirichlet_values();
  for (auto const& load : loads)
    if (auto const place = mesh_.places[load.unknown]; place < mesh_.n_rows && std::isnan(fixed[load.unknown]))
      b_[static_cast<std::size_t>(place)] += load.value;
}

void RankSystem::assemble() {
  mesh_.own_nodes = {};
  mesh_.around_cells = {};
  assembly::LinearSystem system;
  system.matrix.row_ptr.push_back(0);
  team_.together([&] {
    if (mesh_.around)
      system = mesh_.around->assemble();
    anchored_ = system.anchored;
    constraints_ = std::move(system.constraints);
    if (mesh_.whole.periodic)
      return;
    rows_.neighbors = mesh_.neighbors;
    rows_.matrix = rows_in(std::move(system.matrix), mesh_.places, mesh_.n_rows, rows_.n_ghosts());
    b_ = mesh_.of_own_rows(system.rhs);
  });
  if (!mesh_.whole.periodic)
    return;
  has_ties_ = any_of_ranks(team_.communicator(), !mesh_.ties.empty());
  TiedRows tied = tie_rows(mesh_, team_, system.matrix, system.rhs);
  rows_ = std::move(tied.rows);
  b_ = std::move(tied.rhs);
  neighbors_ = rows_.neighbors;
  places_ = std::move(tied.places);
  offsets_ = std::move(tied.offsets);
}

FieldSums RankSystem::source_of_own_cells() const {
  if (lattices_ != nullptr)
    return source_;
  if (box_system_ != nullptr)
    return box_system_->source();
  return mesh_.own ? mesh_.own->source_integral() : FieldSums{};
}

/// What gpu/elements has found in the lines of its cells, for own cells.
assembly::SourceLines RankSystem::source_lines() const {
  assembly::SourceLines lines;
  if (plan_.route == Route::box) {  // of the cells around
    assembly::BoxPart const &around = mesh_.part_around, &own = mesh_.part;
    for (std::int64_t z = 0; z < own.cells[2]; ++z)
      for (std::int64_t y = 0; y < own.cells[1]; ++y)
        lines.largest.push_back(largest_of_lines_[static_cast<std::size_t>((z + own.first[2] - around.first[2]) * around.cells[1] +
                                                                           y + own.first[1] - around.first[1])]);
    lines.length = own.cells[0];
    lines.cell = [n = lines.length](std::int64_t line, std::int64_t i) { return line * n + i; };
    return lines;
  }
  lines.largest.assign(largest_of_lines_.begin(), largest_of_lines_.end());
  if (plan_.route == Route::cells) {
    lines.cell = [](std::int64_t line, std::int64_t) { return line; };
    return lines;
  }
  assembly::LatticePieces const& pieces = *mesh_.pieces;
  std::vector<std::int32_t> own;
  for (std::size_t piece = 0; piece < pieces.rank_of.size(); ++piece)
    if (pieces.rank_of[piece] == team_.rank())
      own.push_back(static_cast<std::int32_t>(piece));
  lines.length = pieces.n;
  lines.cell = [this, &pieces, own](std::int64_t line, std::int64_t i) {
    std::int64_t const n = pieces.n;
    std::int64_t const number = pieces.number_of({own[static_cast<std::size_t>(line / (n * n))], {i, line % n, line / n % n}});
    return std::lower_bound(mesh_.own_cells.begin(), mesh_.own_cells.end(), number) - mesh_.own_cells.begin();
  };
  return lines;
}

std::string RankSystem::source_warning() {
  assembly::SourceFindings mine, all;
  team_.together([&] {
    if (!mesh_.own)
      return;
    mine = largest_of_lines_.empty() ? mesh_.own->source_findings()
                                     : mesh_.own->source_findings(source_of_own_cells().absolute, source_lines());
  });
  for (assembly::SourceFindings const& of_rank : gather(team_.communicator(), mine))
    all.add(of_rank);
  return all.warning();
}

void RankSystem::sum_sources() {
  double of_parts = 0, of_points = 0;
  team_.together([&] {
    of_parts = source_of_own_cells().sum;
    if (mesh_.around)
      of_points = mesh_.around->point_loads().integrals.sum;
  });
  Communicator& ranks = team_.communicator();
  integral_f_ = sum_over(ranks, of_parts) + of_first(ranks, of_points);  // every part knows all points
}

void RankSystem::store(SystemSolver& solver) {
  auto const blocks = plan_.has_box_levels ? std::make_shared<RankBlocks const>(mesh_.box->node_blocks()) : nullptr;
  if (block_)
    solver.adopt(std::move(*block_), std::move(rows_.neighbors), blocks, lattices_, plan_.choice);
  else
    solver.convert(std::move(rows_), blocks, mesh_.row_numbers(), plan_.whole_is_taken);
}

void RankSystem::make_compatible() {
  Communicator& ranks = team_.communicator();
  double absolute = 0, of_points = 0;
  assembly::ExactMean exact;
  bool has_exact = false;
  team_.together([&] {
    if (mesh_.around) {
      weights_ = mesh_.of_own_rows(mesh_.around->integration_weights());
      of_points = mesh_.around->point_loads().integrals.absolute;
    }
    if (!mesh_.own)
      return;
    absolute = source_of_own_cells().absolute + mesh_.own->boundary_integral().absolute;
    if (has_exact = mesh_.own->has_exact(); has_exact)
      exact = mesh_.own->mean_of_exact();
  });
  HostVector<double> weights = weights_;  // of free unknowns
  if (has_ties_)
    restrict_to_free(mesh_, team_, weights);
  double const total = sum_over(ranks, std::accumulate(b_.begin(), b_.end(), 0.0));
  absolute = sum_over(ranks, absolute) + of_first(ranks, of_points);
  volume_ = sum_over(ranks, std::accumulate(weights_.begin(), weights_.end(), 0.0));
  exact = {sum_over(ranks, exact.integral), sum_over(ranks, exact.volume)};
  team_.together([&] {
    compatibility_defect_ = assembly::Discretization::compatibility_defect(total, absolute);
    if (has_exact)
      mesh_.own->set_mean_of_exact(exact.mean());
  });
  subtract_constant_source(b_, total, weights);
}

void RankSystem::subtract_constant_source(std::span<double> f, double total, std::span<double const> weights) const {
  for (std::size_t i = 0; i < f.size(); ++i)
    f[i] -= total / volume_ * weights[i];
}

OrderOne RankSystem::order_one_of_box(Context& context) const {
  RunConfig config = config_;
  config.problem.order = 1;
  config.matrix.format = Format::half_cds;
  OrderOne result;
  Domain mesh = make_domain(config, team_);
  RankSystem system(mesh, team_, config, plan_for(mesh, team_, config, context.backend()), Empty());
  system.assemble_rows(context);
  SplitRows rows;
  std::unique_ptr<Matrix> local;
  team_.together([&] {
    if (system.block_) {
      rows = std::move(system.block_->rows);
      local = std::move(system.block_->local);
    } else {
      rows = split(system.rows_);
      local = make_matrix(Format::csr, rows.local, context);
    }
  });
  result.own_rows = std::make_unique<RankMatrix>(std::move(local), rows, system.rows_.neighbors, team_.communicator());
  result.blocks = std::make_shared<RankBlocks const>(mesh.box->node_blocks());
  result.fixed = fixed_;
  return result;
}

OrderOneProvider RankSystem::order_one(RunDevice& device) const {
  if (plan_.route == Route::cells && mesh_.box && plan_.may_lower)
    return [this, &device] {
      try {
        return order_one_of_box(device.context());
      } catch (InputError const&) {  // of k at points where elements of higher order have none
        team_.caught();
        return OrderOne{};
      }
    };
  if (!lowered_)
    return {};
  return [this, &device] {
    try {
      return make_order_one(device.context(), *lowered_);
    } catch (DataError const&) {  // cells whose vertices alone do not make a cell
      return OrderOne{};
    }
  };
}

RankNestedProvider RankSystem::nested_spaces() const {
  bool const by_rows = plan_.route == Route::csr || (plan_.route == Route::cells && !mesh_.box);
  if (!by_rows || mesh_.whole.periodic || !mesh_.whole.conditioned_surfaces.empty() ||
      (config_.problem.order == 1 && mesh_.nested == nullptr))
    return {};
  return [this] {
    RankNestedSpaces result;
    if (mesh_.nested != nullptr)
      result = nested_lattices();
    else
      result.spaces.push_back(space_of_order_one());
    result.order = config_.problem.order;
    if (config_.is_box())
      result.blocks = std::make_shared<RankBlocks const>(
          assembly::BoxPartition(config_.problem.mesh.refined_cells(), 1, team_.size()).node_blocks());
    return result;
  };
}

RankNestedSpaces RankSystem::nested_lattices() const {
  std::vector<std::int64_t> const numbers = mesh_.row_numbers();
  RankNestedSpaces result;
  for (assembly::NestedSpace& space : mesh_.nested->make()) {
    RankNestedSpace& next = result.spaces.emplace_back();
    std::vector<std::int32_t> of_rows;  // the numbers of its own unknowns, ascending
    for (std::int32_t const row : space.unknowns)
      of_rows.push_back(static_cast<std::int32_t>(numbers[static_cast<std::size_t>(row)]));
    RankLists<std::int32_t> wanted, rows;
    for (auto const& unknown : space.others)
      wanted[unknown.rank].push_back(unknown.number);
    for (auto const& [rank, list] : swap_lists(team_.communicator(), wanted))
      rows[rank] = assembly::places_in(of_rows, list);
    for (auto const& [rank, list] : swap_lists(team_.communicator(), rows))
      for (std::int32_t const row : list)
        next.others.push_back({rank, row});
    // Rows of P are those of the larger space.
    next.p = std::move(space.p);
    next.rows = std::move(space.unknowns);
  }
  // So far `rows` are those of the matrix.
  for (std::size_t l = result.spaces.size(); l-- > 1;)
    result.spaces[l].rows = assembly::places_in(result.spaces[l - 1].rows, result.spaces[l].rows);
  return result;
}

RankNestedSpace RankSystem::space_of_order_one() const {
  RankNestedSpace result;
  auto const n = static_cast<std::size_t>(mesh_.n_rows);
  CsrMatrix const around = mesh_.around ? mesh_.around->prolongation_of_order_one() : CsrMatrix{};
  std::vector<std::size_t> unknowns(n);  // of the rows, all of whose cells are around
  for (std::size_t unknown = 0; unknown < mesh_.places.size(); ++unknown)
    if (mesh_.places[unknown] < mesh_.n_rows)
      unknowns[static_cast<std::size_t>(mesh_.places[unknown])] = unknown;
  auto const begin_of = [&](std::size_t row) { return static_cast<std::size_t>(around.row_ptr[unknowns[row]]); };
  auto const end_of = [&](std::size_t row) { return static_cast<std::size_t>(around.row_ptr[unknowns[row] + 1]); };
  // By row: its place among the vertices, or -1; those of ghosts are at their ranks.
  std::vector<std::int32_t> columns(n, -1);  // of P, by place of the matrix
  for (std::size_t row = 0; row < n; ++row)
    if (end_of(row) - begin_of(row) == 1) {
      columns[row] = static_cast<std::int32_t>(result.rows.size());
      result.rows.push_back(static_cast<std::int32_t>(row));
    }
  auto const of_ghosts = values_of_ghosts<std::int32_t>(team_.communicator(), mesh_.neighbors, columns);
  auto ghost = of_ghosts.begin();
  for (RankNeighbor const& neighbor : mesh_.neighbors)
    for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i, ++ghost) {
      columns.push_back(*ghost < 0 ? -1 : static_cast<std::int32_t>(result.rows.size() + result.others.size()));
      if (*ghost >= 0)
        result.others.push_back({neighbor.rank, *ghost});
    }
  result.p.n_rows = mesh_.n_rows;
  result.p.n_columns = static_cast<std::int64_t>(result.rows.size() + result.others.size());
  result.p.row_ptr.push_back(0);
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t e = begin_of(row); e < end_of(row); ++e) {
      auto const place = mesh_.places[static_cast<std::size_t>(around.columns[e])];
      result.p.columns.push_back(columns[static_cast<std::size_t>(place)]);
      result.p.values.push_back(around.values[e]);
    }
    result.p.row_ptr.push_back(result.p.nnz());
  }
  return result;
}

HostVector<double> RankSystem::fixed_rows() const {
  HostVector<double> fixed(mesh_.places.size(), 0.0);
  team_.together([&] {
    if (!mesh_.around)
      return;
    std::vector<double> const values = mesh_.around->dirichlet_values();
    std::transform(values.begin(), values.end(), fixed.begin(), [](double value) { return std::isnan(value) ? 0.0 : 1.0; });
    for (RankTie const& tie : mesh_.ties)
      fixed[static_cast<std::size_t>(tie.unknown)] = 1;
  });
  return mesh_.of_own_rows(fixed);
}

HostVector<double> RankSystem::residual(std::span<double const> u, std::span<double const> u_low) const {
  HostVector<double> values(mesh_.places.size(), 0.0);
  team_.together([&] {
    if (!mesh_.around)
      return;
    values = mesh_.around->residual(u, u_low).values;
    std::vector<double> const fixed = mesh_.around->dirichlet_values();
    for (std::size_t i = 0; i < fixed.size(); ++i)
      if (!std::isnan(fixed[i]))
        values[i] = 0;
  });
  HostVector<double> r = mesh_.of_own_rows(values);
  if (pure_neumann())
    subtract_constant_source(r, sum_over(team_.communicator(), std::accumulate(r.begin(), r.end(), 0.0)), weights_);
  if (mesh_.whole.periodic)
    restrict_to_free(mesh_, team_, r);
  return r;
}

std::optional<std::size_t> RankSystem::held() const {
  for (std::size_t i = 0; holds_an_unknown() && i < mesh_.places.size(); ++i)
    if (mesh_.places[i] < mesh_.n_rows && mesh_.around_of_whole(static_cast<std::int64_t>(i)) == 0)
      return static_cast<std::size_t>(mesh_.places[i]);
  return std::nullopt;
}

void RankSystem::correct(std::span<double const> d, double sign, std::span<double> u, std::span<double> u_low) const {
  HostVector<double> all = around_of_rows(d);
  if (pure_neumann())
    subtract_mean(all);
  for (std::size_t i = 0; i < u.size(); ++i)
    add_to_pair(sign * all[i], u[i], u_low[i]);
}

HostVector<double> RankSystem::around_of_rows(std::span<double const> x) const {
  bool const tied = mesh_.whole.periodic;
  HostVector<std::int32_t> const& places = tied ? places_ : mesh_.places;
  auto const ghosts = values_of_ghosts<double>(team_.communicator(), tied ? neighbors_ : mesh_.neighbors, x);
  HostVector<double> u(places.size());
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = places[i] < mesh_.n_rows ? x[static_cast<std::size_t>(places[i])]
                                    : ghosts[static_cast<std::size_t>(places[i] - mesh_.n_rows)];
  return u;
}

void RankSystem::subtract_mean(std::span<double> u) const {
  double integral = 0;  // over own rows
  for (std::size_t i = 0; i < u.size(); ++i)
    if (mesh_.places[i] < mesh_.n_rows)
      integral += weights_[static_cast<std::size_t>(mesh_.places[i])] * u[i];
  double const mean = sum_over(team_.communicator(), integral) / volume_;
  for (double& value : u)
    value -= mean;
}

HostVector<double> RankSystem::reconstruct(HostVector<double> x) const {
  HostVector<double> u = around_of_rows(x);
  if (mesh_.whole.periodic)
    for (std::size_t i = 0; i < u.size(); ++i)
      u[i] += offsets_[i];
  if (box_system_ != nullptr)
    box_system_->set_dirichlet(u);
  else if (mesh_.around)
    constraints_.expand(u);
  if (pure_neumann())
    subtract_mean(u);
  return u;
}

}  // namespace poisson::app
