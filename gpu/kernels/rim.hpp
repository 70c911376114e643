#pragma once

#include "gpu/core/dot_sum.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/csr.hpp"

#include <cstdint>
#include <type_traits>

namespace poisson {

/// What vectors need whose entries several ranks share (gpu/exchange), and the rows on the rim of a rank besides the product with
/// its own block (formats/rank_matrix.hpp). Pointers are in the backend's memory. Messages between ranks hold plain T, also of
/// DoubleDouble: high and low part of a number side by side. Where `places` is null, places[i] = i.
template <class T>
class RimKernels {
public:
  virtual ~RimKernels() = default;
  /// message[i vectors + v] = x[v step + places[i]] for i < n, of every vector v. 4 + 16 bytes an entry.
  virtual void pack(Context& context, std::int64_t n, std::int32_t const* places, ConstPointer<T> x, T* message,
                    std::int32_t vectors = 1, std::int64_t step = 0) const = 0;
  /// x[v step + places[i]] = message[i vectors + v] for i < n, of every vector v; entries with a negative place are left out. No
  /// place is named twice. 4 + 16 bytes an entry.
  virtual void put(Context& context, std::int64_t n, std::int32_t const* places, T const* message, Pointer<T> x,
                   std::int32_t vectors = 1, std::int64_t step = 0) const = 0;
  /// y[rows[i]] += alpha c_i with c = C ghosts, for all rows of the couplings C. No row is named twice.
  virtual void add(Context& context, CsrView const& couplings, std::int32_t const* rows, T alpha, T const* ghosts,
                   Pointer<T> y) const = 0;
  /// y[rows[i]] = c_i with the same c.
  virtual void set(Context& context, CsrView const& couplings, std::int32_t const* rows, T const* ghosts, Pointer<T> y) const = 0;
  /// y[rows[i]] += c_i with c = C ghosts, for all rows of the couplings C, and *dot += sum of x[rows[i]] c_i, in a fixed order. No
  /// row is named twice. Does nothing when *stop is not 0.
  virtual void add_dot(Context& context, CsrView const& couplings, std::int32_t const* rows, T const* ghosts, ConstPointer<T> x,
                       Pointer<T> y, T* dot, std::int32_t const* stop) const = 0;

  static RimKernels const& cpu();
  static RimKernels const& cuda();
};

/// (C ghosts) in a row of the couplings C, on both backends.
template <class T>
[[nodiscard]] POISSON_HOST_DEVICE inline T rim_row_product(CsrView const& couplings, std::int64_t row, T const* ghosts) {
  DotSum<T> sum{};
  for (std::int64_t e = couplings.row_ptr[row]; e < couplings.row_ptr[row + 1]; ++e) {
    T const x = ghosts[couplings.columns[e]];
    if constexpr (std::is_same_v<T, DoubleDouble>)
      sum.add(DoubleDouble(couplings.values[e], couplings.low_values != nullptr ? couplings.low_values[e] : 0.0), x);
    else
      sum.add(static_cast<T>(couplings.values[e]), x);
  }
  return static_cast<T>(sum.value());
}

template <>
RimKernels<float> const& RimKernels<float>::cpu();
template <>
RimKernels<float> const& RimKernels<float>::cuda();
template <>
RimKernels<double> const& RimKernels<double>::cpu();
template <>
RimKernels<double> const& RimKernels<double>::cuda();
template <>
RimKernels<DoubleDouble> const& RimKernels<DoubleDouble>::cpu();
template <>
RimKernels<DoubleDouble> const& RimKernels<DoubleDouble>::cuda();

}  // namespace poisson
