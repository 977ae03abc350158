#include "sim/topology/fabric_ways.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "sim/base/error.hpp"
#include "sim/base/splitmix.hpp"

namespace ringsim {

namespace {

/// A free topology, or the fabric between hosts: what belongs to no host, and the NICs as ports.
Role fabric_role(const Node& node) {
  if (node.host) return node.kind == NodeKind::nic ? Role::end : Role::outside;
  if (node.kind == NodeKind::gpu) return Role::relay;
  return node.kind == NodeKind::memory ? Role::end : Role::transit;
}

/// The NICs that are cabled to the fabric, in the order of their cables: a rail fabric is cabled rail by rail, so that
/// the NICs below one of its switches have numbers in a row.
std::vector<NodeId> nics_by_cable(const Topology& topology, const HostWays& hosts) {
  std::vector<std::pair<LinkId, NodeId>> found;
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    const NodeId nic{n};
    if (!hosts.is_cabled_nic(nic)) continue;
    const auto links = topology.links_from(nic);
    const auto cable = std::find_if(links.begin(), links.end(), [&](LinkId id) {
      return topology.node(topology.link(id).to).host != topology.node(nic).host;
    });
    found.emplace_back(*cable, nic);
  }
  std::sort(found.begin(), found.end());
  std::vector<NodeId> nics;
  for (const auto& [cable, nic] : found) nics.push_back(nic);
  return nics;
}

}  // namespace

FabricWays::FabricWays(const Topology& topology, const HostWays& hosts, Routing routing, Usable usable)
    : topology_(topology),
      hosts_(hosts),
      routing_(std::move(routing)),
      usable_(std::move(usable)),
      search_(topology, 0, static_cast<std::uint32_t>(topology.n_nodes()), fabric_role, usable_) {
  for (const NodeId nic : nics_by_cable(topology, hosts)) numbers_.emplace(nic.value, numbers_.size());
  for (const Routing::Entry& entry : routing_.table) {
    ensure(best_link(topology, entry.at, entry.via).has_value(), "an entry of a table leads to a neighbor");
    table_[{entry.at, entry.to}] = entry.via;
  }
}

bool FabricWays::are_joined(NodeId out, NodeId in) {
  // A cable may be down in one direction only: then the leaf of a NIC says nothing.
  const NodeId leaf = usable_ ? no_node : hosts_.leaf_of(out);
  return (leaf != no_node && leaf == hosts_.leaf_of(in)) || search_.find(out, in).has_value();
}

FabricWays::Crossing FabricWays::across(NodeId port, NodeId far, NodeId from, NodeId to, std::uint32_t label) {
  if (port == far) return {};
  const auto plain = search_.find(port, far);
  if (!plain) fail_across(from, to, port, far);
  if (routing_.policy == Routing::Policy::packet_spray) {
    auto ways = search_.spread(port, far);
    ensure(ways.has_value(), "where one way leads, all lead");
    for (const Share& each : *ways) {
      const Node& next = topology_.node(topology_.link(each.link).to);
      if (topology_.link(each.link).to == far || next.kind != NodeKind::gpu) continue;
      fail_path(topology_, from, to, "data is staged in " + next.name + " on the way and cannot be spread by packet",
                "take a policy other than packet_spray");
    }
    const bool has_choice = std::any_of(ways->begin(), ways->end(), [](const Share& each) { return each.share < 1; });
    return {.links = std::move(*ways), .turns = 1, .has_choice = has_choice};
  }
  // A switch looks at hops; only if the order of links is to decide, at what they are as well.
  const bool first = routing_.policy == Routing::Policy::fixed && topology_.ties() == Ties::first;
  if (first && table_.empty())
    return {.links = chain(*plain), .turns = 1, .has_choice = has_choice_beside(*plain, port, far)};
  Crossing crossing;
  const auto way = search_.find(port, far, !first, chooser(far, from, to, label, crossing.turns));
  if (!way) fail_across(from, to, port, far);
  crossing.links = chain(*way);
  crossing.has_choice = crossing.turns > 1;
  return crossing;
}

/// True if a switch sees other links that lead on over as few hops, anywhere on the way.
bool FabricWays::has_choice_beside(const Way& way, NodeId port, NodeId far) {
  // A port with one cable, a switch, and another such port: the commonest case, and a search for each pair would cost.
  if (way.size() <= 2 && topology_.links_from(port).size() == 1 && topology_.links_to(far).size() == 1) return false;
  bool found = false;
  std::size_t next = 0;
  search_.find(port, far, /*by_hops=*/true, [&](NodeId, std::span<const LinkId> candidates) {
    found = found || candidates.size() > 1;
    return way[next++];
  });
  return found;
}

/// What the switches on the way to `far` choose.
Pick FabricWays::chooser(NodeId far, NodeId from, NodeId to, std::uint32_t label, std::uint32_t& turns) const {
  // D-mod-k takes another digit of the destination's number at every switch that has a choice; so do turns.
  const auto number_of = numbers_.find(far.value);
  const std::uint64_t pair =
      splitmix(routing_.seed ^ splitmix(static_cast<std::uint64_t>(from.value) << 32 | to.value));
  const bool destination = routing_.policy == Routing::Policy::fixed;
  std::uint64_t digits = !destination ? label : number_of == numbers_.end() ? 0 : number_of->second;
  return [=, this, &turns](NodeId at, std::span<const LinkId> candidates) mutable {
    if (const auto listed = listed_link(at, far)) return *listed;
    if (candidates.size() == 1 || (destination && topology_.ties() == Ties::first)) return candidates.front();
    turns = std::min<std::uint32_t>(max_sprayed, turns * static_cast<std::uint32_t>(candidates.size()));
    std::uint64_t number = digits;
    if (routing_.policy == Routing::Policy::ecmp) {
      number = splitmix(pair ^ splitmix(static_cast<std::uint64_t>(at.value) << 32 | label));
      return candidates[number % candidates.size()];
    }
    // The neighbor takes a digit. The rest of the number chooses among parallel cables to it and is not used up, so
    // that the far switch splits traffic over a bundle by the same rule.
    std::vector<NodeId> neighbors;
    for (const LinkId id : candidates) {
      const NodeId next = topology_.link(id).to;
      if (std::find(neighbors.begin(), neighbors.end(), next) == neighbors.end()) neighbors.push_back(next);
    }
    digits /= neighbors.size();
    if (!destination) number += splitmix(pair ^ at.value);
    const NodeId next = neighbors[number % neighbors.size()];
    std::vector<LinkId> bundle;
    for (const LinkId id : candidates)
      if (topology_.link(id).to == next) bundle.push_back(id);
    return bundle[number / neighbors.size() % bundle.size()];
  };
}

std::optional<LinkId> FabricWays::listed_link(NodeId at, NodeId far) const {
  if (table_.empty()) return std::nullopt;
  auto entry = table_.find({at, far});
  if (entry == table_.end() && !best_link(topology_, at, far, usable_)) entry = table_.find({at, no_node});
  if (entry == table_.end()) return std::nullopt;
  return best_link(topology_, at, entry->second, usable_);
}

void FabricWays::fail_across(NodeId from, NodeId to, NodeId port, NodeId far) const {
  if (port == from && far == to)
    fail_path(topology_, from, to, "no chain of links leads there",
              "add a link on the path; a one-way link is not used backwards, and data never passes through memory");
  fail_path(topology_, from, to,
            "the fabric does not connect " + topology_.node(port).name + " and " + topology_.node(far).name,
            "cable both NICs to switches that are connected");
}

std::vector<Share> chain(const Way& way) {
  std::vector<Share> shares;
  for (const LinkId id : way) shares.push_back({id, 1});
  return shares;
}

void fail_path(const Topology& topology, NodeId from, NodeId to, const std::string& because, const std::string& hint) {
  throw InputError("", "no path from " + topology.node(from).name + " to " + topology.node(to).name + ": " + because,
                   hint);
}

}  // namespace ringsim
