#include "gpu/formats/sell_c_sigma.hpp"

#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <parallel/algorithm>

namespace poisson {

namespace {

struct Layout {
  HostVector<std::int64_t> slice_ptr;
  HostVector<std::int32_t> rows;  ///< empty when all rows are in place
};

std::int64_t slices_of(std::int64_t n_rows, std::int64_t c) {
  return (n_rows + c - 1) / c;
}

std::int64_t length_of(CsrMatrix const& csr, std::int64_t row) {
  return csr.row_ptr[row + 1] - csr.row_ptr[row];
}

HostVector<std::int32_t> sorted_rows(CsrMatrix const& csr, std::int64_t sigma) {
  std::int64_t const n = csr.n_rows, window = sigma == 0 ? n : std::min(sigma, n);
  HostVector<std::int32_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  auto const longer = [&](std::int32_t a, std::int32_t b) { return length_of(csr, a) > length_of(csr, b); };
  if (window == n) {
    __gnu_parallel::stable_sort(rows.begin(), rows.end(), longer);
    return rows;
  }
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t begin = 0; begin < n; begin += window)
    std::stable_sort(rows.begin() + begin, rows.begin() + std::min(n, begin + window), longer);
  return rows;
}

Layout layout_of(CsrMatrix const& csr, FormatOptions const& options) {
  Layout layout;
  if (options.sigma != 1)
    layout.rows = sorted_rows(csr, options.sigma);
  std::int64_t const c = options.slice_size, slices = slices_of(csr.n_rows, c);
  layout.slice_ptr.resize(static_cast<std::size_t>(slices) + 1);
  layout.slice_ptr[0] = 0;
#pragma omp parallel for schedule(static)
  for (std::int64_t slice = 0; slice < slices; ++slice) {
    std::int64_t width = 0;
    for (std::int64_t place = slice * c; place < std::min(csr.n_rows, (slice + 1) * c); ++place)
      width = std::max(width, length_of(csr, layout.rows.empty() ? place : layout.rows[place]));
    layout.slice_ptr[slice + 1] = c * width;
  }
  std::partial_sum(layout.slice_ptr.begin(), layout.slice_ptr.end(), layout.slice_ptr.begin());
  return layout;
}

/// Writes every place once, padding included.
void fill(CsrMatrix const& csr, Layout const& layout, std::int64_t c, std::int32_t* columns, double* values) {
  std::int64_t const slices = slices_of(csr.n_rows, c);
#pragma omp parallel for schedule(static)
  for (std::int64_t slice = 0; slice < slices; ++slice)
    for (std::int64_t lane = 0; lane < c; ++lane) {
      std::int64_t const place = slice * c + lane;
      std::int64_t to = layout.slice_ptr[slice] + lane;
      if (place < csr.n_rows) {
        std::int64_t const row = layout.rows.empty() ? place : layout.rows[place];
        for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1]; ++e, to += c) {
          columns[to] = csr.columns[e];
          values[to] = csr.values[e];
        }
      }
      for (; to < layout.slice_ptr[slice + 1]; to += c) {
        columns[to] = -1;
        values[to] = 0;
      }
    }
}

FormatEstimate estimate_of(std::int64_t n_rows, std::int64_t n_columns, std::int64_t nnz, std::int64_t stored,
                           FormatOptions const& options) {
  FormatEstimate result;
  result.format = Format::sell_c_sigma;
  result.bytes = 12 * stored + 8 * (slices_of(n_rows, options.slice_size) + 1) + (options.sigma == 1 ? 0 : 4 * n_rows);
  result.bytes_per_product = result.bytes + 8 * (n_rows + n_columns);
  if (nnz > 0)
    result.padding_ratio = static_cast<double>(stored) / static_cast<double>(nnz);
  return result;
}

}  // namespace

FormatEstimate SellCSigma::estimate(MatrixShape const& shape, FormatOptions const& options) {
  std::int64_t const length = shape.n_rows > 0 ? (shape.nnz + shape.n_rows - 1) / shape.n_rows : 0;
  std::int64_t const places = slices_of(shape.n_rows, options.slice_size) * options.slice_size;
  return estimate_of(shape.n_rows, shape.n_rows, shape.nnz, places * length, options);
}

FormatEstimate SellCSigma::estimate_exact(CsrMatrix const& matrix, FormatOptions const& options) {
  return estimate_of(matrix.n_rows, matrix.n_columns, matrix.nnz(), layout_of(matrix, options).slice_ptr.back(), options);
}

std::unique_ptr<Matrix> SellCSigma::make(std::shared_ptr<CsrMatrix const> csr, Context& context, FormatOptions const& options) {
  return std::unique_ptr<Matrix>(new SellCSigma(*csr, context, options));
}

SellCSigma::SellCSigma(CsrMatrix const& csr, Context& context, FormatOptions const& options)
    : context_(context), kernels_(kernels_for<SellKernels>(context)), n_columns_(csr.n_columns) {
  auto const start = std::chrono::steady_clock::now();
  Layout const layout = layout_of(csr, options);
  std::int64_t const stored = layout.slice_ptr.back();
  auto converted = start;
  if (context.backend() == Backend::cpu) {
    columns_ = Array<std::int32_t>(context, stored);
    values_ = Array<double>(context, stored);
    fill(csr, layout, options.slice_size, columns_.data(), values_.data());
    converted = std::chrono::steady_clock::now();
  } else {
    HostVector<std::int32_t> columns(static_cast<std::size_t>(stored));
    HostVector<double> values(static_cast<std::size_t>(stored));
    fill(csr, layout, options.slice_size, columns.data(), values.data());
    converted = std::chrono::steady_clock::now();
    columns_ = Array<std::int32_t>(context, columns);
    values_ = Array<double>(context, values);
  }
  slice_ptr_ = Array<std::int64_t>(context, layout.slice_ptr);
  if (options.sigma != 1)
    rows_ = Array<std::int32_t>(context, layout.rows);
  context.synchronize();
  convert_seconds = std::chrono::duration<double>(converted - start).count();
  if (context.backend() != Backend::cpu)
    transfer_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - converted).count();
  if (csr.nnz() > 0)
    padding_ratio_ = static_cast<double>(stored) / static_cast<double>(csr.nnz());
  view_ = {csr.n_rows,         slices_of(csr.n_rows, options.slice_size),
           options.slice_size, slice_ptr_.data(),
           rows_.data(),       columns_.data(),
           values_.data()};
}

void SellCSigma::product(double alpha, double const* x, double beta, double* y) const {
  kernels_.product(context_, view_, alpha, x, beta, y);
}

void SellCSigma::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  kernels_.product_dot(context_, view_, x, y, dot, stop);
}

void SellCSigma::diagonal(double* d) const {
  kernels_.diagonal(context_, view_, d);
}

}  // namespace poisson
