// ringsim plot: stored results as a picture, or in the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/formats/own_files.hpp"
#include "tools/formats/stored_rows.hpp"
#include "tools/output/output.hpp"
#include "tools/pictures/chart.hpp"
#include "tools/pictures/html.hpp"
#include "tools/pictures/picture_file.hpp"
#include "tools/pictures/plot.hpp"
#include "tools/pictures/svg.hpp"

namespace ringsim::tools {

namespace {

struct PlotArguments {
  std::vector<std::string> files;
  std::string output;  ///< FILE.svg, FILE.png or FILE.html; empty or "-": the terminal
  std::string title;   ///< empty: what all results share
  ChartFields chart;
  bool force = false;
};

void declare(Options& options, PlotArguments& plot) {
  options.arguments("RESULTS", plot.files, "results as JSON lines, JSON or CSV; several files are overlaid").file =
      true;
  Option& output =
      options.file("-o,--output", "FILE", plot.output,
                   "write a picture to FILE.svg, FILE.png or FILE.html instead of plotting in the terminal");
  output.take = [&plot](const std::string& path) {
    if (path != "-") expect_picture_name(path, ".html");
    plot.output = path;
  };
  options.flag("--force", plot.force, "allow -o to overwrite a file that ringsim did not write");
  options.chart(plot.chart);
  options.flag("--bound", plot.chart.bound, "also draw the bound of the machine, if the results have bound_us");
  options.flag("--ideal", plot.chart.ideal,
               "also draw ideal scaling: the first point of a series, improving in proportion to x, such as the number "
               "of ranks");
  options.text("--title", "TEXT", plot.title, "the title of the picture").fallback =
      "the values that all results have in common";
}

void require_bound(const Chart& chart) {
  if (std::any_of(chart.series.begin(), chart.series.end(),
                  [](const ChartSeries& series) { return series.of == ChartSeries::Of::bound; }))
    return;
  throw UsageError("--bound", "expected results with bound_us and a time or bandwidth as --y, found none",
                   "`ringsim run --bound` and `ringsim sweep --bound` add bounds");
}

int execute(const PlotArguments& arguments) {
  for (const std::string& file : arguments.files) refuse_as_output(file, arguments.output);
  refuse_to_replace(arguments.output, arguments.force);
  const std::vector<ResultRow> rows = stored_rows(arguments.files);
  std::vector<std::string> varied{"file"};
  for (const ResultRow& row : rows)
    for (const Cell& cell : row.cells)
      if (cell.column.starts_with("point.") &&
          std::find(varied.begin(), varied.end(), cell.column.substr(6)) == varied.end())
        varied.push_back(cell.column.substr(6));
  require_chart_fields(arguments.chart, varied, /*measured=*/true);
  Chart chart = chart_of(rows, arguments.chart);
  if (arguments.chart.bound) require_bound(chart);
  if (!arguments.title.empty()) chart.title = arguments.title;
  if (arguments.output.ends_with(".svg") || arguments.output.ends_with(".png")) {
    write_picture(arguments.output, chart_svg(chart, /*alone=*/true));
    return good;
  }
  Output output(arguments.output);
  if (arguments.output.ends_with(".html"))
    output.write(html_page(chart.title, html_wide_figure(chart.y_label, chart_svg(chart, /*alone=*/false))));
  else
    output.write_styled(plot_text(chart, surface_of(output.descriptor())));
  output.finish();
  return good;
}

}  // namespace

Command plot_command() {
  return {.name = "plot",
          .group = Group::results,
          .summary = "Plot results as a picture (SVG, PNG, HTML) or in the terminal",
          .example = "ringsim plot scenarios/two-dgx-a100.csv -o two-dgx-a100.svg",
          .details =
              "Axes are logarithmic. Each algorithm, or each combination of the other varying values, is a series; "
              "measured times are drawn as separate points. The picture is self-contained and uses colors that "
              "color-blind readers can distinguish. SVG and HTML follow the browser's light or dark mode. A PNG has "
              "twice the width of the SVG in pixels, and requires a ringsim built with librsvg.",
          .prepare = with<PlotArguments>(declare, execute)};
}

}  // namespace ringsim::tools
