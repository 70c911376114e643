#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"

#include <cstdint>

namespace poisson {

/// A lattice of nx x ny x nz nodes in lexicographic order, x fastest, with a 27-point stencil: a node is coupled with itself and
/// with all neighbours, diagonal ones too.
struct Box {
  std::int64_t nx = 1, ny = 1, nz = 1;

  /// An entry of the Q1 stiffness matrix of the Laplacian on a uniform mesh of width 1, by the number of coordinates in which the
  /// two nodes differ. It is 0 for face neighbours.
  [[nodiscard]] static POISSON_HOST_DEVICE double weight(int differing) {
    return differing == 0 ? 8.0 / 3 : differing == 1 ? 0.0 : differing == 2 ? -1.0 / 6 : -1.0 / 12;
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_rows() const { return nx * ny * nz; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t nnz() const { return couplings(nx) * couplings(ny) * couplings(nz); }
  /// Entries in the rows before `row`, which may be n_rows.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t row_ptr(std::int64_t row) const {
    std::int64_t const x = row % nx, y = row / nx % ny, z = row / nx / ny;
    return before(z, nz) * couplings(ny) * couplings(nx) +
           neighbours(z, nz) * (before(y, ny) * couplings(nx) + neighbours(y, ny) * before(x, nx));
  }
  /// Number of indices coupled with index c of n on a line, itself included: 3 inside; 0 for c >= n.
  [[nodiscard]] static POISSON_HOST_DEVICE std::int64_t neighbours(std::int64_t c, std::int64_t n) {
    return c >= n ? 0 : 1 + (c > 0) + (c + 1 < n);
  }

private:
  [[nodiscard]] static POISSON_HOST_DEVICE std::int64_t couplings(std::int64_t n) { return 3 * n - 2; }
  [[nodiscard]] static POISSON_HOST_DEVICE std::int64_t before(std::int64_t c, std::int64_t n) {
    return c == 0 ? 0 : c >= n ? couplings(n) : 3 * c - 1;
  }
};

class BoxKernels {
public:
  virtual ~BoxKernels() = default;
  /// Writes the matrix in CSR: n_rows + 1 offsets, nnz columns and values, columns ascending.
  virtual void fill(Context& context, Box const& box, std::int64_t* row_ptr, std::int32_t* columns, double* values) const = 0;
  /// y = A x with the same matrix, matrix-free; terms of a row are added by ascending column.
  virtual void product(Context& context, Box const& box, double const* x, double* y) const = 0;

  static BoxKernels const& cpu();
  static BoxKernels const& cuda();
};

}  // namespace poisson
