#include "app/run/format_choice.hpp"

#include "app/io/console.hpp"

namespace poisson::app {

Forecast forecast_of(MatrixOptions const& matrix, SolverOptions const& solver, std::int64_t n_rows) {
  Forecast forecast;
  forecast.products = matrix.expected_products ? static_cast<double>(*matrix.expected_products)
                                               : expected_products(n_rows, solver.tolerance, solver.max_iterations,
                                                                   products_per_iteration(solver.method));
  return forecast;
}

std::vector<std::vector<std::string>> table_of(FormatChoice const& choice) {
  std::string const products = with_thousands(static_cast<std::int64_t>(choice.forecast.products));
  std::vector<std::vector<std::string>> table{{"format", "bytes", "bytes a product", "product ms", "convert ms",
                                               products + (products == "1" ? " product ms" : " products ms"), ""}};
  auto const milliseconds = [](double seconds) { return number_text(1e3 * seconds, 4); };
  for (FormatEstimate const& e : choice.estimates) {
    std::string const name(name_of(e.format));
    if (e.refusal.empty())
      table.push_back({name, with_thousands(e.bytes), with_thousands(e.bytes_per_product), milliseconds(e.product_seconds),
                       milliseconds(e.conversion_seconds), milliseconds(total_seconds(e, choice.forecast.products)),
                       e.format == choice.format ? "taken"
                       : e.is_lower_bound        ? "at best"
                                                 : ""});
    else
      table.push_back({name, "-", "-", "-", "-", "-", "refused: " + e.refusal});
  }
  return table;
}

SolverOptions solver_options(RunConfig const& config) {
  SolverOptions options = config.solver;
  if (!config.system && config.is_box() && config.problem.order == 1)
    for (std::size_t d = 0; d < 3; ++d)
      options.box_nodes[d] = (config.problem.mesh.cells[d] << config.problem.mesh.refinements) + 1;
  return options;
}

std::vector<std::vector<std::string>> table_of(std::vector<PreconditionerEstimate> const& estimates) {
  std::vector<std::vector<std::string>> table{{"preconditioner", "iterations", "setup ms", "iteration ms", "together ms", ""}};
  auto const milliseconds = [](double seconds) { return number_text(1e3 * seconds, 4); };
  for (PreconditionerEstimate const& e : estimates)
    if (e.refusal.empty())
      table.push_back({std::string(name_of(e.kind)), with_thousands(e.iterations), milliseconds(e.setup_seconds),
                       milliseconds(e.iteration_seconds), milliseconds(e.seconds()), table.size() == 1 ? "taken" : ""});
    else
      table.push_back({std::string(name_of(e.kind)), "-", "-", "-", "-", "refused: " + e.refusal});
  return table;
}

}  // namespace poisson::app
