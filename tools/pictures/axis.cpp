#include "tools/pictures/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "sim/base/error.hpp"
#include "sim/text/figures.hpp"

namespace ringsim::tools {

namespace {

/// In the largest unit that leaves at least 1 of it.
template <std::size_t n>
std::string in_units(double value, const std::array<const char*, n>& units, double factor) {
  std::size_t unit = 0;
  while (unit + 1 < n && std::abs(value) >= factor * (1 - 1e-9)) {
    value /= factor;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, units[unit]);
}

/// Powers of two, every `step`th of them.
std::vector<double> powers_of_two(double low, double high, int step) {
  std::vector<double> values;
  for (int power = static_cast<int>(std::ceil(std::log2(low) / step)) * step; power <= std::log2(high); power += step)
    values.push_back(std::exp2(power));
  return values;
}

/// Those of `digits`, times powers of ten with every `step`th exponent.
std::vector<double> decimals(double low, double high, const std::vector<double>& digits, int step) {
  std::vector<double> values;
  const int first = static_cast<int>(std::floor(std::log10(low) / step)) * step;
  for (int power = first; power <= std::log10(high); power += step)
    for (const double digit : digits) {
      const double value = digit * std::pow(10.0, power);
      if (value >= low && value <= high) values.push_back(value);
    }
  return values;
}

/// Multiples of 1, 2 or 5 times a power of ten.
std::vector<double> evenly(double low, double high, std::size_t most) {
  double step = std::pow(10.0, std::floor(std::log10((high - low) / static_cast<double>(most))));
  for (const double factor : {2.0, 2.5, 2.0})  // 1, 2, 5, 10
    if ((high - low) / step > static_cast<double>(most)) step *= factor;
  std::vector<double> values;
  for (double i = std::ceil(low / step); i * step <= high; ++i) values.push_back(i * step);
  return values;
}

/// The finest powers of two that fit, or coarser ones if more of them are values themselves; empty if none fit.
std::vector<double> powers_at(const std::vector<double>& values, double low, double high, std::size_t most) {
  std::vector<double> best;
  std::ptrdiff_t best_hits = -1;
  for (const int step : {1, 2, 4, 5, 10, 20}) {
    const std::vector<double> powers = powers_of_two(low, high, step);
    if (powers.size() < 2 || powers.size() > most) continue;
    const auto hits = std::count_if(powers.begin(), powers.end(), [&](double power) {
      return std::find(values.begin(), values.end(), power) != values.end();
    });
    if (hits <= best_hits) continue;
    best = powers;
    best_hits = hits;
  }
  return best;
}

std::vector<double> tick_values(const std::vector<double>& shown, double low, double high, AxisOf of,
                                std::size_t most) {
  const auto fits = [&](const std::vector<double>& values) { return values.size() >= 2 && values.size() <= most; };
  if (of == AxisOf::size || of == AxisOf::count)
    if (auto values = powers_at(shown, low, high, most); !values.empty()) return values;
  if (high / low < 4)
    if (auto values = evenly(low, high, most); fits(values)) return values;
  if (auto values = decimals(low, high, {1, 2, 5}, 1); fits(values)) return values;
  for (const int step : {1, 2, 3, 6, 12, 24})
    if (auto values = decimals(low, high, {1}, step); fits(values)) return values;
  return evenly(low, high, most);
}

}  // namespace

double LogAxis::place(double value) const { return std::log(value / low) / std::log(high / low); }

std::string axis_text(double value, AxisOf of) {
  switch (of) {
    case AxisOf::size:
      return size_text(Bytes{std::llround(value)});
    case AxisOf::time:
      if (value >= 1e12) return fmt::format("{:.4g} s", value / 1e12);
      return in_units<4>(value, {"ps", "ns", "us", "ms"}, 1000);
    case AxisOf::rate:
      return fmt::format("{:.4g}", value / 1e9);
    case AxisOf::share:
      return fmt::format("{:.4g} %", 100 * value);
    case AxisOf::count:
    case AxisOf::number:
      return fmt::format("{:.6g}", value);
  }
  fail_invariant("an axis is of one of six kinds");
}

LogAxis log_axis(const std::vector<double>& values, AxisOf of, std::size_t most) {
  ensure(!values.empty() && most >= 2, "an axis has values, and room for ticks");
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  ensure(*least > 0, "a logarithmic axis has values above 0");
  LogAxis axis{.low = *least, .high = *largest, .ticks = {}};
  if (axis.high / axis.low < 1.1) {  // one value, or nearly: its neighborhood
    axis.low /= std::sqrt(2.0);
    axis.high *= std::sqrt(2.0);
  }
  const double room = std::pow(axis.high / axis.low, 0.03);
  axis.low /= room;
  axis.high *= room;
  for (const double value : tick_values(values, axis.low, axis.high, of, most))
    axis.ticks.push_back({value, axis_text(value, of)});
  return axis;
}

}  // namespace ringsim::tools
