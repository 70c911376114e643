#include "assembly/mesh/coarse_mesh.hpp"

#include "gpu/core/module.hpp"

extern "C" __attribute__((weak)) poisson::assembly::DealiiFunctions const* poisson_dealii();
extern "C" __attribute__((weak)) poisson::VtkGridReader const* poisson_grids();

namespace poisson::assembly {
namespace {

DealiiFunctions const& library() {
  static Module<DealiiFunctions> const module("poisson_dealii", poisson_dealii, "meshes that are not boxes", false, true);
  return module.functions();
}

}  // namespace

void prepare_for(MeshSpec const& spec) {
  if (is_box(spec) || is_box_with_void(spec))
    return;
  static_cast<void>(library());
  if (is_read_by_vtk(spec))
    static_cast<void>(vtk_grids());
}

VtkGridReader const& vtk_grids() {
  static Module<VtkGridReader> const module("poisson_grids", poisson_grids, "meshes in files of VTK");
  return module.functions();
}

MeshCounts refined_counts(CoarseMesh const& mesh, MeshSpec const& spec) {
  return spec.local != nullptr ? mesh.counts() : mesh.counts().refined(spec.refinements);
}

std::unique_ptr<CoarseMesh> open_coarse_mesh(MeshSpec const& spec, ExpressionNames const& names) {
  return is_box_with_void(spec) ? open_box_with_void(spec, names) : library().open(spec, names);
}

MeshContent content_of_drawing(MeshSpec const& spec) {
  return library().draw(spec);
}

std::vector<std::int32_t> divide(Graph const& graph, int n_parts) {
  return library().divide(graph, n_parts);
}

}  // namespace poisson::assembly
