#pragma once

#include "gpu/core/host_vector.hpp"

#include <array>
#include <cstdint>
#include <variant>

/// What is told of a solution, as plain arrays.
namespace poisson::assembly {

struct ErrorNorms {
  double l2 = 0, h1_seminorm = 0, linf = 0;  ///< absolute; linf over quadrature points and nodes
};

/// What a solution amounts to. Integrals are over the mesh, by the quadrature of the assembly: Gauss points, order + 1 per
/// direction.
struct Quantities {
  double min = 0, max = 0;                   ///< of u at the nodes
  std::array<double, 3> min_at{}, max_at{};  ///< the first such node
  double mean = 0, integral_u = 0;           ///< mean: integral over volume
  double energy = 0;                         ///< 1/2 int k |grad u|^2
};

struct Extent {
  std::array<double, 3> low{}, high{};
};

/// Points in space: low + (i hx, j hy, k hz), x fastest; one point in a direction where n is 1.
struct Lattice {
  std::array<double, 3> low{}, spacing{};
  std::array<std::int64_t, 3> n{1, 1, 1};

  [[nodiscard]] std::int64_t size() const { return n[0] * n[1] * n[2]; }
};

/// Nodes and cells for output; every node once.
struct NodeMesh {
  int order = 1;
  HostVector<double> points;  ///< x y z of each node
  HostVector<std::int64_t>
      cells;  ///< (order + 1)^3 nodes of each cell, lexicographic (x fastest), equidistant in the reference cell
};
/// A box of order 1 is the lattice of its nodes, with the cells between them, x fastest.
using OutputMesh = std::variant<Lattice, NodeMesh>;

/// The solution on the nodes and the cells of an OutputMesh.
struct SolutionFields {
  HostVector<double> u;             ///< per node
  HostVector<double> exact, error;  ///< per node; empty without `exact`
  HostVector<int> material;         ///< per cell
  HostVector<double> coefficient;   ///< per cell at the centre; 1 or 3 components
  int coefficient_components = 1;
  HostVector<double> flux;  ///< per cell at the centre, 3 components: -k grad u
};

}  // namespace poisson::assembly
