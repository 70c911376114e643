#pragma once

#include <filesystem>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace poisson::output {

/// A file that appears under its final name only when `commit` has put every byte on disk; destroyed without commit it leaves
/// nothing. Writers that open files by name (VTK, Cairo) write to temporary_path(), which the constructor creates, empty,
/// in the same directory; the constructor throws EnvironmentError when it cannot.
class AtomicFile {
public:
  explicit AtomicFile(std::filesystem::path final_path);
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;
  ~AtomicFile();

  [[nodiscard]] std::filesystem::path const& temporary_path() const noexcept { return temporary_; }
  /// Syncs and renames. Throws EnvironmentError naming the final path and the system's reason.
  void commit();

private:
  std::filesystem::path final_, temporary_;
  bool committed_ = false;
};

/// The whole text at once, through an AtomicFile.
void write_text_file(std::filesystem::path const& path, std::string_view text);

/// Throws EnvironmentError: "cannot write PATH: REASON", with advice where `error` (an errno value) has a remedy.
[[noreturn]] void throw_write_error(std::filesystem::path const& path, int error);

/// A seekable stream buffer over an existing file that remembers why writing failed, unlike std::filebuf.
class FileBuffer : public std::streambuf {
public:
  /// Opens `path` for writing and truncates it. A failure shows in error().
  explicit FileBuffer(std::filesystem::path const& path);
  FileBuffer(FileBuffer const&) = delete;
  FileBuffer& operator=(FileBuffer const&) = delete;
  ~FileBuffer() override;

  /// errno of the first failure; 0: none yet.
  [[nodiscard]] int error() const noexcept { return error_; }
  /// From the first error on what is written goes nowhere, and the stream never fails; close() tells the error. For writers that do
  /// not stand a stream that fails.
  void discard_after_error() noexcept { discard_ = true; }
  /// Writes what is buffered and closes; returns error().
  int close() noexcept;

protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(char const* data, std::streamsize n) override;
  int sync() override;
  pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode which) override;
  pos_type seekpos(pos_type position, std::ios_base::openmode which) override;

private:
  bool flush() noexcept;
  bool write_all(char const* data, std::size_t n) noexcept;

  int descriptor_ = -1;
  int error_ = 0;
  bool discard_ = false;
  std::vector<char> buffer_;
};

}  // namespace poisson::output
