#include "sim/network/network.hpp"

#include "sim/base/error.hpp"
#include "sim/network/network_flow.hpp"
#include "sim/network/network_packet.hpp"

namespace ringsim {

std::string_view to_string(NetworkModel model) {
  switch (model) {
    case NetworkModel::ideal:
      return "ideal";
    case NetworkModel::fair:
      return "fair";
    case NetworkModel::packet:
      return "packet";
  }
  fail_invariant("every network model has a name");
}

std::string_view to_string(PacketOptions::FlowControl flow_control) {
  return flow_control == PacketOptions::FlowControl::credit ? "credit" : "pause";
}

std::unique_ptr<Network> make_network(NetworkModel model, const PacketOptions& options, const Topology& topology,
                                      Engine<Event>& engine, const NetworkUse& use) {
  if (model == NetworkModel::packet) return std::make_unique<PacketNetwork>(options, topology, engine, use);
  return std::make_unique<FlowNetwork>(model, topology, engine, use);
}

}  // namespace ringsim
