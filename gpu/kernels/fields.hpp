#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/vector.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// Weights w_i = sqrt(largest / |d_i|) from a main diagonal d, 1 where d_i = 0. Null: all are 1. A norm with such weights lets rows
/// with small entries count as much as others.
struct DiagonalWeights {
  double const* diagonal = nullptr;
  double largest = 0;
};

/// What is asked of an entry.
enum class EntryCheck { finite, positive, not_zero };
[[nodiscard]] inline POISSON_HOST_DEVICE bool passes(EntryCheck check, double entry) {
  return check == EntryCheck::finite ? entry - entry == 0 : check == EntryCheck::positive ? entry > 0 : !(entry == 0);
}

/// What is done with whole vectors beside the iterations of a solver. Vectors of n entries and results are in the backend's memory.
/// Sums have the same bits in every run.
class FieldKernels {
public:
  virtual ~FieldKernels() = default;
  /// x += sign d, then d = 0. 48 bytes a row.
  virtual void add(Context& context, std::int64_t n, double sign, double* d, Pointer<DoubleDouble> x) const = 0;
  /// y_i = 2^exponent x_i, exact where that is a normal number. x may be y. 16 bytes a row.
  virtual void scale(Context& context, std::int64_t n, int exponent, double const* x, double* y) const = 0;
  /// x_i -= *value. `x.lo` may be null: then x_i is rounded. 16 bytes a row, or 32.
  virtual void subtract(Context& context, std::int64_t n, DoubleDouble const* value, Pointer<DoubleDouble> x) const = 0;
  /// x_i = values_i where marks_i is not 0. 17 bytes a row.
  virtual void set_where(Context& context, std::int64_t n, std::uint8_t const* marks, double const* values, double* x) const = 0;
  /// *result = max |w_i x_i|, 0 without entries, NaN where an entry is NaN. 8 bytes a row, or 16.
  virtual void largest(Context& context, std::int64_t n, double const* x, DiagonalWeights weights, double* result) const = 0;
  /// *result = the lowest i where x_i does not pass, n where there is none. 8 bytes a row.
  virtual void first_failing(Context& context, std::int64_t n, double const* x, EntryCheck check, std::int64_t* result) const = 0;
  /// *result = the sum of x. `x.lo` may be null. 8 bytes a row, or 16.
  virtual void sum(Context& context, std::int64_t n, ConstPointer<DoubleDouble> x, DoubleDouble* result) const = 0;
  /// *result = the sum of (2^exponent w_i x_i)^2. 8 bytes a row, or 16.
  virtual void squares(Context& context, std::int64_t n, double const* x, DiagonalWeights weights, int exponent,
                       DoubleDouble* result) const = 0;

  static FieldKernels const& cpu();
  static FieldKernels const& cuda();
};

/// sqrt(sum (w_i x_i)^2), without overflow or underflow, of n entries in the backend's memory; NaN where an entry is not finite.
/// Waits.
[[nodiscard]] double norm_of(Context& context, std::int64_t n, double const* x, DiagonalWeights weights = {});
/// max |w_i x_i|; see FieldKernels::largest. Waits.
[[nodiscard]] double largest_of(Context& context, std::int64_t n, double const* x, DiagonalWeights weights = {});
/// Whether all numbers are finite, asked where they are. Waits.
[[nodiscard]] bool is_finite(Field const& x);
/// The lowest i where x_i does not pass, or n. Waits.
[[nodiscard]] std::int64_t first_failing(Context& context, std::int64_t n, double const* x, EntryCheck check);
[[nodiscard]] std::int64_t first_not_finite(Context& context, std::int64_t n, double const* x);
/// x at these places, of which nothing else leaves the memory where x is. 4 + 16 bytes a place. Waits.
[[nodiscard]] HostVector<double> entries_of(Field const& x, std::span<std::int32_t const> places);
[[nodiscard]] HostVector<double> entries_of(Context& context, double const* x, std::span<std::int32_t const> places);

}  // namespace poisson
