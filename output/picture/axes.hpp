#pragma once

#include <string>
#include <vector>

namespace poisson::output {

/// A tick of an axis. Its label may contain a superscript, as in "10^{-3}", and does not depend on the locale.
struct Tick {
  double value = 0;
  std::string label;  ///< empty: a minor tick
};

/// Maps a range of values to positions in [0, 1], linearly or logarithmically, and chooses ticks.
class Axis {
public:
  /// Precondition: low <= high, both finite, and positive if logarithmic. With `widen` a linear axis is extended to its outermost
  /// ticks; otherwise a tick may lie outside by up to 0.5 % of the tick distance. A logarithmic axis is extended to whole decades,
  /// unless `exact_ends` keeps it as it is. If low == high, the axis covers a neighbourhood of that value.
  Axis(double low, double high, bool logarithmic, bool widen, int target_ticks = 6, bool exact_ends = false);

  [[nodiscard]] double position(double value) const;
  [[nodiscard]] double low() const noexcept { return low_; }
  [[nodiscard]] double high() const noexcept { return high_; }
  [[nodiscard]] std::vector<Tick> const& ticks() const noexcept { return ticks_; }
  /// Values are labels times 10^exponent() on a linear axis.
  [[nodiscard]] int exponent() const noexcept { return exponent_; }

private:
  void linear_ticks(bool widen, int target);
  void decade_ticks();
  void exact_decade_ticks();

  bool logarithmic_;
  double low_, high_;
  int exponent_ = 0;
  std::vector<Tick> ticks_;
};

/// A number with at most `digits` significant digits, without trailing zeros: "0.1234", "-3"; very small or large ones as a product
/// with a power of ten, "10^{-5}".
[[nodiscard]] std::string format_number(double value, int digits = 4);
/// "10^{-3}".
[[nodiscard]] std::string format_decade(int exponent);

}  // namespace poisson::output
