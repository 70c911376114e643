#include "gpu/kernels/csr.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/cpu/running_columns.hpp"
#include "gpu/kernels/csr_columns.hpp"

#include <array>

namespace poisson {

namespace {

/// Four sums that do not wait for each other, of single loads: a vector's gather of x takes longer than its eight loads. 12 bytes
/// per entry.
template <class V, class X>
[[nodiscard]] inline double row_product(CsrView const& a, V const* __restrict values, std::int64_t row, X const* __restrict x) {
  std::int32_t const* const __restrict columns = a.columns;
  auto const product = [=](std::int64_t i) { return static_cast<double>(values[i]) * static_cast<double>(x[columns[i]]); };
  double sum_0 = 0, sum_1 = 0, sum_2 = 0, sum_3 = 0;
  std::int64_t e = a.row_ptr[row];
  std::int64_t const end = a.row_ptr[row + 1];
  for (; e + 8 <= end; e += 8) {
    cpu::prefetch_ahead(values + e, columns + e);
    for (std::int64_t i = e; i < e + 8; i += 4) {
      sum_0 += product(i);
      sum_1 += product(i + 1);
      sum_2 += product(i + 2);
      sum_3 += product(i + 3);
    }
  }
  if (e < end)
    cpu::prefetch_ahead(values + e, columns + e);
  for (; e + 2 <= end; e += 2) {
    sum_0 += product(e);
    sum_1 += product(e + 1);
  }
  if (e < end)
    sum_2 += product(e);
  return (sum_0 + sum_2) + (sum_1 + sum_3);
}
template <class Values>
[[nodiscard]] DoubleDouble row_product(CsrView const& a, Values values, std::int64_t row, ConstPointer<DoubleDouble> x) {
  return cpu::sum_in_lanes<4>(a.row_ptr[row], a.row_ptr[row + 1],
                              [&](auto& sum, std::int64_t e) { sum.add(load(values, e), load(x, a.columns[e])); });
}

class CpuCsr final : public SmoothingByTemplates<ProductsByTemplates<CsrKernels, CpuCsr>, CpuCsr> {
public:
  template <class T, class Values>
  static void multiply(Context&, CsrView const& a, Values values, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    cpu::for_blocks(a.n_rows, a.nnz * cpu::work_of<T>, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t row = begin; row < end; ++row) {
        T const value = alpha * static_cast<T>(row_product(a, values, row, x));
        store(y, row, beta == 0 ? value : value + beta * load(y, row));
      }
    });
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, CsrView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    if (*stop != 0)
      return;
    *dot = cpu::sum_blocks_to<T>(context, a.n_rows, a.nnz * cpu::work_of<T>, [&](std::int64_t begin, std::int64_t end) {
      cpu::RowDot<T> sum{};
      for (std::int64_t row = begin; row < end; ++row) {
        T const value = static_cast<T>(row_product(a, values, row, x));
        store(y, row, value);
        sum.add(load(x, row), value);
      }
      return sum.value();
    });
  }

  template <class V, class Finish>
  static void finish_rows(Context&, CsrView const& a, V const* x, Finish const& finish, std::int32_t const* stop) {
    if (*stop != 0)
      return;
    with_stored_values<V>(
        a,
        [&](auto values) {
          cpu::for_blocks(a.n_rows, a.nnz, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
            for (std::int64_t row = begin; row < end; ++row)
              finish(row, static_cast<V>(row_product(a, values, row, x)), x[row]);
          });
        },
        ValuePairs());
  }

  void diagonal(Context&, CsrView const& a, double const* values, double* d) const override { find_diagonal(a, values, d); }
  void diagonal(Context&, CsrView const& a, float const* values, float* d) const override { find_diagonal(a, values, d); }

private:
  template <class V>
  static void find_diagonal(CsrView const& a, V const* values, V* d) {
    cpu::for_blocks(a.n_rows, a.nnz, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::int32_t const* const first = a.columns + a.row_ptr[row];
        std::int32_t const* const last = a.columns + a.row_ptr[row + 1];
        std::int32_t const* const found = std::lower_bound(first, last, row);
        d[row] = found != last && *found == row ? values[found - a.columns] : V(0);
      }
    });
  }
};

/// Every row is taken for all columns before the next one, so that its entries are read from memory once.
class CpuCsrColumns final : public CsrColumnKernels {
public:
  void product_dots(Context& context, CsrView const& a, std::span<ProductColumn<double> const> columns) const override {
    multiply_dots(context, a, columns);
  }
  void product_dots(Context& context, CsrView const& a, std::span<ProductColumn<DoubleDouble> const> columns) const override {
    multiply_dots(context, a, columns);
  }
  void smooth(Context&, CsrView const& a, std::span<SmoothingColumn<float> const> columns) const override {
    finish_rows<float>(a, columns, [](auto const& column) { return SmoothingRow<float>{column.step}; });
  }
  void smooth(Context&, CsrView const& a, std::span<SmoothingColumn<double> const> columns) const override {
    finish_rows<double>(a, columns, [](auto const& column) { return SmoothingRow<double>{column.step}; });
  }
  void subtract_products(Context&, CsrView const& a, std::span<ResidualColumn<float> const> columns) const override {
    finish_rows<float>(a, columns, [](auto const& column) { return ResidualRow<float>{column.b, column.r}; });
  }
  void subtract_products(Context&, CsrView const& a, std::span<ResidualColumn<double> const> columns) const override {
    finish_rows<double>(a, columns, [](auto const& column) { return ResidualRow<double>{column.b, column.r}; });
  }

private:
  template <class T>
  static void multiply_dots(Context& context, CsrView const& a, std::span<ProductColumn<T> const> given) {
    cpu::RunningColumns<ProductColumn<T>> const running(given);
    auto const columns = running.columns();
    struct Sums {
      std::array<T, most_columns> of;
    };
    std::int64_t const blocks = cpu::n_blocks(a.n_rows);
    Sums* const partial = static_cast<cpu::CpuContext&>(context).partial_sums<Sums>(blocks);
    with_stored_values<T>(
        a,
        [&](auto values) {
          cpu::for_blocks(a.n_rows, std::ssize(columns) * a.nnz * cpu::work_of<T>,
                          [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
                            std::array<cpu::RowDot<T>, most_columns> sums{};
                            for (std::int64_t row = begin; row < end; ++row)
                              for (std::size_t j = 0; j < columns.size(); ++j) {
                                T const value = static_cast<T>(row_product(a, values, row, columns[j].x));
                                store(columns[j].y, row, value);
                                sums[j].add(load(columns[j].x, row), value);
                              }
                            for (std::size_t j = 0; j < columns.size(); ++j)
                              partial[block].of[j] = sums[j].value();
                          });
        },
        ValuePairs());
    for (std::size_t j = 0; j < columns.size(); ++j) {
      T sum = 0;
      for (std::int64_t block = 0; block < blocks; ++block)
        sum += partial[block].of[j];
      *columns[j].dot = sum;
    }
  }

  template <class V, class Column, class RowOf>
  static void finish_rows(CsrView const& a, std::span<Column const> given, RowOf const& row_of) {
    cpu::RunningColumns<Column> const running(given);
    auto const columns = running.columns();
    if (columns.empty())
      return;
    with_stored_values<V>(
        a,
        [&](auto values) {
          cpu::for_blocks(a.n_rows, std::ssize(columns) * a.nnz, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
            for (std::int64_t row = begin; row < end; ++row)
              for (Column const& column : columns)
                row_of(column)(row, static_cast<V>(row_product(a, values, row, column.x)), column.x[row]);
          });
        },
        ValuePairs());
  }
};

}  // namespace

CsrKernels const& CsrKernels::cpu() {
  static CpuCsr const kernels;
  return kernels;
}
CsrColumnKernels const& CsrColumnKernels::cpu() {
  static CpuCsrColumns const kernels;
  return kernels;
}

}  // namespace poisson
