/// Error norms against deal.II's, output fields, pure Neumann problems, and what is refused.
#include "assembly/dealii/mesh.hpp"
#include "assembly/discretization.hpp"
#include "gpu/core/error.hpp"
#include "tests/convergence/support.hpp"

#include <cmath>
#include <deal.II/base/function.h>
#include <deal.II/base/quadrature_lib.h>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/dofs/dof_renumbering.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/mapping_q.h>
#include <deal.II/grid/grid_tools.h>
#include <deal.II/numerics/vector_tools.h>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace poisson::assembly {
namespace {

using namespace test;

ProblemSpec simple(MeshSpec mesh, int order = 1) {
  ProblemSpec spec;
  spec.mesh = std::move(mesh);
  spec.order = order;
  spec.boundary = {dirichlet("0")};
  return spec;
}

class Exact : public dealii::Function<3> {
public:
  double value(dealii::Point<3> const& x, unsigned) const override { return std::sin(2 * x[0] + x[1]) * std::exp(x[2]); }
  dealii::Tensor<1, 3> gradient(dealii::Point<3> const& x, unsigned) const override {
    double const s = std::sin(2 * x[0] + x[1]), c = std::cos(2 * x[0] + x[1]), e = std::exp(x[2]);
    return dealii::Tensor<1, 3>({2 * c * e, c * e, s * e});
  }
};

TEST(Errors, EqualThoseOfDealII) {
  // u = 0 needs no numbering in common; the integrals are then those of the exact solution alone.
  for (auto const& mesh :
       {box(4, 3, 2, {1, 2, 0.5}), generator("hyper_ball", 1), generator("hyper_shell", 0, "0, 0, 0 : 0.5 : 1 : 6")})
    for (int const order : {1, 2, 3}) {
      auto spec = simple(mesh, order);
      spec.exact = "sin(2*x + y)*exp(z)";
      Discretization discretization(spec);
      auto const n = static_cast<std::size_t>(discretization.summary().dofs);
      auto const found = discretization.errors(std::vector<double>(n, 0.0));

      auto const reference = make_mesh(mesh);
      dealii::FE_Q<3> const fe(static_cast<unsigned>(order));
      dealii::DoFHandler<3> dofs(*reference.triangulation);
      dofs.distribute_dofs(fe);
      dealii::MappingQ<3> const mapping(static_cast<unsigned>(reference.curved ? order : 1));
      dealii::Vector<double> const zero(dofs.n_dofs());
      dealii::Vector<float> cellwise(reference.triangulation->n_active_cells());
      dealii::Vector<double> per_cell(reference.triangulation->n_active_cells());
      dealii::QGauss<3> const quadrature(14);
      auto const norm = [&](dealii::VectorTools::NormType type) {
        dealii::VectorTools::integrate_difference(mapping, dofs, zero, Exact(), per_cell, quadrature, type);
        return dealii::VectorTools::compute_global_error(*reference.triangulation, per_cell, type);
      };
      EXPECT_NEAR(found.l2, norm(dealii::VectorTools::L2_norm), 1e-9 * found.l2);
      EXPECT_NEAR(found.h1_seminorm, norm(dealii::VectorTools::H1_seminorm), 1e-7 * found.h1_seminorm);
      EXPECT_NEAR(found.linf, norm(dealii::VectorTools::Linfty_norm), 0.02 * found.linf);
    }
}

TEST(Errors, OfAnInterpolantOnABoxEqualThoseOfDealII) {
  MeshSpec graded = box(11, 7, 9, {1, 2, 0.5});
  graded.origin = {0.5, -1, 0};
  graded.growth = {1.2, 1, 0.7};
  for (MeshSpec const& mesh : {box(12, 12, 12), graded})
    for (int const order : {1, 2}) {
      auto spec = simple(mesh, order);
      spec.exact = "sin(2*x + y)*exp(z)";
      Discretization discretization(spec);
      auto const n = static_cast<std::size_t>(discretization.summary().dofs);
      auto const fields = discretization.fields(std::vector<double>(n, 0.0));  // orders 1 and 2: points are the unknowns' own
      auto const found = discretization.errors(fields.exact);

      auto const reference = make_mesh(spec.mesh);
      dealii::FE_Q<3> const fe(static_cast<unsigned>(order));
      dealii::DoFHandler<3> dofs(*reference.triangulation);
      dofs.distribute_dofs(fe);
      dealii::Vector<double> u(dofs.n_dofs()), per_cell(reference.triangulation->n_active_cells());
      dealii::VectorTools::interpolate(dofs, Exact(), u);
      auto const norm = [&](dealii::VectorTools::NormType type) {
        dealii::VectorTools::integrate_difference(dofs, u, Exact(), per_cell, dealii::QGauss<3>(static_cast<unsigned>(order + 5)),
                                                  type);
        return dealii::VectorTools::compute_global_error(*reference.triangulation, per_cell, type);
      };
      EXPECT_NEAR(found.l2, norm(dealii::VectorTools::L2_norm), 1e-6 * found.l2);
      EXPECT_NEAR(found.h1_seminorm, norm(dealii::VectorTools::H1_seminorm), 1e-6 * found.h1_seminorm);
    }
}

TEST(Errors, NameThePointWhereTheExactSolutionIsNotFinite) {
  auto spec = simple(box(3, 3, 3, {3, 3, 3}), 1);
  spec.exact = "1/(x - 2)";
  Discretization discretization(spec);
  try {
    static_cast<void>(discretization.errors(std::vector<double>(64, 0.0)));
    FAIL();
  } catch (InputError const& error) {
    EXPECT_NE(std::string(error.what()).find("the exact solution"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("(2, 0, 0)"), std::string::npos) << error.what();
  }
}

TEST(Fields, NodesAreEquidistantSharedAndInterpolated) {
  for (int order = 1; order <= 4; ++order) {
    auto spec = simple(box(2, 3, 1, {1, 3, 2}), order);
    spec.mesh.origin = {-1, 0, 5};
    spec.coefficient = {{-1, {"2", "3", "4"}}};
    auto const p = std::to_string(order);
    spec.exact = std::string("x^").append(p) + " + y - z";
    spec.source =
        order == 1 ? "0" : std::string("-2*").append(p) + "*" + std::to_string(order - 1) + "*x^" + std::to_string(order - 2);
    spec.boundary = {dirichlet(*spec.exact)};
    Discretization discretization(spec);
    auto const u = solve(discretization);
    auto const fields = discretization.fields(u);
    auto const nodes = nodes_of(discretization);
    ASSERT_EQ(nodes.order, order);
    ASSERT_EQ(nodes.points.size(), 3 * u.size());
    int const n = order + 1;
    auto const local = static_cast<std::size_t>(n * n * n);
    ASSERT_EQ(nodes.cells.size(), 6 * local);
    std::set<std::int64_t> used(nodes.cells.begin(), nodes.cells.end());
    EXPECT_EQ(used.size(), u.size());
    EXPECT_EQ(*used.rbegin() + 1, static_cast<std::int64_t>(u.size()));
    for (std::size_t c = 0; c < 6; ++c) {
      double const* const first = nodes.points.data() + 3 * nodes.cells[c * local];
      for (std::size_t a = 0; a < local; ++a) {
        std::array<std::size_t, 3> const index{a % n, a / n % n, a / n / n};
        std::array<double, 3> const h{0.5, 1, 2};
        auto const node = nodes.cells[c * local + a];
        for (std::size_t d = 0; d < 3; ++d)
          ASSERT_NEAR(nodes.points[3 * node + d], first[d] + h[d] * static_cast<double>(index[d]) / order, 1e-14);
      }
    }
    for (std::size_t i = 0; i < u.size(); ++i) {
      double const x = nodes.points[3 * i], y = nodes.points[3 * i + 1], z = nodes.points[3 * i + 2];
      ASSERT_NEAR(fields.exact[i], std::pow(x, order) + y - z, 1e-13);
      ASSERT_NEAR(fields.u[i], fields.exact[i], 1e-11);  // the space contains the solution
      ASSERT_EQ(fields.error[i], fields.u[i] - fields.exact[i]);
    }
    ASSERT_EQ(fields.coefficient_components, 3);
    for (std::size_t c = 0; c < 6; ++c) {
      EXPECT_EQ(fields.material[c], 0);
      for (std::size_t d = 0; d < 3; ++d)
        EXPECT_EQ(fields.coefficient[3 * c + d], 2.0 + static_cast<double>(d));
      double const x = c % 2 == 0 ? -0.75 : -0.25;
      EXPECT_NEAR(fields.flux[3 * c], -2 * order * std::pow(x, order - 1), 1e-9);
      EXPECT_NEAR(fields.flux[3 * c + 1], -3, 1e-9);
      EXPECT_NEAR(fields.flux[3 * c + 2], 4, 1e-9);
    }
  }
}

TEST(Fields, FollowCurvedCellsAndMaterials) {
  auto spec = simple(generator("hyper_ball", 1), 3);
  // Isoparametric cells contain linear functions; the quadrature of order 3 is not quite exact on curved ones.
  spec.exact = "1 + x - 2*y + 3*z";
  spec.boundary = {dirichlet(*spec.exact)};
  Discretization discretization(spec);
  auto const fields = discretization.fields(solve(discretization));
  auto const nodes = nodes_of(discretization);
  double farthest = 0;
  for (std::size_t i = 0; i < fields.u.size(); ++i) {
    double const* const x = nodes.points.data() + 3 * i;
    ASSERT_NEAR(fields.error[i], 0, 1e-5);
    farthest = std::max(farthest, std::hypot(x[0], x[1], x[2]));
  }
  EXPECT_NEAR(farthest, 1, 1e-3);
  for (std::size_t c = 0; c < fields.material.size(); ++c) {
    EXPECT_NEAR(fields.flux[3 * c], -1, 1e-3);
    EXPECT_NEAR(fields.flux[3 * c + 1], 2, 1e-3);
    EXPECT_NEAR(fields.flux[3 * c + 2], -3, 1e-3);
  }

  MeshFile file;
  file.add_block({0, 0, 0}, {1, 1, 1}, {2, 1, 1}, 0, [](double x, double, double) { return x < 0.5 ? 3 : 4; });
  auto two = simple(file.spec());
  two.coefficient = {{3, {"1 + x"}}, {4, {"10"}}};
  Discretization materials(two);
  auto const material_fields = materials.fields(std::vector<double>(12, 0.0));
  ASSERT_EQ(material_fields.material.size(), 2U);
  for (std::size_t c = 0; c < 2; ++c)
    EXPECT_NEAR(material_fields.coefficient[c], material_fields.material[c] == 3 ? 1.25 : 10, 1e-14);
  EXPECT_EQ(std::set<int>(material_fields.material.begin(), material_fields.material.end()), (std::set<int>{3, 4}));
}

/// Boxes are evaluated line by line, other meshes cell by cell: the same cube as both.
TEST(Quantities, OfABoxAreThoseOfAnyMesh) {
  for (auto const& k : std::vector<CoefficientExpressions>{{"3"}, {"1 + x*y + z"}, {"1 + x", "2 + sin(y*z)", "5"}}) {
    std::vector<Quantities> found;
    for (auto const& mesh : {box(4, 4, 4), generator("hyper_cube", 2)}) {
      ProblemSpec spec = simple(mesh);
      spec.coefficient = {{-1, k}};
      Discretization const discretization(spec);
      auto const nodes = nodes_of(discretization);
      HostVector<double> u(nodes.points.size() / 3);
      for (std::size_t i = 0; i < u.size(); ++i) {
        double const* const x = nodes.points.data() + 3 * i;
        u[i] = std::sin(2 * x[0] + x[1]) * std::exp(x[2]) + x[1] * x[2];
      }
      found.push_back(discretization.quantities(u));
    }
    auto const near = [](double a, double b) { EXPECT_NEAR(a, b, 1e-14 * std::abs(b)); };
    near(found[0].energy, found[1].energy);
    near(found[0].integral_u, found[1].integral_u);
    near(found[0].mean, found[1].mean);
    near(found[0].max, found[1].max);
    for (std::size_t d = 0; d < 3; ++d)
      EXPECT_EQ(found[0].max_at[d], found[1].max_at[d]);
  }
}

TEST(PureNeumann, IsMadeCompatibleAndMeanFree) {
  auto spec = simple(generator("hyper_ball", 1), 2);
  spec.source = "x";  // of mean zero on the ball
  spec.boundary = {neumann("z")};
  Discretization discretization(spec);
  auto const system = discretization.assemble();
  EXPECT_TRUE(system.pure_neumann);
  EXPECT_LT(std::abs(system.compatibility_defect), 1e-10);
  double sum = 0, size = 0;
  for (double const value : system.rhs) {
    sum += value;
    size += std::abs(value);
  }
  EXPECT_LT(std::abs(sum), 1e-14 * size);

  // Whatever constant is added, the solution has mean zero.
  for (double const value : discretization.reconstruct(system, HostVector<double>(system.rhs.size(), 7.0)))
    ASSERT_NEAR(value, 0, 1e-13);
  auto const nodes = nodes_of(discretization);
  HostVector<double> shifted(system.rhs.size());
  for (std::size_t i = 0; i < shifted.size(); ++i)
    shifted[i] = 5 + nodes.points[3 * i];  // integral of x over the ball is 0
  auto const u = discretization.reconstruct(system, shifted);
  for (std::size_t i = 0; i < u.size(); ++i)
    ASSERT_NEAR(u[i], nodes.points[3 * i], 1e-12);
}

TEST(PureNeumann, SmallDefectIsReportedAndRemoved) {
  auto spec = simple(box(4, 4, 4));
  spec.source = "x - 0.4999";  // int f = 1e-4, int |f| = 1/4
  spec.boundary = {neumann("0")};
  Discretization discretization(spec);
  auto const system = discretization.assemble();
  EXPECT_NEAR(system.compatibility_defect, 4e-4, 1e-7);
  EXPECT_NEAR(std::accumulate(system.rhs.begin(), system.rhs.end(), 0.0), 0, 1e-16);
}

TEST(PureNeumann, RobinWithAlphaZeroEverywhereCounts) {
  auto spec = simple(box(2, 2, 2));
  spec.boundary = {robin("0*x", "0")};
  EXPECT_TRUE(Discretization(spec).assemble().pure_neumann);
  spec.boundary = {robin("x > 0.9", "0")};
  EXPECT_FALSE(Discretization(spec).assemble().pure_neumann);
}

/// Constructing and assembling throws InputError with this key and all of these words.
void expect_refused(ProblemSpec const& spec, std::string const& key, std::vector<std::string> const& words) {
  try {
    Discretization discretization(spec);
    (void)discretization.assemble();
    ADD_FAILURE() << "nothing was thrown for " << key;
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), key) << error.what();
    for (auto const& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << "no '" << word << "' in: " << error.what();
  }
}

TEST(Refused, ProblemsWithoutAUniqueSolution) {
  auto spec = simple(box(2, 2, 2));
  spec.source = "1";
  spec.boundary = {neumann("0")};
  expect_refused(spec, "problem.boundary", {"no solution", "int f", "must be 0"});

  MeshFile file;
  file.add_block({0, 0, 0}, {1, 1, 1}, {1, 2, 1}).add_block({5, 0, 0}, {1, 1, 1}, {2, 1, 1});
  auto apart = simple(file.spec());
  EXPECT_FALSE(Discretization(apart).assemble().pure_neumann);  // both parts have Dirichlet values
  apart.boundary = {robin("x > 3", "0")};                       // only the second is held
  expect_refused(apart, "problem.boundary", {"2 parts", "not unique"});
  apart.boundary = {neumann("0")};
  expect_refused(apart, "problem.boundary", {"2 parts", "not unique"});
}

TEST(Refused, Coefficients) {
  auto spec = simple(box(2, 2, 2));
  spec.coefficient = {{-1, {"x - 0.5"}}};
  expect_refused(spec, "problem.coefficient", {"the coefficient is -", "(x, y, z) = (0.1", "material 0", "positive"});
  spec.coefficient = {{-1, {"1", "1/(x - x)", "1"}}};
  expect_refused(spec, "problem.coefficient[1]", {"inf", "positive and finite"});
  spec.coefficient = {{-1, {"1", "2"}}};
  expect_refused(spec, "problem.coefficient", {"2 components"});
  spec.coefficient = {{-1, {"-3"}}};
  expect_refused(spec, "problem.coefficient", {"-3", "positive"});
  spec.coefficient = {{0, {"0"}}};
  expect_refused(spec, "problem.coefficient.0", {"is 0", "positive"});
  spec.coefficient = {{-1, {"1"}}, {4, {"1"}}};
  expect_refused(spec, "problem.coefficient.4", {"no material 4", "it has: 0"});

  MeshFile file;
  file.add_block({0, 0, 0}, {1, 1, 1}, {2, 1, 1}, 0, [](double x, double, double) { return x < 0.5 ? 3 : 4; });
  auto two = simple(file.spec());
  two.coefficient = {{3, {"1"}}};
  expect_refused(two, "problem.coefficient", {"material 4", "3, 4", "default"});
}

TEST(Fields, ARegionMayTakeEveryCellOfABox) {
  for (auto const* const source : {"3", "3 + 0*x"}) {
    auto spec = simple(box(4, 4, 4));
    spec.mesh.regions = {{"all", "x < 2"}};
    spec.coefficient_of_name = {{"all", {"2"}}};  // no cell has the k of the others
    spec.source_of_name = {{"all", source}};
    spec.source = "1";
    spec.boundary = {dirichlet("0", {4}), dirichlet("1", {5}), neumann("0")};
    Discretization discretization(spec);
    auto const u = solve(discretization);
    auto const quantities = discretization.quantities(u);
    EXPECT_NEAR(quantities.boundaries.at(5).flux, -2 + 1.5, 1e-12);
    EXPECT_NEAR(quantities.boundaries.at(4).flux, 2 + 1.5, 1e-12);
    EXPECT_EQ(quantities.volumes, (std::map<unsigned, double>{{1, 1}}));
    for (int const material : discretization.fields(u).material)
      EXPECT_EQ(material, 1);
    EXPECT_EQ(discretization.fields(u).coefficient[5], 2);
  }
}

TEST(Refused, BoundaryConditions) {
  auto spec = simple(box(2, 2, 2));
  spec.boundary = {dirichlet("0", {0, 1, 2})};
  expect_refused(spec, "problem.boundary", {"3, 4, 5", "ids: all"});
  spec.boundary = {dirichlet("0"), neumann("0", {7})};
  expect_refused(spec, "problem.boundary[1].ids", {"no boundary id 7", "0, 1, 2, 3, 4, 5"});
  spec.boundary = {dirichlet("0"), neumann("0", {1}), neumann("1", {1})};
  expect_refused(spec, "problem.boundary[2].ids", {"boundary id 1", "problem.boundary[1]"});
  spec.boundary = {dirichlet("0"), neumann("0")};
  expect_refused(spec, "problem.boundary[1].ids", {"twice"});
  spec.boundary = {dirichlet("log(x)")};
  expect_refused(spec, "problem.boundary[0].value", {"Dirichlet", "-inf", "(0, "});
  spec.boundary = {dirichlet("0", {0}), robin("x - 0.5", "0")};
  expect_refused(spec, "problem.boundary[1].alpha", {"alpha is -", "not be negative"});
  spec.boundary = {dirichlet("0", {0}), neumann("sqrt(y - 0.5)")};
  expect_refused(spec, "problem.boundary[1].value", {"nan", "finite"});
  spec.boundary = {};
  expect_refused(spec, "problem.boundary", {"0, 1, 2, 3, 4, 5"});
}

TEST(Refused, SourceExactAndOrder) {
  auto spec = simple(box(2, 2, 2));
  spec.source = "1/(x - x)";
  expect_refused(spec, "problem.source", {"inf", "finite"});
  spec = simple(box(2, 2, 2));
  spec.order = 9;
  expect_refused(spec, "problem.element.order", {"9", "1 to 8"});
  spec = simple(box(2, 2, 2));
  spec.exact = "log(x - 2)";
  Discretization discretization(spec);
  EXPECT_THROW((void)discretization.errors(std::vector<double>(27, 0.0)), InputError);
  spec.exact = "foo(x)";
  expect_refused(spec, "problem.exact", {"foo"});
}

TEST(Refused, MeshesThatAreTooLarge) {
  auto spec = simple(box(1'000'000, 1'000'000, 1'000'000));
  expect_refused(spec, "problem.mesh.cells", {});
  EXPECT_THROW((void)estimate(spec), InputError);
  spec = simple(box(1200, 1200, 1200));  // unknowns can be counted, the matrix does not fit
  EXPECT_THROW(Discretization{spec}, EnvironmentError);
  EXPECT_EQ(estimate(spec).mesh.dofs, 1201LL * 1201 * 1201);
}

}  // namespace
}  // namespace poisson::assembly
