#include "app/cli/check.hpp"

#include "app/io/console.hpp"
#include "app/run/assembled_system.hpp"
#include "app/run/format_choice.hpp"
#include "app/run/sweep.hpp"
#include "assembly/discretization.hpp"
#include "gpu/kernels/backends.hpp"

#include <iostream>
#include <map>

namespace poisson::app {

namespace {

/// Where a run would compute.
Backend backend_of(RunConfig const& config) {
  return config.backend.value_or(why_no_cuda().empty() ? Backend::cuda : Backend::cpu);
}

assembly::Estimate estimate_of(RunConfig const& config) {
  assembly::CheckedProblem const problem(config.problem);
  return problem.estimate(plan_matrix(config, backend_of(config), problem.mesh()).into);
}

FormatChoice predicted_format(RunConfig const& config, assembly::MeshSummary const& mesh) {
  FormatChoice choice = choose_format(shape_of(config, mesh), config.matrix.format_options(), backend_of(config),
                                      forecast_of(config.matrix, config.solver, mesh.dofs));
  choice.format = config.matrix.format.value_or(choice.format);
  return choice;
}

/// Of the matrix in the format that it is expected to have, and the vectors of the solver.
double solver_memory(RunConfig const& config, assembly::MeshSummary const& mesh, FormatChoice const& choice) {
  auto bytes = static_cast<double>(solver_bytes(mesh.dofs, mesh.nnz, solver_options(config)));
  for (FormatEstimate const& f : choice.estimates)
    if (f.format == choice.format)
      bytes += static_cast<double>(f.bytes);
  return bytes;
}

/// How many cases a sweep has, and the sizes of the smallest and largest. Throws InputError when a case is not valid.
void print_sweep(Configuration const& configuration) {
  std::vector<SweepCase> const cases = sweep_cases(configuration);
  struct Size {
    std::size_t number = 0;
    assembly::Estimate estimate;
    double solver_bytes = 0;
  };
  std::optional<Size> smallest, largest;
  std::map<std::string, assembly::Estimate> known;  // cases often differ in what no mesh knows of
  std::size_t n_wrong = 0;
  std::string first_wrong;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::string error = cases[i].error;
    if (cases[i].configuration)
      try {
        RunConfig const& config = cases[i].configuration->config();
        RunConfig problem;
        problem.problem = config.problem;
        problem.matrix = config.matrix;
        problem.backend = config.backend;
        std::string const key = resolved_yaml(problem);
        auto found = known.find(key);
        if (found == known.end())
          found = known.emplace(key, estimate_of(config)).first;
        assembly::Estimate const& e = found->second;
        Size const size{i, e, solver_memory(config, e.mesh, predicted_format(config, e.mesh))};
        auto const less = [](Size const& a, Size const& b) {
          return a.estimate.mesh.dofs != b.estimate.mesh.dofs ? a.estimate.mesh.dofs < b.estimate.mesh.dofs
                                                              : a.solver_bytes < b.solver_bytes;
        };
        if (!smallest || less(size, *smallest))
          smallest = size;
        if (!largest || less(*largest, size))
          largest = size;
      } catch (InputError const& wrong) {
        error = cases[i].configuration->locate(wrong);
      }
    if (!error.empty() && n_wrong++ == 0)
      first_wrong = "case " + std::to_string(i) + " (" + cases[i].text + "): " + error;
  }
  std::cout << "\n# Sweep\n#   cases          " << with_thousands(static_cast<std::int64_t>(cases.size())) << "\n";
  auto const line = [&](char const* name, Size const& size) {
    assembly::MeshSummary const& mesh = size.estimate.mesh;
    std::cout << "#   " << name << (mesh.exact_counts ? "" : "about ") << with_thousands(mesh.dofs) << " unknowns, about "
              << bytes_text(static_cast<double>(size.estimate.host_bytes)) << " on the host, " << bytes_text(size.solver_bytes)
              << " for matrix and solver; case " << size.number << ": " << cases[size.number].text << "\n";
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

}  // namespace

int print_check(Configuration const& configuration) {
  RunConfig const& config = configuration.config();
  assembly::Estimate const estimated = estimate_of(config);
  assembly::MeshSummary const& mesh = estimated.mesh;
  char const* const about = mesh.exact_counts ? "" : "about ";

  std::cout << resolved_yaml(config) << "\n# Estimates\n";
  std::cout << "#   cells          " << about << with_thousands(mesh.cells) << "\n";
  std::cout << "#   vertices       " << about << with_thousands(mesh.vertices) << "\n";
  std::cout << "#   unknowns       " << about << with_thousands(mesh.dofs) << "\n";
  std::cout << "#   non-zeros      " << about << with_thousands(mesh.nnz) << " (before Dirichlet rows are emptied)\n";
  auto const list = [](std::set<unsigned> const& ids, assembly::IdNames const& names) {
    std::string text;
    for (unsigned id : ids)
      text += (text.empty() ? "" : ", ") + std::to_string(id) + (names.contains(id) ? " (" + names.at(id) + ")" : "");
    return text;
  };
  std::cout << "#   boundary ids   " << list(mesh.boundary_ids, mesh.boundary_names) << "\n#   material ids   "
            << list(mesh.material_ids, mesh.material_names) << "\n";
  std::cout << "#   host memory    about " << bytes_text(static_cast<double>(estimated.host_bytes)) << "\n";

  FormatChoice const choice = predicted_format(config, mesh);
  bool const on_device = backend_of(config) == Backend::cuda;
  std::cout << "#   format         " << name_of(choice.format) << (config.matrix.format ? "" : " (auto)") << ", predicted for "
            << (on_device ? "cuda" : "cpu") << " at a nominal bandwidth:\n";
  for (std::string const& line : grid_lines(table_of(choice)))
    std::cout << "#   " << line << "\n";
  std::cout << "#   device memory  about " << bytes_text(solver_memory(config, mesh, choice))
            << " with the vectors of the solver\n";
  if (!config.sweep.axes.empty())
    print_sweep(configuration);
  return 0;
}

}  // namespace poisson::app
