#include "gpu/kernels/symmetry.hpp"

#include "gpu/core/host_vector.hpp"
#include "gpu/kernels/csr_search.hpp"

#include <algorithm>

namespace poisson {

Symmetry find_symmetry(CsrView const& matrix) {
  HostVector<double> largest(static_cast<std::size_t>(matrix.n_rows));
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < matrix.n_rows; ++row)
    largest[static_cast<std::size_t>(row)] = largest_entry(matrix, row);
  auto const asymmetry = [&](std::int64_t row, std::int64_t e, double mirror) {
    return asymmetry_of(matrix.values[e], mirror, largest[static_cast<std::size_t>(row)],
                        largest[static_cast<std::size_t>(matrix.columns[e])]);
  };
  // Entries above the diagonal are compared with their mirrors; only when some below have no partner are those looked at too.
  double worst = 0;
  std::int64_t first_bad = matrix.n_rows, above_with_mirror = 0, below = 0;
#pragma omp parallel for schedule(static) reduction(min : first_bad) reduction(max : worst) reduction(+ : above_with_mirror, below)
  for (std::int64_t row = 0; row < matrix.n_rows; ++row) {
    std::int64_t const begin = matrix.row_ptr[row], end = matrix.row_ptr[row + 1];
    for (std::int64_t e = begin; e < end; ++e) {
      std::int64_t const column = matrix.columns[e];
      below += column < row;
      if (column <= row)
        continue;
      CsrEntry const mirror = find_entry(matrix, column, row, matrix.row_ptr[column + 1] - 1 - (e - begin));
      above_with_mirror += mirror.stored;
      double const here = asymmetry(row, e, mirror.value);
      worst = std::max(worst, here);
      if (here > symmetry_tolerance)
        first_bad = std::min(first_bad, row);
    }
  }
  if (above_with_mirror != below) {
#pragma omp parallel for schedule(static) reduction(min : first_bad) reduction(max : worst)
    for (std::int64_t row = 0; row < matrix.n_rows; ++row)
      for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1] && matrix.columns[e] < row; ++e) {
        double const here = asymmetry(row, e, find_entry(matrix, matrix.columns[e], row, -1).value);
        worst = std::max(worst, here);
        if (here > symmetry_tolerance)
          first_bad = std::min(first_bad, row);
      }
  }
  Symmetry result{worst, std::nullopt};
  for (std::int64_t row = first_bad; row < std::min(first_bad + 1, matrix.n_rows); ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1] && !result.first; ++e) {
      std::int64_t const column = matrix.columns[e];
      double const mirror = find_entry(matrix, column, row, -1).value;
      if (asymmetry(row, e, mirror) > symmetry_tolerance)
        result.first = Asymmetry{row, column, matrix.values[e], mirror};
    }
  return result;
}

}  // namespace poisson
