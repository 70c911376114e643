#include "app/run/solve.hpp"

#include "app/domain/system_shares.hpp"
#include "app/io/matrix_market.hpp"
#include "app/launch/same_configuration.hpp"
#include "app/plan/box_structure.hpp"
#include "app/results/results.hpp"
#include "app/run/checkpoints.hpp"
#include "app/run/null_space.hpp"
#include "app/run/system_solver.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/formats/coo.hpp"
#include "gpu/kernels/csr.hpp"
#include "gpu/kernels/symmetry.hpp"
#include "output/files/atomic_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

/// The index of the first value that is not finite; values.size() if all are finite.
std::size_t first_not_finite(std::span<double const> values) {
  return static_cast<std::size_t>(std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); }) -
                                  values.begin());
}

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
    if (!needs_symmetry(value) && name != "auto" && name != "direct")
      names += (names.empty() ? "" : " or ") + std::string(name);
  return names;
}

/// Whether all entries on the main diagonal are positive, as those of a positive definite matrix are.
bool has_positive_diagonal(CsrMatrix const& matrix) {
  for (std::int64_t row = 0; row < matrix.n_rows; ++row) {
    auto const begin = matrix.columns.begin() + matrix.row_ptr[row], end = matrix.columns.begin() + matrix.row_ptr[row + 1];
    auto const entry = std::lower_bound(begin, end, static_cast<std::int32_t>(row));
    if (entry == end || *entry != row || !(matrix.values[static_cast<std::size_t>(entry - matrix.columns.begin())] > 0))
      return false;
  }
  return true;
}

/// Returns whether cg suits the matrix, where the method is `auto`. Throws InputError when the method or the preconditioner needs a
/// symmetric matrix and this is none; warns when it is one to fewer digits than rounding leaves.
bool require_suitable(SolverOptions const& solver, CsrMatrix const& matrix, std::string const& path, Console& console) {
  bool const chooses = solver.falls_back, by_method = needs_symmetry(solver.method) && !chooses;
  if (!by_method && !chooses && !needs_symmetry(solver.preconditioner))
    return true;
  Symmetry const symmetry = find_symmetry(view_of(matrix));
  auto const& asymmetry = symmetry.first;
  std::string const needs = std::string(by_method ? name_of(solver.method) : chooses ? "cg" : name_of(solver.preconditioner));
  if (chooses && (asymmetry || !has_positive_diagonal(matrix)) && (!asymmetry || !needs_symmetry(solver.preconditioner)))
    return false;
  if (!asymmetry) {
    if (symmetry.asymmetry > rounding_asymmetry)
      console.warning(path + " is symmetric only to " + number_text(symmetry.asymmetry) + " of the largest entry of a row; " +
                      needs + " takes it as symmetric, and errors of that size remain");
    return true;
  }
  int digits = 4;  // as many as show the difference
  while (digits < 17 && number_text(asymmetry->value, digits) == number_text(asymmetry->mirror, digits))
    ++digits;
  std::string const row = std::to_string(asymmetry->row + 1), column = std::to_string(asymmetry->column + 1);
  std::string const key = by_method ? "solver.method" : "solver.preconditioner";
  throw InputError(key,
                   needs + " needs a symmetric matrix, and " + path + " has " + number_text(asymmetry->value, digits) + " in row " +
                       row + ", column " + column + " but " + number_text(asymmetry->mirror, digits) + " in row " + column +
                       ", column " + row + "; use --set " + key + "=" +
                       (by_method ? names_for_unsymmetric<Method>() + " or auto" : names_for_unsymmetric<PreconditionerKind>()));
}

}  // namespace

namespace {

struct SystemOfFiles {
  std::shared_ptr<CsrMatrix const> matrix;
  HostVector<double> b;
  NullSpace null_space;
  double defect = 0;  ///< of make_compatible
  bool suits_cg = true;
};

SystemOfFiles read_system(RunConfig const& config, Console& console) {
  SystemOfFiles result;
  auto const matrix = std::make_shared<CsrMatrix>(read_square_matrix(config.system->matrix));
  result.b = read_rhs(*config.system, matrix->n_rows);
  result.suits_cg = require_suitable(config.solver, *matrix, config.system->matrix, console);
  result.null_space = find_null_space(*matrix);
  if (!result.null_space.parts.empty())
    result.defect = make_compatible(result.null_space, *matrix, result.b, config.system->matrix,
                                    config.system->rhs.empty() ? "ones (without --rhs)" : config.system->rhs);
  result.matrix = matrix;
  return result;
}

/// Warns the user of a singular matrix, and records the defect of b.
void tell_null_space(NullSpace const& null_space, double defect, RunLog& log) {
  if (null_space.empty())
    return;
  log.record.compatibility_defect = defect;
  log.warn(null_space_note(null_space, defect));
}

/// Says what is wrong with a file before any other is read or a directory is made.
void require_files(SystemSpec const& system) {
  for (auto const& path : {system.matrix, system.rhs})
    if (std::error_code ignored; !path.empty() && !fs::is_regular_file(path, ignored))
      static_cast<void>(read_matrix_market(path));
}

void begin_record(ResultRecord& record, RunConfig const& config, std::int64_t n_rows, std::int64_t nnz) {
  record.system = *config.system;
  record.dofs = n_rows;
  record.nnz = nnz;
  record.csr_bytes = CsrMatrix::csr_bytes(n_rows, nnz);
  record.fingerprint = fingerprint(config);
}

void write_solution(Results& results, RunLog& log, NullSpace const& null_space, std::span<double> x, std::span<double> x_low) {
  auto const nothing = [](fs::path const&) {};
  results.output(log, nothing, [&](ResultsDirectory& directory) {
    if (!null_space.constants)  // the solver knows it of the whole
      subtract_means(null_space, x, x_low);
    if (std::size_t const row = first_not_finite(x); row < x.size()) {
      log.console.warning("solution.mtx is not written: row " + std::to_string(row + 1) +
                          " of the solution (counted from 1) is not finite");
      return;
    }
    directory.try_write("solution.mtx", [&](fs::path const& path) { output::write_text_file(path, matrix_market_text(x)); });
    if (!x_low.empty())
      directory.try_write("solution_low.mtx",
                          [&](fs::path const& path) { output::write_text_file(path, matrix_market_text(x_low)); });
  });
}

ExitCode finish(Results& results, RunLog& log, RunConfig const& config, Checkpoints& checkpoints) {
  results.attempt([&](ResultsDirectory& directory) {
    directory.try_write("resolved.yaml",
                        [&](fs::path const& path) { output::write_text_file(path, resolved_yaml(with_absolute_files(config))); });
  });
  ExitCode const code = results.finish(log);
  checkpoints.end(code);
  return code;
}

/// The first rank reads the files, and sends every rank its rows; it alone has the parts of the null space, and its defect.
SystemShare share_of_system(RunConfig const& config, Console& console, Team& team, SystemSolver& solver, NullSpace& null_space,
                            double& defect) {
  SystemOfFiles system;
  std::array<std::int64_t, 3> sizes{};
  team.on_first([&] {
    system = read_system(config, console);
    sizes = {system.matrix->n_rows, system.matrix->nnz(), system.suits_cg ? 1 : 0};
  });
  sizes = of_first(team.communicator(), sizes);
  begin_record(solver.log().record, config, sizes[0], sizes[1]);
  solver.needs_any_method = sizes[2] == 0;
  null_space = std::move(system.null_space);
  defect = system.defect;
  if (system.matrix != nullptr)
    solver.box_nodes = box_nodes_of(*system.matrix);
  null_space.constants = of_first(team.communicator(), null_space.constants);
  return shared_out(std::move(system.matrix), std::move(system.b), team);
}

}  // namespace

ExitCode solve_system(Configuration const& configuration, RunOptions const& given, Console& console, Team& team) {
  RunConfig const& config = configuration.config();
  require_same_configuration(config, team);
  team.on_first([&] { require_files(*config.system); });
  EarlierRun earlier = find_earlier_run(config, given, false, team);
  if (earlier.finished) {
    tell_finished(config, console);
    return *earlier.finished;
  }
  RunOptions const options = options_after(given, earlier);
  InternalRunOptions internal;
  internal.team = team;
  Results results(config, options, internal, {"solution.mtx", "solution_low.mtx"}, team);
  RunLog log(config, options, console);
  Checkpoints checkpoints(config, std::move(earlier), results.shared_path(), team, log);
  Kept kept;
  team.together([&] { set_thread_count(options.threads); });
  RunDevice device(config.backend, team, log, kept);
  log.begin(config.system->matrix + team.on_ranks());
  SystemSolver solver(config, team, device, log);
  solver.checkpoints = &checkpoints;
  ResultRecord& record = log.record;
  record.system = *config.system;

  log.until_interrupted([&] {
    SystemShare share;
    NullSpace null_space;
    double defect = 0;
    record.clock.time(Stage::read, [&] { share = share_of_system(config, console, team, solver, null_space, defect); });
    device.connect_ranks(record.dofs);
    log.report(Stage::read, with_thousands(record.dofs) + " unknowns, " + with_thousands(record.nnz) + " non-zeros");
    if (team.is_first())
      tell_null_space(null_space, defect, log);

    solver.convert(std::move(share.rows));
    Field const b(std::move(share.b));
    FieldPair x = solver.solve(b, null_space.constants);
    solver.verify(b, x);
    // Ranks have their rows in the order of the file.
    auto const whole = [&](Field const& own) {
      return joined_on_first(team.communicator(), std::vector<double>(own.host().begin(), own.host().end()));
    };
    std::vector<double> all = whole(x.high), low = whole(x.low);
    write_solution(results, log, null_space, all, low);
  });
  return finish(results, log, config, checkpoints);
}

}  // namespace poisson::app
