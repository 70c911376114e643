#pragma once

#include <filesystem>

namespace poisson {

/// The folder of the project, which has configs and meshes.
[[nodiscard]] std::filesystem::path source_dir();

}  // namespace poisson
