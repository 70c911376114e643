#pragma once

#include "app/config/run_config.hpp"
#include "assembly/discretization.hpp"
#include "output/grid.hpp"
#include "output/picture/picture.hpp"

#include <exception>
#include <string>
#include <vector>

namespace poisson::app {

constexpr char const* solution_picture = "solution.png";
constexpr char const* materials_picture = "materials.png";
/// What a run says where output.pictures asks for what the build cannot draw.
constexpr char const* no_pictures_note = "output.pictures: this build has no pictures; build with POISSON_PICTURES=ON and Cairo";

/// The names of the pictures that a run may draw of its solution: the two above, and those of output.pictures.
[[nodiscard]] std::vector<std::string> picture_files(RunConfig const& config);

/// Throws InputError for a plane of output.pictures that does not meet the mesh.
void require_pictures_in_mesh(RunConfig const& config, assembly::Extent const& extent);

/// A picture as it is to be written, or why there is none.
struct DrawnPicture {
  std::string file, caption;
  std::string png;
  std::vector<std::pair<std::string, std::string>> more{};  ///< names and bytes of its files in other formats
  std::exception_ptr error;
};
/// What pictures tell of a mesh besides its cells.
struct PictureMesh {
  assembly::MeshSummary const& summary;
  assembly::Extent extent;
};
/// Draws solution.png, materials.png where there are several materials, and output.pictures. `fields` are those of the mesh. Throws
/// nothing but what is not about a picture. With a `part` (output/picture/picture.hpp) this is collective, the mesh is that part of
/// the whole, of which `of_mesh` tells, and the first rank gets the pictures.
[[nodiscard]] std::vector<DrawnPicture> draw_pictures(RunConfig const& config, PictureMesh const& of_mesh, output::Mesh const& mesh,
                                                      assembly::SolutionFields const& fields, std::string const& title,
                                                      output::PicturePart const* part = nullptr);

/// Bytes that draw_pictures takes at most, as output::picture_bytes.
[[nodiscard]] std::int64_t bytes_of_pictures(RunConfig const& config, std::int64_t n_cells, std::int64_t n_boundary_faces,
                                             std::int64_t n_nodes);

}  // namespace poisson::app
