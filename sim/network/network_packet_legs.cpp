// What the packet model makes ready before anything moves: buffers, virtual lanes, and the ways of each leg.
#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "sim/base/error.hpp"
#include "sim/base/setting_error.hpp"
#include "sim/network/network_packet.hpp"

namespace ringsim {

namespace {

constexpr int packets_beyond_latency = 16;  // see PacketOptions::buffer
// With `pause`: what may still come after the sender was asked to stop, beyond the link's latency there and back: the
// packet that it is sending, one on its way, and one that is there but not whole.
constexpr int packets_still_coming = 3;
constexpr int packets_between_stop_and_go = 2;

}  // namespace

void PacketNetwork::size_buffers() {
  const std::int64_t mtu = options_.mtu.count;
  for (std::uint32_t l = 0; l < channels_.size(); ++l) {
    const Link& link = topology_.link({l});
    Channel& state = channels_[l];
    const double there_and_back =
        2 * static_cast<double>(link.bandwidth.bytes_per_second) * static_cast<double>(link.latency.count()) / 1e12;
    if (there_and_back > 1e18) fail_too_large("more bytes are on their way on a link than can be counted");
    const auto on_the_way = static_cast<std::int64_t>(std::ceil(there_and_back));
    state.buffer =
        options_.buffer ? options_.buffer->count : (has_credits_ ? 1 : 2) * on_the_way + packets_beyond_latency * mtu;
    const std::int64_t least =
        has_credits_ ? mtu : on_the_way + (packets_still_coming + packets_between_stop_and_go) * mtu;
    if (state.buffer < least)
      throw SettingError(
          SettingError::Setting::packets,
          fmt::format("expected buffers of the network model packet of at least {} B ({}), found {} B", least,
                      has_credits_
                          ? "one packet"
                          : fmt::format("the data still in flight on {} when it is paused, plus {} packets",
                                        topology_.link_name({l}), packets_still_coming + packets_between_stop_and_go),
                      state.buffer),
          "remove the buffer size: it then follows from the latency of each link");
    const std::int64_t stop_above = state.buffer - on_the_way - packets_still_coming * mtu;
    thresholds_.push_back({.stop_above = stop_above, .go_below = stop_above - packets_between_stop_and_go * mtu});
  }
}

// The ends of a leg's links. Its first ones may lead from a device to itself: each then comes from a place of its own,
// so that all are in a chain.
std::vector<PacketNetwork::Ends> PacketNetwork::ends_of(const Leg& leg) const {
  std::vector<Ends> ends;
  for (const LinkId id : leg.links) {
    const Link& link = topology_.link(id);
    ends.push_back({link.from, link.to});
  }
  for (std::size_t i = 0; i < ends.size() && ends[i].from == ends[i].to; ++i) {
    ends[i].from = NodeId{no_node.value - 1 - static_cast<std::uint32_t>(i)};
    if (i > 0) ends[i - 1].to = ends[i].from;
  }
  return ends;
}

// A leg is a chain, or, if packets are spread, an acyclic graph whose links are in order of distance.
std::uint32_t PacketNetwork::add_leg(const Leg& leg, bool first, bool last) {
  ensure(!leg.links.empty(), "a leg has links");
  LegInfo info{.first_hop = static_cast<Index>(hops_.size()), .n_hops = static_cast<Index>(leg.links.size())};
  info.latency = leg.latency;
  info.beyond = leg.beyond;
  info.tells_left = tells_all_left_ || !first || !last;
  LinksFrom out;
  const std::vector<Ends> ends = ends_of(leg);
  for (Index i = 0; i < info.n_hops; ++i) out[ends[i].from].push_back(i);
  add_hops(leg, ends, out);
  const NodeId source = ends.front().from;
  std::tie(info.first_way, info.n_ways) = add_ways(leg, out, info.first_hop, source, none);
  for (Index h = info.first_hop; h < info.first_hop + info.n_hops; ++h) {
    Hop& hop = hops_[h];
    const NodeId end = ends[h - info.first_hop].to;
    std::tie(hop.first_way, hop.n_ways) = add_ways(leg, out, info.first_hop, end, hop.channel);
    if (hop.n_ways == 1) {
      hop.next_hop = ways_[hop.first_way].hop;
      hop.next_input = ways_[hop.first_way].input;
    }
  }
  legs_.push_back(info);
  return static_cast<std::uint32_t>(legs_.size() - 1);
}

// A link's share is the part of the packets that cross it, times what a byte costs there; all packets that come to its
// sender go on by one of the links from there.
void PacketNetwork::add_hops(const Leg& leg, const std::vector<Ends>& ends, const LinksFrom& out) {
  std::vector<VirtualLanes::Dependency> dependencies;
  for (std::size_t from = 0; from < leg.links.size(); ++from)
    if (const auto next = out.find(ends[from].to); next != out.end())
      for (const Index i : next->second) dependencies.emplace_back(leg.links[from], leg.links[i]);
  const std::uint32_t lane = lanes_.place(dependencies);
  std::map<NodeId, double> here{{ends.front().from, 1}};  // the part of the packets that comes by
  double arrived = 0;
  for (std::size_t i = 0; i < leg.links.size(); ++i) {
    const auto [from, to] = ends[i];
    ensure(here.contains(from), "the links of a leg are in order of distance");
    const double cost = shares_from(leg, out, from) / here[from];
    hops_.push_back({.channel = channel(leg.links[i], lane), .cost = std::abs(cost - 1) > 1e-9 ? cost : 1});
    const double part = leg.share(i) / cost;
    here[to] += part;
    if (!out.contains(to)) arrived += part;
  }
  ensure(std::abs(arrived - 1) < 1e-6, "what sets out on a leg arrives at its end");
}

double PacketNetwork::shares_from(const Leg& leg, const LinksFrom& out, NodeId node) {
  double sum = 0;
  for (const Index i : out.at(node)) sum += leg.share(i);
  ensure(sum > 0, "a leg's links carry something");
  return sum;
}

// The ways on from a node for what came over `from`. Each leg begins with a different one, so that not all of them
// start with the same.
std::pair<PacketNetwork::Index, PacketNetwork::Index> PacketNetwork::add_ways(const Leg& leg, const LinksFrom& out,
                                                                              Index first_hop, NodeId node,
                                                                              Index from) {
  const auto first = static_cast<Index>(ways_.size());
  const auto found = out.find(node);
  if (found == out.end()) return {first, 0};
  const std::vector<Index>& links = found->second;
  for (std::size_t k = 0; k < links.size(); ++k) {
    const Index i = links[(k + legs_.size()) % links.size()];
    const Index hop = first_hop + i;
    ways_.push_back({.hop = hop,
                     .input = from == none ? none : input_between(from, hops_[hop].channel),
                     .share = leg.share(i) / shares_from(leg, out, node)});
  }
  return {first, static_cast<Index>(links.size())};
}

PacketNetwork::Index PacketNetwork::channel(LinkId link, std::uint32_t lane) {
  if (lane == 0) return link.value;
  const auto next = static_cast<Index>(channels_.size());
  const auto [known, is_new] = channel_of_.try_emplace(std::uint64_t{lane} << 32 | link.value, next);
  if (is_new) {
    const Channel& lane0 = channels_[link.value];
    const Channel added{.link = link,
                        .resource = lane0.resource,
                        .bandwidth = lane0.bandwidth,
                        .latency = lane0.latency,
                        .buffer = lane0.buffer};
    channels_.push_back(added);
    add_channel(added.resource, next);
  }
  return known->second;
}

void PacketNetwork::add_channel(ResourceId resource, Index channel) {
  Serializer& serializer = serializers_[resource.value];
  if (serializer.n_channels++ == 0) serializer.first = channel;
  channels_of_[resource.value].push_back(channel);
}

PacketNetwork::Index PacketNetwork::input_between(Index from, Index to) {
  const auto next = static_cast<Index>(inputs_.size());
  const auto [known, is_new] = input_of_.try_emplace(std::uint64_t{from} << 32 | to, next);
  if (is_new) inputs_.push_back({.from = from, .to = to});
  return known->second;
}

}  // namespace ringsim
