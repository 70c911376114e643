#include "output/vtk/hdf_writer.hpp"

#include "gpu/core/error.hpp"

#include <algorithm>
#include <cstring>
#include <future>
#include <new>
#include <omp.h>
#include <stdexcept>
#include <string_view>

namespace poisson::output {

namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18;  ///< at most, where a row is not longer
constexpr std::size_t small_array = 1024;                  ///< bytes that are not worth a chunk

/// Level 1 leaves a quarter of fields of floating-point numbers and their meshes. Higher levels than 6 gain nothing more.
constexpr int deflate_level(VtkCompression compression) {
  return compression == VtkCompression::best ? 6 : 1;
}

/// Bytes that a deflated chunk takes at most: deflate stores what it cannot make smaller.
constexpr std::size_t deflate_space(std::size_t chunk_bytes) {
  return chunk_bytes + chunk_bytes / 64 + 1024;
}

hid_t hdf_type(ScalarType type) {
  switch (type) {
  case ScalarType::uint8:
    return H5T_NATIVE_UINT8;
  case ScalarType::int32:
    return H5T_NATIVE_INT32;
  case ScalarType::int64:
    return H5T_NATIVE_INT64;
  case ScalarType::float32:
    return H5T_NATIVE_FLOAT;
  case ScalarType::float64:
    break;
  }
  return H5T_NATIVE_DOUBLE;
}

std::size_t row_bytes(DataArray const& array) {
  return size_of(array.type) * static_cast<std::size_t>(array.components);
}

/// The dimensions of `rows` rows of an array.
std::vector<hsize_t> dimensions(DataArray const& array, std::size_t rows) {
  if (array.components == 1)
    return {rows};
  return {rows, static_cast<hsize_t>(array.components)};
}

/// What HDF5 says of the last error of this thread: the innermost of its messages.
std::string hdf_message() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, H5E_error2_t const* error, void* out) -> herr_t {
        if (n == 0 && error->desc != nullptr)
          *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &text);
  return text.empty() ? "HDF5 failed" : "HDF5: " + text;
}

}  // namespace

HdfWriter::Packer::~Packer() {
  deflateEnd(&stream_);
  deflateEnd(&sample_);
}

void HdfWriter::Packer::prepare() {
  constexpr int largest_window = 15, most_memory = 9;
  for (z_stream* const stream : {&stream_, &sample_})
    if (stream->state == nullptr && deflateInit2(stream, deflate_level(VtkCompression::fast), Z_DEFLATED, largest_window,
                                                 most_memory, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  ready_ = true;
}

bool HdfWriter::Packer::is_noise(std::span<unsigned char const> bytes) {
  unsigned char out[3840];  // a sixteenth less than the sample
  std::size_t const n = std::min<std::size_t>(bytes.size(), 4096);
  deflateReset(&sample_);
  sample_.next_in = const_cast<unsigned char*>(bytes.data() + (bytes.size() - n) / 2);
  sample_.avail_in = static_cast<uInt>(n);
  sample_.next_out = out;
  sample_.avail_out = static_cast<uInt>(n - n / 16);
  return deflate(&sample_, Z_FINISH) != Z_STREAM_END;
}

std::span<unsigned char const> HdfWriter::Packer::pack(std::span<unsigned char const> block, std::size_t chunk_bytes,
                                                       std::size_t value_bytes, VtkCompression compression) {
  if (!ready_)
    prepare();
  // First bytes of all values, then their second bytes, and so on.
  std::size_t const n = block.size() / value_bytes, plane = chunk_bytes / value_bytes;
  shuffled_.resize(chunk_bytes);
  for (std::size_t k = 0; k < value_bytes; ++k) {
    unsigned char* const to = shuffled_.data() + k * plane;
    for (std::size_t i = 0; i < n; ++i)
      to[i] = block[i * value_bytes + k];
    std::fill(to + n, to + plane, static_cast<unsigned char>(0));
  }
  packed_.resize(deflate_space(chunk_bytes));
  deflateReset(&stream_);
  stream_.next_out = packed_.data();
  stream_.avail_out = static_cast<uInt>(packed_.size());
  bool good = true;
  for (std::size_t k = 0; k < value_bytes && good; ++k) {
    std::span<unsigned char const> const bytes(shuffled_.data() + k * plane, plane);
    // The last digits of numbers are noise, which takes deflate most of its time and stays as long as it is.
    bool const store = compression == VtkCompression::fast && is_noise(bytes);
    good = deflateParams(&stream_, store ? 0 : deflate_level(compression), Z_DEFAULT_STRATEGY) == Z_OK;
    stream_.next_in = const_cast<unsigned char*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(plane);
    bool const last = k + 1 == value_bytes;
    good = good && deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH) == (last ? Z_STREAM_END : Z_OK) && stream_.avail_in == 0;
  }
  if (!good)
    throw std::logic_error("deflate needs more space than expected");
  return {packed_.data(), packed_.size() - stream_.avail_out};
}

HdfWriter::HdfWriter(std::filesystem::path const& path, std::string const& type, VtkOptions const& options)
    : path_(path),
      compression_(options.compression),
      file_(path),
      storage_(file_.temporary_path()),
      packers_(static_cast<std::size_t>(omp_get_max_threads())),
      memory_(packers_.size()) {
  QuietHdf const quiet;
  check(true);
  hdf_ = taken(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, storage_.access()), H5Fclose);
  root_ = taken(H5Gcreate2(hdf_.get(), "VTKHDF", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  hsize_t const two = 2;
  std::int64_t const version[2] = {1, 0};
  attribute("Version", H5T_NATIVE_INT64, taken(H5Screate_simple(1, &two, nullptr), H5Sclose).get(), version);
  HdfHandle const text = taken(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(text.get(), type.size()) >= 0 && H5Tset_strpad(text.get(), H5T_STR_NULLPAD) >= 0);
  attribute("Type", text.get(), taken(H5Screate(H5S_SCALAR), H5Sclose).get(), type.c_str());
}

HdfHandle HdfWriter::taken(hid_t id, herr_t (*close)(hid_t)) {
  HdfHandle handle(id, close);
  check(id >= 0);
  return handle;
}

void HdfWriter::check(bool good) {
  if (storage_.error() != 0)
    throw_write_error(path_, storage_.error());
  if (!good)
    throw EnvironmentError("cannot write '" + path_.string() + "': " + hdf_message());
}

void HdfWriter::attribute(char const* name, hid_t type, hid_t space, void const* value) {
  HdfHandle made = taken(H5Acreate2(root_.get(), name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check(H5Awrite(made.get(), type, value) >= 0);
  check(made.close());
}

void HdfWriter::group(std::string const& name) {
  QuietHdf const quiet;
  HdfHandle const properties = taken(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(properties.get(), false) >= 0 &&
        H5Pset_link_creation_order(properties.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
  HdfHandle made = taken(H5Gcreate2(root_.get(), name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Gclose);
  check(made.close());
}

void HdfWriter::strings(std::string const& name, std::vector<std::string> const& texts) {
  QuietHdf const quiet;
  HdfHandle const type = taken(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(type.get(), H5T_VARIABLE) >= 0);
  hsize_t const n = texts.size();
  HdfHandle const space = taken(H5Screate_simple(1, &n, nullptr), H5Sclose);
  HdfHandle const properties = taken(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(properties.get(), false) >= 0);
  HdfHandle data_set =
      taken(H5Dcreate2(root_.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Dclose);
  std::vector<char const*> values;
  for (std::string const& text : texts)
    values.push_back(text.c_str());
  if (!values.empty())
    check(H5Dwrite(data_set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  check(data_set.close());
}

HdfWriter::Layout HdfWriter::layout_of(DataArray const& array) const {
  std::size_t const n_rows = array.bytes() / row_bytes(array);
  return {std::min(n_rows, std::max<std::size_t>(block_bytes / row_bytes(array), 1)),
          compression_ != VtkCompression::none && array.bytes() >= small_array};
}

HdfHandle HdfWriter::new_data_set(DataArray const& array, Layout const& layout) {
  HdfHandle const properties = taken(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(properties.get(), false) >= 0 && H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER) >= 0);
  if (layout.in_chunks) {
    auto const chunk = dimensions(array, layout.rows);
    check(H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()) >= 0 &&
          H5Pset_shuffle(properties.get()) >= 0 &&
          H5Pset_deflate(properties.get(), static_cast<unsigned>(deflate_level(compression_))) >= 0);
  }
  auto const size = dimensions(array, array.bytes() / row_bytes(array));
  HdfHandle const space = taken(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose);
  return taken(
      H5Dcreate2(root_.get(), array.name.c_str(), hdf_type(array.type), space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
      H5Dclose);
}

void HdfWriter::array(DataArray const& array) {
  QuietHdf const quiet;
  Layout const layout = layout_of(array);
  HdfHandle data_set = new_data_set(array, layout);
  if (array.data != nullptr && !layout.in_chunks)
    check(H5Dwrite(data_set.get(), hdf_type(array.type), H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data) >= 0);
  else if (layout.rows > 0)
    write_values(array, data_set.get(), layout);
  check(data_set.close());
}

void HdfWriter::fill(Batch& batch, DataArray const& array, Layout const& layout, std::size_t first, std::size_t count) {
  std::size_t const block = layout.rows * row_bytes(array);
  batch.stride = layout.in_chunks ? deflate_space(block) : block;
  batch.sizes.resize(count);
  if (batch.bytes.size() < count * batch.stride) {
    batch.bytes = {};  // nothing is kept, nothing copied
    batch.bytes.resize(count * batch.stride);
  }
  pack_blocks(
      array, block, first, count, memory_,
      [&](std::size_t thread, std::span<unsigned char const> values) {
        return layout.in_chunks ? packers_[thread].pack(values, block, size_of(array.type), compression_) : values;
      },
      [&](std::size_t b, std::span<unsigned char const> packed) {
        std::copy(packed.begin(), packed.end(), batch.bytes.data() + b * batch.stride);
        batch.sizes[b] = packed.size();
      });
}

void HdfWriter::write_values(DataArray const& array, hid_t data_set, Layout const& layout) {
  std::size_t const block = layout.rows * row_bytes(array), n_blocks = (array.bytes() + block - 1) / block;
  std::size_t const most = std::max<std::size_t>(blocks_of_a_batch(block), 1);
  std::size_t filling = 0;
  std::future<void> writing;  // its end is waited for, whatever happens, before the data set is closed
  for (std::size_t first = 0; first < n_blocks; first += most) {
    Batch& batch = batches_[filling];
    fill(batch, array, layout, first, std::min(most, n_blocks - first));
    if (writing.valid())
      writing.get();
    writing = std::async([=, this, &array, &batch] {
      QuietHdf const quiet;
      if (layout.in_chunks)
        write_chunks(batch, data_set, first, layout.rows);
      else
        write_rows(batch, array, data_set, first * layout.rows);
    });
    filling = 1 - filling;
  }
  writing.get();
}

void HdfWriter::begin(DataArray const& shape) {
  QuietHdf const quiet;
  shape_ = shape;
  layout_ = layout_of(shape);
  open_ = new_data_set(shape_, layout_);
  n_pending_ = next_block_ = 0;
  std::size_t const block = layout_.rows * row_bytes(shape_);
  pending_ = {};
  pending_.resize(block > 0 ? std::min(shape_.bytes(), std::max<std::size_t>(blocks_of_a_batch(block), 1) * block) : 0);
}

void HdfWriter::add(std::span<unsigned char const> bytes) {
  while (!bytes.empty()) {
    std::size_t const n = std::min(bytes.size(), pending_.size() - n_pending_);
    std::copy_n(bytes.begin(), n, pending_.begin() + static_cast<std::ptrdiff_t>(n_pending_));
    n_pending_ += n;
    bytes = bytes.subspan(n);
    if (n_pending_ == pending_.size())
      flush();
  }
}

void HdfWriter::flush() {
  if (n_pending_ == 0)
    return;
  QuietHdf const quiet;
  DataArray part = shape_;
  part.n_values = static_cast<std::int64_t>(n_pending_ / size_of(shape_.type));
  part.data = pending_.data();
  part.fill = {};
  std::size_t const block = layout_.rows * row_bytes(shape_), count = (n_pending_ + block - 1) / block;
  fill(batches_[0], part, layout_, 0, count);
  if (layout_.in_chunks)
    write_chunks(batches_[0], open_.get(), next_block_, layout_.rows);
  else
    write_rows(batches_[0], shape_, open_.get(), next_block_ * layout_.rows);
  next_block_ += count;
  n_pending_ = 0;
}

void HdfWriter::end() {
  flush();
  QuietHdf const quiet;
  check(open_.close());
}

void HdfWriter::write_chunks(Batch const& batch, hid_t data_set, std::size_t first, std::size_t rows) {
  for (std::size_t b = 0; b < batch.sizes.size(); ++b) {
    hsize_t const place[2] = {(first + b) * rows, 0};
    check(H5Dwrite_chunk(data_set, H5P_DEFAULT, 0, place, batch.sizes[b], batch.bytes.data() + b * batch.stride) >= 0);
  }
}

void HdfWriter::write_rows(Batch const& batch, DataArray const& array, hid_t data_set, std::size_t first_row) {
  std::size_t bytes = 0;
  for (std::size_t const size : batch.sizes)
    bytes += size;
  hsize_t const place[2] = {first_row, 0};
  auto const size = dimensions(array, bytes / row_bytes(array));
  HdfHandle const memory = taken(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose);
  HdfHandle const space = taken(H5Dget_space(data_set), H5Sclose);
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, place, nullptr, size.data(), nullptr) >= 0);
  check(H5Dwrite(data_set, hdf_type(array.type), memory.get(), space.get(), H5P_DEFAULT, batch.bytes.data()) >= 0);
}

void HdfWriter::commit() {
  QuietHdf const quiet;
  check(root_.close());
  check(hdf_.close());
  if (int const error = storage_.close(); error != 0)
    throw_write_error(path_, error);
  file_.commit();
}

}  // namespace poisson::output
