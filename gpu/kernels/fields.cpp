#include "gpu/kernels/fields.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace poisson {

namespace {

/// What write(result) has put into the backend's memory.
template <class T, class Write>
T result_of(Context& context, Write const& write) {
  Array<T> result(context, 1);
  write(result.data());
  T value{};
  result.download(std::span<T>(&value, 1));
  return value;
}

}  // namespace

double largest_of(Context& context, std::int64_t n, double const* x, DiagonalWeights weights) {
  return result_of<double>(context,
                           [&](double* result) { kernels_for<FieldKernels>(context).largest(context, n, x, weights, result); });
}

double norm_of(Context& context, std::int64_t n, double const* x, DiagonalWeights weights) {
  double const largest = largest_of(context, n, x, weights);
  if (!std::isfinite(largest))
    return std::numeric_limits<double>::quiet_NaN();
  if (largest == 0)
    return 0;
  int const exponent = std::ilogb(largest);
  auto const sum = result_of<DoubleDouble>(context, [&](DoubleDouble* result) {
    kernels_for<FieldKernels>(context).squares(context, n, x, weights, -exponent, result);
  });
  return std::scalbn(std::sqrt(sum.hi), exponent);
}

bool is_finite(Field const& x) {
  if (Context* const context = x.context())
    return first_not_finite(*context, x.size(), x.on(*context).data()) == x.size();
  return std::ranges::all_of(x.host(), [](double value) { return std::isfinite(value); });
}

std::int64_t first_not_finite(Context& context, std::int64_t n, double const* x) {
  return first_failing(context, n, x, EntryCheck::finite);
}

std::int64_t first_failing(Context& context, std::int64_t n, double const* x, EntryCheck check) {
  return result_of<std::int64_t>(
      context, [&](std::int64_t* result) { kernels_for<FieldKernels>(context).first_failing(context, n, x, check, result); });
}

HostVector<double> entries_of(Context& context, double const* x, std::span<std::int32_t const> places) {
  HostVector<double> values(places.size());
  Array<std::int32_t> const on_backend(context, places);
  Array<double> found(context, on_backend.size());
  kernels_for<RimKernels<double>>(context).pack(context, found.size(), on_backend.data(), x, found.data());
  found.download(std::span<double>(values));
  return values;
}

HostVector<double> entries_of(Field const& x, std::span<std::int32_t const> places) {
  if (Context* const context = x.context(); context != nullptr && context->backend() != Backend::cpu)
    return entries_of(*context, x.on(*context).data(), places);
  HostVector<double> values(places.size());
  std::span<double const> const all = x.host();
  for (std::size_t i = 0; i < places.size(); ++i)
    values[i] = all[static_cast<std::size_t>(places[i])];
  return values;
}

}  // namespace poisson
