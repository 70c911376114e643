#pragma once

#include "gpu/core/host_vector.hpp"
#include "tests/gpu/lattices.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace poisson::testing {

/// Where u = 0, by the indices of a node of the whole box and its last ones.
using Fixed = std::function<bool(std::array<std::int64_t, 3> const&, std::array<std::int64_t, 3> const&)>;

inline bool nowhere(std::array<std::int64_t, 3> const&, std::array<std::int64_t, 3> const&) {
  return false;
}
inline bool on_first_face(std::array<std::int64_t, 3> const& at, std::array<std::int64_t, 3> const&) {
  return at[0] == 0;
}
inline bool all_around(std::array<std::int64_t, 3> const& at, std::array<std::int64_t, 3> const& last) {
  for (std::size_t d = 0; d < 3; ++d)
    if (at[d] == 0 || at[d] == last[d])
      return true;
  return false;
}

/// A box of lattices with cells of size 1, the Laplacian of trilinear elements on it, and b = 1.
struct LatticeCase {
  std::array<std::int64_t, 3> lattices;
  std::int32_t cells;
  Fixed fixed = all_around;
  std::function<double(std::int64_t)> k = [](std::int64_t) { return 1.0; };  ///< by lattice

  [[nodiscard]] std::string text() const {
    return std::to_string(lattices[0]) + "x" + std::to_string(lattices[1]) + "x" + std::to_string(lattices[2]) + " of " +
           std::to_string(cells);
  }
};

/// int grad phi_a . grad phi_b over a cube of size 1, by how many indices of the two corners differ.
inline constexpr std::array<double, 4> element_entry{1.0 / 3, 0, -1.0 / 12, -1.0 / 12};

inline HostVector<double> laplacian(test::LatticeBox const& box, LatticeCase const& which) {
  std::int64_t const m = box.layout.nodes(), n = box.layout.n_lattices * m * m * m;
  HostVector<double> values(static_cast<std::size_t>(14 * n), -0.0);
  auto const is_fixed = [&](std::int64_t node) {
    std::array<std::int64_t, 3> const at{node % box.nodes[0], node / box.nodes[0] % box.nodes[1],
                                         node / (box.nodes[0] * box.nodes[1])};
    return which.fixed(at, {box.nodes[0] - 1, box.nodes[1] - 1, box.nodes[2] - 1});
  };
  for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
    for (std::int64_t cell = 0; cell < (m - 1) * (m - 1) * (m - 1); ++cell)
      for (int a = 0; a < 8; ++a)
        for (int b = 0; b < 8; ++b) {
          auto const corner = [&](int of) {
            return std::array<std::int64_t, 3>{cell % (m - 1) + (of & 1), cell / (m - 1) % (m - 1) + (of >> 1 & 1),
                                               cell / ((m - 1) * (m - 1)) + (of >> 2)};
          };
          auto const x = corner(a), y = corner(b);
          std::int64_t const d = 9 * (x[2] - y[2]) + 3 * (x[1] - y[1]) + x[0] - y[0];
          std::int64_t const node = box.node(l, x[0], x[1], x[2]), other = box.node(l, y[0], y[1], y[2]);
          if (d < 0 || (node != other && (is_fixed(node) || is_fixed(other))))
            continue;
          int const differ = ((a ^ b) & 1) + ((a ^ b) >> 1 & 1) + ((a ^ b) >> 2);
          double& value = values[static_cast<std::size_t>(d * n + ((l * m + x[2]) * m + x[1]) * m + x[0])];
          value += which.k(l) * element_entry[static_cast<std::size_t>(differ)];
        }
  return values;
}

}  // namespace poisson::testing
