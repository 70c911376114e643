#pragma once

#include "assembly/dealii/raw.hpp"
#include "assembly/mesh/coarse_mesh.hpp"

/// Meshes that the program gmsh makes of drawings. Internal to assembly/dealii.
namespace poisson::assembly {

/// Cells whose scaled Jacobian is less are refused.
inline constexpr double least_scaled_jacobian = 0.05;

/// Makes a mesh of hexahedra of the drawing of a specification (is_drawing): with the cells as they are drawn where gmsh makes
/// hexahedra of them (transfinite and extruded parts), by subdivided tetrahedra elsewhere, which is tried with smaller cells where
/// some have a bad shape. All cells of the result have a scaled Jacobian of least_scaled_jacobian or more. What was made last is
/// kept, and returned where the same is asked again.
/// Errors: InputError with key "problem.mesh.file"; EnvironmentError where there is no gmsh; Interrupted.
[[nodiscard]] MeshContent draw(MeshSpec const& spec);

/// The mesh of spec.content, or of draw(spec).
[[nodiscard]] RawMesh read_drawing(MeshSpec const& spec);

/// Throws InputError where a .geo file, or one that it includes, has a command that starts programs or writes files.
void require_no_commands(std::string const& path);

}  // namespace poisson::assembly
