#pragma once

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

/// Seventeen evenly spaced samples of viridis (N. Smith and S. van der Walt, matplotlib, released as CC0): perceptually
/// uniform, suitable for color-blind readers and for print. t is clamped to [0, 1]; NaN gives missing_color.
[[nodiscard]] inline Color viridis(double t) {
  constexpr std::array<unsigned, 17> samples{0x440154, 0x48186a, 0x472d7b, 0x424086, 0x3b528b, 0x33638d,
                                             0x2c728e, 0x26828e, 0x21918c, 0x1fa088, 0x28ae80, 0x3fbc73,
                                             0x5ec962, 0x84d44b, 0xaddc30, 0xd8e219, 0xfde725};
  if (std::isnan(t))
    return missing_color;
  double const s = std::clamp(t, 0.0, 1.0) * (samples.size() - 1);
  auto const i = std::min(static_cast<std::size_t>(s), samples.size() - 2);
  double const f = s - static_cast<double>(i);
  Color const a = rgb(samples[i]), b = rgb(samples[i + 1]);
  return {a[0] + f * (b[0] - a[0]), a[1] + f * (b[1] - a[1]), a[2] + f * (b[2] - a[2])};
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
