#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/names.hpp"
#include "gpu/spectral/reduced_model.hpp"
#include "gpu/spectral/residual_model.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// What a polynomial of the model depends on: swept keys, their logarithms, or the coefficients of the modes (which depend on
/// them).
enum class ModelVariables { keys, logarithms, coefficients };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::ModelVariables> {
  static constexpr std::array<Named<app::ModelVariables>, 3> values{{{app::ModelVariables::keys, "keys"},
                                                                     {app::ModelVariables::logarithms, "logarithms"},
                                                                     {app::ModelVariables::coefficients, "coefficients"}}};
};

namespace poisson::app {

/// How something is found at values of the swept keys, and how well that went for the cases: each is predicted from those with
/// other values of a key, for every key (or 40 of these trials are made, evenly spread).
struct ModelRule {
  bool by_equations =
      false;  ///< the polynomials are those of Galerkin's equations, which are then solved; else of the thing itself
  ModelVariables variables = ModelVariables::keys;
  int degree = 0;    ///< total degree
  double error = 0;  ///< the largest error of a case; of the solution relative to its norm
};

/// What the cases of a sweep tell of its solutions between them: a few numbers for each case, of m cases with r modes.
struct SweepModel {
  std::vector<std::string> keys;       ///< key paths that were swept
  std::vector<std::size_t> cases;      ///< their numbers in the sweep
  DenseMatrix points;                  ///< m x keys: values of the keys
  std::vector<ReducedSystem> systems;  ///< Galerkin's equations in the modes
  DenseMatrix coefficients;            ///< m x r: of the best approximation
  std::vector<double> missed;          ///< norm of what that misses of the solution
  std::vector<double> norms;           ///< of the solution, where it is not prescribed
  std::vector<std::string> quantities;
  DenseMatrix values;                      ///< m x quantities
  ModelRule of_solution;                   ///< how the coefficients are found
  std::vector<ModelRule> of_quantities{};  ///< one for each
  /// Of a solution's error by its residual; nothing where the matrices of the cases are no sums of few.
  std::optional<ResidualModel> residuals{};
  DenseMatrix weights{};   ///< m x terms: those of the matrix, then those of the right-hand side (SystemWeights)
  ModelRule of_weights{};  ///< how they are found; its error is relative, of all those of the matrix or of the right-hand side

  [[nodiscard]] std::int64_t modes() const { return coefficients.n_columns; }
};

/// Name of the file in a sweep's directory, behind the prefix of its analysis.
inline constexpr char const* sweep_model_file = "model.json";
/// A model needs as many cases.
inline constexpr std::size_t fewest_model_cases = 3;

/// Chooses the rules of a model that has all else: of polynomials in the keys, in their logarithms and, for quantities, in the
/// coefficients those with the smallest error. Preconditions: at least fewest_model_cases cases; a key varies; all values are
/// finite.
void choose_rules(SweepModel& model, Context& host);

/// Writes JSON, as docs/result_json.md has it. Throws EnvironmentError.
void write_sweep_model(std::filesystem::path const& path, SweepModel const& model);
/// Reads the model of a results directory, or a file. Throws InputError where there is none, or more than one, or it is of another
/// version or damaged.
[[nodiscard]] SweepModel read_sweep_model(std::filesystem::path const& path);

/// The values of all keys from settings "key.path=number"; a key that did not vary may be left out. Throws InputError that names
/// the key: unknown, missing, given twice, no number, or outside the range of the cases by more than a tenth of it. A range of
/// positive numbers over a factor of 10 or more counts in logarithms.
[[nodiscard]] std::vector<double> model_point(SweepModel const& model, std::vector<std::string> const& settings);

struct Prediction {
  std::vector<double> coefficients;  ///< of the modes
  std::vector<double> quantities;    ///< in their order
  /// The energy norm of the solution's error as its residual tells, over that of the solution, both where it is not prescribed.
  std::optional<double> residual_error{};
};
/// The model at one value for each key. Takes no assembly.
[[nodiscard]] Prediction predict(SweepModel const& model, std::vector<double> const& at, Context& host);

/// "Galerkin's equations, degree 1", "degree 3 in the logarithms"
[[nodiscard]] std::string text_of(ModelRule const& rule);

}  // namespace poisson::app
