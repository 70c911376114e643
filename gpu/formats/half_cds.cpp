#include "gpu/formats/half_cds.hpp"

#include "gpu/core/host_vector.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/vectors.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sstream>

namespace poisson {

namespace {

/// The offsets row - column of all entries on or below the diagonal, ascending, and 0 in any case.
std::vector<std::int32_t> lower_offsets(CsrMatrix const& csr) {
  std::vector<std::atomic<char>> seen(static_cast<std::size_t>(csr.n_rows));
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < csr.n_rows; ++row)
    for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1] && csr.columns[e] <= row; ++e) {
      auto& flag = seen[static_cast<std::size_t>(row - csr.columns[e])];
      if (flag.load(std::memory_order_relaxed) == 0)
        flag.store(1, std::memory_order_relaxed);
    }
  std::vector<std::int32_t> offsets{0};
  for (std::size_t o = 1; o < seen.size(); ++o)
    if (seen[o].load(std::memory_order_relaxed) != 0)
      offsets.push_back(static_cast<std::int32_t>(o));
  return offsets;
}

/// Fills `values` (n for each diagonal) and returns how many entries came from the matrix.
std::int64_t fill(CsrMatrix const& csr, std::vector<std::int32_t> const& offsets, double* values) {
  constexpr std::int64_t block_rows = 1024;
  std::int64_t const n = csr.n_rows;
  std::int64_t taken = 0;
#pragma omp parallel for schedule(static) reduction(+ : taken)
  for (std::int64_t block = 0; block < (n + block_rows - 1) / block_rows; ++block) {
    std::int64_t const begin = block * block_rows, end = std::min(n, begin + block_rows);
    for (std::size_t k = 0; k < offsets.size(); ++k)
      std::fill(values + static_cast<std::int64_t>(k) * n + begin, values + static_cast<std::int64_t>(k) * n + end, 0.0);
    for (std::int64_t row = begin; row < end; ++row) {
      // Columns ascend, so offsets descend: one walk over both lists.
      auto k = static_cast<std::int64_t>(offsets.size()) - 1;
      for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1] && csr.columns[e] <= row; ++e) {
        while (offsets[k] != row - csr.columns[e])
          --k;
        values[k * n + row] = csr.values[e];
        ++taken;
      }
    }
  }
  return taken;
}

}  // namespace

FormatEstimate HalfCds::estimate(MatrixShape const& shape, FormatOptions const&) {
  FormatEstimate result;
  result.format = Format::half_cds;
  if (shape.n_diagonals == 0 && shape.nnz > 0) {
    result.refusal = "half_cds needs a matrix of few diagonals, and this one has many; use csr";
    return result;
  }
  std::int64_t const stored_diagonals = shape.n_diagonals / 2 + 1;
  // As a floating-point number first: many diagonals of a huge matrix overflow 64 bits.
  std::int64_t const csr_bytes = CsrMatrix::csr_bytes(shape.n_rows, shape.nnz);
  bool const overflow = 8.0 * static_cast<double>(shape.n_rows) * static_cast<double>(stored_diagonals) > 9e18;
  result.bytes = overflow ? INT64_MAX / 2 : 8 * shape.n_rows * stored_diagonals + 4 * stored_diagonals;
  result.bytes_per_product = result.bytes + 16 * shape.n_rows;
  double const in_triangle = 0.5 * static_cast<double>(shape.nnz + shape.n_rows);
  if (shape.nnz > 0)
    result.padding_ratio = static_cast<double>(shape.n_rows) * static_cast<double>(stored_diagonals) / in_triangle;
  if (result.bytes > csr_bytes) {
    std::ostringstream text;
    text.precision(3);
    text << "half_cds would store " << stored_diagonals << " diagonals of " << shape.n_rows << " values, " << result.padding_ratio
         << " times the non-zeros of the lower triangle: " << format_bytes(result.bytes) << " where csr takes "
         << format_bytes(csr_bytes) << "; use csr";
    result.refusal = text.str();
  }
  return result;
}

std::unique_ptr<Matrix> HalfCds::make(std::shared_ptr<CsrMatrix const> csr, Context& context, FormatOptions const&) {
  return std::unique_ptr<Matrix>(new HalfCds(*csr, context));
}

HalfCds::HalfCds(CsrMatrix const& csr, Context& context) : context_(context), kernels_(kernels_for<HalfCdsKernels>(context)) {
  auto const start = std::chrono::steady_clock::now();
  std::int64_t const n = csr.n_rows;
  offsets_ = lower_offsets(csr);
  std::int64_t const size = n * static_cast<std::int64_t>(offsets_.size());
  std::int64_t taken = 0;
  auto converted = start;
  if (context.backend() == Backend::cpu) {
    values_ = Array<double>(context, size);
    taken = fill(csr, offsets_, values_.data());
    converted = std::chrono::steady_clock::now();
  } else {
    HostVector<double> staged(static_cast<std::size_t>(size));
    taken = fill(csr, offsets_, staged.data());
    converted = std::chrono::steady_clock::now();
    values_ = Array<double>(context, staged);
  }
  backend_offsets_ = Array<std::int32_t>(context, offsets_);
  context.synchronize();
  convert_seconds = std::chrono::duration<double>(converted - start).count();
  if (context.backend() != Backend::cpu)
    transfer_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - converted).count();
  padding_ratio_ = taken > 0 ? static_cast<double>(size) / static_cast<double>(taken) : 1;
  view_ = {n, offsets_, backend_offsets_.data(), values_.data()};
}

void HalfCds::product(double alpha, double const* x, double beta, double* y) const {
  kernels_.product(context_, view_, alpha, x, beta, y);
}

void HalfCds::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  kernels_.product_dot(context_, view_, x, y, dot, stop);
}

void HalfCds::diagonal(double* d) const {
  kernels_for<VectorKernels<double>>(context_).copy(context_, view_.n, view_.values, d);
}

}  // namespace poisson
