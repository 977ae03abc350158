// ringsim topology show, topology paths: devices, links, how near everything is to everything, and by which way.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/spelling.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/stop.hpp"
#include "topologies/formats/smi_matrix.hpp"

namespace ringsim::tools {

namespace {

struct TopologyShowArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;    ///< if the scenario is a machine: how many, and what joins them
  std::uint32_t host = 0;  ///< whose matrices are printed
  bool pairs = false;      ///< type, bandwidth and latency of each pair of gpus
};

void declare(Options& options, TopologyShowArguments& show) {
  options.scenario(show.scenario, show.set);
  declare_nodes(options, show.machine);
  options
      .whole(
          "--node", "N", 0, 1 << 30, [&show](int n) { show.host = static_cast<std::uint32_t>(n); },
          "the node whose matrices to print")
      .fallback = "0";
  options.flag("--pairs", show.pairs, "also print the path type, bandwidth and latency between all pairs of GPUs");
}

struct PathArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;  ///< if the scenario is a machine: how many, and what joins them
  std::string from, to;
};

void declare(Options& options, PathArguments& paths) {
  options.scenario(paths.scenario, paths.set);
  declare_nodes(options, paths.machine);
  options.argument("FROM", paths.from, "the device where the path starts, such as node0.gpu0");
  options.argument("TO", paths.to, "the device where the path ends");
}

constexpr std::size_t max_links_listed = 200;
constexpr std::size_t max_matrix = 32;

std::string devices_text(const Topology& topology) {
  std::map<std::string_view, int> counts;
  for (const Node& node : topology.nodes()) ++counts[to_string(node.kind)];
  std::string text = "devices:";
  for (const auto& [kind, count] : counts) text += fmt::format(" {} {}", count, kind);
  return wrapped(text + fmt::format("; {} ranks, {} links", topology.ranks().size(), topology.n_links())) + '\n';
}

// Sources are long: they are listed below the table, by number.
std::string links_text(const Topology& topology) {
  Table table({"link", "kind", "bandwidth", "latency", "source"});
  std::vector<std::string> sources;
  for (std::uint32_t i = 0; i < std::min(topology.n_links(), max_links_listed); ++i) {
    const Link& link = topology.link({i});
    const bool shared = topology.resource(link.resource).shared;
    const std::string& source = topology.source(link);
    auto known = std::find(sources.begin(), sources.end(), source);
    if (known == sources.end()) known = sources.insert(sources.end(), source);
    table.add({topology.link_name({i}), std::string(to_string(link.kind)),
               format(link.bandwidth) + (shared ? " half duplex" : ""), format(link.latency),
               fmt::format("[{}]", known - sources.begin() + 1)});
  }
  std::string text = table.fitted();
  if (topology.n_links() > max_links_listed)
    text += fmt::format("... and {} more links\n", topology.n_links() - max_links_listed);
  for (std::size_t i = 0; i < sources.size(); ++i) text += wrapped(fmt::format("[{}] {}", i + 1, sources[i]), 4) + '\n';
  return text;
}

/// The shares of these bandwidths that a library's kernels reach in a run of the scenario, for each class of links.
/// Empty if they reach all of them.
std::string kernels_text(const Topology& topology, const Scenario& scenario) {
  if (!scenario.library) return "";
  const Topology in_run = topology_of(scenario);
  std::vector<std::string> shares;
  std::set<LinkClass> seen;
  for (std::uint32_t i = 0; i < topology.n_links(); ++i) {
    const Link& link = topology.link({i});
    const double share = static_cast<double>(in_run.link({i}).bandwidth.bytes_per_second) /
                         static_cast<double>(link.bandwidth.bytes_per_second);
    constexpr double rounding = 1e-6;  // of bandwidths, to whole bytes per second
    if (std::abs(share - 1) > rounding && seen.insert(class_of(topology, link)).second)
      shares.push_back(fmt::format("{:.1f} % of {}", 100 * share, class_name(topology, link)));
  }
  if (shares.empty()) return "";
  return wrapped(fmt::format("In a run of this scenario, {}'s kernels reach only a share of these bandwidths: {} "
                             "(`ringsim list costs` shows the sources)",
                             scenario.library->printed_name(), fmt::join(shares, ", "))) +
         '\n';
}

std::string path_type(Routes& routes, NodeId from, NodeId to) {
  try {
    return std::string(to_string(routes.find(from, to).type));
  } catch (const InputError&) {
    return "-";  // no path: a fault only if somebody wants to use it
  }
}

// "node0.gpu3" is gpu3 in a table about one host.
std::string short_name(const std::string& name) {
  const std::size_t dot = name.find('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

std::string smi_text(const Topology& topology, std::uint32_t host) {
  const SmiMatrix matrix = smi_matrix(topology, host);
  std::vector<std::string> head{""};
  for (const std::string& name : matrix.names) head.push_back(short_name(name));
  head.emplace_back("NUMA");
  Table table(head);
  for (std::size_t r = 0; r < matrix.names.size(); ++r) {
    std::vector<std::string> row{short_name(matrix.names[r])};
    row.insert(row.end(), matrix.cells[r].begin(), matrix.cells[r].end());
    row.push_back(matrix.numa[r]);
    table.add(row);
  }
  return "as `nvidia-smi topo -m` prints it:\n" + table.fitted();
}

// The types of the paths that transfers take: of one host, or of a topology without hosts.
std::string types_text(const Topology& topology, const std::vector<NodeId>& shown, Routes& routes) {
  std::vector<std::string> head{""};
  for (const NodeId node : shown) head.push_back(short_name(topology.node(node).name));
  Table table(head);
  for (const NodeId from : shown) {
    std::vector<std::string> row{short_name(topology.node(from).name)};
    for (const NodeId to : shown) row.push_back(from == to ? "X" : path_type(routes, from, to));
    table.add(row);
  }
  return "the paths that data takes, in NCCL's terms (`topology paths` explains one):\n" + table.fitted();
}

std::string matrices_text(const Topology& topology, Routes& routes, std::uint32_t host) {
  std::vector<NodeId> shown;
  for (const NodeKind kind : {NodeKind::gpu, NodeKind::nic})
    for (std::uint32_t i = 0; i < topology.n_nodes(); ++i)
      if (topology.node({i}).kind == kind && topology.node({i}).host.value_or(host) == host) shown.push_back({i});
  if (shown.size() > max_matrix) return fmt::format("(no matrix: {} devices are too many to print)\n", shown.size());
  const std::string types = types_text(topology, shown, routes);
  return topology.hosts().empty() ? types : smi_text(topology, host) + "\n" + types;
}

// Every pair of the first ranks, as far as they can be read.
std::string pairs_text(const Topology& topology, Routes& routes) {
  const auto ranks = topology.ranks().first(std::min(topology.ranks().size(), max_matrix));
  Table table({"from", "to", "part", "type", "legs", "bandwidth", "latency"});
  for (const NodeId from : ranks) {
    for (const NodeId to : ranks) {
      if (from == to) continue;
      const std::vector<Path> parts = routes.find_parts(from, to);
      for (std::size_t i = 0; i < parts.size(); ++i)
        table.add({topology.node(from).name, topology.node(to).name, fmt::format("{}/{}", i + 1, parts.size()),
                   std::string(to_string(parts[i].type)), fmt::format("{}", parts[i].legs.size()),
                   format(narrowest(topology, parts[i])), format(latency(parts[i]))});
    }
  }
  const std::size_t left_out = topology.ranks().size() - ranks.size();
  return table.fitted() + (left_out > 0 ? fmt::format("... and {} more GPUs\n", left_out) : "");
}

// --- paths -----------------------------------------------------------------------------------------------------------

std::string leg_text(const Topology& topology, const Leg& leg) {
  std::vector<std::string> head{"", "link", "kind", "bandwidth", "latency"};
  if (!leg.shares.empty()) head.emplace_back("load per byte");
  Table table(head);
  for (std::size_t i = 0; i < leg.links.size(); ++i) {
    const Link& link = topology.link(leg.links[i]);
    const bool shared = topology.resource(link.resource).shared;
    std::vector<std::string> row{"", topology.link_name(leg.links[i]), std::string(to_string(link.kind)),
                                 format(link.bandwidth) + (shared ? " half duplex" : ""), format(link.latency)};
    if (!leg.shares.empty()) row.push_back(fmt::format("{:.4g}", leg.share(i)));
    table.add(row);
  }
  return table.fitted();
}

std::string why_inside(const Topology& topology, const Path& path, const Transport& transport, NodeId from) {
  const Host& host = topology.hosts()[*topology.node(from).host];
  switch (path.type) {
    case PathType::nvl:
      return "the GPUs are connected by NVLink, directly or through an NVSwitch";
    case PathType::nvb:
      return "the GPUs are not connected by NVLink, but another GPU with NVLink to both relays the data";
    default:
      if (path.legs.size() == 1) return "the GPUs are not connected by NVLink: the shortest path over PCIe and sockets";
      return fmt::format("through host memory: their distance is {}, and GPUs have peer access up to {} ({})",
                         to_string(path.type), to_string(std::min(host.peer_access, transport.p2p_level)),
                         host.peer_access <= transport.p2p_level ? "the limit of the machine" : "transport.p2p_level");
  }
}

std::string why_gate(std::string_view whose, const Node& device, const Node& nic, PathType type,
                     const Transport& transport) {
  if (type == PathType::loc) return "";
  if (device.kind != NodeKind::gpu) return fmt::format("{} NIC: distance {}\n", whose, to_string(type));
  if (type == PathType::pxn)
    return fmt::format("{} NIC: PXN, over NVLink through the GPU next to the NIC{}\n", whose,
                       transport.point_to_point ? "" : ": it is on the receiver's rail, or no NIC is nearer");
  if (!transport.assumes_gpudirect && !(device.gpudirect && nic.gpudirect))
    return fmt::format("{} NIC: distance {}; {} has no GPUDirect (gdr=0), so data is staged in host memory\n", whose,
                       to_string(type), nic.gpudirect ? device.name : nic.name);
  return fmt::format("{} NIC: distance {}, gdr_level {}: {}\n", whose, to_string(type), to_string(transport.gdr_level),
                     type <= transport.gdr_level ? "GPUDirect RDMA, no copy in host memory"
                                                 : "too far for GPUDirect, so data is staged in host memory");
}

std::string path_text(const Topology& topology, const Path& path, const Transport& transport, NodeId from, NodeId to) {
  if (path.legs.empty())
    return fmt::format("{} is a single device (LOC), so no data moves\n", topology.node(from).name);
  std::string text =
      fmt::format("{} to {}: {}, {} leg{}, narrowest {}, latency {}\n", topology.node(from).name,
                  topology.node(to).name, to_string(path.type), path.legs.size(), path.legs.size() == 1 ? "" : "s",
                  format(narrowest(topology, path)), format(latency(path)));
  if (path.type == PathType::net) {
    const NodeId out = first_nic(topology, path).value_or(from), in = last_nic(topology, path).value_or(to);
    text += why_gate("the sender's", topology.node(from), topology.node(out), path.out, transport) +
            why_gate("the receiver's", topology.node(to), topology.node(in), path.in, transport);
  } else if (path.type != PathType::dir) {
    text += why_inside(topology, path, transport, from) + "\n";
  }
  for (std::size_t i = 0; i < path.legs.size(); ++i) {
    const Leg& leg = path.legs[i];
    const NodeId end = topology.link(leg.links.back()).to;
    text +=
        fmt::format("\nleg {}, to {}{}\n", i + 1, topology.node(end).name,
                    i + 1 == path.legs.size() ? ""
                                              : fmt::format(", where data is staged in {} slots of {}",
                                                            transport.staging.depth, format(transport.staging.size)));
    text += leg_text(topology, leg);
  }
  return text;
}

NodeId device(const Topology& topology, const std::string& name) {
  if (const auto node = topology.find(name)) return *node;
  std::vector<std::string> names;
  for (const Node& node : topology.nodes()) names.push_back(node.name);
  const std::string of_first = "node0." + name;  // most people leave the node out if there is but one
  const std::string hint =
      topology.find(of_first) ? fmt::format("did you mean \"{}\"?", of_first) : did_you_mean(name, names);
  throw InputError("", fmt::format("expected the name of a device in the topology, found \"{}\"", name),
                   hint.empty() ? "`ringsim topology show` lists the links of the topology" : hint);
}

std::uint32_t host_of(const Topology& topology, const TopologyShowArguments& arguments) {
  const auto n = topology.hosts().size();
  if (arguments.host == 0 || arguments.host < n) return arguments.host;
  throw InputError("--node",
                   n == 0 ? "expected 0, because this topology does not consist of nodes"
                          : fmt::format("expected the number of a node, 0 to {}, found {}", n - 1, arguments.host));
}

/// The links that a fault holds down from the start of a run on: messages go other ways.
std::vector<bool> down_at_start(const Topology& topology, const Scenario& scenario) {
  std::vector<bool> down(topology.n_links());
  for (const LinkChange& change : faults_of(topology, scenario))
    if (change.at == SimTime{})
      for (const LinkId link : change.links) down[link.value] = change.to == LinkChange::To::down;
  return down;
}

Topology built(const Scenario& scenario) {
  const EndsAtOnce nothing_to_lose;
  return while_saying("building the topology", [&] { return topology_without_kernels(scenario); });
}

int execute(const TopologyShowArguments& arguments) {
  const ScenarioFile file = load_topology(arguments.scenario, arguments.set, arguments.machine);
  const Scenario scenario = first_point(file);
  const Topology topology = built(scenario);
  Output output;
  Routes routes(topology, scenario.transport, routing_of(topology, scenario), down_at_start(topology, scenario));
  output.write(devices_text(topology) + "\n" + links_text(topology) + kernels_text(topology, scenario) + "\n" +
               matrices_text(topology, routes, host_of(topology, arguments)));
  if (arguments.pairs) output.write("\n" + pairs_text(topology, routes));
  stop_if_asked();
  output.finish();
  return good;
}

int execute(const PathArguments& arguments) {
  const ScenarioFile file = load_topology(arguments.scenario, arguments.set, arguments.machine);
  const Scenario scenario = first_point(file);
  const Topology topology = built(scenario);
  const NodeId from = device(topology, arguments.from), to = device(topology, arguments.to);
  Routes routes(topology, scenario.transport, routing_of(topology, scenario), down_at_start(topology, scenario));
  const std::vector<Path> parts = routes.find_parts(from, to);
  Output output;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts.size() > 1) output.write(fmt::format("{}part {} of {}\n", i == 0 ? "" : "\n", i + 1, parts.size()));
    output.write(path_text(topology, parts[i], scenario.transport, from, to));
  }
  stop_if_asked();
  output.finish();
  return good;
}

}  // namespace

Command topology_command() {
  return {.name = "topology",
          .group = Group::look,
          .summary = "Show, import and export topologies",
          .example = "ringsim topology show scenarios/examples/machines/two-node-server.json",
          .details = "Paths do not use links that are down from the start; the list of links shows them.",
          .prepare = {}};
}

Command topology_show_command() {
  return {.name = "topology show",
          .group = Group::look,
          .summary = "Show devices, links and distances",
          .example = "ringsim topology show scenarios/examples/machines/two-node-server.json",
          .details = "Paths do not use links that are down from the start; the list of links shows them.",
          .prepare = with<TopologyShowArguments>(declare, execute)};
}

Command topology_paths_command() {
  return {.name = "topology paths",
          .group = Group::look,
          .summary = "Explain a path leg by leg",
          .example =
              "ringsim topology paths scenarios/examples/machines/two-node-server.json \\\n"
              "    node0.gpu0 node1.gpu1",
          .details = "Links that are down from the start are not used.",
          .prepare = with<PathArguments>(declare, execute)};
}

}  // namespace ringsim::tools
