#include "assembly/system/flows.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace poisson::assembly {
namespace {

/// The places that flows connect have the label of the lowest of them.
std::vector<std::size_t> connected(std::size_t n_places, std::vector<Flow> const& flows) {
  std::vector<std::size_t> label(n_places);
  std::iota(label.begin(), label.end(), std::size_t{0});
  for (bool changed = true; changed;) {  // chains are short: the sides of a box make three links at most
    changed = false;
    for (Flow const& flow : flows)
      if (flow.to != Flow::outside && label[flow.from] != label[flow.to]) {
        label[flow.from] = label[flow.to] = std::min(label[flow.from], label[flow.to]);
        changed = true;
      }
  }
  return label;
}

/// Solves a system of a few unknowns, whose matrix is the Laplacian of a connected graph; where it is singular, its null space is
/// the constant.
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

}  // namespace

void correct_flows(std::vector<double> const& out_of, std::vector<Flow>& flows) {
  auto const label = connected(out_of.size(), flows);
  auto const sorted = [&](std::size_t n, auto const& label_of) {
    std::vector<std::size_t> list(n);
    std::iota(list.begin(), list.end(), std::size_t{0});
    std::stable_sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) { return label_of(a) < label_of(b); });
    return list;
  };
  auto const places = sorted(out_of.size(), [&](std::size_t i) { return label[i]; });
  auto const by_group = sorted(flows.size(), [&](std::size_t i) { return label[flows[i].from]; });
  std::vector<std::size_t> in_group(out_of.size());
  auto next = by_group.begin();
  for (auto place = places.begin(); place != places.end();) {
    std::size_t const group = label[*place];
    std::vector<double> rest;
    for (; place != places.end() && label[*place] == group; ++place) {
      in_group[*place] = rest.size();
      rest.push_back(out_of[*place]);
    }
    auto const first = next;
    while (next != by_group.end() && label[flows[*next].from] == group)
      ++next;
    std::size_t const n = rest.size();
    std::vector<double> laplacian(n * n, 0);
    bool leads_outside = false;
    for (auto i = first; i != next; ++i) {
      Flow const& flow = flows[*i];
      if (flow.to == flow.from)
        continue;
      std::size_t const from = in_group[flow.from];
      rest[from] -= flow.value;
      laplacian[from * n + from] += flow.weight;
      if (flow.to == Flow::outside) {
        leads_outside = true;
        continue;
      }
      std::size_t const to = in_group[flow.to];
      rest[to] += flow.value;
      laplacian[to * n + to] += flow.weight;
      laplacian[from * n + to] -= flow.weight;
      laplacian[to * n + from] -= flow.weight;
    }
    auto const potential = solve(std::move(laplacian), std::move(rest), !leads_outside);
    for (auto i = first; i != next; ++i)
      if (Flow& flow = flows[*i]; flow.to != flow.from)
        flow.value +=
            flow.weight * (potential[in_group[flow.from]] - (flow.to == Flow::outside ? 0 : potential[in_group[flow.to]]));
  }
}

}  // namespace poisson::assembly
