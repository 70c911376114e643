#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace poisson::assembly {

/// A node on a periodic boundary.
struct PeriodicNode {
  unsigned boundary = 0;    ///< its id
  bool fixed = false;       ///< it has a Dirichlet value, too
  std::int64_t number = 0;  ///< of the unknown
  std::array<double, 3> at{};
  bool hangs = false;  ///< it is of a smaller cell on an edge of a larger one, which may have a node at the same place
};
/// u at a node is u at another one plus `offset`.
struct PeriodicTie {
  std::int64_t number = 0, to = 0;
  double offset = 0;
};
/// Two nodes that a periodic condition joins: `second` is the image of `first`.
struct PeriodicNodePair {
  std::size_t condition = 0;  ///< its place in ProblemData::boundary
  std::int64_t first = 0, second = 0;
  std::array<double, 3> at_second{};
};
/// What one of the boundaries of a node has of k du/dn. The node is on a periodic boundary; this one is periodic, or has Dirichlet
/// values.
struct PeriodicFlux {
  PeriodicNode node;    ///< and the boundary
  bool inside = false;  ///< it is no boundary, but a surface inside the mesh with Dirichlet values
  double conormal = 0;  ///< int k du/dn phi over the boundary, from the gradient of u; phi is the basis function of the node
  double weight = 0;    ///< int phi over it
  double residual = 0;  ///< int k grad u . grad phi - int f phi - int g phi: of the node, whatever the boundary
};

}  // namespace poisson::assembly
