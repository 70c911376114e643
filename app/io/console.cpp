#include "app/io/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

namespace poisson::app {

namespace {

/// Characters shown, not bytes: labels may hold UTF-8.
std::size_t width(std::string const& s) {
  return static_cast<std::size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string pad(std::string const& s, std::size_t n, bool right) {
  std::string const space(n > width(s) ? n - width(s) : 0, ' ');
  return right ? space + s : s + space;
}

bool looks_like_number(std::string const& s) {
  return !s.empty() && s.find_first_not_of("0123456789+-.eE %x") == std::string::npos;
}

int terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

template <class... Args>
std::string format(char const* pattern, Args... args) {
  char buffer[256];
  int const n = std::snprintf(buffer, sizeof buffer, pattern, args...);
  return {buffer, static_cast<std::size_t>(std::clamp(n, 0, static_cast<int>(sizeof buffer) - 1))};
}

}  // namespace

std::string with_thousands(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3)
    digits.insert(static_cast<std::size_t>(i), " ");
  return digits;
}

std::string bytes_text(double bytes) {
  char const* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t i = 0;
  for (; std::abs(bytes) >= 1024 && i + 1 < std::size(units); ++i)
    bytes /= 1024;
  return i == 0 ? format("%.0f %s", bytes, units[i]) : format("%.3g %s", bytes, units[i]);
}

std::string seconds_text(double seconds) {
  if (seconds >= 3600)
    return format("%d h %02d min", static_cast<int>(seconds / 3600), static_cast<int>(std::fmod(seconds, 3600) / 60));
  if (seconds >= 100)
    return format("%d min %02d s", static_cast<int>(seconds / 60), static_cast<int>(std::fmod(seconds, 60)));
  if (seconds >= 0.0995)
    return format("%.3g s", seconds);
  return format("%.3g ms", 1e3 * seconds);
}

std::string number_text(double value, int digits) {
  return std::isnan(value) ? "-" : format("%.*g", digits, value);
}

std::string text_with_error(double value, double error) {
  int digits = 6;
  if (error > 0 && value != 0)
    digits = std::clamp(static_cast<int>(std::floor(std::log10(std::abs(value))) - std::floor(std::log10(error))) + 2, 2, 12);
  return number_text(value, digits) + " +- " + number_text(error, 2);
}

std::vector<std::string> grid_lines(std::vector<std::vector<std::string>> const& rows) {
  std::vector<std::string> lines;
  if (rows.empty())
    return lines;
  std::size_t const n = rows.front().size();
  std::vector<std::size_t> widths(n, 0);
  std::vector<bool> numeric(n, true);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < n; ++c) {
      widths[c] = std::max(widths[c], width(rows[r][c]));
      if (r > 0 && rows[r][c] != "-" && rows[r][c] != "never" && !looks_like_number(rows[r][c]))
        numeric[c] = false;
    }
  for (auto const& row : rows) {
    std::string text = " ";
    for (std::size_t c = 0; c < n; ++c)
      text += " " + pad(row[c], widths[c], numeric[c]) + " ";
    text.erase(text.find_last_not_of(' ') + 1);
    lines.push_back(std::move(text));
  }
  return lines;
}

Console::Console(bool quiet, bool verbose) : quiet_(quiet), verbose_(verbose && !quiet), terminal_(isatty(STDOUT_FILENO) != 0) {}

void Console::stage(std::string const& name, double seconds, std::string const& detail) {
  if (quiet_ || leaves_out_stages_)
    return;
  end_progress();
  std::cout << "  " << pad(name, 10, false) << pad(seconds_text(seconds), 10, true) << (detail.empty() ? "" : "   ") << detail
            << std::endl;
}

void Console::line(std::string const& text) {
  if (quiet_ || (leaves_out_stages_ && text.starts_with("    ")))
    return;
  end_progress();
  std::cout << text << std::endl;
}

Console Console::silent() {
  Console console(true);
  console.silent_ = true;
  return console;
}

void Console::warning(std::string const& text) {
  if (silent_)
    return;
  end_progress();
  std::cerr << "poisson: warning: " << text << std::endl;
}

void Console::table(std::vector<std::pair<std::string, std::string>> const& rows) {
  if (quiet_)
    return;
  std::size_t label = 0;
  for (auto const& [name, value] : rows)
    label = std::max(label, width(name));
  for (auto const& [name, value] : rows)
    std::cout << "  " << pad(name, label, false) << "   " << value << "\n";
  std::cout << std::flush;
}

void Console::grid(std::vector<std::vector<std::string>> const& rows) {
  if (quiet_)
    return;
  for (std::string const& line : grid_lines(rows))
    std::cout << line << "\n";
  std::cout << std::flush;
}

void Console::working(std::string const& what) {
  if (quiet_ || !terminal_)
    return;
  std::cout << "\r\033[K  " << what.substr(0, static_cast<std::size_t>(std::max(terminal_columns() - 8, 10))) << " ..."
            << std::flush;
  bar_shown_ = true;
}

void Console::progress(std::int64_t iteration, double residual, double tolerance) {
  if (quiet_)
    return;
  double const now = since_start_.seconds();
  if (solve_start_ < 0) {
    solve_start_ = now;
    last_shown_ = now;
    first_log_ = residual > 0 ? std::log10(residual) : 0;
    return;
  }
  if (now - last_shown_ < (terminal_ ? 0.1 : 5.0))
    return;
  last_shown_ = now;

  double const elapsed = now - solve_start_;
  double const target = std::log10(tolerance);
  double const done = residual > 0 ? std::clamp((first_log_ - std::log10(residual)) / (first_log_ - target), 0.0, 1.0) : 1.0;
  std::string text = format("iteration %lld   residual %.2e   %.3g it/s", static_cast<long long>(iteration), residual,
                            static_cast<double>(iteration) / std::max(elapsed, 1e-9));
  if (done > 0.02)
    text += "   " + seconds_text(elapsed * (1 - done) / done) + " left";
  if (!terminal_) {
    std::cout << "    " << text << std::endl;
    return;
  }
  int const bar = std::clamp(terminal_columns() - static_cast<int>(text.size()) - 8, 0, 40);
  auto const filled = static_cast<std::size_t>(done * bar);
  std::cout << "\r\033[K  ";
  if (bar >= 8)
    std::cout << "[" << std::string(filled, '=') << std::string(static_cast<std::size_t>(bar) - filled, ' ') << "] ";
  std::cout << text.substr(0, static_cast<std::size_t>(std::max(terminal_columns() - 4, 10))) << std::flush;
  bar_shown_ = true;
}

void Console::end_progress() {
  if (bar_shown_)
    std::cout << "\r\033[K" << std::flush;
  bar_shown_ = false;
  solve_start_ = -1;
}

}  // namespace poisson::app
