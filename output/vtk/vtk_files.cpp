#include "output/vtk/vtk_files.hpp"

#include "output/files/atomic_file.hpp"

#include "gpu/core/error.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <locale>
#include <ostream>
#include <stdexcept>
#include <type_traits>
#include <vtkCallbackCommand.h>
#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkCellType.h>
#include <vtkDoubleArray.h>
#include <vtkErrorCode.h>
#include <vtkExecutive.h>
#include <vtkFloatArray.h>
#include <vtkHigherOrderHexahedron.h>
#include <vtkImageData.h>
#include <vtkIntArray.h>
#include <vtkLagrangeHexahedron.h>
#include <vtkNew.h>
#include <vtkOutputStream.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkSmartPointer.h>
#include <vtkTypeInt32Array.h>
#include <vtkTypeInt64Array.h>
#include <vtkUnstructuredGrid.h>
#include <vtkVersion.h>
#include <vtkXMLImageDataWriter.h>
#include <vtkXMLUnstructuredGridWriter.h>

namespace poisson::output {

namespace {

/// VTK's writers, but through our own stream, so that the reason of a failure is known. VTK itself opens the file for nothing
/// but to be content.
class GridWriter : public vtkXMLUnstructuredGridWriter {
public:
  static GridWriter* New();
  vtkTypeMacro(GridWriter, vtkXMLUnstructuredGridWriter)

      std::ostream* stream = nullptr;

protected:
  int StartFile() override {
    this->Stream = stream;
    this->DataStream->SetStream(stream);
    return this->Superclass::StartFile();
  }
};
vtkStandardNewMacro(GridWriter);

class ImageWriter : public vtkXMLImageDataWriter {
public:
  static ImageWriter* New();
  vtkTypeMacro(ImageWriter, vtkXMLImageDataWriter)

      std::ostream* stream = nullptr;

protected:
  int StartFile() override {
    this->Stream = stream;
    this->DataStream->SetStream(stream);
    return this->Superclass::StartFile();
  }
};
vtkStandardNewMacro(ImageWriter);

/// A view where the types agree, else a converted copy. The writer only reads.
template <class Array, class T>
vtkSmartPointer<Array> to_vtk(std::span<T const> values, int components) {
  using Value = typename Array::ValueType;
  auto array = vtkSmartPointer<Array>::New();
  array->SetNumberOfComponents(components);
  auto const n = static_cast<std::int64_t>(values.size());
  if constexpr (std::is_same_v<Value, T>) {
    array->SetArray(const_cast<T*>(values.data()), n, /*save=*/1);
  } else {
    array->SetNumberOfValues(n);
    Value* const out = array->GetPointer(0);
#pragma omp parallel for
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = static_cast<Value>(values[static_cast<std::size_t>(i)]);
  }
  return array;
}

vtkSmartPointer<vtkDataArray> to_vtk(std::span<double const> values, int components, VtkPrecision precision) {
  if (precision == VtkPrecision::single)
    return to_vtk<vtkFloatArray>(values, components);
  return to_vtk<vtkDoubleArray>(values, components);
}

vtkSmartPointer<vtkDataArray> to_vtk(Field const& field, std::int64_t n, VtkPrecision precision) {
  auto const size = field.values.size() + field.integers.size();
  if (field.components < 1 || size != static_cast<std::size_t>(n) * static_cast<std::size_t>(field.components))
    throw std::invalid_argument("field '" + field.name + "' has " + std::to_string(size) + " values instead of " +
                                std::to_string(field.components) + " on each of " + std::to_string(n) + " places");
  auto array = field.integers.empty() ? to_vtk(field.values, field.components, precision)
                                      : vtkSmartPointer<vtkDataArray>(to_vtk<vtkIntArray>(field.integers, field.components));
  array->SetName(field.name.c_str());
  return array;
}

/// order[k]: lexicographic position of VTK's k-th node.
std::vector<int> vtk_node_order(int p) {
  if (p == 1)
    return {0, 1, 3, 2, 4, 5, 7, 6};
  std::vector<int> order(static_cast<std::size_t>((p + 1) * (p + 1) * (p + 1)));
  int const orders[4] = {p, p, p, static_cast<int>(order.size())};
  for (int k = 0, lexicographic = 0; k <= p; ++k)
    for (int j = 0; j <= p; ++j)
      for (int i = 0; i <= p; ++i, ++lexicographic)
        order[static_cast<std::size_t>(vtkHigherOrderHexahedron::PointIndexFromIJK(i, j, k, orders))] = lexicographic;
  return order;
}

template <class IndexArray>
vtkSmartPointer<vtkCellArray> to_vtk_cells(Grid const& grid) {
  using Index = typename IndexArray::ValueType;
  auto const nodes = static_cast<std::int64_t>(grid.nodes_per_cell());
  auto const n = grid.n_cells();
  auto const order = vtk_node_order(grid.order);
  vtkNew<IndexArray> offsets, connectivity;
  offsets->SetNumberOfValues(n + 1);
  connectivity->SetNumberOfValues(n * nodes);
  Index* const start = offsets->GetPointer(0);
  Index* const out = connectivity->GetPointer(0);
  start[0] = 0;
#pragma omp parallel for
  for (std::int64_t c = 0; c < n; ++c) {
    start[c + 1] = static_cast<Index>((c + 1) * nodes);
    auto const* const cell = grid.cells.data() + c * nodes;
    for (std::int64_t k = 0; k < nodes; ++k)
      out[c * nodes + k] = static_cast<Index>(cell[order[static_cast<std::size_t>(k)]]);
  }
  auto cells = vtkSmartPointer<vtkCellArray>::New();
  cells->SetData(offsets.Get(), connectivity.Get());
  return cells;
}

/// VTK prints some numbers through streams of its own, which take the global locale.
class ClassicLocale {
public:
  ClassicLocale() : before_(std::locale::global(std::locale::classic())) {}
  ClassicLocale(ClassicLocale const&) = delete;
  ClassicLocale& operator=(ClassicLocale const&) = delete;
  ~ClassicLocale() { std::locale::global(before_); }

private:
  std::locale before_;
};

void remember_error(vtkObject*, unsigned long, void* client, void* text) {
  auto& message = *static_cast<std::string*>(client);
  if (message.empty() && text != nullptr)
    message = static_cast<char const*>(text);
}

/// Binary data in base64 inside each array's element, compressed as asked. Raw data after the elements (<AppendedData>) would be a
/// quarter smaller, but ParaView 5.11 with libexpat 2.5.0-1+deb12u2 or later stops there: "not well-formed (invalid token)"
/// (libexpat issue 840, VTK issue 19258). The file appears under `path` only when it is complete.
template <class Writer, class Data>
void write_file(std::filesystem::path const& path, Data* data, VtkOptions const& options) {
  AtomicFile file(path);
  FileBuffer buffer(file.temporary_path());
  // VTK frees what it has not allocated when its stream fails in the middle of inline data (9.1,
  // vtkXMLUnstructuredDataWriter::WriteAPiece).
  buffer.discard_after_error();
  std::ostream stream(&buffer);
  stream.imbue(std::locale::classic());
  std::string message;
  vtkNew<vtkCallbackCommand> observer;
  observer->SetCallback(remember_error);
  observer->SetClientData(&message);

  vtkNew<Writer> writer;
  // Errors would otherwise be printed, by the writer and by what drives it.
  writer->AddObserver(vtkCommand::ErrorEvent, observer);
  writer->GetExecutive()->AddObserver(vtkCommand::ErrorEvent, observer);
  writer->stream = &stream;
  writer->SetFileName(file.temporary_path().c_str());
  writer->SetInputData(data);
  writer->SetDataModeToBinary();
  writer->SetHeaderTypeToUInt64();
  // Measured on 256 MB (128^3 cells, six fields): LZ4 0.8 s for 146 MB, LZMA 9 s for 51 MB; zlib lies between in both, and
  // higher levels of LZMA gain nothing.
  switch (options.compression) {
  case VtkCompression::none:
    writer->SetCompressorTypeToNone();
    break;
  case VtkCompression::fast:
    writer->SetCompressorTypeToLZ4();
    writer->SetCompressionLevel(9);
    writer->SetBlockSize(std::size_t{1} << 18);
    break;
  case VtkCompression::best:
    writer->SetCompressorTypeToLZMA();
    writer->SetCompressionLevel(2);
    writer->SetBlockSize(std::size_t{1} << 20);
    break;
  }
  int const written = [&] {
    ClassicLocale const locale;
    return writer->Write();
  }();
  if (int const error = buffer.close(); error != 0)
    throw_write_error(path, error);
  if (written == 0 || writer->GetErrorCode() != vtkErrorCode::NoError)
    throw EnvironmentError("cannot write '" + path.string() + "': VTK reports " +
                           (message.empty() ? "error " + std::to_string(writer->GetErrorCode()) : message));
  file.commit();
}

}  // namespace

namespace {

/// The arrays of a lattice.
struct Expanded {
  HostVector<double> points;
  HostVector<std::int64_t> cells;

  explicit Expanded(ImageGrid const& image)
      : points(3 * static_cast<std::size_t>(image.n_points())), cells(8 * static_cast<std::size_t>(image.n_cells())) {
    auto const n_points = image.n_points(), n_cells = image.n_cells();
#pragma omp parallel for
    for (std::int64_t i = 0; i < n_points; ++i) {
      auto const x = image.point(i);
      std::copy(x.begin(), x.end(), points.begin() + 3 * i);
    }
#pragma omp parallel for
    for (std::int64_t i = 0; i < n_cells; ++i) {
      std::int64_t const first = image.node(i, 0);
      for (int corner = 0; corner < 8; ++corner)
        cells[static_cast<std::size_t>(8 * i + corner)] =
            first + (corner & 1) + ((corner >> 1 & 1) + (corner >> 2) * image.n[1]) * image.n[0];
    }
  }
};

void write_grid(std::filesystem::path const& path, Grid const& grid, std::vector<Field> const& point_fields,
                std::vector<Field> const& cell_fields, VtkOptions const& options) {
  if (grid.order < 1 || grid.order > 10)
    throw std::invalid_argument("cells of order " + std::to_string(grid.order) + " cannot be written");
  vtkNew<vtkUnstructuredGrid> data;
  vtkNew<vtkPoints> points;
  points->SetData(to_vtk(grid.points, 3, options.precision));
  data->SetPoints(points);
  // Half the bytes where 32 bits suffice.
  bool const narrow = std::max<std::int64_t>(grid.n_points(), static_cast<std::int64_t>(grid.cells.size())) <=
                      std::numeric_limits<std::int32_t>::max();
  data->SetCells(grid.order == 1 ? VTK_HEXAHEDRON : VTK_LAGRANGE_HEXAHEDRON,
                 narrow ? to_vtk_cells<vtkTypeInt32Array>(grid) : to_vtk_cells<vtkTypeInt64Array>(grid));
  for (auto const& field : point_fields)
    data->GetPointData()->AddArray(to_vtk(field, grid.n_points(), options.precision));
  for (auto const& field : cell_fields)
    data->GetCellData()->AddArray(to_vtk(field, grid.n_cells(), options.precision));
  // ParaView colours by the active scalars when it opens the file.
  if (!point_fields.empty() && point_fields.front().components == 1)
    data->GetPointData()->SetActiveScalars(point_fields.front().name.c_str());

  write_file<GridWriter>(path, data.Get(), options);
}

}  // namespace

void write_vtu(std::filesystem::path const& path, Mesh const& mesh, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options) {
  if (Grid const* const grid = mesh.grid()) {
    write_grid(path, *grid, point_fields, cell_fields, options);
    return;
  }
  Expanded const arrays(*mesh.image());
  write_grid(path, {1, arrays.points, arrays.cells}, point_fields, cell_fields, options);
}

void write_vti(std::filesystem::path const& path, ImageGrid const& grid, std::vector<Field> const& point_fields,
               VtkOptions const& options) {
  vtkNew<vtkImageData> image;
  image->SetOrigin(grid.low.data());
  // A direction of one point has no spacing; VTK wants one.
  image->SetSpacing(grid.spacing[0] > 0 ? grid.spacing[0] : 1, grid.spacing[1] > 0 ? grid.spacing[1] : 1,
                    grid.spacing[2] > 0 ? grid.spacing[2] : 1);
  image->SetDimensions(static_cast<int>(grid.n[0]), static_cast<int>(grid.n[1]), static_cast<int>(grid.n[2]));
  for (auto const& field : point_fields)
    image->GetPointData()->AddArray(to_vtk(field, grid.n_points(), options.precision));
  if (!point_fields.empty() && point_fields.front().components == 1)
    image->GetPointData()->SetActiveScalars(point_fields.front().name.c_str());
  write_file<ImageWriter>(path, image.Get(), options);
}

namespace {

std::string escaped(std::string const& text) {
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

}  // namespace

void write_pvd(std::filesystem::path const& path, std::vector<PvdEntry> const& entries) {
  std::string text = "<?xml version=\"1.0\"?>\n"
                     "<VTKFile type=\"Collection\" version=\"0.1\" byte_order=\"LittleEndian\">\n  <Collection>\n";
  for (auto const& entry : entries) {
    char number[32];
    auto const end = std::to_chars(number, number + sizeof number, entry.time).ptr;
    text +=
        "    <DataSet timestep=\"" + std::string(number, end) + "\" group=\"\" part=\"0\" file=\"" + escaped(entry.file) + "\"/>\n";
  }
  text += "  </Collection>\n</VTKFile>\n";
  write_text_file(path, text);
}

std::string vtk_version() {
  return vtkVersion::GetVTKVersion();
}

}  // namespace poisson::output
