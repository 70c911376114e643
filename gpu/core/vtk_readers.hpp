#pragma once

#include "gpu/core/host_vector.hpp"
#include "gpu/core/names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What VTK reads for meshes and images, as plain data: `output` has VTK and makes them, `assembly` makes meshes and labels of
/// them. The two meet here alone, by modules that are loaded when a file needs them (gpu/core/module.hpp).
namespace poisson {

/// Types of cells, by VTK's numbers in its files.
enum class VtkCell : std::uint8_t {
  empty = 0,
  poly_line = 4,
  triangle = 5,
  pixel = 8,
  quad = 9,
  tetrahedron = 10,
  voxel = 11,
  hexahedron = 12,
  wedge = 13,
  pyramid = 14,
  quadratic_edge = 21,
  quadratic_triangle = 22,
  quadratic_quad = 23,
  quadratic_tetrahedron = 24,
  quadratic_hexahedron = 25,
  biquadratic_quad = 28,
  triquadratic_hexahedron = 29,
  biquadratic_triangle = 34,
  cubic_line = 35,
  quadratic_polygon = 36,
  lagrange_curve = 68,
  lagrange_triangle = 69,
  lagrange_quadrilateral = 70,
  lagrange_tetrahedron = 71,
  lagrange_hexahedron = 72,
  lagrange_wedge = 73
};

/// An unstructured grid.
struct VtkGrid {
  /// Numbers of cells: the first component of each.
  struct CellArray {
    std::string name;
    int components = 1;
    HostVector<double> values;
  };
  bool is_grid = false;                       ///< false: the file holds none, or no points, or its reader failed
  std::vector<std::string> errors, warnings;  ///< what VTK says, each once
  HostVector<double> points;                  ///< x, y, z of every point
  HostVector<std::uint8_t> types;             ///< of cells; those in VtkCell, and others
  HostVector<std::int64_t> offsets, nodes;    ///< those of cell i are nodes[offsets[i]] ... nodes[offsets[i + 1] - 1]
  std::vector<CellArray> arrays;

  [[nodiscard]] std::int64_t n_cells() const { return std::ssize(types); }
};

enum class VtkGridFile { legacy, xml, hdf };

/// What the library poisson_grids has. VTK may crash at damaged files, so a process of its own calls it.
struct VtkGridReader {
  /// Reads `content`, that of the file; of hdf, and of what is too long for VTK, the file itself.
  VtkGrid (*read)(VtkGridFile format, std::string const& file, std::string_view content);
};

enum class VoxelType { uint8, int8, uint16, int16, uint32, int32, float32, float64 };

/// Voxels with x fastest, then y, then z.
struct VtkImage {
  std::array<std::int64_t, 3> cells{};
  VoxelType type = VoxelType::uint8;
  std::array<double, 3> spacing{}, low{};  ///< edges of a voxel, and the corner of the image
  std::vector<std::byte> bytes;            ///< in this machine's order
};

/// What the library poisson_image has. Errors: InputError (keys problem.mesh.image and problem.mesh.array), whose text does not
/// name the file and may have bytes of it. VTK may crash at damaged files, so a process of its own calls them.
struct VtkImageReader {
  /// A .vti file; its voxels only if asked for.
  VtkImage (*read_vti)(std::string const& file, std::string const& array, bool with_voxels);
  /// The pages of a TIFF file that has so many voxels of this type, which are so many bytes.
  std::vector<std::byte> (*read_tiff)(std::string const& file, std::array<std::int64_t, 3> const& cells, VoxelType type,
                                      std::int64_t bytes);
};

template <>
struct Names<VoxelType> {
  static constexpr std::array<Named<VoxelType>, 8> values{{{VoxelType::uint8, "uint8"},
                                                           {VoxelType::int8, "int8"},
                                                           {VoxelType::uint16, "uint16"},
                                                           {VoxelType::int16, "int16"},
                                                           {VoxelType::uint32, "uint32"},
                                                           {VoxelType::int32, "int32"},
                                                           {VoxelType::float32, "float32"},
                                                           {VoxelType::float64, "float64"}}};
};

}  // namespace poisson

extern "C" poisson::VtkGridReader const* poisson_grids();
extern "C" poisson::VtkImageReader const* poisson_image();
