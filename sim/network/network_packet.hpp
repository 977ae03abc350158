// The network model `packet`: packets take turns on links and wait in buffers of a finite size.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/mixed_hash.hpp"
#include "sim/network/network.hpp"
#include "sim/network/virtual_lanes.hpp"

namespace ringsim {

/// Data in packets of an MTU, as a lossless fabric moves it: the reference that shows where max-min fairness is too
/// optimistic.
///
/// - A piece is cut into packets as the first link of its leg takes them; no packet exists before.
/// - A link sends one packet at a time, at its bandwidth; a half-duplex cable one in all. Among the inputs of a link
///   (the links that lead to its sender, and the pieces that start there, each one input) packets take turns, one each.
/// - A packet waits at the sender of its next link, in the buffer of the link on which it came; in order among those
///   that came and go on by the same links. Packets for other links pass it by, but they share the buffer: when it is
///   full of packets for a busy link, nobody comes in any more (head-of-line blocking).
/// - A packet starts on a link only if the next buffer has room for it. With `credit` room is taken at the start,
///   and given back when the packet has left the buffer, a latency of the link later. With `pause` the receiver asks
///   the sender to stop when more than `buffer` less what may still come is full, and to go on two packets lower;
///   either is heard a latency later. The end of a leg takes data at once.
/// - Cut-through: a packet may go on when its head has arrived; if the next link is faster, as much later as it
///   must so that its tail is there in time.
/// - If a leg goes several ways (Routing::Policy::packet_spray), each packet takes one of them, in turn by shares.
///
/// So a piece that is alone takes size / b + latency, to the picosecond as in the flow models, b the narrowest link.
/// Longer only if a link is slower than one before it and that faster than one before: there one packet waits to be
/// whole, at most mtu (1/b - 1/b') for each step up from a link b to a faster b'. A link with a `buffer` below what its
/// latency needs gives buffer / (2 latency + packet time), as a long cable does.
///
/// Routes that could wait for each other in a circle lie on virtual lanes of their own (VirtualLanes), each with
/// buffers of its own; a link's lanes take turns. If there are too few lanes they may stay stuck: explain_stall()
/// says so.
///
/// - If a link's bandwidth changes, the packet that is on it goes on as it is; buffers keep their size.
///
/// Assumptions: switches are not slowed by anything inside; credits and pause frames take no bandwidth; no congestion
/// control slows the sources (DCQCN, InfiniBand's); a port's buffer is not shared with other ports.
class PacketNetwork final : public Network {
 public:
  /// Throws InputError if a packet has no room in the buffers.
  PacketNetwork(const PacketOptions& options, const Topology& topology, Engine<Event>& engine,
                const NetworkUse& use = {});

  std::uint32_t add_leg(const Leg& leg, bool first, bool last) override;
  Picoseconds latency(std::uint32_t leg) const override { return legs_[leg].latency + legs_[leg].beyond; }
  void start(std::uint32_t leg, Bytes size, std::uint64_t piece) override;
  void settle() override;
  std::optional<Told> due(Event event) override;
  void explain_stall() const override;
  void set_bandwidth(ResourceId resource, Bandwidth bandwidth) override;
  std::vector<Withdrawn> withdraw(const std::vector<std::uint64_t>& pieces) override;
  bool any_under_way(const std::function<bool(std::uint64_t)>& counts) const override;
  Carried carried(ResourceId resource) const override { return serializers_[resource.value].carried; }

  /// Most bytes that were ever held at the end of a link (with `credit`, on their way there too): for tests.
  Bytes most_held(LinkId link) const;
  Bytes buffer(LinkId link) const { return {channels_[link.value].buffer}; }

 private:
  using Index = std::uint32_t;
  static constexpr Index none = UINT32_MAX;
  using LinksFrom = std::map<NodeId, std::vector<Index>>;  // which of a leg's links go on from a node

  struct Way {  // from a link of a leg on to the next
    Index hop = 0;
    Index input = none;  // of the next link
    double share = 1;    // of the packets that come
    double lead = 0;     // how many packets it is owed
  };
  // What a packet touches on its way is kept small and in one place: in a large fabric the processor waits for memory
  // more than it works.
  struct Hop {  // a link of a leg
    Index channel = 0;
    Index first_way = 0, n_ways = 0;     // none: the leg ends here
    Index next_hop = 0, next_input = 0;  // of its way, if there is only one
    double cost = 1;                     // what a byte takes on it
  };
  struct LegInfo {
    Index first_way = 0, n_ways = 0;  // from its source
    Index first_hop = 0, n_hops = 0;
    Picoseconds latency{0}, beyond{0};  // of its links, and Leg::beyond
    bool tells_left = false;
  };
  struct Packet {  // it is, or will be, in the buffer of the channel from which its input comes
    Index flow = 0, hop = 0, input = none;
    Index next = none;      // the next one at the same input
    std::int32_t size = 0;  // at most number_mask
    std::int32_t room = 0;  // what it needs at the end of its hop: its size, or nothing if its leg ends there
    SimTime tail{};         // when all of it is there
  };
  struct Flow {
    std::uint64_t piece = 0;
    Index leg = 0, hop = 0, input = none;  // hop: of the packet that is cut next
    std::int64_t size = 0, cut = 0, landed = 0;
    SimTime last_tail{};
    ResourceId limiter = no_resource;      // once it has landed
    std::vector<Picoseconds> busy_before;  // [hop] how long its link had been busy at the start
  };
  struct Input {  // what waits to be sent over a channel, and came from one place
    Index from = none, to = none;
    Index flow = none;                // of a piece that starts here
    Index first = none, last = none;  // else packets
    Index next = none;                // whose turn comes after its
  };
  struct alignas(64) Channel {  // a virtual lane of a link; below n_links: lane 0 of the link of that number
    LinkId link = no_link;
    Index first_turn = none, last_turn = none;  // inputs that have a packet
    ResourceId resource;                        // this and the next two are the link's
    Bandwidth bandwidth;
    Picoseconds latency{0};
    std::int64_t buffer = 0;
    std::int64_t held = 0, most_held = 0;
    bool asked_to_stop = false;  // as its receiver sees it
    bool stopped = false;        // as its sender does
  };
  struct Thresholds {  // of a link's buffers, with `pause`
    std::int64_t stop_above = 0, go_below = 0;
  };
  struct alignas(64) Serializer {  // a resource
    Index first = none;            // its channel; if there are several they are in channels_of_
    std::uint32_t n_channels = 0;
    std::uint32_t turn = 0;  // among the channels
    bool is_dirty = false;
    bool wakes = false;  // an event is due when it is free
    SimTime free_at{};
    SimTime since{};  // no gap between packets from here on, so that time is rounded once
    double work = 0;  // bytes since then
    Carried carried;
  };
  enum class What : std::uint32_t { wake, ready, release, stop, go, left, landed, arrived };

  void size_buffers();
  void add_channel(ResourceId resource, Index channel);
  Index channel(LinkId link, std::uint32_t lane);
  Index input_between(Index from, Index to);
  struct Ends {
    NodeId from, to;
  };
  std::vector<Ends> ends_of(const Leg& leg) const;
  void add_hops(const Leg& leg, const std::vector<Ends>& ends, const LinksFrom& out);
  static double shares_from(const Leg& leg, const LinksFrom& out, NodeId node);
  std::pair<Index, Index> add_ways(const Leg& leg, const LinksFrom& out, Index first_hop, NodeId node, Index from);
  const Way& choose_way(Index first, Index count);
  void schedule(SimTime when, What what, std::uint32_t id, std::int64_t number = 0);

  void put_in_turn(Index input);
  void make_dirty(ResourceId resource);
  void serve(Index resource);
  bool something_waits(Index resource) const;
  bool send_next(Index resource);
  bool may_send(Index channel) const;
  void send(Index channel);
  Index take_packet(Index input);
  SimTime occupy(const Hop& hop, const Packet& packet);
  void go_on(Index packet, const Channel& on);
  void ready(Index packet);
  void release(Index channel, std::int64_t bytes);
  void hold(Index channel, std::int64_t bytes);
  void stop_or_go(Index channel);
  Index new_packet();
  Told arrived(Index flow);
  ResourceId limiter(const Flow& flow) const;
  std::vector<Index> circle() const;
  SimTime later(Picoseconds delay) const { return SimTime{add(engine_.now().time_since_epoch(), delay)}; }

  PacketOptions options_;
  const Topology& topology_;
  Engine<Event>& engine_;
  bool has_credits_;
  bool tells_all_left_;
  std::vector<LegInfo> legs_;
  std::vector<Hop> hops_;
  std::vector<Way> ways_;
  VirtualLanes lanes_;
  std::vector<Channel> channels_;
  tsl::robin_map<std::uint64_t, Index, MixedHash> channel_of_;  // by lane, above 0, and link
  std::vector<Thresholds> thresholds_;                          // [link]
  std::vector<Serializer> serializers_;
  std::vector<std::vector<Index>> channels_of_;  // [resource]
  std::vector<Input> inputs_;
  tsl::robin_map<std::uint64_t, Index, MixedHash> input_of_;  // by the channels between which it is
  std::vector<Packet> packets_;
  std::vector<Flow> flows_;
  std::vector<Index> free_packets_, free_flows_;
  std::vector<Index> changed_;  // with `pause`: channels whose buffers hold more or less than before
  std::vector<Index> dirty_;    // resources that may have something to send
};

}  // namespace ringsim
