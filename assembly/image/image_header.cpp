#include "assembly/image/image_header.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/input_file.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace poisson::assembly {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_header = 1 << 20;

std::string_view stripped(std::string_view text) {
  auto const is_blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = stripped(text); !text.empty(); text = stripped(text)) {
    std::size_t n = 0;
    while (n < text.size() && std::isspace(static_cast<unsigned char>(text[n])) == 0)
      ++n;
    words.push_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return words;
}

/// As messages show it.
std::string shown_text(std::string_view text) {
  return "'" + std::string(text.substr(0, 60)) + (text.size() > 60 ? "..." : "") + "'";
}

/// The lines of a text header, each once. begin() is behind the last one that was taken.
class HeaderText {
public:
  explicit HeaderText(std::string const& file) : file_(file), text_(longest_header, '\0') {
    std::ifstream stream = open_regular_file(file, std::ios::binary);
    if (!stream)
      refuse_image(file, "cannot be opened");
    stream.read(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.resize(static_cast<std::size_t>(stream.gcount()));
  }
  /// The next line, without its end; none where the file, or what may be a header, ends.
  [[nodiscard]] std::optional<std::string_view> next() {
    std::size_t const end = text_.find('\n', at_);
    if (end == std::string::npos)
      return std::nullopt;
    std::string_view line = std::string_view(text_).substr(at_, end - at_);
    at_ = end + 1;
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    return line;
  }
  [[nodiscard]] std::string_view rest() const { return std::string_view(text_).substr(at_); }
  [[nodiscard]] std::int64_t position() const { return static_cast<std::int64_t>(at_); }
  [[noreturn]] void refuse(std::string const& what) const { refuse_image(file_, what); }

private:
  std::string const& file_;
  std::string text_;
  std::size_t at_ = 0;
};

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// As many numbers as words; refuses others.
template <class T>
std::vector<T> numbers(HeaderText const& text, std::string_view field, std::string_view value) {
  std::vector<T> result;
  for (std::string_view const word : words_of(value)) {
    auto const one = number<T>(word);
    if (!one)
      text.refuse("its header has " + shown_text(std::string(field) + ": " + std::string(value)) + ", which are no numbers");
    result.push_back(*one);
  }
  return result;
}

template <class T>
std::array<T, 3> three(HeaderText const& text, std::string_view field, std::string_view value) {
  auto const all = numbers<T>(text, field, value);
  if (all.size() != 3)
    text.refuse("its header has " + shown_text(std::string(field) + ": " + std::string(value)) + ", and three numbers are needed");
  return {all[0], all[1], all[2]};
}

std::array<double, 3> positive(HeaderText const& text, std::string_view field, std::array<double, 3> const& spacing) {
  for (double const edge : spacing)
    if (!(edge > 0) || !std::isfinite(edge))
      text.refuse("its header has a voxel with an edge of " + std::to_string(edge) + " (" + std::string(field) +
                  "), and edges must be positive");
  return spacing;
}

std::string beside(std::string const& file, std::string_view name) {
  return (fs::path(file).parent_path() / fs::path(name)).lexically_normal().string();
}

/// "(1,0,0)" as numbers.
std::array<double, 3> vector_of(HeaderText const& text, std::string_view field, std::string_view value) {
  std::string plain(stripped(value));
  if (!plain.starts_with('(') || !plain.ends_with(')'))
    text.refuse("its header has " + shown_text(std::string(field) + ": " + std::string(value)) + ", and (x,y,z) is needed");
  plain = plain.substr(1, plain.size() - 2);
  std::replace(plain.begin(), plain.end(), ',', ' ');
  return three<double>(text, field, plain);
}

constexpr std::pair<std::string_view, VoxelType> nrrd_types[] = {{"uchar", VoxelType::uint8},
                                                                 {"unsigned char", VoxelType::uint8},
                                                                 {"uint8", VoxelType::uint8},
                                                                 {"uint8_t", VoxelType::uint8},
                                                                 {"signed char", VoxelType::int8},
                                                                 {"int8", VoxelType::int8},
                                                                 {"int8_t", VoxelType::int8},
                                                                 {"short", VoxelType::int16},
                                                                 {"short int", VoxelType::int16},
                                                                 {"signed short", VoxelType::int16},
                                                                 {"signed short int", VoxelType::int16},
                                                                 {"int16", VoxelType::int16},
                                                                 {"int16_t", VoxelType::int16},
                                                                 {"ushort", VoxelType::uint16},
                                                                 {"unsigned short", VoxelType::uint16},
                                                                 {"unsigned short int", VoxelType::uint16},
                                                                 {"uint16", VoxelType::uint16},
                                                                 {"uint16_t", VoxelType::uint16},
                                                                 {"int", VoxelType::int32},
                                                                 {"signed int", VoxelType::int32},
                                                                 {"int32", VoxelType::int32},
                                                                 {"int32_t", VoxelType::int32},
                                                                 {"uint", VoxelType::uint32},
                                                                 {"unsigned int", VoxelType::uint32},
                                                                 {"uint32", VoxelType::uint32},
                                                                 {"uint32_t", VoxelType::uint32},
                                                                 {"float", VoxelType::float32},
                                                                 {"double", VoxelType::float64}};

constexpr std::pair<std::string_view, VoxelType> meta_types[] = {
    {"MET_UCHAR", VoxelType::uint8},   {"MET_CHAR", VoxelType::int8},     {"MET_USHORT", VoxelType::uint16},
    {"MET_SHORT", VoxelType::int16},   {"MET_UINT", VoxelType::uint32},   {"MET_INT", VoxelType::int32},
    {"MET_FLOAT", VoxelType::float32}, {"MET_DOUBLE", VoxelType::float64}};

VoxelType type_named(HeaderText const& text, std::span<std::pair<std::string_view, VoxelType> const> known, std::string_view name) {
  auto const found = std::find_if(known.begin(), known.end(), [&](auto const& entry) { return entry.first == name; });
  if (found == known.end())
    text.refuse("its voxels have the type " + shown_text(name) + ", which is not read; 8, 16 and 32 bit, float and double are");
  return found->second;
}

bool is_true(HeaderText const& text, std::string_view field, std::string_view value) {
  std::string const word = lower(value);
  if (word == "true" || word == "1")
    return true;
  if (word != "false" && word != "0")
    text.refuse("its header has " + shown_text(std::string(field) + " = " + std::string(value)) + "; True or False is needed");
  return false;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

void refuse_image(std::string const& file, std::string what, std::string const& key) {
  std::replace_if(
      what.begin(), what.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  throw InputError(key, file + ": " + what);
}

std::int64_t bytes_of(ImageHeader const& header, std::string const& file) {
  std::int64_t bytes = size_of(header.type);
  for (std::int64_t const n : header.cells) {
    if (n < 1)
      refuse_image(file, "an image has one voxel in each direction at least, and this one " + std::to_string(n));
    if (__builtin_mul_overflow(bytes, n, &bytes) || bytes >= std::int64_t{1} << 62)
      refuse_image(file, "its header promises more voxels than any file can have");
  }
  return bytes;
}

ImageHeader read_nrrd_header(std::string const& file) {
  HeaderText text(file);
  if (auto const magic = text.next(); !magic || !magic->starts_with("NRRD000"))
    text.refuse("this is no NRRD file: its first line is not NRRD000...");
  ImageHeader header;
  std::string encoding, data_file;
  bool has_type = false, has_sizes = false, has_endian = false, ended = false;
  std::set<std::string> seen;
  while (auto const line = text.next()) {
    if (line->empty()) {
      ended = true;
      break;
    }
    if (line->front() == '#')
      continue;
    std::size_t const colon = line->find(':');
    if (colon == std::string_view::npos)
      text.refuse("its header has the line " + shown_text(*line) + ", and 'field: value' is needed");
    if (line->substr(colon).starts_with(":="))  // a note of the user's
      continue;
    std::string field = lower(stripped(line->substr(0, colon)));
    std::string_view const value = stripped(line->substr(colon + 1));
    std::erase(field, ' ');
    if (!seen.insert(field).second)
      text.refuse("its header has " + shown_text(field) + " twice");
    if (field == "type") {
      header.type = type_named(text, nrrd_types, lower(value));
      has_type = true;
    } else if (field == "dimension") {
      if (value != "3")
        text.refuse("its dimension is " + shown_text(value) + "; images of three dimensions and one number a voxel are read");
    } else if (field == "sizes") {
      header.cells = three<std::int64_t>(text, "sizes", value);
      has_sizes = true;
    } else if (field == "kinds") {
      for (std::string_view const kind : words_of(value))
        if (std::string const name = lower(kind); name != "domain" && name != "space" && name != "???" && name != "none")
          text.refuse("an axis is of the kind " + shown_text(kind) +
                      "; all three must be domain or space, with one number a voxel");
    } else if (field == "encoding") {
      encoding = lower(value);
      if (encoding != "raw" && encoding != "gzip" && encoding != "gz")
        text.refuse("its encoding is " + shown_text(value) + ", which is not read; raw and gzip are");
      header.compressed = encoding != "raw";
    } else if (field == "endian") {
      has_endian = true;
      header.big_endian = lower(value) == "big";
      if (!header.big_endian && lower(value) != "little")
        text.refuse("its header has " + shown_text("endian: " + std::string(value)) + "; little or big is needed");
    } else if (field == "spacings") {
      if (header.spacing)
        text.refuse("its header has both spacings and space directions");
      std::array<double, 3> spacing = three<double>(text, "spacings", value);
      if (std::none_of(spacing.begin(), spacing.end(), [](double edge) { return std::isnan(edge); }))
        header.spacing = positive(text, "spacings", spacing);
    } else if (field == "spacedirections") {
      if (header.spacing)
        text.refuse("its header has both spacings and space directions");
      std::array<double, 3> spacing{};
      std::string_view rest = value;
      for (std::size_t d = 0; d < 3; ++d) {
        rest = stripped(rest);
        std::size_t const end = rest.find(')');
        if (end == std::string_view::npos)
          text.refuse("its header has " + shown_text("space directions: " + std::string(value)) + ", and three vectors are needed");
        auto const axis = vector_of(text, "space directions", rest.substr(0, end + 1));
        rest.remove_prefix(end + 1);
        for (std::size_t e = 0; e < 3; ++e)
          if (e == d ? !(axis[e] > 0) : axis[e] != 0)
            text.refuse("its axes are turned or mirrored (space directions: " + std::string(value.substr(0, 120)) +
                        "); positive directions along x, y and z in this order are read; resample it");
        spacing[d] = axis[d];
      }
      if (!stripped(rest).empty())
        text.refuse("its header has more than three space directions");
      header.spacing = positive(text, "space directions", spacing);
    } else if (field == "spaceorigin") {
      header.first_centre = vector_of(text, "space origin", value);
    } else if (field == "axismins" || field == "axismaxs") {
      for (std::string_view const word : words_of(value))
        if (lower(word) != "nan")
          text.refuse("its header tells its place by " + shown_text(line->substr(0, colon)) +
                      ", which is not read; `space origin` is, with `space directions`");
    } else if (field == "datafile") {
      if (value.starts_with("LIST") || value.find('%') != std::string_view::npos)
        text.refuse("its data are in several files (" + std::string(value.substr(0, 60)) + "), which is not read");
      data_file = std::string(value);
    } else if (field == "lineskip" || field == "byteskip") {
      if (value != "0")
        text.refuse("its header has " + shown_text(*line) + ", which is not honoured; the voxels must follow at once");
    } else if (field == "spacedimension") {
      if (value != "3")
        text.refuse("its space dimension is " + shown_text(value) + ", and 3 is needed");
    } else if (field != "space" && field != "content" && field != "centers" && field != "centerings" && field != "labels" &&
               field != "units" && field != "spaceunits" && field != "min" && field != "max" && field != "oldmin" &&
               field != "oldmax" && field != "number" && field != "thicknesses" && field != "sampleunits" &&
               field != "measurementframe")
      text.refuse("its header has the field " + shown_text(field) + ", which is not known");
  }
  if (!has_type || !has_sizes || encoding.empty())
    text.refuse("its header has no " + std::string(!has_type ? "type" : !has_sizes ? "sizes" : "encoding"));
  if (size_of(header.type) > 1 && !has_endian)
    text.refuse("its header has no endian, which numbers of several bytes need");
  if (data_file.empty() && !ended)
    text.refuse("its header has no end: an empty line, and then the voxels");
  header.offset = data_file.empty() ? text.position() : 0;
  header.data_files = {data_file.empty() ? file : beside(file, data_file)};
  static_cast<void>(bytes_of(header, file));
  return header;
}

ImageHeader read_meta_header(std::string const& file) {
  HeaderText text(file);
  ImageHeader header;
  bool has_type = false, has_sizes = false;
  std::optional<std::array<double, 3>> size;  // of a voxel, which counts where no spacing is told
  std::int64_t skipped = 0;
  std::set<std::string> seen;
  while (auto const line = text.next()) {
    std::size_t const equals = line->find('=');
    if (equals == std::string_view::npos)
      text.refuse("this is no MetaImage, or its header is damaged: it has the line " + shown_text(*line) +
                  ", and 'Key = value' is needed");
    std::string const field(stripped(line->substr(0, equals)));
    std::string_view const value = stripped(line->substr(equals + 1));
    if (!seen.insert(field).second)
      text.refuse("its header has " + shown_text(field) + " twice");
    if (field == "ObjectType") {
      if (value != "Image")
        text.refuse("it holds an object of the type " + shown_text(value) + ", and an Image is needed");
    } else if (field == "NDims") {
      if (value != "3")
        text.refuse("it has " + std::string(value.substr(0, 20)) + " dimensions (NDims); images of three are read");
    } else if (field == "DimSize") {
      header.cells = three<std::int64_t>(text, field, value);
      has_sizes = true;
    } else if (field == "ElementType") {
      header.type = type_named(text, meta_types, value);
      has_type = true;
    } else if (field == "ElementNumberOfChannels") {
      if (value != "1")
        text.refuse("it has " + std::string(value.substr(0, 20)) + " numbers a voxel (ElementNumberOfChannels), and 1 is read");
    } else if (field == "BinaryData") {
      if (!is_true(text, field, value))
        text.refuse("its data are text (BinaryData = False), which is not read");
    } else if (field == "BinaryDataByteOrderMSB" || field == "ElementByteOrderMSB") {
      header.big_endian = is_true(text, field, value);
    } else if (field == "CompressedData") {
      header.compressed = is_true(text, field, value);
    } else if (field == "TransformMatrix" || field == "Rotation" || field == "Orientation") {
      auto const matrix = numbers<double>(text, field, value);
      if (matrix != std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1})
        text.refuse("its axes are turned or mirrored (" + field + " = " + std::string(value.substr(0, 120)) +
                    "); only the identity is read; resample it");
    } else if (field == "Offset" || field == "Position" || field == "Origin") {
      header.first_centre = three<double>(text, field, value);
    } else if (field == "ElementSpacing") {
      header.spacing = positive(text, field, three<double>(text, field, value));
    } else if (field == "ElementSize") {
      size = positive(text, field, three<double>(text, field, value));
    } else if (field == "HeaderSize") {
      auto const bytes = number<std::int64_t>(value);
      if (!bytes || *bytes < -1)
        text.refuse("its header has " + shown_text(*line) + "; a number of bytes is needed, or -1");
      skipped = *bytes;
    } else if (field == "ElementDataFile") {
      if (!has_type || !has_sizes)
        text.refuse("its header has no " + std::string(has_type ? "DimSize" : "ElementType"));
      if (!header.spacing)
        header.spacing = size;
      if (value == "LOCAL") {
        if (skipped != 0)
          text.refuse("its header has a HeaderSize for data in the same file, which is not honoured");
        header.offset = text.position();
        header.data_files = {file};
      } else if (value.starts_with("LIST")) {
        if (value != "LIST" && value != "LIST 2D" && value != "LIST 2")
          text.refuse("its header has " + shown_text(*line) + "; a LIST of planes is read");
        std::string_view names = text.rest();
        while (!(names = stripped(names)).empty()) {
          std::size_t const end = std::min(names.find('\n'), names.size());
          header.data_files.push_back(beside(file, stripped(names.substr(0, end))));
          names.remove_prefix(end);
        }
        if (std::ssize(header.data_files) != header.cells[2])
          text.refuse("it lists " + std::to_string(header.data_files.size()) + " files, and has " +
                      std::to_string(header.cells[2]) + " planes");
        header.offset = skipped;
      } else if (value.empty() || value.find('%') != std::string_view::npos) {
        text.refuse("its data are in the files " + shown_text(value) + ", which is not read; name one file, or a LIST");
      } else {
        header.offset = skipped;
        header.data_files = {beside(file, value)};
      }
      if (header.compressed && (header.offset < 0 || header.data_files.size() > 1))
        text.refuse("its compressed data have a HeaderSize of -1, or are in several files, which is not read");
      static_cast<void>(bytes_of(header, file));
      return header;
    } else if (field != "CompressedDataSize" && field != "CenterOfRotation" && field != "AnatomicalOrientation" &&
               field != "Comment" && field != "Name" && field != "ObjectSubType" && field != "TransformType" && field != "ID" &&
               field != "ParentID" && field != "Color" && field != "Modality" && field != "ElementMin" && field != "ElementMax" &&
               field != "SequenceID" && field != "DistanceUnits" && field != "AcquisitionDate")
      text.refuse("its header has the key " + shown_text(field) + ", which is not known");
  }
  text.refuse("its header has no ElementDataFile, which ends it");
}

namespace {

/// Numbers of a TIFF file at places in it.
class TiffFile {
public:
  explicit TiffFile(std::string const& file) : file_(file), stream_(open_regular_file(file, std::ios::binary)) {
    if (!stream_)
      refuse_image(file, "cannot be opened");
    std::array<char, 2> order{};
    stream_.read(order.data(), 2);
    big_endian_ = order == std::array{'M', 'M'};
    if (!stream_ || (!big_endian_ && order != std::array{'I', 'I'}))
      refuse_image(file, "this is no TIFF file");
    std::uint64_t const version = at(2, 2);
    if (version != 42 && version != 43)
      refuse_image(file, "this is no TIFF file");
    is_large_ = version == 43;
    if (is_large_ && (at(4, 2) != 8 || at(6, 2) != 0))
      refuse_image(file, "the header of this TIFF file is damaged");
  }
  /// The number of so many bytes at a place.
  [[nodiscard]] std::uint64_t at(std::uint64_t place, int bytes) {
    std::array<unsigned char, 8> read{};
    stream_.seekg(static_cast<std::streamoff>(std::min<std::uint64_t>(place, std::uint64_t{1} << 62)));
    stream_.read(reinterpret_cast<char*>(read.data()), bytes);
    if (!stream_)
      refuse_image(file_, "the file ends where its list of pages goes on");
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= std::uint64_t{read[static_cast<std::size_t>(big_endian_ ? bytes - 1 - i : i)]} << (8 * i);
    return value;
  }
  [[nodiscard]] bool is_large() const { return is_large_; }
  [[noreturn]] void refuse(std::string const& what) const { refuse_image(file_, what); }

private:
  std::string const& file_;
  std::ifstream stream_;
  bool big_endian_ = false, is_large_ = false;
};

}  // namespace

ImageHeader read_tiff_header(std::string const& file) {
  TiffFile tiff(file);
  bool const large = tiff.is_large();
  int const of_offset = large ? 8 : 4, of_count = large ? 8 : 2, of_entry = large ? 20 : 12;
  struct Page {
    std::uint64_t width = 0, height = 0, bits = 1, format = 1, samples = 1, photometric = 1, orientation = 1, kind = 0,
                  compression = 1;
    bool tiled = false;
    bool operator==(Page const&) const = default;
  };
  std::optional<Page> first;
  std::int64_t pages = 0;
  std::set<std::uint64_t> places;
  for (std::uint64_t place = tiff.at(large ? 8 : 4, of_offset); place != 0;) {
    if (!places.insert(place).second)
      tiff.refuse("its list of pages runs in a circle");
    std::uint64_t const entries = tiff.at(place, of_count);
    if (entries > 4096)
      tiff.refuse("a page has " + std::to_string(entries) + " tags; the file is damaged");
    Page page;
    place += static_cast<std::uint64_t>(of_count);
    for (std::uint64_t i = 0; i < entries; ++i, place += static_cast<std::uint64_t>(of_entry)) {
      std::uint64_t const tag = tiff.at(place, 2), type = tiff.at(place + 2, 2);
      auto const value = [&] { return tiff.at(place + (large ? 12 : 8), type == 3 ? 2 : type == 16 && large ? 8 : 4); };
      switch (tag) {
      case 254:
        page.kind = value();
        break;
      case 256:
        page.width = value();
        break;
      case 257:
        page.height = value();
        break;
      case 258:
        page.bits = tiff.at(place + 4, of_offset) == 1 ? value() : 0;
        break;
      case 259:
        page.compression = value();
        break;
      case 262:
        page.photometric = value();
        break;
      case 274:
        page.orientation = value();
        break;
      case 277:
        page.samples = value();
        break;
      case 322:
        page.tiled = true;
        break;
      case 339:
        page.format = tiff.at(place + 4, of_offset) == 1 ? value() : 0;
        break;
      default:
        break;
      }
    }
    place = tiff.at(place, of_offset);
    page.kind &= 1U;  // a small picture of another page; the other bits tell that it is one of many
    if (page.kind != 0)
      tiff.refuse("page " + std::to_string(pages + 1) + " is a small picture of another one (NewSubfileType), which is not read");
    if (!first)
      first = page;
    else if (page != *first)
      tiff.refuse("page " + std::to_string(pages + 1) + " has another size or type than the first one");
    ++pages;
  }
  if (!first)
    tiff.refuse("it has no pages");
  Page const& page = *first;
  if (page.samples != 1 || page.photometric == 3)
    tiff.refuse("its pixels are colours; one grey value or label for each is needed");
  if (page.photometric != 1)
    tiff.refuse("its values are turned round or no grey values (PhotometricInterpretation " + std::to_string(page.photometric) +
                "); black must be 0 (1)");
  if (page.orientation != 1)
    tiff.refuse("its rows have another order (Orientation " + std::to_string(page.orientation) +
                "); 1 is read, whose first row is at y = 0; save it so, and use `flip`");
  if (page.tiled)
    tiff.refuse("its pages are stored in tiles, which is not read; save it in strips");
  if (page.compression != 1 && page.compression != 5 && page.compression != 8 && page.compression != 32946 &&
      page.compression != 32773)
    tiff.refuse("its pages are compressed by the method " + std::to_string(page.compression) +
                ", which is not read; none, LZW, deflate and PackBits are");
  ImageHeader header;
  auto const is = [&](std::uint64_t bits, std::uint64_t format) { return page.bits == bits && page.format == format; };
  if (is(8, 1))
    header.type = VoxelType::uint8;
  else if (is(8, 2))
    header.type = VoxelType::int8;
  else if (is(16, 1))
    header.type = VoxelType::uint16;
  else if (is(16, 2))
    header.type = VoxelType::int16;
  else if (is(32, 1))
    header.type = VoxelType::uint32;
  else if (is(32, 2))
    header.type = VoxelType::int32;
  else if (is(32, 3))
    header.type = VoxelType::float32;
  else
    tiff.refuse("its pixels have " + std::to_string(page.bits) + " bits of the format " + std::to_string(page.format) +
                "; 8, 16 and 32 bit and float are read");
  constexpr std::uint64_t most = 1U << 30;
  header.cells = {static_cast<std::int64_t>(std::min(page.width, most)), static_cast<std::int64_t>(std::min(page.height, most)),
                  pages};
  header.data_files = {file};
  static_cast<void>(bytes_of(header, file));
  return header;
}

}  // namespace poisson::assembly
