#include "app/domain/quantities.hpp"

#include "assembly/system/boundary_flux.hpp"
#include "gpu/core/communicator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace poisson::app {

namespace {

/// Every entry becomes the least over the ranks.
void least_of_lists(Communicator& ranks, std::vector<double>& values) {
  combine_lists(
      ranks, std::span(values), [](double& least, double value) { least = std::min(least, value); }, Communicator::Order::of_ranks);
}

/// Boundaries, or surfaces inside the mesh, from what the ranks have of them; all of these ids.
std::map<unsigned, assembly::BoundaryFlux> sum_faces(Communicator& ranks, std::set<unsigned> const& ids,
                                                     std::map<unsigned, assembly::BoundaryFlux> const& mine) {
  std::vector<double> sums, least;  // of largest values their negatives
  for (unsigned const id : ids) {
    auto const found = mine.find(id);
    assembly::BoundaryFlux const faces = found == mine.end() ? assembly::BoundaryFlux{} : found->second;
    sums.insert(sums.end(), {faces.area, faces.flux, faces.integral_u});
    least.insert(least.end(), {faces.min, -faces.max});
  }
  sum_lists(ranks, std::span(sums));
  least_of_lists(ranks, least);
  std::map<unsigned, assembly::BoundaryFlux> all;
  std::size_t i = 0;
  for (unsigned const id : ids) {
    all[id] = {sums[3 * i], sums[3 * i + 1], sums[3 * i + 2], least[2 * i], -least[2 * i + 1]};
    ++i;
  }
  return all;
}

/// The quantities of the whole from those of parts, without the places of the extremes.
assembly::Quantities merge(Communicator& ranks, assembly::MeshSummary const& mesh,
                           std::optional<assembly::Quantities> const& mine) {
  auto const of = [](auto const& map, unsigned id) {
    auto const found = map.find(id);
    return found == map.end() ? typename std::decay_t<decltype(map)>::mapped_type{} : found->second;
  };
  // Least values; of largest ones their negatives.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> least{mine ? mine->min : infinity, mine ? -mine->max : infinity};
  auto const add_range = [&](auto const& values) { least.insert(least.end(), {values.min, -values.max}); };
  for (unsigned const id : mesh.material_ids)
    add_range(mine ? of(mine->materials, id) : assembly::MaterialValues{});
  least_of_lists(ranks, least);
  auto next_least = least.begin();
  auto const set_range = [&](auto& values) {
    values.min = *next_least++;
    values.max = -*next_least++;
  };
  assembly::Quantities all;
  set_range(all);
  for (unsigned const id : mesh.material_ids)
    set_range(all.materials[id]);

  std::vector<double> list{mine ? mine->integral_u : 0, mine ? mine->energy : 0};
  for (unsigned const id : mesh.material_ids) {
    assembly::MaterialValues const values = mine ? of(mine->materials, id) : assembly::MaterialValues{};
    list.insert(list.end(), {mine ? of(mine->volumes, id) : 0, values.integral_u, values.energy});
  }
  sum_lists(ranks, std::span(list));
  auto next = list.begin();
  all.integral_u = *next++;
  all.energy = *next++;
  double volume = 0;
  for (unsigned const id : mesh.material_ids) {
    volume += all.volumes[id] = *next++;
    all.materials[id].integral_u = *next++;
    all.materials[id].energy = *next++;
  }
  all.boundaries = sum_faces(ranks, mesh.boundary_ids, mine ? mine->boundaries : std::map<unsigned, assembly::BoundaryFlux>{});
  all.mean = all.integral_u / volume;
  return all;
}

/// What this rank has of the quantities, without places and mean, from where u is. `by_residuals` gets surfaces inside the mesh,
/// and of a part of one what residuals of own rows tell.
assembly::Quantities quantities_on_backend(SolutionValues const& values, assembly::BoundaryFluxes& by_residuals) {
  Domain const& mesh = values.mesh();
  assembly::Quantities result;
  result.min = std::numeric_limits<double>::infinity();
  result.max = -result.min;
  auto material = mesh.whole.material_ids.begin();
  for (ElementSolution::OfMaterial const& of : values.elements()->of_materials(values.on_backend())) {
    double const energy = 0.5 * of.gradients;
    result.min = std::min(result.min, of.min);
    result.max = std::max(result.max, of.max);
    result.integral_u += of.u;
    result.energy += energy;
    result.volumes[*material] = of.volume;
    result.materials[*material++] = {of.min, of.max, of.u, energy};
  }
  auto const values_of = [](Field const& field) -> assembly::ValuesOfUnknowns {
    if (field.empty())
      return nullptr;
    return [&field](std::span<std::int32_t const> unknowns) { return entries_of(field, unknowns); };
  };
  FieldPair const& u = values.around();
  assembly::ValuesOfUnknowns const high = values_of(u.high), low = values_of(u.low);
  if (mesh.whole.lexicographic || values.box() != nullptr) {
    assembly::NodesOfBox of_high = mesh.around->nodes_among(high), of_low;
    assembly::InsideOfSide inside;
    if (low)
      of_low = mesh.around->nodes_among(low);
    if (BoxSolution const* const box = values.box()) {
      double const* const on_backend = values.on_backend();
      of_high = [=](auto const& first, auto const& count, auto& part) { box->copy_part(on_backend, first, count, part); };
      if (box->has_sides() && !low)
        inside = [=](int side, assembly::RangeOfBox const& faces, assembly::RangeOfBox const& nodes) {
          auto const [area, sums] = box->of_side(on_backend, side, {faces.first, faces.end}, {nodes.first, nodes.end});
          return assembly::BoundaryFlux{area, sums.flux, sums.u, sums.min, sums.max};
        };
    }
    result.boundaries = mesh.around->box_boundary_fluxes(
        of_high, of_low, mesh.is_whole() ? std::nullopt : std::optional(mesh.own_in_around()), inside);
    return result;
  }
  if (mesh.is_whole()) {
    auto fluxes = mesh.around->fluxes_near_boundary(high, low);
    result.boundaries = std::move(fluxes.boundaries);
    by_residuals.surfaces = std::move(fluxes.surfaces);
    return result;
  }
  // The residuals of a part's own cells are not all that an unknown on its rim has; those of the cells around are.
  auto const of_own = [&](std::span<std::int32_t const> unknowns) { return values.at(unknowns); };
  result.boundaries = mesh.own->fluxes_near_boundary(of_own, {}, [](std::int64_t) { return false; }).boundaries;
  by_residuals = mesh.around->fluxes_near_boundary(
      high, low, [&](std::int64_t unknown) { return mesh.has_row(static_cast<std::size_t>(unknown)); });
  std::erase_if(by_residuals.boundaries, [&](auto const& of) { return mesh.around->is_natural(of.first); });
  return result;
}

/// The first nodes that this rank has with such values.
assembly::ExtremePlaces places_on_backend(SolutionValues const& values, double low, double high) {
  ExtremeNodes const nodes = values.elements()->first_places(values.on_backend(), low, high);
  auto const point = [&](std::int64_t node) -> std::optional<std::array<double, 3>> {
    if (node < 0)
      return {};
    auto const known = values.elements()->point_of(node);
    return known ? known : values.mesh().around->point(node);
  };
  return {point(nodes.low), point(nodes.high)};
}

}  // namespace

assembly::Quantities quantities_of(Team& team, SolutionValues const& values) {
  Domain const& mesh = values.mesh();
  bool const on_backend = values.elements() != nullptr;
  if (mesh.is_whole() && !on_backend)
    return mesh.own->quantities(values.host(), {}, values.around().low.host());
  std::optional<assembly::Quantities> mine;
  assembly::BoundaryFluxes by_residuals;
  team.together([&] {
    if (on_backend) {
      mine = quantities_on_backend(values, by_residuals);
    } else {
      if (mesh.own) {
        std::span<double const> const u = values.host_of_own_cells();
        mine = mesh.own->quantities(u, std::vector<std::uint8_t>(u.size(), 0));
      }
      if (mesh.around)
        by_residuals = mesh.around->residual_fluxes(values.host(), mesh.have_rows(), values.around().low.host());
    }
    for (assembly::PeriodicFlux& flux : by_residuals.periodic)
      flux.node.number = mesh.around_of_whole(flux.node.number);
  });
  assembly::Quantities all = merge(team.communicator(), mesh.whole, mine);
  assembly::ExtremePlaces places;
  team.together([&] {
    if (on_backend)
      places = places_on_backend(values, all.most_low(), all.least_high());
    else if (mesh.own)
      places = mesh.own->extreme_places(values.host_of_own_cells(), all.most_low(), all.least_high());
  });
  auto const add = [](assembly::ExtremePlaces& whole, assembly::ExtremePlaces const& of_rank) { whole.add(of_rank); };
  places = combined(team.communicator(), places, add, Communicator::Order::of_ranks);
  all.min_at = *places.low;
  all.max_at = *places.high;
  if (mesh.whole.periodic) {
    auto const periodic = gather_lists(team.communicator(), by_residuals.periodic);
    team.on_first([&] { mesh.around->add_periodic_fluxes(periodic, by_residuals); });  // of all, so one adds them
  }
  std::vector<double> fluxes;
  for (unsigned const id : mesh.whole.boundary_ids)
    fluxes.push_back(by_residuals.boundaries[id].flux);
  sum_lists(team.communicator(), std::span(fluxes));
  auto next = fluxes.begin();
  for (unsigned const id : mesh.whole.boundary_ids) {
    if (*next != 0)  // -0 stays
      all.boundaries[id].flux += *next;
    ++next;
  }
  auto surfaces = sum_faces(team.communicator(), mesh.whole.inner_ids, by_residuals.surfaces);
  std::erase_if(surfaces, [](auto const& of) { return of.second.area == 0; });  // the id of a boundary, and no condition
  all.add_surfaces(surfaces, mesh.whole.conditioned_surfaces);
  return all;
}

assembly::DataFindings data_of(Domain const& mesh, Team& team, RunConfig const& config) {
  if (mesh.is_whole())
    return mesh.own->data_findings();
  assembly::DataFindings mine, all;
  std::size_t const n_sources = config.problem.point_sources.size() + config.problem.line_sources.size();
  team.together([&] {
    if (mesh.own)
      mine = mesh.own->data_findings();
  });
  Communicator& ranks = team.communicator();
  auto const ranges = gather(ranks, mine.ranges);
  team.together([&] {
    // Faces with other conditions at an unknown on the rim of own cells may be other ranks'; all cells around own rows are here.
    if (mesh.around) {
      assembly::DataFindings at_rows;
      for (auto const& of_rank : ranges) {
        assembly::DataFindings part;
        part.ranges = of_rank;
        at_rows.add(part);
      }
      mesh.around->add_findings_at_nodes([&](std::int64_t unknown) { return mesh.has_row(static_cast<std::size_t>(unknown)); },
                                         at_rows);
      mine.meeting = at_rows.meeting;
      mine.robin_meeting = at_rows.robin_meeting;
      mine.periodic_meeting = at_rows.periodic_meeting;
      mine.sources = at_rows.sources;
    }
    mine.sources.resize(n_sources);
  });
  auto const sizes = gather(ranks, static_cast<std::int64_t>(mine.jumps.size()));
  auto const jumps = gather_lists(ranks, mine.jumps);
  auto const sources = gather_lists(ranks, mine.sources);
  auto const meetings = gather(ranks, mine.meeting), robin_meetings = gather(ranks, mine.robin_meeting),
             periodic_meetings = gather(ranks, mine.periodic_meeting);
  auto const unseen = gather(ranks, mine.unseen);
  auto next_jump = jumps.begin();
  auto next_source = sources.begin();
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    assembly::DataFindings part;
    part.jumps.assign(next_jump, next_jump + sizes[rank]);
    part.sources.assign(next_source, next_source + static_cast<std::ptrdiff_t>(n_sources));
    next_jump += sizes[rank];
    next_source += static_cast<std::ptrdiff_t>(n_sources);
    part.ranges = ranges[rank];
    part.meeting = meetings[rank];
    part.robin_meeting = robin_meetings[rank];
    part.periodic_meeting = periodic_meetings[rank];
    part.unseen = unseen[rank];
    all.add(part);
  }
  return all;
}

std::pair<double, double> range_of_k(Team& team, SolutionValues const& u) {
  Domain const& mesh = u.mesh();
  std::array<double, 2> mine{std::numeric_limits<double>::infinity(), 0};
  team.together([&] {
    if (!mesh.around)
      return;
    auto const residual = mesh.around->residual(u.host(), {});
    mine = {residual.smallest_k, residual.largest_k};
  });
  return {-max_over(team.communicator(), -mine[0]), max_over(team.communicator(), mine[1])};
}

assembly::ErrorNorms errors_of(Team& team, SolutionValues const& values, bool pure_neumann) {
  Domain const& mesh = values.mesh();
  ElementSolution const* const elements = values.elements();
  auto const exact = elements != nullptr ? mesh.own->exact_code() : std::nullopt;
  if (mesh.is_whole() && !exact)  // sqrt(x * x) may be another number than x
    return mesh.own->errors(values.host());
  Communicator& ranks = team.communicator();
  auto const on_backend = [&](auto const& body) {
    try {
      body();
    } catch (DataError const& error) {
      mesh.own->refuse(error);
    }
  };
  ElementSolution::Mean mean;
  if (pure_neumann)
    team.together([&] {
      if (exact) {
        on_backend([&] { mean = elements->mean_of_exact(exact->code, exact->points); });
      } else if (mesh.own) {
        assembly::ExactMean const of_own = mesh.own->mean_of_exact();
        mean = {of_own.integral, of_own.volume};
      }
    });
  double const volume = sum_over(ranks, mean.volume), shift = volume > 0 ? sum_over(ranks, mean.integral) / volume : 0;
  ElementSolution::Errors mine;
  team.together([&] {
    if (exact)
      on_backend([&] { mine = elements->errors(values.on_backend(), exact->code, shift, exact->points); });
    else if (mesh.own) {
      assembly::ErrorNorms const norms = mesh.own->errors(values.host_of_own_cells());
      mine = {norms.l2 * norms.l2, norms.h1_seminorm * norms.h1_seminorm, norms.linf};
    }
  });
  return {std::sqrt(sum_over(ranks, mine.squares)), std::sqrt(sum_over(ranks, mine.squares_of_gradients)),
          max_over(ranks, mine.largest)};
}

}  // namespace poisson::app
