#pragma once

#include "gpu/core/names.hpp"

#include <array>

namespace poisson::output {

enum class VtkCompression { none, fast, best };
enum class VtkPrecision { single, double_ };
/// vtu: an unstructured grid; image: image data, or a rectilinear grid where the nodes are not equidistant. hdf: an
/// unstructured grid in an HDF5 file.
enum class VtkFormat { vtu, image, hdf };

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
struct poisson::Names<poisson::output::VtkFormat> {
  static constexpr std::array<Named<output::VtkFormat>, 3> values{
      {{output::VtkFormat::vtu, "vtu"}, {output::VtkFormat::image, "image"}, {output::VtkFormat::hdf, "hdf"}}};
};

template <>
struct poisson::Names<poisson::output::VtkPrecision> {
  static constexpr std::array<Named<output::VtkPrecision>, 2> values{
      {{output::VtkPrecision::single, "single"}, {output::VtkPrecision::double_, "double"}}};
};
