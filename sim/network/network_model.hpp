// Which network model a run uses, and its settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/units.hpp"

namespace ringsim {

enum class NetworkModel : std::uint8_t {
  ideal,   ///< only a path's first and last link can be shared; whatever lies between has room for all
  fair,    ///< flows that share a link share it max-min fairly
  packet,  ///< packets take turns on links, and wait if there is no room (sim/network/network_packet.hpp)
};
std::string_view to_string(NetworkModel model);

// What a model can do: the rest of ringsim asks for that, and does not compare models.

/// True if data moves in packets, which wait for those of messages that share no link with their own; else as a fluid,
/// whose speed only the links that messages share decide on.
constexpr bool moves_packets(NetworkModel model) { return model == NetworkModel::packet; }
/// True if messages can meet on every link; else only on the first and the last one of a path.
constexpr bool shares_all_links(NetworkModel model) { return model != NetworkModel::ideal; }
/// True if what has not left can be taken back, so that links may go down under it (Network::withdraw()).
constexpr bool takes_back(NetworkModel model) { return !moves_packets(model); }

/// What `packet` has beyond the links.
struct PacketOptions {
  /// How a link that has no room at its end is held back; no packet is ever dropped.
  enum class FlowControl : std::uint8_t {
    credit,  ///< a packet starts only if room is kept for it (InfiniBand, NVLink, PCIe)
    pause,   ///< the receiver stops the sender when it fills up, and lets it go again (Ethernet's PFC, for RoCE)
  } flow_control = FlowControl::credit;
  /// Payload of a packet: InfiniBand's largest MTU (RoCE uses the same). NVLink and PCIe move 256 B and less, so
  /// there this is coarser than the machine; one number, because a message is cut once for its whole leg.
  Bytes mtu{4096};
  /// Room at the receiving end of each link, and of each virtual lane of it. Default: what a link at full speed needs
  /// until room that was given back is filled again, twice its latency at its bandwidth (and as much again with
  /// `pause`, which learns late that the room is full), and 16 packets. The 16 are assumed: vendors do not publish
  /// what a port of a lossless switch keeps. Ethernet switches share tens of MB among their ports and have more; say
  /// how much.
  std::optional<Bytes> buffer;
  /// Most virtual lanes over which routes are laid so that none wait for each other in a circle (VirtualLanes); as few
  /// are used as it takes. InfiniBand has 15 for data.
  int lanes = 15;
};
std::string_view to_string(PacketOptions::FlowControl flow_control);

}  // namespace ringsim
