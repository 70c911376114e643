#pragma once

#include <filesystem>
#include <vector>

namespace poisson {

/// The folder of the project, which has configs and meshes.
[[nodiscard]] std::filesystem::path source_dir();
/// The mesh files in its folder `meshes`, which also has drawings, images and scripts.
[[nodiscard]] std::vector<std::filesystem::path> project_meshes();

}  // namespace poisson
