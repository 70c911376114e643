#include "app/config/key_sections.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace poisson::app::schema {
namespace {

/// solver.tolerance: a number, or what follows from the discretisation.
struct Tolerance {
  Number number{0, 1, false, "discretization"};
  [[nodiscard]] std::string allowed() const { return number.allowed(); }
  void read(YamlNode const& node, std::string const& path, SolverOptions& out) const {
    out.to_discretization = node.kind == YamlNode::Kind::scalar && !node.quoted && node.text == "discretization";
    if (!out.to_discretization)
      number.read(node, path, out.tolerance);
  }
  [[nodiscard]] std::string write(SolverOptions const& value) const {
    return value.to_discretization ? "discretization" : number.write(value.tolerance);
  }
  [[nodiscard]] Json json_schema() const {
    return {{"anyOf", Json::array({Json{{"const", "discretization"}}, number.json_schema()})}};
  }
};

/// solver.method: a method, or `auto`: cg as long as that suits the matrix.
struct MethodChoice {
  [[nodiscard]] static std::vector<std::string> names() {
    std::vector<std::string> all = Choice<Method>::names();
    all.emplace_back("auto");
    return all;
  }
  [[nodiscard]] std::string allowed() const { return join(names()); }
  void read(YamlNode const& node, std::string const& path, SolverOptions& out) const {
    std::optional<Method> const method = parse_name<Method>(parse_choice(node, path, names(), {}));
    out.falls_back = !method;
    out.method = method.value_or(Method::cg);
  }
  [[nodiscard]] std::string write(SolverOptions const& value) const {
    return value.falls_back ? "auto" : std::string(name_of(value.method));
  }
  [[nodiscard]] Json json_schema() const { return {{"type", "string"}, {"enum", names()}}; }
};

/// A time in seconds, or with a unit.
struct Duration {
  static constexpr std::array<std::pair<std::string_view, double>, 3> units{{{"min", 60}, {"h", 3600}, {"s", 1}}};
  Number seconds{0};

  [[nodiscard]] static std::string allowed() { return "time above 0, such as 30 s, 10 min or 1.5 h; a number alone is in seconds"; }
  void read(YamlNode const& node, std::string const& path, std::optional<double>& out) const {
    for (auto const& [unit, length] : units) {
      std::string_view text = node.text;
      if (node.kind != YamlNode::Kind::scalar || !text.ends_with(unit))
        continue;
      text.remove_suffix(unit.size());
      while (text.ends_with(' '))
        text.remove_suffix(1);
      double value = 0;
      auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || stop != text.data() + text.size())
        continue;  // an expression, perhaps
      if (!(value * length > 0) || !std::isfinite(value * length))
        reject_value(node, path, allowed());
      out = value * length;
      return;
    }
    seconds.read(node, path, out.emplace());
  }
  [[nodiscard]] std::string write(std::optional<double> value) const { return value ? seconds.write(*value) : "null"; }
  [[nodiscard]] Json json_schema() const {
    return {{"anyOf", Json::array({seconds.json_schema(), Json{{"type", "string"}, {"pattern", "^[0-9.eE+-]+ *(s|min|h)$"}}})}};
  }
};

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

void check_initial(YamlNode const& root, RunConfig const& config) {
  SolverOptions const& solver = config.solver;
  auto const refuse = [&](char const* key, std::string const& what) { reject(locate_path(root, key).origin, key, what); };
  bool const levels =
      solver.preconditioner == PreconditionerKind::automatic || solver.preconditioner == PreconditionerKind::multigrid;
  if (solver.initial == InitialGuess::nested && !levels)
    refuse("solver.initial", "nested needs the levels of multigrid; use solver.preconditioner: multigrid, or auto");
  if (!solver.to_discretization)
    return;
  if (solver.initial != InitialGuess::nested)
    refuse("solver.tolerance", "discretization needs solver.initial: nested, from whose levels the error is estimated");
  if (config.system || !config.is_box() || config.problem.order != 1)
    refuse("solver.tolerance", "discretization is for boxes of elements of order 1, whose coarser levels are meshes as well");
  if (config.problem.mesh.is_graded())
    refuse("solver.tolerance", "discretization is for boxes of equal cells, and problem.mesh.growth or coordinates grade this one");
}

}  // namespace

Keys<RunConfig> keys_of_solver() {
  return {
      section<RunConfig>("matrix", "How the matrix is stored."),
      key<RunConfig>("matrix.format", AutoChoice<Format>{}, POISSON_MEMBER(matrix.format), "",
                     "Sparse format; auto estimates conversion and products for every usable format and picks the fastest."),
      key<RunConfig>(
          "matrix.expected_products", Integer{1, unlimited, false, true}, POISSON_MEMBER(matrix.expected_products), "",
          "Products with the matrix that auto expects. auto: 3 cbrt(rows) log10(1 / solver.tolerance) / 12, what cg takes on a "
          "box, and no more than solver.max_iterations."),
      key<RunConfig>("matrix.slice_size", Integer{1, 1024, true}, POISSON_MEMBER(matrix.slice_size), "rows",
                     "Rows per slice of the sliced formats; cod_sell takes 2 to 256."),
      key<RunConfig>(
          "matrix.sigma", Integer{0, 2147483648, false, true}, POISSON_MEMBER(matrix.sigma), "rows",
          "Rows of a window that the sliced formats sort by length: 1 keeps all in place, 0 sorts all. auto: 1 of sell_c_sigma, 0 "
          "of cod_sell."),
      key<RunConfig>("matrix.threads_per_row", Integer{0, 32, true}, POISSON_MEMBER(matrix.threads_per_row), "",
                     "Threads that share a row in crs_t on a GPU; 0 chooses by the mean length of the rows."),
      key<RunConfig>(
          "matrix.conversion", Choice<Conversion>{}, POISSON_MEMBER(matrix.conversion), "",
          "Where the format is made from csr: sequential by one thread of the host where the algorithm of cod_sell asks for it, "
          "host by all, device on the GPU, automatic on the GPU where its memory suffices."),
      key<RunConfig>("matrix.pair_window", Integer{1, 64}, POISSON_MEMBER(matrix.pair_window), "rows",
                     "cod_sell: rows that follow a row and may become its partner."),
      key<RunConfig>("matrix.merge_window", Integer{1, 64}, POISSON_MEMBER(matrix.merge_window), "groups",
                     "cod_sell: groups that follow a group and may be merged with it."),
      key<RunConfig>("matrix.base_candidates", Integer{0, 64}, POISSON_MEMBER(matrix.base_candidates), "columns",
                     "cod_sell: leading columns of a row that its distances may count from; 0 takes log2 of its length, and one."),
      section<RunConfig>("solver", "How the system is solved."),
      key<RunConfig>("solver.method", MethodChoice{}, POISSON_MEMBER(solver), "",
                     "Krylov method: cg for symmetric positive definite matrices, minres for symmetric ones, bicgstab and gmres "
                     "(restarted after 30 iterations) for any; auto takes cg where the matrix may be symmetric positive definite, "
                     "and bicgstab where it is not, or where cg finds that it is not."),
      key<RunConfig>(
          "solver.precision", Choice<Precision>{}, POISSON_MEMBER(solver.precision), "",
          "Arithmetic of the solver. refined: iterations in double, the solution and its residual in double_double; mixed: the "
          "same until it stagnates, then iterations in double_double; auto: double, and refined once double stagnates."),
      key<RunConfig>(
          "solver.matrix_precision", Choice<MatrixPrecision>{}, POISSON_MEMBER(matrix.precision), "",
          "Precision in which matrix entries are stored, whatever the solver's; entries of assembled matrices are known in "
          "double."),
      key<RunConfig>(
          "solver.preconditioner", Choice<PreconditionerKind>{}, POISSON_MEMBER(solver.preconditioner), "",
          "Preconditioner: the main diagonal (jacobi), an incomplete factorisation without fill (ic0 of symmetric positive "
          "definite matrices, ilu0 of any), a cycle of multigrid, or complete factors of small matrices (direct, on the cpu). auto "
          "takes none, jacobi or multigrid by predicted time; of a matrix from a file also incomplete factors, with the shift that "
          "they need, and complete ones."),
      key<RunConfig>(
          "solver.shift", Number{0, std::numeric_limits<double>::infinity(), true}, POISSON_MEMBER(solver.shift), "",
          "ic0 and ilu0: this times the largest entry of its row is added to every diagonal entry before they are computed; 0.01 "
          "or more where a pivot is zero or negative."),
      key<RunConfig>(
          "solver.ordering", Choice<Ordering>{}, POISSON_MEMBER(solver.ordering), "",
          "ic0 and ilu0: the order in which rows are eliminated. multicolor works on many rows at once, and takes some more "
          "iterations; auto takes it on a GPU where the natural order makes long chains of rows."),
      key<RunConfig>(
          "solver.tolerance", Tolerance{}, POISSON_MEMBER(solver), "",
          "The solver stops at this relative residual ||b - A x|| / ||b||; about 1e-15 is the least that double reaches on easy "
          "systems, and 1e-28 what the other precisions do. discretization: it stops when the algebraic error is far "
          "below the discretisation error, which the levels of multigrid estimate; on boxes of trilinear elements, with initial: "
          "nested."),
      key<RunConfig>(
          "solver.initial", Choice<InitialGuess>{}, POISSON_MEMBER(solver.initial), "",
          "Where iterations begin: at 0; nested, at what the levels of multigrid find from the coarsest on; or neighbour, in a "
          "sweep at the solution of the case that the job ran before, if that has the same mesh and is nearer than 0."),
      key<RunConfig>("solver.max_iterations", Integer{0, unlimited}, POISSON_MEMBER(solver.max_iterations), "",
                     "The solver gives up after so many iterations."),
      section<RunConfig>(
          "solver.checkpoint",
          "When the state of the solver is left in the results directory, so that --resume goes on from it. With one of "
          "these keys also when the run is interrupted, and when it gets the signal SIGUSR1."),
      key<RunConfig>("solver.checkpoint.every", Duration{}, POISSON_MEMBER(checkpoint.every), "s",
                     "Time from one checkpoint to the next.")
          .or_null("none after a time"),
      key<RunConfig>("solver.checkpoint.iterations", Integer{0, unlimited}, POISSON_MEMBER(checkpoint.iterations), "",
                     "Iterations from one checkpoint to the next, and some more to the end of a batch; 0: none after iterations."),
      section<RunConfig>("solver.multigrid", "Details of multigrid; the defaults are good."),
      key<RunConfig>("solver.multigrid.cycle", Choice<MultigridCycle>{}, POISSON_MEMBER(solver.multigrid.cycle), "",
                     "Visits of the coarser levels: v one; w two; f a v-cycle after the first, for bicgstab and gmres only."),
      key<RunConfig>("solver.multigrid.smoother", Choice<MultigridSmoother>{}, POISSON_MEMBER(solver.multigrid.smoother), "",
                     "Chebyshev's polynomial of the fourth kind of the given degree, or as many steps of damped Jacobi."),
      key<RunConfig>("solver.multigrid.degree", Integer{1, 10}, POISSON_MEMBER(solver.multigrid.degree), "",
                     "Products with the matrix of a level before its correction, and after it."),
      key<RunConfig>(
          "solver.multigrid.precision", Choice<MultigridPrecision>{}, POISSON_MEMBER(solver.multigrid.precision), "",
          "Precision inside a cycle. half: single, and on a GPU matrices of large levels that were made by aggregation are in half "
          "precision, with the row sums that they have in double; for cells that are not stretched."),
      key<RunConfig>("solver.multigrid.levels", Integer{1, 100}, POISSON_MEMBER(solver.multigrid.levels), "",
                     "Most levels, the finest included."),
      key<RunConfig>("solver.multigrid.coarse_size", Integer{1, 2000}, POISSON_MEMBER(solver.multigrid.coarse_size), "unknowns",
                     "No coarser level is made of one with so few unknowns; its matrix is inverted."),
      key<RunConfig>("backend", AutoChoice<Backend>{}, POISSON_MEMBER(backend), "",
                     "Where to compute; auto takes cuda when there is a device that works."),
  };
}

void check_solver(YamlNode const& root, RunConfig const& config) {
  check_initial(root, config);
  if (config.solver.multigrid.cycle == MultigridCycle::f && needs_symmetry(config.solver.method))
    reject(locate_path(root, "solver.multigrid.cycle").origin, "solver.multigrid.cycle",
           "found 'f', which is not symmetric, and " + std::string(name_of(config.solver.method)) +
               " needs that; take v or w, or the method bicgstab or gmres");
}

}  // namespace poisson::app::schema
