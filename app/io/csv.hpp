#pragma once

#include "app/io/results_directory.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// A CSV field: quoted where it contains a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string const& text);

/// Columns of numbers, with as many digits as read back to the same bits, under their names; the rows are numbered from `first`
/// under `index`. Shorter columns end in empty fields; a number that is not finite is an empty field.
struct CsvColumn {
  std::string name;
  std::span<double const> values;
};
[[nodiscard]] std::string csv_text(std::string const& index, std::int64_t first, std::vector<CsvColumn> const& columns);
void write_csv(ResultsDirectory& directory, std::string const& name, std::string const& index, std::int64_t first,
               std::vector<CsvColumn> const& columns);

}  // namespace poisson::app
