#pragma once

#include "gpu/core/host_vector.hpp"
#include "gpu/core/vtk_readers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Images as arrays of voxels, and what is made of them: pure functions, free of files. Voxels are numbered with x fastest, then y,
/// then z.
namespace poisson::assembly {

using Counts3 = std::array<std::int64_t, 3>;

using poisson::VoxelType;

/// Bytes of a voxel.
[[nodiscard]] std::int64_t size_of(VoxelType type);

/// What a file holds, in this machine's order of bytes.
struct Voxels {
  Counts3 cells{};
  VoxelType type = VoxelType::uint8;
  HostVector<std::byte> bytes;  ///< size_of(type) of every voxel

  [[nodiscard]] std::int64_t size() const { return cells[0] * cells[1] * cells[2]; }
};

/// Voxels begin to end - 1 of a direction.
struct VoxelRange {
  std::int64_t begin = 0, end = 0;
  bool operator==(VoxelRange const&) const = default;
};
/// Of each direction; none: all voxels.
using Crop = std::array<std::optional<VoxelRange>, 3>;

/// A label for every voxel. A voxel has the number of its label among all that occur: one byte where these are 256 or fewer.
struct LabelImage {
  Counts3 cells{};
  std::vector<unsigned> labels;           ///< those that occur, ascending
  HostVector<std::uint8_t> small;         ///< by voxel: the place of its label in `labels`; empty with more than 256 labels
  HostVector<std::uint32_t> large;        ///< the same with more
  std::map<unsigned, std::string> names;  ///< of labels; of some that do not occur, maybe

  [[nodiscard]] std::int64_t size() const { return cells[0] * cells[1] * cells[2]; }
  /// The number of a voxel's label.
  [[nodiscard]] std::uint32_t number(std::int64_t voxel) const {
    auto const i = static_cast<std::size_t>(voxel);
    return large.empty() ? small[i] : large[i];
  }
  [[nodiscard]] unsigned label(std::int64_t voxel) const { return labels[number(voxel)]; }
};

/// More labels than that are grey values.
constexpr std::size_t most_labels = 65536;

/// Returns the voxels in a box of indices. Throws InputError (key "problem.mesh.crop[d]") for one that is empty or leaves the
/// image.
[[nodiscard]] Voxels cropped(Voxels image, Crop const& crop);
/// Turns the order of voxels round in these directions.
void flip(Voxels& image, std::array<bool, 3> const& directions);
/// Labels of voxels: their values; or, with levels (ascending), how many of these a value reaches, from 0 on. Errors: InputError
/// (key "problem.mesh.threshold") for NaN, and without levels for values that are no labels: negative ones, more than 2^31 - 1,
/// more than most_labels different ones, floating-point numbers.
[[nodiscard]] LabelImage labelled(Voxels const& image, std::vector<double> const& levels);
/// Joins blocks of so many voxels; the most frequent label counts, of equally frequent ones the lowest. Throws InputError (key
/// "problem.mesh.coarsen") where the counts are no multiples.
[[nodiscard]] LabelImage coarsened(LabelImage const& image, Counts3 const& blocks);
/// Checks the same of counts alone. `block` >= 1.
void check_crop(Counts3 const& cells, Crop const& crop);
void check_blocks(Counts3 const& cells, Counts3 const& blocks);

/// A label of an image, and the voxels that have it.
struct Phase {
  unsigned label = 0;
  std::int64_t voxels = 0;
  std::int64_t components = 0;                   ///< of voxels that have faces in common
  std::int64_t largest = 0;                      ///< voxels of the largest component
  std::array<std::int64_t, 3> joining{};         ///< components that reach both faces of the image in a direction,
  std::array<std::int64_t, 3> joining_voxels{};  ///< and their voxels
};

/// The phases of an image, by label: union-find over voxels, 4 bytes each (8 for images of 2^32 voxels or more).
[[nodiscard]] std::vector<Phase> phases_of(LabelImage const& image);

}  // namespace poisson::assembly
