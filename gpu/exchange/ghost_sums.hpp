#pragma once

#include "gpu/exchange/halo.hpp"

#include <memory>
#include <type_traits>

namespace poisson {

/// Brings what a matrix of one rank's cells makes at ghosts to the ranks whose rows these are, which add it to theirs. In single
/// precision it does so for vectors of float, else for those of double and DoubleDouble.
class GhostSums {
public:
  /// `single`: of the matrix. A rank without cells has no entries that tell their precision; so that of any rank counts. `context`
  /// and `ranks` outlive this. Collective. Throws OutOfMemoryError.
  GhostSums(Context& context, Communicator& ranks, HaloPlaces const& places, bool single) {
    auto const make = [&]<class T>(std::unique_ptr<Halo<T>>& halo) {
      halo = std::make_unique<Halo<T>>(context, ranks, places, HaloDirection::to_owners);
    };
    if (any_of_ranks(ranks, single)) {
      make(in_single_);
    } else {
      make(in_double_);
      make(extended_);
    }
  }
  [[nodiscard]] bool is_single() const { return in_single_ != nullptr; }
  /// T: a type of vectors for which it is made.
  template <class T>
  [[nodiscard]] Halo<T>& in() const {
    if constexpr (std::is_same_v<T, float>)
      return *in_single_;
    else if constexpr (std::is_same_v<T, double>)
      return *in_double_;
    else
      return *extended_;
  }

private:
  std::unique_ptr<Halo<float>> in_single_;
  std::unique_ptr<Halo<double>> in_double_;
  std::unique_ptr<Halo<DoubleDouble>> extended_;
};

}  // namespace poisson
