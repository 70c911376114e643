#pragma once

#include "gpu/core/host_vector.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

namespace poisson::assembly {

/// The values of a field at nodes or cells. They are in memory, or in that of somebody else; or they are made when they are asked
/// for: a range of them (fill), or all (all), which then stay. Several threads may ask at once. As a range it has all values.
template <class T>
class FieldValues {
public:
  /// Writes the values first ... first + n - 1 to `out`. Called by several threads at once. Throws std::bad_alloc.
  using Fill = std::function<void(std::int64_t first, std::int64_t n, T* out)>;

  FieldValues() = default;
  FieldValues(HostVector<T> values) : size_(values.size()), stored_(std::make_shared<Stored>()) {
    stored_->own = std::move(values);
    stored_->values = stored_->own;
  }
  /// Writes the values at these places, as Fill those of a range.
  using Pick = std::function<void(std::span<std::int64_t const> places, T* out)>;
  /// `pick`: where it is faster than to fill ranges of one.
  FieldValues(std::size_t size, Fill fill, Pick pick = {})
      : size_(size), fill_(std::move(fill)), pick_(std::move(pick)), stored_(std::make_shared<Stored>()) {}
  /// Precondition: `values` outlive it.
  [[nodiscard]] static FieldValues view(std::span<T const> values) {
    FieldValues result(HostVector<T>{});
    result.size_ = values.size();
    result.stored_->values = values;
    return result;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Null where the values are in memory from the start.
  [[nodiscard]] Fill const& fill() const { return fill_; }
  /// Throws what `fill` throws.
  [[nodiscard]] std::span<T const> all() const;
  /// Writes a range of them, without asking for all. Throws what `fill` throws.
  void read(std::int64_t first, std::int64_t n, T* out) const;
  /// Writes the n values from every one of these places on, by all threads. Throws what `fill` throws.
  void read_at(std::span<std::int64_t const> places, std::int64_t n, T* out) const;
  /// Writes the values at these places. Throws what `fill` throws.
  void pick(std::span<std::int64_t const> places, T* out) const;
  [[nodiscard]] T const& operator[](std::size_t i) const { return all()[i]; }
  [[nodiscard]] auto begin() const { return all().begin(); }
  [[nodiscard]] auto end() const { return all().end(); }

  /// Takes the values into its own memory, and forgets where they come from. Throws std::bad_alloc.
  void keep();

private:
  struct Stored {
    std::once_flag once;
    std::atomic<bool> are_here = false;  ///< those that were made
    HostVector<T> own;
    std::span<T const> values;
  };

  std::size_t size_ = 0;
  Fill fill_;
  Pick pick_;
  std::shared_ptr<Stored> stored_;
};

extern template class FieldValues<double>;
extern template class FieldValues<int>;
extern template class FieldValues<std::int64_t>;

}  // namespace poisson::assembly
