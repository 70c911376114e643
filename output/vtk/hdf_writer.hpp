#pragma once

#include "output/files/atomic_file.hpp"
#include "output/vtk/data_array.hpp"
#include "output/vtk/hdf_file.hpp"
#include "output/vtk/hdf_storage.hpp"
#include "output/vtk/vtk_options.hpp"

#include "gpu/core/host_vector.hpp"

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
#include <zlib.h>

namespace poisson::output {

/// The HdfFile of the library poisson_vtk. HDF5 itself would compress in one thread. Here threads pack a batch of chunks while
/// another thread gives HDF5 the batch before, so that memory is needed for some batches only.
class HdfWriter final : public HdfFile {
public:
  HdfWriter(std::filesystem::path const& path, std::string const& type, VtkOptions const& options);

  void group(std::string const& name) override;
  void array(DataArray const& array) override;
  void strings(std::string const& name, std::vector<std::string> const& texts) override;
  void begin(DataArray const& shape) override;
  void add(std::span<unsigned char const> bytes) override;
  void end() override;
  void commit() override;

private:
  /// What a thread packs chunks with.
  class Packer {
  public:
    Packer() = default;
    Packer(Packer const&) = delete;
    Packer& operator=(Packer const&) = delete;
    ~Packer();
    /// A chunk after HDF5's filters `shuffle` and `deflate`; zeros fill it up to `chunk_bytes`.
    std::span<unsigned char const> pack(std::span<unsigned char const> block, std::size_t chunk_bytes, std::size_t value_bytes,
                                        VtkCompression compression);

  private:
    void prepare();
    /// Judges by a sample whether deflating gains nothing.
    [[nodiscard]] bool is_noise(std::span<unsigned char const> bytes);

    z_stream stream_{}, sample_{};
    bool ready_ = false;
    HostVector<unsigned char> shuffled_, packed_;
  };
  struct Batch {
    std::size_t stride = 0;  ///< from one block to the next
    HostVector<unsigned char> bytes;
    std::vector<std::size_t> sizes;  ///< of the blocks
  };

  /// The identifier that HDF5 has given; throws if it has given none.
  HdfHandle taken(hid_t id, herr_t (*close)(hid_t));
  /// How the rows of an array are divided.
  struct Layout {
    std::size_t rows = 0;  ///< of a block
    bool in_chunks = false;
  };
  [[nodiscard]] Layout layout_of(DataArray const& array) const;
  HdfHandle new_data_set(DataArray const& array, Layout const& layout);
  /// Fills a batch with `count` blocks from block `first` of the array on.
  void fill(Batch& batch, DataArray const& array, Layout const& layout, std::size_t first, std::size_t count);
  /// Writes what `add` has brought.
  void flush();
  void check(bool good);
  void attribute(char const* name, hid_t type, hid_t space, void const* value);
  /// Writes the values in blocks: chunks after the filters, or rows as they are.
  void write_values(DataArray const& array, hid_t data_set, Layout const& layout);
  /// One batch of blocks, the first of which is block `first`.
  void write_chunks(Batch const& batch, hid_t data_set, std::size_t first, std::size_t rows);
  void write_rows(Batch const& batch, DataArray const& array, hid_t data_set, std::size_t first_row);

  std::filesystem::path path_;
  VtkCompression compression_;
  AtomicFile file_;
  HdfStorage storage_;
  HdfHandle hdf_, root_;
  std::vector<Packer> packers_;                    ///< one for every thread
  std::vector<HostVector<unsigned char>> memory_;  ///< of every thread, for blocks that are made
  std::array<Batch, 2> batches_;                   ///< one is filled while the other is written
  // These members are about an array that comes in pieces:
  DataArray shape_;
  Layout layout_;
  HdfHandle open_;
  HostVector<unsigned char> pending_;  ///< at most a batch of blocks
  std::size_t n_pending_ = 0, next_block_ = 0;
};

}  // namespace poisson::output
