#include "gpu/elements/box_points.hpp"

#include "gpu/elements/element_system.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace poisson {

HostVector<double> nodes_of(BoxProblem const& problem, std::size_t direction) {
  std::int64_t const n = problem.cells[direction];
  double const origin = problem.origin[direction], extent = problem.extent[direction];
  HostVector<double> nodes(static_cast<std::size_t>(n) + 1);
  for (std::int64_t i = 0; i < n; ++i)
    nodes[i] = origin + extent * (static_cast<double>(i) / static_cast<double>(n));
  nodes[n] = origin + extent;
  std::copy(problem.coordinates[direction].begin(), problem.coordinates[direction].end(), nodes.begin());
  return nodes;
}

HostVector<double> edges_of(BoxProblem const& problem, std::size_t direction) {
  auto const& nodes = problem.coordinates[direction];
  std::int64_t const n = problem.cells[direction];
  HostVector<double> edges;
  for (std::int64_t i = 0; i < n; ++i)
    edges.push_back(nodes.empty() ? problem.extent[direction] / static_cast<double>(n) : nodes[i + 1] - nodes[i]);
  return edges;
}

HostVector<double> gauss_points_of(HostVector<double> const& nodes) {
  double const low = 0.5 - 0.5 / std::sqrt(3.);
  HostVector<double> points;
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    points.push_back((1 - low) * nodes[i] + low * nodes[i + 1]);
    points.push_back(low * nodes[i] + (1 - low) * nodes[i + 1]);
  }
  return points;
}

BoxProblem::Cells cells_in_sums(BoxProblem const& problem) {
  return problem.cells_in_sums.value_or(BoxProblem::Cells{{0, 0, 0}, problem.cells});
}

double volume_in_sums(BoxProblem const& problem) {
  double volume = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    auto const& cells = problem.cells_in_sums;
    auto const& nodes = problem.coordinates[d];
    if (!cells)
      volume *= problem.extent[d];
    else if (nodes.empty())
      volume *= problem.extent[d] * (static_cast<double>(cells->end[d] - cells->first[d]) / static_cast<double>(problem.cells[d]));
    else
      volume *= nodes[static_cast<std::size_t>(cells->end[d])] - nodes[static_cast<std::size_t>(cells->first[d])];
  }
  return volume;
}

bool has_constants_of_materials(BoxProblem const& problem) {
  return problem.materials && std::ranges::all_of(problem.materials->coefficients, [](std::vector<ExpressionCode> const& k) {
           return std::ranges::all_of(k, is_constant);
         });
}

double constant_of(BoxProblem const& problem, std::size_t id, std::size_t c) {
  std::vector<ExpressionCode> const& k = problem.materials->coefficients[id];
  if (c >= std::max<std::size_t>(k.size(), 3))
    return 0;
  return k[k.size() == 1 ? 0 : c].front().value;
}

std::int64_t planes_at_once(std::array<std::int64_t, 3> const& cells, Backend backend) {
  std::int64_t const bytes = backend == Backend::cuda ? std::int64_t{1} << 28 : std::int64_t{1} << 22;
  std::int64_t const of_plane = 64 * cells[0] * cells[1];
  return std::min(std::max<std::int64_t>(bytes / of_plane, 4), cells[2] + 1);
}

void take_from_host(Context& context, BoxProblem::PlaneValues const& on_host, int component, std::int64_t first, std::int64_t count,
                    std::int64_t of_plane, double* values) {
  if (context.backend() == Backend::cpu) {
    on_host(first, count, component, values);
    return;
  }
  std::int64_t const at_once = std::clamp<std::int64_t>((std::int64_t{1} << 19) / of_plane, 1, count);
  HostVector<double> host(static_cast<std::size_t>(2 * of_plane * at_once));
  for (std::int64_t done = 0; done < count; done += at_once) {
    std::int64_t const planes = std::min(at_once, count - done);
    on_host(first + done, planes, component, host.data());
    context.upload(values + 2 * of_plane * done, host.data(), 8 * 2 * of_plane * planes);
  }
}

void take_labels(Context& context, BoxProblem::Materials const& materials, std::int64_t first, std::int64_t count,
                 std::int64_t of_plane, std::uint8_t* labels) {
  if (context.backend() == Backend::cpu) {
    materials.of_planes(first, count, labels);
    return;
  }
  std::int64_t const at_once = std::clamp<std::int64_t>((std::int64_t{1} << 22) / of_plane, 1, count);
  HostVector<std::uint8_t> host(static_cast<std::size_t>(of_plane * at_once));
  for (std::int64_t done = 0; done < count; done += at_once) {
    std::int64_t const planes = std::min(at_once, count - done);
    materials.of_planes(first + done, planes, host.data());
    context.upload(labels + of_plane * done, host.data(), of_plane * planes);
  }
}

}  // namespace poisson
