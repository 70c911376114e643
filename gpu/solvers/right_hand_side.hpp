#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/double_double.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/vectors.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <type_traits>
#include <utility>

namespace poisson {

/// b as the iterations in T see it: scaled by a power of two where squares could overflow or underflow, and made orthogonal to the
/// constant vector when that spans the null space. Solving is linear in b, so the scaling changes no digit of the solution. All of
/// it happens in the memory of the backend.
template <class T>
class RightHandSide {
public:
  /// b holds the entries of this rank, in the memory of the context; `ranks` share them. All outlive this: where b can be taken as
  /// it is, it is not copied. Preconditions: b is finite, and not zero on all ranks. Collective.
  RightHandSide(Context& context, Array<double> const& b, bool constant_null_space, Communicator& ranks = alone())
      : context_(context), given_(b), n_(b.size()), project_(constant_null_space), ranks_(ranks) {
    int const exponent = std::ilogb(max_over(ranks, largest_of(context, n_, b.data())));
    if (std::abs(exponent) > safe_exponent)
      exponent_ = exponent;
    if (exponent_ == 0 && !project_ && !extended)
      return;
    own_ = Vector<T>(context, n_);
    auto const& fields = kernels_for<FieldKernels>(context);
    if constexpr (extended)
      own_.set_zero();
    fields.scale(context, n_, -exponent_, b.data(), pair_of(own_).hi);
    if (project_)
      subtract_mean(own_);
  }

  /// Returns the exponent of the scaling: b is this right-hand side times 2^exponent.
  [[nodiscard]] int exponent() const { return exponent_; }
  [[nodiscard]] bool is_projected() const { return project_; }
  [[nodiscard]] ConstPointer<T> data() const {
    if constexpr (extended)
      return own_.data();
    else
      return own_.size() > 0 ? own_.data() : given_.data();
  }

  /// Scales the solution for this right-hand side back to that for b; with a constant null space its mean is subtracted first.
  /// Collective.
  void unscale(Vector<T>& x) const {
    if (project_)
      subtract_mean(x);
    if (exponent_ == 0)
      return;
    auto const& fields = kernels_for<FieldKernels>(context_);
    Pointer<DoubleDouble> const parts = pair_of(x);
    fields.scale(context_, n_, exponent_, parts.hi, parts.hi);
    if (parts.lo != nullptr)
      fields.scale(context_, n_, exponent_, parts.lo, parts.lo);
  }

private:
  static constexpr bool extended = std::is_same_v<T, DoubleDouble>;
  /// Numbers of this size, and far smaller ones beside them, have squares that are normal numbers.
  static constexpr int safe_exponent = 100;

  [[nodiscard]] static Pointer<DoubleDouble> pair_of(Vector<T>& x) {
    if constexpr (extended)
      return x.data();
    else
      return {x.data(), nullptr};
  }
  void subtract_mean(Vector<T>& x) const {
    std::int64_t const n = sum_over(ranks_, n_);
    auto const& fields = kernels_for<FieldKernels>(context_);
    Array<DoubleDouble> mean(context_, 1);
    // Twice: the first mean is rounded at the size of the entries, the second at the size of what is left.
    for (int pass = 0; pass < 2; ++pass) {
      fields.sum(context_, n_, pair_of(x), mean.data());
      DoubleDouble value;
      mean.download(std::span<DoubleDouble>(&value, 1));
      value = sum_over(ranks_, value) / DoubleDouble(n);
      mean.upload(std::span<DoubleDouble const>(&value, 1));
      fields.subtract(context_, n_, mean.data(), pair_of(x));
    }
  }

  Context& context_;
  Array<double> const& given_;
  std::int64_t n_;
  Vector<T> own_;  ///< empty where the given one is taken as it is
  int exponent_ = 0;
  bool project_;
  Communicator& ranks_;
};

}  // namespace poisson
