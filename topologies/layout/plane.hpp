// Boxes, curves and labels in a plane: what the layouts of pictures share. It does not know what they show.
//
// Units are pixels at normal size; x grows to the right, y grows down.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ringsim::layout {

struct Point {
  double x = 0, y = 0;
};

/// A rectangle, by its center.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;

  double left() const { return x - width / 2; }
  double right() const { return x + width / 2; }
  double top() const { return y - height / 2; }
  double bottom() const { return y + height / 2; }
  /// True if less than `gap` is between them.
  bool meets(const Box& other, double gap = 0) const;
  bool holds(Point point, double margin = 0) const;
};

/// A quadratic Bezier curve.
struct Curve {
  Point from, control, to;

  Point at(double t) const;  ///< 0 to 1
};

/// From one point to another; its middle lies `bend` to the left of the straight line, seen in that direction.
Curve bent(Point from, Point to, double bend = 0);

/// The curve without what lies in the two boxes that it joins.
Curve clipped(const Curve& curve, const Box& from, const Box& to);

bool meets(const Curve& curve, const Box& box, double margin);

/// Centers as near to `wanted` as can be (least squares) for boxes of these widths in a row, in this order, with `gap`
/// between neighbors.
std::vector<double> spread(const std::vector<double>& wanted, const std::vector<double>& widths, double gap);

/// Finds room for the labels of lines.
class LabelRoom {
 public:
  void block(const Box& box) { boxes_.push_back(box); }  ///< labels keep off it
  void cross(const Curve& curve) { curves_.push_back(curve); }

  /// The center of a label on the curve, from its middle outward; nothing if each place is taken. A label that was
  /// placed blocks later ones. `clear`: it keeps off all other curves as well.
  std::optional<Point> place(const Curve& curve, double width, double height, bool clear);

 private:
  std::vector<Box> boxes_;
  std::vector<Curve> curves_;
};

}  // namespace ringsim::layout
