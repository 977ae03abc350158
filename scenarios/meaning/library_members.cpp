#include "scenarios/meaning/library_members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "scenarios/meaning/meaning_groups.hpp"
#include "sim/text/json.hpp"
#include "topologies/catalog.hpp"

namespace ringsim::scenarios {

using Canonical = nlohmann::json;

Members members_of(const Canonical& collective, const Cluster& cluster, const std::string& pointer,
                   const Blame& blame) {
  Members out;
  if (!collective.contains("ranks")) {
    for (const Machine::Device& device : cluster.parts.front().machine->devices)
      if (device.kind == NodeKind::gpu) out.gpus.push_back(device.name);
    out.nodes = cluster.parts.front().nodes;
    return out;
  }
  std::map<std::string, std::vector<std::string>> by_node;
  std::vector<std::string> order;
  const auto& devices = cluster.parts.front().machine->devices;
  for (std::size_t i = 0; i < collective["ranks"].size(); ++i) {
    const auto text = collective["ranks"][i].get<std::string>();
    const std::size_t dot = text.find('.');
    const auto is_it = [&](const Machine::Device& device) {
      return device.kind == NodeKind::gpu && dot != std::string::npos && text.substr(dot + 1) == device.name;
    };
    if (std::none_of(devices.begin(), devices.end(), is_it))
      blame.fail(fmt::format("{}/{}", pointer, i), fmt::format("expected the name of a GPU, found {}", in_quotes(text)),
                 "use names from `ringsim topology show`, such as \"node0.gpu0\"");
    const std::string node = text.substr(0, dot);
    if (by_node.count(node) == 0) order.push_back(node);
    by_node[node].push_back(text.substr(dot + 1));
  }
  out.gpus = by_node[order.front()];
  out.nodes = static_cast<int>(order.size());
  for (const auto& [node, gpus] : by_node)
    if (gpus != out.gpus)
      blame.fail(pointer,
                 fmt::format("expected the same GPUs on every node with a library, found different ones on {} and {}",
                             node, order.front()),
                 "connections between different kinds of nodes are not modeled for NCCL");
  return out;
}

const Cluster& one_kind(const TopologySpec& topology, const Blame& blame) {
  const auto* cluster = std::get_if<Cluster>(&topology);
  if (cluster == nullptr || cluster->parts.size() != 1)
    blame.fail("/library",
               fmt::format("expected a topology of kind cluster with one kind of node for use with a library, found {}",
                           cluster == nullptr ? "another kind" : "several kinds of nodes"),
               "NCCL's choices depend on the GPUs, links and NICs of a machine");
  return *cluster;
}

Bandwidth cables_of(const Cluster& cluster) {
  return cluster.fabric ? std::visit([](const auto& fabric) { return fabric.link.bandwidth; }, *cluster.fabric)
                        : Bandwidth{};
}

Canonical of_first_group(const Canonical& collective, const std::string& pointer, const TopologySpec& topology,
                         const Blame& blame) {
  const auto* cluster = std::get_if<Cluster>(&topology);
  const char* key = collective.contains("groups") ? "groups" : "split";
  if (!collective.contains(key) || cluster == nullptr || cluster->parts.size() != 1) return collective;
  std::vector<std::string> names = names_in_groups(collective);
  if (collective.contains("ranks")) names = collective["ranks"].get<std::vector<std::string>>();
  const Cluster::Part& part = cluster->parts.front();
  if (names.empty())
    for (int node = 0; node < part.nodes; ++node)
      for (const Machine::Device& device : part.machine->devices)
        if (device.kind == NodeKind::gpu) names.push_back(fmt::format("node{}.{}", node, device.name));
  const auto groups = groups_of(collective, names.size(), pointer, blame);
  Canonical one = collective;
  int nodes = 0;                                   // of the group that was looked at before
  for (std::size_t g = groups.size(); g-- > 0;) {  // the first one comes last, and stays
    std::vector<std::string> own;
    for (const int place : groups[g]) own.push_back(names[static_cast<std::size_t>(place)]);
    one["ranks"] = std::move(own);
    const bool listed = collective.contains("groups");
    const Members members =
        members_of(one, *cluster, listed ? fmt::format("{}/groups/{}", pointer, g) : pointer + "/ranks", blame);
    if (nodes != 0 && members.nodes != nodes)
      blame.fail(fmt::format("{}/{}", pointer, key),
                 fmt::format("expected identically placed groups for use with a library, found group {} on {} and "
                             "group {} on {} nodes",
                             g, members.nodes, g + 1, nodes),
                 "the library chooses for the first group, and the others do the same");
    nodes = members.nodes;
  }
  return one;
}

int gpus_called(const Canonical& collective, const Cluster& cluster) {
  std::vector<std::string> names = names_in_groups(collective);
  if (collective.contains("ranks")) names = collective["ranks"].get<std::vector<std::string>>();
  if (names.empty())
    for (const Machine::Device& device : cluster.parts.front().machine->devices)
      if (device.kind == NodeKind::gpu) names.push_back("node0." + device.name);
  const std::string node = names.front().substr(0, names.front().find('.') + 1);
  return static_cast<int>(
      std::count_if(names.begin(), names.end(), [&](const auto& n) { return n.starts_with(node); }));
}

int in_turn_of(const Canonical& harness, int gpus, const Blame& blame) {
  const int each = harness.value("gpus_per_thread", 1);
  if (gpus % each != 0)
    blame.fail("/harness/gpus_per_thread",
               fmt::format("expected a divisor of the {} participating GPU{} of a node, found {}", gpus,
                           gpus == 1 ? "" : "s", each),
               "each thread calls this number of GPUs on its node, as set by -g in nccl-tests");
  return each;
}

}  // namespace ringsim::scenarios
