#include "tools/pictures/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "sim/base/utf8.hpp"
#include "tools/output/output.hpp"
#include "topologies/layout/text_width.hpp"

namespace ringsim::tools {

namespace {

constexpr double width = 720, field_height = 320, right = 700, line_height = 16;

/// The palette of Okabe and Ito (2008), without yellow, which is too light on white; for dark pages the same hues,
/// lighter.
struct Color {
  const char *light, *dark;
};
constexpr std::array<Color, 6> palette{{{"#0072b2", "#5ab4e5"},
                                        {"#d55e00", "#ff8a3d"},
                                        {"#009e73", "#2fd0a5"},
                                        {"#aa4499", "#e29bd0"},
                                        {"#b8860b", "#f0c040"},
                                        {"#666666", "#b0b0b0"}}};

/// The mark of a series, about 9 px across; seven shapes and six colors repeat together after 42 series.
std::string mark_path(std::size_t series, double x, double y) {
  static const std::array<const char*, 7> shapes{
      "m-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0z",        // circle
      "m-4 -4h8v8h-8z",                                           // square
      "m0 -5l5 9h-10z",                                           // triangle
      "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",                      // diamond
      "m0 5l5 -9h-10z",                                           // triangle, on its point
      "m-4.5 -1.5h3v-3h3v3h3v3h-3v3h-3v-3h-3z",                   // plus
      "m-4 -4l4 2.5l4 -2.5l-2.5 4l2.5 4l-4 -2.5l-4 2.5l2.5 -4z",  // star
  };
  return fmt::format("M{:.1f} {:.1f}{}", x, y, shapes[series % shapes.size()]);
}

std::string class_of(const ChartSeries& series, std::size_t index) {
  if (series.of == ChartSeries::Of::measured) return "measured";
  if (series.of == ChartSeries::Of::bound) return "bound";
  return fmt::format("s{}", index % palette.size());
}

/// Positions in a chart's picture.
struct Layout {
  const Chart& chart;
  LogAxis x, y;
  std::vector<std::string> title;
  double left, top;

  double x_of(double value) const { return left + (right - left) * x.place(value); }
  double y_of(double value) const { return top + field_height * (1 - y.place(value)); }
  double bottom() const { return top + field_height; }
};

Layout laid_out(const Chart& chart) {
  Layout layout{.chart = chart,
                .x = log_axis(chart.xs(), chart.x_of, 9),
                .y = log_axis(chart.ys(), chart.y_of, 8),
                .title = svg_lines(safe_to_print(chart.title), width - 32, title_size, layout::Weight::bold),
                .left = 0,
                .top = 0};
  for (const Tick& tick : layout.y.ticks)
    layout.left = std::max(layout.left, layout::width_of(tick.label, text_size) + 24);
  layout.left = std::max(layout.left, 44.0);
  layout.top = 14 + 22 * static_cast<double>(layout.title.size()) + 26;
  return layout;
}

std::string axes_svg(const Layout& layout) {
  std::string text;
  double y = 28;
  for (const std::string& line : layout.title) {
    text += svg_text(16, y, " class=\"title\"", line);
    y += 22;
  }
  text += svg_text(16, layout.top - 12, " class=\"soft\"", layout.chart.y_label);
  std::string grid;
  for (const Tick& tick : layout.y.ticks) {
    const double at = layout.y_of(tick.value);
    grid += fmt::format("M{:.1f} {:.1f}H{:.1f}", layout.left, at, right);
    text += svg_text(layout.left - 8, at + 4.5, " text-anchor=\"end\"", tick.label);
  }
  double taken = 0;
  for (const Tick& tick : layout.x.ticks) {
    const double at = layout.x_of(tick.value), half = layout::width_of(tick.label, text_size) / 2;
    grid += fmt::format("M{:.1f} {:.1f}V{:.1f}", at, layout.top, layout.bottom());
    const double middle = std::min(at, width - 4 - half);
    if (middle - half < taken) continue;  // it would touch the one before
    taken = middle + half + 6;
    text += svg_text(middle, layout.bottom() + 19, " text-anchor=\"middle\"", tick.label);
  }
  text += svg_text((layout.left + right) / 2, layout.bottom() + 40, " class=\"soft\" text-anchor=\"middle\"",
                   layout.chart.x_label);
  return fmt::format("<path class=\"grid\" d=\"{}\"/>\n<path class=\"axis\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n",
                     grid, layout.left, layout.top, layout.bottom(), right) +
         text;
}

std::string point_text(const Chart& chart, const ChartPoint& point) {
  return fmt::format("{}: {}{}", axis_text(point.x, chart.x_of), axis_text(point.y, chart.y_of),
                     chart.y_of == AxisOf::rate ? " GB/s" : "");
}

std::string series_svg(const Layout& layout, std::size_t index) {
  const ChartSeries& series = layout.chart.series[index];
  std::string line, marks;
  for (const ChartPoint& point : series.points) {
    const double x = layout.x_of(point.x), y = layout.y_of(point.y);
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x, y);
    if (series.of != ChartSeries::Of::bound)
      marks += fmt::format("<path class=\"mark\" d=\"{}\"><title>{}, {}</title></path>\n", mark_path(index, x, y),
                           escaped_xml(series.name), escaped_xml(point_text(layout.chart, point)));
  }
  if (series.of == ChartSeries::Of::bound && series.points.size() == 1)  // a dash, for a line has no length
    line = fmt::format("M{:.1f} {:.1f}h40", layout.x_of(series.points[0].x) - 20, layout.y_of(series.points[0].y));
  const bool joined = series.of != ChartSeries::Of::measured;  // nothing was measured between points
  return fmt::format("<g class=\"{}\">\n", class_of(series, index)) +
         (joined ? fmt::format("<path class=\"line\" d=\"{}\"/>\n", line) : "") + marks + "</g>\n";
}

double widest_of(const std::vector<std::string>& lines) {
  double widest = 0;
  for (const std::string& line : lines) widest = std::max(widest, layout::width_of(line, text_size));
  return widest;
}

/// The legend, in lines as wide as the picture; moves `y` below it.
std::string legend_svg(const Layout& layout, double& y) {
  std::string text;
  double x = 16;
  for (std::size_t i = 0; i < layout.chart.series.size(); ++i) {
    const ChartSeries& series = layout.chart.series[i];
    const std::vector<std::string> name = svg_lines(safe_to_print(series.name), width - 72);
    const double room = 38 + widest_of(name) + 18;
    if (x > 16 && x + room > width) {
      x = 16;
      y += 22;
    }
    text += fmt::format("<g class=\"{}\">", class_of(series, i));
    if (series.of != ChartSeries::Of::measured)
      text += fmt::format("<path class=\"line\" d=\"M{:.1f} {:.1f}h28\"/>", x, y);
    if (series.of != ChartSeries::Of::bound)
      text += fmt::format("<path class=\"mark\" d=\"{}\"/>", mark_path(i, x + 14, y));
    text += "</g>\n";
    for (std::size_t line = 0; line < name.size(); ++line)
      text += svg_text(x + 36, y + 4.5 + line_height * static_cast<double>(line), "", name[line]);
    x = name.size() > 1 ? width : x + room;  // nothing next to several lines
    y += line_height * static_cast<double>(std::max<std::size_t>(name.size(), 1) - 1);
  }
  y += 18;
  return text;
}

/// Of points of one x: a bar for each, from 0.
std::string chart_of_bars(const Chart& chart, bool alone) {
  std::vector<Bar> bars;
  for (const ChartSeries& series : chart.series)
    bars.push_back({.label = series.name,
                    .value = axis_text(series.points.front().y, chart.y_of),
                    .length = series.points.front().y,
                    .strong = series.of == ChartSeries::Of::predicted});
  BarsPage page{.alone = alone,
                .notes = {fmt::format("{}; {} {}", chart.y_label, chart.x_label,
                                      axis_text(chart.series.front().points.front().x, chart.x_of))}};
  page.notes.insert(page.notes.end(), chart.notes.begin(), chart.notes.end());
  return bars_svg(chart.title.empty() ? chart.y_label : chart.title, bars, {}, page);
}

}  // namespace

std::string cut_text(const std::string& text, double room, double size, layout::Weight weight) {
  if (layout::width_of(text, size, weight) <= room) return text;
  const std::string ellipsis = "…";
  std::size_t kept = 0;
  for (std::size_t i = 1; i <= text.size(); ++i) {
    const bool splits = i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;
    if (!splits && layout::width_of(text.substr(0, i) + ellipsis, size, weight) <= room) kept = i;
  }
  return text.substr(0, kept) + ellipsis;
}

std::vector<std::string> svg_lines(const std::string& text, double room, double size, layout::Weight weight) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = cut_text(text.substr(at, end - at), room, size, weight);
    at = end + 1;
    if (word.empty()) continue;
    const std::string longer = lines.empty() ? word : fmt::format("{} {}", lines.back(), word);
    if (lines.empty() || layout::width_of(longer, size, weight) > room)
      lines.push_back(word);
    else
      lines.back() = longer;
  }
  return lines;
}

std::string svg_text(double x, double y, const char* more, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more, escaped_xml(text));
}

std::string svg_opened(double width, double height, const std::string& title, bool alone,
                       const std::string& more_style) {
  return fmt::format(
             "<svg {}class=\"chart\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n",
             alone ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", width, height, width, height) +
         (alone ? "<!-- made by ringsim -->\n" : "") + fmt::format("<title>{}</title>\n", escaped_xml(title)) +
         (alone ? fmt::format("<style>\n{}{}</style>\n", svg_style(), more_style) : "") +
         (alone ? fmt::format("<rect class=\"page\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", width, height) : "");
}

std::string escaped_xml(const std::string& text) {
  std::string escaped;
  for (const char c : safe_to_print(as_utf8(text))) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string svg_style() {
  std::string style =
      "svg.chart { max-width: 100%; height: auto; font: 13px system-ui, 'DejaVu Sans', sans-serif }\n"
      ".chart text { fill: #1f2328 }\n"
      ".chart .title { font-size: 16px; font-weight: 600 }\n"
      ".chart .soft { fill: #57606a }\n"
      ".chart .page { fill: #ffffff }\n"
      ".chart .grid { fill: none; stroke: #e3e6e8 }\n"
      ".chart .axis { fill: none; stroke: #8c959f }\n"
      ".chart .line { fill: none; stroke-width: 2 }\n"
      ".chart .measured .mark { fill: none; stroke: #1f2328; stroke-width: 1.6 }\n"
      ".chart .bound .line { stroke: #1f2328; stroke-width: 1.4; stroke-dasharray: 6 4 }\n";
  for (std::size_t i = 0; i < palette.size(); ++i)
    style += fmt::format(".chart .s{} .line {{ stroke: {} }} .chart .s{} .mark {{ fill: {} }}\n", i, palette[i].light,
                         i, palette[i].light);
  style +=
      "@media (prefers-color-scheme: dark) {\n"
      ".chart text { fill: #e6edf3 }\n"
      ".chart .soft { fill: #9ea7b3 }\n"
      ".chart .page { fill: #16191d }\n"
      ".chart .grid { stroke: #30363d }\n"
      ".chart .axis { stroke: #6e7681 }\n"
      ".chart .measured .mark { stroke: #e6edf3 }\n"
      ".chart .bound .line { stroke: #e6edf3 }\n";
  for (std::size_t i = 0; i < palette.size(); ++i)
    style += fmt::format(".chart .s{} .line {{ stroke: {} }} .chart .s{} .mark {{ fill: {} }}\n", i, palette[i].dark, i,
                         palette[i].dark);
  return style + "}\n";
}

std::string chart_svg(const Chart& chart, bool alone) {
  if (chart.differs_in_names_alone()) return chart_of_bars(chart, alone);
  const Layout layout = laid_out(chart);
  std::string body = axes_svg(layout);
  for (const bool measured : {false, true})  // measured points on top, then the first series
    for (std::size_t i = chart.series.size(); i-- > 0;)
      if ((chart.series[i].of == ChartSeries::Of::measured) == measured) body += series_svg(layout, i);
  double y = layout.bottom() + 66;
  body += legend_svg(layout, y);
  for (const std::string& note : chart.notes)
    for (const std::string& line : svg_lines(safe_to_print(note), width - 32)) {
      body += svg_text(16, y + 4.5, " class=\"soft\"", line);
      y += 20;
    }
  return svg_opened(width, y, chart.title.empty() ? chart.y_label : chart.title, alone) + body + "</svg>\n";
}

std::string bars_svg(const std::string& title, const std::vector<Bar>& bars, const std::vector<std::string>& parts,
                     const BarsPage& page) {
  double label = 0, value = 0, longest = 0;
  std::vector<std::vector<std::string>> labels;  // [bar] lines
  for (const Bar& bar : bars) {
    labels.push_back(svg_lines(safe_to_print(bar.label), width / 2 - 6));
    label = std::max(label, widest_of(labels.back()) + 6);
    value = std::max(value, layout::width_of(bar.value, text_size));
    longest = std::max(longest, bar.length);
  }
  const double left = label + 12, room = std::max(width - left - value - 16, 40.0);
  std::string body;
  double y = 4;
  if (page.alone) {
    body += svg_text(16, 26, " class=\"title\"",
                     cut_text(safe_to_print(title), width - 32, title_size, layout::Weight::bold));
    y = 40;
  }
  for (std::size_t at = 0; at < bars.size(); ++at) {
    const Bar& bar = bars[at];
    const double length = longest > 0 ? bar.length / longest * room : 0;
    for (std::size_t line = 0; line < labels[at].size(); ++line)
      body +=
          svg_text(label, y + 15 + line_height * static_cast<double>(line), " text-anchor=\"end\"", labels[at][line]);
    const auto rectangle = [&](std::size_t series, double x, double wide, const std::string& name) {
      body += fmt::format(
          "<g class=\"s{}\"><rect class=\"mark\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"14\">{}</rect></g>\n",
          series, x, y + 3, wide, name);
    };
    ensure(bar.parts.size() == parts.size(), "each part of a bar has a name");
    if (parts.empty()) rectangle(bar.strong ? 0 : 5, left, std::max(length, 1.0), "");
    double x = left;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double wide = bar.length > 0 ? bar.parts[i] / bar.length * length : 0;
      if (wide > 0)
        rectangle(i % palette.size(), x, wide,
                  fmt::format("<title>{}: {:.1f} %</title>", escaped_xml(parts[i]), 100 * bar.parts[i] / bar.length));
      x += wide;
    }
    body += svg_text(left + std::max(length, 1.0) + 8, y + 15, "", safe_to_print(bar.value));
    y += 22 + line_height * static_cast<double>(std::max<std::size_t>(labels[at].size(), 1) - 1);
  }
  if (!parts.empty()) y += 8;
  double x = left;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double wide = 20 + layout::width_of(parts[i], text_size) + 16;
    if (x > left && x + wide > width) {
      x = left;
      y += 22;
    }
    body += fmt::format(
        "<g class=\"s{}\"><rect class=\"mark\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\"/></g>\n",
        i % palette.size(), x, y + 3);
    body += svg_text(x + 20, y + 15, "", parts[i]);
    x += wide;
  }
  if (!parts.empty()) y += 22;
  for (const std::string& note : page.notes)
    for (const std::string& line : svg_lines(safe_to_print(note), width - 32)) {
      body += svg_text(16, y + 15, " class=\"soft\"", line);
      y += 20;
    }
  return svg_opened(width, y + 4, title, page.alone) + body + "</svg>\n";
}

}  // namespace ringsim::tools
