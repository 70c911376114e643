#pragma once

#include "gpu/kernels/columns.hpp"
#include "gpu/kernels/half_cds.hpp"

#include <span>

namespace poisson {

/// What HalfCdsKernels do, for 1 to most_columns columns at once (LinearOperator::product_dots, Matrix::smooth_all). Rows are
/// summed in the same order. Bytes a row with 14 diagonals and m columns, in double: 112 of values, read once, and 16 m of x and y,
/// where m products one by one take 128 m. So at m = 8 a product takes 240 in place of 1024. A smoothing step in single takes 60
/// and 12 m, of diagonal and values, and of b, x before and after: 156 in place of 576.
class HalfCdsColumnKernels {
public:
  virtual ~HalfCdsColumnKernels() = default;
  /// On the host dots are those of HalfCdsKernels; on a device they are added in another order.
  virtual void product_dots(Context& context, HalfCdsView const& a, std::span<ProductColumn<double> const> columns) const = 0;
  virtual void product_dots(Context& context, HalfCdsView const& a, std::span<ProductColumn<DoubleDouble> const> columns) const = 0;
  virtual void smooth(Context& context, HalfCdsView const& a, std::span<SmoothingColumn<float> const> columns) const = 0;
  virtual void smooth(Context& context, HalfCdsView const& a, std::span<SmoothingColumn<double> const> columns) const = 0;
  virtual void subtract_products(Context& context, HalfCdsView const& a, std::span<ResidualColumn<float> const> columns) const = 0;
  virtual void subtract_products(Context& context, HalfCdsView const& a, std::span<ResidualColumn<double> const> columns) const = 0;

  static HalfCdsColumnKernels const& cpu();
  static HalfCdsColumnKernels const& cuda();
};

}  // namespace poisson
