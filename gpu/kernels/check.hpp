#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/kernels/csr.hpp"
#include "gpu/kernels/half_cds.hpp"
#include "gpu/kernels/lattice_half_cds.hpp"

#include <cmath>

namespace poisson {

/// A sum of products without rounding errors worth mentioning: products are exact, and the sum carries three doubles, so that
/// solutions in double-double can be judged. Compile without contraction on the host; on a device there is no product that it could
/// reach.
class AccurateSum {
public:
  explicit POISSON_HOST_DEVICE AccurateSum(double first, double second = 0, double third = 0) : sum_{first, second, third} {}
  POISSON_HOST_DEVICE void add_product(double f, double g) {
    double const product = std::fma(f, g, 0.0);  // and not f * g, which a compiler could fuse with what follows
    add(product);
    add(std::fma(f, g, -product));
  }
  /// Rounded.
  [[nodiscard]] POISSON_HOST_DEVICE double value() const {
    // What cancelled in sum_[0] may have left it as large as sum_[1].
    double const s = sum_[0] + sum_[1], of_1 = s - sum_[0];
    return s + ((sum_[0] - (s - of_1)) + (sum_[1] - of_1) + sum_[2]);
  }

  /// What it carries, by falling size.
  [[nodiscard]] POISSON_HOST_DEVICE double part(int i) const { return sum_[i]; }

private:
  POISSON_HOST_DEVICE void add(double v) {
    for (int i = 0; i < 2; ++i) {  // two_sum (Knuth 1969): v becomes what the sum lost
      double const s = sum_[i] + v, of_v = s - sum_[i];
      v = (sum_[i] - (s - of_v)) + (v - of_v);
      sum_[i] = s;
    }
    sum_[2] += v;
  }
  double sum_[3];
};

/// (b - A (x + x_lo))_i, rounded at the end; x_lo may be null.
[[nodiscard]] inline POISSON_HOST_DEVICE double residual_of_row(CsrView const& a, std::int64_t row, double const* x,
                                                                double const* x_lo, double b) {
  AccurateSum sum(b);
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    sum.add_product(-a.values[e], x[a.columns[e]]);
    if (x_lo != nullptr)
      sum.add_product(-a.values[e], x_lo[a.columns[e]]);
  }
  return sum.value();
}
/// (b - A (x + x_lo))_i with A in half_cds, rounded at the end; x_lo may be null. Low values of A count.
[[nodiscard]] inline POISSON_HOST_DEVICE double residual_of_row(HalfCdsView const& a, std::int64_t n_offsets, std::int64_t row,
                                                                double const* x, double const* x_lo, double b) {
  AccurateSum sum(b);
  auto const add = [&](std::int64_t place, std::int64_t column) {
    sum.add_product(-a.values[place], x[column]);
    if (x_lo != nullptr)
      sum.add_product(-a.values[place], x_lo[column]);
    if (a.low_values != nullptr)
      sum.add_product(-a.low_values[place], x[column]);
  };
  for (std::int64_t k = 0; k < n_offsets; ++k) {
    std::int64_t const offset = a.backend_offsets[k];
    if (row >= offset)
      add(k * a.n + row, row - offset);
    if (offset > 0 && row + offset < a.n)
      add(k * a.n + row + offset, row + offset);
  }
  return sum.value();
}

/// b - A (x + x_lo) at an unknown, with A in half_cds on a mesh of lattices; x_lo may be null. It is summed entry by entry over the
/// nodes of the unknown. Precondition: entries are doubles.
[[nodiscard]] inline POISSON_HOST_DEVICE AccurateSum residual_at(LatticeHalfCdsView const& a, std::int64_t unknown, double const* x,
                                                                 double const* x_lo, double b) {
  AccurateSum sum(b);
  for_nodes_of(a.lattices, unknown, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
    for_couplings(a, lattice, i, j, k, [&](std::int64_t place, std::int32_t i2, std::int32_t j2, std::int32_t k2) {
      std::int64_t const column = a.lattices.unknown(lattice, i2, j2, k2);
      sum.add_product(-a.values[place], x[column]);
      if (x_lo != nullptr)
        sum.add_product(-a.values[place], x_lo[column]);
    });
  });
  return sum;
}
/// The same in a row, with what other ranks contribute, rounded at the end.
[[nodiscard]] inline POISSON_HOST_DEVICE double residual_of_row(LatticeHalfCdsView const& a, std::int64_t row, double const* x,
                                                                double const* x_lo, double b) {
  AccurateSum sum = residual_at(a, row, x, x_lo, b);
  if (std::int64_t const on_rim = row - a.lattices.n_inner(); a.added_extended.hi != nullptr && on_rim >= 0) {
    sum.add_product(-1, a.added_extended.hi[on_rim]);
    sum.add_product(-1, a.added_extended.lo[on_rim]);
  }
  return sum.value();
}
/// A (x + x_lo) at an unknown, as far as the lattices here contribute to it.
[[nodiscard]] inline POISSON_HOST_DEVICE DoubleDouble product_at(LatticeHalfCdsView const& a, std::int64_t unknown, double const* x,
                                                                 double const* x_lo) {
  AccurateSum const sum = residual_at(a, unknown, x, x_lo, 0);
  return -two_sum(sum.part(0), sum.part(1) + sum.part(2));
}

/// Checks of products and solutions, independent of the code under test.
class CheckKernels {
public:
  virtual ~CheckKernels() = default;
  /// The componentwise error: the largest |y - A x|_i / (|A| |x|)_i over all rows, with A x summed in double, entry by entry. 0 / 0
  /// counts as 0; a quotient that is not finite counts as infinity. Pointers are in the context's memory. Waits for the result.
  [[nodiscard]] virtual double largest_error(Context& context, CsrView const& a, double const* x, double const* y) const = 0;

  /// r_i = residual_of_row; x_lo may be null. Pointers are in the context's memory. Enqueues.
  virtual void residual(Context& context, CsrView const& a, double const* x, double const* x_lo, double const* b,
                        double* r) const = 0;
  virtual void residual(Context& context, HalfCdsView const& a, double const* x, double const* x_lo, double const* b,
                        double* r) const = 0;
  virtual void residual(Context& context, LatticeHalfCdsView const& a, double const* x, double const* x_lo, double const* b,
                        double* r) const = 0;
  /// out_i = product_at(unknowns[i]) for n unknowns. As residual.
  virtual void products_at(Context& context, LatticeHalfCdsView const& a, std::int64_t n, std::int32_t const* unknowns,
                           double const* x, double const* x_lo, DoubleDouble* out) const = 0;

  static CheckKernels const& cpu();
  static CheckKernels const& cuda();
};

}  // namespace poisson
