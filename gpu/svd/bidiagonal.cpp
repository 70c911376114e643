#include "gpu/svd/bidiagonal.hpp"

#include "gpu/core/error.hpp"
#include "gpu/svd/lapack.hpp"

#include <cassert>
#include <string>
#include <vector>

namespace poisson {

HostVector<double> bidiagonal_values(Context&, std::span<double const> d, std::span<double const> e, std::int64_t leading) {
  assert(!d.empty() && e.size() + 1 == d.size());
  int const n = static_cast<int>(d.size());
  HostVector<double> values(d.begin(), d.end());
  std::vector<double> off(e.begin(), e.end()), work(4 * d.size());
  off.push_back(0);
  int info = 0;
  dlasq1_(&n, values.data(), off.data(), work.data(), &info);
  if (info != 0)
    throw EnvironmentError("LAPACK's dlasq1 failed with info = " + std::to_string(info));
  if (leading > 0 && leading < n)
    values.resize(static_cast<std::size_t>(leading));
  return values;
}

BidiagonalSvd bidiagonal_svd(Context& context, std::span<double const> d, std::span<double const> e, std::int64_t leading) {
  assert(!d.empty() && e.size() + 1 == d.size());
  int const n = static_cast<int>(d.size());
  std::size_t const k = leading > 0 && leading < n ? static_cast<std::size_t>(leading) : d.size();
  BidiagonalSvd result;
  result.values.assign(d.begin(), d.end());
  std::vector<double> off(e.begin(), e.end()), work(3 * d.size() * d.size() + 4 * d.size());
  off.push_back(0);
  HostVector<double> u(d.size() * d.size()), vt(d.size() * d.size()), v(d.size() * k);
  std::vector<int> iwork(8 * d.size());
  int info = 0;
  dbdsdc_("U", "I", &n, result.values.data(), off.data(), u.data(), &n, vt.data(), &n, nullptr, nullptr, work.data(), iwork.data(),
          &info);
  if (info != 0)
    throw EnvironmentError("LAPACK's dbdsdc failed with info = " + std::to_string(info));
  result.values.resize(k);
  u.resize(d.size() * k);
  for (std::size_t j = 0; j < k; ++j)
    for (std::size_t i = 0; i < d.size(); ++i)
      v[i + j * d.size()] = vt[j + i * d.size()];
  result.u = Array<double>(context, std::span<double const>(u));
  result.v = Array<double>(context, std::span<double const>(v));
  return result;
}

std::int64_t bidiagonal_svd_bytes(std::int64_t n, std::int64_t leading) {
  return 16 * n * (leading > 0 && leading < n ? leading : n);
}

}  // namespace poisson
