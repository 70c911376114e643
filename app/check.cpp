#include "app/check.hpp"

#include "app/console.hpp"
#include "assembly/discretization.hpp"

#include <iostream>

namespace poisson {

int print_check(Configuration const& configuration) {
  RunConfig const& config = configuration.config();
  Estimate const estimated = estimate(config.problem);
  MeshSummary const& mesh = estimated.mesh;
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

  auto const formats = estimate_formats(MatrixShape{mesh.dofs, mesh.nnz, mesh.n_diagonals, true}, config.matrix.format_options());
  double const vectors = static_cast<double>(solver_bytes(mesh.dofs, config.solver));
  for (auto const& f : formats) {
    std::cout << "#   " << name_of(f.format) << std::string(15 - name_of(f.format).size(), ' ');
    if (f.refusal.empty())
      std::cout << bytes_text(static_cast<double>(f.bytes)) << ", " << bytes_text(static_cast<double>(f.bytes_per_product))
                << " a product, device memory " << bytes_text(static_cast<double>(f.bytes) + vectors) << "\n";
    else
      std::cout << "refused: " << f.refusal << "\n";
  }
  std::cout << "#   format         " << name_of(config.matrix.format.value_or(choose_format(formats)))
            << (config.matrix.format ? "" : " (auto)") << "\n";
  return 0;
}

}  // namespace poisson
