#include "app/analysis/analysis.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <filesystem>
#include <new>

namespace poisson::app {

std::string analysis_prefix(std::size_t index, AnalysisSpec const& spec) {
  return "svd" + std::to_string(index) + "_" + std::string(name_of(spec.of));
}

void write_plots(AnalysisOutput const& output, OutputSpec const& formats, std::string const& name,
                 std::vector<output::Curve> const& curves, output::PlotOptions const& options) {
  if (!formats.picture || !output::pictures_built())
    return;
  for (std::string const& ending : formats.picture_endings())
    output.directory.write(output.file(name + ending),
                           [&](std::filesystem::path const& path) { output::write_plot(path, curves, options); });
}

void try_analysis(std::size_t index, AnalysisSpec const& spec, AnalysisOutput const& output, std::exception_ptr& failure,
                  std::function<void()> const& body) {
  std::string const key = "analysis.svd[" + std::to_string(index) + "]";
  auto const failed = [&](std::string const& message, auto&& error) {
    output.json["error"] = message;
    output.console.line("    " + key + " of " + std::string(name_of(spec.of)) + " failed: " + message);
    if (!failure)
      failure = std::make_exception_ptr(error);
  };
  try {
    body();
  } catch (Interrupted const&) {
    output.json["error"] = "interrupted";
    throw;
  } catch (InputError const& error) {
    failed(error.what(), InputError(key, error.what()));
  } catch (EnvironmentError const& error) {
    failed(error.what(), EnvironmentError(key + ": " + error.what()));
  } catch (std::bad_alloc const&) {
    failed("out of memory", OutOfMemoryError(key + ": out of memory"));
  }
}

std::exception_ptr analyse(AnalysisInput const& input, ResultsDirectory& directory, std::vector<nlohmann::ordered_json>& records,
                           Console& console) {
  std::exception_ptr failure;
  auto const& entries = input.config.analysis;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    AnalysisSpec const& spec = entries[i];
    auto& json = records.emplace_back(nlohmann::ordered_json{{"of", name_of(spec.of)}});
    if (spec.of == AnalysisOf::snapshots) {  // of all cases together
      json["note"] = "made by 'poisson sweep'";
      continue;
    }
    if (interrupt_requested())
      throw Interrupted();
    AnalysisOutput const output{directory, console, analysis_prefix(i, spec), json};
    try_analysis(i, spec, output, failure,
                 [&] { (spec.of == AnalysisOf::operator_ ? analyse_operator : analyse_field)(input, spec, output); });
  }
  return failure;
}

}  // namespace poisson::app
