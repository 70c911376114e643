#include "app/io/child_process.hpp"

#include "gpu/core/error.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace poisson::app {

namespace {

constexpr int not_started = 127;  ///< as a shell says it

/// What waits in buffers would be written by the child as well.
void flush_output() {
  std::cout.flush();
  std::cerr.flush();
  static_cast<void>(std::fflush(nullptr));
}

}  // namespace

pid_t start(ChildProcess const& child) {
  int const input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int const log = open(child.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  pid_t const self = getpid();
  flush_output();
  pid_t const process = input < 0 || log < 0 ? -1 : fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self || dup2(input, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
      _exit(not_started);
    close(input);
    close(log);
    for (auto const& [name, value] : child.environment)
      setenv(name.c_str(), value.c_str(), 1);
    int const code = child.body();
    flush_output();
    _exit(code);  // objects of this process, its locks among them, stay as they are
  }
  int const error = errno;
  if (input >= 0)
    close(input);
  if (log >= 0)
    close(log);
  if (process < 0)
    throw EnvironmentError("cannot start a process with the log '" + child.log.string() + "': " + std::strerror(error));
  return process;
}

int counted_by_child(std::function<int()> const& count) {
  int ends[2];
  flush_output();
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw EnvironmentError(std::string("cannot make a pipe: ") + std::strerror(errno));
  pid_t const process = fork();
  if (process == 0) {
    int const found = count();
    bool const written = write(ends[1], &found, sizeof found) == sizeof found;
    _exit(written ? 0 : not_started);
  }
  int const error = errno;
  close(ends[1]);
  int found = 0;
  bool const known = process > 0 && read(ends[0], &found, sizeof found) == sizeof found;
  close(ends[0]);
  if (process < 0)
    throw EnvironmentError(std::string("cannot start a process: ") + std::strerror(error));
  waitpid(process, nullptr, 0);
  return known ? found : 0;
}

}  // namespace poisson::app
