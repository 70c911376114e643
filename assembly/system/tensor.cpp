#include "assembly/system/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace poisson::assembly {

double Tensor::smallest_eigenvalue() const {
  // The roots of the characteristic polynomial by their trigonometric form, of the tensor less its mean and scaled.
  double const mean = (xx() + yy() + zz()) / 3, off = xy() * xy() + xz() * xz() + yz() * yz();
  double const a = xx() - mean, b = yy() - mean, c = zz() - mean;
  double const size = std::sqrt((a * a + b * b + c * c + 2 * off) / 6);
  if (!(size > 0))
    return mean;
  double const determinant = a * (b * c - yz() * yz()) - xy() * (xy() * c - yz() * xz()) + xz() * (xy() * yz() - b * xz());
  double const angle = std::acos(std::clamp(determinant / (2 * size * size * size), -1., 1.)) / 3;
  return mean + 2 * size * std::cos(angle + 2 * std::numbers::pi / 3);
}

std::array<double, 9> rotation_matrix(Point3 const& axis, double angle) {
  double const length = std::hypot(axis[0], axis[1], axis[2]);
  double const x = axis[0] / length, y = axis[1] / length, z = axis[2] / length;
  double const radians = angle * std::numbers::pi / 180, s = std::sin(radians), c = std::cos(radians), t = 1 - c;
  return {t * x * x + c,     t * x * y - s * z, t * x * z + s * y, t * x * y + s * z, t * y * y + c,
          t * y * z - s * x, t * x * z - s * y, t * y * z + s * x, t * z * z + c};
}

Tensor rotated(Point3 const& values, std::array<double, 9> const& rotation) {
  auto const entry = [&](int i, int j) {
    double sum = 0;
    for (int e = 0; e < 3; ++e)
      sum += rotation[3 * i + e] * values[e] * rotation[3 * j + e];
    return sum;
  };
  return {{entry(0, 0), entry(1, 1), entry(2, 2), entry(0, 1), entry(0, 2), entry(1, 2)}};
}

}  // namespace poisson::assembly
