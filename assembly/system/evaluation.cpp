#include "assembly/system/evaluation.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/boundary_flux.hpp"
#include "assembly/system/box_boundary.hpp"
#include "assembly/system/box_evaluation.hpp"
#include "assembly/system/integrals.hpp"
#include "assembly/system/made_fields.hpp"
#include "assembly/system/near_boundary.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

namespace poisson::assembly {

namespace {

/// Evaluations of `exact` that an error norm may cost before only the fewest points of the quadrature rule are used.
constexpr std::int64_t evaluation_budget = 4'000'000;
constexpr int most_points = 14;

double dot(Point3 const& a, Point3 const& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// out = derivative along `direction` of a lexicographic n^3 array; d is n x n.
void differentiate(int direction, int n, double const* d, double const* in, double* out) {
  int const stride = direction == 0 ? 1 : direction == 1 ? n : n * n;
  for (int i = 0; i < n * n * n; ++i) {
    int const at = i / stride % n;
    double const* const line = in + (i - at * stride);
    double sum = 0;
    for (int m = 0; m < n; ++m)
      sum += d[at * n + m] * line[m * stride];
    out[i] = sum;
  }
}

/// Points, weights and maps of one cell after the other at a tensor product of Gauss points.
class CellQuadrature {
public:
  CellQuadrature(Space const& space, ReferenceElement const& element, int points)
      : space_(space), geometry_(space), m(points), n_points(points * points * points) {
    std::vector<double> weights_1d;
    gauss_rule(points, gauss, weights_1d);
    for (double const z : weights_1d)
      for (double const y : weights_1d)
        for (double const x : weights_1d)
          reference_weights_.push_back(x * y * z);
    map_ = lagrange_basis(geometry_nodes_1d(space, element), gauss);
    dofs.resize(space.n_local);
    for (auto& x : x_)
      x.resize(n_points);
    for (auto& j : jacobian_)
      j.resize(n_points);
    weights.resize(n_points);
    cofactors_.resize(n_points);
    determinants_.resize(n_points);
  }

  void reset(std::int64_t cell) {
    space_.dofs(cell, dofs.data());
    geometry_.reset(cell, dofs.data());
    if (space_.box) {
      set_box_cell(space_.box_cell_size(space_.box_cell(cell)));
      for (int i = 0; i < 3; ++i) {
        int const stride = i == 0 ? 1 : i == 1 ? m : m * m;
        for (int q = 0; q < n_points; ++q)
          x_[i][q] = geometry_.nodes(i)[0] + box_cell_[i] * gauss[q / stride % m];
      }
      return;
    }
    int const n = map_.n_functions;
    double const* const v = map_.values.data();
    double const* const d = map_.derivatives.data();
    for (int i = 0; i < 3; ++i) {
      double const* const nodes = geometry_.nodes(i);
      apply_tensor(m, n, v, v, v, nodes, x_[i].data(), work);
      apply_tensor(m, n, d, v, v, nodes, jacobian_[3 * i].data(), work);
      apply_tensor(m, n, v, d, v, nodes, jacobian_[3 * i + 1].data(), work);
      apply_tensor(m, n, v, v, d, nodes, jacobian_[3 * i + 2].data(), work);
    }
    for (int q = 0; q < n_points; ++q) {
      std::array<double, 9> j;
      for (std::size_t e = 0; e < 9; ++e)
        j[e] = jacobian_[e][q];
      cofactors_[q] = cofactors(j);
      determinants_[q] = j[0] * cofactors_[q][0] + j[1] * cofactors_[q][1] + j[2] * cofactors_[q][2];
      if (!(determinants_[q] > 0))
        throw_inverted_cell(point(q), determinants_[q]);
      weights[q] = reference_weights_[q] * determinants_[q];
    }
  }

  [[nodiscard]] Point3 point(int q) const { return {x_[0][q], x_[1][q], x_[2][q]}; }
  /// The real gradient whose reference gradient is given.
  [[nodiscard]] Point3 real_gradient(int q, double a, double b, double c) const {
    auto const& m3 = cofactors_[q];
    Point3 gradient{};
    for (int i = 0; i < 3; ++i)
      gradient[i] = (m3[3 * i] * a + m3[3 * i + 1] * b + m3[3 * i + 2] * c) / determinants_[q];
    return gradient;
  }

private:
  void set_box_cell(Point3 const& h) {
    if (h == box_cell_)  // equal cells differ by a shift only
      return;
    box_cell_ = h;
    auto const [hx, hy, hz] = h;
    for (int q = 0; q < n_points; ++q) {
      cofactors_[q] = {hy * hz, 0, 0, 0, hx * hz, 0, 0, 0, hx * hy};
      determinants_[q] = hx * hy * hz;
      weights[q] = reference_weights_[q] * determinants_[q];
    }
  }

  Space const& space_;
  CellGeometry geometry_;
  std::vector<double> reference_weights_;
  Basis1D map_;
  std::array<std::vector<double>, 3> x_;
  std::array<std::vector<double>, 9> jacobian_;
  std::vector<std::array<double, 9>> cofactors_;
  std::vector<double> determinants_;
  Point3 box_cell_{};

public:
  int m, n_points;
  std::vector<double> gauss, weights, work;
  std::vector<std::int32_t> dofs;
};

/// Values of a finite element function and its gradient at the points of a CellQuadrature, for one cell after the other.
class CellFunction {
public:
  /// `basis`: the element's functions at the points of `quadrature` in one direction.
  CellFunction(Space const& space, CellQuadrature quadrature_of_cells, Basis1D const& basis, std::span<double const> u)
      : quadrature(std::move(quadrature_of_cells)), values(quadrature.n_points), basis_(basis), u_(u), local_(space.n_local) {
    for (auto& g : gradient)
      g.resize(quadrature.n_points);
  }

  void reset(std::int64_t cell) {
    quadrature.reset(cell);
    for (std::size_t i = 0; i < local_.size(); ++i)
      local_[i] = u_[quadrature.dofs[i]];
    double const* const v = basis_.values.data();
    double const* const d = basis_.derivatives.data();
    interpolate(v, v, v, values);
    interpolate(d, v, v, gradient[0]);
    interpolate(v, d, v, gradient[1]);
    interpolate(v, v, d, gradient[2]);
  }

  CellQuadrature quadrature;
  std::vector<double> values;
  std::array<std::vector<double>, 3> gradient;  ///< with respect to reference coordinates

private:
  void interpolate(double const* x, double const* y, double const* z, std::vector<double>& out) {
    apply_tensor(quadrature.m, basis_.n_functions, x, y, z, local_.data(), out.data(), quadrature.work);
  }

  Basis1D const& basis_;
  std::span<double const> u_;
  std::vector<double> local_;  ///< the values of u at the cell's unknowns
};

/// Runs body(state, i, part) for all i in [0, n), cut in parts of `size`. Each part is one thread's.
template <class MakeState, class Body>
void for_all(std::int64_t n, std::int64_t size, MakeState const& make_state, Body const& body) {
  parallel_for(n_parts(n, size), make_state, [&](auto& state, std::int64_t const p) {
    auto const [begin, end] = part(n, size, p);
    for (auto i = begin; i < end; ++i)
      body(state, i, p);
  });
}

template <class MakeState, class Body>
void for_all_cells(Space const& space, MakeState const& make_state, Body const& body) {
  for_all(space.n_cells, space.cells_per_part, make_state, body);
}

constexpr std::int64_t dofs_per_part = 4096;
constexpr auto no_state = [] { return 0; };

template <class MakeState, class Body>
void for_all_dofs(Space const& space, MakeState const& make_state, Body const& body) {
  for_all(space.n_dofs, dofs_per_part, make_state, body);
}

struct Sums {
  double first = 0, second = 0, third = 0, largest = 0;
  void add(Sums const& other) {
    first += other.first;
    second += other.second;
    third += other.third;
    largest = std::max(largest, other.largest);
  }
};

/// Runs body(state, cell, sums) over all cells and adds up by parts, in an order that does not depend on the threads.
template <class MakeState, class Body>
Sums sum_over_cells(Space const& space, MakeState const& make_state, Body const& body) {
  std::vector<Sums> sums(n_parts(space.n_cells, space.cells_per_part));
  for_all_cells(space, make_state, [&](auto& state, std::int64_t cell, std::int64_t part) { body(state, cell, sums[part]); });
  Sums total;
  for (auto const& sum : sums)
    total.add(sum);
  return total;
}

}  // namespace

FieldSums source_integral(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  struct State {
    ProblemData data;
    CellQuadrature quadrature;
  };
  Sums const sums = sum_over_cells(
      space,
      [&] {
        return State{data, CellQuadrature(space, element, element.n_gauss())};
      },
      [&](State& state, std::int64_t cell, Sums& sum) {
        Function const& source = state.data.source(space.material(cell));
        if (source.is_constant() && source(Point3{}) == 0)
          return;
        state.quadrature.reset(cell);
        for (int q = 0; q < state.quadrature.n_points; ++q) {
          double const f = state.quadrature.weights[q] * source.finite(state.quadrature.point(q), "the source");
          sum.first += f;
          sum.second += std::abs(f);
        }
      });
  return {sums.first, sums.second};
}

int points_of_exact(Space const& space) {
  int n = space.order + 3;
  // A part has the same points as the whole.
  std::int64_t const cells = space.n_cells_of_whole > 0 ? space.n_cells_of_whole : space.n_cells;
  while (n < most_points && cells * (n + 1) * (n + 1) * (n + 1) <= evaluation_budget)
    ++n;
  return n;
}

ExactMean mean_of_exact(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  if (space.box && data.exact->is_code())
    return box_mean_of_exact(space, *data.exact, points_of_exact(space));
  struct State {
    Function exact;
    CellQuadrature quadrature;
  };
  auto const sums = sum_over_cells(
      space,
      [&] {
        return State{*data.exact, CellQuadrature(space, element, points_of_exact(space))};
      },
      [](State& state, std::int64_t cell, Sums& sum) {
        state.quadrature.reset(cell);
        for (int q = 0; q < state.quadrature.n_points; ++q) {
          sum.first += state.quadrature.weights[q] * state.exact.finite(state.quadrature.point(q), exact_name);
          sum.second += state.quadrature.weights[q];
        }
      });
  return {sums.first, sums.second};
}

ErrorNorms error_norms(Space const& space, ReferenceElement const& element, ProblemData const& data, std::span<double const> u,
                       double shift) {
  int const points = points_of_exact(space);
  if (space.box && data.exact->is_code())
    return box_error_norms(space, element, *data.exact, u, shift, points);
  struct State {
    Function exact;
    CellFunction u;
    std::vector<double> exact_values;
    std::array<std::vector<double>, 3> exact_gradient;
  };
  std::vector<double> gauss, ignored;
  gauss_rule(points, gauss, ignored);
  auto const basis = lagrange_basis(element.nodes, gauss), collocation = lagrange_basis(gauss, gauss);
  auto const make_state = [&] {
    State state{*data.exact, CellFunction(space, CellQuadrature(space, element, points), basis, u), {}, {}};
    auto const n_points = static_cast<std::size_t>(state.u.quadrature.n_points);
    state.exact_values.resize(n_points);
    for (auto& g : state.exact_gradient)
      g.resize(n_points);
    return state;
  };
  auto const sums = sum_over_cells(space, make_state, [&](State& state, std::int64_t cell, Sums& sum) {
    state.u.reset(cell);
    auto const& quadrature = state.u.quadrature;
    auto const& gradient = state.u.gradient;
    auto const& exact_gradient = state.exact_gradient;
    for (int q = 0; q < quadrature.n_points; ++q)
      state.exact_values[q] = state.exact.finite(quadrature.point(q), exact_name) - shift;
    for (int d = 0; d < 3; ++d)
      differentiate(d, points, collocation.derivatives.data(), state.exact_values.data(), state.exact_gradient[d].data());
    for (int q = 0; q < quadrature.n_points; ++q) {
      double const e = state.u.values[q] - state.exact_values[q];
      sum.first += quadrature.weights[q] * e * e;
      Point3 const difference = quadrature.real_gradient(
          q, gradient[0][q] - exact_gradient[0][q], gradient[1][q] - exact_gradient[1][q], gradient[2][q] - exact_gradient[2][q]);
      sum.second += quadrature.weights[q] * dot(difference, difference);
      sum.largest = std::max(sum.largest, std::abs(e));
    }
  });

  std::vector<double> largest(n_parts(space.n_dofs, dofs_per_part), sums.largest);
  for_all_dofs(
      space, [&] { return Function(*data.exact); },
      [&](Function& exact, std::int64_t const i, std::int64_t const part) {
        largest[part] = std::max(largest[part], std::abs(u[i] - (exact.finite(space.point(i), exact_name) - shift)));
      });
  return {std::sqrt(sums.first), std::sqrt(sums.second), *std::max_element(largest.begin(), largest.end())};
}

namespace {

/// Takes values at an element's nodes, and its map, to equidistant nodes.
struct Equidistant {
  Equidistant(Space const& space, ReferenceElement const& element, OutputNodes nodes)
      : needed(space.order >= 3 && !(space.box && nodes == OutputNodes::unknowns)) {
    std::vector<double> places;
    for (int i = 0; i <= space.order; ++i)
      places.push_back(static_cast<double>(i) / space.order);
    values = lagrange_basis(element.nodes, places);
    map = lagrange_basis(geometry_nodes_1d(space, element), places);
    if (needed)
      owner = space.owners();
  }
  void move_values(double const* in, std::vector<double>& out, std::vector<double>& work) const {
    double const* const v = values.values.data();
    apply_tensor(values.n_functions, values.n_functions, v, v, v, in, out.data(), work);
  }
  void move_points(CellGeometry const& cell, std::array<std::vector<double>, 3>& out, std::vector<double>& work) const {
    double const* const w = map.values.data();
    for (int d = 0; d < 3; ++d)
      apply_tensor(values.n_functions, map.n_functions, w, w, w, cell.nodes(d), out[d].data(), work);
  }

  bool needed;  ///< Gauss-Lobatto nodes are equidistant up to order 2, and may be asked for
  Basis1D values, map;
  HostVector<std::int32_t> owner;  ///< the cell that decides, by unknown
};

/// The unknowns and the map of one cell after the other, with room for its equidistant nodes.
struct OutputCell {
  explicit OutputCell(Space const& space) : geometry(space), dofs(space.n_local) {
    for (auto& x : points)
      x.resize(space.n_local);
  }
  CellGeometry geometry;
  std::vector<std::int32_t> dofs;
  std::array<std::vector<double>, 3> points;
  std::vector<double> work;
};

}  // namespace

OutputMesh output_mesh(Space const& space, ReferenceElement const& element, OutputNodes nodes) {
  if (space.box && space.order == 1 && space.box->has_equal_cells())
    return Lattice{space.box->origin, space.box_cell_size({0, 0, 0}), space.box_nodes};
  if (space.box && nodes == OutputNodes::unknowns) {
    NodeLattice lattice{space.order, {}};
    for (int d = 0; d < 3; ++d)
      for (std::int64_t i = 0; i < space.box_nodes[d]; ++i)
        lattice.coordinates[d].push_back(space.box_coordinate(d, i));
    return lattice;
  }
  int const n_local = space.n_local;
  NodeMesh mesh;
  mesh.order = space.order;
  mesh.cells = {static_cast<std::size_t>(space.n_cells * n_local), [&space](std::int64_t first, std::int64_t n, std::int64_t* out) {
                  std::vector<std::int32_t> dofs(static_cast<std::size_t>(space.n_local));
                  for (std::int64_t i = first; i < first + n;) {
                    std::int64_t const cell = i / space.n_local, at = i % space.n_local;
                    space.dofs(cell, dofs.data());
                    for (std::int64_t a = at; a < space.n_local && i < first + n; ++a, ++i)
                      *out++ = dofs[static_cast<std::size_t>(a)];
                  }
                }};
  Equidistant const equidistant(space, element, nodes);
  if (!equidistant.needed) {
    if (std::ssize(space.listed_points()) == 3 * space.n_dofs)
      mesh.points = FieldValues<double>::view(space.listed_points());
    else
      mesh.points = {3 * static_cast<std::size_t>(space.n_dofs), [&space](std::int64_t first, std::int64_t n, double* out) {
                       for (std::int64_t i = first; i < first + n;) {
                         Point3 const x = space.point(i / 3);
                         for (std::int64_t d = i % 3; d < 3 && i < first + n; ++d, ++i)
                           *out++ = x[static_cast<std::size_t>(d)];
                       }
                     }};
    return mesh;
  }
  HostVector<double> points;
  points.resize(3 * space.n_dofs);
  auto const make_state = [&] { return OutputCell(space); };
  for_all_cells(space, make_state, [&](OutputCell& state, std::int64_t const cell, std::int64_t) {
    space.dofs(cell, state.dofs.data());
    state.geometry.reset(cell, state.dofs.data());
    equidistant.move_points(state.geometry, state.points, state.work);
    for (int a = 0; a < n_local; ++a)
      if (std::int64_t const dof = state.dofs[a]; equidistant.owner[dof] == cell)
        for (int d = 0; d < 3; ++d)
          points[3 * dof + d] = state.points[d][a];
  });
  mesh.points = std::move(points);
  return mesh;
}

namespace {

/// What is known of a material: MaterialValues with the integral of grad u . k grad u in place of the energy, and the volume.
struct MaterialSums {
  MaterialValues values;
  double gradients = 0, volume = 0;
  void add(MaterialSums const& other) {
    values.min = std::min(values.min, other.values.min);
    values.max = std::max(values.max, other.values.max);
    values.integral_u += other.values.integral_u;
    gradients += other.gradients;
    volume += other.volume;
  }
};

/// Computes sums by material, and extremes only where there are several materials. The order does not depend on the threads.
std::map<unsigned, MaterialSums> sums_of_materials(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                                   std::span<double const> u) {
  bool const one = space.material_ids.size() == 1;
  if (space.box && space.order == 1 && element.n_gauss() == 2 && one && data.diagonal_code()) {
    BoxIntegrals const found = box_integrals(space, data, u);
    MaterialSums sums;
    sums.values.integral_u = found.u;
    sums.gradients = found.gradients;
    sums.volume = space.box->extent[0] * space.box->extent[1] * space.box->extent[2];
    return {{*space.material_ids.begin(), sums}};
  }
  auto const basis = lagrange_basis(element.nodes, element.gauss);
  struct State {
    ProblemData data;
    CellFunction u;
  };
  auto const make_state = [&] {
    return State{data, CellFunction(space, CellQuadrature(space, element, element.n_gauss()), basis, u)};
  };
  std::vector<std::map<unsigned, MaterialSums>> parts(n_parts(space.n_cells, space.cells_per_part));
  for_all_cells(space, make_state, [&](State& state, std::int64_t cell, std::int64_t part) {
    state.u.reset(cell);
    auto const& quadrature = state.u.quadrature;
    auto const& gradient = state.u.gradient;
    auto const material = space.material(cell);
    MaterialSums& sums = parts[part][material];
    auto const& coefficient = state.data.coefficient(material);
    bool const constant = coefficient.is_constant();
    Tensor k = constant ? coefficient({}, material) : Tensor{};
    double integral = 0, gradients = 0, volume = 0;
    for (int q = 0; q < quadrature.n_points; ++q) {
      if (!constant)
        k = coefficient(quadrature.point(q), material);
      Point3 const real = quadrature.real_gradient(q, gradient[0][q], gradient[1][q], gradient[2][q]);
      integral += quadrature.weights[q] * state.u.values[q];
      gradients += quadrature.weights[q] * dot(real, k * real);
      volume += quadrature.weights[q];
    }
    sums.values.integral_u += integral;
    sums.gradients += gradients;
    sums.volume += volume;
    if (!one)
      for (std::int32_t const dof : quadrature.dofs) {
        sums.values.min = std::min(sums.values.min, u[dof]);
        sums.values.max = std::max(sums.values.max, u[dof]);
      }
  });
  std::map<unsigned, MaterialSums> result;
  for (auto const& of_part : parts)
    for (auto const& [material, sums] : of_part)
      result[material].add(sums);
  return result;
}

/// The least and the largest entry.
std::pair<double, double> range_of(std::span<double const> u) {
  constexpr std::int64_t per_part = 1 << 18;
  auto const n = static_cast<std::int64_t>(u.size());
  std::vector<std::pair<double, double>> parts(n_parts(n, per_part));
  parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t const p) {
    auto const [begin, end] = part(n, per_part, p);
    double low = u[begin], high = low;
    for (auto i = begin + 1; i < end; ++i) {
      low = std::min(low, u[i]);
      high = std::max(high, u[i]);
    }
    parts[p] = {low, high};
  });
  auto [low, high] = parts.front();
  for (auto const& [lower, higher] : parts) {
    low = std::min(low, lower);
    high = std::max(high, higher);
  }
  return {low, high};
}

}  // namespace

ExtremePlaces extreme_places(Space const& space, std::span<double const> u, double low, double high) {
  std::vector<ExtremePlaces> parts(n_parts(space.n_dofs, dofs_per_part));
  for_all_dofs(space, no_state, [&](int, std::int64_t const dof, std::int64_t const part) {
    double const value = u[dof];
    if (value > low && value < high)
      return;
    ExtremePlaces& found = parts[part];
    // Nodes of a box are in this order already.
    if (space.box && (value > low || found.low) && (value < high || found.high))
      return;
    Point3 const x = space.point(dof);
    ExtremePlaces here;
    if (value <= low)
      here.low = x;
    if (value >= high)
      here.high = x;
    found.add(here);
  });
  ExtremePlaces result;
  for (ExtremePlaces const& found : parts)
    result.add(found);
  return result;
}

Quantities solution_quantities(Space const& space, ReferenceElement const& element, ProblemData const& data,
                               std::span<double const> u, std::span<std::uint8_t const> counted, std::span<double const> u_low) {
  Quantities result;
  std::tie(result.min, result.max) = range_of(u);
  ExtremePlaces const places = extreme_places(space, u, result.most_low(), result.least_high());
  result.min_at = *places.low;
  result.max_at = *places.high;
  auto const by_material = sums_of_materials(space, element, data, u);
  MaterialSums all;
  for (auto const& [material, sums] : by_material) {
    all.add(sums);
    MaterialValues& values = result.materials[material] = sums.values;
    values.energy = 0.5 * sums.gradients;
    result.volumes[material] = sums.volume;
  }
  if (by_material.size() == 1) {
    result.materials.begin()->second.min = result.min;
    result.materials.begin()->second.max = result.max;
  }
  result.mean = all.values.integral_u / all.volume;
  result.integral_u = all.values.integral_u;
  result.energy = 0.5 * all.gradients;
  bool const by_sides =
      space.box && space.n_cells_of_whole == 0 && counted.empty() && space.inner_faces.empty() && !data.has_periodic_boundaries();
  BoundaryFluxes fluxes;
  if (by_sides) {
    fluxes.boundaries = box_boundary_fluxes(space, element, data, nodes_among(space, values_among(u)),
                                            u_low.empty() ? NodesOfBox() : nodes_among(space, values_among(u_low)));
  } else if (!space.box && space.n_cells_of_whole == 0 && counted.empty()) {
    fluxes = fluxes_near_boundary(space, element, data, values_among(u), u_low.empty() ? ValuesOfUnknowns() : values_among(u_low));
  } else {
    fluxes = boundary_fluxes(space, element, data, u, counted, u_low);
    if (!fluxes.periodic.empty())
      add_periodic_fluxes(fluxes.periodic, data, fluxes);
  }
  result.boundaries = std::move(fluxes.boundaries);
  result.add_surfaces(fluxes.surfaces, data.conditioned_surfaces());
  return result;
}

HostVector<double> flux_at_nodes(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                 FieldValues<double> const& u, OutputNodes nodes) {
  bool const equidistant = Equidistant(space, element, nodes).needed;
  std::vector<double> places = element.nodes;
  for (int i = 0; equidistant && i <= space.order; ++i)
    places[i] = static_cast<double>(i) / space.order;
  auto const basis = lagrange_basis(element.nodes, places), map = lagrange_basis(geometry_nodes_1d(space, element), places);
  auto const n = static_cast<std::size_t>(space.n_local);
  struct State {
    ProblemData data;
    CellGeometry geometry;
    UnknownsOfCells unknowns;
    std::vector<double> work;
    std::array<std::vector<double>, 3> x, slope;  // places, and derivatives of u by reference coordinates
    std::array<std::vector<double>, 9> jacobian;
  };
  auto const make_state = [&] {
    State state{data, CellGeometry(space), UnknownsOfCells(space, &u), {}, {}, {}, {}};
    for (auto* const list : {&state.x, &state.slope})
      for (auto& values : *list)
        values.resize(n);
    for (auto& values : state.jacobian)
      values.resize(n);
    return state;
  };
  HostVector<double> flux;
  flux.resize(3 * space.n_dofs, 0.0);
  HostVector<std::int32_t> cells_around;
  cells_around.resize(space.n_dofs, 0);
  auto const add_cell = [&](State& state, std::int64_t const cell, std::int64_t const in_part) {
    std::int32_t const* const dofs = state.unknowns.dofs(in_part);
    state.geometry.reset(cell, dofs);
    auto const apply = [&](Basis1D const& table, int direction, double const* in, std::vector<double>& out) {
      std::array<double const*, 3> along{table.values.data(), table.values.data(), table.values.data()};
      if (direction >= 0)
        along[direction] = table.derivatives.data();
      apply_tensor(table.n_points, table.n_functions, along[0], along[1], along[2], in, out.data(), state.work);
    };
    for (int d = 0; d < 3; ++d) {
      apply(basis, d, state.unknowns.u(in_part), state.slope[d]);
      apply(map, -1, state.geometry.nodes(d), state.x[d]);
      for (int e = 0; e < 3; ++e)
        apply(map, e, state.geometry.nodes(d), state.jacobian[3 * d + e]);
    }
    auto const material = space.material(cell);
    auto const& coefficient = state.data.coefficient(material);
    Point3 const middle = state.geometry.middle();
    for (std::size_t a = 0; a < n; ++a) {
      std::array<double, 9> j;
      for (std::size_t e = 0; e < 9; ++e)
        j[e] = state.jacobian[e][a];
      auto const c = cofactors(j);
      double const det = j[0] * c[0] + j[1] * c[1] + j[2] * c[2];
      if (!(det > 0))
        continue;
      Point3 gradient{};
      for (int d = 0; d < 3; ++d)
        gradient[d] = (c[3 * d] * state.slope[0][a] + c[3 * d + 1] * state.slope[1][a] + c[3 * d + 2] * state.slope[2][a]) / det;
      Point3 const conducted = coefficient.seen_from(middle, {state.x[0][a], state.x[1][a], state.x[2][a]}, material) * gradient;
      auto const dof = static_cast<std::int64_t>(dofs[a]);
      ++cells_around[dof];
      for (int d = 0; d < 3; ++d)
        flux[3 * dof + d] -= conducted[d];
    }
  };
  for (auto const& parts : space.color_parts())
    parallel_for(static_cast<std::int64_t>(parts.size()), make_state, [&](State& state, std::int64_t const i) {
      auto const [begin, end] = part(space.n_cells, space.cells_per_part, parts[i]);
      state.unknowns.take(begin, end);
      for (auto cell = begin; cell < end; ++cell)
        add_cell(state, cell, cell - begin);
    });
  for_all_dofs(space, no_state, [&](int, std::int64_t const dof, std::int64_t) {
    for (int d = 0; d < 3; ++d)
      flux[3 * dof + d] /= cells_around[dof];
  });
  return flux;
}

SolutionFields solution_fields(Space const& space, ReferenceElement const& element, ProblemData const& data,
                               FieldValues<double> const& values, double shift, OutputNodes nodes, FieldOptions const& options) {
  int const n_local = space.n_local;
  SolutionFields fields;
  fields.coefficient_components = data.coefficient_components();
  HostVector<double> of_nodes, exact;
  Equidistant const equidistant(space, element, nodes);
  // Where u is made when it is asked for, so is `exact`; else it is evaluated once.
  bool const of_box = space.box && data.exact && data.exact->is_code();
  bool const makes_exact = data.exact && (of_box || !space.box) && values.fill() && !equidistant.needed;
  if (makes_exact)
    fields.exact = of_box ? made_exact(space, *data.exact, shift) : made_exact_at_nodes(space, data, shift);
  else if (of_box && !equidistant.needed)
    exact = box_exact_at_nodes(space, *data.exact, shift);
  else if (data.exact)
    exact.resize(space.n_dofs);
  if (space.box)
    set_box_cells(space, element, data, values, options.gradient, fields);
  else
    set_mapped_cells(space, element, data, values, options.gradient, fields);

  if (equidistant.needed) {
    of_nodes.resize(space.n_dofs);
    struct State {
      ProblemData data;
      OutputCell cell;
      UnknownsOfCells unknowns;
      std::vector<double> moved_u;
    };
    auto const make_state = [&] {
      return State{data, OutputCell(space), UnknownsOfCells(space, &values), std::vector<double>(n_local)};
    };
    auto const move = [&](State& state, std::int64_t const cell, std::int64_t const in_part) {
      std::int32_t const* const dofs = state.unknowns.dofs(in_part);
      auto& [geometry, unused, points, work] = state.cell;
      geometry.reset(cell, dofs);
      equidistant.move_values(state.unknowns.u(in_part), state.moved_u, work);
      if (state.data.exact)
        equidistant.move_points(geometry, points, work);
      for (int a = 0; a < n_local; ++a)
        if (std::int64_t const dof = dofs[a]; equidistant.owner[dof] == cell) {
          of_nodes[dof] = state.moved_u[a];
          if (state.data.exact)
            exact[dof] = state.data.exact->finite({points[0][a], points[1][a], points[2][a]}, exact_name) - shift;
        }
    };
    parallel_for(n_parts(space.n_cells, space.cells_per_part), make_state, [&](State& state, std::int64_t const i) {
      auto const [begin, end] = part(space.n_cells, space.cells_per_part, i);
      state.unknowns.take(begin, end);
      for (std::int64_t cell = begin; cell < end; ++cell)
        move(state, cell, cell - begin);
    });
  } else if (data.exact && !makes_exact && !of_box) {
    for_all_dofs(
        space, [&] { return *data.exact; },
        [&](Function const& of_thread, std::int64_t const dof, std::int64_t) {
          exact[dof] = of_thread.finite(space.point(dof), exact_name) - shift;
        });
  }

  fields.u = equidistant.needed ? FieldValues<double>(std::move(of_nodes)) : values;
  if (!makes_exact)
    fields.exact = std::move(exact);
  if (data.exact)
    fields.error = {fields.u.size(), [of_u = fields.u, of_exact = fields.exact](std::int64_t first, std::int64_t n, double* out) {
                      std::vector<double> other(static_cast<std::size_t>(n));
                      of_u.read(first, n, out);
                      of_exact.read(first, n, other.data());
                      for (std::int64_t i = 0; i < n; ++i)
                        out[i] -= other[i];
                    }};
  if (!options.refer_to_u) {
    for (FieldValues<double>* const field :
         {&fields.error, &fields.exact, &fields.u, &fields.coefficient, &fields.flux, &fields.gradient})
      field->keep();
    fields.material.keep();
  }
  return fields;
}

}  // namespace poisson::assembly
