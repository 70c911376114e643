#include "gpu/preconditioners/dense_inverse.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace poisson {

namespace {

/// Columns that are eliminated at once: so many rows of coarse levels stay in a processor's cache while all others take their
/// multiples.
constexpr std::int64_t block_size = 32;
/// An elimination with fewer rows runs on one thread: threads would wait for each other longer than they work.
constexpr std::int64_t fewest_rows_in_parallel = 100;

/// A pivot that is smaller than this beside the largest entry of its row is what rounding has left of 0: the matrix is singular.
constexpr double rounding_of_pivot = 8 * std::numeric_limits<double>::epsilon();

/// `size`: the largest absolute value in the row of the matrix.
bool is_bad_pivot(double pivot, double size, bool positive) {
  return !((positive ? pivot : std::abs(pivot)) > rounding_of_pivot * size);
}

/// Inverts `d`, which is b x b, in place. Returns false if a pivot is bad.
bool invert_block(double* d, std::int64_t b, double const* sizes, bool positive) {
  for (std::int64_t p = 0; p < b; ++p) {
    double const pivot = d[p * b + p];
    if (is_bad_pivot(pivot, sizes[p], positive))
      return false;
    d[p * b + p] = 1;
    for (std::int64_t j = 0; j < b; ++j)
      d[p * b + j] /= pivot;
    for (std::int64_t i = 0; i < b; ++i) {
      double const factor = d[i * b + p];
      if (i == p)
        continue;
      d[i * b + p] = 0;
      for (std::int64_t j = 0; j < b; ++j)
        d[i * b + j] -= factor * d[p * b + j];
    }
  }
  return true;
}

/// Rows that take multiples at once, and entries of each that stay in registers meanwhile.
constexpr std::int64_t rows_at_once = 4, entries_at_once = 8;

/// R rows of m entries: row_r -= sum_k factors[r][k] multiplied[k], k from 0 to b - 1.
template <std::int64_t R>
void subtract_multiples(double* first, std::array<double, rows_at_once * block_size> const& factors, double const* multiplied,
                        std::int64_t b, std::int64_t m) {
  std::int64_t j = 0;
  for (; j + entries_at_once <= m; j += entries_at_once) {
    double sums[R][entries_at_once];
    for (std::int64_t r = 0; r < R; ++r)
      for (std::int64_t e = 0; e < entries_at_once; ++e)
        sums[r][e] = first[r * m + j + e];
    for (std::int64_t k = 0; k < b; ++k) {
      double const* const row = multiplied + k * m + j;
      for (std::int64_t r = 0; r < R; ++r) {
        double const factor = factors[static_cast<std::size_t>(r * block_size + k)];
#pragma omp simd
        for (std::int64_t e = 0; e < entries_at_once; ++e)
          sums[r][e] -= factor * row[e];
      }
    }
    for (std::int64_t r = 0; r < R; ++r)
      for (std::int64_t e = 0; e < entries_at_once; ++e)
        first[r * m + j + e] = sums[r][e];
  }
  for (; j < m; ++j)
    for (std::int64_t r = 0; r < R; ++r)
      for (std::int64_t k = 0; k < b; ++k)
        first[r * m + j] -= factors[static_cast<std::size_t>(r * block_size + k)] * multiplied[k * m + j];
}

/// Inverts `c`, which is m x m, in place. Returns false if a pivot is bad.
bool invert(std::vector<double>& c, std::int64_t m, bool positive) {
  std::vector<double> rows(static_cast<std::size_t>(block_size * m));
  std::array<double, block_size * block_size> d{};
  std::vector<double> sizes(static_cast<std::size_t>(m), 0.0);  // of the entries of rows, before anything is subtracted from them
  for (std::size_t e = 0; e < c.size(); ++e)
    sizes[e / static_cast<std::size_t>(m)] = std::max(sizes[e / static_cast<std::size_t>(m)], std::abs(c[e]));
  for (std::int64_t p = 0; p < m; p += block_size) {
    std::int64_t const b = std::min(block_size, m - p);
    for (std::int64_t k = 0; k < b; ++k)
      std::copy_n(c.data() + (p + k) * m + p, b, d.data() + k * b);
    if (!invert_block(d.data(), b, sizes.data() + p, positive))
      return false;
    // The block's rows, times its inverse.
    std::fill(rows.begin(), rows.end(), 0.0);
#pragma omp parallel for schedule(static) if (m >= fewest_rows_in_parallel)
    for (std::int64_t k = 0; k < b; ++k) {
      std::array<double, rows_at_once * block_size> factors{};
      for (std::int64_t l = 0; l < b; ++l)
        factors[static_cast<std::size_t>(l)] = -d[static_cast<std::size_t>(k * b + l)];
      subtract_multiples<1>(rows.data() + k * m, factors, c.data() + p * m, b, m);
      std::copy_n(d.data() + k * b, b, rows.data() + k * m + p);
    }
    std::int64_t const groups = (m + rows_at_once - 1) / rows_at_once;
#pragma omp parallel for schedule(static) if (m >= fewest_rows_in_parallel)
    for (std::int64_t group = 0; group < groups; ++group) {
      std::int64_t const begin = group * rows_at_once, end = std::min(m, begin + rows_at_once);
      double* const first = c.data() + begin * m;
      if (begin >= p && begin < p + b) {  // of the block: its size is a multiple of a group's, but for the last one
        std::copy_n(rows.data() + (begin - p) * m, (end - begin) * m, first);
        continue;
      }
      std::array<double, rows_at_once * block_size> factors{};
      for (std::int64_t i = begin; i < end; ++i) {
        double* const of_block = c.data() + i * m + p;
        std::copy_n(of_block, b, factors.data() + (i - begin) * block_size);
        std::fill_n(of_block, b, 0.0);
      }
      if (end - begin == rows_at_once)
        subtract_multiples<rows_at_once>(first, factors, rows.data(), b, m);
      else
        for (std::int64_t i = begin; i < end; ++i) {
          std::copy_n(factors.data() + (i - begin) * block_size, block_size, factors.data());
          subtract_multiples<1>(c.data() + i * m, factors, rows.data(), b, m);
        }
    }
  }
  return true;
}

}  // namespace

std::vector<double> dense_inverse(std::vector<double> const& a, std::int64_t n, bool constants, bool positive) {
  std::vector<double> result(a.size(), 0.0);
  std::vector<std::uint8_t> coupled(static_cast<std::size_t>(n), 0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      if (i != j && a[static_cast<std::size_t>(i * n + j)] != 0)
        coupled[static_cast<std::size_t>(i)] = coupled[static_cast<std::size_t>(j)] = 1;
  std::vector<std::int64_t> unknowns;
  for (std::int64_t i = 0; i < n; ++i) {
    if (coupled[static_cast<std::size_t>(i)] != 0) {
      unknowns.push_back(i);
      continue;
    }
    double const pivot = a[static_cast<std::size_t>(i * n + i)];
    if (is_bad_pivot(pivot, 0, positive))
      return {};
    result[static_cast<std::size_t>(i * n + i)] = 1 / pivot;
  }
  auto const m = std::ssize(unknowns);
  std::vector<double> c(static_cast<std::size_t>(m * m));
  auto const at = [m](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * m + j); };
  double share = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < m; ++j)
      c[at(i, j)] = a[static_cast<std::size_t>(unknowns[i] * n + unknowns[j])];
    share += c[at(i, i)];
  }
  auto const count = static_cast<double>(m);
  share /= count * count;
  if (constants)  // A + s 1 1^T has the same inverse on that complement; s is of the size of A
    for (double& entry : c)
      entry += share;
  if (!invert(c, m, positive))
    return {};
  if (constants)  // the part of constants goes
    for (double& entry : c)
      entry -= 1 / (share * count * count);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < m; ++j)
      result[static_cast<std::size_t>(unknowns[i] * n + unknowns[j])] = c[at(i, j)];
  return result;
}

}  // namespace poisson
