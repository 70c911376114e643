#include "app/run/memory_forecast.hpp"

#include "app/config/effective.hpp"
#include "app/config/problem.hpp"
#include "app/io/console.hpp"
#include "app/plan/format_choice.hpp"
#include "app/results/output.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/space/lattice_nodes.hpp"
#include "assembly/system/lattice_problem.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/elements/lattice_operator.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/elements/void_box_operator.hpp"
#include "gpu/kernels/paged_field.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

namespace poisson::app {

namespace {

/// What CUDA's driver keeps in host memory once there is a context, with the code of its kernels: 158 to 188 MiB (H200, CUDA 13).
constexpr std::int64_t host_bytes_of_cuda = 172 << 20;
/// Code and buffers of MPI in a process: 12 to 16 MiB (Open MPI 4.1).
constexpr std::int64_t bytes_of_mpi = 14 << 20;

std::int64_t rounded(double x) {
  return static_cast<std::int64_t>(std::llround(x));
}

/// What the rank with most unknowns has of a division of the mesh. The whole mesh is the part of a rank without others.
struct LargestPart {
  assembly::Estimate whole;  ///< of the mesh, assembled as the plan says
  bool is_whole = true;
  std::string division;  ///< in words
  bool is_exact = true;
  bool has_pieces = false;  ///< of lattices, on every rank
  std::int64_t rows = 0, ghosts = 0;
  std::size_t neighbors = 0;
  /// Unknowns and vertices of the cells around own rows; own cells, their unknowns and their faces on the boundary.
  std::int64_t around = 0, vertices = 0, cells = 0, own_unknowns = 0, boundary_faces = 0;
  std::int64_t entries = 0, csr = 0;        ///< of own rows, and their bytes in CSR
  std::array<std::int64_t, 3> box_cells{};  ///< of a box: the cells around own rows
  LatticeLayout layout{};                   ///< where gpu/elements has lattices: the sizes of own ones
  std::optional<RankBlocks> blocks{};       ///< of a box that ranks share by its nodes
  int rank = 0;                             ///< then which one it is
  // Bytes on the host:
  std::int64_t making_mesh = 0, space = 0;      ///< as HostMemory, with the numbers in the whole mesh
  std::int64_t constraints = 0;                 ///< of the route of the matrix
  std::int64_t assembled = 0;                   ///< what an assembly into CSR has beside own rows
  std::int64_t solution = 0;                    ///< of u beside x
  std::int64_t output = 0, largest_output = 0;  ///< as HostMemory
  assembly::MadeFields made{};                  ///< likewise

  /// The same share of a count of the whole mesh as of its rows.
  [[nodiscard]] std::int64_t share_of(std::int64_t count) const {
    return rounded(static_cast<double>(rows) / static_cast<double>(whole.mesh.dofs) * static_cast<double>(count));
  }
};

LargestPart whole_mesh(assembly::Estimate const& whole, RunConfig const& config) {
  LargestPart part;
  assembly::HostMemory const& memory = whole.memory;
  part.whole = whole;
  part.rows = part.around = part.own_unknowns = whole.mesh.dofs;
  part.vertices = whole.mesh.vertices;
  part.cells = whole.mesh.cells;
  part.boundary_faces = whole.boundary_faces;
  part.entries = whole.entries;
  if (whole.mesh.lexicographic || whole.mesh.box_for_elements)
    part.box_cells = config.problem.mesh.refined_cells();
  part.layout = whole.layout;
  part.making_mesh = memory.making_mesh;
  part.space = memory.space;
  part.constraints = memory.constraints;
  part.output = memory.output;
  part.made = memory.made;
  part.largest_output = memory.largest_output;
  return part;
}

/// Where gpu/elements assembles lattices on several ranks: Dirichlet values with their unknowns, in both spaces and in the system,
/// at most of all unknowns on the boundary; marks of unknowns on rims, or in single cells of all.
std::int64_t bytes_of_fixed_values(RunConfig const& config, AssemblyPlan const& plan, LargestPart const& part) {
  if (plan.route != Route::lattices && plan.route != Route::cells)
    return 0;
  std::int64_t const p = config.problem.order, lists = 3 * 12 * p * p * part.boundary_faces;
  return lists + (plan.route == Route::lattices ? part.layout.n_unknowns - part.layout.n_inner() : part.around);
}

LargestPart part_of_box(assembly::Estimate const& whole, RunConfig const& config, AssemblyPlan const& plan, int ranks) {
  assembly::BoxPartition const partition(config.problem.mesh.refined_cells(), config.problem.order, ranks);
  LargestPart part;
  for (int rank = 1; rank < partition.n_used(); ++rank)
    if (partition.n_rows(rank) > partition.n_rows(part.rank))
      part.rank = rank;
  assembly::ProblemSpec spec = problem_of(config);
  spec.mesh.shared = true;
  spec.mesh.part = partition.assembled_cells(part.rank);
  assembly::Estimate const around = assembly::estimate(spec);
  spec.mesh.part = partition.cells(part.rank);
  assembly::Estimate const own = assembly::estimate(spec);

  auto const& blocks = partition.blocks();
  part.division =
      "blocks         " + std::to_string(blocks[0]) + " x " + std::to_string(blocks[1]) + " x " + std::to_string(blocks[2]);
  if (partition.n_used() < ranks)
    part.division += "; " + std::to_string(ranks - partition.n_used()) + " ranks have no cells";
  part.whole = whole;
  part.is_whole = false;
  part.rows = partition.n_rows(part.rank);
  auto const neighbors = partition.neighbors(part.rank);
  part.neighbors = neighbors.size();
  for (RankNeighbor const& neighbor : neighbors)
    part.ghosts += neighbor.n_ghosts;
  part.around = around.mesh.dofs;
  part.vertices = around.mesh.vertices;
  part.cells = own.mesh.cells;
  part.own_unknowns = own.mesh.dofs;
  part.boundary_faces = own.boundary_faces;
  part.entries = around.entries * part.rows / around.mesh.dofs;
  part.box_cells = partition.assembled_cells(part.rank).cells;
  part.layout = own.layout;
  part.layout.box = {};
  part.layout.n_unknowns = part.around;
  if (plan.has_box_levels)
    part.blocks = partition.node_blocks();
  part.space = part.making_mesh = around.memory.space + own.memory.space;
  part.constraints = plan.route == Route::csr ? around.memory.constraints : bytes_of_fixed_values(config, plan, part);
  part.assembled = around.memory.csr + 12 * part.around;  // with the places of the unknowns
  part.solution = 8 * part.around;
  part.output = own.memory.output + 12 * own.mesh.dofs;  // and u of the cells' unknowns, with their places
  part.made = own.memory.made;
  part.largest_output = own.memory.largest_output;
  return part;
}

/// How many of so many pieces of lattices the largest part has, as METIS makes them.
std::int64_t pieces_of_largest(std::int64_t pieces, int ranks) {
  constexpr std::int64_t percent = 103;
  return std::max((pieces + ranks - 1) / ranks, percent * pieces / (100 * ranks));
}

/// Own pieces of lattices, or own cells, where these are assembled as lattices; their sizes.
LatticeLayout own_lattices(RunConfig const& config, assembly::MeshSummary const& mesh, Division const& division, Route route,
                           std::int64_t n_unknowns) {
  LatticeLayout layout;
  layout.order = config.problem.order;
  layout.all_on_rim = route == Route::cells;
  layout.cells = static_cast<std::int32_t>(route == Route::cells ? 1 : division.piece_cells);
  std::int64_t const cells = layout.cells;
  layout.n_lattices = route == Route::cells ? (mesh.cells + division.ranks - 1) / division.ranks
                                            : pieces_of_largest(mesh.cells / (cells * cells * cells), division.ranks);
  layout.n_unknowns = std::max(n_unknowns, layout.n_inner());
  return layout;
}

/// The same of the pieces that a rank's mesh is made of, however the matrix is assembled.
LatticeLayout own_pieces(RunConfig const& config, assembly::MeshSummary const& mesh, int ranks, std::int64_t n_unknowns) {
  int const refinements = config.problem.mesh.refinements, depth = assembly::depth_of_pieces(mesh.lattices, refinements, ranks);
  Division division;
  division.ranks = ranks;
  division.piece_cells = std::int64_t{1} << (refinements - depth);
  return own_lattices(config, mesh, division, Route::lattices, n_unknowns);
}

/// Faces of cells in the cuts around a part of so many pieces of lattices. A part has a surface of about 12 pieces^(2/3), twice
/// that of a cube. Of the surface of one of few parts much is the boundary of the mesh, as in a cube that is cut into cubes.
double area_of_cuts(LatticeLayout const& pieces, int ranks) {
  auto const n = static_cast<double>(pieces.n_lattices), cells = static_cast<double>(pieces.cells);
  return std::min(12 * std::pow(n, 2.0 / 3) * (1 - std::pow(ranks, -1.0 / 3)), 6 * n) * cells * cells;
}

/// Parts of a mesh that is no box have about equal size, as METIS makes them. A rank has half of the nodes of a cell on the rim of
/// its part. The cells around a part are about those of a layer on half of its surface. Pieces of lattices are equal; of their
/// parts the largest is the one that has most nodes on cuts.
LargestPart part_by_metis(assembly::Estimate const& whole, RunConfig const& config, AssemblyPlan const& plan) {
  constexpr double surface = 1.5 * 6;                      // of a part, in faces of a cube of as many cells
  constexpr double of_metis = 1.03, most_imbalance = 1.1;  // of rows: rims go to the first of the parts that have them
  int const ranks = plan.division.ranks;
  auto const dofs = static_cast<double>(whole.mesh.dofs);
  bool const has_lattices = whole.mesh.lattices > 0 && config.problem.mesh.refinements >= 2;
  LargestPart part;
  part.whole = whole;
  part.is_whole = part.is_exact = false;
  part.has_pieces = has_lattices;
  part.division = "parts          " + std::to_string(ranks) + ", of about equal size, by METIS" +
                  (has_lattices ? "; no rank makes the whole mesh" : "; the first rank makes the whole mesh, and sends parts");
  auto const p = static_cast<double>(config.problem.order);
  LatticeLayout pieces;  // sizes
  if (has_lattices)
    pieces = own_pieces(config, whole.mesh, ranks, 0);
  double const cells = has_lattices ? static_cast<double>(pieces.n_lattices) * std::pow(pieces.cells, 3)
                                    : static_cast<double>(whole.mesh.cells) / ranks;
  // If there are few parts, much of their surface is the boundary of the mesh.
  double const area = has_lattices ? area_of_cuts(pieces, ranks) : surface * std::pow(cells, 2.0 / 3) * std::min(1.0, ranks / 4.0);
  double const imbalance = has_lattices ? cells * ranks / static_cast<double>(whole.mesh.cells) + area * p * p / 2 / (dofs / ranks)
                                        : std::min(of_metis + area * p * p / 2 / (dofs / ranks), most_imbalance);
  double const rows = std::min(1.0, imbalance / ranks) * dofs;
  double const of_cells = 1 + area / 2 / cells;  // around a part, over its own
  part.rows = rounded(rows);
  part.ghosts = rounded(std::min(area * p * p * (p + 1) / 2, dofs - rows));
  part.around = part.rows + part.ghosts;
  part.own_unknowns = part.rows + part.ghosts / 2;
  part.vertices = rounded(static_cast<double>(part.around) / (p * p * p));
  part.cells = rounded(cells);
  part.entries = rounded(static_cast<double>(whole.entries) * rows / dofs);
  double const share = static_cast<double>(part.around) / dofs;
  auto const share_of = [&](std::int64_t bytes) { return rounded(share * static_cast<double>(bytes)); };
  part.boundary_faces = share_of(whole.boundary_faces);
  if (plan.route != Route::csr)
    part.layout = own_lattices(config, whole.mesh, plan.division, plan.route, part.around);

  double const per_cell = 4 * std::pow(p + 1, 3) + 4;
  if (has_lattices) {
    // The nodes of own pieces, or of their sides on the boundary and at cuts; the tables of their rims, which all share that need
    // them. The layer of cells around, of a part that has all nodes on its cuts. Faces on the boundary and the places of ghosts,
    // for own cells and with those around.
    pieces.n_unknowns = std::max(part.around, pieces.n_inner());
    std::int64_t const m = pieces.nodes(), on_rims = pieces.n_unknowns - pieces.n_inner();
    std::int64_t const tables = 8 * pieces.n_lattices * pieces.rim().size() + 8 * on_rims;
    std::int64_t const n_sides = (part.boundary_faces + rounded(area)) / (std::int64_t{pieces.cells} * pieces.cells) + 1,
                       nodes = plan.leaves_nodes ? assembly::LatticeNodes::bytes_kept(pieces, n_sides)
                                                 : 24 * pieces.n_lattices * m * m * m;
    part.space = nodes + tables + rounded((per_cell + 4) * area) + 2 * 24 * part.ghosts + 2 * 12 * part.boundary_faces;
    // What is found in the cells on both sides of cuts.
    part.making_mesh = part.space + std::max(rounded(8 * std::pow(p + 1, 3) * 2 * area),
                                             plan.leaves_nodes ? assembly::LatticeNodes::bytes_at_once(pieces) : 0);
  } else {
    // A part has the unknowns of its cells, nodes and materials in arrays, once for the cells around and once for its own; numbers
    // in the whole. While it is made: the unknowns of all its cells twice, as lists.
    auto const space = [&](double n_cells, std::int64_t n_unknowns) { return rounded(per_cell * n_cells) + 24 * n_unknowns; };
    part.space = space(cells * of_cells, part.around) + space(cells, part.rows) + 16 * part.around;
    part.making_mesh = part.space + whole.memory.making_mesh + rounded(per_cell * 2 * cells * of_cells);
  }
  part.constraints = plan.route == Route::csr ? share_of(whole.memory.constraints) : bytes_of_fixed_values(config, plan, part);
  part.assembled = share_of(whole.memory.csr) + 8 * part.around;
  part.solution = 8 * part.around;
  part.output = share_of(whole.memory.output) + 8 * part.own_unknowns;  // as of boxes
  auto const& made = whole.memory.made;
  part.made = {0, 0, share_of(made.error), share_of(made.material), share_of(made.coefficient), share_of(made.flux)};
  part.largest_output = share_of(whole.memory.largest_output);
  return part;
}

LargestPart largest_part(RunConfig const& config, assembly::CheckedProblem const& problem, AssemblyPlan const& plan) {
  assembly::Estimate const whole = problem.estimate(plan.into());
  int const ranks = plan.division.ranks;
  LargestPart part = ranks == 1        ? whole_mesh(whole, config)
                     : config.is_box() ? part_of_box(whole, config, plan, ranks)
                                       : part_by_metis(whole, config, plan);
  part.csr = CsrMatrix::csr_bytes(part.rows, part.entries);
  return part;
}

/// Numbers that matrix_free stores for a cell of a box without tables: of k, or where that is a full tensor of tensors at points.
std::int64_t k_of_cell_of(RunConfig const& config, LargestPart const& part) {
  std::int64_t const p1 = config.problem.order + 1;
  if (config.problem.has_full_tensor())
    return tensor_entries * p1 * p1 * p1;
  std::size_t components = 1;
  for (auto const& [material, text] : config.problem.coefficient)
    components = std::max(components, text.size());
  for (auto const& [name, text] : config.problem.coefficient_of_name)
    components = std::max(components, text.size());
  std::int64_t const of_points = part.whole.constant_k ? 1 : p1 * p1 * p1;
  bool const is_one_number =
      part.whole.constant_k && config.problem.coefficient.size() <= 1 && config.problem.coefficient_of_name.empty();
  return is_one_number ? 0 : static_cast<std::int64_t>(components) * of_points;
}

/// The format of the matrix, with estimates for the part.
FormatChoice format_of(RunConfig const& config, AssemblyPlan const& plan, LargestPart const& part) {
  assembly::MeshSummary const& mesh = part.whole.mesh;
  MatrixShape shape = shape_of(config, mesh, plan.division);
  if (config.matrix.format == Format::matrix_free && shape.n_cells == 0) {
    shape.n_cells = mesh.cells;
    shape.order = config.problem.order;
    shape.stencil_faces = mesh.stencil_faces;
    shape.label_cells = plan.route == Route::box ? mesh.label_cells : 0;
  }
  if (plan.route == Route::void_box) {
    shape.n_cells = mesh.cells;
    shape.order = 1;
    shape.label_cells = mesh.void_box[0] * mesh.void_box[1] * mesh.void_box[2];
  }
  for (std::int64_t* const count :
       {&shape.n_rows, &shape.nnz, &shape.n_lattices, &shape.n_cells, &shape.stencil_faces, &shape.label_cells})
    *count = part.share_of(*count);
  FormatChoice choice =
      choose_format(shape, config.matrix.format_options(), plan.backend, forecast_of(config.matrix, config.solver, mesh.dofs));
  for (FormatEstimate& estimate : choice.estimates)
    if (estimate.format == Format::matrix_free && part.layout.is_box() && plan.route == Route::cells) {  // k and marks
      std::int64_t const p1 = config.problem.order + 1, k = 8 * k_of_cell_of(config, part) * part.cells;
      estimate.bytes = k + 9 * part.rows;
      estimate.bytes_per_product = k + 16 * p1 * p1 * p1 * part.cells + 16 * part.rows;
    }
  if (config.matrix.format)
    choice.format = *config.matrix.format;
  else if (plan.choice)
    choice.format = plan.choice->format;
  else if (plan.route == Route::void_box)
    choice.format = plan.format;
  return choice;
}

FormatEstimate const& estimate_of(FormatChoice const& choice, Format format) {
  return *std::find_if(choice.estimates.begin(), choice.estimates.end(),
                       [&](FormatEstimate const& e) { return e.format == format; });
}

/// What the matrix takes in its format besides CSR on the host, from its assembly on.
struct MatrixMemory {
  std::int64_t host_assembly = 0, device_assembly = 0;  ///< at the peak of its assembly or conversion
  std::int64_t host = 0, device = 0;                    ///< that stay, with what else the assembly keeps
  std::int64_t host_verify = 0;                         ///< what the residual takes besides vectors
};

MatrixMemory of_csr(FormatChoice const& choice, LargestPart const& part, bool cpu) {
  MatrixMemory result;
  bool const shares = choice.format == Format::csr || choice.format == Format::crs_t;
  std::int64_t const stored = estimate_of(choice, choice.format).bytes,
                     conversion = estimate_of(choice, choice.format).conversion_bytes;
  // Of a part the couplings of own rows with each other are taken out of the rows first.
  std::int64_t const own = part.is_whole ? 0 : part.csr;
  // On a device CSR is there until it is converted; on the host it stays.
  if (cpu) {
    result.host = shares ? own : stored;
    result.host_assembly = result.host + conversion + (shares ? 0 : own);
  } else {
    result.host_assembly = own;
    result.device = shares ? part.csr : stored;
    result.device_assembly = part.csr + (shares ? 0 : stored + conversion);
  }
  return result;
}

/// `problem`: bytes on the host during the assembly. The right-hand side is in `peak`.
MatrixMemory of_elements(std::int64_t peak, std::int64_t kept, std::int64_t problem, Backend backend) {
  bool const cpu = backend == Backend::cpu;
  MatrixMemory result;
  result.host_assembly = problem + (cpu ? peak : 0);
  result.device_assembly = cpu ? 0 : peak;
  result.host = cpu ? kept : 0;
  result.device = cpu ? 0 : kept;
  return result;
}

/// Whether the run has a box that repeats itself, whose sides gpu/elements joins.
bool has_joined_sides(LargestPart const& part, AssemblyPlan const& plan) {
  return part.is_whole && plan.route == Route::box && part.whole.mesh.periodic;
}
/// That box.
RankBlocks repeated_box(LargestPart const& part) {
  RankBlocks box;
  for (std::size_t d = 0; d < 3; ++d)
    box.nodes[d] = part.box_cells[d] + 1;
  box.periodic = part.whole.mesh.wraps_around;
  box.own = {box.whole()};
  return box;
}

/// Bytes of what joins its sides: couplings, a row of 9 for every ghost, where ghosts come from, and their entries.
std::int64_t bytes_of_joints(RankBlocks const& box) {
  NodeBox const own = box.untied(box.whole());
  NodeBox around = own;
  for (std::size_t d = 0; d < 3; ++d)
    if (box.periodic[d]) {
      around.low[d] -= 1;
      around.high[d] += 1;
    }
  return (9 * 12 + 12 + 3 * 4 + 8 + 16) * (around.size() - own.size());
}

MatrixMemory of_box(Format format, LargestPart const& part, Backend backend) {
  std::array<std::int64_t, 3> const& cells = part.box_cells;
  std::int64_t surface = 0;  // values of the conditions at nodes or Gauss points of faces
  for (std::size_t d = 0; d < 3; ++d)
    surface += 2 * 8 * (cells[d] + 1) * (cells[(d + 1) % 3] + 1);
  bool const labels = part.whole.mesh.label_cells > 0;
  std::int64_t const peak = BoxSystem::peak_bytes(cells, part.whole.varying_fields, format, backend, labels) + surface,
                     kept = BoxSystem::peak_bytes(cells, 0, format, backend, labels) - 8 * part.around + surface;
  if (part.is_whole) {
    std::int64_t const joints = part.whole.mesh.periodic ? bytes_of_joints(repeated_box(part)) : 0;
    return of_elements(peak + joints, kept + joints, 0, backend);
  }
  // The block of own nodes is cut out of that of the cells around, with its right-hand side. A row of the rim has 9 couplings with
  // ghosts in CSR.
  std::int64_t const block = (format == Format::half_cds ? 8 * 14 * part.rows : kept) + (9 * 12 + 12) * part.ghosts;
  return of_elements(std::max(peak, kept + block + 8 * (part.around + part.rows)), block, 0, backend);
}

/// The nodes of the box that the cells are left of.
std::array<std::int64_t, 3> nodes_of_void_box(LargestPart const& part) {
  auto const& cells = part.whole.mesh.void_box;
  return {cells[0] + 1, cells[1] + 1, cells[2] + 1};
}

/// What matrix_free takes where void was taken out of a box: labels and places; vectors of all nodes of the box, of products and of
/// the residual.
MatrixMemory of_void_box(LargestPart const& part, Backend backend) {
  auto const [nx, ny, nz] = nodes_of_void_box(part);
  std::int64_t const nodes = nx * ny * nz, peak = BoxSystem::peak_bytes(part.whole.mesh.void_box, part.whole.varying_fields,
                                                                        Format::matrix_free, backend, true);
  std::int64_t const labels = BoxSystem::peak_bytes(part.whole.mesh.void_box, 0, Format::matrix_free, backend, true) - 8 * nodes;
  MatrixMemory result = of_elements(peak + 12 * part.rows, labels + 4 * part.rows + 16 * nodes, 8 * part.rows, backend);
  result.host_verify = backend == Backend::cpu ? 16 * nodes : 0;
  return result;
}

/// The coordinates of the nodes of lattices, which a device keeps from the assembly for what is asked of a solution on them.
std::int64_t kept_coordinates(LargestPart const& part, AssemblyPlan const& plan) {
  std::int64_t const m = part.layout.nodes();
  bool const kept = plan.route == Route::lattices && plan.backend == Backend::cuda;
  return kept ? 24 * part.layout.n_lattices * m * m * m : 0;
}

/// What the host holds while a solution on lattices is asked: the nodes of the unknowns and the tables of rims.
std::int64_t bytes_of_questions(RunConfig const& config, LargestPart const& part, AssemblyPlan const& plan) {
  assembly::MeshSummary const& mesh = part.whole.mesh;
  if (mesh.box_for_elements || part.layout.is_box() || asks_host_about(config, mesh, plan) || kept_coordinates(part, plan) > 0)
    return 0;
  std::int64_t const p1 = config.problem.order + 1, of_cells = part.cells * p1 * p1 * p1,
                     rims = part.layout.n_lattices > 0 ? part.layout.n_lattices * part.layout.rim().size() : of_cells,
                     tables = 2 * 4 * rims;
  return 24 * part.around + tables;
}

/// Whether nobody asks the host where nodes inside of lattices are: devices solve, and from their solution no file is made. Small
/// meshes keep theirs.
bool leaves_nodes(RunConfig const& config, AssemblyPlan const& plan, assembly::Estimate const& whole) {
  constexpr std::int64_t fewest_bytes = std::int64_t{1} << 26, fewest_of_side = 33;
  if (plan.backend != Backend::cuda || plan.route != Route::lattices)
    return false;
  int const ranks = plan.division.ranks;
  LatticeLayout const layout = ranks == 1 ? whole.layout : own_pieces(config, whole.mesh, ranks, 0);
  std::int64_t const m = layout.nodes();
  assembly::ProblemSpec const& problem = config.problem;
  bool const is_anchored = std::ranges::any_of(problem.boundary, [](assembly::BoundaryCondition const& condition) {
    return condition.type == assembly::BoundaryType::dirichlet || condition.type == assembly::BoundaryType::robin;
  });
  return m >= fewest_of_side && 24 * layout.n_lattices * m * m * m >= fewest_bytes && is_anchored && whole.varying_fields == 0 &&
         !problem.exact && !problem.source_total && problem.point_sources.empty() && problem.line_sources.empty() &&
         !problem.mesh.has_places() && !whole.mesh.periodic && config.analysis.empty() &&
         config.solver.initial == InitialGuess::zero && config.output.probes.empty() && config.output.quantities.empty() &&
         !asks_host_about(config, whole.mesh, plan) && Outputs(config, ranks).names().empty();
}

/// Bytes of the numbers of k, and of f, of all cells, where regions may give those of a lattice several.
struct BytesOfNumbers {
  std::int64_t of_k = 0, of_f = 0;
};
BytesOfNumbers bytes_of_numbers(assembly::ProblemSpec const& problem, LatticeLayout const& layout) {
  if (problem.mesh.regions.empty() || layout.cells <= 1)
    return {};
  std::int64_t const n = layout.cells, bytes = 4 * layout.n_lattices * n * n * n;
  bool const one_k = problem.coefficient.size() <= 1 && problem.coefficient_of_name.empty();
  return {one_k ? 0 : bytes, problem.has_one_source() ? 0 : bytes};
}

/// What half_cds or matrix_free takes on lattices. Only the sizes of the layout are read.
MatrixMemory of_lattices(RunConfig const& config, Format format, LargestPart const& part, AssemblyPlan const& plan) {
  LatticeLayout const& layout = part.layout;
  Backend const backend = plan.backend;
  bool const shares = plan.route == Route::lattices;
  std::int64_t const k_of_cell = k_of_cell_of(config, part);
  MatrixMemory result = of_elements(LatticeSystem::peak_bytes(layout, part.whole.varying_fields, backend, format, k_of_cell),
                                    LatticeSystem::kept_bytes(layout, format, k_of_cell) + kept_coordinates(part, plan),
                                    assembly::lattice_problem_bytes(layout, shares), backend);
  BytesOfNumbers const numbers = bytes_of_numbers(config.problem, layout);
  result.host_assembly += numbers.of_k + numbers.of_f;
  (backend == Backend::cpu ? result.host : result.device) += numbers.of_k;  // for what is asked of u
  // Element vectors in double-double.
  std::int64_t const n1 = layout.order + 1, cells = layout.cells;
  if (backend == Backend::cpu && format == Format::matrix_free)
    result.host_verify = 16 * n1 * n1 * n1 * layout.n_lattices * cells * cells * cells;
  if (part.is_whole)
    return result;
  if (backend == Backend::cpu)
    result.host_assembly += 8 * part.rows;  // the right-hand side of own rows
  else if (format == Format::matrix_free)   // the residual on rims: b, r and the sums of all ranks in double-double
    result.host_verify = 32 * (layout.n_unknowns - layout.n_inner());
  // Dirichlet values of the unknowns around, and their places; of lattices on rims alone.
  result.host_assembly += shares ? 8 * (layout.n_unknowns - layout.n_inner()) : 20 * part.around;
  return result;
}

ExpectedOrderOne order_one_of_lattices(LargestPart const& part, Backend backend, std::int64_t k_of_cell) {
  LatticeLayout const& fine = part.layout;
  ExpectedOrderOne result;
  result.order = fine.order;
  result.rows = part.vertices;
  if (fine.is_box()) {  // a mark of every unknown
    result.tables = fine.n_unknowns + result.rows;
    result.host = 2 * assembly::lattice_problem_bytes(fine, true);
    result.tensors = 8 * k_of_cell * fine.n_lattices;
    result.backend = LatticeSystem::peak_bytes(layout_of_vertices(fine.view()), part.whole.varying_fields, backend,
                                               Format::matrix_free, k_of_cell);
    return result;
  }
  std::int64_t const p = fine.order, rims = fine.n_lattices * fine.rim().size(), on_rims = fine.n_unknowns - fine.n_inner();
  LatticeLayout coarse;  // its sizes
  coarse.n_lattices = fine.n_lattices;
  coarse.cells = fine.cells;
  coarse.all_on_rim = fine.all_on_rim;
  coarse.n_unknowns = part.vertices;
  std::int64_t const m = coarse.nodes(), coarse_rims = coarse.n_lattices * coarse.rim().size();
  result.tables = 9 * (rims + coarse_rims) + 9 * on_rims * (p + 1) / p;
  if (!fine.all_on_rim) {
    // The problem of order 1, and on one rank again that from which it is made. Tables of order 1 for it and for the levels, with
    // what is listed to make them; those of the matrix are the mesh's.
    std::int64_t const on_coarse = std::max<std::int64_t>(coarse.n_unknowns - coarse.n_inner(), 0),
                       nodes = coarse.n_lattices * m * m * m;
    result.host = (part.is_whole ? assembly::lattice_problem_bytes(fine, true) : 0) + 17 * on_coarse +
                  (part.whole.memory.at_once > 0 ? 0 : 24 * nodes) + 2 * 8 * (coarse_rims + on_coarse) + 8 * on_coarse + rims +
                  4 * on_rims;
    result.nodes = nodes;
    result.backend = LatticeSystem::peak_bytes(coarse, part.whole.varying_fields, backend, Format::half_cds);
  } else {
    // The problem in both orders, the tables once more; what the elements keep of it is gone with them.
    result.host = assembly::lattice_problem_bytes(fine, false) + assembly::lattice_problem_bytes(fine, false) / (p * p * p) +
                  2 * result.tables;
    result.backend = LatticeSystem::peak_bytes(coarse, part.whole.varying_fields, backend, Format::matrix_free);
    result.tensors = 8 * LatticeOperator::n_tensor_values(fine.n_lattices, 1);
  }
  return result;
}

/// What multigrid goes on with, where the matrix is not the one that it makes levels from.
ExpectedOrderOne order_one_of(RunConfig const& config, LargestPart const& part, AssemblyPlan const& plan) {
  ExpectedOrderOne result;
  result.order = config.problem.order;
  result.rows = part.vertices;
  bool const is_box = BoxSystem::fits(part.box_cells);
  if (plan.route == Route::cells && !part.is_whole && !is_box) {  // multigrid begins with entries
    result.host = 3 * part.csr;
    return result;
  }
  if (is_box) {
    result.nodes = part.vertices;
    // Of a part the diagonals of the cells around, and those of own nodes.
    result.backend = BoxSystem::peak_bytes(part.box_cells, part.whole.varying_fields, Format::half_cds, plan.backend) +
                     (part.is_whole ? 0 : 8 * 14 * part.vertices);
    if (result.order == 1)
      return result;
  }
  ExpectedOrderOne const of_lattices = order_one_of_lattices(part, plan.backend, k_of_cell_of(config, part));
  if (!is_box)
    return of_lattices;
  result.tables = of_lattices.tables;
  result.host = of_lattices.host;
  return result;
}

/// What the solver is told of the matrix.
ExpectedSystem system_of(RunConfig const& config, FormatChoice const& choice, LargestPart const& part, AssemblyPlan const& plan) {
  ExpectedSystem system;
  bool const csr = plan.route == Route::csr, void_box = plan.route == Route::void_box;
  system.backend = plan.backend;
  system.format = part.is_whole || !csr ? choice.format : Format::csr;  // levels of ranks are made from rows in CSR
  system.n_rows = part.rows;
  system.nnz = part.entries;
  system.bytes_per_product = estimate_of(choice, choice.format).bytes_per_product;
  if (plan.route == Route::cells && part.layout.is_box())  // a copy in single has k, the diagonal and marks
    system.bytes_per_product = 8 * k_of_cell_of(config, part) * part.cells + 34 * part.rows;
  system.has_csr = part.is_whole && csr;
  system.is_stencil = choice.format == Format::matrix_free && plan.route != Route::cells &&
                      (part.whole.mesh.stencil_faces > 0 || part.whole.mesh.label_cells > 0 || void_box);
  system.from_labels = system.is_stencil && (part.whole.mesh.label_cells > 0 || void_box);
  if (void_box) {
    auto const [nx, ny, nz] = nodes_of_void_box(part);
    system.void_box_nodes = nx * ny * nz;
    system.bytes_per_product = VoidBoxOperator::bytes_per_product(system.void_box_nodes, part.rows);
  }
  system.has_stencil_levels = part.whole.mesh.stencil_faces > 0 &&
                              std::ranges::none_of(config.problem.boundary, [](assembly::BoundaryCondition const& condition) {
                                return condition.type == assembly::BoundaryType::robin;
                              });
  if (!part.is_whole)
    system.rows_of_all = part.whole.mesh.dofs;
  if (has_nested_spaces(config, part.whole.mesh, plan.route, part.is_whole, part.has_pieces))
    system.nested_from = config.problem.order;
  if (part.blocks) {
    system.block_nodes = nodes_of_block(*part.blocks, part.rank);
    system.nodes_of_all = part.blocks->nodes;
  }
  if (has_joined_sides(part, plan)) {
    RankBlocks const blocks = repeated_box(part);
    system.block_nodes = nodes_of_block(blocks, 0);
    system.nodes_of_all = blocks.nodes;
    system.repeats = true;
  }
  bool const on_ranks = plan.route == Route::lattices || (plan.route == Route::cells && config.is_box());
  if (!csr && choice.format == Format::half_cds) {
    std::int64_t const m = part.layout.nodes();
    system.n_lattice_nodes = plan.route == Route::lattices ? part.layout.n_lattices * m * m * m : 0;
    system.lattice_cells = part.layout.cells;
  } else if (part.is_whole ? plan.has_order_one : on_ranks || (plan.route == Route::cells && plan.has_order_one)) {
    system.order_one = order_one_of(config, part, plan);
  }
  return system;
}

/// Bytes of the fluxes through boundaries.
std::int64_t bytes_of_fluxes(RunConfig const& config, LargestPart const& part, AssemblyPlan const& plan) {
  if (part.whole.mesh.lexicographic && (part.is_whole || plan.route == Route::box)) {  // u in the layer of cells at a side
    std::int64_t largest = 0;
    auto const& cells = part.box_cells;
    for (std::size_t d = 0; d < 3; ++d)
      largest = std::max(largest, cells[d] * cells[(d + 1) % 3]);
    std::int64_t const p = config.problem.order;
    return 8 * (p + 1) * p * p * largest;
  }
  // For every node of every face 40 bytes, in vectors that grow. Of lattices and a whole mesh marks of unknowns, and the cells at
  // the boundary with theirs; of other parts places of all unknowns.
  std::int64_t const p = config.problem.order, p1 = p + 1, of_face = 50 * p1 * p1;
  if (part.is_whole || plan.route == Route::lattices)
    return part.around / 8 + (of_face + 4 * p1 * p1 * p1 + 40 * p1 * p * p) * part.boundary_faces;
  return 4 * part.around + of_face * part.boundary_faces;
}

/// Bytes on the host of a run for one of the problems with fixed conditions that analysis.effective has.
std::int64_t peak_of_fixed(RunConfig config, Backend backend, int ranks) {
  set_effective_problem(config, false, config.effective.direction);
  config.effective = {};
  assembly::ProblemSpec problem = problem_of(config);
  problem.mesh.shared = config.is_box() && ranks > 1;
  return forecast_memory(config, backend, assembly::CheckedProblem(std::move(problem)), ranks).host_peak().bytes;
}

/// Bytes on the host of a run for one of the sub-volumes of analysis.effective, whose k is taken to vary.
std::int64_t peak_of_sub_volume(RunConfig config, Backend backend, int ranks) {
  assembly::MeshSpec box;
  box.cells = config.effective.sub_volumes.size;
  config.problem.mesh = std::move(box);
  config.problem.coefficient = {{-1, {"2 + x"}}};
  config.problem.coefficient_of_name.clear();
  bool const periodic = config.effective.has_periodic();
  config.effective.conditions = periodic ? EffectiveConditions::periodic : EffectiveConditions::fixed;
  config.effective.sub_volumes = {};
  set_effective_problem(config, periodic, config.effective.direction);
  assembly::ProblemSpec problem = problem_of(config);
  problem.mesh.shared = ranks > 1;
  return forecast_memory(config, backend, assembly::CheckedProblem(std::move(problem)), ranks).host_peak().bytes;
}

}  // namespace

MemoryForecast::OfStage const& MemoryForecast::peak(std::vector<OfStage> const& stages) {
  return *std::max_element(stages.begin(), stages.end(), [](auto const& a, auto const& b) { return a.bytes < b.bytes; });
}

MemoryForecast forecast_memory(RunConfig const& config, Backend backend, assembly::CheckedProblem const& problem, int ranks) {
  if (config.adaptive.is_asked() && ranks > 1) {  // SolvesOnRanks
    MemoryForecast of_first = forecast_memory(config, backend, problem, 1);
    of_first.division = "parts          " + std::to_string(ranks) + " of the rows, for solves; the first rank has the mesh";
    of_first.rows = rounded(static_cast<double>(of_first.rows) / ranks);
    of_first.is_exact = false;
    of_first.program += bytes_of_mpi;
    // The first rank's own matrix is given up as it is shared out; the shares, and the one that is sent, count as if they were
    // here.
    std::int64_t const shares = CsrMatrix::csr_bytes(problem.mesh().dofs, problem.mesh().nnz);
    for (MemoryForecast::OfStage& stage : of_first.host)
      stage.bytes += bytes_of_mpi + (stage.name == "convert" || stage.name == "solve" ? shares : 0);
    return of_first;
  }
  MemoryForecast result;
  result.plan = plan_assembly(config, backend, problem.mesh(), division_of(config, problem.mesh(), ranks));
  result.plan.leaves_nodes = leaves_nodes(config, result.plan, problem.estimate(result.plan.into()));
  AssemblyPlan const& plan = result.plan;
  LargestPart const part = largest_part(config, problem, plan);
  bool const cpu = backend == Backend::cpu, csr = plan.route == Route::csr;
  result.division = part.division;
  result.rows = part.rows;
  result.ghosts = part.ghosts;
  result.neighbors = part.neighbors;
  result.is_exact = part.is_exact;
  result.program = part.whole.memory.program + (cpu ? 0 : host_bytes_of_cuda) + (part.is_whole ? 0 : bytes_of_mpi);
  result.format = format_of(config, plan, part);
  Format const format = result.format.format;
  MatrixMemory const matrix = csr                             ? of_csr(result.format, part, cpu)
                              : plan.route == Route::box      ? of_box(format, part, backend)
                              : plan.route == Route::void_box ? of_void_box(part, backend)
                                                              : of_lattices(config, format, part, plan);
  // Ranks that share a box are told its blocks instead of its nodes (SolverOptions::blocks).
  SolverOptions options = solver_options(config);
  if (!part.is_whole)
    options.box_nodes = {};
  if (plan.route == Route::void_box)
    options.box_nodes = nodes_of_void_box(part);
  options.constant_null_space = std::ranges::none_of(config.problem.boundary, [](assembly::BoundaryCondition const& condition) {
    return condition.type == assembly::BoundaryType::dirichlet || condition.type == assembly::BoundaryType::robin;
  });
  SolverMemory const solver = solver_memory(system_of(config, result.format, part, plan), options);
  result.preconditioner = solver.preconditioner;

  // What stays: the mesh, CSR and constraints, the matrix in its format, and where the host makes or has it the right-hand side.
  std::int64_t const n = part.rows;
  bool const host_has_b = cpu || csr || (!part.is_whole && plan.source_on_host);
  std::int64_t const system = part.space + (host_has_b ? 8 * n : 0) + (csr ? part.csr : 0) + part.constraints;
  std::int64_t const kept = system + matrix.host;
  // Levels that ranks make from rows begin with a copy of these.
  bool const copies_rows = !part.is_whole && csr && !plan.has_box_levels && solver.preconditioner == PreconditionerKind::multigrid;
  std::int64_t const neighbour = config.solver.initial == InitialGuess::neighbour && part.is_whole ? 8 * n : 0;  // its solution
  auto const add = [&](char const* name, std::int64_t bytes) {
    result.host.push_back({name, result.program + bytes + (cpu ? neighbour : 0)});
  };
  add("mesh", part.making_mesh);
  add("assembly", csr ? system + part.assembled : part.space + part.constraints + matrix.host_assembly);
  if (csr)
    add("convert", system + matrix.host_assembly);
  // Large arrays begin at huge pages, so that about half a page is between them; with a matrix in csr there are a dozen, unless
  // the mesh has no arrays.
  std::int64_t const between_arrays = csr && cpu && part.whole.mesh.lattices == 0 ? std::int64_t{6} << 20 : 0;
  std::int64_t const numbers = !part.is_whole && config.checkpoint.is_asked() ? 8 * n : 0;  // of rows, in a checkpoint
  add("solve", kept + solver.host + (copies_rows ? part.csr : 0) + between_arrays + numbers);
  // The residual, and on the host the arrays by which the bandwidth is measured; or the low parts of x.
  bool const extended = config.solver.precision != Precision::double_ && config.solver.precision != Precision::automatic;
  std::int64_t const vectors = cpu ? 3 : extended ? 2 : 1;
  // On a device u stays there, unless the host makes something from it. Of boxes and lattices files and pictures take parts of it.
  bool const stays = !cpu && !host_has_b;
  bool const has_formulas = plan.route == Route::box || plan.route == Route::lattices || part.layout.is_box();
  bool const in_pages =
      stays && (part.whole.mesh.lexicographic || (part.whole.mesh.lattices > 0 && (part.is_whole || part.has_pieces)));
  OutputSizes sizes{part.own_unknowns,   part.cells, part.whole.mesh.cells, part.whole.boundary_faces, part.output,
                    part.largest_output, part.made};
  if (in_pages) {
    sizes.made.u = 8 * n;
    if (!part.is_whole)  // of which no copy for own cells is made
      sizes.fields -= 8 * part.own_unknowns;
    if (config.problem.exact && (part.whole.mesh.lexicographic || config.problem.order < 3)) {
      sizes.fields -= 8 * n;
      sizes.made.exact = 8 * n;
    }
  }
  std::int64_t const outputs = Outputs(config, plan.division.ranks).bytes(sizes);
  std::int64_t const u = stays && has_formulas ? 0 : 8 * n;
  std::int64_t const u_of_outputs = !config.analysis.empty() ? 8 * n : in_pages ? PagedField::bytes(n) : 8 * n;
  // A device has the tables of these questions before fluxes are asked for; the host keeps them.
  std::int64_t const tables = bytes_of_questions(config, part, plan), fluxes = bytes_of_fluxes(config, part, plan),
                     questions = cpu ? tables + fluxes : std::max(tables, fluxes);
  add("verify", kept + u + std::max((stays ? 0 : vectors * 8 * n) + matrix.host_verify, questions));
  if (config.effective.has_periodic())  // of two more problems the coordinate and b; u of the first
    add("analysis", kept + solver.host + (cpu ? solver.column : 0) + 5 * 8 * n);
  if (config.effective.has_fixed()) {  // the matrix of the run is freed before; u and the forces of three problems
    std::int64_t const peak = config.effective.has_periodic() ? peak_of_fixed(config, backend, ranks) : result.host_peak().bytes;
    result.host.push_back({"analysis", peak + part.space + 7 * 8 * n});
  }
  if (config.effective.sub_volumes.is_asked()) {
    std::int64_t const cells =
        config.effective.sub_volumes.size[0] * config.effective.sub_volumes.size[1] * config.effective.sub_volumes.size[2];
    result.host.push_back({"analysis", peak_of_sub_volume(config, backend, ranks) + part.space + 4 * 8 * n + 8 * cells});
  }
  bool const asks = outputs > 0 || !config.analysis.empty();  // for u
  add("output", kept + (asks ? u_of_outputs : u) + ((asks && !in_pages) || !stays ? part.solution : 0) + outputs);
  if (!cpu) {
    result.device.push_back({csr ? "convert" : "assembly", matrix.device_assembly + neighbour});
    result.device.push_back({"solve", matrix.device + 8 * n + solver.device + neighbour});  // with b
  }
  return result;
}

MemoryForecast forecast_that_fits(RunConfig const& config, Backend backend, assembly::CheckedProblem const& problem, int ranks,
                                  std::function<bool(MemoryForecast const&)> const& fits) {
  MemoryForecast planned = forecast_memory(config, backend, problem, ranks);
  if (ranks > 1 || config.matrix.format || solver_needs_entries(config) || planned.format.format == Format::matrix_free ||
      fits(planned))
    return planned;
  RunConfig lean = config;
  lean.matrix.format = Format::matrix_free;
  try {
    MemoryForecast of_lean = forecast_memory(lean, backend, problem, ranks);
    bool const has_levels = config.solver.preconditioner != PreconditionerKind::multigrid || of_lean.plan.has_order_one;
    if (!has_levels || !fits(of_lean))
      return planned;
    of_lean.format.note = "the others do not fit into memory";
    of_lean.plan.choice = of_lean.format;
    return of_lean;
  } catch (InputError const&) {  // which has no such operator
    return planned;
  }
}

void require_host_memory_for(MemoryForecast::OfStage const& largest, int ranks) {
  std::string const what = "this run, whose largest stage on the host is '" + largest.name + "' with about " +
                           bytes_text(static_cast<double>(largest.bytes)) +
                           (ranks > 1 ? " on each of " + std::to_string(ranks) + " ranks of this machine," : " in all,");
  assembly::check_memory(ranks * (largest.bytes - host_bytes_held()), what.c_str());
}

bool has_room_for_two(MemoryForecast const& forecast, Context const* context) {
  constexpr std::int64_t small = 64 << 20;  // to ask a device takes some time
  std::int64_t const on_device = 2 * forecast.device_peak();
  return assembly::has_memory(2 * forecast.host_peak().bytes - forecast.program - host_bytes_held()) &&
         (context == nullptr || on_device <= small || on_device <= context->description().memory_free + context->memory_used());
}

}  // namespace poisson::app
