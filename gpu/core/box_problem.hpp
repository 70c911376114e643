#pragma once

#include "gpu/core/expression_code.hpp"
#include "gpu/core/field_data.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace poisson {

/// -div(k grad u) = f on a box that is cut in cells, with one condition on each face: what gpu/elements assembles. Nodes are
/// numbered lexicographically, x fastest.
struct BoxProblem {
  std::array<std::int64_t, 3> cells{};
  std::array<double, 3> origin{}, extent{};
  std::vector<ExpressionCode> coefficient;  ///< k; kx, ky, kz; or the entries of a tensor (gpu/core/tensor_entries.hpp)
  ExpressionCode source;                    ///< f

  struct Face {
    /// cut: this box is part of a larger one, and what is beyond is left out; `value` is 0. periodic: so is the face on the other
    /// side, and u on the face with the larger coordinate is u there plus its `value`, a number; that of the other one is 0.
    enum class Type { dirichlet, neumann, robin, cut, periodic };
    Type type{};
    int rank = 0;          ///< at edges the Dirichlet face of the lowest rank counts
    ExpressionCode value;  ///< u; k du/dn; k du/dn + alpha u
    ExpressionCode alpha;  ///< robin only
  };
  std::array<Face, 6> faces;  ///< -x +x -y +y -z +z
  /// `coordinates` are those of the nodes, ascending, in directions whose cells differ in size. Empty: cells are equal.
  std::array<std::vector<double>, 3> coordinates{};

  /// Where only the host can evaluate k or f, such as fields from files or values by material: values of component c (of f 0) at
  /// the two Gauss points per direction of `count` planes of cells from `first` on, x fastest. The code of that function does not
  /// count then, nor does its check. Empty: the code does.
  using PlaneValues = std::function<void(std::int64_t first, std::int64_t count, int c, double* values)>;
  PlaneValues coefficient_on_host{}, source_on_host{};

  /// What a solution is asked by, where cells differ by material and all k are code.
  struct Materials {
    std::vector<std::vector<ExpressionCode>> coefficients;  ///< k of each, likewise
    /// Writes the numbers of the materials of the cells of `count` planes from `first` on, x fastest.
    std::function<void(std::int64_t first, std::int64_t count, std::uint8_t* numbers)> of_planes;
    bool has_void = false;  ///< the first material is not there: its k is 0
    /// f of each material, where it is constant in all of them; else empty. It then stands in place of source_on_host.
    std::vector<double> sources{};
  };
  static constexpr std::size_t most_materials = 255;
  std::optional<Materials> materials{};

  /// Where the box is part of a larger one: the cells whose source counts in ElementSystem::source, first <= cell < end per
  /// direction. None: all of them.
  struct Cells {
    std::array<std::int64_t, 3> first{}, end{};
  };
  std::optional<Cells> cells_in_sums{};

  [[nodiscard]] bool is_periodic(std::size_t direction) const { return faces[2 * direction].type == Face::Type::periodic; }
  [[nodiscard]] bool has_equal_cells() const { return coordinates[0].empty() && coordinates[1].empty() && coordinates[2].empty(); }
};

}  // namespace poisson
