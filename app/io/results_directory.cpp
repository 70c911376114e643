#include "app/io/results_directory.hpp"

#include "gpu/core/error.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> files_of(fs::path const& record) {
  std::ifstream in(record);
  auto const json = nlohmann::json::parse(in, nullptr, false);
  std::vector<std::string> names;
  if (json.is_object() && json.contains("files") && json["files"].is_array())
    for (auto const& name : json["files"])
      if (name.is_string())
        names.push_back(name.get<std::string>());
  return names;
}

}  // namespace

ResultsDirectory::ResultsDirectory(fs::path path, std::string const& record, bool overwrite) : path_(std::move(path)) {
  std::error_code error;
  if (fs::exists(path_, error) && !fs::is_directory(path_, error))
    throw EnvironmentError("cannot write results to '" + path_.string() + "': it is not a directory");
  for (auto const* earlier : {"result.json", "sweep.json"})
    if (fs::exists(path_ / earlier, error)) {
      if (!overwrite)
        throw InputError("output.directory", "'" + path_.string() + "' holds the results of an earlier run (" + earlier +
                                                 "); choose another with --output DIR, or replace them with --overwrite");
      if (earlier == record)
        earlier_ = files_of(path_ / earlier);
    }
  created_ = fs::create_directories(path_, error);
  if (error)
    throw EnvironmentError("cannot create the results directory '" + path_.string() + "': " + error.message());
  std::string probe = (path_ / ".write-test-XXXXXX").string();
  int const file = mkstemp(probe.data());
  if (file < 0)
    throw EnvironmentError("cannot write to the results directory '" + path_.string() + "': " + std::strerror(errno));
  close(file);
  unlink(probe.c_str());
}

ResultsDirectory::~ResultsDirectory() {
  std::error_code error;
  if (created_)
    fs::remove(path_, error);  // fails, as it should, when there is something in it
}

void ResultsDirectory::listed(std::string const& name) {
  if (std::find(files_.begin(), files_.end(), name) == files_.end())
    files_.push_back(name);
}

void ResultsDirectory::remove_stale() const {
  for (auto const& name : earlier_)
    if (fs::path(name).filename() == name && std::find(files_.begin(), files_.end(), name) == files_.end()) {
      std::error_code error;
      fs::remove(path_ / name, error);
    }
}

}  // namespace poisson::app
