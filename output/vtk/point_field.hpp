#pragma once

#include "gpu/core/names.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
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
/// write_hdf makes them, of several steps `step`, as step_of_hdf takes it); else a table of points, one a line, whose columns are
/// apart by semicolons, commas or blanks. A first line of names (or a comment with them) says where x, y, z are, also as X,
/// Points:0, "x [m]"; without one there are four columns, x, y, z and the value. `array` names the array of points or cells, or the
/// column; empty: the only one that is no coordinate, or "u".
///
/// linear: the cell's own functions; between the centres of an image's or a rectilinear grid's cells, where the values are theirs;
/// on points that form a grid trilinear; between other points a plane fitted to the twelve nearest (moving least squares). nearest:
/// the value of the nearest point, or of the cell. Places outside have the value of the nearest place inside.
///
/// Errors: InputError without a key, that names file and reason.
[[nodiscard]] PointField open_point_field(std::filesystem::path const& path, std::string const& array,
                                          FieldInterpolation interpolation, std::optional<std::int64_t> step = {});

/// Opens a field of VTK in a process of its own, with limits, since VTK and HDF5 crash on some damaged files, or take all time and
/// memory: that is then an InputError. To be called before any field is opened, as what VTK's threads have begun does not go on in
/// another process. Throws Interrupted; EnvironmentError where there is no process to be had.
void try_point_field(std::filesystem::path const& path, std::string const& array, FieldInterpolation interpolation,
                     std::optional<std::int64_t> step = {});

/// step_of_hdf in a process of its own. Errors: as it, and as try_point_field.
[[nodiscard]] std::string try_step_of_hdf(std::filesystem::path const& path, std::optional<std::int64_t> step);

}  // namespace poisson::output
