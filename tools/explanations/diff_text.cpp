#include "tools/explanations/diff_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/version.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/json.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/explanations/explain_text.hpp"

namespace ringsim::tools {

namespace {

/// A value of a scenario in a table: long lists are cut.
std::string shown_input(const std::optional<std::string>& value) {
  constexpr std::size_t most = 60;
  if (!value) return "-";
  return value->size() <= most ? *value : value->substr(0, most - 4) + " ...";
}

}  // namespace

std::string diff_sentence(const ExplainedRun& a, const ExplainedRun& b) {
  if (a.time == b.time) return fmt::format("Both take {}.", short_time(a.time));
  const double change = 100 * (microseconds(b.time) / microseconds(a.time) - 1);
  const std::string of = a.time.count() > 0 ? fmt::format(", {:+.1f} %", change) : "";
  return fmt::format("{} takes {}, {} {}{}.", a.name, short_time(a.time), b.name, short_time(b.time), of);
}

std::string diff_tables(const ExplainedRun& a, const ExplainedRun& b) {
  std::string text;
  const std::vector<InputChange> inputs = input_changes(a, b);
  if (inputs.empty()) {
    text = "The input is the same.\n";
  } else {
    Table table({"input", "A", "B"});
    for (const InputChange& each : inputs) table.add({each.path, shown_input(each.a), shown_input(each.b)});
    text = "Differences in the input (bytes, bytes per second, ps):\n" + table.fitted();
  }
  Table output({"output", "A", "B"});
  const Picoseconds longer = std::max(a.time, b.time);
  const TimeUnit unit = TimeUnit::of(longer);
  output.add({fmt::format("time {}", unit.name()), unit.number(a.time), unit.number(b.time)});
  if (a.busbw > 0 || b.busbw > 0)  // steps and jobs together have none
    output.add({"busbw GB/s", figure(a.busbw), figure(b.busbw)});
  output.add({"bottleneck", a.bottleneck.empty() ? "-" : a.bottleneck, b.bottleneck.empty() ? "-" : b.bottleneck});
  text += "\nDifferences in the output:\n" + output.fitted();
  if (!a.parts || !b.parts)
    return text + '\n' +
           wrapped(
               fmt::format("{} has no breakdown of its time; `ringsim explain --format json` writes results that do.",
                           (a.parts ? b : a).name)) +
           '\n';
  Table parts({"cause", "links", "A", "B", "difference"});
  parts.parts_of(longer);
  for (const PartChange& each : part_changes(a, b))
    parts.add({(each.task.empty() ? "" : each.task + ": ") +
                   (each.cause == "link" && !each.kind.empty() ? each.kind : each.cause),
               each.links, each.a, each.b, TableCell::with_sign(each.b - each.a)});
  parts.add({"sum", "", a.time, b.time, TableCell::with_sign(b.time - a.time)});
  return text + "\nCauses of the difference, on the critical paths (the sum includes all causes):\n" + parts.fitted();
}

std::string diff_text(const ExplainedRun& a, const ExplainedRun& b) {
  return wrapped(diff_sentence(a, b)) + "\n\n" + diff_tables(a, b);
}

std::string diff_json(const ExplainedRun& a, const ExplainedRun& b) {
  const auto side = [](const ExplainedRun& run) {
    return Json{{"name", run.name},
                {"time_us", microseconds(run.time)},
                {"busbw_GBps", run.busbw},
                {"bottleneck", run.bottleneck.empty() ? Json(nullptr) : Json(run.bottleneck)}};
  };
  const auto value = [](const std::optional<std::string>& text) { return text ? Json::parse(*text) : Json(nullptr); };
  Json document{{"ringsim", {{"version", version}, {"model_version", model_version}}}, {"a", side(a)}, {"b", side(b)}};
  document["difference_us"] = microseconds(b.time - a.time);
  document["input"] = Json::array();
  for (const InputChange& each : input_changes(a, b))
    document["input"].push_back({{"path", each.path}, {"a", value(each.a)}, {"b", value(each.b)}});
  document["why"] = nullptr;
  if (!a.parts || !b.parts) return json_text(document, 2) + "\n";
  document["why"] = Json::array();
  for (const PartChange& each : part_changes(a, b))
    document["why"].push_back({{"task", each.task.empty() ? Json(nullptr) : Json(each.task)},
                               {"cause", each.cause},
                               {"kind", each.kind},
                               {"links", each.links},
                               {"a_us", microseconds(each.a)},
                               {"b_us", microseconds(each.b)},
                               {"us", microseconds(each.b - each.a)}});
  return json_text(document, 2) + "\n";
}

}  // namespace ringsim::tools
