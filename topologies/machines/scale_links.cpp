#include "topologies/machines/scale_links.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

namespace {

Bandwidth scaled_rate(Bandwidth bandwidth, double factor) {
  const double scaled = std::round(static_cast<double>(bandwidth.bytes_per_second) * factor);
  if (scaled < 1 || scaled > static_cast<double>(max_bandwidth.bytes_per_second))
    throw InputError(
        "", fmt::format("expected links of 1 B/s to 1000000 TB/s, found {} times {}", format(bandwidth), factor));
  return {static_cast<std::int64_t>(scaled)};
}
Picoseconds scaled_time(Picoseconds latency, double factor) {
  return Picoseconds{std::llround(static_cast<double>(latency.count()) * factor)};
}

class Scaling {
 public:
  explicit Scaling(const LinkScales& scales) : scales_(scales) {}

  void operator()(Star& star) const { between(star.link); }
  void operator()(Ring& ring) const { between(ring.link); }
  void operator()(FullMesh& mesh) const { between(mesh.link); }
  void operator()(Torus& torus) const { between(torus.link); }
  void operator()(Graph& graph) const {
    for (Graph::Cable& cable : graph.links) between(cable.link);
  }
  void operator()(Cluster& cluster) const {
    for (Cluster::Part& part : cluster.parts) part.machine = scaled(*part.machine);
    if (cluster.fabric) std::visit(*this, *cluster.fabric);
    for (CableChange& change : cluster.changes) {
      if (change.bandwidth) scale(*change.bandwidth, scales_.between);
      if (change.latency) scale(*change.latency);
    }
  }

  void operator()(StarFabric& fabric) const { between(fabric.link); }
  void operator()(LeafSpine& fabric) const { all(fabric.link, fabric.uplink); }
  void operator()(FatTree& fabric) const { between(fabric.link); }
  void operator()(RailFabric& fabric) const { all(fabric.link, fabric.uplink); }
  void operator()(TorusFabric& fabric) const { all(fabric.link, fabric.hop); }
  void operator()(Dragonfly& fabric) const {
    all(fabric.link, fabric.local);
    if (fabric.global) between(*fabric.global);
  }

 private:
  std::shared_ptr<const Machine> scaled(Machine machine) const {
    for (Machine::Device& device : machine.devices)
      if (device.port) between(*device.port);
    for (Machine::Cable& cable : machine.cables) {
      scale(cable.link.bandwidth, scales_.inside);
      scale(cable.link.latency);
    }
    return std::make_shared<const Machine>(std::move(machine));
  }
  void all(LinkSpec& link, std::optional<LinkSpec>& other) const {
    between(link);
    if (other) between(*other);
  }
  void between(LinkSpec& link) const {
    scale(link.bandwidth, scales_.between);
    scale(link.latency);
  }
  static void scale(Bandwidth& bandwidth, double factor) { bandwidth = scaled_rate(bandwidth, factor); }
  void scale(Picoseconds& latency) const { latency = scaled_time(latency, scales_.latency); }

  LinkScales scales_;
};

}  // namespace

void scale_links(TopologySpec& topology, const LinkScales& scales) { std::visit(Scaling(scales), topology); }

std::string_view to_string(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::nvlink:
      return "nvlink";
    case LinkClass::xgmi:
      return "xgmi";
    case LinkClass::c2c:
      return "c2c";
    case LinkClass::pcie:
      return "pcie";
    case LinkClass::socket:
      return "socket";
    case LinkClass::memory:
      return "memory";
    case LinkClass::nic:
      return "nic";
    case LinkClass::fabric:
      return "fabric";
    case LinkClass::other:
      return "link";
  }
  fail_invariant("a link has one of the known classes");
}

LinkClass class_of(const Topology& topology, const Link& link) {
  const Node &from = topology.node(link.from), &to = topology.node(link.to);
  if (from.kind == NodeKind::network_switch && to.kind == NodeKind::network_switch) return LinkClass::fabric;
  if ((from.kind == NodeKind::nic || to.kind == NodeKind::nic) && from.host != to.host) return LinkClass::nic;
  switch (link.kind) {
    case LinkKind::nvlink:
      return LinkClass::nvlink;
    case LinkKind::xgmi:
      return LinkClass::xgmi;
    case LinkKind::c2c:
      return LinkClass::c2c;
    case LinkKind::pcie:
      return LinkClass::pcie;
    case LinkKind::socket:
      return LinkClass::socket;
    case LinkKind::memory:
      return LinkClass::memory;
    case LinkKind::generic:
    case LinkKind::infiniband:
    case LinkKind::ethernet:
    case LinkKind::copy:
    case LinkKind::reduce:
    case LinkKind::channel:
      return LinkClass::other;
  }
  fail_invariant("a link has one of the known kinds");
}

std::string_view class_name(const Topology& topology, const Link& link) {
  return link.leads_to_itself() ? to_string(link.kind) : to_string(class_of(topology, link));
}

Topology scaled(const Topology& topology, const ClassScales& scales) {
  return topology.with_links([&](Link& link) {
    link.bandwidth = scaled_rate(link.bandwidth, scales.bandwidth[static_cast<std::size_t>(class_of(topology, link))]);
    link.latency = scaled_time(link.latency, scales.latency);
  });
}

}  // namespace ringsim
