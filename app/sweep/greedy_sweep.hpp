#pragma once

#include "app/io/child_process.hpp"
#include "app/io/console.hpp"
#include "app/sweep/sweep_cases.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// Which case is next, or why there is none.
struct GreedyStep {
  std::optional<std::size_t> next;
  std::string end{};  ///< "tolerance", "max_cases", "no candidates", "no solution"; empty: there is a next one
  double largest = std::numeric_limits<double>::quiet_NaN();  ///< estimate of the cases that are not solved
};
/// Of estimates of all cases, NaN where a case cannot be solved any more; `n_tried` were. Two cases are solved at least, so that an
/// estimate is compared with an error. Estimates that rounding tells apart are equal; then the first case counts.
[[nodiscard]] GreedyStep greedy_step(std::span<double const> estimates, std::size_t n_tried, GreedySpec const& spec);

/// The cases of a sweep with `sweep.greedy`: which one is solved next, and predictions of those that are not. A process of its own
/// has the GreedyModel, since this one may use no threads before its last case.
class GreedySweep {
public:
  /// Keeps references. `threads` of that process, 0: all.
  GreedySweep(std::vector<SweepCase>& cases, RunConfig const& config, int threads, Console& console);
  ~GreedySweep();

  /// The next case, where all that were given have ended; none where the sweep ends, or was interrupted. Throws InputError,
  /// EnvironmentError.
  [[nodiscard]] std::optional<std::size_t> next();
  /// Where the sweep has ended: gives a prediction to each case that has not run (its `result` has status "predicted", quantities,
  /// errors_of and estimate). Throws the same.
  void predict();
  /// Why the sweep has ended; empty: it has not.
  [[nodiscard]] std::string const& end() const { return step_.end; }
  /// For sweep.json.
  [[nodiscard]] nlohmann::ordered_json json() const;
  /// The same in a sentence or two.
  [[nodiscard]] std::string text() const;

private:
  /// What the process answers; none after an interrupt.
  [[nodiscard]] std::optional<nlohmann::ordered_json> ask(nlohmann::ordered_json const& question);
  [[nodiscard]] int answer();  ///< in that process
  [[nodiscard]] std::vector<double> estimates() const;
  [[nodiscard]] std::vector<std::size_t> solved() const;  ///< cases that ended, in their order

  struct Model;  ///< of that process

  std::vector<SweepCase>& cases_;
  RunConfig const& config_;
  GreedySpec const& spec_;
  int threads_;
  Console& console_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;  ///< questions and answers
  std::shared_ptr<Model> model_;
  std::unique_ptr<Worker> worker_;
  std::vector<std::size_t> order_;  ///< of cases that were chosen
  nlohmann::ordered_json state_;    ///< GreedyModel::state, or null
  GreedyStep step_;
};

/// Whether a case was not solved, but predicted.
[[nodiscard]] bool is_predicted(SweepCase const& c);
/// "1.2345 +- 0.001": a quantity of a case, with its error where it was predicted.
[[nodiscard]] std::string quantity_text(SweepCase const& c, std::string const& name);

}  // namespace poisson::app
