#pragma once

#include "output/vtk/data_array.hpp"
#include "output/vtk/vtk_options.hpp"

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace poisson::output {

/// A file of the format VTKHDF 1.0. Compressed arrays are stored in chunks, shuffled and deflated; others as they are. The same
/// arrays make the same file. It appears under its final name only with `commit`. All functions throw EnvironmentError with file
/// and reason.
class HdfFile {
public:
  HdfFile() = default;
  HdfFile(HdfFile const&) = delete;
  HdfFile& operator=(HdfFile const&) = delete;
  virtual ~HdfFile() = default;

  /// A group for arrays. They are listed in the order in which they are written.
  virtual void group(std::string const& name) = 0;
  /// Writes an array; the name may begin with that of a group and a slash. It has one row for `components` values.
  virtual void array(DataArray const& array) = 0;
  /// An array of texts, each of its own length: readers of VTK know no others.
  virtual void strings(std::string const& name, std::vector<std::string> const& texts) = 0;
  /// An array whose values come in pieces: `add` takes the next bytes of its rows, in their order, until all are there. Of `shape`
  /// the values are not looked at. One array at a time.
  virtual void begin(DataArray const& shape) = 0;
  virtual void add(std::span<unsigned char const> bytes) = 0;
  virtual void end() = 0;
  virtual void commit() = 0;
};

/// A new file; `type` is that of the data set: UnstructuredGrid. Loads the library as load_vtk (vtk_files.hpp) does.
[[nodiscard]] std::unique_ptr<HdfFile> open_hdf_file(std::filesystem::path const& path, std::string const& type,
                                                     VtkOptions const& options);

}  // namespace poisson::output
