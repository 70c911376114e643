#include "assembly/mesh/coarse_mesh.hpp"

#include "gpu/core/error.hpp"

#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <system_error>

// Null, unless the library is linked, as in tests.
extern "C" __attribute__((weak)) poisson::assembly::CoarseMesh* poisson_open_coarse_mesh(
    poisson::assembly::MeshSpec const& spec, poisson::assembly::ExpressionNames const& names);
extern "C" __attribute__((weak)) void poisson_divide_graph(poisson::assembly::Graph const& graph, int n_parts,
                                                           std::vector<std::int32_t>& part);

namespace poisson::assembly {
namespace {

constexpr char const* file_name = "libpoisson_dealii.so";

using Open = decltype(&poisson_open_coarse_mesh);
using Divide = decltype(&poisson_divide_graph);

/// Holds the library's entries, or what is wrong with it.
struct Library {
  Open open = poisson_open_coarse_mesh;
  Divide divide = poisson_divide_graph;
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
  auto const entry = [&](char const* name) {
    void* const symbol = handle == nullptr ? nullptr : dlsym(handle, name);
    if (symbol == nullptr && result.error.empty())
      result.error = dlerror();
    return symbol;
  };
  result.open = reinterpret_cast<Open>(entry("poisson_open_coarse_mesh"));
  result.divide = reinterpret_cast<Divide>(entry("poisson_divide_graph"));
  return result;
}

Library const& library() {
  static Library const loaded = load();
  return loaded;
}

void require_library() {
  if (library().open == nullptr || library().divide == nullptr)
    throw EnvironmentError("the library for meshes that are not boxes cannot be loaded; it belongs beside the program: " +
                           library().error);
}

}  // namespace

void prepare_for(MeshSpec const& spec) {
  if (!is_box(spec))
    static_cast<void>(library());
}

std::unique_ptr<CoarseMesh> open_coarse_mesh(MeshSpec const& spec, ExpressionNames const& names) {
  require_library();
  return std::unique_ptr<CoarseMesh>(library().open(spec, names));
}

std::vector<std::int32_t> divide(Graph const& graph, int n_parts) {
  require_library();
  std::vector<std::int32_t> part;
  library().divide(graph, n_parts, part);
  return part;
}

}  // namespace poisson::assembly
