#include "gpu/elements/element_system.hpp"

#include <limits>

namespace poisson {

namespace {
constexpr std::int64_t none_failed = std::numeric_limits<std::int64_t>::max();
}  // namespace

void ElementSystem::set_dirichlet(std::span<double> x) const {
  Array<double> on_backend(context_, std::span<double const>(x));
  set_dirichlet(on_backend.data());
  on_backend.download(x);
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
