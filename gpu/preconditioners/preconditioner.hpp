#pragma once

#include "gpu/core/double_double.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/preconditioners/options.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace poisson {

/// M^-1, applied in the arithmetic T. Pointers are in the backend's memory; calls are enqueued, and finish in order.
template <class T>
class Preconditioner {
public:
  virtual ~Preconditioner() = default;
  /// z = M^-1 r. Nothing happens when *stop is not 0. r and z do not overlap.
  virtual void apply(ConstPointer<T> r, Pointer<T> z, std::int32_t const* stop) = 0;
  /// Compulsory bytes of one application.
  [[nodiscard]] virtual std::int64_t bytes_per_apply() const = 0;
  /// Parts of an application that wait for each other, each of which takes a device some microseconds however little it has to do.
  [[nodiscard]] virtual std::int64_t dependent_steps() const { return 1; }
  /// Where M is a diagonal matrix: 1 / m_ii in the backend's memory, so that methods may apply it in passes of their own. Else
  /// null.
  [[nodiscard]] virtual double const* inverse_diagonal() const { return nullptr; }
};

/// M as it is made once from an operator, in double precision. Every arithmetic applies it in that arithmetic, so that it is one
/// and the same linear map to all the digits that the vectors have.
class PreconditionerSetup {
public:
  virtual ~PreconditionerSetup() = default;
  /// Empty when M stands; otherwise why it does not, for the user.
  [[nodiscard]] std::string const& failure() const { return failure_; }
  /// Of the argument only the type counts. The setup outlives what it returns. Precondition: no failure. Throws OutOfMemoryError.
  [[nodiscard]] virtual std::unique_ptr<Preconditioner<double>> applied_in(double) const = 0;
  [[nodiscard]] virtual std::unique_ptr<Preconditioner<DoubleDouble>> applied_in(DoubleDouble) const = 0;

  /// The order of rows that was taken; `automatic` where there is none to choose.
  [[nodiscard]] virtual Ordering ordering() const { return Ordering::automatic; }
  /// Of a lower triangle: rows that wait for each other, one after another; 0 without one.
  [[nodiscard]] virtual std::int64_t levels() const { return 0; }

protected:
  std::string failure_;
};

}  // namespace poisson
