#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"

#include <cstdint>

namespace poisson {

/// The rows of a triangular matrix by level (RowLevels in preconditioners/ordering.hpp): rows of one level are independent.
struct LevelSchedule {
  /// Level after level, rows ascending within each; on a device every level is filled up with -1 to whole warps.
  std::int32_t const* rows = nullptr;
  std::int64_t n_slots = 0;                 ///< entries of `rows`
  std::int64_t const* level_ptr = nullptr;  ///< n_levels + 1 offsets into `rows`; in host memory
  std::int64_t n_levels = 0;
  bool side_by_side = false;  ///< most rows of a level follow each other in the matrix
};

/// The factors L and U in the pattern of A, in CSR: strictly lower entries are L's (whose diagonal is 1), the diagonal entry is
/// 1 / u_ii, strictly upper entries are U's. Columns ascend within a row, and the diagonal entry is always stored.
struct IluView {
  std::int64_t n_rows = 0;
  std::int64_t nnz = 0;
  std::int64_t const* row_ptr = nullptr;
  std::int32_t const* columns = nullptr;
  double* values = nullptr;
  std::int64_t const* diagonal = nullptr;  ///< place of the diagonal entry in columns and values, for every row
  /// These are factors of P A P^T, and row i is row order[i] of A; null: of A itself.
  std::int32_t const* order = nullptr;
  LevelSchedule lower, upper;
  /// Threads that share a row of a solve on a GPU, a power of two from 1 to 32; levels are filled up to whole warps of such rows.
  int threads_per_row = 1;
  /// On a GPU every level of a solve gets a launch of its own, and its rows wait for nothing.
  bool level_launches = false;

  /// Entries of the vector `work` of a solve: the solution of the lower triangle and, with an order, the reordered z.
  [[nodiscard]] std::int64_t work_size() const { return (order == nullptr ? 1 : 2) * n_rows; }
};

/// A pivot with which a factorisation cannot continue.
struct BadPivot {
  std::int64_t row = -1;  ///< the first such row; -1: none
  double value = 0;
};

class IluKernels {
public:
  virtual ~IluKernels() = default;
  /// values: A on entry, L U on return. Row i is eliminated by its rows k < i in ascending order of k, entries outside the pattern
  /// dropped, so that both backends give the same bits. A pivot is bad when it is not finite, or when it is not above 2^-50 times
  /// the largest entry that its row had, by size or, with `positive`, by value. Waits for the result.
  virtual BadPivot factorize(Context& context, IluView const& a, bool positive) const = 0;

  static IluKernels const& cpu();
  static IluKernels const& cuda();
};

/// z = U^-1 L^-1 r, or P^T U^-1 L^-1 P r. In each row the terms are added in an order that depends on nothing but threads_per_row.
template <class T>
class IluSolveKernels {
public:
  virtual ~IluSolveKernels() = default;
  /// Initialises `work`, n = IluView::work_size() entries, for solves. Nothing else may write to it between solves.
  virtual void prepare(Context& context, std::int64_t n, Pointer<T> work) const = 0;
  /// Does nothing when *stop is not 0. Preconditions: `work` is from prepare; r and z do not overlap. Its bytes: see bytes().
  virtual void solve(Context& context, IluView const& a, ConstPointer<T> r, Pointer<T> z, Pointer<T> work,
                     std::int32_t const* stop) const = 0;
  /// lower() and upper() do a solve in parts, between which other ranks add what they have. lower() does levels first ... end - 1
  /// of a.lower, from r to `work`. upper() does those of a.upper, from `work` to `ordered_z` and, with an order, to z.
  /// Precondition: what those levels need is there. A vector in the order of the factors has a.n_rows entries, of which the
  /// schedules may leave some out: rows of others.
  virtual void lower(Context& context, IluView const& a, std::int64_t first, std::int64_t end, ConstPointer<T> r, Pointer<T> work,
                     std::int32_t const* stop) const = 0;
  virtual void upper(Context& context, IluView const& a, std::int64_t first, std::int64_t end, ConstPointer<T> work,
                     Pointer<T> ordered_z, Pointer<T> z, std::int32_t const* stop) const = 0;
  /// Compulsory bytes of a solve: every factor entry with its column once; r, work and z written and read; for each row and
  /// triangle its number, ends and the diagonal's place; in another order each row's number in A twice, and z once more.
  [[nodiscard]] static std::int64_t bytes(IluView const& a) {
    std::int64_t const reordering = a.order == nullptr ? 0 : 2 * 4 + 2 * std::int64_t{sizeof(T)};
    return 12 * a.nnz + a.n_rows * (2 * (4 + 16) + 4 * std::int64_t{sizeof(T)} + reordering);
  }

  static IluSolveKernels const& cpu();
  static IluSolveKernels const& cuda();
};

template <>
IluSolveKernels<double> const& IluSolveKernels<double>::cpu();
template <>
IluSolveKernels<double> const& IluSolveKernels<double>::cuda();
template <>
IluSolveKernels<DoubleDouble> const& IluSolveKernels<DoubleDouble>::cpu();
template <>
IluSolveKernels<DoubleDouble> const& IluSolveKernels<DoubleDouble>::cuda();

/// Pivots that are not above this times the largest entry of their row are bad.
inline constexpr double smallest_pivot = 0x1p-50;

}  // namespace poisson
