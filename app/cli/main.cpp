#include "app/cli/commands.hpp"
#include "app/launch/exit_code.hpp"
#include "gpu/core/memory.hpp"

#include <csignal>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

namespace {

/// OpenBLAS looks for memory again and again as it is loaded, before main: under a limit that leaves it none it never ends. So
/// where there is a limit, its start has this time.
constexpr unsigned seconds_to_start = 10;
bool is_watched = false;
unsigned alarm_before = 0;  ///< of whoever started the program; 0: none

extern "C" void give_up(int) {
  constexpr std::string_view text =
      "poisson: error: a library does not start; the limit on virtual memory (ulimit -v) is too small for it\n";
  static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
  _exit(poisson::app::exit_environment);
}

extern "C" void before_libraries_start(int, char**, char**) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return;
  std::signal(SIGALRM, give_up);
  alarm_before = alarm(seconds_to_start);
  is_watched = true;
}

/// Called before the constructors of all libraries.
__attribute__((section(".preinit_array"), used)) void (*const preinit)(int, char**, char**) = before_libraries_start;

}  // namespace

int main(int argc, char** argv) {
  if (is_watched) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(alarm_before);
  }
  poisson::share_one_heap();
  return poisson::app::run_command_line(argc, argv);
}
