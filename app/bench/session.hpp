#pragma once

#include "app/bench/bench.hpp"
#include "app/bench/matrices.hpp"
#include "app/io/console.hpp"
#include "app/launch/team.hpp"
#include "app/run/shared_matrix.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/formats/cost.hpp"
#include "gpu/formats/format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace poisson::app {

/// What all benchmarks share: backend, measured bandwidths, tables and the JSON record. On several ranks all call its functions
/// alike; the console of those after the first is silent, and the record of the first is written.
class BenchSession {
public:
  using json = nlohmann::ordered_json;

  /// Measures the bandwidths and prints the device. `no_cuda`: why a CUDA device cannot be used; empty if
  /// it can, or if the CPU was requested.
  BenchSession(std::string const& name, BenchTarget const& target, std::string const& no_cuda, Context& where, Console& out,
               Team& ranks);

  Context& context;
  Console& console;
  Team& team;
  Communicator& ranks;                            ///< those of the team
  bool measures_peers;                            ///< other libraries are measured on one rank only
  double copy_bandwidth = 0, read_bandwidth = 0;  ///< bytes per second, of all ranks at the same time
  std::string no_peers;                           ///< why no other library is measured on a device; empty: they are
  json report;
  bool correct = true;  ///< no result was wrong

  /// The record of the current matrix.
  [[nodiscard]] json& of_matrix() { return report["matrices"].back(); }
  void working(std::string const& what) { console.working(what); }
  /// Notes that something was not measured, and why, below the next table (`label`) and in the record of the matrix (`row`).
  void leave_out(std::string const& label, json row, std::string const& reason);
  /// Reports a wrong result: the benchmark then returns exit_not_converged.
  void wrong(std::string const& what);
  /// Prints a table, unless it has only the first row, the header; then what was left out.
  void show(std::vector<std::vector<std::string>> const& table);

  /// Calls `body`. Notes an InputError (a format that cannot hold the matrix) or EnvironmentError (too little memory) by
  /// leave_out(). With several ranks the body throws InputErrors on all of them; another error that not all of them throw
  /// goes on, and ends them.
  template <class Body>
  void unless_refused(std::string const& label, json const& row, Body const& body) {
    try {
      body();
    } catch (InputError const& error) {
      leave_out(label, row, error.what());
    } catch (EnvironmentError const& error) {
      if (!team.agreed())
        throw;
      leave_out(label, row, error.what());
    }
    team.caught();
  }

private:
  std::vector<std::string> left_out_;
};

/// Calls `body` with a session on the backend of the target, and writes its JSON even when the body fails. Exit codes and
/// exceptions are those of run_bench. Collective.
[[nodiscard]] ExitCode run_benchmark(std::string const& name, BenchTarget const& target, Console& console,
                                     std::function<void(BenchSession&)> const& body, Team& team = alone_team());

/// A benchmark that measures one matrix after the other.
class Benchmark {
public:
  virtual ~Benchmark() = default;
  virtual void measure(BenchSource const& source, BenchMatrix const& matrix) = 0;
  virtual void finish() {}  ///< called after the last matrix, to summarise
};
// Precondition: options and session outlive the benchmark.
[[nodiscard]] std::unique_ptr<Benchmark> make_product_bench(BenchOptions const& options, BenchSession& session);
[[nodiscard]] std::unique_ptr<Benchmark> make_conversion_bench(BenchOptions const& options, BenchSession& session);
[[nodiscard]] std::unique_ptr<Benchmark> make_solve_bench(BenchOptions const& options, BenchSession& session);

/// One row of the tables: a format with the options that it depends on.
struct Variant {
  Format format{};
  FormatOptions options;
  std::string label;
};
[[nodiscard]] std::vector<Variant> variants(BenchOptions const& options);
[[nodiscard]] nlohmann::ordered_json json_of(Variant const& variant);
/// Whether a format is divided into slices of C rows (sell_c_sigma, cod_sell).
[[nodiscard]] bool is_sliced(Format format);
/// Whether a format shares the arrays of csr, so that conversion takes no time.
[[nodiscard]] bool shares_csr(Format format);
[[nodiscard]] double conversion_seconds(Matrix const& matrix);
/// The choice of `auto` for so many products, with the first slice size of `options`: all ranks take the format of the first one.
/// Collective.
[[nodiscard]] FormatChoice choice_of_auto(Csr const& csr, BenchOptions const& options, double products, BenchSession& session);

/// A matrix in a format.
struct Converted {
  std::unique_ptr<SharedMatrix> matrix;
  double seconds = 0;        ///< of the conversion, of the slowest rank
  std::int64_t bytes = 0;    ///< of all ranks
  double padding_ratio = 1;  ///< of all stored entries

  [[nodiscard]] MultiPrecisionOperator const& product() const { return matrix->for_solver(); }
};
/// Converts the matrix, several times. A rank without rows takes csr. Collective. Throws what make_matrix throws, and Interrupted.
[[nodiscard]] Converted convert(BenchMatrix const& matrix, Variant const& variant, BenchSession& session);

/// Formats `value` as printf("%.*f") does.
[[nodiscard]] std::string fixed(double value, int digits);
/// A time in ms; "-" for NaN.
[[nodiscard]] std::string milliseconds(double seconds);

/// Calls make() 5 times, or until 0.5 s have passed; returns the last result, and in `median` the median of seconds_of(result).
/// (The first conversion on a device also loads code.) Throws Interrupted.
template <class Make, class SecondsOf>
auto repeated(Make const& make, SecondsOf const& seconds_of, double& median) {
  Timer const total;
  std::vector<double> seconds;
  auto made = make();
  seconds.push_back(seconds_of(*made));
  while (seconds.size() < 5 && total.seconds() < 0.5) {
    if (interrupt_requested())
      throw Interrupted();
    made.reset();
    made = make();
    seconds.push_back(seconds_of(*made));
  }
  std::sort(seconds.begin(), seconds.end());
  median = seconds[seconds.size() / 2];
  return made;
}

}  // namespace poisson::app
