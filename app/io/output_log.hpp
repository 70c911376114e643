#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace poisson::app {

/// Copies what this process writes to std::cout and std::cerr into a file, as long as this object exists. Lines that a terminal
/// redraws are copied as they were last. Nothing is copied where standard output is that file already.
class OutputLog {
public:
  /// Replaces the file. Throws EnvironmentError where it cannot be written.
  explicit OutputLog(std::filesystem::path const& file);
  OutputLog(OutputLog const&) = delete;
  OutputLog& operator=(OutputLog const&) = delete;
  ~OutputLog();

  /// A line for the file alone.
  void line(std::string const& text);

private:
  class Copy;
  std::ofstream log_;
  std::unique_ptr<Copy> out_, err_;  ///< null where nothing is copied
};

}  // namespace poisson::app
