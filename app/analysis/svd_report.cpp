#include "app/analysis/svd_report.hpp"

#include "app/io/matrix_market.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/kernels/backends.hpp"
#include "output/files/atomic_file.hpp"

#include <algorithm>

namespace poisson::app {

namespace fs = std::filesystem;

nlohmann::ordered_json json_of(SvdSeconds const& s) {
  return {{"reduce", s.reduce}, {"chase", s.chase}, {"bidiagonal", s.bidiagonal}, {"back", s.back}, {"total", s.total}};
}

void put(SvdAccuracy const& accuracy, nlohmann::ordered_json& out) {
  out.update({{"orthogonality_u", accuracy.orthogonality_u},
              {"orthogonality_v", accuracy.orthogonality_v},
              {"residual", accuracy.residual_relative}});
}

void put(SvdSummary const& f, nlohmann::ordered_json& out) {
  out["matrix"].update({{"name", f.matrix}, {"n_rows", f.n_rows}, {"n_columns", f.n_columns}});
  out.update({{"method", "dense"},
              {"band_width", f.band_width},
              {"vectors", f.vectors},
              {"largest", f.spectrum.largest},
              {"smallest", f.spectrum.smallest},
              {"condition", f.spectrum.condition},
              {"rank", f.spectrum.rank},
              {"rank_threshold", f.spectrum.threshold},
              {"seconds", json_of(f.seconds)}});
  if (f.accuracy)
    put(*f.accuracy, out);
  if (!f.values_file.empty())
    out["singular_values_file"] = f.values_file;
}

std::string text_of(SvdAccuracy const& accuracy) {
  return "||I - U^T U|| " + number_text(accuracy.orthogonality_u) + ", ||I - V^T V|| " + number_text(accuracy.orthogonality_v) +
         ", ||A - U S V^T|| / ||A|| " + number_text(accuracy.residual_relative);
}

std::string text_of(SvdSeconds const& s) {
  std::string text;
  for (auto const& [name, seconds] :
       {std::pair{"reduce", s.reduce}, {"chase", s.chase}, {"bidiagonal", s.bidiagonal}, {"back", s.back}})
    if (seconds > 0)
      text += std::string(name) + " " + seconds_text(seconds) + ", ";
  return text + "total " + seconds_text(s.total);
}

void require_host_memory(std::int64_t bytes, std::string const& what) {
  if (std::int64_t const free = cpu_description().memory_free; bytes > free)
    throw OutOfMemoryError(what + " needs " + format_bytes(bytes) + " of memory, and " + format_bytes(free) + " are free");
}

std::int64_t svd_host_bytes(std::int64_t n_rows, std::int64_t n_columns, bool vectors) {
  std::int64_t const smaller = std::min(n_rows, n_columns);
  // Beside the copy: U, V and about as much scratch.
  return 8 * (n_rows * n_columns + (vectors ? 2 * smaller * (n_rows + n_columns) : 0));
}

output::Curve curve_of(std::string label, std::span<double const> values, double first) {
  output::Curve curve{std::move(label), {}, {values.begin(), values.end()}};
  for (std::size_t i = 0; i < values.size(); ++i)
    curve.x.push_back(first + static_cast<double>(i));
  return curve;
}

void write_dense_matrix(fs::path const& path, DenseMatrix const& matrix) {
  output::AtomicFile file(path);
  output::FileBuffer buffer(file.temporary_path());
  std::string text = matrix_market_array_header(matrix.n_rows, matrix.n_columns);
  for (std::int64_t j = 0; j < matrix.n_columns; ++j) {
    append_matrix_market_values(text, {matrix.column(j), static_cast<std::size_t>(matrix.n_rows)});
    buffer.sputn(text.data(), static_cast<std::streamsize>(text.size()));
    text.clear();
  }
  if (int const error = buffer.close(); error != 0)
    output::throw_write_error(path, error);
  file.commit();
}

}  // namespace poisson::app
