#include "app/run/rank_forecast.hpp"

#include "app/config/problem.hpp"
#include "app/results/output.hpp"
#include "app/run/rank_system.hpp"
#include "assembly/discretization.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/space/space.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace poisson::app {

namespace {

/// Code and buffers of MPI in a process: 12 to 16 MiB (Open MPI 4.1).
constexpr std::int64_t bytes_of_mpi = 14 << 20;

/// What a rank's own lattices are where they are assembled as they are (RankSystem): pieces of lattices, or cells; their sizes.
LatticeLayout own_lattices(RunConfig const& config, assembly::MeshSummary const& mesh, Division const& division, Route route,
                           std::int64_t n_unknowns) {
  std::int64_t const of_all = mesh.cells, ranks = division.ranks;
  LatticeLayout layout;
  layout.order = config.problem.order;
  layout.all_on_rim = route == Route::cells;
  layout.cells = static_cast<std::int32_t>(route == Route::cells ? 1 : division.piece_cells);
  std::int64_t const cells = layout.cells;
  layout.n_lattices = (of_all / (cells * cells * cells) + ranks - 1) / ranks;
  layout.n_unknowns = std::max(n_unknowns, layout.n_inner());
  return layout;
}

/// Forecasts for a mesh that is no box, from parts of equal size as METIS makes them. A rank has half of the nodes of a cell on the
/// rim of its part. The cells around a part are about those of a layer on half of its surface.
RankForecast forecast_of_parts(RunConfig const& config, Backend backend, int ranks, assembly::CheckedProblem const& problem) {
  constexpr double surface = 1.5 * 6;  // of a part, in faces of a cube of as many cells
  constexpr double imbalance = 1.1;    // of rows: rims go to the first of the parts that have them
  assembly::Estimate const whole = problem.estimate(assembly::AssembledInto::csr);
  RankForecast result;
  result.mesh = whole.mesh;
  result.is_exact = false;
  bool const has_lattices = whole.mesh.lattices > 0 && config.problem.mesh.refinements >= 2;
  result.division = "parts          " + std::to_string(ranks) + ", of about equal size, by METIS" +
                    (has_lattices ? "; no rank makes the whole mesh" : "; the first rank makes the whole mesh, and sends parts");
  auto const p = static_cast<double>(config.problem.order);
  double const cells = static_cast<double>(whole.mesh.cells) / ranks;
  // If there are few parts, much of their surface is the boundary of the mesh.
  double const area = ranks > 1 ? surface * std::pow(cells, 2.0 / 3) * std::min(1.0, ranks / 4.0) : 0;
  double const rows = std::min(1.0, imbalance / ranks) * static_cast<double>(whole.mesh.dofs);
  double const of_cells = 1 + area / 2 / cells;  // around a part, over its own
  auto const count = [](double x) { return static_cast<std::int64_t>(std::llround(x)); };
  result.rows = count(rows);
  result.ghosts = count(std::min(area * p * p * (p + 1) / 2, static_cast<double>(whole.mesh.dofs) - rows));
  std::int64_t const unknowns_around = result.rows + result.ghosts;

  // A part has the unknowns of its cells, nodes and materials in arrays, once for the cells around and once for its own; numbers in
  // the whole; where a rank makes lattices the places of its unknowns in them.
  double const per_cell = 4 * std::pow(p + 1, 3) + 4;
  auto const space = [&](double n_cells, std::int64_t n_unknowns) { return count(per_cell * n_cells) + 24 * n_unknowns; };
  std::int64_t const around = space(cells * of_cells, unknowns_around), own = space(cells, result.rows);
  double const share = static_cast<double>(unknowns_around) / static_cast<double>(whole.mesh.dofs);
  auto const share_of = [&](std::int64_t bytes) { return count(share * static_cast<double>(bytes)); };
  std::int64_t const entries = count(static_cast<double>(whole.entries) * rows / static_cast<double>(whole.mesh.dofs)),
                     csr = CsrMatrix::csr_bytes(result.rows, entries);
  std::int64_t const parts = around + own + 20 * unknowns_around + (has_lattices ? 12 * result.rows : 0);
  // While a part is made: the unknowns of all its cells twice, as lists.
  std::int64_t const making =
      has_lattices ? count(2 * per_cell * cells * of_cells) : whole.memory.making_mesh + count(per_cell * 2 * cells * of_cells);

  Division const into_parts = division_of(config, whole.mesh, ranks);
  AssemblyPlan const plan = plan_assembly(config, backend, whole.mesh, into_parts);
  result.assembly = plan.text();
  std::optional<LatticeLayout> pieces;
  if (plan.route != Route::csr)
    pieces = own_lattices(config, whole.mesh, into_parts, plan.route, unknowns_around);
  ExpectedSystem system;
  system.backend = backend;
  system.n_rows = result.rows;
  system.rows_of_all = whole.mesh.dofs;
  system.nnz = entries;
  MatrixMemory matrix;
  if (pieces) {
    std::int64_t const m = pieces->nodes(), nodes = pieces->n_lattices * m * m * m;
    system.format = plan.format;
    matrix = memory_of_lattices(system.format, *pieces, whole.varying_fields, backend);
    matrix.host_assembly += 4 * nodes + 12 * unknowns_around;
    std::int64_t const vertices = count(static_cast<double>(unknowns_around) / (p * p * p));
    if (plan.route == Route::cells) {  // multigrid begins with entries
      if (plan.has_order_one) {
        system.order_one.order = config.problem.order;
        system.order_one.rows = vertices;
        system.order_one.host = 3 * csr;
      }
    } else if (system.format == Format::matrix_free) {
      system.order_one = order_one_of_lattices(*pieces, vertices, whole.varying_fields, backend);
    } else {  // and rows of the rim, with what others add to them
      system.n_lattice_nodes = nodes;
      system.lattice_cells = pieces->cells;
      matrix.host += 3 * 27 * 12 * result.ghosts;
    }
    system.bytes_per_product = matrix.host + matrix.device + 16 * result.rows;
    result.format = std::string(name_of(system.format)) + (config.matrix.format ? "" : " (auto)");
  } else {
    system.format = Format::csr;
    system.bytes_per_product = csr + 16 * result.rows;
  }
  SolverMemory const solver = solver_memory(system, config.solver);
  result.preconditioner = solver.preconditioner;
  bool const on_device = system.backend == Backend::cuda, multigrid = solver.preconditioner == PreconditionerKind::multigrid;
  std::int64_t const of_files = Outputs(config, ranks)
                                    .bytes({result.rows + result.ghosts / 2, count(cells), whole.mesh.cells, whole.boundary_faces,
                                            share_of(whole.memory.output), share_of(whole.memory.largest_output)});
  std::int64_t const output = 16 * result.rows + 8 * unknowns_around + of_files;
  std::int64_t const of_fluxes = bytes_of_fluxes(config, unknowns_around, share_of(whole.boundary_faces));
  if (pieces) {
    std::int64_t const values = 17 * unknowns_around;  // Dirichlet values, and marks
    std::int64_t const kept = parts + values + matrix.host + 8 * result.rows;
    result.stages = {{"mesh", parts + making},
                     {"assembly", parts + values + matrix.host_assembly + 8 * result.rows},
                     {"solve", kept + 8 * result.rows + solver.host},
                     {"verify", kept + 8 * result.rows + std::max(16 * result.rows + matrix.host_verify, of_fluxes)},
                     {"output", kept + output}};
    result.on_device = on_device ? std::max(matrix.device_assembly, matrix.device + solver.device) : 0;
  } else {
    std::int64_t const kept = parts + share_of(whole.memory.constraints) + csr;
    std::int64_t const block = on_device ? 0 : csr, of_rows = multigrid ? csr : 0;  // levels of rows begin with rows on the host
    result.stages = {{"mesh", parts + making},
                     {"assembly", kept + share_of(whole.memory.csr) + 8 * unknowns_around + 8 * result.rows},
                     {"convert", kept + csr + 8 * result.rows},
                     {"solve", kept + block + of_rows + 16 * result.rows + solver.host},
                     {"verify", kept + block + 16 * result.rows + std::max(16 * result.rows, of_fluxes)},
                     {"output", kept + block + output}};
    result.on_device = on_device ? csr + std::max(csr, solver.device) : 0;
  }
  result.program = whole.memory.program + bytes_of_mpi;
  return result;
}

RankForecast forecast_of_box(RunConfig const& config, Backend backend, int ranks) {
  assembly::ProblemSpec spec = problem_of(config);
  spec.mesh.shared = true;
  assembly::MeshSummary const mesh = assembly::CheckedProblem(spec).mesh();
  std::array<std::int64_t, 3> const cells = config.problem.mesh.refined_cells();
  assembly::BoxPartition const partition(cells, config.problem.order, ranks);
  int largest = 0;
  for (int rank = 1; rank < partition.n_used(); ++rank)
    if (partition.n_rows(rank) > partition.n_rows(largest))
      largest = rank;
  std::int64_t const rows = partition.n_rows(largest);
  spec.mesh.part = partition.assembled_cells(largest);
  assembly::Estimate const around = assembly::estimate(spec);
  spec.mesh.part = partition.cells(largest);
  assembly::Estimate const own = assembly::estimate(spec);

  std::int64_t faces = 0;
  for (std::size_t d = 0; d < 3; ++d)
    faces += 2 * cells[d] * cells[(d + 1) % 3];
  std::int64_t const of_files =
      Outputs(config, ranks)
          .bytes({own.mesh.dofs, own.mesh.cells, mesh.cells, faces, own.memory.output, own.memory.largest_output});
  std::int64_t const of_fluxes = bytes_of_fluxes(config, around.mesh.dofs, own.boundary_faces);

  // Rows with their couplings stay for the true residual; their own block is stored once more, in its format.
  std::int64_t const entries = around.entries * rows / around.mesh.dofs, csr = CsrMatrix::csr_bytes(rows, entries);
  // Blocks straight into half_cds leave CSR out, and are there twice for a moment. So are those without entries, which have rows of
  // the nodes on their faces.
  AssemblyPlan const plan = plan_assembly(config, backend, mesh, division_of(config, mesh, ranks));
  ExpectedSystem system;
  system.backend = backend;
  bool const in_blocks = plan.route == Route::box, free = in_blocks && plan.format == Format::matrix_free,
             of_cells = plan.route == Route::cells;
  auto const cells_around = partition.assembled_cells(largest).cells;
  MatrixMemory of_elements;
  if (of_cells) {
    assembly::Estimate const elements = assembly::estimate(spec, plan.into());
    LatticeLayout layout = elements.layout;
    layout.n_unknowns = around.mesh.dofs;
    of_elements = memory_of_lattices(Format::matrix_free, layout, elements.varying_fields, backend);
    of_elements.host_assembly += 8 * around.mesh.dofs;  // Dirichlet values
    system.order_one = order_one_of_lattices(layout, around.mesh.vertices, elements.varying_fields, backend);
    system.order_one.nodes = around.mesh.vertices;
    system.order_one.tensors = 0;
    // The diagonals of the cells around and those of own nodes.
    system.order_one.backend =
        BoxSystem::peak_bytes(cells_around, elements.varying_fields, Format::half_cds, backend) + 8 * 14 * around.mesh.vertices;
  }
  std::int64_t const block = of_cells ? of_elements.host + of_elements.device
                             : free   ? BoxSystem::peak_bytes(cells_around, 0, Format::matrix_free, backend) - 8 * around.mesh.dofs
                             : in_blocks || (config.matrix.format == Format::half_cds && config.problem.order == 1) ? 8 * 14 * rows
                                                                                                                    : csr;
  bool const has_csr = !in_blocks && !of_cells;
  std::int64_t const kept = around.memory.space + own.memory.space + 4 * around.mesh.dofs +
                            (has_csr    ? around.memory.constraints + csr
                             : of_cells ? 17 * around.mesh.dofs
                                        : 0);
  system.format = free || of_cells ? Format::matrix_free : Format::csr;
  system.is_stencil = free;
  system.has_stencil_levels =
      free && std::ranges::none_of(config.problem.boundary, [](assembly::BoundaryCondition const& condition) {
        return condition.type == assembly::BoundaryType::robin;
      });
  system.n_rows = rows;
  system.nnz = entries;
  system.bytes_per_product = block + 16 * rows;
  system.rows_of_all = mesh.dofs;
  if (plan.has_box_levels) {
    system.block_nodes = nodes_of_block(partition.node_blocks(), largest);
    system.nodes_of_all = partition.node_blocks().nodes;
  }
  SolverMemory const solver = solver_memory(system, config.solver);
  bool const on_device = system.backend == Backend::cuda;
  std::int64_t const block_on_host = on_device ? 0 : block;
  std::int64_t ghosts = 0;
  auto const neighbors = partition.neighbors(largest);
  for (RankNeighbor const& neighbor : neighbors)
    ghosts += neighbor.n_ghosts;
  // If the matrix has no entries, rows of faces are edited on the host. Entries and CSR are then made of the rim alone, for about
  // as many rows as there are ghosts.
  std::int64_t const assembly = of_cells ? of_elements.host_assembly
                                : free   ? (on_device ? 2 : 4) * block + 27 * (8 + 12) * ghosts
                                         : around.memory.csr;
  std::vector<MemoryForecast::OfStage> const stages{
      {"assembly", kept + assembly + 8 * around.mesh.dofs + 8 * rows},
      {"convert", kept + (has_csr ? 2 * block : block_on_host) + 8 * rows},
      {"solve", kept + block_on_host + 16 * rows + solver.host},
      {"verify", kept + block_on_host + 16 * rows + std::max(16 * rows + of_elements.host_verify, of_fluxes)},
      {"output", kept + block_on_host + 16 * rows + 8 * around.mesh.dofs + of_files}};
  auto const& blocks = partition.blocks();
  // CSR is there until it is converted; blocks are made from those of the cells around, with their right-hand side.
  std::int64_t const of_assembly = of_cells ? of_elements.device_assembly - block : in_blocks ? block + 8 * around.mesh.dofs : csr;
  RankForecast result;
  result.mesh = mesh;
  result.assembly = plan.text();
  result.division =
      "blocks         " + std::to_string(blocks[0]) + " x " + std::to_string(blocks[1]) + " x " + std::to_string(blocks[2]);
  if (partition.n_used() < ranks)
    result.division += "; " + std::to_string(ranks - partition.n_used()) + " ranks have no cells";
  result.rows = rows;
  result.ghosts = ghosts;
  result.neighbors = neighbors.size();
  result.stages = stages;
  result.program = around.memory.program + bytes_of_mpi;
  result.on_device = on_device ? block + std::max(of_assembly, solver.device) : 0;
  if (!has_csr)
    result.format = std::string(name_of(plan.format)) + (config.matrix.format ? "" : " (auto)");
  result.preconditioner = solver.preconditioner;
  return result;
}

}  // namespace

RankForecast forecast_of_ranks(RunConfig const& config, Backend backend, int ranks, assembly::CheckedProblem const& problem) {
  RankForecast result =
      config.is_box() ? forecast_of_box(config, backend, ranks) : forecast_of_parts(config, backend, ranks, problem);
  for (MemoryForecast::OfStage& stage : result.stages)
    stage.bytes += result.program;
  return result;
}

}  // namespace poisson::app
