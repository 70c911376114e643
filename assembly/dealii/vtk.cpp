#include "assembly/dealii/raw.hpp"
#include "assembly/image/vtk_messages.hpp"
#include "assembly/text.hpp"
#include "gpu/core/error.hpp"

#include <vtkCellData.h>
#include <vtkCellType.h>
#include <vtkDataArray.h>
#include <vtkErrorCode.h>
#include <vtkHDFReader.h>
#include <vtkIdList.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkSmartPointer.h>
#include <vtkUnstructuredGrid.h>
#include <vtkUnstructuredGridReader.h>
#include <vtkXMLUnstructuredGridReader.h>

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

std::string vtk_type_name(int type) {
  switch (type) {
  case VTK_TRIANGLE:
    return "5 (triangle)";
  case VTK_TETRA:
    return "10 (tetrahedron)";
  case VTK_WEDGE:
    return "13 (wedge)";
  case VTK_PYRAMID:
    return "14 (pyramid)";
  case VTK_QUADRATIC_TETRA:
    return "24 (quadratic tetrahedron)";
  case VTK_LAGRANGE_TETRAHEDRON:
    return "71 (Lagrange tetrahedron)";
  case VTK_LAGRANGE_WEDGE:
    return "73 (Lagrange wedge)";
  default:
    return std::to_string(type) + " (see VTK's list of cell types)";
  }
}

/// Nodes of a quadrilateral whose corners come first, or of none: 0.
bool is_quad(int type) {
  return type == VTK_QUAD || type == VTK_PIXEL || type == VTK_QUADRATIC_QUAD || type == VTK_BIQUADRATIC_QUAD ||
         type == VTK_LAGRANGE_QUADRILATERAL;
}
bool is_hexahedron(int type) {
  return type == VTK_HEXAHEDRON || type == VTK_VOXEL || type == VTK_QUADRATIC_HEXAHEDRON || type == VTK_TRIQUADRATIC_HEXAHEDRON ||
         type == VTK_LAGRANGE_HEXAHEDRON;
}
bool is_line_or_point(int type) {
  return (type >= VTK_EMPTY_CELL && type <= VTK_POLY_LINE) || type == VTK_QUADRATIC_EDGE || type == VTK_CUBIC_LINE ||
         type == VTK_LAGRANGE_CURVE;
}
bool is_surface(int type) {
  return (type >= VTK_TRIANGLE && type <= VTK_QUAD) || type == VTK_QUADRATIC_TRIANGLE || type == VTK_QUADRATIC_POLYGON ||
         type == VTK_BIQUADRATIC_TRIANGLE || type == VTK_LAGRANGE_TRIANGLE;
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

/// Cell data with one number for every cell.
class CellArrays {
public:
  explicit CellArrays(vtkUnstructuredGrid& grid) {
    for (int i = 0; i < grid.GetCellData()->GetNumberOfArrays(); ++i)
      if (vtkDataArray* const array = grid.GetCellData()->GetArray(i);
          array != nullptr && array->GetName() != nullptr && array->GetName() != ghost_cells) {
        names_ += (names_.empty() ? "" : ", ") + std::string(array->GetName());
        arrays_.push_back(array);
      }
  }

  /// All names, for messages.
  [[nodiscard]] std::string const& names() const { return names_; }

  /// The one that a key names.
  [[nodiscard]] vtkDataArray* named(std::string const& name, char const* key, MeshText const& text) const {
    for (vtkDataArray* const array : arrays_)
      if (array->GetName() == name)
        return array;
    throw InputError(key, "mesh file '" + text.path() + "' has no cell data " + in_quotes(name) +
                              (names_.empty() ? "; it has none" : "; it has: " + names_));
  }

  /// Returns the arrays to which programs give one of these names, the most likely first.
  template <std::size_t N>
  [[nodiscard]] std::vector<vtkDataArray*> known(std::array<char const*, N> const& usual) const {
    std::vector<vtkDataArray*> found;
    for (char const* const name : usual)
      for (vtkDataArray* const array : arrays_)
        if (bare(array->GetName()) == name)
          found.push_back(array);
    return found;
  }

private:
  std::vector<vtkDataArray*> arrays_;
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
  VtkCells(MeshText& text, MeshSpec const& spec, vtkUnstructuredGrid& grid) : text_(text), grid_(grid), builder_(text) {
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
      builder_.mesh().notes.push_back("cell data: " + arrays.names() + "; " + in_quotes(materials_->GetName()) +
                                      " is taken for the materials, and problem.mesh.array can name others");
    for (vtkDataArray* const ids : {materials_, boundaries_})
      if (ids != nullptr && (ids->GetNumberOfComponents() != 1 || ids->GetNumberOfTuples() != grid.GetNumberOfCells()))
        text.fail(std::string("the cell data ") + in_quotes(ids->GetName()) + " must have one number for every cell");
  }

  RawMesh read() {
    for (vtkIdType i = 0; i < grid_.GetNumberOfPoints(); ++i) {
      std::array<double, 3> x{};
      grid_.GetPoints()->GetPoint(i, x.data());
      for (double const value : x)
        text_.finite(value, "a coordinate");
      builder_.add_vertex(i, x[0], x[1], x[2]);
    }
    vtkDataArray* const ghosts = grid_.GetCellData()->GetArray(ghost_cells.data());
    std::int64_t passed_over = 0;
    for (vtkIdType cell = 0; cell < grid_.GetNumberOfCells(); ++cell)
      if (ghosts != nullptr && (static_cast<int>(ghosts->GetComponent(cell, 0)) & 1) != 0)
        ++passed_over;
      else
        add(cell);
    if (passed_over > 0)
      builder_.mesh().notes.push_back(std::to_string(passed_over) +
                                      " cells are copies of others' (vtkGhostType) and were passed over");
    return builder_.finish();
  }

private:
  void add(vtkIdType cell) {
    int const type = grid_.GetCellType(cell);
    if (is_line_or_point(type))
      return;
    if (!is_hexahedron(type) && !is_quad(type)) {
      builder_.add_unsupported(vtk_type_name(type), is_surface(type) ? 2 : 3);
      return;
    }
    grid_.GetCellPoints(cell, points_);
    vtkIdType const n = points_->GetNumberOfIds();
    numbers_.assign(points_->begin(), points_->end());
    if (is_quad(type)) {
      require(cell, n >= 4);
      if (type == VTK_PIXEL)
        std::swap(numbers_[2], numbers_[3]);
      if (std::int64_t const id = id_of(boundaries_, cell); id != -1)  // -1: a face that deal.II wrote for its manifold only
        builder_.add_quad({numbers_[0], numbers_[1], numbers_[2], numbers_[3]}, id);
      return;
    }
    std::int64_t const id = id_of(materials_, cell);
    auto const order = static_cast<int>(std::lround(std::cbrt(static_cast<double>(n)))) - 1;
    bool const corners_and_edges = type == VTK_QUADRATIC_HEXAHEDRON;
    require(cell, corners_and_edges                     ? n == 20
                  : type == VTK_TRIQUADRATIC_HEXAHEDRON ? n == 27
                  : type == VTK_LAGRANGE_HEXAHEDRON     ? order >= 1 && order <= 10 && n == (order + 1) * (order + 1) * (order + 1)
                                                        : n == 8);
    if (type == VTK_VOXEL) {
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

  void require(vtkIdType cell, bool holds) const {
    if (!holds)
      text_.fail("cell " + std::to_string(cell) + " is of type " + std::to_string(grid_.GetCellType(cell)) + " and has " +
                 std::to_string(numbers_.size()) + " nodes, which does not fit");
  }

  [[nodiscard]] std::int64_t id_of(vtkDataArray* ids, vtkIdType cell) const {
    if (ids == nullptr)
      return 0;
    double const value = ids->GetComponent(cell, 0);
    if (!(value == std::floor(value)) || std::abs(value) > 5e9)
      text_.fail(std::string("the cell data ") + in_quotes(ids->GetName()) + " must be whole numbers");
    return static_cast<std::int64_t>(value);
  }

  MeshText& text_;
  vtkUnstructuredGrid& grid_;
  vtkDataArray *materials_ = nullptr, *boundaries_ = nullptr;  ///< ids of hexahedra, and of quadrilaterals
  RawMeshBuilder builder_;
  vtkNew<vtkIdList> points_;
  std::vector<std::int64_t> numbers_;
  HexahedronNodes hexahedron_;
};

RawMesh read_grid(MeshText& text, MeshSpec const& spec, vtkAlgorithm& reader) {
  VtkMessages const messages;
  reader.Update();
  auto* const grid = vtkUnstructuredGrid::SafeDownCast(reader.GetOutputDataObject(0));
  auto const errors = messages.all(true);
  if (!errors.empty() || reader.GetErrorCode() != vtkErrorCode::NoError || grid == nullptr || grid->GetPoints() == nullptr)
    text.fail("VTK cannot read it as an unstructured grid" + (errors.empty() ? "" : ": " + errors.front()));
  RawMesh mesh = VtkCells(text, spec, *grid).read();
  for (std::string const& warning : messages.all(false))
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
  vtkNew<vtkUnstructuredGridReader> reader;
  if (text.content().size() > 2147483647) {
    reader->SetFileName(text.path().c_str());  // VTK counts the characters of a string by an int
  } else {
    reader->ReadFromInputStringOn();
    reader->SetBinaryInputString(text.content().data(), static_cast<int>(text.content().size()));
  }
  reader->ReadAllScalarsOn();
  reader->ReadAllFieldsOn();
  return read_grid(text, spec, *reader);
}

RawMesh read_vtu(MeshText& text, MeshSpec const& spec) {
  require_lengths(text);
  vtkNew<vtkXMLUnstructuredGridReader> reader;
  reader->ReadFromInputStringOn();
  reader->SetInputString(std::string(text.content()));
  return read_grid(text, spec, *reader);
}

RawMesh read_vtkhdf(MeshText& text, MeshSpec const& spec, std::string const& file) {
  vtkNew<vtkHDFReader> reader;
  reader->SetFileName(file.c_str());
  return read_grid(text, spec, *reader);
}

}  // namespace poisson::assembly
