#include "app/cli/check.hpp"

#include "app/config/problem.hpp"
#include "app/io/console.hpp"
#include "app/run/format_choice.hpp"
#include "app/run/memory_forecast.hpp"
#include "app/run/pictures.hpp"
#include "app/run/rank_run.hpp"
#include "app/run/rank_system.hpp"
#include "app/run/sweep_cases.hpp"
#include "assembly/discretization.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

namespace poisson::app {

namespace {

/// Where a run would compute.
Backend backend_of(RunConfig const& config) {
  return config.backend.value_or(why_no_cuda().empty() ? Backend::cuda : Backend::cpu);
}

/// Counts of a problem, and the memory of its run.
struct CaseForecast {
  assembly::MeshSummary mesh;
  MemoryForecast memory;
};

CaseForecast forecast_of_case(RunConfig const& config) {
  assembly::CheckedProblem const problem(problem_of(config));
  return {problem.mesh(), forecast_memory(config, backend_of(config), problem)};
}

/// The stages as "mesh 1 MiB, solve 2 MiB".
std::string stages_text(std::vector<MemoryForecast::OfStage> const& stages) {
  std::string text;
  for (MemoryForecast::OfStage const& stage : stages)
    text += (text.empty() ? "" : ", ") + stage.name + " " + bytes_text(static_cast<double>(stage.bytes));
  return text;
}

/// How many cases a sweep has, and the sizes of the smallest and largest. Throws InputError when a case is not valid.
void print_sweep(Configuration const& configuration) {
  std::vector<SweepCase> const cases = sweep_cases(configuration);
  auto const text_of = [&](SweepCase const& c) { return values_text(c, configuration.config().sweep.axes); };
  struct Size {
    std::size_t number = 0;
    CaseForecast forecast;
  };
  std::optional<Size> smallest, largest;
  std::map<std::string, CaseForecast> known;  // cases often differ in what no mesh knows of
  std::size_t n_wrong = 0;
  std::string first_wrong;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::string error = cases[i].error;
    if (cases[i].configuration)
      try {
        RunConfig const& config = cases[i].configuration->config();
        RunConfig relevant;
        relevant.problem = config.problem;
        relevant.fields = config.fields;
        relevant.matrix = config.matrix;
        relevant.solver = config.solver;
        relevant.output = config.output;
        relevant.output.directory.clear();
        relevant.backend = config.backend;
        std::string const key = resolved_yaml(relevant);
        auto found = known.find(key);
        if (found == known.end())
          found = known.emplace(key, forecast_of_case(config)).first;
        Size const size{i, found->second};
        auto const less = [](Size const& a, Size const& b) {
          return a.forecast.mesh.dofs != b.forecast.mesh.dofs ? a.forecast.mesh.dofs < b.forecast.mesh.dofs
                                                              : a.forecast.memory.host_peak() < b.forecast.memory.host_peak();
        };
        if (!smallest || less(size, *smallest))
          smallest = size;
        if (!largest || less(*largest, size))
          largest = size;
      } catch (InputError const& wrong) {
        error = cases[i].configuration->locate(wrong);
      }
    if (!error.empty() && n_wrong++ == 0)
      first_wrong = "case " + std::to_string(i) + " (" + text_of(cases[i]) + "): " + error;
  }
  std::cout << "\n# Sweep\n#   cases          " << with_thousands(static_cast<std::int64_t>(cases.size())) << "\n";
  auto const line = [&](char const* name, Size const& size) {
    assembly::MeshSummary const& mesh = size.forecast.mesh;
    MemoryForecast const& memory = size.forecast.memory;
    std::cout << "#   " << name << (mesh.exact_counts ? "" : "about ") << with_thousands(mesh.dofs) << " unknowns, about "
              << bytes_text(static_cast<double>(memory.host_peak())) << " on the host"
              << (memory.device.empty() ? "" : ", " + bytes_text(static_cast<double>(memory.device_peak())) + " on the device")
              << "; case " << size.number << ": " << text_of(cases[size.number]) << "\n";
  };
  if (smallest) {
    line("smallest       ", *smallest);
    line("largest        ", *largest);
  }
  std::cout << std::flush;
  if (n_wrong > 0)
    throw InputError("sweep", std::to_string(n_wrong) + " of " + std::to_string(cases.size()) +
                                  " cases are not valid; the first is " + first_wrong);
}

/// Code and buffers of MPI in a process: 12 to 16 MiB (Open MPI 4.1).
constexpr std::int64_t bytes_of_mpi = 14 << 20;

/// Meshes of more cells are not made for a table.
constexpr std::int64_t most_cells_for_parts = 1'000'000;

/// The boundaries and materials with their names, sizes and places, as comments. What is wrong with the named places of the
/// configuration shows as well. Errors: InputError.
void print_parts(RunConfig const& config, assembly::MeshSummary const& mesh) {
  if (mesh.cells > most_cells_for_parts) {
    auto const list = [](std::set<unsigned> const& ids, assembly::IdNames const& names) {
      std::string text;
      for (unsigned id : ids)
        text += (text.empty() ? "" : ", ") + std::to_string(id) + (names.contains(id) ? " (" + names.at(id) + ")" : "");
      return text;
    };
    std::cout << "#   boundary ids   " << list(mesh.boundary_ids, mesh.boundary_names) << "\n#   material ids   "
              << list(mesh.material_ids, mesh.material_names) << "\n#                  (their sizes are listed for up to "
              << with_thousands(most_cells_for_parts) << " cells)\n";
    return;
  }
  assembly::Discretization const discretization(problem_of(config), assembly::AssembledInto::half_cds_on_host);
  auto const parts = discretization.parts();
  double largest = 0;  // coordinate: what is less by far is rounding
  for (auto const* list : {&parts.boundaries, &parts.materials})
    for (auto const& [id, part] : *list)
      for (std::size_t d = 0; d < 3; ++d)
        largest = std::max({largest, std::abs(part.extent.low[d]), std::abs(part.extent.high[d])});
  auto const number = [&](double x) { return number_text(std::abs(x) < 1e-14 * largest ? 0 : x, 6); };
  auto const point = [&](std::array<double, 3> const& x) {
    return "(" + number(x[0]) + ", " + number(x[1]) + ", " + number(x[2]) + ")";
  };
  auto const print = [&](char const* title, char const* count, char const* size, auto const& list, assembly::IdNames const& names) {
    std::vector<std::vector<std::string>> table{{"id", "name", count, size, "from", "to"}};
    for (auto const& [id, part] : list)
      table.push_back({std::to_string(id), names.contains(id) ? names.at(id) : "-", with_thousands(part.count),
                       number_text(part.size, 6), point(part.extent.low), point(part.extent.high)});
    std::cout << "\n# " << title << "\n";
    for (std::string const& line : grid_lines(table))
      std::cout << "#   " << line << "\n";
  };
  assembly::MeshSummary const& found = discretization.summary();
  print("Boundaries", "faces", "area", parts.boundaries, found.boundary_names);
  print("Materials", "cells", "volume", parts.materials, found.material_names);
  for (std::string const& note : discretization.notes())
    std::cout << "# note: " << note << "\n";
}

/// What check tells of the rank that has most.
struct RankForecast {
  assembly::MeshSummary mesh;
  std::string division;  ///< of the mesh, with its name
  std::int64_t rows = 0, ghosts = 0;
  bool is_exact = true;                         ///< the rows are; else what parts of about equal size have
  std::vector<MemoryForecast::OfStage> stages;  ///< on the host, without the program
  std::int64_t program = 0;
  std::int64_t on_device = 0;  ///< with the cuda backend
  std::string format;          ///< where it is known
  PreconditionerKind preconditioner{};
};

void print_forecast(RunConfig const& config, int ranks, RankForecast const& forecast) {
  std::int64_t peak = 0;
  for (MemoryForecast::OfStage const& stage : forecast.stages)
    peak = std::max(peak, stage.bytes);
  std::cout << resolved_yaml(config) << "\n# Estimates for " << ranks << " ranks\n";
  std::cout << "#   cells          " << with_thousands(forecast.mesh.cells) << "\n";
  std::cout << "#   vertices       " << with_thousands(forecast.mesh.vertices) << "\n";
  std::cout << "#   unknowns       " << with_thousands(forecast.mesh.dofs) << "\n";
  std::cout << "#   non-zeros      " << with_thousands(forecast.mesh.nnz) << " (before Dirichlet rows are emptied)\n";
  std::cout << "#   " << forecast.division << "\n# Of the rank with most of them\n";
  std::cout << "#   unknowns       " << (forecast.is_exact ? "" : "about ") << with_thousands(forecast.rows) << ", and "
            << (forecast.is_exact ? "" : "about ") << with_thousands(forecast.ghosts) << " that come from other ranks in "
            << "each product\n";
  std::cout << "#   host memory    about " << bytes_text(static_cast<double>(peak + forecast.program)) << " at most, "
            << bytes_text(static_cast<double>(forecast.program)) << " of them for the program\n"
            << "#     by stage     " << stages_text(forecast.stages) << "\n";
  if (forecast.on_device > 0)
    std::cout << "#   device memory  about " << bytes_text(static_cast<double>(forecast.on_device)) << " at most\n";
  if (!forecast.format.empty())
    std::cout << "#   format         " << forecast.format << "\n";
  std::cout << "#   preconditioner " << name_of(forecast.preconditioner)
            << (config.solver.preconditioner == PreconditionerKind::automatic ? " (auto)" : "") << ", predicted\n";
}

/// Of a mesh that is no box, from parts of equal size as METIS makes them: of a cell on the rim of one its rank has half of the
/// nodes, and the cells around are about those of a layer on half of the surface.
RankForecast forecast_of_parts(RunConfig const& config, int ranks) {
  constexpr double surface = 1.5 * 6;  // of a part, in faces of a cube of as many cells
  constexpr double imbalance = 1.1;    // of rows: rims go to the first of the parts that have them
  assembly::CheckedProblem const problem(problem_of(config));
  assembly::Estimate const whole = problem.estimate(assembly::AssembledInto::csr);
  RankForecast result;
  result.mesh = whole.mesh;
  result.is_exact = false;
  bool const has_lattices = whole.mesh.lattices > 0 && config.problem.mesh.refinements >= 2;
  result.division = "parts          " + std::to_string(ranks) + ", of about equal size, by METIS" +
                    (has_lattices ? "; no rank makes the whole mesh" : "; every rank makes the whole mesh first");
  auto const p = static_cast<double>(config.problem.order);
  double const cells = static_cast<double>(whole.mesh.cells) / ranks;
  // Of few parts much of the surface is the mesh's boundary.
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
  std::int64_t const parts = around + own + 20 * unknowns_around + (has_lattices ? 12 * result.rows : 0),
                     kept = parts + share_of(whole.memory.constraints) + csr;
  // While a part is made: the unknowns of all its cells twice, as lists.
  std::int64_t const making =
      has_lattices ? count(2 * per_cell * cells * of_cells) : whole.memory.making_mesh + count(per_cell * 2 * cells * of_cells);

  ExpectedSystem system;
  system.backend = backend_of(config);
  system.format = Format::csr;
  system.n_rows = result.rows;
  system.rows_of_all = whole.mesh.dofs;
  system.nnz = entries;
  system.bytes_per_product = csr + 16 * result.rows;
  SolverMemory const solver = solver_memory(system, config.solver);
  result.preconditioner = solver.preconditioner;
  bool const on_device = system.backend == Backend::cuda, multigrid = solver.preconditioner == PreconditionerKind::multigrid;
  std::int64_t const block = on_device ? 0 : csr, of_rows = multigrid ? csr : 0;  // levels of rows begin with rows on the host
  std::int64_t gathered = 2 * bytes_of_pictures(config, whole.mesh.cells, whole.boundary_faces, 0);
  if (config.output.surface)
    gathered = std::max(gathered, 2 * bytes_of_surface(config, whole.boundary_faces));
  result.stages = {{"mesh", parts + making},
                   {"assembly", kept + share_of(whole.memory.csr) + 8 * unknowns_around + 8 * result.rows},
                   {"convert", kept + csr + 8 * result.rows},
                   {"solve", kept + block + of_rows + 16 * result.rows + solver.host},
                   {"output", kept + block + 16 * result.rows + 8 * unknowns_around + share_of(whole.memory.output) +
                                  std::max(share_of(whole.memory.largest_output), gathered)}};
  result.program = whole.memory.program + bytes_of_mpi;
  result.on_device = on_device ? csr + std::max(csr, solver.device) : 0;
  return result;
}

RankForecast forecast_of_box(RunConfig const& config, int ranks) {
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

  // The first rank gathers pictures and the surface: what comes from all ranks, and what is made of it.
  std::int64_t faces = 0;
  for (std::size_t d = 0; d < 3; ++d)
    faces += 2 * cells[d] * cells[(d + 1) % 3];
  std::int64_t gathered = 2 * bytes_of_pictures(config, mesh.cells, faces, 0);
  if (config.output.surface)
    gathered = std::max(gathered, 2 * bytes_of_surface(config, faces));

  // Rows with their couplings stay for the true residual; their own block is stored once more, in its format.
  std::int64_t const entries = around.entries * rows / around.mesh.dofs, csr = CsrMatrix::csr_bytes(rows, entries);
  // Blocks straight into half_cds leave CSR out, and are there twice for a moment. So are those without entries, which have rows of
  // the nodes on their faces.
  MatrixPlan const plan = plan_matrix_on_ranks(config, backend_of(config), mesh);
  bool const in_blocks = may_assemble_blocks(config, plan), free = in_blocks && format_of_blocks(plan) == Format::matrix_free;
  auto const cells_around = partition.assembled_cells(largest).cells;
  std::int64_t const block =
      free ? BoxSystem::peak_bytes(cells_around, 0, Format::matrix_free, backend_of(config)) - 8 * around.mesh.dofs
      : in_blocks || (config.matrix.format == Format::half_cds && config.problem.order == 1) ? 8 * 14 * rows
                                                                                             : csr;
  std::int64_t const kept =
      around.memory.space + own.memory.space + 4 * around.mesh.dofs + (in_blocks ? 0 : around.memory.constraints + csr);
  ExpectedSystem system;
  system.backend = backend_of(config);
  system.format = free ? Format::matrix_free : Format::csr;
  system.is_stencil = free;
  system.has_stencil_levels =
      free && std::ranges::none_of(config.problem.boundary, [](assembly::BoundaryCondition const& condition) {
        return condition.type == assembly::BoundaryType::robin;
      });
  system.n_rows = rows;
  system.nnz = entries;
  system.bytes_per_product = block + 16 * rows;
  system.rows_of_all = mesh.dofs;
  if (has_blocks(config)) {
    system.block_nodes = nodes_of_block(partition.node_blocks(), largest);
    system.nodes_of_all = partition.node_blocks().nodes;
  }
  SolverMemory const solver = solver_memory(system, config.solver);
  bool const on_device = system.backend == Backend::cuda;
  std::int64_t const block_on_host = on_device ? 0 : block;
  std::int64_t ghosts = 0;
  for (RankNeighbor const& neighbor : partition.neighbors(largest))
    ghosts += neighbor.n_ghosts;
  // Without entries rows of faces are edited on the host, and of the rim, about as many as ghosts, entries and CSR are made.
  std::int64_t const assembly = free ? (on_device ? 2 : 4) * block + 27 * (8 + 12) * ghosts : around.memory.csr;
  std::vector<MemoryForecast::OfStage> const stages{{"assembly", kept + assembly + 8 * around.mesh.dofs + 8 * rows},
                                                    {"convert", kept + (in_blocks ? 1 : 2) * block + 8 * rows},
                                                    {"solve", kept + block_on_host + 16 * rows + solver.host},
                                                    {"output", kept + block_on_host + 16 * rows + 8 * around.mesh.dofs +
                                                                   own.memory.output +
                                                                   std::max(own.memory.largest_output, gathered)}};
  auto const& blocks = partition.blocks();
  // CSR is there until it is converted; blocks are made from those of the cells around, with their right-hand side.
  std::int64_t const of_assembly = in_blocks ? block + 8 * around.mesh.dofs : csr;
  RankForecast result;
  result.mesh = mesh;
  result.division =
      "blocks         " + std::to_string(blocks[0]) + " x " + std::to_string(blocks[1]) + " x " + std::to_string(blocks[2]);
  if (partition.n_used() < ranks)
    result.division += "; " + std::to_string(ranks - partition.n_used()) + " ranks have no cells";
  result.rows = rows;
  result.ghosts = ghosts;
  result.stages = stages;
  result.program = around.memory.program + bytes_of_mpi;
  result.on_device = on_device ? block + std::max(of_assembly, solver.device) : 0;
  if (in_blocks)
    result.format = std::string(name_of(format_of_blocks(plan))) + (config.matrix.format ? "" : " (auto)");
  result.preconditioner = solver.preconditioner;
  return result;
}

}  // namespace

int print_check_on_ranks(Configuration const& configuration, int ranks) {
  RunConfig const& config = configuration.config();
  require_runs_on_ranks(config);
  print_forecast(config, ranks, config.is_box() ? forecast_of_box(config, ranks) : forecast_of_parts(config, ranks));
  return 0;
}

int print_check(Configuration const& configuration) {
  RunConfig const& config = configuration.config();
  auto const [mesh, memory] = forecast_of_case(config);
  char const* const about = mesh.exact_counts ? "" : "about ";

  std::cout << resolved_yaml(config) << "\n# Estimates\n";
  std::cout << "#   cells          " << about << with_thousands(mesh.cells) << "\n";
  std::cout << "#   vertices       " << about << with_thousands(mesh.vertices) << "\n";
  std::cout << "#   unknowns       " << about << with_thousands(mesh.dofs) << "\n";
  std::cout << "#   non-zeros      " << about << with_thousands(mesh.nnz) << " (before Dirichlet rows are emptied)\n";
  std::cout << "#   host memory    about " << bytes_text(static_cast<double>(memory.host_peak())) << " at most, "
            << bytes_text(static_cast<double>(memory.program)) << " of them for the program\n"
            << "#     by stage     " << stages_text(memory.host) << "\n";

  FormatChoice const& choice = memory.format;
  bool const on_device = backend_of(config) == Backend::cuda;
  std::cout << "#   format         " << name_of(choice.format) << (config.matrix.format ? "" : " (auto)") << ", predicted for "
            << (on_device ? "cuda" : "cpu") << " at a nominal bandwidth:\n";
  for (std::string const& line : grid_lines(table_of(choice)))
    std::cout << "#   " << line << "\n";
  std::cout << "#   preconditioner " << name_of(memory.preconditioner)
            << (config.solver.preconditioner == PreconditionerKind::automatic ? " (auto), predicted" : "") << "\n";
  if (on_device)
    std::cout << "#   device memory  about " << bytes_text(static_cast<double>(memory.device_peak())) << " at most\n"
              << "#     by stage     " << stages_text(memory.device) << "\n";
  else
    std::cout << "#   device memory  none: the backend is cpu\n";
  print_parts(config, mesh);
  if (!config.sweep.axes.empty())
    print_sweep(configuration);
  return 0;
}

}  // namespace poisson::app
