#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstddef>
#include <cstdint>

namespace poisson {

/// A dense matrix in host memory, column-major: entry (i, j) is values[i + j * n_rows].
struct DenseMatrix {
  std::int64_t n_rows = 0;
  std::int64_t n_columns = 0;
  HostVector<double> values;

  DenseMatrix() = default;
  /// Uninitialised.
  DenseMatrix(std::int64_t rows, std::int64_t columns)
      : n_rows(rows), n_columns(columns), values(static_cast<std::size_t>(rows * columns)) {}
  [[nodiscard]] double& operator()(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i + j * n_rows)]; }
  [[nodiscard]] double operator()(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i + j * n_rows)]; }
  [[nodiscard]] double* column(std::int64_t j) { return values.data() + j * n_rows; }
  [[nodiscard]] double const* column(std::int64_t j) const { return values.data() + j * n_rows; }
};

struct SvdOptions {
  bool vectors = true;
  std::int64_t leading = 0;  ///< how many of the largest values (and their vectors) to compute; 0: all
  int band_width = 0;        ///< of the band between the two stages of the bidiagonalisation; 0: default_band_width
  bool overlap = true;       ///< false: the device is idle during work of the host and transfers (to measure what overlap gains)
};

/// Wall-clock seconds of the steps. Transfers to and from a device, scaling and the QR of tall or wide matrices count in `total`
/// only.
struct SvdSeconds {
  double reduce = 0;      ///< general to band
  double chase = 0;       ///< band to bidiagonal
  double bidiagonal = 0;  ///< singular values (and vectors) of the bidiagonal
  double back = 0;        ///< both back-transformations, and the step that restores orthogonality
  double total = 0;
};

struct Svd {
  HostVector<double> values;  ///< k of them, descending, none negative
  DenseMatrix u;              ///< n_rows x k; 0 x 0 without vectors
  DenseMatrix v;              ///< n_columns x k; 0 x 0 without vectors
  SvdSeconds seconds;
  int band_width = 0;  ///< the width used
};

/// The singular value decomposition A = U diag(values) V^T of a dense matrix on the context's backend, with
/// k = min(n_rows, n_columns), or the k = options.leading largest triplets if that is less. Bischof's two-stage method as in
/// Hirota, Hashimoto, Yamamoto 2012. Throws InputError when the matrix is empty, has a NaN or an infinity (row and column are
/// named, from 1) or an option is negative; OutOfMemoryError when the device has less memory than svd_bytes; Interrupted.
[[nodiscard]] Svd svd(DenseMatrix const& a, SvdOptions const& options, Context& context);

/// The band width that svd uses for matrices of order n, by measurements: the chase (band to bidiagonal) is faster with narrow
/// bands, the back-transformations are faster with wide ones.
[[nodiscard]] int default_band_width(std::int64_t n, bool vectors, Backend backend);

/// An upper bound on the bytes that `svd` allocates on the context's device.
[[nodiscard]] std::int64_t svd_bytes(Context const& context, std::int64_t n_rows, std::int64_t n_columns,
                                     SvdOptions const& options);

}  // namespace poisson
