#include "app/analysis/analysis.hpp"
#include "app/analysis/svd_report.hpp"
#include "gpu/core/error.hpp"
#include "gpu/spectral/tucker.hpp"
#include "output/vtk/vtk_files.hpp"

#include <array>
#include <cmath>

namespace poisson::app {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

/// The lattice that the entry asks for: end points on the box around the mesh, a plane one point thick.
assembly::Lattice lattice_of(AnalysisSpec const& spec, assembly::Extent const& extent) {
  assembly::Lattice lattice;
  for (std::size_t d = 0; d < 3; ++d) {
    double const low = extent.low[d], high = extent.high[d];
    if (spec.sample == SampleShape::plane && static_cast<std::size_t>(spec.normal) == d) {
      lattice.low[d] = spec.at.value_or((low + high) / 2);
      if (!(lattice.low[d] >= low && lattice.low[d] <= high))
        throw InputError("the plane at " + std::string(name_of(spec.normal)) + " = " + number_text(lattice.low[d], 6) +
                         " misses the mesh, which reaches from " + number_text(low, 6) + " to " + number_text(high, 6));
      continue;
    }
    lattice.n[d] = spec.points_per_direction();
    lattice.low[d] = low;
    lattice.spacing[d] = (high - low) / static_cast<double>(lattice.n[d] - 1);
  }
  return lattice;
}

/// The lattice's points as a tensor: of a plane its two directions, the third being one point thick.
std::array<std::int64_t, 3> shape_of(AnalysisSpec const& spec, assembly::Lattice const& lattice) {
  if (spec.sample != SampleShape::plane)
    return lattice.n;
  auto const normal = static_cast<std::size_t>(spec.normal);
  return {lattice.n[normal == 0 ? 1 : 0], lattice.n[normal == 2 ? 1 : 2], 1};
}

/// The field at the points of a lattice, continued by zero outside the mesh.
struct Sampled {
  HostVector<double> values;
  HostVector<int> inside;
  std::int64_t n_outside = 0;
};

Sampled sampled(AnalysisInput const& input, assembly::Lattice const& lattice) {
  Sampled field;
  field.values = input.sample(lattice);
  field.inside.resize(field.values.size());
  for (std::size_t i = 0; i < field.values.size(); ++i) {
    field.inside[i] = std::isnan(field.values[i]) ? 0 : 1;
    if (field.inside[i] == 0) {
      field.values[i] = 0;
      ++field.n_outside;
    }
  }
  if (field.n_outside == lattice.size())
    throw InputError("no point of the lattice lies in the mesh");
  for (double const value : field.values)
    if (!std::isfinite(value))
      throw InputError("the solution is not finite everywhere; there is nothing to decompose");
  return field;
}

/// The table and the plot of singular values and errors of all ranks.
void write_spectra(TuckerApproximation const& all, bool plane, double error_asked, AnalysisInput const& input,
                   AnalysisOutput& output) {
  std::vector<CsvColumn> table;
  std::vector<output::Curve> curves;
  char const* const names[] = {"x", "y", "z"};
  for (std::size_t k = 0; k < all.values.size(); ++k) {
    std::string const suffix = plane ? "" : std::string("_") + names[k];
    std::string const of = plane ? "" : std::string(" in ") + names[k];
    table.push_back({"singular_value" + suffix, all.values[k]});
    table.push_back({"error_of_rank" + suffix, std::span(all.errors[k]).subspan(1)});
    curves.push_back(curve_of("singular value / largest" + of, all.values[k]));
    for (double& y : curves.back().y)
      y /= all.values[k][0] > 0 ? all.values[k][0] : 1;
    curves.push_back(curve_of("error of rank i" + of, std::span(all.errors[k]).subspan(1)));
  }
  write_csv(output.directory, output.file("values.csv"), "i", 1, table);
  output::PlotOptions plot;
  plot.title = plane ? "Singular values of the solution on a plane" : "Singular values of the solution in a box";
  plot.x_label = "i";
  plot.reference_y = error_asked;
  write_plots(output, input.config.output, "spectrum", curves, plot);
}

/// The field, its approximation and the difference, as image data.
void write_approximation(Sampled const& field, TuckerApproximation const& all, assembly::Lattice const& lattice,
                         AnalysisInput const& input, AnalysisOutput const& output) {
  output.directory.write(output.file("rank.vti"), [&](fs::path const& path) {
    output::write_vti(path, {lattice.low, lattice.spacing, lattice.n},
                      {{input.config.output.name, 1, field.values, {}},
                       {"rank_r", 1, all.approximation, {}},
                       {"error", 1, all.error, {}},
                       {"inside", 1, {}, field.inside}},
                      {}, input.config.output.vtk);
  });
}

/// Two lines for the console.
void report(AnalysisSpec const& spec, assembly::Lattice const& lattice, Sampled const& field, TuckerApproximation const& all,
            AnalysisOutput const& output) {
  bool const plane = spec.sample == SampleShape::plane;
  std::vector<std::int64_t> const& ranks = all.ranks;
  std::string rank = std::to_string(ranks[0]);
  if (!plane)
    rank += " x " + std::to_string(ranks[1]) + " x " + std::to_string(ranks[2]);
  output.console.line("    field: rank " + rank + " of " + std::to_string(spec.points_per_direction()) + " gives the solution on " +
                      (plane ? "the plane " + std::string(name_of(spec.normal)) + " = " +
                                   number_text(lattice.low[static_cast<std::size_t>(spec.normal)])
                             : "the box") +
                      " to " + number_text(all.relative_error) + " (asked " + number_text(spec.error) +
                      "): " + with_thousands(all.numbers_stored) + " numbers for " + with_thousands(lattice.size()));
  output.console.line("    " + (field.n_outside > 0 ? with_thousands(field.n_outside) + " of " + with_thousands(lattice.size()) +
                                                          " points lie outside the mesh and count as zero, which costs rank"
                                                    : std::string("all points lie in the mesh")));
}

}  // namespace

void analyse_field(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output) {
  json& out = output.json;
  assembly::Lattice const lattice = lattice_of(spec, input.extent);
  bool const plane = spec.sample == SampleShape::plane;
  std::int64_t const n = spec.points_per_direction();
  require_host_memory(8 * 4 * lattice.size() + svd_host_bytes(n, plane ? n : n * n, true), "the sampled field");
  output.console.working("sampling the solution");
  Sampled const field = sampled(input, lattice);
  out["n"] = n;
  out["sample"] = name_of(spec.sample);
  out["points_outside"] = field.n_outside;
  if (plane) {
    out["normal"] = name_of(spec.normal);
    out["at"] = lattice.low[static_cast<std::size_t>(spec.normal)];
  }

  output.console.working("decomposing the field");
  TuckerApproximation const all = truncated_tucker(field.values, shape_of(spec, lattice), spec.error, input.context);
  std::vector<std::int64_t> const& ranks = all.ranks;
  double const reached = all.relative_error;
  std::int64_t const stored = all.numbers_stored;

  put({plane ? "plane" : "unfolding", n, plane ? n : n * n, all.band_width, true, all.spectrum, all.seconds, all.accuracy,
       output.file("values.csv")},
      out);
  if (plane)  // here the rank that the error asked for needs
    out["rank"] = ranks[0];
  else
    out["rank"] = ranks;
  out["error_asked"] = spec.error;
  out["error_reached"] = reached;
  out["numbers_stored"] = stored;

  write_spectra(all, plane, spec.error, input, output);
  write_approximation(field, all, lattice, input, output);
  report(spec, lattice, field, all, output);
}

}  // namespace poisson::app
