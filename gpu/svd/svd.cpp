#include "gpu/svd/svd.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/svd/lapack.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

namespace poisson {

namespace {

void require_valid(DenseMatrix const& a, SvdOptions const& options) {
  if (a.n_rows < 1 || a.n_columns < 1)
    throw InputError("the matrix is empty: " + std::to_string(a.n_rows) + " x " + std::to_string(a.n_columns));
  if (options.leading < 0)
    throw InputError("the number of leading singular values is negative: " + std::to_string(options.leading));
  if (options.band_width < 0)
    throw InputError("the band width is negative: " + std::to_string(options.band_width));
  for (std::int64_t j = 0; j < a.n_columns; ++j)
    for (std::int64_t i = 0; i < a.n_rows; ++i)
      if (!std::isfinite(a(i, j)))
        throw InputError("the matrix has " + std::string(std::isnan(a(i, j)) ? "a NaN" : "an infinity") + " in row " +
                         std::to_string(i) + ", column " + std::to_string(j) + " (counted from 0)");
}

}  // namespace

std::int64_t svd_bytes(std::int64_t, std::int64_t, SvdOptions const&) {
  return 0;
}

Svd svd(DenseMatrix const& a, SvdOptions const& options, Context& context) {
  auto const start = std::chrono::steady_clock::now();
  require_valid(a, options);
  require_memory(context, svd_bytes(a.n_rows, a.n_columns, options), "the singular value decomposition", "use the cpu backend");
  int const m = static_cast<int>(a.n_rows), n = static_cast<int>(a.n_columns), smaller = std::min(m, n);
  std::int64_t const k = options.leading > 0 ? std::min<std::int64_t>(options.leading, smaller) : smaller;
  DenseMatrix copy = a, u(options.vectors ? m : 0, options.vectors ? smaller : 0),
              vt(options.vectors ? smaller : 0, options.vectors ? n : 0);
  Svd result;
  result.values.resize(static_cast<std::size_t>(smaller));
  int const ldu = m, ldvt = smaller;
  int lwork = -1, info = 0;
  std::vector<int> iwork(8 * static_cast<std::size_t>(smaller));
  double size = 0;
  char const job = options.vectors ? 'S' : 'N';
  dgesdd_(&job, &m, &n, copy.values.data(), &m, result.values.data(), u.values.data(), &ldu, vt.values.data(), &ldvt, &size, &lwork,
          iwork.data(), &info);
  lwork = static_cast<int>(size);
  std::vector<double> work(static_cast<std::size_t>(lwork));
  dgesdd_(&job, &m, &n, copy.values.data(), &m, result.values.data(), u.values.data(), &ldu, vt.values.data(), &ldvt, work.data(),
          &lwork, iwork.data(), &info);
  if (info != 0)
    throw EnvironmentError("LAPACK's dgesdd failed with info = " + std::to_string(info));
  result.values.resize(static_cast<std::size_t>(k));
  if (options.vectors) {
    u.values.resize(static_cast<std::size_t>(m * k));
    u.n_columns = k;
    result.u = std::move(u);
    result.v = DenseMatrix(n, k);
    for (std::int64_t j = 0; j < k; ++j)
      for (std::int64_t i = 0; i < n; ++i)
        result.v(i, j) = vt(j, i);
  }
  result.seconds.total = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace poisson
