#include "app/sweep/case_sync.hpp"

#include "output/files/atomic_file.hpp"

#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <unistd.h>

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

/// Everything on the file system that the folder is on: a call for each of many small files takes longer.
void sync_all(fs::path const& cases) noexcept {
  int const descriptor = open(cases.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  static_cast<void>(syncfs(descriptor));
  close(descriptor);
}

void pass(fs::path const& cases) noexcept {
  std::error_code ignored;
  fs::path const next = cases / (std::string(file_name) + "." + std::to_string(getpid()));
  std::ofstream(next, std::ios::binary) << name_of_start();  // its time is from before the pass
  sync_all(cases);
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

void begin_syncing(fs::path const& cases) {
  std::error_code error;
  if (auto const lost = lost_since(cases)) {
    for (auto const& entry : fs::directory_iterator(cases, error))
      if (auto const written = fs::last_write_time(entry.path() / "result.json", error); !error && written >= *lost)
        fs::remove(entry.path() / "result.json", error);
    fs::remove(cases / file_name, error);
  }
  if (fs::exists(cases / file_name, error))
    return;
  output::write_text_file(cases / file_name, name_of_start());
  output::sync_directory(cases);
}

void end_syncing(fs::path const& cases) noexcept {
  sync_all(cases);
  std::error_code error;
  for (auto const& entry : fs::directory_iterator(cases, error))
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
