#pragma once

#include "gpu/kernels/box_elements.hpp"
#include "gpu/kernels/product.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>

namespace poisson {

/// The matrix of trilinear elements on a box of equal cells, each of which has a label, and each label its constant k (or kx, ky,
/// kz): a byte or two a cell, and a table.
///
/// Mass and stiffness matrices of an edge have the same eigenvectors (1, 1) and (-1, 1). So the matrix of a cell is
///   K(a, b) = sum_m t_m s_m(a) s_m(b),  s_m(a) = (-1)^(number of bits of m that a has not),  0 < m < 8,
/// where bits 0, 1, 2 of a corner a say whether it is the upper one in x, y, z. Products go by these seven modes. K(a, b) depends
/// on the bits in which a and b differ alone. The numbers t_m are rounded so that all entries are their exact sums: both tables
/// define the same matrix.
struct LabelStencilView {
  BoxElements
      box;  ///< nodes, and types of faces: Dirichlet ones, whose nodes count as 0 and have the row of their diagonal, or not
  std::uint8_t const* bytes = nullptr;   ///< labels of the cells, x fastest; null where they take two bytes
  std::uint16_t const* words = nullptr;  ///< or these
  std::int32_t n_labels = 0;             ///< every label is less; this one stands for what is beyond the box
  bool cubic = false;               ///< cells are cubes of one k each: t_1 = t_2 = t_4 = 3 t_7, t_3 = t_5 = t_6 = 2 t_7 exactly
  double const* modes = nullptr;    ///< t_m of a label at [7 label + m - 1]; n_labels + 1 of them, the last one 0
  double const* entries = nullptr;  ///< K(a, b) of a label at [8 label + (a ^ b)]; the same number
};

/// Bytes of a row in double: x once, y once, one label of a byte: 17. Nearly 40 multiplications and additions by modes; on a device
/// nearly 30 where cells are cubes of one k. Results do not depend on the number of threads.
class LabelStencilKernels : public ProductKernels<LabelStencilView>, public SmoothingKernels<LabelStencilView> {
public:
  /// The diagonals of half_stencil in the planes first <= z < end of nodes, laid out as HalfCdsView says of these rows alone; -0.0
  /// where nothing is stored, and where a coupling leaves these planes. Precondition: three nodes or more in x and y.
  virtual void fill_diagonals(Context& context, LabelStencilView const& a, std::int64_t first, std::int64_t end,
                              float* values) const = 0;
  virtual void fill_diagonals(Context& context, LabelStencilView const& a, std::int64_t first, std::int64_t end,
                              double* values) const = 0;
  /// d_i = a_ii.
  virtual void diagonal(Context& context, LabelStencilView const& a, float* d) const = 0;
  virtual void diagonal(Context& context, LabelStencilView const& a, double* d) const = 0;
  /// r = b - A (x + x_low), rounded at the end, entry by entry with accurate sums: shares neither loops nor numbers with the
  /// products. x_low may be null.
  virtual void residual(Context& context, LabelStencilView const& a, double const* x, double const* x_low, double const* b,
                        double* r) const = 0;

  static LabelStencilKernels const& cpu();
  static LabelStencilKernels const& cuda();
};

}  // namespace poisson
