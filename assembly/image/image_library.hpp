#pragma once

#include "assembly/image/image_header.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace poisson::assembly {

/// What VTK finds in a file: a header without files, and the voxels.
struct VtkImage {
  ImageHeader header;
  std::vector<std::byte> bytes;
};

/// What the library poisson_image has: reading by VTK. Errors: InputError (keys problem.mesh.image and problem.mesh.array). VTK may
/// crash at damaged files, so a process of its own calls them.
struct ImageFunctions {
  /// A .vti file; its voxels only if asked for.
  VtkImage (*read_vti)(std::string const& file, std::string const& array, bool with_voxels);
  /// The pages of a TIFF file that has this header.
  std::vector<std::byte> (*read_tiff)(std::string const& file, ImageHeader const& header);
};

}  // namespace poisson::assembly

extern "C" poisson::assembly::ImageFunctions const* poisson_image();
