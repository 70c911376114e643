#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace poisson {

/// A vector with a smaller squared norm is treated as zero: underflow may have cost digits of the sum, and with them the reflector
/// its orthogonality. Matrices are scaled to entries near 1, beside which this is negligible.
inline constexpr double reflector_underflow = 1e-280;

/// Where the entries of a band matrix of order n with `width` diagonals above the main one are while it is made bidiagonal:
/// entry (r, c) at entries[r + c * leading], for r - c from 1 - 2 width (bulges above) to width - 1 (bulges below).
struct BandView {
  std::int64_t n = 0;
  int width = 1;
  double* entries = nullptr;

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t leading() const { return 3 * std::int64_t{width} - 1; }
  [[nodiscard]] static std::int64_t size(std::int64_t n, int width) { return 3 * n * width; }
  [[nodiscard]] static BandView in(double* array, std::int64_t n, int width) { return {n, width, array + 2 * width - 1}; }
};

/// How the chase from band to bidiagonal is cut. Sweep s zeroes row s right of its second entry and chases the bulge down in steps:
/// step t has a right and a left reflector on the `width` indices from s + 1 + t width on, the last of them on fewer. `width`
/// neighbouring sweeps are a group; the reflectors of a group in one step make one block I - Y T Y^T with Y of 2 width rows, from
/// row (group + step) width on, and `width` columns: a parallelogram, `width` entries from row k + 1 of column k on. A product of
/// all of them, applied from the left, takes groups from last to first and in a group the steps from first to last; blocks of one
/// wave, step + (groups - 1 - group), are independent of each other: the rows of neighbours in a wave are 2 width apart. Y of a
/// block is stored column-major, zeros included, at slot `slot` of an array of slots.
struct ChasePlan {
  ChasePlan(std::int64_t order, int band_width);

  std::int64_t n;
  int width;
  std::int64_t sweeps;  ///< 0 when there is nothing to chase
  std::int64_t groups;
  std::int64_t steps;  ///< of sweep 0
  std::int64_t waves;
  std::vector<std::int64_t> slot_of_wave;  ///< plus the group makes the slot
  std::int64_t slots;
  /// How apply_chase goes about it: blocks of a wave that a device takes at once, at most, and whether the zeros of parallelograms
  /// are left out. To measure what that gains.
  std::int64_t blocks_of_launch = std::numeric_limits<std::int64_t>::max();
  bool skip_zeros = true;

  /// Waves whose T are made at once on a device, from `begin` on: up to the returned one, with about `blocks_at_once` blocks.
  static constexpr std::int64_t blocks_at_once = 512;
  [[nodiscard]] std::int64_t end_of_waves(std::int64_t begin) const;
  /// Bytes that apply_chase allocates on a device for an X of so many columns.
  [[nodiscard]] std::int64_t apply_bytes(std::int64_t n_columns) const;

  [[nodiscard]] std::int64_t slot(std::int64_t group, std::int64_t step) const {
    return slot_of_wave[static_cast<std::size_t>(step + groups - 1 - group)] + group;
  }
  [[nodiscard]] std::int64_t blocks_of(std::int64_t wave) const { return last_group(wave) - first_group(wave) + 1; }
  [[nodiscard]] std::int64_t slot_size() const { return 2 * std::int64_t{width} * width; }
  [[nodiscard]] std::int64_t first_group(std::int64_t wave) const { return wave < groups ? groups - 1 - wave : 0; }
  [[nodiscard]] std::int64_t last_group(std::int64_t wave) const {
    std::int64_t const of_steps = (steps + groups - 2 - wave) / 2;
    return of_steps < groups ? of_steps : groups - 1;
  }
};

/// The kernels of the two-stage SVD besides products of dense matrices. Matrices are column-major in the backend's memory; calls
/// enqueue work.
class SvdKernels {
public:
  virtual ~SvdKernels() = default;

  /// Widest panel, and thus band, that the backend has kernels for.
  [[nodiscard]] virtual int max_width() const = 0;

  /// QR of an m x w panel, q = min(m, w) reflectors: Q = I - Y T Y^T. Leaves Y in the first q columns of `a`, unit lower
  /// trapezoidal with its ones and zeros; T, upper triangular with its zeros, in the q x q corner of `t`; and R(i, k), i <= k, in
  /// r[i * row_stride + k * column_stride]. Columns of `a` from q on are lost. Preconditions: w <= max_width(), and squares of the
  /// entries do not overflow.
  virtual void panel_qr(Context& context, std::int64_t m, int w, double* a, std::int64_t lda, double* t, std::int64_t ldt,
                        double* r, std::int64_t row_stride, std::int64_t column_stride) const = 0;

  /// B = A, or B = A^T; A is m x n.
  virtual void copy(Context& context, std::int64_t m, std::int64_t n, double const* a, std::int64_t lda, double* b,
                    std::int64_t ldb) const = 0;
  virtual void transpose(Context& context, std::int64_t m, std::int64_t n, double const* a, std::int64_t lda, double* b,
                         std::int64_t ldb) const = 0;

  /// Band to upper bidiagonal, in place. `left` and `right`, zero on entry and slot_size() * slots long, get the reflectors; both
  /// null: they are not kept.
  virtual void chase(Context& context, ChasePlan const& plan, BandView const& band, double* left, double* right) const = 0;
  /// d (n) and e (n - 1): the main diagonal and the one above it.
  virtual void diagonals(Context& context, BandView const& band, double* d, double* e) const = 0;

  /// X = Q X with Q the product of the reflectors of `plan` in `y`; X has plan.n rows.
  virtual void apply_chase(Context& context, ChasePlan const& plan, double const* y, std::int64_t n_columns, double* x,
                           std::int64_t ldx) const = 0;

  static SvdKernels const& cpu();
  static SvdKernels const& cuda();
};

}  // namespace poisson
