#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <span>
#include <utility>

namespace poisson {

/// Numbers that stay where they were computed: in the memory of a backend, or on the host. The other side gets a copy of them when
/// it asks for the first time, and has it until they change. In the memory of the cpu backend the host needs none. Copies wait, and
/// throw OutOfMemoryError. Precondition: contexts outlive it; it is used by one thread at a time.
class Field {
public:
  Field() = default;
  explicit Field(HostVector<double> values) : host_(std::move(values)), is_on_host_(true) {}
  explicit Field(Array<double> values) : array_(std::move(values)), is_on_backend_(true) {}

  [[nodiscard]] std::int64_t size() const { return is_on_backend_ ? array_.size() : static_cast<std::int64_t>(host_.size()); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  /// The context in whose memory the numbers are; null where only the host has them.
  [[nodiscard]] Context* context() const { return is_on_backend_ ? array_.context() : nullptr; }

  /// The numbers as the host reads them.
  [[nodiscard]] std::span<double const> host() const {
    if (is_in_memory_of_host())
      return {array_.data(), static_cast<std::size_t>(array_.size())};
    copy_to_host();
    return host_;
  }
  /// The numbers in the memory of a context. Precondition: it is always the same one.
  [[nodiscard]] Array<double> const& on(Context& context) const {
    copy_to(context);
    return array_;
  }
  /// To change the numbers: what the other side has of them is given up.
  [[nodiscard]] std::span<double> change_on_host() {
    if (is_in_memory_of_host())
      return {array_.data(), static_cast<std::size_t>(array_.size())};
    copy_to_host();
    array_ = {};
    is_on_backend_ = false;
    return host_;
  }
  [[nodiscard]] Array<double>& change_on(Context& context) {
    copy_to(context);
    forget_host();
    return array_;
  }
  /// Frees the host's copy of numbers that are on a backend.
  void forget_host() {
    if (!is_on_backend_)
      return;
    host_ = HostVector<double>();
    is_on_host_ = false;
  }
  /// Gives the numbers away, in host memory.
  [[nodiscard]] HostVector<double> take_host() {
    std::span<double const> const values = host();
    HostVector<double> result = is_on_host_ ? std::move(host_) : HostVector<double>(values.begin(), values.end());
    *this = {};
    return result;
  }

private:
  [[nodiscard]] bool is_in_memory_of_host() const {
    return is_on_backend_ && (array_.context() == nullptr || array_.context()->backend() == Backend::cpu);
  }
  void copy_to_host() const {
    if (is_on_host_ || !is_on_backend_)
      return;
    host_.resize(static_cast<std::size_t>(array_.size()));
    array_.download(std::span<double>(host_));
    is_on_host_ = true;
  }
  void copy_to(Context& context) const {
    if (is_on_backend_)
      return;
    array_ = Array<double>(context, std::span<double const>(host_));
    is_on_backend_ = true;
    if (is_in_memory_of_host()) {  // one is enough
      host_ = HostVector<double>();
      is_on_host_ = false;
    }
  }

  mutable Array<double> array_;
  mutable HostVector<double> host_;
  mutable bool is_on_backend_ = false, is_on_host_ = false;
};

/// A vector in twice the precision: `low` has the low parts of its entries, or is empty where all are 0.
struct FieldPair {
  Field high, low;
};

}  // namespace poisson
