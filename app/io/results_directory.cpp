#include "app/io/results_directory.hpp"

#include "gpu/core/input_file.hpp"
#include "output/files/atomic_file.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

constexpr char const* probe_name = "write-test";
constexpr char const* records[] = {"result.json", "sweep.json"};

bool contains(std::vector<std::string> const& names, std::string const& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether one of the names is this one, or ends in '*' and is its beginning.
bool matches(std::vector<std::string> const& names, std::string const& name) {
  return std::any_of(names.begin(), names.end(), [&](std::string const& n) {
    return n == name || (n.ends_with('*') && name.starts_with(n.substr(0, n.size() - 1)));
  });
}

std::vector<std::string> names_in(fs::path const& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// The files that a record of this program lists, itself included; nothing when it is of somebody else.
std::vector<std::string> files_of_record(fs::path const& record) {
  std::ifstream in = open_regular_file(record);
  auto const contents = nlohmann::json::parse(in, nullptr, false);
  if (!contents.is_object() || !contents.contains("poisson_version"))
    return {};
  std::vector<std::string> names{record.filename().string()};
  if (contents.contains("files") && contents["files"].is_array())
    for (auto const& name : contents["files"])
      if (name.is_string() && fs::path(name.get<std::string>()).filename() == name.get<std::string>())
        names.push_back(name.get<std::string>());
  return names;
}

/// Names of `left_over`, patterns as well, that are there, added to the files of records that are.
std::vector<std::string> earlier_files(fs::path const& folder, std::vector<std::string> const& there,
                                       std::vector<std::string> const& left_over) {
  std::vector<std::string> names;
  for (auto const* record : records)
    if (contains(there, record))
      for (auto const& name : files_of_record(folder / record))
        if (!contains(names, name))
          names.push_back(name);
  for (auto const& name : there)
    if (matches(left_over, name) && !contains(names, name))
      names.push_back(name);
  return names;
}

/// Temporary files (output/files/atomic_file.hpp) of those names, and of try_to_write, which only a process that was killed leaves.
void remove_parts(fs::path const& folder, std::vector<std::string> const& there, std::vector<std::string> const& names) {
  for (auto const& part : there) {
    if (!part.starts_with('.') || !part.ends_with(".part"))
      continue;
    std::string const stem = part.substr(1, part.size() - 6);  // NAME.PROCESS-COUNT
    auto const dot = stem.find_last_of('.');
    if (dot == std::string::npos || stem.find_first_not_of("0123456789-", dot + 1) != std::string::npos)
      continue;
    std::error_code error;
    std::string const name = stem.substr(0, dot);
    if (name == probe_name || matches(names, name))
      fs::remove(folder / part, error);
  }
}

/// Whether a file can be made in the folder: 0, or errno.
int try_to_write(fs::path const& folder) {
  std::string const probe = (folder / ("." + std::string(probe_name) + "." + std::to_string(getpid()) + "-0.part")).string();
  int const file = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return errno;
  close(file);
  unlink(probe.c_str());
  return 0;
}

}  // namespace

std::vector<std::string> files_of_earlier_run(fs::path const& folder) {
  auto const there = names_in(folder);
  if (!contains(there, output::DirectoryLock::file_name))
    return earlier_files(folder, there, {});
  output::DirectoryLock lock(folder);
  auto names = earlier_files(folder, there, lock.left_over());
  lock.release();
  return names;
}

nlohmann::ordered_json json_of(std::vector<ResultsDirectory::Failure> const& failures) {
  auto list = nlohmann::ordered_json::array();
  for (auto const& failure : failures)
    list.push_back({{"file", failure.file}, {"reason", failure.reason}});
  return list;
}

ResultsDirectory::ResultsDirectory(fs::path path, std::string record, std::vector<std::string> names, bool overwrite, bool own)
    : path_(std::move(path)), record_(std::move(record)), names_(std::move(names)) {
  if (!contains(names_, record_))
    names_.push_back(record_);
  std::error_code error;
  if (fs::exists(path_, error) && !fs::is_directory(path_, error))
    throw InputError("output.directory",
                     "'" + path_.string() + "' is there and is not a directory; choose another with --output DIR");
  created_ = fs::create_directories(path_, error);
  if (error)
    throw EnvironmentError("cannot create the results directory '" + path_.string() + "': " + error.message());
  try {
    open(overwrite, own);
  } catch (...) {
    if (lock_ && lock_->left_over().empty())  // what a killed run has left stays known
      lock_->release();
    if (created_)
      fs::remove(path_, error);
    throw;
  }
}

void ResultsDirectory::open(bool overwrite, bool own) {
  std::string const place = "'" + path_.string() + "'";
  lock_.emplace(path_);
  if (!lock_->holder().empty())
    throw InputError("output.directory", place + " is being written to by another run (" + lock_->holder() +
                                             "); wait for its end, or choose another with --output DIR");
  auto const there = names_in(path_);
  auto ours = lock_->left_over();
  if (own)
    ours.insert(ours.end(), names_.begin(), names_.end());
  earlier_ = earlier_files(path_, there, ours);
  for (auto const* earlier : records)
    if (contains(earlier_, earlier) && !overwrite)
      throw InputError("output.directory", place + " holds the results of an earlier run (" + earlier +
                                               "); choose another with --output DIR, or replace them with --overwrite");
  for (auto const& name : there)
    if (matches(names_, name)) {
      if (!contains(earlier_, name))
        throw InputError("output.directory",
                         "'" + (path_ / name).string() +
                             "' is there, and no earlier run of poisson has written it: it is not replaced; move "
                             "it, or choose another directory with --output DIR");
      if (!overwrite)
        throw InputError("output.directory", "'" + (path_ / name).string() +
                                                 "' is of an earlier run that did not end; choose another directory with --output "
                                                 "DIR, or replace it with --overwrite");
    }
  if (int const error = own ? 0 : try_to_write(path_); error != 0)
    throw EnvironmentError("cannot write to the results directory " + place + ": " + std::strerror(error));
  auto known = names_;
  for (auto const& list : {lock_->left_over(), earlier_})
    for (auto const& name : list)
      if (!contains(known, name))
        known.push_back(name);
  if (lock_->held())
    remove_parts(path_, there, known);
  lock_->announce(known);
  written_ = std::chrono::steady_clock::now();
  watch();
}

ResultsDirectory::~ResultsDirectory() {
  if (descriptor_ >= 0)
    close(descriptor_);
  // Files without a record are known as ours by what the lock's file says, so that stays with them.
  if (lock_ && (contains(files_, record_) || (files_.empty() && lock_->left_over().empty())))
    lock_->release();
  std::error_code error;
  if (created_)
    fs::remove(path_, error);  // fails, as it should, when there is something in it
}

void ResultsDirectory::watch() {
  if (descriptor_ >= 0)
    close(descriptor_);
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void ResultsDirectory::ensure_writable() {
  struct stat opened {
  }, now{};
  bool const gone = stat(path_.c_str(), &now) != 0 && (errno == ENOENT || errno == ENOTDIR);
  bool const another =
      !gone && descriptor_ >= 0 && fstat(descriptor_, &opened) == 0 && (opened.st_ino != now.st_ino || opened.st_dev != now.st_dev);
  bool const tried = std::chrono::steady_clock::now() - written_ < std::chrono::seconds(1);
  int error = gone ? ENOENT : another || tried ? 0 : try_to_write(path_);
  if (!another && (error == 0 || error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE))
    return;  // a full disk has room for some files, perhaps, and tells of the others
  std::string const place = "'" + path_.string() + "'";
  std::error_code ignored;
  files_.clear();  // what was written is not where the rest will be
  earlier_.clear();
  lock_.reset();
  if (gone && fs::create_directories(path_, ignored) && try_to_write(path_) == 0) {
    lock_.emplace(path_);
    lock_->announce(names_);
    watch();
    keep(std::make_exception_ptr(EnvironmentError("the results directory " + place +
                                                  " vanished during the run; it was made anew, and the results are there")));
    return;
  }
  auto const temporary = fs::temp_directory_path(ignored);
  std::string rescue = ((ignored ? fs::path("/tmp") : temporary) / "poisson-results-XXXXXX").string();
  std::string const why = gone      ? "it vanished during the run"
                          : another ? "something else has taken its place"
                                    : std::strerror(error);
  if (mkdtemp(rescue.data()) == nullptr) {
    keep(std::make_exception_ptr(EnvironmentError("cannot write to the results directory " + place + ": " + why)));
    return;
  }
  path_ = rescue;
  created_ = true;
  lock_.emplace(path_);
  watch();
  keep(std::make_exception_ptr(
      EnvironmentError("cannot write to the results directory " + place + ": " + why + "; the results are in '" + rescue + "'")));
}

bool ResultsDirectory::write_record(std::string const& text) {
  if (try_write(record_, [&](fs::path const& path) { output::write_text_file(path, text); })) {
    output::sync_directory(path_);
    remove_stale();
    return true;
  }
  std::error_code ignored;
  if (!files_.empty() && contains(earlier_, record_))
    fs::remove(path_ / record_, ignored);
  return false;
}

void ResultsDirectory::require_free(std::string const& name) const {
  if (matches(names_, name) || contains(earlier_, name) || contains(files_, name))
    return;
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path_ / name, ignored)))
    throw EnvironmentError("cannot write '" + (path_ / name).string() +
                           "': it is there, and no earlier run of poisson has written it");
}

void ResultsDirectory::listed(std::string const& name) {
  written_ = std::chrono::steady_clock::now();
  if (!contains(files_, name))
    files_.push_back(name);
}

void ResultsDirectory::failed(std::string const& name, std::string const& reason) {
  failures_.push_back({name, reason});
}

void ResultsDirectory::keep(std::exception_ptr failure) {
  if (!failure_)
    failure_ = std::move(failure);
}

void ResultsDirectory::remove_stale() const {
  std::error_code error;
  for (auto const& name : earlier_)
    if (!contains(files_, name))
      fs::remove(path_ / name, error);
}

}  // namespace poisson::app
