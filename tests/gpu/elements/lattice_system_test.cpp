#include "gpu/elements/lattice_system.hpp"

#include "gpu/core/host_vector.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/elements/lattice_reference.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <utility>
#include <vector>

/// half_cds of meshes of lattices that is assembled on a backend, beside the reference.
namespace poisson::testing {

template <class B>
class LatticeSystemOn : public ::testing::Test {
protected:
  void SetUp() override {
    if (B::value == Backend::cuda && cuda_devices().empty())
      GTEST_SKIP() << "there is no CUDA device";
    context = make_context(B::value);
  }
  std::unique_ptr<Context> context;

  void expect_reference(LatticeMesh const& c) {
    SCOPED_TRACE(std::to_string(c.lattices[0]) + " x " + std::to_string(c.lattices[1]) + " x " + std::to_string(c.lattices[2]) +
                 " lattices of " + std::to_string(c.cells) + " cells a side");
    LatticeReference const expected(c);
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

TYPED_TEST(LatticeSystemOn, CellsOfALatticeDiffer) {
  std::vector<std::vector<Data>> const k{
      {polynomial(2, 1, 1), constant(1), sine(2, 3)}, {constant(5)}, {sine(3, 1)}, full_tensor()};
  for (bool const fixed : {true, false}) {  // without conditions the source is made compatible
    LatticeMesh mesh{{2, 1, 2}, 4, k, sine(1, 2), fixed, fixed};
    mesh.cells_differ = true;
    this->expect_reference(mesh);
    mesh.more_sources = {constant(3), polynomial(1, 1, 0)};
    this->expect_reference(mesh);
  }
  LatticeMesh slabs{{1, 1, 2}, 30, {{sine(2, 1)}, {constant(1)}}, constant(1)};  // several on the host
  slabs.cells_differ = true;
  slabs.more_sources = {constant(2)};
  this->expect_reference(slabs);
}

TYPED_TEST(LatticeSystemOn, PlaceOfABadCell) {
  LatticeMesh mesh{{2, 1, 1}, 4, {{constant(1)}, {constant(2)}, {constant(3)}}, constant(1)};
  mesh.cells_differ = true;
  LatticeReference const good(mesh);
  for (Data const& bad : {constant(-1), polynomial(-1, 0, 0)}) {
    LatticeProblem problem = good.problem;
    problem.coefficients[2] = {bad.code};
    auto const cell = static_cast<int>(std::find(problem.material.begin(), problem.material.end(), 2) - problem.material.begin());
    try {
      LatticeSystem const system(*this->context, problem);
      FAIL() << "k is negative";
    } catch (DataError const& error) {
      EXPECT_EQ(error.quantity, DataError::Quantity::coefficient);
      EXPECT_EQ(error.part, cell);
    }
  }
}

TYPED_TEST(LatticeSystemOn, FullTensors) {
  this->expect_reference({{1, 1, 1}, 6, {full_tensor()}, sine(1, 2)});
  this->expect_reference({{2, 2, 1}, 4, {full_tensor(), {constant(2)}, {constant(1), sine(3, 1), constant(2)}}, constant(1)});
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
  LatticeReference const expected({{2, 1, 1}, 8, {{constant(1)}}, polynomial(-1, 0, 2)});
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
  LatticeReference bad({{2, 1, 1}, 4, {{polynomial(-0.5, 0, 1)}}, constant(1)});
  try {
    LatticeSystem const system(*this->context, bad.problem);
    FAIL() << "k is negative where z < 0.5";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::coefficient);
    EXPECT_EQ(error.part, 0);
    EXPECT_LT(error.at[2], 0.25) << "the first point in order";
    EXPECT_LT(error.at[0], 0.25);
  }
  LatticeReference indefinite(
      {{2, 1, 1}, 4, {{constant(1), constant(2), constant(1), polynomial(0, 0, 2), constant(0), constant(0)}}, constant(1)});
  try {
    LatticeSystem const system(*this->context, indefinite.problem);
    FAIL() << "k is not positive definite where z > 0.7";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::coefficient);
    EXPECT_GT(error.at[2], 0.7);
    EXPECT_LT(error.at[2], 0.78) << "the first point in order";
  }
  LatticeReference inverted({{2, 1, 1}, 4, {{constant(1)}}, constant(1)});
  std::int64_t const nodes = 5 * 5 * 5;
  HostVector<double> mirrored = *inverted.problem.coordinates;
  for (std::int64_t i = 0; i < nodes; ++i)  // the second lattice
    mirrored[static_cast<std::size_t>(3 * nodes + i)] *= -1;
  inverted.problem.coordinates = std::make_shared<HostVector<double> const>(std::move(mirrored));
  try {
    LatticeSystem const system(*this->context, inverted.problem);
    FAIL() << "cells are inverted";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::determinant);
    EXPECT_EQ(error.part, 4 * 4 * 4) << "the first cell of the second lattice";
  }
}

TYPED_TEST(LatticeSystemOn, KeepsTheCoordinatesThatAreWanted) {
  LatticeReference const mesh({{2, 1, 1}, 3, {{polynomial(2, 1, 0.5)}}, constant(1)});
  for (Format const format : {Format::half_cds, Format::matrix_free})
    for (bool const keep : {false, true}) {
      LatticeSystem system(*this->context, mesh.problem, format, keep);
      Array<double> const coordinates = system.take_coordinates();
      ASSERT_EQ(coordinates.size(), keep ? std::ssize(*mesh.problem.coordinates) : 0);
      HostVector<double> found(static_cast<std::size_t>(coordinates.size()));
      coordinates.download(std::span<double>(found));
      EXPECT_TRUE(!keep || found == *mesh.problem.coordinates);
    }
}

}  // namespace poisson::testing
