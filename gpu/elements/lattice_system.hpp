#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/lattice_problem.hpp"
#include "gpu/elements/element_system.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/kernels/lattice_elements.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace poisson {

/// The Galerkin system of elements of order p on a mesh of lattices, assembled where it will be solved, straight into half_cds
/// (p = 1) or matrix_free. Element integrals by p + 1 Gauss points per direction.
class LatticeSystem final : public ElementSystem {
public:
  /// Bytes in the backend's memory at the peak of the assembly; of matrix_free with what products in double take. Of the source and
  /// the components of k, `varying_fields` vary anywhere. `k_of_cell`: numbers of k, or of tensors, that are stored for a cell of a
  /// box.
  [[nodiscard]] static std::int64_t peak_bytes(LatticeLayout const& layout, int varying_fields, Backend backend,
                                               Format format = Format::half_cds, std::int64_t k_of_cell = 0);
  [[nodiscard]] static std::int64_t peak_bytes(LatticeProblem const& problem, Backend backend, Format format = Format::half_cds);

  /// Bytes of it that stay there, the matrix with what its products need included and the right-hand side not.
  [[nodiscard]] static std::int64_t kept_bytes(LatticeLayout const& layout, Format format = Format::half_cds,
                                               std::int64_t k_of_cell = 0);

  /// `format`: half_cds, of order 1 and with two cells a side or more, or matrix_free. Throws DataError, OutOfMemoryError,
  /// Interrupted. In a pure Neumann problem f is shifted by a constant so that the right-hand side is orthogonal to the constant
  /// vector. With `keep_coordinates` those of the nodes stay in the backend's memory.
  /// `coordinates`: of the nodes, where they are in the backend's memory already; else empty.
  LatticeSystem(Context& context, LatticeProblem const& problem, Format format = Format::half_cds, bool keep_coordinates = false,
                Array<double> coordinates = {});
  /// Gives the coordinates away that were kept, in the order of LatticeProblem; otherwise it has none.
  [[nodiscard]] Array<double> take_coordinates() { return std::move(coordinates_); }

  using ElementSystem::set_dirichlet;
  void set_dirichlet(double* x) const override;

private:
  struct Slab;
  void find_groups(Slab& slab, LatticeProblem const& problem) const;
  void evaluate(Slab& slab, ExpressionCode const& code, ListedCells const& cells, ValueCheck check, double* values,
                DataError::Quantity quantity);
  void fill(Slab& slab, LatticeProblem const& problem, std::int64_t first_layer, std::int64_t end_layer,
            LatticeTensors const& tensors);
  void add_source(Slab const& slab, std::int64_t first_layer, bool varies);
  [[nodiscard]] FieldSums sums_of_layers(Slab const& slab, double const* load, std::int64_t first_layer) const;
  void make_compatible(Slab& slab, LatticeProblem const& problem, std::int64_t at_once);
  void assemble_half_cds(LatticeProblem const& problem);
  void assemble_operator(LatticeProblem const& problem, bool keep_coordinates);
  void take_boundary(LatticeProblem const& problem, Format format);
  void add_loads(LatticeProblem const& problem);
  [[noreturn]] void refuse(std::int64_t failed, DataError::Quantity quantity) const;

  LatticeElementKernels const& kernels_;
  LatticeArrays lattices_;
  Array<double> coordinates_, fixed_value_, rim_load_, face_mass_;
  std::array<Array<double>, 3> lines_;  ///< of a box
  Array<std::uint8_t> fixed_;
  Array<std::int32_t> fixed_unknowns_;  ///< of a box; `fixed_value_` is then theirs
  Array<std::int32_t> mass_face_;
  LatticeElements elements_;
  LowestFailure failed_, not_definite_;
  double shift_ = 0;  ///< of f
  std::int64_t n_inner_;
};

/// Entries of the full matrix: `couplings` less those in rows and columns of unknowns with Dirichlet values (`fixed`, as in
/// LatticeProblem), which keep their diagonal entry. About 49 steps of a fixed unknown of order 3 on a box.
[[nodiscard]] std::int64_t count_entries(LatticeLayout const& layout, std::span<std::uint8_t const> fixed, std::int64_t couplings);

}  // namespace poisson
