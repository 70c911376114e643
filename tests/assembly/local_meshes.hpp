#pragma once

#include "assembly/discretization.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// Problems on meshes that are refined locally.
namespace poisson::assembly::test {

inline BoundaryCondition on_all_boundaries(BoundaryType type, std::string value) {
  BoundaryCondition condition;
  condition.all_ids = true;
  condition.type = type;
  condition.value = std::move(value);
  return condition;
}

/// u = 0 on the boundary.
inline ProblemSpec problem_with_levels(MeshSpec mesh, int order) {
  ProblemSpec spec;
  spec.mesh = std::move(mesh);
  spec.order = order;
  spec.boundary = {on_all_boundaries(BoundaryType::dirichlet, "0")};
  if (spec.mesh.local == nullptr)
    spec.mesh.local = std::make_shared<LocalRefinement>();
  return spec;
}

/// The same with one cycle more.
inline void add_cycle(ProblemSpec& spec, LocalRefinement::Cycle cycle) {
  auto next = std::make_shared<LocalRefinement>(*spec.mesh.local);
  next->cycles.push_back(std::move(cycle));
  spec.mesh.local = std::move(next);
}

/// So many cycles that refine a fifth of the cells, and coarsen a third, by chance.
inline ProblemSpec by_chance(MeshSpec mesh, int order, int cycles, unsigned seed = 1) {
  ProblemSpec spec = problem_with_levels(std::move(mesh), order);
  std::mt19937 numbers(seed);
  for (int i = 0; i < cycles; ++i) {
    LocalRefinement::Cycle cycle;
    Discretization const before(spec);
    cycle.alike = before.cells_alike();
    auto const n = static_cast<std::int32_t>(before.local_cells().active.size());
    for (std::int32_t cell = 0; cell < n; ++cell) {
      if (numbers() % 5 == 0)
        cycle.refine.push_back(cell);
      else if (numbers() % 3 == 0)
        cycle.coarsen.push_back(cell);
    }
    add_cycle(spec, cycle);
  }
  return spec;
}

inline MeshSpec flat_box(std::array<std::int64_t, 3> cells) {
  MeshSpec mesh;
  mesh.cells = cells;
  return mesh;
}

inline MeshSpec generated(std::string generator, std::string arguments = "") {
  MeshSpec mesh;
  mesh.generator = std::move(generator);
  mesh.arguments = std::move(arguments);
  return mesh;
}

}  // namespace poisson::assembly::test
