#include "topologies/layout/plane.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ringsim::layout {

namespace {

constexpr int samples = 24;  // of a curve; boxes are wider than the distance of two of them

bool same_curve(const Curve& a, const Curve& b) {
  return a.from.x == b.from.x && a.from.y == b.from.y && a.to.x == b.to.x && a.to.y == b.to.y &&
         a.control.x == b.control.x && a.control.y == b.control.y;
}

Point between(Point a, Point b, double t) { return {a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t}; }

/// The part of the curve from t0 to t1 (de Casteljau).
Curve part(const Curve& curve, double t0, double t1) {
  const Point begin = curve.at(t0), end = curve.at(t1);
  const Point control = between(between(curve.from, curve.control, t0), between(curve.control, curve.to, t0), t1);
  return {begin, control, end};
}

}  // namespace

bool Box::meets(const Box& other, double gap) const {
  return left() < other.right() + gap && other.left() < right() + gap && top() < other.bottom() + gap &&
         other.top() < bottom() + gap;
}

bool Box::holds(Point point, double margin) const {
  return point.x > left() - margin && point.x < right() + margin && point.y > top() - margin &&
         point.y < bottom() + margin;
}

Point Curve::at(double t) const { return between(between(from, control, t), between(control, to, t), t); }

Curve bent(Point from, Point to, double bend) {
  const double dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy);
  Point control = between(from, to, 0.5);
  if (length > 0) {  // the control point lies twice as far off as the middle of the curve
    control.x += 2 * bend * dy / length;
    control.y -= 2 * bend * dx / length;
  }
  return {from, control, to};
}

Curve clipped(const Curve& curve, const Box& from, const Box& to) {
  constexpr int steps = 400;
  int first = 0, last = steps;
  while (first < steps && from.holds(curve.at(static_cast<double>(first) / steps))) ++first;
  while (last > first && to.holds(curve.at(static_cast<double>(last) / steps))) --last;
  return first < last ? part(curve, static_cast<double>(first) / steps, static_cast<double>(last) / steps) : curve;
}

bool meets(const Curve& curve, const Box& box, double margin) {
  for (int i = 0; i <= samples; ++i)
    if (box.holds(curve.at(static_cast<double>(i) / samples), margin)) return true;
  return false;
}

// With the room that the boxes before each need taken off, the order is all that is left to keep: an isotonic
// regression, by pooling neighbors that are in the wrong order (Ayer and others, Annals of Mathematical Statistics 26,
// 1955).
std::vector<double> spread(const std::vector<double>& wanted, const std::vector<double>& widths, double gap) {
  struct Pool {
    double sum = 0;
    std::size_t n = 0;
    double mean() const { return sum / static_cast<double>(n); }
  };
  std::vector<double> offsets;
  std::vector<Pool> pools;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    offsets.push_back(i == 0 ? 0 : offsets.back() + (widths[i - 1] + widths[i]) / 2 + gap);
    pools.push_back({wanted[i] - offsets[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      pools[pools.size() - 2].sum += pools.back().sum;
      pools[pools.size() - 2].n += pools.back().n;
      pools.pop_back();
    }
  }
  std::vector<double> centers;
  for (const Pool& pool : pools)
    for (std::size_t i = 0; i < pool.n; ++i) centers.push_back(pool.mean() + offsets[centers.size()]);
  return centers;
}

std::optional<Point> LabelRoom::place(const Curve& curve, double width, double height, bool clear) {
  for (const double t : {0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78}) {
    const Point middle = curve.at(t);
    const Box label{.x = middle.x, .y = middle.y, .width = width, .height = height};
    const auto is_in_the_way = [&](const Box& box) { return label.meets(box, 2); };
    const auto crosses = [&](const Curve& other) { return !same_curve(curve, other) && meets(other, label, 1); };
    if (std::any_of(boxes_.begin(), boxes_.end(), is_in_the_way)) continue;
    if (clear && std::any_of(curves_.begin(), curves_.end(), crosses)) continue;
    block(label);
    return middle;
  }
  return std::nullopt;
}

}  // namespace ringsim::layout
