#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

/// Fields that are made when they are asked for, some values at a time.
namespace poisson::assembly {

/// Copies of the data of a problem for threads: its functions evaluate in memory of their own.
class CopiesOfData {
public:
  /// `data` outlives it.
  explicit CopiesOfData(ProblemData const& data) : data_(data) {}
  [[nodiscard]] std::unique_ptr<ProblemData> take() {
    std::scoped_lock const lock(mutex_);
    if (free_.empty())
      return std::make_unique<ProblemData>(data_);
    auto result = std::move(free_.back());
    free_.pop_back();
    return result;
  }
  void give_back(std::unique_ptr<ProblemData> copy) {
    std::scoped_lock const lock(mutex_);
    free_.push_back(std::move(copy));
  }

private:
  ProblemData const& data_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ProblemData>> free_;
};

/// Of the `components` values of a cell writes those among first ... first + n - 1.
inline void put_of_cell(double const* values, std::int64_t cell, std::int64_t components, std::int64_t first, std::int64_t n,
                        double* out) {
  std::int64_t const at = components * cell;
  for (std::int64_t e = std::max<std::int64_t>(first - at, 0); e < std::min(first + n - at, components); ++e)
    out[at + e - first] = values[e];
}

/// The unknowns of some cells, and u there, wherever it is.
class UnknownsOfCells {
public:
  /// `u` is read where it is not null. Both outlive it.
  UnknownsOfCells(Space const& space, FieldValues<double> const* u) : space_(&space), u_(u) {}
  /// Takes these cells, or begin <= cell < end, in place of those before. Throws what making u throws.
  void take(std::span<std::int64_t const> cells);
  void take(std::int64_t begin, std::int64_t end);
  /// n_local each, of the i-th of these cells.
  [[nodiscard]] std::int32_t const* dofs(std::int64_t i) const { return dofs_.data() + i * space_->n_local; }
  [[nodiscard]] double const* u(std::int64_t i) const { return values_.data() + i * space_->n_local; }

private:
  Space const* space_;
  FieldValues<double> const* u_;
  std::vector<std::int32_t> dofs_;
  std::vector<std::int64_t> places_;
  std::vector<double> values_;
};

/// Asks for all values, and keeps none: throws what making them throws, before there is a file.
void try_all(FieldValues<double> const& values);

/// Sets material, coefficient and flux of the cells of any mesh but a box, and with `gradient` that of u. They are made when they
/// are asked for, from nodes, u and k, which outlive them as the space does. Bytes of a cell: 32 (p + 1)^3 of nodes and u, and what
/// is written. Throws InputError where k must not have its value.
void set_mapped_cells(Space const& space, ReferenceElement const& element, ProblemData const& data, FieldValues<double> const& u,
                      bool gradient, SolutionFields& fields);

/// exact - shift at the nodes of any mesh; NaN where `exact` is not finite. The space and the data outlive it.
[[nodiscard]] FieldValues<double> made_exact_at_nodes(Space const& space, ProblemData const& data, double shift);

}  // namespace poisson::assembly
