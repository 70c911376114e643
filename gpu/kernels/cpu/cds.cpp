#include "gpu/kernels/cds.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/cpu/diagonals.hpp"

namespace poisson {

namespace {

/// sums_(i - begin) = (A x)_i for one block of rows, added by ascending offset. Bytes per row of D diagonals: 8 D of values, 8 of
/// x, and y written and read for ownership; in DoubleDouble twice that of x and y.
template <class T, class Values>
void block_product(CdsView const& a, Values values, ConstPointer<T> x, std::int64_t begin, std::int64_t end, Pointer<T> sums) {
  constexpr int most = 64;
  cpu::Term<Values, ConstPointer<T>> terms[most];
  auto const n_diagonals = static_cast<std::int64_t>(a.offsets.size());
  cpu::fill_zero(sums, end - begin);
  for (std::int64_t first = begin; first < end; first += cpu::pass_rows) {
    std::int64_t const last = std::min(end, first + cpu::pass_rows);
    int count = 0;
    auto const add = [&] {
      cpu::add_terms<false, 1>(count, last - first, T(1), terms, sums + (first - begin));
      count = 0;
    };
    for (std::int64_t k = 0; k < n_diagonals; ++k) {
      std::int64_t const o = a.offsets[static_cast<std::size_t>(k)];
      std::int64_t const from = std::max(first, -o), to = std::min(last, a.n_columns - o);
      if (from >= to)
        continue;
      Values const of_rows = values + (k * a.n_rows + from);
      cpu::Term<Values, ConstPointer<T>> const term{of_rows, x + (from + o), of_rows + cpu::pass_rows};
      if (to - from == last - first) {
        terms[count++] = term;
        if (count == most)
          add();
      } else {
        add();
        cpu::add_terms<false, 1>(1, to - from, T(1), &term, sums + (from - begin));
      }
    }
    add();
  }
  if constexpr (std::is_same_v<T, DoubleDouble>)
    for (std::int64_t i = 0; i < end - begin; ++i)
      store(sums, i, cpu::load_sum(sums, i).value());
}

class CpuCds final : public ProductsByTemplates<CdsKernels, CpuCds> {
public:
  template <class T, class Values>
  static void multiply(Context&, CdsView const& a, Values values, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    cpu::for_blocks(a.n_rows, a.n_rows * std::ssize(a.offsets) * cpu::work_of<T>,
                    [&](std::int64_t begin, std::int64_t end, std::int64_t) {
                      cpu::NumberBuffer<T, cpu::block_rows> buffer;
                      Pointer<T> const sums = buffer.data();
                      block_product<T>(a, values, x, begin, end, sums);
                      if (beta == 0)
                        for (std::int64_t i = begin; i < end; ++i)
                          store(y, i, alpha * load(sums, i - begin));
                      else
                        for (std::int64_t i = begin; i < end; ++i)
                          store(y, i, alpha * load(sums, i - begin) + beta * load(y, i));
                    });
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, CdsView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    if (*stop != 0)
      return;
    *dot = cpu::sum_blocks_to<T>(context, a.n_rows, a.n_rows * std::ssize(a.offsets) * cpu::work_of<T>,
                                 [&](std::int64_t begin, std::int64_t end) {
                                   block_product<T>(a, values, x, begin, end, y + begin);
                                   return cpu::dot_of_rows(begin, end, x, y);
                                 });
  }
};

}  // namespace

CdsKernels const& CdsKernels::cpu() {
  static CpuCds const kernels;
  return kernels;
}

}  // namespace poisson
