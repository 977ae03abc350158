#include "sim/network/network_packet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/setting_error.hpp"

namespace ringsim {

namespace {

// An event's stamp: what it is about, and a number of up to 29 bits.
constexpr int number_bits = 29;
constexpr std::uint32_t number_mask = (1U << number_bits) - 1;

Picoseconds time_on(std::int64_t size, double cost, Bandwidth bandwidth) {
  if (cost == 1) return transfer_time({size}, bandwidth);
  return transfer_time({static_cast<std::int64_t>(std::ceil(static_cast<double>(size) * cost - 1e-6))}, bandwidth);
}

}  // namespace

PacketNetwork::PacketNetwork(const PacketOptions& options, const Topology& topology, Engine<Event>& engine,
                             const NetworkUse& use)
    : options_(options),
      topology_(topology),
      engine_(engine),
      has_credits_(options.flow_control == PacketOptions::FlowControl::credit),
      tells_all_left_(use.tells_left),
      lanes_(topology.n_links(), std::max(1, options.lanes)),
      channels_(topology.n_links()),
      serializers_(topology.n_resources()),
      channels_of_(topology.n_resources()) {
  ensure(use.copies == 1, "packets stand for themselves");
  if (options_.lanes < 1)
    throw SettingError(SettingError::Setting::packets,
                       fmt::format("expected one virtual lane or more, found {}", options_.lanes));
  if (options_.mtu.count < 1 || options_.mtu.count > number_mask)
    throw SettingError(SettingError::Setting::packets,
                       fmt::format("expected packets of 1 B to {} B, found {} B", number_mask, options_.mtu.count));
  for (std::uint32_t l = 0; l < channels_.size(); ++l) {
    const Link& link = topology.link({l});
    channels_[l] = {.link = {l}, .resource = link.resource, .bandwidth = link.bandwidth, .latency = link.latency};
    add_channel(link.resource, l);
  }
  size_buffers();
}

// ------------------------------------------------------------------------------------------------- pieces and events

void PacketNetwork::schedule(SimTime when, What what, std::uint32_t id, std::int64_t number) {
  engine_.at(when, {Event::Kind::flow, id,
                    static_cast<std::uint32_t>(what) << number_bits | static_cast<std::uint32_t>(number)});
}

void PacketNetwork::start(std::uint32_t leg, Bytes size, std::uint64_t piece) {
  Index index = 0;
  if (free_flows_.empty()) {
    index = static_cast<Index>(flows_.size());
    flows_.emplace_back();
    flows_[index].input = static_cast<Index>(inputs_.size());
    inputs_.push_back({.flow = index});
  } else {
    index = free_flows_.back();
    free_flows_.pop_back();
  }
  Flow& flow = flows_[index];
  const LegInfo& info = legs_[leg];
  flow.piece = piece;
  flow.leg = leg;
  flow.size = size.count;
  flow.cut = flow.landed = 0;
  flow.last_tail = engine_.now();
  if (size.count == 0) {  // an empty packet, which takes no link's time
    if (info.tells_left) schedule(engine_.now(), What::left, index);
    schedule(later(info.latency), What::landed, index);
    return;
  }
  flow.busy_before.clear();
  for (Index h = info.first_hop; h < info.first_hop + info.n_hops; ++h)
    flow.busy_before.push_back(serializers_[channels_[hops_[h].channel].resource.value].carried.busy);
  flow.hop = choose_way(info.first_way, info.n_ways).hop;
  inputs_[flow.input].to = hops_[flow.hop].channel;
  put_in_turn(flow.input);
}

std::optional<Told> PacketNetwork::due(Event event) {
  const std::int64_t number = event.stamp & number_mask;
  switch (static_cast<What>(event.stamp >> number_bits)) {
    case What::wake:
      make_dirty(ResourceId{event.id});
      return std::nullopt;
    case What::ready:
      ready(event.id);
      return std::nullopt;
    case What::release:
      release(event.id, number);
      return std::nullopt;
    case What::stop:
      channels_[event.id].stopped = true;
      return std::nullopt;
    case What::go:
      channels_[event.id].stopped = false;
      make_dirty(channels_[event.id].resource);
      return std::nullopt;
    case What::left:
      return Told{.piece = flows_[event.id].piece, .has_left = true, .limiter = limiter(flows_[event.id])};
    case What::landed:
      ensure(flows_[event.id].landed == flows_[event.id].size, "bytes in equal bytes out");
      flows_[event.id].limiter = limiter(flows_[event.id]);
      if (const Picoseconds beyond = legs_[flows_[event.id].leg].beyond; beyond.count() > 0) {
        schedule(later(beyond), What::arrived, event.id);
        return std::nullopt;
      }
      [[fallthrough]];
    case What::arrived:
      return arrived(event.id);
  }
  fail_invariant("every event of the network is known");
}

Told PacketNetwork::arrived(Index index) {
  free_flows_.push_back(index);
  const Flow& flow = flows_[index];
  return {.piece = flow.piece, .has_arrived = true, .limiter = flow.limiter, .latency = latency(flow.leg)};
}

// The link of its leg that was busy for the longest while it was under way.
ResourceId PacketNetwork::limiter(const Flow& flow) const {
  if (flow.size == 0) return no_resource;
  const LegInfo& leg = legs_[flow.leg];
  ResourceId busiest = no_resource;
  Picoseconds most{-1};
  for (Index i = 0; i < leg.n_hops; ++i) {
    const ResourceId resource = channels_[hops_[leg.first_hop + i].channel].resource;
    const Picoseconds busy = serializers_[resource.value].carried.busy - flow.busy_before[i];
    if (busy > most) {
      most = busy;
      busiest = resource;
    }
  }
  return busiest;
}

void PacketNetwork::set_bandwidth(ResourceId resource, Bandwidth bandwidth) {
  for (const Index channel : channels_of_[resource.value]) channels_[channel].bandwidth = bandwidth;
  serializers_[resource.value].work = 0;  // rounding starts over with the next packet
}

std::vector<Network::Withdrawn> PacketNetwork::withdraw(const std::vector<std::uint64_t>&) {
  fail_invariant("packets are not taken back: links that are down were refused");
}

bool PacketNetwork::any_under_way(const std::function<bool(std::uint64_t)>& counts) const {
  std::vector<bool> is_free(flows_.size(), false);
  for (const Index flow : free_flows_) is_free[flow] = true;
  for (Index f = 0; f < flows_.size(); ++f)
    if (!is_free[f] && counts(flows_[f].piece)) return true;
  return false;
}

// ------------------------------------------------------------------------------------------------------ who may send

void PacketNetwork::put_in_turn(Index index) {
  Input& input = inputs_[index];
  Channel& channel = channels_[input.to];
  input.next = none;
  if (channel.last_turn == none)
    channel.first_turn = index;
  else
    inputs_[channel.last_turn].next = index;
  channel.last_turn = index;
  make_dirty(channel.resource);
}

void PacketNetwork::make_dirty(ResourceId resource) {
  Serializer& serializer = serializers_[resource.value];
  if (serializer.is_dirty) return;
  serializer.is_dirty = true;
  dirty_.push_back(resource.value);
}

void PacketNetwork::settle() {
  for (const Index channel : changed_) stop_or_go(channel);
  changed_.clear();
  for (std::size_t i = 0; i < dirty_.size(); ++i) serve(dirty_[i]);  // grows as it goes
  dirty_.clear();
}

void PacketNetwork::serve(Index index) {
  Serializer& serializer = serializers_[index];
  while (serializer.free_at <= engine_.now() && send_next(index)) {
  }
  serializer.is_dirty = false;
  if (serializer.free_at <= engine_.now() || serializer.wakes || !something_waits(index)) return;
  serializer.wakes = true;
  schedule(serializer.free_at, What::wake, index);
}

bool PacketNetwork::something_waits(Index resource) const {
  const auto waits = [&](Index channel) { return channels_[channel].first_turn != none; };
  if (serializers_[resource].n_channels == 1) return waits(serializers_[resource].first);
  return std::any_of(channels_of_[resource].begin(), channels_of_[resource].end(), waits);
}

bool PacketNetwork::send_next(Index resource) {
  Serializer& serializer = serializers_[resource];
  if (serializer.n_channels == 1) {
    if (!may_send(serializer.first)) return false;
    send(serializer.first);
    return true;
  }
  const std::vector<Index>& channels = channels_of_[resource];
  for (std::uint32_t i = 0; i < serializer.n_channels; ++i) {
    const std::uint32_t turn = (serializer.turn + i) % serializer.n_channels;
    if (!may_send(channels[turn])) continue;
    serializer.turn = turn + 1;
    send(channels[turn]);
    return true;
  }
  return false;
}

bool PacketNetwork::may_send(Index index) const {
  const Channel& channel = channels_[index];
  if (channel.first_turn == none || channel.stopped) return false;
  if (!has_credits_) return true;
  const Input& input = inputs_[channel.first_turn];
  if (input.flow == none) return channel.held + packets_[input.first].room <= channel.buffer;
  const Flow& flow = flows_[input.flow];
  return hops_[flow.hop].n_ways == 0 ||
         channel.held + std::min(options_.mtu.count, flow.size - flow.cut) <= channel.buffer;
}

// The next packet of an input, which goes to the end of the line or leaves it.
PacketNetwork::Index PacketNetwork::take_packet(Index index) {
  Channel& channel = channels_[inputs_[index].to];
  channel.first_turn = inputs_[index].next;
  if (channel.first_turn == none) channel.last_turn = none;
  if (inputs_[index].flow == none) {
    Input& input = inputs_[index];
    const Index taken = input.first;
    input.first = packets_[taken].next;
    if (input.first != none)
      put_in_turn(index);
    else
      input.last = none;
    return taken;
  }
  const Index made = new_packet();
  Packet& packet = packets_[made];
  Flow& flow = flows_[inputs_[index].flow];
  packet.flow = inputs_[index].flow;
  packet.hop = flow.hop;
  packet.size = static_cast<std::int32_t>(std::min(options_.mtu.count, flow.size - flow.cut));
  packet.input = none;
  packet.tail = engine_.now();
  flow.cut += packet.size;
  if (flow.cut < flow.size) {
    flow.hop = choose_way(legs_[flow.leg].first_way, legs_[flow.leg].n_ways).hop;
    inputs_[index].to = hops_[flow.hop].channel;
    put_in_turn(index);
  }
  return made;
}

PacketNetwork::Index PacketNetwork::new_packet() {
  if (free_packets_.empty()) {
    packets_.emplace_back();
    return static_cast<Index>(packets_.size() - 1);
  }
  const Index index = free_packets_.back();
  free_packets_.pop_back();
  return index;
}

// ------------------------------------------------------------------------------------------------- a packet's journey

// Smooth weighted round robin: every way is owed its share of each packet; the one that is owed most takes it.
const PacketNetwork::Way& PacketNetwork::choose_way(Index first, Index count) {
  Index chosen = first;
  if (count > 1) {
    for (Index w = first; w < first + count; ++w) {
      ways_[w].lead += ways_[w].share;
      if (ways_[w].lead > ways_[chosen].lead) chosen = w;
    }
    ways_[chosen].lead -= 1;
  }
  return ways_[chosen];
}

void PacketNetwork::send(Index channel) {
  const Index index = take_packet(channels_[channel].first_turn);
  Packet& packet = packets_[index];
  const Hop& hop = hops_[packet.hop];
  const SimTime finish = occupy(hop, packet);
  if (packet.input != none) {
    const Index from = inputs_[packet.input].from;
    const Picoseconds heard = has_credits_ ? channels_[from].latency : Picoseconds{0};
    schedule(SimTime{add(finish.time_since_epoch(), heard)}, What::release, from, packet.size);
  } else if (const Flow& flow = flows_[packet.flow]; flow.cut == flow.size && legs_[flow.leg].tells_left) {
    schedule(finish, What::left, packet.flow);
  }
  packet.tail = SimTime{add(finish.time_since_epoch(), channels_[channel].latency)};
  if (hop.n_ways > 0) {
    if (has_credits_) hold(channel, packet.size);
    go_on(index, channels_[channel]);
    return;
  }
  Flow& flow = flows_[packet.flow];
  flow.landed += packet.size;
  flow.last_tail = std::max(flow.last_tail, packet.tail);
  if (flow.landed == flow.size) schedule(flow.last_tail, What::landed, packet.flow);
  free_packets_.push_back(index);
}

// Returns when the link is free again. Rounded up once for all packets between which there is no gap.
SimTime PacketNetwork::occupy(const Hop& hop, const Packet& packet) {
  const Channel& channel = channels_[hop.channel];
  Serializer& serializer = serializers_[channel.resource.value];
  if (serializer.free_at < engine_.now() || serializer.work == 0) {
    serializer.since = engine_.now();
    serializer.work = 0;
  }
  const double bytes = static_cast<double>(packet.size) * hop.cost;
  serializer.work += bytes;
  const auto whole = static_cast<std::int64_t>(std::ceil(serializer.work - 1e-6));
  const Picoseconds taken = transfer_time({whole}, channel.bandwidth);
  // What a rounded picosecond might take away: a tail does not leave before it has come.
  const SimTime finish =
      std::max({SimTime{add(serializer.since.time_since_epoch(), taken)}, packet.tail, engine_.now()});
  serializer.free_at = finish;
  serializer.wakes = false;
  ++serializer.carried.pieces;
  serializer.carried.bytes += bytes;
  serializer.carried.busy += finish - engine_.now();
  if (watcher_)
    watcher_({.piece = flows_[packet.flow].piece,
              .link = channel.link,
              .begin = engine_.now(),
              .end = finish,
              .bytes = bytes});
  return finish;
}

// Cut-through: on the next link it may start as its head arrives, but not so early that its tail would come too late.
void PacketNetwork::go_on(Index index, const Channel& on) {
  Packet& packet = packets_[index];
  const Hop& here = hops_[packet.hop];
  if (here.n_ways == 1) {
    packet.hop = here.next_hop;
    packet.input = here.next_input;
  } else {
    const Way& way = choose_way(here.first_way, here.n_ways);
    packet.hop = way.hop;
    packet.input = way.input;
  }
  const Hop& next = hops_[packet.hop];
  packet.room = next.n_ways > 0 ? packet.size : 0;
  const SimTime in_time = packet.tail - time_on(packet.size, next.cost, channels_[next.channel].bandwidth);
  schedule(std::max(later(on.latency), in_time), What::ready, index);
}

void PacketNetwork::ready(Index index) {
  Packet& packet = packets_[index];
  packet.next = none;
  Input& input = inputs_[packet.input];
  if (!has_credits_) hold(input.from, packet.size);
  if (input.last != none) {
    packets_[input.last].next = index;
    input.last = index;
    return;
  }
  input.first = input.last = index;
  put_in_turn(packet.input);
}

void PacketNetwork::hold(Index index, std::int64_t bytes) {
  Channel& channel = channels_[index];
  channel.held += bytes;
  channel.most_held = std::max(channel.most_held, channel.held);
  ensure(channel.held <= channel.buffer, "no buffer holds more than its size");
  if (!has_credits_) changed_.push_back(index);
}

void PacketNetwork::release(Index index, std::int64_t bytes) {
  channels_[index].held -= bytes;
  ensure(channels_[index].held >= 0, "no buffer gives back more than it took");
  if (has_credits_)
    make_dirty(channels_[index].resource);
  else
    changed_.push_back(index);
}

// The receiver looks at what it holds when all of an instant has happened: what comes and what goes at one instant is
// in no order.
void PacketNetwork::stop_or_go(Index index) {
  Channel& channel = channels_[index];
  const Thresholds& at = thresholds_[channel.link.value];
  if (channel.asked_to_stop ? channel.held > at.go_below : channel.held <= at.stop_above) return;
  channel.asked_to_stop = !channel.asked_to_stop;
  schedule(later(channel.latency), channel.asked_to_stop ? What::stop : What::go, index);
}

}  // namespace ringsim
