// ringsim topology rings: the rings that a search like NCCL's finds for the channels of a collective.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "scenarios/scenario.hpp"
#include "scenarios/setup/searched_graph.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/table.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/search/channel_rings.hpp"

namespace ringsim::tools {

namespace {

enum class RingsFormat { table, nccl_graph };

struct RingsArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;  ///< if the scenario is a machine: how many, and what joins them
  bool all = false;
  std::optional<RingsFormat> said_to;
  RingsFormat to = RingsFormat::table;  ///< `said_to`, or what the ending of `output` says
  std::string output;

  void settle() { to = format_to(output, said_to, RingsFormat::table, {{".xml", RingsFormat::nccl_graph}}); }
};

void declare(Options& options, RingsArguments& rings) {
  options.scenario(rings.scenario, rings.set);
  declare_nodes(options, rings.machine);
  options.flag("--all", rings.all, "show every node, even if all are identical");
  options
      .choice<RingsFormat>("--to", {{"table", RingsFormat::table}, {"nccl-graph", RingsFormat::nccl_graph}},
                           rings.said_to, "nccl-graph writes graph XML for NCCL_GRAPH_FILE")
      .fallback = "nccl-graph for FILE.xml, else table";
  options.output(rings.output, "the rings");
}

/// A ring in one node: its GPUs by number, and how it leaves.
struct InNode {
  std::string node;  ///< of the first GPU's name: "node0"; empty for what is not in a host
  std::vector<std::string> gpus;
  std::string leaves, enters;  ///< "nic0 (PXB)"; empty on one node
  bool alike(const InNode& other) const {
    return gpus == other.gpus && leaves == other.leaves && enters == other.enters;
  }
};

/// "nic0 (PXB)"
std::string said(const Topology& topology, std::optional<NodeId> nic, PathType type) {
  return fmt::format("{} ({})", nic ? local_name(topology.node(*nic).name) : "", to_string(type));
}

std::vector<InNode> in_nodes(const Topology& topology, Routes& routes, const std::vector<NodeId>& ranks,
                             const std::vector<Actor>& order, std::uint32_t channel) {
  std::vector<InNode> nodes;
  const auto at = [&](std::size_t i) { return ranks[static_cast<std::size_t>(order[i % order.size()])]; };
  std::string entered;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Node& here = topology.node(at(i));
    if (i == 0 || here.host != topology.node(at(i - 1)).host) {
      const std::size_t dot = here.name.find('.');
      nodes.push_back({dot == std::string::npos ? "" : here.name.substr(0, dot), {}, "", entered});
    }
    nodes.back().gpus.emplace_back(local_name(here.name));
    if (here.host == topology.node(at(i + 1)).host) continue;
    const Path path = routes.find(at(i), at(i + 1), channel);
    nodes.back().leaves = said(topology, first_nic(topology, path), path.out);
    entered = said(topology, last_nic(topology, path), path.in);
  }
  nodes.front().enters = entered;
  return nodes;
}

/// "8 rings of 24 GB/s each, 192 GB/s in total, over 16 GPUs", "12 channels of 20 GB/s each, 240 GB/s in total, on 1
/// ring over 8 GPUs".
std::string summary(const ChannelRings& rings, std::size_t n_gpus) {
  const auto n = static_cast<std::int64_t>(rings.orders.size());
  const auto total = [&](std::int64_t times) { return rate_text({rings.each.bytes_per_second * times}); };
  const char* const several = n == 1 ? "" : "s";
  if (rings.channels > n)
    return fmt::format("{} channels of {} each, {} in total, on {} ring{} over {} GPUs", rings.channels,
                       rate_text(rings.each), total(rings.channels), n, several, n_gpus);
  if (n == 1) return fmt::format("1 ring of {} over {} GPUs", rate_text(rings.each), n_gpus);
  return fmt::format("{} rings of {} each, {} in total, over {} GPUs", n, rate_text(rings.each), total(n), n_gpus);
}

int execute(const RingsArguments& arguments) {
  refuse_as_output(arguments.scenario, arguments.output);
  const ScenarioFile file = load_topology(arguments.scenario, arguments.set, arguments.machine);
  const Scenario scenario = first_point(file);
  if (arguments.to == RingsFormat::nccl_graph) {
    const std::string text = searched_graph(scenario);
    Output output(arguments.output);
    output.write(text);
    output.finish();
    return good;
  }
  std::optional<EndsAtOnce> nothing_to_lose(std::in_place);
  const Topology topology = while_saying("building the topology", [&] { return topology_for_search(scenario); });
  const std::vector<NodeId> ranks = collectives_of(scenario, topology).front().front().ranks;
  Transport transport = scenario.transport;
  if (transport.nics == Transport::Nics::nearest) transport.nics = Transport::Nics::per_channel;
  if (const auto graph = ring_graph_of(scenario))
    transport.channel_nics =
        std::make_shared<const ChannelNics>(nccl::nics_of(*graph, static_cast<int>(graph->channels.size())));
  const ChannelRings rings =
      while_saying("searching for rings", [&] { return rings_for(topology, scenario, ranks, transport); });
  nothing_to_lose.reset();
  Output output(arguments.output);
  if (ranks.size() < 2) {
    output.write("one GPU: no ring\n");
    output.finish();
    return good;
  }
  output.write(summary(rings, ranks.size()) + "\n\n");
  Routes routes(topology, transport, routing_of(topology, scenario));
  const bool one_node = in_nodes(topology, routes, ranks, rings.orders.front(), 0).size() == 1;
  Table table(one_node ? std::vector<std::string>{"ring", "GPUs in order"}
                       : std::vector<std::string>{"ring", "node", "enters by", "GPUs in order", "leaves by"});
  bool shortened = false;
  for (std::size_t k = 0; k < rings.orders.size(); ++k) {
    const std::vector<InNode> nodes = in_nodes(topology, routes, ranks, rings.orders[k], static_cast<std::uint32_t>(k));
    const bool alike =
        std::all_of(nodes.begin(), nodes.end(), [&](const InNode& node) { return node.alike(nodes.front()); });
    const bool one_line = alike && !arguments.all;
    shortened = shortened || (one_line && nodes.size() > 1);
    for (const InNode& node : nodes) {
      if (one_node) {
        table.add({fmt::to_string(k), fmt::format("{}", fmt::join(node.gpus, " "))});
        break;
      }
      table.add({fmt::to_string(k), one_line && nodes.size() > 1 ? fmt::format("all {}", nodes.size()) : node.node,
                 node.enters, fmt::format("{}", fmt::join(node.gpus, " ")), node.leaves});
      if (one_line) break;
    }
  }
  output.write(table.fitted());
  if (shortened)
    output.write("nodes that a ring crosses in the same way share one line; use --all to show each node\n");
  output.finish();
  return good;
}

}  // namespace

Command topology_rings_command() {
  return {.name = "topology rings",
          .group = Group::look,
          .summary = "Find the rings for the channels",
          .example = "ringsim topology rings scenarios/two-dgx-a100.json",
          .details =
              "Searches, as NCCL does, for rings that use different links and NICs at the same time. To use the rings "
              "in a scenario, set collective.order to \"channel_rings\", transport.channels to their number, and "
              "transport.nics to \"per_channel\". With library \"nccl\", --to nccl-graph writes the rings together "
              "with the trees and NVLS heads that the library uses.",
          .prepare = with<RingsArguments>(declare, execute)};
}

}  // namespace ringsim::tools
