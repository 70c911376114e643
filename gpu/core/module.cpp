#include "gpu/core/module.hpp"

#include <cstddef>
#include <dlfcn.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/resource.h>
#include <system_error>

namespace poisson {

void* load_module(std::string const& name, bool visible, std::string& missing) {
  std::string const file = "lib" + name + ".so";
  std::error_code ignored;
  // The program itself, by whatever links it was started.
  auto const folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::string path = file;
  for (auto const& there : {folder, folder.parent_path() / "lib", folder / POISSON_MODULES})
    if (path == file && exists(there / file, ignored))
      path = there / file;
  // What stands in for libraries that those behind it name, and nobody calls (tools/stand_ins): loaded first, they are the ones.
  // Beside the program only: from the folder in which it was started nothing is loaded.
  if (std::filesystem::path const found = path; found.is_absolute())
    for (std::filesystem::directory_iterator unused(std::filesystem::path(found).replace_extension("unused"), ignored), end;
         !ignored && unused != end; unused.increment(ignored))
      dlopen(unused->path().c_str(), RTLD_LAZY | RTLD_LOCAL);
  // Functions of the libraries behind it are looked up when they are called: most never are. Its own are looked up now, as it is
  // linked with -z now: one that is missing is told before there is work to lose.
  void* const library = dlopen(path.c_str(), RTLD_LAZY | (visible ? RTLD_GLOBAL : RTLD_LOCAL));
  void* const entry = library == nullptr ? nullptr : dlsym(library, name.c_str());
  if (entry == nullptr)
    missing = dlerror();
  return entry;
}

void load_blas() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return;
  constexpr std::size_t bytes = std::size_t{384} << 20;  // OpenBLAS 0.3.21 takes almost 300 MiB for a moment
  void* const there = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (there == MAP_FAILED)
    throw EnvironmentError("the limit on virtual memory (ulimit -v) leaves less than 384 MiB, which LAPACK needs to start");
  munmap(there, bytes);
  std::string ignored;
  static_cast<void>(load_module("poisson_lapack", false, ignored));
}

}  // namespace poisson
