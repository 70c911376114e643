#include "gpu/formats/cost.hpp"

#include "gpu/core/memory.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/formats/csr.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace poisson {

namespace {

/// What was measured of one format on one backend. Products: the share of the copy bandwidth, from `share` to `best_share`; what
/// lies between is told by share_of. `scattered` stands for best_share where columns of neighbouring rows do not follow each other.
/// Conversions: bytes of CSR and of the result are moved `passes` times; and for every entry whose column a dictionary saves
/// `regular` ns of one thread (of the whole device), for every other one `irregular` ns times the square root of the mean row
/// length. `launch` seconds come on top. Diagonals that are not those of a box cost `per_diagonal` seconds each: their loop is not
/// unrolled, and small matrices wait for it.
struct Tuning {
  Format format;
  double share, best_share, scattered;
  double passes, regular, irregular;
  double launch;
  double per_diagonal;
};

struct BackendTuning {
  double bandwidth;       ///< nominal, bytes per second
  double product_launch;  ///< seconds
  std::array<Tuning, n_stored_formats + 1> formats;
};

/// One H200, copy 4.25 TB/s. Products: medians on the 27-point box of 256^3 nodes, and on refined balls and a shell (Q1, Q2, Q3)
/// with 27 to 123 entries a row; conversions there, 50 to 450 million entries. matrix_free: elements of order 2 to 4 on lattices.
/// Small matrices (the Matrix Market files of docs/performance.md) tell the launches: CoD-SELL's search takes milliseconds there.
constexpr BackendTuning cuda_tuning{4.0e12,
                                    4e-6,
                                    {{{Format::csr, 0.9, 0.93, 0.93, 0, 0, 0, 0, 0},
                                      {Format::crs_t, 0.9, 0.93, 0.93, 0, 0, 0, 0, 0},
                                      {Format::sell_c_sigma, 0.98, 0.98, 0.98, 2.5, 0, 0, 5e-5, 0},
                                      {Format::cod_sell, 0.88, 0.99, 0.99, 0, 0.08, 0.1, 2e-3, 0},
                                      {Format::cds, 1.02, 1.02, 1.02, 2.8, 0, 0, 1.2e-4, 0.07e-6},
                                      {Format::half_cds, 0.97, 0.97, 0.97, 2.8, 0, 0, 1.2e-4, 0.16e-6},
                                      {Format::matrix_free, 0.65, 0.65, 0.65, 0, 0, 0, 0, 0}}}};

/// Two cores of an Intel Xeon (copy 23 GB/s; an AMD EPYC with copy 45 GB/s is alike in these shares, but for csr), where caches
/// serve matrices of up to 64 MiB faster than memory does: medians on boxes of 64^3 and 128^3 nodes, the band, the random matrix
/// and a refined ball, and on Matrix Market files: memplus, bcsstk15, bcsstk16, bodyy5, s1rmq4m1, epb0, cavity14, sherman3,
/// jnlbrng1. matrix_free is bound by arithmetic there.
constexpr BackendTuning cpu_tuning{4.0e10,
                                   2e-6,
                                   {{{Format::csr, 1.0, 1.5, 1.5, 0, 0, 0, 0, 0},
                                     {Format::crs_t, 1.0, 1.5, 1.5, 0, 0, 0, 0, 0},
                                     {Format::sell_c_sigma, 0.97, 1.6, 0.9, 1.5, 0, 0, 1e-5, 0},
                                     {Format::cod_sell, 0.92, 1.6, 0.95, 0, 5, 80, 1e-5, 0},
                                     {Format::cds, 0.92, 2.1, 2.1, 6, 0, 0, 1e-5, 0},
                                     {Format::half_cds, 0.95, 1.5, 1.1, 2.5, 0, 0, 1e-5, 0},
                                     {Format::matrix_free, 0.22, 0.22, 0.22, 0, 0, 0, 0, 0}}}};

/// Entries of a row whose time in csr on the host is that of ending one row and beginning the next.
constexpr double csr_row_overhead = 5;

BackendTuning const& tuning_of(Backend backend) {
  return backend == Backend::cuda ? cuda_tuning : cpu_tuning;
}

Tuning const& tuning_of(Backend backend, Format format) {
  auto const& formats = tuning_of(backend).formats;
  auto const* const found =
      std::find_if(std::begin(formats), std::end(formats), [&](Tuning const& t) { return t.format == format; });
  assert(found != std::end(formats));
  return *found;
}

/// Share of the copy bandwidth that a product reaches. On the host every format gains where a cache holds it (nominally 32 MiB: all
/// below half of it, none above twice). On a device csr gains with rows of 64 to 128 entries, and cod_sell with columns in
/// dictionaries.
double share_of(Tuning const& tuning, FormatEstimate const& estimate, Backend backend, std::int64_t n_diagonals,
                double mean_length) {
  double const length = std::max(1.0, mean_length);
  auto const between = [&](double best, double grade) { return tuning.share + grade * (best - tuning.share); };
  if (backend == Backend::cuda)
    return between(tuning.best_share,
                   estimate.format == Format::cod_sell ? estimate.shared_columns : std::clamp(mean_length / 64 - 1, 0.0, 1.0));
  bool const by_diagonals = n_diagonals > 0 && static_cast<double>(n_diagonals) <= 2 * mean_length;
  double const cached = std::clamp((64.0 - static_cast<double>(estimate.bytes_per_product) / (1 << 20)) / (64.0 - 16.0), 0.0, 1.0);
  double const share = between(by_diagonals ? tuning.best_share : tuning.scattered, cached);
  bool const by_rows = estimate.format == Format::csr || estimate.format == Format::crs_t;
  // Memory hides the ends of rows, caches do not.
  return by_rows ? share * (1 - cached + cached * length / (length + csr_row_overhead)) : share;
}

void refuse_beyond(FormatEstimate& estimate, std::int64_t bytes_free) {
  if (estimate.refusal.empty() && estimate.bytes > bytes_free)
    estimate.refusal = std::string(name_of(estimate.format)) + " needs " + (estimate.is_lower_bound ? "at least " : "") +
                       format_bytes(estimate.bytes) + " of device memory, and " + format_bytes(bytes_free) + " are free";
}

}  // namespace

double total_seconds(FormatEstimate const& estimate, double products) {
  return estimate.conversion_seconds + products * estimate.product_seconds;
}

void predict_seconds(std::vector<FormatEstimate>& estimates, MatrixShape const& shape, FormatOptions const& options,
                     Backend backend, double bandwidth) {
  bool const on_host = options.conversion == Conversion::sequential || options.conversion == Conversion::host;
  Backend const converter = on_host ? Backend::cpu : backend;
  double const given = bandwidth > 0 ? bandwidth : tuning_of(backend).bandwidth;
  double const conversion_bandwidth = converter == backend ? given : tuning_of(converter).bandwidth;
  int const threads = converter == Backend::cuda || options.conversion == Conversion::sequential ? 1 : thread_count();
  double const nnz = static_cast<double>(shape.nnz);
  double const mean_length = shape.n_rows > 0 ? nnz / static_cast<double>(shape.n_rows) : 0;
  auto const csr_bytes = static_cast<double>(CsrMatrix::csr_bytes(shape.n_rows, shape.nnz));
  for (FormatEstimate& estimate : estimates) {
    if (!estimate.refusal.empty())
      continue;
    Tuning const& product = tuning_of(backend, estimate.format);
    Tuning const& conversion = tuning_of(converter, estimate.format);
    bool const on_lattices = shape.n_lattices > 0 && estimate.format == Format::half_cds;
    std::int64_t const n_diagonals = on_lattices ? 27 : shape.n_diagonals;
    double const share = share_of(product, estimate, backend, n_diagonals, mean_length);
    double const stored_diagonals =
        n_diagonals == 27 ? 0 : (estimate.format == Format::half_cds ? 0.5 : 1.0) * static_cast<double>(n_diagonals);
    estimate.product_seconds = tuning_of(backend).product_launch + product.per_diagonal * stored_diagonals +
                               static_cast<double>(estimate.bytes_per_product) / (share * given);
    estimate.conversion_seconds = 0;
    if (estimate.format == Format::csr || estimate.format == Format::crs_t || estimate.format == Format::matrix_free ||
        on_lattices)  // assembled as it is stored
      continue;
    double const search = conversion.regular * estimate.shared_columns +
                          conversion.irregular * std::sqrt(mean_length) * (1 - estimate.shared_columns);
    estimate.conversion_seconds = conversion.launch +
                                  conversion.passes * (csr_bytes + static_cast<double>(estimate.bytes)) / conversion_bandwidth +
                                  1e-9 * search * nnz / threads;
  }
}

Format choose_format(std::vector<FormatEstimate> const& estimates, double products) {
  FormatEstimate const* best = nullptr;
  for (FormatEstimate const& estimate : estimates)
    if (estimate.refusal.empty() && (best == nullptr || total_seconds(estimate, products) < total_seconds(*best, products)))
      best = &estimate;
  assert(best != nullptr);
  return best->format;
}

namespace {

/// Tensors at Gauss points, the diagonal, and at most twice 4 bytes for every node of every cell in tables; a product reads the
/// tensors, writes and reads element vectors, and reads x and writes y (LatticeOperatorKernels). Of a stencil the rows of faces, of
/// labels one byte each.
FormatEstimate estimate_matrix_free(MatrixShape const& shape) {
  FormatEstimate estimate;
  estimate.format = Format::matrix_free;
  if (shape.stencil_faces > 0 || shape.label_cells > 0) {
    estimate.bytes = 27 * 8 * shape.stencil_faces + shape.label_cells;
    estimate.bytes_per_product = estimate.bytes + 16 * shape.n_rows;
    return estimate;
  }
  std::int64_t const points = shape.n_cells * (shape.order + 1) * (shape.order + 1) * (shape.order + 1);
  estimate.bytes = (48 + 8) * points + 8 * shape.n_rows;
  estimate.bytes_per_product = (48 + 16) * points + 16 * shape.n_rows;
  return estimate;
}

}  // namespace

FormatChoice choose_format(MatrixShape const& shape, FormatOptions const& options, Backend backend, Forecast const& forecast) {
  FormatChoice choice{{}, forecast, estimate_formats(shape, options)};
  if (shape.n_cells > 0)
    choice.estimates.push_back(estimate_matrix_free(shape));
  predict_seconds(choice.estimates, shape, options, backend, forecast.bandwidth);
  choice.format = choose_format(choice.estimates, forecast.products);
  return choice;
}

FormatChoice choose_format(Csr const& matrix, FormatOptions const& options, Backend backend, Forecast const& forecast,
                           std::int64_t bytes_free) {
  MatrixShape const shape = shape_of(matrix);
  FormatChoice choice{Format::csr, forecast, estimate_formats_quickly(matrix, shape, options)};
  auto const predict = [&] {
    for (FormatEstimate& estimate : choice.estimates)
      refuse_beyond(estimate, bytes_free);
    predict_seconds(choice.estimates, shape, options, backend, forecast.bandwidth);
    // When nothing fits, csr stays: its conversion says so with the figures.
    if (std::any_of(choice.estimates.begin(), choice.estimates.end(), [](auto const& e) { return e.refusal.empty(); }))
      choice.format = choose_format(choice.estimates, forecast.products);
  };
  predict();
  for (FormatEstimate& estimate : choice.estimates)
    if (estimate.is_lower_bound && estimate.format == choice.format) {
      estimate = estimate_format(estimate.format, matrix, shape, options);
      predict();
    }
  return choice;
}

double expected_products(std::int64_t n_rows, double tolerance, std::int64_t max_iterations, int products_per_iteration) {
  double const share = products_per_iteration == 1 ? 1 : 2.0 / 3;
  double const iterations = share * 3 * std::cbrt(static_cast<double>(n_rows)) * -std::log10(tolerance) / 12;
  return products_per_iteration * std::min(std::max(1.0, std::round(iterations)), static_cast<double>(max_iterations));
}

}  // namespace poisson
