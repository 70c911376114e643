#include "assembly/image/image_file.hpp"

#include "assembly/image/image_header.hpp"
#include "assembly/parallel.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/input_file.hpp"
#include "gpu/core/module.hpp"
#include "gpu/core/reader_process.hpp"
#include "gpu/core/vtk_readers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fnmatch.h>
#include <functional>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>
#include <zlib.h>

extern "C" __attribute__((weak)) poisson::VtkImageReader const* poisson_image();

namespace poisson::assembly {
namespace {

namespace fs = std::filesystem;

VtkImageReader const& library() {
  static Module<VtkImageReader> const module("poisson_image", poisson_image, "images in .vti and TIFF files");
  return module.functions();
}

enum class Format { vti, nrrd, meta, tiff, raw };

std::string ending_of(std::string const& file) {
  return lower(fs::path(file).extension().string());
}

std::optional<Format> format_of(std::string const& ending) {
  if (ending == ".vti")
    return Format::vti;
  if (ending == ".nrrd" || ending == ".nhdr")
    return Format::nrrd;
  if (ending == ".mha" || ending == ".mhd")
    return Format::meta;
  if (ending == ".tif" || ending == ".tiff")
    return Format::tiff;
  return ending == ".raw" ? std::optional(Format::raw) : std::nullopt;
}

/// a9 comes before a10: digits count as numbers.
bool is_before(std::string const& a, std::string const& b) {
  auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (is_digit(a[i]) && is_digit(b[k])) {
      auto const number = [&](std::string const& text, std::size_t& at) {
        std::size_t const begin = at;
        while (at < text.size() && is_digit(text[at]))
          ++at;
        std::string digits = text.substr(begin, at - begin);
        digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
        return digits;
      };
      std::string const x = number(a, i), y = number(b, k);
      if (x != y)
        return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else if (a[i] != b[k]) {
      return a[i] < b[k];
    } else {
      ++i;
      ++k;
    }
  }
  return a.size() - i != b.size() - k ? a.size() - i < b.size() - k : a < b;
}

bool is_pattern(std::string const& file) {
  return fs::path(file).filename().string().find_first_of("*?") != std::string::npos;
}

/// The files that a pattern or a folder stands for, by name; digits count as numbers.
std::vector<std::string> slices_in(fs::path const& folder, std::function<bool(std::string const&)> const& is_slice) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (std::string const name = entry->path().filename().string(); is_slice(name))
      found.push_back((folder / name).string());
  if (error)
    refuse_image(folder.string(), "cannot be listed: " + error.message());
  std::sort(found.begin(), found.end(), is_before);
  return found;
}

bool is_tiff(std::string const& name) {
  return format_of(ending_of(name)) == Format::tiff;
}

/// The files that hold headers, or all of them.
std::vector<std::string> listed_files(ImageSpec const& spec) {
  std::vector<std::string> files = spec.files;
  if (files.size() == 1) {
    fs::path const path = files[0];
    std::error_code ignored;
    if (is_pattern(files[0])) {
      std::string const pattern = path.filename().string();
      files = slices_in(path.has_parent_path() ? path.parent_path() : fs::path("."),
                        [&](std::string const& name) { return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0; });
      if (files.empty())
        refuse_image(path.string(), "no file has a name of this pattern");
    } else if (fs::is_directory(path, ignored)) {
      files = slices_in(path, is_tiff);
      if (files.empty())
        refuse_image(path.string(), "there are no .tif files in this folder");
    }
  }
  for (std::string const& file : files) {
    std::error_code error;
    if (!fs::is_regular_file(file, error))
      refuse_image(file, fs::exists(file, error) ? "is no file" : "there is no such file");
    std::optional<Format> const format = format_of(ending_of(file));
    if (!format)
      refuse_image(file, "its ending is none of an image's; .vti, .nrrd, .nhdr, .mha, .mhd, .tif, .tiff and .raw are read");
    if (files.size() > 1 && *format != Format::tiff)
      refuse_image(file, "only TIFF images may be in several files, a list of slices");
  }
  return files;
}

std::int64_t size_of_file(std::string const& file) {
  std::error_code error;
  auto const size = fs::file_size(file, error);
  if (error)
    refuse_image(file, "cannot be read: " + error.message());
  return static_cast<std::int64_t>(size);
}

/// Calls read(answer) in a process of its own, where answer(data, n) sends bytes; and take(receive) here, where receive(data, n)
/// returns false when they end too early. What `read` refuses is thrown here.
void in_other_process(std::string const& file, std::int64_t file_bytes,
                      std::function<void(std::function<void(void const*, std::size_t)> const&)> const& read,
                      std::function<bool(std::function<bool(void*, std::size_t)> const&)> const& take) {
  struct Head {
    std::size_t key = 0, text = 0;  ///< lengths of what is refused; 0: it is read
  };
  ReaderProcess process(file_bytes, reader_limits(file_bytes), [&](int descriptor) {
    Head head;
    try {
      bool begun = false;
      read([&](void const* data, std::size_t n) {
        if (!std::exchange(begun, true))
          write_answer(descriptor, &head, sizeof head);
        write_answer(descriptor, data, n);
      });
    } catch (InputError const& error) {
      std::string const text = error.what();
      head = {error.key().size(), text.size()};
      write_answer(descriptor, &head, sizeof head);
      write_answer(descriptor, error.key().data(), head.key);
      write_answer(descriptor, text.data(), head.text);
    }
  });
  Head head;
  bool complete = process.read(&head, sizeof head);
  std::string key, text;
  if (complete && head.text > 0) {
    key.resize(head.key);
    text.resize(head.text);
    complete = process.read(key.data(), key.size()) && process.read(text.data(), text.size());
  } else if (complete) {
    complete = take([&](void* data, std::size_t n) { return process.read(data, n); });
  }
  if (std::string const complaint = process.complaint(); !complaint.empty())
    refuse_image(file, complaint);
  if (!complete)
    refuse_image(file, "VTK ended while it read the file; it is damaged");
  if (!text.empty())
    throw InputError(key, text);
}

/// What `read` makes by VTK of a file, which is named in what it refuses.
template <class Read>
auto by_vtk(std::string const& file, Read const& read) {
  try {
    return read(library());
  } catch (InputError const& error) {
    refuse_image(file, error.what(), error.key());
  }
}

/// What of a header goes through a pipe.
struct PlainHeader {
  Counts3 cells{};
  VoxelType type{};
  std::array<double, 3> spacing{}, low{};
};

/// The header of a .vti file, and its voxels, unless `bytes` is null.
ImageHeader read_vti(std::string const& file, std::string const& array, HostVector<std::byte>* bytes) {
  static_cast<void>(library());  // loaded here, not in the other process
  ImageHeader header;
  in_other_process(
      file, size_of_file(file),
      [&](auto const& answer) {
        VtkImage const image = by_vtk(file, [&](VtkImageReader const& vtk) { return vtk.read_vti(file, array, bytes != nullptr); });
        PlainHeader const plain{image.cells, image.type, image.spacing, image.low};
        answer(&plain, sizeof plain);
        answer(image.bytes.data(), image.bytes.size());
      },
      [&](auto const& receive) {
        PlainHeader plain;
        if (!receive(&plain, sizeof plain))
          return false;
        header.cells = plain.cells;
        header.type = plain.type;
        header.spacing = plain.spacing;
        header.low = plain.low;
        header.data_files = {file};
        if (bytes == nullptr)
          return true;
        bytes->resize(static_cast<std::size_t>(bytes_of(header, file)));
        return receive(bytes->data(), bytes->size());
      });
  return header;
}

HostVector<std::byte> read_tiffs(ImageHeader const& header) {
  static_cast<void>(library());
  HostVector<std::byte> bytes(static_cast<std::size_t>(bytes_of(header, header.data_files[0])));
  ImageHeader of_file = header;
  if (header.data_files.size() > 1)
    of_file.cells[2] = 1;
  std::size_t const of_part = bytes.size() / header.data_files.size();
  std::int64_t file_bytes = 0;
  for (std::string const& file : header.data_files)
    file_bytes = std::max(file_bytes, size_of_file(file));
  in_other_process(
      header.data_files.size() > 1 ? fs::path(header.data_files[0]).parent_path().string() : header.data_files[0],
      std::max(file_bytes, static_cast<std::int64_t>(bytes.size())),
      [&](auto const& answer) {
        for (std::string const& file : header.data_files) {
          std::vector<std::byte> const part = by_vtk(file, [&](VtkImageReader const& vtk) {
            return vtk.read_tiff(file, of_file.cells, of_file.type, static_cast<std::int64_t>(of_part));
          });
          answer(part.data(), part.size());
        }
      },
      [&](auto const& receive) {
        for (std::size_t at = 0; at < bytes.size(); at += of_part)
          if (!receive(bytes.data() + at, of_part))
            return false;
        return true;
      });
  return bytes;
}

/// All bytes that zlib makes of the rest of a stream, which must be as many as `out` has.
void inflate_all(std::istream& stream, std::string const& file, HostVector<std::byte>& out) {
  z_stream zlib{};
  if (inflateInit2(&zlib, 15 + 32) != Z_OK)  // zlib's or gzip's header
    throw EnvironmentError("zlib cannot begin to read " + file);
  struct End {
    z_stream& of;
    ~End() { inflateEnd(&of); }
  } const end{zlib};
  constexpr std::size_t block = 1 << 20;
  std::vector<char> in(block);
  std::size_t done = 0;
  std::byte beyond{};
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (zlib.avail_in == 0) {
      stream.read(in.data(), block);
      zlib.next_in = reinterpret_cast<Bytef*>(in.data());
      zlib.avail_in = static_cast<uInt>(stream.gcount());
      if (zlib.avail_in == 0)
        refuse_image(file, "its compressed data end too early");
    }
    bool const full = done == out.size();  // one more byte shows that there are too many
    std::size_t const room = full ? 1 : std::min(out.size() - done, std::size_t{1} << 30);
    zlib.next_out = reinterpret_cast<Bytef*>(full ? &beyond : out.data() + done);
    zlib.avail_out = static_cast<uInt>(room);
    status = inflate(&zlib, Z_NO_FLUSH);
    std::size_t const written = room - zlib.avail_out;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      refuse_image(file,
                   std::string("its compressed data are damaged") + (zlib.msg != nullptr ? std::string(": ") + zlib.msg : ""));
    if (full && written > 0)
      refuse_image(file,
                   "its compressed data hold more than the " + std::to_string(out.size()) + " bytes that its header promises");
    done += full ? 0 : written;
  }
  if (done != out.size())
    refuse_image(file, "its compressed data hold " + std::to_string(done) + " bytes, and its header promises " +
                           std::to_string(out.size()));
}

/// Plain or compressed numbers, in the order of bytes of this machine.
HostVector<std::byte> read_plain(ImageHeader const& header, std::string const& of) {
  std::int64_t const n = bytes_of(header, of), of_file = n / std::ssize(header.data_files);
  for (std::string const& file : header.data_files) {
    std::error_code error;
    if (!fs::is_regular_file(file, error))
      refuse_image(of, "there is no file " + file + ", in which its voxels should be");
    std::int64_t const size = size_of_file(file), rest = size - std::max<std::int64_t>(header.offset, 0);
    if (header.compressed) {
      constexpr std::int64_t best = 1032;  // of zlib, with room for its own header
      if (n > std::max<std::int64_t>(rest, 0) * best + 1024)
        refuse_image(file, "its header promises " + std::to_string(n) + " bytes, more than can be compressed in " +
                               std::to_string(std::max<std::int64_t>(rest, 0)));
    } else if (header.offset < 0 ? rest < of_file : rest != of_file) {
      std::string const what = std::to_string(header.cells[0]) + " x " + std::to_string(header.cells[1]) + " x " +
                               std::to_string(header.data_files.size() > 1 ? 1 : header.cells[2]) + " voxels of " +
                               std::string(name_of(header.type)) + " are " + std::to_string(of_file) + " bytes";
      refuse_image(file, what + (header.offset > 0 ? ", after a header of " + std::to_string(header.offset) : "") +
                             ", and the file has " + std::to_string(size));
    }
  }
  HostVector<std::byte> bytes(static_cast<std::size_t>(n));
  std::size_t at = 0;
  for (std::string const& file : header.data_files) {
    auto const open = [&](std::int64_t skipped) {
      std::ifstream stream = open_regular_file(file, std::ios::binary);
      if (!stream)
        refuse_image(file, "cannot be opened");
      if (header.offset < 0)
        stream.seekg(skipped - of_file, std::ios::end);
      else
        stream.seekg(header.offset + skipped);
      return stream;
    };
    if (header.compressed) {
      std::ifstream stream = open(0);
      inflate_all(stream, file, bytes);
      continue;
    }
    constexpr std::int64_t piece = 1 << 22;  // threads copy pieces side by side, and touch new pages first
    parallel_for(n_parts(of_file, piece), [&](std::int64_t i) {
      Part const of_piece = part(of_file, piece, i);
      std::int64_t const size = of_piece.end - of_piece.begin;
      std::ifstream stream = open(of_piece.begin);
      stream.read(reinterpret_cast<char*>(bytes.data() + at + of_piece.begin), size);
      if (stream.gcount() != size)
        refuse_image(file, "cannot be read to its end");
    });
    at += static_cast<std::size_t>(of_file);
  }
  static_assert(std::endian::native == std::endian::little);
  if (header.big_endian) {
    auto const size = static_cast<std::size_t>(size_of(header.type));
    for (std::size_t i = 0; size > 1 && i < bytes.size(); i += size)
      std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
  }
  return bytes;
}

ImageHeader header_of_raw(ImageSpec const& spec, std::string const& file) {
  if (spec.cells == Counts3{})
    throw InputError("problem.mesh.image",
                     file + ": a raw file does not tell its size; give problem.mesh.cells, the voxels in x, y, z");
  if (!spec.type)
    throw InputError("problem.mesh.image", file + ": a raw file does not tell its type; give problem.mesh.type, such as uint8");
  ImageHeader header;
  header.cells = spec.cells;
  header.type = *spec.type;
  header.big_endian = spec.big_endian;
  header.data_files = {file};
  return header;
}

/// The header of all files together.
ImageHeader header_of(ImageSpec const& spec, std::string const& array, std::vector<std::string> const& files) {
  ImageHeader header;
  switch (*format_of(ending_of(files[0]))) {
  case Format::vti:
    return read_vti(files[0], array, nullptr);
  case Format::nrrd:
    return read_nrrd_header(files[0]);
  case Format::meta:
    return read_meta_header(files[0]);
  case Format::raw:
    return header_of_raw(spec, files[0]);
  case Format::tiff:
    break;
  }
  header = read_tiff_header(files[0]);
  if (files.size() == 1)
    return header;
  for (std::string const& file : files) {
    ImageHeader const other = read_tiff_header(file);
    if (other.cells[2] != 1)
      refuse_image(file, "it has " + std::to_string(other.cells[2]) + " pages; of several files each is one slice");
    if (other.cells != header.cells || other.type != header.type)
      refuse_image(file, "it has another size or type than " + files[0]);
  }
  header.cells[2] = std::ssize(files);
  header.data_files = files;
  return header;
}

struct Geometry {
  std::array<double, 3> spacing{}, low{};
};

Geometry geometry_of(ImageSpec const& spec, ImageHeader const& header, std::string const& file, Format format) {
  Geometry geometry;
  bool const given = spec.spacing[0] > 0;
  if (!given && (format == Format::raw || format == Format::tiff))
    throw InputError("problem.mesh.image", file + ": the file does not tell how large a voxel is" +
                                               (format == Format::tiff ? " (resolution tags are those of printers)" : "") +
                                               "; give problem.mesh.spacing, its edges in x, y, z");
  geometry.spacing = given ? spec.spacing : header.spacing.value_or(std::array<double, 3>{1, 1, 1});
  for (std::size_t d = 0; d < 3; ++d)
    geometry.low[d] = header.low ? (*header.low)[d] : header.first_centre ? (*header.first_centre)[d] - geometry.spacing[d] / 2 : 0;
  for (double const x : geometry.low)
    if (!std::isfinite(x))
      refuse_image(file, "its place is not finite");
  return geometry;
}

ImageBox box_of(ImageSpec const& spec, ImageHeader const& header, Geometry const& geometry) {
  check_crop(header.cells, spec.crop);
  ImageBox box;
  Counts3 first{}, n = header.cells;
  for (std::size_t d = 0; d < 3; ++d)
    if (spec.crop[d]) {
      first[d] = spec.crop[d]->begin;
      n[d] = spec.crop[d]->end - spec.crop[d]->begin;
    }
  check_blocks(n, spec.coarsen);
  for (std::size_t d = 0; d < 3; ++d) {
    box.cells[d] = n[d] / spec.coarsen[d];
    box.origin[d] = geometry.low[d] + static_cast<double>(first[d]) * geometry.spacing[d];
    box.extent[d] = static_cast<double>(n[d]) * geometry.spacing[d];
  }
  return box;
}

/// All that an image follows from; with times and sizes of its files.
std::string text_of(ImageSpec const& spec, std::string const& array, std::vector<std::string> const& files, bool box_only) {
  std::ostringstream text;
  text.precision(17);
  for (std::string const& file : files) {
    std::error_code error;
    text << file << '\n'
         << fs::file_size(file, error) << ' ' << fs::last_write_time(file, error).time_since_epoch().count() << '\n';
  }
  text << array << '\n' << (spec.type ? static_cast<int>(*spec.type) : -1) << spec.big_endian;
  for (std::size_t d = 0; d < 3; ++d) {
    text << ' ' << spec.cells[d] << ' ' << spec.spacing[d] << ' ' << spec.coarsen[d];
    if (spec.crop[d])
      text << ' ' << spec.crop[d]->begin << ' ' << spec.crop[d]->end;
  }
  if (box_only)
    return text.str();
  for (std::size_t d = 0; d < 3; ++d)
    text << ' ' << spec.flip[d];
  for (double const level : spec.threshold)
    text << ' ' << level;
  for (auto const& [label, name] : spec.names)
    text << '\n' << label << ' ' << name;
  return text.str();
}

LabelImage read_labels(ImageSpec const& spec, std::string const& array, std::vector<std::string> const& files) {
  Format const format = *format_of(ending_of(files[0]));
  Voxels image;
  ImageHeader header;
  if (format == Format::vti) {
    header = read_vti(files[0], array, &image.bytes);
  } else {
    header = header_of(spec, array, files);
    image.bytes = format == Format::tiff ? read_tiffs(header) : read_plain(header, files[0]);
  }
  image.cells = header.cells;
  image.type = header.type;
  image = cropped(std::move(image), spec.crop);
  flip(image, spec.flip);
  LabelImage labels = labelled(image, spec.threshold);
  image = {};
  if (spec.coarsen != Counts3{1, 1, 1})
    labels = coarsened(labels, spec.coarsen);
  labels.names = spec.names;
  return labels;
}

}  // namespace

bool ImageSpec::is_raw() const {
  return files.size() == 1 && ending_of(files[0]) == ".raw";
}

bool needs_vtk(ImageSpec const& spec) {
  if (!spec.is_given())
    return false;
  auto const format = format_of(ending_of(spec.files[0]));
  return format != Format::raw && format != Format::nrrd && format != Format::meta;  // a folder has slices of TIFF
}

void prepare_for(ImageSpec const& spec) {
  if (needs_vtk(spec))
    static_cast<void>(library());
}

ImageBox box_of_image(ImageSpec const& spec, std::string const& array) {
  static std::mutex mutex;
  static std::map<std::string, ImageBox> known;
  std::vector<std::string> const files = listed_files(spec);
  std::string const key = text_of(spec, array, files, true);
  {
    std::scoped_lock const lock(mutex);
    if (auto const found = known.find(key); found != known.end())
      return found->second;
  }
  ImageHeader const header = header_of(spec, array, files);
  ImageBox const box = box_of(spec, header, geometry_of(spec, header, files[0], *format_of(ending_of(files[0]))));
  std::scoped_lock const lock(mutex);
  return known[key] = box;
}

std::shared_ptr<LabelImage const> labels_of_image(ImageSpec const& spec, std::string const& array) {
  static std::mutex mutex;
  static std::string key_of_last;
  static std::shared_ptr<LabelImage const> last;
  std::scoped_lock const lock(mutex);
  std::vector<std::string> const files = listed_files(spec);
  std::string key = text_of(spec, array, files, false);
  if (last != nullptr && key == key_of_last)
    return last;
  last.reset();
  last = std::make_shared<LabelImage const>(read_labels(spec, array, files));
  key_of_last = std::move(key);
  return last;
}

std::vector<std::string> files_of_image(ImageSpec const& spec) {
  std::vector<std::string> files = listed_files(spec);
  auto const format = format_of(ending_of(files[0]));
  if (format == Format::nrrd || format == Format::meta) {
    ImageHeader const header = format == Format::nrrd ? read_nrrd_header(files[0]) : read_meta_header(files[0]);
    for (std::string const& data : header.data_files)
      if (data != files[0])
        files.push_back(data);
  }
  return files;
}

}  // namespace poisson::assembly
