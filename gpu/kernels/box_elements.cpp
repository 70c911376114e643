#include "gpu/kernels/box_elements.hpp"

#include <cmath>

namespace poisson {

template <int components>
BoxTables<components> box_tables(std::array<double, 3> const& cell) {
  // Values and derivatives of the two linear functions at the two Gauss points of [0, 1].
  double const near = 0.5 + 0.5 / std::sqrt(3.), far = 0.5 - 0.5 / std::sqrt(3.);
  double const weight = cell[0] * cell[1] * cell[2] / 8;
  auto const value = [&](int b, int q) { return b == q ? near : far; };
  auto const bit = [](int n, int d) { return n >> d & 1; };
  auto const derivative = [&](int d, int b, int q) {
    double product = bit(b, d) == 1 ? 1 / cell[static_cast<std::size_t>(d)] : -1 / cell[static_cast<std::size_t>(d)];
    for (int e = 0; e < 3; ++e)
      if (e != d)
        product *= value(bit(b, e), bit(q, e));
    return product;
  };
  BoxTables<components> tables{};
  for (int q = 0; q < 8; ++q)
    for (int a = 0; a < 8; ++a) {
      tables.load[q][a] = weight * value(bit(a, 0), bit(q, 0)) * value(bit(a, 1), bit(q, 1)) * value(bit(a, 2), bit(q, 2));
      for (int b = 0; b < 8; ++b)
        for (int d = 0; d < 3; ++d)
          tables.stiffness[components == 1 ? 0 : d][q][a][b] += weight * (derivative(d, a, q) * derivative(d, b, q));
      for (int c = 3; c < components; ++c)
        for (int b = 0; b <= a; ++b) {  // the same bits on both sides of the diagonal, however products and sums are contracted
          int const d = tensor_row(c), e = tensor_column(c);
          tables.stiffness[c][q][a][b] = tables.stiffness[c][q][b][a] =
              weight * (derivative(d, a, q) * derivative(e, b, q) + derivative(e, a, q) * derivative(d, b, q));
        }
    }
  return tables;
}

template BoxTables<1> box_tables<1>(std::array<double, 3> const& cell);
template BoxTables<3> box_tables<3>(std::array<double, 3> const& cell);
template BoxTables<tensor_entries> box_tables<tensor_entries>(std::array<double, 3> const& cell);

}  // namespace poisson
