#include "gpu/kernels/half_cds.hpp"

#include "gpu/kernels/host/host.hpp"

#include <omp.h>

#include <cmath>

namespace poisson {

namespace {

using host::block_rows;

/// y_i += alpha a_i x_i; alpha is 1 unless `scaled`.
template <bool scaled>
void add_products(std::int64_t count, double alpha, double const* __restrict a, double const* __restrict x, double* __restrict y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = std::fma(scaled ? alpha * a[i] : a[i], x[i], y[i]);
}

/// The same for two diagonals in one pass over y; the order of the additions is kept.
template <bool scaled>
void add_products(std::int64_t count, double alpha, double const* __restrict a, double const* __restrict x,
                  double const* __restrict b, double const* __restrict w, double* __restrict y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = std::fma(scaled ? alpha * b[i] : b[i], w[i], std::fma(scaled ? alpha * a[i] : a[i], x[i], y[i]));
}

/// The rows of one thread. A stored value is read from memory once: the lower term of its row uses it while its block passes,
/// and the upper term of the row `offset` before takes it from the cache, as a scatter into y, while the same block is there.
/// Only where that row belongs to the thread before are values read a second time, by that thread.
template <bool scaled>
class Part {
public:
  Part(HalfCdsView const& a, double alpha, double const* x, double* y, std::int64_t first_block, std::int64_t last_block)
      : a_(a),
        alpha_(alpha),
        x_(x),
        y_(y),
        first_block_(first_block),
        last_block_(last_block),
        first_(first_block * block_rows),
        last_(std::min(a.n, last_block * block_rows)),
        n_diagonals_(static_cast<int>(a.offsets.size())) {}

  /// y = alpha A x + start for the part, where `start(i)` is what y_i begins with, read before row i is written;
  /// `done(block)` is called once for each block, in order, soon after its rows are complete.
  template <class Start, class Done>
  void run(Start const& start, Done const& done) const {
    std::int64_t next_done = first_block_;
    std::int64_t const reach = a_.offsets.back();
    for (std::int64_t block = first_block_; block < last_block_; ++block) {
      std::int64_t const begin = block * block_rows, end = std::min(last_, begin + block_rows);
      for (std::int64_t i = begin; i < end; ++i)
        y_[i] = start(i);
      add_products<scaled>(end - begin, alpha_, a_.values + begin, x_ + begin, y_ + begin);
      lower(begin, end);
      upper(begin, end);
      for (; next_done < block && (next_done + 1) * block_rows <= end - reach; ++next_done)
        done(next_done);
    }
    for (; next_done < last_block_; ++next_done) {
      upper_beyond(next_done * block_rows, std::min(last_, (next_done + 1) * block_rows));
      done(next_done);
    }
  }

private:
  [[nodiscard]] double const* diagonal(int k) const { return a_.values + k * a_.n; }

  void lower(std::int64_t begin, std::int64_t end) const {
    int k = 1;
    for (; k + 1 < n_diagonals_ && a_.offsets[k + 1] <= begin; k += 2)
      add_products<scaled>(end - begin, alpha_, diagonal(k) + begin, x_ + begin - a_.offsets[k], diagonal(k + 1) + begin,
                           x_ + begin - a_.offsets[k + 1], y_ + begin);
    for (; k < n_diagonals_; ++k) {
      std::int64_t const from = std::max<std::int64_t>(begin, a_.offsets[k]);
      if (from < end)
        add_products<scaled>(end - from, alpha_, diagonal(k) + from, x_ + from - a_.offsets[k], y_ + from);
    }
  }

  void upper(std::int64_t begin, std::int64_t end) const {
    for (int k = 1; k < n_diagonals_; ++k) {
      std::int64_t const from = std::max(begin, first_ + a_.offsets[k]);
      if (from < end)
        add_products<scaled>(end - from, alpha_, diagonal(k) + from, x_ + from, y_ + from - a_.offsets[k]);
    }
  }

  /// Upper terms whose stored value lies in a row after the part.
  void upper_beyond(std::int64_t begin, std::int64_t end) const {
    for (int k = 1; k < n_diagonals_; ++k) {
      std::int64_t const o = a_.offsets[k];
      std::int64_t const from = std::max(begin, last_ - o), to = std::min(end, a_.n - o);
      if (from < to)
        add_products<scaled>(to - from, alpha_, diagonal(k) + from + o, x_ + from + o, y_ + from);
    }
  }

  HalfCdsView const& a_;
  double alpha_;
  double const* x_;
  double* y_;
  std::int64_t first_block_, last_block_, first_, last_;
  int n_diagonals_;
};

/// One part for each thread.
template <bool scaled, class Start, class Done>
void run_parts(HalfCdsView const& a, double alpha, double const* x, double* y, Start const& start, Done const& done) {
  std::int64_t const blocks = host::n_blocks(a.n);
#pragma omp parallel if (blocks > 4)
  {
    std::int64_t const threads = omp_get_num_threads(), thread = omp_get_thread_num();
    Part<scaled>(a, alpha, x, y, blocks * thread / threads, blocks * (thread + 1) / threads).run(start, done);
  }
}

class HostHalfCds final : public HalfCdsKernels {
public:
  void product(Context&, HalfCdsView const& a, double alpha, double const* x, double beta, double* y) const override {
    auto const zero = [](std::int64_t) { return 0.0; };
    auto const nothing = [](std::int64_t) {};
    if (beta != 0)
      run_parts<true>(
          a, alpha, x, y, [=](std::int64_t i) { return beta * y[i]; }, nothing);
    else if (alpha != 1)
      run_parts<true>(a, alpha, x, y, zero, nothing);
    else
      run_parts<false>(a, alpha, x, y, zero, nothing);
  }

  void product_dot(Context& context, HalfCdsView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    double* const partial = static_cast<host::HostContext&>(context).partial_sums(host::n_blocks(a.n));
    auto const zero = [](std::int64_t) { return 0.0; };
    run_parts<false>(a, 1, x, y, zero, [=, n = a.n](std::int64_t block) {
      double sum = 0;
      std::int64_t const end = std::min(n, (block + 1) * block_rows);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = block * block_rows; i < end; ++i)
        sum += x[i] * y[i];
      partial[block] = sum;
    });
    double sum = 0;
    for (std::int64_t block = 0; block < host::n_blocks(a.n); ++block)
      sum += partial[block];
    *dot = sum;
  }
};

}  // namespace

HalfCdsKernels const& HalfCdsKernels::host() {
  static HostHalfCds const kernels;
  return kernels;
}

}  // namespace poisson
