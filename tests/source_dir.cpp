#include "tests/source_dir.hpp"

namespace poisson {

std::filesystem::path source_dir() {
  return POISSON_SOURCE_DIR;
}

}  // namespace poisson
