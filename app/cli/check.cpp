#include "app/cli/check.hpp"

#include "app/io/console.hpp"
#include "app/run/format_choice.hpp"
#include "assembly/discretization.hpp"
#include "gpu/kernels/backends.hpp"

#include <iostream>

namespace poisson::app {

int print_check(Configuration const& configuration) {
  RunConfig const& config = configuration.config();
  assembly::Estimate const estimated = assembly::estimate(config.problem);
  assembly::MeshSummary const& mesh = estimated.mesh;
  char const* const about = mesh.exact_counts ? "" : "about ";

  std::cout << resolved_yaml(config) << "\n# Estimates\n";
  std::cout << "#   cells          " << about << with_thousands(mesh.cells) << "\n";
  std::cout << "#   vertices       " << about << with_thousands(mesh.vertices) << "\n";
  std::cout << "#   unknowns       " << about << with_thousands(mesh.dofs) << "\n";
  std::cout << "#   non-zeros      " << about << with_thousands(mesh.nnz) << " (before Dirichlet rows are emptied)\n";
  auto const list = [](std::set<unsigned> const& ids) {
    std::string text;
    for (unsigned id : ids)
      text += (text.empty() ? "" : ", ") + std::to_string(id);
    return text;
  };
  std::cout << "#   boundary ids   " << list(mesh.boundary_ids) << "\n#   material ids   " << list(mesh.material_ids) << "\n";
  std::cout << "#   host memory    about " << bytes_text(static_cast<double>(estimated.host_bytes)) << "\n";

  // A device is looked for where the run would look for one.
  bool const on_device = config.backend ? *config.backend == Backend::cuda : why_no_cuda().empty();
  FormatChoice choice =
      choose_format(MatrixShape{mesh.dofs, mesh.nnz, mesh.n_diagonals, true}, config.matrix.format_options(),
                    on_device ? Backend::cuda : Backend::cpu, forecast_of(config.matrix, config.solver, mesh.dofs));
  choice.format = config.matrix.format.value_or(choice.format);
  std::cout << "#   format         " << name_of(choice.format) << (config.matrix.format ? "" : " (auto)") << ", predicted for "
            << (on_device ? "cuda" : "cpu") << " at a nominal bandwidth:\n";
  for (std::string const& line : grid_lines(table_of(choice)))
    std::cout << "#   " << line << "\n";
  auto const vectors = static_cast<double>(solver_bytes(mesh.dofs, mesh.nnz, config.solver));
  for (FormatEstimate const& f : choice.estimates)
    if (f.format == choice.format)
      std::cout << "#   device memory  about " << bytes_text(static_cast<double>(f.bytes) + vectors)
                << " with the vectors of the solver\n";
  return 0;
}

}  // namespace poisson::app
