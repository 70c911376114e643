#include "app/bench/session.hpp"
#include "app/plan/format_choice.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/peers/peers.hpp"
#include "gpu/solvers/solver.hpp"
#include "gpu/solvers/true_residual.hpp"

#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

namespace poisson::app {

namespace {

using json = nlohmann::ordered_json;

/// A solve that reports `converged` with a true residual of more than so many tolerances is wrong: the solvers guarantee 2, in the
/// arithmetic of the solution.
constexpr double max_residual_over_tolerance = 3;

/// Method, precision and preconditioner of one solve.
struct SolverVariant {
  Method method{};
  Precision precision{};
  PreconditionerKind preconditioner{};
  Ordering ordering{};

  [[nodiscard]] std::string label() const {
    return std::string(name_of(method)) + " " + std::string(name_of(precision)) + " " + std::string(name_of(preconditioner));
  }
};

json json_of(SolverVariant const& solver) {
  return {{"method", name_of(solver.method)},
          {"precision", name_of(solver.precision)},
          {"preconditioner", name_of(solver.preconditioner)}};
}

/// The measurements of one solve, ours or a peer's. Seconds are medians.
struct Solved {
  std::string status, reason;
  std::int64_t iterations = 0;
  double residual_recursive = 0, residual_true = 0;
  double setup = 0;          ///< of the preconditioner
  double seconds = 0;        ///< iterations only
  double solve_seconds = 0;  ///< and what a solver makes before and after them
  double conversion = 0;     ///< from csr
  double bytes_per_iteration = 0;
  Ordering ordering{};  ///< of incomplete factors
  std::int64_t levels = 0;
  int runs = 0;

  [[nodiscard]] double seconds_per_iteration() const {
    return iterations > 0 ? seconds / static_cast<double>(iterations) : std::nan("");
  }
};

double norm(std::span<double const> v) {
  double largest = 0;
  for (double const entry : v) {
    if (!std::isfinite(entry))
      return std::nan("");
    largest = std::max(largest, std::abs(entry));
  }
  double sum = 0;
  for (double const entry : v)
    sum += largest == 0 ? 0 : (entry / largest) * (entry / largest);
  return largest * std::sqrt(sum);
}

/// Returns the lower median. Of two values this is the smaller one, since the first run on a device loads code.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

std::string quoted(std::string const& word) {
  std::string text = "'";
  for (char const c : word)
    text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

/// Standard output of a command, and its exit code.
std::pair<std::string, int> output_of(std::vector<std::string> const& words) {
  std::string command;
  for (std::string const& word : words)
    command += quoted(word) + " ";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr)
    return {"", -1};
  std::string text;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    text.append(buffer, n);
  int const status = pclose(pipe);
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

/// Reads the JSON object that tests/bench/cupy_cg.py prints. Throws EnvironmentError when it is an error, or no such object.
Solved parse_peer_output(std::string const& text, int code) try {
  json const output = json::parse(text, nullptr, false);
  if (output.is_object() && output.contains("error"))
    throw EnvironmentError(output["error"].get<std::string>());
  if (code != 0 || !output.is_object())
    throw EnvironmentError("the script ended with code " + std::to_string(code));
  Solved solved;
  solved.status = output.at("status").get<std::string>();
  solved.iterations = output.at("iterations").get<std::int64_t>();
  solved.seconds = output.at("seconds").get<double>();
  solved.setup = output.at("setup_seconds").get<double>();
  solved.solve_seconds = solved.seconds + solved.setup;
  solved.residual_true = output.at("residual_true").get<double>();
  solved.residual_recursive = std::nan("");
  solved.bytes_per_iteration = std::nan("");  // it has kernels of its own
  solved.runs = output.at("runs").get<int>();
  return solved;
} catch (json::exception const& error) {
  throw EnvironmentError(std::string("the script's figures cannot be read: ") + error.what());
}

class SolveBench final : public Benchmark {
public:
  SolveBench(BenchOptions const& options, BenchSession& session) : options_(options), session_(session) {}

  void measure(BenchSource const& source, BenchMatrix const& matrix) override {
    Csr const& csr = *matrix.csr;
    CsrView const& a = csr.view();
    rows_ = &matrix.rows;
    if (a.n_rows != a.n_columns)
      throw InputError(source.name + ": the matrix has " + std::to_string(a.n_rows) + " rows and " + std::to_string(a.n_columns) +
                       " columns; a system to solve needs as many rows as columns");
    session_.working("looking at " + source.name);
    n_of_all_ = matrix.n_rows;
    bool const symmetric = matrix.symmetric;
    bool const has_rhs = any_of_ranks(session_.ranks, !matrix.rhs.empty());  // not all ranks have rows
    b_ = !has_rhs ? HostVector<double>(static_cast<std::size_t>(a.n_rows), 1.0) : matrix.rhs;
    b_norm_ = norm_over(session_.ranks, norm(b_));
    device_b_ = Array<double>(session_.context, std::span<double const>(b_));
    constant_null_space_ = matrix.constant_null_space;
    box_nodes_ = matrix.box_nodes;
    host_csr_.reset();  // factorisations are made from it, and should not have to copy it for every solve
    for (PreconditionerKind const kind : options_.preconditioners)
      if (needs_csr(kind) && host_csr_ == nullptr)
        host_csr_ = std::make_shared<CsrMatrix const>(csr.to_csr());
    session_.of_matrix()["symmetric"] = symmetric;
    session_.of_matrix()["rhs"] = has_rhs ? "of the problem" : "ones";
    table_ = {{"format", "method", "precision", "preconditioner", "status", "iterations", "true residual", "solve s",
               "ms an iteration", "MB an iteration", "% of copy", "convert ms", "setup ms", "all s"}};
    if (peers_wanted(symmetric))
      table_[0].emplace_back("x peer");

    try {
      // Peers first: our times are given relative to theirs.
      peer_seconds_ = std::nan("");
      if (peers_wanted(symmetric))
        peers(source, csr);
      for (Variant const& variant : formats_for(csr, symmetric))
        solve_all(variant, matrix, symmetric);
      if (multigrid_peer_wanted(symmetric))
        hypre(csr);
    } catch (...) {
      session_.show(table_);
      throw;
    }
    session_.show(table_);
  }

private:
  template <class E>
  static std::vector<E> or_default(std::vector<E> const& asked, E one) {
    return asked.empty() ? std::vector<E>{one} : asked;
  }

  std::vector<Method> methods_for(bool symmetric) const {
    if (!options_.methods.empty() || symmetric)
      return or_default(options_.methods, Method::cg);
    for (auto const& [method, name] : Names<Method>::values)
      if (!needs_symmetry(method))
        return {method};
    return {Method::cg};  // which will be left out, with the reason
  }

  /// The peers do conjugate gradients.
  [[nodiscard]] bool peers_wanted(bool symmetric) const {
    auto const methods = methods_for(symmetric);
    return symmetric && session_.measures_peers && session_.context.backend() == Backend::cuda &&
           std::find(methods.begin(), methods.end(), Method::cg) != methods.end();
  }

  /// hypre's multigrid stands beside ours.
  [[nodiscard]] bool multigrid_peer_wanted(bool symmetric) const {
    auto const methods = methods_for(symmetric);
    auto const& preconditioners = options_.preconditioners;
    return symmetric && session_.measures_peers && std::find(methods.begin(), methods.end(), Method::cg) != methods.end() &&
           std::find(preconditioners.begin(), preconditioners.end(), PreconditionerKind::multigrid) != preconditioners.end();
  }

  /// The formats requested, `auto` resolved, each with every precision of the stored values requested.
  std::vector<Variant> formats_for(Csr const& csr, bool symmetric) {
    std::vector<Variant> formats = formats_in_double(csr, symmetric), result;
    for (MatrixPrecision const precision : or_default(options_.matrix_precisions, MatrixPrecision::double_))
      for (Variant variant : formats) {
        variant.options.precision = precision;
        if (precision != MatrixPrecision::double_)
          variant.label += " in " + std::string(name_of(precision));
        result.push_back(std::move(variant));
      }
    return result;
  }

  std::vector<Variant> formats_in_double(Csr const& csr, bool symmetric) {
    std::vector<Variant> result;
    if (options_.automatic) {
      double const products = expected_products(n_of_all_, options_.tolerance, options_.max_iterations,
                                                products_per_iteration(methods_for(symmetric).front()));
      Variant variant{choice_of_auto(csr, options_, products, session_).format, {}, ""};
      variant.options.slice_size = options_.slice_sizes.front();
      variant.options.sigma = options_.sigma;
      variant.options.threads_per_row = options_.threads_per_row;
      variant.label = "auto: " + std::string(name_of(variant.format));
      result.push_back(std::move(variant));
    }
    if (!options_.automatic || !options_.formats.empty())
      for (Variant& variant : variants(options_))
        result.push_back(std::move(variant));
    return result;
  }

  void solve_all(Variant const& variant, BenchMatrix const& matrix, bool symmetric) {
    std::optional<Converted> made;
    session_.unless_refused(variant.label, json_of(variant), [&] { made = convert(matrix, variant, session_); });
    if (!made)
      return;
    MultiPrecisionOperator const& a = made->product();
    for (SolverVariant const& solver : solver_variants(symmetric)) {
      json row = json_of(variant);
      row["matrix_precision"] = name_of(variant.options.precision);
      row["bytes"] = made->bytes;
      row.update(json_of(solver));
      std::string const label = variant.label + " " + solver.label();
      session_.unless_refused(label, row, [&] {
        if (needs_symmetry(solver.method) && !symmetric)
          throw InputError(std::string(name_of(solver.method)) + " needs a symmetric matrix");
        if (needs_symmetry(solver.preconditioner) && !symmetric)
          throw InputError(std::string(name_of(solver.preconditioner)) + " needs a symmetric matrix");
        Solved const solved = solve_repeatedly(solver, a, matrix.csr->view(), label, row, made->seconds);
        add_row(variant.label, solver, solved);
        add_result("results", std::move(row), solved);
      });
    }
  }

  /// All combinations requested.
  std::vector<SolverVariant> solver_variants(bool symmetric) const {
    std::vector<SolverVariant> result;
    for (Method const method : methods_for(symmetric))
      for (Precision const precision : or_default(options_.precisions, Precision::double_))
        for (PreconditionerKind const preconditioner : or_default(options_.preconditioners, PreconditionerKind::none))
          if (uses_ordering(preconditioner))
            for (Ordering const ordering : or_default(options_.orderings, Ordering::automatic))
              result.push_back({method, precision, preconditioner, ordering});
          else
            result.push_back({method, precision, preconditioner, Ordering::automatic});
    return result;
  }

  /// Short solves several times, which must all give the same bits.
  Solved solve_repeatedly(SolverVariant const& solver, MultiPrecisionOperator const& matrix, CsrView const& a,
                          std::string const& label, json& row, double conversion) {
    SolverOptions options;
    options.method = solver.method;
    options.precision = solver.precision;
    options.preconditioner = solver.preconditioner;
    options.ordering = solver.ordering;
    options.shift = options_.shift;
    options.csr = [&] { return host_csr_; };
    options.tolerance = options_.tolerance;
    options.max_iterations = options_.max_iterations;
    options.constant_null_space = constant_null_space_;
    options.box_nodes = box_nodes_;
    options.ranks = session_.ranks;
    options.blocks = rows_->blocks;
    options.rows_of_rank = [&] { return rows_of_rank(); };
    session_.working("solving with " + label);
    Solved solved;
    std::vector<double> seconds, setup, whole;
    HostVector<double> x(b_.size()), x_low, first;
    Timer const total;
    bool same = true, out_of_time = false, enough = false;
    do {
      session_.ranks.barrier();
      Timer const timer;
      // A solver ends by itself for an interrupt only, so that is what the end of its time is.
      options.monitor = [&](std::int64_t, double) {
        if (timer.seconds() > options_.max_seconds && !interrupt_requested()) {
          out_of_time = true;
          request_interrupt();
        }
      };
      SolverResult result = solve(matrix, b_, x, options);
      whole.push_back(max_over(session_.ranks, timer.seconds()));
      out_of_time = any_of_ranks(session_.ranks, out_of_time);
      if (out_of_time)
        clear_interrupt();
      else if (result.status == SolverStatus::interrupted)
        throw Interrupted();
      seconds.push_back(max_over(session_.ranks, result.seconds));
      setup.push_back(max_over(session_.ranks, result.setup_seconds));
      x_low = std::move(result.x_low);
      solved.status = out_of_time ? "out_of_time" : name_of(result.status);
      solved.reason = out_of_time ? "stopped after " + seconds_text(whole.back()) : result.reason;
      solved.iterations = result.iterations;
      solved.residual_recursive = result.residual_recursive;
      solved.bytes_per_iteration = sum_over(session_.ranks, result.bytes_per_iteration);
      solved.ordering = result.ordering;
      solved.levels = result.levels;
      if (first.empty())
        first = x;
      else
        same = same && std::memcmp(first.data(), x.data(), x.size() * sizeof(double)) == 0;
      enough = any_of_ranks(session_.ranks, total.seconds() >= 0.5);
    } while (!out_of_time && static_cast<int>(whole.size()) < std::min(options_.samples, 5) && !enough);
    same = !any_of_ranks(session_.ranks, !same);
    solved.runs = static_cast<int>(whole.size());
    solved.seconds = median(seconds);
    solved.setup = median(setup);
    solved.solve_seconds = median(whole);
    solved.conversion = conversion;
    Array<double> const device_x(session_.context, std::span<double const>(x)),
        device_x_low(session_.context, std::span<double const>(x_low));
    bool const extended = any_of_ranks(session_.ranks, !x_low.empty());
    solved.residual_true = true_residual_of(a, device_x.data(), extended ? device_x_low.data() : nullptr,
                                            [&](HostVector<double>& r) { correct_rim(x, x_low, extended, r); });
    if (!same)
      session_.wrong(label + " gives other bits in another run");
    if (solved.status == name_of(SolverStatus::converged) &&
        !(solved.residual_true <= max_residual_over_tolerance * options_.tolerance))
      session_.wrong(label + " says converged, with a true residual of " + number_text(solved.residual_true));
    row["same_bits"] = same;
    return solved;
  }

  /// `correct` sets entries of the residual that `a` alone does not give.
  double true_residual_of(
      CsrView const& a, double const* x, double const* x_low,
      std::function<void(HostVector<double>&)> const& correct = [](auto&) {}) {
    HostVector<double> r(b_.size());
    Array<double> device_r(session_.context, a.n_rows);
    if (a.n_rows > 0)
      kernels_for<CheckKernels>(session_.context).residual(session_.context, a, x, x_low, device_b_.data(), device_r.data());
    device_r.download(r);
    correct(r);
    double const of_r = norm_over(session_.ranks, norm(r));
    return b_norm_ == 0 ? of_r : of_r / b_norm_;
  }

  /// For a preconditioner that needs the entries of several ranks. A block's numbers are made here, since few runs need them.
  NumberedRows rows_of_rank() const {
    NumberedRows result{{rows_->neighbors, std::make_shared<CsrMatrix const>(join_rows(
                                               *host_csr_, rows_->split.rim, rows_->rim_rows, rows_->split.couplings->n_columns))},
                        rows_->numbers};
    if (RankBlocks const* const blocks = rows_->blocks.get(); blocks != nullptr) {
      NodeBox const whole{{}, blocks->nodes};
      blocks->own[static_cast<std::size_t>(session_.ranks.rank())].for_all(
          [&](std::array<std::int64_t, 3> const& node) { result.numbers.push_back(whole.index(node)); });
    }
    return result;
  }

  /// The residual in rows that are coupled with other ranks'. Collective.
  void correct_rim(HostVector<double> const& x, HostVector<double> const& x_low, bool extended, HostVector<double>& r) {
    auto const with_ghosts = [&](HostVector<double> const& own) {
      auto const ghosts = values_of_ghosts<double>(session_.ranks, rows_->neighbors, own);
      HostVector<double> all = own;
      all.insert(all.end(), ghosts.begin(), ghosts.end());
      return all;
    };
    HostVector<double> const all = with_ghosts(x), low = extended ? with_ghosts(x_low) : HostVector<double>{};
    auto const& rim = rows_->split.rim;
    HostVector<double> b, of_rim(rim.size());
    for (std::int32_t const row : rim)
      b.push_back(b_[static_cast<std::size_t>(row)]);
    CsrResidualCheck(rows_->rim_rows).residual(all, low, b, of_rim);
    for (std::size_t i = 0; i < rim.size(); ++i)
      r[static_cast<std::size_t>(rim[i])] = of_rim[i];
  }

  // --- peers

  void peers(BenchSource const& source, Csr const& csr) {
    char const* const label = "cusparse + cublas";
    json const row{{"peer", label}, {"method", "cg"}, {"precision", "double"}, {"preconditioner", "none"}};
    session_.unless_refused(label, row, [&] {
      session_.working(std::string("solving with ") + label);
      CsrView const& a = csr.view();
      Array<double> x(session_.context, a.n_rows);
      Solved solved;
      std::vector<double> seconds, setup;
      Timer const total;
      do {
        PeerSolve const result = peer_cg(session_.context, a, device_b_.data(), x.data(), options_.tolerance,
                                         options_.max_iterations, options_.max_seconds);
        seconds.push_back(result.seconds);
        setup.push_back(result.setup_seconds);
        solved.iterations = result.iterations;
        solved.residual_recursive = result.residual_recursive;
        solved.bytes_per_iteration = result.bytes_per_iteration;
        solved.status = result.residual_recursive <= options_.tolerance ? "converged"
                        : result.iterations >= options_.max_iterations  ? "max_iterations"
                        : std::isfinite(result.residual_recursive)      ? "out_of_time"
                                                                        : "diverged";
      } while (static_cast<int>(seconds.size()) < std::min(options_.samples, 5) && total.seconds() < 0.5);
      solved.runs = static_cast<int>(seconds.size());
      solved.seconds = median(seconds);
      solved.setup = median(setup);
      solved.solve_seconds = solved.seconds + solved.setup;
      solved.residual_true = true_residual_of(a, x.data(), nullptr);
      peer_seconds_ = solved.seconds;
      peer_iteration_ = solved.seconds_per_iteration();
      add_row(label, {}, solved);
      add_result("peers", row, solved);
    });
    if (!options_.cupy.empty())
      cupy(source);
  }

  /// cg with BoomerAMG, on one core of the host whatever the backend. It cannot be stopped before its end.
  void hypre(Csr const& csr) {
    char const* const label = "hypre, 1 core";
    json const row{{"peer", "hypre"}, {"method", "cg"}, {"precision", "double"}, {"preconditioner", "multigrid"}};
    session_.unless_refused(label, row, [&] {
      session_.working("solving with hypre");
      HostVector<double> x(b_.size());
      PeerSolve const result = peer_multigrid(*host_csr_, b_, x, options_.tolerance, options_.max_iterations);
      Solved solved;
      solved.iterations = result.iterations;
      solved.residual_recursive = result.residual_recursive;
      solved.bytes_per_iteration = result.bytes_per_iteration;
      solved.status = result.residual_recursive <= options_.tolerance ? "converged" : "max_iterations";
      solved.runs = 1;
      solved.seconds = result.seconds;
      solved.setup = result.setup_seconds;
      solved.solve_seconds = result.seconds + result.setup_seconds;
      Array<double> const on_backend(session_.context, std::span<double const>(x));
      solved.residual_true = true_residual_of(csr.view(), on_backend.data(), nullptr);
      add_row(label, {Method::cg, Precision::double_, PreconditionerKind::multigrid, Ordering::automatic}, solved);
      add_result("peers", row, solved);
    });
  }

  /// tests/bench/cupy_cg.py in a process of its own, on the same device.
  void cupy(BenchSource const& source) {
    json const row{{"peer", "cupy"}, {"method", "cg"}, {"precision", "double"}, {"preconditioner", "none"}};
    session_.unless_refused("cupy", row, [&] {
      if (source.script_words.empty())
        throw EnvironmentError("it makes boxes of order 1 and reads Matrix Market files only");
      session_.working("solving with cupy");
      std::vector<std::string> words{"python3",          options_.cupy,
                                     "--tolerance",      number_text(options_.tolerance, 17),
                                     "--max-iterations", std::to_string(options_.max_iterations),
                                     "--max-seconds",    number_text(options_.max_seconds, 17)};
      words.insert(words.end(), source.script_words.begin(), source.script_words.end());
      auto const [text, code] = output_of(words);
      if (interrupt_requested())
        throw Interrupted();
      Solved const solved = parse_peer_output(text, code);
      add_row("cupy", {}, solved);
      add_result("peers", row, solved);
    });
  }

  // --- tables and records

  void add_row(std::string const& label, SolverVariant const& solver, Solved const& s) {
    double const bandwidth = s.bytes_per_iteration / s.seconds_per_iteration();
    table_.push_back({label, std::string(name_of(solver.method)), std::string(name_of(solver.precision)),
                      std::string(name_of(solver.preconditioner)) + (s.levels > 0 ? " " + std::string(name_of(s.ordering)) : ""),
                      s.status, with_thousands(s.iterations), number_text(s.residual_true), number_text(s.seconds, 4),
                      milliseconds(s.seconds_per_iteration()), number_text(s.bytes_per_iteration / 1e6, 4),
                      std::isnan(bandwidth) ? "-" : fixed(100 * bandwidth / session_.copy_bandwidth, 1), milliseconds(s.conversion),
                      milliseconds(s.setup), number_text(s.conversion + s.solve_seconds, 4)});
    if (table_[0].size() > table_.back().size())
      table_.back().push_back(std::isnan(peer_seconds_) ? "-" : fixed(peer_seconds_ / s.seconds, 2));
  }

  void add_result(char const* list, json row, Solved const& s) {
    double const bandwidth = s.bytes_per_iteration / s.seconds_per_iteration();
    row.update({{"status", s.status},
                {"reason", s.reason},
                {"iterations", s.iterations},
                {"residual_recursive", s.residual_recursive},
                {"residual_true", s.residual_true},
                {"seconds", s.seconds},
                {"seconds_per_iteration", s.seconds_per_iteration()},
                {"bytes_per_iteration", s.bytes_per_iteration},
                {"bytes_per_second", bandwidth},
                {"share_of_copy_bandwidth", bandwidth / session_.copy_bandwidth},
                {"conversion_seconds", s.conversion},
                {"setup_seconds", s.setup},
                {"solve_seconds", s.solve_seconds},
                {"seconds_with_conversion", s.conversion + s.solve_seconds},
                {"runs", s.runs}});
    if (s.levels > 0)
      row.update({{"ordering", name_of(s.ordering)}, {"levels", s.levels}});
    if (!std::isnan(peer_seconds_))
      row.update({{"speed_over_peer", peer_seconds_ / s.seconds},
                  {"iteration_speed_over_peer", peer_iteration_ / s.seconds_per_iteration()}});
    session_.of_matrix()[list].push_back(std::move(row));
  }

  BenchOptions const& options_;
  BenchSession& session_;
  BenchRows const* rows_ = nullptr;  ///< of the matrix
  std::int64_t n_of_all_ = 0;
  HostVector<double> b_;
  double b_norm_ = 0;
  Array<double> device_b_;
  bool constant_null_space_ = false;
  std::array<std::int64_t, 3> box_nodes_{};
  std::shared_ptr<CsrMatrix const> host_csr_;
  double peer_seconds_ = 0, peer_iteration_ = 0;  ///< of cuSPARSE + cuBLAS; NaN: not there
  std::vector<std::vector<std::string>> table_;
};

}  // namespace

std::unique_ptr<Benchmark> make_solve_bench(BenchOptions const& options, BenchSession& session) {
  return std::make_unique<SolveBench>(options, session);
}

}  // namespace poisson::app
