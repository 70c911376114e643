#include "output/vtk/vtk_library.hpp"

#include "gpu/core/module.hpp"
#include "output/vtk/vtk_files.hpp"

extern "C" __attribute__((weak)) poisson::output::VtkFunctions const* poisson_vtk();

namespace poisson::output {

VtkFunctions const& vtk_library() {
  static Module<VtkFunctions> const module("poisson_vtk", poisson_vtk, "fields in files and VTKHDF files");
  return module.functions();
}

void load_vtk() {
  static_cast<void>(vtk_library());
}

std::unique_ptr<HdfFile> open_hdf_file(std::filesystem::path const& path, std::string const& type, VtkOptions const& options) {
  return vtk_library().open_hdf_file(path, type, options);
}

}  // namespace poisson::output
