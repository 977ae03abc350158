#include "tests/metamorphic/random_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"

namespace ringsim::metamorphic {

namespace {

std::string whole(std::int64_t number, const char* unit) { return fmt::format("{} {}", number, unit); }

/// Two of three: a byte takes whole picoseconds, so that times have no rounding.
std::string random_rate(Draw& draw) {
  if (draw.once_in(3)) return whole(draw.number(1, 3000) * 100, "Mb/s");
  return whole(draw.one_of(std::array{1, 2, 4, 5, 8, 10, 20, 25, 40, 50, 100}), "GB/s");
}

std::string random_time(Draw& draw, std::int64_t most_ns) { return whole(draw.number(0, most_ns), "ns"); }

std::string random_size(Draw& draw) {
  switch (draw.number(0, 4)) {
    case 0:
      return whole(draw.number(0, 100), "B");
    case 1:
      return whole(draw.number(1, 2'000'000), "B");
    default:
      return whole(draw.number(1, 20) * even_bytes, "B");
  }
}

/// A topology, and what of it the rest of a scenario names.
struct Place {
  Json topology;
  std::vector<std::string> gpus;
  std::vector<std::string> nodes;  ///< whose links may have faults
  bool is_cluster = false;
};

std::string gpu_name(std::int64_t i) { return fmt::format("gpu{}", i); }

Json graph_node(const std::string& name, const char* kind) { return {{"name", name}, {"kind", kind}}; }

Json cable_of(Draw& draw, const std::string& from, const std::string& to) {
  Json cable = {{"from", from}, {"to", to}};
  cable.update(random_link(draw));
  if (draw.once_in(8)) cable["duplex"] = "half";
  return cable;
}

/// GPUs on the leaves of a tree of switches, so that there is one way between any two; sometimes one cable more.
Json random_graph(Draw& draw, int n) {
  Json nodes = Json::array(), links = Json::array();
  for (int g = 0; g < n; ++g) nodes.push_back(graph_node(gpu_name(g), "gpu"));
  const std::int64_t switches = draw.number(1, 4);
  for (std::int64_t s = 0; s < switches; ++s) {
    const std::string name = fmt::format("s{}", s);
    nodes.push_back(graph_node(name, "switch"));
    if (s > 0) links.push_back(cable_of(draw, fmt::format("s{}", draw.number(0, s - 1)), name));
  }
  for (int g = 0; g < n; ++g)
    links.push_back(cable_of(draw, gpu_name(g), fmt::format("s{}", draw.number(0, switches - 1))));
  if (switches > 1 && draw.once_in(6)) links.push_back(cable_of(draw, gpu_name(0), fmt::format("s{}", switches - 1)));
  return {{"kind", "graph"}, {"nodes", nodes}, {"links", links}};
}

Place bare_place(Draw& draw) {
  Place place;
  int n = static_cast<int>(draw.number(draw.once_in(12) ? 1 : 2, 8));
  const char* kind = draw.one_of(std::array{"star", "star", "ring", "full_mesh", "torus", "graph", "graph"});
  const std::string word = kind;
  if (word == "graph") {
    place.topology = random_graph(draw, n);
  } else if (word == "torus") {
    const std::vector<std::vector<int>> grids{{2, 2}, {2, 3}, {3, 3}, {2, 2, 2}, {4}, {2, 4}};
    const std::vector<int> grid = draw.one_of(grids);
    n = 1;
    for (const int d : grid) n *= d;
    place.topology = {{"kind", kind}, {"dimensions", grid}, {"link", random_link(draw)}};
  } else {
    place.topology = {{"kind", kind}, {"ranks", n}, {"link", random_link(draw)}};
  }
  for (int g = 0; g < n; ++g) place.gpus.push_back(gpu_name(g));
  place.nodes = place.gpus;
  if (word == "star") place.nodes.emplace_back("switch0");
  if (word == "graph") place.nodes.emplace_back("s0");
  return place;
}

Json random_fabric(Draw& draw) {
  const std::string kind =
      draw.one_of(std::array{"star", "star", "leaf_spine", "fat_tree", "rail", "torus", "dragonfly"});
  Json fabric = {{"kind", kind}, {"link", random_link(draw)}};
  if (kind == "leaf_spine") {
    fabric["nodes_per_leaf"] = draw.number(1, 2);
    fabric["oversubscription"] = draw.number(1, 2);
  } else if (kind == "fat_tree") {
    fabric["k"] = draw.one_of(std::array{4, 6, 8});
  } else if (kind == "rail") {
    fabric["nodes_per_group"] = draw.number(1, 4);
    fabric["spines"] = draw.number(0, 2);
  } else if (kind == "torus") {
    fabric["dimensions"] = draw.once_in(2) ? Json::array({2, 2}) : Json::array({3});
  } else if (kind == "dragonfly") {
    fabric["groups"] = 2;
    fabric["routers"] = 2;
    fabric["nodes_per_router"] = 1;
  }
  return fabric;
}

Place cluster_place(Draw& draw) {
  struct Preset {
    const char* name;
    int gpus;
  };
  const Preset preset = draw.one_of(std::array{Preset{"dgx-1v", 8}, Preset{"dgx-a100", 8}, Preset{"hgx-h100", 8},
                                               Preset{"abci-v", 4}, Preset{"polaris", 4}, Preset{"gh200-one", 1},
                                               Preset{"a100-pcie", 8}, Preset{"p100x4-roce", 4}});
  const std::int64_t nodes = draw.number(1, preset.gpus == 8 ? 2 : 3);
  Place place{.topology = {{"kind", "cluster"}, {"node", preset.name}, {"nodes", nodes}}, .is_cluster = true};
  if (nodes > 1) place.topology["fabric"] = random_fabric(draw);
  for (std::int64_t i = 0; i < nodes; ++i) {
    for (int g = 0; g < preset.gpus; ++g) place.gpus.push_back(fmt::format("node{}.gpu{}", i, g));
    place.nodes.push_back(fmt::format("node{}.nic0", i));
    place.nodes.push_back(fmt::format("node{}.gpu0", i));
  }
  return place;
}

std::string random_grid(Draw& draw, int n) {
  std::vector<std::string> grids{fmt::format("{}", n)};
  for (int a = 2; a < n; ++a)
    if (n % a == 0) grids.push_back(fmt::format("{}x{}", a, n / a));
  return draw.one_of(grids);
}

int divisor_of(Draw& draw, int n) {
  std::vector<int> found;
  for (int d = 1; d <= n; ++d)
    if (n % d == 0) found.push_back(d);
  return draw.one_of(found);
}

Json random_algorithm(Draw& draw, CollectiveOp op, int ranks) {
  std::vector<const Algorithm*> able;
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.supports(op)) able.push_back(&algorithm);
  const Algorithm& algorithm = *draw.one_of(able);
  Json found = {{"name", algorithm.name}};
  for (const Parameter& parameter : algorithm.parameters) {
    const bool is_needed = parameter.name == "group" && algorithm.name == "hierarchical";
    if (!is_needed && !draw.once_in(4)) continue;
    if (!parameter.choices.empty())
      found[parameter.name] = draw.one_of(parameter.choices);
    else if (!parameter.example.empty())
      found[parameter.name] = random_grid(draw, ranks);
    else if (parameter.name == "group")
      found[parameter.name] = divisor_of(draw, ranks);
    else
      found[parameter.name] = draw.number(parameter.min, std::min(parameter.max, parameter.min + 3));
  }
  return found.size() == 1 ? Json(algorithm.name) : found;
}

void add_transport(Draw& draw, Json& scenario) {
  Json transport = Json::object();
  if (draw.once_in(3)) transport["protocol"] = draw.one_of(std::array{"simple", "ll", "ll128"});
  if (draw.once_in(4)) transport["channels"] = draw.number(2, 4);
  if (draw.once_in(6)) transport["chunk"] = whole(draw.number(20, 400), "kB");
  if (draw.once_in(6)) transport["launch"] = random_time(draw, 9000);
  if (draw.once_in(6)) transport["gpudirect"] = false;
  if (draw.once_in(8)) transport["nics"] = "all";
  if (draw.once_in(8))
    transport["staging"] = {{"size", whole(draw.number(4, 400), "kB")}, {"depth", draw.number(1, 4)}};
  if (!transport.empty()) scenario["transport"] = transport;
}

void add_network(Draw& draw, Json& scenario, bool may_be_packet) {
  Json network = Json::object();
  if (draw.once_in(4)) network["model"] = "ideal";
  if (may_be_packet && draw.once_in(5)) {
    network["model"] = "packet";
    network["packet"] = {{"mtu", whole(draw.number(2, 64), "kB")}};
    if (draw.once_in(3)) network["packet"]["flow_control"] = "pause";
  }
  if (draw.once_in(5)) {
    network["routing"] = draw.one_of(std::array{"ecmp", "flow_spray", "packet_spray"});
    if (draw.once_in(2)) network["seed"] = draw.number(0, 9);
  }
  if (!network.empty()) scenario["network"] = network;
}

Json random_fault(Draw& draw, const Place& place) {
  Json fault = {{"link", draw.one_of(place.nodes)}};
  if (draw.once_in(5))
    fault["state"] = "down";
  else
    fault["bandwidth"] = fmt::format("{}%", draw.one_of(std::array{10, 25, 50, 75, 100}));
  const std::int64_t at = draw.number(0, 100'000);
  if (at > 30'000) fault["at"] = whole(at, "ns");
  if (fault.contains("state") || draw.once_in(2)) fault["until"] = whole(at + draw.number(1, 200'000), "ns");
  return fault;
}

void add_disturbance(Draw& draw, Json& scenario, const Place& place) {
  const auto n = static_cast<std::int64_t>(place.gpus.size());
  if (draw.once_in(4)) {
    scenario["faults"] = Json::array();
    for (std::int64_t i = draw.number(1, 2); i > 0; --i) scenario["faults"].push_back(random_fault(draw, place));
  }
  if (scenario.contains("training")) return;  // which has its own stragglers
  Json disturbance = Json::object();
  if (draw.once_in(4))
    disturbance["late"] = Json::array({{{"rank", draw.number(0, n - 1)}, {"by", random_time(draw, 90'000)}}});
  if (draw.once_in(4))
    disturbance["slow"] = Json::array({{{"rank", draw.number(0, n - 1)}, {"step_delay", random_time(draw, 9000)}}});
  if (draw.once_in(5)) disturbance["jitter"] = {{"most", random_time(draw, 9000)}, {"seed", draw.number(0, 9)}};
  if (n > 1 && draw.once_in(5))
    disturbance["background"] = Json::array({{{"from", place.gpus.front()},
                                              {"to", place.gpus.back()},
                                              {"bytes", whole(draw.number(1, 900), "kB")},
                                              {"start", random_time(draw, 90'000)}}});
  if (!disturbance.empty()) scenario["disturbance"] = disturbance;
}

/// Some of the GPUs, or groups of all.
void choose_ranks(Draw& draw, Json& collective, std::vector<std::string> gpus) {
  const int n = static_cast<int>(gpus.size());
  if (n > 1 && draw.once_in(8)) {
    collective["split"] = fmt::format("{} {}", draw.one_of(std::array{"DIV", "MOD"}), divisor_of(draw, n));
  } else if (draw.once_in(4)) {
    draw.shuffle(gpus);
    gpus.resize(static_cast<std::size_t>(draw.number(std::min(2, n), n)));
    collective["ranks"] = gpus;
  } else if (draw.once_in(10)) {
    collective["order"] = draw.one_of(std::array{"shuffled", "best_ring"});
  }
}

int members_of(const Json& collective, int gpus) {
  return collective.contains("ranks") ? static_cast<int>(collective["ranks"].size()) : gpus;
}

Json placed_collective(Draw& draw, const Place& place) {
  Json chosen = Json::object();
  choose_ranks(draw, chosen, place.gpus);
  Json collective = random_collective(draw, members_of(chosen, static_cast<int>(place.gpus.size())));
  collective.update(chosen);
  return collective;
}

void add_jobs(Draw& draw, Json& scenario, const Place& place) {
  Json job = {{"name", "second"}, {"collective", placed_collective(draw, place)}};
  if (draw.once_in(3))
    job["after"] = Json::array({"main"});
  else if (draw.once_in(2))
    job["start"] = random_time(draw, 90'000);
  scenario["jobs"] = Json::array({job});
}

Json random_regime(Draw& draw) {
  const std::string name = draw.one_of(std::array{"ddp", "ddp", "ddp", "local_sgd", "gossip", "parameter_server",
                                                  "data_parallel", "model_parallel", "single"});
  Json regime = {{"name", name}};
  if (name == "ddp" || name == "local_sgd")
    regime["algorithm"] = draw.one_of(std::array{"ring", "halving_doubling", "double_binary_tree", "direct"});
  if (name == "model_parallel") regime["microbatches"] = draw.number(1, 4);
  if (name == "local_sgd" || name == "gossip") regime["every"] = draw.number(1, 3);
  if (name == "gossip" && draw.once_in(2)) regime["overlap"] = true;
  if (name == "ddp" && draw.once_in(2)) {
    const std::string size = whole(draw.number(50, 2000), "kB");
    regime["buckets"] = {{"size", size}, {"first", size}};
  } else if (name == "ddp" && draw.once_in(4)) {
    regime["buckets"] = {{"rule", "horovod"}, {"cycle", whole(draw.number(10, 900), "us")}};
  }
  if (name == "ddp" && draw.once_in(4)) regime["overlap"] = false;
  return regime;
}

Json random_training(Draw& draw) {
  Json training = {{"workload", {{"layers", random_layers(draw, 300'000)}, {"batch", draw.number(1, 64)}}},
                   {"regime", random_regime(draw)}};
  if (training["regime"]["name"] == "data_parallel") {
    training["workload"]["sample_bytes"] = "1 kB";
    training["workload"]["output_bytes"] = "400 B";
  } else if (training["regime"]["name"] == "parameter_server" && draw.once_in(2)) {
    training["workload"]["sample_bytes"] = "1 kB";
  } else if (training["regime"]["name"] == "model_parallel") {
    Json& workload = training["workload"];
    workload["batch"] = 12;  // as many microbatches as there may be divide it
    workload["activation_bytes"] = whole(draw.number(1, 90), "kB");
    workload["layers"].push_back({{"name", "more"},
                                  {"times", 64},
                                  {"parameters", 1000},
                                  {"forward", "3 us"},
                                  {"backward", "5 us"}});  // a rank each
  }
  if (draw.once_in(3))
    training["optimizer"] = {{"name", draw.one_of(std::array{"sgd", "momentum", "adam"})}, {"time", "50 us"}};
  if (draw.once_in(4)) training["host"] = {{"launch", random_time(draw, 9000)}};
  if (draw.once_in(5)) training["slow"] = Json::array({{{"rank", 0}, {"factor", draw.number(1, 3)}}});
  if (draw.once_in(6))
    training["jitter"] = {{"distribution", "uniform"}, {"spread", "20 us"}, {"seed", draw.number(0, 9)}};
  if (draw.once_in(3)) training["steps"] = draw.number(1, 4);
  return training;
}

Json library_collective(Draw& draw) {
  return {{"op", draw.one_of(std::array{"all_reduce", "all_gather", "reduce_scatter", "broadcast"})},
          {"bytes", random_size(draw)}};
}

}  // namespace

Json random_link(Draw& draw) {
  const std::string latency = draw.once_in(3) ? random_time(draw, 5000) : fmt::format("{} ns", draw.number(0, 4) * 500);
  return {{"bandwidth", random_rate(draw)}, {"latency", latency}};
}

Json star_of(Draw& draw, int ranks) { return {{"kind", "star"}, {"ranks", ranks}, {"link", random_link(draw)}}; }

Json random_layers(Draw& draw, std::int64_t most_parameters) {
  Json layers = Json::array();
  const std::int64_t n = draw.number(1, 3);
  for (std::int64_t i = 0; i < n; ++i)
    layers.push_back({{"name", fmt::format("l{}", i)},
                      {"times", draw.number(1, 4)},
                      {"parameters", draw.number(0, most_parameters / 1000) * 1000},
                      {"forward", fmt::format("{} us", draw.number(1, 90))},
                      {"backward", fmt::format("{} us", draw.number(1, 180))}});
  return layers;
}

Json random_collective(Draw& draw, int ranks) {
  const std::span<const CollectiveOp> ops = collective_ops();
  const CollectiveOp op =
      draw.once_in(2) ? CollectiveOp::all_reduce
                      : ops[static_cast<std::size_t>(draw.number(0, static_cast<std::int64_t>(ops.size()) - 1))];
  Json found = {{"op", to_string(op)}, {"algorithm", random_algorithm(draw, op, ranks)}, {"bytes", random_size(draw)}};
  if (op == CollectiveOp::barrier) found["bytes"] = "0 B";
  if (has_root(op) && draw.once_in(2)) found["root"] = draw.number(0, ranks - 1);
  if (draw.once_in(6)) found["in_place"] = draw.once_in(2);
  return found;
}

Json random_scenario(Draw& draw) {
  const Place place = draw.once_in(3) ? cluster_place(draw) : bare_place(draw);
  Json scenario = {{"version", 1}, {"topology", place.topology}};
  const bool by_library = place.is_cluster && draw.once_in(4);
  const bool is_training = !by_library && draw.once_in(6);
  if (is_training) {
    scenario["training"] = random_training(draw);
  } else if (by_library) {
    scenario["library"] = "nccl";
    scenario["collective"] = library_collective(draw);
  } else {
    scenario["collective"] = placed_collective(draw, place);
    if (draw.once_in(8)) add_jobs(draw, scenario, place);
    if (draw.once_in(2)) add_transport(draw, scenario);
    if (draw.once_in(8))
      scenario["devices"]["gpu"] = {{"copy", random_rate(draw)}, {"reduce", random_rate(draw)}, {"start", "1 us"}};
  }
  add_network(draw, scenario, !is_training && place.gpus.size() <= 8);
  if (draw.once_in(3)) add_disturbance(draw, scenario, place);
  return scenario;
}

}  // namespace ringsim::metamorphic
