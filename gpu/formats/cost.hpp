#pragma once

#include "gpu/core/context.hpp"
#include "gpu/formats/format.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poisson {

/// What format `auto` is to be chosen for.
struct Forecast {
  double products = 1000;  ///< number of matrix-vector products that will be made
  /// Copy bandwidth of the backend, bytes read plus written per second (measure_copy_bandwidth); 0: a nominal one, which suffices
  /// to choose a format, since bandwidth scales nearly all seconds alike.
  double bandwidth = 0;
};

/// The format that `auto` chooses, and the table of estimates that it chooses from.
struct FormatChoice {
  Format format{};
  Forecast forecast;
  std::vector<FormatEstimate> estimates;  ///< with seconds; in the order of Format
  std::string note{};                     ///< for the user: why it is another one than seconds say
};

/// Predicted seconds of the conversion and of `products` products. Precondition: predict_seconds has filled in the estimate.
[[nodiscard]] double total_seconds(FormatEstimate const& estimate, double products);

/// Fills in product_seconds and conversion_seconds of every format that is not refused. A product takes a launch and its compulsory
/// bytes over the fraction of the copy bandwidth that the format's kernel reaches on that backend; these fractions are measured,
/// and kept in a table in cost.cpp. A conversion takes a number of passes over CSR and the result, and of cod_sell a time per
/// entry, which grows where rows are long and share no pattern; csr and crs_t convert nothing. With options.conversion sequential
/// or host, conversions run on the CPU. Not modelled are the copy of CSR to a device (the same for all formats), the locality of
/// reads of x, and matrices that fit into a cache.
void predict_seconds(std::vector<FormatEstimate>& estimates, MatrixShape const& shape, FormatOptions const& options,
                     Backend backend, double bandwidth);

/// The format with the smallest total_seconds among those not refused; of equal ones the first. Precondition: `estimates` have
/// seconds, and at least one format is not refused.
[[nodiscard]] Format choose_format(std::vector<FormatEstimate> const& estimates, double products);

/// Chooses a format from the shape alone, before anything is assembled. matrix_free is among the formats where the shape allows it.
[[nodiscard]] FormatChoice choose_format(MatrixShape const& shape, FormatOptions const& options, Backend backend,
                                         Forecast const& forecast);
/// Chooses a format from the matrix. Formats that take more than `bytes_free` bytes are refused. cod_sell is estimated only where
/// its lower bound is below the seconds of all others; elsewhere the table has the bound (is_lower_bound).
[[nodiscard]] FormatChoice choose_format(Csr const& matrix, FormatOptions const& options, Backend backend, Forecast const& forecast,
                                         std::int64_t bytes_free = INT64_MAX);

/// A guess of the number of products in a solve: 3 cbrt(n) log10(1 / tolerance) / 12, at most max_iterations. Conjugate gradients
/// without preconditioner on the Laplacian of a uniform box take a number of iterations proportional to the nodes along an edge and
/// to the digits asked for: to 1e-12, 365 at 127^3 unknowns and 735 at 255^3. A method with two products an iteration takes two
/// thirds as many iterations there, so 4/3 as many products.
[[nodiscard]] double expected_products(std::int64_t n_rows, double tolerance, std::int64_t max_iterations,
                                       int products_per_iteration = 1);

}  // namespace poisson
