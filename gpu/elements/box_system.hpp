#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/box_problem.hpp"
#include "gpu/elements/element_system.hpp"
#include "gpu/formats/stored_rim.hpp"
#include "gpu/kernels/block_rim.hpp"
#include "gpu/kernels/box_elements.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace poisson {

/// The Galerkin system of trilinear elements on a box, assembled where it will be solved, straight into half_cds, or matrix_free:
/// no mesh, no CSR. Element integrals by two Gauss points per direction.
class BoxSystem final : public ElementSystem {
public:
  /// Whether a box is assembled here: at least three nodes per direction and less than 2^31 nodes.
  [[nodiscard]] static bool fits(std::array<std::int64_t, 3> const& cells);
  /// Whether a problem is assembled here into a format: the box fits, and where it is matrix_free cells are equal, and k is
  /// constant, or is that in each material while there is no Robin face.
  [[nodiscard]] static bool can_assemble(BoxProblem const& problem, Format format);
  /// Bytes in the backend's memory at the peak of the assembly.
  [[nodiscard]] static std::int64_t peak_bytes(BoxProblem const& problem, Format format, Backend backend);
  /// Returns the bytes in the backend's memory at the peak of the assembly of a box of these cells, whose source and components of
  /// k vary in `varying_fields` cases. The source of graded cells and of a part of a box counts twice. `from_labels`: a matrix_free
  /// whose k are those of materials.
  [[nodiscard]] static std::int64_t peak_bytes(std::array<std::int64_t, 3> const& cells, int varying_fields, Format format,
                                               Backend backend, bool from_labels = false);

  /// Precondition: can_assemble. Throws DataError, OutOfMemoryError, Interrupted. With conditions of Neumann type only, f is
  /// shifted by a constant so that the right-hand side is orthogonal to the constant vector. `format`: half_cds or matrix_free.
  /// Without `with_matrix` there is no matrix, and all else is the same.
  BoxSystem(Context& context, BoxProblem const& problem, Format format = Format::half_cds, bool with_matrix = true);

  [[nodiscard]] std::int64_t n_rows() const { return box_.n_rows(); }
  [[nodiscard]] BoxElements const& box() const { return box_; }  ///< its nodes, and the conditions on its faces
  /// Gives the rows away that ties couple with others, in a box that repeats itself. The matrix is the block of all rows then:
  /// those of tied nodes keep their diagonal entry alone, and their right-hand side is 0. Where a constant may be added to u the
  /// first node is held: its row and column keep the diagonal entry. Its right-hand side, as those of others, sums to 0 with them:
  /// the caller sets it to 0 at last.
  [[nodiscard]] StoredRim take_rim() { return std::move(rim_); }
  /// Whether a condition here fixes the constant; where there are cuts, one of the larger box may.
  [[nodiscard]] bool anchored() const { return anchored_; }
  using ElementSystem::set_dirichlet;
  void set_dirichlet(double* x) const override { kernels_.set_dirichlet(context_, box_, x); }
  /// Writes values at tied nodes into x, from those at the others. Values of Dirichlet are there.
  void set_tied(double* x) const override;

  /// r = C^T r, where C gives tied nodes the values of the others, and 0 at tied nodes and those with Dirichlet values: what is
  /// left of the forces at all nodes for the rows of the system.
  void restrict_to_free(double* r) const;
  /// d = C d, for a change of the solution, which has no jumps.
  void extend_to_tied(double* d) const;
  /// Takes a constant source off the loads r of all nodes, so that they sum to 0.
  void subtract_constant_source(double* r) const;
  /// Shifts u so that its integral is 0.
  void subtract_mean(double* u) const;
  /// The coordinates of all nodes along one direction, from `origin` on.
  [[nodiscard]] Array<double> coordinate(std::size_t direction, double origin) const;
  /// The loads of f and of natural faces at all nodes, with f as it is given, as if other faces were insulated. Throws as the
  /// constructor.
  [[nodiscard]] static Array<double> loads(Context& context, BoxProblem const& problem);

private:
  /// Without `shifts` f stays as it is, whatever the conditions are.
  BoxSystem(Context& context, BoxProblem const& problem, Format format, bool with_matrix, bool shifts);
  /// The integrals of the basis functions, by direction.
  [[nodiscard]] TensorGrid integrals_of_nodes() const;
  void evaluate_faces(BoxProblem const& problem);
  void make_half_cds(Array<double> values);
  /// The operator from the materials of cells.
  [[nodiscard]] std::unique_ptr<Matrix> operator_of_materials(BoxProblem const& problem) const;
  /// Joins the sides of a box that repeats itself.
  void fold(double* values);
  /// Makes Dirichlet values of tied nodes those of the others, and the jump.
  void tie_values_of_faces();
  void assemble(BoxProblem const& problem, Format format, bool with_matrix);
  /// Adds the lines of these planes of cells to source_lattice_.
  void add_lattice(BoxProblem const& problem, std::int64_t first_plane, std::int64_t count);
  void evaluate(ExpressionCode const& code, std::array<Array<double> const*, 3> const& coordinates,
                std::array<std::int64_t, 3> const& first, std::array<std::int64_t, 3> const& count, ValueCheck check,
                double* values, DataError::Quantity quantity, int face);
  /// Throws DataError with the place of the lowest point that failed.
  void throw_if_failed(std::array<Array<double> const*, 3> const& coordinates, std::array<std::int64_t, 3> const& first,
                       std::array<std::int64_t, 3> const& count, DataError::Quantity quantity, int face) const;

  BoxElementKernels const& kernels_;
  BoxElements box_;
  /// The integrals of values at Gauss points, times the weights of these points where there are some; where cells are equal, times
  /// the part of a cell or face that a point stands for. `first` and `count` are those of the points; a direction with one is the
  /// normal of a face. `weighted` has room afterwards for values times weights.
  FieldSums integrals(double const* values, std::array<Array<double>, 3> const& weights, std::array<std::int64_t, 3> const& first,
                      std::array<std::int64_t, 3> const& count, double part_of_equal_cells, Array<double>& weighted) const;

  std::array<Array<double>, 3> node_coordinates_, gauss_coordinates_;
  std::array<Array<double>, 3> lattice_coordinates_;                    ///< of source_lattice_
  std::array<Array<double>, 3> edges_, inverse_edges_, gauss_weights_;  ///< of graded cells
  std::array<Array<double>, 3> source_weights_;  ///< where not all cells count in the sums: 0 at the points of the others
  Array<double> one_;                            ///< a weight
  std::array<Array<double>, 3> node_weights_;
  double volume_ = 0;
  std::array<Array<double>, 6> face_values_, face_alphas_;
  LowestFailure failed_;
  bool anchored_ = false;
  std::optional<block_rim::TiedBox> ties_;
  StoredRim rim_;
};

}  // namespace poisson
