#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace poisson::assembly {

/// What leaves one place and enters another; or, with `to` outside, leaves them all.
struct Flow {
  static constexpr std::size_t outside = std::numeric_limits<std::size_t>::max();
  std::size_t from = 0, to = outside;
  double value = 0;
  double weight = 0;  ///< > 0
};

/// Corrects the flows between places so that what leaves place i less what enters it is out_of[i]: with the least sum of
/// correction^2 / weight. Where no flow of connected places leads outside, the mean of their out_of, which is not 0 but for a
/// solver's residual, is left. Flows from a place to itself stay. Memory and time: of the square, and cube, of the largest number
/// of connected places, which is small.
void correct_flows(std::vector<double> const& out_of, std::vector<Flow>& flows);

}  // namespace poisson::assembly
