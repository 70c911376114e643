#include "gpu/kernels/bidiagonal.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace poisson {

namespace {

constexpr std::int64_t roots_a_piece = 16, rows_a_piece = 64;
/// Entries of a level, or a matrix, that one thread handles in the time that waking the others takes.
constexpr std::int64_t small = 20000;

/// Roots, columns or rows of all merges of a level, in pieces that threads take: body(merge, begin, end).
template <class Count, class Body>
void for_pieces(BidiagonalLevel const& level, std::int64_t piece, Count const& count, Body const& body) {
  struct Piece {
    BidiagonalMerge const* merge;
    std::int64_t begin, end;
  };
  std::vector<Piece> pieces;
  for (BidiagonalMerge const& merge : level.on_host)
    for (std::int64_t begin = 0, n = count(merge); begin < n; begin += piece)
      pieces.push_back({&merge, begin, std::min(n, begin + piece)});
#pragma omp parallel for schedule(dynamic) if (pieces.size() > 1 && level.order * level.largest > small)
  for (std::size_t i = 0; i < pieces.size(); ++i)
    body(*pieces[i].merge, pieces[i].begin, pieces[i].end);
}

SecularSums sums_at(double const* d, double const* z, std::int64_t k, std::int64_t n_left, double origin, double offset) {
  SecularSums sums;
  auto const add = [&](std::int64_t begin, std::int64_t end, double& value, double& derivative) {
    double f = 0, slope = 0;
#pragma omp simd reduction(+ : f, slope)
    for (std::int64_t j = begin; j < end; ++j) {
      double const t = z[j] / (((d[j] - origin) - offset) * ((d[j] + origin) + offset));
      f += z[j] * t;
      slope += t * t;
    }
    value = f;
    derivative = slope;
  };
  add(0, n_left, sums.psi, sums.psi_prime);
  add(n_left, k, sums.phi, sums.phi_prime);
  return sums;
}

class CpuBidiagonal final : public BidiagonalKernels {
public:
  void bisect(Context&, std::int64_t n, double const* squares, double low, double high, std::int64_t count,
              double* values) const override {
    constexpr std::int64_t at_once = 8;  // values in lockstep, to fill the vectors
    std::int64_t const groups = (count + at_once - 1) / at_once;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t group = 0; group < groups; ++group) {
      // Positive numbers are ordered as the integers of the same bits: bisection of those halves exponents first.
      std::int64_t below[at_once], above[at_once];
      std::fill(below, below + at_once, std::bit_cast<std::int64_t>(low));
      std::fill(above, above + at_once, std::bit_cast<std::int64_t>(high));
      for (;;) {
        double x_squared[at_once], s[at_once];
        std::int64_t counts[at_once] = {};
        bool finished = true;
        for (std::int64_t l = 0; l < at_once; ++l) {
          double const x = std::bit_cast<double>(below[l] + (above[l] - below[l]) / 2);
          x_squared[l] = x * x;
          s[l] = -x_squared[l];
          finished = finished && above[l] - below[l] <= 1;
        }
        if (finished)
          break;
        for (std::int64_t i = 0; i < n; ++i)
#pragma omp simd
          for (std::int64_t l = 0; l < at_once; ++l)
            counts[l] +=
                sturm_row(squares[2 * i], squares[2 * i + 1], x_squared[l], s[l], [](double a, double b) { return a / b; }) ? 1 : 0;
        for (std::int64_t l = 0; l < at_once; ++l) {
          std::int64_t const middle = below[l] + (above[l] - below[l]) / 2;
          (counts[l] >= n - (group * at_once + l) ? above[l] : below[l]) = middle;
        }
      }
      for (std::int64_t l = 0; l < at_once && group * at_once + l < count; ++l)
        values[group * at_once + l] = std::bit_cast<double>(below[l]);
    }
  }

  void scatter_leaves(Context&, std::int64_t n, LeafColumn const* columns, double const* leaves, std::int64_t leading,
                      double* x) const override {
    for (std::int64_t j = 0; j < n; ++j)
      std::copy_n(leaves + j * leading, columns[j].rows, x + columns[j].first + j * n);
  }

  void coupling_rows(Context&, BidiagonalLevel const& level, double const* v, double* z) const override {
    for (BidiagonalMerge const& merge : level.on_host)
      for (std::int32_t p = 0; p < merge.n() + merge.extra; ++p)
        z[merge.first + p] = v[merge.first + merge.n_left + (p > merge.n_left ? 1 : 0) + (merge.first + p) * level.order];
  }

  void rotate(Context&, BidiagonalLevel const& level, bool right, double* x) const override {
    for_pieces(
        level, rows_a_piece, [&](BidiagonalMerge const& merge) { return merge.n() + (right ? merge.extra : 0); },
        [&](BidiagonalMerge const& merge, std::int64_t begin, std::int64_t end) {
          double* const block = x + merge.first + merge.first * level.order;
          for (std::int32_t r = merge.first_rotation + (right ? 0 : merge.extra); r < merge.end_rotation; ++r) {
            auto const [ia, ib, c, s] = level.rotations[r];
            double *const a = block + ia * level.order, *const b = block + ib * level.order;
            for (std::int64_t i = begin; i < end; ++i) {
              double const before = a[i];
              a[i] = c * before + s * b[i];
              b[i] = c * b[i] - s * before;
            }
          }
        });
  }

  void pack(Context&, BidiagonalLevel const& level, bool right, double const* x, double* packed) const override {
    for_pieces(
        level, roots_a_piece, [&](BidiagonalMerge const& merge) { return merge.n() + (right ? merge.extra : 0); },
        [&](BidiagonalMerge const& merge, std::int64_t begin, std::int64_t end) {
          std::int64_t const corner = merge.first + merge.first * level.order, rows = merge.n() + (right ? merge.extra : 0);
          for (std::int64_t p = begin; p < end; ++p)
            std::copy_n(x + corner + level.source[merge.first + p] * level.order, rows, packed + corner + p * level.order);
        });
  }

  void solve_secular(Context&, BidiagonalLevel const& level) const override {
    for_pieces(
        level, roots_a_piece, [](BidiagonalMerge const& merge) { return merge.k(); },
        [&](BidiagonalMerge const& merge, std::int64_t begin, std::int64_t end) {
          double const *const d = level.d + merge.first, *const z = level.z + merge.first;
          std::int64_t const k = merge.k();
          double z_squared = 0;
          for (std::int64_t j = 0; j < k; ++j)
            z_squared += z[j] * z[j];
          for (std::int64_t i = begin; i < end; ++i) {
            SecularRoot root;
            if (k == 1)
              root.offset = std::fabs(z[0]);
            else {
              bool const last = i == k - 1;
              std::int64_t const n_left = last ? i : i + 1;  // the last pole's own function is the last root's right part
              root = last ? SecularRoot::beyond(d[i - 1], d[i], z_squared) : SecularRoot::between(d[i], d[i + 1]);
              auto const sums = [&] { return sums_at(d, z, k, n_left, root.origin, root.offset); };
              if (!last)
                root.begin(sums(), z[i], z[i + 1]);
              while (!root.advance(sums())) {
              }
            }
            level.origin[merge.first + i] = root.origin;
            level.offset[merge.first + i] = root.offset;
          }
        });
  }

  void recompute_row(Context&, BidiagonalLevel const& level) const override {
    for_pieces(
        level, roots_a_piece, [](BidiagonalMerge const& merge) { return merge.k(); },
        [&](BidiagonalMerge const& merge, std::int64_t begin, std::int64_t end) {
          double const *const d = level.d + merge.first, *const origin = level.origin + merge.first,
                              *const offset = level.offset + merge.first;
          std::int64_t const k = merge.k();
          for (std::int64_t j = begin; j < end; ++j) {
            // Every quotient of sigma_i^2 - d_j^2 and the pole next to sigma_i on the side away from d_j is at most 1.
            auto const quotient = [&](std::int64_t i, std::int64_t pole) {
              return ((origin[i] - d[j]) + offset[i]) * ((origin[i] + d[j]) + offset[i]) / ((d[pole] - d[j]) * (d[pole] + d[j]));
            };
            double product = ((origin[k - 1] - d[j]) + offset[k - 1]) * ((origin[k - 1] + d[j]) + offset[k - 1]);
            double before = 1, behind = 1;
#pragma omp simd reduction(* : before)
            for (std::int64_t i = 0; i < j; ++i)
              before *= quotient(i, i);
#pragma omp simd reduction(* : behind)
            for (std::int64_t i = j; i < k - 1; ++i)
              behind *= quotient(i, i + 1);
            product *= before * behind;
            level.z_hat[merge.first + j] = std::copysign(std::sqrt(std::fabs(product)), level.z[merge.first + j]);
          }
        });
  }

  void vectors(Context&, BidiagonalLevel const& level, bool right, double* s) const override {
    for_pieces(
        level, roots_a_piece, [](BidiagonalMerge const& merge) { return merge.n_wanted; },
        [&](BidiagonalMerge const& merge, std::int64_t begin, std::int64_t end) {
          double const *const d = level.d + merge.first, *const z = level.z_hat + merge.first;
          std::int32_t const* const select = level.select + merge.first;
          std::int64_t const k = merge.k();
          for (std::int64_t column = begin; column < end; ++column) {
            std::int64_t const i = level.wanted != nullptr ? level.wanted[column] : column;
            double const origin = level.origin[merge.first + i], offset = level.offset[merge.first + i];
            double* const to = s + merge.first + (merge.first + column) * level.order;
            if (k == 1) {
              to[0] = right || z[0] >= 0 ? 1 : -1;
              continue;
            }
            double squared = 0;
#pragma omp simd reduction(+ : squared)
            for (std::int64_t t = 0; t < k; ++t) {
              std::int64_t const j = select[t];
              double const of_right = z[j] / (((d[j] - origin) - offset) * ((d[j] + origin) + offset));
              double const value = right ? of_right : (j == 0 ? -1.0 : d[j] * of_right);
              to[t] = value;
              squared += value * value;
            }
            double const norm = std::sqrt(squared);
            for (std::int64_t t = 0; t < k; ++t)
              to[t] /= norm;
          }
        });
  }

  void multiply(Context& context, BidiagonalLevel const& level, bool right, double const* packed, double const* s,
                double* x) const override {
    auto const columns_of = [&](BidiagonalMerge const& merge, std::int64_t begin, std::int64_t end) {
      std::int64_t const n = level.order, corner = merge.first + merge.first * n, upper = merge.n_left + 1,
                         lower = merge.n_right + (right ? merge.extra : 0);
      double const* const of_s = s + corner + begin * n;
      double* const of_x = x + corner + begin * n;
      gemm(context, false, false, upper, end - begin, merge.k_left + merge.k_both, 1, packed + corner, n, of_s, n, 0, of_x, n);
      gemm(context, false, false, lower, end - begin, merge.k_both + merge.k_right, 1, packed + corner + upper + merge.k_left * n,
           n, of_s + merge.k_left, n, 0, of_x + upper, n);
    };
    auto const merges = static_cast<std::int64_t>(level.on_host.size());
    if (merges < 2 * thread_count() || level.order * level.largest <= small) {
      constexpr std::int64_t at_once = 512;  // columns, after which a request to stop is looked for
      for (BidiagonalMerge const& merge : level.on_host)
        for (std::int64_t begin = 0; begin < merge.n_wanted; begin += at_once) {
          if (interrupt_requested())
            throw Interrupted();
          columns_of(merge, begin, std::min<std::int64_t>(merge.n_wanted, begin + at_once));
        }
    } else {
#pragma omp parallel for schedule(dynamic)
      for (std::int64_t i = 0; i < merges; ++i)
        columns_of(level.on_host[static_cast<std::size_t>(i)], 0, level.on_host[static_cast<std::size_t>(i)].n_wanted);
    }
    for_pieces(
        level, roots_a_piece, [&](BidiagonalMerge const& merge) { return merge.n() + (right ? merge.extra : 0) - merge.k(); },
        [&](BidiagonalMerge const& merge, std::int64_t begin, std::int64_t end) {  // deflated columns
          std::int64_t const corner = merge.first + merge.first * level.order, rows = merge.n() + (right ? merge.extra : 0);
          for (std::int64_t p = merge.k() + begin; p < merge.k() + end; ++p)
            std::copy_n(packed + corner + p * level.order, rows, x + corner + p * level.order);
        });
  }

  void gather_columns(Context&, std::int64_t n, std::int64_t count, std::int32_t const* columns, double const* x,
                      double* y) const override {
#pragma omp parallel for schedule(static) if (n * count > small)
    for (std::int64_t j = 0; j < count; ++j)
      std::copy_n(x + columns[j] * n, n, y + j * n);
  }
};

}  // namespace

BidiagonalKernels const& BidiagonalKernels::cpu() {
  static CpuBidiagonal const kernels;
  return kernels;
}

}  // namespace poisson
