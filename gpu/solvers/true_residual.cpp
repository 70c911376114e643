// Compiled with -ffp-contract=off, see core/double_double.hpp.
#include "gpu/solvers/true_residual.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/double_double.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/elements/box_operator.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace poisson {

namespace {

/// sqrt(sum v_i^2) without overflow or underflow, the same bits for any number of threads.
double norm(std::span<double const> v) {
  constexpr std::int64_t block = 4096;
  auto const n = static_cast<std::int64_t>(v.size());
  std::int64_t const blocks = (n + block - 1) / block;
  double largest = 0;
  bool finite = true;
#pragma omp parallel for schedule(static) reduction(max : largest) reduction(&& : finite)
  for (std::int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::abs(v[i]));
    finite = finite && std::isfinite(v[i]);
  }
  if (!finite)
    return std::numeric_limits<double>::quiet_NaN();
  if (largest == 0)
    return 0;
  int const exponent = std::ilogb(largest);
  HostVector<double> partial(static_cast<std::size_t>(blocks));
#pragma omp parallel for schedule(static)
  for (std::int64_t b = 0; b < blocks; ++b) {
    DoubleDouble sum = 0;
    for (std::int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i) {
      double const scaled = std::scalbn(v[i], -exponent);
      sum = sum + two_prod(scaled, scaled);
    }
    partial[b] = sum.hi;
  }
  DoubleDouble sum = 0;
  for (double const p : partial)
    sum = sum + DoubleDouble{p, 0};
  return std::scalbn(std::sqrt(sum.hi), exponent);
}

}  // namespace

double norm_over(Communicator& ranks, double of_part) {
  double const largest = max_over(ranks, of_part);
  if (!(largest > 0) || std::isinf(largest))
    return largest;
  double const share = of_part / largest;
  return largest * std::sqrt(sum_over(ranks, share * share));
}

namespace {

double relative_norm(std::span<double const> r, std::span<double const> b, Communicator& ranks) {
  double const r_norm = norm_over(ranks, norm(r)), b_norm = norm_over(ranks, norm(b));
  return b_norm == 0 ? r_norm : r_norm / b_norm;
}

}  // namespace

void CsrResidualCheck::residual(std::span<double const> x, std::span<double const> x_low, std::span<double const> b,
                                std::span<double> r) const {
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < matrix_.n_rows; ++row) {
    DoubleDouble sum{b[row], 0};
    for (std::int64_t e = matrix_.row_ptr[row]; e < matrix_.row_ptr[row + 1]; ++e)
      sum = sum + two_prod(-matrix_.values[e], x[matrix_.columns[e]]);
    if (!matrix_.low_values.empty())
      for (std::int64_t e = matrix_.row_ptr[row]; e < matrix_.row_ptr[row + 1]; ++e)
        sum = sum + two_prod(-matrix_.low_values[e], x[matrix_.columns[e]]);
    if (!x_low.empty())
      for (std::int64_t e = matrix_.row_ptr[row]; e < matrix_.row_ptr[row + 1]; ++e)
        sum = sum + two_prod(-matrix_.values[e], x_low[matrix_.columns[e]]);
    r[row] = sum.hi;
  }
}

void StoredResidualCheck::residual(std::span<double const> x, std::span<double const> x_low, std::span<double const> b,
                                   std::span<double> r) const {
  auto const field = [](std::span<double const> values) { return Field(HostVector<double>(values.begin(), values.end())); };
  Field const result = stored_residual(matrix_, field(b), field(x), field(x_low));
  std::copy(result.host().begin(), result.host().end(), r.begin());
}

HostVector<double> residual_of(ResidualCheck const& system, std::span<double const> x, std::span<double const> b,
                               std::span<double const> x_low) {
  if (static_cast<std::int64_t>(x.size()) != system.n_columns() || static_cast<std::int64_t>(b.size()) != system.n_rows())
    throw InputError("true_residual: the matrix has " + std::to_string(system.n_rows()) + " rows and " +
                     std::to_string(system.n_columns()) + " columns, b has " + std::to_string(b.size()) + " entries and x has " +
                     std::to_string(x.size()));
  if (!x_low.empty() && x_low.size() != x.size())
    throw InputError("true_residual: x has " + std::to_string(x.size()) + " entries and x_low has " + std::to_string(x_low.size()));
  HostVector<double> r(b.size());
  system.residual(x, x_low, b, r);
  return r;
}

double true_residual(ResidualCheck const& system, std::span<double const> x, std::span<double const> b,
                     std::span<double const> x_low, Communicator& ranks) {
  return relative_norm(residual_of(system, x, b, x_low), b, ranks);
}

ResidualNorms residual_norms(Context& context, Array<double> const& r, Array<double> const& b, Array<double> const& diagonal,
                             Communicator& ranks) {
  double const largest = max_over(ranks, largest_of(context, diagonal.size(), diagonal.data()));
  auto const relative = [&](DiagonalWeights weights) {
    double const r_norm = norm_over(ranks, norm_of(context, r.size(), r.data(), weights)),
                 b_norm = norm_over(ranks, norm_of(context, b.size(), b.data(), weights));
    return b_norm == 0 ? r_norm : r_norm / b_norm;
  };
  ResidualNorms result;
  result.relative = relative({});
  result.scaled = largest > 0 ? relative({diagonal.data(), largest}) : result.relative;
  return result;
}

Field stored_residual(Matrix const& matrix, Field const& b, Field const& x, Field const& x_low) {
  Context& context = matrix.context();
  Array<double> r(context, matrix.n_rows());
  if (matrix.residual(x.on(context).data(), x_low.empty() ? nullptr : x_low.on(context).data(), b.on(context).data(), r.data()))
    return Field(std::move(r));
  CsrMatrix const csr = matrix.to_csr();
  HostVector<double> host(static_cast<std::size_t>(matrix.n_rows()));
  CsrResidualCheck(csr).residual(x.host(), x_low.host(), b.host(), host);
  return Field(std::move(host));
}

Field stored_residual(Matrix const& local, BlockRim const& rim, Csr const& couplings, Field const& b, Field const& x,
                      Field const& x_low) {
  Field r = stored_residual(local, b, x, x_low);
  Context& context = local.context();
  auto const& kernels = kernels_for<BlockRimKernels>(context);
  double const *const high = x.on(context).data(), *const low = x_low.empty() ? nullptr : x_low.on(context).data(),
                      *const right = b.on(context).data();
  double* const of_rows = r.change_on(context).data();
  if (auto const* const stencil = dynamic_cast<BoxOperator const*>(&local); stencil != nullptr)
    kernels.residual(context, rim, stencil->view(), couplings.view(), high, low, right, of_rows);
  else
    kernels.residual(context, rim, rim.nodes_of_block(), dynamic_cast<HalfCds const&>(local).view().values, couplings.view(), high,
                     low, right, of_rows);
  return r;
}

double true_residual(CsrMatrix const& matrix, std::span<double const> x, std::span<double const> b, std::span<double const> x_low) {
  return true_residual(CsrResidualCheck(matrix), x, b, x_low);
}

}  // namespace poisson
