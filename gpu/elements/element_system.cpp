#include "gpu/elements/element_system.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/fields.hpp"

#include <algorithm>
#include <cmath>
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

std::int64_t lowest_not_finite(Context& context, std::int64_t n, double const* diagonal,
                               std::function<std::int64_t(std::int64_t)> const& unknown_of) {
  if (std::isfinite(kernels_for<BoxElementKernels>(context).sums(context, n, diagonal).absolute))
    return -1;
  HostVector<double> host(static_cast<std::size_t>(n));
  context.download(host.data(), diagonal, 8 * n);
  std::int64_t lowest = -1;
  for (std::int64_t i = 0; i < n; ++i)
    if (!std::isfinite(host[static_cast<std::size_t>(i)])) {
      std::int64_t const unknown = unknown_of ? unknown_of(i) : i;
      lowest = lowest < 0 ? unknown : std::min(lowest, unknown);
    }
  return lowest;
}

}  // namespace poisson
