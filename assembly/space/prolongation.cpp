#include "assembly/space/prolongation.hpp"

#include "assembly/parallel.hpp"
#include "gpu/core/csr_entries.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace poisson::assembly {

CsrMatrix prolongation_of_order_one(Space const& space, ReferenceElement const& element) {
  // `weights` lists for every node of a cell the vertices that it follows from.
  struct Weight {
    std::size_t vertex;  ///< among the nodes of the cell
    double value;
  };
  auto const p = static_cast<std::size_t>(space.order), m = p + 1;
  std::vector<std::vector<Weight>> weights(static_cast<std::size_t>(space.n_local));
  for (std::size_t node = 0; node < weights.size(); ++node) {
    Point3 const at = element.node(static_cast<int>(node));
    std::array<std::size_t, 3> const index{node % m, node / m % m, node / (m * m)};
    for (std::size_t corner = 0; corner < 8; ++corner) {
      double value = 1;
      bool counts = true;
      std::size_t vertex = 0;
      for (std::size_t d = 3; d-- > 0;) {
        bool const upper = (corner >> d & 1) != 0;
        counts = counts && index[d] != (upper ? 0 : p);
        value *= upper ? at[d] : 1 - at[d];
        vertex = vertex * m + (upper ? p : 0);
      }
      if (counts)
        weights[node].push_back({vertex, value});
    }
  }
  // The cell in which an unknown comes first, and its place there.
  auto const n = static_cast<std::size_t>(space.n_dofs), n_local = weights.size();
  std::vector<std::int64_t> place(n, -1);
  std::vector<std::int32_t> dofs(n_local);
  for (std::int64_t cell = 0; cell < space.n_cells; ++cell) {
    space.dofs(cell, dofs.data());
    for (std::size_t i = 0; i < n_local; ++i)
      if (auto& of_dof = place[static_cast<std::size_t>(dofs[i])]; of_dof < 0)
        of_dof = cell * space.n_local + static_cast<std::int64_t>(i);
  }
  // What hangs depends on larger cells, so that this ends.
  struct Row {
    Space const& space;
    std::vector<std::vector<Weight>> const& weights;
    std::vector<std::int64_t> const& place;
    std::vector<std::pair<std::int32_t, double>> entries{};
    void add(std::int32_t dof, double factor) {
      std::int64_t const at = place[static_cast<std::size_t>(dof)];
      if (at < 0)
        return;
      std::vector<std::int32_t> dofs(weights.size());
      space.dofs(at / space.n_local, dofs.data());
      for (Weight const& weight : weights[static_cast<std::size_t>(at % space.n_local)]) {
        std::int32_t const vertex = dofs[weight.vertex];
        if (vertex == dof || space.hanging.size() == 0 || !space.hanging.constrained(vertex))
          entries.emplace_back(vertex, factor * weight.value);
        else
          for (Constraints::Entry const& entry : space.hanging.row(vertex))
            add(entry.unknown, factor * weight.value * entry.weight);
      }
    }
  };
  struct Rows {
    std::vector<std::int32_t> columns;
    std::vector<double> values;
  };
  constexpr std::int64_t rows_per_part = 4096;
  std::vector<Rows> parts(static_cast<std::size_t>(n_parts(space.n_dofs, rows_per_part)));
  CsrMatrix result;
  result.n_rows = space.n_dofs;
  result.n_columns = space.n_dofs;
  result.row_ptr.resize(n + 1);
  result.row_ptr[0] = 0;
  parallel_for(
      std::ssize(parts),
      [&] {
        return Row{space, weights, place};
      },
      [&](Row& row, std::int64_t const i) {
        Rows& of_part = parts[static_cast<std::size_t>(i)];
        auto const [begin, end] = part(space.n_dofs, rows_per_part, i);
        for (std::int64_t dof = begin; dof < end; ++dof) {
          row.entries.clear();
          row.add(static_cast<std::int32_t>(dof), 1);
          sort_and_add(row.entries);
          for (auto const& [column, value] : row.entries) {
            of_part.columns.push_back(column);
            of_part.values.push_back(value);
          }
          result.row_ptr[static_cast<std::size_t>(dof) + 1] = std::ssize(row.entries);
        }
      });
  std::partial_sum(result.row_ptr.begin(), result.row_ptr.end(), result.row_ptr.begin());
  for (Rows& of_part : parts) {
    result.columns.insert(result.columns.end(), of_part.columns.begin(), of_part.columns.end());
    result.values.insert(result.values.end(), of_part.values.begin(), of_part.values.end());
    of_part = {};
  }
  return result;
}

}  // namespace poisson::assembly
