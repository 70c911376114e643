#include "gpu/elements/lattice_solution.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/field_data.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/elements/element_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/quadrature.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace poisson {

namespace {

/// A quadrature with tables in host memory.
struct HostQuadrature {
  LatticeQuadrature view;
  std::vector<double> tables;

  HostQuadrature(int points, std::int32_t order, std::int32_t map_order) {
    view.n = points;
    view.order = order;
    view.map_order = map_order;
    QuadratureRule const gauss = gauss_rule(points);
    tables = gauss.weight;
    auto const add = [&](std::vector<double> const& functions, bool derivatives) {
      for (double const x : gauss.point)
        for (std::size_t a = 0; a < functions.size(); ++a) {
          LagrangeValue const of = lagrange(functions, a, x);
          tables.push_back(derivatives ? of.derivative : of.value);
        }
    };
    std::vector<double> const of_element = lobatto_rule(order + 1).point, of_map = lobatto_rule(map_order + 1).point;
    add(gauss.point, true);
    add(of_element, false);
    add(of_map, false);
    add(of_map, true);
    assert(std::ssize(tables) == view.size());
    view.tables = tables.data();
  }
};

/// Cells whose integrals one call computes: between two calls an interrupt is seen.
std::int64_t cells_at_once(Backend backend) {
  return std::int64_t{1} << (backend == Backend::cuda ? 24 : 16);
}

}  // namespace

LatticeSolution::LatticeSolution(Context& context, LatticeGeometry const& mesh, Array<double> coordinates)
    : context_(context),
      kernels_(kernels_for<LatticeSolutionKernels>(context)),
      lattices_(context, mesh.layout),
      coordinates_(std::move(coordinates)),
      coefficients_(mesh.coefficients) {
  elements_.lattices = lattices_.view();
  elements_.isoparametric = mesh.isoparametric;
  numbers_ = Array<std::int32_t>(context, std::span<std::int32_t const>(mesh.numbers));
  in_layout_ = Array<double>(context, numbers_.size());
  std::int64_t const n = mesh.layout.n_unknowns;
  if (mesh.layout.is_box()) {
    for (std::size_t d = 0; d < 3; ++d) {
      lines_[d] = Array<double>(context, mesh.lines[d]);
      elements_.lines[d] = lines_[d].data();
    }
  } else if (coordinates_.size() > 0) {
    assert(coordinates_.size() == 3 * elements_.n_values() &&
           std::ssize(mesh.layout.tables->copies) == std::ssize(mesh.layout.tables->rim_unknowns));
    elements_.coordinates = coordinates_.data();
  } else {
    points_ = Array<double>(context, 3 * n);
    HostVector<double> on_host(static_cast<std::size_t>(context.backend() == Backend::cpu ? 0 : 3 * n));
    double* const out = on_host.empty() ? points_.data() : on_host.data();
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i) {
      auto const x = mesh.point(mesh.numbers.empty() ? i : mesh.numbers[static_cast<std::size_t>(i)]);
      std::copy(x.begin(), x.end(), out + 3 * i);
    }
    if (!on_host.empty())
      points_.upload(std::span<double const>(on_host));
    elements_.node_points = points_.data();
  }
  if (coefficients_.size() <= 1)
    return;
  bool const by_cell = is_by_cell(mesh.layout, mesh.material);
  if (by_cell)
    labels_ = Array<std::int32_t>(context, std::span<std::int32_t const>(mesh.material));
  std::size_t const of_lattice = by_cell ? mesh.material.size() / static_cast<std::size_t>(mesh.layout.n_lattices) : 1;
  std::vector<std::vector<std::int32_t>> lattices_of(coefficients_.size());
  for (std::size_t cell = 0; cell < mesh.material.size(); ++cell) {
    std::vector<std::int32_t>& numbers = lattices_of[static_cast<std::size_t>(mesh.material[cell])];
    if (auto const lattice = static_cast<std::int32_t>(cell / of_lattice); numbers.empty() || numbers.back() != lattice)
      numbers.push_back(lattice);
  }
  for (std::vector<std::int32_t> const& numbers : lattices_of)
    lattices_of_.emplace_back(context, std::span<std::int32_t const>(numbers));
}

LatticeSolution::Function LatticeSolution::on_backend(ExpressionCode const& code) const {
  Function result;
  if (is_constant(code)) {
    result.function.constant = code.front().value;
    return result;
  }
  result.code = Array<Instruction>(context_, std::span<Instruction const>(code));
  result.function.code = {result.code.data(), static_cast<std::int32_t>(code.size())};
  result.function.depth = stack_depth(code);
  return result;
}

LatticeSums LatticeSolution::integrate(LatticeList const& lattices, LatticeIntegrand const& integrand, int points) const {
  HostQuadrature const host(points, elements_.lattices.order, elements_.map_order());
  Array<double> const tables(context_, std::span<double const>(host.tables));
  LatticeQuadrature quadrature = host.view;
  quadrature.tables = tables.data();
  std::int64_t const n = elements_.lattices.cells, cells = lattices.count * n * n * n;
  LatticeSums result;
  for (std::int64_t first = 0; first < cells; first += cells_at_once(context_.backend())) {
    if (interrupt_requested())
      throw Interrupted();
    result.add(kernels_.sums(context_, elements_, lattices, quadrature, integrand, first,
                             std::min(cells, first + cells_at_once(context_.backend()))));
    if (result.inverted >= 0)
      refuse(lattices, result.inverted, points, DataError::Quantity::determinant);
    if (result.not_finite >= 0)
      refuse(lattices, result.not_finite, points, DataError::Quantity::exact);
  }
  return result;
}

void LatticeSolution::refuse(LatticeList const& lattices, std::int64_t number, int points, DataError::Quantity quantity) const {
  std::int64_t const of_cell = std::int64_t{points} * points * points, n = elements_.lattices.cells;
  std::int64_t const in_list = number / of_cell / (n * n * n);
  auto lattice = static_cast<std::int32_t>(in_list);
  if (lattices.numbers != nullptr)
    context_.download(&lattice, lattices.numbers + in_list, 4);
  std::vector<double> const nodes = kernels_.nodes_of_cell(context_, elements_, lattices, number / of_cell);
  HostQuadrature const quadrature(points, elements_.lattices.order, elements_.map_order());
  int const g = quadrature.view.map_order + 1, side = quadrature.view.order + 1,
            step = quadrature.view.order / quadrature.view.map_order;
  auto const q = static_cast<int>(number % of_cell);
  std::array<int, 3> const at{q % points, q / points % points, q / (points * points)};
  double const *const value = quadrature.tables.data() + quadrature.view.map_value(), *const slope =
                                                                                          quadrature.tables.data() +
                                                                                          quadrature.view.map_derivative();
  std::array<double, 3> place{};
  double jacobian[9]{}, ignored[9];
  for (int d = 0; d < 3; ++d) {
    auto const coordinate = [&](int i, int j, int k) {
      return nodes[static_cast<std::size_t>(3 * ((k * side + j) * side + i) + d)];
    };
    double const origin = coordinate(0, 0, 0);
    for (int a = 0; a < g * g * g; ++a) {
      std::array<int, 3> const node{a % g, a / g % g, a / (g * g)};
      double const x = coordinate(step * node[0], step * node[1], step * node[2]) - origin;
      auto const product = [&](std::size_t along) {  // 3: of no derivative
        double result = x;
        for (std::size_t e = 0; e < 3; ++e)
          result *= (e == along ? slope : value)[at[e] * g + node[e]];
        return result;
      };
      place[static_cast<std::size_t>(d)] += product(3);
      for (std::size_t e = 0; e < 3; ++e)
        jacobian[3 * static_cast<std::size_t>(d) + e] += product(e);
    }
    place[static_cast<std::size_t>(d)] += origin;
  }
  auto const cell = static_cast<int>(lattice * n * n * n + number / of_cell % (n * n * n));
  throw DataError(quantity, cell, place, cofactors_of(jacobian, ignored));
}

double const* LatticeSolution::in_layout(double const* u) const {
  if (numbers_.size() == 0)
    return u;
  kernels_for<RimKernels<double>>(context_).pack(context_, numbers_.size(), numbers_.data(), u, in_layout_.data());
  return in_layout_.data();
}

std::vector<ElementSolution::OfMaterial> LatticeSolution::of_materials(double const* u) const {
  u = in_layout(u);
  std::vector<OfMaterial> result;
  for (std::size_t material = 0; material < coefficients_.size(); ++material) {
    LatticeList lattices = all();
    if (!lattices_of_.empty())
      lattices = {lattices_of_[material].data(), lattices_of_[material].size(), labels_.data(),
                  static_cast<std::int32_t>(material)};
    LatticeIntegrand integrand;
    integrand.u = u;
    integrand.components = static_cast<std::int32_t>(coefficients_[material].size());
    std::vector<Function> k;
    for (std::size_t c = 0; c < coefficients_[material].size(); ++c) {
      k.push_back(on_backend(coefficients_[material][c]));
      integrand.k[c] = k.back().function;
    }
    LatticeSums const sums = integrate(lattices, integrand, elements_.points_of_direction());
    result.push_back({sums.low + 0.0, sums.high + 0.0, sums.volume, sums.values, sums.gradients});  // extremes are not -0
  }
  return result;
}

ExtremeNodes LatticeSolution::first_places(double const* u, double low, double high) const {
  ExtremeNodes nodes = kernels_.first_places(context_, elements_, in_layout(u), low, high);
  for (std::int64_t* const node : {&nodes.low, &nodes.high})
    if (std::int32_t number = 0; *node >= 0 && numbers_.size() > 0) {
      context_.download(&number, numbers_.data() + *node, 4);
      *node = number;
    }
  return nodes;
}

std::optional<std::array<double, 3>> LatticeSolution::point_of(std::int64_t unknown) const {
  if (numbers_.size() > 0)
    return {};
  return kernels_.place(context_, elements_, unknown);
}

ElementSolution::Errors LatticeSolution::errors(double const* u, ExpressionCode const& exact, double shift, int points) const {
  u = in_layout(u);
  Function const function = on_backend(exact);
  LatticeIntegrand integrand{u, function.function, shift};
  integrand.k[0].constant = 1;
  LatticeSums const sums = integrate(all(), integrand, points);
  NodeErrors const at_nodes = kernels_.errors_at_nodes(context_, elements_, function.function, shift, u);
  if (at_nodes.not_finite >= 0)
    throw DataError(DataError::Quantity::exact, -1, kernels_.place(context_, elements_, at_nodes.not_finite));
  return {sums.squares, sums.gradients, std::max(sums.largest, at_nodes.largest)};
}

ElementSolution::Mean LatticeSolution::mean_of_exact(ExpressionCode const& exact, int points) const {
  Function const function = on_backend(exact);
  LatticeIntegrand integrand{nullptr, function.function, 0};
  integrand.k[0].constant = 1;
  LatticeSums const sums = integrate(all(), integrand, points);
  return {-sums.values, sums.volume};
}

}  // namespace poisson
