#pragma once

#include "gpu/core/context.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>

namespace poisson {

/// A square matrix in slices of 32 rows in a device's memory, laid out as a SellView with rows in place, for smoothers: 6 bytes an
/// entry. Beside the diagonal its entries are those of a matrix A, rounded to half precision (IEEE 754 binary16) after a power of
/// two was taken out of each row: to 11 bits, unless one is below 2^-28 of the row's largest. The diagonal is in single precision,
/// and has taken up what rounding took from the row, so that row sums are those of A: on smooth vectors, whose neighbouring entries
/// are nearly equal, a product is as good as one in single precision, and for an M-matrix A the quadratic form differs from that of
/// A by 2^-11 of it at most.
struct HalfSlicesView {
  static constexpr int slice_size = 32;
  std::int64_t n_rows = 0;
  std::int64_t const* slice_ptr = nullptr;  ///< as in SellView
  std::int32_t const* columns = nullptr;    ///< -1: the row has ended
  std::uint16_t const* values = nullptr;    ///< bits of halves; 0 on the diagonal and where a row has ended
  float const* scales = nullptr;            ///< the powers of two
  float const* diagonal = nullptr;
  std::int64_t longest_row = INT64_MAX;  ///< as in CsrView
};

/// Where HalfSlicesKernels::round writes to.
struct HalfSlicesTarget {
  std::uint16_t* values;
  float* scales;
  float* diagonal;
};

/// Only a device has these: processors would convert entries one by one. Calls enqueue work.
class HalfSlicesKernels : public SmoothingKernelsFor<HalfSlicesView, float> {
public:
  using View = HalfSlicesView;
  /// y = alpha A x + beta y; y is not read when beta = 0.
  virtual void product(Context& context, HalfSlicesView const& a, float alpha, float const* x, float beta, float* y) const = 0;
  /// y = A x and *dot = x . y, unless *stop is set.
  virtual void product_dot(Context& context, HalfSlicesView const& a, float const* x, float* y, float* dot,
                           std::int32_t const* stop) const = 0;
  /// Rounds entries in double at the places of `like`, of which slices and columns are read. This takes 26 bytes an entry.
  virtual void round(Context& context, HalfSlicesView const& like, double const* values, HalfSlicesTarget const& target) const = 0;

  static HalfSlicesKernels const& cuda();
};

}  // namespace poisson
