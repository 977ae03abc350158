// What the packet model says where packets are stuck for good.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "sim/base/error.hpp"
#include "sim/network/network_packet.hpp"

namespace ringsim {

// Channels each of which waits for room that only the next one can make.
std::vector<PacketNetwork::Index> PacketNetwork::circle() const {
  std::map<Index, Index> waits_for;  // by the full channel: one over which packets in its buffer want to go on
  for (const Input& input : inputs_)
    if (input.flow == none && input.first != none) waits_for.try_emplace(input.from, input.to);
  if (waits_for.empty()) return {};
  std::vector<Index> way{waits_for.begin()->first};
  for (;;) {
    const auto next = waits_for.find(way.back());
    if (next == waits_for.end()) return {};
    const auto known = std::find(way.begin(), way.end(), next->second);
    if (known != way.end()) return {known, way.end()};
    way.push_back(next->second);
  }
}

Bytes PacketNetwork::most_held(LinkId link) const {
  Bytes most;
  for (const Channel& channel : channels_)
    if (channel.link == link) most = std::max(most, Bytes{channel.most_held});
  return most;
}

void PacketNetwork::explain_stall() const {
  const std::vector<Index> channels = circle();
  if (channels.empty()) return;
  std::vector<std::string> names;
  for (const Index channel : channels) names.push_back(topology_.link_name(channels_[channel].link));
  throw InputError("",
                   fmt::format("the network is deadlocked at {} us: the buffers of these links are full, and each link "
                               "waits for room in the buffer of the next, the last one for the first: {}",
                               microseconds(engine_.now().time_since_epoch()), fmt::join(names, ", ")),
                   "the routes need larger buffers, or more virtual lanes than network.packet.lanes");
}

}  // namespace ringsim
