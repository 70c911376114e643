#include "app/run/system.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/system/lattice_problem.hpp"
#include "assembly/system/void_box.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/elements/lattice_rows.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/elements/void_box_operator.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

/// The ways to the rows of a rank: assembly on the host, and by gpu/elements on a box or on lattices.
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

System::System(Domain& mesh, Team& team, RunConfig const& config, AssemblyPlan plan, ContextProvider const& context,
               bool has_matrix, RowsAlone)
    : mesh_(mesh), team_(team), config_(config), plan_(std::move(plan)), context_(context), has_matrix_(has_matrix) {
  if (mesh.is_whole() && plan_.route == Route::lattices && plan_.format == Format::half_cds && mesh.whole.lattices == 0)
    plan_.route = Route::csr;  // the mesh could not be made of lattices, after all
  switch (plan_.route) {
  case Route::csr:
    assemble();
    break;
  case Route::box:
    assemble_box(context());
    break;
  case Route::void_box:
    assemble_void_box(context());
    break;
  case Route::lattices:
  case Route::cells:
    if (mesh.is_whole())
      assemble_lattices(context());
    else
      assemble_own_lattices(context());
  }
}

void System::require_memory_for(Context& context, std::int64_t bytes) const {
  require_memory(context, bytes, "the matrix in " + std::string(name_of(plan_.format)) + ", with its assembly,",
                 mesh_.is_whole() ? "use a coarser mesh or the cpu backend" : "use more ranks, a coarser mesh or the cpu backend");
}

void System::assemble() {
  assembly::LinearSystem system;
  system.matrix.row_ptr.push_back(0);
  team_.together([&] {
    if (mesh_.around)
      system = mesh_.around->assemble();
    anchored_ = system.anchored;
    constraints_ = std::move(system.constraints);
    if (mesh_.whole.periodic && !mesh_.is_whole())
      return;
    rows_.neighbors = mesh_.neighbors;
    rows_.matrix = rows_in(std::move(system.matrix), mesh_.places.list(), mesh_.n_rows, rows_.n_ghosts());
    b_ = Field(mesh_.of_own_rows(std::move(system.rhs)));
  });
  if (mesh_.is_whole()) {  // it is complete, and in a pure Neumann problem made to fit
    integral_f_ = system.integral_f;
    source_warning_ = std::move(system.source_warning);
    if (system.pure_neumann)
      compatibility_defect_ = system.compatibility_defect;
    holds_an_unknown_ = system.holds_an_unknown;
  } else if (mesh_.whole.periodic) {
    has_ties_ = any_of_ranks(team_.communicator(), !mesh_.ties.empty());
    TiedRows tied = tie_rows(mesh_, team_, system.matrix, system.rhs);
    rows_ = std::move(tied.rows);
    b_ = Field(std::move(tied.rhs));
    neighbors_ = rows_.neighbors;
    places_ = std::move(tied.places);
    offsets_ = std::move(tied.offsets);
  }
  nnz_ = sum_over(team_.communicator(), rows_.matrix->nnz());
}

/// The box of the cells around own rows, in whose sums own cells count.
BoxProblem System::problem_of_box() const {
  BoxProblem problem = *mesh_.around->box_problem();
  if (mesh_.is_whole())
    return problem;
  assembly::BoxPart const own = mesh_.own_in_around();
  BoxProblem::Cells& in_sums = problem.cells_in_sums.emplace(BoxProblem::Cells{});
  for (std::size_t d = 0; d < 3; ++d) {
    in_sums.first[d] = own.first[d];
    in_sums.end[d] = own.first[d] + own.cells[d];
  }
  return problem;
}

void System::assemble_box(Context& context) {
  std::array<bool, 6> dirichlet{};
  team_.together([&] {
    rows_.neighbors = mesh_.neighbors;
    block_.emplace();
    if (!mesh_.around) {
      auto const empty = std::make_shared<CsrMatrix>();
      empty->row_ptr.push_back(0);
      block_->local = make_matrix(Format::csr, empty, context);
      block_->rim.couplings = std::make_unique<Csr>(empty, context);
      return;
    }
    BoxProblem const problem = problem_of_box();
    require_memory_for(context, BoxSystem::peak_bytes(problem, plan_.format, context.backend()));
    std::unique_ptr<BoxSystem> system;
    try {
      system = std::make_unique<BoxSystem>(context, problem, plan_.format, !has_matrix_);
    } catch (DataError const& error) {
      mesh_.around->refuse(error);
    }
    source_ = system->source();
    largest_of_lines_ = system->take_largest_source_of_lines();
    source_lattice_ = system->take_source_lattice();
    anchored_ = system->anchored();
    if (mesh_.is_whole()) {
      whole_box_ = system.get();
      b_ = system->take_rhs();
      block_->local = system->take_matrix();
      block_->rim = system->take_rim();
      if (mesh_.whole.periodic) {
        RankBlocks& ties = ties_of_box_.emplace();
        for (std::size_t d = 0; d < 3; ++d) {
          ties.nodes[d] = problem.cells[d] + 1;
          ties.periodic[d] = problem.is_periodic(d);
        }
        ties.own = {ties.whole()};
      }
    } else {
      block_ = take_block(*system, *mesh_.places.block(), context);
      b_ = std::move(block_->rhs);
    }
    elements_ = std::move(system);
    add_point_loads();
    for (std::size_t face = 0; face < dirichlet.size(); ++face)
      dirichlet[face] = problem.faces[face].type == BoxProblem::Face::Type::dirichlet;
  });
  if (ties_of_box_) {
    nnz_ = elements_->nnz();
    return;
  }
  // Nodes without a Dirichlet value are a box, too.
  std::array<std::int64_t, 3> nodes = config_.problem.mesh.refined_cells();
  for (std::int64_t& count : nodes)
    count += 1;
  std::array<std::int64_t, 3> free = nodes;
  combine_lists(team_.communicator(), std::span<bool>(dirichlet), [](bool& one, bool other) { one = one || other; });
  for (std::size_t face = 0; face < dirichlet.size(); ++face)
    free[face / 2] -= dirichlet[face] ? 1 : 0;
  nnz_ = (3 * free[0] - 2) * (3 * free[1] - 2) * (3 * free[2] - 2) + nodes[0] * nodes[1] * nodes[2] - free[0] * free[1] * free[2];
}

void System::assemble_void_box(Context& context) {
  assembly::Discretization& mesh = *mesh_.own;
  assembly::VoidBoxProblem problem = mesh.void_box_problem();
  require_memory_for(context, BoxSystem::peak_bytes(problem.box, plan_.format, context.backend()) + 4 * mesh_.n_rows);
  VoidBoxSystem system;
  try {
    system = make_void_box(context, problem.box, problem.nodes);
  } catch (DataError const&) {  // perhaps a value on a side where all is void; if it is not, the host says so
    plan_.route = Route::csr;
    plan_.format = Format::csr;
    return assemble();
  }
  anchored_ = true;
  constraints_ = std::move(problem.constraints);
  nnz_ = mesh_.whole.nnz - mesh.emptied_entries({0, mesh.dirichlet_values()}, [](std::int64_t) { return true; });
  b_ = Field(std::move(system.rhs));
  block_.emplace().local = std::move(system.matrix);
  if (problem.loads.empty()) {
    void_box_nodes_ = Array<std::int32_t>(context, problem.nodes);
    void_box_ = std::move(problem.box);
  } else {
    std::span<double> const b = b_.change_on_host();
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] += problem.loads[i];
  }
  add_point_loads();
}

void System::add_point_loads() {
  auto const& loads = mesh_.around->point_loads().loads;
  if (loads.empty())
    return;
  HostVector<double> const fixed = fixed_around();  // whose rows stay empty
  std::span<double> const b = b_.change_on_host();
  for (auto const& load : loads) {
    auto unknown = static_cast<std::size_t>(load.unknown);
    if (ties_of_box_)
      unknown = static_cast<std::size_t>(ties_of_box_->root(load.unknown));
    if (auto const place = mesh_.place(unknown); place < mesh_.n_rows && fixed[unknown] == 0)
      b[static_cast<std::size_t>(place)] += load.value;
  }
}

void System::assemble_lattices(Context& context) {
  try {
    LatticeProblem const problem = mesh_.own->lattice_problem();
    require_memory_for(context, LatticeSystem::peak_bytes(problem, context.backend(), plan_.format) - mesh_.nodes.bytes());
    // A device keeps the coordinates for what is asked of u: to bring them again takes longer than these questions.
    auto lattices = std::make_unique<LatticeSystem>(context, problem, plan_.format,
                                                    plan_.route == Route::lattices && context.backend() == Backend::cuda,
                                                    std::move(mesh_.nodes));
    coordinates_ = lattices->take_coordinates();
    elements_ = std::move(lattices);
    if (plan_.may_lower && problem.layout.order > 1)
      lowered_.emplace(problem, mesh_.own->box_problem_of_order_one());
  } catch (DataError const& error) {
    mesh_.own->refuse(error);
  }
  source_ = elements_->source();
  largest_of_lines_ = elements_->take_largest_source_of_lines();
  anchored_ = !elements_->pure_neumann();
  nnz_ = elements_->nnz();
  b_ = elements_->take_rhs();
  block_.emplace().local = elements_->take_matrix();
  add_point_loads();
}

/// Own cells as lattices, with unknowns as mesh_.places numbers them. `around`: the Dirichlet values of the unknowns around.
LatticeProblem System::problem_of_cells(std::span<double const> around) const {
  std::vector<double> dirichlet(around.size());
  for (std::size_t unknown = 0; unknown < around.size(); ++unknown)
    dirichlet[static_cast<std::size_t>(mesh_.places[unknown])] = around[unknown];
  if (!mesh_.own)
    return assembly::problem_without_cells(config_.problem.order, dirichlet);
  std::vector<std::int32_t> number;
  number.reserve(mesh_.n_in_own());
  for (std::int32_t const unknown : mesh_.list_in_own())
    number.push_back(mesh_.places[static_cast<std::size_t>(unknown)]);
  return mesh_.own->lattice_problem(number, dirichlet, !plan_.source_on_host);
}

void System::assemble_own_lattices(Context& context) {
  Format const format = plan_.format;
  auto lattices = std::make_shared<SharedLattices>();
  HostVector<std::uint8_t> fixed;
  std::int64_t emptied = 0;
  Field rhs;
  std::unique_ptr<Matrix> matrix;
  team_.together([&] {
    bool const has_pieces = plan_.route == Route::lattices;
    LatticeProblem problem;
    if (has_pieces) {
      lattices->cut = mesh_.pieces->cut();
      problem = mesh_.around->lattice_problem_of_pieces();
    } else {
      problem = problem_of_cells(mesh_.around ? mesh_.around->dirichlet_values() : std::vector<double>{});
    }
    lattices->n_rows = mesh_.n_rows;
    lattices->neighbors = mesh_.neighbors;
    anchored_ = !problem.pure_neumann;
    problem.pure_neumann = false;  // what the whole is shows later
    require_memory_for(context, LatticeSystem::peak_bytes(problem, context.backend(), format) - mesh_.nodes.bytes());
    try {
      // As on one rank a device keeps the coordinates.
      LatticeSystem system(context, problem, format, has_pieces && context.backend() == Backend::cuda, std::move(mesh_.nodes));
      coordinates_ = system.take_coordinates();
      source_ = system.source();
      largest_of_lines_ = system.take_largest_source_of_lines();
      rhs = system.take_rhs();
      matrix = system.take_matrix();
    } catch (DataError const& error) {
      (has_pieces ? mesh_.around : mesh_.own)->refuse(error);
    }
    if (mesh_.around)
      emptied = mesh_.around->emptied_entries(mesh_.around->dirichlet_on_rims(), [this](std::int64_t unknown) {
        return mesh_.has_row(static_cast<std::size_t>(unknown));
      });
    if (plan_.may_lower && format == Format::matrix_free) {
      if (has_pieces)
        lowered_.emplace(problem);
      else if (mesh_.box)
        fixed_of_box_ = problem.fixed;
    }
    lattices->layout = std::move(problem.layout);
    fixed = std::move(problem.fixed);
    // Unknowns before these are inside of pieces; of a box, where places are no numbers, there are none.
    std::int64_t const first = lattices->layout.n_inner();
    for (auto unknown = first; unknown < static_cast<std::int64_t>(mesh_.places.size()); ++unknown)
      if (auto const on_rim = static_cast<std::size_t>(mesh_.places[static_cast<std::size_t>(unknown)] - first);
          fixed[on_rim] != 0) {
        given_.unknowns.push_back(static_cast<std::int32_t>(unknown));
        given_.values.push_back(problem.fixed_value[on_rim]);
      }
  });
  rows_.neighbors = mesh_.neighbors;
  block_ = rows_of_lattices(team_.communicator(), lattices, std::move(matrix), rhs, std::move(fixed));
  nnz_ = mesh_.whole.nnz - sum_over(team_.communicator(), emptied);
  b_ = std::move(block_->rhs);
  lattices_ = std::move(lattices);
  team_.together([&] {
    if (plan_.source_on_host) {  // which gpu/elements has not seen
      free_memory(largest_of_lines_);
      source_.reset();
    }
    if (mesh_.around && plan_.source_on_host)
      b_ = Field(mesh_.of_own_rows(mesh_.around->assemble().rhs));
    else if (mesh_.around)
      add_point_loads();
  });
}

}  // namespace poisson::app
