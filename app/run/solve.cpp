#include "app/run/solve.hpp"

#include "app/io/matrix_market.hpp"
#include "app/run/stages.hpp"
#include "gpu/formats/coo.hpp"
#include "gpu/kernels/csr.hpp"
#include "gpu/kernels/symmetry.hpp"
#include "output/files/atomic_file.hpp"

#include <algorithm>
#include <filesystem>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

/// Throws InputError when it is not square or holds a value that is not finite. Rows are counted from 1, as in the file.
CsrMatrix read_square_matrix(std::string const& path) {
  CooMatrix const coo = read_matrix_market(path);
  if (coo.n_rows != coo.n_columns)
    throw InputError(path + ": the matrix has " + std::to_string(coo.n_rows) + " rows and " + std::to_string(coo.n_columns) +
                     " columns; a system to solve needs as many rows as columns");
  CsrMatrix matrix = csr_from_coo(coo);
  // Every entry of the file is finite, but those at the same place were added.
  auto const bad = static_cast<std::int64_t>(first_not_finite(matrix.values));
  if (bad < matrix.nnz()) {
    auto const row = std::upper_bound(matrix.row_ptr.begin(), matrix.row_ptr.end(), bad) - matrix.row_ptr.begin();
    throw InputError(path + ": entries of the matrix at row " + std::to_string(row) + ", column " +
                     std::to_string(matrix.columns[static_cast<std::size_t>(bad)] + 1) +
                     " are given more than once and add up to a number too large for double precision");
  }
  return matrix;
}

/// Throws InputError when its length is not that of the matrix or it holds a value that is not finite.
HostVector<double> read_rhs(SystemSpec const& system, std::int64_t n_rows) {
  if (system.rhs.empty())
    return HostVector<double>(static_cast<std::size_t>(n_rows), 1.0);
  HostVector<double> b = read_matrix_market_vector(system.rhs);
  if (static_cast<std::int64_t>(b.size()) != n_rows)
    throw InputError(system.rhs + ": the right-hand side has " + std::to_string(b.size()) + " rows, and the matrix " +
                     system.matrix + " has " + std::to_string(n_rows) + "; both need the same number");
  if (std::size_t const row = first_not_finite(b); row < b.size())
    throw InputError(system.rhs + ": the values of the right-hand side at row " + std::to_string(row + 1) +
                     " are given more than once and add up to a number too large for double precision");
  return b;
}

/// The names of the choices that take unsymmetric matrices.
template <class E>
std::string names_for_unsymmetric() {
  std::string names;
  for (auto const& [value, name] : Names<E>::values)
    if (!needs_symmetry(value) && name != "auto")
      names += (names.empty() ? "" : " or ") + std::string(name);
  return names;
}

/// Throws InputError when the method or the preconditioner needs a symmetric matrix and this is none; warns when it is one to fewer
/// digits than rounding leaves.
void require_suitable(SolverOptions const& solver, CsrMatrix const& matrix, std::string const& path, Console& console) {
  bool const by_method = needs_symmetry(solver.method);
  if (!by_method && !needs_symmetry(solver.preconditioner))
    return;
  Symmetry const symmetry = find_symmetry(view_of(matrix));
  auto const& asymmetry = symmetry.first;
  std::string const needs = std::string(by_method ? name_of(solver.method) : name_of(solver.preconditioner));
  if (!asymmetry) {
    if (symmetry.asymmetry > rounding_asymmetry)
      console.warning(path + " is symmetric only to " + number_text(symmetry.asymmetry) + " of the largest entry of a row; " +
                      needs + " takes it as symmetric, and errors of that size remain");
    return;
  }
  int digits = 4;  // as many as show the difference
  while (digits < 17 && number_text(asymmetry->value, digits) == number_text(asymmetry->mirror, digits))
    ++digits;
  std::string const row = std::to_string(asymmetry->row + 1), column = std::to_string(asymmetry->column + 1);
  std::string const key = by_method ? "solver.method" : "solver.preconditioner";
  throw InputError(key, needs + " needs a symmetric matrix, and " + path + " has " + number_text(asymmetry->value, digits) +
                            " in row " + row + ", column " + column + " but " + number_text(asymmetry->mirror, digits) +
                            " in row " + column + ", column " + row + "; use --set " + key + "=" +
                            (by_method ? names_for_unsymmetric<Method>() : names_for_unsymmetric<PreconditionerKind>()));
}

}  // namespace

ExitCode solve_system(Configuration const& configuration, RunOptions const& options, Console& console) {
  RunConfig const& config = configuration.config();
  SystemSpec const& system = *config.system;
  for (auto const& path : {system.matrix, system.rhs})
    if (std::error_code ignored; !path.empty() && !fs::is_regular_file(path, ignored))
      static_cast<void>(read_matrix_market(path));  // says what is wrong, before any other file is read or a directory is made
  Stages stages(config, options, console, system.matrix);
  ResultRecord& record = stages.record;
  record.system = system;

  stages.unless_interrupted([&] {
    std::shared_ptr<CsrMatrix const> matrix;
    HostVector<double> b;
    record.clock.time(Stage::read, [&] {
      matrix = std::make_shared<CsrMatrix const>(read_square_matrix(system.matrix));
      b = read_rhs(system, matrix->n_rows);
      require_suitable(config.solver, *matrix, system.matrix, console);
    });
    record.dofs = matrix->n_rows;
    record.nnz = matrix->nnz();
    record.csr_bytes = matrix->bytes();
    record.fingerprint = fingerprint(config);
    stages.report_stage(Stage::read, with_thousands(record.dofs) + " unknowns, " + with_thousands(record.nnz) + " non-zeros");

    stages.convert(matrix);
    HostVector<double> const x = stages.solve(b, false);
    stages.verify(b, x);
    stages.output([&](ResultsDirectory& directory) {
      if (std::size_t const row = first_not_finite(x); row < x.size())
        console.warning("solution.mtx is not written: row " + std::to_string(row + 1) +
                        " of the solution (counted from 1) is not finite");
      else {
        directory.try_write("solution.mtx", [&](fs::path const& path) { output::write_text_file(path, matrix_market_text(x)); });
        if (auto const& low = record.result.x_low; !low.empty())
          directory.try_write("solution_low.mtx",
                              [&](fs::path const& path) { output::write_text_file(path, matrix_market_text(low)); });
      }
    });
  });

  stages.attempt([&](ResultsDirectory& directory) {
    directory.try_write("resolved.yaml",
                        [&](fs::path const& path) { output::write_text_file(path, resolved_yaml(with_absolute_files(config))); });
  });
  return stages.finish();
}

}  // namespace poisson::app
