// Cables of a fabric that are not as the others: mixed speeds, a cable that came up slower than it should.
#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/spelling.hpp"
#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"

namespace ringsim {

namespace {

NodeId end_of(const std::string& name, const std::string& pointer, const TopologyBuilder& builder) {
  const auto id = builder.find(name);
  if (id) return *id;
  std::vector<std::string> names;
  for (const Node& node : builder.nodes()) {
    if (node.kind == NodeKind::nic || node.kind == NodeKind::network_switch) names.push_back(node.name);
  }
  throw InputError(pointer, "expected the name of a switch or a NIC, found \"" + name + "\"",
                   did_you_mean(name, names));
}

/// The nodes that the fabric's cables join to this one: the nearest spelling, or the first few.
std::string joined_to(NodeId from, const std::string& wanted, std::size_t first, const TopologyBuilder& builder) {
  std::vector<std::string> names;
  for (const Link& link : builder.links().subspan(first)) {
    const std::string& name = builder.nodes()[link.to.value].name;
    if (link.from == from && (names.empty() || names.back() != name)) names.push_back(name);
  }
  std::string near = did_you_mean(wanted, names);
  if (!near.empty()) return near;
  constexpr std::size_t shown = 4;
  std::string list;
  for (std::size_t n = 0; n < std::min(shown, names.size()); ++n) list += (n == 0 ? "" : ", ") + names[n];
  const std::string& name = builder.nodes()[from.value].name;
  if (names.empty()) return name + " has no cable of the fabric";
  return name + " is joined to " + list + (names.size() > shown ? " and others" : "");
}

/// What is asked of the cable, in series with the port of the NIC at its end.
CableChange behind_port(CableChange change, NodeId a, NodeId b, std::span<const NicPort> ports) {
  const auto port =
      std::find_if(ports.begin(), ports.end(), [&](const NicPort& p) { return p.nic == a || p.nic == b; });
  if (port == ports.end()) return change;
  if (change.bandwidth) change.bandwidth = std::min(*change.bandwidth, port->port.bandwidth);
  if (change.latency) change.latency = add(*change.latency, port->port.latency);
  return change;
}

}  // namespace

void change_cables(std::span<const CableChange> changes, std::span<const NicPort> ports, std::size_t first,
                   TopologyBuilder& builder) {
  std::map<std::pair<NodeId, NodeId>, std::size_t> seen;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const CableChange& change = changes[i];
    const std::string where = "/cables/" + std::to_string(i);
    const NodeId a = end_of(change.from, where + "/from", builder), b = end_of(change.to, where + "/to", builder);
    const std::string pair = "\"" + change.from + "\" and \"" + change.to + "\"";
    if (!change.bandwidth && !change.latency) {
      throw InputError(where, "expected a bandwidth, a latency or both, found neither");
    }
    require_usable(
        {.bandwidth = change.bandwidth.value_or(Bandwidth{1}), .latency = change.latency.value_or(Picoseconds{0})},
        where);
    const auto [known, is_new] = seen.emplace(std::minmax(a, b), i);
    if (!is_new) {
      throw InputError(where, "expected each two ends once, found " + pair + " again; the first is /cables/" +
                                  std::to_string(known->second));
    }
    const CableChange behind = behind_port(change, a, b, ports);
    if (builder.change_cables(a, b, first, behind.bandwidth, behind.latency, "/fabric" + where) == 0) {
      throw InputError(where, "expected two ends that a cable of the fabric joins, found " + pair,
                       joined_to(a, change.to, first, builder));
    }
  }
}

}  // namespace ringsim
