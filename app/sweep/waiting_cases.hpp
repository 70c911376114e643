#pragma once

#include "app/io/console.hpp"
#include "app/sweep/mesh_convergence.hpp"
#include "app/sweep/sweep_cases.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// Which case of a sweep is next: the first of those that have not run. With `sweep.until` the next finer mesh of a study waits for
/// the one before, and is left out if the study does not need it. With `sweep.greedy` one is chosen when all others have ended.
class WaitingCases {
public:
  /// Chooses a case when all that were given have ended; none: the sweep ends.
  using Choice = std::function<std::optional<std::size_t>()>;
  /// Keeps a reference to the cases. With `choice` no others are waiting. Throws InputError, as studies_until and leave_out_finer
  /// do.
  WaitingCases(std::vector<SweepCase>& cases, SweepSpec const& sweep, Choice choice = {});

  /// How many cases could run at the same time.
  [[nodiscard]] std::size_t size() const { return queue_.size(); }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  /// Whether the next case depends on what `ended` tells.
  [[nodiscard]] bool needs_results() const { return until_.has_value(); }
  /// From now on the case with the largest mesh is next, so that none of those that run side by side is left alone at the end. Has
  /// no effect with `sweep.until`.
  void largest_first();
  /// When all cases that were taken have ended: whether there is one more. Throws what the choice throws.
  [[nodiscard]] bool choose();
  /// The next case. Precondition: there is one.
  [[nodiscard]] std::size_t take();
  /// Tells that a case has ended. Throws as leave_out_finer.
  void ended(std::size_t number);

private:
  void add_next(MeshStudy const& study);

  std::vector<SweepCase>& cases_;
  std::optional<UntilSpec> until_;
  Choice choice_;
  std::vector<MeshStudy> studies_;     ///< with `until`
  std::vector<std::size_t> study_of_;  ///< with `until`: of every case
  std::deque<std::size_t> queue_;
};

/// What a sweep tells of its pace. The clock starts with this.
class Pace {
public:
  explicit Pace(std::vector<SweepCase> const& cases) : cases_(cases) {}

  /// When a case has ended: "; 2.1 cases a second, about 20 s left", by the sizes of the meshes. Empty where little is left.
  [[nodiscard]] std::string after(SweepCase const& done, bool may_end_early);

private:
  std::vector<SweepCase> const& cases_;
  std::vector<double> sizes_;  ///< of all cases
  Timer timer_;
  double n_done_ = 0, size_done_ = 0, unknowns_per_size_ = 1;
};

}  // namespace poisson::app
