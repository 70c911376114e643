#pragma once

#include "gpu/core/array.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/peers/svd_peers.hpp"
#include "gpu/spectral/svd.hpp"
#include "tests/gpu/cases.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <utility>

namespace poisson::testing {

inline DenseMatrix uniform(std::int64_t m, std::int64_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> entry(-0.5, 0.5);
  DenseMatrix a(m, n);
  for (double& value : a.values)
    value = entry(random);
  return a;
}

inline DenseMatrix zeros(std::int64_t m, std::int64_t n) {
  DenseMatrix a(m, n);
  std::fill(a.values.begin(), a.values.end(), 0.0);
  return a;
}

/// Ones on the main diagonal.
inline DenseMatrix identity(std::int64_t m, std::int64_t n) {
  DenseMatrix a = zeros(m, n);
  for (std::int64_t i = 0; i < std::min(m, n); ++i)
    a(i, i) = 1;
  return a;
}

inline DenseMatrix transposed(DenseMatrix const& a) {
  DenseMatrix t(a.n_columns, a.n_rows);
  for (std::int64_t j = 0; j < a.n_columns; ++j)
    for (std::int64_t i = 0; i < a.n_rows; ++i)
      t(j, i) = a(i, j);
  return t;
}

inline DenseMatrix operator*(DenseMatrix const& a, DenseMatrix const& b) {
  auto const host = make_context(Backend::cpu);
  DenseMatrix c = zeros(a.n_rows, b.n_columns);
  if (a.n_columns > 0)
    gemm(*host, false, false, a.n_rows, b.n_columns, a.n_columns, 1, a.values.data(), a.n_rows, b.values.data(), b.n_rows, 0,
         c.values.data(), c.n_rows);
  return c;
}

inline double distance(DenseMatrix const& a, DenseMatrix const& b) {
  EXPECT_EQ(a.n_rows, b.n_rows);
  EXPECT_EQ(a.n_columns, b.n_columns);
  double squares = 0;
  for (std::size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i)
    squares += (a.values[i] - b.values[i]) * (a.values[i] - b.values[i]);
  return std::sqrt(squares);
}

/// ||I - Q^T Q||_F
inline double distance_from_orthogonal(DenseMatrix const& q) {
  return distance(transposed(q) * q, identity(q.n_columns, q.n_columns));
}

inline Array<double> on_backend(Context& context, DenseMatrix const& a) {
  return Array<double>(context, std::span<double const>(a.values));
}

inline DenseMatrix from_backend(Array<double> const& array, std::int64_t m, std::int64_t n) {
  DenseMatrix a(m, n);
  array.download(a.values);
  return a;
}

/// Returns the SVD of LAPACK's dgesdd; U is m x k, V n x k.
inline Svd lapack_of(DenseMatrix const& a, bool vectors = true) {
  Svd result = lapack_svd(a.n_rows < a.n_columns ? transposed(a) : a, vectors);
  if (a.n_rows < a.n_columns)
    std::swap(result.u, result.v);
  return result;
}

inline HostVector<double> lapack_values(DenseMatrix const& a) {
  return lapack_of(a, false).values;
}

inline double largest_difference(HostVector<double> const& a, HostVector<double> const& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

/// ||A - U S V^T||_F
inline double residual(DenseMatrix const& a, Svd const& result) {
  DenseMatrix us = result.u;
  for (std::int64_t j = 0; j < us.n_columns; ++j)
    for (std::int64_t i = 0; i < us.n_rows; ++i)
      us(i, j) *= result.values[static_cast<std::size_t>(j)];
  return distance(us * transposed(result.v), a);
}

}  // namespace poisson::testing
