#include "gpu/kernels/element_tables.hpp"

#include "gpu/kernels/quadrature.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <span>

namespace poisson {

namespace {

Quadrature1D in_tables(QuadratureRule const& rule) {
  Quadrature1D result{static_cast<int>(rule.point.size()), {}, {}};
  std::copy(rule.point.begin(), rule.point.end(), result.point.begin());
  std::copy(rule.weight.begin(), rule.weight.end(), result.weight.begin());
  return result;
}

}  // namespace

Quadrature1D gauss_quadrature(int n) {
  assert(n >= 1 && n <= max_points);
  return in_tables(gauss_rule(n));
}

Quadrature1D lobatto_quadrature(int n) {
  assert(n >= 2 && n <= max_points);
  return in_tables(lobatto_rule(n));
}

LagrangeTables lagrange_tables(Quadrature1D const& functions, Quadrature1D const& points) {
  LagrangeTables result;
  std::span<double const> const of_functions(functions.point.data(), static_cast<std::size_t>(functions.n));
  for (std::size_t q = 0; q < static_cast<std::size_t>(points.n); ++q)
    for (std::size_t a = 0; a < of_functions.size(); ++a) {
      LagrangeValue const at_point = lagrange(of_functions, a, points.point[q]);
      result.value[q][a] = at_point.value;
      result.derivative[q][a] = at_point.derivative;
    }
  return result;
}

ElementTables element_tables(std::int32_t order) {
  Quadrature1D const gauss = gauss_quadrature(order + 1);
  ElementTables result;
  result.order = order;
  result.value = lagrange_tables(lobatto_quadrature(order + 1), gauss).value;
  result.collocation = lagrange_tables(gauss, gauss).derivative;
  return result;
}

MapTables map_tables(std::int32_t element_order, std::int32_t map_order) {
  Quadrature1D const gauss = gauss_quadrature(element_order + 1);
  LagrangeTables const lagrange = lagrange_tables(lobatto_quadrature(map_order + 1), gauss);
  return {map_order, element_order + 1, gauss.weight, lagrange.value, lagrange.derivative};
}

}  // namespace poisson
