#include "assembly/system/integrals.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/error.hpp"

#include <numeric>
#include <vector>

namespace poisson::assembly {

namespace {

constexpr std::int64_t entries_per_part = 4096;

}  // namespace

void subtract_constant_source(std::span<double> rhs, std::span<double const> integrals) {
  double const density = ordered_sum(rhs) / ordered_sum(integrals);
  for (std::size_t i = 0; i < rhs.size(); ++i)
    rhs[i] -= density * integrals[i];
}

void throw_inverted_cell(Point3 const& x, double determinant) {
  throw InputError("problem.mesh", "a cell of the mesh is turned inside out or degenerate at (x, y, z) = " + to_text(x) +
                                       " (Jacobian determinant " + to_text(determinant) +
                                       "); all cells must have positive volume everywhere: repair the mesh, or, where a generator "
                                       "curves its cells, use order 1");
}

double ordered_dot(std::span<double const> u, std::span<double const> v) {
  auto const n = static_cast<std::int64_t>(u.size());
  std::vector<double> sums(n_parts(n, entries_per_part));
  parallel_for(static_cast<std::int64_t>(sums.size()), [&](std::int64_t const p) {
    auto const [begin, end] = part(n, entries_per_part, p);
    sums[p] = std::inner_product(u.begin() + begin, u.begin() + end, v.begin() + begin, 0.0);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double ordered_sum(std::span<double const> u) {
  auto const n = static_cast<std::int64_t>(u.size());
  std::vector<double> sums(n_parts(n, entries_per_part));
  parallel_for(static_cast<std::int64_t>(sums.size()), [&](std::int64_t const p) {
    auto const [begin, end] = part(n, entries_per_part, p);
    sums[p] = std::accumulate(u.begin() + begin, u.begin() + end, 0.0);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

HostVector<double> basis_integrals(Space const& space, ReferenceElement const& element,
                                   std::function<double(unsigned)> const& density) {
  auto const shape = tabulate(element.nodes, element.volume_points);
  auto const geometry_tables = tabulate(geometry_nodes_1d(space, element), element.volume_points);
  HostVector<double> integrals;
  integrals.resize(space.n_dofs, 0.0);
  struct State {
    CellGeometry geometry;
    std::vector<std::int32_t> dofs;
  };
  for (auto const& parts : space.color_parts())
    parallel_for(
        static_cast<std::int64_t>(parts.size()),
        [&] {
          return State{CellGeometry(space), std::vector<std::int32_t>(space.n_local)};
        },
        [&](State& state, std::int64_t const i) {
          auto const [begin, end] = part(space.n_cells, space.cells_per_part, parts[i]);
          for (auto cell = begin; cell < end; ++cell) {
            double const factor = density ? density(space.material(cell)) : 1;
            if (factor == 0)
              continue;
            space.dofs(cell, state.dofs.data());
            state.geometry.reset(cell, state.dofs.data());
            for (int q = 0; q < shape.n_points; ++q) {
              auto const j = state.geometry.jacobian(geometry_tables.gradients.data() +
                                                     static_cast<std::ptrdiff_t>(3) * q * state.geometry.n_nodes());
              double const weight = factor * element.weights[q] * determinant(j);
              for (int a = 0; a < space.n_local; ++a)
                integrals[state.dofs[a]] += weight * shape.values[static_cast<std::ptrdiff_t>(q) * space.n_local + a];
            }
          }
        });
  return integrals;
}

}  // namespace poisson::assembly
