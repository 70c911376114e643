#include "gpu/kernels/cds.hpp"

#include "gpu/kernels/host/diagonals.hpp"
#include "gpu/kernels/host/host.hpp"

namespace poisson {

namespace {

/// sums[i - begin] = (A x)_i for one block of rows, added by ascending offset. Bytes per row of D diagonals: 8 D of values, 8 of x,
/// and y written and read for ownership.
void block_product(CdsView const& a, double const* x, std::int64_t begin, std::int64_t end, double* sums) {
  constexpr int most = 64;
  host::Term terms[most];
  auto const n_diagonals = static_cast<std::int64_t>(a.offsets.size());
  std::fill(sums, sums + (end - begin), 0.0);
  for (std::int64_t first = begin; first < end; first += host::pass_rows) {
    std::int64_t const last = std::min(end, first + host::pass_rows);
    int count = 0;
    auto const add = [&] {
      host::add_terms<false, 1>(count, last - first, 1, terms, sums + (first - begin));
      count = 0;
    };
    for (std::int64_t k = 0; k < n_diagonals; ++k) {
      std::int64_t const o = a.offsets[static_cast<std::size_t>(k)];
      std::int64_t const from = std::max(first, -o), to = std::min(last, a.n_columns - o);
      if (from >= to)
        continue;
      double const* const values = a.values + k * a.n_rows + from;
      host::Term const term{values, x + from + o, values + host::rows_ahead};
      if (to - from == last - first) {
        terms[count++] = term;
        if (count == most)
          add();
      } else {
        add();
        host::add_terms<false, 1>(1, to - from, 1, &term, sums + (from - begin));
      }
    }
    add();
  }
}

class HostCds final : public CdsKernels {
public:
  void product(Context&, CdsView const& a, double alpha, double const* x, double beta, double* y) const override {
    host::for_blocks(a.n_rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      alignas(64) double sums[host::block_rows];
      block_product(a, x, begin, end, sums);
      if (beta == 0)
        for (std::int64_t i = begin; i < end; ++i)
          y[i] = alpha * sums[i - begin];
      else
        for (std::int64_t i = begin; i < end; ++i)
          y[i] = alpha * sums[i - begin] + beta * y[i];
    });
  }

  void product_dot(Context& context, CdsView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    *dot = host::sum_blocks(context, a.n_rows, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) double sums[host::block_rows];
      block_product(a, x, begin, end, sums);
      std::copy(sums, sums + (end - begin), y + begin);
      double total = 0;
#pragma omp simd reduction(+ : total)
      for (std::int64_t i = begin; i < end; ++i)
        total += x[i] * sums[i - begin];
      return total;
    });
  }
};

}  // namespace

CdsKernels const& CdsKernels::host() {
  static HostCds const kernels;
  return kernels;
}

}  // namespace poisson
