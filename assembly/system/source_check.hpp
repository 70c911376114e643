#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poisson::assembly {

/// The cells with the largest amounts of something, largest first; of equal ones the first offered.
class LargestCells {
public:
  struct Entry {
    double amount;
    std::int64_t cell;
  };
  explicit LargestCells(std::size_t most) : most_(most) {}
  void offer(std::int64_t cell, double amount);
  [[nodiscard]] std::vector<Entry> const& entries() const { return entries_; }

private:
  std::size_t most_;
  std::vector<Entry> entries_;
};

/// Cells that every part of the mesh names for check_source.
inline constexpr std::size_t most_cells_of_part = 8;

/// What the quadrature of the assembly made of the source.
struct SourceSums {
  double integral = 0, absolute = 0;  ///< of f and of |f|
};

/// Compares the quadrature of the assembly with finer ones: in the cells where |f| is largest (`most`: those with the largest
/// integral of |f|) and in those where a lattice of points finds large values, adaptively; in some others, evenly. Returns a
/// warning when the mesh is too coarse for the source: when the integrals of f or |f| differ by more than a tenth, or most cells'
/// own by a third; otherwise nothing. Costs 1/16 of the assembly's evaluations of f, and at least some hundred thousand. A peak
/// whose values vanish at every point that is looked at is not found.
[[nodiscard]] std::string check_source(Space const& space, ReferenceElement const& element, Function const& source,
                                       SourceSums const& sums, std::vector<LargestCells::Entry> const& most);

}  // namespace poisson::assembly
