#include "app/analysis/dense_svd.hpp"

#include "app/analysis/svd_report.hpp"
#include "app/io/matrix_market.hpp"
#include "app/io/results_directory.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "output/files/atomic_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <variant>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

using json = nlohmann::ordered_json;

/// Everything dense that will be in the host's memory at a time.
void require_room_for(std::int64_t n_rows, std::int64_t n_columns, bool vectors, std::string const& name) {
  require_host_memory(8 * n_rows * n_columns + svd_host_bytes(n_rows, n_columns, vectors),
                      "the decomposition of " + name + ", " + std::to_string(n_rows) + " x " + std::to_string(n_columns) + ",");
}

DenseMatrix dense(CooMatrix const& coo, std::string const& path) {
  DenseMatrix matrix(coo.n_rows, coo.n_columns);
  std::fill(matrix.values.begin(), matrix.values.end(), 0.0);
  for (std::size_t e = 0; e < coo.values.size(); ++e) {
    double& value = matrix(coo.rows[e], coo.columns[e]);
    value += coo.values[e];  // what is given twice is added
    if (!std::isfinite(value))
      throw InputError(path + ": entries of the matrix at row " + std::to_string(coo.rows[e] + 1) + ", column " +
                       std::to_string(coo.columns[e] + 1) +
                       " are given more than once and add up to a number too large for double precision");
  }
  return matrix;
}

DenseMatrix read_dense(std::string const& path, bool vectors) {
  AnyMatrix any = read_any_matrix_market(path);
  if (auto* const array = std::get_if<DenseMatrix>(&any)) {
    require_host_memory(svd_host_bytes(array->n_rows, array->n_columns, vectors), "the decomposition of " + path);
    return std::move(*array);
  }
  auto const& coo = std::get<CooMatrix>(any);
  require_room_for(coo.n_rows, coo.n_columns, vectors, path);
  return dense(coo, path);
}

std::string some(std::span<double const> values) {
  constexpr std::size_t ends = 4;
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values.size() > 2 * ends && i == ends) {
      text += " ...";
      i = values.size() - ends;
    }
    text += (i == 0 ? "" : " ") + number_text(values[i], 6);
  }
  return text;
}

std::vector<std::string> names_of_files(DenseSvd const& work) {
  std::vector<std::string> names{"singular_values.csv"};
  if (work.picture && output::pictures_built())
    names.emplace_back("spectrum.png");
  if (work.vectors)
    names.insert(names.end(), {"u.mtx", "v.mtx"});
  return names;
}

}  // namespace

void run_svd(DenseSvd const& work, Console& console) {
  Timer const total;
  std::optional<ResultsDirectory> directory;
  if (!work.output.empty())
    directory.emplace(work.output, "result.json", names_of_files(work), work.overwrite);
  set_thread_count(work.threads);
  std::string const no_cuda = work.backend == Backend::cpu ? "" : why_no_cuda();
  if (work.backend == Backend::cuda && !no_cuda.empty())
    throw EnvironmentError("backend cuda: " + no_cuda);
  auto const context = make_context(work.backend.value_or(no_cuda.empty() ? Backend::cuda : Backend::cpu));

  bool const from_file = !work.matrix.empty();
  std::string const name = from_file ? work.matrix : "random, seed " + std::to_string(work.seed);
  console.line("poisson " POISSON_VERSION ": svd of " + name);
  Timer const reading;
  if (!from_file)
    require_room_for(work.random, work.random, work.vectors, "a random matrix");
  DenseMatrix const a = from_file ? read_dense(work.matrix, work.vectors) : random_matrix(work.random, work.random, work.seed);
  double const read_seconds = reading.seconds();
  console.stage(from_file ? "read" : "make", read_seconds, with_thousands(a.n_rows) + " x " + with_thousands(a.n_columns));
  if (interrupt_requested())
    throw Interrupted();

  console.working("decomposing");
  SvdOptions options;
  options.vectors = work.vectors;
  options.band_width = work.band_width;
  Svd const result = svd(a, options, *context);
  console.end_progress();
  std::string const device = context->description().name;
  console.stage("svd", result.seconds.total, "on " + device);
  Spectrum const spectrum = spectrum_of(result.values, a.n_rows, a.n_columns);

  std::vector<std::pair<std::string, std::string>> rows{
      {"values", some(result.values)},
      {"rank", with_thousands(spectrum.rank) + " of " + with_thousands(static_cast<std::int64_t>(result.values.size())) +
                   ": values above " + number_text(spectrum.threshold) + ", the size of rounding"},
      {"condition",
       number_text(spectrum.condition, 6) +
           (spectrum.rank < static_cast<std::int64_t>(result.values.size()) ? ", values beyond the rank left out" : "")},
      {"seconds", text_of(result.seconds)}};
  json record{{"poisson_version", POISSON_VERSION},
              {"exit_code", 0},
              {"backend", name_of(context->backend())},
              {"device", device},
              {"threads", thread_count()}};
  SvdFindings findings{name, a.n_rows, a.n_columns, result.band_width, work.vectors, spectrum, result.seconds, {}, ""};
  if (work.vectors) {
    console.working("checking");
    findings.accuracy = svd_accuracy(*context, a, result);
    console.end_progress();
    rows.emplace_back("accuracy", text_of(*findings.accuracy));
  }

  if (directory) {
    directory->ensure_writable();
    if (directory->try_write("singular_values.csv", [&](fs::path const& path) {
          output::write_text_file(path, csv_text("i", 1, {{"singular_value", result.values}}));
        }))
      findings.values_file = "singular_values.csv";
    if (work.picture && output::pictures_built()) {
      output::PlotOptions plot;
      plot.title = "Singular values";
      plot.x_label = "i";
      directory->try_write("spectrum.png",
                           [&](fs::path const& path) { output::write_plot(path, {curve_of("", result.values)}, plot); });
    }
    if (work.vectors) {
      directory->try_write("u.mtx", [&](fs::path const& path) { write_dense_matrix(path, result.u); });
      directory->try_write("v.mtx", [&](fs::path const& path) { write_dense_matrix(path, result.v); });
    }
    put(findings, record);
    if (!from_file)
      record["matrix"]["seed"] = work.seed;
    record["exit_code"] = directory->failure() ? 3 : 0;
    record["timing"] = {{"read", read_seconds}, {"svd", result.seconds.total}, {"total", total.seconds()}};
    record["memory"] = {{"device_peak_bytes", context->memory_peak()}};
    auto files = directory->files();
    files.emplace_back("result.json");
    record["files"] = files;
    record["files_failed"] = json_of(directory->failures());
    directory->write_record(record.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    std::string names;
    for (auto const& file : directory->files())
      names += (names.empty() ? "" : ", ") + file;
    rows.emplace_back("files", directory->path().string() + "/ " + names);
  }
  console.line();
  console.table(rows);
  if (directory && directory->failure())
    std::rethrow_exception(directory->failure());
}

}  // namespace poisson::app
