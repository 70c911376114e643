#include "app/sweep/case_sync.hpp"

#include "output/files/atomic_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

constexpr char const* file_name = ".syncing";

std::string text_of(fs::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Another one after every start of the machine.
std::string name_of_start() {
  return text_of("/proc/sys/kernel/random/boot_id");
}

int open_folder(fs::path const& folder) noexcept {
  return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void pass(fs::path const& cases) noexcept {
  std::error_code ignored;
  fs::path const next = cases / (std::string(file_name) + "." + std::to_string(getpid()));
  std::ofstream(next, std::ios::binary) << name_of_start();  // its time is from before the pass
  // Everything on the file system that the folder is on: a call for each of many small files takes longer. Errors of writing show
  // in the descriptor that the sweep has.
  if (int const folder = open_folder(cases); folder >= 0) {
    static_cast<void>(syncfs(folder));
    close(folder);
  }
  fs::rename(next, cases / file_name, ignored);
}

}  // namespace

std::optional<fs::file_time_type> lost_since(fs::path const& cases) {
  std::error_code error;
  auto const time = fs::last_write_time(cases / file_name, error);
  if (error || text_of(cases / file_name) == name_of_start())
    return {};
  return time;
}

CasesToDisk::CasesToDisk(fs::path cases) : cases_(std::move(cases)) {
  std::error_code error;
  if (auto const lost = lost_since(cases_)) {
    for (auto const& entry : fs::directory_iterator(cases_, error))
      if (auto const written = fs::last_write_time(entry.path() / "result.json", error); !error && written >= *lost)
        fs::remove(entry.path() / "result.json", error);
    fs::remove(cases_ / file_name, error);
  }
  descriptor_ = open_folder(cases_);
  if (fs::exists(cases_ / file_name, error))
    return;
  output::write_text_file(cases_ / file_name, name_of_start());
  output::sync_directory(cases_);
}

CasesToDisk::~CasesToDisk() {
  if (descriptor_ >= 0)
    close(descriptor_);
}

void CasesToDisk::finish() {
  // The system tells every descriptor of the errors since it was opened. (Where it cannot do this at all, errno is another one.)
  if (descriptor_ >= 0 && syncfs(descriptor_) != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT))
    output::throw_write_error(cases_, errno);
  std::error_code error;
  for (auto const& entry : fs::directory_iterator(cases_, error))
    if (entry.path().filename().string().starts_with(file_name))
      fs::remove(entry.path(), error);
}

void CaseSync::case_has_ended() {
  auto const now = std::chrono::steady_clock::now();
  if (now - begun_ < std::chrono::seconds(1) ||
      (pass_.valid() && pass_.wait_for(std::chrono::seconds(0)) != std::future_status::ready))
    return;
  begun_ = now;
  pass_ = std::async(std::launch::async, [this] { pass(cases_); });
}

}  // namespace poisson::app
