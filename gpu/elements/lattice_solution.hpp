#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/field_data.hpp"
#include "gpu/core/lattice_problem.hpp"
#include "gpu/elements/element_solution.hpp"
#include "gpu/kernels/lattice_solution.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace poisson {

/// What is asked of a solution of elements of order p on a mesh of lattices. Results are those of the points and maps of
/// LatticeSystem. `u` has the values at the unknowns that LatticeGeometry::numbers names; where these are not those of the layout,
/// each question puts u in the order of the layout first, 20 bytes an unknown. The backend's memory holds the coordinates of all
/// nodes, 24 bytes each, the tables of rims, and where it is put in order u; of a box (LatticeLayout) nothing of that. It is used
/// by one thread at a time.
class LatticeSolution final : public ElementSolution {
public:
  /// `coordinates`: those of the nodes of all lattices, where they are in the backend's memory already
  /// (LatticeSystem::take_coordinates); the layout has lists of copies then. Throws OutOfMemoryError. Preconditions: order <=
  /// max_order; there are lattices.
  LatticeSolution(Context& context, LatticeGeometry const& mesh, Array<double> coordinates = {});

  [[nodiscard]] std::vector<OfMaterial> of_materials(double const* u) const override;
  [[nodiscard]] ExtremeNodes first_places(double const* u, double low, double high) const override;
  /// Of a whole mesh, which may have to make nodes to tell it (assembly's LatticeNodes).
  [[nodiscard]] std::optional<std::array<double, 3>> point_of(std::int64_t unknown) const override;
  [[nodiscard]] Errors errors(double const* u, ExpressionCode const& exact, double shift, int points) const override;
  [[nodiscard]] Mean mean_of_exact(ExpressionCode const& exact, int points) const override;

private:
  /// An expression in the backend's memory.
  struct Function {
    PlaceFunction function;
    Array<Instruction> code;
  };
  [[nodiscard]] Function on_backend(ExpressionCode const& code) const;
  /// The integrals over these lattices by so many points per direction. Throws DataError.
  [[nodiscard]] LatticeSums integrate(LatticeList const& lattices, LatticeIntegrand const& integrand, int points) const;
  [[nodiscard]] LatticeList all() const { return {nullptr, elements_.lattices.n_lattices}; }
  /// Throws DataError for the point with this number: see LatticeSums.
  [[noreturn]] void refuse(LatticeList const& lattices, std::int64_t number, int points, DataError::Quantity quantity) const;
  /// u in the order of the layout.
  [[nodiscard]] double const* in_layout(double const* u) const;

  Context& context_;
  LatticeSolutionKernels const& kernels_;
  LatticeArrays lattices_;
  Array<double> coordinates_, points_;
  std::array<Array<double>, 3> lines_;  ///< of a box
  Array<std::int32_t> numbers_;
  mutable Array<double> in_layout_;  ///< for u, where that is another order
  LatticeElements elements_;
  std::vector<std::vector<ExpressionCode>> coefficients_;  ///< of the materials
  std::vector<Array<std::int32_t>> lattices_of_;           ///< of each material, if there are several
  Array<std::int32_t> labels_;                             ///< of the cells: their materials, where those of a lattice differ
};

}  // namespace poisson
