#include "tests/source_dir.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace poisson {

std::filesystem::path source_dir() {
  return POISSON_SOURCE_DIR;
}

std::vector<std::filesystem::path> project_meshes() {
  std::set<std::string> const others{".md", ".py", ".mha", ".geo"};
  std::vector<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::directory_iterator(source_dir() / "meshes"))
    if (!others.contains(entry.path().extension().string()))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace poisson
