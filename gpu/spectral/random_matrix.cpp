#include "gpu/spectral/random_matrix.hpp"

namespace poisson {

DenseMatrix random_matrix(std::int64_t n_rows, std::int64_t n_columns, std::int64_t seed) {
  DenseMatrix matrix(n_rows, n_columns);
  auto const n = static_cast<std::int64_t>(matrix.values.size());
  auto const start = static_cast<std::uint64_t>(seed) * 0xd1342543de82ef95u;
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint64_t z = start + static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15u;  // splitmix64 (Steele, Lea, Flood 2014)
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    matrix.values[static_cast<std::size_t>(i)] = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
  }
  return matrix;
}

}  // namespace poisson
