#include "gpu/kernels/symmetry.hpp"

#include "gpu/kernels/csr_search.hpp"

#include <algorithm>

namespace poisson {

std::optional<Asymmetry> find_asymmetry(CsrView const& matrix) {
  // Entries above the diagonal are compared with their mirrors; only when some below have no partner are those looked at too.
  std::int64_t first_bad = matrix.n_rows, above_with_mirror = 0, below = 0;
#pragma omp parallel for schedule(static) reduction(min : first_bad) reduction(+ : above_with_mirror, below)
  for (std::int64_t row = 0; row < matrix.n_rows; ++row) {
    std::int64_t const begin = matrix.row_ptr[row], end = matrix.row_ptr[row + 1];
    for (std::int64_t e = begin; e < end; ++e) {
      std::int64_t const column = matrix.columns[e];
      below += column < row;
      if (column <= row)
        continue;
      CsrEntry const mirror = find_entry(matrix, column, row, matrix.row_ptr[column + 1] - 1 - (e - begin));
      above_with_mirror += mirror.stored;
      if (asymmetric(matrix, row, column, matrix.values[e], mirror.value))
        first_bad = std::min(first_bad, row);
    }
  }
  if (first_bad == matrix.n_rows && above_with_mirror == below)
    return std::nullopt;
#pragma omp parallel for schedule(static) reduction(min : first_bad)
  for (std::int64_t row = 0; row < matrix.n_rows; ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1] && matrix.columns[e] < row; ++e)
      if (asymmetric(matrix, row, matrix.columns[e], matrix.values[e], find_entry(matrix, matrix.columns[e], row, -1).value))
        first_bad = std::min(first_bad, row);
  for (std::int64_t row = first_bad; row < std::min(first_bad + 1, matrix.n_rows); ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      std::int64_t const column = matrix.columns[e];
      double const mirror = find_entry(matrix, column, row, -1).value;
      if (asymmetric(matrix, row, column, matrix.values[e], mirror))
        return Asymmetry{row, column, matrix.values[e], mirror};
    }
  return std::nullopt;
}

}  // namespace poisson
