#pragma once

#include "output/vtk/hdf_file.hpp"
#include "output/vtk/point_field.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace poisson::output {

/// What the library poisson_vtk has: all that needs VTK or HDF5.
struct VtkFunctions {
  /// As open_hdf_file.
  std::unique_ptr<HdfFile> (*open_hdf_file)(std::filesystem::path const& path, std::string const& type, VtkOptions const& options);
  /// As open_point_field, of a file of VTK. `content` is what is read: the file, or one with a step of it.
  PointField (*open_grid_field)(std::filesystem::path const& path, std::filesystem::path const& content, std::string const& array,
                                FieldInterpolation interpolation);
  /// As open_point_field, of a table of points.
  PointField (*open_table_field)(std::filesystem::path const& path, std::string const& array, FieldInterpolation interpolation);
  /// As step_of_hdf (hdf_steps.hpp).
  std::string (*step_of_hdf)(std::filesystem::path const& path, std::optional<std::int64_t> step);
};

/// The library, which is loaded by the first call. Throws EnvironmentError where it cannot be loaded.
[[nodiscard]] VtkFunctions const& vtk_library();

}  // namespace poisson::output

extern "C" poisson::output::VtkFunctions const* poisson_vtk();
