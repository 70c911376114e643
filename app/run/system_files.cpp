#include "app/run/system_files.hpp"

#include "app/io/matrix_market_writer.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "output/files/atomic_file.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>
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

void SystemFiles::write(CsrMatrix const& matrix, std::span<double const> rhs, std::string const& fingerprint,
                        Console& console) const {
  if (warns(all_finite(matrix.values) && all_finite(rhs), console))
    return;
  write_symmetric_matrix_market(matrix_, matrix, matrix_comment(fingerprint));
  write_matrix_market_vector(rhs_, rhs, rhs_comment(fingerprint));
  tell(console);
}

void SystemFiles::write_on_ranks(RankRows const& rows, std::span<std::int64_t const> numbers, std::span<double const> rhs,
                                 std::string const& fingerprint, RankTeam& team, Console& console) const {
  Communicator& ranks = team.communicator();
  CsrMatrix const& matrix = *rows.matrix;
  if (warns(!any_of_ranks(&ranks, !all_finite(matrix.values) || !all_finite(rhs)), console))
    return;
  // The numbers of columns. As doubles, which hold them exactly.
  std::vector<std::int64_t> columns(numbers.begin(), numbers.end());
  HostVector<double> own(numbers.size());
  std::copy(numbers.begin(), numbers.end(), own.begin());
  auto const host = make_context(Backend::cpu);
  GhostExchange<double> exchange(*host, ranks, rows.neighbors);
  exchange.start(own.data());
  double const* const ghosts = exchange.finish();
  std::transform(ghosts, ghosts + rows.n_ghosts(), std::back_inserter(columns),
                 [](double n) { return static_cast<std::int64_t>(n); });

  struct Entry {
    std::int64_t row, column;
    double value;
  };
  auto const in_order = [](Entry const& a, Entry const& b) { return std::tie(a.row, a.column) < std::tie(b.row, b.column); };
  std::vector<std::size_t> order(numbers.size());  // of own rows, by their numbers
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
  std::int64_t entries = 0;
  for (std::size_t row = 0; row < numbers.size(); ++row)
    for (auto e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      entries += columns[static_cast<std::size_t>(matrix.columns[e])] <= numbers[row] ? 1 : 0;
  entries = sum_over(&ranks, entries);
  std::int64_t const n = sum_over(&ranks, std::ssize(numbers));

  std::optional<SymmetricMatrixMarketFile> matrix_file;
  std::optional<MatrixMarketVectorFile> rhs_file;
  team.together([&] {
    if (team.is_first()) {
      matrix_file.emplace(matrix_, n, entries, matrix_comment(fingerprint));
      rhs_file.emplace(rhs_, n, rhs_comment(fingerprint));
    }
  });
  constexpr std::int64_t at_a_time = 1 << 14;  // rows of the whole: some megabytes of entries
  auto next = order.begin();
  for (std::int64_t first = 0; first < n; first += at_a_time) {
    std::vector<Entry> of_rows, of_rhs;
    team.together([&] {
      for (; next != order.end() && numbers[*next] < first + at_a_time; ++next) {
        std::int64_t const row = numbers[*next];
        of_rhs.push_back({row, 0, rhs[*next]});
        for (auto e = matrix.row_ptr[*next]; e < matrix.row_ptr[*next + 1]; ++e)
          if (std::int64_t const column = columns[static_cast<std::size_t>(matrix.columns[e])]; column <= row)
            of_rows.push_back({row, column, matrix.values[e]});
      }
    });
    auto const all_rows = gather_on_first(ranks, of_rows), all_rhs = gather_on_first(ranks, of_rhs);
    team.together([&] {
      if (!team.is_first())
        return;
      auto const merged = [&](std::vector<std::vector<Entry>> const& lists) {
        std::vector<Entry> result;
        for (auto const& list : lists)
          result.insert(result.end(), list.begin(), list.end());
        std::sort(result.begin(), result.end(), in_order);
        return result;
      };
      for (Entry const& entry : merged(all_rows))
        matrix_file->add(entry.row, entry.column, entry.value);
      for (Entry const& entry : merged(all_rhs))
        rhs_file->add({&entry.value, 1});
    });
  }
  team.together([&] {
    if (team.is_first()) {
      matrix_file->commit();
      rhs_file->commit();
    }
  });
  tell(console);
}

}  // namespace poisson::app
