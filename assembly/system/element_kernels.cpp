#include "assembly/system/element_kernels.hpp"

#include <algorithm>
#include <cstddef>

namespace poisson::assembly {

namespace {

constexpr int row_block = 4, column_block = 8;
/// Points handled at a time: keeps D grad phi in the cache at high orders.
constexpr int point_block = 16;

using Tile = double[row_block][column_block];

/// tile += sum over rows k of a[k][0..4) (x) b[k][0..8)
inline void multiply(int rows, std::ptrdiff_t stride, double const* a, double const* b, Tile& tile) {
  for (int k = 0; k < rows; ++k, a += stride, b += stride)
    for (int i = 0; i < row_block; ++i)
#pragma omp simd
      for (int j = 0; j < column_block; ++j)
        tile[i][j] += a[i] * b[j];
}

}  // namespace

StiffnessKernel::StiffnessKernel(int n_points, int n_functions, std::vector<double> const& gradients)
    : n_points_(n_points),
      n_(n_functions),
      padded_((n_functions + column_block - 1) / column_block * column_block),
      gradients_(static_cast<std::size_t>(3) * n_points * padded_, 0.0) {
  for (int row = 0; row < 3 * n_points; ++row)
    std::copy_n(gradients.data() + static_cast<std::ptrdiff_t>(row) * n_, n_,
                gradients_.data() + static_cast<std::ptrdiff_t>(row) * padded_);
}

void StiffnessKernel::compute(double const* d, double* k, std::vector<double>& work) const {
  std::ptrdiff_t const stride = padded_, n = n_;
  work.resize(static_cast<std::size_t>(3) * point_block * padded_);
  for (int first = 0; first < n_points_; first += point_block) {
    int const count = std::min(point_block, n_points_ - first);
    double const* const g = gradients_.data() + 3 * first * stride;
    for (int q = 0; q < count; ++q) {
      double const* const t = d + 6 * (first + q);
      double const xx = t[0], yy = t[1], zz = t[2], xy = t[3], xz = t[4], yz = t[5];
      double const* const gx = g + 3 * q * stride;
      double const* const gy = gx + stride;
      double const* const gz = gy + stride;
      double* const out = work.data() + 3 * q * stride;
#pragma omp simd
      for (std::ptrdiff_t j = 0; j < stride; ++j) {
        out[j] = xx * gx[j] + xy * gy[j] + xz * gz[j];
        out[j + stride] = xy * gx[j] + yy * gy[j] + yz * gz[j];
        out[j + 2 * stride] = xz * gx[j] + yz * gy[j] + zz * gz[j];
      }
    }
    // The upper triangle by tiles; those that reach over the edge of the matrix end in the padding.
    for (std::ptrdiff_t i = 0; i < n; i += row_block)
      for (std::ptrdiff_t j = i / column_block * column_block; j < n; j += column_block) {
        Tile tile{};
        multiply(3 * count, stride, g + i, work.data() + j, tile);
        std::ptrdiff_t const i_end = std::min<std::ptrdiff_t>(row_block, n - i),
                             j_end = std::min<std::ptrdiff_t>(column_block, n - j);
        for (std::ptrdiff_t r = 0; r < i_end; ++r)
          for (std::ptrdiff_t c = 0; c < j_end; ++c) {
            double& entry = k[(i + r) * n + j + c];
            entry = first == 0 ? tile[r][c] : entry + tile[r][c];
          }
      }
  }
  for (std::ptrdiff_t i = 1; i < n; ++i)
    for (std::ptrdiff_t j = 0; j < i; ++j)
      k[i * n + j] = k[j * n + i];
}

std::vector<double> StiffnessKernel::combination_basis(std::vector<double> const& weights) const {
  std::size_t const size = static_cast<std::size_t>(n_) * n_;
  std::vector<double> basis(6 * size), d(static_cast<std::size_t>(6) * n_points_), work;
  for (std::size_t c = 0; c < 6; ++c) {
    std::fill(d.begin(), d.end(), 0.0);
    for (int q = 0; q < n_points_; ++q)
      d[static_cast<std::size_t>(6) * q + c] = weights[q];
    compute(d.data(), basis.data() + c * size, work);
  }
  return basis;
}

void combine(double const* d, double const* basis, std::size_t n, double* out) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i)
    out[i] = d[0] * basis[i] + d[1] * basis[n + i] + d[2] * basis[2 * n + i] + d[3] * basis[3 * n + i] + d[4] * basis[4 * n + i] +
             d[5] * basis[5 * n + i];
}

}  // namespace poisson::assembly
