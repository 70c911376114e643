/// The assembled system against deal.II's, entry by entry, and what else can be said about it exactly.
#include "assembly/dealii/mesh.hpp"
#include "assembly/discretization.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "tests/convergence/support.hpp"
#include "tests/source_dir.hpp"

#include <cmath>
#include <deal.II/base/function.h>
#include <deal.II/base/quadrature_lib.h>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/dofs/dof_tools.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/fe_tools.h>
#include <deal.II/fe/fe_values.h>
#include <deal.II/fe/mapping_q.h>
#include <deal.II/lac/dynamic_sparsity_pattern.h>
#include <deal.II/lac/sparse_matrix.h>
#include <deal.II/numerics/matrix_creator.h>
#include <deal.II/numerics/matrix_tools.h>
#include <deal.II/numerics/vector_tools.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <set>

namespace poisson::assembly {
namespace {

using namespace test;
using Point = dealii::Point<3>;
using Scalar = std::function<double(Point const&)>;

class DealFunction : public dealii::Function<3> {
public:
  explicit DealFunction(Scalar f) : f_(std::move(f)) {}
  double value(Point const& x, unsigned) const override { return f_(x); }

private:
  Scalar f_;
};

/// deal.II's view of a specification's mesh, and where its unknowns are in ours.
struct Reference {
  explicit Reference(ProblemSpec const& spec)
      : mesh(make_mesh(spec.mesh)), fe(spec.order), mapping(mesh.curved ? spec.order : 1), dofs(*mesh.triangulation) {
    dofs.distribute_dofs(fe);
    dealii::DynamicSparsityPattern dynamic(dofs.n_dofs());
    dealii::DoFTools::make_sparsity_pattern(dofs, dynamic);
    pattern.copy_from(dynamic);
    matrix.reinit(pattern);
    rhs.reinit(dofs.n_dofs());
  }

  /// Cells are recognised by their corners, which both list in the cell's own frame.
  void match(Discretization const& discretization) {
    auto const nodes = nodes_of(discretization);
    int const p = nodes.order, n = p + 1;
    auto const local = static_cast<std::size_t>(n * n * n);
    auto const key = [](auto const& corner) {
      std::array<long, 24> rounded{};
      for (std::size_t v = 0; v < 8; ++v)
        for (std::size_t d = 0; d < 3; ++d)
          rounded[3 * v + d] = std::lround(7.390851332e8 * corner(v)[static_cast<unsigned>(d)]);  // dyadic numbers are not halfway
      return rounded;
    };
    std::map<std::array<long, 24>, std::size_t> cell_with;
    for (std::size_t c = 0; c < nodes.cells.size() / local; ++c)
      cell_with[key([&](std::size_t v) {
        auto const m = static_cast<std::size_t>(n);
        auto const node = ((v & 1) + (v >> 1 & 1) * m + (v >> 2) * m * m) * static_cast<std::size_t>(p);
        return nodes.points.data() + 3 * nodes.cells[c * local + node];
      })] = c;
    ASSERT_EQ(cell_with.size(), mesh.triangulation->n_active_cells());
    auto const lexicographic = dealii::FETools::hierarchic_to_lexicographic_numbering<3>(static_cast<unsigned>(p));
    ours.assign(dofs.n_dofs(), -1);
    std::vector<dealii::types::global_dof_index> indices(local);
    for (auto const& cell : dofs.active_cell_iterators()) {
      auto const found = cell_with.find(key([&](std::size_t v) { return cell->vertex(static_cast<unsigned>(v)); }));
      ASSERT_NE(found, cell_with.end());
      cell->get_dof_indices(indices);
      for (std::size_t i = 0; i < local; ++i) {
        auto& dof = ours[indices[i]];
        auto const other = nodes.cells[found->second * local + lexicographic[i]];
        ASSERT_TRUE(dof == -1 || dof == other) << "an unknown is shared in one numbering only";
        dof = other;
      }
    }
    ASSERT_EQ(std::set<std::int64_t>(ours.begin(), ours.end()).size(), dofs.n_dofs());
  }

  Mesh mesh;
  dealii::FE_Q<3> fe;
  dealii::MappingQ<3> mapping;
  dealii::DoFHandler<3> dofs;
  dealii::SparsityPattern pattern;
  dealii::SparseMatrix<double> matrix;
  dealii::Vector<double> rhs;
  std::vector<std::int64_t> ours;
};

/// Tolerance on curved meshes: deal.II's transfinite manifolds invert their maps to about 1e-11 of a coarse cell, and the places of
/// a node differ by so much between its cells.
constexpr double curved_places = 1e-10;

/// Applies Dirichlet values as deal.II does and compares everything.
void expect_equal(Reference& reference, Discretization& discretization, std::set<unsigned> const& dirichlet_ids, Scalar const& g,
                  double relative = 1e-13) {
  auto const system = discretization.assemble();
  auto const& matrix = system.matrix;
  reference.match(discretization);
  if (testing::Test::HasFatalFailure())
    return;
  std::map<dealii::types::global_dof_index, double> values;
  DealFunction const boundary(g);
  for (unsigned const id : dirichlet_ids)
    dealii::VectorTools::interpolate_boundary_values(reference.mapping, reference.dofs, id, boundary, values);
  dealii::Vector<double> solution(reference.dofs.n_dofs());
  dealii::MatrixTools::apply_boundary_values(values, reference.matrix, solution, reference.rhs, true);

  double scale = 0;
  for (unsigned i = 0; i < reference.matrix.m(); ++i)
    scale = std::max(scale, reference.matrix.diag_element(i));
  double const tolerance = relative * scale, rhs_tolerance = relative * std::max(scale, reference.rhs.linfty_norm());
  ASSERT_EQ(matrix.n_rows, reference.matrix.m());
  ASSERT_EQ(matrix.n_columns, reference.matrix.n());
  std::int64_t expected = 0;
  for (unsigned i = 0; i < reference.matrix.m(); ++i) {
    bool const constrained = values.contains(i);
    auto const row = reference.ours[i];
    std::map<std::int64_t, double> entries;
    for (auto a = matrix.row_ptr[row]; a < matrix.row_ptr[row + 1]; ++a) {
      ASSERT_TRUE(a == matrix.row_ptr[row] || matrix.columns[a - 1] < matrix.columns[a]) << "columns must ascend";
      entries[matrix.columns[a]] = matrix.values[a];
    }
    for (auto entry = reference.matrix.begin(i); entry != reference.matrix.end(i); ++entry) {
      bool const stored = entry->column() == i || (!constrained && !values.contains(entry->column()));
      expected += stored;
      auto const found = entries.find(reference.ours[entry->column()]);
      ASSERT_EQ(found != entries.end(), stored) << "row " << row;
      if (stored)
        ASSERT_NEAR(found->second, entry->value(), tolerance);
      else
        ASSERT_EQ(entry->value(), 0);
    }
    if (constrained) {
      ASSERT_EQ(system.rhs[row], 0);
      ASSERT_NEAR(system.constraints.value(row), values.at(i), relative == curved_places ? relative : 0.1 * relative);
      ASSERT_NEAR(reference.rhs(i), matrix.values[matrix.row_ptr[row]] * system.constraints.value(row), 10 * rhs_tolerance);
    } else {
      ASSERT_EQ(system.constraints.value(row), 0);
      ASSERT_NEAR(system.rhs[row], reference.rhs(i), rhs_tolerance);
    }
  }
  EXPECT_EQ(matrix.nnz(), expected);
  EXPECT_EQ(discretization.summary().nnz, expected);
  EXPECT_EQ(static_cast<std::int64_t>(matrix.columns.size()), expected);
  EXPECT_EQ(matrix.row_ptr.back(), expected);
}

struct MatrixCase {
  std::string name;
  MeshSpec mesh;
  int order;
  bool variable;
};

/// What listings of the tests show.
void PrintTo(MatrixCase const& item, std::ostream* out) {
  *out << item.name;
}

class Laplace : public testing::TestWithParam<MatrixCase> {};

void expect_as_matrix_creator(MatrixCase const& item, double if_straight = 1e-13, double if_curved = 1e-13) {
  SCOPED_TRACE(item.name);
  ProblemSpec spec;
  spec.mesh = item.mesh;
  spec.order = item.order;
  spec.coefficient = {{-1, {item.variable ? "1 + x*x + 0.5*sin(y*z)" : "2.5"}}};
  spec.source = item.variable ? "x - 2*y*z" : "3";
  spec.boundary = {dirichlet("1 + x*y - z")};
  Discretization discretization(spec);
  Reference reference(spec);
  DealFunction const k([&](Point const& x) { return item.variable ? 1 + x[0] * x[0] + 0.5 * std::sin(x[1] * x[2]) : 2.5; });
  DealFunction const f([&](Point const& x) { return item.variable ? x[0] - 2 * x[1] * x[2] : 3; });
  dealii::MatrixCreator::create_laplace_matrix(reference.mapping, reference.dofs,
                                               dealii::QGauss<3>(static_cast<unsigned>(item.order + 1)), reference.matrix, f,
                                               reference.rhs, &k);
  expect_equal(
      reference, discretization, reference.mesh.boundary_ids, [](Point const& x) { return 1 + x[0] * x[1] - x[2]; },
      reference.mesh.curved ? if_curved : if_straight);
}

TEST_P(Laplace, EqualsMatrixCreator) {
  expect_as_matrix_creator(GetParam());
}

/// Refined meshes are made as lattices: every generator and file, as far as its cells stay few.
TEST(RefinedMeshes, EqualMatrixCreator) {
  int lattices = 0;
  auto const expect_all = [&](MeshSpec mesh, std::string const& name) {
    for (mesh.refinements = 1; mesh.refinements <= 3; ++mesh.refinements) {
      std::int64_t const cells = predict_counts(mesh).cells;
      for (int order = 1; order <= 3 && cells * order * order * order * order <= 6000; ++order) {
        expect_as_matrix_creator(
            {name + " refined " + std::to_string(mesh.refinements) + " times, order " + std::to_string(order), mesh, order, true},
            1e-12, curved_places);
        lattices += mesh.refinements >= 2;
      }
    }
  };
  for (std::string const& name : generator_names())
    if (name != "box")
      expect_all(generator(name, 0), name);
  for (auto const& file : project_meshes()) {
    MeshSpec mesh;
    mesh.file = file.string();
    expect_all(mesh, file.filename());
  }
  EXPECT_GT(lattices, 30);
}

std::vector<MatrixCase> matrix_cases() {
  std::vector<MatrixCase> cases;
  for (int order = 1; order <= 3; ++order)
    for (bool const variable : {false, true}) {
      auto const suffix = "_q" + std::to_string(order) + (variable ? "_variable" : "_constant");
      auto refined = box(1, 2, 1, {1, 2, 0.5});
      refined.refinements = 1;
      refined.origin = {-1, 0.25, 3};
      auto graded = box(3, 4, 2, {1, 2, 0.5});
      graded.set_coordinates(0, {-1, 0.25, 0.3, 2});
      graded.growth = {1, 1.3, 0.5};
      graded.growth_to[1] = GrowthTo::middle;
      auto refined_graded = graded;
      refined_graded.cells = {3, 2, 1};
      refined_graded.refinements = 1;
      cases.push_back({"graded_box" + suffix, graded, order, variable});
      cases.push_back({"refined_graded_box" + suffix, refined_graded, order, variable});
      cases.push_back({"box" + suffix, box(3, 4, 2, {1, 0.5, 2}), order, variable});
      cases.push_back({"refined_box" + suffix, refined, order, variable});
      cases.push_back({"ball" + suffix, generator("hyper_ball", 1), order, variable});
      cases.push_back({"shell" + suffix, generator("hyper_shell", 0, "0, 0, 0 : 0.5 : 1 : 6 : false"), order, variable});
    }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Assembly, Laplace, testing::ValuesIn(matrix_cases()), [](auto const& test) { return test.param.name; });

/// Orthotropic k, Neumann and Robin conditions: against loops over FEValues.
void compare_general(MeshSpec const& mesh, int order, std::set<unsigned> const& dirichlet_ids,
                     std::set<unsigned> const& robin_ids) {
  ProblemSpec spec;
  spec.mesh = mesh;
  spec.order = order;
  spec.coefficient = {{-1, {"1 + x*x", "2", "3 + sin(z)"}}};
  spec.source = "x + y";
  spec.boundary = {neumann("x - z*z")};
  if (!dirichlet_ids.empty())
    spec.boundary.push_back(dirichlet("y + z", {dirichlet_ids.begin(), dirichlet_ids.end()}));
  spec.boundary.push_back(robin("1 + y*y", "z", {robin_ids.begin(), robin_ids.end()}));
  Discretization discretization(spec);
  Reference reference(spec);
  using namespace dealii;
  FEValues<3> values(reference.mapping, reference.fe, QGauss<3>(static_cast<unsigned>(order + 1)),
                     update_values | update_gradients | update_JxW_values | update_quadrature_points);
  FEFaceValues<3> face_values(reference.mapping, reference.fe, QGauss<2>(static_cast<unsigned>(order + 1)),
                              update_values | update_JxW_values | update_quadrature_points);
  unsigned const n = reference.fe.n_dofs_per_cell();
  std::vector<dealii::types::global_dof_index> dofs(n);
  for (auto const& cell : reference.dofs.active_cell_iterators()) {
    cell->get_dof_indices(dofs);
    values.reinit(cell);
    for (unsigned const q : values.quadrature_point_indices()) {
      auto const x = values.quadrature_point(q);
      dealii::Tensor<1, 3> const k({1 + x[0] * x[0], 2, 3 + std::sin(x[2])});
      for (unsigned i = 0; i < n; ++i) {
        reference.rhs(dofs[i]) += values.shape_value(i, q) * (x[0] + x[1]) * values.JxW(q);
        for (unsigned j = 0; j < n; ++j)
          for (unsigned d = 0; d < 3; ++d)
            reference.matrix.add(dofs[i], dofs[j], k[d] * values.shape_grad(i, q)[d] * values.shape_grad(j, q)[d] * values.JxW(q));
      }
    }
    for (auto const& face : cell->face_iterators()) {
      if (!face->at_boundary() || dirichlet_ids.contains(face->boundary_id()))
        continue;
      bool const is_robin = robin_ids.contains(face->boundary_id());
      face_values.reinit(cell, face);
      for (unsigned const q : face_values.quadrature_point_indices()) {
        auto const x = face_values.quadrature_point(q);
        for (unsigned i = 0; i < n; ++i) {
          reference.rhs(dofs[i]) += face_values.shape_value(i, q) * (is_robin ? x[2] : x[0] - x[2] * x[2]) * face_values.JxW(q);
          if (is_robin)
            for (unsigned j = 0; j < n; ++j)
              reference.matrix.add(dofs[i], dofs[j],
                                   (1 + x[1] * x[1]) * face_values.shape_value(i, q) * face_values.shape_value(j, q) *
                                       face_values.JxW(q));
        }
      }
    }
  }
  expect_equal(reference, discretization, dirichlet_ids, [](Point const& x) { return x[1] + x[2]; });
}

TEST(GeneralForm, BoxEqualsLoopsOverFEValues) {
  for (int const order : {1, 2, 3})
    compare_general(box(3, 2, 4, {1, 2, 3}), order, {0, 3}, {1, 4});
}
TEST(GeneralForm, GradedBoxEqualsLoopsOverFEValues) {
  auto mesh = box(3, 2, 4, {1, 2, 3});
  mesh.growth = {1, 0.4, 1.5};
  mesh.set_coordinates(0, {0, 0.1, 0.5, 1});
  for (int const order : {1, 2, 3}) {
    compare_general(mesh, order, {0, 3}, {1, 4});
    compare_general(mesh, order, {}, {0, 1, 2, 3, 4, 5});
  }
}
TEST(GeneralForm, BoxWithRobinOnlyEqualsLoopsOverFEValues) {
  compare_general(box(2, 3, 2), 2, {}, {0, 1, 2, 5});
}
TEST(GeneralForm, ShellEqualsLoopsOverFEValues) {
  for (int const order : {1, 2, 3})
    compare_general(generator("hyper_shell", 0, "0, 0, 0 : 0.5 : 1 : 6 : true"), order, {0}, {1});
}
TEST(GeneralForm, BallWithRobinEqualsLoopsOverFEValues) {
  for (int const order : {1, 2, 4})
    compare_general(generator("hyper_ball", 0), order, {}, {0});
}

TEST(System, IsSymmetricToTheLastBitAndHasZeroRowSumsForPureNeumann) {
  MeshFile file;
  file.add_block({0, 0, 0}, {1, 1, 1}, {4, 3, 5}, 0.2);
  for (auto const& mesh : {box(5, 4, 6), generator("hyper_ball", 1), file.spec()})
    for (int const order : {1, 2, 3}) {
      ProblemSpec spec;
      spec.mesh = mesh;
      spec.order = order;
      spec.coefficient = {{-1, {"2 + sin(7*x + y)"}}};
      spec.boundary = {neumann("0")};
      Discretization discretization(spec);
      auto const system = discretization.assemble();
      EXPECT_TRUE(system.pure_neumann);
      auto const& m = system.matrix;
      for (std::int64_t i = 0; i < m.n_rows; ++i) {
        double sum = 0, size = 0;
        for (auto a = m.row_ptr[i]; a < m.row_ptr[i + 1]; ++a) {
          auto const j = m.columns[a];
          auto const* const first = m.columns.data() + m.row_ptr[j];
          auto const* const last = m.columns.data() + m.row_ptr[j + 1];
          auto const* const found = std::lower_bound(first, last, static_cast<std::int32_t>(i));
          ASSERT_TRUE(found != last && *found == i);
          ASSERT_EQ(m.values[a], m.values[found - m.columns.data()]);
          sum += m.values[a];
          size += std::abs(m.values[a]);
        }
        ASSERT_LT(std::abs(sum), 1e-13 * size);
      }
    }
}

/// Every array has the same bits, and so has what is computed from them.
TEST(System, DoesNotDependOnTheNumberOfThreads) {
  int const before = thread_count();
  MeshFile file;
  file.add_block({0, 0, 0}, {1, 1, 1}, {9, 8, 7}, 0.2);
  for (auto const& mesh : {box(6, 5, 40), generator("hyper_ball", 1), generator("hyper_ball", 2), file.spec()})
    for (int const order : {1, 3}) {
      ProblemSpec spec;
      spec.mesh = mesh;
      spec.order = order;
      spec.coefficient = {{-1, {"1 + x*x"}}};
      spec.source = "exp(x)*y";
      spec.exact = "sin(x + y)";
      spec.boundary = {robin("1 + x*x", "y")};
      std::vector<LinearSystem> systems;
      std::vector<ErrorNorms> errors;
      std::vector<SolutionFields> fields;
      std::vector<NodeArrays> nodes;
      for (int const threads : {1, 2, 3}) {
        set_thread_count(threads);
        Discretization discretization(spec);
        systems.push_back(discretization.assemble());
        errors.push_back(discretization.errors(systems.back().rhs));
        fields.push_back(discretization.fields(systems.back().rhs));
        nodes.push_back(nodes_of(discretization));
      }
      set_thread_count(before);
      for (std::size_t i = 1; i < systems.size(); ++i) {
        EXPECT_EQ(systems[0].matrix.row_ptr, systems[i].matrix.row_ptr);
        EXPECT_EQ(systems[0].matrix.columns, systems[i].matrix.columns);
        EXPECT_EQ(systems[0].matrix.values, systems[i].matrix.values);
        EXPECT_EQ(systems[0].rhs, systems[i].rhs);
        EXPECT_EQ(errors[0].l2, errors[i].l2);
        EXPECT_EQ(errors[0].h1_seminorm, errors[i].h1_seminorm);
        EXPECT_EQ(errors[0].linf, errors[i].linf);
        EXPECT_TRUE(std::ranges::equal(fields[0].u, fields[i].u));
        EXPECT_EQ(nodes[0].points, nodes[i].points);
        EXPECT_EQ(nodes[0].cells, nodes[i].cells);
        EXPECT_TRUE(std::ranges::equal(fields[0].flux, fields[i].flux));
      }
    }
}

TEST(System, SingleCellWithDirichletValuesAllAroundIsDiagonal) {
  ProblemSpec spec;
  spec.mesh = box(1, 1, 1);
  spec.boundary = {dirichlet("x + 2*y + 4*z")};
  Discretization discretization(spec);
  auto const system = discretization.assemble();
  ASSERT_EQ(system.matrix.nnz(), 8);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(system.matrix.columns[i], i);
    EXPECT_NEAR(system.matrix.values[i], 1.0 / 3, 1e-15);  // the Q1 stiffness of the unit cube
    EXPECT_EQ(system.rhs[i], 0);
    EXPECT_EQ(system.constraints.value(i), i);
  }
}

TEST(System, BoxIsNumberedLexicographicallyWhateverTheRefinements) {
  for (int const order : {1, 2, 4}) {
    ProblemSpec spec;
    spec.order = order;
    spec.mesh = box(1, 2, 1);
    spec.mesh.refinements = 2;
    spec.boundary = {neumann("0")};
    Discretization discretization(spec);
    auto const system = discretization.assemble();
    EXPECT_TRUE(discretization.summary().lexicographic);
    std::set<std::int64_t> diagonals;
    for (std::int64_t i = 0; i < system.matrix.n_rows; ++i)
      for (auto a = system.matrix.row_ptr[i]; a < system.matrix.row_ptr[i + 1]; ++a)
        diagonals.insert(system.matrix.columns[a] - i);
    std::int64_t const width = 2 * order + 1;
    EXPECT_EQ(static_cast<std::int64_t>(diagonals.size()), width * width * width);
    EXPECT_EQ(discretization.summary().n_diagonals, width * width * width);
    if (order <= 2) {  // output nodes are the unknowns' own
      auto const nodes = nodes_of(discretization);
      std::int64_t const nx = 4 * order + 1, ny = 8 * order + 1;
      for (std::int64_t i = 0; i < system.matrix.n_rows; ++i) {
        EXPECT_NEAR(nodes.points[3 * i], static_cast<double>(i % nx) / static_cast<double>(nx - 1), 1e-15);
        EXPECT_NEAR(nodes.points[3 * i + 1], static_cast<double>(i / nx % ny) / static_cast<double>(ny - 1), 1e-15);
        EXPECT_NEAR(nodes.points[3 * i + 2], static_cast<double>(i / nx / ny) / static_cast<double>(nx - 1), 1e-15);
      }
    }
  }
}

TEST(Estimate, CountsAreThoseOfTheAssembledMatrix) {
  std::vector<MeshSpec> meshes{box(1, 1, 1),
                               box(1, 3, 2),
                               box(2, 1, 5),
                               box(4, 3, 2),
                               generator("hyper_ball", 0),
                               generator("hyper_ball", 1),
                               generator("hyper_shell", 0),
                               generator("cylinder", 1)};
  for (auto const& mesh : meshes)
    for (int const order : {1, 2, 3}) {
      ProblemSpec spec;
      spec.mesh = mesh;
      spec.order = order;
      spec.boundary = {neumann("0")};
      auto const expected = estimate(spec);
      Discretization discretization(spec);
      EXPECT_EQ(discretization.summary().nnz, expected.mesh.nnz);
      auto const system = discretization.assemble();
      auto const& found = discretization.summary();
      EXPECT_EQ(expected.mesh.cells, found.cells);
      EXPECT_EQ(expected.mesh.vertices, found.vertices);
      EXPECT_EQ(expected.mesh.dofs, system.matrix.n_rows);
      EXPECT_EQ(expected.mesh.nnz, system.matrix.nnz()) << mesh.generator << ' ' << order;
      EXPECT_EQ(expected.mesh.boundary_ids, found.boundary_ids);
      EXPECT_GT(expected.host_bytes, system.matrix.bytes());
      if (found.lexicographic) {
        std::set<std::int64_t> diagonals;
        for (std::int64_t i = 0; i < system.matrix.n_rows; ++i)
          for (auto a = system.matrix.row_ptr[i]; a < system.matrix.row_ptr[i + 1]; ++a)
            diagonals.insert(system.matrix.columns[a] - i);
        EXPECT_EQ(expected.mesh.n_diagonals, static_cast<std::int64_t>(diagonals.size()));
      }
    }
}

}  // namespace
}  // namespace poisson::assembly
