#include "app/analysis.hpp"
#include "app/svd_report.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/svd/svd.hpp"
#include "output/vtk_files.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace poisson {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

/// The lattice that the entry asks for: end points on the box around the mesh, a plane one point thick.
Lattice lattice_of(AnalysisSpec const& spec, Extent const& extent) {
  Lattice lattice;
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

}  // namespace

void analyse_field(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output) {
  json& out = output.json;
  Lattice const lattice = lattice_of(spec, input.discretization.extent());
  bool const plane = spec.sample == SampleShape::plane;
  std::int64_t const n = spec.points_per_direction(), columns = plane ? n : n * n;
  require_host_memory(8 * 4 * lattice.size() + svd_host_bytes(n, columns, true), "the sampled field");
  output.console.working("sampling the solution");
  HostVector<double> values = input.discretization.sample(input.u, lattice);

  // The field is continued by zero outside the mesh.
  HostVector<int> inside(values.size());
  std::int64_t n_inside = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    inside[i] = std::isnan(values[i]) ? 0 : 1;
    n_inside += inside[i];
    if (inside[i] == 0)
      values[i] = 0;
  }
  if (n_inside == 0)
    throw InputError("no point of the lattice lies in the mesh");
  for (double const value : values)
    if (!std::isfinite(value))
      throw InputError("the solution is not finite everywhere; there is nothing to decompose");
  std::int64_t const outside = lattice.size() - n_inside;
  out["n"] = n;
  out["sample"] = name_of(spec.sample);
  out["points_outside"] = outside;
  if (plane) {
    out["normal"] = name_of(spec.normal);
    out["at"] = lattice.low[static_cast<std::size_t>(spec.normal)];
  }

  // A plane is one matrix. A box is unfolded in every direction, and cut to the leading vectors of each (De Lathauwer, De Moor,
  // Vandewalle 2000): the squared errors of the three add up at most, so each may have a third.
  auto const host = make_context(Backend::cpu);
  std::size_t const n_unfoldings = plane ? 1 : 3;
  double const error_each = plane ? spec.error : spec.error / std::sqrt(3.0);
  std::array<std::int64_t, 3> shape = lattice.n;
  if (plane) {  // its two directions, the third being one thick
    std::size_t const normal = static_cast<std::size_t>(spec.normal);
    shape = {lattice.n[normal == 0 ? 1 : 0], lattice.n[normal == 2 ? 1 : 2], 1};
  }
  HostVector<double> approximation = values;
  std::vector<HostVector<double>> spectra;
  std::vector<std::vector<double>> errors;
  std::vector<std::int64_t> ranks;
  SvdSeconds seconds;
  SvdAccuracy accuracy;  // the worst of all
  double condition = 0;
  for (std::size_t d = 0; d < n_unfoldings; ++d) {
    if (interrupt_requested())
      throw Interrupted();
    output.console.working("decomposing the field");
    DenseMatrix const matrix = unfolding(values, shape, d);
    Svd const result = svd(matrix, {}, input.context);
    SvdAccuracy const of_this = svd_accuracy(*host, matrix, result);
    accuracy.orthogonality_u = std::max(accuracy.orthogonality_u, of_this.orthogonality_u);
    accuracy.orthogonality_v = std::max(accuracy.orthogonality_v, of_this.orthogonality_v);
    accuracy.residual_relative = std::max(accuracy.residual_relative, of_this.residual_relative);
    seconds.reduce += result.seconds.reduce;
    seconds.chase += result.seconds.chase;
    seconds.bidiagonal += result.seconds.bidiagonal;
    seconds.back += result.seconds.back;
    seconds.total += result.seconds.total;
    errors.push_back(errors_by_rank(result.values));
    ranks.push_back(smallest_rank(errors.back(), error_each));
    condition = std::max(condition, spectrum_of(result.values, n, columns).condition);
    approximation = folded(projected(result.u, ranks.back(), unfolding(approximation, shape, d), *host), shape, d);
    spectra.push_back(result.values);
  }
  HostVector<double> error(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    error[i] = values[i] - approximation[i];
  double const size = norm(values), reached = size > 0 ? norm(error) / size : 0;
  std::int64_t const stored = plane ? ranks[0] * 2 * n : ranks[0] * ranks[1] * ranks[2] + n * (ranks[0] + ranks[1] + ranks[2]);

  out["condition"] = condition;
  if (plane)
    out["rank"] = ranks[0];
  else
    out["rank"] = ranks;
  out["error_asked"] = spec.error;
  out["error_reached"] = reached;
  out["numbers_stored"] = stored;
  out["singular_values_file"] = output.file("values.csv");
  out["seconds"] = json_of(seconds);
  put(accuracy, out);

  std::vector<CsvColumn> table;
  std::vector<Curve> curves;
  char const* const names[] = {"x", "y", "z"};
  for (std::size_t k = 0; k < n_unfoldings; ++k) {
    std::string const suffix = plane ? "" : std::string("_") + names[k];
    std::string const of = plane ? "" : std::string(" in ") + names[k];
    table.push_back({"singular_value" + suffix, spectra[k]});
    table.push_back({"error_of_rank" + suffix, std::span(errors[k]).subspan(1)});
    curves.push_back(curve_of("singular value / largest" + of, spectra[k]));
    for (double& y : curves.back().y)
      y /= spectra[k][0] > 0 ? spectra[k][0] : 1;
    curves.push_back(curve_of("error of rank i" + of, std::span(errors[k]).subspan(1)));
  }
  write_csv(output.directory, output.file("values.csv"), "i", 1, table);
  if (input.config.output.picture && pictures_built()) {
    PlotOptions plot;
    plot.title = plane ? "Singular values of the solution on a plane" : "Singular values of the solution in a box";
    plot.x_label = "i";
    plot.reference_y = spec.error;
    output.directory.write(output.file("spectrum.png"), [&](fs::path const& path) { write_plot(path, curves, plot); });
  }
  output.directory.write(output.file("rank.vti"), [&](fs::path const& path) {
    write_vti(path, {lattice.low, lattice.spacing, lattice.n},
              {{"u", 1, values, {}}, {"rank_r", 1, approximation, {}}, {"error", 1, error, {}}, {"inside", 1, {}, inside}},
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
  output.console.line("    " + (outside > 0 ? with_thousands(outside) + " of " + with_thousands(lattice.size()) +
                                                  " points lie outside the mesh and count as zero, which costs rank"
                                            : std::string("all points lie in the mesh")));
}

}  // namespace poisson
