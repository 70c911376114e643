#include "gpu/kernels/box.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

namespace poisson {

namespace {

/// Calls couple(column, weight) for the nodes around (x, y, z), by ascending column.
template <class Couple>
void for_neighbours(Box const& box, std::int64_t x, std::int64_t y, std::int64_t z, Couple const& couple) {
  for (std::int64_t z2 = std::max<std::int64_t>(z - 1, 0); z2 <= std::min(z + 1, box.nz - 1); ++z2)
    for (std::int64_t y2 = std::max<std::int64_t>(y - 1, 0); y2 <= std::min(y + 1, box.ny - 1); ++y2)
      for (std::int64_t x2 = std::max<std::int64_t>(x - 1, 0); x2 <= std::min(x + 1, box.nx - 1); ++x2)
        couple((z2 * box.ny + y2) * box.nx + x2, Box::weight((x != x2) + (y != y2) + (z != z2)));
}

class CpuBox final : public BoxKernels {
public:
  void fill(Context&, Box const& box, std::int64_t* row_ptr, std::int32_t* columns, double* values) const override {
    std::int64_t const n = box.n_rows();
    row_ptr[n] = box.nnz();
    cpu::for_blocks(n, 27 * n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::int64_t e = row_ptr[row] = box.row_ptr(row);
        for_neighbours(box, row % box.nx, row / box.nx % box.ny, row / box.nx / box.ny, [&](std::int64_t column, double weight) {
          columns[e] = static_cast<std::int32_t>(column);
          values[e++] = weight;
        });
      }
    });
  }

  void product(Context&, Box const& box, double const* x, double* y) const override {
    cpu::for_blocks(box.n_rows(), 27 * box.n_rows(), [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t row = begin; row < end; ++row) {
        double sum = 0;
        for_neighbours(box, row % box.nx, row / box.nx % box.ny, row / box.nx / box.ny,
                       [&](std::int64_t column, double weight) { sum += weight * x[column]; });
        y[row] = sum;
      }
    });
  }
};

}  // namespace

BoxKernels const& BoxKernels::cpu() {
  static CpuBox const kernels;
  return kernels;
}

}  // namespace poisson
