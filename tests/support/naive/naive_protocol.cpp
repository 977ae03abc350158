#include "tests/support/naive/naive_protocol.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/topology/routes.hpp"
#include "tests/support/naive/naive_fair.hpp"

namespace ringsim::naive {

namespace {

struct Place {
  std::size_t lane = 0, step = 0;
};

struct Mail {
  Place send, receive;
  Leg leg;
  Span span;
  Picoseconds latency{0};
  bool has_started = false, has_left = false, has_arrived = false;
  Bytes part;               // up to where what is moving reaches
  long double to_move = 0;  // of that
};

struct Walk {  // of a lane
  std::vector<Step> steps;
  std::size_t step = 0;
  bool has_begun = false;
  SimTime computes_until{};
};

class ProtocolSimulation {
 public:
  ProtocolSimulation(const Topology& topology, NetworkModel model, const Schedule& schedule, const Protocol& protocol)
      : topology_(topology), model_(model), protocol_(protocol), n_lanes_(static_cast<std::size_t>(schedule.lanes)) {
    struct Ends {
      std::vector<std::pair<Place, Bytes>> sends, receives;
    };
    std::map<std::tuple<Actor, Actor, std::uint16_t>, Ends> connections;
    for (Actor actor = 0; actor < schedule.actors; ++actor) {
      for (Lane lane = 0; lane < schedule.lanes; ++lane) {
        Walk& walk = lanes_.emplace_back();
        for (int i = 0; i < schedule.n_steps(actor, lane); ++i) {
          Step& step = walk.steps.emplace_back();
          schedule.step(actor, lane, i, step);
          const Place here{lanes_.size() - 1, walk.steps.size() - 1};
          for (const Op& op : step.ops) {
            if (op.what == Do::send)
              connections[{actor, op.peer, op.channel}].sends.emplace_back(here, schedule.size(op.region));
            else if (op.what != Do::compute)
              connections[{op.peer, actor, op.channel}].receives.emplace_back(here, schedule.size(op.region));
          }
        }
      }
    }
    Routes routes(topology);
    for (const auto& [ends, ops] : connections) {
      std::vector<Mail>& line = connections_.emplace_back();
      const auto [from, to, channel] = ends;
      const Path path =
          routes.find(topology.ranks()[static_cast<std::size_t>(from)], topology.ranks()[static_cast<std::size_t>(to)]);
      for (std::size_t k = 0; k < ops.sends.size(); ++k) {
        Mail& mail = line.emplace_back();
        mail.send = ops.sends[k].first;
        mail.receive = ops.receives.at(k).first;
        mail.leg = path.legs.at(0);
        mail.latency = ringsim::latency(path) + protocol.latency(path.type);
        // Data up to a multiple of `align`. Of `wire` bytes on the links `payload` are data, rounded up.
        std::int64_t data = ops.sends[k].second.count;
        while (data % protocol.align.count != 0) ++data;
        mail.span = {.from = from,
                     .to = to,
                     .channel = channel,
                     .bytes = {(data * protocol.wire + protocol.payload - 1) / protocol.payload}};
      }
    }
  }

  Ran run() {
    ran_.finish.resize(lanes_.size() / n_lanes_);
    do
      while (something_happens()) {
      }
    while (move());
    for (const Walk& lane : lanes_) ran_.stalled = ran_.stalled || lane.step < lane.steps.size();
    std::sort(ran_.messages.begin(), ran_.messages.end(),
              [](const Span& a, const Span& b) { return span_key(a) < span_key(b); });
    return ran_;
  }

 private:
  bool has_begun(const Place& place) const {
    const Walk& lane = lanes_[place.lane];
    return lane.step > place.step || (lane.step == place.step && lane.has_begun);
  }

  bool something_happens() {
    bool any = false;
    for (std::size_t l = 0; l < lanes_.size(); ++l) any = begins(l) || any;
    for (std::vector<Mail>& line : connections_)
      for (std::size_t k = 0; k < line.size(); ++k) any = happens(line, k) || any;
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      if (!is_complete(l)) continue;
      ++lanes_[l].step;
      lanes_[l].has_begun = false;
      ran_.finish[l / n_lanes_] = now_;
      any = true;
    }
    return any;
  }

  bool begins(std::size_t number) {
    Walk& lane = lanes_[number];
    if (lane.has_begun || lane.step == lane.steps.size()) return false;
    for (const Wait& wait : lane.steps[lane.step].waits)
      if (lanes_[number / n_lanes_ * n_lanes_ + static_cast<std::size_t>(wait.lane)].step <
          static_cast<std::size_t>(wait.steps))
        return false;
    lane.has_begun = true;
    lane.computes_until = now_;
    for (const Op& op : lane.steps[lane.step].ops) lane.computes_until = std::max(lane.computes_until, now_ + op.time);
    return true;
  }

  // How many bytes of the k-th message of a connection may have started by now; nothing if it may not start.
  std::optional<Bytes> has_room(const std::vector<Mail>& line, std::size_t k) const {
    if (!has_begun(line[k].send)) return std::nullopt;
    if (has_begun(line[k].receive)) return line[k].span.bytes;
    std::int64_t free = protocol_.slots;
    for (std::size_t j = 0; j < k; ++j)
      if (!has_begun(line[j].receive)) free -= std::min(free, fills(line[j]));
    if (free == 0) return std::nullopt;
    return std::min(line[k].span.bytes, protocol_.slot * free);
  }
  std::int64_t fills(const Mail& mail) const {
    std::int64_t slots = 1;
    while (protocol_.slot * slots < mail.span.bytes) ++slots;
    return slots;
  }

  bool happens(std::vector<Mail>& line, std::size_t k) {
    Mail& mail = line[k];
    if (mail.has_left) {
      if (mail.has_arrived || now_ < mail.span.finish) return false;
      ran_.messages.push_back(mail.span);
      return mail.has_arrived = true;
    }
    if (mail.to_move > 0) return false;
    const std::optional<Bytes> room = has_room(line, k);
    if (!room) return false;
    if (!mail.has_started) {
      mail.span.start = now_;
      mail.has_started = true;
    } else if (mail.part == mail.span.bytes) {
      mail.span.finish = now_ + mail.latency;
      return mail.has_left = true;
    } else if (*room == mail.part) {
      return false;
    }
    mail.to_move = static_cast<long double>((*room - mail.part).count);
    mail.part = *room;
    return true;
  }

  bool is_complete(std::size_t number) const {
    const Walk& lane = lanes_[number];
    if (!lane.has_begun || now_ < lane.computes_until) return false;
    const auto is_here = [&](const Place& place) { return place.lane == number && place.step == lane.step; };
    for (const std::vector<Mail>& line : connections_) {
      for (const Mail& mail : line) {
        if (is_here(mail.send) && !(protocol_.done_when_left ? mail.has_left : mail.has_arrived)) return false;
        if (is_here(mail.receive) && !mail.has_arrived) return false;
      }
    }
    return true;
  }

  // On to the next instant at which something may happen; false if there is none.
  bool move() {
    std::vector<Flow> flows;
    std::vector<Mail*> moving;
    SimTime next = SimTime::max();
    const auto consider = [&](SimTime when) {
      if (when > now_) next = std::min(next, when);
    };
    for (const Walk& lane : lanes_)
      if (lane.has_begun) consider(lane.computes_until);
    for (std::vector<Mail>& line : connections_) {
      for (Mail& mail : line) {
        if (mail.has_left) consider(mail.span.finish);
        if (mail.to_move <= 0) continue;
        flows.push_back({.leg = mail.leg, .size = mail.span.bytes});
        moving.push_back(&mail);
      }
    }
    const std::vector<long double> rate = rates(topology_, model_, flows);
    std::vector<SimTime> ends;
    for (std::size_t i = 0; i < moving.size(); ++i) {
      const long double time = moving[i]->to_move / rate[i] * 1e12L;
      ends.push_back(now_ + Picoseconds{static_cast<std::int64_t>(std::ceil(time - 1e-3L))});
      consider(ends.back());
    }
    if (next == SimTime::max()) return false;
    const long double seconds = static_cast<long double>((next - now_).count()) / 1e12L;
    for (std::size_t i = 0; i < moving.size(); ++i)
      moving[i]->to_move = ends[i] <= next ? 0 : moving[i]->to_move - rate[i] * seconds;
    now_ = next;
    return true;
  }

  const Topology& topology_;
  NetworkModel model_;
  const Protocol& protocol_;
  std::size_t n_lanes_;
  std::vector<Walk> lanes_;
  std::vector<std::vector<Mail>> connections_;
  SimTime now_{};
  Ran ran_;
};

}  // namespace

Ran simulate(const Topology& topology, NetworkModel model, const Schedule& schedule, const Protocol& protocol) {
  return ProtocolSimulation(topology, model, schedule, protocol).run();
}

}  // namespace ringsim::naive
