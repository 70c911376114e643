#include "assembly/space/constraints.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace poisson::assembly {

Constraints::Constraints(std::int64_t n) {
  mask_.resize(n, 0);
  line_of_.resize(n);
}

void Constraints::set(std::int32_t unknown, double value, std::span<Entry const> entries) {
  if (mask_[unknown] == 0) {
    mask_[unknown] = 1;
    line_of_[unknown] = static_cast<std::int32_t>(lines_.size());
    lines_.push_back({0, 0, 0, unknown});
  }
  Line& line = lines_[line_of_[unknown]];
  line.value = value;
  line.begin = static_cast<std::int64_t>(entries_.size());
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  line.end = static_cast<std::int64_t>(entries_.size());
}

void Constraints::close() {
  if (entries_.empty())
    return;
  HostVector<Entry> const given = std::move(entries_);
  entries_.clear();
  enum class State : char { open, started, done };
  std::vector<State> state(lines_.size(), State::open);
  std::function<void(std::int32_t)> const resolve = [&](std::int32_t const index) {
    Line& line = lines_[index];
    if (state[index] == State::done)
      return;
    if (state[index] == State::started)
      throw std::logic_error("the constraint of unknown " + std::to_string(line.unknown) + " depends on itself");
    state[index] = State::started;
    std::vector<Entry> resolved;
    for (auto i = line.begin; i < line.end; ++i) {
      auto const [other, weight] = given[i];
      if (mask_[other] == 0) {
        resolved.push_back({other, weight});
        continue;
      }
      resolve(line_of_[other]);
      line.value += weight * value(other);
      for (auto const& [free, factor] : row(other))
        resolved.push_back({free, weight * factor});
    }
    std::stable_sort(resolved.begin(), resolved.end(), [](Entry const& a, Entry const& b) { return a.unknown < b.unknown; });
    line.begin = static_cast<std::int64_t>(entries_.size());
    for (auto const& [free, weight] : resolved)
      if (static_cast<std::int64_t>(entries_.size()) > line.begin && entries_.back().unknown == free)
        entries_.back().weight += weight;
      else
        entries_.push_back({free, weight});
    line.end = static_cast<std::int64_t>(entries_.size());
    state[index] = State::done;
  };
  for (std::size_t i = 0; i < lines_.size(); ++i)
    resolve(static_cast<std::int32_t>(i));
}

void Constraints::expand(std::span<double> x) const {
  for (Line const& line : lines_) {
    double u = line.value;
    for (auto const& [free, weight] : row(line.unknown))
      u += weight * x[free];
    x[line.unknown] = u;
  }
}

void Constraints::restrict_to_free(std::span<double> f) const {
  for (Line const& line : lines_) {
    for (auto const& [free, weight] : row(line.unknown))
      f[free] += weight * f[line.unknown];
    f[line.unknown] = 0;
  }
}

ListedValues::ListedValues(DirichletValues const& given) : first(given.first), end(given.end()) {
  auto const count = static_cast<std::size_t>(std::ranges::count_if(given.values, [](double value) { return !std::isnan(value); }));
  unknowns.reserve(count);
  values.reserve(count);
  for (std::int64_t unknown = first; unknown < end; ++unknown)
    if (given.has(unknown)) {
      unknowns.push_back(static_cast<std::int32_t>(unknown));
      values.push_back(given[unknown]);
    }
}

DirichletValues ListedValues::all() const {
  DirichletValues result{first,
                         std::vector<double>(static_cast<std::size_t>(end - first), std::numeric_limits<double>::quiet_NaN())};
  for (std::size_t i = 0; i < unknowns.size(); ++i)
    result.values[static_cast<std::size_t>(unknowns[i] - first)] = values[i];
  return result;
}

}  // namespace poisson::assembly
