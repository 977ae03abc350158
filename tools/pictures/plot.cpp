#include "tools/pictures/plot.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/text/wrap.hpp"
#include "tools/output/color.hpp"
#include "tools/output/output.hpp"

namespace ringsim::tools {

namespace {

constexpr int dots_across = 2, dots_down = 4;  // of a braille character

/// The marks of series, in order; of measured points, and of bounds in legends.
std::string mark_of(ChartSeries::Of of, std::size_t index, bool unicode) {
  static const std::array<const char*, 7> marks{"●", "■", "▲", "◆", "▼", "★", "✚"};
  if (of == ChartSeries::Of::bound) return unicode ? "─" : "-";
  if (of == ChartSeries::Of::measured) return unicode ? "○" : "o";
  return unicode ? marks[index % marks.size()] : std::string(1, static_cast<char>('A' + static_cast<char>(index % 26)));
}

/// Characters of a field, each with the series that it belongs to.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, bool unicode)
      : columns_(static_cast<int>(columns)), rows_(static_cast<int>(rows)), unicode_(unicode), cells_(columns * rows) {}

  int width() const { return columns_ * dots_across; }  // in dots
  int height() const { return rows_ * dots_down; }

  void line(std::pair<int, int> from, std::pair<int, int> to, std::size_t series, bool bound) {
    const int steps = std::max({std::abs(to.first - from.first), std::abs(to.second - from.second), 1});
    for (int i = 0; i <= steps; ++i) {
      const auto between = [&](int a, int b) { return a + static_cast<int>(std::lround((b - a) * double(i) / steps)); };
      if (bound && i % 4 > 1) continue;  // a broken line
      dot(between(from.first, to.first), between(from.second, to.second), series, bound);
    }
  }
  void mark(std::pair<int, int> at, const std::string& mark, std::size_t series) {
    Cell& cell = cells_[index(at.first, at.second)];
    cell.mark = mark;
    cell.series = series;
  }

  std::string row(int row, const TextSurface& surface) const {
    std::string text;
    std::size_t blanks = 0;
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[place(column, row)];
      const std::string shown = cell.mark.empty() ? drawn(cell) : cell.mark;
      if (shown.empty()) {
        ++blanks;
        continue;
      }
      text += std::string(std::exchange(blanks, 0), ' ') + in_color_of(cell.series, shown, surface.color);
    }
    return text;
  }

 private:
  struct Cell {
    unsigned dots = 0;
    bool bound = false;
    std::size_t series = 0;
    std::string mark;
  };

  std::size_t place(int column, int row) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column);
  }
  std::size_t index(int x, int y) const { return place(x / dots_across, y / dots_down); }
  void dot(int x, int y, std::size_t series, bool bound) {
    // Unicode's order of the dots: 1 2 3 7 in the left column, 4 5 6 8 in the right one.
    static constexpr unsigned bits[dots_across][dots_down] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
    Cell& cell = cells_[index(x, y)];
    cell.dots |= bits[x % dots_across][y % dots_down];
    cell.series = series;
    cell.bound = bound;
  }
  std::string drawn(const Cell& cell) const {
    if (cell.dots == 0) return "";
    if (!unicode_) return cell.bound ? "-" : ".";
    const unsigned code = 0x2800 + cell.dots;  // UTF-8 of three bytes
    return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
  }

  int columns_, rows_;
  bool unicode_;
  std::vector<Cell> cells_;
};

/// A line of ticks' labels below the field, each under its place; those that would touch the one before are left out.
std::string labels_below(const LogAxis& axis, std::size_t before, std::size_t columns) {
  std::string text;
  for (const Tick& tick : axis.ticks) {
    const auto at = static_cast<std::size_t>(std::lround(axis.place(tick.value) * static_cast<double>(columns - 1)));
    const std::size_t middle = before + at, half = tick.label.size() / 2;
    const std::size_t end = std::min(middle - std::min(half, middle) + tick.label.size(), before + columns);
    const std::size_t begin = end - std::min(end, tick.label.size());
    if (!text.empty() && begin < text.size() + 2) continue;
    text += std::string(begin - text.size(), ' ') + tick.label;
  }
  return text;
}

std::string legend(const Chart& chart, const TextSurface& surface, const std::string& indent) {
  std::string text;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const std::string mark = mark_of(chart.series[i].of, i, surface.unicode);
    text += indent + in_color_of(i, mark, surface.color) + ' ' +
            wrapped(safe_to_print(chart.series[i].name), indent.size() + 2, std::max<std::size_t>(surface.width, 40)) +
            '\n';
  }
  return text;
}

}  // namespace

TextSurface surface_of(int file) {
  TextSurface surface{.color = has_color(file)};
  winsize size{};
  if (isatty(file) != 0 && ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) surface.width = size.ws_col;
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    std::string name(value);
    for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    surface.unicode = name.find("UTF-8") != std::string::npos || name.find("UTF8") != std::string::npos;
    break;
  }
  return surface;
}

std::string plot_text(const Chart& chart, const TextSurface& surface) {
  constexpr std::size_t rows = 18;
  const std::size_t width = std::max<std::size_t>(surface.width, 40);
  const LogAxis y = log_axis(chart.ys(), chart.y_of, 7);
  std::size_t before = 0;
  for (const Tick& tick : y.ticks) before = std::max(before, tick.label.size() + 1);
  const std::size_t columns = width - before - 1;
  const LogAxis x = log_axis(chart.xs(), chart.x_of, std::max<std::size_t>(columns / 10, 2));
  Canvas canvas(columns, rows, surface.unicode);
  const auto place = [&](const ChartPoint& point) {
    return std::pair{static_cast<int>(std::lround(x.place(point.x) * (canvas.width() - 1))),
                     static_cast<int>(std::lround((1 - y.place(point.y)) * (canvas.height() - 1)))};
  };
  for (std::size_t i = chart.series.size(); i-- > 0;) {
    const std::vector<ChartPoint>& points = chart.series[i].points;
    const bool bound = chart.series[i].of == ChartSeries::Of::bound;
    if (chart.series[i].of == ChartSeries::Of::measured) continue;  // points alone: nothing was measured between them
    for (std::size_t at = 0; at < points.size(); ++at)
      canvas.line(place(points[at == 0 ? 0 : at - 1]), place(points[at]), i, bound);
  }
  for (const auto of : {ChartSeries::Of::predicted, ChartSeries::Of::measured})  // measured points on top
    for (std::size_t i = chart.series.size(); i-- > 0;)
      if (chart.series[i].of == of)
        for (const ChartPoint& point : chart.series[i].points)
          canvas.mark(place(point), mark_of(of, i, surface.unicode), i);

  std::vector<std::string> labels(rows);
  for (const Tick& tick : y.ticks)
    labels[static_cast<std::size_t>(std::lround((1 - y.place(tick.value)) * (rows - 1)))] = tick.label;
  const auto own = [&](const char* unicode, const char* ascii) { return surface.unicode ? unicode : ascii; };
  std::string text = chart.title.empty() ? "" : wrapped(safe_to_print(chart.title), 2, width) + '\n';
  text += chart.y_label + '\n';
  for (std::size_t row = 0; row < rows; ++row)
    text += fmt::format("{:>{}}{}{}\n", labels[row], before, labels[row].empty() ? own("│", "|") : own("┤", "+"),
                        canvas.row(static_cast<int>(row), surface));
  std::vector<std::size_t> ticks;
  for (const Tick& tick : x.ticks)
    ticks.push_back(static_cast<std::size_t>(std::lround(x.place(tick.value) * static_cast<double>(columns - 1))));
  text += std::string(before, ' ') + own("└", "+");
  for (std::size_t at = 0; at < columns; ++at)
    text += std::find(ticks.begin(), ticks.end(), at) != ticks.end() ? own("┬", "+") : own("─", "-");
  text += '\n' + labels_below(x, before + 1, columns) + '\n';
  text += fmt::format("{:>{}}\n", chart.x_label, before + 1 + columns);
  const std::string indent(before + 1, ' ');
  text += legend(chart, surface, indent);
  for (const std::string& note : chart.notes) text += wrapped(safe_to_print(note), 2, width) + '\n';
  return text;
}

}  // namespace ringsim::tools
