#pragma once

#include "assembly/dealii/mesh.hpp"
#include "assembly/problem.hpp"

#include <array>
#include <deal.II/base/point.h>
#include <deal.II/grid/tria.h>
#include <exception>
#include <memory>
#include <span>
#include <string>

/// Sources of meshes, and what they share. Internal to assembly/dealii.
namespace poisson::assembly {

/// The unrefined mesh of a generator; all cells were checked for positive volume. Errors: InputError with key
/// "problem.mesh.generator" or "problem.mesh.arguments".
[[nodiscard]] std::unique_ptr<dealii::Triangulation<3>> generate_mesh(MeshSpec const& spec);

/// Reads the unrefined mesh of a file, the names of ids that the file has, and notes. All cells were checked for positive volume.
/// All else of the Mesh is not set. Errors: InputError with key "problem.mesh.file".
[[nodiscard]] Mesh read_mesh_file(MeshSpec const& spec);

/// Sets the ids of a mesh, and whether it is curved, by its cells.
void describe(Mesh& mesh);

/// Takes the cells out that are void (MeshSpec::has_void). Faces that were between them and others become boundaries: each region's
/// has an id behind those of the mesh and the region's name, that of materials the name void_surface. Ids, materials, manifolds and
/// shapes of what is left stay. Precondition: there is a triangulation; of a box see take_out_of_box. Errors: InputError where a
/// region or a material takes nothing, or nothing is left.
void take_out_void(Mesh& mesh, MeshSpec const& spec, ExpressionNames const& names);

/// Shape of a trilinear hexahedron with vertices in deal.II's order.
enum class CellShape { good, inverted, degenerate };
[[nodiscard]] CellShape cell_shape(std::span<dealii::Point<3> const, 8> vertices);

/// "(0.5, 1, -2)"
[[nodiscard]] std::string to_text(dealii::Point<3> const& point);

/// The message of an exception on one line, without the source locations that deal.II adds.
[[nodiscard]] std::string brief_message(std::exception const& exception);

}  // namespace poisson::assembly
