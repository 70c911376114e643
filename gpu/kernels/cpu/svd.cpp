#include "gpu/kernels/svd.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/cpu/lapack.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <omp.h>

namespace poisson {

namespace {

using Index = std::int64_t;

/// x = (alpha, rest) becomes (beta, 0) under I - tau v v^T with v = (1, rest / (alpha - beta)).
struct Reflector {
  double tau = 0, beta = 0, scale = 0;
};

Reflector reflector(double alpha, double squares_of_rest) {
  double const squares = alpha * alpha + squares_of_rest;
  if (squares_of_rest == 0 || squares < reflector_underflow)
    return {0, alpha, 0};
  double const beta = alpha > 0 ? -std::sqrt(squares) : std::sqrt(squares);
  return {(beta - alpha) / beta, beta, 1 / (alpha - beta)};
}

double dot(Index n, double const* x, double const* y) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Index i = 0; i < n; ++i)
    sum += x[i] * y[i];
  return sum;
}

void add(Index n, double factor, double const* x, double* y) {
#pragma omp simd
  for (Index i = 0; i < n; ++i)
    y[i] += factor * x[i];
}

/// One sweep of the chase, half a step at a time.
class Sweep {
public:
  Sweep(ChasePlan const& plan, BandView const& band, double* left, double* right, std::vector<double>& scratch)
      : plan_(plan),
        entries_(band.entries),
        leading_(band.leading()),
        left_(left),
        right_(right),
        u_(scratch.data()),
        v_(u_ + plan.width),
        w_(v_ + plan.width) {}

  [[nodiscard]] static Index half_steps(ChasePlan const& plan, Index sweep) {
    return 2 * ((plan.n - 2 - sweep) / plan.width + 1) - 1;
  }

  /// Even halves are the diagonal blocks, odd ones the blocks right of them.
  void half_step(Index sweep, Index half) {
    Index const first = sweep + 1 + half / 2 * plan_.width;
    int const length = static_cast<int>(std::min<Index>(plan_.width, plan_.n - first));
    if (half == 0) {
      double* const row = at(sweep, first);
      make_v(row, length, sweep, 0);
    }
    if (half % 2 == 0) {
      diagonal_block(at(first, first), length);
      keep(left_, u_, length, sweep, half / 2);
    } else {
      Index const next = first + plan_.width;
      int const columns = static_cast<int>(std::min<Index>(plan_.width, plan_.n - next));
      double* const block = at(first, next);
      for (int j = 0; j < columns; ++j)
        add(length, -u_tau_ * dot(length, u_, block + j * leading_), u_, block + j * leading_);
      make_v(block, columns, sweep, half / 2 + 1);
      right_products(block, length, columns);
      for (int j = 0; j < columns; ++j)
        add(length - 1, -v_tau_ * v_[j], w_ + 1, block + j * leading_ + 1);
    }
  }

private:
  [[nodiscard]] double* at(Index r, Index c) const { return entries_ + r + c * leading_; }

  /// The reflector that zeroes a row after its first entry, done to this row.
  void make_v(double* row, int length, Index sweep, Index step) {
    double squares = 0;
    for (int j = 1; j < length; ++j)
      squares += row[j * leading_] * row[j * leading_];
    Reflector const r = reflector(row[0], squares);
    v_tau_ = r.tau;
    v_[0] = r.tau == 0 ? 0 : 1;
    row[0] = r.beta;
    for (int j = 1; j < length; ++j) {
      v_[j] = row[j * leading_] * r.scale;
      row[j * leading_] = 0;
    }
    keep(right_, v_, length, sweep, step);
  }

  /// w = block v
  void right_products(double const* block, int rows, int columns) {
    std::fill_n(w_, rows, 0.0);
    for (int j = 0; j < columns; ++j)
      add(rows, v_[j], block + j * leading_, w_);
  }

  void diagonal_block(double* block, int length) {
    right_products(block, length, length);
    for (int j = 0; j < length; ++j) {
      double* const column = block + j * leading_;
      add(length, -v_tau_ * v_[j], w_, column);
      if (j == 0) {
        Reflector const r = reflector(column[0], dot(length - 1, column + 1, column + 1));
        u_tau_ = r.tau;
        u_[0] = r.tau == 0 ? 0 : 1;
        column[0] = r.beta;
        for (int i = 1; i < length; ++i) {
          u_[i] = column[i] * r.scale;
          column[i] = 0;
        }
      } else
        add(length, -u_tau_ * dot(length, u_, column), u_, column);
    }
  }

  void keep(double* reflectors, double const* v, int length, Index sweep, Index step) const {
    if (reflectors == nullptr)
      return;
    Index const k = sweep % plan_.width;
    std::copy_n(v, length,
                reflectors + plan_.slot(sweep / plan_.width, step) * plan_.slot_size() + k * (2 * std::int64_t{plan_.width} + 1) +
                    1);
  }

  ChasePlan const& plan_;
  double* entries_;
  Index leading_;
  double *left_, *right_;
  double *u_, *v_, *w_;
  double u_tau_ = 0, v_tau_ = 0;
};

/// x . y as if in twice the precision and then rounded (Ogita, Rump, Oishi 2005, Dot2), in lanes.
double accurate_dot(Index n, double const* x, double const* y) {
  constexpr int n_lanes = 8;
  double sum[n_lanes] = {}, error[n_lanes] = {};
  auto const add_product = [](double a, double b, double& s, double& e) {
    double const product = a * b, rest = std::fma(a, b, -product), t = s + product, back = t - s;
    e += ((s - (t - back)) + (product - back)) + rest;
    s = t;
  };
  Index i = 0;
  for (; i + n_lanes <= n; i += n_lanes)
#pragma omp simd
    for (int l = 0; l < n_lanes; ++l)
      add_product(x[i + l], y[i + l], sum[l], error[l]);
  for (; i < n; ++i)
    add_product(x[i], y[i], sum[0], error[0]);
  for (int l = 1; l < n_lanes; ++l)
    add_product(sum[l], 1, sum[0], error[0]);
  for (int l = 1; l < n_lanes; ++l)
    error[0] += error[l];
  return sum[0] + error[0];
}

/// T of I - Y T Y^T, the inverse of the upper triangle of Y^T Y with half its diagonal, for the first `count` columns of a block of
/// the chase: column j of Y has `width` entries from row j on, and ldy is the leading dimension. Zero columns stand for identities
/// and get zeros. Rounding errors of Y^T Y would make up a third of what the back-transformation loses in orthogonality, so it is
/// computed more accurately than that.
void form_t(int count, int width, double const* y, Index ldy, double* t) {
  std::fill_n(t, std::ptrdiff_t{count} * count, 0.0);
  auto const column_of_y = [&](int j) { return y + j * (ldy + 1); };
  for (int j = 0; j < count; ++j) {
    double* const column = t + std::ptrdiff_t{j} * count;
    double const squares = accurate_dot(width, column_of_y(j), column_of_y(j));
    if (squares == 0)
      continue;
    column[j] = 2 / squares;
    for (int l = 0; l < j; ++l)
      add(l + 1, -column[j] * accurate_dot(width - (j - l), column_of_y(l) + (j - l), column_of_y(j)),
          t + std::ptrdiff_t{l} * count, column);
  }
}

class CpuSvd final : public SvdKernels {
public:
  int max_width() const override { return std::numeric_limits<int>::max() / 4; }

  void panel_qr(Context&, Index m, int w, double* a, Index lda, double* t, Index ldt, double* r, Index row_stride,
                Index column_stride) const override {
    int const rows = static_cast<int>(m), q = std::min(rows, w), leading = static_cast<int>(lda), t_leading = static_cast<int>(ldt);
    int info = 0;
    for (int k = 0; k < q; ++k)
      std::fill_n(t + k * ldt, q, 0.0);
    lapack().dgeqrt3(&rows, &q, a, &leading, t, &t_leading, &info);
    assert(info == 0);
    int const rest = w - q;
    if (rest > 0) {
      std::vector<double> work(static_cast<std::size_t>(rest) * static_cast<std::size_t>(q));
      lapack().dlarfb("L", "T", "F", "C", &rows, &rest, &q, a, &leading, t, &t_leading, a + q * lda, &leading, work.data(), &rest);
    }
    for (int k = 0; k < w; ++k) {
      double* const column = a + k * lda;
      for (int i = 0; i <= k && i < q; ++i) {
        r[i * row_stride + k * column_stride] = column[i];
        column[i] = 0;
      }
      if (k < q)
        column[k] = 1;
    }
  }

  void copy(Context&, Index m, Index n, double const* a, Index lda, double* b, Index ldb) const override {
#pragma omp parallel for schedule(static) if (m * n > 16384)
    for (Index j = 0; j < n; ++j)
      std::copy_n(a + j * lda, m, b + j * ldb);
  }

  void transpose(Context&, Index m, Index n, double const* a, Index lda, double* b, Index ldb) const override {
    constexpr Index tile = 32;
#pragma omp parallel for collapse(2) schedule(static) if (m * n > 16384)
    for (Index j0 = 0; j0 < n; j0 += tile)
      for (Index i0 = 0; i0 < m; i0 += tile)
        for (Index i = i0; i < std::min(m, i0 + tile); ++i)
          for (Index j = j0; j < std::min(n, j0 + tile); ++j)
            b[j + i * ldb] = a[i + j * lda];
  }

  void chase(Context&, ChasePlan const& plan, BandView const& band, double* left, double* right) const override {
    if (plan.sweeps == 0)
      return;
    // done[s]: half steps of sweep s that are finished. Sweep s may do half step h once sweep s - 1 is through h + 2.
    std::vector<std::atomic<Index>> done(static_cast<std::size_t>(plan.sweeps));
    // So many sweeps fit behind each other into the band; half steps of narrow bands are over sooner than a thread hears of them.
    Index const useful = plan.width < 16 ? 1 : 2 * plan.steps / 3 + 1;
    int const threads = static_cast<int>(std::min<Index>(omp_get_max_threads(), useful));
    std::atomic<bool> stopped = false;  // none waits for a sweep that another thread has given up
#pragma omp parallel num_threads(threads)
    {
      std::vector<double> scratch(3 * static_cast<std::size_t>(plan.width));
      Sweep work(plan, band, left, right, scratch);
      Index const team = omp_get_num_threads();
      for (Index sweep = omp_get_thread_num(); sweep < plan.sweeps && !stopped; sweep += team) {
        if (interrupt_requested())
          stopped = true;
        Index const halves = Sweep::half_steps(plan, sweep);
        Index known = 0;
        for (Index half = 0; half < halves; ++half) {
          if (sweep > 0) {
            Index const wanted = std::min(half + 3, Sweep::half_steps(plan, sweep - 1));
            auto& before = done[static_cast<std::size_t>(sweep - 1)];
            for (int spins = 0; known < wanted && !stopped.load(std::memory_order_relaxed); ++spins) {
              known = before.load(std::memory_order_acquire);
              if (known < wanted && spins > 100)
                std::this_thread::yield();
            }
          }
          if (stopped.load(std::memory_order_relaxed))
            break;
          work.half_step(sweep, half);
          done[static_cast<std::size_t>(sweep)].store(half + 1, std::memory_order_release);
        }
      }
    }
    if (stopped)
      throw Interrupted();
  }

  void diagonals(Context&, BandView const& band, double* d, double* e) const override {
    for (Index i = 0; i < band.n; ++i)
      d[i] = band.entries[i + i * band.leading()];
    for (Index i = 0; i + 1 < band.n; ++i)
      e[i] = band.entries[i + (i + 1) * band.leading()];
  }

  void apply_chase(Context& context, ChasePlan const& plan, double const* y, Index n_columns, double* x, Index ldx) const override {
    if (plan.sweeps == 0 || n_columns == 0)
      return;
    Index const width = plan.width, ldy = 2 * width;
    // A block is applied in parts of fewer columns, whose parallelograms have fewer zeros in their rows: 5 width^2 in place of 8
    // width^2 operations a column of X for four parts.
    Index const part = plan.skip_zeros ? std::min<Index>(width, 16) : width, parts = (width + part - 1) / part;
    // The threads take the blocks of a group one after the other over a strip of X: its rows slide through the cache.
    Index const strip = std::clamp<Index>((n_columns + omp_get_max_threads() - 1) / omp_get_max_threads(), 8, 128);
    Index const strips = (n_columns + strip - 1) / strip;
    Array<double> scaled(context, plan.steps * plan.slot_size());  // Y T of the parts of a group's blocks
    for (Index group = plan.groups - 1; group >= 0; --group) {
      if (interrupt_requested())
        throw Interrupted();
      Index const steps = plan.steps - group;
#pragma omp parallel
      {
        std::vector<double> t(static_cast<std::size_t>(part * part)), product(static_cast<std::size_t>(part * strip));
#pragma omp for schedule(dynamic)
        for (Index step = 0; step < steps; ++step)
          for (Index k = 0; k < width; k += part) {
            Index const count = std::min(part, width - k), place = k * (ldy + 1) + 1;
            double const* const block = y + plan.slot(group, step) * plan.slot_size() + place;
            form_t(static_cast<int>(count), plan.width, block, ldy, t.data());
            gemm(context, false, false, width + count - 1, count, count, 1, block, ldy, t.data(), count, 0,
                 scaled.data() + step * plan.slot_size() + place, ldy);
          }
#pragma omp for schedule(static)
        for (Index s = 0; s < strips; ++s)
          for (Index step = 0; step < steps; ++step)
            for (Index p = parts - 1; p >= 0; --p) {
              Index const k = p * part, count = std::min(part, width - k), place = k * (ldy + 1) + 1;
              Index const first = (group + step) * width + 1 + k, rows = std::min(width + count - 1, plan.n - first);
              if (rows <= 0)
                continue;
              Index const columns = std::min(strip, n_columns - s * strip);
              double* const of_x = x + first + s * strip * ldx;
              gemm(context, true, false, count, columns, rows, 1, y + plan.slot(group, step) * plan.slot_size() + place, ldy, of_x,
                   ldx, 0, product.data(), count);
              gemm(context, false, false, rows, columns, count, -1, scaled.data() + step * plan.slot_size() + place, ldy,
                   product.data(), count, 1, of_x, ldx);
            }
      }
    }
  }
};

}  // namespace

SvdKernels const& SvdKernels::cpu() {
  static CpuSvd const kernels;
  return kernels;
}

}  // namespace poisson
