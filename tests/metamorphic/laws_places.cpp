// Laws of topologies and of the places of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/setup/setup.hpp"
#include "sim/base/quantity.hpp"
#include "tests/metamorphic/law.hpp"

namespace ringsim::metamorphic {

namespace {

bool is_graph(const Json& scenario) { return is_at(scenario, "topology.kind", "graph"); }

bool fits_graph(Draw& /*draw*/, Json& scenario) { return is_graph(scenario); }

/// Without a circle: cables are one fewer than nodes (the maker's graphs are connected).
bool fits_tree(Draw& /*draw*/, Json& scenario) {
  return is_graph(scenario) && scenario["topology"]["links"].size() + 1 == scenario["topology"]["nodes"].size();
}

/// Which of several switches adds up depends on their order.
bool fits_tree_of_switches(Draw& draw, Json& scenario) { return fits_tree(draw, scenario) && !uses_switches(scenario); }

void hold_idle_switch(Trial& trial) {
  Json changed = trial.scenario;
  Json& topology = changed["topology"];
  const Json at = topology["nodes"][static_cast<std::size_t>(
      trial.draw.number(0, static_cast<std::int64_t>(topology["nodes"].size()) - 1))]["name"];
  topology["nodes"].push_back({{"name", "idle"}, {"kind", trial.draw.once_in(2) ? "switch" : "nic"}});
  Json cable = {{"from", at}, {"to", "idle"}};
  cable.update(random_link(trial.draw));
  topology["links"].push_back(cable);
  trial.require_same_run(trial.run(changed));
}

bool fits_idle_ranks(Draw& /*draw*/, Json& scenario) {
  // Algorithms that draw on the size of the topology, and packets whose buffers do not, stay.
  const Json kind = value_at(scenario, "topology.kind");
  if (!is_calm(scenario) || !(kind == "star" || kind == "full_mesh") || scenario["collective"].contains("ranks"))
    return false;
  Json names = Json::array();
  for (int r = 0; r < ranks_of_bare(scenario["topology"]); ++r) names.push_back(fmt::format("gpu{}", r));
  scenario["collective"]["ranks"] = names;
  return !uses_switches(scenario);
}

void hold_idle_ranks(Trial& trial) {
  Json changed = trial.scenario;
  Json& ranks = changed["topology"]["ranks"];
  ranks = ranks.get<int>() + static_cast<int>(trial.draw.number(1, 5));
  trial.require_same(changed);
}

bool fits_split_link(Draw& draw, Json& scenario) {
  return fits_tree(draw, scenario) && !is_at(scenario, "network.model", "packet") && !scenario.contains("faults") &&
         !uses_switches(scenario);
}

void hold_split_link(Trial& trial) {
  Json changed = trial.scenario;
  Json& topology = changed["topology"];
  const auto i =
      static_cast<std::size_t>(trial.draw.number(0, static_cast<std::int64_t>(topology["links"].size()) - 1));
  Json first = topology["links"][i];
  const Picoseconds latency = parse_time(first["latency"].get<std::string>());
  const Picoseconds part{trial.draw.number(0, latency.count())};
  Json second = first;
  first["to"] = "middle";
  second["from"] = "middle";
  first["latency"] = time_text(part);
  second["latency"] = time_text(latency - part);
  topology["nodes"].push_back({{"name", "middle"}, {"kind", "switch"}});
  topology["links"][i] = first;
  topology["links"].push_back(second);
  trial.require_same(changed);
}

void hold_cable_order(Trial& trial) {
  Json changed = trial.scenario;
  auto& links = changed["topology"]["links"].get_ref<Json::array_t&>();
  trial.draw.shuffle(links);
  for (Json& link : links)
    if (trial.draw.once_in(2)) std::swap(link["from"], link["to"]);
  trial.require_same(changed);
}

void hold_one_way_links(Trial& trial) {
  Json changed = trial.scenario;
  Json links = Json::array();
  for (Json link : changed["topology"]["links"]) {
    if (link.value("duplex", "full") == "half") {
      links.push_back(link);
      continue;
    }
    link["one_way"] = true;
    links.push_back(link);
    std::swap(link["from"], link["to"]);
    links.push_back(link);
  }
  changed["topology"]["links"] = links;
  trial.require_same_run(trial.run(changed));
}

/// Renames all nodes of the graph that are not gpus, and puts them in another order.
void hold_renamed_switches(Trial& trial) {
  Json changed = trial.scenario;
  std::vector<Json> gpus, others;
  for (const Json& node : changed["topology"]["nodes"]) (node["kind"] == "gpu" ? gpus : others).push_back(node);
  trial.draw.shuffle(others);
  Json nodes = Json::array();  // gpus keep their order, which is that of the ranks
  for (const auto* part : {&others, &gpus})
    for (const Json& node : *part) nodes.push_back(node);
  std::map<std::string, std::string> names;
  for (Json& node : nodes) {
    const std::string name = node["name"].get<std::string>();
    names[name] = node["kind"] == "gpu" ? name : "renamed " + name;
    node["name"] = names[name];
  }
  changed["topology"]["nodes"] = nodes;
  for (Json& link : changed["topology"]["links"])
    for (const char* end : {"from", "to"}) link[end] = names.at(link[end].get<std::string>());
  if (changed.contains("faults"))
    for (Json& fault : changed["faults"]) fault["link"] = names.at(fault["link"].get<std::string>());
  trial.require_same(changed);
}

/// Positions of ranks that keep all distances: any on a star and a full mesh, turns of a ring, of each dimension of a
/// torus.
std::vector<int> symmetric_places(Draw& draw, const Json& topology) {
  const int n = ranks_of_bare(topology);
  std::vector<int> places;
  for (int r = 0; r < n; ++r) places.push_back(r);
  if (topology["kind"] == "star" || topology["kind"] == "full_mesh") {
    draw.shuffle(places);
    return places;
  }
  std::vector<int> grid{n};
  if (topology["kind"] == "torus") grid = topology["dimensions"].get<std::vector<int>>();
  std::vector<int> turns;
  for (const int d : grid) turns.push_back(static_cast<int>(draw.number(0, d - 1)));
  for (int& place : places) {
    int left = place, scale = 1, turned = 0;
    for (std::size_t d = grid.size(); d-- > 0;) {
      turned += (left % grid[d] + turns[d]) % grid[d] * scale;
      left /= grid[d];
      scale *= grid[d];
    }
    place = turned;
  }
  return places;
}

bool fits_relabeled(Draw& /*draw*/, Json& scenario) {
  if (!is_bare(scenario)) return false;
  make_calm(scenario);
  if (!is_calm(scenario) || value_at(scenario, "collective.order") == "shuffled") return false;
  if (scenario["collective"].contains("ranks") || scenario["collective"].contains("order")) return false;
  // Of equally short ways a ring of 4 or a torus takes the one that was added first, which is not symmetric.
  const Json kind = value_at(scenario, "topology.kind");
  if ((kind == "ring" || kind == "torus") && ranks_of_bare(scenario["topology"]) > 3) {
    scenario["collective"]["algorithm"] = "ring";
    scenario["collective"]["op"] = "all_reduce";
    scenario["collective"].erase("root");
    if (is_at(scenario, "collective.bytes", "0 B")) scenario["collective"]["bytes"] = "1 MB";
    if (kind == "torus") return false;
  }
  return !is_at(scenario, "network.routing", "ecmp");
}

void hold_relabeled(Trial& trial) {
  const std::vector<int> places = symmetric_places(trial.draw, trial.scenario["topology"]);
  Json names = Json::array();
  for (const int place : places) names.push_back(fmt::format("gpu{}", place));
  trial.require_same(with(trial.scenario, "collective.ranks", names));
}

/// The built topology as a scenario lists one.
Json as_graph(const Topology& topology) {
  Json nodes = Json::array(), links = Json::array();
  for (const Node& node : topology.nodes())
    nodes.push_back({{"name", node.name}, {"kind", node.kind == NodeKind::gpu ? "gpu" : "switch"}});
  for (const Link& link : topology.links())
    links.push_back({{"from", topology.node(link.from).name},
                     {"to", topology.node(link.to).name},
                     {"bandwidth", format(link.bandwidth)},
                     {"latency", time_text(link.latency)},
                     {"one_way", true}});
  return {{"kind", "graph"}, {"nodes", nodes}, {"links", links}};
}

/// Helpers on ports of their own, and algorithms that ask for the grid of a torus, know what a graph does not say.
bool fits_as_graph(Draw& /*draw*/, Json& scenario) {
  if (!is_bare(scenario)) return false;
  return json_text(scenario).find("servers") == std::string::npos && !uses_switches(scenario) &&
         !is_at(scenario, "topology.kind", "torus");
}

void hold_as_graph(Trial& trial) {
  const Scenario scenario = decoded(trial.scenario);
  trial.require_same_run(trial.run(with(trial.scenario, "topology", as_graph(topology_of(scenario)))));
}

bool fits_wide_inside(Draw& draw, Json& scenario) {
  make_calm(scenario);
  if (!is_calm(scenario)) return false;
  const int n = static_cast<int>(draw.number(2, 6));
  Json nodes = Json::array(), links = Json::array();
  const Json link = random_link(draw);
  for (int g = 0; g < n; ++g) {
    nodes.push_back({{"name", fmt::format("gpu{}", g)}, {"kind", "gpu"}});
    links.push_back({{"from", fmt::format("gpu{}", g)}, {"to", g % 2 == 0 ? "left" : "right"}});
    links.back().update(link);
  }
  for (const char* name : {"left", "right"}) nodes.push_back({{"name", name}, {"kind", "switch"}});
  // As wide as all ports together.
  const Bandwidth port = parse_bandwidth(link["bandwidth"].get<std::string>());
  links.push_back({{"from", "left"},
                   {"to", "right"},
                   {"bandwidth", format(Bandwidth{port.bytes_per_second * n})},
                   {"latency", "1 us"}});
  scenario["topology"] = {{"kind", "graph"}, {"nodes", nodes}, {"links", links}};
  scenario["collective"] = random_collective(draw, n);
  scenario["network"] = {{"model", "fair"}};
  return true;
}

void hold_wide_inside(Trial& trial) { trial.require_same(with(trial.scenario, "network.model", "ideal")); }

}  // namespace

std::vector<Law> place_laws() {
  return {
      {"idle_switch", "A switch or NIC on a cable of its own, which leads nowhere, changes nothing.", fits_graph,
       hold_idle_switch},
      {"idle_ranks",
       "More GPUs on a star or a full mesh, which do not take part, change nothing: they have ports of their own. Not "
       "with in_switch, whose switches add up.",
       fits_idle_ranks, hold_idle_ranks},
      {"split_link",
       "A cable as two with a switch between, which share its latency: the same times. Data passes switches "
       "cut-through, "
       "and both halves carry the same flows. In a tree, where there is one way only. Not with packets, which a switch "
       "takes in before it passes them on, nor with switches that add up.",
       fits_split_link, hold_split_link},
      {"cable_order", "Cables listed in another order, or from the other end: the same times, in a tree.",
       fits_tree_of_switches, hold_cable_order},
      {"one_way_links", "A full duplex cable is two links of one direction each: the same run.", fits_graph,
       hold_one_way_links},
      {"renamed_switches", "Switches of other names, listed in another order: the same times, in a tree.",
       fits_tree_of_switches, hold_renamed_switches},
      {"relabeled_ranks",
       "Ranks on other places that a symmetry of the topology maps to theirs: the same time. Any order on a star and a "
       "full mesh, a turn of a ring.",
       fits_relabeled, hold_relabeled},
      {"as_graph", "A star, ring or full mesh listed as a graph: the same run.", fits_as_graph, hold_as_graph},
      {"wide_inside",
       "Where the cable inside carries all ports at full speed, fair and ideal agree: it is never the narrowest.",
       fits_wide_inside, hold_wide_inside},
  };
}

}  // namespace ringsim::metamorphic
