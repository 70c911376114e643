#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "assembly/system/source_findings.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace poisson::assembly {

/// The at most `most` cells with the largest amounts, largest first; of equal amounts those that were offered first.
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

/// Number of cells that each part of the mesh contributes to check_source.
inline constexpr std::size_t most_cells_of_part = 8;

/// Integrals of the source with the assembly's quadrature.
struct SourceSums {
  double integral = 0, absolute = 0;  ///< of f and of |f|
};

/// Compares the assembly's quadrature of f with finer ones. Cells with the largest integrals of |f| (`most`) and cells where a
/// lattice of points finds large values are integrated adaptively; a sample of the other cells with more points. The mesh is too
/// coarse for the source where the integrals of f or |f| differ by more than a tenth, or those of single cells by more than a third
/// on average. It costs 1/16 of the assembly's evaluations of f, 1/8 where the
/// backend makes the lattice, and at least some hundred thousand. A peak that vanishes at every
/// point of evaluation is not found (docs/theory.md).
[[nodiscard]] SourceFindings check_source(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                          SourceSums const& sums, std::vector<LargestCells::Entry> const& most);
/// Takes the cells with the largest integrals, and what the lattice says where that is known, from those lines of cells that hold
/// the largest. `absolute`: the integral of |f|.
[[nodiscard]] SourceFindings check_source(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                          double absolute, SourceLines const& lines);
/// Checks a source of whose integrals nothing is known. It evaluates f once more where the assembly does.
[[nodiscard]] SourceFindings check_source(Space const& space, ReferenceElement const& element, ProblemData const& data);

}  // namespace poisson::assembly
