#include "app/results/system_files.hpp"

#include "app/domain/gathered_rows.hpp"
#include "app/io/matrix_market_writer.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "output/files/atomic_file.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

constexpr char const* mark = "written by poisson ";  ///< how the comment begins, by which files are known again

/// The name without .mtx or .mtx.gz; empty when it has neither.
std::string stem_of(fs::path const& file) {
  fs::path const name = file.extension() == ".gz" ? file.stem() : file.filename();
  return name.extension() == ".mtx" ? name.stem().string() : "";
}

bool all_finite(std::span<double const> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

SystemFiles::SystemFiles(std::string const& matrix)
    : matrix_(matrix), rhs_(matrix_.parent_path() / (stem_of(matrix_) + "_rhs.mtx")) {}

bool SystemFiles::can_be(std::string const& matrix) {
  return !stem_of(matrix).empty();
}

void SystemFiles::require_free(bool overwrite) const {
  for (fs::path const& path : {matrix_, rhs_}) {
    std::error_code error;
    auto const type = fs::symlink_status(path, error).type();
    if (type == fs::file_type::not_found || type == fs::file_type::none)
      continue;
    if (type != fs::file_type::regular || !matrix_market_comment(path).starts_with(mark))
      throw InputError("--matrix-out: '" + path.string() +
                       "' is there, and no run of poisson has written it: it is not replaced; choose another name");
    if (!overwrite)
      throw InputError("--matrix-out: '" + path.string() +
                       "' is there from an earlier run; choose another name, or replace it with --overwrite");
  }
}

void SystemFiles::require_writable() const {
  for (fs::path const& path : {matrix_, rhs_})
    output::AtomicFile const probe(path);
}

bool SystemFiles::warns(bool finite, Console& console) const {
  if (!finite)
    console.warning(matrix_.string() + " is not written: an entry of the system is not finite");
  return !finite;
}

std::string SystemFiles::matrix_comment(std::string const& fingerprint) {
  return mark + (POISSON_VERSION ", fingerprint " + fingerprint) +
         ": A of A x = b; rows of Dirichlet values hold their diagonal only";
}

std::string SystemFiles::rhs_comment(std::string const& fingerprint) {
  return mark + (POISSON_VERSION ", fingerprint " + fingerprint) + ": b of A x = b; 0 in rows of Dirichlet values";
}

void SystemFiles::tell(Console& console) const {
  console.line("    system in " + matrix_.string() + " and " + rhs_.string());
}

void SystemFiles::write(RankRows const& rows, std::span<std::int64_t const> numbers, std::span<double const> rhs,
                        std::string const& fingerprint, Team& team, Console& console) const {
  Communicator& ranks = team.communicator();
  CsrMatrix const& matrix = *rows.matrix;
  if (warns(!any_of_ranks(ranks, !all_finite(matrix.values) || !all_finite(rhs)), console))
    return;
  std::vector<std::int64_t> const columns = column_numbers(rows, numbers, team);
  std::int64_t entries = 0;
  for (std::size_t row = 0; row < numbers.size(); ++row)
    for (auto e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      entries += columns[static_cast<std::size_t>(matrix.columns[e])] <= numbers[row] ? 1 : 0;
  entries = sum_over(ranks, entries);
  std::int64_t const n = sum_over(ranks, std::ssize(numbers));

  std::optional<SymmetricMatrixMarketFile> matrix_file;
  std::optional<MatrixMarketVectorFile> rhs_file;
  team.together([&] {
    if (team.is_first()) {
      matrix_file.emplace(matrix_, n, entries, matrix_comment(fingerprint));
      rhs_file.emplace(rhs_, n, rhs_comment(fingerprint));
    }
  });
  gather_entries(matrix, numbers, columns, true, team,
                 [&](EntryOfWhole const& entry) { matrix_file->add(entry.row, entry.column, entry.value); });
  gather_values(rhs, numbers, team, [&](EntryOfWhole const& entry) { rhs_file->add({&entry.value, 1}); });
  team.together([&] {
    if (team.is_first()) {
      matrix_file->commit();
      rhs_file->commit();
    }
  });
  tell(console);
}

}  // namespace poisson::app
