#pragma once

#include "assembly/system/linear_system.hpp"
#include "assembly/system/pattern.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace poisson::assembly {

/// Adds element matrices A and vectors f to the system as C^T A C and C^T (f - A g). The row of a constrained unknown gets the
/// diagonal entry of A, which keeps its natural size.
struct Scatter {
  explicit Scatter(LinearSystem& linear_system) : system(linear_system), constraints(linear_system.constraints) {}

  LinearSystem& system;
  Constraints const& constraints;

  [[nodiscard]] double& entry(std::int32_t row, std::int32_t column) const {
    std::int32_t const* first = system.matrix.columns.data() + system.matrix.row_ptr[row];
    auto length = system.matrix.row_ptr[row + 1] - system.matrix.row_ptr[row];
    while (length > 1) {  // without a branch to mispredict
      auto const half = length / 2;
      first = first[half] <= column ? first + half : first;
      length -= half;
    }
    return system.matrix.values[first - system.matrix.columns.data()];
  }

  [[nodiscard]] bool any_constrained(int n, std::int32_t const* dofs) const {
    return std::any_of(dofs, dofs + n, [&](auto dof) { return constraints.constrained(dof); });
  }

  /// Entry of f - A g of one element row: f less the contributions of the inhomogeneities g of the element's unknowns.
  [[nodiscard]] double load(int n, std::int32_t const* dofs, double const* k_row, double f, bool any) const {
    if (any)
      for (int b = 0; b < n; ++b)
        if (constraints.constrained(dofs[b]))
          f -= k_row[b] * constraints.value(dofs[b]);
    return f;
  }

  /// Adds `weight` times the row of an element to the row of a free unknown.
  void add_row(int n, std::int32_t const* dofs, double const* k_row, double f, std::int32_t row, double weight, bool any) const {
    system.rhs[row] += weight * load(n, dofs, k_row, f, any);
    for (int b = 0; b < n; ++b)
      if (!any || !constraints.constrained(dofs[b]))
        entry(row, dofs[b]) += weight * k_row[b];
      else
        for (auto const& [free, factor] : constraints.row(dofs[b]))
          entry(row, free) += weight * k_row[b] * factor;
  }

  /// Adds one element: `k` is n x n, row-major; `f` has n values; `dofs` are its n unknowns.
  void add(int n, std::int32_t const* dofs, double const* k, double const* f) const {
    bool const any = any_constrained(n, dofs);
    for (int a = 0; a < n; ++a) {
      auto const row = dofs[a];
      double const* const k_row = k + static_cast<std::ptrdiff_t>(a) * n;
      if (!any || !constraints.constrained(row)) {
        add_row(n, dofs, k_row, f[a], row, 1, any);
        continue;
      }
      system.matrix.values[system.matrix.row_ptr[row]] += k_row[a];
      for (auto const& [free, weight] : constraints.row(row))
        add_row(n, dofs, k_row, f[a], free, weight, any);
    }
  }

  /// Adds one element of a box with Dirichlet conditions only. Places in the matrix follow from the indices, without a search.
  void add_box_cell(Space const& space, BoxCouplings const& couplings, std::int64_t cell, std::int32_t const* dofs, double const* k,
                    double const* f) const {
    int const p = space.order, m = p + 1, n = m * m * m;
    bool const any = any_constrained(n, dofs);
    auto const index = space.box_cell(cell);
    std::array<std::int32_t, 3> first{};
    for (int d = 0; d < 3; ++d)
      first[d] = static_cast<std::int32_t>(index[d] * p);
    int a = 0;
    for (int az = 0; az < m; ++az)
      for (int ay = 0; ay < m; ++ay)
        for (int ax = 0; ax < m; ++ax, ++a) {
          auto const row = dofs[a];
          double const* const k_row = k + static_cast<std::ptrdiff_t>(a) * n;
          double* const values = system.matrix.values.data() + system.matrix.row_ptr[row];
          if (any && constraints.constrained(row)) {
            *values += k_row[a];
            continue;
          }
          system.rhs[row] += load(n, dofs, k_row, f[a], any);
          std::array<std::int32_t, 3> const node{first[0] + ax, first[1] + ay, first[2] + az};
          std::array<std::int32_t, 3> lo, begin, end;
          for (int d = 0; d < 3; ++d) {
            lo[d] = couplings.lo[d][node[d]];
            begin[d] = std::max(first[d], lo[d]);
            end[d] = std::min(first[d] + p, couplings.hi[d][node[d]]);
          }
          std::int64_t const wx = couplings.width(0, node[0]), wy = couplings.width(1, node[1]);
          for (auto z = begin[2]; z <= end[2]; ++z)
            for (auto y = begin[1]; y <= end[1]; ++y) {
              double* const out = values + ((z - lo[2]) * wy + (y - lo[1])) * wx - lo[0];
              double const* const in = k_row + ((z - first[2]) * m + (y - first[1])) * m - first[0];
              for (auto x = begin[0]; x <= end[0]; ++x)
                out[x] += in[x];
            }
        }
  }
};

}  // namespace poisson::assembly
