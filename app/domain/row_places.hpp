#pragma once

#include "gpu/core/block_places.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace poisson::app {

/// For every unknown around own rows: the row, or the number of rows plus that of the ghost. Of a box they are formulas, of other
/// meshes a list.
class RowPlaces {
public:
  RowPlaces() = default;
  RowPlaces(BlockPlaces block) : block_(std::move(block)) {}
  RowPlaces(HostVector<std::int32_t> list) : list_(std::move(list)) {}

  [[nodiscard]] std::size_t size() const { return block_ ? block_->size() : list_.size(); }
  [[nodiscard]] std::int32_t operator[](std::size_t unknown) const { return block_ ? (*block_)[unknown] : list_[unknown]; }
  /// Of a box; null elsewhere.
  [[nodiscard]] BlockPlaces const* block() const { return block_ ? &*block_ : nullptr; }
  [[nodiscard]] HostVector<std::int32_t> list() const { return block_ ? block_->list() : list_; }

private:
  std::optional<BlockPlaces> block_;
  HostVector<std::int32_t> list_;
};

}  // namespace poisson::app
