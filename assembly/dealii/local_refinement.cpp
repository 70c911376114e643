#include "assembly/dealii/mesh.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

using Triangulation = dealii::Triangulation<3>;

/// Makes the flags of cells that stay alike the same, and those that deal.II adds so that neighbours differ by one level at most.
/// It ends: cells to be refined only become more, and those to be merged fewer.
void make_alike(Triangulation& triangulation, std::vector<std::array<std::int32_t, 2>> const& pairs) {
  std::vector<Triangulation::active_cell_iterator> cells;
  for (auto const& cell : triangulation.active_cell_iterators())
    cells.push_back(cell);
  bool changed = true;
  while (changed) {
    triangulation.prepare_coarsening_and_refinement();
    changed = false;
    for (auto const& [first, second] : pairs) {
      auto const &a = cells[static_cast<std::size_t>(first)], &b = cells[static_cast<std::size_t>(second)];
      bool const refines = a->refine_flag_set() || b->refine_flag_set(), merges = a->coarsen_flag_set() && b->coarsen_flag_set();
      for (auto const& cell : {a, b}) {
        if (cell->coarsen_flag_set() && !merges) {
          cell->clear_coarsen_flag();
          changed = true;
        }
        if (refines && !cell->refine_flag_set()) {
          cell->set_refine_flag();
          changed = true;
        }
      }
    }
  }
}

/// Sets the flags of a cycle. Cells up to `lowest` levels stay as they are: the mesh that the first cycle begins with.
void set_flags(Triangulation& triangulation, LocalRefinement::Cycle const& cycle, int lowest) {
  auto refine = cycle.refine.begin(), coarsen = cycle.coarsen.begin();
  std::int32_t number = 0;
  for (auto const& cell : triangulation.active_cell_iterators()) {
    refine = std::lower_bound(refine, cycle.refine.end(), number);
    coarsen = std::lower_bound(coarsen, cycle.coarsen.end(), number);
    if (refine != cycle.refine.end() && *refine == number)
      cell->set_refine_flag();
    else if (coarsen != cycle.coarsen.end() && *coarsen == number && cell->level() > lowest)
      cell->set_coarsen_flag();
    ++number;
  }
  if (!cycle.alike.empty())
    make_alike(triangulation, cycle.alike);
  else if (!cycle.coarsen.empty())  // which cells are merged must be known before; deal.II itself does it once more
    triangulation.prepare_coarsening_and_refinement();
}

/// Refines and coarsens as the flags say, and tells what the active cells were before.
CellOrigins execute(Triangulation& triangulation) {
  // Numbers by level and index: those of active cells, and those of children by their parent. deal.II keeps the places of cells
  // that stay, and those of parents.
  using Place = std::pair<int, int>;
  std::map<Place, std::array<std::int32_t, 8>> children;
  std::vector<std::vector<std::int32_t>> numbers(triangulation.n_levels());
  for (unsigned level = 0; level < triangulation.n_levels(); ++level)
    numbers[level].assign(triangulation.n_raw_cells(level), -1);
  std::int32_t number = 0;
  for (auto const& cell : triangulation.active_cell_iterators()) {
    numbers[static_cast<std::size_t>(cell->level())][static_cast<std::size_t>(cell->index())] = number;
    if (cell->coarsen_flag_set()) {
      auto const parent = cell->parent();
      auto& list = children[{parent->level(), parent->index()}];
      for (unsigned child = 0; child < 8; ++child)
        if (parent->child(child) == cell)
          list[child] = number;
    }
    ++number;
  }
  triangulation.execute_coarsening_and_refinement();
  CellOrigins origins;
  origins.of_cell.reserve(triangulation.n_active_cells());
  auto const number_at = [&](int level, int index) {
    auto const l = static_cast<std::size_t>(level), i = static_cast<std::size_t>(index);
    return l < numbers.size() && i < numbers[l].size() ? numbers[l][i] : -1;
  };
  for (auto const& cell : triangulation.active_cell_iterators()) {
    if (auto const found = children.find({cell->level(), cell->index()}); found != children.end()) {
      origins.of_cell.push_back({static_cast<std::int32_t>(origins.merged.size()), CellOrigins::merged_children});
      origins.merged.push_back(found->second);
      continue;
    }
    // A child of a cell that was active is new, whatever was at its place before.
    if (cell->level() > 0) {
      auto const parent = cell->parent();
      if (std::int32_t const old = number_at(parent->level(), parent->index()); old >= 0) {
        unsigned child = 0;
        while (parent->child(child) != cell)
          ++child;
        origins.of_cell.push_back({old, static_cast<std::int8_t>(child)});
        continue;
      }
    }
    origins.of_cell.push_back({number_at(cell->level(), cell->index()), CellOrigins::same});
  }
  return origins;
}

}  // namespace

void refine_locally(Mesh& mesh, LocalRefinement const& refinement) {
  Triangulation& triangulation = *mesh.triangulation;
  if (!mesh.is_refined_locally) {
    mesh.box.reset();
    mesh.is_refined_locally = true;
    mesh.lowest_level = static_cast<int>(triangulation.n_levels()) - 1;
  }
  for (; mesh.local_cycles < refinement.cycles.size(); ++mesh.local_cycles) {
    LocalRefinement::Cycle const& cycle = refinement.cycles[mesh.local_cycles];
    if (interrupt_requested())
      throw Interrupted();
    check_memory((static_cast<std::int64_t>(triangulation.n_active_cells()) + 8 * std::ssize(cycle.refine)) *
                     bytes_per_refined_cell,
                 "the refined mesh");
    set_flags(triangulation, cycle, mesh.lowest_level);
    mesh.origins = execute(triangulation);
  }
}

}  // namespace poisson::assembly
