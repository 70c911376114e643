/// Times Discretization against deal.II's MatrixCreator on the same mesh, with the same threads. Arguments: names of cases
/// (default: all). Prints a table; one case a process, or peaks are those of the cases before.
#include "assembly/dealii/mesh.hpp"
#include "assembly/discretization.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "assembly/system/system.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/threads.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deal.II/base/function.h>
#include <deal.II/base/multithread_info.h>
#include <deal.II/base/quadrature_lib.h>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/dofs/dof_renumbering.h>
#include <deal.II/dofs/dof_tools.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/mapping_q.h>
#include <deal.II/lac/dynamic_sparsity_pattern.h>
#include <deal.II/lac/sparse_matrix.h>
#include <deal.II/lac/vector.h>
#include <deal.II/numerics/matrix_creator.h>
#include <deal.II/numerics/vector_tools.h>
#include <fstream>
#include <string>
#include <vector>

using namespace poisson;
using namespace poisson::assembly;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Largest resident set so far, in GB.
double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:"))
      return std::stod(line.substr(6)) / (1 << 20);
  return 0;
}

struct Case {
  std::string name;
  ProblemSpec spec;
};

ProblemSpec box(std::int64_t n, int order, std::string const& k = "1", std::string const& f = "1") {
  ProblemSpec spec;
  spec.mesh.cells = {n, n, n};
  spec.order = order;
  spec.coefficient = {{-1, {k}}};
  spec.source = f;
  spec.boundary = {{.all_ids = true, .ids = {}, .names = {}, .type = BoundaryType::dirichlet}};
  return spec;
}

ProblemSpec ball(int refinements, int order) {
  ProblemSpec spec = box(1, order);
  spec.mesh.generator = "hyper_ball";
  spec.mesh.refinements = refinements;
  return spec;
}

void run(Case const& item) {
  AssemblyTimes times;
  {  // the inside of Discretization, for times that it does not tell apart
    ReferenceElement const element(item.spec.order);
    auto const counts = predict_counts(item.spec.mesh);
    ProblemData const data(item.spec, PlaceNames(counts, item.spec.mesh));
    Space const space = counts.box ? Space(*counts.box, element) : Space(make_mesh(item.spec.mesh), element);
    (void)assemble_system(space, element, data, Constraints(), &times);
  }
  auto t = now();
  Discretization discretization(item.spec);
  double const space_seconds = now() - t;
  t = now();
  auto const system = discretization.assemble();
  double const assemble_seconds = now() - t;
  double const assemble_peak = peak_memory();
  std::vector<double> const zero(system.rhs.size());
  t = now();
  auto const mesh = discretization.output_mesh();
  auto const fields = discretization.fields(zero);
  double const fields_seconds = now() - t;
  double errors_seconds = 0;
  if (item.spec.exact) {
    t = now();
    (void)discretization.errors(zero);
    errors_seconds = now() - t;
  }
  std::printf(
      "%-14s %8lld unknowns %9lld stored | poisson: mesh and numbering %5.2f, pattern %5.2f, matrix %5.2f, assemble() %5.2f s, "
      "peak %.2f GB | fields %5.2f, errors %5.2f s\n",
      item.name.c_str(), static_cast<long long>(system.matrix.n_rows), static_cast<long long>(system.matrix.nnz()), space_seconds,
      times.pattern, times.values, assemble_seconds, assemble_peak, fields_seconds, errors_seconds);
  std::fflush(stdout);
}

void run_dealii(Case const& item) {
  auto t = now();
  auto const mesh = make_mesh(item.spec.mesh);
  double const mesh_seconds = now() - t;
  t = now();
  dealii::FE_Q<3> const fe(item.spec.order);
  dealii::MappingQ<3> const mapping(mesh.curved ? item.spec.order : 1);
  dealii::DoFHandler<3> dofs(*mesh.triangulation);
  dofs.distribute_dofs(fe);
  if (!mesh.box)
    dealii::DoFRenumbering::Cuthill_McKee(dofs);
  double const dof_seconds = now() - t;
  t = now();
  dealii::SparsityPattern pattern;
  {
    dealii::DynamicSparsityPattern dynamic(dofs.n_dofs());
    dealii::DoFTools::make_sparsity_pattern(dofs, dynamic);
    pattern.copy_from(dynamic);
  }
  double const pattern_seconds = now() - t;
  t = now();
  dealii::SparseMatrix<double> matrix(pattern);
  dealii::Vector<double> rhs(dofs.n_dofs());
  dealii::Functions::ConstantFunction<3> const one(1.0);
  dealii::MatrixCreator::create_laplace_matrix(mapping, dofs, dealii::QGauss<3>(item.spec.order + 1), matrix, one, rhs, &one);
  double const assemble_seconds = now() - t;
  std::printf("%-14s %8lld unknowns %9lld stored | deal.II: mesh %5.2f, numbering %5.2f, pattern %5.2f, matrix %5.2f s, peak so "
              "far %.2f GB\n",
              item.name.c_str(), static_cast<long long>(matrix.m()), static_cast<long long>(matrix.n_nonzero_elements()),
              mesh_seconds, dof_seconds, pattern_seconds, assemble_seconds, peak_memory());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string const k = "1 + x*y", f = "sin(pi*x)*sin(pi*y)*sin(pi*z)";
  std::vector<Case> cases{{"box_64_q1", box(64, 1)},
                          {"box_128_q1", box(128, 1)},
                          {"box_128_q1_var", box(128, 1, k, f)},
                          {"box_32_q2", box(32, 2)},
                          {"box_32_q2_var", box(32, 2, k, f)},
                          {"ball_q1", ball(5, 1)},
                          {"ball_q2", ball(4, 2)},
                          {"ball_q4", ball(3, 4)},
                          {"ball_q1_large", ball(6, 1)}};
  cases[2].spec.exact = f;
  bool const with_dealii = std::none_of(argv + 1, argv + argc, [](char const* a) { return std::strcmp(a, "--no-dealii") == 0; });
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--no-dealii") != 0)
      names.emplace_back(argv[i]);
  dealii::MultithreadInfo::set_thread_limit(static_cast<unsigned>(thread_count()));
  std::printf("%d threads; deal.II %s; k = 1, f = 1, all Dirichlet ('var': k = %s, f = %s)\n", thread_count(),
              DEAL_II_PACKAGE_VERSION, k.c_str(), f.c_str());
  for (auto const& item : cases) {
    if (!names.empty() && std::find(names.begin(), names.end(), item.name) == names.end())
      continue;
    run(item);
    if (with_dealii)
      run_dealii(item);
  }
}
