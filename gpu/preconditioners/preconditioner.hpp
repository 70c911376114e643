#pragma once

#include "gpu/core/double_double.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/preconditioners/options.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace poisson {

/// One of several applications of the same preconditioner: z = M^-1 r, unless *stop is not 0.
template <class T>
struct PreconditionedColumn {
  ConstPointer<T> r;
  Pointer<T> z;
  std::int32_t const* stop;
};

/// M^-1 in the arithmetic T. Pointers are in the backend's memory; on a device calls enqueue work, which runs in their order.
template <class T>
class Preconditioner {
public:
  virtual ~Preconditioner() = default;
  /// z = M^-1 r, n_rows entries each. Does nothing when *stop is not 0. Precondition: r and z do not overlap.
  virtual void apply(ConstPointer<T> r, Pointer<T> z, std::int32_t const* stop) = 0;
  /// `apply` of 1 to most_columns columns, with the same bits. Precondition: no z overlaps another column.
  virtual void apply_to_all(std::span<PreconditionedColumn<T> const> columns) {
    for (PreconditionedColumn<T> const& column : columns)
      apply(column.r, column.z, column.stop);
  }
  /// Compulsory bytes of one application.
  [[nodiscard]] virtual std::int64_t bytes_per_apply() const = 0;
  /// Number of steps that depend on each other, one after another (levels of triangular solves): on a device each has a latency of
  /// some microseconds, however little it has to do.
  [[nodiscard]] virtual std::int64_t dependent_steps() const { return 1; }
  /// If M is diagonal: 1 / m_ii in the backend's memory, so that methods can fuse it into their own passes. Else null.
  [[nodiscard]] virtual double const* inverse_diagonal() const { return nullptr; }
};

/// M, computed once from an operator in double precision, and applied in the arithmetic of the iteration. In every arithmetic it is
/// the same linear map, so that rounding of M itself does not disturb iterations in double-double.
class PreconditionerSetup {
public:
  virtual ~PreconditionerSetup() = default;
  /// Why M could not be computed, in a sentence for the user; empty when it could.
  [[nodiscard]] std::string const& failure() const { return failure_; }
  /// M^-1 in the arithmetic of the argument, which only selects the type. Preconditions: no failure; the setup outlives the result.
  /// Throws OutOfMemoryError.
  [[nodiscard]] virtual std::unique_ptr<Preconditioner<double>> applied_in(double) const = 0;
  [[nodiscard]] virtual std::unique_ptr<Preconditioner<DoubleDouble>> applied_in(DoubleDouble) const = 0;

  /// The order of elimination in use; `automatic` where there is no factorisation.
  [[nodiscard]] virtual Ordering ordering() const { return Ordering::automatic; }
  /// Number of levels (preconditioners/ordering.hpp) of the lower triangle; 0 where there is no factorisation.
  [[nodiscard]] virtual std::int64_t levels() const { return 0; }
  /// Returns the levels of multigrid from the finest on. There are none where M is not multigrid.
  [[nodiscard]] virtual std::vector<MultigridLevelSummary> multigrid_levels() const { return {}; }

  /// Nested iteration: x approximates A^-1 b by what every level has found for the next finer one, from the coarsest on, and a
  /// cycle there; `coarse` is what the finest level is given. Entries in the backend's memory, as b. False, and nothing is done,
  /// where M has no levels, or one only.
  [[nodiscard]] virtual bool start_nested(double const* b, double* x, double* coarse) const {
    static_cast<void>(b);
    static_cast<void>(x);
    static_cast<void>(coarse);
    return false;
  }

protected:
  std::string failure_;
};

}  // namespace poisson
