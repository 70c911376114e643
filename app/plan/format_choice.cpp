#include "app/plan/format_choice.hpp"

#include "app/domain/gathered_rows.hpp"
#include "app/io/console.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/row_map.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace poisson::app {

namespace {

std::string refusal_of(Format format, MatrixShape const& shape, FormatOptions const& options) {
  std::vector<FormatEstimate> const estimates = estimate_formats(shape, options);
  return std::ranges::find(estimates, format, &FormatEstimate::format)->refusal;
}

}  // namespace

std::string refusal_of_whole(Format format, RankRows const& rows, std::vector<std::int64_t> numbers, FormatOptions const& options,
                             Team& team) {
  if (format != Format::cds && format != Format::half_cds)  // the others take any matrix
    return {};
  Communicator& ranks = team.communicator();
  CsrMatrix const& matrix = *rows.matrix;
  MatrixShape shape;
  shape.n_rows = sum_over(ranks, matrix.n_rows);
  shape.nnz = sum_over(ranks, matrix.nnz());
  if (shape.n_rows == 0)
    return {};
  if (!any_of_ranks(ranks, !numbers.empty())) {
    numbers.resize(static_cast<std::size_t>(matrix.n_rows));
    RowMap const follow_each_other(ranks, matrix.n_rows);
    std::iota(numbers.begin(), numbers.end(), follow_each_other.first[follow_each_other.me]);
  }
  std::vector<std::int64_t> const columns = column_numbers(rows, numbers, team);
  // No format takes more diagonals than these, with which it would be twice as large as csr.
  auto const most = static_cast<std::size_t>(4 * CsrMatrix::csr_bytes(shape.n_rows, shape.nnz) / (8 * shape.n_rows) + 4);
  std::set<std::int64_t> diagonals;
  for (std::int64_t row = 0; row < matrix.n_rows && diagonals.size() <= most; ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      diagonals.insert(columns[static_cast<std::size_t>(matrix.columns[e])] - numbers[static_cast<std::size_t>(row)]);
  for (std::int64_t const diagonal : gather_lists(ranks, std::vector<std::int64_t>(diagonals.begin(), diagonals.end())))
    diagonals.insert(diagonal);
  shape.n_diagonals = diagonals.size() <= most ? std::ssize(diagonals) : 0;
  return refusal_of(format, shape, options);
}

std::string refusal_of_block(Format format, CsrMatrix const& block, FormatOptions const& options) {
  if (format != Format::cds && format != Format::half_cds)
    return {};
  MatrixShape shape = shape_of(block);
  shape.symmetric = true;
  return refusal_of(format, shape, options);
}

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
  options.general = config.system.has_value();
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
