#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/box_problem.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/box_elements.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace poisson {

/// The Galerkin system of trilinear elements on a box, assembled where it will be solved, straight into half_cds, or matrix_free:
/// no mesh, no CSR. Element integrals by two Gauss points per direction. Rows and columns of nodes with Dirichlet values keep their
/// diagonal entry only, and their right-hand side is 0.
class BoxSystem {
public:
  /// Whether a box is assembled here: at least three nodes per direction and less than 2^31 nodes.
  [[nodiscard]] static bool fits(std::array<std::int64_t, 3> const& cells);
  /// Whether matrix_free is possible: k is constant.
  [[nodiscard]] static bool can_be_matrix_free(BoxProblem const& problem);
  /// Bytes in the backend's memory at the peak of the assembly.
  [[nodiscard]] static std::int64_t peak_bytes(BoxProblem const& problem, Format format, Backend backend);

  /// Precondition: fits. Throws BoxDataError, OutOfMemoryError, Interrupted. With conditions of Neumann type only, f is shifted by
  /// a constant so that the right-hand side is orthogonal to the constant vector.
  /// `format`: half_cds, or matrix_free where that is possible.
  BoxSystem(Context& context, BoxProblem const& problem, Format format = Format::half_cds);

  [[nodiscard]] Matrix const& matrix() const { return *matrix_; }
  /// Gives the matrix away.
  [[nodiscard]] std::unique_ptr<Matrix> take_matrix() { return std::move(matrix_); }
  [[nodiscard]] Array<double> const& rhs() const { return rhs_; }
  /// The right-hand side in host memory; the backend's copy is freed.
  [[nodiscard]] HostVector<double> take_rhs();
  [[nodiscard]] std::int64_t n_rows() const { return box_.n_rows(); }
  [[nodiscard]] std::int64_t nnz() const { return nnz_; }  ///< of the full matrix
  /// Neither Dirichlet values nor an alpha > 0: the constant vector spans the null space.
  [[nodiscard]] bool pure_neumann() const { return pure_neumann_; }
  [[nodiscard]] FieldSums const& source() const { return source_; }      ///< integrals of f and |f|
  [[nodiscard]] FieldSums const& boundary() const { return boundary_; }  ///< of the values of Neumann and Robin conditions

  /// Where f varies: for every line of cells in x the largest integral of |f| over one of its cells, y fastest; else empty.
  [[nodiscard]] HostVector<double> const& largest_source_of_lines() const { return largest_of_lines_; }

  /// Writes the Dirichlet values into x, which has n_rows entries in host memory.
  void set_dirichlet(std::span<double> x) const;

private:
  void evaluate_faces(BoxProblem const& problem);
  void make_half_cds(Array<double> values);
  void make_operator(int components, BoxField const& k);
  void assemble(BoxProblem const& problem, Format format);
  void evaluate(ExpressionCode const& code, std::array<Array<double> const*, 3> const& coordinates,
                std::array<std::int64_t, 3> const& first, std::array<std::int64_t, 3> const& count, ValueCheck check,
                double* values, BoxDataError::Quantity quantity, int face);

  Context& context_;
  BoxElementKernels const& kernels_;
  BoxElements box_;
  std::array<Array<double>, 3> node_coordinates_, gauss_coordinates_;
  std::array<Array<double>, 6> face_values_, face_alphas_;
  Array<std::int64_t> failed_;
  std::unique_ptr<Matrix> matrix_;
  Array<double> rhs_;
  std::int64_t nnz_ = 0;
  bool pure_neumann_ = false;
  FieldSums source_, boundary_;
  HostVector<double> largest_of_lines_;
};

}  // namespace poisson
