#include "assembly/dealii/raw.hpp"
#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/text.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/vtk_readers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace poisson::assembly {
namespace {

std::string vtk_type_name(VtkCell type) {
  switch (type) {
  case VtkCell::triangle:
    return "5 (triangle)";
  case VtkCell::tetrahedron:
    return "10 (tetrahedron)";
  case VtkCell::wedge:
    return "13 (wedge)";
  case VtkCell::pyramid:
    return "14 (pyramid)";
  case VtkCell::quadratic_tetrahedron:
    return "24 (quadratic tetrahedron)";
  case VtkCell::lagrange_tetrahedron:
    return "71 (Lagrange tetrahedron)";
  case VtkCell::lagrange_wedge:
    return "73 (Lagrange wedge)";
  default:
    return std::to_string(static_cast<int>(type)) + " (see VTK's list of cell types)";
  }
}

/// Nodes of a quadrilateral whose corners come first, or of none: 0.
bool is_quad(VtkCell type) {
  return type == VtkCell::quad || type == VtkCell::pixel || type == VtkCell::quadratic_quad || type == VtkCell::biquadratic_quad ||
         type == VtkCell::lagrange_quadrilateral;
}
bool is_hexahedron(VtkCell type) {
  return type == VtkCell::hexahedron || type == VtkCell::voxel || type == VtkCell::quadratic_hexahedron ||
         type == VtkCell::triquadratic_hexahedron || type == VtkCell::lagrange_hexahedron;
}
bool is_line_or_point(VtkCell type) {
  return (type >= VtkCell::empty && type <= VtkCell::poly_line) || type == VtkCell::quadratic_edge || type == VtkCell::cubic_line ||
         type == VtkCell::lagrange_curve;
}
bool is_surface(VtkCell type) {
  return (type >= VtkCell::triangle && type <= VtkCell::quad) || type == VtkCell::quadratic_triangle ||
         type == VtkCell::quadratic_polygon || type == VtkCell::biquadratic_triangle || type == VtkCell::lagrange_triangle;
}

/// A name of an array without what differs between programs: case, the characters between words, and a plural.
std::string bare(std::string const& name) {
  std::string result = upper(name);
  std::erase_if(result, [](char c) { return c == '_' || c == '-' || c == ' ' || c == ':' || c == '.'; });
  if (result.ends_with('S'))
    result.pop_back();
  return result;
}

/// Marks cells that another piece of the mesh has, too.
constexpr std::string_view ghost_cells = "vtkGhostType";

using CellArray = VtkGrid::CellArray;

/// Cell data with one number for every cell.
class CellArrays {
public:
  explicit CellArrays(VtkGrid const& grid) {
    for (CellArray const& array : grid.arrays)
      if (array.name != ghost_cells) {
        names_ += (names_.empty() ? "" : ", ") + array.name;
        arrays_.push_back(&array);
      }
  }

  /// All names, for messages.
  [[nodiscard]] std::string const& names() const { return names_; }

  /// The one that a key names.
  [[nodiscard]] CellArray const* named(std::string const& name, char const* key, MeshText const& text) const {
    for (CellArray const* const array : arrays_)
      if (array->name == name)
        return array;
    throw InputError(key, "mesh file '" + text.path() + "' has no cell data " + in_quotes(name) +
                              (names_.empty() ? "; it has none" : "; it has: " + names_));
  }

  /// Returns the arrays to which programs give one of these names, the most likely first.
  template <std::size_t N>
  [[nodiscard]] std::vector<CellArray const*> known(std::array<char const*, N> const& usual) const {
    std::vector<CellArray const*> found;
    for (char const* const name : usual)
      for (CellArray const* const array : arrays_)
        if (bare(array->name) == name)
          found.push_back(array);
    return found;
  }

private:
  std::vector<CellArray const*> arrays_;
  std::string names_;
};

// Names are spelled as `bare` gives them. They are those of deal.II, OpenGeoSys, meshio and Gmsh, VTK's readers (Exodus, LS-DYNA),
// MFEM and FEniCS.
constexpr std::array<char const*, 28> usual_materials{
    "MATERIALID",  "MATERIAL",       "MATID",   "MAT",         "CELLENTITYID", "GMSHPHYSICAL",    "PHYSICALID",
    "PHYSICALTAG", "ELEMENTBLOCKID", "BLOCKID", "OBJECTID",    "MEDITREF",     "TETGENREF",       "UGRIDREF",
    "NASTRANREF",  "AVSUCDMATERIAL", "SU2TAG",  "FLAC3DGROUP", "REGIONID",     "REGION",          "SUBDOMAINID",
    "CELLTAG",     "CELLMARKER",     "LABEL",   "PARTID",      "ATTRIBUTE",    "GMSHGEOMETRICAL", "BOUNDARY"};
constexpr std::array<char const*, 9> usual_boundaries{"BOUNDARY", "BOUNDARYID",  "BOUNDARYTAG", "BOUNDARYMARKER", "BDRATTRIBUTE",
                                                      "FACETTAG", "FACETMARKER", "FACEID",      "SIDESETID"};

class VtkCells {
public:
  VtkCells(MeshText& text, MeshSpec const& spec, VtkGrid const& grid) : text_(text), grid_(grid), builder_(text) {
    CellArrays const arrays(grid);
    auto const materials = arrays.known(usual_materials), boundaries = arrays.known(usual_boundaries);
    if (!spec.array.empty())
      materials_ = arrays.named(spec.array, "problem.mesh.array", text);
    else if (!materials.empty())
      materials_ = materials.front();
    else if (!arrays.names().empty())
      builder_.mesh().notes.push_back("cell data: " + arrays.names() +
                                      "; none is known to hold materials, and problem.mesh.array can name one");
    if (!spec.boundary_array.empty())
      boundaries_ = arrays.named(spec.boundary_array, "problem.mesh.boundary_array", text);
    else
      boundaries_ = spec.array.empty() && !boundaries.empty() ? boundaries.front() : materials_;
    if (spec.array.empty() && materials.size() > 1 && materials[1] != boundaries_)
      builder_.mesh().notes.push_back("cell data: " + arrays.names() + "; " + in_quotes(materials_->name) +
                                      " is taken for the materials, and problem.mesh.array can name others");
    for (CellArray const* const ids : {materials_, boundaries_})
      if (ids != nullptr && (ids->components != 1 || std::ssize(ids->values) != grid.n_cells()))
        text.fail("the cell data " + in_quotes(ids->name) + " must have one number for every cell");
  }

  RawMesh read() {
    for (std::int64_t i = 0; i < std::ssize(grid_.points) / 3; ++i) {
      double const* const x = grid_.points.data() + 3 * i;
      for (int d = 0; d < 3; ++d)
        text_.finite(x[d], "a coordinate");
      builder_.add_vertex(i, x[0], x[1], x[2]);
    }
    auto const ghosts =
        std::find_if(grid_.arrays.begin(), grid_.arrays.end(), [](CellArray const& array) { return array.name == ghost_cells; });
    if (ghosts != grid_.arrays.end() && std::ssize(ghosts->values) != grid_.n_cells())
      text_.fail("the cell data " + in_quotes(ghosts->name) + " must have one number for every cell");
    std::int64_t passed_over = 0;
    for (std::int64_t cell = 0; cell < grid_.n_cells(); ++cell)
      if (ghosts != grid_.arrays.end() && (static_cast<int>(ghosts->values[static_cast<std::size_t>(cell)]) & 1) != 0)
        ++passed_over;
      else
        add(cell);
    if (passed_over > 0)
      builder_.mesh().notes.push_back(std::to_string(passed_over) +
                                      " cells are copies of others' (vtkGhostType) and were passed over");
    return builder_.finish();
  }

private:
  void add(std::int64_t cell) {
    auto const i = static_cast<std::size_t>(cell);
    auto const type = static_cast<VtkCell>(grid_.types[i]);
    if (is_line_or_point(type))
      return;
    if (!is_hexahedron(type) && !is_quad(type)) {
      builder_.add_unsupported(vtk_type_name(type), is_surface(type) ? 2 : 3);
      return;
    }
    numbers_.assign(grid_.nodes.begin() + grid_.offsets[i], grid_.nodes.begin() + grid_.offsets[i + 1]);
    std::int64_t const n = std::ssize(numbers_);
    if (is_quad(type)) {
      require(cell, n >= 4);
      if (type == VtkCell::pixel)
        std::swap(numbers_[2], numbers_[3]);
      if (std::int64_t const id = id_of(boundaries_, cell); id != -1)  // -1: a face that deal.II wrote for its manifold only
        builder_.add_quad({numbers_[0], numbers_[1], numbers_[2], numbers_[3]}, id);
      return;
    }
    std::int64_t const id = id_of(materials_, cell);
    auto const order = static_cast<int>(std::lround(std::cbrt(static_cast<double>(n)))) - 1;
    bool const corners_and_edges = type == VtkCell::quadratic_hexahedron;
    require(cell, corners_and_edges                          ? n == 20
                  : type == VtkCell::triquadratic_hexahedron ? n == 27
                  : type == VtkCell::lagrange_hexahedron ? order >= 1 && order <= 10 && n == (order + 1) * (order + 1) * (order + 1)
                                                         : n == 8);
    if (type == VtkCell::voxel) {
      std::swap(numbers_[2], numbers_[3]);
      std::swap(numbers_[6], numbers_[7]);
    }
    if (n == 8) {
      std::array<std::int64_t, 8> corners{};
      std::copy(numbers_.begin(), numbers_.end(), corners.begin());
      builder_.add_hexahedron(corners, id);
      return;
    }
    if (hexahedron_.places.size() != numbers_.size())
      hexahedron_ = corners_and_edges ? vtk_hexahedron_20() : vtk_hexahedron(order);
    builder_.add_hexahedron(numbers_, hexahedron_, id);
  }

  void require(std::int64_t cell, bool holds) const {
    if (!holds)
      text_.fail("cell " + std::to_string(cell) + " is of type " +
                 std::to_string(static_cast<int>(grid_.types[static_cast<std::size_t>(cell)])) + " and has " +
                 std::to_string(numbers_.size()) + " nodes, which does not fit");
  }

  [[nodiscard]] std::int64_t id_of(CellArray const* ids, std::int64_t cell) const {
    if (ids == nullptr)
      return 0;
    double const value = ids->values[static_cast<std::size_t>(cell)];
    if (!(value == std::floor(value)) || std::abs(value) > 5e9)
      text_.fail("the cell data " + in_quotes(ids->name) + " must be whole numbers");
    return static_cast<std::int64_t>(value);
  }

  MeshText& text_;
  VtkGrid const& grid_;
  CellArray const *materials_ = nullptr, *boundaries_ = nullptr;  ///< ids of hexahedra, and of quadrilaterals
  RawMeshBuilder builder_;
  std::vector<std::int64_t> numbers_;
  HexahedronNodes hexahedron_;
};

RawMesh read_grid(MeshText& text, MeshSpec const& spec, VtkGridFile format, std::string const& file) {
  VtkGrid const grid = vtk_grids().read(format, file, text.content());
  if (!grid.is_grid)
    text.fail("VTK cannot read it as an unstructured grid" + (grid.errors.empty() ? "" : ": " + grid.errors.front()));
  RawMesh mesh = VtkCells(text, spec, grid).read();
  for (std::string const& warning : grid.warnings)
    mesh.notes.push_back("VTK says: " + warning);
  return mesh;
}

/// Walks through a legacy file, and fails where one of its blocks is shorter than its header says. VTK would leave the rest of
/// the array as memory that nobody wrote.
class LegacyBlocks {
public:
  explicit LegacyBlocks(MeshText& text) : text_(text) {}

  void require_all() {
    std::string_view line;
    text_.next_line(line);
    bool const offsets = line.find(" 5.") != std::string_view::npos;
    text_.next_line(line);  // the title
    std::string const coding = upper(text_.word());
    binary_ = coding == "BINARY";
    if (!binary_ && coding != "ASCII")
      return;  // VTK says what is wrong
    for (std::string word = upper(text_.word()); !word.empty(); word = upper(text_.word()))
      if (!section(word, offsets))
        return;
  }

private:
  /// False where it is not known how long the section is.
  bool section(std::string const& word, bool offsets) {
    auto const skip_word = [&] { static_cast<void>(text_.word()); };
    if (word == "DATASET") {
      skip_word();
      return true;
    }
    if (word == "POINTS") {
      std::int64_t const n = text_.count("a number of points");
      return block(3, n, upper(text_.word()), "points");
    }
    if (word == "CELLS") {
      std::int64_t const n = text_.count("a number of cells"), size = text_.count("a number of nodes");
      if (!offsets)
        return block(1, size, "INT", "the nodes of cells");
      return typed_block("OFFSETS", n) && typed_block("CONNECTIVITY", size);
    }
    if (word == "CELL_TYPES")
      return block(1, text_.count("a number of cells"), "INT", "the types of cells");
    if (word == "CELL_DATA" || word == "POINT_DATA") {
      tuples_ = text_.count("a number of tuples");
      return true;
    }
    if (word == "FIELD") {
      skip_word();
      for (std::int64_t n = text_.count("a number of arrays"); n > 0; --n) {
        std::string name = upper(text_.word());
        while (name == "METADATA") {
          metadata();
          name = upper(text_.word());
        }
        if (name == "NULL_ARRAY")
          continue;
        std::int64_t const components = text_.count("a number of components"), tuples = text_.count("a number of tuples");
        if (!block(components, tuples, upper(text_.word()), "a field"))
          return false;
      }
      return true;
    }
    if (word == "SCALARS") {
      skip_word();
      std::string const type = upper(text_.word());
      std::string_view rest;
      text_.next_line(rest);
      std::int64_t const components = rest.empty() ? 1 : text_.to_integer(rest, "a number of components");
      if (upper(text_.word()) != "LOOKUP_TABLE")
        return false;
      skip_word();
      return block(components, tuples_, type, "scalars");
    }
    if (word == "LOOKUP_TABLE") {
      skip_word();
      return block(4, text_.count("a number of colors"), binary_ ? "UNSIGNED_CHAR" : "FLOAT", "a table of colors");
    }
    if (word == "COLOR_SCALARS") {
      skip_word();
      return block(text_.count("a number of components"), tuples_, binary_ ? "UNSIGNED_CHAR" : "FLOAT", "colors");
    }
    if (word == "TEXTURE_COORDINATES") {
      skip_word();
      std::int64_t const components = text_.count("a number of components");
      return block(components, tuples_, upper(text_.word()), "texture coordinates");
    }
    std::int64_t const components = word == "VECTORS" || word == "NORMALS"                                   ? 3
                                    : word == "TENSORS"                                                      ? 9
                                    : word == "TENSORS6"                                                     ? 6
                                    : word == "GLOBAL_IDS" || word == "PEDIGREE_IDS" || word == "EDGE_FLAGS" ? 1
                                                                                                             : 0;
    if (components > 0) {
      skip_word();
      return block(components, tuples_, upper(text_.word()), "data");
    }
    if (word == "METADATA") {
      metadata();
      return true;
    }
    return false;
  }

  bool typed_block(char const* name, std::int64_t n) {
    return upper(text_.word()) == name && block(1, n, upper(text_.word()), "the nodes of cells");
  }

  /// It ends with an empty line.
  void metadata() {
    std::string_view line;
    text_.next_line(line);
    while (text_.next_line(line) && !line.empty()) {
    }
  }

  bool block(std::int64_t components, std::int64_t tuples, std::string const& type, char const* what) {
    static std::map<std::string, int, std::less<>> const bits{{"BIT", 1},
                                                              {"CHAR", 8},
                                                              {"SIGNED_CHAR", 8},
                                                              {"UNSIGNED_CHAR", 8},
                                                              {"SHORT", 16},
                                                              {"UNSIGNED_SHORT", 16},
                                                              {"INT", 32},
                                                              {"UNSIGNED_INT", 32},
                                                              {"LONG", 64},
                                                              {"UNSIGNED_LONG", 64},
                                                              {"LONG_LONG", 64},
                                                              {"UNSIGNED_LONG_LONG", 64},
                                                              {"FLOAT", 32},
                                                              {"DOUBLE", 64},
                                                              {"VTKIDTYPE", 32},
                                                              {"VTKTYPEINT64", 64},
                                                              {"VTKTYPEUINT64", 64},
                                                              {"VTKTYPEINT32", 32}};
    auto const found = bits.find(type);
    std::int64_t n = 0;
    if (found == bits.end())
      return false;
    if (components < 0 || __builtin_mul_overflow(components, tuples, &n))
      text_.fail(std::string("it announces ") + std::to_string(components) + " times " + std::to_string(tuples) + " numbers for " +
                 what);
    if (!binary_) {
      for (std::int64_t i = 0; i < n; ++i)
        if (text_.word().empty())
          text_.fail("the file ends where " + std::string(what) + " should be: " + std::to_string(i) + " of " + std::to_string(n) +
                     " numbers are there");
      return true;
    }
    std::string_view rest;
    text_.next_line(rest);
    text_.end_of_line();
    static_cast<void>(found->second == 1 ? text_.bytes(n / 8 + (n % 8 != 0), 1, what) : text_.bytes(n, found->second / 8, what));
    return true;
  }

  MeshText& text_;
  bool binary_ = false;
  std::int64_t tuples_ = 0;  ///< of point or cell data
};

/// The value of an XML attribute in a tag; empty: it has none.
std::string_view attribute(std::string_view tag, std::string const& name) {
  std::size_t const at = tag.find(" " + name + "=\"");
  if (at == std::string_view::npos)
    return {};
  std::size_t const begin = at + name.size() + 3;
  return tag.substr(begin, tag.find('"', begin) - begin);
}

/// The first bytes of data in base64; fewer where they end before.
std::string from_base64(std::string_view data, std::size_t n_bytes) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int n_bits = 0;
  for (char const c : data) {
    std::size_t const digit = digits.find(c);
    if (bytes.size() == n_bytes || digit == std::string_view::npos)
      break;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    n_bits += 6;
    if (n_bits >= 8) {
      n_bits -= 8;
      bytes += static_cast<char>(bits >> n_bits & 0xffU);
    }
  }
  return bytes;
}

/// Fails where binary data of an XML file begin with lengths that the file does not have: VTK would take memory for them, and a
/// long time, or leave arrays unfinished.
void require_lengths(MeshText& text) {
  std::string_view const content = text.content();
  std::size_t const head = content.find("<VTKFile");
  if (head == std::string_view::npos)
    return;
  std::string_view const file = content.substr(head, content.find('>', head) - head);
  std::size_t const word = attribute(file, "header_type") == "UInt64" ? 8 : 4;
  bool const big_endian = attribute(file, "byte_order") == "BigEndian";
  bool const compressed = !attribute(file, "compressor").empty();
  auto const require = [&](std::string_view data, bool raw) {
    std::uint64_t const there = raw ? data.size() : data.size() / 4 * 3;  // at most
    auto const number = [&](std::string const& bytes, std::size_t at) {
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < word; ++i)
        value = value << 8 | static_cast<unsigned char>(bytes[at * word + (big_endian ? i : word - 1 - i)]);
      return value;
    };
    auto const head_of = [&](std::uint64_t words) {
      return raw ? std::string(data.substr(0, words * word)) : from_base64(data, words * word);
    };
    auto const require_bytes = [&](std::uint64_t length, char const* what) {
      if (length > there)
        text.fail(std::string("binary data begin with ") + what + " " + std::to_string(length) + ", and " + std::to_string(there) +
                  " bytes follow in the file: it is damaged, or not complete");
    };
    std::string const first = head_of(1);
    if (first.size() < word)
      text.fail("the file ends where binary data should begin");
    std::uint64_t const length = number(first, 0);
    require_bytes(length, "the length");
    if (!compressed)
      return;
    // Number of blocks, their size, the size of the last one, and how many bytes each has in the file.
    std::string const lengths = head_of(3 + length);
    if (lengths.size() < (3 + length) * word && length > 0)
      text.fail("the file ends within the lengths of compressed data");
    std::uint64_t sum = 0;
    for (std::size_t block = 0; block < length; ++block) {
      std::uint64_t const size = number(lengths, 3 + block);
      require_bytes(size, "the length");
      sum += size;
    }
    require_bytes(sum, "lengths that add up to");
  };
  std::size_t const appended = content.find("<AppendedData");
  std::size_t const data = appended == std::string_view::npos ? appended : content.find('_', appended);
  bool const raw = data != std::string_view::npos && attribute(content.substr(appended, data - appended), "encoding") == "raw";
  for (std::size_t at = content.find("<DataArray"); at < appended; at = content.find("<DataArray", at + 1)) {
    std::size_t const end = content.find('>', at);
    if (end == std::string_view::npos)
      return;
    std::string_view const tag = content.substr(at, end - at), format = attribute(tag, "format");
    if (format == "binary") {
      if (std::size_t const begin = content.find_first_not_of(" \t\r\n", end + 1); begin != std::string_view::npos)
        require(content.substr(begin, content.find('<', begin) - begin), false);
    } else if (format == "appended" && data != std::string_view::npos) {
      std::string_view const digits = attribute(tag, "offset");
      std::size_t offset = 0;
      if (std::from_chars(digits.data(), digits.data() + digits.size(), offset).ec == std::errc()) {
        if (offset >= content.size() - data - 1)
          text.fail("the file ends where the data of " + in_quotes(attribute(tag, "Name")) + " should begin");
        require(content.substr(data + 1 + offset), raw);
      }
    }
  }
}

}  // namespace

RawMesh read_vtk(MeshText& text, MeshSpec const& spec) {
  if (!text.content().starts_with("# vtk DataFile Version"))
    text.fail("this is not a legacy VTK file: its first line is not '# vtk DataFile Version ...'");
  LegacyBlocks(text).require_all();
  return read_grid(text, spec, VtkGridFile::legacy, text.path());
}

RawMesh read_vtu(MeshText& text, MeshSpec const& spec) {
  require_lengths(text);
  return read_grid(text, spec, VtkGridFile::xml, text.path());
}

RawMesh read_vtkhdf(MeshText& text, MeshSpec const& spec, std::string const& file) {
  return read_grid(text, spec, VtkGridFile::hdf, file);
}

}  // namespace poisson::assembly
