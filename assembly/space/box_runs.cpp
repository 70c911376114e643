#include "assembly/space/box_runs.hpp"

#include <utility>

namespace poisson::assembly {

BoxRuns::BoxRuns(Counts3 const& cells) : cells_(cells), first_(static_cast<std::size_t>(cells[1] * cells[2]) + 1, 0) {}

void BoxRuns::add(std::int64_t row, std::int64_t begin, std::int64_t end) {
  for (; n_rows_begun_ <= row; ++n_rows_begun_)
    first_[static_cast<std::size_t>(n_rows_begun_)] = std::ssize(runs_);
  auto const own = static_cast<std::int32_t>(runs_.size());
  runs_.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end), own});
}

std::int32_t BoxRuns::root(std::int32_t run) {
  auto const parent = [this](std::int32_t of) -> std::int32_t& { return runs_[static_cast<std::size_t>(of)].part; };
  while (parent(run) != run)
    run = parent(run) = parent(parent(run));
  return run;
}

void BoxRuns::join_rows(std::size_t a, std::size_t b) {
  std::int64_t i = first_[a], j = first_[b];
  while (i < first_[a + 1] && j < first_[b + 1]) {
    Run const &of_a = runs_[static_cast<std::size_t>(i)], &of_b = runs_[static_cast<std::size_t>(j)];
    bool const b_is_longer = of_a.end < of_b.end;
    if (of_a.begin <= of_b.end && of_b.begin <= of_a.end) {
      // The lower run is the root, so that roots are the first runs of their parts.
      std::int32_t low = root(static_cast<std::int32_t>(j)), high = root(static_cast<std::int32_t>(i));
      if (low > high)
        std::swap(low, high);
      runs_[static_cast<std::size_t>(high)].part = low;
    }
    (b_is_longer ? i : j) += 1;
  }
}

void BoxRuns::find_parts() {
  for (; n_rows_begun_ < std::ssize(first_); ++n_rows_begun_)
    first_[static_cast<std::size_t>(n_rows_begun_)] = std::ssize(runs_);
  std::int64_t const ny = cells_[1], nz = cells_[2];
  for (std::int64_t z = 0; z < nz; ++z)
    for (std::int64_t y = 0; y < ny; ++y) {
      auto const row = static_cast<std::size_t>(z * ny + y), of_row = static_cast<std::size_t>(ny);
      if (y > 0)
        join_rows(row, row - 1);
      if (z == 0)
        continue;
      join_rows(row, row - of_row);
      if (y > 0)
        join_rows(row, row - of_row - 1);
      if (y + 1 < ny)
        join_rows(row, row - of_row + 1);
    }
  // A root comes before its other runs, so that its number is there when they are looked at.
  std::int32_t n_parts = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    bool const is_root = runs_[i].part == static_cast<std::int32_t>(i);
    runs_[i].part = is_root ? n_parts++ : runs_[static_cast<std::size_t>(runs_[i].part)].part;
  }
}

}  // namespace poisson::assembly
