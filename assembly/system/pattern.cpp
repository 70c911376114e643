#include "assembly/system/pattern.hpp"

#include "assembly/parallel.hpp"
#include "gpu/core/memory.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace poisson::assembly {

namespace {

constexpr std::int64_t rows_per_part = 4096;

/// Turns lengths of rows into offsets, and makes room for the columns.
void allocate_columns(CsrMatrix& m) {
  std::partial_sum(m.row_ptr.begin(), m.row_ptr.end(), m.row_ptr.begin());
  m.columns.resize(m.row_ptr.back());
}

}  // namespace

BoxCouplings::BoxCouplings(Space const& space, ProblemData const& data) {
  int const p = space.order;
  for (int d = 0; d < 3; ++d) {
    auto const n = space.box_nodes[d];
    auto const is_dirichlet = [&](unsigned id) {
      return space.box->is_boundary(static_cast<int>(id)) && data.boundary_at(id).type == BoundaryType::dirichlet;
    };
    std::int64_t const first = is_dirichlet(static_cast<unsigned>(2 * d)) ? 1 : 0;
    std::int64_t const last = is_dirichlet(static_cast<unsigned>(2 * d + 1)) ? n - 2 : n - 1;
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t const below = i % p == 0 ? i - p : i / p * p, above = i % p == 0 ? i + p : (i / p + 1) * p;
      lo[d].push_back(static_cast<std::int32_t>(std::max(below, first)));
      hi[d].push_back(static_cast<std::int32_t>(std::min(above, last)));
    }
  }
}

CsrMatrix box_pattern(Space const& space, BoxCouplings const& couplings, Constraints const& constraints) {
  auto const& constrained = constraints.mask();
  CsrMatrix m;
  m.n_rows = m.n_columns = space.n_dofs;
  m.row_ptr.resize(space.n_dofs + 1);
  m.row_ptr[0] = 0;
  auto const [nx, ny, nz] = space.box_nodes;
  parallel_for(nz, [&, nx = nx, ny = ny](std::int64_t const z) {
    auto row = z * nx * ny;
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t x = 0; x < nx; ++x, ++row)
        m.row_ptr[row + 1] = constrained[row] ? 1 : couplings.width(0, x) * couplings.width(1, y) * couplings.width(2, z);
  });
  allocate_columns(m);
  m.values.resize(m.columns.size());
  auto const& [lo, hi] = couplings;
  parallel_for(nz, [&, nx = nx, ny = ny](std::int64_t const z) {
    auto row = z * nx * ny;
    std::int32_t* out = m.columns.data() + m.row_ptr[row];
    double* values = m.values.data() + m.row_ptr[row];
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t x = 0; x < nx; ++x, ++row) {
        if (constrained[row]) {
          *out++ = static_cast<std::int32_t>(row);
          continue;
        }
        for (std::int64_t k = lo[2][z]; k <= hi[2][z]; ++k)
          for (std::int64_t j = lo[1][y]; j <= hi[1][y]; ++j) {
            auto const line = (k * ny + j) * nx;
            for (std::int64_t i = lo[0][x]; i <= hi[0][x]; ++i)
              *out++ = static_cast<std::int32_t>(line + i);
          }
      }
    std::fill(values, m.values.data() + m.row_ptr[row], 0.0);
  });
  return m;
}

CsrMatrix general_pattern(Space const& space, Constraints const& constraints) {
  auto const& constrained = constraints.mask();
  CsrMatrix m;
  auto const n = space.n_dofs;
  m.n_rows = m.n_columns = n;
  m.row_ptr.resize(n + 1);
  m.row_ptr[0] = 0;
  auto const parts = n_parts(n, rows_per_part);
  // Every part of the rows collects its columns once. The buffers are gone before the values are allocated.
  std::vector<std::vector<std::int32_t>> collected(parts);
  {
    auto const around = space.cells_around_dofs(constraints);
    struct Row {
      std::vector<std::int32_t> dofs, columns;
      std::span<std::int32_t const> cells;  // that `columns` belongs to
    };
    parallel_for(
        parts,
        [&] {
          return Row{std::vector<std::int32_t>(space.n_local), {}, {}};
        },
        [&](Row& row, std::int64_t const p) {
          auto const [begin, end] = part(n, rows_per_part, p);
          for (auto i = begin; i < end; ++i) {
            if (i == begin + 64)  // the first rows tell how long the others will be, near enough
              collected[p].reserve(collected[p].size() * static_cast<std::size_t>(end - begin) / 56);
            if (constrained[i]) {
              m.row_ptr[i + 1] = 1;
              collected[p].push_back(static_cast<std::int32_t>(i));
              continue;
            }
            std::span const cells(around.cells.data() + around.offsets[i], around.cells.data() + around.offsets[i + 1]);
            // Unknowns inside the same cell, face or edge have the same couplings.
            if (!std::equal(cells.begin(), cells.end(), row.cells.begin(), row.cells.end())) {
              row.cells = cells;
              row.columns.clear();
              for (auto const cell : cells) {
                space.dofs(cell, row.dofs.data());
                for (auto const dof : row.dofs)
                  if (!constrained[dof])
                    row.columns.push_back(dof);
                  else
                    for (auto const& entry : constraints.row(dof))
                      row.columns.push_back(entry.unknown);
              }
              std::sort(row.columns.begin(), row.columns.end());
              row.columns.erase(std::unique(row.columns.begin(), row.columns.end()), row.columns.end());
            }
            m.row_ptr[i + 1] = static_cast<std::int64_t>(row.columns.size());
            collected[p].insert(collected[p].end(), row.columns.begin(), row.columns.end());
          }
        });
  }
  allocate_columns(m);
  parallel_for(parts, [&](std::int64_t const p) {
    std::copy(collected[p].begin(), collected[p].end(), m.columns.data() + m.row_ptr[part(n, rows_per_part, p).begin]);
    std::vector<std::int32_t>().swap(collected[p]);
  });
  return_freed_memory();  // that of the buffers
  m.values.resize(m.columns.size());
  parallel_for(parts, [&](std::int64_t const p) {
    auto const [begin, end] = part(n, rows_per_part, p);
    std::fill(m.values.data() + m.row_ptr[begin], m.values.data() + m.row_ptr[end], 0.0);
  });
  return m;
}

}  // namespace poisson::assembly
