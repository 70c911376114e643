#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/context.hpp"
#include "gpu/kernels/ilu.hpp"
#include "gpu/preconditioners/block_exchange.hpp"
#include "gpu/preconditioners/incomplete_lu.hpp"
#include "gpu/preconditioners/options.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace poisson {

/// A triangle of the factors whose rows several ranks have. Its levels are those of the whole triangle.
struct RankTriangle {
  StoredSchedule schedule;                     ///< of own rows
  std::vector<std::int64_t> exchanged_before;  ///< levels before which ranks exchange what they have; ascending, the same on all
  /// Each exchange belongs to an entry of exchanged_before. It brings what the levels since the exchange before have made.
  std::vector<std::unique_ptr<BlockExchange<double>>> exchanges;
};

/// IncompleteLu of a matrix whose rows several ranks share: every rank has its rows of the factors that one rank would have, to the
/// last bit. Rows are eliminated in the order of the whole matrix. A rank needs rows of others, so ranks exchange between
/// levels where one of them needs that. By colors of a box that is eight times a triangle. In the natural order of a box it is
/// nearly every level, hundreds of times.
class RankIncompleteLu {
public:
  /// Arguments as of IncompleteLu. The factorisation is on the host, in its memory. Collective; throws OutOfMemoryError.
  RankIncompleteLu(NumberedRows const& own, double shift, bool positive, Ordering ordering, Context& context, Communicator& ranks);

  /// The first bad pivot, with the row's number in the whole matrix; the same on all ranks.
  [[nodiscard]] BadPivot const& bad_pivot() const { return bad_pivot_; }
  /// Vectors in the order of the factors have own entries and, among them, entries of others that own rows need. The order of the
  /// view has own rows' numbers on this rank. Precondition: there was no bad pivot.
  [[nodiscard]] IluView const& view() const { return view_; }
  [[nodiscard]] RankTriangle const& lower() const { return lower_; }
  [[nodiscard]] RankTriangle const& upper() const { return upper_; }
  [[nodiscard]] Ordering ordering() const { return ordering_; }
  /// Whether a row of the whole matrix has 0 on its diagonal.
  [[nodiscard]] bool has_zero_on_diagonal() const { return has_zero_on_diagonal_; }

private:
  Ordering ordering_ = Ordering::natural;
  bool has_zero_on_diagonal_ = false;
  StoredFactors factors_;
  RankTriangle lower_, upper_;
  IluView view_;
  BadPivot bad_pivot_;
};

}  // namespace poisson
