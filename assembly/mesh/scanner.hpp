#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the readers of mesh files share to take text apart.
namespace poisson::assembly {

/// Throws the InputError for a mesh file. `line` 0: the file as a whole.
[[noreturn]] void fail_in_mesh_file(std::string const& path, std::int64_t line, std::string const& message);

/// Text of a mesh file, taken word by word or line by line; knows its line numbers and no locale.
class MeshText {
public:
  MeshText(std::string path, std::string content) : path_(std::move(path)), content_(std::move(content)), rest_(content_) {}
  MeshText(MeshText const&) = delete;
  MeshText& operator=(MeshText const&) = delete;

  [[noreturn]] void fail(std::string const& message) const { fail_in_mesh_file(path_, line_, message); }
  [[noreturn]] void fail_at(std::int64_t line, std::string const& message) const { fail_in_mesh_file(path_, line, message); }

  [[nodiscard]] std::int64_t line() const noexcept { return line_; }
  /// The next word, or an empty one at the end of the file.
  std::string_view word();
  [[nodiscard]] std::string_view peek_word();
  /// The next word as a number; `what` it stands for goes into the message when it is none.
  std::int64_t integer(char const* what);
  double real(char const* what);
  /// An integer that is not negative.
  std::int64_t count(char const* what);
  /// The rest of the current line when words were taken from it, else the next line; without surrounding blanks. False at the end.
  bool next_line(std::string_view& text);

  std::int64_t to_integer(std::string_view word, char const* what) const;
  double to_real(std::string_view word, char const* what) const;

private:
  std::string path_;
  std::string content_;
  std::string_view rest_;
  std::int64_t line_ = 1;
  bool line_taken_ = false;  ///< next_line() gave line `line_`, and rest_ stands at its end
};

/// For messages; long texts are cut.
[[nodiscard]] std::string in_quotes(std::string_view text);
[[nodiscard]] std::string upper(std::string_view text);
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);

}  // namespace poisson::assembly
