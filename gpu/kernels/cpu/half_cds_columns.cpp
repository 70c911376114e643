#include "gpu/kernels/half_cds_columns.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/cpu/half_cds_part.hpp"
#include "gpu/kernels/cpu/running_columns.hpp"

#include <array>
#include <omp.h>
#include <optional>

namespace poisson {

namespace {

/// x and y = A x of a column.
template <class T>
struct Multiplied {
  ConstPointer<T> x;
  Pointer<T> y;
};

/// y = A x of all columns, and done(column, block) soon after its rows are complete. The columns take turns pass by pass, while the
/// values of a pass are in the second-level cache: 8 bytes of every diagonal from memory a row, and 16 of every column.
template <class T, class Values, class Done>
void run_columns(HalfCdsView const& a, Values values, std::span<Multiplied<T> const> columns, Done const& done) {
  std::int64_t const blocks = cpu::n_blocks(a.n);
  cpu::HalfDiagonals const diagonals{a.n, a.n, a.offsets};
  auto const groups = cpu::groups_of(a.offsets);
  using Part = cpu::HalfCdsPart<false, T, Values>;
#pragma omp parallel if (blocks > 1 && 2 * a.n * std::ssize(a.offsets) * cpu::work_of <T> >= cpu::work_worth_threads)
  {
    std::int64_t const threads = omp_get_num_threads(), thread = omp_get_thread_num();
    std::int64_t const first = blocks * thread / threads, last = blocks * (thread + 1) / threads;
    auto const zero = [](std::int64_t) { return T(0); };
    std::array<std::optional<Part>, most_columns> parts;
    for (std::size_t j = 0; j < columns.size(); ++j)
      parts[j].emplace(diagonals, values, groups, T(1), columns[j].x, columns[j].y, first, last);
    for (std::int64_t begin = first * cpu::block_rows; begin < std::min(a.n, last * cpu::block_rows); begin += cpu::pass_rows)
      for (std::size_t j = 0; j < columns.size(); ++j)
        parts[j]->pass(begin, zero, [&](std::int64_t block) { done(j, block); });
    for (std::size_t j = 0; j < columns.size(); ++j)
      parts[j]->finish([&](std::int64_t block) { done(j, block); });
  }
}

class CpuHalfCdsColumns final : public HalfCdsColumnKernels {
public:
  void product_dots(Context& context, HalfCdsView const& a, std::span<ProductColumn<double> const> columns) const override {
    multiply_dots(context, a, columns);
  }
  void product_dots(Context& context, HalfCdsView const& a, std::span<ProductColumn<DoubleDouble> const> columns) const override {
    multiply_dots(context, a, columns);
  }
  void smooth(Context&, HalfCdsView const& a, std::span<SmoothingColumn<float> const> columns) const override {
    take_steps(a, columns);
  }
  void smooth(Context&, HalfCdsView const& a, std::span<SmoothingColumn<double> const> columns) const override {
    take_steps(a, columns);
  }
  void subtract_products(Context&, HalfCdsView const& a, std::span<ResidualColumn<float> const> columns) const override {
    residuals(a, columns);
  }
  void subtract_products(Context&, HalfCdsView const& a, std::span<ResidualColumn<double> const> columns) const override {
    residuals(a, columns);
  }

private:
  template <class T>
  static void multiply_dots(Context& context, HalfCdsView const& a, std::span<ProductColumn<T> const> given) {
    cpu::RunningColumns<ProductColumn<T>> const running(given);
    auto const columns = running.columns();
    std::array<Multiplied<T>, most_columns> multiplied;
    for (std::size_t j = 0; j < columns.size(); ++j)
      multiplied[j] = {columns[j].x, columns[j].y};
    std::int64_t const blocks = cpu::n_blocks(a.n);
    T* const partial = static_cast<cpu::CpuContext&>(context).partial_sums<T>(most_columns * blocks);
    with_stored_values<T>(
        a,
        [&](auto values) {
          run_columns<T>(a, values, std::span<Multiplied<T> const>(multiplied).first(columns.size()),
                         [&, n = a.n](std::size_t j, std::int64_t block) {
                           Pointer<T> const y = columns[j].y;
                           cpu::complete_rows(n, block, y);
                           partial[static_cast<std::int64_t>(j) * blocks + block] =
                               cpu::dot_of_rows(block * cpu::block_rows, std::min(n, (block + 1) * cpu::block_rows), columns[j].x,
                                                ConstPointer<T>(y));
                         });
        },
        ValuePairs());
    for (std::size_t j = 0; j < columns.size(); ++j) {
      T sum = 0;
      for (std::int64_t block = 0; block < blocks; ++block)
        sum += partial[static_cast<std::int64_t>(j) * blocks + block];
      *columns[j].dot = sum;
    }
  }

  /// y = A x of all columns, and row(column, i) for every row soon after it is complete.
  template <class V, class Row>
  static void for_products(HalfCdsView const& a, std::span<Multiplied<V> const> multiplied, Row const& row) {
    if (a.n == 0 || multiplied.empty())
      return;
    with_stored_values<V>(
        a,
        [&](auto values) {
          run_columns<V>(a, values, multiplied, [&, n = a.n](std::size_t j, std::int64_t block) {
            row(j, block * cpu::block_rows, std::min(n, (block + 1) * cpu::block_rows));
          });
        },
        ValuePairs());
  }
  template <class V>
  static void take_steps(HalfCdsView const& a, std::span<SmoothingColumn<V> const> given) {
    cpu::RunningColumns<SmoothingColumn<V>> const running(given);
    auto const columns = running.columns();
    std::array<Multiplied<V>, most_columns> multiplied;
    for (std::size_t j = 0; j < columns.size(); ++j)
      multiplied[j] = {columns[j].x, columns[j].step.x_after};
    for_products<V>(a, std::span<Multiplied<V> const>(multiplied).first(columns.size()),
                    [&](std::size_t j, std::int64_t begin, std::int64_t end) {
                      SmoothingStep<V> const step = columns[j].step;
                      V const* const x = columns[j].x;
#pragma omp simd
                      for (std::int64_t i = begin; i < end; ++i)
                        take_step(step, i, step.x_after[i], x[i]);
                    });
  }
  template <class V>
  static void residuals(HalfCdsView const& a, std::span<ResidualColumn<V> const> given) {
    cpu::RunningColumns<ResidualColumn<V>> const running(given);
    auto const columns = running.columns();
    std::array<Multiplied<V>, most_columns> multiplied;
    for (std::size_t j = 0; j < columns.size(); ++j)
      multiplied[j] = {columns[j].x, columns[j].r};
    for_products<V>(a, std::span<Multiplied<V> const>(multiplied).first(columns.size()),
                    [&](std::size_t j, std::int64_t begin, std::int64_t end) {
                      V const* const b = columns[j].b;
                      V* const r = columns[j].r;
#pragma omp simd
                      for (std::int64_t i = begin; i < end; ++i)
                        r[i] = b[i] - r[i];
                    });
  }
};

}  // namespace

HalfCdsColumnKernels const& HalfCdsColumnKernels::cpu() {
  static CpuHalfCdsColumns const kernels;
  return kernels;
}

}  // namespace poisson
