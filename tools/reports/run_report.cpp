#include "tools/reports/run_report.hpp"
#include "tools/formats/own_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "tools/explanations/explain_text.hpp"
#include "tools/explanations/phases_text.hpp"
#include "tools/formats/result_fields.hpp"
#include "tools/memory.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/pictures/html.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/reports/run_pictures.hpp"
#include "tools/reports/run_what_ifs.hpp"
#include "tools/stop.hpp"
#include "validate/analysis/what_if.hpp"
#include "validate/closed_forms/bound.hpp"

namespace ringsim::tools {

namespace {

/// A number of a row; 0 if it has none.
std::int64_t whole_number(const ResultRow& row, std::string_view column) {
  const Cell* cell = row.find(column);
  const auto* value = cell == nullptr ? nullptr : std::get_if<std::int64_t>(&cell->value);
  return value == nullptr ? 0 : *value;
}

/// What --set needs to make one point of the file its only one.
std::vector<std::string> set_for(const RunForReport& run, std::size_t point) {
  std::vector<std::string> set = run.set;
  if (run.file.size() == 1) return set;
  set.emplace_back("sweep=null");
  for (const auto& [path, value] : run.file.id(point).varied) set.push_back(fmt::format("{}={}", path, value));
  return set;
}

struct Explained {
  Scenario scenario;
  Result result;
  Recording recording;
  std::vector<WhatIf> what_ifs;
};

Explained explained(const RunForReport& run, const ReportPoint& point) {
  const std::vector<std::string> set = set_for(run, point.index);
  const ScenarioFile file = ScenarioFile::parse(run.input.text, run.input.name, set);
  ensure(file.size() == 1 && file.id(0).hash == run.file.id(point.index).hash,
         "a point that is chosen with --set is itself");
  Explained one{.scenario = file.point(0), .result = {}, .recording = {}, .what_ifs = {}};
  one.recording = recording_for_pictures(one.scenario, point.messages);
  {
    ProgressLine progress(1);
    Bounds bounds;
    const bool bounded = !one.scenario.trains() && !one.scenario.by_program();  // a program has no bound
    one.result = whole_of(results_of(one.scenario,
                                     {.stop = &stop_requested,
                                      .progress = {},
                                      .stage = [&](const std::string& text) { progress.now(text); },
                                      .max_memory = memory_limit(),
                                      .explain = true,
                                      .phases = true,
                                      .recording = &one.recording},
                                     bounded ? &bounds : nullptr));
  }
  one.what_ifs =
      run_what_ifs({.input = run.input, .set = set, .scenario = one.scenario, .result = one.result, .jobs = run.jobs});
  return one;
}

std::string change_text(double change) {
  if (change == 0) return "0 %";
  return std::abs(change) < 5e-4 ? fmt::format("{:+.1g} %", 100 * change) : fmt::format("{:+.1f} %", 100 * change);
}

std::string what_if_bars(const Explained& one) {
  std::vector<const WhatIf*> run;
  std::string refused;
  for (const WhatIf& what_if : one.what_ifs) {
    if (what_if.of == WhatIf::Of::routing && !what_if.is_advice) continue;  // another seed is no change of the machine
    if (what_if.result)
      run.push_back(&what_if);
    else
      refused += fmt::format("<li>{}: {}</li>\n", escaped_xml(what_if.label), escaped_xml(what_if.refused));
  }
  const auto time = [](const Result& result) { return result.prediction.time; };
  std::stable_sort(run.begin(), run.end(),
                   [&](const WhatIf* a, const WhatIf* b) { return time(*a->result) < time(*b->result); });
  std::vector<Bar> bars{{.label = "as it is",
                         .value = short_time(time(one.result)),
                         .length = static_cast<double>(time(one.result).count()),
                         .strong = true}};
  std::string unchanged;
  for (const WhatIf* what_if : run) {
    if (std::abs(change_of(*what_if, one.result)) < next_to_nothing) {
      unchanged += (unchanged.empty() ? "" : ", ") + what_if->label;
      continue;
    }
    bars.push_back({.label = what_if->label,
                    .value = fmt::format("{} ({})", short_time(time(*what_if->result)),
                                         change_text(change_of(*what_if, one.result))),
                    .length = static_cast<double>(time(*what_if->result).count())});
  }
  if (bars.size() == 1 && unchanged.empty()) return "";
  std::string notes;
  if (!unchanged.empty()) notes += html_paragraph("Less than 0.1 %: " + unchanged + ".");
  if (const auto spread = routing_spread_of(one.result, one.what_ifs))
    notes += html_paragraph(fmt::format(
        "Routing: {}. With {}, {} seeds take {} to {} (median {}).", one.result.prediction.routing, spread->routing,
        spread->seeds, short_time(spread->least), short_time(spread->most), short_time(spread->median)));
  return html_section(
      "What if", html_paragraph("The same point with the links of one class 10 % and 100 % faster (or of several "
                                "classes 100 % faster, if one class alone gains little), with latencies 10 % lower and "
                                "halved, with other routing, and without the features that its closed form does not "
                                "cover. Shorter is faster.") +
                     html_wide_figure("the time of the point with each change",
                                      bars_svg("the time of the point with each change", bars)) +
                     notes + (refused.empty() ? "" : "<ul>\n" + refused + "</ul>\n"));
}

/// "ranks 8, size 25 MiB": what tells the row from others, by the last words of the paths.
std::string short_label(const ResultRow& row) {
  std::string text;
  for (const Cell& cell : row.cells)
    if (cell.column.starts_with("point."))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cell.column.substr(cell.column.rfind('.') + 1),
                          key_text(cell));
  return text.empty() ? "the step" : text;
}

/// A stacked bar per point for training steps: computation, and what it does not hide.
std::string step_bars(const std::vector<ResultRow>& rows) {
  constexpr std::size_t most = 40;
  constexpr std::array<std::pair<const char*, const char*>, 5> of_step{
      {{"split_us.compute", "computes"},
       {"split_us.exposed_communication", "exposed communication"},
       {"split_us.waiting_for_others", "waits for others"},
       {"split_us.waiting_for_host", "waits for the host"},
       {"split_us.idle", "idle"}}};
  const auto value = [](const ResultRow& row, const char* column) {
    const Cell* cell = row.find(column);
    const auto* number = cell == nullptr ? nullptr : std::get_if<double>(&cell->value);
    return number == nullptr ? 0.0 : *number;
  };
  std::vector<const ResultRow*> steps;
  for (const ResultRow& row : rows)
    if (!row.failed() && row.find(of_step[0].first) != nullptr && row.time_us() > 0) steps.push_back(&row);
  const std::size_t n = steps.size();
  if (n == 0) return "";
  steps.resize(std::min(n, most));
  std::vector<std::string> names;
  std::vector<Bar> bars;
  for (const ResultRow* row : steps)
    bars.push_back({.label = short_label(*row),
                    .value = short_time(Picoseconds{std::llround(row->time_us() * 1e6)}),
                    .length = row->time_us()});
  for (const auto& each : of_step) {
    const auto& column = each.first;
    if (std::all_of(steps.begin(), steps.end(), [&](const ResultRow* row) { return value(*row, column) <= 0; }))
      continue;
    names.emplace_back(each.second);
    for (std::size_t i = 0; i < steps.size(); ++i) bars[i].parts.push_back(value(*steps[i], column));
  }
  return html_section(
      "The parts of a step",
      html_paragraph("For the rank that ends last. Communication is exposed while no kernel computes.") +
          html_wide_figure("time of a step by part", bars_svg("time of a step by part", bars, names)) +
          (n > most ? html_paragraph(fmt::format("The first {} of {} points.", most, n)) : ""));
}

std::string phases_section(const Prediction& prediction) {
  return prediction.phases.empty() ? "" : report_table("Phases of the algorithm", phase_table(prediction).cells());
}

}  // namespace

std::optional<Output> open_report(const std::string& report, std::initializer_list<std::string> others, bool force) {
  if (report.empty()) return std::nullopt;
  for (const std::string& other : others) refuse_as_output(other, report);
  refuse_to_replace(report, force, "--report");
  return std::optional<Output>(std::in_place, report);
}

Option& declare_report(Options& options, std::string& report, const char* text) {
  Option& option = options.file("--report", "FILE", report, text);
  option.take = [&report](const std::string& path) {
    if (!path.ends_with(".html"))
      throw InputError("", fmt::format("expected a name that ends in .html, found \"{}\"", path));
    report = path;
  };
  return option;
}

std::optional<ReportPoint> chosen_point(const std::vector<ResultRow>& rows, const std::vector<std::size_t>& points) {
  const ResultRow* best = nullptr;
  ReportPoint chosen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ResultRow& row = rows[i];
    if (row.failed() || (!row.job().empty() && row.job() != "main")) continue;
    const std::int64_t bytes = whole_number(row, "bytes");
    const std::int64_t most = best == nullptr ? -1 : whole_number(*best, "bytes");
    if (bytes < most || (bytes == most && row.time_us() >= best->time_us())) continue;
    best = &row;
    chosen.index = points[i];
  }
  if (best == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (points[i] == chosen.index && rows[i].job() != "all") chosen.messages += whole_number(rows[i], "transfers");
  return chosen;
}

std::string report_preformatted(const std::string& text) { return fmt::format("<pre>{}</pre>\n", escaped_xml(text)); }

std::string report_plots(const std::vector<ResultRow>& rows, ChartFields fields) {
  std::vector<ResultRow> good;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(good), [](const ResultRow& row) { return !row.failed(); });
  if (good.size() < 2) return "";
  const bool are_steps = good.front().find("split_us.compute") != nullptr;  // their parts are bars already
  std::string text;
  const auto add = [&] {
    const Chart chart = chart_of(good, fields);
    if (are_steps && chart.differs_in_names_alone()) return;
    text += html_wide_figure(chart.y_label, chart_svg(chart, /*alone=*/false));
  };
  add();
  const bool has_bandwidth = std::any_of(good.begin(), good.end(), [](const ResultRow& row) {
    const Cell* busbw = row.find("busbw_GBps");
    return busbw != nullptr && std::holds_alternative<double>(busbw->value) && std::get<double>(busbw->value) > 0;
  });
  if (fields.y.empty() && has_bandwidth) {  // it was the bandwidth
    fields.y = "time_us";
    add();
  }
  return text.empty() ? "" : html_section("Plots", text);
}

std::string report_table(const std::string& heading, const TableCells& lines) {
  std::vector<bool> is_text(lines.front().size(), false);
  for (std::size_t line = 1; line < lines.size(); ++line)
    for (std::size_t i = 0; i < lines[line].size(); ++i) {
      const std::string& cell = lines[line][i];
      is_text[i] =
          is_text[i] || (!cell.empty() && (cell[0] < '0' || cell[0] > '9') && cell[0] != '-' && cell[0] != '+');
    }
  std::string text = "<table>\n";
  for (std::size_t line = 0; line < lines.size(); ++line) {
    if (line < 2) text += line == 0 ? "<thead>\n" : "<tbody>\n";
    text += "<tr>";
    for (std::size_t i = 0; i < lines[line].size(); ++i)
      text += fmt::format("<{0}{1}{2}>{3}</{0}>", line == 0 ? "th" : "td", line == 0 ? " scope=\"col\"" : "",
                          is_text[i] ? " class=\"text\"" : "", escaped_xml(lines[line][i]));
    text += "</tr>\n";
    if (line == 0) text += "</thead>\n";
  }
  return html_section(heading, html_wide_table(heading, text + "</tbody>\n</table>\n"));
}

std::string report_results(const TableCells& lines) {
  constexpr std::size_t head = 1;
  if (lines.size() < head + 2) return report_table("Results", lines);
  TableCells differ(lines.size());
  std::string agree;
  for (std::size_t i = 0; i < lines.front().size(); ++i) {
    const std::string& first = lines[head][i];
    const bool all_have_it = !first.empty() && std::all_of(lines.begin() + head, lines.end(),
                                                           [&](const auto& line) { return line[i] == first; });
    if (all_have_it)
      agree += fmt::format("{}{} {}", agree.empty() ? "" : ", ", lines.front()[i], first);
    else
      for (std::size_t line = 0; line < lines.size(); ++line) differ[line].push_back(lines[line][i]);
  }
  if (agree.empty() || differ.front().empty()) return report_table("Results", lines);
  return report_table("Results", differ) + html_paragraph("In all rows: " + agree + ".");
}

std::string report_end(const std::vector<ScenarioText>& inputs, const std::string& command, const std::string& about) {
  std::string body;
  for (const ScenarioText& input : inputs)
    body += html_section(inputs.size() == 1 ? "Scenario" : escaped_xml(input.name), report_preformatted(input.text));
  return body + html_section("How this report was made",
                             report_preformatted(command) + html_paragraph(fmt::format("ringsim {}, model version {}{}",
                                                                                       version, model_version, about)));
}

std::string report_page(const RunForReport& run) {
  ensure(run.point.has_value(), "a run has a result");
  const ReportPoint& point = *run.point;
  const auto training = run.file.point(point.index).training;
  std::string body;
  if (training && training->async) {
    body = fmt::format("<h1>{}</h1>\n", escaped_xml(run.file.name())) +
           html_paragraph("There is no critical path to show because asynchronous workers have no common step.") +
           report_plots(run.rows, run.chart);
  } else {
    const Explained one = explained(run, point);
    body = fmt::format("<h1>{}</h1>\n", escaped_xml(why_sentence(one.scenario, one.result)));
    if (run.file.size() > 1) body += html_paragraph("This is the fastest point in the table for the largest message.");
    body += report_plots(run.rows, run.chart) + step_bars(run.rows) + phases_section(one.result.prediction) +
            what_if_bars(one) + run_pictures(one.scenario, one.result.prediction, one.recording);
  }
  body +=
      report_results(run.table) + report_end({run.input}, run.command, fmt::format(", scenario {}", run.file.hash()));
  return html_page(run.file.name().empty() ? "ringsim" : run.file.name(), body);
}

}  // namespace ringsim::tools
