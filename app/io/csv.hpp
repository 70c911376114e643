#pragma once

#include "app/io/results_directory.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// A text as a CSV field: in quotes if it contains a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string const& text);

struct CsvColumn {
  std::string name;
  std::span<double const> values;
};
/// A table with a header. The first column, named `index`, numbers the rows from `first`. Numbers read back to the same bits.
/// Fields of numbers that are not finite, and those beyond the end of a shorter column, are empty.
[[nodiscard]] std::string csv_text(std::string const& index, std::int64_t first, std::vector<CsvColumn> const& columns);
/// Writes that table as the file `name`. Throws what ResultsDirectory::write throws.
void write_csv(ResultsDirectory& directory, std::string const& name, std::string const& index, std::int64_t first,
               std::vector<CsvColumn> const& columns);

}  // namespace poisson::app
