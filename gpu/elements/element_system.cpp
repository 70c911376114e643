#include "gpu/elements/element_system.hpp"

#include <limits>

namespace poisson {

namespace {
constexpr std::int64_t none_failed = std::numeric_limits<std::int64_t>::max();
}  // namespace

HostVector<double> ElementSystem::take_rhs() {
  HostVector<double> host(static_cast<std::size_t>(rhs_.size()));
  rhs_.download(std::span<double>(host));
  rhs_ = {};
  return host;
}

bool is_constant(ExpressionCode const& code) {
  return code.size() == 1 && code.front().op == Op::constant;
}

LowestFailure::LowestFailure(Context& context) : lowest_(context, 1) {
  lowest_.upload(std::span<std::int64_t const>(&none_failed, 1));
}

std::int64_t LowestFailure::found() const {
  std::int64_t lowest = 0;
  lowest_.download(std::span<std::int64_t>(&lowest, 1));
  return lowest == none_failed ? -1 : lowest;
}

}  // namespace poisson
