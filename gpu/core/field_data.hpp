#pragma once

#include <array>
#include <stdexcept>

namespace poisson {

/// FieldSums holds the sum of many values and that of their absolute values, or the integrals of both.
struct FieldSums {
  double sum = 0, absolute = 0;
};

/// A value of a problem's data or of its exact solution that is not finite, a coefficient that is not positive, a negative alpha,
/// or a map from the reference cell whose determinant is not positive.
class DataError : public std::runtime_error {
public:
  enum class Quantity { coefficient, source, value, alpha, determinant, exact };
  DataError(Quantity of, int part_of, std::array<double, 3> const& place, double found = 0)
      : std::runtime_error("a value of the problem's data is not admissible"),
        quantity(of),
        part(part_of),
        at(place),
        value(found) {}
  Quantity quantity;
  int part;                  ///< of `value` and `alpha` the face of a box; on lattices the cell, lattice by lattice and x fastest
  std::array<double, 3> at;  ///< where
  double value;              ///< of the determinant
};

}  // namespace poisson
