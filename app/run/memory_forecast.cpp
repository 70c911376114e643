#include "app/run/memory_forecast.hpp"

#include "app/io/console.hpp"
#include "app/plan/format_choice.hpp"
#include "app/results/output.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/system/lattice_problem.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/elements/lattice_operator.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>

namespace poisson::app {

namespace {

/// What CUDA's driver keeps in host memory once there is a context: 125 to 140 MB (H200, CUDA 13).
constexpr std::int64_t host_bytes_of_cuda = 130 << 20;

FormatEstimate const& estimate_of(FormatChoice const& choice, Format format) {
  return *std::find_if(choice.estimates.begin(), choice.estimates.end(),
                       [&](FormatEstimate const& e) { return e.format == format; });
}

MatrixMemory of_csr(FormatChoice const& choice, assembly::Estimate const& estimate, bool cpu) {
  MatrixMemory result;
  bool const shares = choice.format == Format::csr || choice.format == Format::crs_t;
  std::int64_t const stored = estimate_of(choice, choice.format).bytes,
                     conversion = estimate_of(choice, choice.format).conversion_bytes;
  // On a device CSR is there until it is converted; on the host it stays.
  if (cpu) {
    result.host = shares ? 0 : stored;
    result.host_assembly = result.host + conversion;
  } else {
    result.device = shares ? estimate.memory.csr : stored;
    result.device_assembly = estimate.memory.csr + (shares ? 0 : stored + conversion);
  }
  return result;
}

/// `problem`, `on_host`: bytes on the host during the assembly, and of them what stays.
MatrixMemory of_elements(std::int64_t peak, std::int64_t kept, std::int64_t problem, std::int64_t on_host, std::int64_t n_unknowns,
                         Backend backend) {
  bool const cpu = backend == Backend::cpu;
  MatrixMemory result;
  // The right-hand side goes to the host, where with the cpu backend it is for a moment twice.
  result.host_assembly = problem + on_host + (cpu ? peak : 0) + 8 * n_unknowns;
  result.device_assembly = cpu ? 0 : peak;
  result.host = on_host + (cpu ? kept : 0);
  result.device = cpu ? 0 : kept;
  return result;
}

MatrixMemory memory_of_elements(Format format, RunConfig const& config, assembly::Estimate const& estimate, Backend backend) {
  if (estimate.lattices_for_elements)
    return memory_of_lattices(format, estimate.layout, estimate.varying_fields, backend);
  std::int64_t const n = estimate.mesh.dofs;
  std::array<std::int64_t, 3> const cells = config.problem.mesh.refined_cells();
  std::int64_t surface = 0;  // values of the conditions at nodes or Gauss points of faces
  for (std::size_t d = 0; d < 3; ++d)
    surface += 2 * 8 * (cells[d] + 1) * (cells[(d + 1) % 3] + 1);
  return of_elements(BoxSystem::peak_bytes(cells, estimate.varying_fields, format, backend) + surface,
                     BoxSystem::peak_bytes(cells, 0, format, backend) - 8 * n + surface, 0, 0, n, backend);
}

/// What multigrid goes on with, where the matrix is not the one that it makes levels from.
ExpectedOrderOne order_one_of(RunConfig const& config, assembly::CheckedProblem const& problem, Backend backend) {
  ExpectedOrderOne result;
  assembly::Estimate const estimate = problem.estimate(assembly::AssembledInto::matrix_free_on_host);
  assembly::MeshSummary const& mesh = estimate.mesh;
  if (mesh.lexicographic && BoxSystem::fits(config.problem.mesh.refined_cells())) {
    result.nodes = mesh.vertices;
    result.backend = BoxSystem::peak_bytes(config.problem.mesh.refined_cells(), estimate.varying_fields, Format::half_cds, backend);
  }
  result.order = config.problem.order;
  result.rows = mesh.vertices;
  if (result.nodes > 0 && result.order == 1)
    return result;
  ExpectedOrderOne of_lattices = order_one_of_lattices(estimate.layout, mesh.vertices, estimate.varying_fields, backend);
  if (result.nodes == 0)
    return of_lattices;
  result.tables = of_lattices.tables;
  result.host = of_lattices.host;
  return result;
}

}  // namespace

MatrixMemory memory_of_lattices(Format format, LatticeLayout const& layout, int varying_fields, Backend backend) {
  LatticeSystem::KeptBytes const kept = LatticeSystem::kept_bytes(layout, format);
  MatrixMemory result = of_elements(LatticeSystem::peak_bytes(layout, varying_fields, backend, format), kept.backend,
                                    assembly::lattice_problem_bytes(layout), kept.host, layout.n_unknowns, backend);
  // Element vectors in double-double.
  std::int64_t const n1 = layout.order + 1, cells = layout.cells;
  if (backend == Backend::cpu && format == Format::matrix_free)
    result.host_verify = 16 * n1 * n1 * n1 * layout.n_lattices * cells * cells * cells;
  return result;
}

ExpectedOrderOne order_one_of_lattices(LatticeLayout const& fine, std::int64_t vertices, int varying_fields, Backend backend) {
  ExpectedOrderOne result;
  result.order = fine.order;
  result.rows = vertices;
  std::int64_t const p = fine.order, rims = fine.n_lattices * fine.rim().size(), on_rims = fine.n_unknowns - fine.n_inner();
  LatticeLayout coarse;  // its sizes
  coarse.n_lattices = fine.n_lattices;
  coarse.cells = fine.cells;
  coarse.all_on_rim = fine.all_on_rim;
  coarse.n_unknowns = vertices;
  std::int64_t const m = coarse.nodes(), coarse_rims = coarse.n_lattices * coarse.rim().size();
  result.tables = 9 * (rims + coarse_rims) + 9 * on_rims * (p + 1) / p;
  // The problem in both orders, the tables once more; what the elements keep of it is gone with them.
  std::int64_t const problem = assembly::lattice_problem_bytes(fine);
  result.host = problem + problem / (p * p * p) + 2 * result.tables;
  if (!fine.all_on_rim) {
    result.nodes = coarse.n_lattices * m * m * m;
    result.backend = LatticeSystem::peak_bytes(coarse, varying_fields, backend, Format::half_cds);
  } else {
    result.backend = LatticeSystem::peak_bytes(coarse, varying_fields, backend, Format::matrix_free);
    result.tensors = 8 * LatticeOperator::n_tensor_values(fine.n_lattices, 1);
  }
  return result;
}

MemoryForecast::OfStage const& MemoryForecast::peak(std::vector<OfStage> const& stages) {
  return *std::max_element(stages.begin(), stages.end(), [](auto const& a, auto const& b) { return a.bytes < b.bytes; });
}

MemoryForecast forecast_memory(RunConfig const& config, Backend backend, assembly::CheckedProblem const& problem) {
  Division const undivided = division_of(config, problem.mesh(), 1);
  AssemblyPlan const plan = plan_assembly(config, backend, problem.mesh(), undivided);
  assembly::Estimate const estimate = problem.estimate(plan.into());
  assembly::MeshSummary const& mesh = estimate.mesh;
  assembly::HostMemory const& memory = estimate.memory;
  bool const cpu = backend == Backend::cpu, csr = plan.route == Route::csr;
  std::int64_t const n = mesh.dofs;

  MemoryForecast result;
  result.program = memory.program + (cpu ? 0 : host_bytes_of_cuda);
  MatrixShape shape = shape_of(config, mesh, undivided);
  if (config.matrix.format == Format::matrix_free && shape.n_cells == 0) {
    shape.n_cells = mesh.cells;
    shape.order = config.problem.order;
    shape.stencil_faces = mesh.stencil_faces;
  }
  result.format =
      choose_format(shape, config.matrix.format_options(), backend, forecast_of(config.matrix, config.solver, mesh.dofs));
  if (config.matrix.format)
    result.format.format = *config.matrix.format;
  else if (plan.choice)
    result.format.format = plan.choice->format;
  result.assembly = plan.text();
  Format const format = result.format.format;
  MatrixMemory const matrix = csr ? of_csr(result.format, estimate, cpu) : memory_of_elements(format, config, estimate, backend);

  ExpectedSystem system{backend, format, n, estimate.entries, estimate_of(result.format, format).bytes_per_product, csr, false, 0};
  system.is_stencil = format == Format::matrix_free && mesh.stencil_faces > 0;
  system.has_stencil_levels = std::ranges::none_of(config.problem.boundary, [](assembly::BoundaryCondition const& condition) {
    return condition.type == assembly::BoundaryType::robin;
  });
  if (!csr && format == Format::half_cds) {
    system.n_lattice_nodes = mesh.lattices * mesh.lattice_nodes * mesh.lattice_nodes * mesh.lattice_nodes;
    system.lattice_cells = mesh.lattice_nodes - 1;
  } else if (plan.has_order_one)
    system.order_one = order_one_of(config, problem, backend);
  SolverMemory const solver = solver_memory(system, solver_options(config));
  result.preconditioner = solver.preconditioner;

  // What stays: the mesh, the right-hand side, CSR and constraints, the matrix in its format.
  std::int64_t const system_bytes = memory.space + 8 * n + memory.csr + memory.constraints;
  std::int64_t const kept = system_bytes + matrix.host, x = 8 * n;
  std::int64_t const of_fluxes = bytes_of_fluxes(config, n, estimate.boundary_faces);
  std::int64_t const output =
      Outputs(config, 1).bytes({n, mesh.cells, mesh.cells, estimate.boundary_faces, memory.output, memory.largest_output});
  auto const add = [&](char const* name, std::int64_t bytes) { result.host.push_back({name, result.program + bytes}); };
  add("mesh", memory.making_mesh);
  add("assembly", csr ? system_bytes : memory.space + matrix.host_assembly);
  if (csr)
    add("convert", system_bytes + matrix.host_assembly);
  add("solve", kept + x + solver.host);
  // The residual, and on the host the arrays by which the bandwidth is measured; or the low parts of x.
  bool const extended = config.solver.precision != Precision::double_ && config.solver.precision != Precision::automatic;
  std::int64_t const vectors = cpu ? 3 : extended ? 2 : 1;
  add("verify", kept + x + std::max(vectors * 8 * n + matrix.host_verify, of_fluxes));
  add("output", kept + x + output);
  if (!cpu) {
    result.device.push_back({csr ? "convert" : "assembly", matrix.device_assembly});
    result.device.push_back({"solve", matrix.device + solver.device});
  }
  return result;
}

std::int64_t bytes_of_fluxes(RunConfig const& config, std::int64_t unknowns, std::int64_t boundary_faces) {
  // Places of unknowns, and for every node of every face 40 bytes, in vectors that grow.
  std::int64_t const p1 = config.problem.order + 1;
  return 4 * unknowns + 50 * p1 * p1 * boundary_faces;
}

void require_host_memory_for(MemoryForecast::OfStage const& largest, int ranks) {
  std::string const what = "this run, whose largest stage on the host is '" + largest.name + "' with about " +
                           bytes_text(static_cast<double>(largest.bytes)) +
                           (ranks > 1 ? " on each of " + std::to_string(ranks) + " ranks of this machine," : " in all,");
  assembly::check_memory(ranks * (largest.bytes - host_bytes_held()), what.c_str());
}

}  // namespace poisson::app
