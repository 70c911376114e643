#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// Seconds since construction.
class Timer {
public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Output of a command to the user: stages with their times, lines, tables, and progress (a bar on a terminal, lines elsewhere). It
/// writes to standard output, warnings to standard error. Errors are printed elsewhere (app/launch/exit_code.hpp).
class Console {
public:
  explicit Console(bool quiet, bool verbose = false);
  /// Prints nothing, no warnings either: for ranks that leave that to the first.
  [[nodiscard]] static Console silent();

  /// A finished stage: "  assembly        1.23 s   274 625 unknowns".
  void stage(std::string const& name, double seconds, std::string const& detail);
  void line(std::string const& text = "");
  /// While it is so, stages and the indented lines about them are not printed; with `verbose` they are.
  void leave_out_stages(bool so) { leaves_out_stages_ = so && !verbose_; }
  /// A warning, on standard error; printed with --quiet too.
  void warning(std::string const& text);
  /// Rows of a label and a value, in aligned columns.
  void table(std::vector<std::pair<std::string, std::string>> const& rows);
  /// A table; the first row is the header. Columns of numbers are aligned to the right.
  void grid(std::vector<std::vector<std::string>> const& rows);

  /// Shows what is being done, on a terminal only, until the next output or end_progress.
  void working(std::string const& what);
  /// Progress of an iterative solve towards a relative residual. On a terminal one line is redrawn, elsewhere a line is
  /// printed every few seconds. end_progress removes the bar.
  void progress(std::int64_t iteration, double residual, double tolerance);
  void end_progress();

  [[nodiscard]] bool quiet() const noexcept { return quiet_; }
  /// Whether to print details such as the table of formats.
  [[nodiscard]] bool verbose() const noexcept { return verbose_; }

private:
  bool quiet_, verbose_, silent_ = false;
  bool terminal_;
  bool leaves_out_stages_ = false;
  bool bar_shown_ = false;
  Timer since_start_;
  double last_shown_ = 0;
  double first_log_ = 0;  ///< log10 of the first residual of the current solve
  double solve_start_ = -1;
};

/// "1 234 567"
[[nodiscard]] std::string with_thousands(std::int64_t n);
/// "1.23 GiB"
[[nodiscard]] std::string bytes_text(double bytes);
/// "0.123 s", "12.3 ms", "2 min 05 s"
[[nodiscard]] std::string seconds_text(double seconds);
/// The lines that Console::grid prints.
[[nodiscard]] std::vector<std::string> grid_lines(std::vector<std::vector<std::string>> const& rows);
/// Formats `value` as printf("%.*g") does; "-" for NaN.
[[nodiscard]] std::string number_text(double value, int digits = 3);
/// "12.345 +- 0.0042": two digits of the error, and those of the value that it leaves.
[[nodiscard]] std::string text_with_error(double value, double error);

}  // namespace poisson::app
