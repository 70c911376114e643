#include "app/run/rank_quantities.hpp"

#include "gpu/core/communicator.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace poisson::app {

namespace {

/// Sums over the ranks of lists of equal length.
std::vector<double> sum_lists(Communicator& ranks, std::vector<double> const& mine) {
  std::vector<double> all(mine.size() * static_cast<std::size_t>(ranks.size())), sums(mine.size(), 0.0);
  ranks.all_gather(mine.data(), static_cast<std::int64_t>(mine.size() * sizeof(double)), all.data());
  for (std::size_t i = 0; i < all.size(); ++i)
    sums[i % mine.size()] += all[i];
  return sums;
}

/// The quantities of the whole from those of parts; of equal extremes the lowest place counts, by z, then y, then x.
assembly::Quantities merge(Communicator& ranks, assembly::MeshSummary const& mesh,
                           std::optional<assembly::Quantities> const& mine) {
  struct Extremes {
    bool has_cells = false;
    double min = 0, max = 0;
    std::array<double, 3> min_at{}, max_at{};
  } own;
  if (mine)
    own = {true, mine->min, mine->max, mine->min_at, mine->max_at};
  assembly::Quantities all;
  auto const before = [](std::array<double, 3> const& a, std::array<double, 3> const& b) {
    return std::tie(a[2], a[1], a[0]) < std::tie(b[2], b[1], b[0]);
  };
  bool first = true;
  for (Extremes const& part : gather(ranks, own)) {
    if (!part.has_cells)
      continue;
    if (first || part.min < all.min || (part.min == all.min && before(part.min_at, all.min_at))) {
      all.min = part.min;
      all.min_at = part.min_at;
    }
    if (first || part.max > all.max || (part.max == all.max && before(part.max_at, all.max_at))) {
      all.max = part.max;
      all.max_at = part.max_at;
    }
    first = false;
  }
  std::vector<double> list{mine ? mine->integral_u : 0, mine ? mine->energy : 0};
  auto const of = [](auto const& map, unsigned id) {
    auto const found = map.find(id);
    return found == map.end() ? typename std::decay_t<decltype(map)>::mapped_type{} : found->second;
  };
  for (unsigned const id : mesh.material_ids)
    list.push_back(mine ? of(mine->volumes, id) : 0);
  for (unsigned const id : mesh.boundary_ids) {
    assembly::BoundaryFlux const boundary = mine ? of(mine->boundaries, id) : assembly::BoundaryFlux{};
    list.push_back(boundary.area);
    list.push_back(boundary.flux);
  }
  auto const sums = sum_lists(ranks, list);
  auto next = sums.begin();
  all.integral_u = *next++;
  all.energy = *next++;
  double volume = 0;
  for (unsigned const id : mesh.material_ids)
    volume += all.volumes[id] = *next++;
  for (unsigned const id : mesh.boundary_ids) {
    all.boundaries[id].area = *next++;
    all.boundaries[id].flux = *next++;
  }
  all.mean = all.integral_u / volume;
  return all;
}

}  // namespace

assembly::Quantities quantities_on_ranks(RankMesh const& mesh, RankTeam& team, std::span<double const> u_around,
                                         std::span<double const> u, std::span<double const> u_low) {
  std::optional<assembly::Quantities> mine;
  assembly::BoundaryFluxes by_residuals;
  team.together([&] {
    // The residuals of a part's own cells are not all that an unknown on its rim has; those of the cells around are.
    if (mesh.own)
      mine = mesh.own->quantities(u, std::vector<std::uint8_t>(u.size(), 0));
    if (mesh.around)
      by_residuals = mesh.around->residual_fluxes(u_around, mesh.have_rows(), u_low);
    for (assembly::PeriodicFlux& flux : by_residuals.periodic)
      flux.node.number = mesh.around_of_whole(flux.node.number);
  });
  assembly::Quantities all = merge(team.communicator(), mesh.whole, mine);
  if (mesh.whole.periodic) {
    auto const periodic = gather_lists(team.communicator(), by_residuals.periodic);
    team.on_first([&] { mesh.around->add_periodic_fluxes(periodic, by_residuals.boundaries); });  // of all, so one adds them
  }
  std::vector<double> fluxes;
  for (unsigned const id : mesh.whole.boundary_ids)
    fluxes.push_back(by_residuals.boundaries[id].flux);
  auto const sums = sum_lists(team.communicator(), fluxes);
  auto next = sums.begin();
  for (unsigned const id : mesh.whole.boundary_ids)
    all.boundaries[id].flux += *next++;
  return all;
}

assembly::ErrorNorms errors_on_ranks(RankMesh const& mesh, RankTeam& team, std::span<double const> u) {
  assembly::ErrorNorms mine;
  team.together([&] {
    if (mesh.own)
      mine = mesh.own->errors(u);
  });
  Communicator* const ranks = &team.communicator();
  return {std::sqrt(sum_over(ranks, mine.l2 * mine.l2)), std::sqrt(sum_over(ranks, mine.h1_seminorm * mine.h1_seminorm)),
          max_over(ranks, mine.linf)};
}

}  // namespace poisson::app
