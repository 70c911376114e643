#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace poisson::output {

/// Whether files, and the names in directories, are brought to disk one by one by what follows here; they are unless somebody says
/// that another one does it for all of them, in this process.
void sync_each_file(bool each) noexcept;

/// Replaces a file atomically: the new one appears under its final name only when `commit` has written every byte, and brought it
/// to disk; the name is on disk after sync_directory. Writers that open files by name (HDF5, FileBuffer) write to temporary_path()
/// in the same directory. Without commit the destructor removes that file.
class AtomicFile {
public:
  /// Creates the temporary file, empty. Throws EnvironmentError when that fails.
  explicit AtomicFile(std::filesystem::path final_path);
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;
  ~AtomicFile();

  [[nodiscard]] std::filesystem::path const& temporary_path() const noexcept { return temporary_; }
  /// Writes at the end of what was written by this before. Throws EnvironmentError.
  void write(std::string_view text);
  /// Syncs, unless others do (sync_each_file), and renames. Throws EnvironmentError naming the final path and the system's reason.
  void commit();

private:
  std::filesystem::path final_, temporary_;
  int descriptor_ = -1;
  bool committed_ = false;
};

/// Brings the names of the files in a directory to disk, as far as its file system does that. Where it does not the files are safe
/// all the same.
void sync_directory(std::filesystem::path const& directory) noexcept;

/// Writes the whole text through an AtomicFile. Throws EnvironmentError.
void write_text_file(std::filesystem::path const& path, std::string_view text);

/// Throws EnvironmentError: "cannot write PATH: REASON", with advice where `error` (an errno value) has a remedy.
[[noreturn]] void throw_write_error(std::filesystem::path const& path, int error);

/// A seekable stream buffer for writing to an existing file. Unlike std::filebuf it keeps the errno of a failed write. Large texts
/// that lie in memory as in_memory tells go to the disk directly, where the file system knows that (O_DIRECT): the system keeps no
/// copy of them, which takes longer to make than to compress, and which a sync would wait for.
class FileBuffer : public std::streambuf {
public:
  static constexpr std::size_t direct_block = 4096;  ///< what is written directly begins and ends at multiples of this
  /// The first place from `memory` on that is as far behind a multiple of direct_block as `position` in a file is.
  [[nodiscard]] static char* in_memory(char* memory, std::int64_t position);

  /// Opens `path` for writing and truncates it. error() tells whether that failed.
  explicit FileBuffer(std::filesystem::path const& path);
  FileBuffer(FileBuffer const&) = delete;
  FileBuffer& operator=(FileBuffer const&) = delete;
  ~FileBuffer() override;

  /// errno of the first failure; 0: none yet.
  [[nodiscard]] int error() const noexcept { return error_; }
  /// Writes the buffer and closes the file; returns error().
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
  bool write_large(char const* data, std::size_t n) noexcept;
  /// Returns how many bytes it has written, directly: less than n where that is not possible.
  std::size_t write_directly(char const* data, std::size_t n, std::int64_t position) noexcept;

  std::filesystem::path path_;
  int descriptor_ = -1;
  int direct_ = -1;  ///< the same file, opened for direct writes when the first one comes
  bool may_be_direct_ = true;
  int error_ = 0;
  std::vector<char> buffer_;
};

}  // namespace poisson::output
