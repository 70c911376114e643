#pragma once

#include "gpu/core/linear_operator.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace poisson::cpu {

/// Those of several columns that are not stopped.
template <class Column>
class RunningColumns {
public:
  explicit RunningColumns(std::span<Column const> given) {
    for (Column const& column : given)
      if (*column.stop == 0)
        all_[count_++] = column;
  }
  [[nodiscard]] std::span<Column const> columns() const { return std::span<Column const>(all_).first(count_); }

private:
  std::array<Column, most_columns> all_;
  std::size_t count_ = 0;
};

}  // namespace poisson::cpu
