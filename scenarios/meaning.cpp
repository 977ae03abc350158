#include "scenarios/meaning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/fields.hpp"
#include "sim/error.hpp"
#include "sim/quantity.hpp"
#include "topologies/nccl_xml_import.hpp"
#include "topologies/smi_import.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;

/// The enumerators whose names the table of fields lists.
template <class Enum>
Enum enum_of(const Canonical& text, std::initializer_list<std::pair<std::string_view, Enum>> known) {
  for (const auto& [name, value] : known) {
    if (text.get_ref<const std::string&>() == name) return value;
  }
  fail_invariant("the table of fields names a choice that nothing stands for: " + text.get<std::string>());
}

LinkSpec link_of(const Canonical& link) {
  return {.bandwidth = {link["bandwidth"].get<std::int64_t>()},
          .latency = Picoseconds{link["latency"].get<std::int64_t>()},
          .duplex = link.value("duplex", "full") == "half" ? Duplex::half : Duplex::full,
          .source = "scenario"};
}

Graph graph_of(const Canonical& topology) {
  Graph graph;
  for (const Canonical& node : topology["nodes"]) {
    graph.nodes.push_back(
        {node["name"].get<std::string>(), enum_of<NodeKind>(node["kind"], {{"gpu", NodeKind::gpu},
                                                                           {"cpu", NodeKind::cpu},
                                                                           {"memory", NodeKind::memory},
                                                                           {"pcie_switch", NodeKind::pcie_switch},
                                                                           {"nvswitch", NodeKind::nvswitch},
                                                                           {"nic", NodeKind::nic},
                                                                           {"switch", NodeKind::network_switch}})});
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
        blame_.fail("/topology/nodes", "expected no key \"nodes\" beside \"parts\", found one",
                    "each part has its own");
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
  const Files::Content& content(const Canonical& file) const { return files_.read(file["path"].get<std::string>()); }

  Node node_of(const Canonical& part) const {
    if (part.contains("node")) return preset(part["node"]);
    const Files::Content& file = content(part["node_file"]);
    return std::make_shared<Machine>(parse_machine(file.text, file.path));
  }

  Node nccl_xml() const {
    const Files::Content& file = content(topology_["file"]);
    NcclXmlOptions options;
    if (topology_.contains("gpu")) options.gpu = topology_["gpu"].get<std::string>();
    if (topology_.contains("nvlink")) options.nvlink_from = *preset(topology_["nvlink"]);
    if (topology_.contains("nic")) options.nic = link_of(topology_["nic"]);
    return std::make_shared<Machine>(import_nccl_xml(file.text, file.path, options));
  }

  Node nvidia_smi() const {
    const Files::Content& file = content(topology_["file"]);
    return std::make_shared<Machine>(import_nvidia_smi(file.text, file.path, *preset(topology_["like"])));
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
          topology_["kind"] == "nccl_xml" ? "where the file does not tell the speed of NICs, say \"nic\"" : "");
    }
  }

  const Canonical& topology_;
  const Blame& blame_;
  const Files& files_;
};

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

Arguments arguments_of(const Algorithm& algorithm, const Canonical& given) {
  Arguments arguments;
  for (const Parameter& parameter : algorithm.parameters) {
    const Canonical& value = given[parameter.name];
    if (!parameter.choices.empty()) {
      arguments.texts[parameter.name] = value.get<std::string>();
    } else if (value.get<std::int64_t>() != parameter.fallback) {
      arguments.numbers[parameter.name] = value.get<std::int64_t>();  // a default may lie out of bounds: left out
    }
  }
  return arguments;
}

void check_supports(const Algorithm& algorithm, CollectiveOp op, const Blame& blame) {
  if (algorithm.supports(op)) return;
  std::vector<std::string_view> can, others;
  for (const CollectiveOp each : algorithm.ops) can.push_back(to_string(each));
  for (const Algorithm& other : algorithms()) {
    if (other.supports(op)) others.push_back(other.name);
  }
  blame.fail("/collective/algorithm",
             fmt::format("expected an algorithm for {}, found \"{}\"", to_string(op), algorithm.name),
             fmt::format("{} does {}; {}", algorithm.name, fmt::join(can, ", "),
                         others.empty() ? fmt::format("no algorithm does {}", to_string(op))
                                        : fmt::format("{} is done by {}", to_string(op), fmt::join(others, ", "))));
}

void check_request(const Scenario& scenario, const Canonical& collective, const Json& written, std::size_t gpus,
                   const Blame& blame) {
  const CollectiveRequest& request = scenario.request;
  const Json& said = written["collective"];
  const auto found = [&] { return fmt::format("found op {} by {}", to_string(request.op), scenario.algorithm->name); };
  if (scenario.ranks.size() > gpus) {
    blame.fail("/collective/ranks",
               fmt::format("expected at most {} names, one for each gpu, found {}", gpus, scenario.ranks.size()));
  }
  if (said.contains("root") && request.op != CollectiveOp::broadcast &&
      scenario.algorithm->name != "parameter_server") {
    blame.fail("/collective/root", "expected a root only for broadcast or parameter_server, " + found(),
               "leave \"root\" out");
  }
  if (request.root >= request.ranks) {
    blame.fail("/collective/root", fmt::format("expected a rank from 0 to {}, found {}", request.ranks - 1,
                                               collective["root"].get<std::int64_t>()));
  }
  if (said.contains("both_ways") && request.op != CollectiveOp::pairs) {
    blame.fail("/collective/both_ways", "expected both_ways only for op pairs, " + found(), "leave \"both_ways\" out");
  }
  if (request.op == CollectiveOp::pairs && request.ranks % 2 != 0) {
    blame.fail("/collective/op", fmt::format("expected an even number of ranks for pairs, found {}", request.ranks));
  }
}

/// A level by name, or by the numbers of older NCCLs: 0 never, 1 one switch, 2 several, 3 the host bridge, 4 and 5
/// sockets (docs.nvidia.com, NCCL environment variables; 4 is the NUMA node, which PathType counts as PHB or SYS).
PathType level_of(const std::string& text) {
  constexpr PathType numbers[] = {PathType::loc, PathType::pix, PathType::pxb,
                                  PathType::phb, PathType::sys, PathType::sys};
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '5') return numbers[text[0] - '0'];
  const auto level = path_type(text);
  ensure(level.has_value(), "the table of fields names path types");
  return *level;
}

/// Two spellings of one setting: only one may be used.
void check_spellings(const Json& written, const Blame& blame) {
  if (written.contains("network") && written["network"].contains("packet") &&
      written["network"].value("model", "fair") != "packet")
    blame.fail("/network/packet",
               fmt::format("expected settings of packets only with the model packet, found the model {}",
                           written["network"].value("model", "fair")),
               R"(to compare models: "network": [{"model": "fair"}, {"model": "packet", "packet": {"mtu": "1 KiB"}}])");
  if (!written.contains("transport")) return;
  const Json& said = written["transport"];
  constexpr std::pair<const char*, const char*> same[] = {{"gdr_level", "NCCL_NET_GDR_LEVEL"},
                                                          {"p2p_level", "NCCL_P2P_LEVEL"},
                                                          {"p2p_level", "NCCL_P2P_DISABLE"},
                                                          {"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE"},
                                                          {"pxn", "NCCL_PXN_DISABLE"}};
  const auto refuse = [&](const char* one, const char* other) {
    blame.fail(fmt::format("/transport/{}", other), fmt::format("expected either {} or {}, found both", one, other),
               "they set the same; leave one out");
  };
  for (const auto& [one, other] : same)
    if (said.contains(one) && said.contains(other)) refuse(one, other);
  for (const char* level : {"gdr_level", "NCCL_NET_GDR_LEVEL"})
    if (said.contains("gpudirect") && said["gpudirect"] == false && said.contains(level)) refuse("gpudirect", level);
}

Transport transport_of(const Canonical& transport) {
  return {.gdr_level = level_of(transport["gdr_level"].get<std::string>()),
          .p2p_level = level_of(transport["p2p_level"].get<std::string>()),
          .pxn = transport["pxn"].get<bool>(),
          .nics = enum_of<Transport::Nics>(transport["nics"],
                                           {{"nearest", Transport::Nics::nearest}, {"all", Transport::Nics::all}}),
          .staging = {.size = {transport["staging"]["size"].get<std::int64_t>()},
                      .depth = transport["staging"]["depth"].get<int>()}};
}

PacketOptions packet_of(const Canonical& packet, const Blame& blame) {
  PacketOptions out{.flow_control = enum_of<PacketOptions::FlowControl>(
                        packet["flow_control"],
                        {{"credit", PacketOptions::FlowControl::credit}, {"pause", PacketOptions::FlowControl::pause}}),
                    .mtu = {packet["mtu"].get<std::int64_t>()},
                    .buffer = {},
                    .lanes = packet["lanes"].get<int>()};
  if (!packet.contains("buffer")) return out;
  out.buffer = Bytes{packet["buffer"].get<std::int64_t>()};
  if (*out.buffer < out.mtu)
    blame.fail("/network/packet/buffer",
               fmt::format("expected room for a packet at least, {}, found {}", format(out.mtu), format(*out.buffer)));
  return out;
}

RoutingSpec routing_of(const Canonical& network, const Blame& blame) {
  using Policy = Routing::Policy;
  RoutingSpec out;
  out.policy = enum_of<Policy>(network["routing"], {{"static", Policy::fixed},
                                                    {"ecmp", Policy::ecmp},
                                                    {"flow_spray", Policy::flow_spray},
                                                    {"packet_spray", Policy::packet_spray}});
  out.seed = network["seed"].get<std::uint64_t>();
  if (!network.contains("table")) return out;
  if (out.policy != Policy::fixed) {
    blame.fail("/network/table", fmt::format("expected a table only with static routing, found {}",
                                             network["routing"].get<std::string>()));
  }
  for (const Canonical& entry : network["table"])
    out.table.push_back(
        {entry["at"].get<std::string>(), entry["to"].get<std::string>(), entry["via"].get<std::string>()});
  return out;
}

}  // namespace

void use_one_spelling(Canonical& canonical) {
  Canonical& transport = canonical["transport"];
  const auto take = [&](const char* nccl, const auto& use) {
    if (!transport.contains(nccl) || !transport[nccl].is_string()) return;  // of a file: perhaps a list
    use(transport[nccl].get<std::string>());
    transport.erase(nccl);
  };
  if (Canonical& op = canonical["collective"]["op"]; op == "alltoall") op = "all_to_all";
  // Other models have no packets, so their settings are no part of the question.
  if (Canonical& network = canonical["network"]; network.is_object() && network.contains("model")) {
    const Canonical& model = network["model"];
    if (model != "packet" && std::find(model.begin(), model.end(), "packet") == model.end()) network.erase("packet");
  }
  take("NCCL_NET_GDR_LEVEL", [&](const std::string& level) { transport["gdr_level"] = to_string(level_of(level)); });
  take("NCCL_P2P_LEVEL", [&](const std::string& level) { transport["p2p_level"] = to_string(level_of(level)); });
  take("NCCL_P2P_DISABLE", [&](const std::string& flag) {
    if (flag == "1") transport["p2p_level"] = "LOC";
  });
  take("NCCL_PXN_DISABLE", [&](const std::string& flag) { transport["pxn"] = flag == "0"; });
  if (!transport["gpudirect"].is_boolean()) return;
  if (transport["gpudirect"] == false) transport["gdr_level"] = "LOC";
  transport.erase("gpudirect");
}

Scenario scenario_of(const Canonical& canonical, const Json& written, const Blame& blame, const Files& files) {
  Scenario out;
  out.topology = topology_of(canonical["topology"], blame, files);
  if (const auto* cluster = std::get_if<Cluster>(&out.topology)) {
    for (const Cluster::Part& part : cluster->parts) {
      const auto& warnings = part.machine->warnings;
      out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());
    }
  }
  const std::size_t gpus = gpus_of(out.topology, blame);

  const Canonical& collective = canonical["collective"];
  const Canonical& algorithm = collective["algorithm"];
  out.algorithm = find_algorithm(algorithm["name"].get_ref<const std::string&>());
  ensure(out.algorithm != nullptr, "the table of fields names the algorithms of the catalogue");
  out.arguments = arguments_of(*out.algorithm, algorithm);
  if (collective.contains("ranks")) out.ranks = collective["ranks"].get<std::vector<std::string>>();
  out.request = {.op = enum_of<CollectiveOp>(collective["op"], {{"all_reduce", CollectiveOp::all_reduce},
                                                                {"reduce_scatter", CollectiveOp::reduce_scatter},
                                                                {"all_gather", CollectiveOp::all_gather},
                                                                {"broadcast", CollectiveOp::broadcast},
                                                                {"all_to_all", CollectiveOp::all_to_all},
                                                                {"pairs", CollectiveOp::pairs}}),
                 .ranks = static_cast<int>(out.ranks.empty() ? gpus : out.ranks.size()),
                 .bytes = {collective["bytes"].get<std::int64_t>()},
                 .root = collective["root"].get<Actor>(),
                 .both_ways = collective["both_ways"].get<bool>()};
  check_supports(*out.algorithm, out.request.op, blame);
  check_request(out, collective, written, gpus, blame);

  const int helpers = out.algorithm->helpers(out.arguments);
  if (auto* star = std::get_if<Star>(&out.topology)) {
    star->extra_ports = helpers;
  } else if (helpers > 0) {
    blame.fail(
        "/collective/algorithm",
        fmt::format("expected a topology of kind star, whose extra ports hold the {} helper{} of {}, found {}", helpers,
                    helpers == 1 ? "" : "s", out.algorithm->name, canonical["topology"]["kind"].get<std::string>()),
        "use a star, or leave out the parameter that asks for helpers");
  }

  if (collective["order"] == "shuffled") out.shuffle = collective["seed"].get<std::uint64_t>();
  check_spellings(written, blame);
  out.transport = transport_of(canonical["transport"]);
  out.model = enum_of<NetworkModel>(
      canonical["network"]["model"],
      {{"ideal", NetworkModel::ideal}, {"fair", NetworkModel::fair}, {"packet", NetworkModel::packet}});
  if (out.model == NetworkModel::packet) out.packet = packet_of(canonical["network"]["packet"], blame);
  out.routing = routing_of(canonical["network"], blame);
  return out;
}

}  // namespace ringsim::scenarios
