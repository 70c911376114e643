#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/linear_operator.hpp"
#include "gpu/core/names.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/preconditioners/choice.hpp"
#include "gpu/preconditioners/options.hpp"
#include "gpu/solvers/solver_state.hpp"
#include "gpu/solvers/true_residual.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace poisson {

enum class Method { cg, bicgstab, gmres, minres };
template <>
struct Names<Method> {
  static constexpr std::array<Named<Method>, 4> values{
      {{Method::cg, "cg"}, {Method::bicgstab, "bicgstab"}, {Method::gmres, "gmres"}, {Method::minres, "minres"}}};
};
/// Whether the method is for symmetric matrices and symmetric positive definite preconditioners only; the matrix of cg has to be
/// positive definite, too.
[[nodiscard]] constexpr bool needs_symmetry(Method method) {
  return method == Method::cg || method == Method::minres;
}

[[nodiscard]] constexpr int products_per_iteration(Method method) {
  return method == Method::bicgstab ? 2 : 1;
}

/// Arithmetic of the solver. `refined` is iterative refinement: iterations in double, the solution and its residual in
/// double-double. `mixed`: refined as long as that makes progress, then iterations in double-double. `automatic`: double, and where
/// that gets no further, or for tolerances that it never reaches, refined from the x it has come to.
enum class Precision { automatic, double_, double_double, refined, mixed };
template <>
struct Names<Precision> {
  static constexpr std::array<Named<Precision>, 5> values{{{Precision::automatic, "auto"},
                                                           {Precision::double_, "double"},
                                                           {Precision::double_double, "double_double"},
                                                           {Precision::refined, "refined"},
                                                           {Precision::mixed, "mixed"}}};
};

/// Where iterations begin: at 0, at what the levels of multigrid find from the coarsest on, or at the solution of a problem nearby
/// (SolverOptions::start).
enum class InitialGuess { zero, nested, neighbour };
template <>
struct Names<InitialGuess> {
  static constexpr std::array<Named<InitialGuess>, 3> values{
      {{InitialGuess::zero, "zero"}, {InitialGuess::nested, "nested"}, {InitialGuess::neighbour, "neighbour"}}};
};

enum class SolverStatus { converged, max_iterations, stagnated, breakdown, diverged, interrupted };
template <>
struct Names<SolverStatus> {
  static constexpr std::array<Named<SolverStatus>, 6> values{{{SolverStatus::converged, "converged"},
                                                              {SolverStatus::max_iterations, "max_iterations"},
                                                              {SolverStatus::stagnated, "stagnated"},
                                                              {SolverStatus::breakdown, "breakdown"},
                                                              {SolverStatus::diverged, "diverged"},
                                                              {SolverStatus::interrupted, "interrupted"}}};
};

/// What `solve` makes of a matrix before it iterates, the preconditioner among it: see SolverOptions::kept.
struct KeptSetup {
  std::shared_ptr<void> made{};  ///< null: nothing yet
};

struct SolverOptions {
  Method method = Method::cg;
  Precision precision = Precision::double_;
  PreconditionerKind preconditioner = PreconditionerKind::none;
  double shift = 0;                            ///< of ic0 and ilu0: see IncompleteLu
  Ordering ordering = Ordering::automatic;     ///< of the rows in ic0 and ilu0
  std::array<std::int64_t, 3> box_nodes{};     ///< see PreconditionerOptions
  std::shared_ptr<RankBlocks const> blocks{};  ///< of `ranks` that share a box of trilinear elements: see PreconditionerOptions
  OrderOneProvider order_one{};                ///< see PreconditionerOptions
  NumberedRowsProvider rows_of_rank{};         ///< see PreconditionerOptions
  RankNestedProvider nested_spaces{};          ///< see PreconditionerOptions
  int element_order = 0;                       ///< with it: of the elements of A
  MultigridOptions multigrid{};
  double tolerance = 1e-12;  ///< on ||b - A x|| / ||b||
  /// A is of no elements, so that nothing is known of it: PreconditionerKind::automatic also considers incomplete factors, with a
  /// diagonal shift where they need one, and, on the host, complete ones of small matrices.
  bool general = false;
  /// Where cg fails, above all where it finds that A is not positive definite, bicgstab goes on.
  bool falls_back = false;
  InitialGuess initial = InitialGuess::zero;  ///< nested: with multigrid only
  /// With InitialGuess::neighbour: iterations begin at this x, which is where b is, if its residual is smaller than that of 0;
  /// null: they begin at 0. It outlives the call.
  Array<double> const* start = nullptr;
  /// The tolerance is chosen from an estimate of the discretisation error, which nested iteration gives. For that A must be of
  /// trilinear elements on a box, and its coarser levels too (multigrid on options.box_nodes, or options.blocks).
  bool to_discretization = false;
  /// Whether solutions on coarser levels are near that of A. They are not where b has the boundary values of u, which A takes to be
  /// 0: then nothing is said of the discretisation error, and to_discretization goes to `tolerance`.
  bool levels_tell_error = true;
  std::int64_t max_iterations = 10000;
  /// The null space of the matrix is spanned by the constant vector (pure Neumann problems): residuals are kept orthogonal to it.
  bool constant_null_space = false;
  /// Called after every batch of iterations (solvers/batch.hpp; about ten times a second or more often) with the number of
  /// iterations and the relative residual. After it the solver ends with status `interrupted` if core/interrupt.hpp has a request.
  std::function<void(std::int64_t iteration, double relative_residual)> monitor{};
  /// Provides the entries of the matrix for preconditioners that are made from them (needs_csr). It may be empty with the others.
  CsrProvider csr{};
  SetupSteps* setup_steps = nullptr;  ///< see PreconditionerOptions::steps
  /// Where `solve` leaves what it has made of A, and takes it from; null: nowhere. Precondition of a call that finds something
  /// there: A is the object that it was made of, with the same entries, and options are the same but for tolerance, start, initial,
  /// monitor, setup_steps, and functions that provide the same. A outlives it, and so do `ranks`.
  KeptSetup* kept = nullptr;
  /// Where `solve` leaves its state between batches of iterations, and goes on from one; null: nowhere, which costs nothing. It
  /// outlives the call. solve_block takes none.
  SolverCheckpoints* checkpoints = nullptr;
  /// The ranks that share the rows of A (formats/rank_matrix.hpp). They outlive the call.
  std::reference_wrapper<Communicator> ranks = alone();
};

/// The way by which x was found: of several preconditioners and methods the last one that brought it nearer to the solution.
struct SolverWay {
  PreconditionerKind preconditioner{};                  ///< never `automatic`
  Method method{};                                      ///< of the iterations
  double shift = 0;                                     ///< of ic0 and ilu0, the one given or the one that was needed
  Ordering ordering{};                                  ///< in use by ic0 or ilu0; `automatic` without them
  std::int64_t levels = 0;                              ///< of their lower triangle, see preconditioners/ordering.hpp
  std::vector<MultigridLevelSummary> multigrid_levels;  ///< from the finest on; empty without multigrid
};

struct SolverResult : SolverWay {
  SolverStatus status{};
  std::string reason;                             ///< one sentence for the user when the status is not `converged`
  Precision precision{};                          ///< of the last iterations; never `automatic`
  std::vector<PreconditionerEstimate> estimates;  ///< from which `automatic` was chosen; else empty
  std::vector<std::string> notes;                 ///< one sentence for every change of precision or preconditioner on the way
  double tolerance = 0;                           ///< in use: the one given, or that of to_discretization
  /// Both errors are in the energy norm and relative to the solution. With to_discretization the levels tell the discretisation
  /// error, and the algebraic error is that in the end. Without it both are -1.
  double discretization_error = -1, algebraic_error = -1;
  bool began_at_start = false;  ///< at SolverOptions::start
  std::int64_t iterations = 0;
  std::int64_t cycles = 0;          ///< of iterations, each begun with a residual computed from x
  std::int64_t extended_from = -1;  ///< iteration from which `mixed` went on in double-double; -1: it did not
  /// ||r|| / ||b|| at the end, with r as the recursion updates it. Where the returned x is another one than the last, or where
  /// rounding has separated r from b - A x more than a little and the run did not stagnate, that of the returned x.
  double residual_recursive = 0;
  std::vector<double> history;     ///< relative residual after iterations 0, 1, ...
  double setup_seconds = 0;        ///< of the preconditioner
  double seconds = 0;              ///< iterations only: no transfer, no conversion, no setup
  double bytes_per_iteration = 0;  ///< compulsory bytes of one iteration, for GB/s
  /// Low parts of the solution, whose high parts are x; empty with Precision::double_, and where x stays on the backend.
  HostVector<double> x_low;
};

/// Solves A x = b from x = 0, or as options.initial says, on the operator's backend. b has n_rows entries in its memory; x and
/// x_low are made there: the solution, and its low parts, which are empty with Precision::double_.
///
/// The status is `converged` when ||b - A x|| / ||b||, computed from x in the arithmetic of the solution, is at most twice the
/// tolerance. Where only the residual of the recursion is that small, a new cycle begins with the computed residual, as long as
/// that makes progress. Where the main diagonal D spans more than a factor of 1e3, rows with small entries hardly count in that
/// norm, and ||D^-1/2 (b - A x)|| / ||D^-1/2 b|| is at most twice the tolerance, too. A run that does not converge returns the
/// iterate with the least ||b - A x|| among those it has kept and x = 0; cg that is stopped early (max_iterations, interrupted)
/// returns its last iterate, where that is no worse than x = 0. Zero b gives x = 0, converged after 0 iterations.
///
/// With PreconditionerKind::automatic a preconditioner that fails, or takes longer than the next best was predicted to, gives way
/// to that one, which goes on from the same x. One that has failed is not tried again. Every such change is in `notes`. Where none
/// converges, status and reason are those of the last one that brought x nearer to the solution.
///
/// With options.ranks, A, b and x are the rows of this rank, every rank calls with the same options, and all get the same result
/// but for x, seconds and bytes. An interrupt on one rank ends all of them. Wrong input on one rank throws on all; after any other
/// exception on one rank the others wait for it, and its caller has to end them (Communicator::end_all).
///
/// Throws InputError when A is not square, when sizes do not fit, when b or the matrix has a NaN or an infinity (the row is named),
/// or when the preconditioner needs entries that options.csr, or options.rows_of_rank, does not provide; OutOfMemoryError.
[[nodiscard]] SolverResult solve(MultiPrecisionOperator const& a, Array<double> const& b, Array<double>& x, Array<double>& x_low,
                                 SolverOptions const& options);
/// Solves the same with b and x in host memory; low parts are in SolverResult::x_low.
[[nodiscard]] SolverResult solve(MultiPrecisionOperator const& a, std::span<double const> b, std::span<double> x,
                                 SolverOptions const& options);

/// Solves A x = b for several right-hand sides, with one setup of the preconditioner. `at_once` of them, 1 to most_columns, are
/// iterated together, in lock step: a pass over the matrix, or over a level of multigrid, then serves all of them where the format
/// has a loop for it (LinearOperator::product_dots, Preconditioner::apply_to_all; bicgstab takes one after another). Every one has
/// its own scalars, stops by its own criterion and is left out from then on, and has its own result, that of `solve` with it alone.
/// On the host its x, iterations and history have the same bits, too; on a device they have where neither the format nor a level of
/// multigrid has such a loop.
/// Where `auto` has to try another preconditioner or precision, the right-hand side goes on alone. Zero and equal ones are fine.
///
/// `x` and `x_low` have as many places as b, whose arrays are replaced; see `solve`. `seconds` of a result are those of all
/// that were iterated together with it. `setup_seconds` are in the result of the first one that needed the setup. The monitor is
/// called for each. options.to_discretization chooses a tolerance for each. Memory is that of `solve` with `at_once` times its
/// vectors. Throws as `solve`, and InputError where numbers of arrays differ, or at_once is out of range.
[[nodiscard]] std::vector<SolverResult> solve_block(MultiPrecisionOperator const& a, std::span<Array<double> const> b,
                                                    std::span<Array<double>> x, std::span<Array<double>> x_low,
                                                    SolverOptions const& options, int at_once = most_columns);

/// Bytes in the backend's memory that `solve` takes besides the operator and b: vectors and the preconditioner. With
/// Ordering::automatic those of the multicolor ordering, the larger ones.
[[nodiscard]] std::int64_t solver_bytes(std::int64_t n_rows, std::int64_t nnz, SolverOptions const& options);

/// OrderOne before it is there.
struct ExpectedOrderOne {
  int order = 0;                       ///< of the elements of the operator; 0: there is no OrderOne
  std::int64_t rows = 0;               ///< of its matrix
  std::int64_t nodes = 0;              ///< of half_cds, with copies on rims of lattices; 0: aggregation makes its levels, from CSR
  std::int64_t tensors = 0;            ///< bytes of its matrix where that is matrix-free
  std::int64_t tables = 0;             ///< bytes of the tables of both levels that the transfer keeps
  std::int64_t host = 0, backend = 0;  ///< bytes while it is made
};

/// An operator that `solve` is to be called with, before it is there.
struct ExpectedSystem {
  Backend backend{};
  Format format{};
  std::int64_t n_rows = 0, nnz = 0;
  std::int64_t bytes_per_product = 0;          ///< as LinearOperator<double> has it
  bool has_csr = false;                        ///< options.csr gives a matrix that there is, and makes none
  bool is_stencil = false;                     ///< matrix_free on a box, by a stencil or by labels of cells
  bool from_labels = false;                    ///< by labels
  std::int64_t void_box_nodes = 0;             ///< of what void left of a box (VoidBoxOperator): nodes of the box; else 0
  std::int64_t rows_of_all = 0;                ///< on several ranks
  std::int64_t block_nodes = 0;                ///< of ranks that share a box of order 1: nodes_of_block
  std::array<std::int64_t, 3> nodes_of_all{};  ///< then the nodes of the box
  bool repeats = false;                        ///< this rank alone has the box, which repeats itself, as a block
  bool has_stencil_levels = false;             ///< and no Robin face: its coarser levels are stencils, too (BoxOperator::coarser)
  std::int64_t n_lattice_nodes = 0;            ///< of half_cds on lattices: nodes of all of them, with copies on rims; else 0
  std::int64_t lattice_cells = 0;              ///< and their cells a side
  ExpectedOrderOne order_one{};
  int nested_from = 0;  ///< order of the elements where there are nested spaces (SolverOptions::nested_spaces); else 0
};

/// Bytes that `solve` takes besides the operator, b and x at its peak: while the preconditioner is made, or while it iterates. With
/// the cpu backend all are `host`. Of aggregation the entries of P, of A P and of coarser levels are those measured with elements
/// of order 1 to 3 on balls and boxes: 5 a row, 0.6 and 0.13 times those of A.
struct SolverMemory {
  std::int64_t host = 0, device = 0;
  std::int64_t column = 0;              ///< of them in the backend's memory, what every right-hand side of solve_block takes
  PreconditionerKind preconditioner{};  ///< the one that they are for
};
[[nodiscard]] SolverMemory solver_memory(ExpectedSystem const& system, SolverOptions const& options);

}  // namespace poisson
