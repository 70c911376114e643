#pragma once

#include "gpu/core/names.hpp"

#include <array>

namespace poisson::output {

enum class VtkCompression { none, fast, best };
enum class VtkPrecision { single, double_ };

struct VtkOptions {
  VtkCompression compression = VtkCompression::fast;
  VtkPrecision precision = VtkPrecision::double_;
};

}  // namespace poisson::output

template <>
struct poisson::Names<poisson::output::VtkCompression> {
  static constexpr std::array<Named<output::VtkCompression>, 3> values{
      {{output::VtkCompression::none, "none"}, {output::VtkCompression::fast, "fast"}, {output::VtkCompression::best, "best"}}};
};

template <>
struct poisson::Names<poisson::output::VtkPrecision> {
  static constexpr std::array<Named<output::VtkPrecision>, 2> values{
      {{output::VtkPrecision::single, "single"}, {output::VtkPrecision::double_, "double"}}};
};
