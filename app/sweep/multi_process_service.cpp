#include "app/sweep/multi_process_service.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/find_program.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

constexpr char const* name_of_program = "nvidia-cuda-mps-control";
constexpr char const* pipes = "CUDA_MPS_PIPE_DIRECTORY";
constexpr char const* logs = "CUDA_MPS_LOG_DIRECTORY";
constexpr char const* usual_pipes = "/tmp/nvidia-mps";  ///< where CUDA looks for a service if `pipes` is not set

/// A service that someone else runs has this in the folder of its pipes.
bool is_service(fs::path const& folder) {
  std::error_code ignored;
  return fs::exists(folder / "control", ignored);
}

void pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

/// Runs the program in a process of its own, which reads from `input`.
pid_t run_program(std::string const& program, fs::path const& folder, char const* argument, int input) {
  pid_t const process = fork();
  if (process != 0)
    return process;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (int const signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, SIG_DFL);
  setenv(pipes, folder.c_str(), 1);
  setenv(logs, folder.c_str(), 1);
  unsetenv("CUDA_VISIBLE_DEVICES");  // else it would number the devices anew, and those of jobs are not numbered so
  dup2(input, STDIN_FILENO);
  execl(program.c_str(), name_of_program, argument, nullptr);
  _exit(127);
}

/// Whether the process ends within some seconds.
bool ends(pid_t process, std::chrono::seconds longest) {
  auto const begin = std::chrono::steady_clock::now();
  while (waitpid(process, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() - begin > longest)
      return false;
    pause();
  }
  return true;
}

/// Whether the service that this process has begun answers; false once it has ended, or takes too long.
bool has_started(fs::path const& folder, pid_t service) {
  constexpr std::chrono::seconds longest{5};
  auto const begin = std::chrono::steady_clock::now();
  while (service > 0 && waitpid(service, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() - begin < longest) {
    if (is_service(folder))
      return true;
    pause();
  }
  return false;
}

/// What the process does that keeps the service: starts it, says by a byte whether it is there, waits until nobody needs it, ends
/// it, and removes its folder.
[[noreturn]] void keep_service(std::string const& program, fs::path const& folder, int channel) {
  setpgid(0, 0);  // Ctrl-C is for the jobs, which need the service until they have ended
  for (int const signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, SIG_IGN);
  int const nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int const standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    dup2(nothing, standard);
  constexpr int own = 3;
  if (channel != own)
    dup2(channel, own);
  close_range(own + 1, ~0U, 0);  // locks of the process that started this one, and the other end of the channel
  fcntl(own, F_SETFD, FD_CLOEXEC);
  pid_t const service = run_program(program, folder, "-f", STDIN_FILENO);
  char const is_there = has_started(folder, service) ? 1 : 0;
  char ignored = 0;
  if (send(own, &is_there, 1, MSG_NOSIGNAL) == 1)
    while (read(own, &ignored, 1) < 0 && errno == EINTR) {
    }
  std::array<int, 2> ends_of_pipe{};
  if (is_there != 0 && pipe2(ends_of_pipe.data(), O_CLOEXEC) == 0) {
    constexpr std::string_view quit = "quit -t 1\n";
    static_cast<void>(!write(ends_of_pipe[1], quit.data(), quit.size()));
    close(ends_of_pipe[1]);
    pid_t const command = run_program(program, folder, nullptr, ends_of_pipe[0]);
    if (command > 0 && !ends(command, std::chrono::seconds(5)))
      kill(command, SIGKILL);
  }
  if (service > 0 && !ends(service, std::chrono::seconds(5)))
    kill(service, SIGKILL);
  std::error_code error;
  fs::remove_all(folder, error);
  _exit(0);
}

}  // namespace

MultiProcessService::MultiProcessService(std::function<int()> const& count_devices) {
  char const* const given = std::getenv(pipes);
  if (is_service(given != nullptr ? given : usual_pipes))
    return;
  try {
    std::string const program = find_program(name_of_program);
    if (program.empty())
      throw EnvironmentError(std::string("there is no program ") + name_of_program + " in PATH");
    start(program);
    environment_ = {{pipes, folder_.string()}, {logs, folder_.string()}};
    int const served = counted_by_child([&] {
      for (auto const& [name, value] : environment_)
        setenv(name.c_str(), value.c_str(), 1);
      return count_devices();
    });
    if (served == 0)
      throw EnvironmentError("it serves no device here");
  } catch (EnvironmentError const& error) {
    obstacle_ = error.what();
    environment_.clear();
    end();
  }
}

MultiProcessService::~MultiProcessService() {
  end();
}

void MultiProcessService::start(std::string const& program) {
  std::error_code ignored;
  fs::path const temporary = fs::temp_directory_path(ignored);
  std::string name = ((ignored ? "/tmp" : temporary) / "poisson-mps-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw EnvironmentError("cannot make the folder '" + name + "': " + std::strerror(errno));
  folder_ = name;
  std::array<int, 2> ends_of_channel{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_of_channel.data()) != 0)
    throw EnvironmentError(std::string("cannot make a channel: ") + std::strerror(errno));
  pid_t const process = fork();
  if (process == 0) {
    if (fork() != 0)
      _exit(0);  // so that nobody has to wait for the keeper's end
    keep_service(program, folder_, ends_of_channel[1]);
  }
  int const error = errno;
  close(ends_of_channel[1]);
  channel_ = ends_of_channel[0];
  if (process < 0)
    throw EnvironmentError(std::string("cannot start a process: ") + std::strerror(error));
  waitpid(process, nullptr, 0);
  char is_there = 0;
  while (read(channel_, &is_there, 1) < 0 && errno == EINTR) {
  }
  if (is_there == 0)
    throw EnvironmentError("the program " + program + " does not start");
}

void MultiProcessService::end() {
  if (channel_ >= 0) {
    char const last = 0;  // jobs that outlive this process have copies of the channel
    static_cast<void>(send(channel_, &last, 1, MSG_NOSIGNAL));
    close(std::exchange(channel_, -1));
  } else if (!folder_.empty()) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  folder_.clear();  // else the keeper removes it
}

}  // namespace poisson::app
