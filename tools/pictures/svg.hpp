// Plots as SVG: no script, no font and no file besides, so that a picture looks the same everywhere and from now on.
#pragma once

#include <string>
#include <vector>

#include "tools/pictures/chart.hpp"
#include "topologies/layout/text_width.hpp"

namespace ringsim::tools {

/// Text for XML and HTML, between tags and in quoted attributes: printable, and valid UTF-8 ("?" for other bytes).
std::string escaped_xml(const std::string& text);

/// The rules of all pictures: colors that color-blind people tell apart, light and dark. For <style>.
std::string svg_style();

/// The beginning of a picture, up to its title, style and page. `more_style`: of files of their own, after svg_style().
std::string svg_opened(double width, double height, const std::string& title, bool alone,
                       const std::string& more_style = "");
/// A line of text; `more`: attributes, each after a blank.
std::string svg_text(double x, double y, const char* more, const std::string& text);

inline constexpr double text_size = 13, small_text_size = 11, title_size = 16;  ///< of letters; titles are bold

/// The text broken at blanks into lines of at most that width in pixels; a longer word is cut.
std::vector<std::string> svg_lines(const std::string& text, double room, double size = text_size,
                                   layout::Weight weight = layout::Weight::normal);
/// The text with an ellipsis for what is too long.
std::string cut_text(const std::string& text, double room, double size = text_size,
                     layout::Weight weight = layout::Weight::normal);

/// A picture, 720 px wide, on logarithmic axes, with title and legend. Marks tell series apart as colors do. If several
/// predictions have one x, they are bars instead. Equal charts give equal bytes. `alone`: a file of its own; else a
/// part of an HTML page that has svg_style().
std::string chart_svg(const Chart& chart, bool alone);

/// A bar of a bar chart: a share of the longest, in words besides.
struct Bar {
  std::string label, value;
  double length = 0;  ///< at least 0
  bool strong = false;
  std::vector<double> parts{};  ///< what it is stacked of, from the left; they sum to its length
};
/// A picture of bars as a file of its own, and its notes.
struct BarsPage {
  bool alone = false;              ///< a file of its own, headed by its title; else a part of an HTML page
  std::vector<std::string> notes;  ///< lines below it
};
/// Horizontal bars. `title`: of a part of a page for screen readers. `parts`: names of the bars' parts, as many as
/// each bar has, for a legend. Requires at least one bar.
std::string bars_svg(const std::string& title, const std::vector<Bar>& bars, const std::vector<std::string>& parts = {},
                     const BarsPage& page = {});

}  // namespace ringsim::tools
