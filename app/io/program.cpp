#include "app/io/program.hpp"

#include "gpu/core/error.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace poisson::app {

namespace {

constexpr int not_started = 127;  ///< as a shell says it
constexpr int interrupt_signals[] = {SIGINT, SIGTERM, SIGHUP};

/// The variables "NAME=value" of this process, with `changes`.
std::vector<std::string> environment_with(std::vector<std::pair<std::string, std::string>> const& changes) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::none_of(changes.begin(), changes.end(),
                     [&](auto const& change) { return std::string_view(*variable).starts_with(change.first + "="); }))
      variables.emplace_back(*variable);
  for (auto const& [name, value] : changes)
    variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// A file in memory that holds `text`, to be read from its beginning.
int file_with(std::string const& text) {
  int const file = memfd_create("input", MFD_CLOEXEC);
  bool const written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && lseek(file, 0, SEEK_SET) == 0;
  if (!written && file >= 0)
    close(file);
  return written ? file : -1;
}

}  // namespace

pid_t start(Program const& program) {
  // All memory is taken before the fork: another thread may hold the allocator's lock at that moment.
  auto words = program.words, variables = environment_with(program.environment);
  auto const word_pointers = pointers_to(words), variable_pointers = pointers_to(variables);
  int const input = file_with(program.input);
  int const log = open(program.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  pid_t const self = getpid();
  // A signal that came between fork and execve would be taken by a handler of this process, and forgotten.
  sigset_t interrupts, before;
  sigemptyset(&interrupts);
  for (int const signal : interrupt_signals)
    sigaddset(&interrupts, signal);
  pthread_sigmask(SIG_BLOCK, &interrupts, &before);
  pid_t const process = input < 0 || log < 0 ? -1 : fork();
  if (process == 0) {
    for (int const signal : interrupt_signals) {
      struct sigaction action {};
      if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
        std::signal(signal, SIG_DFL);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self || dup2(input, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
      _exit(not_started);
    if (program.kept_descriptor >= 0)
      fcntl(program.kept_descriptor, F_SETFD, 0);
    execve(program.file.c_str(), word_pointers.data(), variable_pointers.data());
    _exit(not_started);
  }
  int const error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (input >= 0)
    close(input);
  if (log >= 0)
    close(log);
  if (process < 0)
    throw EnvironmentError("cannot start a process with the log '" + program.log.string() + "': " + std::strerror(error));
  return process;
}

}  // namespace poisson::app
