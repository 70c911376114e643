#include "app/analysis/analysis.hpp"
#include "app/analysis/svd_report.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/spectral/svd.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
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

/// Calls take(place, row, column) for every entry of a tensor of n0 x n1 x n2, the first index fastest, with its place in the
/// tensor and in unfolding d, whose row i holds all entries whose index d is i.
template <class Take>
void for_unfolding(std::array<std::int64_t, 3> const& n, std::size_t d, Take const& take) {
  std::array<std::int64_t, 3> index{};
  std::size_t const a = d == 0 ? 1 : 0, b = d == 2 ? 1 : 2;
  std::size_t place = 0;
  for (index[2] = 0; index[2] < n[2]; ++index[2])
    for (index[1] = 0; index[1] < n[1]; ++index[1])
      for (index[0] = 0; index[0] < n[0]; ++index[0])
        take(place++, index[d], index[a] + n[a] * index[b]);
}

DenseMatrix unfolding(std::span<double const> tensor, std::array<std::int64_t, 3> const& n, std::size_t d) {
  DenseMatrix matrix(n[d], n[0] * n[1] * n[2] / n[d]);
  for_unfolding(n, d, [&](std::size_t place, std::int64_t row, std::int64_t column) { matrix(row, column) = tensor[place]; });
  return matrix;
}

/// The inverse of unfolding.
HostVector<double> folded(DenseMatrix const& matrix, std::array<std::int64_t, 3> const& n, std::size_t d) {
  HostVector<double> tensor(matrix.values.size());
  for_unfolding(n, d, [&](std::size_t place, std::int64_t row, std::int64_t column) { tensor[place] = matrix(row, column); });
  return tensor;
}

/// P A with P the projection onto the first `rank` columns of u.
DenseMatrix projected(DenseMatrix const& u, std::int64_t rank, DenseMatrix const& a, Context& host) {
  DenseMatrix coefficients(rank, a.n_columns), result(a.n_rows, a.n_columns);
  if (rank == 0) {
    std::fill(result.values.begin(), result.values.end(), 0.0);
    return result;
  }
  gemm(host, true, false, rank, a.n_columns, a.n_rows, 1, u.values.data(), u.n_rows, a.values.data(), a.n_rows, 0,
       coefficients.values.data(), rank);
  gemm(host, false, false, a.n_rows, a.n_columns, rank, 1, u.values.data(), u.n_rows, coefficients.values.data(), rank, 0,
       result.values.data(), a.n_rows);
  return result;
}

double norm(std::span<double const> values) {
  double sum = 0;
  for (double const value : values)
    sum += value * value;
  return std::sqrt(sum);
}

/// The field at the points of a lattice, continued by zero outside the mesh.
struct Sampled {
  HostVector<double> values;
  HostVector<int> inside;
  std::int64_t n_outside = 0;
};

Sampled sampled(AnalysisInput const& input, assembly::Lattice const& lattice) {
  Sampled field;
  field.values = input.discretization.sample(input.u, lattice);
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

/// What the SVDs of a tensor's unfoldings give, an entry for each of them.
struct Decomposition {
  std::vector<HostVector<double>> spectra;
  std::vector<std::vector<double>> errors;  ///< relative, of ranks 0, 1, ...
  std::vector<std::int64_t> ranks;          ///< the smallest that are good enough
  HostVector<double> approximation;         ///< the tensor in the leading vectors of all
  SvdSeconds seconds;                       ///< of all
  SvdAccuracy accuracy;                     ///< the worst of all
  Spectrum spectrum;                        ///< of that with the worst condition
  int band_width = 0;
};

/// A plane is one matrix. A box is unfolded in every direction, and cut to the leading vectors of each (De Lathauwer, De Moor,
/// Vandewalle 2000): the squared errors of the three add up at most, so each may have a third.
Decomposition decompose(HostVector<double> const& values, std::array<std::int64_t, 3> const& shape, double error,
                        AnalysisInput const& input, AnalysisOutput const& output) {
  auto const host = make_context(Backend::cpu);
  std::size_t const n_unfoldings = shape[2] == 1 ? 1 : 3;
  double const error_each = error / std::sqrt(static_cast<double>(n_unfoldings));
  Decomposition all;
  all.approximation = values;
  for (std::size_t d = 0; d < n_unfoldings; ++d) {
    if (interrupt_requested())
      throw Interrupted();
    output.console.working("decomposing the field");
    DenseMatrix const matrix = unfolding(values, shape, d);
    Svd const result = svd(matrix, {}, input.context);
    SvdAccuracy const of_this = svd_accuracy(*host, matrix, result);
    all.accuracy.orthogonality_u = std::max(all.accuracy.orthogonality_u, of_this.orthogonality_u);
    all.accuracy.orthogonality_v = std::max(all.accuracy.orthogonality_v, of_this.orthogonality_v);
    all.accuracy.residual_relative = std::max(all.accuracy.residual_relative, of_this.residual_relative);
    all.seconds.reduce += result.seconds.reduce;
    all.seconds.chase += result.seconds.chase;
    all.seconds.bidiagonal += result.seconds.bidiagonal;
    all.seconds.back += result.seconds.back;
    all.seconds.total += result.seconds.total;
    all.errors.push_back(errors_by_rank(result.values));
    all.ranks.push_back(smallest_rank(all.errors.back(), error_each));
    all.band_width = result.band_width;
    Spectrum const spectrum = spectrum_of(result.values, matrix.n_rows, matrix.n_columns);
    if (d == 0 || spectrum.condition > all.spectrum.condition)
      all.spectrum = spectrum;
    all.approximation = folded(projected(result.u, all.ranks.back(), unfolding(all.approximation, shape, d), *host), shape, d);
    all.spectra.push_back(result.values);
  }
  return all;
}

/// The table and the plot of singular values and errors of all ranks.
void write_spectra(Decomposition const& all, bool plane, double error_asked, AnalysisInput const& input, AnalysisOutput& output) {
  std::vector<CsvColumn> table;
  std::vector<output::Curve> curves;
  char const* const names[] = {"x", "y", "z"};
  for (std::size_t k = 0; k < all.spectra.size(); ++k) {
    std::string const suffix = plane ? "" : std::string("_") + names[k];
    std::string const of = plane ? "" : std::string(" in ") + names[k];
    table.push_back({"singular_value" + suffix, all.spectra[k]});
    table.push_back({"error_of_rank" + suffix, std::span(all.errors[k]).subspan(1)});
    curves.push_back(curve_of("singular value / largest" + of, all.spectra[k]));
    for (double& y : curves.back().y)
      y /= all.spectra[k][0] > 0 ? all.spectra[k][0] : 1;
    curves.push_back(curve_of("error of rank i" + of, std::span(all.errors[k]).subspan(1)));
  }
  write_csv(output.directory, output.file("values.csv"), "i", 1, table);
  if (!input.config.output.picture || !output::pictures_built())
    return;
  output::PlotOptions plot;
  plot.title = plane ? "Singular values of the solution on a plane" : "Singular values of the solution in a box";
  plot.x_label = "i";
  plot.reference_y = error_asked;
  output.directory.write(output.file("spectrum.png"), [&](fs::path const& path) { output::write_plot(path, curves, plot); });
}

}  // namespace

void analyse_field(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output) {
  json& out = output.json;
  assembly::Lattice const lattice = lattice_of(spec, input.discretization.extent());
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

  std::array<std::int64_t, 3> shape = lattice.n;
  if (plane) {  // its two directions, the third being one thick
    std::size_t const normal = static_cast<std::size_t>(spec.normal);
    shape = {lattice.n[normal == 0 ? 1 : 0], lattice.n[normal == 2 ? 1 : 2], 1};
  }
  Decomposition const all = decompose(field.values, shape, spec.error, input, output);
  std::vector<std::int64_t> const& ranks = all.ranks;
  HostVector<double> error(field.values.size());
  for (std::size_t i = 0; i < error.size(); ++i)
    error[i] = field.values[i] - all.approximation[i];
  double const size = norm(field.values), reached = size > 0 ? norm(error) / size : 0;
  std::int64_t const stored = plane ? ranks[0] * 2 * n : ranks[0] * ranks[1] * ranks[2] + n * (ranks[0] + ranks[1] + ranks[2]);

  put({plane ? "plane" : "unfolding",
       n,
       plane ? n : n * n,
       all.band_width,
       true,
       all.spectrum,
       all.seconds,
       all.accuracy,
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
  output.directory.write(output.file("rank.vti"), [&](fs::path const& path) {
    output::write_vti(path, {lattice.low, lattice.spacing, lattice.n},
              {{"u", 1, field.values, {}},
               {"rank_r", 1, all.approximation, {}},
               {"error", 1, error, {}},
               {"inside", 1, {}, field.inside}},
              input.config.output.vtk);
  });

  std::string rank = std::to_string(ranks[0]);
  if (!plane)
    rank += " x " + std::to_string(ranks[1]) + " x " + std::to_string(ranks[2]);
  output.console.line("    field: rank " + rank + " of " + std::to_string(n) + " gives the solution on " +
                      (plane ? "the plane " + std::string(name_of(spec.normal)) + " = " +
                                   number_text(lattice.low[static_cast<std::size_t>(spec.normal)])
                             : "the box") +
                      " to " + number_text(reached) + " (asked " + number_text(spec.error) + "): " + with_thousands(stored) +
                      " numbers for " + with_thousands(lattice.size()));
  output.console.line("    " + (field.n_outside > 0 ? with_thousands(field.n_outside) + " of " + with_thousands(lattice.size()) +
                                                          " points lie outside the mesh and count as zero, which costs rank"
                                                    : std::string("all points lie in the mesh")));
}

}  // namespace poisson::app
