#include "gpu/core/reader_process.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/memory.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>

namespace poisson {
namespace {

constexpr int memory_is_short = 3;  ///< exit code

/// Bytes of the address space that this process has; 0 where the system does not tell.
std::int64_t address_space() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

std::int64_t memory_of_machine() {
  return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

/// Lowers a limit of this process.
void limit(__rlimit_resource which, std::int64_t soft, std::int64_t hard) {
  rlimit now{};
  if (getrlimit(which, &now) != 0)
    return;
  now.rlim_cur = std::min(now.rlim_cur, static_cast<rlim_t>(soft));
  now.rlim_max = std::min(now.rlim_max, static_cast<rlim_t>(hard));
  setrlimit(which, &now);
}

void become_reader(pid_t parent, ReaderLimits const& limits) {
  // The handlers of the program wait for somebody who looks at a flag; nobody does here.
  for (int const signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGXCPU}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && (action.sa_handler != SIG_IGN || signal == SIGALRM || signal == SIGXCPU))
      std::signal(signal, SIG_DFL);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)  // it has ended before
    _exit(1);
  limit(RLIMIT_CORE, 0, 0);
  limit(RLIMIT_CPU, limits.seconds, limits.seconds + 1);
  if (std::int64_t const now = address_space(); now > 0)
    limit(RLIMIT_AS, now + limits.bytes, now + limits.bytes);
  alarm(static_cast<unsigned>(std::min<std::int64_t>(10 * limits.seconds, 1'000'000)));
  if (int const nowhere = ::open("/dev/null", O_WRONLY); nowhere >= 0)
    dup2(nowhere, STDERR_FILENO);  // what a library says as it crashes
}

}  // namespace

ReaderLimits reader_limits(std::int64_t file_bytes) {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  std::int64_t const bytes = std::clamp<std::int64_t>(file_bytes, 0, std::int64_t{1} << 50);
  return {std::min(1024 * mib + 100 * bytes, memory_of_machine()), 20 + 4 * (bytes / mib)};
}

ReaderProcess::ReaderProcess(std::int64_t file_bytes, ReaderLimits limits, std::function<void(int)> const& work)
    : file_bytes_(file_bytes), limits_(limits) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw EnvironmentError(std::string("no pipe to read a file through: ") + std::strerror(errno));
  pid_t const self = getpid();
  process_ = fork();
  if (process_ < 0) {
    int const error = errno;
    close(ends[0]);
    close(ends[1]);
    throw EnvironmentError(std::string("no process to read a file in: ") + std::strerror(error));
  }
  if (process_ == 0) {
    close(ends[0]);
    become_reader(self, limits);
    try {
      work(ends[1]);
    } catch (std::bad_alloc const&) {
      _exit(memory_is_short);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  descriptor_ = ends[0];
}

ReaderProcess::~ReaderProcess() {
  close(descriptor_);
  if (process_ < 0)
    return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ReaderProcess::read(void* data, std::size_t n) {
  constexpr int wait_ms = 100;
  auto* at = static_cast<char*>(data);
  while (n > 0) {
    pollfd input{descriptor_, POLLIN, 0};
    int const ready = poll(&input, 1, wait_ms);  // a read itself would go on after a signal
    if (ready == 0 || (ready < 0 && errno == EINTR)) {
      if (interrupt_requested())
        throw Interrupted();
      continue;
    }
    ssize_t const got = ::read(descriptor_, at, n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    at += got;
    n -= static_cast<std::size_t>(got);
  }
  return true;
}

std::string ReaderProcess::complaint() {
  // Whoever has closed the pipe ends soon; a library may only have lost its descriptors.
  char byte = 0;
  while (read(&byte, 1)) {
  }
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  std::string const size = ", for a file of " + format_bytes(file_bytes_);
  if (WIFEXITED(status)) {
    if (WEXITSTATUS(status) != memory_is_short)
      return WEXITSTATUS(status) == 0 ? "" : "the library that reads such files fails at this one: it is damaged";
    std::string const takes = "reading it takes more than " + format_bytes(limits_.bytes) + " of memory" + size;
    if (limits_.bytes >= memory_of_machine())
      throw OutOfMemoryError("out of memory: " + takes);
    return takes + ": it is damaged";
  }
  switch (WTERMSIG(status)) {
  case SIGXCPU:
  case SIGALRM:
    return "reading it takes more than " + std::to_string(limits_.seconds) + " seconds" + size + ": it is damaged";
  case SIGINT:
  case SIGTERM:
  case SIGHUP:
    if (interrupt_requested())
      throw Interrupted();
    [[fallthrough]];
  case SIGKILL:
    throw EnvironmentError("the process that read the file was ended by signal " + std::to_string(WTERMSIG(status)));
  default:
    return "the library that reads such files fails at this one: it is damaged";
  }
}

void write_answer(int descriptor, void const* data, std::size_t n) {
  auto const* at = static_cast<char const*>(data);
  while (n > 0) {
    ssize_t const written = ::write(descriptor, at, n);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      _exit(1);  // nobody reads any more
    at += written;
    n -= static_cast<std::size_t>(written);
  }
}

}  // namespace poisson
