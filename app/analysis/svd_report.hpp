#pragma once

#include "app/io/console.hpp"
#include "app/io/csv.hpp"
#include "app/io/results_directory.hpp"
#include "gpu/spectral/accuracy.hpp"
#include "gpu/spectral/svd.hpp"
#include "output/picture/picture.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What every user of a singular value decomposition says of it: numbers, files, JSON.
namespace poisson::app {

/// What a list of singular values, descending, says of its matrix.
struct Spectrum {
  std::int64_t rank = 0;  ///< values above `threshold`
  double threshold = 0;   ///< max(rows, columns) eps times the largest value: below, a value may be rounding
  double condition = 0;   ///< the largest value over the smallest above the threshold; NaN when there is none
  double largest = 0;     ///< that largest value
  double smallest = 0;    ///< that smallest value
};
[[nodiscard]] Spectrum spectrum_of(std::span<double const> values, std::int64_t n_rows, std::int64_t n_columns);

/// sqrt(sum of the squares of values[rank ...]) / sqrt(sum of all squares): the relative error in the Frobenius norm of the best
/// approximation of each rank 0, 1, ..., values.size() (Eckart, Young 1936). All 0 when all values are.
[[nodiscard]] std::vector<double> errors_by_rank(std::span<double const> values);
/// The first rank whose error is at most `error`.
[[nodiscard]] std::int64_t smallest_rank(std::span<double const> errors, double error);

/// Adds orthogonality_u, orthogonality_v and residual, which is relative to the matrix.
void put(SvdAccuracy const& accuracy, nlohmann::ordered_json& json);
[[nodiscard]] nlohmann::ordered_json json_of(SvdSeconds const& seconds);

/// What a record says of a decomposition, whichever command or analysis asked for it: see docs/result_json.md.
struct SvdFindings {
  std::string matrix;                         ///< what was decomposed
  std::int64_t n_rows = 0, n_columns = 0;     ///< of it
  int band_width = 0;                         ///< between the two stages of the decomposition
  bool vectors = false;                       ///< whether singular vectors were computed
  Spectrum spectrum;
  SvdSeconds seconds;
  std::optional<SvdAccuracy> accuracy;        ///< where there are vectors
  std::string values_file;                    ///< CSV of the singular values; empty: none
};
/// Adds the findings to a record.
void put(SvdFindings const& findings, nlohmann::ordered_json& json);
[[nodiscard]] std::string text_of(SvdAccuracy const& accuracy);

/// "reduce 1.2 s, chase 0.3 s, ..., total 2 s"; steps that took no time are left out.
[[nodiscard]] std::string text_of(SvdSeconds const& seconds);

/// Throws EnvironmentError when the host has less free memory than `bytes`.
void require_host_memory(std::int64_t bytes, std::string const& what);
/// Host bytes that svd() takes beside the matrix: its copy and the vectors.
[[nodiscard]] std::int64_t svd_host_bytes(std::int64_t n_rows, std::int64_t n_columns, bool vectors);

/// Values over 1, 2, ... with the logarithm upwards.
[[nodiscard]] output::Curve curve_of(std::string label, std::span<double const> values, double first = 1);

/// A dense matrix as a Matrix Market array.
void write_dense_matrix(std::filesystem::path const& path, DenseMatrix const& matrix);

}  // namespace poisson::app
