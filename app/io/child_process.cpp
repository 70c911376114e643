#include "app/io/child_process.hpp"

#include "gpu/core/error.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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

/// Reads a message from a socket; false where there is none, and will be none.
template <class T>
bool receive(int channel, T& message) {
  ssize_t size = -1;
  do
    size = recv(channel, &message, sizeof message, 0);
  while (size < 0 && errno == EINTR);
  return size == sizeof message;
}

/// What a worker's process does; returns its exit code.
int work_on(Worker::Work const& work, int channel) {
  for (std::size_t task = 0; receive(channel, task);) {
    int const code = work.task(task);
    flush_output();
    if (!work.goes_on(code))
      return code;
    if (send(channel, &code, sizeof code, MSG_NOSIGNAL) != sizeof code)
      return code;
  }
  return 0;
}

}  // namespace

Worker::Worker(Work const& work) {
  int ends[2] = {-1, -1};
  int const input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  pid_t const self = getpid();
  flush_output();
  if (input >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0)
    process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self || dup2(input, STDIN_FILENO) < 0)
      _exit(not_started);
    close(input);
    close(ends[0]);
    for (auto const& [name, value] : work.environment)
      setenv(name.c_str(), value.c_str(), 1);
    _exit(work_on(work, ends[1]));  // objects of this process, its locks among them, stay as they are
  }
  int const error = errno;
  channel_ = ends[0];
  for (int const descriptor : {input, ends[1]})
    if (descriptor >= 0)
      close(descriptor);
  if (process_ < 0) {
    if (channel_ >= 0)
      close(channel_);
    throw EnvironmentError(std::string("cannot start a process: ") + std::strerror(error));
  }
}

Worker::~Worker() {
  if (channel_ >= 0) {
    shutdown(channel_, SHUT_RDWR);  // workers that were made later have copies of this end
    close(channel_);
  }
  while (process_ > 0 && waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Worker::begin(std::size_t task) {
  return channel_ >= 0 && ::send(channel_, &task, sizeof task, MSG_NOSIGNAL) == sizeof task;
}

std::optional<TaskEnd> Worker::ended() {
  TaskEnd end{.code = 0, .signal = 0, .goes_on = true};
  if (channel_ >= 0) {
    ssize_t const size = recv(channel_, &end.code, sizeof end.code, MSG_DONTWAIT);
    if (size == sizeof end.code)
      return end;
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
      close(channel_);
      channel_ = -1;
    }
  }
  int state = 0;
  if (process_ < 0 || waitpid(process_, &state, WNOHANG) != process_)
    return {};
  process_ = -1;
  end.goes_on = false;
  end.code = WIFEXITED(state) ? WEXITSTATUS(state) : 0;
  end.signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
  return end;
}

void Worker::send(int signal) const noexcept {
  if (process_ > 0)
    kill(process_, signal);
}

void Worker::wait_for(std::span<Worker* const> workers, std::chrono::milliseconds longest) {
  std::vector<pollfd> channels;
  for (Worker const* const worker : workers)
    if (worker->channel_ >= 0)  // the end of a process whose end of the channel is closed comes by itself, and soon
      channels.push_back({worker->channel_, POLLIN, 0});
  static_cast<void>(poll(channels.data(), channels.size(), static_cast<int>(longest.count())));
}

void write_output_to(std::filesystem::path const& file) {
  flush_output();
  int const log = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool const taken = log >= 0 && dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0;
  int const error = errno;
  if (log >= 0)
    close(log);
  if (!taken)
    throw EnvironmentError("cannot write the log '" + file.string() + "': " + std::strerror(error));
  std::cout.clear();  // an error was of the file before
  std::cerr.clear();
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
