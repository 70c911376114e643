#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace poisson {

/// A file that appears under its final name only when `commit` has put every byte on disk; destroyed without commit it leaves
/// nothing. Writers that need a name of their own (VTK, Cairo) write to temporary_path().
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

}  // namespace poisson
