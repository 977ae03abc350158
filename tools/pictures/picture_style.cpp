#include "tools/pictures/picture_style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/pictures/svg.hpp"

namespace ringsim::tools {

namespace {

struct Shade {
  const char *light, *dark;
};
/// Blues of falling (on dark pages: rising) lightness, then the vermilion of Okabe and Ito.
constexpr std::array<Shade, n_loads> shades{{{"#d0d4d9", "#4a515b"},
                                             {"#9ecae1", "#1f4e79"},
                                             {"#5aa2cf", "#2f74ad"},
                                             {"#2171b5", "#5ea3dc"},
                                             {"#08306b", "#b4d8f5"},
                                             {"#d55e00", "#ff8a3d"}}};

constexpr const char* light_rules =
    ".chart .small { font-size: 11px }\n"
    ".chart .name { font-size: 12px }\n"
    ".chart .strong { font-weight: 600 }\n"
    ".chart .device { fill: #ffffff; stroke: #57606a }\n"
    ".chart .gpu { stroke: #1f2328; stroke-width: 2 }\n"
    ".chart .hub { fill: #e3e8ee }\n"
    ".chart .memory { stroke-dasharray: 3 2 }\n"
    ".chart .frame { fill: none; stroke: #8c959f }\n"
    ".chart .wire { fill: none }\n"
    ".chart .thick .line { stroke-width: 3.6 }\n"
    ".chart .fault { fill: none; stroke: #cc0052; stroke-opacity: .35; stroke-width: 9 }\n"
    ".chart .fault-mark { fill: #cc0052 }\n"
    ".chart .fault-text { fill: #ffffff }\n"
    ".chart .hit { fill: none; stroke: transparent; stroke-width: 12; pointer-events: stroke }\n"
    ".chart a:hover .hit, .chart a:focus-visible .hit { stroke: #0072b2; stroke-opacity: .3 }\n"
    ".chart a:focus-visible { outline: none }\n"
    ".chart .dashed .line { stroke-dasharray: 8 3 }\n"
    ".chart .bar-text { fill: #ffffff }\n"
    ".chart .dark-text { fill: #16191d }\n"
    ".chart .hatch { fill: none; stroke: #ffffff; stroke-width: 1.4 }\n";

constexpr const char* dark_rules =
    ".chart .device { fill: #16191d; stroke: #9ea7b3 }\n"
    ".chart .gpu { stroke: #e6edf3 }\n"
    ".chart .hub { fill: #333b45 }\n"
    ".chart .fault { stroke: #ff6b9d; stroke-opacity: .45 }\n"
    ".chart .fault-mark { fill: #ff6b9d }\n"
    ".chart .fault-text { fill: #16191d }\n"
    ".chart .frame { stroke: #6e7681 }\n"
    ".chart .bar-text { fill: #16191d }\n"
    ".chart .hatch { stroke: #16191d }\n";

/// Wires, arrow heads and boxes that are filled, in the colors of the series of plots (see svg_style()) and of loads.
std::string colored(const Shade& color, const std::string& name) {
  return fmt::format(".chart .{0} .wire {{ stroke: {1} }} .chart .{0} .cell {{ fill: {1} }}\n", name, color.light);
}

}  // namespace

std::size_t load_class(double share) {
  if (share <= 0) return 0;
  return std::min<std::size_t>(n_loads - 1, 1 + static_cast<std::size_t>(std::min(share, 1.0) * (n_loads - 1)));
}

const std::array<const char*, n_loads>& load_names() {
  static constexpr std::array<const char*, n_loads> names{"idle",       "below 20 %", "20 to 40 %",
                                                          "40 to 60 %", "60 to 80 %", "80 % and more"};
  return names;
}

std::string text_on_color(double x, double y, const std::string& color, const std::string& text) {
  const bool as_the_page = color == "l0" || color == "l1";
  const bool is_light_on_light_pages = color == "s0" || color == "s3" || color == "s5";
  const std::string more = fmt::format(" class=\"small{}\" text-anchor=\"middle\" pointer-events=\"none\"",
                                       as_the_page               ? ""
                                       : is_light_on_light_pages ? " bar-text"
                                                                 : " dark-text");
  return svg_text(x, y, more.c_str(), text);
}

std::string picture_style() {
  std::string light = light_rules, dark = dark_rules;
  for (std::size_t i = 0; i < n_loads; ++i) {
    light += colored(shades[i], fmt::format("l{}", i));
    dark += colored({shades[i].dark, ""}, fmt::format("l{}", i));
    light += fmt::format(".chart .l{} .wire {{ stroke-width: {:.1f} }}\n", i, 1.2 + 0.6 * static_cast<double>(i));
  }
  return light + "@media (prefers-color-scheme: dark) {\n" + dark + "}\n";
}

}  // namespace ringsim::tools
