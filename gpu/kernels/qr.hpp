#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"

#include <cstdint>

namespace poisson {

/// The partition of the m rows of a tall matrix for TSQR into chunks of `rows` rows. Where the last chunk would have fewer rows
/// than the matrix has columns, the last two share their rows evenly.
struct RowChunks {
  RowChunks(std::int64_t of_rows, std::int64_t n, std::int64_t rows_of_chunk)
      : m(of_rows), rows(rows_of_chunk), count((of_rows + rows_of_chunk - 1) / rows_of_chunk) {
    std::int64_t const rest = m - (count - 1) * rows;
    shift = count > 1 && rest < n ? (rows - rest) / 2 : 0;
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t begin(std::int64_t chunk) const {
    return chunk * rows - (chunk == count - 1 ? shift : 0);
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t end(std::int64_t chunk) const { return chunk == count - 1 ? m : begin(chunk + 1); }

  std::int64_t m, rows, count, shift = 0;
};

/// Kernels of orthonormal columns.
class QrKernels {
public:
  virtual ~QrKernels() = default;
  /// The number of rows of a chunk for n columns, at least 2 n; 0 when the backend has no kernel for n columns.
  [[nodiscard]] virtual std::int64_t rows_of_chunk(std::int64_t n) const = 0;
  /// The step of a communication-avoiding QR (Demmel, Grigori, Hoemmen, Langou 2012): every chunk of `a` (m x n, column-major,
  /// leading dimension m) becomes the n orthonormal columns Q of its QR decomposition by Householder reflectors; R of chunk c, with
  /// its zeros, goes to rows c n, c n + 1, ... of `r` (leading dimension chunks.count * n). Precondition: chunks have at least n
  /// rows, and squares of the entries do not overflow.
  virtual void factor_chunks(Context& context, RowChunks const& chunks, std::int64_t n, double* a, double* r) const = 0;

  /// a(i, i) += value for i < n.
  virtual void add_to_diagonal(Context& context, std::int64_t n, double value, double* a, std::int64_t lda) const = 0;

  static QrKernels const& cpu();
  static QrKernels const& cuda();
};

}  // namespace poisson
