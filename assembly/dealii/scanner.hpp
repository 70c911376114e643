#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The scanner that the readers of mesh files share.
namespace poisson::assembly {

/// Throws the InputError for a mesh file, with its path and line; `line` 0: the file as a whole.
[[noreturn]] void fail_in_mesh_file(std::string const& path, std::int64_t line, std::string const& message);

/// Throws InputError where there is no regular file of this name.
void require_mesh_file(std::string const& path);

/// The text of a mesh file, read word by word or line by line. It counts lines from 1; numbers do not depend on the locale.
/// Parts of it may be binary: from the first of them on there are no lines, and line() is 0.
class MeshText {
public:
  MeshText(std::string path, std::string content) : path_(std::move(path)), content_(std::move(content)), rest_(content_) {}
  MeshText(MeshText const&) = delete;
  MeshText& operator=(MeshText const&) = delete;

  [[noreturn]] void fail(std::string const& message) const { fail_in_mesh_file(path_, line(), message); }
  [[noreturn]] void fail_at(std::int64_t line, std::string const& message) const { fail_in_mesh_file(path_, line, message); }

  [[nodiscard]] std::int64_t line() const noexcept { return binary_ ? 0 : line_; }
  /// Reads the next word; empty at the end of the file.
  std::string_view word();
  /// The next word that is in no comment. A comment goes from # to the end of the line.
  std::string_view word_before_comment();
  /// The next word, which is not consumed.
  [[nodiscard]] std::string_view peek_word();
  /// Reads the next word as a number. Throws InputError when it is none; `what` names the quantity in the message.
  std::int64_t integer(char const* what);
  double real(char const* what);
  /// A non-negative integer.
  std::int64_t count(char const* what);
  /// Reads the rest of the current line if words were read from it, else the next line; trimmed. False at the end of the file.
  bool next_line(std::string_view& text);
  /// Whether the last line has its end. If not, and nothing else in the file says that it is complete, it may have been cut off.
  [[nodiscard]] bool has_last_end_of_line() const noexcept { return content_.ends_with('\n'); }
  static constexpr char const* note_of_cut_line =
      "the last line has no end: if the file was cut off there, its mesh is not complete";
  /// What next_line() would give, which is not consumed; empty at the end of the file.
  [[nodiscard]] std::string_view peek_line();
  /// Passes over the end of a line, the next character, if it is there.
  void end_of_line();
  /// The next `count` items of `size` bytes each. Throws InputError when the file ends before.
  std::string_view bytes(std::int64_t count, std::int64_t size, char const* what);
  /// Must be called where a library reads the content: line() is then 0.
  void has_no_lines() noexcept { binary_ = true; }
  /// Goes to where `mark` is found next, which is read next. False without it: then nothing is left to read.
  bool go_to(std::string_view mark);

  [[nodiscard]] std::string const& path() const noexcept { return path_; }
  /// All of the file.
  [[nodiscard]] std::string_view content() const noexcept { return content_; }

  std::int64_t to_integer(std::string_view word, char const* what) const;
  double to_real(std::string_view word, char const* what) const;
  /// The value. Throws InputError when it is infinite, not a number, or beyond 1e100.
  double finite(double value, char const* what) const;

private:
  std::string path_;
  std::string content_;
  std::string_view rest_;
  std::int64_t line_ = 1;
  bool binary_ = false;
  bool line_taken_ = false;  ///< next_line() gave line `line_`, and rest_ stands at its end
};

/// Puts a text in quotes for a message. Long texts are cut.
[[nodiscard]] std::string in_quotes(std::string_view text);
[[nodiscard]] std::string upper(std::string_view text);
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);

}  // namespace poisson::assembly
