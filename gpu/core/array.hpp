#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_vector.hpp"

#include <cassert>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace poisson {

/// An owning array in the memory of a context's backend, uninitialised until written. It can be moved, not copied. Precondition:
/// the context outlives it. Constructors throw OutOfMemoryError.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  Array() = default;
  Array(Context& context, std::int64_t size)
      : context_(&context), data_(static_cast<T*>(context.allocate(size * std::int64_t{sizeof(T)}))), size_(size) {}
  Array(Context& context, std::span<T const> host) : Array(context, static_cast<std::int64_t>(host.size())) { upload(host); }
  Array(Array&& other) noexcept
      : context_(other.context_), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Array(Array const&) = delete;
  Array& operator=(Array const&) = delete;
  ~Array() {
    if (data_ != nullptr)
      context_->deallocate(data_, bytes());
  }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] T const* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return size_ * std::int64_t{sizeof(T)}; }
  /// The context in whose memory it is; null for an array that was made without one.
  [[nodiscard]] Context* context() const noexcept { return context_; }

  /// Copy from and to host memory; they return when the copy is complete. Precondition: host.size() == size().
  void upload(std::span<T const> host) {
    assert(static_cast<std::int64_t>(host.size()) == size_);
    if (size_ > 0)
      context_->upload(data_, host.data(), bytes());
  }
  void download(std::span<T> host) const {
    assert(static_cast<std::int64_t>(host.size()) == size_);
    if (size_ > 0)
      context_->download(host.data(), data_, bytes());
  }
  /// A copy of the entries in the memory of `target`, which may be this array's own context. Between contexts it waits for enqueued
  /// work that writes this array. Throws OutOfMemoryError.
  [[nodiscard]] Array copy_to(Context& target) const {
    Array copy(target, size_);
    if (size_ == 0)
      return copy;
    if (&target == context_)
      target.copy(copy.data_, data_, bytes());
    else if (context_->backend() == Backend::cpu)
      copy.upload(std::span<T const>(data_, static_cast<std::size_t>(size_)));
    else if (target.backend() == Backend::cpu)
      download(std::span<T>(copy.data_, static_cast<std::size_t>(size_)));
    else {
      HostVector<T> host(static_cast<std::size_t>(size_));
      download(host);
      copy.upload(host);
      target.synchronize();
    }
    return copy;
  }
  void set_zero() {
    if (size_ > 0)
      context_->set_zero(data_, bytes());
  }

private:
  Context* context_ = nullptr;
  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace poisson
