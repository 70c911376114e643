#pragma once

#include "assembly/image/labels.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Headers of image files. Internal to image_file.cpp.
namespace poisson::assembly {

/// What a header says, and where the voxels are.
struct ImageHeader {
  Counts3 cells{};
  VoxelType type = VoxelType::uint8;
  std::optional<std::array<double, 3>> spacing{};
  std::optional<std::array<double, 3>> first_centre{};  ///< of the first voxel, where it is told
  std::optional<std::array<double, 3>> low{};           ///< the corner of the image, where that is told
  std::vector<std::string> data_files;                  ///< one; or several of a part of the planes each
  std::int64_t offset = 0;                              ///< bytes before the voxels; -1: they are the end of the file
  bool compressed = false;                              ///< by zlib or gzip
  bool big_endian = false;
};

/// In small letters.
[[nodiscard]] std::string lower(std::string_view text);

/// Throws InputError that names the file. Of `what`, which may have bytes of a damaged file, only printable ASCII is shown.
[[noreturn]] void refuse_image(std::string const& file, std::string what, std::string const& key = "problem.mesh.image");

/// Bytes of all voxels. Refuses counts less than 1, and sizes of 2^62 or more.
[[nodiscard]] std::int64_t bytes_of(ImageHeader const& header, std::string const& file);

/// Errors, here and below: InputError (key "problem.mesh.image").
[[nodiscard]] ImageHeader read_nrrd_header(std::string const& file);
[[nodiscard]] ImageHeader read_meta_header(std::string const& file);
/// Of one TIFF file: its pages are planes. It has neither spacing nor place: resolution tags are those of printers.
[[nodiscard]] ImageHeader read_tiff_header(std::string const& file);

}  // namespace poisson::assembly
