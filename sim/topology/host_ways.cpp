#include "sim/topology/host_ways.hpp"

#include <algorithm>

namespace ringsim {

namespace {

/// The inside of a host without NVLink: only CPUs and what PCIe has between devices are crossed.
Role host_role(const Node& node) {
  switch (node.kind) {
    case NodeKind::cpu:
    case NodeKind::host_bridge:
    case NodeKind::pcie_switch:
    case NodeKind::pcie_slot:
      return Role::transit;
    case NodeKind::nvswitch:
      return Role::outside;
    default:
      return Role::end;
  }
}

/// The inside of a host over NVLink: only NVSwitches are crossed.
Role nvlink_role(const Node& node) {
  if (node.kind == NodeKind::nvswitch) return Role::transit;
  return node.kind == NodeKind::gpu ? Role::end : Role::outside;
}

bool is_nvlink(const Link& link) { return link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi; }

}  // namespace

HostWays::HostWays(const Topology& topology, Usable usable)
    : topology_(topology), usable_(std::move(usable)), spans_(topology.hosts().size()) {
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    const auto& host = topology.node(NodeId{n}).host;
    if (!host) continue;
    spans_[*host].first = std::min(spans_[*host].first, n);
    spans_[*host].last = std::max(spans_[*host].last, n + 1);
  }
}

template <class Visit>
void HostWays::for_host_of(NodeId device, Visit visit) const {
  const std::uint32_t host = *topology_.node(device).host;
  for (std::uint32_t n = spans_[host].first; n < spans_[host].last; ++n)
    if (topology_.node(NodeId{n}).host == host) visit(NodeId{n});
}

HostWays::Inside& HostWays::inside(NodeId device) {
  const std::uint32_t host = *topology_.node(device).host;
  if (last_inside_ && last_inside_->host == host) return *last_inside_;
  const auto [first, last] = spans_[host];
  const auto only_here = [host](Role (*role)(const Node&)) {
    return [host, role](const Node& node) { return node.host == host ? role(node) : Role::outside; };
  };
  const auto over = [this](bool nvlink) {
    return [this, nvlink](LinkId id) { return is_nvlink(topology_.link(id)) == nvlink && is_up(id); };
  };
  last_inside_.reset(new Inside{host, CheapestWay(topology_, first, last, only_here(nvlink_role), over(true)),
                                CheapestWay(topology_, first, last, only_here(host_role), over(false))});
  return *last_inside_;
}

std::optional<Way> HostWays::nvlink(NodeId from, NodeId to) { return inside(from).nvlink.find(from, to); }

const std::optional<Way>& HostWays::pcie(NodeId from, NodeId to) {
  const std::uint64_t key = static_cast<std::uint64_t>(from.value) << 32 | to.value;
  const auto known = pcie_ways_.find(key);
  if (known != pcie_ways_.end()) return known->second;
  return pcie_ways_.emplace(key, search_pcie(from, to)).first->second;
}

std::optional<Way> HostWays::search_pcie(NodeId from, NodeId to) { return inside(from).pcie.find(from, to); }

namespace {
bool is_root_complex(const Node& node) { return node.kind == NodeKind::cpu || node.kind == NodeKind::host_bridge; }
}  // namespace

Way HostWays::way_to_root(NodeId pcie_switch) {
  Way best;
  for (const NodeId cpu : nodes_of(pcie_switch, NodeKind::cpu)) {
    const auto& way = pcie(pcie_switch, cpu);
    if (!way) continue;
    const auto ends = [&](LinkId id) { return is_root_complex(topology_.node(topology_.link(id).to)); };
    const Way up(way->begin(), std::find_if(way->begin(), way->end(), ends) + 1);
    if (best.empty() || up.size() < best.size()) best = up;
  }
  return best;
}

Way HostWays::redirected(const Way& way) {
  // It turns in the switch that is nearest to the root complex.
  Way up;
  std::size_t turn = 0;
  for (std::size_t i = 0; i < way.size(); ++i) {
    const Link& link = topology_.link(way[i]);
    if (is_root_complex(topology_.node(link.from)) || is_root_complex(topology_.node(link.to))) return way;
    if (topology_.node(link.to).kind != NodeKind::pcie_switch) continue;
    const Way found = way_to_root(link.to);
    if (!found.empty() && (up.empty() || found.size() < up.size())) up = found, turn = i + 1;
  }
  if (up.empty()) return way;
  const auto& down = pcie(topology_.link(up.back()).to, topology_.link(up.front()).from);
  if (!down) return way;
  Way out(way.begin(), way.begin() + static_cast<std::ptrdiff_t>(turn));
  out.insert(out.end(), up.begin(), up.end());
  out.insert(out.end(), down->begin(), down->end());
  out.insert(out.end(), way.begin() + static_cast<std::ptrdiff_t>(turn), way.end());
  return out;
}

std::optional<std::pair<LinkId, LinkId>> HostWays::relay(NodeId from, NodeId to) const {
  std::optional<std::pair<LinkId, LinkId>> best;
  std::pair<std::int64_t, std::uint32_t> best_key{};
  for (const LinkId id : topology_.links_from(from)) {
    const Link& first = topology_.link(id);
    if (!is_nvlink(first) || !is_up(id) || topology_.node(first.to).kind != NodeKind::gpu) continue;
    const auto second = best_link(topology_, first.to, to, usable_);
    if (!second || !is_nvlink(topology_.link(*second))) continue;
    const auto width = std::min(first.bandwidth, topology_.link(*second).bandwidth).bytes_per_second;
    const std::pair key{-width, first.to.value};
    if (!best || key < best_key) best = {id, *second}, best_key = key;
  }
  return best;
}

PathType HostWays::type_of(NodeId from, const Way& way) const {
  int cpus = topology_.node(from).kind == NodeKind::cpu ? 1 : 0, bridges = 0, switches = 0, c2c = 0;
  for (const LinkId id : way) {
    const Link& link = topology_.link(id);
    const NodeKind kind = topology_.node(link.to).kind;
    cpus += kind == NodeKind::cpu ? 1 : 0;
    bridges += kind == NodeKind::host_bridge ? 1 : 0;
    switches += kind == NodeKind::pcie_switch ? 1 : 0;
    c2c += link.kind == LinkKind::c2c ? 1 : 0;
  }
  if (cpus > 1) return PathType::sys;
  if (c2c == 1 && cpus == 1) return way.size() == 1 ? PathType::c2c : PathType::p2c;
  if (cpus == 1 || bridges > 0) return PathType::phb;
  return switches > 1 ? PathType::pxb : PathType::pix;
}

std::pair<NodeId, Way> HostWays::nearest_memory(NodeId device, bool outward) {
  std::pair<NodeId, Way> best{no_node, {}};
  for_host_of(device, [&](NodeId memory) {
    if (topology_.node(memory).kind != NodeKind::memory) return;
    const auto& way = outward ? pcie(device, memory) : pcie(memory, device);
    if (way && (best.first == no_node || way->size() < best.second.size())) best = {memory, *way};
  });
  return best;
}

std::vector<NodeId> HostWays::nodes_of(NodeId device, NodeKind kind) const {
  std::vector<NodeId> found;
  for_host_of(device, [&](NodeId other) {
    if (topology_.node(other).kind == kind) found.push_back(other);
  });
  return found;
}

std::vector<CabledNic> HostWays::cabled_nics(NodeId device, bool outward) const {
  std::vector<CabledNic> found;
  std::uint32_t number = 0;
  for_host_of(device, [&](NodeId nic) {
    if (!is_cabled_nic(nic)) return;
    if (cable_of(nic, outward).bytes_per_second > 0) found.push_back({nic, number});
    ++number;
  });
  return found;
}

bool HostWays::is_cabled_nic(NodeId id) const {
  const Node& node = topology_.node(id);
  const auto leaves = [&](LinkId link) { return topology_.node(topology_.link(link).to).host != node.host; };
  const auto links = topology_.links_from(id);
  return node.kind == NodeKind::nic && node.host && std::any_of(links.begin(), links.end(), leaves);
}

Bandwidth HostWays::cable_of(NodeId nic, bool outward) const {
  Bandwidth widest;
  if (topology_.node(nic).idle) return widest;
  for (const LinkId id : outward ? topology_.links_from(nic) : topology_.links_to(nic)) {
    const Link& link = topology_.link(id);
    if (topology_.node(outward ? link.to : link.from).host != topology_.node(nic).host && is_up(id))
      widest = std::max(widest, link.bandwidth);
  }
  return widest;
}

NodeId HostWays::leaf_of(NodeId nic) const {
  for (const LinkId id : topology_.links_from(nic)) {
    const NodeId other = topology_.link(id).to;
    if (is_up(id) && topology_.node(other).kind == NodeKind::network_switch) return other;
  }
  return no_node;
}

}  // namespace ringsim
