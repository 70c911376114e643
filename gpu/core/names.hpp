#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace poisson {

/// Names of enumeration values: the one place that gives their spelling in YAML, records, tests and benchmarks.
template <class E>
struct Named {
  E value;
  std::string_view name;
};

/// Specialise with `static constexpr std::array<Named<E>, n> values`.
template <class E>
struct Names;

/// "?" for a value without a name.
template <class E>
[[nodiscard]] constexpr std::string_view name_of(E value) {
  for (auto const& entry : Names<E>::values)
    if (entry.value == value)
      return entry.name;
  return "?";
}

template <class E>
[[nodiscard]] constexpr std::optional<E> parse_name(std::string_view name) {
  for (auto const& entry : Names<E>::values)
    if (entry.name == name)
      return entry.value;
  return std::nullopt;
}

}  // namespace poisson
