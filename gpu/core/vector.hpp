#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/double_double.hpp"

#include <cstddef>
#include <utility>

namespace poisson {

// Layout of vectors of T in memory: of float and double as an array, of DoubleDouble as two, high and low parts apart, so that
// neighbouring threads read neighbouring numbers and a reader of double finds the high parts as a vector of its own. Single numbers
// (dots, the scalars of solvers) are plain T.

struct DoubleDoublePointer {
  double* hi = nullptr;
  double* lo = nullptr;
};

struct DoubleDoubleConstPointer {
  double const* hi = nullptr;
  double const* lo = nullptr;

  DoubleDoubleConstPointer() = default;
  POISSON_HOST_DEVICE constexpr DoubleDoubleConstPointer(double const* high, double const* low) : hi(high), lo(low) {}
  POISSON_HOST_DEVICE constexpr DoubleDoubleConstPointer(DoubleDoublePointer p) : hi(p.hi), lo(p.lo) {}
};

[[nodiscard]] POISSON_HOST_DEVICE constexpr bool operator==(DoubleDoubleConstPointer p, std::nullptr_t) {
  return p.hi == nullptr;
}
[[nodiscard]] POISSON_HOST_DEVICE constexpr DoubleDoublePointer operator+(DoubleDoublePointer p, std::int64_t n) {
  return {p.hi + n, p.lo + n};
}
[[nodiscard]] POISSON_HOST_DEVICE constexpr DoubleDoubleConstPointer operator+(DoubleDoubleConstPointer p, std::int64_t n) {
  return {p.hi + n, p.lo + n};
}

namespace detail {
template <class T>
struct Pointers;
template <>
struct Pointers<float> {
  using Mutable = float*;
  using Const = float const*;
};
template <>
struct Pointers<double> {
  using Mutable = double*;
  using Const = double const*;
};
template <>
struct Pointers<DoubleDouble> {
  using Mutable = DoubleDoublePointer;
  using Const = DoubleDoubleConstPointer;
};
}  // namespace detail

/// Pointers to the first entry of a vector of T: float* and double*, or of DoubleDouble two pointers, to high and to low parts. May
/// be null (== nullptr).
template <class T>
using Pointer = typename detail::Pointers<T>::Mutable;
template <class T>
using ConstPointer = typename detail::Pointers<T>::Const;

[[nodiscard]] POISSON_HOST_DEVICE inline float load(float const* p, std::int64_t i) {
  return p[i];
}
[[nodiscard]] POISSON_HOST_DEVICE inline double load(double const* p, std::int64_t i) {
  return p[i];
}
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble load(DoubleDoubleConstPointer p, std::int64_t i) {
  return {p.hi[i], p.lo[i]};
}
POISSON_HOST_DEVICE inline void store(float* p, std::int64_t i, float v) {
  p[i] = v;
}
POISSON_HOST_DEVICE inline void store(double* p, std::int64_t i, double v) {
  p[i] = v;
}
POISSON_HOST_DEVICE inline void store(DoubleDoublePointer p, std::int64_t i, DoubleDouble v) {
  p.hi[i] = v.hi;
  p.lo[i] = v.lo;
}

/// An owning vector of T in a backend's memory, uninitialised until written. Precondition: the context outlives it. Constructors
/// throw OutOfMemoryError.
template <class T>
class Vector {
  static constexpr bool has_low = std::is_same_v<T, DoubleDouble>;
  using Part = std::conditional_t<has_low, double, T>;  // that an array holds

public:
  Vector() = default;
  Vector(Context& context, std::int64_t n) : hi_(context, n), lo_(context, has_low ? n : 0) {}
  /// Copies the numbers from host memory; low parts are 0 where `host` has none.
  Vector(Context& context, std::span<Part const> host) : Vector(context, static_cast<std::int64_t>(host.size())) { upload(host); }
  Vector(Context& context, std::span<DoubleDouble const> host) requires has_low
      : Vector(context, static_cast<std::int64_t>(host.size())) {
    upload(host);
  }

  [[nodiscard]] Pointer<T> data() noexcept {
    if constexpr (has_low)
      return {hi_.data(), lo_.data()};
    else
      return hi_.data();
  }
  [[nodiscard]] ConstPointer<T> data() const noexcept {
    if constexpr (has_low)
      return {hi_.data(), lo_.data()};
    else
      return hi_.data();
  }
  [[nodiscard]] std::int64_t size() const noexcept { return hi_.size(); }
  [[nodiscard]] std::int64_t bytes() const noexcept { return hi_.bytes() + lo_.bytes(); }

  /// Precondition of uploads and downloads: host.size() == size(). Low parts are 0 after an upload that has none.
  void upload(std::span<Part const> host) {
    hi_.upload(host);
    lo_.set_zero();
  }
  void upload(std::span<DoubleDouble const> host) requires has_low {
    HostVector<double> part(host.size());
    for (std::size_t i = 0; i < host.size(); ++i)
      part[i] = host[i].hi;
    hi_.upload(part);
    for (std::size_t i = 0; i < host.size(); ++i)
      part[i] = host[i].lo;
    lo_.upload(part);
  }
  /// Copies the numbers to host memory. `Part` takes the high parts of DoubleDouble, which are the numbers rounded to double.
  void download(std::span<Part> host) const { hi_.download(host); }
  void download(std::span<DoubleDouble> host) const requires has_low {
    HostVector<double> part(host.size());
    hi_.download(part);
    for (std::size_t i = 0; i < host.size(); ++i)
      host[i].hi = part[i];
    lo_.download(part);
    for (std::size_t i = 0; i < host.size(); ++i)
      host[i].lo = part[i];
  }
  /// High and low parts.
  void download(std::span<double> high, std::span<double> low) const requires has_low {
    hi_.download(high);
    lo_.download(low);
  }
  void set_zero() {
    hi_.set_zero();
    lo_.set_zero();
  }
  /// Give away the arrays of high and low parts.
  [[nodiscard]] Array<Part> take_high() { return std::move(hi_); }
  [[nodiscard]] Array<Part> take_low() { return std::move(lo_); }

private:
  Array<Part> hi_, lo_;
};

}  // namespace poisson
