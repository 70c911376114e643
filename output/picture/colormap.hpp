#pragma once

#include "output/picture/color_map_names.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace poisson::output {

/// Red, green, blue in 0 .. 1.
using Color = std::array<double, 3>;

[[nodiscard]] constexpr Color rgb(unsigned hex) {
  return {static_cast<double>(hex >> 16 & 255) / 255, static_cast<double>(hex >> 8 & 255) / 255,
          static_cast<double>(hex & 255) / 255};
}

/// The color of NaN.
inline constexpr Color missing_color = rgb(0x9a9a9a);

/// Seventeen evenly spaced samples each. viridis, magma and plasma (N. Smith and S. van der Walt, matplotlib, released as CC0) are
/// perceptually uniform, and suitable for color-blind readers and for print. The diverging map is that of K. Moreland, Diverging
/// color maps for scientific visualization (2009).
using ColorSamples = std::array<unsigned, 17>;
[[nodiscard]] constexpr ColorSamples samples_of(ColorMap map) {
  switch (map) {
  case ColorMap::magma:
    return {0x000004, 0x0a0822, 0x1d1147, 0x36106b, 0x50127c, 0x691c81, 0x822681, 0x9c2e7f, 0xb6367a,
            0xcf4070, 0xe65164, 0xf46a5c, 0xfb8861, 0xfea571, 0xfec287, 0xfde0a1, 0xfcfdbf};
  case ColorMap::plasma:
    return {0x0d0887, 0x310597, 0x4c02a1, 0x6600a7, 0x7e03a8, 0x9511a1, 0xa92395, 0xbc3587, 0xcc4678,
            0xd9596a, 0xe56b5d, 0xf07f4f, 0xf89441, 0xfdab33, 0xfdc328, 0xf9dd25, 0xf0f921};
  case ColorMap::diverging:
    return {0x3b4cc0, 0x4e68d8, 0x6282ea, 0x779af7, 0x8db0fe, 0xa3c2ff, 0xb8d0f9, 0xccd9ee, 0xdddddd,
            0xecd3c6, 0xf5c4ad, 0xf7b194, 0xf49a7b, 0xec7f63, 0xde614d, 0xcb3e38, 0xb40426};
  case ColorMap::grey:  // of even lightness L*, from 10 to 95
    return {0x1b1b1b, 0x262626, 0x323232, 0x3d3d3d, 0x4a4a4a, 0x565656, 0x636363, 0x707070, 0x7d7d7d,
            0x8b8b8b, 0x999999, 0xa7a7a7, 0xb5b5b5, 0xc4c4c4, 0xd2d2d2, 0xe1e1e1, 0xf1f1f1};
  case ColorMap::viridis:
    break;
  }
  return {0x440154, 0x48186a, 0x472d7b, 0x424086, 0x3b528b, 0x33638d, 0x2c728e, 0x26828e, 0x21918c,
          0x1fa088, 0x28ae80, 0x3fbc73, 0x5ec962, 0x84d44b, 0xaddc30, 0xd8e219, 0xfde725};
}

/// The color at t, which is clamped to [0, 1]; NaN gives missing_color.
[[nodiscard]] inline Color color_at(ColorMap map, double t) {
  if (std::isnan(t))
    return missing_color;
  ColorSamples const samples = samples_of(map);
  double const s = std::clamp(t, 0.0, 1.0) * (samples.size() - 1);
  auto const i = std::min(static_cast<std::size_t>(s), samples.size() - 2);
  double const f = s - static_cast<double>(i);
  Color const a = rgb(samples[i]), b = rgb(samples[i + 1]);
  return {a[0] + f * (b[0] - a[0]), a[1] + f * (b[1] - a[1]), a[2] + f * (b[2] - a[2])};
}
[[nodiscard]] inline Color viridis(double t) {
  return color_at(ColorMap::viridis, t);
}

/// Colors of classes such as materials, which have no order: ten soft ones, of which neighbours differ, then the same darker, then
/// lighter. Repeats after thirty.
[[nodiscard]] inline Color class_color(std::size_t i) {
  constexpr std::array<unsigned, 10> colors{0x76a5d1, 0xf2a45c, 0x7fbf7b, 0xe0797a, 0xb497c9,
                                            0xb38b6d, 0xe8a6c9, 0xa3a3a3, 0xd2c95f, 0x4fa3a0};
  Color color = rgb(colors[i % colors.size()]);
  std::size_t const round = i / colors.size() % 3;
  for (double& part : color)
    part = round == 1 ? 0.68 * part : round == 2 ? 0.5 + 0.5 * part : part;
  return color;
}

/// Colors of curves that color-blind readers can distinguish (Okabe and Ito, 2008, without yellow, which is too pale for lines).
/// Repeats after seven.
[[nodiscard]] inline Color curve_color(std::size_t i) {
  constexpr std::array<unsigned, 7> colors{0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000};
  return rgb(colors[i % colors.size()]);
}

/// "#0072b2"
[[nodiscard]] inline std::string html_color(Color const& color) {
  constexpr char const* digits = "0123456789abcdef";
  std::string text = "#";
  for (double const part : color) {
    auto const level = static_cast<unsigned>(std::lround(255 * std::clamp(part, 0.0, 1.0)));
    text += {digits[level / 16], digits[level % 16]};
  }
  return text;
}

}  // namespace poisson::output
