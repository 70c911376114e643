#include "gpu/core/error.hpp"
#include "gpu/core/vtk_readers.hpp"
#include "output/vtk/vtk_messages.hpp"

#include <vtkCellData.h>
#include <vtkDataArray.h>
#include <vtkDataArraySelection.h>
#include <vtkDataObject.h>
#include <vtkErrorCode.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTIFFReader.h>
#include <vtkXMLImageDataReader.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

/// Where a reader of VTK fails is seen in what it writes; its codes of errors stay 0.
namespace poisson::output {
namespace {

[[noreturn]] void refuse(std::string const& what, char const* key = "problem.mesh.image") {
  throw InputError(key, what);
}

/// Throws InputError where there is a word of VTK.
void require_none(VtkMessages const& messages) {
  for (bool const errors : {true, false})
    if (auto const found = messages.all(errors); !found.empty())
      refuse("VTK cannot read it: " + found.front());
}

VoxelType type_of(int type, int bytes) {
  bool const is_signed = type == VTK_CHAR || type == VTK_SIGNED_CHAR || type == VTK_SHORT || type == VTK_INT || type == VTK_LONG ||
                         type == VTK_LONG_LONG || type == VTK_ID_TYPE;
  if (type == VTK_FLOAT)
    return VoxelType::float32;
  if (type == VTK_DOUBLE)
    return VoxelType::float64;
  if (bytes == 1)
    return is_signed ? VoxelType::int8 : VoxelType::uint8;
  if (bytes == 2)
    return is_signed ? VoxelType::int16 : VoxelType::uint16;
  if (bytes == 4)
    return is_signed ? VoxelType::int32 : VoxelType::uint32;
  refuse("its voxels have the type " + std::string(vtkImageScalarTypeNameMacro(type)) +
         ", which is not read; 8, 16 and 32 bit, float and double are");
}

/// Whether the array is one of cells; `array` gets its name.
bool choose_array(vtkXMLImageDataReader& reader, std::string& array) {
  vtkDataArraySelection& of_points = *reader.GetPointDataArraySelection();
  vtkDataArraySelection& of_cells = *reader.GetCellDataArraySelection();
  std::string names;
  for (vtkDataArraySelection* const list : {&of_cells, &of_points})
    for (int i = 0; i < list->GetNumberOfArrays(); ++i)
      names += (names.empty() ? "" : ", ") + std::string(list->GetArrayName(i));
  if (array.empty()) {
    int const cells = of_cells.GetNumberOfArrays(), points = of_points.GetNumberOfArrays();
    if (cells + points != 1)
      refuse(cells + points == 0 ? "it has no array of voxels" : "it has several arrays; name one by problem.mesh.array: " + names);
    array = cells == 1 ? of_cells.GetArrayName(0) : of_points.GetArrayName(0);
  }
  bool const is_of_cells = of_cells.ArrayExists(array.c_str()) != 0;
  if (!is_of_cells && of_points.ArrayExists(array.c_str()) == 0)
    refuse("it has no array '" + array + "'" + (names.empty() ? "" : "; it has: " + names), "problem.mesh.array");
  of_cells.DisableAllArrays();
  of_points.DisableAllArrays();
  (is_of_cells ? of_cells : of_points).EnableArray(array.c_str());
  return is_of_cells;
}

VtkImage read_vti(std::string const& file, std::string const& name, bool with_voxels) {
  VtkMessages const messages;
  vtkNew<vtkXMLImageDataReader> reader;
  reader->SetFileName(file.c_str());
  reader->UpdateInformation();
  require_none(messages);
  if (reader->GetErrorCode() != vtkErrorCode::NoError)
    refuse("VTK cannot read it");
  std::string array = name;
  bool const of_cells = choose_array(*reader, array);
  vtkInformation& information = *reader->GetOutputInformation(0);
  std::array<int, 6> extent{};
  VtkImage image;
  auto& [cells, voxel_type, spacing, low, voxels] = image;
  information.Get(vtkStreamingDemandDrivenPipeline::WHOLE_EXTENT(), extent.data());
  information.Get(vtkDataObject::SPACING(), spacing.data());
  information.Get(vtkDataObject::ORIGIN(), low.data());
  if (information.Has(vtkDataObject::DIRECTION()) != 0) {
    double const* const direction = information.Get(vtkDataObject::DIRECTION());
    for (int i = 0; i < 9; ++i)
      if (direction[i] != (i % 4 == 0 ? 1 : 0))
        refuse("its axes are turned (Direction); only those along x, y and z are read; resample it");
  }
  std::int64_t n = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    std::int64_t const points = std::int64_t{extent[2 * d + 1]} - extent[2 * d] + 1;
    cells[d] = of_cells ? points - 1 : points;
    if (cells[d] < 1)
      refuse(std::string("it has no voxels in ") + "xyz"[d]);
    if (!(spacing[d] > 0) || !std::isfinite(spacing[d]))
      refuse("its spacing is " + std::to_string(spacing[d]) + " in " + "xyz"[d] + ", and must be positive");
    low[d] += (extent[2 * d] - (of_cells ? 0 : 0.5)) * spacing[d];
    if (__builtin_mul_overflow(n, cells[d], &n))
      refuse("its header promises more voxels than any file can have");
  }
  if (!with_voxels)
    return image;
  reader->Update();
  require_none(messages);
  auto* const data = vtkImageData::SafeDownCast(reader->GetOutputDataObject(0));
  vtkDataArray* const values = data == nullptr ? nullptr
                               : of_cells      ? data->GetCellData()->GetArray(array.c_str())
                                               : data->GetPointData()->GetArray(array.c_str());
  if (values == nullptr || reader->GetErrorCode() != vtkErrorCode::NoError)
    refuse("VTK finds no numbers in its array '" + array + "'");
  if (values->GetNumberOfComponents() != 1)
    refuse("the array '" + array + "' has " + std::to_string(values->GetNumberOfComponents()) +
               " numbers a voxel, and one is needed",
           "problem.mesh.array");
  if (values->GetNumberOfTuples() != n)
    refuse("its array '" + array + "' has " + std::to_string(values->GetNumberOfTuples()) + " values for " + std::to_string(n) +
           " voxels");
  int const bytes = values->GetDataTypeSize();
  auto const size = static_cast<std::size_t>(n);
  // Integers of 64 bits, which are usual for what is no image: those that fit into 32.
  if (bytes == 8 && values->GetDataType() != VTK_DOUBLE) {
    voxel_type = VoxelType::int32;
    voxels.resize(4 * size);
    for (std::size_t i = 0; i < size; ++i) {
      double const value = values->GetTuple1(static_cast<vtkIdType>(i));
      if (!(std::abs(value) <= std::numeric_limits<std::int32_t>::max()))
        refuse("its array '" + array + "' has numbers that exceed 32 bits");
      auto const small = static_cast<std::int32_t>(value);
      std::memcpy(voxels.data() + 4 * i, &small, 4);
    }
    return image;
  }
  voxel_type = type_of(values->GetDataType(), bytes);
  auto const* const begin = static_cast<std::byte const*>(values->GetVoidPointer(0));
  voxels.assign(begin, begin + size * static_cast<std::size_t>(bytes));
  return image;
}

std::vector<std::byte> read_tiff(std::string const& file, std::array<std::int64_t, 3> const& cells, VoxelType type,
                                 std::int64_t bytes) {
  VtkMessages const messages;
  vtkNew<vtkTIFFReader> reader;
  reader->SetFileName(file.c_str());
  reader->Update();
  require_none(messages);
  vtkImageData* const data = reader->GetOutput();
  std::array<int, 3> dimensions{};
  if (data != nullptr)
    data->GetDimensions(dimensions.data());
  vtkDataArray* const values = data == nullptr ? nullptr : data->GetPointData()->GetScalars();
  if (reader->GetErrorCode() != vtkErrorCode::NoError || values == nullptr || values->GetNumberOfComponents() != 1 ||
      std::array<std::int64_t, 3>{dimensions[0], dimensions[1], dimensions[2]} != cells ||
      (values->GetDataType() == VTK_FLOAT) != (type == VoxelType::float32) ||
      values->GetNumberOfTuples() != cells[0] * cells[1] * cells[2] ||
      values->GetDataTypeSize() * values->GetNumberOfTuples() != bytes)
    refuse("VTK does not find what its header promises; it is damaged");
  auto const* const begin = static_cast<std::byte const*>(values->GetVoidPointer(0));
  return {begin, begin + bytes};
}

}  // namespace
}  // namespace poisson::output

extern "C" poisson::VtkImageReader const* poisson_image() {
  static constexpr poisson::VtkImageReader functions{poisson::output::read_vti, poisson::output::read_tiff};
  return &functions;
}
