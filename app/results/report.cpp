#include "app/results/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

bool standard(std::string_view name) {
  constexpr auto names =
      std::to_array<std::string_view>({"min", "max", "mean", "energy", "integral_u", "integral_f", "min_at", "max_at"});
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string point_text(nlohmann::ordered_json const& x) {
  return "(" + number_text(x[0], 6) + ", " + number_text(x[1], 6) + ", " + number_text(x[2], 6) + ")";
}

/// Extremes and integrals, what flows out where, then what the user asks for.
void add_quantities(QuantityTable const& quantities, std::set<std::string> const& free_surfaces, std::string const& name,
                    std::string const& unit, std::vector<std::pair<std::string, std::string>>& rows) {
  auto const of = [&](std::string_view wanted) -> nlohmann::ordered_json const& {
    return std::find_if(quantities.begin(), quantities.end(), [&](auto const& q) { return q.first == wanted; })->second;
  };
  rows.emplace_back(name == "u" ? "solution" : name, "min " + number_text(of("min"), 6) + " at " + point_text(of("min_at")) +
                                                         ", max " + number_text(of("max"), 6) + " at " + point_text(of("max_at")) +
                                                         ", mean " + number_text(of("mean"), 6) + (unit.empty() ? "" : " " + unit));
  rows.emplace_back("integrals", "of f " + number_text(of("integral_f"), 6) + ", of u " + number_text(of("integral_u"), 6) +
                                     "; energy " + number_text(of("energy"), 6) + " (1/2 int k |grad u|^2)");
  constexpr std::size_t most = 8;
  std::string fluxes, through;
  std::size_t count = 0;
  for (auto const& [quantity, value] : quantities) {
    if (quantity.starts_with("flux.") && free_surfaces.contains(quantity.substr(5)))
      through += (through.empty() ? "" : ", ") + quantity.substr(5) + ": " + number_text(value, 6);
    else if (quantity.starts_with("flux.") && ++count <= most)
      fluxes += (count > 1 ? ", " : "") + quantity.substr(5) + ": " + number_text(value, 6);
    else if (quantity.starts_with("probe."))
      rows.emplace_back(quantity, value.is_number() ? number_text(value, 6) : point_text(value));
    else if (quantity.find('.') == std::string::npos && !standard(quantity))
      rows.emplace_back(quantity, value.is_number() ? number_text(value, 6) : "not a finite number");
  }
  if (count > 0)
    rows.emplace_back("flux",
                      "out of boundary " + fluxes + (count > most ? ", ... (" + std::to_string(count) + " boundaries)" : ""));
  if (!through.empty())
    rows.emplace_back("flux", "through surface " + through);
}

/// The tensors, and what they are compared with.
void add_effective(EffectiveResult const& effective, std::vector<std::pair<std::string, std::string>>& rows) {
  auto const diagonal = [](Tensor3 const& t) {
    return "xx " + number_text(t[0][0], 6) + ", yy " + number_text(t[1][1], 6) + ", zz " + number_text(t[2][2], 6);
  };
  if (effective.periodic) {
    Tensor3 const& t = effective.periodic->by_flux;
    double const rounding = 1e-9 * std::max({std::abs(t[0][0]), std::abs(t[1][1]), std::abs(t[2][2])});
    auto const number = [&](double x) { return number_text(std::abs(x) < rounding ? 0 : x, 6); };
    rows.emplace_back("effective", diagonal(t) + ", xy " + number(t[0][1]) + ", xz " + number(t[0][2]) + ", yz " + number(t[1][2]) +
                                       " (periodic)");
  }
  if (effective.fixed)
    rows.emplace_back("effective", diagonal(effective.fixed->by_flux) + " (fixed values on two sides)");
  if (!effective.sub_volumes.empty()) {
    SubVolumeStatistics const statistics = statistics_of(effective.sub_volumes);
    auto const [nx, ny, nz] = effective.sub_volumes_asked.size;
    std::string text = std::to_string(effective.sub_volumes.size()) + " of " + std::to_string(nx) + " x " + std::to_string(ny) +
                       " x " + std::to_string(nz) + " cells:";
    for (std::size_t d = 0; d < 3; ++d)
      text += std::string(d == 0 ? " " : ", ") + "xyz"[d] + "xyz"[d] + " " + number_text(statistics.mean[d][d], 6) + " +- " +
              number_text(statistics.deviation[d][d], 3);
    rows.emplace_back("sub-volumes", text);
  }
  if (auto const& bounds = effective.bounds)
    rows.emplace_back("bounds", "Reuss " + number_text(bounds->reuss, 6) + ", Hashin-Shtrikman " +
                                    number_text(bounds->hashin_shtrikman_lower, 6) + " to " +
                                    number_text(bounds->hashin_shtrikman_upper, 6) + ", Voigt " + number_text(bounds->voigt, 6));
  if (effective.conductor() != nullptr) {
    auto const [x, y, z] = effective.tortuosity_factor();
    rows.emplace_back("tortuosity", "factor " + number_text(x, 6) + " along x, " + number_text(y, 6) + " along y, " +
                                        number_text(z, 6) + " along z");
  }
}

}  // namespace

void print_closing_table(ResultRecord const& r, fs::path const& directory, Console& console) {
  double const share = r.copy_bandwidth > 0 ? r.bandwidth() / r.copy_bandwidth : 0;
  std::vector<std::pair<std::string, std::string>> rows{
      {"status", std::string(name_of(r.status)) + (r.reason.empty() ? "" : ": " + r.reason)},
      r.system
          ? std::pair<std::string, std::string>("system", "A = " + r.system->matrix + ", b = " + r.system->rhs_name())
          : std::pair<std::string, std::string>("cells", with_thousands(r.mesh.cells) + " of order " + std::to_string(r.order)),
      {"unknowns", with_thousands(r.dofs)},
      {"non-zeros", with_thousands(r.nnz)},
      {"matrix", std::string(name_of(r.format)) + ", " + bytes_text(static_cast<double>(r.matrix_bytes)) + ", " +
                     number_text(100.0 * static_cast<double>(r.matrix_bytes) / static_cast<double>(r.csr_bytes)) + " % of csr" +
                     (r.format_reason.empty() ? "" : " (" + r.format_reason + ")")},
      {"iterations", with_thousands(r.result.iterations) + " of " + std::string(name_of(r.solver.method)) + ", preconditioner " +
                         std::string(name_of(r.solver.preconditioner))},
      {"residual", number_text(r.result.residual_recursive) + " recursive, " + number_text(r.residual_true) + " true (tolerance " +
                       number_text(r.solver.tolerance) + ")"}};
  if (!r.quantities.empty())
    add_quantities(r.quantities, r.mesh.free_surfaces(), r.name, r.unit, rows);
  if (r.effective && r.effective->is_solved())
    add_effective(*r.effective, rows);
  if (r.adaptive && !r.adaptive->cycles.empty())
    rows.emplace_back("answer", r.adaptive->target + " = " + r.adaptive->cycles.back().answer() + ", cycle " +
                                    std::to_string(r.adaptive->cycles.size()) + ", ended by " + r.adaptive->ended);
  if (r.errors)
    rows.emplace_back("error", "L2 " + number_text(r.errors->l2, 6) + ", H1 seminorm " + number_text(r.errors->h1_seminorm, 6) +
                                   ", max " + number_text(r.errors->linf, 6));
  rows.emplace_back("solve",
                    seconds_text(r.result.seconds) + ", " +
                        (r.result.iterations > 0
                             ? seconds_text(r.result.seconds / static_cast<double>(r.result.iterations)) + " an iteration, "
                             : "") +
                        number_text(r.bandwidth() / 1e9) + " GB/s" +
                        (share > 0 ? ", " + number_text(100 * share) + " % of the measured copy bandwidth of " +
                                         number_text(r.copy_bandwidth / 1e9) + " GB/s"
                                   : " (copy bandwidth not measured in so short a run; see poisson info)"));
  rows.emplace_back("total", seconds_text(r.clock.total()));
  rows.emplace_back(
      "memory",
      bytes_text(static_cast<double>(r.host_peak_bytes)) + " on the host at most" +
          (r.device_peak_bytes > 0 ? ", " + bytes_text(static_cast<double>(r.device_peak_bytes)) + " on the device" : ""));
  std::string files;
  for (auto const& name : r.files)
    files += (files.empty() ? "" : ", ") + name;
  rows.emplace_back("files", directory.string() + "/ " + files);
  console.line();
  console.table(rows);
}

}  // namespace poisson::app
