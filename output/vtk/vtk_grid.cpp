#include "gpu/core/vtk_readers.hpp"
#include "output/vtk/vtk_messages.hpp"

#include <vtkAlgorithm.h>
#include <vtkCellData.h>
#include <vtkCellType.h>
#include <vtkDataArray.h>
#include <vtkErrorCode.h>
#include <vtkHDFReader.h>
#include <vtkIdList.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkUnstructuredGrid.h>
#include <vtkUnstructuredGridReader.h>
#include <vtkXMLUnstructuredGridReader.h>

#include <limits>

namespace poisson::output {
namespace {

static_assert(VTK_EMPTY_CELL == int(VtkCell::empty) && VTK_POLY_LINE == int(VtkCell::poly_line) &&
              VTK_TRIANGLE == int(VtkCell::triangle) && VTK_PIXEL == int(VtkCell::pixel) && VTK_QUAD == int(VtkCell::quad) &&
              VTK_TETRA == int(VtkCell::tetrahedron) && VTK_VOXEL == int(VtkCell::voxel) &&
              VTK_HEXAHEDRON == int(VtkCell::hexahedron) && VTK_WEDGE == int(VtkCell::wedge) &&
              VTK_PYRAMID == int(VtkCell::pyramid) && VTK_QUADRATIC_EDGE == int(VtkCell::quadratic_edge) &&
              VTK_QUADRATIC_TRIANGLE == int(VtkCell::quadratic_triangle) && VTK_QUADRATIC_QUAD == int(VtkCell::quadratic_quad) &&
              VTK_QUADRATIC_TETRA == int(VtkCell::quadratic_tetrahedron) &&
              VTK_QUADRATIC_HEXAHEDRON == int(VtkCell::quadratic_hexahedron) &&
              VTK_BIQUADRATIC_QUAD == int(VtkCell::biquadratic_quad) &&
              VTK_TRIQUADRATIC_HEXAHEDRON == int(VtkCell::triquadratic_hexahedron) &&
              VTK_BIQUADRATIC_TRIANGLE == int(VtkCell::biquadratic_triangle) && VTK_CUBIC_LINE == int(VtkCell::cubic_line) &&
              VTK_QUADRATIC_POLYGON == int(VtkCell::quadratic_polygon) && VTK_LAGRANGE_CURVE == int(VtkCell::lagrange_curve) &&
              VTK_LAGRANGE_TRIANGLE == int(VtkCell::lagrange_triangle) &&
              VTK_LAGRANGE_QUADRILATERAL == int(VtkCell::lagrange_quadrilateral) &&
              VTK_LAGRANGE_TETRAHEDRON == int(VtkCell::lagrange_tetrahedron) &&
              VTK_LAGRANGE_HEXAHEDRON == int(VtkCell::lagrange_hexahedron) && VTK_LAGRANGE_WEDGE == int(VtkCell::lagrange_wedge));

void copy(vtkUnstructuredGrid& from, VtkGrid& to) {
  to.points.resize(3 * static_cast<std::size_t>(from.GetNumberOfPoints()));
  for (vtkIdType i = 0; i < from.GetNumberOfPoints(); ++i)
    from.GetPoints()->GetPoint(i, to.points.data() + 3 * i);
  vtkIdType const n = from.GetNumberOfCells();
  to.types.reserve(static_cast<std::size_t>(n));
  to.offsets.reserve(static_cast<std::size_t>(n) + 1);
  to.offsets.push_back(0);
  vtkNew<vtkIdList> nodes;
  for (vtkIdType cell = 0; cell < n; ++cell) {
    from.GetCellPoints(cell, nodes);
    to.types.push_back(static_cast<std::uint8_t>(from.GetCellType(cell)));
    to.nodes.insert(to.nodes.end(), nodes->begin(), nodes->end());
    to.offsets.push_back(std::ssize(to.nodes));
  }
  for (int i = 0; i < from.GetCellData()->GetNumberOfArrays(); ++i) {
    vtkDataArray* const array = from.GetCellData()->GetArray(i);  // null: of strings
    if (array == nullptr || array->GetName() == nullptr)
      continue;
    VtkGrid::CellArray& copied = to.arrays.emplace_back(VtkGrid::CellArray{array->GetName(), array->GetNumberOfComponents(), {}});
    for (vtkIdType tuple = 0; tuple < array->GetNumberOfTuples(); ++tuple)
      copied.values.push_back(array->GetComponent(tuple, 0));
  }
}

VtkGrid read_by(vtkAlgorithm& reader) {
  VtkMessages const messages;
  VtkGrid result;
  reader.Update();
  auto* const grid = vtkUnstructuredGrid::SafeDownCast(reader.GetOutputDataObject(0));
  result.errors = messages.all(true);
  result.is_grid =
      result.errors.empty() && reader.GetErrorCode() == vtkErrorCode::NoError && grid != nullptr && grid->GetPoints() != nullptr;
  if (result.is_grid)
    copy(*grid, result);
  result.warnings = messages.all(false);
  return result;
}

VtkGrid read_grid(VtkGridFile format, std::string const& file, std::string_view content) {
  if (format == VtkGridFile::hdf) {
    vtkNew<vtkHDFReader> reader;
    reader->SetFileName(file.c_str());
    return read_by(*reader);
  }
  if (format == VtkGridFile::xml) {
    vtkNew<vtkXMLUnstructuredGridReader> reader;
    reader->ReadFromInputStringOn();
    reader->SetInputString(std::string(content));
    return read_by(*reader);
  }
  vtkNew<vtkUnstructuredGridReader> reader;
  if (content.size() > std::numeric_limits<int>::max()) {  // by which VTK counts its characters
    reader->SetFileName(file.c_str());
  } else {
    reader->ReadFromInputStringOn();
    reader->SetBinaryInputString(content.data(), static_cast<int>(content.size()));
  }
  reader->ReadAllScalarsOn();
  reader->ReadAllFieldsOn();
  return read_by(*reader);
}

}  // namespace
}  // namespace poisson::output

extern "C" poisson::VtkGridReader const* poisson_grids() {
  static constexpr poisson::VtkGridReader functions{poisson::output::read_grid};
  return &functions;
}
