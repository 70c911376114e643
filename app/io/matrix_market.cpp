#include "app/io/matrix_market.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/input_file.hpp"
#include "gpu/core/interrupt.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <vector>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t largest_dimension = 2147483646;  ///< 2^31 - 2: columns and their count fit 32 bits
constexpr std::int64_t smallest_entry = 4;              ///< bytes of the shortest line of an entry, "1 1\n"
constexpr std::int64_t deflate_ratio = 1032;            ///< the most that gzip can compress
constexpr std::size_t longest_line = std::size_t{1} << 16;

/// Piece of a file for a message: in quotes, short, and with ? for what a terminal should not get.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string result = "'";
  for (char const c : text.substr(0, longest))
    result += static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126 ? '?' : c;
  return result + (text.size() > longest ? "...'" : "'");
}

/// Where the bytes come from: a file through zlib, or text in memory.
class Bytes {
public:
  virtual ~Bytes() = default;
  /// Up to `size` bytes to `to`; 0 at the end.
  virtual std::size_t read(char* to, std::size_t size) = 0;
  /// The most bytes of text that this can turn out to be.
  [[nodiscard]] virtual std::int64_t largest_text() const = 0;
  /// About how many bytes of text there are, to reserve memory by.
  [[nodiscard]] virtual std::int64_t likely_text() const = 0;
};

class TextBytes final : public Bytes {
public:
  explicit TextBytes(std::string_view text) : text_(text) {}
  std::size_t read(char* to, std::size_t size) override {
    std::size_t const n = text_.copy(to, size, done_);
    done_ += n;
    return n;
  }
  std::int64_t largest_text() const override { return static_cast<std::int64_t>(text_.size()); }
  std::int64_t likely_text() const override { return largest_text(); }

private:
  std::string_view text_;
  std::size_t done_ = 0;
};

class FileBytes final : public Bytes {
public:
  explicit FileBytes(fs::path const& path) : name_(path.string()), file_(nullptr, &gzclose) {
    std::error_code error;
    auto const status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found)
      refuse("there is no such file");
    if (error)
      refuse("cannot be read: " + error.message());
    if (status.type() != fs::file_type::regular)
      refuse(status.type() == fs::file_type::directory ? "is a directory; a Matrix Market file is needed"
                                                       : "is not a regular file; a Matrix Market file is needed");
    size_ = static_cast<std::int64_t>(fs::file_size(path, error));
    if (error)
      refuse("cannot be read: " + error.message());
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) {
      int const reason = errno != 0 ? errno : ENOMEM;
      require_resources(reason, path);
      refuse(std::string("cannot be opened: ") + std::strerror(reason));
    }
    gzbuffer(file_.get(), 1U << 18);
    compressed_ = gzdirect(file_.get()) == 0;
  }

  std::size_t read(char* to, std::size_t size) override {
    int const n = gzread(file_.get(), to, static_cast<unsigned>(size));
    if (n > 0) {
      unpacked_ += n;
      if (std::int64_t const most = most_unpacked_bytes(size_); compressed_ && unpacked_ > most)
        refuse("the compressed file unpacks to more than " + std::to_string(most) + " bytes, " + std::to_string(most / size_) +
               " times its size: no matrix does. Unpack it first if it is one");
      return static_cast<std::size_t>(n);
    }
    int code = Z_OK;
    char const* const message = gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR)
      refuse("the compressed file ends too early; it is truncated");
    if (code == Z_MEM_ERROR)
      throw std::bad_alloc();
    if (code == Z_ERRNO)
      refuse(std::string("cannot be read: ") + std::strerror(errno));
    if (code != Z_OK && code != Z_STREAM_END)
      refuse(std::string("the compressed file is damaged (") + (message != nullptr ? message : "") + ")");
    return 0;
  }
  std::int64_t largest_text() const override {
    return compressed_ ? std::min(size_ * deflate_ratio, most_unpacked_bytes(size_)) : size_;
  }
  std::int64_t likely_text() const override { return compressed_ ? size_ * 4 : size_; }

private:
  [[noreturn]] void refuse(std::string const& what) const { throw InputError(name_ + ": " + what); }

  std::string name_;
  std::unique_ptr<std::remove_pointer_t<gzFile>, int (*)(gzFile)> file_;
  std::int64_t size_ = 0, unpacked_ = 0;
  bool compressed_ = false;
};

/// The lines of a file, one after the other.
class Lines {
public:
  Lines(Bytes& bytes, std::string name)
      : bytes_(bytes),
        name_(std::move(name)),
        size_(static_cast<std::size_t>(std::min(bytes.largest_text() + 1, std::int64_t{1} << 20))),
        buffer_(std::make_unique_for_overwrite<char[]>(size_)) {}

  /// The next line without its end; false when there is none. `line` is valid until the next call.
  bool next(std::string_view& line) {
    for (;;) {
      auto const* const begin = buffer_.get() + begin_;
      auto const* const end = static_cast<char const*>(std::memchr(begin + seen_, '\n', end_ - begin_ - seen_));
      if (end != nullptr) {
        line = {begin, static_cast<std::size_t>(end - begin)};
        begin_ += line.size() + 1;
        break;
      }
      seen_ = end_ - begin_;
      if (seen_ > longest_line) {
        ++number_;
        refuse("the line is longer than " + std::to_string(longest_line) + " bytes; this is no Matrix Market file");
      }
      if (!refill()) {
        if (begin_ == end_)
          return false;
        line = {begin, end_ - begin_};
        begin_ = end_;
        break;
      }
    }
    seen_ = 0;
    ++number_;
    if (number_ % 65536 == 0 && interrupt_requested())
      throw Interrupted();
    return true;
  }

  /// The next line that is neither blank nor a comment.
  bool next_with_content(std::string_view& line) {
    while (next(line)) {
      std::size_t const first = line.find_first_not_of(" \t\r\v\f");
      if (first != std::string_view::npos && line[first] != '%')
        return true;
    }
    return false;
  }

  [[noreturn]] void refuse(std::string const& message) const {
    throw InputError(name_ + ":" + std::to_string(std::max<std::int64_t>(number_, 1)) + ": " + message);
  }

  Bytes& bytes() { return bytes_; }

private:
  bool refill() {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    std::size_t const n = bytes_.read(buffer_.get() + end_, size_ - end_);
    end_ += n;
    return n > 0;
  }

  Bytes& bytes_;
  std::string name_;
  std::size_t size_;  ///< beyond the longest line, or all there is
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::size_t seen_ = 0;  ///< bytes after begin_ that are known to hold no line end
  std::int64_t number_ = 0;
};

/// The words of one line.
class Words {
public:
  explicit Words(std::string_view line) : rest_(line) {}
  /// Empty at the end of the line.
  std::string_view next() {
    char const *p = rest_.data(), *const end = p + rest_.size();
    while (p != end && is_space(*p))
      ++p;
    char const* const begin = p;
    while (p != end && !is_space(*p))
      ++p;
    rest_ = {p, static_cast<std::size_t>(end - p)};
    return {begin, static_cast<std::size_t>(p - begin)};
  }

private:
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  std::string_view rest_;
};

std::string lower_case(std::string_view word) {
  std::string result(word);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool parse_integer(std::string_view word, std::int64_t& value) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-')
    word.remove_prefix(1);
  auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

/// A number in the notations of C and Fortran: 1, +1.5, -.5e3, 1.0D+00, 1.0-101 (Fortran's way to write 1e-101).
bool parse_number(std::string_view word, double& value) {
  auto result = std::from_chars(word.data(), word.data() + word.size(), value);
  if (result.ec == std::errc() && result.ptr == word.data() + word.size())
    return true;
  std::array<char, 128> copy;
  if (word.empty() || word.size() + 2 > copy.size())
    return false;
  std::size_t n = 0, first = word[0] == '+' ? 1 : 0;
  if (first == 1 && word.size() > 1 && word[1] == '-')
    return false;
  for (std::size_t i = first; i < word.size(); ++i) {
    char const c = word[i];
    bool const digit_before = i > first && ((word[i - 1] >= '0' && word[i - 1] <= '9') || word[i - 1] == '.');
    if ((c == '+' || c == '-') && digit_before)
      copy[n++] = 'e';
    copy[n++] = c == 'd' || c == 'D' ? 'e' : c;
    if (n + 2 >= copy.size())
      return false;
  }
  copy[n] = '\0';
  result = std::from_chars(copy.data(), copy.data() + n, value);
  if (result.ptr != copy.data() + n)
    return false;
  if (result.ec == std::errc::result_out_of_range) {  // too large or too small: infinity, which is refused, or zero
    value = std::strtod(copy.data(), nullptr);
    return true;
  }
  return result.ec == std::errc();
}

enum class Field { real, integer, pattern };

struct Header {
  bool array = false;
  bool symmetric = false;
  Field field{};
  std::int64_t n_rows = 0, n_columns = 0;
  std::int64_t n_entries = 0;  ///< as announced; of an array: rows times columns
};

std::int64_t parse_size(Lines const& lines, std::string_view word, char const* what, std::int64_t lowest, std::int64_t highest) {
  std::int64_t value = 0;
  if (!parse_integer(word, value) || value < lowest || value > highest)
    lines.refuse(std::string("the number of ") + what + " must be an integer from " + std::to_string(lowest) + " to " +
                 std::to_string(highest) + ", found " + in_quotes(word));
  return value;
}

/// What a file is read as.
enum class Wanted { sparse, vector, any_matrix };

/// Banner and size line.
Header read_header(Lines& lines, Wanted wanted) {
  bool const vector = wanted == Wanted::vector;
  Header header;
  std::string_view line;
  if (lines.bytes().largest_text() == 0 || !lines.next(line))
    lines.refuse("the file is empty; a Matrix Market file begins with '%%MatrixMarket matrix ...'");
  Words banner(line);
  std::string_view const first = banner.next();
  if (lower_case(first) != "%%matrixmarket")
    lines.refuse("this is no Matrix Market file: it must begin with '%%MatrixMarket', found " + in_quotes(first));
  std::string const object = lower_case(banner.next()), layout = lower_case(banner.next()), field = lower_case(banner.next()),
                    symmetry = lower_case(banner.next());
  if (object != "matrix")
    lines.refuse("the object must be matrix, found " + in_quotes(object));
  if (layout != "coordinate" && layout != "array")
    lines.refuse("the layout must be coordinate or array, found " + in_quotes(layout));
  header.array = layout == "array";
  if (header.array && wanted == Wanted::sparse)
    lines.refuse("this is a dense matrix (layout array), and a sparse one is needed (coordinate)");
  if (field == "complex")
    lines.refuse(
        "the values are complex, and this program solves real systems only; allowed: real, integer, unsigned-integer, pattern");
  // SciPy writes unsigned-integer.
  bool const integer = field == "integer" || field == "unsigned-integer";
  if (field != "real" && !integer && field != "pattern")
    lines.refuse("the field must be real, integer, unsigned-integer or pattern, found " + in_quotes(field));
  header.field = field == "real" ? Field::real : integer ? Field::integer : Field::pattern;
  if (header.array && header.field == Field::pattern)
    lines.refuse("a pattern cannot have the layout array: there are no values");
  if (symmetry == "skew-symmetric")
    lines.refuse(
        "the matrix is skew-symmetric: its diagonal is zero and it is never definite, so no solver here takes it; allowed: "
        "general, symmetric");
  if (symmetry == "hermitian")
    lines.refuse(
        "the matrix is hermitian, which means complex, and this program solves real systems only; allowed: general, symmetric");
  if (symmetry != "general" && symmetry != "symmetric")
    lines.refuse("the symmetry must be general or symmetric, found " + in_quotes(symmetry));
  header.symmetric = symmetry == "symmetric";
  if (std::string_view const more = banner.next(); !more.empty())
    lines.refuse("the first line has a word too many: " + in_quotes(more));

  if (!lines.next_with_content(line))
    lines.refuse("the file ends before the line with its sizes");
  Words sizes(line);
  header.n_rows = parse_size(lines, sizes.next(), "rows", 1, largest_dimension);
  header.n_columns = parse_size(lines, sizes.next(), "columns", 1, largest_dimension);
  header.n_entries = !header.array      ? parse_size(lines, sizes.next(), "entries", 0, std::int64_t{1} << 62)
                     : header.symmetric ? header.n_rows * (header.n_rows + 1) / 2
                                        : header.n_rows * header.n_columns;
  if (std::string_view const more = sizes.next(); !more.empty())
    lines.refuse("the line of the sizes has a number too many: " + in_quotes(more));
  if (vector && header.n_columns != 1)
    lines.refuse("a vector is needed, one column, and this has " + std::to_string(header.n_columns));
  if (header.symmetric && header.n_rows != header.n_columns)
    lines.refuse("a symmetric matrix must be square, found " + std::to_string(header.n_rows) + " rows and " +
                 std::to_string(header.n_columns) + " columns");

  std::int64_t const bytes_an_entry = header.array ? 2 : smallest_entry;
  std::int64_t const most = (lines.bytes().largest_text() + 1) / bytes_an_entry;  // the last line may lack its end
  if (header.n_entries > most)
    lines.refuse("the file announces " + std::to_string(header.n_entries) +
                 " entries, but with its size it cannot hold more than " + std::to_string(most));
  // Row pointers and vectors must not be made by a header alone.
  std::int64_t const longest = 1000000 + 64 * header.n_entries;
  if (std::max(header.n_rows, header.n_columns) > longest)
    lines.refuse(std::to_string(header.n_rows) + " rows and " + std::to_string(header.n_columns) + " columns for " +
                 std::to_string(header.n_entries) + " entries: nearly all are empty; allowed here: at most " +
                 std::to_string(longest));
  return header;
}

struct Entry {
  std::int64_t row = 0, column = 0;  ///< from 0
  double value = 1;
};

/// `row` and `column` are those of the value, from 0.
double parse_value(Lines const& lines, Header const& header, std::string_view word, std::int64_t row, std::int64_t column = 0) {
  double value = 0;
  if (word.empty() || !parse_number(word, value))
    lines.refuse(word.empty() ? "the value is missing" : "the value is not a number: " + in_quotes(word));
  if (!std::isfinite(value))
    lines.refuse("the value in row " + std::to_string(row + 1) +
                 (header.n_columns > 1 ? ", column " + std::to_string(column + 1) : "") + " must be finite, found " +
                 in_quotes(word));
  if (header.field == Field::integer && value != std::trunc(value))
    lines.refuse("the field is integer, and the value is not: " + in_quotes(word));
  return value;
}

std::int64_t parse_index(Lines const& lines, std::string_view word, char const* what, std::int64_t highest) {
  std::int64_t index = 0;
  if (word.empty())
    lines.refuse(std::string("the ") + what + " is missing");
  if (!parse_integer(word, index) || index < 1 || index > highest)
    lines.refuse(std::string("the ") + what + " must be an integer from 1 to " + std::to_string(highest) + ", found " +
                 in_quotes(word));
  return index - 1;
}

[[noreturn]] void refuse_count(Lines const& lines, std::int64_t announced, std::int64_t found) {
  lines.refuse("the file announces " + std::to_string(announced) + " entries and has " +
               (found > announced ? "more" : std::to_string(found)));
}

/// Calls take(Entry) for every entry of a file in coordinate layout.
template <class Take>
void read_entries(Lines& lines, Header const& header, Take const& take) {
  std::string_view line;
  std::int64_t found = 0;
  for (; lines.next_with_content(line); ++found) {
    if (found == header.n_entries)
      refuse_count(lines, header.n_entries, found + 1);
    Words words(line);
    Entry entry;
    entry.row = parse_index(lines, words.next(), "row", header.n_rows);
    entry.column = parse_index(lines, words.next(), "column", header.n_columns);
    if (header.field != Field::pattern)
      entry.value = parse_value(lines, header, words.next(), entry.row, entry.column);
    if (std::string_view const more = words.next(); !more.empty())
      lines.refuse(std::string("a line of this file holds row") +
                   (header.field == Field::pattern ? " and column" : ", column and value") +
                   ", and here is more: " + in_quotes(more));
    if (header.symmetric && entry.column > entry.row)
      lines.refuse("the entry in row " + std::to_string(entry.row + 1) + " and column " + std::to_string(entry.column + 1) +
                   " is above the diagonal; a symmetric matrix is given by the entries on and below it");
    take(entry);
  }
  if (found < header.n_entries)
    refuse_count(lines, header.n_entries, found);
}

/// Calls take(value) for every value of a file in array layout; `position` gives row and column of the one that comes next.
template <class Position, class Take>
void read_values(Lines& lines, Header const& header, Position const& position, Take const& take) {
  std::string_view line;
  std::int64_t found = 0;
  for (; lines.next_with_content(line); ++found) {
    if (found == header.n_entries)
      refuse_count(lines, header.n_entries, found + 1);
    Words words(line);
    auto const [row, column] = position();
    take(parse_value(lines, header, words.next(), row, column));
    if (std::string_view const more = words.next(); !more.empty())
      lines.refuse("a line of an array holds one value, and here is more: " + in_quotes(more));
  }
  if (found < header.n_entries)
    refuse_count(lines, header.n_entries, found);
}

/// Column by column, of a symmetric matrix from the diagonal on down.
DenseMatrix array_from(Lines& lines, Header const& header) {
  HostVector<double> values;
  values.reserve(static_cast<std::size_t>(std::min(header.n_entries, lines.bytes().likely_text() / 2 + 1)));
  std::int64_t row = 0, column = 0;
  read_values(
      lines, header, [&] { return std::pair(row, column); },
      [&](double value) {
        values.push_back(value);
        if (++row == header.n_rows)
          row = header.symmetric ? ++column : (++column, 0);
      });
  DenseMatrix matrix;
  matrix.n_rows = header.n_rows;
  matrix.n_columns = header.n_columns;
  if (!header.symmetric) {
    matrix.values = std::move(values);
    return matrix;
  }
  matrix.values.resize(static_cast<std::size_t>(header.n_rows * header.n_rows));
  auto value = values.begin();
  for (std::int64_t j = 0; j < header.n_rows; ++j)
    for (std::int64_t i = j; i < header.n_rows; ++i)
      matrix(i, j) = matrix(j, i) = *value++;
  return matrix;
}

CooMatrix coordinates_from(Lines& lines, Header const& header) {
  CooMatrix coo;
  coo.n_rows = header.n_rows;
  coo.n_columns = header.n_columns;
  using Row = decltype(coo.rows)::value_type;
  using Column = decltype(coo.columns)::value_type;
  auto const likely = static_cast<std::size_t>(std::min(header.n_entries, lines.bytes().likely_text() / smallest_entry + 1) *
                                               (header.symmetric ? 2 : 1));
  coo.rows.reserve(likely);
  coo.columns.reserve(likely);
  coo.values.reserve(likely);
  auto const add = [&](std::int64_t row, std::int64_t column, double value) {
    coo.rows.push_back(static_cast<Row>(row));
    coo.columns.push_back(static_cast<Column>(column));
    coo.values.push_back(value);
  };
  read_entries(lines, header, [&](Entry const& e) {
    add(e.row, e.column, e.value);
    if (header.symmetric && e.row != e.column)
      add(e.column, e.row, e.value);
  });
  return coo;
}

CooMatrix matrix_from(Lines& lines) {
  return coordinates_from(lines, read_header(lines, Wanted::sparse));
}

AnyMatrix any_matrix_from(Lines& lines) {
  Header const header = read_header(lines, Wanted::any_matrix);
  if (header.array)
    return array_from(lines, header);
  return coordinates_from(lines, header);
}

HostVector<double> vector_from(Lines& lines) {
  Header const header = read_header(lines, Wanted::vector);
  if (header.array)
    return std::move(array_from(lines, header).values);
  HostVector<double> result(static_cast<std::size_t>(header.n_rows), 0.0);
  read_entries(lines, header, [&](Entry const& e) { result[static_cast<std::size_t>(e.row)] += e.value; });
  return result;
}

template <class Result>
Result from_file(fs::path const& path, Result (*read)(Lines&)) {
  FileBytes bytes(path);
  Lines lines(bytes, path.string());
  return read(lines);
}

template <class Result>
Result from_text(std::string_view text, std::string const& name, Result (*read)(Lines&)) {
  TextBytes bytes(text);
  Lines lines(bytes, name);
  return read(lines);
}

}  // namespace

CooMatrix read_matrix_market(fs::path const& path) {
  return from_file(path, matrix_from);
}

CooMatrix parse_matrix_market(std::string_view text, std::string const& name) {
  return from_text(text, name, matrix_from);
}

AnyMatrix read_any_matrix_market(fs::path const& path) {
  return from_file(path, any_matrix_from);
}

AnyMatrix parse_any_matrix_market(std::string_view text, std::string const& name) {
  return from_text(text, name, any_matrix_from);
}

HostVector<double> read_matrix_market_vector(fs::path const& path) {
  return from_file(path, vector_from);
}

HostVector<double> parse_matrix_market_vector(std::string_view text, std::string const& name) {
  return from_text(text, name, vector_from);
}

std::string matrix_market_array_header(std::int64_t n_rows, std::int64_t n_columns) {
  return "%%MatrixMarket matrix array real general\n" + std::to_string(n_rows) + " " + std::to_string(n_columns) + "\n";
}

void append_matrix_market_values(std::string& text, std::span<double const> values) {
  text.reserve(text.size() + 25 * values.size());
  std::array<char, 32> word;
  for (double const value : values) {
    assert(std::isfinite(value));
    auto const [end, error] = std::to_chars(word.data(), word.data() + word.size(), value, std::chars_format::scientific, 16);
    assert(error == std::errc());
    static_cast<void>(error);
    text.append(word.data(), static_cast<std::size_t>(end - word.data()));
    text += '\n';
  }
}

std::string matrix_market_text(std::span<double const> vector) {
  std::string text = matrix_market_array_header(static_cast<std::int64_t>(vector.size()), 1);
  append_matrix_market_values(text, vector);
  return text;
}

}  // namespace poisson::app
