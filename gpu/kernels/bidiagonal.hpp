#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"

#include <cmath>
#include <cstdint>
#include <span>

namespace poisson {

// Singular values of bidiagonal matrices by bisection, and divide and conquer for values with vectors: Gu, Eisenstat, A
// divide-and-conquer algorithm for the bidiagonal SVD, SIAM J. Matrix Anal. Appl. 16 (1995). The driver is spectral/bidiagonal.cpp.

/// Two neighbouring blocks become one: B = [B1 0; alpha e_last^T, beta e_1^T; 0 B2], with n_left rows in B1, one between, n_right
/// in B2. B1 has one column more than rows; so has B2, and the merged block, if `extra` is 1. Left and right singular vectors are
/// blocks on the diagonals of matrices of order N: rows and columns `first`, first + 1, ... In the basis of the children's vectors
/// B is a diagonal and one dense row z, "coordinate 0" being the middle row (its diagonal entry is 0) and the null vectors of the
/// children.
struct BidiagonalMerge {
  std::int64_t first = 0;
  std::int32_t n_left = 0, n_right = 0, extra = 0;
  /// Coordinates that deflation left, those of the left child, of both (0 and mixtures) and of the right child. The columns of the
  /// children's vectors are packed in this order, deflated ones behind.
  std::int32_t k_left = 0, k_both = 0, k_right = 0;
  std::int32_t n_wanted = 0;  ///< roots of the secular equation whose vectors are wanted
  /// Rotations of columns for the merge; with `extra` the first is for right vectors alone.
  std::int32_t first_rotation = 0, end_rotation = 0;

  [[nodiscard]] POISSON_HOST_DEVICE std::int32_t n() const { return n_left + 1 + n_right; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int32_t k() const { return k_left + k_both + k_right; }
};

/// Columns a and b of a block become c a + s b and c b - s a.
struct ColumnRotation {
  std::int32_t a = 0, b = 0;
  double c = 1, s = 0;
};

/// All merges of one level of the tree. Arrays are in the backend's memory, and all but the first two have the entries of a merge
/// from its `first` on.
struct BidiagonalLevel {
  std::span<BidiagonalMerge const> on_host;
  BidiagonalMerge const* merges = nullptr;
  ColumnRotation const* rotations = nullptr;
  double const* d = nullptr;             ///< k poles, ascending, d[0] = 0
  double const* z = nullptr;             ///< k entries of the dense row
  std::int32_t const* select = nullptr;  ///< the coordinate of every packed column, k of them
  std::int32_t const* source = nullptr;  ///< the column of the block that every packed column comes from, n + extra of them
  std::int32_t const* wanted = nullptr;  ///< n_wanted roots; null: 0, 1, 2, ...
  /// Root i is origin[i] + offset[i], origin being one of the poles next to it, so that its differences from all poles are
  /// accurate.
  double* origin = nullptr;
  double* offset = nullptr;
  double* z_hat = nullptr;   ///< the dense row for which the roots found are exact
  std::int64_t order = 0;    ///< N, also the leading dimension of all matrices
  std::int32_t largest = 0;  ///< n + extra of the largest merge
};

/// Columns of the leaves' vectors: `rows` entries, which begin in row `first` of the matrix.
struct LeafColumn {
  std::int64_t first = 0;
  std::int32_t rows = 0;
};

/// Sums over the poles at one point sigma, with D_j = d_j^2 - sigma^2: psi = sum of z_j^2 / D_j over the poles left of the root and
/// phi over those right of it, and their derivatives with respect to sigma^2.
struct SecularSums {
  double psi = 0, psi_prime = 0, phi = 0, phi_prime = 0;
};

/// Finds one root of 1 + sum of z_j^2 / (d_j^2 - sigma^2) = 0 between neighbouring poles, or beyond the last one. Whoever owns it
/// evaluates the sums at origin + offset and calls begin (interior roots only) with the first ones and advance with all
/// others until it returns true. A step replaces psi and phi by one pole each that fits value and derivative (the "middle way" of
/// Li, LAPACK Working Note 89), inside a bracket that bisection shrinks where this is slow.
struct SecularRoot {
  double left = 0, right = 0;  ///< the two poles; for the last root both lie left of it
  double origin = 0, offset = 0;
  double low = 0, high = 0;  ///< bracket of the offset
  bool last = false;
  int steps = 0;

  /// Between two poles: the first evaluation is half way.
  POISSON_HOST_DEVICE static SecularRoot between(double left, double right) {
    SecularRoot root;
    root.left = left;
    root.right = right;
    root.origin = left;
    root.offset = (right - left) / 2;
    return root;
  }
  /// Beyond the last pole, with the sum of all z_j^2.
  POISSON_HOST_DEVICE static SecularRoot beyond(double before, double pole, double z_squared) {
    SecularRoot root;
    root.left = before;
    root.right = root.origin = pole;
    root.last = true;
    root.high = z_squared / (pole + std::sqrt(pole * pole + z_squared)) * (1 + 1e-15);
    root.offset = z_squared / 2 / (pole + std::sqrt(pole * pole + z_squared / 2));
    return root;
  }

  /// Chooses the nearer pole as origin, and a first offset, from the sums half way. z_left and z_right belong to the two poles.
  POISSON_HOST_DEVICE void begin(SecularSums const& sums, double z_left, double z_right) {
    double const half = (right - left) / 2, gap = (right - left) * (right + left), middle = left + half;
    double const left_squared = z_left * z_left, right_squared = z_right * z_right;
    double const f = 1 + sums.psi + sums.phi;
    // The other poles' share there, taken as constant.
    double const c = f + left_squared / (half * (left + middle)) - right_squared / (half * (right + middle));
    double tau;
    if (f >= 0) {
      double const a = c * gap + left_squared + right_squared, b = left_squared * gap,
                   root = std::sqrt(std::fabs(a * a - 4 * b * c));
      tau = a > 0 ? 2 * b / (a + root) : (a - root) / (2 * c);
      low = 0;
      high = half;
    } else {
      double const a = c * gap - left_squared - right_squared, b = right_squared * gap,
                   root = std::sqrt(std::fabs(a * a + 4 * b * c));
      tau = a < 0 ? 2 * b / (a - root) : -(a + root) / (2 * c);
      origin = right;
      low = -half;
      high = 0;
    }
    double const squared = origin * origin + tau;
    offset = squared > 0 ? tau / (origin + std::sqrt(squared)) : 0;
    if (!(offset > low && offset < high))
      offset = between_bounds();
  }

  /// Goes to the next offset, from the sums at origin + offset. Returns true when the offset is as good as the sums can tell.
  POISSON_HOST_DEVICE bool advance(SecularSums const& sums) {
    constexpr double epsilon = 0x1p-53;
    double const f = 1 + sums.psi + sums.phi, slope = sums.psi_prime + sums.phi_prime;
    double const tau = offset * (2 * origin + offset);
    if (std::fabs(f) <= epsilon * (4 * (1 + std::fabs(sums.psi) + std::fabs(sums.phi)) + std::fabs(tau) * slope))
      return true;
    (f < 0 ? low : high) = offset;
    double const d_left = ((left - origin) - offset) * ((left + origin) + offset),
                 d_right = ((right - origin) - offset) * ((right + origin) + offset);
    double const a = (d_left + d_right) * f - d_left * d_right * slope, b = d_left * d_right * f;
    double c = f - d_left * sums.psi_prime - d_right * sums.phi_prime, eta;
    double const root = std::sqrt(std::fabs(a * a - 4 * b * c));
    if (last) {
      c = std::fabs(c);
      eta = a >= 0 ? (a + root) / (2 * c) : 2 * b / (a - root);
    } else
      eta = a <= 0 ? (a - root) / (2 * c) : 2 * b / (a + root);
    if (!(f * eta < 0))
      eta = -f / slope;
    double const sigma = origin + offset, squared = sigma * sigma + eta;
    double next = squared > 0 ? offset + eta / (sigma + std::sqrt(squared)) : low;
    ++steps;
    if (!(next > low && next < high) || (steps > 8 && steps % 3 == 0))
      next = between_bounds();
    bool const stands = std::fabs(next - offset) <= epsilon * std::fabs(offset) || !(next > low && next < high);
    if (!stands)
      offset = next;
    return stands || steps >= 300;
  }

private:
  /// Half way in the exponent while the bounds differ much: offsets can be tiny.
  [[nodiscard]] POISSON_HOST_DEVICE double between_bounds() const {
    double const sign = low < 0 ? -1 : 1, near = low < 0 ? -high : low, far = low < 0 ? -low : high;
    if (near == 0)
      return sign * far * 0x1p-10;
    return sign * (far > 4 * near ? std::sqrt(near * far) : near + (far - near) / 2);
  }
};

/// One row of the Sturm count for singular values below x of the bidiagonal (d, e), in the differential form that changes d and e
/// by a few units in the last place only (Fernando, Parlett 1994): s starts at -x^2, and the count is that of the rows where this
/// returns true. d_squared is not 0; with squares below 2^968 nothing overflows, since p is 0 or at least 2^-53 |s|. Nor does what
/// counts vanish: s / p may be below all numbers where e^2 / p is not. `divide` may err in the last places.
template <class Divide>
[[nodiscard]] POISSON_HOST_DEVICE bool sturm_row(double d_squared, double e_squared, double x_squared, double& s,
                                                 Divide const& divide) {
  double const p = d_squared + s;
  bool const large = p > 1;
  double const quotient = divide(large ? e_squared : s, p);
  // p = 0 stands for a pivot that is negative and nearly 0.
  s = std::fma(large ? s : e_squared, p == 0 ? 0x1p54 : quotient, -x_squared);
  return p <= 0;
}

/// Kernels of the bidiagonal SVD. Matrices are column-major of order and leading dimension N unless said otherwise.
class BidiagonalKernels {
public:
  virtual ~BidiagonalKernels() = default;

  /// values[i] = the (i+1)-th largest singular value, i < count, by bisection between `low` and `high`; `low` where it is not above
  /// that. squares holds d_i^2, e_i^2 in turns, as sturm_row wants them.
  virtual void bisect(Context& context, std::int64_t n, double const* squares, double low, double high, std::int64_t count,
                      double* values) const = 0;

  /// x(first + i, j) = leaves[i + j * leading] for every column j.
  virtual void scatter_leaves(Context& context, std::int64_t n, LeafColumn const* columns, double const* leaves,
                              std::int64_t leading, double* x) const = 0;
  /// The last row of every left child's right vectors, and the first row of every right child's: z, one entry a column.
  virtual void coupling_rows(Context& context, BidiagonalLevel const& level, double const* v, double* z) const = 0;
  /// Applies the rotations to left, or right, vectors.
  virtual void rotate(Context& context, BidiagonalLevel const& level, bool right, double* x) const = 0;
  /// Copies the columns of every block in their packed order.
  virtual void pack(Context& context, BidiagonalLevel const& level, bool right, double const* x, double* packed) const = 0;
  /// All roots: origin, offset.
  virtual void solve_secular(Context& context, BidiagonalLevel const& level) const = 0;
  /// z_hat from the roots, so that vectors are orthogonal to working precision (Gu, Eisenstat).
  virtual void recompute_row(Context& context, BidiagonalLevel const& level) const = 0;
  /// The left, or right, singular vectors of the merged blocks in the children's basis: k x n_wanted, rows in packed order.
  virtual void vectors(Context& context, BidiagonalLevel const& level, bool right, double* s) const = 0;
  /// x = packed * s in every block, the structure of the packed columns used; deflated columns are copied back.
  virtual void multiply(Context& context, BidiagonalLevel const& level, bool right, double const* packed, double const* s,
                        double* x) const = 0;
  /// y(:, j) = x(:, columns[j]) for count columns of n rows; y has leading dimension n.
  virtual void gather_columns(Context& context, std::int64_t n, std::int64_t count, std::int32_t const* columns, double const* x,
                              double* y) const = 0;

  static BidiagonalKernels const& cpu();
  static BidiagonalKernels const& cuda();
};

}  // namespace poisson
