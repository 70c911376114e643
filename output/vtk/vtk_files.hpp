#pragma once

#include "output/grid.hpp"
#include "output/vtk/vtk_options.hpp"

#include "gpu/core/communicator.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace poisson::output {

/// Values of a file as a whole, such as the names of materials: an array of VTK's field data. ParaView lists such arrays, and its
/// annotations show them.
struct WholeArray {
  std::string name;
  std::variant<std::vector<int>, std::vector<double>, std::vector<std::string>> values;
};

/// Writes an unstructured grid (VTU). Cells of order 1 are VTK_HEXAHEDRON, of higher orders VTK_LAGRANGE_HEXAHEDRON; image data are
/// written as hexahedra. Precondition: the mesh is no RectilinearGrid. Here and below: threads compress; the file appears under
/// `path` only when it is complete; ParaView colours by the first point field, if it has one component. Throws EnvironmentError
/// with file and reason (no space left, not writable ...).
void write_vtu(std::filesystem::path const& path, Mesh const& mesh, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options, std::vector<WholeArray> const& of_all = {});

/// Where a piece of a larger lattice is in that.
struct PiecePlace {
  std::array<std::int64_t, 3> first{};  ///< the indices of its first point
  std::array<double, 3> low{};          ///< the first point of the whole
};

/// Writes image data (VTI): points and cells follow from a few numbers. `place`: as a piece of larger ones; null: it is all.
void write_vti(std::filesystem::path const& path, ImageGrid const& grid, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options, PiecePlace const* place = nullptr,
               std::vector<WholeArray> const& of_all = {});

/// Writes a rectilinear grid (VTR) of the nodes. Its cells are the p^3 cuboids between the nodes of a cell of order p; each has the
/// cell fields of that cell.
void write_vtr(std::filesystem::path const& path, RectilinearGrid const& grid, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options, PiecePlace const* place = nullptr,
               std::vector<WholeArray> const& of_all = {});

/// A mesh in several files, each written by one of the functions above.
struct PiecesOfMesh {
  struct Piece {
    std::string file;                          ///< relative to the file that names it
    std::array<std::int64_t, 3> first{}, n{};  ///< of lattices: the indices of its first point, and its points per direction
  };
  enum class Kind { image, rectilinear, unstructured } kind{};
  std::array<std::int64_t, 3> n{};         ///< of lattices: points per direction
  std::array<double, 3> low{}, spacing{};  ///< of image data
  std::vector<Piece> pieces;
};
/// The ending of the file that names such pieces: .pvti, .pvtr or .pvtu.
[[nodiscard]] std::string extension_of(PiecesOfMesh::Kind kind);
/// Writes the file by which programs find the pieces (PVTI, PVTR, PVTU). Of the fields, which all pieces have alike, it takes names
/// and types. Throws EnvironmentError.
void write_pieces(std::filesystem::path const& path, PiecesOfMesh const& mesh, std::vector<Field> const& point_fields,
                  std::vector<Field> const& cell_fields, VtkOptions const& options);

/// Writes a structured grid (VTS): n[0] x n[1] points (x, y, z) of a surface, those of n[0] next to each other, and quadrangles
/// between them. Points with hidden[i] != 0 are blank: programs do not show what touches them.
void write_vts(std::filesystem::path const& path, std::array<std::int64_t, 2> const& n, std::span<double const> points,
               std::span<unsigned char const> hidden, std::vector<Field> const& point_fields, VtkOptions const& options);

/// Writes polygons (VTP) between points (x, y, z); `faces` has the numbers of `corners` points each.
void write_vtp(std::filesystem::path const& path, std::span<double const> points, std::span<std::int64_t const> faces, int corners,
               std::vector<Field> const& point_fields, std::vector<Field> const& cell_fields, VtkOptions const& options,
               std::vector<WholeArray> const& of_all = {});

/// Loads the library that knows VTK and HDF5, poisson_vtk, which is else loaded by the first field in a file or VTKHDF file. Throws
/// EnvironmentError where it cannot be loaded.
void load_vtk();

/// Writes the same as write_vtu, as VTKHDF 1.0. ParaView 5.11 knows the file by the ending .hdf alone, and does not read it from a
/// PVD file. It colours by no field when it opens the file. A slash in the name of an array of `of_all`, where HDF5 cannot have
/// one, becomes "_".
void write_hdf(std::filesystem::path const& path, Mesh const& mesh, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options, std::vector<WholeArray> const& of_all = {});

/// Writes the file of write_hdf from several ranks. The first one, which has a mesh, writes one file with a piece of every rank
/// that has a mesh (`mesh` is not null). The others send it theirs, some megabytes at a time. Fields are alike on all ranks;
/// `of_all` counts on the first. Collective. EnvironmentError is thrown on the first rank alone, when all is sent.
void write_hdf_on_ranks(std::filesystem::path const& path, Communicator& ranks, Mesh const* mesh,
                        std::vector<Field> const& point_fields, std::vector<Field> const& cell_fields, VtkOptions const& options,
                        std::vector<WholeArray> const& of_all = {});

/// Bytes that a writer takes besides the mesh and the fields, where the largest array of the file has `largest_array` bytes.
[[nodiscard]] std::int64_t writer_bytes(VtkFormat format, VtkCompression compression, std::int64_t largest_array);

/// One data set of a collection.
struct PvdEntry {
  double time = 0;     ///< shown by ParaView as the time value
  std::string file;    ///< relative to the PVD file
  std::string name{};  ///< what it is, for those who read the file; ParaView shows it nowhere
};
/// Writes a collection of data sets (PVD). Throws EnvironmentError.
void write_pvd(std::filesystem::path const& path, std::vector<PvdEntry> const& entries);

}  // namespace poisson::output
