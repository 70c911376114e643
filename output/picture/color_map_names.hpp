#pragma once

#include "gpu/core/names.hpp"

#include <array>

namespace poisson::output {

/// Maps of values to colors. diverging: for values around a middle, such as errors around 0.
enum class ColorMap { viridis, magma, plasma, diverging, grey };

/// What a picture is written as. svg and pdf: letters and lines for any size in print, the surface as pixels.
enum class PictureFormat { png, svg, pdf };

}  // namespace poisson::output

template <>
struct poisson::Names<poisson::output::ColorMap> {
  static constexpr std::array<Named<output::ColorMap>, 5> values{{{output::ColorMap::viridis, "viridis"},
                                                                  {output::ColorMap::magma, "magma"},
                                                                  {output::ColorMap::plasma, "plasma"},
                                                                  {output::ColorMap::diverging, "diverging"},
                                                                  {output::ColorMap::grey, "grey"}}};
};

template <>
struct poisson::Names<poisson::output::PictureFormat> {
  static constexpr std::array<Named<output::PictureFormat>, 3> values{
      {{output::PictureFormat::png, "png"}, {output::PictureFormat::svg, "svg"}, {output::PictureFormat::pdf, "pdf"}}};
};
