#include "assembly/system/boundary_flux.hpp"
#include "assembly/system/periodic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

constexpr auto none = std::numeric_limits<std::size_t>::max();

/// What leaves a node through the boundary `out_of`: it enters the node `to` through the boundary `into`; or, with `to` none, it
/// ends on a Dirichlet boundary.
struct Flow {
  std::size_t from = 0, to = none;
  unsigned out_of = 0, into = 0;
  double value = 0, weight = 0;
};

/// The nodes that flows connect, by the lowest one, as labels of all nodes.
std::vector<std::size_t> connected(std::size_t n_nodes, std::vector<Flow> const& flows) {
  std::vector<std::size_t> label(n_nodes);
  std::iota(label.begin(), label.end(), std::size_t{0});
  for (bool changed = true; changed;) {  // chains are short: the sides of a box make three links at most
    changed = false;
    for (Flow const& flow : flows)
      if (flow.to != none && label[flow.from] != label[flow.to]) {
        label[flow.from] = label[flow.to] = std::min(label[flow.from], label[flow.to]);
        changed = true;
      }
  }
  return label;
}

/// Solves the symmetric system of a few unknowns, whose matrix is a Laplacian of a connected graph; where `singular`, its null
/// space is the constant.
std::vector<double> solve(std::vector<double> a, std::vector<double> b, bool singular) {
  std::size_t const n = b.size(), last = singular ? n - 1 : n;
  if (singular) {
    double const mean = std::accumulate(b.begin(), b.end(), 0.0) / static_cast<double>(n);
    for (double& value : b)
      value -= mean;
  }
  for (std::size_t k = 0; k < last; ++k)
    for (std::size_t i = k + 1; i < last; ++i) {
      double const factor = a[i * n + k] / a[k * n + k];
      for (std::size_t j = k; j < last; ++j)
        a[i * n + j] -= factor * a[k * n + j];
      b[i] -= factor * b[k];
    }
  std::vector<double> x(n, 0);
  for (std::size_t k = last; k-- > 0;) {
    x[k] = b[k];
    for (std::size_t j = k + 1; j < last; ++j)
      x[k] -= a[k * n + j] * x[j];
    x[k] /= a[k * n + k];
  }
  return x;
}

/// Flows between nodes first, first + 1, ... n - 1, as many as `residual` has: corrected so that they add up to the residuals.
void correct(std::vector<std::size_t> const& place, std::span<Flow> flows, std::vector<double> residual) {
  std::size_t const n = residual.size();
  std::vector<double> laplacian(n * n, 0);
  bool grounded = false;
  for (Flow const& flow : flows) {
    std::size_t const from = place[flow.from];
    if (flow.to == flow.from)
      continue;
    residual[from] -= flow.value;
    laplacian[from * n + from] += flow.weight;
    if (flow.to == none) {
      grounded = true;
      continue;
    }
    std::size_t const to = place[flow.to];
    residual[to] += flow.value;
    laplacian[to * n + to] += flow.weight;
    laplacian[from * n + to] -= flow.weight;
    laplacian[to * n + from] -= flow.weight;
  }
  auto const potential = solve(std::move(laplacian), std::move(residual), !grounded);
  for (Flow& flow : flows)
    if (flow.to != flow.from)
      flow.value += flow.weight * (potential[place[flow.from]] - (flow.to == none ? 0 : potential[place[flow.to]]));
}

}  // namespace

void add_periodic_fluxes(std::span<PeriodicFlux const> of_whole, ProblemData const& data,
                         std::map<unsigned, BoundaryFlux>& boundaries) {
  std::vector<std::int64_t> numbers;
  std::vector<PeriodicNode> on_sides;
  std::map<std::pair<std::int64_t, unsigned>, PeriodicFlux const*> found;
  for (PeriodicFlux const& flux : of_whole) {
    numbers.push_back(flux.node.number);
    found[{flux.node.number, flux.node.boundary}] = &flux;
    if (data.boundary_at(flux.node.boundary).type == BoundaryType::periodic)
      on_sides.push_back(flux.node);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  auto const index_of = [&](std::int64_t number) {
    return static_cast<std::size_t>(std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin());
  };

  std::vector<Flow> flows;
  for (PeriodicNodePair const& pair : periodic_pairs(on_sides, data)) {
    auto const& sides = data.boundary[pair.condition].sides;
    PeriodicFlux const &first = *found.at({pair.first, sides[0]}), &second = *found.at({pair.second, sides[1]});
    flows.push_back({index_of(pair.first), index_of(pair.second), sides[0], sides[1], (first.conormal - second.conormal) / 2,
                     std::abs(first.weight + second.weight) / 2});
  }
  std::vector<double> residual(numbers.size());
  for (auto const& [of, flux] : found) {
    residual[index_of(of.first)] = flux->residual;
    if (data.boundary_at(of.second).type == BoundaryType::dirichlet)
      flows.push_back({index_of(of.first), none, of.second, of.second, flux->conormal, std::abs(flux->weight)});
  }

  // Groups of connected nodes, one after the other.
  auto const label = connected(numbers.size(), flows);
  std::stable_sort(flows.begin(), flows.end(), [&](Flow const& a, Flow const& b) { return label[a.from] < label[b.from]; });
  std::vector<std::size_t> nodes(numbers.size()), place(numbers.size());
  std::iota(nodes.begin(), nodes.end(), std::size_t{0});
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::size_t a, std::size_t b) { return label[a] < label[b]; });
  auto flow = flows.begin();
  for (auto node = nodes.begin(); node != nodes.end();) {
    std::size_t const group = label[*node];
    std::vector<double> of_group;
    for (; node != nodes.end() && label[*node] == group; ++node) {
      place[*node] = of_group.size();
      of_group.push_back(residual[*node]);
    }
    auto const first = flow;
    while (flow != flows.end() && label[flow->from] == group)
      ++flow;
    correct(place, {first, flow}, std::move(of_group));
  }
  for (Flow const& of : flows) {
    boundaries[of.out_of].flux -= of.value;
    if (of.to != none)
      boundaries[of.into].flux += of.value;
  }
}

}  // namespace poisson::assembly
