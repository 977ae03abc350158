#include "scenarios/meaning/meaning_topology.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/fields/fields.hpp"
#include "sim/base/error.hpp"
#include "topologies/formats/nccl_xml_import.hpp"
#include "topologies/formats/smi_import.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;

LinkSpec link_of(const Field& row, const Canonical& link) {
  LinkSpec out{.bandwidth = {}, .source = "scenario"};
  read_members(row, link, out);
  return out;
}

const Field& topology_row(const Canonical& topology) { return chosen_variant(field_at("topology"), topology); }

Graph graph_of(const Canonical& topology) {
  const std::vector<Field>& keys = topology_row(topology).members;
  const Field& node_row = find(keys, "nodes")->members.front();
  const Field& link_row = find(keys, "links")->members.front();
  const Field& rates = *find(node_row.members, "rates");
  Graph graph;
  for (const Canonical& node : topology["nodes"]) {
    Graph::NodeSpec spec;
    read_members(node_row, node, spec);
    if (node.contains("rates") && !node["rates"].empty()) {
      read_members(rates, node["rates"], spec.rates.emplace());
      spec.over = node["rates"].value("over", "");
    }
    graph.nodes.push_back(std::move(spec));
  }
  for (const Canonical& link : topology["links"])
    graph.links.push_back({link["from"].get<std::string>(), link["to"].get<std::string>(), link_of(link_row, link),
                           link["one_way"].get<bool>()});
  return graph;
}

void check_size(const Torus& torus, const Blame& blame) {
  std::int64_t ranks = 1;
  for (const int dimension : torus.dimensions) {
    ranks *= dimension;  // both factors are at most 2^20
    if (ranks > most_ranks)
      blame.fail("/topology/dimensions", fmt::format("expected dimensions that multiply to at most {} ranks, found {}",
                                                     most_ranks, fmt::join(torus.dimensions, " x ")));
  }
}

std::vector<CableChange> cable_changes_of(const Field& fabric_row, const Canonical& fabric) {
  std::vector<CableChange> changes;
  if (!fabric.contains("cables")) return changes;
  const Field& row = find(fabric_row.members, "cables")->members.front();
  for (const Canonical& cable : fabric["cables"]) read_members(row, cable, changes.emplace_back());
  return changes;
}

/// Clusters, and what else stands for nodes of a machine.
class Clusters {
 public:
  Clusters(const Canonical& topology, const Blame& blame, const Files& files)
      : topology_(topology), row_(topology_row(topology)), blame_(blame), files_(files) {}

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
      const Field& kinds = *find(row_.members, "fabric");
      read_variant(kinds, topology_["fabric"], out.fabric.emplace());
      out.changes = cable_changes_of(chosen_variant(kinds, topology_["fabric"]), topology_["fabric"]);
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
        blame_.fail("/topology/nodes", "cannot be combined with \"parts\"", "each part sets its own");
      }
      for (std::size_t i = 0; i < topology_["parts"].size(); ++i) {
        const Canonical& part = topology_["parts"][i];
        check_exactly_one(part, fmt::format("/topology/parts/{}", i), {"node", "node_file"});
        out.push_back({node_of(part), part["nodes"].get<int>()});
      }
      return out;
    }
    if (!topology_.contains("nodes")) {
      blame_.fail("/topology", "expected the key \"nodes\", found none", "nodes: The number of nodes. For example: 2");
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
    const Files::Content& file =
        content(part["node_file"], {"a machine file with the key \"devices\"", {"\"devices\""}});
    return std::make_shared<Machine>(parse_machine(file.text, file.path));
  }

  std::optional<LinkSpec> nic_if_said() const {
    if (!topology_.contains("nic")) return std::nullopt;
    return link_of(*find(row_.members, "nic"), topology_["nic"]);
  }

  Node nccl_xml() const {
    const Files::Content& file =
        content(topology_["file"], {"NCCL topology XML with a <system> element", {"<system", "<graphs"}});
    NcclXmlOptions options;
    if (topology_.contains("gpu")) options.gpu = topology_["gpu"].get<std::string>();
    if (topology_.contains("nvlink")) options.nvlink_from = *preset(topology_["nvlink"]);
    if (topology_.contains("like")) options.like = *preset(topology_["like"]);
    options.nic = nic_if_said();
    return std::make_shared<Machine>(import_nccl_xml(file.text, file.path, options));
  }

  Node nvidia_smi() const {
    const Files::Content& file =
        content(topology_["file"], {"the output of nvidia-smi topo -m, which contains GPU0", {"GPU0"}});
    return std::make_shared<Machine>(
        import_nvidia_smi(file.text, file.path, *preset(topology_["like"]), nic_if_said()));
  }

  void check_joined(const Cluster& cluster) const {
    if (!cluster.fabric) {
      blame_.fail("/topology", "expected the key \"fabric\" for more than one node, found none",
                  R"(such as {"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}}; if you give a )"
                  "machine by name, use --nodes and --fabric instead of --set");
    }
    for (const Cluster::Part& part : cluster.parts) {
      const auto& devices = part.machine->devices;
      if (std::any_of(devices.begin(), devices.end(),
                      [](const Machine::Device& device) { return device.port.has_value(); })) {
        continue;
      }
      blame_.fail(
          "/topology",
          fmt::format(
              "expected nodes with a NIC that can be cabled, because there is more than one node, found none in {}",
              part.machine->name),
          topology_["kind"] == "cluster" ? "" : "if the file does not state the speed of the NICs, set \"nic\"");
    }
  }

  const Canonical& topology_;
  const Field& row_;
  const Blame& blame_;
  const Files& files_;
};

}  // namespace

TopologySpec topology_of(const Canonical& topology, const Blame& blame, const Files& files) {
  const std::string& kind = topology["kind"].get_ref<const std::string&>();
  if (kind == "graph") return graph_of(topology);
  if (kind == "cluster" || kind == "nccl_xml" || kind == "nvidia_smi")
    return Clusters(topology, blame, files).cluster();
  TopologySpec out;
  read_variant(field_at("topology"), topology, out);
  if (const auto* torus = std::get_if<Torus>(&out)) check_size(*torus, blame);
  return out;
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
