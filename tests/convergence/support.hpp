#pragma once

#include "assembly/discretization.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deal.II/lac/precondition.h>
#include <deal.II/lac/solver_cg.h>
#include <deal.II/lac/solver_control.h>
#include <deal.II/lac/vector.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

/// Tests of assembly/ solve the assembled arrays with deal.II's CG, so that nothing here depends on the solvers in gpu/.
namespace poisson::assembly::test {

using DealVector = dealii::Vector<double>;

/// The fluxes that a part of a mesh finds by its own rows. `u` has all unknowns.
inline BoundaryFluxes fluxes_of_part(Discretization const& whole, PartOfSpace const& part, std::span<double const> u) {
  Discretization const around(whole, part.around_cells, part.unknowns);
  std::vector<double> here;
  for (std::int32_t const i : part.unknowns)
    here.push_back(u[static_cast<std::size_t>(i)]);
  std::vector<std::uint8_t> counted(part.unknowns.size(), 0);
  std::fill_n(counted.begin(), part.n_rows, std::uint8_t{1});
  return around.residual_fluxes(here, counted);
}

struct CsrOperator {
  CsrMatrix const& matrix;
  void vmult(DealVector& y, DealVector const& x) const {
    for (std::int64_t i = 0; i < matrix.n_rows; ++i) {
      double sum = 0;
      for (auto a = matrix.row_ptr[i]; a < matrix.row_ptr[i + 1]; ++a)
        sum += matrix.values[a] * x(static_cast<unsigned>(matrix.columns[a]));
      y(static_cast<unsigned>(i)) = sum;
    }
  }
};

struct JacobiPreconditioner {
  explicit JacobiPreconditioner(CsrMatrix const& matrix) : inverse(static_cast<unsigned>(matrix.n_rows)) {
    for (std::int64_t i = 0; i < matrix.n_rows; ++i)
      for (auto a = matrix.row_ptr[i]; a < matrix.row_ptr[i + 1]; ++a)
        if (matrix.columns[a] == i)
          inverse(static_cast<unsigned>(i)) = 1 / matrix.values[a];
  }
  void vmult(DealVector& y, DealVector const& x) const {
    y = x;
    y.scale(inverse);
  }
  DealVector inverse;
};

/// u, Dirichlet values included; of mean zero for pure Neumann problems.
inline std::vector<double> solve(Discretization& discretization) {
  auto const system = discretization.assemble();
  auto const n = static_cast<unsigned>(system.matrix.n_rows);
  DealVector x(n), b(n);
  for (unsigned i = 0; i < n; ++i)
    b(i) = system.rhs[i];
  dealii::ReductionControl control(10000, 1e-300, 1e-13);
  dealii::SolverCG<DealVector> cg(control);
  if (b.l2_norm() > 0)
    cg.solve(CsrOperator{system.matrix}, x, b, JacobiPreconditioner(system.matrix));
  auto const u = discretization.reconstruct(system, HostVector<double>(x.begin(), x.end()));
  return {u.begin(), u.end()};
}

/// Nodes and cells for output as arrays.
struct NodeArrays {
  int order = 1;
  HostVector<double> points;
  HostVector<std::int64_t> cells;
};
inline NodeArrays nodes_of(Discretization const& discretization) {
  auto const mesh = discretization.output_mesh();
  NodeArrays nodes;
  if (auto const* const made = std::get_if<NodeMesh>(&mesh)) {
    nodes.order = made->order;
    nodes.points.assign(made->points.begin(), made->points.end());
    nodes.cells.assign(made->cells.begin(), made->cells.end());
    return nodes;
  }
  auto const& lattice = std::get<Lattice>(mesh);
  auto const [nx, ny, nz] = lattice.n;
  for (std::int64_t i = 0; i < lattice.size(); ++i) {
    std::array<std::int64_t, 3> const index{i % nx, i / nx % ny, i / (nx * ny)};
    for (std::size_t d = 0; d < 3; ++d)
      nodes.points.push_back(lattice.low[d] + static_cast<double>(index[d]) * lattice.spacing[d]);
    if (index[0] + 1 < nx && index[1] + 1 < ny && index[2] + 1 < nz)
      for (std::int64_t corner = 0; corner < 8; ++corner)
        nodes.cells.push_back(i + corner % 2 + corner / 2 % 2 * nx + corner / 4 * nx * ny);
  }
  return nodes;
}

inline ErrorNorms solve_and_measure(ProblemSpec const& spec) {
  Discretization discretization(spec);
  return discretization.errors(solve(discretization));
}

inline BoundaryCondition dirichlet(std::string value, std::vector<unsigned> ids = {}) {
  return {ids.empty(), std::move(ids), {}, BoundaryType::dirichlet, std::move(value), "0"};
}
inline BoundaryCondition neumann(std::string value, std::vector<unsigned> ids = {}) {
  return {ids.empty(), std::move(ids), {}, BoundaryType::neumann, std::move(value), "0"};
}
inline BoundaryCondition robin(std::string alpha, std::string value, std::vector<unsigned> ids = {}) {
  return {ids.empty(), std::move(ids), {}, BoundaryType::robin, std::move(value), std::move(alpha)};
}

/// Blocks of hexahedra in a Gmsh 2.2 file that is removed with this object. Nodes on the surface of a block stay in place, those
/// inside are moved by up to `distortion` cell sizes.
class MeshFile {
public:
  using Material = std::function<int(double x, double y, double z)>;

  MeshFile() {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("poisson_test_" + std::to_string(getpid()) + "_" + std::to_string(count++) + ".msh"))
                .string();
  }
  MeshFile(MeshFile const&) = delete;
  MeshFile& operator=(MeshFile const&) = delete;
  ~MeshFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  MeshFile& add_block(
      std::array<double, 3> origin, std::array<double, 3> extent, std::array<int, 3> n, double distortion = 0,
      Material const& material = [](double, double, double) { return 0; }) {
    auto const first = points_.size();
    for (int k = 0; k <= n[2]; ++k)
      for (int j = 0; j <= n[1]; ++j)
        for (int i = 0; i <= n[0]; ++i) {
          std::array<int, 3> const index{i, j, k};
          std::array<double, 3> x{};
          bool inside = true;
          for (std::size_t d = 0; d < 3; ++d)
            inside = inside && index[d] > 0 && index[d] < n[d];
          for (std::size_t d = 0; d < 3; ++d) {
            double const shift = inside ? distortion * std::sin(3.0 * i + 5.0 * j + 7.0 * k + 2.0 * static_cast<double>(d)) : 0;
            x[d] = origin[d] + extent[d] * (index[d] + shift) / n[d];
          }
          points_.push_back(x);
        }
    auto const at = [&](int i, int j, int k) { return first + static_cast<std::size_t>((k * (n[1] + 1) + j) * (n[0] + 1) + i); };
    for (int k = 0; k < n[2]; ++k)
      for (int j = 0; j < n[1]; ++j)
        for (int i = 0; i < n[0]; ++i) {
          cells_.push_back({at(i, j, k), at(i + 1, j, k), at(i + 1, j + 1, k), at(i, j + 1, k), at(i, j, k + 1),
                            at(i + 1, j, k + 1), at(i + 1, j + 1, k + 1), at(i, j + 1, k + 1)});
          materials_.push_back(material(origin[0] + extent[0] * (i + 0.5) / n[0], origin[1] + extent[1] * (j + 0.5) / n[1],
                                        origin[2] + extent[2] * (k + 0.5) / n[2]));
        }
    return *this;
  }

  /// Quadrilaterals with an id on all faces of cells whose four corners are where `holds` says, each once.
  MeshFile& add_surface(int id, std::function<bool(std::array<double, 3> const& x)> const& holds) {
    constexpr std::array<std::array<int, 4>, 6> faces{
        {{0, 3, 7, 4}, {1, 2, 6, 5}, {0, 1, 5, 4}, {3, 2, 6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}}};
    std::set<std::array<std::size_t, 4>> known;
    for (auto const& cell : cells_)
      for (auto const& face : faces) {
        std::array<std::size_t, 4> quad{};
        bool all = true;
        for (std::size_t v = 0; v < 4; ++v) {
          quad[v] = cell[static_cast<std::size_t>(face[v])];
          all = all && holds(points_[quad[v]]);
        }
        auto sorted = quad;
        std::sort(sorted.begin(), sorted.end());
        if (all && known.insert(sorted).second)
          quads_.push_back({id, quad});
      }
    return *this;
  }

  [[nodiscard]] MeshSpec spec() const {
    std::ofstream out(path_);
    out.precision(17);
    out << "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n" << points_.size() << '\n';
    for (std::size_t i = 0; i < points_.size(); ++i)
      out << i + 1 << ' ' << points_[i][0] << ' ' << points_[i][1] << ' ' << points_[i][2] << '\n';
    out << "$EndNodes\n$Elements\n" << quads_.size() + cells_.size() << '\n';
    for (std::size_t i = 0; i < quads_.size(); ++i) {
      out << cells_.size() + i + 1 << " 3 2 " << quads_[i].id << ' ' << quads_[i].id;
      for (auto const node : quads_[i].nodes)
        out << ' ' << node + 1;
      out << '\n';
    }
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      out << i + 1 << " 5 2 " << materials_[i] << ' ' << materials_[i];
      for (auto const node : cells_[i])
        out << ' ' << node + 1;
      out << '\n';
    }
    out << "$EndElements\n";
    MeshSpec mesh;
    mesh.file = path_;
    return mesh;
  }

private:
  std::string path_;
  std::vector<std::array<double, 3>> points_;
  std::vector<std::array<std::size_t, 8>> cells_;
  struct Quad {
    int id;
    std::array<std::size_t, 4> nodes;
  };
  std::vector<Quad> quads_;
  std::vector<int> materials_;
};

inline MeshSpec box(std::int64_t nx, std::int64_t ny, std::int64_t nz, std::array<double, 3> extent = {1, 1, 1}) {
  MeshSpec mesh;
  mesh.cells = {nx, ny, nz};
  mesh.extent = extent;
  return mesh;
}

inline MeshSpec generator(std::string name, int refinements, std::string arguments = "") {
  MeshSpec mesh;
  mesh.generator = std::move(name);
  mesh.arguments = std::move(arguments);
  mesh.refinements = refinements;
  return mesh;
}

}  // namespace poisson::assembly::test
