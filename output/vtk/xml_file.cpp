#include "output/vtk/xml_file.hpp"

#include "output/vtk/base64.hpp"

#include "gpu/core/error.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <lz4.h>
#include <lzma.h>
#include <omp.h>

namespace poisson::output {

namespace {

std::string_view name_in_file(ScalarType type) {
  switch (type) {
  case ScalarType::uint8:
    return "UInt8";
  case ScalarType::int32:
    return "Int32";
  case ScalarType::int64:
    return "Int64";
  case ScalarType::float32:
    return "Float32";
  case ScalarType::float64:
    break;
  }
  return "Float64";
}

/// Bytes of a block before compression.
std::size_t block_bytes(VtkCompression compression) {
  switch (compression) {
  case VtkCompression::none:
    return std::size_t{1} << 18;
  case VtkCompression::fast:  // larger ones are compressed less well
    return std::size_t{1} << 16;
  case VtkCompression::best:
    break;
  }
  return std::size_t{1} << 20;
}

std::string encoded(std::span<std::uint64_t const> words) {
  std::string text(base64_size(words.size_bytes()), '=');
  encode_base64(reinterpret_cast<unsigned char const*>(words.data()), words.size_bytes(), text.data());
  return text;
}

/// What a block of an array continues: base64 takes groups of 3 bytes, whatever blocks they are in.
struct Link {
  std::size_t position = 0;  ///< of the next characters
  std::array<unsigned char, 2> rest{};
  std::size_t n_rest = 0;  ///< bytes before the block that make no group yet

  /// The link behind a block.
  [[nodiscard]] Link behind(std::span<unsigned char const> block) const {
    std::size_t const n = n_rest + block.size();
    Link next{position + n / 3 * 4, {}, n % 3};
    for (std::size_t i = 0; i < next.n_rest; ++i) {
      std::size_t const at = n - next.n_rest + i;
      next.rest[i] = at < n_rest ? rest[at] : block[at - n_rest];
    }
    return next;
  }
  /// Writes the groups that end in a block to their place behind `out`.
  void encode(std::span<unsigned char const> block, char* out) const {
    out += position;
    if (n_rest > 0) {
      if (n_rest + block.size() < 3)
        return;
      unsigned char group[3] = {rest[0], rest[1], 0};
      std::copy_n(block.data(), 3 - n_rest, group + n_rest);
      encode_base64(group, 3, out);
      block = block.subspan(3 - n_rest);
      out += 4;
    }
    encode_base64(block.data(), block.size() / 3 * 3, out);
  }
};

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (char const c : text) {
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += c;
    }
  }
  return result;
}

XmlFile::XmlFile(std::filesystem::path const& path, std::string_view type, std::string_view version, VtkOptions const& options)
    : path_(path),
      compression_(options.compression),
      file_(path),
      buffer_(file_.temporary_path()),
      block_bytes_(block_bytes(options.compression)),
      memory_(static_cast<std::size_t>(omp_get_max_threads())),
      packed_(memory_.size()) {
  // The classes by which VTK reads it.
  std::string const compressor = compression_ == VtkCompression::none   ? ""
                                 : compression_ == VtkCompression::fast ? " compressor=\"vtkLZ4DataCompressor\""
                                                                        : " compressor=\"vtkLZMADataCompressor\"";
  text("<?xml version=\"1.0\"?>\n<VTKFile type=\"" + std::string(type) + "\" version=\"" + std::string(version) +
       "\" byte_order=\"LittleEndian\" header_type=\"UInt64\"" + compressor + ">\n");
}

void XmlFile::text(std::string_view text) {
  wait();
  buffer_.sputn(text.data(), static_cast<std::streamsize>(text.size()));
}

void XmlFile::wait() {
  if (writing_.valid())
    writing_.get();
  if (buffer_.error() != 0)
    throw_write_error(path_, buffer_.error());
}

void XmlFile::write_encoded(char const* data, std::size_t n) {
  wait();
  writing_ = std::async([this, data, n] { buffer_.sputn(data, static_cast<std::streamsize>(n)); });
  filling_ = 1 - filling_;
}

void XmlFile::commit() {
  text("</VTKFile>\n");
  if (int const error = buffer_.close(); error != 0)
    throw_write_error(path_, error);
  file_.commit();
}

std::size_t XmlFile::most_packed() const {
  switch (compression_) {
  case VtkCompression::none:
    break;
  case VtkCompression::fast:
    return static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(block_bytes_)));
  case VtkCompression::best:
    return lzma_stream_buffer_bound(block_bytes_);
  }
  return block_bytes_;
}

std::span<unsigned char const> XmlFile::packed(HostVector<unsigned char>& memory, std::span<unsigned char const> block) const {
  if (compression_ == VtkCompression::none)
    return block;
  memory.resize(most_packed());
  std::size_t size = 0;
  if (compression_ == VtkCompression::fast) {
    // In blocks of 64 KiB this keeps 0.87 of fields of floating-point numbers, at 450 MB/s a core; acceleration 1 keeps 0.79, at
    // 330 MB/s, 5 keeps 0.92, at 650 MB/s.
    constexpr int acceleration = 3;
    size = static_cast<std::size_t>(LZ4_compress_fast(reinterpret_cast<char const*>(block.data()),
                                                      reinterpret_cast<char*>(memory.data()), static_cast<int>(block.size()),
                                                      static_cast<int>(memory.size()), acceleration));
  } else {
    constexpr std::uint32_t level = 2;  // higher ones gain nothing on fields of floating-point numbers
    if (lzma_easy_buffer_encode(level, LZMA_CHECK_CRC32, nullptr, block.data(), block.size(), memory.data(), &size,
                                memory.size()) != LZMA_OK)
      size = 0;
  }
  if (size == 0)
    throw EnvironmentError("cannot write '" + path_.string() + "': compression failed");
  return {memory.data(), size};
}

void XmlFile::array(DataArray const& array) {
  text("<DataArray type=\"" + std::string(name_in_file(array.type)) + "\" Name=\"" + xml_escaped(array.name) + "\"" +
       (array.components == 1 ? "" : " NumberOfComponents=\"" + std::to_string(array.components) + "\"") + " format=\"binary\">\n");
  std::size_t const bytes = array.bytes();
  std::size_t const n_blocks = (bytes + block_bytes_ - 1) / block_bytes_, batch = blocks_of_a_batch(block_bytes_);
  bool const compress = compression_ != VtkCompression::none;
  std::size_t const space = most_packed();

  // A compressed array starts with the number of blocks, the bytes of a block, those of the last one if it is shorter, and the
  // compressed bytes of every block. These are known in the end; their place is kept until then. Any other array starts with the
  // number of bytes, in one text with the data.
  std::vector<std::uint64_t> header(3 + n_blocks);
  header[0] = n_blocks;
  header[1] = block_bytes_;
  header[2] = bytes % block_bytes_;
  auto const header_at = buffer_.pubseekoff(0, std::ios_base::cur, std::ios_base::out);
  Link link;
  if (compress) {
    text(encoded(header));
  } else {
    auto const size = std::bit_cast<std::array<unsigned char, 8>>(std::uint64_t{bytes});
    char start[8];
    link.encode(size, start);
    text({start, sizeof start});
    link = {0, {size[6], size[7]}, 2};
  }
  std::int64_t position = buffer_.pubseekoff(0, std::ios_base::cur, std::ios_base::out);  // of the next batch

  for (std::size_t first = 0; first < n_blocks; first += batch) {
    std::size_t const count = std::min(batch, n_blocks - first);
    auto& memory = encoded_[filling_];
    if (std::size_t const most = base64_size(count * space + 2) + FileBuffer::direct_block; memory.size() < most) {
      memory = {};  // a longer vector would copy what nobody needs, with room for as much again
      memory.resize(most);
    }
    char* const out = FileBuffer::in_memory(memory.data(), position);
    // Threads take blocks in their order and link them in that order, as soon as they are packed: no thread waits for one that has
    // not begun.
    std::vector<Link> links(count + 1);
    links.front() = link;
    std::atomic<std::size_t> linked = 0;
    pack_blocks(
        array, block_bytes_, first, count, memory_,
        [&](std::size_t thread, std::span<unsigned char const> block) { return packed(packed_[thread], block); },
        [&](std::size_t b, std::span<unsigned char const> block) {
          header[3 + first + b] = block.size();
          for (std::size_t known = linked; known < b; known = linked)
            linked.wait(known);
          links[b + 1] = links[b].behind(block);
          linked = b + 1;
          linked.notify_all();
          links[b].encode(block, out);
        });
    link = links.back();
    write_encoded(out, link.position);
    position += static_cast<std::int64_t>(link.position);
    link.position = 0;
  }
  wait();
  if (link.n_rest > 0) {
    char group[4];
    encode_base64(link.rest.data(), link.n_rest, group);
    text({group, sizeof group});
  }
  if (compress) {
    buffer_.pubseekpos(header_at, std::ios_base::out);
    text(encoded(header));
    buffer_.pubseekoff(0, std::ios_base::end, std::ios_base::out);
  }
  text("\n</DataArray>\n");
}

}  // namespace poisson::output
