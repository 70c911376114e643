#include "gpu/spectral/tucker.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/blas.hpp"

#include <algorithm>
#include <cmath>

namespace poisson {

namespace {

/// Calls visit(place, row, column) for every entry of a tensor, the first index fastest, with its place in the tensor and in
/// unfolding d, whose row i holds all entries whose index d is i.
template <class Visit>
void for_unfolding(std::array<std::int64_t, 3> const& n, std::size_t d, Visit const& visit) {
  std::array<std::int64_t, 3> index{};
  std::size_t const a = d == 0 ? 1 : 0, b = d == 2 ? 1 : 2;
  std::size_t place = 0;
  for (index[2] = 0; index[2] < n[2]; ++index[2])
    for (index[1] = 0; index[1] < n[1]; ++index[1])
      for (index[0] = 0; index[0] < n[0]; ++index[0])
        visit(place++, index[d], index[a] + n[a] * index[b]);
}

DenseMatrix unfolding(std::span<double const> tensor, std::array<std::int64_t, 3> const& n, std::size_t d) {
  DenseMatrix matrix(n[d], n[0] * n[1] * n[2] / n[d]);
  for_unfolding(n, d, [&](std::size_t place, std::int64_t row, std::int64_t column) { matrix(row, column) = tensor[place]; });
  return matrix;
}

/// The inverse of unfolding.
HostVector<double> folded(DenseMatrix const& matrix, std::array<std::int64_t, 3> const& n, std::size_t d) {
  HostVector<double> tensor(matrix.values.size());
  for_unfolding(n, d, [&](std::size_t place, std::int64_t row, std::int64_t column) { tensor[place] = matrix(row, column); });
  return tensor;
}

/// P A with P the projection onto the first `rank` columns of u.
DenseMatrix projected(DenseMatrix const& u, std::int64_t rank, DenseMatrix const& a, Context& host) {
  DenseMatrix coefficients(rank, a.n_columns), result(a.n_rows, a.n_columns);
  if (rank == 0) {
    std::fill(result.values.begin(), result.values.end(), 0.0);
    return result;
  }
  gemm(host, true, false, rank, a.n_columns, a.n_rows, 1, u.values.data(), u.n_rows, a.values.data(), a.n_rows, 0,
       coefficients.values.data(), rank);
  gemm(host, false, false, a.n_rows, a.n_columns, rank, 1, u.values.data(), u.n_rows, coefficients.values.data(), rank, 0,
       result.values.data(), a.n_rows);
  return result;
}

double norm(std::span<double const> values) {
  double sum = 0;
  for (double const value : values)
    sum += value * value;
  return std::sqrt(sum);
}

/// Counts the numbers that are stored: two sets of vectors for a matrix, three sets and the core for a tensor.
std::int64_t numbers_stored(std::vector<std::int64_t> const& ranks, std::array<std::int64_t, 3> const& shape) {
  if (ranks.size() == 1)
    return ranks[0] * (shape[0] + shape[1]);
  return ranks[0] * ranks[1] * ranks[2] + shape[0] * ranks[0] + shape[1] * ranks[1] + shape[2] * ranks[2];
}

void add(SvdSeconds const& seconds, SvdSeconds& sum) {
  sum.reduce += seconds.reduce;
  sum.chase += seconds.chase;
  sum.bidiagonal += seconds.bidiagonal;
  sum.back += seconds.back;
  sum.total += seconds.total;
}

void keep_worst(SvdAccuracy const& accuracy, SvdAccuracy& worst) {
  worst.orthogonality_u = std::max(worst.orthogonality_u, accuracy.orthogonality_u);
  worst.orthogonality_v = std::max(worst.orthogonality_v, accuracy.orthogonality_v);
  worst.residual = std::max(worst.residual, accuracy.residual);
  worst.residual_relative = std::max(worst.residual_relative, accuracy.residual_relative);
}

}  // namespace

TuckerApproximation truncated_tucker(std::span<double const> tensor, std::array<std::int64_t, 3> const& shape, double error,
                                     Context& context) {
  auto const host = make_context(Backend::cpu);
  std::size_t const n_unfoldings = shape[2] == 1 ? 1 : 3;
  double const error_each = error / std::sqrt(static_cast<double>(n_unfoldings));
  TuckerApproximation result;
  result.approximation.assign(tensor.begin(), tensor.end());
  for (std::size_t d = 0; d < n_unfoldings; ++d) {
    if (interrupt_requested())
      throw Interrupted();
    DenseMatrix const matrix = unfolding(tensor, shape, d);
    Svd const decomposed = svd(matrix, {}, context);
    keep_worst(svd_accuracy(*host, matrix, decomposed), result.accuracy);
    add(decomposed.seconds, result.seconds);
    result.band_width = decomposed.band_width;
    Spectrum const spectrum = spectrum_of(decomposed.values, matrix.n_rows, matrix.n_columns);
    if (d == 0 || spectrum.condition > result.spectrum.condition)
      result.spectrum = spectrum;
    result.errors.push_back(errors_by_rank(decomposed.values));
    result.ranks.push_back(smallest_rank(result.errors.back(), error_each));
    result.values.push_back(decomposed.values);
    result.approximation =
        folded(projected(decomposed.u, result.ranks.back(), unfolding(result.approximation, shape, d), *host), shape, d);
  }
  result.error.resize(tensor.size());
  for (std::size_t i = 0; i < tensor.size(); ++i)
    result.error[i] = tensor[i] - result.approximation[i];
  double const size = norm(tensor);
  result.relative_error = size > 0 ? norm(result.error) / size : 0;
  result.numbers_stored = numbers_stored(result.ranks, shape);
  return result;
}

}  // namespace poisson
