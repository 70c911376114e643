#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace poisson {

/// The distance of words that are no misspelling of each other.
inline constexpr std::size_t too_distant = 1000;

/// Edit distance of `word` and `candidate`: insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
/// Ignores case and the difference of - and _; 1 where `candidate` begins with `word`; too_distant where it is too large for a
/// typing error.
[[nodiscard]] std::size_t name_distance(std::string_view word, std::string_view candidate);

/// The name that a user probably meant, the first of the nearest; empty when none is near.
template <class Names>
[[nodiscard]] std::string nearest_name(std::string_view word, Names const& names) {
  std::string best;
  std::size_t best_distance = too_distant;
  for (std::string_view const name : names)
    if (std::size_t const distance = name_distance(word, name); distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  return best;
}

}  // namespace poisson
