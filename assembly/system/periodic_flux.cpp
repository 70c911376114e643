#include "assembly/system/boundary_flux.hpp"
#include "assembly/system/flows.hpp"
#include "assembly/system/periodic.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

namespace poisson::assembly {

void add_periodic_fluxes(std::span<PeriodicFlux const> of_whole, ProblemData const& data, BoundaryFluxes& to) {
  std::vector<std::int64_t> numbers;
  std::vector<PeriodicNode> on_sides;
  std::map<std::tuple<std::int64_t, unsigned, bool>, PeriodicFlux const*> found;
  for (PeriodicFlux const& flux : of_whole) {
    numbers.push_back(flux.node.number);
    found[{flux.node.number, flux.node.boundary, flux.inside}] = &flux;
    if (!flux.inside && data.boundary_at(flux.node.boundary).type == BoundaryType::periodic)
      on_sides.push_back(flux.node);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  auto const index_of = [&](std::int64_t number) {
    return static_cast<std::size_t>(std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin());
  };

  // Flows, and the boundaries that they leave through.
  std::vector<Flow> flows;
  std::vector<BoundaryFlux*> out_of, into;
  for (PeriodicNodePair const& pair : periodic_pairs(on_sides, data)) {
    auto const& sides = data.boundary[pair.condition].sides;
    PeriodicFlux const &first = *found.at({pair.first, sides[0], false}), &second = *found.at({pair.second, sides[1], false});
    flows.push_back({index_of(pair.first), index_of(pair.second), (first.conormal - second.conormal) / 2,
                     std::abs(first.weight + second.weight) / 2});
    out_of.push_back(&to.boundaries[sides[0]]);
    into.push_back(&to.boundaries[sides[1]]);
  }
  std::vector<double> residual(numbers.size());
  for (auto const& [of, flux] : found) {
    unsigned const id = flux->node.boundary;
    residual[index_of(flux->node.number)] = flux->residual;
    if (!flux->inside && data.boundary_at(id).type == BoundaryType::periodic)
      continue;
    flows.push_back({index_of(flux->node.number), Flow::outside, flux->conormal, std::abs(flux->weight)});
    out_of.push_back(flux->inside ? &to.surfaces[id] : &to.boundaries[id]);
    into.push_back(nullptr);
  }
  correct_flows(residual, flows);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    out_of[i]->flux -= flows[i].value;
    if (into[i] != nullptr)
      into[i]->flux += flows[i].value;
  }
}

}  // namespace poisson::assembly
