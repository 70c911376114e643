#include "gpu/core/nearest_name.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace poisson {

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  auto const fold = [](char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c))); };
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      std::size_t const replaced = d[i - 1][j - 1] + (fold(a[i - 1]) == fold(b[j - 1]) ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]))
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::size_t name_distance(std::string_view word, std::string_view candidate) {
  if (word.size() > 64)
    return too_distant;
  if (word.size() >= 3 && word.size() < candidate.size() && candidate.starts_with(word))
    return 1;
  std::size_t const distance = edit_distance(word, candidate);
  return distance <= std::max<std::size_t>(1, std::min(word.size(), candidate.size()) / 3) ? distance : too_distant;
}

}  // namespace poisson
