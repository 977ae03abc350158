#include "tools/output/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity.hpp"

namespace ringsim::tools {

namespace {

constexpr int width = 66, height = 18;  // of the field; the labels before it take 12

/// An axis from a power of the base to another.
struct Axis {
  double low = INFINITY, high = -INFINITY;  // logarithms

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void widen() {  // to whole powers, and at least one of them
    low = std::floor(low);
    high = std::max(std::ceil(high), low + 1);
  }
  int place(double value, int cells) const {
    return static_cast<int>(std::lround((value - low) / (high - low) * (cells - 1)));
  }
};

std::string time_label(double power) {
  const double us = std::pow(10.0, power);
  return us < 1e3   ? fmt::format("{:g} us", us)
         : us < 1e6 ? fmt::format("{:g} ms", us / 1e3)
                    : fmt::format("{:g} s", us / 1e6);
}

}  // namespace

std::string log_plot(const std::vector<PlotCurve>& curves) {
  Axis x, y;
  const auto has_place = [](const auto& point) { return point.first > 0 && point.second > 0; };
  for (const PlotCurve& curve : curves) {
    for (const auto& point : curve.points) {
      if (!has_place(point)) continue;
      x.take(std::log2(point.first));
      y.take(std::log10(point.second));
    }
  }
  if (x.low > x.high) return "";
  x.widen();
  y.widen();
  std::vector<std::string> field(height, std::string(width, ' '));
  for (auto curve = curves.rbegin(); curve != curves.rend(); ++curve)
    for (const auto& point : curve->points)
      if (has_place(point))
        field[static_cast<std::size_t>(height - 1 - y.place(std::log10(point.second), height))]
             [static_cast<std::size_t>(x.place(std::log2(point.first), width))] = curve->mark;

  std::vector<std::string> labels(height);
  for (double power = y.low; power <= y.high; ++power)
    labels[static_cast<std::size_t>(height - 1 - y.place(power, height))] = time_label(power);
  std::string text;
  for (int row = 0; row < height; ++row) {
    const auto at = static_cast<std::size_t>(row);
    std::string line = fmt::format("{:>10} {}{}", labels[at], labels[at].empty() ? '|' : '+', field[at]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  const auto size_label = [](double power) { return format(Bytes{static_cast<std::int64_t>(std::pow(2.0, power))}); };
  text += fmt::format("{:>12}{}\n", '+', std::string(width, '-'));
  text += fmt::format("{:>12}{:<{}}{:>{}}\n", "", size_label(x.low), width / 2, size_label(x.high), width / 2);
  std::string legend;
  for (const PlotCurve& curve : curves)
    legend += fmt::format("{}{} {}", legend.empty() ? "" : "\n            ", curve.mark, curve.name);
  return text + "            " + legend + '\n';
}

}  // namespace ringsim::tools
