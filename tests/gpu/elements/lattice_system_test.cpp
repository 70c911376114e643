#include "gpu/elements/lattice_system.hpp"

#include "gpu/core/host_vector.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/lattices.hpp"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <vector>

/// Meshes of lattices that are assembled on a backend, beside a loop over cells that keeps everything in a map of rows.
namespace poisson::testing {

namespace {

double linear(int b, double t) {
  return b == 1 ? t : 1 - t;
}

std::array<double, 2> gauss_points() {
  double const g = 0.5 / std::sqrt(3.);
  return {0.5 - g, 0.5 + g};
}

/// Lattices that fill a box whose nodes are moved a little, with two materials, Dirichlet values at a third of its surface and
/// Robin conditions at some faces.
struct Mesh {
  std::array<std::int64_t, 3> lattices{1, 1, 1};
  std::int32_t cells = 4;
  std::vector<std::vector<Data>> k;  ///< one or more materials
  Data f;
  bool dirichlet = true, robin = true;
};

struct System {
  test::LatticeBox box;
  LatticeProblem problem;
  std::vector<std::map<std::int64_t, double>> rows;
  std::vector<double> rhs, integrals;
  double volume = 0;

  explicit System(Mesh const& c) : box(test::make_lattice_box(c.lattices, c.cells)) {
    problem.layout = box.layout;
    place_nodes();
    for (auto const& coefficient : c.k) {
      problem.coefficients.emplace_back();
      for (Data const& component : coefficient)
        problem.coefficients.back().push_back(component.code);
    }
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      problem.material.push_back(static_cast<std::int32_t>(l * 7 % std::ssize(c.k)));
    problem.source = c.f.code;
    set_conditions(c);
    problem.pure_neumann = !c.dirichlet && !c.robin;

    auto const n = static_cast<std::size_t>(box.layout.n_unknowns);
    rows.resize(n);
    rhs.assign(n, 0);
    integrals.assign(n, 0);
    add_cells(c);
    add_faces();
    eliminate();
  }

  [[nodiscard]] std::int32_t unknown(std::int64_t l, std::int64_t i, std::int64_t j, std::int64_t k) const {
    return box.unknown_of[static_cast<std::size_t>(box.node(l, i, j, k))];
  }
  [[nodiscard]] Point vertex(std::int64_t l, std::int64_t i, std::int64_t j, std::int64_t k) const {
    std::int64_t const m = box.layout.nodes();
    Point x{};
    for (std::size_t d = 0; d < 3; ++d)
      x[d] =
          problem.coordinates[static_cast<std::size_t>((3 * l + static_cast<std::int64_t>(d)) * m * m * m + (k * m + j) * m + i)];
    return x;
  }

  void place_nodes() {
    std::int64_t const m = box.layout.nodes();
    problem.coordinates.resize(static_cast<std::size_t>(3 * m * m * m * box.layout.n_lattices));
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (std::int64_t i = 0; i < m * m * m; ++i) {
        std::int64_t const node = box.node(l, i % m, i / m % m, i / (m * m));
        std::minstd_rand random(static_cast<unsigned>(node + 1));
        std::uniform_real_distribution<double> shift(-0.15, 0.15);
        random.discard(3);
        std::array<std::int64_t, 3> const index{node % box.nodes[0], node / box.nodes[0] % box.nodes[1],
                                                node / (box.nodes[0] * box.nodes[1])};
        for (std::size_t d = 0; d < 3; ++d)
          problem.coordinates[(3 * static_cast<std::size_t>(l) + d) * static_cast<std::size_t>(m * m * m) +
                              static_cast<std::size_t>(i)] =
              (static_cast<double>(index[d]) + shift(random)) / static_cast<double>(m - 1);
      }
  }

  void set_conditions(Mesh const& c) {
    std::int64_t const m = box.layout.nodes(), n = m - 1;
    auto const n_rim = static_cast<std::size_t>(box.layout.n_unknowns - box.layout.n_inner());
    problem.fixed.assign(n_rim, 0);
    problem.fixed_value.assign(n_rim, 0.0);
    problem.rim_load.assign(n_rim, 0.0);
    problem.mass_face.assign(static_cast<std::size_t>(6 * box.layout.n_lattices), -1);
    std::int32_t n_faces = 0;
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
            index[d] = face % 2 == 0 ? 0 : n;
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
          problem.mass_face[static_cast<std::size_t>(6 * l + face)] = n_faces++;
          for (std::int64_t i = 0; i < 4 * n * n; ++i)
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

  void add_cells(Mesh const& c) {
    std::int64_t const n = box.layout.cells;
    auto const gauss = gauss_points();
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (std::int64_t cell = 0; cell < n * n * n; ++cell) {
        std::array<std::int64_t, 3> const at{cell % n, cell / n % n, cell / (n * n)};
        std::array<std::int32_t, 8> dofs{};
        std::array<Point, 8> x{};
        for (int v = 0; v < 8; ++v) {
          dofs[v] = unknown(l, at[0] + (v & 1), at[1] + (v >> 1 & 1), at[2] + (v >> 2));
          x[v] = vertex(l, at[0] + (v & 1), at[1] + (v >> 1 & 1), at[2] + (v >> 2));
        }
        for (int q = 0; q < 8; ++q) {
          std::array<double, 3> const t{gauss[q & 1], gauss[q >> 1 & 1], gauss[q >> 2]};
          std::array<double, 8> value{};
          std::array<std::array<double, 3>, 8> reference{};
          for (int a = 0; a < 8; ++a) {
            std::array<int, 3> const bit{a & 1, a >> 1 & 1, a >> 2};
            value[a] = linear(bit[0], t[0]) * linear(bit[1], t[1]) * linear(bit[2], t[2]);
            for (std::size_t d = 0; d < 3; ++d) {
              std::size_t const e = (d + 1) % 3, g = (d + 2) % 3;
              reference[a][d] = (bit[d] == 1 ? 1 : -1) * linear(bit[e], t[e]) * linear(bit[g], t[g]);
            }
          }
          Point place{};
          std::array<std::array<long double, 3>, 3> j{};  // dx_i / dxi_d; sums of coordinates cancel
          for (int a = 0; a < 8; ++a)
            for (std::size_t i = 0; i < 3; ++i) {
              place[i] += value[a] * x[a][i];
              for (std::size_t d = 0; d < 3; ++d)
                j[i][d] += static_cast<long double>(x[a][i]) * reference[a][d];
            }
          auto const minor = [&](std::size_t r, std::size_t s) {
            std::size_t const r1 = (r + 1) % 3, r2 = (r + 2) % 3, s1 = (s + 1) % 3, s2 = (s + 2) % 3;
            return j[r1][s1] * j[r2][s2] - j[r1][s2] * j[r2][s1];
          };
          auto const det = static_cast<double>(j[0][0] * minor(0, 0) + j[0][1] * minor(0, 1) + j[0][2] * minor(0, 2));
          double const weight = det / 8;
          volume += weight;
          auto const& k = c.k[static_cast<std::size_t>(problem.material[static_cast<std::size_t>(l)])];
          std::array<std::array<double, 3>, 8> gradient{};  // in space
          for (int a = 0; a < 8; ++a)
            for (std::size_t i = 0; i < 3; ++i)
              for (std::size_t d = 0; d < 3; ++d)
                gradient[a][i] += static_cast<double>(minor(i, d)) / det * reference[a][d];
          for (int a = 0; a < 8; ++a) {
            rhs[static_cast<std::size_t>(dofs[a])] += weight * c.f.value(place) * value[a];
            integrals[static_cast<std::size_t>(dofs[a])] += weight * value[a];
            for (int b = 0; b < 8; ++b)
              for (std::size_t i = 0; i < 3; ++i)
                rows[static_cast<std::size_t>(dofs[a])][dofs[b]] +=
                    weight * k[k.size() == 3 ? i : 0].value(place) * gradient[a][i] * gradient[b][i];
          }
        }
      }
  }

  void add_faces() {
    std::int64_t const m = box.layout.nodes(), n = m - 1;
    auto const gauss = gauss_points();
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (int face = 0; face < 6; ++face) {
        std::int32_t const number = problem.mass_face[static_cast<std::size_t>(6 * l + face)];
        if (number < 0)
          continue;
        int const d = face / 2, u = (d + 1) % 3, v = (d + 2) % 3;
        for (std::int64_t cell = 0; cell < n * n; ++cell) {
          std::array<std::int32_t, 4> dofs{};
          for (int a = 0; a < 4; ++a) {
            std::array<std::int64_t, 3> index{};
            index[d] = face % 2 == 0 ? 0 : n;
            index[u] = cell % n + (a & 1);
            index[v] = cell / n + (a >> 1);
            dofs[a] = unknown(l, index[0], index[1], index[2]);
          }
          for (int q = 0; q < 4; ++q)
            for (int a = 0; a < 4; ++a)
              for (int b = 0; b < 4; ++b)
                rows[static_cast<std::size_t>(dofs[a])][dofs[b]] +=
                    problem.face_mass[static_cast<std::size_t>(4 * (number * n * n + cell) + q)] * linear(a & 1, gauss[q & 1]) *
                    linear(a >> 1, gauss[q >> 1]) * linear(b & 1, gauss[q & 1]) * linear(b >> 1, gauss[q >> 1]);
        }
      }
  }

  [[nodiscard]] bool is_fixed(std::int64_t unknown_number) const {
    std::int64_t const i = unknown_number - box.layout.n_inner();
    return i >= 0 && problem.fixed[static_cast<std::size_t>(i)] != 0;
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

}  // namespace

template <class B>
class LatticeSystemOn : public ::testing::Test {
protected:
  void SetUp() override {
    if (B::value == Backend::cuda && cuda_devices().empty())
      GTEST_SKIP() << "there is no CUDA device";
    context = make_context(B::value);
  }
  std::unique_ptr<Context> context;

  void expect_reference(Mesh const& c) {
    SCOPED_TRACE(std::to_string(c.lattices[0]) + " x " + std::to_string(c.lattices[1]) + " x " + std::to_string(c.lattices[2]) +
                 " lattices of " + std::to_string(c.cells) + " cells a side");
    System const expected(c);
    LatticeSystem const system(*context, expected.problem);
    CsrMatrix const matrix = system.matrix().to_csr();
    std::int64_t const n = expected.box.layout.n_unknowns;
    ASSERT_EQ(matrix.n_rows, n);
    std::int64_t nnz = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      auto const& row = expected.rows[static_cast<std::size_t>(i)];
      nnz += std::ssize(row);
      ASSERT_EQ(matrix.row_ptr[i + 1] - matrix.row_ptr[i], std::ssize(row)) << "row " << i;
      double largest = 0;
      for (auto const& [j, a] : row)
        largest = std::max(largest, std::abs(a));
      std::int64_t e = matrix.row_ptr[i];
      for (auto const& [j, a] : row) {
        ASSERT_EQ(matrix.columns[e], j) << "row " << i;
        ASSERT_NEAR(matrix.values[e++], a, 1e-14 * largest) << "row " << i << ", column " << j;
      }
    }
    EXPECT_EQ(system.nnz(), nnz);
    HostVector<double> rhs(static_cast<std::size_t>(n));
    system.rhs().download(std::span<double>(rhs));
    double scale = 0;
    for (double const b : expected.rhs)
      scale = std::max(scale, std::abs(b));
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_NEAR(rhs[i], expected.rhs[i], 2e-14 * scale) << "row " << i;
    std::vector<double> x(static_cast<std::size_t>(n), -7.0);
    system.set_dirichlet(x);
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(x[i], expected.is_fixed(i) ? expected.problem.fixed_value[i - expected.box.layout.n_inner()] : -7);
    EXPECT_EQ(system.pure_neumann(), expected.problem.pure_neumann);

    LatticeSystem const again(*context, expected.problem);
    CsrMatrix const same = again.matrix().to_csr();
    EXPECT_TRUE(std::equal(matrix.values.begin(), matrix.values.end(), same.values.begin(), same.values.end())) << "other bits";
  }
};
TYPED_TEST_SUITE(LatticeSystemOn, Backends, BackendNames);

TYPED_TEST(LatticeSystemOn, OneLattice) {
  for (int const cells : {2, 3, 4, 5, 9, 12, 14})
    this->expect_reference({{1, 1, 1}, cells, {{polynomial(2, 0.5, 0.25)}}, sine(0.1, 5)});
}

TYPED_TEST(LatticeSystemOn, SeveralLatticesAndMaterials) {
  this->expect_reference({{2, 1, 1}, 4, {{constant(2)}}, constant(3)});
  this->expect_reference({{2, 2, 2}, 4, {{constant(2)}, {sine(3, 1)}}, polynomial(0, 1, 1)});
  this->expect_reference({{3, 2, 1}, 5, {{polynomial(2, 1, 1), constant(1), sine(2, 3)}, {constant(5)}}, branches(4, -1)});
  this->expect_reference({{1, 1, 3}, 13, {{sine(2, 1)}, {constant(1)}, {polynomial(1, 1, 1)}}, constant(0)});
}

TYPED_TEST(LatticeSystemOn, OneConditionOnly) {
  for (bool const dirichlet : {false, true})
    this->expect_reference({{2, 1, 2}, 4, {{sine(3, 1)}}, sine(1, 1), dirichlet, !dirichlet});
}

TYPED_TEST(LatticeSystemOn, PureNeumannIsMadeCompatible) {
  this->expect_reference({{2, 2, 1}, 4, {{sine(3, 1)}}, sine(1, 1), false, false});
  this->expect_reference({{1, 1, 1}, 6, {{constant(1)}}, constant(2), false, false});
}

TYPED_TEST(LatticeSystemOn, SlabsOfPlanes) {
  // Several slabs on the host, some of which end inside a lattice.
  this->expect_reference({{1, 1, 2}, 48, {{sine(2, 1)}, {constant(1)}}, polynomial(1, 1, 0)});
}

TYPED_TEST(LatticeSystemOn, SumsOfTheSource) {
  System const expected({{2, 1, 1}, 8, {{constant(1)}}, polynomial(-1, 0, 2)});
  LatticeSystem const system(*this->context, expected.problem);
  EXPECT_NEAR(system.source().sum, 0, 0.1);  // int 2 z - 1 over a box of which the faces are moved
  EXPECT_NEAR(system.source().absolute, 1, 0.1);
  ASSERT_EQ(system.largest_source_of_lines().size(), 2U * 8 * 8);
  for (double const largest : system.largest_source_of_lines()) {
    EXPECT_GT(largest, 0);
    EXPECT_LT(largest, 2. / 512);
  }
}

TYPED_TEST(LatticeSystemOn, PlacesOfBadData) {
  System bad({{2, 1, 1}, 4, {{polynomial(-0.5, 0, 1)}}, constant(1)});
  try {
    LatticeSystem const system(*this->context, bad.problem);
    FAIL() << "k is negative where z < 0.5";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::coefficient);
    EXPECT_EQ(error.part, 0);
    EXPECT_LT(error.at[2], 0.25) << "the first point in order";
    EXPECT_LT(error.at[0], 0.25);
  }
  System inverted({{2, 1, 1}, 4, {{constant(1)}}, constant(1)});
  std::int64_t const nodes = 5 * 5 * 5;
  for (std::int64_t i = 0; i < nodes; ++i)  // the second lattice is mirrored
    inverted.problem.coordinates[static_cast<std::size_t>(3 * nodes + i)] *= -1;
  try {
    LatticeSystem const system(*this->context, inverted.problem);
    FAIL() << "cells are inverted";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::determinant);
    EXPECT_EQ(error.part, 1);
  }
}

}  // namespace poisson::testing
