#pragma once

#include <filesystem>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace poisson::app {

/// A program to be started in a process of its own.
struct Program {
  std::string file;
  std::vector<std::string> words;  ///< its name and its arguments
  std::string input;               ///< what it reads from standard input
  std::filesystem::path log;       ///< takes what it writes to standard output and standard error; replaced
  std::vector<std::pair<std::string, std::string>> environment;  ///< beside the variables of this process, or in place of them
  int kept_descriptor = -1;                                      ///< stays open in the program, a lock for example; -1: none
};

/// Starts the program, and returns its process, for which the caller has to wait. It gets SIGTERM when this process ends. Throws
/// EnvironmentError where no process can be made; where the program cannot be started the process ends with code 127.
[[nodiscard]] pid_t start(Program const& program);

}  // namespace poisson::app
