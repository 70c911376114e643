#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/block_rim.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// The norm of a vector from those of ranks' parts, on all; NaN where one is NaN. Collective.
[[nodiscard]] double norm_over(Communicator& ranks, double of_part);

/// An independent way to compute residuals of a system, by which solutions are judged. An implementation shares no code with
/// operators, formats and solvers, and works on the host.
class ResidualCheck {
public:
  virtual ~ResidualCheck() = default;
  [[nodiscard]] virtual std::int64_t n_rows() const = 0;
  [[nodiscard]] virtual std::int64_t n_columns() const = 0;
  /// r = b - A (x + x_low), summed in double-double arithmetic or better and rounded at the end. b and r have n_rows entries, x has
  /// n_columns, and x_low as many or none.
  virtual void residual(std::span<double const> x, std::span<double const> x_low, std::span<double const> b,
                        std::span<double> r) const = 0;
};

/// Computes residuals from the assembled matrix, low values included. Precondition: the matrix outlives it.
class CsrResidualCheck final : public ResidualCheck {
public:
  explicit CsrResidualCheck(CsrMatrix const& matrix) : matrix_(matrix) {}
  [[nodiscard]] std::int64_t n_rows() const override { return matrix_.n_rows; }
  [[nodiscard]] std::int64_t n_columns() const override { return matrix_.n_columns; }
  void residual(std::span<double const> x, std::span<double const> x_low, std::span<double const> b,
                std::span<double> r) const override;

private:
  CsrMatrix const& matrix_;
};

/// Computes residuals from the entries as they are stored, where they are. It is for a matrix that was assembled on a backend.
/// Products share none of this code (Matrix::residual). Precondition: the matrix outlives it.
class StoredResidualCheck final : public ResidualCheck {
public:
  explicit StoredResidualCheck(Matrix const& matrix) : matrix_(matrix) {}
  [[nodiscard]] std::int64_t n_rows() const override { return matrix_.n_rows(); }
  [[nodiscard]] std::int64_t n_columns() const override { return matrix_.n_columns(); }
  void residual(std::span<double const> x, std::span<double const> x_low, std::span<double const> b,
                std::span<double> r) const override;

private:
  Matrix const& matrix_;
};

struct ResidualNorms {
  double relative = 0;  ///< ||r|| / ||b||
  /// ||D^-1/2 r|| / ||D^-1/2 b|| with the absolute values of the main diagonal D, of which rows with small entries count as much as
  /// others. Rows without a diagonal entry count as those with the largest one.
  double scaled = 0;
};

/// Both norms of r, the residual of x for b, from the main diagonal. All are in the memory of the context, and have the rows of
/// this rank; the norms are those of all rows. Collective.
[[nodiscard]] ResidualNorms residual_norms(Context& context, Array<double> const& r, Array<double> const& b,
                                           Array<double> const& diagonal, Communicator& ranks = alone());

/// ||b - A (x + x_low)|| / ||b|| in the 2-norm, or ||b - A (x + x_low)|| when b = 0; NaN where an entry is NaN. Squares neither
/// overflow nor underflow. x_low may be empty. With `ranks` the system has the rows of this rank, and the norms are those of all;
/// then it is collective. Throws InputError when sizes do not fit.
[[nodiscard]] double true_residual(ResidualCheck const& system, std::span<double const> x, std::span<double const> b,
                                   std::span<double const> x_low = {}, Communicator& ranks = alone());
[[nodiscard]] double true_residual(CsrMatrix const& matrix, std::span<double const> x, std::span<double const> b,
                                   std::span<double const> x_low = {});
/// Computes b - A (x + x_low), in double-double arithmetic, from the entries as they are stored, where they are; see
/// StoredResidualCheck. x_low may be empty. Precondition: sizes fit.
[[nodiscard]] Field stored_residual(Matrix const& matrix, Field const& b, Field const& x, Field const& x_low);
/// The same for the rows of a rank that has a block of a box: `local` is in half_cds or matrix-free, and `couplings` are those of
/// the rim with ghosts.
[[nodiscard]] Field stored_residual(Matrix const& local, BlockRim const& rim, Csr const& couplings, Field const& b, Field const& x,
                                    Field const& x_low);
/// That residual itself, b - A (x + x_low). Throws as true_residual.
[[nodiscard]] HostVector<double> residual_of(ResidualCheck const& system, std::span<double const> x, std::span<double const> b,
                                             std::span<double const> x_low = {});

}  // namespace poisson
