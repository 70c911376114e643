#include "app/analysis/dense_svd.hpp"

#include "app/analysis/svd_report.hpp"
#include "app/io/matrix_market.hpp"
#include "app/io/results_directory.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/cpu/lapack.hpp"
#include "output/files/atomic_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

using json = nlohmann::ordered_json;

/// Everything dense that will be in the host's memory at a time.
void require_memory_for(std::int64_t n_rows, std::int64_t n_columns, bool vectors, std::string const& name) {
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
  require_memory_for(coo.n_rows, coo.n_columns, vectors, path);
  return dense(coo, path);
}

std::string abbreviated(std::span<double const> values) {
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

std::vector<std::string> names_of_files(DenseSvdOptions const& work) {
  std::vector<std::string> names{"singular_values.csv"};
  if (work.picture && output::pictures_built())
    names.emplace_back("spectrum.png");
  if (work.vectors)
    names.insert(names.end(), {"u.mtx", "v.mtx"});
  return names;
}

/// What run_svd has computed.
struct Decomposition {
  Svd svd;
  SvdSummary summary;
  double read_seconds;
};

std::unique_ptr<Context> make_context_for(std::optional<Backend> backend) {
  std::string const no_cuda = backend == Backend::cpu ? "" : why_no_cuda();
  if (backend == Backend::cuda && !no_cuda.empty())
    throw EnvironmentError("backend cuda: " + no_cuda);
  return make_context(backend.value_or(no_cuda.empty() ? Backend::cuda : Backend::cpu));
}

Decomposition decompose(DenseSvdOptions const& work, Context& context, Console& console) {
  bool const from_file = !work.matrix.empty();
  std::string const name = from_file ? work.matrix : "random, seed " + std::to_string(work.seed);
  console.line("poisson " POISSON_VERSION ": svd of " + name);
  Timer const reading;
  if (!from_file)
    require_memory_for(work.random, work.random, work.vectors, "a random matrix");
  DenseMatrix const a = from_file ? read_dense(work.matrix, work.vectors) : random_matrix(work.random, work.random, work.seed);
  double const read_seconds = reading.seconds();
  console.stage(from_file ? "read" : "make", read_seconds, with_thousands(a.n_rows) + " x " + with_thousands(a.n_columns));
  if (interrupt_requested())
    throw Interrupted();

  console.working("decomposing");
  SvdOptions options;
  options.vectors = work.vectors;
  options.band_width = work.band_width;
  Svd result = svd(a, options, context);
  console.end_progress();
  console.stage("svd", result.seconds.total, "on " + context.description().name);
  SvdSummary summary{
      name,           a.n_rows, a.n_columns, result.band_width, work.vectors, spectrum_of(result.values, a.n_rows, a.n_columns),
      result.seconds, {},       ""};
  if (work.vectors) {
    console.working("checking");
    summary.accuracy = svd_accuracy(context, a, result);
    console.end_progress();
  }
  return {std::move(result), std::move(summary), read_seconds};
}

std::vector<std::pair<std::string, std::string>> table_of(SvdSummary const& summary, std::span<double const> values) {
  Spectrum const& spectrum = summary.spectrum;
  auto const n = static_cast<std::int64_t>(values.size());
  std::vector<std::pair<std::string, std::string>> rows{
      {"values", abbreviated(values)},
      {"rank", with_thousands(spectrum.rank) + " of " + with_thousands(n) + ": values above " + number_text(spectrum.threshold) +
                   ", the size of rounding"},
      {"condition", number_text(spectrum.condition, 6) + (spectrum.rank < n ? ", values beyond the rank left out" : "")},
      {"seconds", text_of(summary.seconds)}};
  if (summary.accuracy)
    rows.emplace_back("accuracy", text_of(*summary.accuracy));
  return rows;
}

/// Writes all files but the record; one that fails costs none of the others.
void write_files(ResultsDirectory& directory, DenseSvdOptions const& work, Decomposition& done) {
  directory.ensure_writable();
  if (directory.try_write("singular_values.csv", [&](fs::path const& path) {
        output::write_text_file(path, csv_text("i", 1, {{"singular_value", done.svd.values}}));
      }))
    done.summary.values_file = "singular_values.csv";
  if (work.picture && output::pictures_built()) {
    output::PlotOptions plot;
    plot.title = "Singular values";
    plot.x_label = "i";
    directory.try_write("spectrum.png",
                        [&](fs::path const& path) { output::write_plot(path, {curve_of("", done.svd.values)}, plot); });
  }
  if (work.vectors) {
    directory.try_write("u.mtx", [&](fs::path const& path) { write_dense_matrix(path, done.svd.u); });
    directory.try_write("v.mtx", [&](fs::path const& path) { write_dense_matrix(path, done.svd.v); });
  }
}

/// result.json of `poisson svd`: docs/result_json.md.
json record_of(DenseSvdOptions const& work, Decomposition const& done, Context const& context, ResultsDirectory const& directory,
               Timer const& total) {
  json record{{"poisson_version", POISSON_VERSION},
              {"exit_code", directory.failure() ? 3 : 0},
              {"backend", name_of(context.backend())},
              {"device", context.description().name},
              {"threads", thread_count()}};
  put(done.summary, record);
  if (work.matrix.empty())
    record["matrix"]["seed"] = work.seed;
  record["timing"] = {{"read", done.read_seconds}, {"svd", done.svd.seconds.total}, {"total", total.seconds()}};
  record["memory"] = {{"device_peak_bytes", context.memory_peak()}};
  auto files = directory.files();
  files.emplace_back("result.json");
  record["files"] = files;
  record["files_failed"] = json_of(directory.failures());
  return record;
}

}  // namespace

void run_svd(DenseSvdOptions const& work, Console& console) {
  Timer const total;
  static_cast<void>(lapack());  // where it is missing, before there is work to lose
  if (!work.output.empty() && work.picture && output::pictures_built())
    output::load_pictures();
  std::optional<ResultsDirectory> directory;
  if (!work.output.empty())
    directory.emplace(work.output, "result.json", names_of_files(work), work.overwrite);
  set_thread_count(work.threads);
  auto const context = make_context_for(work.backend);
  Decomposition done = decompose(work, *context, console);
  auto rows = table_of(done.summary, done.svd.values);
  if (directory) {
    write_files(*directory, work, done);
    json const record = record_of(work, done, *context, *directory, total);
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
