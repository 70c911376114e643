#include "assembly/dealii/raw.hpp"
#include "assembly/text.hpp"

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

/// The array with the materials of cells and the ids of faces; null: none.
vtkDataArray* find_ids(vtkUnstructuredGrid& grid) {
  for (char const* name : {"MATERIALID", "MATERIAL", "MATERIAL_ID", "CELLENTITYIDS", "ATTRIBUTE", "BOUNDARY"})
    for (int i = 0; i < grid.GetCellData()->GetNumberOfArrays(); ++i)
      if (vtkDataArray* const array = grid.GetCellData()->GetArray(i);
          array != nullptr && array->GetName() != nullptr && upper(array->GetName()) == name)
        return array;
  return nullptr;
}

class VtkCells {
public:
  VtkCells(MeshText& text, vtkUnstructuredGrid& grid) : text_(text), grid_(grid), ids_(find_ids(grid)), builder_(text) {
    if (ids_ != nullptr && (ids_->GetNumberOfComponents() != 1 || ids_->GetNumberOfTuples() != grid.GetNumberOfCells()))
      text.fail(std::string("the cell data ") + in_quotes(ids_->GetName()) + " must have one number for every cell");
  }

  RawMesh read() {
    for (vtkIdType i = 0; i < grid_.GetNumberOfPoints(); ++i) {
      std::array<double, 3> x{};
      grid_.GetPoints()->GetPoint(i, x.data());
      for (double const value : x)
        text_.finite(value, "a coordinate");
      builder_.add_vertex(i, x[0], x[1], x[2]);
    }
    for (vtkIdType cell = 0; cell < grid_.GetNumberOfCells(); ++cell)
      add(cell);
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
    std::int64_t const id = id_of(cell);
    if (is_quad(type)) {
      require(cell, n >= 4);
      if (type == VTK_PIXEL)
        std::swap(numbers_[2], numbers_[3]);
      if (id != -1)  // -1: a face that deal.II wrote for its manifold only
        builder_.add_quad({numbers_[0], numbers_[1], numbers_[2], numbers_[3]}, id);
      return;
    }
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

  [[nodiscard]] std::int64_t id_of(vtkIdType cell) const {
    if (ids_ == nullptr)
      return 0;
    double const value = ids_->GetComponent(cell, 0);
    if (!(value == std::floor(value)) || std::abs(value) > 5e9)
      text_.fail(std::string("the cell data ") + in_quotes(ids_->GetName()) + " must be whole numbers");
    return static_cast<std::int64_t>(value);
  }

  MeshText& text_;
  vtkUnstructuredGrid& grid_;
  vtkDataArray* ids_;
  RawMeshBuilder builder_;
  vtkNew<vtkIdList> points_;
  std::vector<std::int64_t> numbers_;
  HexahedronNodes hexahedron_;
};

RawMesh read_grid(MeshText& text, vtkAlgorithm& reader) {
  reader.Update();
  auto* const grid = vtkUnstructuredGrid::SafeDownCast(reader.GetOutputDataObject(0));
  if (reader.GetErrorCode() != vtkErrorCode::NoError || grid == nullptr || grid->GetPoints() == nullptr)
    text.fail("VTK cannot read it as an unstructured grid");
  return VtkCells(text, *grid).read();
}

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

/// Fails where binary data of an XML file begin with a length that the file does not have: VTK would take memory for it, and a long
/// time.
void require_lengths(MeshText& text) {
  std::string_view const content = text.content();
  std::size_t const head = content.find("<VTKFile");
  if (head == std::string_view::npos)
    return;
  std::string_view const file = content.substr(head, content.find('>', head) - head);
  std::size_t const word = attribute(file, "header_type") == "UInt64" ? 8 : 4;
  bool const big_endian = attribute(file, "byte_order") == "BigEndian";
  auto const require = [&](std::string_view data, bool raw) {
    std::string const bytes = raw ? std::string(data.substr(0, word)) : from_base64(data, word);
    if (bytes.size() < word)
      return;
    std::uint64_t length = 0;  // in bytes or in compressed blocks
    for (std::size_t i = 0; i < word; ++i)
      length = length << 8 | static_cast<unsigned char>(bytes[big_endian ? i : word - 1 - i]);
    if (length > content.size())
      text.fail("binary data begin with the length " + std::to_string(length) + ", and the whole file has " +
                std::to_string(content.size()) + " bytes");
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
        require(content.substr(begin), false);
    } else if (format == "appended" && data != std::string_view::npos) {
      std::string_view const digits = attribute(tag, "offset");
      std::size_t offset = 0;
      if (std::from_chars(digits.data(), digits.data() + digits.size(), offset).ec == std::errc() &&
          offset < content.size() - data - 1)
        require(content.substr(data + 1 + offset), raw);
    }
  }
}

}  // namespace

RawMesh read_vtk(MeshText& text) {
  vtkObject::GlobalWarningDisplayOff();  // what is wrong shows in the error code
  if (!text.content().starts_with("# vtk DataFile Version"))
    text.fail("this is not a legacy VTK file: its first line is not '# vtk DataFile Version ...'");
  vtkNew<vtkUnstructuredGridReader> reader;
  if (text.content().size() > 2147483647) {
    reader->SetFileName(text.path().c_str());  // VTK counts the characters of a string by an int
  } else {
    reader->ReadFromInputStringOn();
    reader->SetBinaryInputString(text.content().data(), static_cast<int>(text.content().size()));
  }
  reader->ReadAllScalarsOn();
  reader->ReadAllFieldsOn();
  return read_grid(text, *reader);
}

RawMesh read_vtu(MeshText& text) {
  vtkObject::GlobalWarningDisplayOff();
  require_lengths(text);
  vtkNew<vtkXMLUnstructuredGridReader> reader;
  reader->ReadFromInputStringOn();
  reader->SetInputString(std::string(text.content()));
  return read_grid(text, *reader);
}

RawMesh read_vtkhdf(MeshText& text) {
  vtkObject::GlobalWarningDisplayOff();
  vtkNew<vtkHDFReader> reader;
  reader->SetFileName(text.path().c_str());
  return read_grid(text, *reader);
}

}  // namespace poisson::assembly
