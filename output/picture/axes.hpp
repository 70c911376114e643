#pragma once

#include <string>
#include <vector>

namespace poisson::output {

/// A tick on an axis. Labels may hold a superscript as in "10^{-3}"; they do not depend on the locale.
struct Tick {
  double value = 0;
  std::string label;  ///< empty: a minor tick
};

/// An axis from a value range to positions 0 .. 1.
class Axis {
public:
  /// `low` and `high`: the range of the data, finite; positive when logarithmic; high >= low. A linear axis with `widen` is
  /// extended to whole ticks; without, a tick may lie beyond an end by 0.5 % of the step. A logarithmic axis is always extended to
  /// whole decades; an empty range is opened around its value.
  Axis(double low, double high, bool logarithmic, bool widen, int target_ticks = 6);

  [[nodiscard]] double position(double value) const;
  [[nodiscard]] double low() const noexcept { return low_; }
  [[nodiscard]] double high() const noexcept { return high_; }
  [[nodiscard]] std::vector<Tick> const& ticks() const noexcept { return ticks_; }
  /// The power of ten to multiply every label of a linear axis with; 0: none.
  [[nodiscard]] int exponent() const noexcept { return exponent_; }

private:
  void linear_ticks(bool widen, int target);
  void decade_ticks();

  bool logarithmic_;
  double low_, high_;
  int exponent_ = 0;
  std::vector<Tick> ticks_;
};

/// A number with the given significant digits, without trailing zeros: "0.1234", "-3", "1.2", a multiplication sign, "10^{-5}".
[[nodiscard]] std::string format_number(double value, int digits = 4);
/// "10^{-3}".
[[nodiscard]] std::string format_decade(int exponent);

}  // namespace poisson::output
