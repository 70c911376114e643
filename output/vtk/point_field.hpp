#pragma once

#include "gpu/core/names.hpp"

#include <array>
#include <filesystem>
#include <functional>
#include <string>

namespace poisson::output {

enum class FieldInterpolation { linear, nearest };
}  // namespace poisson::output

template <>
struct poisson::Names<poisson::output::FieldInterpolation> {
  static constexpr std::array<Named<output::FieldInterpolation>, 2> values{
      {{output::FieldInterpolation::linear, "linear"}, {output::FieldInterpolation::nearest, "nearest"}}};
};

namespace poisson::output {

/// A number at every place (x, y, z). Threads may call it at the same time.
using PointField = std::function<double(std::array<double, 3> const&)>;

/// Opens a field in a file, by its ending: VTK's image data (.vti), rectilinear (.vtr) and unstructured grids (.vtu, and .hdf as
/// write_hdf makes them); else a table of points, one a line: x, y, z and a value, apart by commas, semicolons or blanks, under a
/// line of names if the first is no number. `array` names the array of points or cells, or the column; empty: the only one, or "u",
/// or the fourth column.
///
/// linear: the cell's own functions; between the centres of an image's or a rectilinear grid's cells, where the values are theirs;
/// on points that form a grid trilinear; between other points a plane fitted to the twelve nearest (moving least squares). nearest:
/// the value of the nearest point, or of the cell. Places outside have the value of the nearest place inside.
///
/// Errors: InputError without a key, that names file and reason.
[[nodiscard]] PointField open_point_field(std::filesystem::path const& path, std::string const& array,
                                          FieldInterpolation interpolation);

/// Opens it in a process of its own, since VTK and HDF5 crash on some damaged files: that is then an InputError. To be called
/// before any field is opened, as what VTK's threads have begun does not go on in another process. Other errors are left to
/// open_point_field.
void try_point_field(std::filesystem::path const& path, std::string const& array, FieldInterpolation interpolation);

}  // namespace poisson::output
