#pragma once

#include "gpu/core/block_places.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

namespace poisson::app {

/// For every unknown around own rows: the row, or the number of rows plus that of the ghost. Of a box they are formulas, of other
/// meshes their own numbers.
class RowPlaces {
public:
  RowPlaces() = default;
  RowPlaces(BlockPlaces block) : block_(std::move(block)) {}
  /// So many unknowns with their own numbers.
  explicit RowPlaces(std::size_t n) : n_(n) {}

  [[nodiscard]] std::size_t size() const { return block_ ? block_->size() : n_; }
  [[nodiscard]] std::int32_t operator[](std::size_t unknown) const {
    return block_ ? (*block_)[unknown] : static_cast<std::int32_t>(unknown);
  }
  /// Of a box; null elsewhere.
  [[nodiscard]] BlockPlaces const* block() const { return block_ ? &*block_ : nullptr; }
  /// Of all unknowns.
  [[nodiscard]] HostVector<std::int32_t> list() const {
    if (block_)
      return block_->list();
    HostVector<std::int32_t> result(n_);
    std::iota(result.begin(), result.end(), 0);
    return result;
  }

private:
  std::optional<BlockPlaces> block_;
  std::size_t n_ = 0;
};

}  // namespace poisson::app
