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

/// Text, files and JSON that all reports of a singular value decomposition share.
namespace poisson::app {

/// Adds the keys orthogonality_u, orthogonality_v and residual to `json`.
void put(SvdAccuracy const& accuracy, nlohmann::ordered_json& json);
[[nodiscard]] nlohmann::ordered_json json_of(SvdSeconds const& seconds);

/// The part of a record that all decompositions share (docs/result_json.md, "Decomposition").
struct SvdSummary {
  std::string matrix;                      ///< name of the matrix
  std::int64_t n_rows = 0, n_columns = 0;  ///< size of the matrix
  int band_width = 0;                      ///< of the band matrix between the two stages
  bool vectors = false;                    ///< whether singular vectors were computed
  Spectrum spectrum;
  SvdSeconds seconds;
  std::optional<SvdAccuracy> accuracy;  ///< only with vectors
  std::string values_file;              ///< CSV of the singular values; empty: none
};
/// Adds the summary to a record.
void put(SvdSummary const& summary, nlohmann::ordered_json& json);
/// Puts the orthogonality errors of U and V and the relative residual into one line, for the console.
[[nodiscard]] std::string text_of(SvdAccuracy const& accuracy);

/// "reduce 1.2 s, chase 0.3 s, ..., total 2 s"; steps that took no time are omitted.
[[nodiscard]] std::string text_of(SvdSeconds const& seconds);

/// Throws EnvironmentError when the host has less than `bytes` of memory available; `what` names the
/// object in the message.
void require_host_memory(std::int64_t bytes, std::string const& what);
/// Host bytes that svd() allocates besides the matrix: its copy and the vectors.
[[nodiscard]] std::int64_t svd_host_bytes(std::int64_t n_rows, std::int64_t n_columns, bool vectors);

/// A curve of the values over the abscissae first, first + 1, ...
[[nodiscard]] output::Curve curve_of(std::string label, std::span<double const> values, double first = 1);

/// Writes a Matrix Market array. Throws EnvironmentError.
void write_dense_matrix(std::filesystem::path const& path, DenseMatrix const& matrix);

}  // namespace poisson::app
