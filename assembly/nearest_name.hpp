#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace poisson {

/// The name that a user probably meant: the one with the least edit distance (insertions, deletions, substitutions, swaps of
/// neighbours; case ignored), when it is at most a third of the longer word and 3. Empty when none is near.
template <class Names>
[[nodiscard]] std::string nearest_name(std::string_view wrong, Names const& names) {
  auto const lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::string best;
  std::size_t best_distance = 4;
  if (wrong.size() > 100)
    return best;
  for (std::string_view const name : names) {
    std::size_t const n = name.size();
    std::vector<std::size_t> before(n + 1), previous(n + 1), current(n + 1);
    for (std::size_t j = 0; j <= n; ++j)
      previous[j] = j;
    for (std::size_t i = 1; i <= wrong.size(); ++i) {
      current[0] = i;
      for (std::size_t j = 1; j <= n; ++j) {
        bool const same = lower(wrong[i - 1]) == lower(name[j - 1]);
        current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (same ? 0 : 1)});
        if (i > 1 && j > 1 && lower(wrong[i - 1]) == lower(name[j - 2]) && lower(wrong[i - 2]) == lower(name[j - 1]))
          current[j] = std::min(current[j], before[j - 2] + 1);
      }
      std::swap(before, previous);
      std::swap(previous, current);
    }
    std::size_t const limit = std::max<std::size_t>(1, std::max(wrong.size(), n) / 3);
    if (previous[n] < best_distance && previous[n] <= limit && previous[n] < std::max(wrong.size(), n)) {
      best_distance = previous[n];
      best = name;
    }
  }
  return best;
}

}  // namespace poisson
