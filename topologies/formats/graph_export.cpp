// Written with fmt: Boost.Graph's writers know neither clusters of nodes nor attributes that some nodes lack.
#include "topologies/formats/graph_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/base/units.hpp"

namespace ringsim {

namespace {

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string dot_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return '"' + out + '"';
}

double gigabytes(Bandwidth bandwidth) { return static_cast<double>(bandwidth.bytes_per_second) / 1e9; }

/// A data element; `value` as the key's type has it.
template <class Value>
std::string data(std::string_view key, const Value& value) {
  return fmt::format("<data key=\"{}\">{}</data>", key, value);
}

std::map<std::uint32_t, std::size_t> rank_of(const Topology& topology) {
  std::map<std::uint32_t, std::size_t> ranks;
  for (std::size_t r = 0; r < topology.ranks().size(); ++r) ranks[topology.ranks()[r].value] = r;
  return ranks;
}

std::string_view color(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
    case LinkKind::xgmi:
    case LinkKind::c2c:
      return "#2e7d32";
    case LinkKind::pcie:
      return "#1565c0";
    case LinkKind::socket:
    case LinkKind::memory:
      return "#6d4c41";
    case LinkKind::infiniband:
    case LinkKind::ethernet:
      return "#c62828";
    case LinkKind::generic:
    case LinkKind::copy:
    case LinkKind::reduce:
    case LinkKind::channel:
      break;
  }
  return "#424242";
}

std::string_view shape(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu:
      return "box";
    case NodeKind::nic:
      return "house";
    case NodeKind::cpu:
    case NodeKind::host_bridge:
      return "octagon";
    case NodeKind::memory:
      return "cylinder";
    case NodeKind::pcie_switch:
    case NodeKind::pcie_slot:
    case NodeKind::nvswitch:
    case NodeKind::network_switch:
      break;
  }
  return "ellipse";
}

/// 1 to 6: 1 GB/s or less is 1 wide, each doubling half a point more. By the bits of the number: the same everywhere.
double pen_width(Bandwidth bandwidth) {
  double width = 1;
  for (std::int64_t rate = bandwidth.bytes_per_second / 2; rate >= 1'000'000'000 && width < 6; rate /= 2) width += 0.5;
  return width;
}

std::string dot_node(const Topology& topology, NodeId id, std::string_view indent) {
  const Node& node = topology.node(id);
  const std::size_t dot = node.host ? node.name.find('.') : std::string::npos;
  const std::string label = dot == std::string::npos ? node.name : node.name.substr(dot + 1);
  return fmt::format("{}{} [label={}, shape={}];\n", indent, dot_text(node.name), dot_text(label), shape(node.kind));
}

/// The other direction of a link's cable: the link that was added right after it and leads back.
bool is_cable(const Topology& topology, std::size_t link) {
  if (link + 1 >= topology.n_links()) return false;
  const Link &there = topology.links()[link], &back = topology.links()[link + 1];
  return there.from == back.to && there.to == back.from && there.bandwidth == back.bandwidth && there.kind == back.kind;
}

}  // namespace

std::string to_graphml(const Topology& topology, const std::vector<bool>& marked) {
  struct Key {
    std::string_view name, of, type;
  };
  constexpr Key keys[] = {
      {"name", "node", "string"},       {"kind", "node", "string"},      {"node", "node", "long"},
      {"rank", "node", "long"},         {"link_kind", "edge", "string"}, {"bandwidth_GBps", "edge", "double"},
      {"latency_us", "edge", "double"}, {"duplex", "edge", "string"},    {"joined", "edge", "long"}};
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n";
  const bool marks = std::find(marked.begin(), marked.end(), true) != marked.end();
  if (marks) out += "  <key id=\"bottleneck\" for=\"edge\" attr.name=\"bottleneck\" attr.type=\"boolean\"/>\n";
  for (const Key& key : keys) {
    out += fmt::format("  <key id=\"{}\" for=\"{}\" attr.name=\"{}\" attr.type=\"{}\"/>\n", key.name, key.of,
                       key.name == "link_kind" ? "kind" : key.name, key.type);
  }
  out += "  <graph id=\"topology\" edgedefault=\"directed\">\n";
  const auto ranks = rank_of(topology);
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    const Node& node = topology.node(NodeId{n});
    out += fmt::format("    <node id=\"n{}\">{}{}", n, data("name", xml_text(node.name)),
                       data("kind", to_string(node.kind)));
    if (node.host) out += data("node", *node.host);
    if (const auto rank = ranks.find(n); rank != ranks.end()) out += data("rank", rank->second);
    out += "</node>\n";
  }
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    const Link& link = topology.link(LinkId{l});
    out +=
        fmt::format("    <edge id=\"e{}\" source=\"n{}\" target=\"n{}\">{}{}{}{}{}{}</edge>\n", l, link.from.value,
                    link.to.value, data("link_kind", to_string(link.kind)),
                    data("bandwidth_GBps", gigabytes(link.bandwidth)), data("latency_us", microseconds(link.latency)),
                    data("duplex", topology.resource(link.resource).shared ? "half" : "full"),
                    data("joined", link.joined), marks && marked[l] ? data("bottleneck", true) : "");
  }
  return out + "  </graph>\n</graphml>\n";
}

std::string to_dot(const Topology& topology, const std::vector<bool>& marked) {
  std::string out = "digraph topology {\n  node [fontname=\"sans-serif\"];\n";
  std::map<std::uint32_t, std::vector<NodeId>> hosts;
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    const Node& node = topology.node(NodeId{n});
    if (node.host) {
      hosts[*node.host].push_back(NodeId{n});
    } else {
      out += dot_node(topology, NodeId{n}, "  ");
    }
  }
  for (const auto& [host, nodes] : hosts) {
    out += fmt::format("  subgraph cluster_node{0} {{\n    label=\"node{0}\";\n", host);
    for (const NodeId id : nodes) out += dot_node(topology, id, "    ");
    out += "  }\n";
  }
  for (std::size_t l = 0; l < topology.n_links(); ++l) {
    const Link& link = topology.links()[l];
    const bool cable = is_cable(topology, l);
    const bool mark = !marked.empty() && (marked[l] || (cable && marked[l + 1]));
    out += fmt::format("  {} -> {} [penwidth={}, color=\"{}\", tooltip=\"{} {:.4g} GB/s\"{}{}];\n",
                       dot_text(topology.node(link.from).name), dot_text(topology.node(link.to).name),
                       pen_width(link.bandwidth), color(link.kind), to_string(link.kind), gigabytes(link.bandwidth),
                       cable ? ", dir=none" : "", mark ? ", style=dashed, label=\"bottleneck\"" : "");
    if (cable) ++l;
  }
  return out + "}\n";
}

}  // namespace ringsim
