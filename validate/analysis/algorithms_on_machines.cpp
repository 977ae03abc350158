#include "validate/analysis/algorithms_on_machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using enum CollectiveOp;

struct ComparedMachine {
  const char* name;
  const char* topology;  ///< as scenarios say it
};

// A hop takes 1 us on the first four: on a star that is two links. 50 GB/s makes times easy to check by hand.
constexpr ComparedMachine compared_machines[] = {
    ComparedMachine{"star", R"({"kind": "star", "ranks": 8, "link": {"bandwidth": "50 GB/s", "latency": "500 ns"}})"},
    ComparedMachine{"star of 13",
                    R"({"kind": "star", "ranks": 13, "link": {"bandwidth": "50 GB/s", "latency": "500 ns"}})"},
    ComparedMachine{"ring", R"({"kind": "ring", "ranks": 8, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}})"},
    ComparedMachine{"torus 2x4",
                    R"({"kind": "torus", "dimensions": [2, 4], "link": {"bandwidth": "50 GB/s", "latency": "1 us"}})"},
    ComparedMachine{"dgx-1v", R"({"kind": "cluster", "node": "dgx-1v", "nodes": 1})"},
    ComparedMachine{"hgx-h100", R"({"kind": "cluster", "node": "hgx-h100", "nodes": 1})"},
};

struct Case {
  CollectiveOp op;
  const char* algorithm;
  const char* settings = "";  ///< members of the scenario's object
  const char* order = "given";
  const char* only_on = nullptr;  ///< nullptr: all machines of 8
};

// 13 ranks are there for what 8 do not show: what is done with those beyond a power of two.
constexpr Case cases[] = {
    Case{all_reduce, "ring"},
    Case{all_reduce, "ring", "", "best_ring", "dgx-1v"},  // elsewhere the given order is the best
    Case{all_reduce, "ring", R"("rings": 2)"},
    Case{all_reduce, "halving_doubling"},
    Case{all_reduce, "recursive_doubling"},
    Case{all_reduce, "swing"},
    Case{all_reduce, "swing", R"("ports": "all")"},
    Case{all_reduce, "direct"},
    Case{all_reduce, "direct", R"("shots": 1)"},
    Case{all_reduce, "parameter_server"},
    Case{all_reduce, "parameter_server", R"("servers": 2)"},
    Case{all_reduce, "binomial_tree"},
    Case{all_reduce, "chain"},
    Case{all_reduce, "kary_tree"},
    Case{all_reduce, "double_binary_tree"},
    Case{all_reduce, "hierarchical", R"("group": 4)"},
    Case{all_reduce, "hierarchical", R"("group": 2, "outer": "halving_doubling")"},
    Case{all_reduce, "torus", R"("dimensions": "2x4")"},
    Case{all_reduce, "torus", R"("dimensions": "4x2")"},
    Case{all_reduce, "bucket", R"("dimensions": "2x4")"},
    Case{all_reduce, "in_switch"},
    Case{reduce_scatter, "pat"},
    Case{all_gather, "ring"},
    Case{all_gather, "bruck"},
    Case{all_gather, "pat"},
    Case{broadcast, "ring"},
    Case{broadcast, "binomial_tree"},
    Case{broadcast, "double_binary_tree"},
    Case{reduce, "chain"},
    Case{scatter, "binomial_tree"},
    Case{gather, "direct"},
    Case{all_to_all, "direct"},
    Case{all_to_all, "pairwise"},
    Case{all_to_all, "bruck"},
    Case{send_recv, "direct"},
    Case{pairs, "direct"},
    Case{barrier, "binomial_tree"},
    Case{barrier, "dissemination"},
    Case{all_reduce, "ring", "", "given", "star of 13"},
    Case{all_reduce, "halving_doubling", R"("fold": "naive")", "given", "star of 13"},
    Case{all_reduce, "halving_doubling", R"("fold": "rabenseifner")", "given", "star of 13"},
    Case{all_reduce, "halving_doubling", R"("fold": "binary_blocks")", "given", "star of 13"},
    Case{all_reduce, "recursive_doubling", "", "given", "star of 13"},
    Case{all_reduce, "swing", "", "given", "star of 13"},
    Case{all_reduce, "hierarchical", R"("group": 4)", "given", "star of 13"},
};

std::string in_place_of(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// `"group": 4, "outer": "ring"` as people write it: group=4 outer=ring.
std::string in_words(std::string settings) {
  for (const auto& [what, by] : {std::pair{"\"", ""}, {": ", "="}, {",", ""}})
    settings = in_place_of(std::move(settings), what, by);
  return settings;
}

ComparisonRow row_of(const ComparedMachine& machine, const Case& what) {
  const std::string settings = what.settings;
  ComparisonRow row{.machine = machine.name, .op = what.op, .algorithm = what.algorithm, .settings = {}, .refused = {}};
  row.settings = in_words(settings);
  if (std::string_view(what.order) != "given") row.settings += fmt::format("order={}", what.order);
  const std::string text = fmt::format(
      R"({{"version": 1, "topology": {}, "collective": {{"op": "{}", "bytes": "{}", "order": "{}",
          "algorithm": {{"name": "{}"{}{}}}}}}})",
      machine.topology, to_string(what.op), what.op == barrier ? "0 B" : "64 MB", what.order, what.algorithm,
      settings.empty() ? "" : ", ", settings);
  try {
    const Scenario scenario = ScenarioFile::parse(text, "comparison").point(0);
    const Prediction found = predict(scenario);
    row.time = found.time;
    row.sent = most_sent(schedule_of(scenario).schedule());
    if (found.links.empty()) return row;
    row.link = in_place_of(found.links.front().busiest, "node0.", "");  // there is but one node
    row.carried = found.links.front().through_busiest;
    row.busy = found.links.front().utilization;
  } catch (const InputError& error) {
    row.refused = error.message();
  }
  return row;
}

}  // namespace

Bytes most_sent(const Schedule& schedule) {
  Bytes most;
  Step step;
  for (Actor a = 0; a < schedule.collective.ranks; ++a) {
    Bytes sent;
    for (Lane lane = 0; lane < schedule.lanes; ++lane)
      for (int i = 0; i < schedule.n_steps(a, lane); ++i) {
        step.clear();
        schedule.step(a, lane, i, step);
        for (const Op& op : step.ops)
          if (op.what == Do::send) sent += schedule.size(op.region);
      }
    most = std::max(most, sent);
  }
  return most;
}

std::vector<ComparisonRow> algorithms_on_machines() {
  std::vector<ComparisonRow> rows;
  for (const ComparedMachine& machine : compared_machines) {
    const std::string_view name = machine.name;
    for (const Case& what : cases)
      if (what.only_on == nullptr ? name != "star of 13" : name == what.only_on) rows.push_back(row_of(machine, what));
  }
  return rows;
}

std::string to_markdown(const std::vector<ComparisonRow>& rows) {
  const auto megabytes = [](Bytes bytes) { return fmt::format("{:.3f}", static_cast<double>(bytes.count) / 1e6); };
  std::string out, machine;
  for (const ComparisonRow& row : rows) {
    if (row.machine != machine) {
      out += fmt::format("{}### {}\n\n| {:<14} | {:<43} | {:>10} | {:>9} | {:<16} | {:>10} | {:>5} |\n",
                         machine.empty() ? "" : "\n", row.machine, "collective", "algorithm", "time us", "MB/rank",
                         "busiest link", "carried MB", "busy");
      out += "| --- | --- | ---: | ---: | --- | ---: | ---: |\n";
      machine = row.machine;
    }
    const std::string algorithm = row.algorithm + (row.settings.empty() ? "" : " ") + row.settings;
    out += fmt::format("| {:<14} | {:<43} | ", to_string(row.op), algorithm);
    if (!row.refused.empty())
      out += fmt::format("refused: {} |||||\n", row.refused);
    else if (row.link.empty())
      out += fmt::format("{:>10.3f} | {:>9} | {:<16} | {:>10} | {:>5} |\n", static_cast<double>(row.time.count()) / 1e6,
                         megabytes(row.sent), "-", "-", "-");
    else
      out += fmt::format("{:>10.3f} | {:>9} | {:<16} | {:>10} | {:>3.0f} % |\n",
                         static_cast<double>(row.time.count()) / 1e6, megabytes(row.sent), row.link,
                         megabytes(row.carried), 100 * row.busy);
  }
  return out;
}

}  // namespace ringsim
