#include "gpu/kernels/aggregation.hpp"

#include "gpu/kernels/greedy_aggregates.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace poisson {

namespace {

constexpr int power_steps = 12;
/// Rows that a thread takes at once.
constexpr std::int64_t rows_at_once = 256;

SparseArrays empty_rows(Context& context, std::int64_t n_rows, std::int64_t n_columns) {
  SparseArrays result;
  result.n_columns = n_columns;
  result.row_ptr = Array<std::int64_t>(context, n_rows + 1);
  result.row_ptr.data()[0] = 0;
  return result;
}

/// Sums up the rows' lengths, which follow row_ptr[0], and makes room for the entries.
void make_room(Context& context, SparseArrays& matrix) {
  std::int64_t* const row_ptr = matrix.row_ptr.data();
  std::int64_t const n_rows = matrix.row_ptr.size() - 1;
  for (std::int64_t i = 0; i < n_rows; ++i)
    row_ptr[i + 1] += row_ptr[i];
  matrix.columns = Array<std::int32_t>(context, row_ptr[n_rows]);
  matrix.values = Array<double>(context, row_ptr[n_rows]);
}

/// A row of the prolongation.
class ProlongationRow {
public:
  using Entry = std::pair<std::int32_t, double>;

  ProlongationRow(CsrView const& a, Couplings const& couplings, Aggregates const& aggregates, double damping)
      : a_(a), couplings_(couplings), of_(aggregates.of.data()), damping_(damping) {}
  std::vector<Entry> const& operator()(std::int64_t i) {
    row_.clear();
    if (of_[i] < 0)
      return row_;
    double diagonal = 0;
    for (std::int64_t k = a_.row_ptr[i]; k < a_.row_ptr[i + 1]; ++k)
      if (!greedy_aggregates::is_strong_entry(a_, couplings_, i, k))
        diagonal += a_.values[k];
    double const whole = couplings_.diagonal.data()[i];
    if (!(diagonal / whole > least_share_of_diagonal))
      diagonal = whole;
    row_.emplace_back(of_[i], 1 - damping_);
    for (std::int64_t k = a_.row_ptr[i]; k < a_.row_ptr[i + 1]; ++k)
      if (greedy_aggregates::is_strong_entry(a_, couplings_, i, k))
        if (std::int32_t const to = of_[a_.columns[k]]; to >= 0) {
          auto const found = std::find_if(row_.begin(), row_.end(), [&](Entry const& e) { return e.first == to; });
          double const weight = -damping_ * a_.values[k] / diagonal;
          if (found != row_.end())
            found->second += weight;
          else
            row_.emplace_back(to, weight);
        }
    std::sort(row_.begin(), row_.end(), [](Entry const& x, Entry const& y) { return x.first < y.first; });
    return row_;
  }

private:
  CsrView const& a_;
  Couplings const& couplings_;
  std::int32_t const* of_;
  double damping_;
  std::vector<Entry> row_;
};

class CpuAggregation final : public AggregationKernels {
public:
  Couplings couplings(Context& context, CsrView const& a, bool positive) const override {
    Couplings result;
    result.diagonal = Array<double>(context, a.n_rows);
    result.strongest = Array<double>(context, a.n_rows);
    double *const diagonal = result.diagonal.data(), *const strongest = result.strongest.data();
    double bound = 0;
    std::int64_t bad_row = a.n_rows;
#pragma omp parallel for schedule(static) reduction(max : bound) reduction(min : bad_row)
    for (std::int64_t i = 0; i < a.n_rows; ++i) {
      double own = 0, largest = 0, sum = 0;
      for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k) {
        sum += std::abs(a.values[k]);
        if (a.columns[k] == i)
          own = a.values[k];
      }
      for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
        if (a.columns[k] != i)
          largest = std::max(largest, own < 0 ? a.values[k] : -a.values[k]);
      diagonal[i] = own;
      strongest[i] = largest;
      bound = std::max(bound, sum / std::abs(own));
      if (is_bad_diagonal(own, positive))
        bad_row = std::min(bad_row, i);
    }
    result.bound = bound;
    if (bad_row < a.n_rows) {
      result.bad_row = bad_row;
      result.bad_value = diagonal[bad_row];
    }
    return result;
  }

  Aggregates aggregate(Context& context, CsrView const& a, Couplings const& couplings) const override {
    std::int64_t count = 0;
    auto const next = [&] { return static_cast<std::int32_t>(count++); };
    auto of = greedy_aggregates::begin<std::int32_t>(couplings);
    greedy_aggregates::form(a, couplings, of, next, [](std::size_t, std::int32_t) {});
    greedy_aggregates::join(a, couplings, of, next);
    Aggregates result{Array<std::int32_t>(context, a.n_rows), count};
    result.of.upload(of);
    return result;
  }

  double largest_eigenvalue(Context&, CsrView const& a, Couplings const& couplings) const override {
    std::int64_t const n = a.n_rows;
    double const* const diagonal = couplings.diagonal.data();
    std::vector<double> x(static_cast<std::size_t>(n)), y(static_cast<std::size_t>(n));
    std::uint32_t state = 1;
    for (double& v : x) {
      state = state * 1664525U + 1013904223U;
      v = static_cast<double>(state) / 4294967296.0 - 0.5;
    }
    // Blocks, so that the sums do not depend on the number of threads.
    constexpr std::int64_t block = 4096;
    std::int64_t const blocks = (n + block - 1) / block;
    std::vector<double> partial(static_cast<std::size_t>(2 * blocks));
    double estimate = 0;
    for (int step = 0; step < power_steps; ++step) {
#pragma omp parallel for schedule(static)
      for (std::int64_t b = 0; b < blocks; ++b) {
        double before = 0, after = 0;
        for (std::int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i) {
          double sum = 0;
          for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
            sum += a.values[k] * x[static_cast<std::size_t>(a.columns[k])];
          auto const row = static_cast<std::size_t>(i);
          double const d = std::abs(diagonal[i]);
          y[row] = sum / diagonal[i];
          before += d * x[row] * x[row];
          after += d * y[row] * y[row];
        }
        partial[static_cast<std::size_t>(2 * b)] = before;
        partial[static_cast<std::size_t>(2 * b + 1)] = after;
      }
      double before = 0, after = 0;
      for (std::int64_t b = 0; b < blocks; ++b) {
        before += partial[static_cast<std::size_t>(2 * b)];
        after += partial[static_cast<std::size_t>(2 * b + 1)];
      }
      if (!(before > 0) || !(after > 0))
        return std::nan("");
      estimate = std::sqrt(after / before);
      double const scale = 1 / std::sqrt(after);
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < n; ++i)
        x[static_cast<std::size_t>(i)] = scale * y[static_cast<std::size_t>(i)];
    }
    return std::isfinite(estimate) ? estimate : std::nan("");
  }

  SparseArrays prolongation(Context& context, CsrView const& a, Couplings const& couplings, Aggregates const& aggregates,
                            double damping) const override {
    SparseArrays p = empty_rows(context, a.n_rows, aggregates.count);
    std::int64_t* const row_ptr = p.row_ptr.data();
#pragma omp parallel
    {
      ProlongationRow row(a, couplings, aggregates, damping);
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < a.n_rows; ++i)
        row_ptr[i + 1] = std::ssize(row(i));
    }
    make_room(context, p);
#pragma omp parallel
    {
      ProlongationRow row(a, couplings, aggregates, damping);
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < a.n_rows; ++i) {
        std::int64_t to = row_ptr[i];
        for (auto const& [column, value] : row(i)) {
          p.columns.data()[to] = column;
          p.values.data()[to++] = value;
        }
      }
    }
    return p;
  }

  SparseArrays transposed(Context& context, CsrView const& a) const override {
    SparseArrays result = empty_rows(context, a.n_columns, a.n_rows);
    result.row_ptr.set_zero();
    for (std::int64_t k = 0; k < a.nnz; ++k)
      ++result.row_ptr.data()[a.columns[k] + 1];
    make_room(context, result);
    std::vector<std::int64_t> next(result.row_ptr.data(), result.row_ptr.data() + a.n_columns);
    for (std::int64_t i = 0; i < a.n_rows; ++i)
      for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k) {
        std::int64_t const to = next[static_cast<std::size_t>(a.columns[k])]++;
        result.columns.data()[to] = static_cast<std::int32_t>(i);
        result.values.data()[to] = a.values[k];
      }
    return result;
  }

  SparseArrays product(Context& context, CsrView const& a, CsrView const& b, bool) const override {
    SparseArrays result = empty_rows(context, a.n_rows, b.n_columns);
    std::int64_t* const row_ptr = result.row_ptr.data();
    auto const width = static_cast<std::size_t>(b.n_columns);
    // First the rows' lengths, then their entries. mark[c] tells the row in which column c was met last.
#pragma omp parallel
    {
      std::vector<std::int64_t> mark(width, -1);
#pragma omp for schedule(dynamic, rows_at_once)
      for (std::int64_t i = 0; i < a.n_rows; ++i) {
        std::int64_t length = 0;
        for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
          for (std::int64_t l = b.row_ptr[a.columns[k]]; l < b.row_ptr[a.columns[k] + 1]; ++l)
            if (std::int64_t& last = mark[static_cast<std::size_t>(b.columns[l])]; last != i) {
              last = i;
              ++length;
            }
        row_ptr[i + 1] = length;
      }
    }
    make_room(context, result);
#pragma omp parallel
    {
      std::vector<double> sums(width, 0.0);
      std::vector<std::int64_t> mark(width, -1);
#pragma omp for schedule(dynamic, rows_at_once)
      for (std::int64_t i = 0; i < a.n_rows; ++i) {
        std::int32_t* const columns = result.columns.data() + row_ptr[i];
        std::int64_t length = 0;
        for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k) {
          double const factor = a.values[k];
          for (std::int64_t l = b.row_ptr[a.columns[k]]; l < b.row_ptr[a.columns[k] + 1]; ++l) {
            auto const column = static_cast<std::size_t>(b.columns[l]);
            if (mark[column] != i) {
              mark[column] = i;
              sums[column] = 0;
              columns[length++] = b.columns[l];
            }
            sums[column] += factor * b.values[l];
          }
        }
        std::sort(columns, columns + length);
        for (std::int64_t k = 0; k < length; ++k)
          result.values.data()[row_ptr[i] + k] = sums[static_cast<std::size_t>(columns[k])];
      }
    }
    return result;
  }
};

}  // namespace

AggregationKernels const& AggregationKernels::cpu() {
  static CpuAggregation const kernels;
  return kernels;
}

}  // namespace poisson
