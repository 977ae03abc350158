// --report: all of a run, a sweep or a comparison on one page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tools/command_line/input.hpp"
#include "tools/command_line/options.hpp"
#include "tools/output/output.hpp"
#include "tools/pictures/chart.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

using TableCells = std::vector<std::vector<std::string>>;  ///< the headings, then a line for each row

/// The option, which takes a name that ends in .html. `text`: its help.
Option& declare_report(Options& options, std::string& report, const char* text);
/// The page that --report names; nothing if it names none. Throws for one that is among `others`, which are read or
/// written too, and, without `force`, for a file that ringsim did not write.
std::optional<Output> open_report(const std::string& report, std::initializer_list<std::string> others, bool force);

/// The point that a report explains, the fastest of the largest message.
struct ReportPoint {
  std::size_t index = 0;      ///< in the file
  std::int64_t messages = 0;  ///< that it takes, of all its jobs
};
/// `points`: of each row its point; the rows of a point follow each other. Nothing if all rows failed.
std::optional<ReportPoint> chosen_point(const std::vector<ResultRow>& rows, const std::vector<std::size_t>& points);

struct RunForReport {
  const ScenarioFile& file;
  const ScenarioText& input;
  const std::vector<std::string>& set;  ///< as --set has it
  const std::vector<ResultRow>& rows;   ///< of all points, in order
  TableCells table;                     ///< of them
  std::optional<ReportPoint> point;     ///< chosen_point()
  ChartFields chart;
  std::string command;  ///< what was typed
  int jobs = 0;         ///< what-ifs at a time; 0: one per core
};

/// The page (HTML): a sentence, plots, what faster links would change, what links carried over time, the results, the
/// scenario, versions and command. The sentence and the what-ifs are of one point, which is simulated again with its
/// critical path and its bound. Throws what predict() throws, UsageError as chart_of(), and Interrupted.
std::string report_page(const RunForReport& run);

/// The parts that pages share: plots of rows, empty for less than two; a table; the end of a page.
std::string report_plots(const std::vector<ResultRow>& rows, ChartFields fields);
std::string report_table(const std::string& heading, const TableCells& lines);
/// The table of results: columns in which all rows agree are a sentence below it.
std::string report_results(const TableCells& lines);
/// The end of a page, with the name and text of each file.
std::string report_end(const std::vector<ScenarioText>& inputs, const std::string& command, const std::string& about);
std::string report_preformatted(const std::string& text);

}  // namespace ringsim::tools
