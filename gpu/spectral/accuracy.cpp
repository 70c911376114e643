#include "gpu/spectral/accuracy.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/qr.hpp"
#include "gpu/kernels/vectors.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace poisson {

namespace {

using Index = std::int64_t;

/// Columns at once: enough for the products to be quick, few enough to need little memory.
constexpr Index block_columns = 512;

/// Adds up squares of matrices in the backend's memory.
class Squares {
public:
  explicit Squares(Context& context) : context_(context), sum_(context, 1) {}
  void add(Index count, double const* x) {
    kernels_for<VectorKernels<double>>(context_).dot(context_, count, x, x, sum_.data());
    double sum = 0;
    sum_.download({&sum, 1});
    total_ += sum;
  }
  [[nodiscard]] double root() const { return std::sqrt(total_); }

private:
  Context& context_;
  Array<double> sum_;
  double total_ = 0;
};

/// |I - X^T X| of an m x k matrix.
double orthogonality(Context& context, Index m, Index k, double const* x) {
  Index const width = std::min(block_columns, k);
  Array<double> product(context, k * width);
  Squares squares(context);
  for (Index first = 0; first < k; first += width) {
    Index const columns = std::min(width, k - first);
    gemm(context, true, false, k, columns, m, 1, x, m, x + first * m, m, 0, product.data(), k);
    kernels_for<QrKernels>(context).add_to_diagonal(context, columns, -1, product.data() + first, k);
    squares.add(k * columns, product.data());
  }
  return squares.root();
}

/// A copy whose columns are multiplied by factors[j] * 2^exponent.
HostVector<double> scaled_columns(DenseMatrix const& x, HostVector<double> const& factors, int exponent) {
  HostVector<double> result(x.values.size());
#pragma omp parallel for schedule(static)
  for (Index j = 0; j < x.n_columns; ++j) {
    double const factor = std::ldexp(factors[static_cast<std::size_t>(j)], exponent);
    for (Index i = 0; i < x.n_rows; ++i)
      result[static_cast<std::size_t>(i + j * x.n_rows)] = factor * x(i, j);
  }
  return result;
}

}  // namespace

SvdAccuracy svd_accuracy(Context& context, DenseMatrix const& a, Svd const& svd) {
  Index const m = a.n_rows, n = a.n_columns, k = std::ssize(svd.values);
  assert(svd.u.n_rows == m && svd.u.n_columns == k && svd.v.n_rows == n && svd.v.n_columns == k);
  bool const all = k == std::min(m, n);
  double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (std::size_t i = 0; i < a.values.size(); ++i)
    largest = std::max(largest, std::abs(a.values[i]));
  int exponent = 0;  // so that no square overflows or vanishes
  std::frexp(largest, &exponent);

  SvdAccuracy result;
  Array<double> u(context, std::span<double const>(svd.u.values)), v(context, std::span<double const>(svd.v.values));
  result.orthogonality_u = orthogonality(context, m, k, u.data());
  result.orthogonality_v = orthogonality(context, n, k, v.data());

  Index const width = std::min(block_columns, n);
  Array<double> block(context, m * width), difference(context, all ? 0 : m * k);
  if (all)  // A - U (V S)^T, column block by column block
    v.upload(scaled_columns(svd.v, svd.values, -exponent));
  else
    difference.upload(scaled_columns(svd.u, svd.values, -exponent));
  Squares norm(context), residual(context);
  HostVector<double> columns(static_cast<std::size_t>(m * width));
  for (Index first = 0; first < n; first += width) {
    Index const count = std::min(width, n - first);
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < m * count; ++i)
      columns[static_cast<std::size_t>(i)] = std::ldexp(a.values[static_cast<std::size_t>(first * m + i)], -exponent);
    context.upload(block.data(), columns.data(), m * count * std::int64_t{sizeof(double)});
    norm.add(m * count, block.data());
    if (all) {
      gemm(context, false, true, m, count, k, 1, u.data(), m, v.data() + first, n, -1, block.data(), m);
      residual.add(m * count, block.data());
    } else
      gemm(context, false, false, m, k, count, -1, block.data(), m, v.data() + first, n, 1, difference.data(), m);
  }
  if (!all)
    residual.add(m * k, difference.data());
  result.residual = std::ldexp(residual.root(), exponent);
  result.residual_relative = norm.root() > 0 ? residual.root() / norm.root() : 0;
  return result;
}

double largest_value_error(std::span<double const> values, std::span<double const> reference) {
  double largest = 0;
  for (std::size_t i = 0; i < std::min(values.size(), reference.size()); ++i)
    largest = std::max(largest, std::abs(values[i] - reference[i]));
  return largest;
}

}  // namespace poisson
