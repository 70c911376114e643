#include "app/io/csv.hpp"

#include "output/files/atomic_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace poisson::app {

std::string csv_field(std::string const& text) {
  if (text.find_first_of(",\"\n") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (char const c : text)
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_text(std::string const& index, std::int64_t first, std::vector<CsvColumn> const& columns) {
  std::string text = index;
  std::size_t rows = 0;
  for (auto const& column : columns) {
    text += "," + column.name;
    rows = std::max(rows, column.values.size());
  }
  text += '\n';
  char word[32];
  for (std::size_t i = 0; i < rows; ++i) {
    text += std::to_string(first + static_cast<std::int64_t>(i));
    for (auto const& column : columns) {
      text += ',';
      if (i < column.values.size() && std::isfinite(column.values[i]))
        text.append(word, std::to_chars(word, word + sizeof word, column.values[i]).ptr);
    }
    text += '\n';
  }
  return text;
}

void write_csv(ResultsDirectory& directory, std::string const& name, std::string const& index, std::int64_t first,
               std::vector<CsvColumn> const& columns) {
  directory.write(name, [&](std::filesystem::path const& path) { output::write_text_file(path, csv_text(index, first, columns)); });
}

}  // namespace poisson::app
