#pragma once

#include "app/sweep/sweep_cases.hpp"
#include "gpu/spectral/residual_model.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// What solved cases tell of the others: each is predicted by Galerkin's equations in the modes of those that are solved, with an
/// error from its residual (gpu/spectral/residual_model.hpp). Every valid case is assembled once when this is made, of which small
/// numbers remain, and the terms that the matrices are sums of.
class GreedyModel {
public:
  /// Keeps a reference to the cases. `tolerance`: of errors; what terms miss is far below. Throws InputError where the cases do not
  /// share their unknowns, or their matrices are no sums of few terms, or none can be assembled, EnvironmentError, Interrupted.
  GreedyModel(std::vector<SweepCase> const& cases, double tolerance);
  ~GreedyModel();

  /// A case that was solved, in this folder. Where others were before, it was predicted from these, which tells how good estimates
  /// are. Throws InputError where the folder has no such solution, EnvironmentError.
  void add_solved(std::size_t number, std::filesystem::path const& folder);
  /// {"estimates": [relative ones in the energy norm; null where there is none], "checks": [{"case", "estimate", "error"}],
  /// "modes", "terms", "failed": [{"case", "error"} of those that cannot be assembled]}.
  [[nodiscard]] nlohmann::ordered_json state() const;
  /// {"quantities": {...}, "errors": {...}}: of a case that is predicted; errors as those that were found in the checks, in
  /// proportion to estimates. Assembles the case. Throws InputError, EnvironmentError.
  [[nodiscard]] nlohmann::ordered_json prediction(std::size_t number) const;

private:
  struct Check {
    std::size_t number;
    double estimate, error;                       ///< relative
    std::map<std::string, double> of_quantities;  ///< differences
  };
  [[nodiscard]] std::vector<double> coefficients_of(std::size_t number) const;
  [[nodiscard]] std::map<std::string, double> quantities_of_case(std::size_t number) const;

  std::vector<SweepCase> const& cases_;
  std::unique_ptr<Context> host_;
  std::optional<ResidualModelMaker> maker_;
  HostVector<std::uint8_t> constrained_;
  std::vector<std::optional<SystemWeights>> weights_;  ///< of all cases that can be assembled
  std::vector<std::pair<std::size_t, std::string>> failed_;
  std::vector<HostVector<double>> modes_;
  std::vector<Check> checks_;
};

/// The case that a greedy sweep begins with, and whose matrix is the reference: the valid one that is nearest to the middle of the
/// list.
[[nodiscard]] std::size_t first_greedy_case(std::vector<SweepCase> const& cases);

}  // namespace poisson::app
