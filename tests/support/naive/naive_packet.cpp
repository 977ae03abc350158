#include "tests/support/naive/naive_packet.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <utility>

namespace ringsim::naive {

namespace {

struct Packet {
  std::size_t flow = 0, hop = 0;  // hop: over which link it goes next
  std::int64_t size = 0;
  SimTime ready{}, tail{};
};
/// Where the packets of a link come from: a flow that starts there, or the link before.
struct Input {
  bool is_flow = false;
  std::size_t number = 0;
  auto operator<=>(const Input&) const = default;
};
struct State {  // of a link
  std::deque<Input> line;
  std::int64_t held = 0;
  bool asked = false, stopped = false;
};
struct Wire {  // of a resource
  SimTime free{}, since{};
  std::int64_t bytes = 0;
  std::size_t turn = 0;
};
struct Notice {  // something that is heard later
  SimTime when{};
  std::size_t link = 0;
  enum class What { room, stop, go } what = What::room;
  std::int64_t bytes = 0;
};

struct Simulation {
  const Topology& topology;
  const PacketOptions& options;
  const std::vector<PacketFlow>& flows;
  SimTime now{};
  std::vector<State> links{topology.n_links()};
  std::vector<Wire> wires{topology.n_resources()};
  std::vector<Packet> moving;                                                 // not yet ready for their next link
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Packet>> waiting;  // by the links before and after
  std::vector<Notice> notices;
  std::vector<std::int64_t> cut = std::vector<std::int64_t>(flows.size(), 0), landed = cut;
  std::vector<SimTime> last = std::vector<SimTime>(flows.size());
  std::vector<bool> started = std::vector<bool>(flows.size(), false);
  PacketResult result{};

  bool credits() const { return options.flow_control == PacketOptions::FlowControl::credit; }
  const Link& link(std::size_t l) const { return topology.link({static_cast<std::uint32_t>(l)}); }
  std::int64_t stop_above(std::size_t l) const {
    const double on_the_way = 2.0 * static_cast<double>(link(l).bandwidth.bytes_per_second) *
                              static_cast<double>(link(l).latency.count()) / 1e12;
    return options.buffer->count - static_cast<std::int64_t>(std::ceil(on_the_way)) - 3 * options.mtu.count;
  }

  void look_around() {
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (started[f] || flows[f].start > now) continue;
      started[f] = true;
      links[flows[f].links[0].value].line.push_back({true, f});
    }
    for (std::size_t i = 0; i < notices.size();) {
      if (notices[i].when > now) {
        ++i;
        continue;
      }
      const Notice heard = notices[i];
      notices.erase(notices.begin() + static_cast<std::ptrdiff_t>(i));
      hear(heard);
    }
    for (std::size_t i = 0; i < moving.size();) {
      if (moving[i].ready > now) {
        ++i;
        continue;
      }
      const Packet packet = moving[i];
      moving.erase(moving.begin() + static_cast<std::ptrdiff_t>(i));
      come_in(packet);
    }
  }

  void hear(const Notice& notice) {
    State& state = links[notice.link];
    if (notice.what != Notice::What::room) {
      state.stopped = notice.what == Notice::What::stop;
      return;
    }
    state.held -= notice.bytes;
  }

  void come_in(const Packet& packet) {
    const std::size_t before = flows[packet.flow].links[packet.hop - 1].value;
    const std::size_t after = flows[packet.flow].links[packet.hop].value;
    if (!credits()) links[before].held += packet.size;
    auto& queue = waiting[{before, after}];
    if (queue.empty()) links[after].line.push_back({false, before});
    queue.push_back(packet);
  }

  void judge(std::size_t l) {
    State& state = links[l];
    if (!state.asked && state.held > stop_above(l)) {
      state.asked = true;
      notices.push_back({now + link(l).latency, l, Notice::What::stop});
    } else if (state.asked && state.held <= stop_above(l) - 2 * options.mtu.count) {
      state.asked = false;
      notices.push_back({now + link(l).latency, l, Notice::What::go});
    }
  }

  bool send_one(std::size_t resource) {
    Wire& wire = wires[resource];
    if (wire.free > now) return false;
    std::vector<std::size_t> mine;
    for (std::size_t l = 0; l < links.size(); ++l)
      if (link(l).resource.value == resource) mine.push_back(l);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const std::size_t l = mine[(wire.turn + i) % mine.size()];
      State& state = links[l];
      if (state.line.empty()) continue;
      const Input input = state.line.front();
      Packet packet = input.is_flow ? next_of(input.number) : waiting[{input.number, l}].front();
      const bool ends = packet.hop + 1 == flows[packet.flow].links.size();
      if (credits() ? !ends && state.held + packet.size > options.buffer->count : state.stopped) {
        ++result.blocked;
        continue;
      }
      wire.turn = (wire.turn + i) % mine.size() + 1;
      state.line.pop_front();
      bool more = false;
      if (input.is_flow) {
        cut[input.number] += packet.size;
        more = cut[input.number] < flows[input.number].size.count;
      } else {
        waiting[{input.number, l}].pop_front();
        more = !waiting[{input.number, l}].empty();
      }
      if (more) state.line.push_back(input);
      put_on(wire, l, packet, ends);
      return true;
    }
    return false;
  }

  Packet next_of(std::size_t f) const {
    return {f, 0, std::min(options.mtu.count, flows[f].size.count - cut[f]), now, now};
  }

  void put_on(Wire& wire, std::size_t l, Packet packet, bool ends) {
    if (wire.free < now || wire.bytes == 0) {
      wire.since = now;
      wire.bytes = 0;
    }
    wire.bytes += packet.size;
    wire.free = std::max({wire.since + transfer_time({wire.bytes}, link(l).bandwidth), packet.tail, now});
    if (packet.hop > 0) {
      const std::size_t before = flows[packet.flow].links[packet.hop - 1].value;
      const SimTime when = wire.free + (credits() ? link(before).latency : Picoseconds{0});
      notices.push_back({when, before, Notice::What::room, packet.size});
    }
    packet.tail = wire.free + link(l).latency;
    if (ends) {
      landed[packet.flow] += packet.size;
      last[packet.flow] = packet.tail;
      return;
    }
    if (credits()) links[l].held += packet.size;
    ++packet.hop;
    const Link& next = topology.link(flows[packet.flow].links[packet.hop]);
    packet.ready = std::max(now + link(l).latency, packet.tail - transfer_time({packet.size}, next.bandwidth));
    moving.push_back(packet);
  }

  bool go_to_next_instant() {
    std::set<SimTime> instants;
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (!started[f]) instants.insert(flows[f].start);
    for (const Packet& packet : moving) instants.insert(packet.ready);
    for (const Notice& notice : notices) instants.insert(notice.when);
    for (const Wire& wire : wires)
      if (wire.free > now) instants.insert(wire.free);
    if (instants.empty()) return false;
    now = *instants.begin();
    return true;
  }

  void go() {
    do {
      bool sent = true;
      while (sent) {
        look_around();
        sent = false;
        for (std::size_t l = 0; !credits() && l < links.size(); ++l) judge(l);
        for (std::size_t r = 0; r < wires.size(); ++r)
          while (send_one(r)) sent = true;
      }
    } while (go_to_next_instant());
    for (std::size_t f = 0; f < flows.size(); ++f)
      result.finish.push_back(landed[f] == flows[f].size.count ? std::optional(last[f]) : std::nullopt);
  }
};

}  // namespace

PacketResult simulate(const Topology& topology, const PacketOptions& options, const std::vector<PacketFlow>& flows) {
  Simulation simulation{.topology = topology, .options = options, .flows = flows};
  simulation.go();
  return simulation.result;
}

}  // namespace ringsim::naive
