#include "gpu/solvers/solver.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/number_text.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/elements/void_box_operator.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/graph.hpp"
#include "gpu/kernels/vectors.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/preconditioners/registry.hpp"
#include "gpu/solvers/batch.hpp"
#include "gpu/solvers/gathered_sum.hpp"
#include "gpu/solvers/krylov.hpp"
#include "gpu/solvers/right_hand_side.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace poisson {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct MethodEntry {
  Method method;
  std::unique_ptr<KrylovMethod<double>> (*make)(KrylovSystem<double> const&);
  std::unique_ptr<KrylovMethod<DoubleDouble>> (*make_extended)(KrylovSystem<DoubleDouble> const&);
  std::int64_t (*vectors)(PreconditionerForm);
};

constexpr std::array method_entries{
    MethodEntry{Method::cg, &make_cg<double>, &make_cg<DoubleDouble>, &cg_vectors},
    MethodEntry{Method::bicgstab, &make_bicgstab<double>, &make_bicgstab<DoubleDouble>, &bicgstab_vectors},
    MethodEntry{Method::gmres, &make_gmres<double>, &make_gmres<DoubleDouble>, &gmres_vectors},
    MethodEntry{Method::minres, &make_minres<double>, &make_minres<DoubleDouble>, &minres_vectors}};
static_assert(method_entries.size() == Names<Method>::values.size(), "every method has its row");

MethodEntry const& entry_of(Method method) {
  return *std::find_if(method_entries.begin(), method_entries.end(), [&](MethodEntry const& m) { return m.method == method; });
}

template <class T>
std::unique_ptr<KrylovMethod<T>> make_method(Method method, KrylovSystem<T> const& system) {
  if constexpr (std::is_same_v<T, double>)
    return entry_of(method).make(system);
  else
    return entry_of(method).make_extended(system);
}

/// `converged` promises no more than this times the tolerance.
constexpr double residual_slack = 2;
/// A cycle that leaves more than this share of the residual has made no progress.
constexpr double progress = 0.5;
/// How far below ||r|| of the recursion and of b - A x may be apart for the search directions to be kept.
constexpr double small_drift = 0.05;
/// Cycles in double inside of more precision end where rounding has put about this share of ||r|| between r and b - A x (in units
/// of 2^-53 max |a_ii| ||d||), so that the directions can be kept; and at the latest when the residual has fallen so far.
constexpr double cycle_drift = 0x1p13, cycle_fall = 1e-10, least_fall = 1e-2;

/// A recursion that is believed though it is so small is looked at again when it has fallen by this.
constexpr double next_look = 0x1p-4;

/// Convergence is not monotone in this norm, and residuals of ill-conditioned systems may grow for many times n iterations before
/// they fall: the window is generous.
std::int64_t stagnation_window(std::int64_t n) {
  return std::clamp<std::int64_t>(10 * n, 5000, 20000);
}

/// Iterations that are launched as one graph, for systems so small that launches set the pace, and how many iterations a run must
/// have behind it before that is worth its own cost.
constexpr std::int64_t iterations_of_graph = 8, rows_worth_graph = 1 << 19, iterations_before_graph = 16;

/// Iterations between two copies of x: a copy costs less than half a percent of them.
constexpr std::int64_t iterations_between_copies = 16;

/// A main diagonal that spans more than this is badly scaled: Jacobi's preconditioner alone may make up for it, and ||b - A x||
/// says little of rows with small entries. Cells of different sizes alone make it span less.
constexpr double badly_scaled = 1e3;
/// How far the goal is lowered at most, at once, for rows with small entries.
constexpr double least_lowering = 0.1, most_lowering = 1e-8;

/// Below this tolerance double is not tried; and where it has stagnated above this residual, digits are not what it lacks.
constexpr double least_tolerance_of_double = 2e-15, progress_of_double = 1e-3;

/// Seconds that the first preconditioner of `automatic` may take at least; and each of them where nothing is known of the matrix.
constexpr double long_enough = 0.5, long_enough_of_general = 0.05;
/// Iterations with complete factors: they mend what rounding has left.
constexpr std::int64_t iterations_of_direct = 50;
/// Diagonal shifts of incomplete factors that are tried where a pivot is bad.
constexpr std::array shifts{1e-3, 1e-2, 1e-1};

/// max |a_ii|, and that over min |a_ii|: infinite where one is 0.
struct DiagonalRange {
  double largest = 0, span = 0;

  DiagonalRange(LinearOperator<double> const& a, Context& context, Communicator& ranks) {
    Array<double> diagonal(context, a.n_rows());
    a.diagonal(diagonal.data());
    largest = largest_of(context, a.n_rows(), diagonal.data());
    kernels_for<VectorKernels<double>>(context).invert(context, a.n_rows(), diagonal.data());
    double const inverse = largest_of(context, a.n_rows(), diagonal.data());
    largest = max_over(ranks, largest);
    span = largest * max_over(ranks, inverse);
  }
};

/// The main diagonal, by which residuals are weighted (DiagonalWeights); empty where it is not badly scaled.
Array<double> weights_of_rows(LinearOperator<double> const& a, Context& context, DiagonalRange const& range) {
  if (!(range.span > badly_scaled))
    return {};
  Array<double> diagonal(context, a.n_rows());
  a.diagonal(diagonal.data());
  return diagonal;
}

/// The algebraic error that is aimed at, over the discretisation error, in the norms of the energy and of L2. What is left once the
/// residual is small enough is smoother than what there was, and larger beside its residual; 0.05 is what must not be exceeded.
constexpr double share_of_discretization = 0.02;

Array<double> zeros(Context& context, std::int64_t n) {
  Array<double> x(context, n);
  x.set_zero();
  return x;
}

struct Outcome {
  SolverStatus status{};
  std::string reason;
};

/// The best iterate that the host has seen, by the recursion's ||r||; not beyond it.
template <class T>
struct KeptIterate {
  double norm;
  Vector<T> x{};
  std::int64_t iteration = 0;
};

/// Cycles of iterations in the arithmetic T on one right-hand side, in steps that several runs take together.
template <class T>
class Run {
public:
  virtual ~Run() = default;
  [[nodiscard]] virtual KrylovMethod<T>& method() = 0;
  /// A cycle is to begin with this.
  [[nodiscard]] virtual typename KrylovMethod<T>::Beginning begin_cycle() = 0;
  /// It has begun.
  virtual void look_at_beginning() = 0;
  /// Number of iterations to enqueue; 0 where the cycle ends. Iterations are enqueued in batches; after each, the host looks at
  /// what happened. Where the state stops in the middle of a batch, the rest of it changes nothing.
  [[nodiscard]] virtual std::int64_t next_batch() = 0;
  /// The batch is enqueued.
  virtual void look() = 0;
  /// Nothing where another cycle is to follow.
  [[nodiscard]] virtual std::optional<Outcome> end_cycle() = 0;
  /// Iterations of the cycle so far; of one that goes on from a state those since.
  [[nodiscard]] virtual std::int64_t iterations_of_cycle() const = 0;
  /// Whether it goes on within a cycle, from a state that was left there.
  [[nodiscard]] virtual bool is_in_cycle() const = 0;
};

/// Iterations of several methods at once, in lock step: method j takes counts[j] of them. On small systems they are launched as
/// graphs, one for every set of methods that iterate together.
template <class T>
class LockStep {
public:
  LockStep(Context& context, bool may_be_graph) : context_(context), may_be_graph_(may_be_graph) {}

  void run(std::vector<KrylovMethod<T>*> methods, std::vector<std::int64_t> counts, bool worth_graph) {
    std::int64_t done = 0;
    while (!methods.empty()) {
      std::int64_t const count = *std::min_element(counts.begin(), counts.end()) - done;
      enqueue(methods, count, worth_graph);
      done += count;
      for (std::size_t j = methods.size(); j-- > 0;)
        if (counts[j] == done) {
          methods.erase(methods.begin() + static_cast<std::ptrdiff_t>(j));
          counts.erase(counts.begin() + static_cast<std::ptrdiff_t>(j));
        }
    }
  }
  /// A cycle has begun: what was captured before is of another one.
  void forget_graph() {
    graph_.reset();
    captured_.clear();
  }

private:
  void enqueue(std::vector<KrylovMethod<T>*> const& methods, std::int64_t count, bool worth_graph) {
    auto const iterate = [&] { methods.front()->iterate_together(methods); };
    if (may_be_graph_ && worth_graph && captured_ != methods) {
      captured_ = methods;
      graph_ = kernels_for<GraphKernels>(context_).capture(context_, [&] {
        for (std::int64_t i = 0; i < iterations_of_graph; ++i)
          iterate();
      });
    }
    std::int64_t enqueued = 0;
    if (graph_ != nullptr && captured_ == methods)
      for (; enqueued + iterations_of_graph <= count; enqueued += iterations_of_graph)
        graph_->launch();
    for (; enqueued < count; ++enqueued)
      iterate();
  }

  Context& context_;
  bool may_be_graph_;
  std::unique_ptr<Graph> graph_;
  std::vector<KrylovMethod<T>*> captured_;  ///< that the graph is of, or for which there is none
};

/// Takes all runs to their ends, in lock step. Every run has its own scalars and stops by its own criterion, and is left out from
/// the batch after that; until then its kernels change nothing. What it does depends on no other run.
template <class T>
std::vector<Outcome> run_together(std::span<Run<T>* const> runs, Context& context, bool may_be_graph) {
  std::vector<Outcome> outcomes(runs.size());
  std::vector<std::size_t> active(runs.size());
  std::iota(active.begin(), active.end(), std::size_t{0});
  std::vector<bool> in_cycle(runs.size());
  for (std::size_t j = 0; j < runs.size(); ++j)
    in_cycle[j] = runs[j]->is_in_cycle();
  LockStep<T> lock_step(context, may_be_graph);
  while (!active.empty()) {
    std::vector<KrylovMethod<T>*> methods;
    std::vector<typename KrylovMethod<T>::Beginning> beginnings;
    for (std::size_t const j : active)
      if (!in_cycle[j]) {
        methods.push_back(&runs[j]->method());
        beginnings.push_back(runs[j]->begin_cycle());
      }
    if (!methods.empty()) {
      lock_step.forget_graph();
      methods.front()->begin_together(methods, beginnings);
      for (std::size_t const j : active)
        if (!in_cycle[j]) {
          runs[j]->look_at_beginning();
          in_cycle[j] = true;
        }
    }
    methods.clear();
    std::vector<std::int64_t> counts;
    std::vector<std::size_t> iterating, still;
    bool worth_graph = true;
    for (std::size_t const j : active)
      if (std::int64_t const count = runs[j]->next_batch(); count > 0) {
        methods.push_back(&runs[j]->method());
        counts.push_back(count);
        iterating.push_back(j);
        worth_graph = worth_graph && runs[j]->iterations_of_cycle() >= iterations_before_graph;
      } else {
        in_cycle[j] = false;
      }
    lock_step.run(methods, counts, worth_graph);
    for (std::size_t const j : iterating)
      runs[j]->look();
    for (std::size_t const j : active) {
      if (!in_cycle[j])
        if (std::optional<Outcome> const outcome = runs[j]->end_cycle()) {
          outcomes[j] = *outcome;
          continue;
        }
      still.push_back(j);
    }
    active = still;
  }
  return outcomes;
}

/// One call of solve: b, x and the residual of x in the arithmetic X, and cycles of iterations on them.
template <class X>
class Solve {
public:
  Solve(LinearOperator<X> const& a, Array<double> const& b, SolverOptions const& options, PreconditionerSetup const* setup,
        LinearOperator<double> const& in_double, DiagonalRange const& range, Array<double> const& weights, Context& context,
        SolverResult& result)
      : a_(a),
        options_(options),
        setup_(setup),
        in_double_(in_double),
        context_(context),
        result_(result),
        n_(a.n_rows()),
        n_of_all_(sum_over(options.ranks, n_)),
        range_(range),
        weights_(weights),
        weighted_(range.span > badly_scaled),
        sum_(context, options.ranks),
        rhs_(context, b, options.constant_null_space, options.ranks),
        x_(context, n_),
        r_(context, n_),
        square_(context, 1),
        bytes_(result.bytes_per_iteration * static_cast<double>(result.iterations)) {
    x_.set_zero();
    vectors().copy(context_, n_, rhs_.data(), r_.data());
    norm_ = norm_of_zero_ = norm_of_residual();
    // b_norm_ is the norm of the scaled b before its projection.
    b_norm_ =
        rhs_.is_projected() ? std::scalbn(norm_over(options_.ranks, norm_of(context_, n_, b.data())), -rhs_.exponent()) : norm_;
    if (weighted_)
      weighted_b_norm_ = std::scalbn(weighted_norm(b.data()), -rhs_.exponent());
  }

  /// Goes on from a state of the same system, of which the caller has read what it had added. `run` reads the rest.
  void go_on_from(StateStream& state) {
    serialize(state);
    saved_ = &state;
  }
  /// What the caller adds to every state that is left.
  void add_to_states(SolverCheckpoints::Write outside) { outside_ = std::move(outside); }

  /// Begins with the x that another call has come to, in its scale, which is the same. Overwrites x.
  void start_from(Vector<double> x) {
    if constexpr (std::is_same_v<X, double>)
      vectors().copy(context_, n_, x.data(), x_.data());
    else
      kernels_for<FieldKernels>(context_).add(context_, n_, 1, x.data(), x_.data());
    compute_residual();
  }
  /// Begins with an x in the caller's scale, if its residual is smaller than that of 0. Returns whether it is.
  bool start_near(Array<double> const& x) {
    Vector<double> scaled(context_, n_);
    kernels_for<FieldKernels>(context_).scale(context_, n_, -rhs_.exponent(), x.data(), scaled.data());
    start_from(std::move(scaled));
    if (norm_ < norm_of_zero_)
      return true;
    x_.set_zero();
    vectors().copy(context_, n_, rhs_.data(), r_.data());
    norm_ = norm_of_zero_;
    return false;
  }
  /// Begins with the x of nested iteration. Returns the tolerance with which the algebraic error is small beside the discretisation
  /// error in the norms of the energy and of L2, or 0 where the levels say nothing of it.
  double start_nested() {
    if (setup_ == nullptr || setup_->multigrid_levels().empty())
      throw InputError("solver.initial", "nested needs the levels of multigrid, and here are none; use solver.preconditioner: "
                                         "multigrid, or zero");
    Vector<double> x(context_, n_), coarse(context_, n_), product(context_, n_);
    if (!setup_->start_nested(high(rhs_.data()), x.data(), coarse.data()))
      return 0;  // one level, which is solved directly
    double const l2 = std::max(dot(x.data(), x.data()) - 2 * dot(x.data(), coarse.data()) + dot(coarse.data(), coarse.data()), 0.0);
    in_double_.product(1, x.data(), 0, product.data());
    double const of_x = dot(x.data(), product.data()), mixed = dot(coarse.data(), product.data());
    in_double_.product(1, coarse.data(), 0, product.data());
    double const of_coarse = dot(coarse.data(), product.data());
    start_from(std::move(x));
    if (!options_.levels_tell_error)
      return 0;
    // ||u - u_2h||^2 = ||u - u_h||^2 + ||u_h - u_2h||^2 in the energy norm, and with p = 1 the left one is four times the first on
    // the right. In L2, where the order is two, u_2h - u_h is about three times u_h - u.
    double const square = (of_x - 2 * mixed + of_coarse) / 3;
    if (!(square > 0 && of_x > square && l2 > 0))
      return 0;
    result_.discretization_error = std::sqrt(square / of_x);
    ErrorNorms const error = algebraic_error();
    double const share = std::max(error.energy / result_.discretization_error, error.l2 / (std::sqrt(l2) / 3));
    return norm_ / b_norm_ * std::min(1.0, share_of_discretization / share);
  }
  struct ErrorNorms {
    double energy;  ///< relative to x
    double l2;      ///< of the vector of unknowns
  };
  /// Returns the norms of the error A^-1 r, as far as M is A^-1.
  ErrorNorms algebraic_error() {
    Vector<double> z(context_, n_);
    std::int32_t const no = 0;
    Array<std::int32_t> const running(context_, std::span<std::int32_t const>(&no, 1));
    setup_->applied_in(double())->apply(high(r_.data()), z.data(), running.data());
    double const energy = dot(high(x_.data()), high(rhs_.data())), of_error = std::max(dot(high(r_.data()), z.data()), 0.0);
    return {energy > 0 ? std::sqrt(of_error / energy) : 0, std::sqrt(dot(z.data(), z.data()))};
  }

  /// x, or its high parts, in the scale of the iterations.
  Vector<double> take_x() {
    if constexpr (std::is_same_v<X, double>)
      return std::move(x_);
    else {
      Vector<double> high(context_, n_);
      kernels_for<VectorKernels<double>>(context_).copy(context_, n_, x_.data().hi, high.data());
      return high;
    }
  }

  /// Cycles of iterations in the arithmetic T on each of several right-hand sides of one system, until x is good enough or they get
  /// no further. They share the setup of the preconditioner.
  template <class T>
  static std::vector<Outcome> run(std::span<Solve* const> solves, LinearOperator<T> const& a) {
    Solve& first = *solves.front();
    std::unique_ptr<Preconditioner<T>> const preconditioner = first.setup_ != nullptr ? first.setup_->applied_in(T(0)) : nullptr;
    std::vector<std::unique_ptr<Cycles<T>>> cycles;
    std::vector<Run<T>*> runs;
    for (Solve* const solve : solves) {
      cycles.push_back(std::make_unique<Cycles<T>>(*solve, a, preconditioner.get()));
      if (solve->saved_ != nullptr)
        cycles.back()->go_on_from(*std::exchange(solve->saved_, nullptr));
      runs.push_back(cycles.back().get());
    }
    return run_together<T>(runs, first.context_,
                           first.options_.ranks.get().is_alone() && first.n_ <= rows_worth_graph &&
                               !runs.front()->method().x_lags());
  }

  /// ||b - A x|| / ||b||.
  [[nodiscard]] double residual() const { return norm_ / b_norm_; }

  /// Gives the solution away, in the caller's scale; `low` gets its low parts in DoubleDouble, or none.
  void solution(Array<double>& x, Array<double>& low) {
    rhs_.unscale(x_);
    low = x_.take_low();
    x = x_.take_high();
  }

private:
  VectorKernels<X> const& vectors() const { return kernels_for<VectorKernels<X>>(context_); }
  void serialize(StateStream& state) {
    state.vector(context_, x_);
    state.vector(context_, r_);
    state.value(norm_);
    state.value(weighted_residual_);
    state.value(bytes_);
  }
  static double const* high(ConstPointer<X> v) {
    if constexpr (std::is_same_v<X, double>)
      return v;
    else
      return v.hi;
  }
  double dot(double const* x, double const* y) {
    Array<double> result(context_, 1);
    kernels_for<VectorKernels<double>>(context_).dot(context_, n_, x, y, result.data());
    double value = 0;
    result.download(std::span<double>(&value, 1));
    return sum_over(options_.ranks, value);
  }

  /// x itself, or in a lesser arithmetic the part of it that is added after a cycle.
  template <class T>
  Pointer<T> inner_x(Vector<T>& d) {
    if constexpr (std::is_same_v<T, X>)
      return x_.data();
    else
      return d.data();
  }
  /// The residual, or its high parts.
  template <class T>
  Pointer<T> inner_r() {
    if constexpr (std::is_same_v<T, X>)
      return r_.data();
    else
      return r_.data().hi;
  }

  double norm_of_residual() {
    vectors().dot(context_, n_, r_.data(), r_.data(), square_.data());
    if (RankSum<X>* const sum = sum_.or_null())
      sum->add(context_, square_.data(), 1);
    X square{};
    square_.download(std::span<X>(&square, 1));
    return norm_of(square);
  }
  /// sqrt(sum w_i^2 v_i^2).
  double weighted_norm(double const* v) const {
    return norm_over(options_.ranks, norm_of(context_, n_, v, {weights_.data(), range_.largest}));
  }
  void compute_residual() {
    vectors().copy(context_, n_, rhs_.data(), r_.data());
    a_.product(X(-1), x_.data(), X(1), r_.data());
    norm_ = norm_of_residual();
  }

  /// x += d, then d = 0; not when ||b - A x||, computed anew, was `before` and would not be less.
  template <class T>
  void add_to_x(Vector<T>& d, KeptIterate<T>& kept, double before) {
    auto const& refinement = kernels_for<FieldKernels>(context_);
    keep(d.data(), kept);
    refinement.add(context_, n_, 1, d.data(), x_.data());
    compute_residual();
    if (norm_ <= before)
      return;
    refinement.add(context_, n_, -1, kept.x.data(), x_.data());
    compute_residual();
    result_.residual_recursive = result_.history.back() = norm_ / b_norm_;
  }

  template <class T>
  void keep(ConstPointer<T> x, KeptIterate<T>& kept) {
    if (kept.x.size() != n_)
      kept.x = Vector<T>(context_, n_);
    kernels_for<VectorKernels<T>>(context_).copy(context_, n_, x, kept.x.data());
  }

  /// Takes the iterate with the least ||b - A x|| among those at hand and x = 0, after a run that did not converge. A cg that was
  /// stopped early keeps its last iterate if that is no worse than x = 0: every iteration of cg brings x nearer to the solution in
  /// the energy norm, while the residual goes up and down. This does not hold for a matrix that is not positive definite.
  template <class T>
  Outcome with_best(Outcome outcome, KeptIterate<T>& kept) {
    bool const stopped = outcome.status == SolverStatus::interrupted || outcome.status == SolverStatus::max_iterations;
    bool const last_is_best = stopped && options_.method == Method::cg && norm_ <= norm_of_zero_;
    if constexpr (std::is_same_v<T, X>)
      if (!last_is_best && kept.iteration > 0 && !(norm_ <= kept.norm)) {  // not by its size: a rank may have no rows
        double const last = norm_;
        std::swap(x_, kept.x);
        compute_residual();
        if (norm_ >= last) {
          std::swap(x_, kept.x);
          compute_residual();
        } else {
          result_.residual_recursive = norm_ / b_norm_;
          outcome.reason += "; the solution comes from iteration " + std::to_string(kept.iteration) +
                            ", with a relative residual of " + number(result_.residual_recursive);
        }
      }
    // Where rounding has put more than a little between the recursion and x, what is told is of x; stagnation tells both.
    if (outcome.status != SolverStatus::stagnated &&
        !(std::abs(norm_ - result_.residual_recursive * b_norm_) <= small_drift * norm_))
      result_.residual_recursive = norm_ / b_norm_;
    if (!last_is_best && !(norm_ <= norm_of_zero_)) {
      x_.set_zero();
      compute_residual();
      result_.residual_recursive = norm_ / b_norm_;
      outcome.reason += "; no iterate was better than x = 0, which is the solution that is given";
    }
    return outcome;
  }

  /// See Run.
  template <class T>
  class Cycles final : public Run<T> {
    static constexpr bool same = std::is_same_v<T, X>;

  public:
    Cycles(Solve& solve, LinearOperator<T> const& a, Preconditioner<T>* preconditioner)
        : solve_(solve),
          result_(solve.result_),
          options_(solve.options_),
          d_(solve.context_, same ? 0 : solve.n_),
          sum_(solve.context_, options_.ranks),
          system_{a,
                  preconditioner,
                  solve.context_,
                  options_.constant_null_space,
                  solve.template inner_x<T>(d_),
                  solve.template inner_r<T>(),
                  sum_.or_null()},
          method_(make_method<T>(options_.method, system_)),
          batch_(batch_size(preconditioner)),
          kept_{solve.norm_of_zero_},
          iterations_before_(result_.iterations),
          bytes_before_(solve.bytes_),
          tolerance_(options_.tolerance * solve.b_norm_),
          goal_(tolerance_),
          trust_(unit_roundoff<T> * solve.range_.largest * (same ? 0.125 : cycle_drift)) {
      d_.set_zero();
      if constexpr (same)  // where another preconditioner has come to is not lost, whatever this one does
        if (result_.iterations > 0 && solve.norm_ < kept_.norm) {
          solve.template keep<T>(system_.x, kept_);
          kept_.norm = solve.norm_;
          kept_.iteration = result_.iterations;
        }
    }

    KrylovMethod<T>& method() override { return *method_; }

    typename KrylovMethod<T>::Beginning begin_cycle() override {
      before_ = solve_.norm_;
      weighted_before_ = solve_.weighted_residual_;
      if (!same)  // x stays as it is while d is iterated on
        kept_ = {before_, std::move(kept_.x), result_.iterations};
      control_ = {};
      control_.growth = 1 / unit_roundoff<T>;
      control_.n = solve_.n_of_all_;
      control_.iteration = result_.iterations;
      control_.stagnation_window = stagnation_window(solve_.n_of_all_);
      control_.b_norm = solve_.b_norm_;
      control_.target = same ? goal_ : std::max(goal_, cycle_fall * before_);
      // Rounding x alone leaves about unit_roundoff max |a_ii| ||x||, so far less is not to be believed.
      control_.trust = trust_;
      control_.trust_below = same ? std::numeric_limits<double>::infinity() : least_fall * before_;
      interrupted_ = false;
      ++result_.cycles;
      return {control_, fresh_};
    }

    void look_at_beginning() override {
      std::array<double, history_capacity> recent;
      control_ = method_->control();
      method_->history(recent);
      result_.history.resize(static_cast<std::size_t>(control_.iteration) + 1);
      result_.residual_recursive = result_.history.back() = recent[control_.iteration % history_capacity];
      first_iteration_ = control_.iteration;
    }

    std::int64_t next_batch() override {
      if (control_.stop != 0 || control_.iteration >= options_.max_iterations)
        return 0;
      if (any_of_ranks(options_.ranks, interrupt_requested())) {
        interrupted_ = true;
        leave_state();
        return 0;
      }
      leave_state();
      return std::min(batch_.next(control_.iteration), options_.max_iterations - control_.iteration);
    }

    void look() override {
      std::array<double, history_capacity> recent;
      std::int64_t const before = control_.iteration;
      control_ = method_->control();
      method_->history(recent);
      for (std::int64_t i = before + 1; i <= control_.iteration; ++i)
        result_.history.push_back(recent[i % history_capacity]);
      result_.iterations = control_.iteration;
      result_.residual_recursive = result_.history.back();
      if (!method_->x_lags() && control_.stop == 0 && control_.norm < kept_.norm &&
          control_.iteration >= kept_.iteration + iterations_between_copies) {
        solve_.template keep<T>(system_.x, kept_);
        kept_.norm = control_.norm;
        kept_.iteration = control_.iteration;
      }
      if (options_.monitor)
        options_.monitor(control_.iteration, result_.history.back());
    }

    std::int64_t iterations_of_cycle() const override { return control_.iteration - std::max(first_iteration_, gone_on_from_); }
    bool is_in_cycle() const override { return in_cycle_; }

    /// In place of begin_cycle and look_at_beginning.
    void go_on_from(StateStream& state) {
      serialize(state);
      in_cycle_ = true;
      gone_on_from_ = control_.iteration;
    }

    std::optional<Outcome> end_cycle() override {
      method_->finish();
      if (!interrupted_)
        result_.residual_recursive = result_.history.back();
      auto const bytes = static_cast<double>(method_->bytes_per_iteration());
      solve_.bytes_ = bytes_before_ + bytes * static_cast<double>(result_.iterations - iterations_before_);
      result_.bytes_per_iteration = result_.iterations > 0 ? solve_.bytes_ / static_cast<double>(result_.iterations) : bytes;
      auto const state = static_cast<CycleState>(control_.stop);
      double const before = before_;
      double& norm = solve_.norm_;
      bool dropped = false;
      if constexpr (!same) {
        // What a cycle has found that leaves more than there was is worth nothing.
        dropped = !(control_.norm < before);
        if (kept_.norm < before && !(control_.norm <= kept_.norm)) {
          dropped = false;
          kernels_for<VectorKernels<T>>(solve_.context_).copy(solve_.context_, solve_.n_, kept_.x.data(), d_.data());
          control_.norm = kept_.norm;
          result_.residual_recursive = result_.history.back() = kept_.norm / solve_.b_norm_;
        } else if (dropped) {
          d_.set_zero();
          result_.residual_recursive = result_.history.back() = before / solve_.b_norm_;
        }
        solve_.add_to_x(d_, kept_, before);
      } else
        solve_.compute_residual();
      double& weighted = solve_.weighted_residual_;
      if (norm <= residual_slack * tolerance_) {
        if (!solve_.weighted_)
          return Outcome{SolverStatus::converged, ""};
        weighted = solve_.weighted_norm(high(solve_.r_.data())) / solve_.weighted_b_norm_;
        if (weighted <= residual_slack * options_.tolerance)
          return Outcome{SolverStatus::converged, ""};
        goal_ = std::min(goal_, norm * std::clamp(options_.tolerance / weighted, most_lowering, least_lowering));
      }
      if (interrupted_)
        return solve_.with_best({SolverStatus::interrupted, "interrupted " + solve_.reached()}, kept_);
      if (state == CycleState::running)
        return solve_.with_best(
            {SolverStatus::max_iterations,
             "the tolerance " + number(options_.tolerance) + " was not reached: stopped " + solve_.reached() + solve_.weak_rows()},
            kept_);
      // The directions that were kept may be to blame.
      if (dropped && !fresh_) {
        fresh_ = true;
        return std::nullopt;
      }
      // Small as it is, the recursion was right.
      bool const reliable = same && state == CycleState::unreliable && norm <= residual_slack * control_.norm;
      if (reliable)
        trust_ *= next_look;
      bool const restarts = state == CycleState::breakdown && method_->may_restart();
      bool const hopeless = state == CycleState::diverged || (state == CycleState::breakdown && !restarts);
      bool nearer = norm <= progress * before || weighted < progress * weighted_before_;
      if constexpr (same)
        if (restarts && !nearer && kept_.iteration > first_iteration_ && kept_.norm <= progress * before) {
          // The best iterate of the cycle is a better place to begin again than the last one.
          kernels_for<VectorKernels<T>>(solve_.context_).copy(solve_.context_, solve_.n_, kept_.x.data(), solve_.x_.data());
          solve_.compute_residual();
          nearer = norm <= progress * before;
        }
      if (hopeless || !(reliable || nearer))
        return solve_.with_best(solve_.no_further(state, *method_), kept_);
      fresh_ = (state != CycleState::converged && state != CycleState::unreliable) ||
               !(std::abs(norm - control_.norm) <= small_drift * control_.norm);
      return std::nullopt;
    }

  private:
    void leave_state() {
      SolverCheckpoints* const checkpoints = options_.checkpoints;
      if (checkpoints == nullptr || !checkpoints->is_due(control_.iteration, interrupted_))
        return;
      checkpoints->save(
          control_.iteration, result_.history.back(), [this](StateStream& stream) { write_solution(stream); },
          [this](StateStream& state) {
            solve_.outside_(state);
            solve_.serialize(state);
            serialize(state);
          });
    }
    void serialize(StateStream& state) {
      if constexpr (!same)
        state.vector(solve_.context_, d_);
      method_->serialize(state);
      state.value(control_);
      state.value(kept_.norm);
      state.value(kept_.iteration);
      bool has_x = kept_.x.size() > 0;
      state.value(has_x);
      if (has_x) {
        if (kept_.x.size() != solve_.n_)
          kept_.x = Vector<T>(solve_.context_, solve_.n_);
        state.vector(solve_.context_, kept_.x);
      }
      for (double* const number : {&bytes_before_, &goal_, &trust_, &before_, &weighted_before_})
        state.value(*number);
      state.value(iterations_before_);
      state.value(first_iteration_);
      state.value(fresh_);
    }
    /// x, with what the cycle adds to it so far, in the caller's scale.
    void write_solution(StateStream& stream) {
      constexpr std::int64_t block = StateStream::block_bytes / std::int64_t{sizeof(double)};
      Context& context = solve_.context_;
      std::vector<double> x(static_cast<std::size_t>(std::min(block, solve_.n_))), d(same ? 0 : x.size());
      for (std::int64_t first = 0; first < solve_.n_; first += block) {
        auto const count = static_cast<std::size_t>(std::min(block, solve_.n_ - first));
        auto const bytes = static_cast<std::int64_t>(count * sizeof(double));
        context.download(x.data(), high(solve_.x_.data()) + first, bytes);
        if constexpr (!same) {
          context.download(d.data(), d_.data() + first, bytes);
          for (std::size_t i = 0; i < count; ++i)
            x[i] += d[i];
        }
        for (std::size_t i = 0; i < count; ++i)
          x[i] = std::scalbn(x[i], solve_.rhs_.exponent());
        stream.bytes(x.data(), static_cast<std::size_t>(bytes));
      }
    }

    [[nodiscard]] BatchSize batch_size(Preconditioner<T> const* preconditioner) const {
      std::int64_t const steps = preconditioner != nullptr ? preconditioner->dependent_steps() : 0;
      // The slowest rank decides for all.
      auto const bytes = static_cast<std::int64_t>(max_over(options_.ranks, static_cast<double>(method_->bytes_per_iteration())));
      return {history_capacity, nominal_seconds(solve_.context_.backend(), bytes, products_per_iteration(options_.method) * steps)};
    }

    Solve& solve_;
    SolverResult& result_;
    SolverOptions const& options_;
    Vector<T> d_;  ///< the part of x that is iterated on, in a lesser arithmetic than that of x
    GatheredSum<T> sum_;
    KrylovSystem<T> system_;
    std::unique_ptr<KrylovMethod<T>> method_;
    BatchSize batch_;
    KeptIterate<T> kept_;
    std::int64_t iterations_before_;  ///< this run
    double bytes_before_;
    double tolerance_;
    double goal_;  ///< less, where rows with small entries need it
    double trust_;
    bool fresh_ = true;
    // Of the cycle:
    IterationControl control_;
    double before_ = 0, weighted_before_ = 0;
    std::int64_t first_iteration_ = 0;
    bool interrupted_ = false;
    bool in_cycle_ = false;          ///< from the beginning
    std::int64_t gone_on_from_ = 0;  ///< kernels have to run once before a graph is made of them: they may allocate
  };

  [[nodiscard]] std::string reached() const {
    return "after " + std::to_string(result_.iterations) + " iterations, with a relative residual of " +
           number(result_.residual_recursive);
  }

  /// Describes a run whose relative residual is small enough while that of rows with small entries is not. The text is empty for
  /// others.
  [[nodiscard]] std::string weak_rows() const {
    if (!weighted_ || !(norm_ <= residual_slack * options_.tolerance * b_norm_))
      return "";
    return "; rows with small entries are not solved: the main diagonal spans a factor of " + number(range_.span) +
           ", and scaled by it ||D^-1/2 (b - A x)|| / ||D^-1/2 b|| stands at " + number(weighted_residual_);
  }

  template <class T>
  Outcome no_further(CycleState state, KrylovMethod<T>& method) const {
    std::string const remedy = entry_of(options_.preconditioner).when_unstable;
    std::string const stands = "||b - A x|| / ||b|| stands at " + number(norm_ / b_norm_);
    switch (state) {
    case CycleState::breakdown:
      return {SolverStatus::breakdown, method.breakdown_reason()};
    case CycleState::diverged:
      return {SolverStatus::diverged, "the residual grew beyond " + number(1 / unit_roundoff<T>) +
                                          " times its first value, which " + arithmetic<T>() +
                                          " cannot recover from, or is not a number, " + reached() +
                                          (needs_symmetry(options_.method) ? "; the matrix may be unsymmetric or indefinite" : "") +
                                          (remedy.empty() ? "" : "; the preconditioner may be unstable: try " + remedy)};
    case CycleState::stagnated:
      return {SolverStatus::stagnated, "no smaller residual in " + std::to_string(stagnation_window(n_of_all_)) +
                                           " iterations; stopped " + reached() + ", and " + stands +
                                           "; the system may be inconsistent, or too ill-conditioned for " + arithmetic<T>() +
                                           advice(true)};
    default:
      return {SolverStatus::stagnated, "the recursive residual fell to " + number(result_.residual_recursive) + ", but " + stands +
                                           ": iterations in " + arithmetic<T>() + " get no further with this system" + weak_rows() +
                                           advice(false)};
    }
  }

  template <class T>
  static std::string arithmetic() {
    return std::is_same_v<T, double> ? "double precision" : "double-double precision";
  }
  /// What to try, the cheapest first: `slow` iterations need a better preconditioner, a badly scaled system needs one at all.
  [[nodiscard]] std::string advice(bool slow) const {
    std::string const incomplete = needs_symmetry(options_.method) ? "ic0" : "ilu0";
    PreconditionerForm const form = entry_of(options_.preconditioner).form;
    double const span = form == PreconditionerForm::none ? range_.span : 1;
    if (span > badly_scaled)
      return "; the main diagonal spans a factor of " + number(span) + ": try the preconditioner jacobi or " + incomplete +
             " first, and the precision refined if that is not enough";
    if (slow && form != PreconditionerForm::general)
      return "; try the preconditioner " + incomplete + " first, and a higher precision if that is not enough";
    switch (options_.precision) {
    case Precision::double_:
      return "; ask for a tolerance above that, or for the precision refined";
    case Precision::refined:
      return "; ask for a tolerance above that, or for the precision mixed";
    default:
      return "; ask for a tolerance above that";
    }
  }

  LinearOperator<X> const& a_;
  SolverOptions const& options_;
  PreconditionerSetup const* setup_;  ///< null: no preconditioner
  LinearOperator<double> const& in_double_;
  Context& context_;
  SolverResult& result_;
  std::int64_t n_;         ///< rows of this rank
  std::int64_t n_of_all_;  ///< of all ranks
  DiagonalRange const& range_;
  Array<double> const& weights_;  ///< the diagonal, where that is badly scaled
  bool weighted_;                 ///< it is, on some rank
  GatheredSum<X> sum_;
  RightHandSide<X> rhs_;
  Vector<X> x_, r_;
  Array<X> square_;
  double norm_ = 0;          ///< ||b - A x||, computed anew after every cycle
  double norm_of_zero_ = 0;  ///< for x = 0
  double b_norm_ = 0;
  double weighted_residual_ = std::numeric_limits<double>::infinity();  ///< once norm_ has been small enough
  double weighted_b_norm_ = 0;
  double bytes_;                  ///< compulsory, of all iterations so far, also those of runs before this one
  StateStream* saved_ = nullptr;  ///< of which `run` reads the rest
  SolverCheckpoints::Write outside_;
};

/// Returns the bytes of the vectors that live as long as the iterations beside the given b, those inside of the preconditioner
/// included.
std::int64_t vector_bytes(std::int64_t n_rows, PreconditionerOptions const& preconditioner, SolverOptions const& options) {
  PreconditionerEntry const& entry = entry_of(options.preconditioner);
  bool const extended = options.precision != Precision::double_ && options.precision != Precision::automatic,
             inner = options.precision != Precision::refined;
  std::int64_t const number = sizeof(double), of_iteration = extended && inner ? 2 * number : number;
  bool const copies_b = extended || options.constant_null_space;
  std::int64_t bytes = (extended ? 2 : 1) * (copies_b ? 3 : 2) * n_rows * number;  // x, the residual, and b where it is changed
  bytes += entry_of(options.method).vectors(entry.form) * n_rows * of_iteration;
  bytes += entry.bytes_to_apply(n_rows, preconditioner, of_iteration);
  if (extended && options.precision != Precision::double_double)
    bytes += n_rows * number;      // what a cycle adds to x
  bytes += n_rows * of_iteration;  // the best iterate
  return bytes;
}

PreconditionerOptions preconditioner_options(SolverOptions const& options) {
  return {options.preconditioner,
          options.shift,
          options.ordering,
          needs_symmetry(options.method),
          options.csr,
          options.box_nodes,
          options.blocks,
          options.order_one,
          options.rows_of_rank,
          options.nested_spaces,
          options.multigrid,
          options.constant_null_space,
          false,
          options.setup_steps};
}

/// Whether a matrix in the format has Matrix::as_csr.
bool becomes_csr(Format format) {
  return format == Format::csr || format == Format::crs_t || format == Format::sell_c_sigma;
}

constexpr char const* no_entries_of_matrix_free = "matrix_free has no entries";

/// Compulsory, without preconditioner.
std::int64_t bytes_per_iteration(Method method, std::int64_t n_rows, std::int64_t bytes_per_product) {
  return products_per_iteration(method) * bytes_per_product + 64 * n_rows;
}

/// What all right-hand sides of one matrix share: its main diagonal, the preconditioners to try, and the one made last. Options are
/// those of a call of `solve`; what a later call asks for may differ as SolverOptions::kept allows.
class SharedSetup {
public:
  struct Trial {
    PreconditionerKind kind{};
    std::int64_t last_iteration = 0;
    Method method{};
  };

  SharedSetup(MultiPrecisionOperator const& a, SolverOptions const& options)
      : a_(a), context_(a.context()), range_(a, context_, options.ranks), weights_(weights_of_rows(a, context_, range_)) {
    begin(options);
  }

  /// Finds the preconditioners to try.
  void begin(SolverOptions const& options) {
    plan_.clear();
    estimates_.clear();
    std::int64_t const limit = options.max_iterations;
    if (options.preconditioner == PreconditionerKind::automatic && options.initial == InitialGuess::nested)
      plan_.push_back({PreconditionerKind::multigrid, limit, options.method});
    else if (options.preconditioner == PreconditionerKind::automatic)
      choose(options);
    else
      plan_.push_back({options.preconditioner, limit, options.method});
    if (options.falls_back && needs_symmetry(options.method))
      add_bicgstab(limit);
  }

  [[nodiscard]] MultiPrecisionOperator const& a() const { return a_; }
  [[nodiscard]] DiagonalRange const& range() const { return range_; }
  [[nodiscard]] Array<double> const& weights() const { return weights_; }
  [[nodiscard]] std::vector<Trial> const& plan() const { return plan_; }
  [[nodiscard]] std::vector<PreconditionerEstimate> const& estimates() const { return estimates_; }
  [[nodiscard]] PreconditionerSetup const* setup() const { return setup_.get(); }

  /// Makes the preconditioner of this kind, where it is not there. Returns why there is none, or an empty text. `result` gets the
  /// seconds if it is made now, and what there is to tell of it.
  std::string make(PreconditionerOptions const& of_preconditioner, SolverOptions const& options, SolverResult& result) {
    if (!made_ || made_kind_ != of_preconditioner.kind || made_positive_ != of_preconditioner.positive) {
      auto const start = Clock::now();
      setup_.reset();
      made_ = false;
      made_shift_ = of_preconditioner.shift;
      try {
        setup_ = make_preconditioner(a_, of_preconditioner);
        // Manteuffel (1980): a diagonal that is large enough makes the pivots of any symmetric positive definite matrix positive.
        if (of_preconditioner.only_if_cheap && uses_ordering(of_preconditioner.kind) && made_shift_ == 0)
          for (auto shift = std::begin(shifts); shift != std::end(shifts) && !setup_->failure().empty(); ++shift) {
            PreconditionerOptions shifted = of_preconditioner;
            made_shift_ = shifted.shift = *shift;
            setup_ = make_preconditioner(a_, shifted);
          }
      } catch (OutOfMemoryError const& error) {  // `automatic` may have another one
        if (options.preconditioner != PreconditionerKind::automatic || !options.ranks.get().is_alone() || plan_.size() == 1)
          throw;
        return error.what();
      }
      made_ = true;
      made_kind_ = of_preconditioner.kind;
      made_positive_ = of_preconditioner.positive;
      if (made_shift_ != of_preconditioner.shift && setup_->failure().empty())
        result.notes.push_back(std::string(name_of(made_kind_)) + " took the diagonal shift " + number(made_shift_) +
                               ": without one a pivot was " + (made_positive_ ? "not positive" : "zero"));
      context_.synchronize();
      result.setup_seconds += seconds_since(start);
    }
    result.shift = made_shift_;
    result.ordering = setup_ != nullptr ? setup_->ordering() : Ordering::automatic;
    result.levels = setup_ != nullptr ? setup_->levels() : 0;
    result.multigrid_levels = setup_ != nullptr ? setup_->multigrid_levels() : std::vector<MultigridLevelSummary>{};
    return first_message(options.ranks, setup_ != nullptr ? setup_->failure() : "");
  }

private:
  void choose(SolverOptions const& options) {
    SystemTraits traits;
    traits.backend = context_.backend();
    traits.n_rows = sum_over(options.ranks, a_.n_rows());
    auto const* const matrix = dynamic_cast<Matrix const*>(&a_);
    auto const* const void_box = dynamic_cast<VoidBoxOperator const*>(&a_);
    traits.is_box = is_box(a_, options.box_nodes) || options.blocks != nullptr || void_box != nullptr;
    traits.box_nodes = void_box != nullptr ? void_box->n_of_box() : 0;
    auto const* const lattices = dynamic_cast<LatticeHalfCds const*>(&a_);
    auto const* const of_rank = dynamic_cast<RankMatrix const*>(&a_);
    bool const shared_lattices = of_rank != nullptr && has_levels(of_rank->lattices()),
               free_on_ranks = shared_lattices && of_rank->local().format() == Format::matrix_free;
    traits.has_lattice_levels = (lattices != nullptr && has_levels(*lattices)) || (shared_lattices && !free_on_ranks);
    traits.has_csr = matrix != nullptr && becomes_csr(matrix->format());
    bool const lowers = options.ranks.get().is_alone() ? options.order_one || options.nested_spaces
                        : free_on_ranks                ? options.order_one || options.nested_spaces
                                                       : bool(options.nested_spaces);
    traits.lowered_from = lowers ? std::max(options.element_order, 1) : 0;
    if (!options.csr && !options.rows_of_rank)
      traits.no_entries = "there are no entries";
    else if ((matrix != nullptr && matrix->format() == Format::matrix_free) || free_on_ranks)
      traits.no_entries = no_entries_of_matrix_free;
    std::int64_t const bytes = sum_over(options.ranks, static_cast<LinearOperator<double> const&>(a_).bytes_per_product());
    // A symmetric half stores a value for two entries.
    bool const half = matrix != nullptr && matrix->format() == Format::half_cds;
    traits.nnz = (bytes - 16 * traits.n_rows) / (half ? 4 : 12);
    traits.bytes_per_iteration = bytes_per_iteration(options.method, traits.n_rows, bytes);
    traits.digits = -std::log10(options.tolerance);
    traits.diagonal_span = range_.span;
    traits.general = options.general && bool(options.csr);  // several ranks have other entries
    traits.symmetric = needs_symmetry(options.method);
    estimates_ = choose_preconditioner(traits);
    if (traits.general && !traits.is_box && traits.no_entries.empty()) {
      plan_of_general(options);
      return;
    }
    for (PreconditionerEstimate const& estimate : estimates_)
      if (estimate.refusal.empty())
        plan_.push_back({estimate.kind, options.max_iterations, options.method});
    // The first gives way when it has taken what the second was predicted to take, and long enough to be judged; then the second,
    // if it does not converge either, to the first.
    if (plan_.size() > 1) {
      PreconditionerEstimate const &first = estimates_[0], &second = estimates_[1];
      auto const iterations_in = [&](double seconds) {
        return static_cast<std::int64_t>(std::min(seconds / std::max(first.iteration_seconds, 1e-12), 1e9));
      };
      std::int64_t const patience =
          std::max({std::int64_t{100}, 5 * first.iterations, iterations_in(1.5 * second.seconds()), iterations_in(long_enough)});
      if (patience < options.max_iterations) {
        plan_[0].last_iteration = patience;
        plan_[1].last_iteration = (patience + options.max_iterations) / 2;
      }
      plan_.push_back({first.kind, options.max_iterations, options.method});
    }
  }

  /// One after another, the next when one has taken what that was predicted to take; complete factors, where they are cheap, third:
  /// the first two may be much faster. Then those that were only slow have the iterations that are left.
  void plan_of_general(SolverOptions const& options) {
    std::int64_t const limit = options.max_iterations;
    std::int64_t end = 0;
    auto const add = [&](PreconditionerKind kind, std::int64_t patience) {
      end = patience < limit - end ? end + patience : limit;
      plan_.push_back({kind, end, options.method});
    };
    for (std::size_t i = 0; i < estimates_.size(); ++i) {
      PreconditionerEstimate const& one = estimates_[i];
      if (!one.refusal.empty())
        continue;
      if (i == 2)
        add(PreconditionerKind::direct, iterations_of_direct);
      double const next = i + 1 < estimates_.size() && estimates_[i + 1].refusal.empty() ? estimates_[i + 1].seconds() : 0;
      double const seconds = std::max(1.5 * next, long_enough_of_general);
      add(one.kind, std::max({std::int64_t{20}, 2 * one.iterations,
                              static_cast<std::int64_t>(std::min(seconds / std::max(one.iteration_seconds, 1e-12), 1e9))}));
    }
    if (plan_.size() < 3)
      add(PreconditionerKind::direct, iterations_of_direct);
    for (PreconditionerEstimate const& one : estimates_)
      if (one.refusal.empty())
        plan_.push_back({one.kind, limit, options.method});
  }

  /// Where cg finds that A is not positive definite: the same preconditioners, complete factors first, since others may take long
  /// there.
  void add_bicgstab(std::int64_t limit) {
    std::vector<PreconditionerKind> kinds;
    for (Trial const& trial : plan_) {
      PreconditionerKind const kind = needs_symmetry(trial.kind) ? PreconditionerKind::ilu0 : trial.kind;
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
        kinds.push_back(kind);
    }
    std::stable_partition(kinds.begin(), kinds.end(), [](PreconditionerKind kind) { return kind == PreconditionerKind::direct; });
    for (PreconditionerKind const kind : kinds)
      plan_.push_back({kind, limit, Method::bicgstab});
  }

  MultiPrecisionOperator const& a_;
  Context& context_;
  DiagonalRange range_;
  Array<double> weights_;  ///< see weights_of_rows
  std::vector<PreconditionerEstimate> estimates_;
  std::vector<Trial> plan_;
  std::unique_ptr<PreconditionerSetup> setup_;
  bool made_ = false, made_positive_ = false;
  PreconditionerKind made_kind_{};
  double made_shift_ = 0;
};

/// One right-hand side: runs with one preconditioner and one precision after another, until one converges or there is no other to
/// try. Unless the options say `automatic` that is one run. The first one may be taken together with those of others.
class Attempts {
public:
  Attempts(SharedSetup& shared, Array<double> const& b, SolverOptions const& options, SolverResult& result)
      : shared_(shared),
        a_(shared.a()),
        context_(a_.context()),
        b_(b),
        options_(options),
        result_(result),
        precision_(options_.precision != Precision::automatic       ? options_.precision
                   : options_.tolerance < least_tolerance_of_double ? Precision::refined
                                                                    : Precision::double_) {
    result_.estimates = shared.estimates();
    if (options_.checkpoints != nullptr)
      saved_ = options_.checkpoints->saved();
    if (saved_ != nullptr)
      serialize(*saved_);
  }

  /// The first attempts of all, in lock step. All are of one SharedSetup.
  static void first_attempts(std::span<Attempts* const> all) {
    std::vector<Outcome> const outcomes = attempt(all, all.front()->shared_.plan()[all.front()->place_]);
    for (std::size_t j = 0; j < all.size(); ++j)
      all[j]->first_ = outcomes[j];
  }

  /// The other attempts, if there are any. x and x_low get the solution and its low parts, if it has any.
  void finish(Array<double>& x, Array<double>& x_low) {
    std::vector<Trial> const& plan = shared_.plan();
    auto const has_failed = [this](Trial const& trial) {
      return std::any_of(failed_.begin(), failed_.end(),
                         [&](Trial const& one) { return one.kind == trial.kind && one.method == trial.method; });
    };
    for (std::size_t const begun = place_; place_ < plan.size(); ++place_) {
      std::size_t const i = place_;
      Outcome outcome = i == begun ? first_ : attempt(plan[i]);
      if (outcome.status == SolverStatus::stagnated && options_.precision == Precision::automatic &&
          precision_ == Precision::double_ && result_.residual_recursive < progress_of_double) {
        precision_ = Precision::refined;
        refined_after_ = state("double precision got no further");
        try {
          outcome = attempt(plan[i]);
        } catch (OutOfMemoryError const& error) {  // what double has found counts
          if (!options_.ranks.get().is_alone())
            throw;
          precision_ = Precision::double_;
          refined_after_.clear();
          outcome.reason += "; refined was not tried: " + std::string(error.what());
        }
      }
      if (!refined_after_.empty())
        result_.notes.push_back(std::exchange(refined_after_, "") + "; went on as refined");
      bool const ends = outcome.status == SolverStatus::converged || outcome.status == SolverStatus::interrupted ||
                        result_.iterations >= options_.max_iterations;
      // What one that got no nearer has to say is told by the way.
      if (i == 0 || ends || residual_ <= progress * nearest_) {
        result_.status = outcome.status;
        result_.reason = outcome.reason;
        told_ = static_cast<SolverWay const&>(result_);
        nearest_ = residual_;
      }
      // Where cg itself meets a negative curvature no other preconditioner helps.
      bool const indefinite = outcome.status == SolverStatus::breakdown && plan[i].method == Method::cg &&
                              entry_of(plan[i].kind).form != PreconditionerForm::general;
      if (ends)
        break;
      if (outcome.status != SolverStatus::max_iterations)
        failed_.push_back(plan[i]);
      std::string const found =
          state("the preconditioner " + std::string(name_of(plan[i].kind)) +
                (outcome.status == SolverStatus::max_iterations ? " took longer than expected" : " failed: " + outcome.reason));
      std::size_t next = i + 1;
      while (next < plan.size() && ((indefinite && plan[next].method == plan[i].method) || has_failed(plan[next])))
        ++next;
      if (next == plan.size()) {
        if (told_.preconditioner != plan[i].kind || told_.method != plan[i].method)
          result_.notes.push_back(found + "; the solution is that of " + std::string(name_of(told_.method)) + " with " +
                                  std::string(name_of(told_.preconditioner)));
        break;
      }
      result_.notes.push_back(found + "; went on with " +
                              (plan[next].method != plan[i].method ? std::string(name_of(plan[next].method)) + " and " : "") +
                              std::string(name_of(plan[next].kind)));
      place_ = next - 1;
    }
    static_cast<SolverWay&>(result_) = std::move(told_);
    result_.precision = precision_;
    if (take_solution_) {
      take_solution_(x, x_low);
      return;
    }
    x = zeros(context_, a_.n_rows());  // no iteration was begun
    x_low = {};
  }

private:
  using Trial = SharedSetup::Trial;

  Outcome attempt(Trial const& trial) {
    Attempts* const alone = this;
    return attempt(std::span(&alone, 1), trial).front();
  }

  static std::vector<Outcome> attempt(std::span<Attempts* const> all, Trial const& trial) {
    std::vector<Outcome> outcomes(all.size());
    std::vector<Attempts*> begun;
    std::vector<std::size_t> places;
    for (std::size_t j = 0; j < all.size(); ++j)
      if (std::string const failure = all[j]->prepare(trial); failure.empty()) {
        begun.push_back(all[j]);
        places.push_back(j);
      } else {
        outcomes[j] = all[j]->not_begun(failure);
      }
    if (begun.empty())
      return outcomes;
    Attempts const& first = *begun.front();
    std::int64_t bytes = std::ssize(begun) * vector_bytes(first.a_.n_rows(), preconditioner_options(first.now_), first.now_);
    if (first.now_.preconditioner == PreconditionerKind::multigrid)  // vectors of the other columns on its levels
      bytes += (std::ssize(begun) - 1) * 3 * first.a_.n_rows() * 8 / 7 *
               (first.now_.multigrid.precision == MultigridPrecision::double_ ? 8 : 4);
    require_memory(first.context_, bytes, "the solver's vectors",
                   begun.size() > 1 ? "solve fewer right-hand sides at once"
                                    : "use a format that takes less, a coarser mesh, or the cpu backend");
    LinearOperator<double> const& in_double = first.a_;
    LinearOperator<DoubleDouble> const& extended = first.a_;
    std::vector<Outcome> of_begun;
    switch (first.precision_) {
    case Precision::double_double:
      of_begun = iterate(begun, extended,
                         [&](std::span<Solve<DoubleDouble>* const> solves) { return Solve<DoubleDouble>::run(solves, extended); });
      break;
    case Precision::refined:
      of_begun = iterate(begun, extended,
                         [&](std::span<Solve<DoubleDouble>* const> solves) { return Solve<DoubleDouble>::run(solves, in_double); });
      break;
    case Precision::mixed:
      of_begun = iterate(begun, extended, [&](std::span<Solve<DoubleDouble>* const> solves) {
        if (begun.front()->in_extended_)  // where a saved state is of
          return Solve<DoubleDouble>::run(solves, extended);
        std::vector<Outcome> result = Solve<DoubleDouble>::run(solves, in_double);
        std::vector<Solve<DoubleDouble>*> stalled;
        std::vector<std::size_t> of_stalled;
        for (std::size_t j = 0; j < result.size(); ++j)
          if (result[j].status == SolverStatus::stagnated || result[j].status == SolverStatus::breakdown ||
              result[j].status == SolverStatus::diverged) {
            begun[j]->result_.extended_from = begun[j]->result_.iterations;
            begun[j]->in_extended_ = true;
            stalled.push_back(solves[j]);
            of_stalled.push_back(j);
          }
        if (!stalled.empty()) {
          std::vector<Outcome> const later = Solve<DoubleDouble>::run(stalled, extended);
          for (std::size_t k = 0; k < later.size(); ++k)
            result[of_stalled[k]] = later[k];
        }
        return result;
      });
      break;
    default:
      of_begun =
          iterate(begun, in_double, [&](std::span<Solve<double>* const> solves) { return Solve<double>::run(solves, in_double); });
    }
    for (std::size_t k = 0; k < places.size(); ++k)
      outcomes[places[k]] = of_begun[k];
    return outcomes;
  }

  /// Makes the preconditioner where it is not there; returns why it cannot be.
  std::string prepare(Trial const& trial) {
    in_extended_ = in_extended_ && saved_ != nullptr;
    now_ = options_;
    now_.preconditioner = trial.kind;
    now_.method = trial.method;
    now_.precision = precision_;
    now_.max_iterations = trial.last_iteration;
    result_.preconditioner = trial.kind;
    result_.method = trial.method;
    PreconditionerOptions of_preconditioner = preconditioner_options(now_);
    of_preconditioner.only_if_cheap = options_.general && options_.preconditioner == PreconditionerKind::automatic;
    return shared_.make(of_preconditioner, options_, result_);
  }

  Outcome not_begun(std::string const& why) {
    saved_ = nullptr;
    if (result_.history.empty()) {
      result_.residual_recursive = 1;
      result_.history = {1};
    }
    return {SolverStatus::breakdown, why};
  }

  /// One run of each, from where its last one ended.
  template <class X, class Cycles>
  static std::vector<Outcome> iterate(std::span<Attempts* const> all, LinearOperator<X> const& a, Cycles const& cycles) {
    std::vector<std::shared_ptr<Solve<X>>> solves;
    std::vector<Solve<X>*> pointers;
    for (Attempts* const one : all) {
      auto const solve = std::make_shared<Solve<X>>(a, one->b_, one->now_, one->shared_.setup(), one->a_, one->shared_.range(),
                                                    one->shared_.weights(), one->context_, one->result_);
      solve->add_to_states([one](StateStream& state) { one->serialize(state); });
      solves.push_back(solve);
      pointers.push_back(solve.get());
    }
    auto const start = Clock::now();
    for (Attempts* const one : all)
      one->started_ = start;
    for (std::size_t j = 0; j < all.size(); ++j)
      all[j]->begin(*solves[j]);
    std::vector<Outcome> outcomes = cycles(std::span<Solve<X>* const>(pointers));
    for (std::size_t j = 0; j < all.size(); ++j) {
      Attempts& one = *all[j];
      one.result_.tolerance = one.now_.tolerance;
      if (one.result_.discretization_error >= 0)
        one.result_.algebraic_error = solves[j]->algebraic_error().energy;
      one.residual_ = solves[j]->residual();
      one.take_x_ = [solve = solves[j]] { return solve->take_x(); };
      one.take_solution_ = [solve = solves[j]](Array<double>& x, Array<double>& x_low) { solve->solution(x, x_low); };
    }
    double const seconds = seconds_since(start);
    for (Attempts* const one : all)
      one->result_.seconds += seconds;
    return outcomes;
  }
  template <class X>
  void begin(Solve<X>& solve) {
    if (saved_ != nullptr) {
      result_.notes.resize(n_notes_);  // making the preconditioner once more is no news
      now_.tolerance = tolerance_;
      solve.go_on_from(*std::exchange(saved_, nullptr));
    } else if (take_x_) {
      Vector<double> x = take_x_();
      take_solution_ = nullptr;  // frees what it holds
      take_x_ = nullptr;
      solve.start_from(std::move(x));
    } else if (now_.initial == InitialGuess::nested) {
      double const tolerance = solve.start_nested();
      if (now_.to_discretization && tolerance > 0)
        now_.tolerance = tolerance;
    } else if (now_.initial == InitialGuess::neighbour && now_.start != nullptr) {
      result_.began_at_start = solve.start_near(*now_.start);
    }
  }

  /// What all attempts so far have left, for the states of the one at hand; the first part of them.
  void serialize(StateStream& state) {
    double seconds = result_.seconds + (state.reads() ? 0 : seconds_since(started_));
    tolerance_ = now_.tolerance;
    n_notes_ = result_.notes.size();
    state.value(place_);
    StateStream::require(place_ < shared_.plan().size());
    state.value(precision_);
    state.value(in_extended_);
    state.list(refined_after_);
    state.list(failed_);
    state.value(nearest_);
    state.value(tolerance_);
    state.value(n_notes_);
    serialize(state, told_);
    serialize(state, result_);
    state.value(result_.status);
    state.list(result_.reason);
    state.texts(result_.notes);
    for (double* const number : {&result_.discretization_error, &result_.algebraic_error, &result_.residual_recursive,
                                 &result_.setup_seconds, &result_.bytes_per_iteration})
      state.value(*number);
    state.value(result_.began_at_start);
    for (std::int64_t* const number : {&result_.iterations, &result_.cycles, &result_.extended_from})
      state.value(*number);
    state.list(result_.history);
    state.value(seconds);
    if (state.reads())
      result_.seconds = seconds;
  }
  static void serialize(StateStream& state, SolverWay& way) {
    state.value(way.preconditioner);
    state.value(way.method);
    state.value(way.shift);
    state.value(way.ordering);
    state.value(way.levels);
    state.list(way.multigrid_levels);
  }

  /// What happened, and where the run stands.
  [[nodiscard]] std::string state(std::string const& event) const {
    return event + " after " + std::to_string(result_.iterations) + " iterations, at a relative residual of " +
           number(result_.residual_recursive);
  }

  SharedSetup& shared_;
  MultiPrecisionOperator const& a_;
  Context& context_;
  Array<double> const& b_;
  SolverOptions const& options_;
  SolverOptions now_;  ///< of the run at hand, without `automatic`
  SolverResult& result_;
  Precision precision_;
  std::size_t place_ = 0;         ///< of the attempt at hand, in the plan
  std::vector<Trial> failed_;     ///< before it
  SolverWay told_;                ///< of the attempt that has come nearest
  double nearest_ = 0;            ///< its residual
  std::string refined_after_;     ///< what double precision has come to; empty unless this attempt goes on as refined
  bool in_extended_ = false;      ///< `mixed` iterates in double-double
  StateStream* saved_ = nullptr;  ///< to go on from; its first part is read
  double tolerance_ = 0;          ///< of it
  std::size_t n_notes_ = 0;       ///< of it
  Clock::time_point started_ = Clock::now();
  Outcome first_;
  double residual_ = std::numeric_limits<double>::infinity();  ///< ||b - A x|| / ||b|| of the last run
  std::function<Vector<double>()> take_x_;
  std::function<void(Array<double>&, Array<double>&)> take_solution_;
};

/// Throws where one rank has a message.
void throw_first(Communicator& ranks, std::string const& mine) {
  if (std::string const message = first_message(ranks, mine); !message.empty())
    throw InputError(message);
}

void check_matrix(MultiPrecisionOperator const& a, SolverOptions const& options) {
  if (a.n_columns() != a.n_rows())
    throw InputError("the matrix is not square: it has " + std::to_string(a.n_rows()) + " rows and " +
                     std::to_string(a.n_columns()) + " columns");
  std::int64_t const row = a.first_row_not_finite();
  throw_first(options.ranks, row < 0 ? "" : "the matrix has a NaN or an infinity in " + row_text(row));
}

/// Whether b is not zero. Throws where it is not of the size of the matrix, or not finite; then it is called `what`. Collective.
bool is_right_hand_side(MultiPrecisionOperator const& a, Array<double> const& b, std::string const& what,
                        SolverOptions const& options) {
  std::int64_t const n = a.n_rows();
  if (b.size() != n)
    throw InputError("the matrix has " + std::to_string(n) + " rows, but " + what + " has " + std::to_string(b.size()) +
                     " entries");
  Context& context = a.context();
  double const largest = largest_of(context, n, b.data());
  std::string not_finite;
  if (!std::isfinite(largest)) {
    std::int64_t const bad = first_not_finite(context, n, b.data());
    double value = 0;
    context.download(&value, b.data() + bad, sizeof value);
    not_finite = what + " is " + std::to_string(value) + " in " + row_text(bad);
  }
  throw_first(options.ranks, not_finite);
  return max_over(options.ranks, largest) > 0;
}

/// What an earlier call has left, or what this one makes, and leaves where it is asked to.
std::shared_ptr<SharedSetup> setup_of(MultiPrecisionOperator const& a, SolverOptions const& options) {
  if (options.kept == nullptr)
    return std::make_shared<SharedSetup>(a, options);
  auto shared = std::static_pointer_cast<SharedSetup>(options.kept->made);
  if (shared == nullptr)
    options.kept->made = shared = std::make_shared<SharedSetup>(a, options);
  else
    shared->begin(options);
  assert(&shared->a() == &a);
  return shared;
}

SolverResult zero_solution(MultiPrecisionOperator const& a, Array<double>& x, Array<double>& x_low, SolverOptions const& options) {
  x = zeros(a.context(), a.n_rows());
  x_low = {};
  SolverResult result;
  result.status = SolverStatus::converged;
  result.precision = options.precision == Precision::automatic ? Precision::double_ : options.precision;
  result.preconditioner =
      options.preconditioner == PreconditionerKind::automatic ? PreconditionerKind::none : options.preconditioner;
  result.method = options.method;
  result.history = {0};
  return result;
}

}  // namespace

SolverResult solve(MultiPrecisionOperator const& a, Array<double> const& b, Array<double>& x, Array<double>& x_low,
                   SolverOptions const& options) {
  check_matrix(a, options);
  if (!is_right_hand_side(a, b, "the right-hand side", options))
    return zero_solution(a, x, x_low, options);
  SolverResult result;
  std::shared_ptr<SharedSetup> const shared = setup_of(a, options);
  Attempts attempts(*shared, b, options, result);
  Attempts* const alone = &attempts;
  Attempts::first_attempts(std::span(&alone, 1));
  attempts.finish(x, x_low);
  return result;
}

std::vector<SolverResult> solve_block(MultiPrecisionOperator const& a, std::span<Array<double> const> b, std::span<Array<double>> x,
                                      std::span<Array<double>> x_low, SolverOptions const& options, int at_once) {
  if (x.size() != b.size() || x_low.size() != b.size())
    throw InputError("there are " + std::to_string(b.size()) + " right-hand sides, but " + std::to_string(x.size()) +
                     " solutions and " + std::to_string(x_low.size()) + " for their low parts");
  if (at_once < 1 || at_once > most_columns)
    throw InputError(std::to_string(at_once) + " right-hand sides at once are asked for, but 1 to " + std::to_string(most_columns) +
                     " are possible");
  if (options.checkpoints != nullptr) {
    SolverOptions without = options;
    without.checkpoints = nullptr;
    return solve_block(a, b, x, x_low, without, at_once);
  }
  check_matrix(a, options);
  std::vector<SolverResult> results(b.size());
  std::vector<std::size_t> to_solve;
  for (std::size_t j = 0; j < b.size(); ++j)
    if (is_right_hand_side(a, b[j], "right-hand side " + std::to_string(j + 1), options))
      to_solve.push_back(j);
    else
      results[j] = zero_solution(a, x[j], x_low[j], options);
  if (to_solve.empty())
    return results;
  std::shared_ptr<SharedSetup> const shared = setup_of(a, options);
  for (std::size_t first = 0; first < to_solve.size(); first += static_cast<std::size_t>(at_once)) {
    std::span<std::size_t const> const group =
        std::span(to_solve).subspan(first, std::min(static_cast<std::size_t>(at_once), to_solve.size() - first));
    std::vector<std::unique_ptr<Attempts>> attempts;
    std::vector<Attempts*> all;
    for (std::size_t const j : group) {
      attempts.push_back(std::make_unique<Attempts>(*shared, b[j], options, results[j]));
      all.push_back(attempts.back().get());
    }
    Attempts::first_attempts(all);
    for (std::size_t k = 0; k < group.size(); ++k) {
      all[k]->finish(x[group[k]], x_low[group[k]]);
      attempts[k].reset();
    }
  }
  return results;
}

SolverResult solve(MultiPrecisionOperator const& a, std::span<double const> b, std::span<double> x, SolverOptions const& options) {
  if (b.size() != x.size())
    throw InputError("the right-hand side has " + std::to_string(b.size()) + " entries, but the solution " +
                     std::to_string(x.size()));
  Array<double> of_x, of_x_low;
  SolverResult result = solve(a, Array<double>(a.context(), b), of_x, of_x_low, options);
  of_x.download(x);
  result.x_low.resize(static_cast<std::size_t>(of_x_low.size()));
  of_x_low.download(std::span<double>(result.x_low));
  return result;
}

std::int64_t solver_bytes(std::int64_t n_rows, std::int64_t nnz, SolverOptions const& options) {
  SolverOptions known = options;
  if (known.preconditioner == PreconditionerKind::automatic)  // the one that takes the most
    known.preconditioner = PreconditionerKind::multigrid;
  PreconditionerOptions const preconditioner = preconditioner_options(known);
  return vector_bytes(n_rows, preconditioner, known) + entry_of(known.preconditioner).bytes(n_rows, nnz, preconditioner);
}

namespace {

/// Whether a box of these nodes has a coarser stencil in all directions.
bool may_halve(std::array<std::int64_t, 3> const& nodes) {
  return std::ranges::all_of(nodes, [](std::int64_t m) { return m % 2 != 0 && m >= 5; });
}

/// `count` times `part` over `whole`.
std::int64_t rounded_share(std::int64_t count, std::int64_t part, std::int64_t whole) {
  return static_cast<std::int64_t>(static_cast<double>(count) * static_cast<double>(part) / static_cast<double>(whole));
}

/// Whether double precision is expected to end before the tolerance, so that `auto` goes on as `refined`: on meshes of n rows the
/// residual stays at about 0.1 eps n^(2/3), as h^-2, at a quarter of that where rows are a stencil, and at 2.5 times that for
/// elements of order 3 and more. (On an H200 boxes, balls and blocks of 15 million rows of orders 1 and 2 in half_cds and
/// matrix_free came to 1e-12 in double, and those of 34 and 65 million did not, nor 15 million of order 4; by a stencil 135 million
/// did, and 500 million did not. Balls of 1.8 million end at 1.7e-13 with orders 1 and 2, and at 4.6e-13 with order 4.)
bool is_refined_later(SolverOptions const& options, std::int64_t n_rows, bool is_stencil, int order) {
  double const of_kind = is_stencil ? 0.024 : order < 3 ? 0.1 : 0.25;
  double const least = of_kind * unit_roundoff<double> * std::pow(static_cast<double>(n_rows), 2. / 3);
  return options.precision == Precision::automatic && options.tolerance < least;
}

/// The level of lattices from which on every rank has all of them.
struct GatheredLattices {
  std::int64_t rows = 0;             ///< of the first such level
  std::int64_t kept = 0, setup = 0;  ///< bytes of it and of the coarser ones, and the most while they are made
};

/// `nodes` and `rows` are those of the finest level here, `number` is the size of a value.
GatheredLattices gathered_lattices(std::int64_t nodes, std::int64_t rows, std::int64_t rows_of_all, std::int64_t number,
                                   std::int64_t gathered_size) {
  std::int64_t whole = rounded_share(nodes, rows_of_all, rows);
  GatheredLattices result;
  result.rows = rows_of_all;
  while (result.rows > gathered_size) {
    result.rows /= 8;
    whole /= 8;
  }
  result.kept = number * 14 * whole * 116 / 100 + (4 * number + 1) * result.rows * 8 / 7;
  // The values by pieces, and as they are sent or then by lattices; three vectors, and a diagonal in double.
  result.setup = std::max(2 * number * 14 * whole, result.kept + (3 * number + 8) * result.rows);
  return result;
}

}  // namespace

SolverMemory solver_memory(ExpectedSystem const& system, SolverOptions const& options) {
  std::int64_t const n = system.n_rows, nnz = system.nnz;
  bool const cpu = system.backend == Backend::cpu;
  SolverOptions known = options;
  if (is_refined_later(options, std::max(n, system.rows_of_all), system.is_stencil,
                       std::max(system.order_one.order, system.nested_from)))
    known.precision = Precision::refined;
  bool const lattice_levels = system.n_lattice_nodes > 0 && has_levels(system.lattice_cells);
  ExpectedOrderOne const& order_one = system.order_one;
  bool const box_levels = system.block_nodes > 0 ||
                          (options.box_nodes[0] > 0 && (system.format == Format::half_cds || system.is_stencil || system.has_csr));
  if (known.preconditioner == PreconditionerKind::automatic && known.initial == InitialGuess::nested)
    known.preconditioner = PreconditionerKind::multigrid;
  if (known.preconditioner == PreconditionerKind::automatic) {
    SystemTraits traits;
    traits.backend = system.backend;
    // The traits count the rows of all ranks, as if this rank were the mean.
    double const share = system.rows_of_all > 0 && n > 0 ? static_cast<double>(system.rows_of_all) / static_cast<double>(n) : 1;
    auto const of_all = [share](std::int64_t count) { return static_cast<std::int64_t>(share * static_cast<double>(count)); };
    traits.n_rows = of_all(n);
    traits.nnz = of_all(nnz);
    traits.bytes_per_iteration = of_all(bytes_per_iteration(options.method, n, system.bytes_per_product));
    traits.digits = -std::log10(options.tolerance);
    traits.is_box =
        system.block_nodes > 0 || (options.box_nodes[0] > 0 && (system.format == Format::half_cds || system.is_stencil));
    traits.box_nodes = system.void_box_nodes;
    traits.has_lattice_levels = lattice_levels;
    traits.lowered_from = std::max(order_one.order, system.nested_from);
    traits.has_csr = becomes_csr(system.format);
    if (system.format == Format::matrix_free)
      traits.no_entries = no_entries_of_matrix_free;
    known.preconditioner = choose_preconditioner(traits).front().kind;
  }
  PreconditionerOptions const preconditioner = preconditioner_options(known);
  std::int64_t const vectors = vector_bytes(n, preconditioner, known);
  std::int64_t kept = entry_of(known.preconditioner).bytes(n, nnz, preconditioner);  // of the preconditioner
  std::int64_t const number = options.multigrid.precision == MultigridPrecision::double_ ? 8 : 4;
  bool const multigrid = known.preconditioner == PreconditionerKind::multigrid,
             lowers = multigrid && order_one.order > 0 && !lattice_levels && !(box_levels && !system.has_csr),
             aggregation = multigrid && !box_levels && !lattice_levels && !lowers;
  // The finest level in single: half of tensors, values beside the columns of CSR (by aggregation a device has slices with their
  // own) or of slices, or a copy of both.
  std::int64_t const finest_in_single = number == 8                             ? 0
                                        : system.n_lattice_nodes > 0            ? 4 * 14 * system.n_lattice_nodes
                                        : system.format == Format::matrix_free  ? (system.bytes_per_product - 16 * n) / 2
                                        : system.format == Format::csr          ? (cpu || lowers ? 4 : 8) * nnz
                                        : system.format == Format::sell_c_sigma ? (system.bytes_per_product - 16 * n) / 3
                                                                                : (system.bytes_per_product - 16 * n) * 2 / 3;
  bool const takes_csr = needs_csr(known.preconditioner) && !(multigrid && !aggregation);
  bool const is_csr = system.format == Format::csr || system.format == Format::crs_t;
  std::int64_t setup = takes_csr && !system.has_csr && !(aggregation && (is_csr || (!cpu && becomes_csr(system.format))))
                           ? CsrMatrix::csr_bytes(n, nnz)
                           : 0;  // on the host
  if (system.rows_of_all > 0 && uses_ordering(known.preconditioner))
    setup += CsrMatrix::csr_bytes(n, nnz);  // ranks make factors on the host
  std::int64_t setup_on_backend = kept;
  if (multigrid && system.block_nodes > 0) {
    // Diagonals, the main one, three vectors; of an eighth of the nodes P by its columns and three vectors more. The same of
    // coarser levels, and of one that every rank has. Before a level's matrix is complete, that of the finer one is still there.
    // Levels of stencils have the main one and vectors only.
    auto nodes = system.nodes_of_all;
    std::int64_t block = system.block_nodes, of_stencils = 0, of_all = system.rows_of_all;
    while (system.is_stencil && system.has_stencil_levels && of_all > options.multigrid.gathered_size && may_halve(nodes)) {
      of_stencils += number * (4 * block + 3 * block / 8);
      block /= 8;
      of_all = 1;
      for (std::int64_t& m : nodes)
        of_all *= m = m / 2 + 1;
    }
    std::int64_t const whole = system.repeats ? 0 : std::min(options.multigrid.gathered_size, of_all);
    block = system.repeats || of_all > whole ? block : 0;
    kept = of_stencils + (number * (14 + 4) + 1) * (block + whole) * 8 / 7 + number * (27 + 3) * (block + whole) / 7;
    setup_on_backend = kept + number * 14 * (block / 8 + whole);
    if (system.is_stencil)  // diagonals of the first level by entries are there for a moment
      kept -= number * 14 * block;
  } else if (lowers) {
    // The tables; of the finest level its copy, the diagonal and three vectors; of the next the same, and of coarser ones an
    // eighth.
    bool const finer = order_one.order > 1, aggregates = order_one.nodes == 0;
    std::int64_t const rows = order_one.rows, finest = finer ? finest_in_single + number * n : 0;
    kept = order_one.tables + finest + (finer ? 3 * number * n : 0) + (4 * number + 1) * rows * 8 / 7;
    kept += aggregates ? 27 * rows * number + 10 * rows * (number + 4) : number * 14 * order_one.nodes * 116 / 100;
    kept += order_one.tensors * number / 8;
    bool const is_gathered = !aggregates && system.rows_of_all > 0 && rows > 0 && n > 0;
    std::int64_t const of_all = is_gathered ? rounded_share(system.rows_of_all, rows, n) : 0;
    GatheredLattices whole;
    if (is_gathered)
      whole = gathered_lattices(order_one.nodes, rows, of_all, number, options.multigrid.gathered_size);
    kept += whole.kept;
    // OrderOne is made; then Lanczos's method has four vectors; then coarser levels are made of its matrix.
    std::int64_t const matrix = aggregates ? 12 * 27 * rows + order_one.tensors : 8 * 14 * order_one.nodes;
    std::int64_t const lanczos = order_one.tables + matrix + finest + (finer ? 4 * number * n : 0);
    std::int64_t const coarser = matrix + kept - (finer ? 3 * number * n : 0) - 3 * number * rows +
                                 (aggregates ? 0 : 32 * rows);  // of a box a diagonal, a vector and all coarser matrices in double
    std::int64_t const later = std::max(lanczos, coarser + (is_gathered ? whole.setup - whole.kept : 0));
    if (cpu)
      setup = std::max(order_one.host + order_one.backend, later), setup_on_backend = 0;
    else
      setup = order_one.host, setup_on_backend = std::max(order_one.backend, later);
  } else if (multigrid && lattice_levels) {
    // Values of the finest level in single, and of the others, whose lattices have some more than an eighth of the nodes; of every
    // level the diagonal, three vectors and a mark. While they are made three vectors, and a diagonal in double.
    std::int64_t const own_in_single = number == 4 ? 4 * 14 * system.n_lattice_nodes : 0;
    kept = own_in_single + number * 14 * system.n_lattice_nodes * 16 / 100 + (4 * number + 1) * n * 8 / 7;
    setup_on_backend = kept + (3 * number + 8) * n;
    if (system.rows_of_all > 0) {
      GatheredLattices const whole =
          gathered_lattices(system.n_lattice_nodes, n, system.rows_of_all, number, options.multigrid.gathered_size);
      bool const is_finest = whole.rows == system.rows_of_all;  // its copy here is there until all levels are made
      setup_on_backend =
          is_finest ? number * 14 * system.n_lattice_nodes + whole.setup : std::max(setup_on_backend, kept + whole.setup);
      kept = is_finest ? whole.kept : kept + whole.kept;
      setup += 8 * whole.rows;  // the places of its unknowns, and of its rims
    }
  } else if (aggregation) {
    // P and P^T, coarser matrices, offsets; of every level the diagonal and three vectors.
    kept = finest_in_single + (2 * 5 * n + nnz * 13 / 100) * (number + 4) + 16 * n + 4 * number * n * 10 / 9;
    // A P, P, P^T and P^T A P in double with their offsets; diagonal, strongest couplings and aggregates. Rows of higher orders
    // meet more aggregates.
    std::int64_t const products = nnz > 40 * n ? nnz * 3 / 4 : nnz * 7 / 10;
    setup_on_backend = finest_in_single + number * n;
    if (cpu) {
      setup_on_backend += 12 * (products + 2 * 5 * n) + 24 * n + 20 * n;
    } else {  // CSR where it is not there; strong couplings while P is made, then places for A P and P^T A P
      std::int64_t const p = 12 * 5 * n + 8 * n, of_p = 12 * (nnz + nnz / 3 + n) + p,
                         of_products = 2 * p + 12 * (std::max(nnz / 4 * 3, 3 * 5 * n) + n + 3 * 5 * n + nnz * 13 / 100) + 16 * n;
      setup_on_backend += (is_csr ? 0 : CsrMatrix::csr_bytes(n, nnz)) + std::max(of_p + 20 * n, of_products);
    }
  } else if (multigrid && system.is_stencil) {
    // Levels of stencils have the diagonal and three vectors. From where cells are odd in number coarser levels are stored, and
    // made from diagonals that are there during the setup.
    auto nodes = options.box_nodes;
    std::int64_t rows = system.void_box_nodes > 0 ? system.void_box_nodes : n;
    kept = 4 * number * rows;
    if (system.void_box_nodes > 0)  // r and z in the box; its matrix, on the host in half_cds with a copy for the smoother
      kept += 16 * rows + (cpu ? (8 + number % 8) * 14 * rows : rows);
    while (system.has_stencil_levels && rows > options.multigrid.coarse_size && may_halve(nodes)) {
      rows = 1;
      for (std::int64_t& m : nodes)
        rows *= m = m / 2 + 1;
      kept += 4 * number * rows;
    }
    if (rows > options.multigrid.coarse_size)
      kept += (number * (14 + 4 + 27) + 1) * rows / 7;
    std::int64_t const of_diagonals = system.from_labels ? rows_of_slab(nodes) : rows;
    setup_on_backend = kept + (rows > options.multigrid.coarse_size ? number * 14 * of_diagonals : 0);
  } else if (multigrid && system.format != Format::half_cds) {
    setup_on_backend += 8 * 14 * n;  // the box's diagonals, made from CSR
  } else if (multigrid) {            // of a box: a diagonal of the level that is made in double, and on the host another copy
    setup_on_backend += (cpu ? 16 : 8) * n;
  } else if (entry_of(known.preconditioner).needs_csr) {
    setup += 8 * n;
    setup_on_backend += 16 * n;
  }
  bool const extended = options.precision != Precision::double_ && options.precision != Precision::automatic;
  // b as the iterations see it, where that is not b itself.
  std::int64_t const right_hand_side = ((extended ? 8 : 0) + (options.constant_null_space ? 8 : 0)) * n;
  SolverMemory result;
  result.preconditioner = known.preconditioner;
  result.column = vectors + (multigrid ? 3 * n * 8 / 7 * number : 0);
  std::int64_t const iterating = kept + vectors;
  if (cpu) {
    result.host = std::max(setup + setup_on_backend, iterating + right_hand_side);
  } else {
    result.host = std::max(setup, right_hand_side);
    result.device = std::max(setup_on_backend, iterating);
  }
  return result;
}

}  // namespace poisson
