#include "output/files/directory_lock.hpp"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace poisson::output {

namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

std::string this_process() {
  std::time_t const now = std::time(nullptr);
  std::tm local{};
  char text[64] = {};
  if (localtime_r(&now, &local) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &local);
  return "process " + std::to_string(getpid()) + " on " + host_name() + " since " + text;
}

/// Whether `holder` is a process of this machine that has ended.
bool has_ended(std::string const& holder) {
  std::istringstream words(holder);
  std::string process, on, host;
  long id = 0;
  words >> process >> id >> on >> host;
  return id > 0 && host == host_name() && kill(static_cast<pid_t>(id), 0) != 0 && errno == ESRCH;
}

std::vector<std::string> lines_of(int descriptor) {
  std::string text;
  char block[4096];
  for (ssize_t n = 0; (n = pread(descriptor, block, sizeof block, static_cast<off_t>(text.size()))) > 0 && text.size() < (1 << 20);)
    text.append(block, static_cast<std::size_t>(n));
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

/// Who holds the lock of a file with these lines.
std::string holder_in(std::vector<std::string> const& lines) {
  return lines.empty() ? "a process that has just begun" : lines.front();
}

bool same_file(int descriptor, char const* path) {
  struct stat opened {
  }, named{};
  return fstat(descriptor, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

}  // namespace

DirectoryLock::DirectoryLock(std::filesystem::path const& directory) : path_(directory / file_name) {
  constexpr int longest_wait = 600;  // times 50 ms, for the children of a holder that has ended
  for (int attempt = 0; attempt < longest_wait; ++attempt) {
    // Neither a link nor a pipe of that name is followed or waited for.
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    struct stat status {};
    if (descriptor_ < 0)
      break;
    if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(descriptor_);
      descriptor_ = -1;
      break;
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      int const error = errno;
      auto const lines = lines_of(descriptor_);
      if (error != EWOULDBLOCK && error != EINTR) {  // no locks here; what is announced is of use all the same
        left_over_ = lines;
        break;
      }
      ::close(descriptor_);
      descriptor_ = -1;
      holder_ = holder_in(lines);
      if (!has_ended(holder_))
        return;
      usleep(50'000);
      continue;
    }
    if (same_file(descriptor_, path_.c_str())) {
      held_ = true;
      left_over_ = lines_of(descriptor_);
      break;
    }
    ::close(descriptor_);  // its holder has removed it between our two calls
    descriptor_ = -1;
  }
  if (descriptor_ >= 0)
    holder_.clear();
  if (!left_over_.empty())
    left_over_.erase(left_over_.begin());  // who it was
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

void DirectoryLock::announce(std::vector<std::string> const& names) noexcept {
  if (descriptor_ < 0)
    return;
  std::string text = this_process() + "\n";
  for (auto const& name : names)
    text += name + "\n";
  if (pwrite(descriptor_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
    static_cast<void>(!ftruncate(descriptor_, static_cast<off_t>(text.size())));
}

void DirectoryLock::release() noexcept {
  if (descriptor_ < 0)
    return;
  if (same_file(descriptor_, path_.c_str()))
    ::unlink(path_.c_str());
  ::close(descriptor_);
  descriptor_ = -1;
  held_ = false;
}

std::string writer_of(std::filesystem::path const& directory) {
  int const descriptor = ::open((directory / DirectoryLock::file_name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0)
    return "";
  std::string writer;
  if (flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    writer = holder_in(lines_of(descriptor));
  ::close(descriptor);
  return writer;
}

}  // namespace poisson::output
