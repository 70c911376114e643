#pragma once

#include "app/launch/team.hpp"
#include "app/plan/assembly_plan.hpp"
#include "app/plan/format_choice.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/elements/block_system.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/solvers/solver.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// The matrix of a run in the format that it is solved in: every rank has its rows, and one without others has all of them.
class SharedMatrix {
public:
  /// Takes rows in CSR, which stay for the true residual, and `local`: own rows among themselves in any format (parts.local).
  /// Collective.
  SharedMatrix(Team& team, RankRows rows, SplitRows parts, std::unique_ptr<Matrix> local);
  /// Takes a matrix that was assembled in its format. `lattices` is set where the matrix is one of lattices on several ranks, else
  /// null. Collective.
  SharedMatrix(Team& team, BlockSystem block, std::vector<RankNeighbor> neighbors, std::shared_ptr<SharedLattices const> lattices);

  /// The matrix for solvers. Its functions are collective.
  [[nodiscard]] MultiPrecisionOperator const& for_solver() const {
    return part_ != nullptr ? static_cast<MultiPrecisionOperator const&>(*part_) : *whole_;
  }
  /// Own rows among themselves, in the format.
  [[nodiscard]] Matrix const& local() const { return part_ != nullptr ? part_->local() : *whole_; }
  /// Own rows with the same entries, as they were assembled or as the format gives them back (Matrix::to_csr).
  [[nodiscard]] RankRows rows() const;
  /// b - A x in own rows, in double-double arithmetic and by code that products do not use; on the backend where the matrix was
  /// assembled there. Collective.
  [[nodiscard]] Field true_residual(Field const& b, FieldPair const& solution) const;
  /// The bytes that this rank has of the matrix, in the backend's memory.
  [[nodiscard]] std::int64_t bytes() const { return part_ != nullptr ? part_->bytes() : whole_->bytes(); }

private:
  Team& team_;
  RankRows rows_;                     ///< without a matrix where that was assembled in its format
  bool is_block_ = false;             ///< of a box
  std::unique_ptr<Matrix> whole_;     ///< of a rank without others, but for boxes that repeat themselves
  std::unique_ptr<RankMatrix> part_;  ///< else
};

/// A matrix in its format, with what was decided about it, and what was made of it.
struct StoredMatrix {
  SharedMatrix matrix;
  /// Of ranks that share a box of order 1, and of one that repeats itself: who has which nodes; else null.
  std::shared_ptr<RankBlocks const> blocks{};
  std::optional<FormatChoice> choice{};  ///< that `auto` made
  Format format{};                       ///< of most of its rows
  // Where it serves later cases:
  std::string text{};  ///< matrix_text of the case it is of
  Route route{};       ///< of its AssemblyPlan, as is
  Format planned{};    ///< AssemblyPlan::format
  KeptSetup setup{};   ///< it is of `matrix`, and last
};

}  // namespace poisson::app
