#include "app/io/output_log.hpp"

#include "gpu/core/error.hpp"

#include <iostream>
#include <streambuf>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace poisson::app {

namespace {

constexpr std::string_view clear_line = "\033[K";  ///< Console has it behind the '\r' that begins a line anew

}  // namespace

/// Takes the place of a stream's buffer.
class OutputLog::Copy : public std::streambuf {
public:
  Copy(std::ostream& stream, std::ofstream& log) : stream_(stream), original_(stream.rdbuf()), log_(log) { stream.rdbuf(this); }
  Copy(Copy const&) = delete;
  Copy& operator=(Copy const&) = delete;
  ~Copy() override {
    stream_.rdbuf(original_);
    end_line();
  }

protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof()))
      return traits_type::not_eof(c);
    char const letter = traits_type::to_char_type(c);
    if (letter == '\r')
      line_.clear();
    else
      line_ += letter;
    if (letter == '\n')
      end_line();
    return original_->sputc(letter);
  }
  int sync() override { return original_->pubsync(); }

private:
  void end_line() {
    log_ << (line_.starts_with(clear_line) ? line_.substr(clear_line.size()) : line_) << std::flush;
    line_.clear();
  }

  std::ostream& stream_;
  std::streambuf* original_;
  std::ofstream& log_;
  std::string line_;
};

OutputLog::OutputLog(std::filesystem::path const& file) {
  struct stat out {
  }, log{};
  if (fstat(STDOUT_FILENO, &out) == 0 && stat(file.c_str(), &log) == 0 && out.st_dev == log.st_dev && out.st_ino == log.st_ino)
    return;
  log_.open(file);
  if (!log_)
    throw EnvironmentError("cannot write '" + file.string() + "'");
  out_ = std::make_unique<Copy>(std::cout, log_);
  err_ = std::make_unique<Copy>(std::cerr, log_);
}

OutputLog::~OutputLog() = default;

void OutputLog::line(std::string const& text) {
  (out_ ? static_cast<std::ostream&>(log_) : std::cout) << text << std::endl;
}

}  // namespace poisson::app
