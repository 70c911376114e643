#pragma once

#include "assembly/image/labels.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace poisson::assembly {

/// An image whose voxels are cells, and its labels their materials: what `problem.mesh` says about it.
struct ImageSpec {
  std::vector<std::string> files;         ///< one file; or slices, as a list, a pattern ("*.tif") or a folder. Empty: no image
  std::optional<VoxelType> type{};        ///< raw files only
  bool big_endian = false;                ///< raw files only
  Counts3 cells{};                        ///< raw files only: voxels of the file; 0: not given
  std::array<double, 3> spacing{};        ///< edges of a voxel, instead of those that the file tells; 0: not given
  Crop crop{};                            ///< voxels that are kept, as the file numbers them
  std::array<bool, 3> flip{};             ///< whether the order of voxels is turned round
  std::vector<double> threshold;          ///< ascending levels that make labels of grey values; empty: values are labels
  Counts3 coarsen{1, 1, 1};               ///< voxels that become one cell
  std::map<unsigned, std::string> names;  ///< of labels

  [[nodiscard]] bool is_given() const { return !files.empty(); }
  /// Whether the file says nothing about itself.
  [[nodiscard]] bool is_raw() const;
};

}  // namespace poisson::assembly
