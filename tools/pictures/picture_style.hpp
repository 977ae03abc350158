// The looks of pictures of topologies, schedules and runs, beyond those of plots.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace ringsim::tools {

inline constexpr double picture_edge = 16;  ///< empty at the left and right of pictures

/// Classes of load, from idle to busy: l0 is idle, l1 to l5 are fifths. Each differs from the next in lightness, and
/// the busiest also in hue.
inline constexpr std::size_t n_loads = 6;

/// The class of a share from 0 to 1; more counts as 1.
std::size_t load_class(double share);

/// "idle", "up to 20 %", ...
const std::array<const char*, n_loads>& load_names();

/// Small text around `x` on an area of that color of plots ("s0" to "s5") or of loads ("l0", "l1", "l5"). Its contrast
/// is at least 4.5, on light and dark pages.
std::string text_on_color(double x, double y, const std::string& color, const std::string& text);

/// Rules for <style>, after svg_style().
std::string picture_style();

}  // namespace ringsim::tools
