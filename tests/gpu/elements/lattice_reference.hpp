#pragma once

#include "gpu/core/lattice_problem.hpp"
#include "gpu/kernels/element_tables.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/lattices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace poisson::testing {

/// Lattices that fill a box whose nodes are moved a little, with one or more materials, Dirichlet values at a third of its surface
/// and Robin conditions at some faces.
struct LatticeMesh {
  std::array<std::int64_t, 3> lattices{1, 1, 1};
  std::int32_t cells = 4;
  std::vector<std::vector<Data>> k;  ///< of the materials
  Data f;
  bool dirichlet = true, robin = true;
  std::int32_t order = 1;
  bool isoparametric = false, all_on_rim = false;
  bool tensor_grid = false;  ///< with all_on_rim: nodes are moved by planes, so that cells are a box (LatticeReference::in_box)
  std::vector<Data> more_sources{};  ///< of other cells than f, in turn
  bool cells_differ = false;         ///< materials and sources are those of cells, and not of lattices
};

/// Such a mesh as a problem, and its system: dense element matrices, by a loop over cells, in a map of rows.
struct LatticeReference {
  test::LatticeBox box;
  LatticeProblem problem;
  std::vector<std::map<std::int64_t, double>> rows;
  std::vector<double> rhs, integrals;
  double volume = 0;
  bool tensor_grid = false;

  explicit LatticeReference(LatticeMesh const& c)
      : box(test::make_lattice_box(c.lattices, c.cells, c.order, c.all_on_rim)),
        gauss(gauss_quadrature(c.order + 1)),
        lobatto(lobatto_quadrature(c.order + 1)) {
    tensor_grid = c.tensor_grid;
    problem.layout = box.layout;
    problem.isoparametric = c.isoparametric;
    place_nodes(c.tensor_grid);
    for (auto const& coefficient : c.k) {
      problem.coefficients.emplace_back();
      for (Data const& component : coefficient)
        problem.coefficients.back().push_back(component.code);
    }
    std::int64_t const of_lattice = std::int64_t{c.cells} * c.cells * c.cells;
    std::int64_t const n_numbers = box.layout.n_lattices * (c.cells_differ ? of_lattice : 1);
    for (std::int64_t i = 0; i < n_numbers; ++i)
      problem.material.push_back(static_cast<std::int32_t>(i * 7 % std::ssize(c.k)));
    problem.sources = {c.f.code};
    for (Data const& source : c.more_sources)
      problem.sources.push_back(source.code);
    for (std::int64_t i = 0; i < n_numbers && problem.sources.size() > 1; ++i)
      problem.source_of.push_back(static_cast<std::int32_t>(i / 3 % std::ssize(problem.sources)));
    set_conditions(c);
    problem.pure_neumann = !c.dirichlet && !c.robin;

    auto const n = static_cast<std::size_t>(box.layout.n_unknowns);
    rows.resize(n);
    rhs.assign(n, 0);
    integrals.assign(n, 0);
    add_cells(c);
    for (auto const& row : rows)
      problem.couplings += std::ssize(row);
    add_faces();
    eliminate();
  }

  /// The same problem on a box without tables. Precondition: the mesh is a tensor grid.
  [[nodiscard]] LatticeProblem in_box() const {
    LatticeProblem result = problem;
    result.layout = layout_of_box(box.lattices, box.layout.order);
    result.coordinates = std::make_shared<HostVector<double> const>();
    std::int64_t const n1 = box.layout.nodes();
    for (std::size_t d = 0; d < 3; ++d) {
      std::int64_t step = 1;  // from one cell to the next in this direction
      for (std::size_t e = 0; e < d; ++e)
        step *= box.lattices[e];
      for (std::int64_t i = 0; i < box.nodes[d]; ++i) {
        std::int64_t const cell = std::min(i / (n1 - 1), box.lattices[d] - 1), in_cell = i - cell * (n1 - 1);
        std::array<std::int64_t, 3> node{};
        node[d] = in_cell;
        result.lines[d].push_back(this->node(step * cell, node[0], node[1], node[2])[d]);
      }
    }
    auto const n = static_cast<std::size_t>(result.layout.n_on_boundary());
    result.fixed.resize(n);
    result.fixed_value.resize(n);
    result.rim_load.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      auto const unknown = static_cast<std::size_t>(result.layout.on_boundary(static_cast<std::int64_t>(i)));
      result.fixed[i] = problem.fixed[unknown];
      result.fixed_value[i] = problem.fixed_value[unknown];
      result.rim_load[i] = problem.rim_load[unknown];
    }
    return result;
  }

  /// What is asked of gpu/elements: on a tensor grid the problem without tables.
  [[nodiscard]] LatticeProblem asked() const { return tensor_grid ? in_box() : problem; }

  [[nodiscard]] bool is_fixed(std::int64_t unknown_number) const {
    std::int64_t const i = unknown_number - box.layout.n_inner();
    return i >= 0 && problem.fixed[static_cast<std::size_t>(i)] != 0;
  }
  /// The system's matrix.
  [[nodiscard]] CsrMatrix csr() const {
    CsrMatrix result;
    result.n_rows = result.n_columns = std::ssize(rows);
    result.row_ptr.push_back(0);
    for (auto const& row : rows) {
      for (auto const& [column, value] : row) {
        result.columns.push_back(static_cast<std::int32_t>(column));
        result.values.push_back(value);
      }
      result.row_ptr.push_back(std::ssize(result.columns));
    }
    return result;
  }

private:
  Quadrature1D gauss, lobatto;

  /// The Lagrange function of point a of `points`, and its derivative.
  static std::array<double, 2> lagrange(Quadrature1D const& points, int a, double t) {
    double value = 1, derivative = 0;
    for (int b = 0; b < points.n; ++b) {
      if (b == a)
        continue;
      double term = 1 / (points.point[a] - points.point[b]);
      for (int c = 0; c < points.n; ++c)
        if (c != a && c != b)
          term *= (t - points.point[c]) / (points.point[a] - points.point[c]);
      derivative += term;
      value *= (t - points.point[b]) / (points.point[a] - points.point[b]);
    }
    return {value, derivative};
  }
  /// The value of function a of a cell, a tensor product, at a point, and its derivatives.
  static std::array<double, 4> function(Quadrature1D const& points, int a, std::array<double, 3> const& t) {
    auto const x = lagrange(points, a % points.n, t[0]), y = lagrange(points, a / points.n % points.n, t[1]),
               z = lagrange(points, a / (points.n * points.n), t[2]);
    return {x[0] * y[0] * z[0], x[1] * y[0] * z[0], x[0] * y[1] * z[0], x[0] * y[0] * z[1]};
  }

  [[nodiscard]] std::int32_t unknown(std::int64_t l, std::int64_t i, std::int64_t j, std::int64_t k) const {
    return box.unknown_of[static_cast<std::size_t>(box.node(l, i, j, k))];
  }
  [[nodiscard]] Point node(std::int64_t l, std::int64_t i, std::int64_t j, std::int64_t k) const {
    std::int64_t const m = box.layout.nodes();
    Point x{};
    for (std::size_t d = 0; d < 3; ++d)
      x[d] =
          (*problem
                .coordinates)[static_cast<std::size_t>((3 * l + static_cast<std::int64_t>(d)) * m * m * m + (k * m + j) * m + i)];
    return x;
  }

  void place_nodes(bool by_planes) {
    std::int64_t const m = box.layout.nodes(), p = box.layout.order;
    HostVector<double> coordinates(static_cast<std::size_t>(3 * m * m * m * box.layout.n_lattices));
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (std::int64_t i = 0; i < m * m * m; ++i) {
        std::int64_t const node_of_box = box.node(l, i % m, i / m % m, i / (m * m));
        std::minstd_rand random(static_cast<unsigned>(node_of_box + 1));
        std::uniform_real_distribution<double> shift(-0.15, 0.15);
        random.discard(3);
        std::array<std::int64_t, 3> const index{node_of_box % box.nodes[0], node_of_box / box.nodes[0] % box.nodes[1],
                                                node_of_box / (box.nodes[0] * box.nodes[1])};
        for (std::size_t d = 0; d < 3; ++d) {
          double at = static_cast<double>(index[d] / p) + lobatto.point[index[d] % p];
          if (by_planes) {  // vertices, between which nodes are the points of Gauss and Lobatto
            auto const vertex = [d](std::int64_t number) {
              auto const x = static_cast<double>(number);
              return 0.3 + x + 0.05 * static_cast<double>(d + 1) * x * x;
            };
            double const low = vertex(index[d] / p);
            at = low + lobatto.point[index[d] % p] * (vertex(index[d] / p + 1) - low);
          } else {
            at += shift(random) / static_cast<double>(p * p);
          }
          coordinates[(3 * static_cast<std::size_t>(l) + d) * static_cast<std::size_t>(m * m * m) + static_cast<std::size_t>(i)] =
              at / static_cast<double>(box.layout.cells);
        }
      }
    problem.coordinates = std::make_shared<HostVector<double> const>(std::move(coordinates));
  }

  void set_conditions(LatticeMesh const& c) {
    std::int64_t const m = box.layout.nodes(), n = box.layout.cells;
    auto const n_rim = static_cast<std::size_t>(box.layout.n_unknowns - box.layout.n_inner());
    problem.fixed.assign(n_rim, 0);
    problem.fixed_value.assign(n_rim, 0.0);
    problem.rim_load.assign(n_rim, 0.0);
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l) {
      std::array<std::int64_t, 3> const at{l % c.lattices[0], l / c.lattices[0] % c.lattices[1],
                                           l / (c.lattices[0] * c.lattices[1])};
      for (int face = 0; face < 6; ++face) {
        int const d = face / 2, u = (d + 1) % 3, v = (d + 2) % 3;
        if (at[d] != (face % 2 == 0 ? 0 : c.lattices[d] - 1))
          continue;
        for (std::int64_t b = 0; b < m; ++b)
          for (std::int64_t a = 0; a < m; ++a) {
            std::array<std::int64_t, 3> index{};
            index[d] = face % 2 == 0 ? 0 : m - 1;
            index[u] = a;
            index[v] = b;
            auto const i = static_cast<std::size_t>(unknown(l, index[0], index[1], index[2]) - box.layout.n_inner());
            problem.rim_load[i] = 0.01 * static_cast<double>(i % 11);
            if (c.dirichlet && (face == 0 || face == 3)) {
              problem.fixed[i] = 1;
              problem.fixed_value[i] = 1 + static_cast<double>(i % 5);
            }
          }
        if (c.robin && (face == 1 || face == 4)) {
          problem.mass_faces.push_back(static_cast<std::int32_t>(6 * l + face));
          for (std::int64_t i = 0; i < (c.order + 1) * (c.order + 1) * n * n; ++i)
            problem.face_mass.push_back(0.1 + 0.01 * static_cast<double>(i % 13));
        }
      }
    }
    for (std::size_t i = 0; i < n_rim; ++i) {
      if (problem.fixed[i] != 0)
        problem.rim_load[i] = 0;
      problem.boundary.sum += problem.rim_load[i];
      problem.boundary.absolute += std::abs(problem.rim_load[i]);
    }
  }

  void add_cells(LatticeMesh const& c) {
    std::int64_t const n = box.layout.cells, p = c.order;
    int const n1 = c.order + 1, nodes = n1 * n1 * n1;
    auto const size = static_cast<std::size_t>(nodes);
    Quadrature1D const map_points = c.isoparametric ? lobatto : lobatto_quadrature(2);
    int const map_nodes = map_points.n * map_points.n * map_points.n;
    std::int64_t const step = c.isoparametric ? 1 : p;
    // Function a at Gauss point q is at [q][a].
    std::vector<std::vector<std::array<double, 4>>> functions(size), map_functions(size);
    for (int q = 0; q < nodes; ++q) {
      std::array<double, 3> const t{gauss.point[q % n1], gauss.point[q / n1 % n1], gauss.point[q / (n1 * n1)]};
      for (int a = 0; a < nodes; ++a)
        functions[q].push_back(function(lobatto, a, t));
      for (int a = 0; a < map_nodes; ++a)
        map_functions[q].push_back(function(map_points, a, t));
    }
    std::vector<double> element(size * size);
    std::vector<std::int32_t> dofs(size);
    std::vector<std::array<double, 3>> gradient(size);  // in space
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (std::int64_t cell = 0; cell < n * n * n; ++cell) {
        std::array<std::int64_t, 3> const at{cell % n, cell / n % n, cell / (n * n)};
        for (int a = 0; a < nodes; ++a)
          dofs[a] = unknown(l, p * at[0] + a % n1, p * at[1] + a / n1 % n1, p * at[2] + a / (n1 * n1));
        Point const first = node(l, p * at[0], p * at[1], p * at[2]);
        std::fill(element.begin(), element.end(), 0.0);
        for (int q = 0; q < nodes; ++q) {
          Point place{};
          std::array<std::array<long double, 3>, 3> j{};  // dx_i / dxi_d; sums cancel
          for (int a = 0; a < map_nodes; ++a) {
            Point const x = node(l, p * at[0] + step * (a % map_points.n), p * at[1] + step * (a / map_points.n % map_points.n),
                                 p * at[2] + step * (a / (map_points.n * map_points.n)));
            for (std::size_t i = 0; i < 3; ++i) {
              place[i] += map_functions[q][a][0] * x[i];
              for (std::size_t d = 0; d < 3; ++d)
                j[i][d] += static_cast<long double>(x[i] - first[i]) * map_functions[q][a][d + 1];
            }
          }
          auto const minor = [&](std::size_t r, std::size_t s) {
            std::size_t const r1 = (r + 1) % 3, r2 = (r + 2) % 3, s1 = (s + 1) % 3, s2 = (s + 2) % 3;
            return j[r1][s1] * j[r2][s2] - j[r1][s2] * j[r2][s1];
          };
          auto const det = static_cast<double>(j[0][0] * minor(0, 0) + j[0][1] * minor(0, 1) + j[0][2] * minor(0, 2));
          double const weight = det * gauss.weight[q % n1] * gauss.weight[q / n1 % n1] * gauss.weight[q / (n1 * n1)];
          volume += weight;
          auto const number = static_cast<std::size_t>(c.cells_differ ? l * n * n * n + cell : l);
          auto const& k = c.k[static_cast<std::size_t>(problem.material[number])];
          std::size_t const source = problem.source_of.empty() ? 0 : static_cast<std::size_t>(problem.source_of[number]);
          std::array<std::array<double, 3>, 3> k_at{};
          for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t e = 0; e < 3; ++e)
              k_at[i][e] = weight * tensor_at(k, i, e, place);
          for (int a = 0; a < nodes; ++a)
            for (std::size_t i = 0; i < 3; ++i) {
              gradient[a][i] = 0;
              for (std::size_t d = 0; d < 3; ++d)
                gradient[a][i] += static_cast<double>(minor(i, d)) / det * functions[q][a][d + 1];
            }
          double const f = source == 0 ? c.f.value(place) : c.more_sources[source - 1].value(place);
          for (int a = 0; a < nodes; ++a) {
            rhs[static_cast<std::size_t>(dofs[a])] += weight * f * functions[q][a][0];
            integrals[static_cast<std::size_t>(dofs[a])] += weight * functions[q][a][0];
            for (int b = 0; b < nodes; ++b)
              for (std::size_t i = 0; i < 3; ++i)
                for (std::size_t e = 0; e < 3; ++e)
                  element[a * nodes + b] += k_at[i][e] * gradient[a][i] * gradient[b][e];
          }
        }
        for (int a = 0; a < nodes; ++a)
          for (int b = 0; b < nodes; ++b)
            rows[static_cast<std::size_t>(dofs[a])][dofs[b]] += element[a * nodes + b];
      }
  }

  void add_faces() {
    std::int64_t const m = box.layout.nodes(), n = box.layout.cells, p = box.layout.order;
    int const n1 = static_cast<int>(p) + 1, of_face = n1 * n1;
    auto const value = [&](int a, int q) {
      return lagrange(lobatto, a % n1, gauss.point[q % n1])[0] * lagrange(lobatto, a / n1, gauss.point[q / n1])[0];
    };
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (int face = 0; face < 6; ++face) {
        auto const found = std::find(problem.mass_faces.begin(), problem.mass_faces.end(), static_cast<std::int32_t>(6 * l + face));
        if (found == problem.mass_faces.end())
          continue;
        auto const number = found - problem.mass_faces.begin();
        int const d = face / 2, u = (d + 1) % 3, v = (d + 2) % 3;
        for (std::int64_t cell = 0; cell < n * n; ++cell) {
          std::vector<std::int32_t> dofs;
          for (int a = 0; a < of_face; ++a) {
            std::array<std::int64_t, 3> index{};
            index[d] = face % 2 == 0 ? 0 : m - 1;
            index[u] = p * (cell % n) + a % n1;
            index[v] = p * (cell / n) + a / n1;
            dofs.push_back(unknown(l, index[0], index[1], index[2]));
          }
          for (int q = 0; q < of_face; ++q)
            for (int a = 0; a < of_face; ++a)
              for (int b = 0; b < of_face; ++b)
                rows[static_cast<std::size_t>(dofs[a])][dofs[b]] +=
                    problem.face_mass[static_cast<std::size_t>(of_face * (number * n * n + cell) + q)] * value(a, q) * value(b, q);
        }
      }
  }

  void eliminate() {
    std::int64_t const n_inner = box.layout.n_inner();
    double total = 0;
    for (std::int64_t i = 0; i < std::ssize(rhs); ++i) {
      if (i >= n_inner)
        rhs[i] += problem.rim_load[static_cast<std::size_t>(i - n_inner)];
      total += rhs[i];
    }
    for (std::int64_t i = 0; i < std::ssize(rhs); ++i) {
      std::map<std::int64_t, double> kept;
      for (auto const& [j, a] : rows[i]) {
        if (j == i || (!is_fixed(i) && !is_fixed(j)))
          kept[j] = a;
        else if (!is_fixed(i))
          rhs[i] -= a * problem.fixed_value[static_cast<std::size_t>(j - n_inner)];
      }
      rows[i] = kept;
      if (is_fixed(i))
        rhs[i] = 0;
      else if (problem.pure_neumann)
        rhs[i] -= total / volume * integrals[i];
    }
  }
};

}  // namespace poisson::testing
