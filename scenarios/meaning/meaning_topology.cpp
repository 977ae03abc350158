#include "scenarios/meaning/meaning_topology.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/fields/fields.hpp"
#include "scenarios/meaning/enum_of.hpp"
#include "scenarios/meaning/meaning_devices.hpp"
#include "sim/base/error.hpp"
#include "topologies/formats/nccl_xml_import.hpp"
#include "topologies/formats/smi_import.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;

LinkSpec link_of(const Canonical& link) {
  return {.bandwidth = {link["bandwidth"].get<std::int64_t>()},
          .latency = Picoseconds{link["latency"].get<std::int64_t>()},
          .duplex = link.value("duplex", "full") == "half" ? Duplex::half : Duplex::full,
          .source = "scenario"};
}

Graph graph_of(const Canonical& topology) {
  Graph graph;
  for (const Canonical& node : topology["nodes"]) {
    Graph::NodeSpec spec{.name = node["name"].get<std::string>(),
                         .kind = enum_of<NodeKind>(node["kind"], {{"gpu", NodeKind::gpu},
                                                                  {"cpu", NodeKind::cpu},
                                                                  {"memory", NodeKind::memory},
                                                                  {"pcie_switch", NodeKind::pcie_switch},
                                                                  {"nvswitch", NodeKind::nvswitch},
                                                                  {"nic", NodeKind::nic},
                                                                  {"switch", NodeKind::network_switch}}),
                         .rates = {},
                         .over = {}};
    if (node.contains("rates") && !node["rates"].empty()) {
      spec.rates = device_rates_of(node["rates"]);
      spec.over = node["rates"].value("over", "");
    }
    graph.nodes.push_back(std::move(spec));
  }
  for (const Canonical& link : topology["links"]) {
    graph.links.push_back(
        {link["from"].get<std::string>(), link["to"].get<std::string>(), link_of(link), link["one_way"].get<bool>()});
  }
  return graph;
}

Torus torus_of(const Canonical& topology, const Blame& blame) {
  constexpr std::int64_t most = 1'048'576;
  Torus torus{.dimensions = topology["dimensions"].get<std::vector<int>>(), .link = link_of(topology["link"])};
  std::int64_t ranks = 1;
  for (const int dimension : torus.dimensions) {
    ranks *= dimension;  // both factors are at most 2^20
    if (ranks > most) {
      blame.fail("/topology/dimensions", fmt::format("expected dimensions that multiply to at most {} ranks, found {}",
                                                     most, fmt::join(torus.dimensions, " x ")));
    }
  }
  return torus;
}

std::optional<LinkSpec> link_if_said(const Canonical& fabric, const char* key) {
  return fabric.contains(key) ? std::optional(link_of(fabric[key])) : std::nullopt;
}

Fabric fabric_of(const Canonical& fabric) {
  const std::string& kind = fabric["kind"].get_ref<const std::string&>();
  const auto count = [&](const char* key) { return fabric[key].get<int>(); };
  const LinkSpec link = link_of(fabric["link"]);
  if (kind == "star") return StarFabric{link};
  if (kind == "leaf_spine") {
    return LeafSpine{.nodes_per_leaf = count("nodes_per_leaf"),
                     .oversubscription = count("oversubscription"),
                     .spines = count("spines"),
                     .link = link,
                     .uplink = link_if_said(fabric, "uplink")};
  }
  if (kind == "fat_tree") return FatTree{.k = count("k"), .oversubscription = count("oversubscription"), .link = link};
  if (kind == "rail") {
    return RailFabric{.nodes_per_group = count("nodes_per_group"),
                      .spines = count("spines"),
                      .oversubscription = count("oversubscription"),
                      .link = link,
                      .uplink = link_if_said(fabric, "uplink")};
  }
  if (kind == "torus") {
    return TorusFabric{fabric["dimensions"].get<std::vector<int>>(), link, link_if_said(fabric, "hop")};
  }
  ensure(kind == "dragonfly", "every kind of fabric in the table has a spec");
  return Dragonfly{.groups = count("groups"),
                   .routers = count("routers"),
                   .nodes_per_router = count("nodes_per_router"),
                   .global_links = count("global_links"),
                   .link = link,
                   .local = link_if_said(fabric, "local"),
                   .global = link_if_said(fabric, "global")};
}

std::vector<CableChange> cable_changes_of(const Canonical& fabric) {
  std::vector<CableChange> changes;
  if (!fabric.contains("cables")) return changes;
  for (const Canonical& cable : fabric["cables"]) {
    CableChange change{cable["from"].get<std::string>(), cable["to"].get<std::string>(), {}, {}};
    if (cable.contains("bandwidth")) change.bandwidth = Bandwidth{cable["bandwidth"].get<std::int64_t>()};
    if (cable.contains("latency")) change.latency = Picoseconds{cable["latency"].get<std::int64_t>()};
    changes.push_back(std::move(change));
  }
  return changes;
}

/// Clusters, and what else stands for nodes of a machine.
class Clusters {
 public:
  Clusters(const Canonical& topology, const Blame& blame, const Files& files)
      : topology_(topology), blame_(blame), files_(files) {}

  Cluster cluster() const {
    Cluster out;
    if (topology_["kind"] == "cluster") {
      out.parts = parts();
    } else {
      out.parts.push_back({topology_["kind"] == "nccl_xml" ? nccl_xml() : nvidia_smi(), topology_["nodes"].get<int>()});
    }
    std::int64_t nodes = 0;
    for (const Cluster::Part& part : out.parts) nodes += part.nodes;
    if (topology_.contains("fabric")) {
      out.fabric = fabric_of(topology_["fabric"]);
      out.changes = cable_changes_of(topology_["fabric"]);
    }
    if (nodes > 1) check_joined(out);
    return out;
  }

 private:
  using Node = std::shared_ptr<const Machine>;

  std::vector<Cluster::Part> parts() const {
    std::vector<Cluster::Part> out;
    check_exactly_one(topology_, "/topology", {"node", "node_file", "parts"});
    if (topology_.contains("parts")) {
      if (topology_.contains("nodes")) {
        blame_.fail("/topology/nodes", "cannot be combined with \"parts\"", "each part has its own");
      }
      for (std::size_t i = 0; i < topology_["parts"].size(); ++i) {
        const Canonical& part = topology_["parts"][i];
        check_exactly_one(part, fmt::format("/topology/parts/{}", i), {"node", "node_file"});
        out.push_back({node_of(part), part["nodes"].get<int>()});
      }
      return out;
    }
    if (!topology_.contains("nodes")) {
      blame_.fail("/topology", "expected the key \"nodes\", found none", "nodes: How many nodes. For example: 2");
    }
    return {{node_of(topology_), topology_["nodes"].get<int>()}};
  }

  void check_exactly_one(const Canonical& object, const std::string& pointer,
                         const std::vector<std::string>& keys) const {
    std::vector<std::string> found;
    for (const std::string& key : keys) {
      if (object.contains(key)) found.push_back(key);
    }
    if (found.size() == 1) return;
    blame_.fail(pointer, fmt::format("expected one of the keys \"{}\", found {}", fmt::join(keys, "\", \""),
                                     found.empty() ? "none" : fmt::format("\"{}\"", fmt::join(found, "\" and \""))));
  }

  static Node preset(const Canonical& name) { return std::make_shared<Machine>(node_preset(name.get<std::string>())); }
  const Files::Content& content(const Canonical& file, const FileKind& kind) const {
    return files_.read(file["path"].get<std::string>(), kind);
  }

  Node node_of(const Canonical& part) const {
    if (part.contains("node")) return preset(part["node"]);
    const Files::Content& file = content(part["node_file"], {"a machine file, which has \"devices\"", {"\"devices\""}});
    return std::make_shared<Machine>(parse_machine(file.text, file.path));
  }

  Node nccl_xml() const {
    const Files::Content& file = content(topology_["file"], {"NCCL's topology XML, which has <system>", {"<system"}});
    NcclXmlOptions options;
    if (topology_.contains("gpu")) options.gpu = topology_["gpu"].get<std::string>();
    if (topology_.contains("nvlink")) options.nvlink_from = *preset(topology_["nvlink"]);
    if (topology_.contains("nic")) options.nic = link_of(topology_["nic"]);
    return std::make_shared<Machine>(import_nccl_xml(file.text, file.path, options));
  }

  Node nvidia_smi() const {
    const Files::Content& file =
        content(topology_["file"], {"what nvidia-smi topo -m prints, which has GPU0", {"GPU0"}});
    return std::make_shared<Machine>(
        import_nvidia_smi(file.text, file.path, *preset(topology_["like"]), link_if_said(topology_, "nic")));
  }

  void check_joined(const Cluster& cluster) const {
    if (!cluster.fabric) {
      blame_.fail("/topology", "expected the key \"fabric\" where there is more than one node, found none",
                  R"(for example {"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}})");
    }
    for (const Cluster::Part& part : cluster.parts) {
      const auto& devices = part.machine->devices;
      if (std::any_of(devices.begin(), devices.end(),
                      [](const Machine::Device& device) { return device.port.has_value(); })) {
        continue;
      }
      blame_.fail(
          "/topology",
          fmt::format("expected nodes with a NIC that can be cabled where there is more than one, found none in {}",
                      part.machine->name),
          topology_["kind"] == "cluster" ? "" : "where the file does not tell the speed of NICs, say \"nic\"");
    }
  }

  const Canonical& topology_;
  const Blame& blame_;
  const Files& files_;
};

}  // namespace

TopologySpec topology_of(const Canonical& topology, const Blame& blame, const Files& files) {
  const std::string& kind = topology["kind"].get_ref<const std::string&>();
  if (kind == "torus") return torus_of(topology, blame);
  if (kind == "graph") return graph_of(topology);
  if (kind == "cluster" || kind == "nccl_xml" || kind == "nvidia_smi")
    return Clusters(topology, blame, files).cluster();
  const int ranks = topology["ranks"].get<int>();
  const LinkSpec link = link_of(topology["link"]);
  if (kind == "star") return Star{.ranks = ranks, .link = link};
  if (kind == "ring") return Ring{.ranks = ranks, .link = link};
  ensure(kind == "full_mesh", "every kind of topology in the table has a spec");
  return FullMesh{.ranks = ranks, .link = link};
}

/// How many gpus there are; what the topology itself refuses is put in the file's words.
std::size_t gpus_of(const TopologySpec& topology, const Blame& blame) {
  std::size_t n = 0;
  try {
    n = n_ranks(topology);
  } catch (const InputError& error) {
    blame.fail("/topology" + error.where(), error.message(), error.hint());
  }
  if (n == 0) blame.fail("/topology/nodes", "expected at least one node of kind \"gpu\", found none");
  return n;
}

}  // namespace ringsim::scenarios
