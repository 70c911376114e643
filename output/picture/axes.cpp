#include "output/picture/axes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace poisson::output {

namespace {

constexpr char const* minus_sign = "\u2212";
constexpr char const* times = "\u00d7";

std::string with_minus(std::string text) {
  if (!text.empty() && text.front() == '-')
    text.replace(0, 1, minus_sign);
  return text;
}

std::string fixed(double value, int decimals) {
  char buffer[400];
  auto const end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, decimals).ptr;
  std::string text(buffer, end);
  if (text.find_first_not_of("-0.") == std::string::npos && text.front() == '-')
    text.erase(0, 1);
  return with_minus(text);
}

}  // namespace

std::string format_decade(int exponent) {
  return "10^{" + with_minus(std::to_string(exponent)) + "}";
}

std::string format_number(double value, int digits) {
  if (value == 0)
    return "0";
  if (!std::isfinite(value))
    return std::isnan(value) ? "not a number" : value > 0 ? "infinite" : with_minus("-infinite");
  // Let the rounding decide about the exponent: 99999.6 is 1.000e5.
  char buffer[40];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, digits - 1).ptr);
  auto const e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  auto strip = [](std::string number) {
    if (number.find('.') != std::string::npos) {
      number.erase(number.find_last_not_of('0') + 1);
      if (number.back() == '.')
        number.pop_back();
    }
    return number;
  };
  if (exponent >= -3 && exponent < 5)
    return strip(fixed(value, std::max(0, digits - 1 - exponent)));
  return with_minus(strip(text.substr(0, e))) + times + format_decade(exponent);
}

Axis::Axis(double low, double high, bool logarithmic, bool widen, int target_ticks, bool exact_ends)
    : logarithmic_(logarithmic), low_(low), high_(high) {
  if (logarithmic && exact_ends && low < high)
    exact_decade_ticks();
  else if (logarithmic)
    decade_ticks();
  else
    linear_ticks(widen, std::max(target_ticks, 2));
}

double Axis::position(double value) const {
  if (logarithmic_)
    return (std::log10(value) - std::log10(low_)) / (std::log10(high_) - std::log10(low_));
  return (value - low_) / (high_ - low_);
}

void Axis::decade_ticks() {
  // Values that differ from a power of ten by rounding alone do not open another decade.
  int first = static_cast<int>(std::floor(std::log10(low_) + 1e-9));
  int last = static_cast<int>(std::ceil(std::log10(high_) - 1e-9));
  first = std::max(first, -307);
  last = std::min(last, 308);
  if (last <= first) {  // a power of ten: in the middle
    first = std::max(first - 1, -307);
    last = std::min(last + 1, 308);
  }
  low_ = std::pow(10.0, first);
  high_ = std::pow(10.0, last);
  int const decades = last - first;
  int step = 1;
  for (int const nice : {1, 2, 5, 10, 20, 50, 100})
    if (decades / (step = nice) <= 9)
      break;
  for (int k = first; k <= last; ++k) {
    bool const named = k % step == 0;
    if (!named && decades > 60)
      continue;
    ticks_.push_back({std::pow(10.0, k), named ? format_decade(k) : std::string()});
    if (decades <= 4 && k < last)
      for (int m = 2; m < 10; ++m)
        ticks_.push_back({m * std::pow(10.0, k), {}});
  }
}

void Axis::exact_decade_ticks() {
  constexpr double slack = 1e-9;
  int const first = static_cast<int>(std::floor(std::log10(low_))), last = static_cast<int>(std::ceil(std::log10(high_)));
  double const decades = std::log10(high_) - std::log10(low_);
  auto const inside = [&](double value) { return value >= low_ * (1 - slack) && value <= high_ * (1 + slack); };
  int step = 1;
  while (decades / step > 9)
    ++step;
  for (int k = first; k <= last; ++k)
    for (int m = 1; m < 10; ++m) {
      double const value = m * std::pow(10.0, k);
      bool const named = m == 1 ? k % step == 0 : decades < 1.5 && (m == 2 || m == 5);
      if (inside(value) && (named || (decades <= 4 && step == 1)))
        ticks_.push_back({value, !named ? "" : decades < 1.5 ? format_number(value) : format_decade(k)});
    }
  if (std::count_if(ticks_.begin(), ticks_.end(), [](Tick const& tick) { return !tick.label.empty(); }) >= 2)
    return;
  // A small part of a decade: round values as on a linear axis, at their places.
  ticks_.clear();
  for (Tick const& tick : Axis(low_, high_, false, false, 5).ticks_)
    ticks_.push_back({tick.value, format_number(tick.value, 6)});
}

void Axis::linear_ticks(bool widen, int target) {
  double const largest = std::max(std::abs(low_), std::abs(high_));
  if (high_ - low_ <= 1e-12 * largest || largest < 1e-300) {
    double const half = largest < 1e-300 ? 1 : 0.5 * largest;
    double const middle = 0.5 * low_ + 0.5 * high_;
    low_ = middle - half;
    high_ = middle + half;
  }
  double const raw = (high_ / target - low_ / target);
  double const magnitude = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * magnitude;
  for (double const nice : {1.0, 2.0, 2.5, 5.0})
    if (nice * magnitude >= raw * (1 - 1e-9)) {
      step = nice * magnitude;
      break;
    }
  auto const round_down = [&](double v) { return std::floor(v / step + 1e-9); };
  auto const round_up = [&](double v) { return std::ceil(v / step - 1e-9); };
  if (widen) {
    low_ = round_down(low_) * step;
    high_ = round_up(high_) * step;
  }
  int const power = static_cast<int>(std::floor(std::log10(std::max(std::abs(low_), std::abs(high_)) * (1 + 1e-12))));
  exponent_ = power >= 5 || power < -3 ? power : 0;
  double const scale = std::pow(10.0, -exponent_);
  // Decimals that show the step exactly.
  int decimals = 0;
  for (double s = step * scale; decimals < 14 && std::abs(s - std::round(s)) > 1e-6 * s; ++decimals)
    s *= 10;
  // A range that just misses a tick, like one of points on a circle, still shows it.
  for (double k = std::ceil(low_ / step - 0.005); k <= std::floor(high_ / step + 0.005); ++k)
    ticks_.push_back({k * step, fixed(k * step * scale, decimals)});
}

}  // namespace poisson::output
