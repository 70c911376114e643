#include "app/io/matrix_market_writer.hpp"

#include "app/io/matrix_market.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "output/files/atomic_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

using GzipFile = std::unique_ptr<std::remove_pointer_t<gzFile>, int (*)(gzFile)>;

/// Text that is written a block at a time to a file that appears when it is complete.
class TextFile {
public:
  explicit TextFile(fs::path const& path) : path_(path), file_(path), gzip_(nullptr, &gzclose) {
    if (path.extension() != ".gz") {
      plain_.emplace(file_.temporary_path());
      return;
    }
    errno = 0;
    gzip_.reset(gzopen(file_.temporary_path().c_str(), "wb1"));  // digits hardly get shorter by more effort
    if (!gzip_)
      output::throw_write_error(path_, errno != 0 ? errno : ENOMEM);
  }

  /// Where the next text goes; calls flush_if_long after some of it.
  std::string text;
  void flush_if_long() {
    if (text.size() >= block)
      flush();
  }
  void commit() {
    flush();
    errno = 0;
    int const error = plain_ ? plain_->close() : gzclose(gzip_.release()) == Z_OK ? 0 : errno != 0 ? errno : EIO;
    if (error != 0)
      output::throw_write_error(path_, error);
    file_.commit();
  }

private:
  static constexpr std::size_t block = std::size_t{1} << 20;

  void flush() {
    if (interrupt_requested())
      throw Interrupted();
    if (plain_)
      plain_->sputn(text.data(), static_cast<std::streamsize>(text.size()));
    errno = 0;
    bool const failed =
        plain_ ? plain_->error() != 0 : !text.empty() && gzwrite(gzip_.get(), text.data(), static_cast<unsigned>(text.size())) <= 0;
    if (failed)
      output::throw_write_error(path_, plain_ ? plain_->error() : errno != 0 ? errno : EIO);
    text.clear();
  }

  fs::path path_;
  output::AtomicFile file_;
  std::optional<output::FileBuffer> plain_;
  GzipFile gzip_;
};

void append(std::string& text, std::int64_t number) {
  std::array<char, 24> word;
  text.append(word.data(), std::to_chars(word.data(), word.data() + word.size(), number).ptr);
}

}  // namespace

class SymmetricMatrixMarketFile::Text : public TextFile {
public:
  using TextFile::TextFile;
};

SymmetricMatrixMarketFile::SymmetricMatrixMarketFile(fs::path const& path, std::int64_t n, std::int64_t n_entries,
                                                     std::string const& comment)
    : file_(std::make_unique<Text>(path)) {
  file_->text = "%%MatrixMarket matrix coordinate real symmetric\n% " + comment + "\n" + std::to_string(n) + " " +
                std::to_string(n) + " " + std::to_string(n_entries) + "\n";
}

SymmetricMatrixMarketFile::~SymmetricMatrixMarketFile() = default;

void SymmetricMatrixMarketFile::add(std::int64_t row, std::int64_t column, double value) {
  append(file_->text, row + 1);
  file_->text += ' ';
  append(file_->text, column + 1);
  file_->text += ' ';
  append_matrix_market_values(file_->text, {&value, 1});
  file_->flush_if_long();
}

void SymmetricMatrixMarketFile::commit() {
  file_->commit();
}

void write_symmetric_matrix_market(fs::path const& path, CsrMatrix const& matrix, std::string const& comment) {
  auto const in_row = [&](std::int64_t row, auto&& take) {  // columns ascend
    auto const end = static_cast<std::size_t>(matrix.row_ptr[static_cast<std::size_t>(row) + 1]);
    for (auto k = static_cast<std::size_t>(matrix.row_ptr[static_cast<std::size_t>(row)]); k < end && matrix.columns[k] <= row; ++k)
      take(k);
  };
  std::int64_t n_entries = 0;
  for (std::int64_t row = 0; row < matrix.n_rows; ++row)
    in_row(row, [&](std::size_t) { ++n_entries; });
  SymmetricMatrixMarketFile file(path, matrix.n_rows, n_entries, comment);
  for (std::int64_t row = 0; row < matrix.n_rows; ++row)
    in_row(row, [&](std::size_t k) { file.add(row, matrix.columns[k], matrix.values[k]); });
  file.commit();
}

class MatrixMarketVectorFile::Text : public TextFile {
public:
  using TextFile::TextFile;
};

MatrixMarketVectorFile::MatrixMarketVectorFile(fs::path const& path, std::int64_t n, std::string const& comment)
    : file_(std::make_unique<Text>(path)) {
  file_->text = matrix_market_array_header(n, 1);
  file_->text.insert(file_->text.find('\n') + 1, "% " + comment + "\n");
}

MatrixMarketVectorFile::~MatrixMarketVectorFile() = default;

void MatrixMarketVectorFile::add(std::span<double const> values) {
  constexpr std::size_t at_a_time = 4096;
  for (std::size_t i = 0; i < values.size(); i += at_a_time) {
    append_matrix_market_values(file_->text, values.subspan(i, std::min(at_a_time, values.size() - i)));
    file_->flush_if_long();
  }
}

void MatrixMarketVectorFile::commit() {
  file_->commit();
}

void write_matrix_market_vector(fs::path const& path, std::span<double const> vector, std::string const& comment) {
  MatrixMarketVectorFile file(path, static_cast<std::int64_t>(vector.size()), comment);
  file.add(vector);
  file.commit();
}

std::string matrix_market_comment(fs::path const& path) {
  GzipFile const file(gzopen(path.c_str(), "rb"), &gzclose);
  std::array<char, 1024> start;
  int const size = file ? gzread(file.get(), start.data(), start.size()) : 0;
  std::string_view text(start.data(), static_cast<std::size_t>(std::max(size, 0)));
  if (!text.starts_with("%%MatrixMarket "))
    return "";
  text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.starts_with("% ") ? std::string(text.substr(2, text.find('\n') - 2)) : "";
}

}  // namespace poisson::app
