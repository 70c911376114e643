#pragma once

#include <cstdint>
#include <string>

/// Places of a matrix in messages: counted from 1, as Matrix Market files do. Arguments count from 0.
namespace poisson {

[[nodiscard]] inline std::string row_text(std::int64_t row) {
  return "row " + std::to_string(row + 1) + " (counted from 1)";
}

[[nodiscard]] inline std::string place_text(std::int64_t row, std::int64_t column) {
  return "row " + std::to_string(row + 1) + ", column " + std::to_string(column + 1) + " (counted from 1)";
}

}  // namespace poisson
