// ringsim bound: the optimum of a machine for each collective, and the links that set it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/json.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/stop.hpp"
#include "topologies/bound/cut_text.hpp"
#include "validate/closed_forms/bound.hpp"

namespace ringsim::tools {

namespace {

struct BoundArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;  ///< if the scenario is the name of one: how many, and what joins them
  std::optional<bool> said_json;
  bool json = false;       ///< `said_json`, or what the ending of `output` says
  bool all_links = false;  ///< counts links that no path between ranks takes as well
  std::string output;      ///< a file; empty or "-": stdout

  void settle() { json = format_by_ending(output, said_json, false, {{".json", true}}); }
};

void declare(Options& options, BoundArguments& bound) {
  options.scenario(bound.scenario, bound.set);
  declare_nodes(options, bound.machine);
  options.choice<bool>("--format", {{"table", false}, {"json", true}}, bound.said_json, "the output format").fallback =
      "table";
  options.flag("--all-links", bound.all_links, "include all links, even those that no path between ranks uses");
  options.output(bound.output, "the bounds");
}

struct BoundRow {
  BoundedCollective what;
  Bound bound;
  Picoseconds latency_floor{0};
  std::optional<Bound> routed;  ///< over the links that the scenario's routing uses, if it leaves some unused
};

/// The collectives that everybody asks for, and the scenario's own if it is another.
/// `routed`: the same machine with the links that its routing uses; nullptr: it uses all that count.
std::vector<BoundRow> rows_of(const CollectiveRequest& own, MachineBounds& machine, MachineBounds* routed) {
  using enum CollectiveOp;
  std::vector<BoundedCollective> asked{{.op = all_gather},
                                       {.op = reduce_scatter},
                                       {.op = all_reduce},
                                       {.op = all_reduce, .helpers_add = true},
                                       {.op = broadcast, .root = own.root},
                                       {.op = all_to_all}};
  if (own.op != barrier &&
      std::none_of(asked.begin(), asked.end(), [&](const auto& each) { return each.op == own.op; }))
    asked.push_back({.op = own.op, .root = has_root(own.op) ? own.root : 0, .both_ways = own.both_ways});
  std::vector<BoundRow> rows;
  ProgressLine progress(asked.size());
  for (BoundedCollective& what : asked) {
    what.point_to_point = is_point_to_point(what.op);  // as if the scenario asked for it
    progress.now(fmt::format("the bound of {}", to_string(what.op)));
    const auto bound = machine.of(what, own.bytes);
    ensure(bound.has_value(), "every collective except barrier has a bound");
    rows.push_back({.what = what, .bound = *bound, .latency_floor = machine.latency_floor(what), .routed = {}});
    if (routed != nullptr) rows.back().routed = routed->of(what, own.bytes);
    progress.add(1.0);
  }
  return rows;
}

std::string name_of(const BoundRow& row) {
  std::string name(to_string(row.what.op));
  if (row.what.helpers_add) name += ", reduced in switches";
  if (has_root(row.what.op)) name += fmt::format(", root {}", row.what.root);
  return name;
}

/// Trees that reach the bound may need links that the routing leaves unused.
bool is_optimum(const BoundRow& row) {
  return row.bound.is_optimum && (!row.routed || row.routed->inverse_rate == row.bound.inverse_rate);
}

std::string unused_text(const Scenario& scenario, const MachineBounds& machine) {
  if (machine.unused().empty()) return "";
  return wrapped(fmt::format("The bounds include all links of the fabric. The routing ({}) leaves {} of them unused: "
                             "{}. \"As routed\" is the bound without these links.",
                             to_string(scenario.routing.policy), machine.unused().size(),
                             links_in_words(machine.topology(), machine.unused(), machine.rates()))) +
         '\n';
}

std::string text_of(const Scenario& scenario, const MachineBounds& machine, const std::vector<BoundRow>& rows) {
  const int n = scenario.main().request.ranks;
  const auto counted = std::count(machine.use().links.begin(), machine.use().links.end(), true);
  std::string text =
      wrapped(fmt::format("{}: {} rank{}, {}, {} of {} links included", scenario.name, n, n == 1 ? "" : "s",
                          format(scenario.main().request.bytes), counted, machine.topology().n_links()));
  const bool routed = rows.front().routed.has_value();  // then there is no room for the inverse rates; JSON has them
  Table table(
      {"collective", "bound", "algbw GB/s", "busbw GB/s", routed ? "as routed" : "1/rate s/GB", "kind", "latency"});
  for (const BoundRow& row : rows)
    table.add({name_of(row), row.bound.time, figure(row.bound.algbw),
               figure(row.bound.algbw * busbw_factor(row.what.op, n)),
               row.routed ? TableCell(row.routed->time)
                          : to_string(row.bound.inverse_rate) + (row.bound.is_block ? " per block" : ""),
               is_optimum(row) ? "optimum" : "lower bound", row.latency_floor});
  text += '\n' + table.fitted() + unused_text(scenario, machine);
  const Picoseconds both = rows[0].bound.time + rows[1].bound.time;
  text +=
      wrapped(fmt::format("An all-reduce as a reduce-scatter followed by an all-gather takes {}.", time_text(both))) +
      "\nBottlenecks:\n";
  for (const BoundRow& row : rows) text += wrapped(fmt::format("{}: {}", name_of(row), row.bound.why)) + '\n';
  return text;
}

Json names_of(const Topology& topology, const std::vector<LinkId>& links) {
  Json names = Json::array();
  for (const LinkId link : links) names.push_back(topology.resource_name(topology.link(link).resource));
  return names;
}

std::string json_of(const ScenarioFile& file, const Scenario& scenario, const MachineBounds& machine,
                    const std::vector<BoundRow>& rows) {
  Json document{{"ringsim", {{"version", version}, {"model_version", model_version}}},
                {"scenario", {{"name", file.name()}, {"hash", scenario.hash}}},
                {"ranks", scenario.main().request.ranks},
                {"bytes", scenario.main().request.bytes.count},
                {"routing", to_string(scenario.routing.policy)},
                {"unused_links", names_of(machine.topology(), machine.unused())},
                {"bounds", Json::array()}};
  for (const BoundRow& row : rows) {
    Json entry{{"collective", to_string(row.what.op)}};
    if (has_root(row.what.op)) entry["root"] = row.what.root;
    entry["sums_in_switches"] = row.what.helpers_add;
    entry["bound_us"] = microseconds(row.bound.time);
    entry["bound_algbw_GBps"] = row.bound.algbw;
    entry["bound_busbw_GBps"] = row.bound.algbw * busbw_factor(row.what.op, scenario.main().request.ranks);
    entry["inverse_rate"] = to_string(row.bound.inverse_rate);
    entry["inverse_rate_of"] = row.bound.is_block ? "block" : "message";
    entry["optimum"] = is_optimum(row);
    if (row.routed) entry["bound_as_routed_us"] = microseconds(row.routed->time);
    entry["bottleneck"] = row.bound.why;
    entry["cut"] = names_of(machine.topology(), row.bound.cut);
    entry["latency_floor_us"] = microseconds(row.latency_floor);
    document["bounds"].push_back(std::move(entry));
  }
  return json_text(document, 2) + "\n";
}

int execute(const BoundArguments& arguments) {
  refuse_as_output(arguments.scenario, arguments.output);
  const ScenarioText input = read_input(arguments.scenario, arguments.machine);
  const ScenarioFile file = parse_with_any_algorithm(input, arguments.set);
  const Scenario scenario = first_point(file);
  expect_collective(scenario);
  std::optional<EndsAtOnce> nothing_to_lose(std::in_place);
  const Setup setup = while_saying("building the topology", [&] { return set_up(scenario); });
  MachineBounds machine = while_saying("finding the links that paths take", [&] {
    return MachineBounds(scenario, setup, setup.collectives.front().ranks, {},
                         arguments.all_links ? Counted::all : Counted::any_way);
  });
  std::optional<MachineBounds> routed;
  if (!machine.unused().empty())
    routed.emplace(scenario, setup, setup.collectives.front().ranks, std::vector<NodeId>{}, Counted::routed);
  const std::vector<BoundRow> rows = rows_of(scenario.main().request, machine, routed ? &*routed : nullptr);
  nothing_to_lose.reset();
  Output output(arguments.output);
  output.write(arguments.json ? json_of(file, scenario, machine, rows) : text_of(scenario, machine, rows));
  output.finish();
  return good;
}

}  // namespace

Command bound_command() {
  return {.name = "bound",
          .group = Group::predict,
          .summary = "Show the minimum time that a machine allows, and the links that limit it",
          .example = "ringsim bound scenarios/examples/machines/two-node-server.json",
          .details =
              "For each collective, prints the minimum time that the bandwidth allows with any algorithm, for the "
              "message size of the scenario's first point. An \"optimum\" can be reached with trees. No algorithm is "
              "faster than a \"lower bound\", but the optimum may be slower. The latency is a separate bound: that of "
              "the longest path that a signal must take.\n\nThe bound \"reduced in switches\" applies to machines "
              "whose switches can add: in an all-reduce, the data then only has to leave and enter every rank once. "
              "The other bounds also hold for such machines.\n\nWithin a machine, a link is included if a path between "
              "two ranks uses it; between machines, and in a graph, every link is included. If the routing leaves "
              "links unused, the table lists them and also shows the bound without them. Faults are included if they "
              "last from start to end. Other collectives, background messages and protocols are not included.",
          .prepare = with<BoundArguments>(declare, execute)};
}

}  // namespace ringsim::tools
