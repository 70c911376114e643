#pragma once

#include "assembly/space/reference_element.hpp"

#include <array>

namespace poisson::assembly {

/// A symmetric 3 x 3 tensor.
struct Tensor {
  std::array<double, 6> entries{};  ///< xx, yy, zz, xy, xz, yz

  [[nodiscard]] static Tensor diagonal(Point3 const& d) { return {{d[0], d[1], d[2], 0, 0, 0}}; }
  [[nodiscard]] double xx() const { return entries[0]; }
  [[nodiscard]] double yy() const { return entries[1]; }
  [[nodiscard]] double zz() const { return entries[2]; }
  [[nodiscard]] double xy() const { return entries[3]; }
  [[nodiscard]] double xz() const { return entries[4]; }
  [[nodiscard]] double yz() const { return entries[5]; }
  [[nodiscard]] Point3 operator*(Point3 const& v) const {
    return {xx() * v[0] + xy() * v[1] + xz() * v[2], xy() * v[0] + yy() * v[1] + yz() * v[2],
            xz() * v[0] + yz() * v[1] + zz() * v[2]};
  }
  /// Returns the smallest eigenvalue. Precondition: the entries are finite.
  [[nodiscard]] double smallest_eigenvalue() const;
};

/// The matrix of a rotation, row-major, about an axis of any length but 0, by an angle in degrees (Rodrigues).
[[nodiscard]] std::array<double, 9> rotation_matrix(Point3 const& axis, double angle);
/// The tensor with these values along the axes that the rotation makes of x, y and z.
[[nodiscard]] Tensor rotated(Point3 const& values, std::array<double, 9> const& rotation);

}  // namespace poisson::assembly
