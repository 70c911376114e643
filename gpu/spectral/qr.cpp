#include "gpu/spectral/qr.hpp"

#include "gpu/core/safe_point.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/svd.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace poisson {

namespace {

using Index = std::int64_t;

constexpr Index panel_width = 64;

/// More than the kernel for panels makes the context keep.
constexpr Index scratch_bytes = 1 << 20;

Index panels_of(Index n) {
  return (n + panel_width - 1) / panel_width;
}

/// Rows of every level of the tree, A's first.
std::vector<Index> rows_of_levels(Context const& context, Index m, Index n) {
  Index const rows = kernels_for<QrKernels>(context).rows_of_chunk(n);
  std::vector<Index> result;
  if (rows > 0)
    for (result.push_back(m); result.back() > rows;)
      result.push_back(RowChunks(result.back(), n, rows).count * n);
  return result;
}

}  // namespace

TallQr::TallQr(Context& context, Index m, Index n, Array<double> a) : context_(context), m_(m), n_(n) {
  assert(m >= n && n >= 1 && a.size() == m * n);
  if (kernels_for<QrKernels>(context).rows_of_chunk(n) > 0)
    factor_tree(std::move(a));
  else
    factor_panels(std::move(a));
}

void TallQr::factor_tree(Array<double> a) {
  auto const& kernels = kernels_for<QrKernels>(context_);
  for (Index const rows : rows_of_levels(context_, m_, n_)) {
    RowChunks const chunks(rows, n_, kernels.rows_of_chunk(n_));
    Array<double> r(context_, chunks.count * n_ * n_);
    kernels.factor_chunks(context_, chunks, n_, a.data(), r.data());
    levels_.push_back({chunks, std::move(a)});
    a = std::move(r);
  }
  r_ = std::move(a);
}

void TallQr::factor_panels(Array<double> a) {
  auto const& kernels = kernels_for<SvdKernels>(context_);
  r_ = Array<double>(context_, n_ * n_);
  r_.set_zero();
  t_ = Array<double>(context_, panels_of(n_) * panel_width * panel_width);
  Array<double> work(context_, 2 * panel_width * n_);
  SafePoint safe_point(context_);
  for (Index first = 0; first < n_; first += panel_width) {
    Index const width = std::min(panel_width, n_ - first), next = first + width, rest = n_ - next, rows = m_ - first;
    double* const panel = a.data() + first + first * m_;
    double* const t = t_.data() + first * panel_width;
    kernels.panel_qr(context_, rows, static_cast<int>(width), panel, m_, t, panel_width, r_.data() + first + first * n_, 1, n_);
    if (rest == 0)
      break;
    // A2 = (I - Y T^T Y^T) A2
    double* const right_of = a.data() + first + next * m_;
    double* const product = work.data();
    double* const t_product = product + panel_width * n_;
    gemm(context_, true, false, width, rest, rows, 1, panel, m_, right_of, m_, 0, product, width);
    gemm(context_, true, false, width, rest, width, 1, t, panel_width, product, width, 0, t_product, width);
    gemm(context_, false, false, rows, rest, width, -1, panel, m_, t_product, width, 1, right_of, m_);
    kernels.copy(context_, width, rest, right_of, m_, r_.data() + first + next * n_, n_);
    safe_point(4 * static_cast<double>(rows) * static_cast<double>(rest * width));
  }
  reflectors_ = std::move(a);
}

void TallQr::apply(Index columns, double const* x, double* y) const {
  if (columns == 0)
    return;
  if (!levels_.empty()) {
    Array<double> above;  // the rows of the level before, the top's being X
    double const* from = x;
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      RowChunks const& chunks = level->chunks;
      bool const last = level + 1 == levels_.rend();
      Array<double> rows(context_, last ? 0 : chunks.m * columns);
      double* const to = last ? y : rows.data();
      // Chunks of equal length in one call, the others by themselves.
      Index const equal = chunks.shift > 0 ? chunks.count - 2 : chunks.m % chunks.rows == 0 ? chunks.count : chunks.count - 1;
      Index const height = chunks.count * n_;
      if (equal > 0)
        gemm_batched(context_, false, false, chunks.rows, columns, n_, 1, level->q.data(), chunks.m, chunks.rows, from, height, n_,
                     0, to, chunks.m, chunks.rows, equal);
      for (Index chunk = equal; chunk < chunks.count; ++chunk)
        gemm(context_, false, false, chunks.end(chunk) - chunks.begin(chunk), columns, n_, 1, level->q.data() + chunks.begin(chunk),
             chunks.m, from + chunk * n_, height, 0, to + chunks.begin(chunk), chunks.m);
      context_.synchronize();  // before the level above is freed
      above = std::move(rows);
      from = above.data();
    }
    return;
  }
  auto const& kernels = kernels_for<SvdKernels>(context_);
  context_.set_zero(y, m_ * columns * std::int64_t{sizeof(double)});
  kernels.copy(context_, n_, columns, x, n_, y, m_);
  Array<double> work(context_, 2 * panel_width * columns);
  SafePoint safe_point(context_);
  for (Index panel = panels_of(n_) - 1; panel >= 0; --panel) {
    Index const first = panel * panel_width, width = std::min(panel_width, n_ - first), rows = m_ - first;
    double const* const reflectors = reflectors_.data() + first + first * m_;
    double* const product = work.data();
    double* const t_product = product + panel_width * columns;
    gemm(context_, true, false, width, columns, rows, 1, reflectors, m_, y + first, m_, 0, product, width);
    gemm(context_, false, false, width, columns, width, 1, t_.data() + first * panel_width, panel_width, product, width, 0,
         t_product, width);
    gemm(context_, false, false, rows, columns, width, -1, reflectors, m_, t_product, width, 1, y + first, m_);
    safe_point(4 * static_cast<double>(rows) * static_cast<double>(columns * width));
  }
  context_.synchronize();
}

Index TallQr::bytes(Context const& context, Index m, Index n) {
  std::vector<Index> const rows = rows_of_levels(context, m, n);
  if (rows.empty())
    return 8 * (n * n + panels_of(n) * panel_width * panel_width + 2 * panel_width * n) + scratch_bytes;
  Index entries = n * n;
  for (std::size_t level = 1; level < rows.size(); ++level)
    entries += rows[level] * n;
  return 8 * entries;
}

Index TallQr::apply_bytes(Context const& context, Index m, Index n, Index columns) {
  std::vector<Index> const rows = rows_of_levels(context, m, n);
  if (rows.empty())
    return 16 * panel_width * columns;
  return rows.size() == 1 ? 0 : 8 * columns * (rows[1] + (rows.size() > 2 ? rows[2] : 0));
}

}  // namespace poisson
