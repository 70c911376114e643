#pragma once

#include "output/files/atomic_file.hpp"
#include "output/vtk/data_array.hpp"
#include "output/vtk/vtk_options.hpp"

#include "gpu/core/host_vector.hpp"

#include <array>
#include <filesystem>
#include <future>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace poisson::output {

/// Text as it may stand in an attribute.
[[nodiscard]] std::string xml_escaped(std::string_view text);

/// A file of VTK's XML formats with arrays as inline base64, compressed block by block. The threads compress and encode a batch of
/// blocks while another thread writes the batch before, so that memory is needed for some batches only, whatever the size of an
/// array. The file appears under its final name only with `commit`. All functions throw EnvironmentError with file and reason.
///
/// VTK's own writers compress and encode in one thread, and take long to load. Their raw data after the elements (<AppendedData>)
/// would be a quarter smaller, but ParaView 5.11 with libexpat 2.5.0-1+deb12u2 or later stops there: "not well-formed (invalid
/// token)" (libexpat issue 840, VTK issue 19258).
class XmlFile {
public:
  /// `type` and `version` are those of the element VTKFile.
  XmlFile(std::filesystem::path const& path, std::string_view type, std::string_view version, VtkOptions const& options);

  void text(std::string_view text);
  /// The element of an array.
  void array(DataArray const& array);
  void commit();

private:
  /// Bytes that a block takes at most, as it stands in the file before base64.
  [[nodiscard]] std::size_t most_packed() const;
  /// A block as it stands in the file, before base64, in `memory`.
  std::span<unsigned char const> packed(HostVector<unsigned char>& memory, std::span<unsigned char const> block) const;
  /// Has n characters in encoded_[filling_] written while the other one is filled.
  void write_encoded(char const* data, std::size_t n);
  void wait();

  std::filesystem::path path_;
  VtkCompression compression_;
  AtomicFile file_;
  FileBuffer buffer_;
  std::size_t block_bytes_;                                 ///< of an array, before compression
  std::vector<HostVector<unsigned char>> memory_, packed_;  ///< of every thread, for blocks that are made and packed
  std::array<HostVector<char>, 2> encoded_;                 ///< batches of blocks in base64
  std::size_t filling_ = 0;
  std::future<void> writing_;  ///< the last member: its end is waited for before what it uses is gone
};

}  // namespace poisson::output
