#include "assembly/dealii/gmsh_program.hpp"

#include "assembly/mesh/counts.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/find_program.hpp"
#include "gpu/core/interrupt.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace poisson::assembly {
namespace {

/// A file without a name, in memory, that another process may have as well. It goes with the last of them.
class SharedMemoryFile {
public:
  explicit SharedMemoryFile(char const* name) : descriptor_(memfd_create(name, MFD_CLOEXEC)) {
    if (descriptor_ < 0)
      throw EnvironmentError(std::string("cannot make a file in memory: ") + std::strerror(errno));
  }
  SharedMemoryFile(SharedMemoryFile const&) = delete;
  SharedMemoryFile& operator=(SharedMemoryFile const&) = delete;
  ~SharedMemoryFile() { close(descriptor_); }

  [[nodiscard]] int descriptor() const { return descriptor_; }
  void write(std::string_view text) const {
    while (!text.empty()) {
      ssize_t const n = ::write(descriptor_, text.data(), text.size());
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        throw EnvironmentError(std::string("cannot write a file in memory: ") + std::strerror(errno));
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  /// Its last bytes, `most` of them.
  [[nodiscard]] std::string read(std::int64_t most) const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0)
      return {};
    std::int64_t const size = std::min<std::int64_t>(status.st_size, most);
    check_memory(size, "the mesh that gmsh has made");
    std::string content(static_cast<std::size_t>(size), '\0');
    std::size_t done = 0;
    while (done < content.size()) {
      ssize_t const n = pread(descriptor_, content.data() + done, content.size() - done,
                              static_cast<off_t>(status.st_size - size + static_cast<std::int64_t>(done)));
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        break;
      done += static_cast<std::size_t>(n);
    }
    content.resize(done);
    return content;
  }

private:
  int descriptor_;
};

/// Its name in a process that has it as this descriptor.
std::string name_of_descriptor(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

/// Without what colours a terminal, and on one line; the end of a long text.
std::string one_line(std::string const& text) {
  constexpr std::size_t most = 1000;
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
      continue;
    }
    char const c = std::iscntrl(static_cast<unsigned char>(text[i])) != 0 ? ' ' : text[i];
    if (c != ' ' || (!line.empty() && line.back() != ' '))
      line += c;
  }
  while (line.ends_with(' '))
    line.pop_back();
  return line.size() > most ? "... " + line.substr(line.size() - most) : line;
}

/// A process and all that it starts, which is its group. It is ended with this object.
class ProcessGroup {
public:
  /// Starts a program. Descriptors 3, 4, ... of it are `shared`; it reads nothing, and writes to `output`.
  ProcessGroup(std::string const& program, std::vector<std::string> const& arguments, std::vector<std::string> const& environment,
               std::vector<int> const& shared, int output) {
    auto const pointers = [](std::vector<std::string> const& texts) {
      std::vector<char*> list;
      for (std::string const& text : texts)
        list.push_back(const_cast<char*>(text.c_str()));
      list.push_back(nullptr);
      return list;
    };
    std::vector<char*> const argv = pointers(arguments), envp = pointers(environment);
    // Other threads may hold locks: between fork and exec there is nothing but system calls.
    int const input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int const first_copy = 3 + static_cast<int>(shared.size());
    std::vector<int> copies(shared.size() + 1, -1);
    pid_t const self = getpid();
    auto const physical = static_cast<rlim_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
    process_ = fork();
    if (process_ == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self)
        _exit(not_started);
      for (int const signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGPIPE})
        std::signal(signal, SIG_DFL);
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      rlimit const no_core{0, 0}, files{physical / 2, physical / 2};  // what it writes is in memory
      setrlimit(RLIMIT_CORE, &no_core);
      setrlimit(RLIMIT_FSIZE, &files);
      bool good = dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0;
      // Descriptors may stand where others go: all are copied to places above first.
      for (std::size_t i = 0; good && i < shared.size(); ++i)
        good = (copies[i] = fcntl(shared[i], F_DUPFD_CLOEXEC, first_copy)) >= 0;
      for (std::size_t i = 0; good && i < shared.size(); ++i)
        good = dup2(copies[i], 3 + static_cast<int>(i)) >= 0;
      if (good)
        execve(program.c_str(), argv.data(), envp.data());
      _exit(not_started);
    }
    int const error = errno;
    if (input >= 0)
      close(input);
    if (process_ < 0)
      throw EnvironmentError("no process to run " + program + " in: " + std::strerror(error));
    setpgid(process_, process_);  // whoever comes first
  }
  ProcessGroup(ProcessGroup const&) = delete;
  ProcessGroup& operator=(ProcessGroup const&) = delete;
  ~ProcessGroup() {
    kill(-process_, SIGKILL);  // its number is not free before it was waited for
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  /// Whether it has ended; then its exit code, or the signal that ended it.
  [[nodiscard]] bool has_ended(int& exit_code, int& signal) const {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != process_)
      return false;
    (info.si_code == CLD_EXITED ? exit_code : signal) = info.si_status;
    return true;
  }

  static constexpr int not_started = 127;  ///< exit code, as a shell says it

private:
  pid_t process_ = -1;
};

}  // namespace

GmshAnswer run_gmsh(std::string const& script, double seconds) {
  std::string const program = find_program("gmsh");
  if (program.empty())
    throw EnvironmentError("there is no program 'gmsh' in PATH, which makes the meshes of drawings (.step, .brep, .geo); Debian's "
                           "package gmsh has it");
  SharedMemoryFile const input("poisson-script"), mesh("poisson-mesh"), messages("poisson-messages");
  input.write(script);
  // What mpirun tells this process is not meant for gmsh, and a user's settings would change meshes.
  std::vector<std::string> environment{"HOME=/nonexistent", "LC_ALL=C"};
  for (char const* const name : {"PATH", "LD_LIBRARY_PATH", "TMPDIR"})
    if (char const* const value = std::getenv(name); value != nullptr)
      environment.push_back(std::string(name) + "=" + value);
  std::vector<std::string> const arguments{
      "gmsh", name_of_descriptor(3), "-3", "-o", name_of_descriptor(4), "-format", "msh41", "-bin", "-nt", "1", "-v", "2"};
  GmshAnswer answer;
  int signal = 0;
  {
    ProcessGroup const gmsh(program, arguments, environment, {input.descriptor(), mesh.descriptor()}, messages.descriptor());
    auto const start = std::chrono::steady_clock::now();
    auto pause = std::chrono::milliseconds(1);
    while (!gmsh.has_ended(answer.exit_code, signal)) {
      if (interrupt_requested())
        throw Interrupted();
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) {
        std::ostringstream text;
        text << "was not ready after " << seconds << " s (problem.mesh.time_limit)";
        answer.ended = text.str();
        break;
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::milliseconds(50));
    }
  }
  constexpr std::int64_t most_messages = 20'000;
  answer.messages = one_line(messages.read(most_messages));
  if (!answer.ended.empty())
    return answer;
  if (signal != 0) {
    answer.ended = "was ended by signal " + std::to_string(signal);
    return answer;
  }
  if (answer.exit_code == ProcessGroup::not_started && answer.messages.empty())
    throw EnvironmentError("the program " + program + " cannot be started");
  answer.mesh = mesh.read(std::int64_t{1} << 50);
  return answer;
}

}  // namespace poisson::assembly
