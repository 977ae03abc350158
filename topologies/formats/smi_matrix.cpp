#include "topologies/formats/smi_matrix.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/topology/cheapest_way.hpp"

namespace ringsim {

namespace {
bool is(const Topology& t, NodeId id, NodeKind kind) { return t.node(id).kind == kind; }

/// Over PCIe only switches, host bridges and CPUs are crossed.
Role pcie_role(const Node& node) {
  switch (node.kind) {
    case NodeKind::cpu:
    case NodeKind::host_bridge:
    case NodeKind::pcie_switch:
    case NodeKind::pcie_slot:
      return Role::transit;
    case NodeKind::gpu:
    case NodeKind::nic:
      return Role::end;
    default:
      return Role::outside;
  }
}

class NearnessMatrix {
 public:
  NearnessMatrix(const Topology& t, std::uint32_t host) : t_(t), host_(host) {
    std::vector<NodeId> nics;
    for (std::uint32_t n = 0; n < t.n_nodes(); ++n) {
      const NodeId id{n};
      if (t.node(id).host != host) continue;
      if (is(t, id, NodeKind::gpu)) devices_.push_back(id);
      if (is(t, id, NodeKind::nic)) nics.push_back(id);
      if (is(t, id, NodeKind::cpu)) cpus_.push_back(id);
      if (first_ > n) first_ = n;
      last_ = n + 1;
    }
    devices_.insert(devices_.end(), nics.begin(), nics.end());
  }

  SmiMatrix make() const {
    CheapestWay pcie(t_, first_, last_,
                     [this](const Node& node) { return node.host == host_ ? pcie_role(node) : Role::outside; });
    const std::size_t n = devices_.size();
    SmiMatrix made;
    made.cells.assign(n, std::vector<std::string>(n));
    // By columns: CheapestWay keeps the tree of its last destination.
    for (std::size_t column = 0; column < n; ++column) {
      for (std::size_t row = 0; row < n; ++row) made.cells[row][column] = cell(devices_[row], devices_[column], pcie);
    }
    for (const NodeId id : devices_) {
      made.names.push_back(t_.node(id).name);
      made.numa.push_back(is(t_, id, NodeKind::gpu) ? nearest_cpu(id, pcie) : "");
    }
    return made;
  }

 private:
  std::string cell(NodeId from, NodeId to, CheapestWay& pcie) const {
    if (from == to) return "X";
    if (is(t_, from, NodeKind::gpu) && is(t_, to, NodeKind::gpu)) {
      if (const int links = nvlinks(from, to)) return "NV" + std::to_string(links);
      if (joined(from, to, LinkKind::xgmi) > 0) return "XGMI";
    }
    const auto way = pcie.find(from, to);
    return way ? pcie_word(*way) : "-";
  }

  /// How many parallel links of that kind lead there directly.
  int joined(NodeId from, NodeId to, LinkKind kind) const {
    int links = 0;
    for (const LinkId id : t_.links_from(from)) {
      if (t_.link(id).to == to && t_.link(id).kind == kind) links += t_.link(id).joined;
    }
    return links;
  }

  /// NVLinks from one GPU to the other, or to the NVSwitches that both are on.
  int nvlinks(NodeId from, NodeId to) const {
    int links = joined(from, to, LinkKind::nvlink);
    for (const LinkId id : t_.links_from(from)) {
      const Link& link = t_.link(id);
      if (link.kind != LinkKind::nvlink || !is(t_, link.to, NodeKind::nvswitch)) continue;
      if (joined(link.to, to, LinkKind::nvlink) > 0) links += link.joined;
    }
    return links;
  }

  std::string pcie_word(const Way& way) const {
    int switches = 0, bridges = 0, cpus = 0;
    for (const LinkId id : way) {
      const Link& link = t_.link(id);
      switches += is(t_, link.to, NodeKind::pcie_switch) ? 1 : 0;
      bridges += is(t_, link.to, NodeKind::host_bridge) || link.kind == LinkKind::c2c ? 1 : 0;
      cpus += is(t_, link.to, NodeKind::cpu) ? 1 : 0;
    }
    if (cpus > 1) return "SYS";
    if (cpus + bridges > 1) return t_.hosts()[host_].bridges_apart ? "SYS" : "NODE";
    if (cpus + bridges == 1) return "PHB";
    return switches > 1 ? "PXB" : "PIX";
  }

  std::string nearest_cpu(NodeId device, CheapestWay& pcie) const {
    std::string nearest;
    std::size_t hops = 0;
    for (std::size_t number = 0; number < cpus_.size(); ++number) {
      const auto way = pcie.find(device, cpus_[number]);
      if (way && (nearest.empty() || way->size() < hops)) nearest = std::to_string(number), hops = way->size();
    }
    return nearest;
  }

  const Topology& t_;
  const std::uint32_t host_;
  std::uint32_t first_ = UINT32_MAX, last_ = 0;  ///< the host's nodes lie in [first, last)
  std::vector<NodeId> devices_, cpus_;
};
}  // namespace

SmiMatrix smi_matrix(const Topology& topology, std::uint32_t host) {
  ensure(host < topology.hosts().size(), "a matrix is of a host of its topology");
  return NearnessMatrix(topology, host).make();
}

}  // namespace ringsim
