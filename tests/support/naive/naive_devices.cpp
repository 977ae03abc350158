#include "tests/support/naive/naive_devices.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace ringsim::naive {

namespace on_devices {  // others here have a Walk and a Place as well

namespace {

struct Place {
  std::size_t lane = 0, step = 0;
};

/// What moving bytes draw on: by resource, how many bytes of it for each of their own.
using Needs = std::map<std::size_t, long double>;

/// A message and its addition, or a copy or an addition within a device, which has no sender and begins by `preparing`.
struct Item {
  enum class Is : std::uint8_t {
    waiting,
    ready,
    posting,
    on_links,
    flying,
    preparing,
    worked_on,
    over
  } is = Is::waiting;
  std::optional<Place> sender;
  Place receiver;
  Span span;
  NodeId poster;  // its sender's device, if posting takes time there
  Picoseconds post{0};
  Needs links, work;
  Picoseconds latency{0};
  bool takes_work = false;
  Picoseconds start{0};  // before the first byte of its work
  SimTime until{};       // posting, flying, preparing
  long double left = 0;  // bytes: on_links, worked_on

  bool moves() const { return (is == Is::on_links || is == Is::worked_on) && left > 0; }
};

struct Walk {  // of a lane
  std::vector<Step> steps;
  std::size_t step = 0;
  bool has_begun = false;
  SimTime computes_until{};
};

class Simulation {
 public:
  Simulation(const Topology& topology, const Devices& devices, const Schedule& schedule,
             const std::vector<NodeId>& placement)
      : topology_(topology),
        devices_(devices),
        placement_(placement),
        n_lanes_(static_cast<std::size_t>(schedule.lanes)) {
    for (std::uint32_t r = 0; r < topology.n_resources(); ++r)
      room_.push_back(rate_of(topology.resource({r}).bandwidth));
    std::map<std::tuple<Actor, Actor, int>, std::deque<std::pair<Place, Op>>> sends, receives;  // [connection]
    for (Actor actor = 0; actor < schedule.actors; ++actor) {
      for (Lane lane = 0; lane < schedule.lanes; ++lane) {
        Walk& walk = lanes_.emplace_back();
        for (int i = 0; i < schedule.n_steps(actor, lane); ++i) {
          Step& step = walk.steps.emplace_back();
          schedule.step(actor, lane, i, step);
          const Place here{lanes_.size() - 1, walk.steps.size() - 1};
          for (const Op& op : step.ops) {
            if (op.what == Do::send) sends[{actor, op.peer, op.channel}].emplace_back(here, op);
            if (op.what == Do::receive || op.what == Do::receive_add)
              receives[{op.peer, actor, op.channel}].emplace_back(here, op);
            if (op.what == Do::copy || op.what == Do::add)
              add_local(here, actor, op.what == Do::add, schedule.size(op.region));
          }
        }
      }
    }
    for (const auto& [connection, ends] : sends) {
      const auto [from, to, channel] = connection;
      for (std::size_t k = 0; k < ends.size(); ++k) {
        const auto& [place, op] = receives.at(connection).at(k);
        add_message(ends[k].first, place, op.what == Do::receive_add,
                    {.from = from,
                     .to = to,
                     .channel = static_cast<std::uint16_t>(channel),
                     .bytes = schedule.size(ends[k].second.region)});
      }
    }
  }

  RanOnDevices run(Picoseconds step) {
    RanOnDevices ran;
    ran.finish.resize(lanes_.size() / n_lanes_);
    do
      while (something_happens(ran)) {
      }
    while (post_all() || move(step));
    for (const Walk& lane : lanes_)
      if (lane.step < lane.steps.size()) throw std::logic_error("the schedule does not come to its end");
    for (const Item& item : items_)
      if (item.sender) ran.messages.push_back(item.span);
    return ran;
  }

 private:
  static long double rate_of(Bandwidth bandwidth) { return static_cast<long double>(bandwidth.bytes_per_second); }

  /// A resource of the device alone, the same for the same `which`: 0 copies, 1 additions, 2 + c its channel c.
  std::size_t own(NodeId node, int which, Bandwidth rate) {
    const auto [found, is_new] = own_.try_emplace({node.value, which}, room_.size());
    if (is_new) room_.push_back(rate_of(rate));
    return found->second;
  }

  // What a copy or an addition draws on; false if it takes no time.
  bool find_work(NodeId node, bool adds, Item& item) {
    const std::optional<DeviceRates>& device = devices_.rates[node.value];
    if (!device) return false;
    const std::optional<Bandwidth> rate = adds ? device->reduce : device->copy;
    if (!rate) return false;
    item.takes_work = true;
    item.start = device->start;
    if (!device->over) {
      item.work[own(node, adds ? 1 : 0, *rate)] = 1;
      return true;
    }
    // Alone on that link it runs at its own rate, so that then its bytes fill the link.
    const std::size_t link = topology_.link(*device->over).resource.value;
    item.work[link] = room_[link] / rate_of(*rate);
    return true;
  }

  void add_local(Place place, Actor actor, bool adds, Bytes size) {
    Item item{.receiver = place, .span = {.bytes = size}};
    if (find_work(placement_[static_cast<std::size_t>(actor)], adds, item)) items_.push_back(item);
  }

  void add_message(Place sender, Place receiver, bool adds, const Span& span) {
    Item& item = items_.emplace_back(Item{.sender = sender, .receiver = receiver, .span = span});
    const NodeId from = placement_[static_cast<std::size_t>(span.from)],
                 to = placement_[static_cast<std::size_t>(span.to)];
    if (adds) find_work(to, true, item);
    if (from == to) return;  // it is there
    for (const LinkId id : way(from, to)) {
      item.links[topology_.link(id).resource.value] += 1;
      item.latency += topology_.link(id).latency;
    }
    const std::optional<DeviceRates>& device = devices_.rates[from.value];
    if (!device) return;
    item.poster = from;
    item.post = device->post;
    if (device->copy && !device->over) item.links[own(from, 0, *device->copy)] = 1;
    if (device->channel) item.links[own(from, 2 + span.channel % devices_.channels, *device->channel)] = 1;
  }

  std::optional<LinkId> link(NodeId from, NodeId to) const {
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l)
      if (topology_.link({l}).from == from && topology_.link({l}).to == to) return LinkId{l};
    return std::nullopt;
  }
  std::vector<LinkId> way(NodeId from, NodeId to) const {
    if (const auto direct = link(from, to)) return {*direct};
    const NodeId hub = topology_.find("hub").value();
    return {link(from, hub).value(), link(hub, to).value()};
  }

  bool has_begun(const Place& place) const {
    const Walk& lane = lanes_[place.lane];
    return lane.step > place.step || (lane.step == place.step && lane.has_begun);
  }

  bool something_happens(RanOnDevices& ran) {
    bool any = false;
    for (std::size_t l = 0; l < lanes_.size(); ++l) any = begins(l) || any;
    for (Item& item : items_) any = goes_on(item) || any;
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      if (!is_complete(l)) continue;
      ++lanes_[l].step;
      lanes_[l].has_begun = false;
      ran.finish[l / n_lanes_] = now_;
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

  bool goes_on(Item& item) const {
    const auto size = static_cast<long double>(item.span.bytes.count);
    switch (item.is) {
      case Item::Is::waiting:
        if (!has_begun(item.receiver) || (item.sender && !has_begun(*item.sender))) return false;
        item.is = !item.sender ? Item::Is::preparing : item.post.count() > 0 ? Item::Is::ready : Item::Is::on_links;
        item.span.start = now_;
        item.left = item.links.empty() ? 0 : size;
        item.until = now_ + item.start;
        return true;
      case Item::Is::ready:
        return false;
      case Item::Is::posting:
        if (now_ < item.until) return false;
        item.is = Item::Is::on_links;
        return true;
      case Item::Is::on_links:
        if (item.left > 0) return false;
        item.is = Item::Is::flying;
        item.until = now_ + item.latency;
        return true;
      case Item::Is::flying:
        if (now_ < item.until) return false;
        item.span.finish = now_;
        item.is = item.takes_work ? Item::Is::preparing : Item::Is::over;
        item.until = now_ + item.start;
        return true;
      case Item::Is::preparing:
        if (now_ < item.until) return false;
        item.is = Item::Is::worked_on;
        item.left = size;
        return true;
      case Item::Is::worked_on:
        if (item.left > 0) return false;
        item.is = Item::Is::over;
        return true;
      case Item::Is::over:
        return false;
    }
    return false;
  }

  // Nothing else happens at this instant: what is ready takes its turn. False if nothing is.
  bool post_all() {
    std::vector<Item*> ready;
    for (Item& item : items_)
      if (item.is == Item::Is::ready) ready.push_back(&item);
    const auto n = static_cast<Actor>(placement_.size());
    const auto turn = [n](const Item* item) {
      return std::tuple(item->sender->lane, (item->span.to - item->span.from + n) % n, item->span.channel);
    };
    std::stable_sort(ready.begin(), ready.end(), [&](const Item* a, const Item* b) { return turn(a) < turn(b); });
    for (Item* item : ready) {
      SimTime& free = posted_until_[item->poster.value];
      item->until = free = std::max(free, now_) + item->post;
      item->is = Item::Is::posting;
    }
    return !ready.empty();
  }

  bool is_complete(std::size_t number) const {
    const Walk& lane = lanes_[number];
    if (!lane.has_begun || now_ < lane.computes_until) return false;
    const auto is_here = [&](const Place& place) { return place.lane == number && place.step == lane.step; };
    return std::none_of(items_.begin(), items_.end(), [&](const Item& item) {
      if (item.sender && is_here(*item.sender) && item.is < Item::Is::preparing) return true;
      return is_here(item.receiver) && item.is < Item::Is::over;
    });
  }

  /// [item] bytes per second of what moves: raise all alike until something is full, freeze what draws on it, go on.
  std::vector<long double> shares() const {
    std::vector<long double> rate(items_.size(), 0), room = room_;
    std::vector<const Needs*> open(items_.size(), nullptr);
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (items_[i].moves()) open[i] = items_[i].is == Item::Is::on_links ? &items_[i].links : &items_[i].work;
    while (std::any_of(open.begin(), open.end(), [](const Needs* needs) { return needs != nullptr; })) {
      std::vector<long double> drawn(room.size(), 0);
      for (const Needs* needs : open)
        if (needs != nullptr)
          for (const auto& [resource, weight] : *needs) drawn[resource] += weight;
      long double more = std::numeric_limits<long double>::infinity();
      for (std::size_t r = 0; r < room.size(); ++r)
        if (drawn[r] > 0) more = std::min(more, room[r] / drawn[r]);
      for (std::size_t i = 0; i < items_.size(); ++i)
        if (open[i] != nullptr) rate[i] += more;
      for (std::size_t r = 0; r < room.size(); ++r) room[r] -= more * drawn[r];
      for (const Needs*& needs : open) {
        if (needs == nullptr) continue;
        const bool is_held = std::any_of(needs->begin(), needs->end(), [&](const auto& need) {
          return room[need.first] <= 1e-15L * room_[need.first];
        });
        if (is_held) needs = nullptr;
      }
    }
    return rate;
  }

  // One step of time; false if nothing is left that could happen.
  bool move(Picoseconds step) {
    SimTime next = SimTime::max();
    const auto consider = [&](SimTime when) {
      if (when > now_) next = std::min(next, when);
    };
    for (const Walk& lane : lanes_)
      if (lane.has_begun) consider(lane.computes_until);
    const std::vector<long double> rate = shares();
    std::vector<SimTime> end(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].is == Item::Is::posting || items_[i].is == Item::Is::flying || items_[i].is == Item::Is::preparing)
        consider(items_[i].until);
      if (!items_[i].moves()) continue;
      // Less than a thousandth of a picosecond is noise of the sums, not time.
      const long double time = items_[i].left / rate[i] * 1e12L;
      end[i] = now_ + Picoseconds{static_cast<std::int64_t>(std::ceil(time - 1e-3L))};
      next = std::min(next, end[i]);
    }
    if (next == SimTime::max()) return false;
    next = std::min(next, now_ + step);
    const long double seconds = static_cast<long double>((next - now_).count()) / 1e12L;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (items_[i].moves()) items_[i].left = end[i] <= next ? 0 : items_[i].left - rate[i] * seconds;
    now_ = next;
    return true;
  }

  const Topology& topology_;
  const Devices& devices_;
  const std::vector<NodeId>& placement_;
  std::size_t n_lanes_;
  std::vector<Walk> lanes_;
  std::vector<Item> items_;
  std::vector<long double> room_;                             // [resource] bytes per second
  std::map<std::pair<std::uint32_t, int>, std::size_t> own_;  // what devices have for themselves
  std::map<std::uint32_t, SimTime> posted_until_;             // [device]
  SimTime now_{};
};

}  // namespace

}  // namespace on_devices

RanOnDevices simulate(const Topology& topology, const Devices& devices, const Schedule& schedule,
                      const std::vector<NodeId>& placement, Picoseconds step) {
  return on_devices::Simulation(topology, devices, schedule, placement).run(step);
}

}  // namespace ringsim::naive
