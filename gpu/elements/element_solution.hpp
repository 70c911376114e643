#pragma once

#include "gpu/core/expression_code.hpp"
#include "gpu/kernels/box_solution.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace poisson {

/// What is asked of a solution of finite elements, computed where the solution is. `u` has the values at all unknowns, in the
/// memory of the backend. Results do not depend on the number of threads. Members throw OutOfMemoryError; those that integrate,
/// Interrupted.
class ElementSolution {
public:
  ElementSolution() = default;
  ElementSolution(ElementSolution const&) = delete;
  ElementSolution& operator=(ElementSolution const&) = delete;
  virtual ~ElementSolution() = default;

  /// Of one material: the least and the largest value at its nodes, and the integrals of 1, u, and grad u . k grad u over its
  /// cells, by p + 1 Gauss points per direction.
  struct OfMaterial {
    double min = 0, max = 0, volume = 0, u = 0, gradients = 0;
  };
  /// By the number of the material. Preconditions: u is finite; k is positive and finite at the Gauss points, as it is where a
  /// system was assembled.
  [[nodiscard]] virtual std::vector<OfMaterial> of_materials(double const* u) const = 0;

  /// The unknown with u <= low whose node is the first one by z, then y, then x, and that with u >= high.
  [[nodiscard]] virtual ExtremeNodes first_places(double const* u, double low, double high) const = 0;
  /// Where the node of an unknown is that first_places has named. None: the mesh tells.
  [[nodiscard]] virtual std::optional<std::array<double, 3>> point_of(std::int64_t /*unknown*/) const { return {}; }

  /// Of e = u - (exact - shift), where `exact` is interpolated at the Gauss points of each cell: the integrals of e^2 and of
  /// |grad e|^2, and the largest |e| at these points and at the nodes.
  struct Errors {
    double squares = 0, squares_of_gradients = 0, largest = 0;
  };
  /// `points` Gauss points per direction, here and below, from p + 1 to most_box_points. Throws DataError: `exact` with a place
  /// where it is not finite, `determinant` with one where the map of a cell is not admissible.
  [[nodiscard]] virtual Errors errors(double const* u, ExpressionCode const& exact, double shift, int points) const = 0;

  struct Mean {
    double integral = 0, volume = 0;
  };
  /// The integral of `exact`, and the volume. Throws DataError, as errors() does.
  [[nodiscard]] virtual Mean mean_of_exact(ExpressionCode const& exact, int points) const = 0;
};

}  // namespace poisson
