#include "output/files/atomic_file.hpp"

#include "gpu/core/error.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sstream>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace poisson::output {

namespace {

std::atomic<bool> syncs_each_file{true};

}  // namespace

void sync_each_file(bool each) noexcept {
  syncs_each_file = each;
}

void throw_write_error(std::filesystem::path const& path, int error) {
  std::string message = "cannot write '" + path.string() + "': " + std::generic_category().message(error);
  switch (error) {
  case ENOSPC:
  case EDQUOT:
    message += "; free some space there or choose another output.directory";
    break;
  case EFBIG:
    message += "; raise the file size limit (ulimit -f) or choose another output.directory";
    break;
  case EACCES:
  case EPERM:
  case EROFS:
    message += "; choose an output.directory that you may write to";
    break;
  case ENOENT:
    message += "; its directory does not exist (any more)";
    break;
  default:
    break;
  }
  throw EnvironmentError(message);
}

AtomicFile::AtomicFile(std::filesystem::path final_path) : final_(std::move(final_path)) {
  static std::atomic<unsigned> counter{0};
  std::error_code ignored;
  if (std::filesystem::is_directory(final_, ignored))
    throw_write_error(final_, EISDIR);
  // Another file of this name can only be left over from a killed process that had our process id.
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::ostringstream name;
    name << '.' << final_.filename().string() << '.' << std::to_string(::getpid()) << '-' << std::to_string(counter++) << ".part";
    temporary_ = final_.parent_path() / name.str();
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0)
      return;
    if (errno != EEXIST && errno != EINTR)
      throw_write_error(final_, errno);
  }
  throw_write_error(final_, EEXIST);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
  if (!committed_)
    ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view text) {
  while (!text.empty()) {
    auto const written = ::write(descriptor_, text.data(), text.size());
    if (written > 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (written == 0 || errno != EINTR)
      throw_write_error(final_, written == 0 ? ENOSPC : errno);
  }
}

void AtomicFile::commit() {
  // Also of what others have written by the file's name.
  int failed = syncs_each_file && ::fsync(descriptor_) != 0 ? errno : 0;
  if (::close(std::exchange(descriptor_, -1)) != 0 && failed == 0 && errno != EINTR)
    failed = errno;
  if (failed != 0 && failed != EINVAL)  // EINVAL: this file system cannot sync
    throw_write_error(final_, failed);
  if (::rename(temporary_.c_str(), final_.c_str()) != 0)
    throw_write_error(final_, errno);
  committed_ = true;
}

void sync_directory(std::filesystem::path const& directory) noexcept {
  if (!syncs_each_file)
    return;
  int const descriptor = ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

void write_text_file(std::filesystem::path const& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

char* FileBuffer::in_memory(char* memory, std::int64_t position) {
  auto const address = reinterpret_cast<std::uintptr_t>(memory), wanted = static_cast<std::uintptr_t>(position);
  return memory + (wanted - address) % direct_block;
}

FileBuffer::FileBuffer(std::filesystem::path const& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)),
      error_(descriptor_ < 0 ? errno : 0),
      buffer_(1 << 20) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

FileBuffer::~FileBuffer() {
  close();
}

int FileBuffer::close() noexcept {
  if (descriptor_ >= 0) {
    flush();
    if (::close(descriptor_) != 0 && error_ == 0 && errno != EINTR)
      error_ = errno;
    descriptor_ = -1;
  }
  if (direct_ >= 0)
    ::close(direct_);
  direct_ = -1;
  return error_;
}

bool FileBuffer::write_all(char const* data, std::size_t n) noexcept {
  while (n > 0 && error_ == 0) {
    auto const written = ::write(descriptor_, data, n);
    if (written > 0) {
      data += written;
      n -= static_cast<std::size_t>(written);
    } else if (written == 0 || errno != EINTR) {
      error_ = written == 0 ? ENOSPC : errno;
    }
  }
  return error_ == 0;
}

bool FileBuffer::flush() noexcept {
  bool const ok = write_all(pbase(), static_cast<std::size_t>(pptr() - pbase()));
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return ok;
}

FileBuffer::int_type FileBuffer::overflow(int_type c) {
  if (!flush())
    return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

std::streamsize FileBuffer::xsputn(char const* data, std::streamsize n) {
  if (n <= epptr() - pptr())
    return std::streambuf::xsputn(data, n);
  return flush() && write_large(data, static_cast<std::size_t>(n)) ? n : 0;
}

bool FileBuffer::write_large(char const* data, std::size_t n) noexcept {
  auto const position = may_be_direct_ ? ::lseek(descriptor_, 0, SEEK_CUR) : -1;
  if (position < 0)
    return write_all(data, n);
  std::size_t const before = (direct_block - static_cast<std::size_t>(position) % direct_block) % direct_block;
  bool const fits = n >= before + direct_block && reinterpret_cast<std::uintptr_t>(data + before) % direct_block == 0;
  if (!fits)
    return write_all(data, n);
  if (!write_all(data, before))
    return false;
  std::size_t const blocks = (n - before) / direct_block * direct_block;
  std::size_t const done = before + write_directly(data + before, blocks, position + static_cast<std::int64_t>(before));
  return write_all(data + done, n - done);
}

std::size_t FileBuffer::write_directly(char const* data, std::size_t n, std::int64_t position) noexcept {
  if (direct_ < 0)
    direct_ = ::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  std::size_t done = 0;
  while (direct_ >= 0 && done < n) {
    auto const written = ::pwrite(direct_, data + done, n - done, position + static_cast<std::int64_t>(done));
    if (written > 0)
      done += static_cast<std::size_t>(written);
    else if (written == 0 || errno != EINTR)
      break;  // an ordinary write can do it, or tells why not
  }
  may_be_direct_ = done == n;
  if (done > 0 && ::lseek(descriptor_, position + static_cast<std::int64_t>(done), SEEK_SET) < 0)
    error_ = errno;
  return done;
}

int FileBuffer::sync() {
  return flush() ? 0 : -1;
}

FileBuffer::pos_type FileBuffer::seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode) {
  if (error_ != 0)
    return pos_type(off_type(-1));
  if (offset == 0 && from == std::ios_base::cur) {
    auto const here = ::lseek(descriptor_, 0, SEEK_CUR);
    return here < 0 ? pos_type(off_type(-1)) : pos_type(here + (pptr() - pbase()));
  }
  if (!flush())
    return pos_type(off_type(-1));
  int const whence = from == std::ios_base::beg ? SEEK_SET : from == std::ios_base::cur ? SEEK_CUR : SEEK_END;
  return pos_type(off_type(::lseek(descriptor_, offset, whence)));
}

FileBuffer::pos_type FileBuffer::seekpos(pos_type position, std::ios_base::openmode which) {
  return seekoff(off_type(position), std::ios_base::beg, which);
}

}  // namespace poisson::output
