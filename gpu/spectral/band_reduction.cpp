#include "gpu/spectral/band_reduction.hpp"

#include "gpu/core/safe_point.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/svd.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace poisson {

namespace {

using Index = std::int64_t;

Index panels_of(Index n, int width) {
  return (n + width - 1) / width;
}

Index merged_panels(int width, Index columns) {
  return std::max<Index>(1, columns / width);
}

/// X = Q X with Q the product of the reflectors of all left or all right panels, the last applied first.
void apply(Context& context, BandReduction const& b, bool left, Index columns, double* x, Index ldx, Index merged_at_most) {
  auto const& kernels = kernels_for<SvdKernels>(context);
  Index const width = b.width, order = left ? b.m : b.n, shift = left ? 0 : width;
  Index const panels = left ? panels_of(b.n, b.width) : panels_of(b.n, b.width) - 1,
              at_once = merged_panels(b.width, merged_at_most > 0 ? merged_at_most : merged_columns(context.backend()));
  if (panels == 0 || columns == 0)
    return;
  Index const most = std::min(at_once, panels) * width;
  Array<double> y(context, order * most), t(context, most * most), gram(context, most * width), product(context, most * width),
      z(context, most * columns), tz(context, most * columns);
  SafePoint safe_point(context);
  for (Index last = panels; last > 0;) {
    Index const first = last > at_once ? last - at_once : 0;
    Index const top = first * width + shift, rows = order - top;  // Y of these panels is zero above
    Index merged = 0;
    t.set_zero();
    for (Index p = first; p < last; ++p) {
      Index const i = p * width, start = (p - first) * width, q = std::min(width, b.n - i - shift);
      double* const y_panel = y.data() + merged * rows;
      double* const t_panel = t.data() + merged + merged * most;
      context.set_zero(y_panel, rows * q * std::int64_t{sizeof(double)});
      if (left)
        kernels.copy(context, rows - start, q, b.reflectors.data() + i + i * b.m, b.m, y_panel + start, rows);
      else
        kernels.transpose(context, q, rows - start, b.reflectors.data() + i + (i + width) * b.m, b.m, y_panel + start, rows);
      kernels.copy(context, q, q, (left ? b.t_left : b.t_right).data() + p * width * width, width, t_panel, most);
      if (merged > 0) {  // Q Q' = I - (Y Y') (T, -T Y^T Y' T'; 0, T') (Y Y')^T
        gemm(context, true, false, merged, q, rows - start, 1, y.data() + start, rows, y_panel + start, rows, 0, gram.data(), most);
        gemm(context, false, false, merged, q, merged, 1, t.data(), most, gram.data(), most, 0, product.data(), most);
        gemm(context, false, false, merged, q, q, -1, product.data(), most, t_panel, most, 0, t.data() + merged * most, most);
      }
      merged += q;
    }
    gemm(context, true, false, merged, columns, rows, 1, y.data(), rows, x + top, ldx, 0, z.data(), most);
    gemm(context, false, false, merged, columns, merged, 1, t.data(), most, z.data(), most, 0, tz.data(), most);
    gemm(context, false, false, rows, columns, merged, -1, y.data(), rows, tz.data(), most, 1, x + top, ldx);
    safe_point(4 * static_cast<double>(rows) * static_cast<double>(columns * merged));
    last = first;
  }
}

}  // namespace

BandReduction reduce_to_band(Context& context, Index m, Index n, int width, Array<double> a, bool keep) {
  assert(m >= n && n >= 1 && width >= 1 && width < std::max<Index>(n, 2) && a.size() == m * n);
  auto const& kernels = kernels_for<SvdKernels>(context);
  Index const panels = panels_of(n, width), t_size = Index{width} * width;
  BandReduction b;
  b.m = m;
  b.n = n;
  b.width = width;
  b.band = Array<double>(context, BandView::size(n, width));
  b.band.set_zero();
  b.t_left = Array<double>(context, keep ? panels * t_size : t_size);
  b.t_right = Array<double>(context, keep ? panels * t_size : t_size);
  BandView const band = BandView::in(b.band.data(), n, width);
  // `yx` holds Y of the columns and X, `zw` holds Z and W (the Y of the rows), of the panel pair at hand. A22 - Y Z^T - X W^T
  // applies both updates.
  Array<double> yx(context, 2 * m * width), zw(context, 2 * n * width), work(context, m * width);
  SafePoint safe_point(context);
  for (Index p = 0; p < panels; ++p) {
    Index const i = p * width, w = std::min<Index>(width, n - i), next = i + w, rows = m - i, rest = n - next;
    double* const panel = a.data() + i + i * m;
    double* const t = b.t_left.data() + (keep ? p * t_size : 0);
    double* const s = b.t_right.data() + (keep ? p * t_size : 0);
    kernels.panel_qr(context, rows, static_cast<int>(w), panel, m, t, width, band.entries + i + i * band.leading(), 1,
                     band.leading());
    if (rest == 0)
      break;
    Index const q = std::min(w, rest), below = m - next;
    double* const right_of = a.data() + i + next * m;  // [rows of the panel; A22]
    double* const z = zw.data();
    double* const wr = z + w * rest;
    double* const y = yx.data();
    double* const x = y + w * below;
    // Z = A^T Y T: the panel's block reflector makes A - Y Z^T of all columns right of it.
    gemm(context, true, false, rest, w, rows, 1, right_of, m, panel, m, 0, work.data(), rest);
    gemm(context, false, false, rest, w, w, 1, work.data(), rest, t, width, 0, z, rest);
    // The rows beside the panel, updated and transposed, are the next panel.
    kernels.transpose(context, w, rest, right_of, m, wr, rest);
    gemm(context, false, true, rest, w, w, -1, z, rest, panel, m, 1, wr, rest);
    kernels.panel_qr(context, rest, static_cast<int>(w), wr, rest, s, width, band.entries + i + next * band.leading(),
                     band.leading(), 1);
    // X = (A22 - Y Z^T) W S. With Z^T in the rows beside the panel, Z^T W and A22 W are one product.
    kernels.transpose(context, rest, w, z, rest, right_of, m);
    gemm(context, false, false, rows, q, rest, 1, right_of, m, wr, rest, 0, work.data(), rows);
    gemm(context, false, false, below, q, w, -1, panel + w, m, work.data(), rows, 1, work.data() + w, rows);
    gemm(context, false, false, below, q, q, 1, work.data() + w, rows, s, width, 0, x, below);
    kernels.copy(context, below, w, panel + w, m, y, below);
    gemm(context, false, true, below, rest, w + q, -1, y, below, z, rest, 1, right_of + w, m);
    if (keep)
      kernels.transpose(context, rest, q, wr, rest, right_of, m);
    safe_point(8 * static_cast<double>(below) * static_cast<double>(rest * w));
  }
  if (keep)
    b.reflectors = std::move(a);
  return b;
}

void apply_left(Context& context, BandReduction const& reduction, Index columns, double* x, Index ldx, Index merged) {
  apply(context, reduction, true, columns, x, ldx, merged);
}

void apply_right(Context& context, BandReduction const& reduction, Index columns, double* x, Index ldx, Index merged) {
  apply(context, reduction, false, columns, x, ldx, merged);
}

Index reduction_bytes(Index m, Index n, int width, bool keep) {
  Index const t = 2 * (keep ? panels_of(n, width) : 1) * width * width;
  return 8 * (BandView::size(n, width) + t + 3 * m * width + 2 * n * width);
}

Index apply_reduction_bytes(Index m, Index n, int width, Index columns) {
  Index const most = std::min(merged_panels(width, merged_columns(Backend::cuda)), panels_of(n, width)) * width;
  return 8 * (m * most + most * most + 2 * most * width + 2 * most * columns);
}

}  // namespace poisson
