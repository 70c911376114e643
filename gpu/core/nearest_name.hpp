#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace poisson {

inline constexpr std::size_t no_misspelling = 1000;

/// Edit distance of `word` and `candidate`: insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
/// Ignores case and the difference of - and _; 1 where `word` begins `candidate`; no_misspelling when too far for a typing error.
[[nodiscard]] std::size_t misspelling(std::string_view word, std::string_view candidate);

/// The name that a user probably meant, the first of the nearest; empty when none is near.
template <class Names>
[[nodiscard]] std::string nearest_name(std::string_view word, Names const& names) {
  std::string best;
  std::size_t best_distance = no_misspelling;
  for (std::string_view const name : names)
    if (std::size_t const distance = misspelling(word, name); distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  return best;
}

}  // namespace poisson
