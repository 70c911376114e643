#pragma once

#include "output/grid.hpp"

#include "gpu/core/names.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace poisson::output {

enum class VtkCompression { none, fast, best };
}  // namespace poisson::output

template <>
struct poisson::Names<poisson::output::VtkCompression> {
  static constexpr std::array<Named<output::VtkCompression>, 3> values{
      {{output::VtkCompression::none, "none"}, {output::VtkCompression::fast, "fast"}, {output::VtkCompression::best, "best"}}};
};

namespace poisson::output {

enum class VtkPrecision { single, double_ };
}  // namespace poisson::output

template <>
struct poisson::Names<poisson::output::VtkPrecision> {
  static constexpr std::array<Named<output::VtkPrecision>, 2> values{
      {{output::VtkPrecision::single, "single"}, {output::VtkPrecision::double_, "double"}}};
};

namespace poisson::output {

struct VtkOptions {
  VtkCompression compression = VtkCompression::fast;
  VtkPrecision precision = VtkPrecision::double_;
};

/// Writes an unstructured grid (VTU) with VTK's writer: inline base64, compressed. Cells of order 1 are VTK_HEXAHEDRON, of higher
/// orders VTK_LAGRANGE_HEXAHEDRON; a lattice is written as hexahedra. The file appears under `path` only when it is complete.
/// Throws EnvironmentError with file and reason (no space left, not writable ...).
void write_vtu(std::filesystem::path const& path, Mesh const& mesh, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options);

/// Writes image data (VTI) with point fields; all else as write_vtu.
void write_vti(std::filesystem::path const& path, ImageGrid const& grid, std::vector<Field> const& point_fields,
               VtkOptions const& options);

/// One data set of a collection.
struct PvdEntry {
  double time = 0;   ///< shown by ParaView as the time value
  std::string file;  ///< relative to the PVD file
};
/// Writes a collection of data sets (PVD). Throws EnvironmentError.
void write_pvd(std::filesystem::path const& path, std::vector<PvdEntry> const& entries);

[[nodiscard]] std::string vtk_version();

}  // namespace poisson::output
