#pragma once

#include "gpu/core/csr_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace poisson::testing {

using Entries = std::map<std::pair<std::int64_t, std::int64_t>, double>;

inline std::shared_ptr<CsrMatrix> to_csr(std::int64_t n_rows, std::int64_t n_columns, Entries const& entries) {
  auto matrix = std::make_shared<CsrMatrix>();
  matrix->n_rows = n_rows;
  matrix->n_columns = n_columns;
  matrix->row_ptr.assign(static_cast<std::size_t>(n_rows) + 1, 0);
  for (auto const& [place, value] : entries) {
    ++matrix->row_ptr[static_cast<std::size_t>(place.first) + 1];
    matrix->columns.push_back(static_cast<std::int32_t>(place.second));
    matrix->values.push_back(value);
  }
  for (std::size_t row = 0; row < static_cast<std::size_t>(n_rows); ++row)
    matrix->row_ptr[row + 1] += matrix->row_ptr[row];
  return matrix;
}

inline std::shared_ptr<CsrMatrix> to_csr(std::int64_t n, Entries const& entries) {
  return to_csr(n, n, entries);
}

/// Random values on the main diagonal and on the given others, both sides alike; definite when `dominant`.
inline std::shared_ptr<CsrMatrix> banded(std::int64_t n, std::vector<std::int64_t> const& offsets, unsigned seed,
                                         bool dominant = false) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = dominant ? 2.0 * static_cast<double>(offsets.size()) + 1 + uniform(random) : uniform(random);
    for (std::int64_t const o : offsets)
      if (i >= o)
        entries[{i, i - o}] = entries[{i - o, i}] = uniform(random);
  }
  return to_csr(n, entries);
}

/// A 27-point stencil on nx x ny x nz points with the Q1 stiffness matrix's weights: zero Dirichlet values around (definite), or
/// natural boundary conditions (row sums zero, singular). `noise` scatters the couplings and keeps the row sums of the latter.
inline std::shared_ptr<CsrMatrix> box27(int nx, int ny, int nz, bool natural = false, double noise = 0, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-noise, noise);
  double const weight[] = {8.0 / 3, -1e-3, -1.0 / 6, -1.0 / 12};
  Entries entries;
  auto const index = [&](int x, int y, int z) { return (std::int64_t{z} * ny + y) * nx + x; };
  for (int z = 0; z < nz; ++z)
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x)
        for (int dz = -1; dz <= 1; ++dz)
          for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
              int const x2 = x + dx, y2 = y + dy, z2 = z + dz;
              if (x2 < 0 || y2 < 0 || z2 < 0 || x2 >= nx || y2 >= ny || z2 >= nz)
                continue;
              std::int64_t const i = index(x, y, z), j = index(x2, y2, z2);
              if (j < i)
                entries[{i, j}] = entries[{j, i}] = weight[std::abs(dx) + std::abs(dy) + std::abs(dz)] * (1 + uniform(random));
              else if (i == j && !natural)
                entries[{i, i}] = weight[0] + 6e-3;
            }
  if (natural)
    for (auto const& [place, value] : Entries(entries))
      entries[{place.first, place.first}] -= value;
  return to_csr(std::int64_t{nx} * ny * nz, entries);
}

/// A symmetric matrix on the 27-point stencil of nx x ny x nz points with couplings that differ everywhere, built fast enough for a
/// million rows; the first `n_rows` of them, or all.
inline std::shared_ptr<CsrMatrix> large_box27(std::int64_t nx, std::int64_t ny, std::int64_t nz, std::int64_t n_rows = 0) {
  auto csr = std::make_shared<CsrMatrix>();
  csr->n_rows = csr->n_columns = n_rows > 0 ? n_rows : nx * ny * nz;
  csr->row_ptr.push_back(0);
  for (std::int64_t i = 0; i < csr->n_rows; ++i) {
    std::int64_t const x = i % nx, y = i / nx % ny, z = i / nx / ny;
    for (std::int64_t z2 = std::max<std::int64_t>(z - 1, 0); z2 <= std::min(z + 1, nz - 1); ++z2)
      for (std::int64_t y2 = std::max<std::int64_t>(y - 1, 0); y2 <= std::min(y + 1, ny - 1); ++y2)
        for (std::int64_t x2 = std::max<std::int64_t>(x - 1, 0); x2 <= std::min(x + 1, nx - 1); ++x2) {
          std::int64_t const j = (z2 * ny + y2) * nx + x2;
          if (j >= csr->n_rows)
            continue;
          csr->columns.push_back(static_cast<std::int32_t>(j));
          csr->values.push_back(i == j ? 30 : std::sin(0.7 * static_cast<double>(i + j) + static_cast<double>((i ^ j) % 1013)));
        }
    csr->row_ptr.push_back(static_cast<std::int64_t>(csr->columns.size()));
  }
  return csr;
}

/// A symmetric matrix of n rows whose diagonals lie where those of a box with planes of nx x ny nodes do, full from end to end: its
/// couplings wrap around lines and planes, so that it is not the matrix of a box.
inline std::shared_ptr<CsrMatrix> wrapped_box27(std::int64_t nx, std::int64_t ny, std::int64_t n) {
  auto csr = std::make_shared<CsrMatrix>();
  csr->n_rows = csr->n_columns = n;
  csr->row_ptr.push_back(0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t dz = -1; dz <= 1; ++dz)
      for (std::int64_t dy = -1; dy <= 1; ++dy)
        for (std::int64_t dx = -1; dx <= 1; ++dx) {
          std::int64_t const j = i + (dz * ny + dy) * nx + dx;
          if (j < 0 || j >= n)
            continue;
          csr->columns.push_back(static_cast<std::int32_t>(j));
          csr->values.push_back(i == j ? 30 : std::sin(0.7 * static_cast<double>(i + j) + static_cast<double>((i ^ j) % 1013)));
        }
    csr->row_ptr.push_back(static_cast<std::int64_t>(csr->columns.size()));
  }
  return csr;
}

/// n rows of about `length` entries, half of them at the same distances from the row as in the rows before, the others anywhere; a
/// few rows are empty, and the first has `longest` entries. Built fast enough for a hundred thousand rows.
inline std::shared_ptr<CsrMatrix> large_irregular(std::int64_t n, std::int64_t length, std::int64_t longest) {
  std::mt19937_64 random(static_cast<unsigned>(length));
  auto csr = std::make_shared<CsrMatrix>();
  csr->n_rows = csr->n_columns = n;
  csr->row_ptr.push_back(0);
  std::vector<std::int32_t> columns;
  for (std::int64_t row = 0; row < n; ++row) {
    columns.clear();
    std::int64_t const here = row == 0 ? longest : row % 1000 == 999 ? 0 : length - row % 3;
    for (std::int64_t k = 0; k < here; ++k)
      columns.push_back(
          static_cast<std::int32_t>(row > 0 && 2 * k < here ? (row + k * k) % n : random() % static_cast<std::uint64_t>(n)));
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    for (std::int32_t const column : columns) {
      csr->columns.push_back(column);
      csr->values.push_back(std::sin(static_cast<double>(row) + 0.37 * column));
    }
    csr->row_ptr.push_back(static_cast<std::int64_t>(csr->columns.size()));
  }
  return csr;
}

/// Rows of very different length: most short, some empty, a few long, one dense; the main diagonal here and there. The last column
/// is in no row but the dense one.
inline std::shared_ptr<CsrMatrix> uneven(std::int64_t n_rows, std::int64_t n_columns, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Entries entries;
  for (std::int64_t row = 0; row < n_rows; ++row) {
    auto const kind = random() % 16;
    std::int64_t const length = kind < 3 ? 0 : kind < 15 ? 1 + row % 9 : 40;
    for (std::int64_t j = 0; j < length && n_columns > 1; ++j)
      entries[{row, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n_columns - 1))}] = uniform(random);
  }
  for (std::int64_t column = 0; column < n_columns; ++column)
    entries[{n_rows / 3, column}] = uniform(random);
  return to_csr(n_rows, n_columns, entries);
}

inline std::vector<double> random_vector(std::int64_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& entry : v)
    entry = uniform(random);
  return v;
}

/// The naive loop, in extended precision.
inline std::vector<double> naive_product(CsrMatrix const& a, std::vector<double> const& x) {
  std::vector<double> y;
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    long double sum = 0;
    for (auto e = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row)]);
         e < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row) + 1]); ++e)
      sum += static_cast<long double>(a.values[e]) * x[static_cast<std::size_t>(a.columns[e])];
    y.push_back(static_cast<double>(sum));
  }
  return y;
}

/// Sum of |a_ij x_j| in every row: what rounding errors of a product are measured by.
inline std::vector<double> absolute_product(CsrMatrix const& a, std::vector<double> const& x) {
  CsrMatrix absolute = a;
  for (double& value : absolute.values)
    value = std::abs(value);
  std::vector<double> absolute_x = x;
  for (double& value : absolute_x)
    value = std::abs(value);
  return naive_product(absolute, absolute_x);
}

}  // namespace poisson::testing
