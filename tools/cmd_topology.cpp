// ringsim topology show: devices, links and how near everything is to everything.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scenarios/scenario.hpp"
#include "sim/error.hpp"
#include "sim/quantity.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/warnings.hpp"
#include "validate/predict.hpp"

namespace ringsim::tools {

namespace {

constexpr std::size_t max_links_listed = 200;
constexpr std::size_t max_matrix = 32;

std::string devices_text(const Topology& topology) {
  std::map<std::string_view, int> counts;
  for (const Node& node : topology.nodes()) ++counts[to_string(node.kind)];
  std::string text = "devices:";
  for (const auto& [kind, count] : counts) text += fmt::format(" {} {}", count, kind);
  return text + fmt::format("; {} ranks, {} links\n", topology.ranks().size(), topology.n_links());
}

// Sources are long: they stand below the table, by number.
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
  std::string text = table.text();
  if (topology.n_links() > max_links_listed)
    text += fmt::format("... and {} more links\n", topology.n_links() - max_links_listed);
  for (std::size_t i = 0; i < sources.size(); ++i) text += fmt::format("[{}] {}\n", i + 1, sources[i]);
  return text;
}

std::string path_type(Routes& routes, NodeId from, NodeId to) {
  try {
    return std::string(to_string(routes.find(from, to).type));
  } catch (const InputError&) {
    return "-";  // no path: a fault only where somebody wants to use it
  }
}

// As `nvidia-smi topo -m` prints it: gpus, then nics, of the first host.
std::string matrix_text(const Topology& topology, const Transport& transport) {
  std::vector<NodeId> shown;
  for (const NodeKind kind : {NodeKind::gpu, NodeKind::nic})
    for (std::uint32_t i = 0; i < topology.n_nodes(); ++i)
      if (topology.node({i}).kind == kind && topology.node({i}).host.value_or(0) == 0) shown.push_back({i});
  if (shown.size() > max_matrix) return fmt::format("(no matrix: {} devices are too many to print)\n", shown.size());
  Routes routes(topology, transport);
  std::vector<std::string> head{""};
  for (const NodeId node : shown) head.push_back(topology.node(node).name);
  Table table(head);
  for (const NodeId from : shown) {
    std::vector<std::string> row{topology.node(from).name};
    for (const NodeId to : shown) row.push_back(from == to ? "X" : path_type(routes, from, to));
    table.add(row);
  }
  return table.text();
}

}  // namespace

int topology_show_command(const ShowArguments& arguments) {
  const ScenarioFile file = ScenarioFile::load(arguments.scenario, arguments.set);
  const Scenario scenario = file.point(0);
  Warnings().say(scenario.warnings);
  const Topology topology = topology_of(scenario);
  Output output;
  if (file.size() > 1) output.write(fmt::format("the first of {} points; choose another with --set\n", file.size()));
  output.write(devices_text(topology) + "\n" + links_text(topology) + "\n" + matrix_text(topology, scenario.transport));
  output.finish();
  return good;
}

}  // namespace ringsim::tools
