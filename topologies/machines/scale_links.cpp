#include "topologies/machines/scale_links.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

namespace {

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
  static void scale(Bandwidth& bandwidth, double factor) {
    const double scaled = std::round(static_cast<double>(bandwidth.bytes_per_second) * factor);
    if (scaled < 1 || scaled > 1e18)
      throw InputError(
          "", fmt::format("expected links of 1 B/s to 1000000 TB/s, found {} times {}", format(bandwidth), factor));
    bandwidth = {static_cast<std::int64_t>(scaled)};
  }
  void scale(Picoseconds& latency) const {
    latency = Picoseconds{std::llround(static_cast<double>(latency.count()) * scales_.latency)};
  }

  LinkScales scales_;
};

}  // namespace

void scale_links(TopologySpec& topology, const LinkScales& scales) { std::visit(Scaling(scales), topology); }

}  // namespace ringsim
