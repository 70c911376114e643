#include "assembly/space/prolongation.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
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
  CsrMatrix result;
  result.n_rows = space.n_dofs;
  result.n_columns = space.n_dofs;
  result.row_ptr.push_back(0);
  std::vector<std::pair<std::int32_t, double>> row;
  for (std::size_t dof = 0; dof < n; ++dof) {
    row.clear();
    if (place[dof] >= 0) {
      space.dofs(place[dof] / space.n_local, dofs.data());
      for (Weight const& weight : weights[static_cast<std::size_t>(place[dof] % space.n_local)])
        row.emplace_back(dofs[weight.vertex], weight.value);
    }
    std::sort(row.begin(), row.end());
    for (auto const& [column, value] : row) {
      result.columns.push_back(column);
      result.values.push_back(value);
    }
    result.row_ptr.push_back(static_cast<std::int64_t>(result.columns.size()));
  }
  return result;
}

}  // namespace poisson::assembly
