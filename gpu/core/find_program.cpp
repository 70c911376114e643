#include "gpu/core/find_program.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <unistd.h>

namespace poisson {

std::string find_program(std::string const& name) {
  namespace fs = std::filesystem;
  char const* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    fs::path const file = fs::path(folder.empty() ? "." : folder) / name;
    std::error_code error;
    if (fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0)
      return fs::absolute(file, error).string();
  }
  return {};
}

}  // namespace poisson
