#pragma once

#include "app/io/console.hpp"
#include "app/io/csv.hpp"
#include "app/io/results_directory.hpp"
#include "gpu/spectral/accuracy.hpp"
#include "gpu/spectral/spectrum.hpp"
#include "gpu/spectral/svd.hpp"
#include "output/picture/picture.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Numbers, files and JSON that every report of a singular value decomposition has.
namespace poisson::app {

/// Adds orthogonality_u, orthogonality_v and residual, which is relative to the matrix.
void put(SvdAccuracy const& accuracy, nlohmann::ordered_json& json);
[[nodiscard]] nlohmann::ordered_json json_of(SvdSeconds const& seconds);

/// What a record says of a decomposition, whichever command or analysis asked for it: see docs/result_json.md.
struct SvdFindings {
  std::string matrix;                      ///< what was decomposed
  std::int64_t n_rows = 0, n_columns = 0;  ///< of it
  int band_width = 0;                      ///< between the two stages of the decomposition
  bool vectors = false;                    ///< whether singular vectors were computed
  Spectrum spectrum;
  SvdSeconds seconds;
  std::optional<SvdAccuracy> accuracy;  ///< where there are vectors
  std::string values_file;              ///< CSV of the singular values; empty: none
};
/// Adds the findings to a record.
void put(SvdFindings const& findings, nlohmann::ordered_json& json);
[[nodiscard]] std::string text_of(SvdAccuracy const& accuracy);

/// "reduce 1.2 s, chase 0.3 s, ..., total 2 s"; steps that took no time are left out.
[[nodiscard]] std::string text_of(SvdSeconds const& seconds);

/// Throws EnvironmentError when the host has less free memory than `bytes`.
void require_host_memory(std::int64_t bytes, std::string const& what);
/// Host bytes that svd() allocates besides the matrix: its copy and the vectors.
[[nodiscard]] std::int64_t svd_host_bytes(std::int64_t n_rows, std::int64_t n_columns, bool vectors);

/// A curve of the values over first, first + 1, ...
[[nodiscard]] output::Curve curve_of(std::string label, std::span<double const> values, double first = 1);

/// A dense matrix as a Matrix Market array.
void write_dense_matrix(std::filesystem::path const& path, DenseMatrix const& matrix);

}  // namespace poisson::app
