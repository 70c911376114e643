#include "gpu/formats/cds.hpp"

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

/// The offsets column - row of all entries, ascending.
std::vector<std::int32_t> offsets_of(CsrMatrix const& csr) {
  std::vector<std::atomic<char>> seen(static_cast<std::size_t>(csr.n_rows + csr.n_columns));
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < csr.n_rows; ++row)
    for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1]; ++e) {
      auto& flag = seen[static_cast<std::size_t>(csr.columns[e] - row + csr.n_rows)];
      if (flag.load(std::memory_order_relaxed) == 0)  // looking first keeps the cache lines shared
        flag.store(1, std::memory_order_relaxed);
    }
  std::vector<std::int32_t> offsets;
  for (std::size_t o = 0; o < seen.size(); ++o)
    if (seen[o].load(std::memory_order_relaxed) != 0)
      offsets.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(o) - csr.n_rows));
  return offsets;
}

/// Fills `values`, n_rows for each diagonal, block by block so that every thread touches its pages first.
void fill(CsrMatrix const& csr, std::vector<std::int32_t> const& offsets, double* values) {
  constexpr std::int64_t block_rows = 1024;
  std::int64_t const n = csr.n_rows;
#pragma omp parallel for schedule(static)
  for (std::int64_t block = 0; block < (n + block_rows - 1) / block_rows; ++block) {
    std::int64_t const begin = block * block_rows, end = std::min(n, begin + block_rows);
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      double* const diagonal = values + static_cast<std::int64_t>(k) * n;
      std::fill(diagonal + begin, diagonal + end, 0.0);
    }
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t k = 0;  // columns and offsets ascend: one walk over both lists
      for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1]; ++e) {
        while (offsets[k] != csr.columns[e] - row)
          ++k;
        values[k * n + row] = csr.values[e];
      }
    }
  }
}

}  // namespace

FormatEstimate Cds::estimate(MatrixShape const& shape, FormatOptions const&) {
  FormatEstimate result;
  result.format = Format::cds;
  if (shape.n_diagonals == 0 && shape.nnz > 0) {
    result.refusal = "cds needs a matrix of few diagonals, and this one has many; use csr";
    return result;
  }
  std::int64_t const csr_bytes = CsrMatrix::csr_bytes(shape.n_rows, shape.nnz);
  // As a floating-point number first: many diagonals of a huge matrix overflow 64 bits.
  double const stored = static_cast<double>(shape.n_rows) * static_cast<double>(shape.n_diagonals);
  result.bytes = 8 * stored > 9e18 ? INT64_MAX / 2 : 8 * shape.n_rows * shape.n_diagonals + 4 * shape.n_diagonals;
  result.bytes_per_product = result.bytes + 16 * shape.n_rows;
  if (shape.nnz > 0)
    result.padding_ratio = stored / static_cast<double>(shape.nnz);
  if (result.bytes > csr_bytes) {
    std::ostringstream text;
    text.precision(3);
    text << "cds would store " << shape.n_diagonals << " diagonals of " << shape.n_rows << " values, " << result.padding_ratio
         << " times the non-zeros: " << format_bytes(result.bytes) << " where csr takes " << format_bytes(csr_bytes) << "; use csr";
    result.refusal = text.str();
  }
  return result;
}

std::unique_ptr<Matrix> Cds::make(std::shared_ptr<CsrMatrix const> csr, Context& context, FormatOptions const&) {
  return std::unique_ptr<Matrix>(new Cds(*csr, context));
}

Cds::Cds(CsrMatrix const& csr, Context& context) : context_(context), kernels_(kernels_for<CdsKernels>(context)) {
  auto const start = std::chrono::steady_clock::now();
  offsets_ = offsets_of(csr);
  std::int64_t const size = csr.n_rows * static_cast<std::int64_t>(offsets_.size());
  auto converted = start;
  if (context.backend() == Backend::cpu) {
    values_ = Array<double>(context, size);
    fill(csr, offsets_, values_.data());
    converted = std::chrono::steady_clock::now();
  } else {
    HostVector<double> staged(static_cast<std::size_t>(size));
    fill(csr, offsets_, staged.data());
    converted = std::chrono::steady_clock::now();
    values_ = Array<double>(context, staged);
  }
  backend_offsets_ = Array<std::int32_t>(context, offsets_);
  context.synchronize();
  convert_seconds = std::chrono::duration<double>(converted - start).count();
  if (context.backend() != Backend::cpu)
    transfer_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - converted).count();
  if (csr.nnz() > 0)
    padding_ratio_ = static_cast<double>(size) / static_cast<double>(csr.nnz());
  view_ = {csr.n_rows, csr.n_columns, offsets_, backend_offsets_.data(), values_.data()};
}

void Cds::product(double alpha, double const* x, double beta, double* y) const {
  kernels_.product(context_, view_, alpha, x, beta, y);
}

void Cds::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  kernels_.product_dot(context_, view_, x, y, dot, stop);
}

void Cds::diagonal(double* d) const {
  // Rows beyond the last column have no entry of the main diagonal, and hold zeros in it.
  auto const main = std::lower_bound(offsets_.begin(), offsets_.end(), 0);
  if (main != offsets_.end() && *main == 0)
    kernels_for<VectorKernels<double>>(context_).copy(context_, view_.n_rows,
                                                      view_.values + (main - offsets_.begin()) * view_.n_rows, d);
  else if (view_.n_rows > 0)
    context_.set_zero(d, 8 * view_.n_rows);
}

}  // namespace poisson
