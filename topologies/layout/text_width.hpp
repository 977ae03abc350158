// How wide text is in a picture, for boxes and places that must hold it.
#pragma once

#include <string>

namespace ringsim::layout {

enum class Weight { normal, bold };

/// The width of a line in DejaVu Sans, which pictures ask for and few fonts exceed, in pixels. `size`: of the font.
/// Exact for printable ASCII of normal weight, without kerning, which only makes it shorter; bold text is at most so
/// wide, unless it is all i, j and l; any other character counts as one of the widest.
/// Source: the advance widths in DejaVuSans.ttf 2.37; DejaVuSans-Bold.ttf has 1.10 times as much on average, 1.12 in
/// names of devices.
double width_of(const std::string& text, double size, Weight weight = Weight::normal);

}  // namespace ringsim::layout
