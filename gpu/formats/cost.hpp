#pragma once

#include "gpu/core/context.hpp"
#include "gpu/formats/format.hpp"

#include <cstdint>
#include <vector>

namespace poisson {

/// What `auto` looks at beside the matrix.
struct Forecast {
  double products = 1000;  ///< that will be made with the matrix
  /// Bytes per second, read plus written, of a large copy where the products will be made (measure_copy_bandwidth); 0: a nominal
  /// one, which suffices where only the order of the formats counts: bandwidth scales nearly all seconds alike.
  double bandwidth = 0;
};

/// What `auto` takes, and the table that it decided from.
struct FormatChoice {
  Format format{};
  Forecast forecast;
  std::vector<FormatEstimate> estimates;  ///< with seconds; in the order of Format
};

/// Conversion and `products` products.
[[nodiscard]] double total_seconds(FormatEstimate const& estimate, double products);

/// Fills product_seconds and conversion_seconds of every estimate that does not refuse: a launch, and bytes over the share of the
/// copy bandwidth that the format's product reaches on that backend; conversions as passes over CSR and the result, and cod_sell's
/// by entry, more where rows are long and share no pattern. csr and crs_t convert nothing. Seconds of the copy to a
/// device are not counted: CSR takes them in every case. The shares are measured ones, kept in a table in cost.cpp; they do not
/// know where a matrix reads x, nor that a matrix may fit into a cache. With options.conversion sequential or host conversions are
/// those of the CPU backend.
void predict_seconds(std::vector<FormatEstimate>& estimates, MatrixShape const& shape, FormatOptions const& options,
                     Backend backend, double bandwidth);

/// The admissible format with the smallest total_seconds; of equal ones the first. Precondition: `estimates` have seconds, and one
/// of them does not refuse.
[[nodiscard]] Format choose_format(std::vector<FormatEstimate> const& estimates, double products);

/// From the shape alone, before anything is assembled.
[[nodiscard]] FormatChoice choose_format(MatrixShape const& shape, FormatOptions const& options, Backend backend,
                                         Forecast const& forecast);
/// From the matrix. What takes more than `bytes_free` is refused. cod_sell is estimated only where its lower bound is below all
/// others' seconds; elsewhere the table has the bound (at_least).
[[nodiscard]] FormatChoice choose_format(Csr const& matrix, FormatOptions const& options, Backend backend, Forecast const& forecast,
                                         std::int64_t bytes_free = INT64_MAX);

/// Products of a solve that has not begun: 3 cbrt(n) log10(1/tolerance)/12, at most max_iterations. Conjugate gradients on the
/// Laplacian of a uniform box take a number of iterations proportional to the nodes along an edge and to the digits asked for; to
/// 1e-12 it was 365 at 127^3 unknowns and 735 at 255^3. A method of two products an iteration takes two thirds as many iterations
/// there. A good preconditioner takes fewer.
[[nodiscard]] double expected_products(std::int64_t n_rows, double tolerance, std::int64_t max_iterations,
                                       int products_per_iteration = 1);

}  // namespace poisson
