#include "gpu/core/module.hpp"

#include "gpu/core/reader_process.hpp"

#include <dlfcn.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
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
  std::string ignored;
  auto const load = [&ignored](int /*answer*/) { static_cast<void>(load_module("poisson_lapack", false, ignored)); };
  // How much it takes depends on its version and on the processors: tried by another process, whose processor time is limited.
  constexpr ReaderLimits trial{std::int64_t{1} << 40, 3};
  if (!ReaderProcess(0, trial, load).complaint().empty())
    throw EnvironmentError(
        "the limit on virtual memory (ulimit -v) leaves too little for LAPACK to start; OpenBLAS takes about 500 MB");
  load(-1);
}

}  // namespace poisson
