#pragma once

#include "gpu/kernels/aggregation.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// AggregationKernels::aggregate on the host, in its steps; matrices are in host memory. `of` has the number of its aggregate for
/// every column, in any integer. Columns beyond the rows are unknowns of other ranks.
namespace poisson::greedy_aggregates {

inline constexpr int open = -2, none = -1;

/// Tells whether entry k, in row i, is a strong coupling.
[[nodiscard]] inline bool is_strong_entry(CsrView const& a, Couplings const& couplings, std::int64_t i, std::int64_t k) {
  std::int32_t const j = a.columns[k];
  double const coupling = couplings.diagonal.data()[i] < 0 ? a.values[k] : -a.values[k];
  return j != i && is_strong(coupling, couplings.strongest.data()[i], couplings.strongest.data()[j]);
}

/// Calls visit(j, |a_ij|) for what row i is strongly coupled to.
template <class Visit>
void for_neighbours(CsrView const& a, Couplings const& couplings, std::int64_t i, Visit const& visit) {
  for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
    if (is_strong_entry(a, couplings, i, k))
      visit(static_cast<std::size_t>(a.columns[k]), std::abs(a.values[k]));
}

/// What is coupled to none belongs to none; the rest is open.
template <class T>
[[nodiscard]] std::vector<T> begin(Couplings const& couplings) {
  std::vector<T> of(static_cast<std::size_t>(couplings.strongest.size()), open);
  for (std::size_t i = 0; i < of.size(); ++i)
    if (!(couplings.strongest.data()[i] > 0))
      of[i] = none;
  return of;
}

/// Every row all of whose neighbours are open forms an aggregate next() with them. Calls taken(j, number) for each of these.
template <class T, class Next, class Taken>
void form(CsrView const& a, Couplings const& couplings, std::vector<T>& of, Next const& next, Taken const& taken) {
  for (std::int64_t i = 0; i < a.n_rows; ++i) {
    bool all_open = of[static_cast<std::size_t>(i)] == open;
    if (all_open)
      for_neighbours(a, couplings, i, [&](std::size_t j, double) { all_open = all_open && of[j] == open; });
    if (!all_open)
      continue;
    T const number = next();
    of[static_cast<std::size_t>(i)] = number;
    for_neighbours(a, couplings, i, [&](std::size_t j, double) {
      of[j] = number;
      taken(j, number);
    });
  }
}

/// Open rows join the aggregate of the neighbour that they are coupled to most; those that have none form their own, with open
/// neighbours among the rows.
template <class T, class Next>
void join(CsrView const& a, Couplings const& couplings, std::vector<T>& of, Next const& next) {
  std::vector<T> const formed = of;
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    if (formed[static_cast<std::size_t>(i)] == open) {
      double most = 0;
      for_neighbours(a, couplings, i, [&](std::size_t j, double coupling) {
        if (formed[j] >= 0 && coupling > most) {
          most = coupling;
          of[static_cast<std::size_t>(i)] = formed[j];
        }
      });
    }
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    if (of[static_cast<std::size_t>(i)] == open) {
      T const number = next();
      of[static_cast<std::size_t>(i)] = number;
      for_neighbours(a, couplings, i, [&](std::size_t j, double) {
        if (static_cast<std::int64_t>(j) < a.n_rows && of[j] == open)
          of[j] = number;
      });
    }
}

}  // namespace poisson::greedy_aggregates
