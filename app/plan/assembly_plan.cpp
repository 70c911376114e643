#include "app/plan/assembly_plan.hpp"

#include "app/plan/format_choice.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/space/space.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/elements/box_system.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace poisson::app {

namespace {

using assembly::MeshSummary;

/// Whether the preconditioner is multigrid, or may become it.
bool may_take_multigrid(RunConfig const& config) {
  return config.solver.preconditioner == PreconditionerKind::multigrid ||
         config.solver.preconditioner == PreconditionerKind::automatic;
}

/// Unknowns that multigrid leaves to aggregation at most, without regard to how many there are.
constexpr double few_unknowns = 65536;

/// Whether a box with periodic sides has levels of multigrid that are boxes, as long as cells are even in number, and leaves few
/// unknowns to aggregation.
bool has_periodic_levels(RunConfig const& config, MeshSummary const& mesh) {
  auto cells = config.problem.mesh.refined_cells();
  auto const may_halve = [&] {
    bool all = true;
    for (std::size_t d = 0; d < 3; ++d)
      all = all && (!mesh.wraps_around[d] || cells[d] % 2 == 0);
    return all;
  };
  auto const unknowns = [&] {
    return static_cast<double>(cells[0]) * static_cast<double>(cells[1]) * static_cast<double>(cells[2]);
  };
  double const all = unknowns();
  while (unknowns() > few_unknowns && may_halve())
    for (std::int64_t& n : cells)
      n = std::max<std::int64_t>(n / 2, 1);
  return unknowns() <= std::max(few_unknowns, all / 7);
}

/// Whether BoxSystem joins the periodic sides of a box.
bool joins_sides(RunConfig const& config, MeshSummary const& mesh, Division const& division) {
  bool const in_one_piece = config.solver.preconditioner == PreconditionerKind::direct;  // not with rows of sides apart
  return division.ranks == 1 && !in_one_piece && (!may_take_multigrid(config) || has_periodic_levels(config, mesh));
}

/// Whether BoxSystem makes this format of every rank's block.
bool is_box_in(Format format, RunConfig const& config, MeshSummary const& mesh, Division const& division) {
  if (!mesh.box_for_elements || config.problem.order != 1 || !BoxSystem::fits(division.fewest_cells) ||
      !BoxSystem::fits(division.most_cells))
    return false;
  // A block of a larger box gives its couplings to other blocks away, and is then made of own nodes alone.
  std::size_t const directions = format == Format::matrix_free ? 3 : 2;
  bool const thick = std::all_of(division.fewest_nodes.begin(), division.fewest_nodes.begin() + directions,
                                 [](std::int64_t nodes) { return nodes >= 3; });
  // A rank that has all cells of several ranks would itself make its right-hand side orthogonal to constants.
  bool const shared = division.ranks == 1 || division.with_cells > 1;
  if (mesh.periodic && !joins_sides(config, mesh, division))
    return false;
  return thick && shared && (format == Format::half_cds || mesh.stencil_faces > 0 || (mesh.label_cells > 0 && division.ranks == 1));
}

/// Something that gpu/elements does not know, or for which a matrix in CSR must be there.
struct Obstacle {
  enum class To { any_route, lattices };
  bool holds;
  To to;                ///< BoxSystem knows the others, as far as MeshSummary::box_for_elements tells
  std::string why;      ///< as a reason for CSR
  std::string refusal;  ///< of a matrix_free that was asked for; empty: it is made all the same
  char const* key = "matrix.format";
};

/// Lists the obstacles in the order in which they are reported.
std::vector<Obstacle> obstacles_of(RunConfig const& config, MeshSummary const& mesh) {
  using enum Obstacle::To;
  assembly::ProblemSpec const& problem = config.problem;
  // Where the inner rows are one stencil, only the right-hand side has values at points. The host evaluates these, also where parts
  // are too thin for the stencil.
  bool const stencil = mesh.box_for_elements && problem.order == 1 && (mesh.stencil_faces > 0 || mesh.label_cells > 0);
  std::string const other = "; use another format, or auto";
  auto const unless_stencil = [&](std::string const& refusal) { return stencil ? "" : refusal + other; };
  return {{!config.analysis.empty(), any_route, "analysis.svd needs the matrix in CSR",
           "matrix_free has no matrix for analysis.svd" + other},
          {config.adaptive.is_asked(), any_route, "the mesh is refined locally, and has hanging nodes",
           "matrix_free does not tie hanging nodes, which a mesh with problem.mesh.adaptive has" + other},
          {mesh.periodic, lattices, "some boundaries are periodic", "matrix_free does not join periodic boundaries" + other},
          {!mesh.conditioned_surfaces.empty(), lattices, "surfaces inside the mesh have conditions",
           "matrix_free does not take conditions on surfaces inside the mesh" + other},
          {!config.fields.empty(), lattices, "problem.fields come from files",
           unless_stencil("matrix_free takes expressions in x, y and z, and no fields from files (problem.fields)")},
          {mesh.only_csr, lattices, "the elements have other Gauss points than order + 1 in each direction, or curved cells",
           "matrix_free has order + 1 Gauss points in each direction, and cells whose maps are not of a higher order "
           "than the elements; here there are " +
               std::to_string(mesh.gauss_points) +
               (problem.quadrature ? " points (problem.quadrature)" : " points, for the curved cells of the mesh file") + other},
          {config.matrix.precision != MatrixPrecision::double_, any_route,
           "the entries are asked for in another precision than double",
           "matrix_free has no entries to store in another precision; use double", "solver.matrix_precision"},
          {config.matrix.conversion != Conversion::automatic, any_route, "matrix.conversion asks for a way of converting", ""}};
}

/// The first obstacle that holds on this route; null: there is none.
Obstacle const* first_of(std::vector<Obstacle> const& obstacles, Route route) {
  auto const found = std::find_if(obstacles.begin(), obstacles.end(), [&](Obstacle const& obstacle) {
    bool const of_box = route == Route::box || route == Route::void_box;
    return obstacle.holds && (!of_box || obstacle.to == Obstacle::To::any_route);
  });
  return found == obstacles.end() ? nullptr : &*found;
}

/// Whether lattices are assembled as they are, by every rank.
bool has_lattices(MeshSummary const& mesh, Division const& division) {
  return mesh.lattices > 0 && division.piece_cells >= fewest_cells_of_piece;
}

/// Whether matrix_free is fast above order 1, for `auto`. The cells of a part of any other mesh have levels of multigrid by way of
/// the entries alone.
bool has_fast_operator(MeshSummary const& mesh, Division const& division) {
  return division.ranks == 1 || mesh.lexicographic || has_lattices(mesh, division);
}

std::string why_of(Route route, Format format, RunConfig const& config, MeshSummary const& mesh, Division const& division) {
  std::string const order = std::to_string(config.problem.order), blocks = division.ranks > 1 ? "blocks of a box" : "a box";
  if (route == Route::box)
    return blocks + " of order 1" +
           (format != Format::matrix_free ? ""
            : mesh.label_cells > 0        ? ", whose cells have labels and k a table"
                                          : ", whose inner rows are one stencil") +
           (mesh.periodic ? ", whose periodic sides are joined" : "");
  if (route == Route::void_box)
    return "a box with void, whose cells have labels and k a table";
  if (route == Route::lattices)
    return (division.ranks > 1 ? "pieces of the lattices of a refined mesh, order " : "the lattices of a refined mesh, order ") +
           order;
  std::string why = "every cell by itself, order " + order;
  if (mesh.lattices > 0)
    why += "; pieces of " + std::to_string(fewest_cells_of_piece) + " cells a side are too few for " +
           std::to_string(division.ranks) + " ranks";
  else if (mesh.stencil_faces > 0)
    why += "; the blocks of " + std::to_string(division.ranks) + " ranks are too thin for a stencil";
  return why;
}

/// Why the matrix goes by way of CSR, where its format is not known yet or is half_cds.
std::string why_csr(RunConfig const& config, MeshSummary const& mesh, Division const& division,
                    std::vector<Obstacle> const& obstacles) {
  if (config.matrix.format == Format::csr)
    return "asked for";
  if (config.matrix.format && *config.matrix.format != Format::half_cds)
    return std::string(name_of(*config.matrix.format)) + " is made from it";
  if (Obstacle const* const obstacle = first_of(obstacles, mesh.box_for_elements ? Route::box : Route::lattices))
    return obstacle->why;
  if (config.problem.order > 1)
    return "half_cds is assembled for order 1 alone";
  if (mesh.box_for_elements && mesh.periodic && division.ranks > 1)
    return "several ranks join periodic boundaries in it";
  if (mesh.box_for_elements && mesh.periodic && !joins_sides(config, mesh, division))
    return config.solver.preconditioner == PreconditionerKind::direct
               ? "direct takes the matrix in one piece"
               : "multigrid on a box needs an even number of cells between periodic sides";
  if (mesh.box_for_elements)
    return division.ranks > 1 ? "the blocks of " + std::to_string(division.ranks) + " ranks are too thin for half_cds"
                              : "the box has fewer than two cells in a direction";
  if (mesh.lexicographic)
    return "the sides of the box have other names";
  if (mesh.lattices == 0)
    return "the mesh is no box, and was refined less than twice";
  return "pieces of " + std::to_string(fewest_cells_of_piece) + " cells a side are too few for " + std::to_string(division.ranks) +
         " ranks";
}

}  // namespace

bool solver_needs_entries(RunConfig const& config) {
  return needs_csr(config.solver.preconditioner) && config.solver.preconditioner != PreconditionerKind::multigrid;
}

bool asks_host_about(RunConfig const& config, MeshSummary const& mesh, AssemblyPlan const& plan) {
  std::int64_t const p1 = config.problem.order + 1;
  bool const box_without_tables = config.is_box() && plan.division.ranks == 1 && (p1 > 2 || config.problem.has_full_tensor());
  bool const too_many =
      !box_without_tables && mesh.cells > std::numeric_limits<std::int32_t>::max() / (p1 * p1 * p1);  // for indices of 32 bits
  if (mesh.only_csr || config.adaptive.is_asked() || !config.fields.empty() || too_many)
    return true;
  // Cells of boxes of order 1 are many for the tables of lattices, which a rank that has the whole box does without.
  bool const is_full = config.problem.has_full_tensor() && plan.division.ranks == 1;
  bool const has_tables = config.problem.order > 1 || plan.route == Route::cells || is_full;
  return config.is_box() && (mesh.periodic || !has_tables || (plan.backend == Backend::cpu && !is_full));
}

bool has_blocks(RunConfig const& config) {
  auto const cells = config.problem.mesh.refined_cells();
  auto const& boundary = config.problem.boundary;
  bool const periodic = std::any_of(boundary.begin(), boundary.end(), [](auto const& condition) {
    return condition.type == assembly::BoundaryType::periodic;  // which couples nodes that are far from each other
  });
  return config.is_box() && config.problem.order == 1 && cells[0] >= 2 && cells[1] >= 2 && !periodic;
}

Division division_of(RunConfig const& config, MeshSummary const& mesh, int ranks) {
  Division result;
  result.ranks = ranks;
  if (config.is_box()) {
    assembly::BoxPartition const partition(config.problem.mesh.refined_cells(), config.problem.order, ranks);
    std::vector<NodeBox> const own = partition.node_blocks().own;
    result.with_cells = partition.n_used();
    result.fewest_nodes.fill(std::numeric_limits<std::int64_t>::max());
    result.fewest_cells = result.fewest_nodes;
    for (int rank = 0; rank < partition.n_used(); ++rank) {
      auto const around = partition.assembled_cells(rank).cells;
      for (std::size_t d = 0; d < 3; ++d) {
        result.fewest_nodes[d] = std::min(result.fewest_nodes[d], own[static_cast<std::size_t>(rank)].count(d));
        result.fewest_cells[d] = std::min(result.fewest_cells[d], around[d]);
        result.most_cells[d] = std::max(result.most_cells[d], around[d]);
      }
    }
    return result;
  }
  result.with_cells = static_cast<int>(std::min<std::int64_t>(ranks, mesh.cells));
  int const refinements = config.problem.mesh.refinements;
  if (mesh.lattices == 0 || refinements < assembly::Space::fewest_refinements_of_lattices)
    return result;
  int const depth = ranks > 1 ? assembly::depth_of_pieces(mesh.lattices, refinements, ranks) : 0;
  if (mesh.lattices << (3 * depth) >= ranks)
    result.piece_cells = std::int64_t{1} << (refinements - depth);
  return result;
}

assembly::AssembledInto AssemblyPlan::into() const {
  using assembly::AssembledInto;
  bool const on_device = backend == Backend::cuda;
  if (route == Route::csr)
    return AssembledInto::csr;
  if (leaves_nodes)
    return format == Format::matrix_free ? AssembledInto::matrix_free_on_device_alone : AssembledInto::half_cds_on_device_alone;
  if (format == Format::matrix_free)
    return on_device ? AssembledInto::matrix_free_on_device : AssembledInto::matrix_free_on_host;
  return on_device ? AssembledInto::half_cds_on_device : AssembledInto::half_cds_on_host;
}

std::string AssemblyPlan::text() const {
  return std::string(name_of(format)) + (route == Route::csr ? "" : ", as it is stored") + " (" + why + ")";
}

bool has_nested_spaces(RunConfig const& config, MeshSummary const& mesh, Route route, bool is_whole, bool has_pieces) {
  if (is_whole && config.problem.mesh.local == nullptr)  // OrderOne
    return false;
  bool const by_rows = route == Route::csr || (route == Route::cells && !config.is_box());
  return by_rows && !mesh.periodic && mesh.conditioned_surfaces.empty() && (config.problem.order > 1 || has_pieces);
}

MatrixShape shape_of(RunConfig const& config, MeshSummary const& mesh, Division const& division) {
  std::vector<Obstacle> const obstacles = obstacles_of(config, mesh);
  MatrixShape shape{mesh.dofs, mesh.nnz, mesh.n_diagonals, true};
  // With analyses, or when the format is to be converted to in a certain way, there is a CSR matrix, and half_cds is made from it.
  bool const for_lattices = first_of(obstacles, Route::lattices) == nullptr;
  if (config.problem.order == 1 && for_lattices && has_lattices(mesh, division)) {
    shape.n_lattices = mesh.lattices;
    shape.lattice_nodes = mesh.lattice_nodes;
  }
  // With elements of order 1 the formats are faster, unless one stencil says it all.
  if (config.problem.order > 1 && for_lattices && !solver_needs_entries(config) && has_fast_operator(mesh, division)) {
    shape.n_cells = mesh.cells;
    shape.order = config.problem.order;
  }
  if (mesh.stencil_faces > 0 && is_box_in(Format::matrix_free, config, mesh, division) &&
      first_of(obstacles, Route::box) == nullptr && !solver_needs_entries(config)) {
    shape.n_cells = mesh.cells;
    shape.order = 1;
    shape.stencil_faces = mesh.stencil_faces;
  }
  return shape;
}

void require_preconditioner_for(RunConfig const& config, int ranks) {
  if (ranks > 1 && config.solver.preconditioner == PreconditionerKind::direct)
    throw InputError("solver.preconditioner", "direct factorises on one rank, and here are " + std::to_string(ranks) +
                                                  "; use another preconditioner, or one rank");
}

AssemblyPlan plan_assembly(RunConfig const& config, Backend backend, MeshSummary const& mesh, Division const& division) {
  MatrixOptions const& matrix = config.matrix;
  int const order = config.problem.order;
  require_preconditioner_for(config, division.ranks);
  std::vector<Obstacle> const obstacles = obstacles_of(config, mesh);
  bool const box = is_box_in(Format::half_cds, config, mesh, division), lattices = has_lattices(mesh, division);
  AssemblyPlan plan;
  plan.backend = backend;
  plan.division = division;
  plan.has_box_levels = has_blocks(config);
  // Whether nothing refuses the same problem with elements of order 1, on lattices or on a box that is not one of several blocks.
  bool const for_order_one = std::none_of(obstacles.begin(), obstacles.end(), [](Obstacle const& obstacle) {
    return obstacle.holds && obstacle.to == Obstacle::To::lattices && !obstacle.refusal.empty();
  });
  // With hanging nodes a space of order 1 is inside that of the elements only where constraints say so.
  bool const hangs = config.problem.mesh.local != nullptr;
  plan.has_order_one = box || (for_order_one && !hangs && (order > 1 || mesh.lattices > 0));
  auto const made_in = [&](Format format) {
    AssemblyPlan made = plan;
    made.format = format;
    made.route = is_box_in(format, config, mesh, division) ? Route::box : lattices ? Route::lattices : Route::cells;
    made.may_lower = may_take_multigrid(config);
    made.has_box_levels = made.has_box_levels && made.route == Route::box;
    made.why = why_of(made.route, format, config, mesh, division);
    return made;
  };
  if (division.ranks == 1 && (!matrix.format || matrix.format == Format::matrix_free) && !solver_needs_entries(config) &&
      BoxSystem::fits(mesh.void_box) && first_of(obstacles, Route::void_box) == nullptr) {
    plan.route = Route::void_box;
    plan.format = Format::matrix_free;
    plan.may_lower = may_take_multigrid(config);
    plan.why = why_of(plan.route, plan.format, config, mesh, division);
    return plan;
  }
  if (matrix.format == Format::matrix_free) {
    for (Obstacle const& obstacle : obstacles)
      if (obstacle.holds && !obstacle.refusal.empty())
        throw InputError(obstacle.key, obstacle.refusal);
    plan = made_in(Format::matrix_free);
    plan.source_on_host = plan.route == Route::cells && !config.fields.empty();
    return plan;
  }
  bool const for_lattices = first_of(obstacles, Route::lattices) == nullptr;
  bool const half_cds = (box && first_of(obstacles, Route::box) == nullptr) || (lattices && order == 1 && for_lattices);
  plan.why = why_csr(config, mesh, division, obstacles);
  if (matrix.format) {
    if (half_cds && *matrix.format == Format::half_cds)
      return made_in(Format::half_cds);
    plan.whole_is_taken =
        division.ranks > 1 && plan_assembly(config, backend, mesh, division_of(config, mesh, 1)).route != Route::csr;
    return plan;
  }
  MatrixShape const shape = shape_of(config, mesh, division);
  if (!half_cds && shape.n_cells == 0)
    return plan;
  FormatChoice choice = choose_format(shape, matrix.format_options(), backend, forecast_of(matrix, config.solver, shape.n_rows));
  // The seconds of a product leave out assembly and multigrid's setup, which take longer with csr: on two cores a run with 1.8
  // million unknowns of order 2 on a ball takes twice the time, on a box 10 % more, and of order 3 70 %.
  if (choice.format != Format::matrix_free && order > 1 && (mesh.lattices > 0 || mesh.lexicographic) &&
      may_take_multigrid(config) && for_lattices && has_fast_operator(mesh, division)) {
    choice.format = Format::matrix_free;
    choice.note = "fastest to assemble above order 1";
  }
  if (choice.format == Format::matrix_free || (half_cds && choice.format == Format::half_cds)) {
    AssemblyPlan made = made_in(choice.format);
    made.choice = std::move(choice);
    return made;
  }
  plan.why = "auto prefers what is made from it";
  return plan;
}

AssemblyPlan plan_for(Domain const& mesh, Team& team, RunConfig const& config, Backend backend,
                      std::optional<AssemblyPlan> expected) {
  if (mesh.is_whole())
    return expected ? *std::move(expected) : plan_assembly(config, backend, mesh.whole, division_of(config, mesh.whole, 1));
  auto const with_cells = static_cast<int>(sum_over(team.communicator(), std::int64_t{mesh.own ? 1 : 0}));
  AssemblyPlan plan;
  team.together([&] {
    Division division = division_of(config, mesh.whole, team.size());
    division.with_cells = with_cells;
    if (!config.is_box()) {
      std::set<int> used;  // ranks that have pieces
      if (mesh.pieces != nullptr)
        used.insert(mesh.pieces->pieces->rank_of.begin(), mesh.pieces->pieces->rank_of.end());
      bool const has_pieces = std::ssize(used) == team.size();
      division.piece_cells = has_pieces ? mesh.pieces->pieces->n : 0;
    }
    plan = expected && expected->division == division ? *std::move(expected) : plan_assembly(config, backend, mesh.whole, division);
  });
  return plan;
}

}  // namespace poisson::app
