#include "app/run/system_files.hpp"

#include "app/io/matrix_market_writer.hpp"
#include "gpu/core/error.hpp"
#include "output/files/atomic_file.hpp"

#include <algorithm>
#include <cmath>

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

void SystemFiles::write(CsrMatrix const& matrix, std::span<double const> rhs, std::string const& fingerprint,
                        Console& console) const {
  if (!all_finite(matrix.values) || !all_finite(rhs)) {
    console.warning(matrix_.string() + " is not written: an entry of the system is not finite");
    return;
  }
  std::string const of = std::string(mark) + POISSON_VERSION + ", fingerprint " + fingerprint + ": ";
  write_symmetric_matrix_market(matrix_, matrix, of + "A of A x = b; rows of Dirichlet values hold their diagonal only");
  write_matrix_market_vector(rhs_, rhs, of + "b of A x = b; 0 in rows of Dirichlet values");
  console.line("    system in " + matrix_.string() + " and " + rhs_.string());
}

}  // namespace poisson::app
