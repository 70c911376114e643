#pragma once

#include "assembly/image/image_spec.hpp"
#include "assembly/image/labels.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

/// Images in files: VTK's image data (.vti), NRRD (.nrrd, .nhdr), MetaImage (.mha, .mhd), TIFF (.tif, .tiff) and raw voxels (.raw).
/// Headers are read and checked here, and what is not honoured is refused. VTK, in a process of its own, reads .vti and the pixels
/// of TIFF; all else are plain numbers, as they are or compressed by zlib.
namespace poisson::assembly {

/// The box of the cells that an image becomes.
struct ImageBox {
  Counts3 cells{};
  std::array<double, 3> origin{}, extent{};
};

/// Reads the headers of an image. `array` names the array of a .vti file; empty: its only one. Voxels are cells: where a file tells
/// the place of the first voxel's centre, the box begins half a voxel before it; where it tells no place, at 0.
/// Errors: InputError (keys problem.mesh.image, .cells, .type, .spacing, .array, .crop, .coarsen) that names the file; Interrupted.
[[nodiscard]] ImageBox box_of_image(ImageSpec const& spec, std::string const& array);

/// Reads an image: crop, flip, threshold and coarsen in this order. The last one is kept for the next call, unless its files have
/// changed. Errors: as above, and key problem.mesh.threshold; std::bad_alloc.
[[nodiscard]] std::shared_ptr<LabelImage const> labels_of_image(ImageSpec const& spec, std::string const& array);

/// All files of an image, in the order of slices, with those that hold the data of a header. Errors: as box_of_image.
[[nodiscard]] std::vector<std::string> files_of_image(ImageSpec const& spec);

/// Whether VTK reads it, a library that takes a while to load.
[[nodiscard]] bool needs_vtk(ImageSpec const& spec);
/// Loads the library that reads it, if it needs one. Throws EnvironmentError where it is missing.
void prepare_for(ImageSpec const& spec);

}  // namespace poisson::assembly
