#include "assembly/mesh/coarse_mesh.hpp"

#include "gpu/core/error.hpp"

#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <system_error>

// Null, unless the library is linked, as in tests.
extern "C" __attribute__((weak)) poisson::assembly::CoarseMesh* poisson_open_coarse_mesh(poisson::assembly::MeshSpec const& spec);

namespace poisson::assembly {
namespace {

constexpr char const* file_name = "libpoisson_dealii.so";

using Open = decltype(&poisson_open_coarse_mesh);

/// Its entry, or what is wrong.
struct Library {
  Open open = poisson_open_coarse_mesh;
  std::string error;
};

Library load() {
  Library result;
  if (result.open != nullptr)
    return result;
  std::error_code error;
  auto const beside = std::filesystem::read_symlink("/proc/self/exe", error).replace_filename(file_name);
  // Where the system looks for libraries, unless it is beside the program.
  void* const handle = dlopen(exists(beside, error) ? beside.c_str() : file_name, RTLD_LAZY | RTLD_LOCAL);
  void* const symbol = handle == nullptr ? nullptr : dlsym(handle, "poisson_open_coarse_mesh");
  if (symbol == nullptr)
    result.error = dlerror();
  result.open = reinterpret_cast<Open>(symbol);
  return result;
}

Library const& library() {
  static Library const loaded = load();
  return loaded;
}

}  // namespace

void prepare_for(MeshSpec const& spec) {
  if (!is_box(spec))
    static_cast<void>(library());
}

std::unique_ptr<CoarseMesh> open_coarse_mesh(MeshSpec const& spec) {
  if (library().open == nullptr)
    throw EnvironmentError("the library for meshes that are not boxes cannot be loaded; it belongs beside the program: " +
                           library().error);
  return std::unique_ptr<CoarseMesh>(library().open(spec));
}

}  // namespace poisson::assembly
