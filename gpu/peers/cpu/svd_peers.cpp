#include "gpu/peers/svd_peers.hpp"

#include "gpu/core/error.hpp"
#include "gpu/kernels/cpu/lapack.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace poisson {

Svd lapack_svd(DenseMatrix a, bool vectors) {
  int const m = static_cast<int>(a.n_rows), n = static_cast<int>(a.n_columns);
  Svd result;
  result.values.resize(static_cast<std::size_t>(n));
  DenseMatrix u(vectors ? m : 0, vectors ? n : 0), vt(vectors ? n : 0, vectors ? n : 0);
  std::vector<int> iwork(8 * static_cast<std::size_t>(n));
  HostVector<double> work(1);
  int lwork = -1, info = 0;
  for (int call = 0; call < 2; ++call) {  // the first asks for the size of the workspace
    auto const start = std::chrono::steady_clock::now();
    lapack().dgesdd(vectors ? "S" : "N", &m, &n, a.values.data(), &m, result.values.data(), u.values.data(), &m, vt.values.data(),
                    &n, work.data(), &lwork, iwork.data(), &info);
    result.seconds.total = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (info != 0)
      throw EnvironmentError("LAPACK's dgesdd failed with info = " + std::to_string(info));
    lwork = static_cast<int>(work[0]);
    work.resize(static_cast<std::size_t>(lwork));
  }
  result.u = std::move(u);
  result.v = DenseMatrix(vt.n_rows, vt.n_columns);
  for (std::int64_t j = 0; j < vt.n_columns; ++j)
    for (std::int64_t i = 0; i < vt.n_rows; ++i)
      result.v(j, i) = vt(i, j);
  return result;
}

}  // namespace poisson
