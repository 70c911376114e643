#pragma once

#include <span>
#include <string>

namespace poisson::assembly {

/// What a quantity tends to as the mesh gets finer.
struct Extrapolation {
  double value = 0;  ///< the limit; of the finest mesh where `note` says that there is none
  double order = 0;  ///< p of value + C h^p; NaN where there is none
  double error = 0;  ///< |quantity on the finest mesh - limit|: an estimate of its error. NaN where there is none
  std::string note;  ///< why there is no limit, or why not to trust it; empty: all is well
};

/// Richardson's extrapolation from the three finest of n >= 1 meshes: q(h) = q0 + C h^p is solved for q0, C and p, for any widths h
/// > 0 (strictly descending). With four meshes or more the order of the three before the finest must be about the same; otherwise
/// the note says that the meshes are too coarse for an estimate. Source: Roache, Verification and Validation in Computational
/// Science and Engineering (1998), chapter 5.
[[nodiscard]] Extrapolation extrapolate(std::span<double const> h, std::span<double const> q);

}  // namespace poisson::assembly
