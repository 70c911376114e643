#pragma once

#include "gpu/kernels/columns.hpp"
#include "gpu/kernels/csr.hpp"

#include <span>

namespace poisson {

/// What CsrKernels do, for 1 to most_columns columns at once (LinearOperator::product_dots, Matrix::smooth_all). Bytes a row of e
/// entries with m columns, in double: 12 e, read once, and 16 m of x and y. With 27 entries and m = 8 that is 452 in place of 2720.
class CsrColumnKernels {
public:
  virtual ~CsrColumnKernels() = default;
  /// On the host rows and dots are those of CsrKernels; on a device they may be added in another order.
  virtual void product_dots(Context& context, CsrView const& a, std::span<ProductColumn<double> const> columns) const = 0;
  virtual void product_dots(Context& context, CsrView const& a, std::span<ProductColumn<DoubleDouble> const> columns) const = 0;
  virtual void smooth(Context& context, CsrView const& a, std::span<SmoothingColumn<float> const> columns) const = 0;
  virtual void smooth(Context& context, CsrView const& a, std::span<SmoothingColumn<double> const> columns) const = 0;
  virtual void subtract_products(Context& context, CsrView const& a, std::span<ResidualColumn<float> const> columns) const = 0;
  virtual void subtract_products(Context& context, CsrView const& a, std::span<ResidualColumn<double> const> columns) const = 0;

  static CsrColumnKernels const& cpu();
  static CsrColumnKernels const& cuda();
};

}  // namespace poisson
