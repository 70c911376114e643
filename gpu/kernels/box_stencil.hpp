#pragma once

#include "gpu/kernels/box_elements.hpp"
#include "gpu/kernels/product.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>

namespace poisson {

/// The matrix of trilinear elements with constant k on a box, as an operator that stores next to nothing. Rows of nodes that are on
/// no face are one stencil, which depends on |dx|, |dy|, |dz| only; Dirichlet nodes count as 0 in it. Rows of nodes on a face are
/// stored.
struct BoxStencilView {
  BoxElements box;
  double weights[8]{};                ///< [4 |dz| + 2 |dy| + |dx|]
  double const* face_rows = nullptr;  ///< of number t of the n_face_rows nodes on faces (box_rows::Shell of thickness 1): the entry
                                      ///< for (dx, dy, dz) at [(13 + 9 dz + 3 dy + dx) n_face_rows + t]; -0.0 where there is none
  std::int64_t n_face_rows = 0;
};

/// Bytes of an inner row: x once, y once. Results do not depend on the number of threads.
class BoxStencilKernels : public ProductKernels<BoxStencilView>, public SmoothingKernels<BoxStencilView> {
public:
  /// Fills rows, laid out as BoxStencilView::face_rows, for the constants of `k`.
  virtual void fill_face_rows(Context& context, BoxElements const& box, int components, BoxField const& k, double* rows) const = 0;
  /// The diagonals of half_stencil, laid out as HalfCdsView says; -0.0 where nothing is stored.
  virtual void fill_diagonals(Context& context, BoxStencilView const& a, float* values) const = 0;
  virtual void fill_diagonals(Context& context, BoxStencilView const& a, double* values) const = 0;
  /// d_i = a_ii.
  virtual void diagonal(Context& context, BoxStencilView const& a, float* d) const = 0;
  virtual void diagonal(Context& context, BoxStencilView const& a, double* d) const = 0;
  /// r = b - A (x + x_low), rounded at the end, entry by entry with accurate sums: shares no loop with the products. x_low may be
  /// null.
  virtual void residual(Context& context, BoxStencilView const& a, double const* x, double const* x_low, double const* b,
                        double* r) const = 0;

  static BoxStencilKernels const& cpu();
  static BoxStencilKernels const& cuda();
};

}  // namespace poisson
