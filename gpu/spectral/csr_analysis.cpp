#include "gpu/spectral/csr_analysis.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace poisson {

double distance_to_symmetry(CsrMatrix const& a, std::span<std::uint8_t const> fixed) {
  double difference = 0, all = 0;
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    if (fixed[static_cast<std::size_t>(row)] != 0)
      continue;
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      std::int32_t const column = a.columns[e];
      auto const* const begin = a.columns.data() + a.row_ptr[column];
      auto const* const end = a.columns.data() + a.row_ptr[column + 1];
      auto const* const mirror = std::lower_bound(begin, end, static_cast<std::int32_t>(row));
      bool const stored = mirror != end && *mirror == row;
      double const d = a.values[e] - (stored ? a.values[mirror - a.columns.data()] : 0.0);
      difference += (stored ? 1 : 2) * d * d;  // this loop does not come to a mirror image that is not stored
      all += a.values[e] * a.values[e];
    }
  }
  return all > 0 ? std::sqrt(difference / all) : 0;
}

DenseMatrix dense_submatrix(CsrMatrix const& a, std::span<std::int64_t const> indices, std::span<double const> scaling) {
  auto const n = static_cast<std::int64_t>(indices.size());
  std::vector<std::int64_t> place(static_cast<std::size_t>(a.n_rows), -1);
  for (std::int64_t i = 0; i < n; ++i)
    place[static_cast<std::size_t>(indices[i])] = i;
  DenseMatrix dense(n, n);
  std::fill(dense.values.begin(), dense.values.end(), 0.0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t e = a.row_ptr[indices[i]]; e < a.row_ptr[indices[i] + 1]; ++e)
      if (std::int64_t const j = place[static_cast<std::size_t>(a.columns[e])]; j >= 0)
        dense(i, j) = a.values[e] * (scaling.empty() ? 1 : scaling[i] * scaling[j]);
  return dense;
}

std::vector<double> diagonal_scaling(CsrMatrix const& a) {
  std::vector<double> scaling(static_cast<std::size_t>(a.n_rows), 1.0);
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (a.columns[e] == row && a.values[e] > 0)
        scaling[static_cast<std::size_t>(row)] = 1 / std::sqrt(a.values[e]);
  return scaling;
}

CsrMatrix scaled_symmetrically(CsrMatrix const& a, std::span<double const> scaling) {
  CsrMatrix scaled = a;
  scaled.low_values.clear();
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      scaled.values[e] *= scaling[static_cast<std::size_t>(row)] * scaling[static_cast<std::size_t>(a.columns[e])];
  return scaled;
}

}  // namespace poisson
