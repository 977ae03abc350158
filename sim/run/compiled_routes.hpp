// The routes of a run: found once, made ready for the network, and what they carried.
#pragma once

#include <tsl/robin_map.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/key_index.hpp"
#include "sim/network/network.hpp"
#include "sim/schedule/lanes.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// A path, made ready for the network.
struct Route {
  std::uint64_t key = no_key;  // as CompiledRoutes::key_of(); of a part: none
  Bytes carried;               // over all messages
  std::uint32_t first = 0;     // leg, or part
  /// In CompiledRoutes, from `first` on; none if both ends are one device.
  std::uint16_t n_legs = 0;
  /// If a message is cut into equal parts, each on a path of its own: their routes are `first` and those after it, and
  /// this one has no legs.
  std::uint16_t n_parts = 0;

  static constexpr std::uint64_t no_key = UINT64_MAX;
};
static_assert(sizeof(Route) == 24);

/// Route::n_parts of a pair that no path joins any more: links are down.
inline constexpr std::uint16_t nowhere = UINT16_MAX;

/// A leg of a route; the network has it by the same number.
struct LegUse {
  std::uint32_t first_link = 0, n_links = 0;  // in CompiledRoutes
};

class CompiledRoutes {
 public:
  CompiledRoutes(const CompiledRoutes&) = delete;
  CompiledRoutes& operator=(const CompiledRoutes&) = delete;

  /// `by_channel`: a pair's channels may differ. The network must outlive it. Makes room for `n_expected` routes; there
  /// may be more.
  CompiledRoutes(Routing::Policy policy, bool by_channel, Network& network, std::size_t n_expected)
      : policy_(policy), by_channel_(by_channel), network_(network) {
    ensure(policy != Routing::Policy::flow_spray || !by_channel, "a label is a channel, or the number of a message");
    known_.expect(n_expected);
  }

  /// The route of a message. `find(label)` finds the parts (Routes::find_parts) of one that nobody had before.
  template <class Find>
  std::uint32_t of(Actor from, Actor to, std::uint16_t channel, Find find) {
    return of(key_of(from, to, label(from, to, channel)), find);
  }
  /// True if all messages of a connection (from, to, channel) have one route, until forget().
  bool are_fixed() const { return policy_ != Routing::Policy::flow_spray; }

  /// True if the fabric had several equally short ways for any message so far.
  bool has_choice() const { return has_choice_; }

  /// The route of an actor's work on its own data.
  std::uint32_t of_work(Actor actor, LinkKind kind, const DeviceLinks::Work& work) {
    const auto label = static_cast<std::uint16_t>(UINT16_MAX - (kind == LinkKind::reduce ? 1 : 0));
    const std::uint64_t key = key_of(actor, actor, label);
    if (const std::uint32_t found = known_.find(key); found != unknown) return found;
    routes_.push_back(compiled({.legs = {{.links = {work.link}, .shares = {work.weight}}}}));
    return know(key, size() - 1);
  }

  /// One number for all three; an actor's has 24 bits.
  static std::uint64_t key_of(Actor from, Actor to, std::uint16_t label) {
    return static_cast<std::uint64_t>(from) << 40 | static_cast<std::uint64_t>(to) << 16 | label;
  }

  static Actor sender_of(std::uint64_t key) { return static_cast<Actor>(key >> 40); }
  static Actor receiver_of(std::uint64_t key) { return static_cast<Actor>(key >> 16 & 0xFFFFFF); }

  /// What tells the flows of a pair apart, as far as the routes look at it.
  std::uint16_t label(Actor from, Actor to, std::uint16_t channel) {
    if (by_channel_) return channel;
    if (policy_ != Routing::Policy::flow_spray) return 0;
    const std::uint32_t known = known_.find(key_of(from, to, 0));
    if (known == unknown) return 0;
    const auto found = turns_.find(known);
    const std::uint32_t turns = found == turns_.end() ? 1 : found->second;
    return turns == 1 ? std::uint16_t{0} : static_cast<std::uint16_t>(++messages_of_[key_of(from, to, 0)] % turns);
  }

  /// Other links are down than before: routes are looked for again. What the old ones carried stays counted.
  void forget() { known_.clear(); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(routes_.size()); }
  Route& operator[](std::uint32_t route) { return routes_[route]; }
  const Route& operator[](std::uint32_t route) const { return routes_[route]; }
  const LegUse& leg(std::uint32_t index) const { return legs_[index]; }
  /// Each message stands for so many equal ones.
  void stand_for(int copies) { copies_ = copies; }
  /// More bytes crossed the leg than its route, because a message gave up its way.
  void crossed_beyond(std::uint32_t leg, std::int64_t bytes) { beyond_[leg] += bytes; }
  std::span<const LinkId> links(const LegUse& leg) const { return {links_.data() + leg.first_link, leg.n_links}; }
  /// The share of the leg's i-th link, as Leg::share().
  double share(const LegUse& leg, std::size_t i) const {
    return leg.first_link + i < shares_.size() ? shares_[leg.first_link + i] : 1;
  }

  /// Sum over all legs of a route.
  Picoseconds latency(std::uint32_t route) const {
    Picoseconds sum{0};
    for (std::uint32_t i = 0; i < routes_[route].n_legs; ++i) sum += network_.latency(routes_[route].first + i);
    return sum;
  }

  /// [link] what crossed it, over the routes that `counts` says. Exact if a byte costs its links whole bytes; else
  /// `rests` has what was rounded off, [link].
  template <class Counts>
  std::vector<Bytes> link_bytes(std::size_t n_links, Counts counts, std::vector<double>& rests) const {
    std::vector<Bytes> bytes;
    for (const Crossed& each : crossed(n_links, counts)) {
      if (each.in_shares >= 9.2e18)
        fail_too_many_bytes();  // a byte may cost a link more than one, so the sum of all sent is no bound
      const std::int64_t rounded = std::llround(each.in_shares);
      if (!shares_.empty()) rests.push_back(each.in_shares - static_cast<double>(rounded));
      bytes.push_back(Bytes{each.whole} + Bytes{rounded});
    }
    return bytes;
  }
  /// True if link_bytes() of all routes would be the same if they were added up in another order.
  bool bytes_are_sure(std::size_t n_links) const {
    const std::vector<Crossed> all = crossed(n_links, [](std::uint32_t) { return true; });
    return std::none_of(all.begin(), all.end(), [](const Crossed& each) {
      return std::abs(each.in_shares - std::floor(each.in_shares) - 0.5) <= each.in_shares * 4e-15;
    });
  }
  /// Bytes in equal bytes out: the routes carried `sent`, and from each node its links took away what they brought,
  /// what routes began with there and did not end with. `bytes`: [link], of all routes. Only of routes that were not
  /// given up, and whose links carry each byte once.
  void expect_balance(const Topology& topology, const std::vector<Bytes>& bytes, Bytes sent) const {
    if (!shares_.empty() || !beyond_.empty() || copies_ > 1) return;
    std::vector<std::uint64_t> surplus(topology.n_nodes());  // modulo 2^64, which no sum leaves
    for (std::uint32_t l = 0; l < bytes.size(); ++l) {
      surplus[topology.link({l}).from.value] += static_cast<std::uint64_t>(bytes[l].count);
      surplus[topology.link({l}).to.value] -= static_cast<std::uint64_t>(bytes[l].count);
    }
    std::uint64_t carried = 0;
    for (const Route& route : routes_) {
      const auto its = static_cast<std::uint64_t>(route.carried.count);
      carried += its;
      if (route.n_legs == 0) continue;
      const auto begin = links(legs_[route.first]), end = links(legs_[route.first + route.n_legs - 1U]);
      surplus[topology.link(begin.front()).from.value] -= its;
      surplus[topology.link(end.back()).to.value] += its;
    }
    ensure(carried == static_cast<std::uint64_t>(sent.count), "what was sent crossed its routes");
    ensure(std::all_of(surplus.begin(), surplus.end(), [](std::uint64_t each) { return each == 0; }),
           "bytes in equal bytes out, at every node");
  }

 private:
  using Known = KeyIndex<std::vector<Route>, &Route::key>;
  static constexpr std::uint32_t unknown = Known::none;

  std::uint32_t know(std::uint64_t key, std::uint32_t route) {
    routes_[route].key = key;
    known_.insert(route);
    return route;
  }

  template <class Find>
  [[gnu::noinline]] std::uint32_t of(std::uint64_t key, Find find) {
    if (const std::uint32_t known = known_.find(key); known != unknown) return known;
    const std::vector<Path> parts = find(static_cast<std::uint32_t>(key & UINT16_MAX));
    const std::uint32_t whole = size();
    ensure(parts.size() < nowhere, "a message is cut into less than 65535 parts");
    if (parts.empty()) routes_.push_back({.carried = Bytes{}, .n_parts = nowhere});
    if (parts.size() > 1)
      routes_.push_back({.carried = Bytes{}, .first = whole + 1, .n_parts = static_cast<std::uint16_t>(parts.size())});
    for (const Path& path : parts) routes_.push_back(compiled(path));
    std::uint32_t turns = 1;
    for (const Path& path : parts) {
      turns = std::max(turns, path.turns);
      has_choice_ = has_choice_ || path.has_choice;
    }
    if (turns > 1) turns_[whole] = turns;
    return know(key, whole);
  }

  struct Crossed {           // of a link
    std::int64_t whole = 0;  // if a byte costs it a whole number of bytes
    double in_shares = 0;    // if it costs another number
  };
  /// [link]
  template <class Counts>
  std::vector<Crossed> crossed(std::size_t n_links, Counts counts) const {
    std::vector<Crossed> sums(n_links);
    for (std::uint32_t r = 0; r < size(); ++r) {
      const Route& route = routes_[r];
      if (!counts(r)) continue;
      for (std::uint32_t i = route.first; i < route.first + route.n_legs; ++i) {
        const LegUse& use = legs_[i];
        const auto beyond = beyond_.find(i);
        const Bytes own{route.carried.count + (beyond == beyond_.end() ? 0 : beyond->second)};
        const Bytes bytes = own * copies_;
        for (std::size_t l = 0; l < use.n_links; ++l) {
          Crossed& sum = sums[links(use)[l].value];
          const double each = share(use, l);
          if (each == std::floor(each) && each < 1e6)
            sum.whole = (Bytes{sum.whole} + bytes * static_cast<std::int64_t>(each)).count;
          else
            sum.in_shares += static_cast<double>(bytes.count) * each;
        }
      }
    }
    return sums;
  }

  Route compiled(const Path& path) {
    ensure(path.legs.size() <= UINT16_MAX, "a path has less than 65536 legs");
    Route route{.carried = Bytes{},
                .first = static_cast<std::uint32_t>(legs_.size()),
                .n_legs = static_cast<std::uint16_t>(path.legs.size())};
    for (std::size_t i = 0; i < path.legs.size(); ++i) {
      const Leg& leg = path.legs[i];
      const std::uint32_t number = network_.add_leg(leg, i == 0, i + 1 == path.legs.size());
      ensure(number == legs_.size(), "the network numbers its legs in order");
      legs_.push_back({.first_link = static_cast<std::uint32_t>(links_.size()),
                       .n_links = static_cast<std::uint32_t>(leg.links.size())});
      if (!leg.shares.empty()) {
        shares_.resize(links_.size(), 1);
        shares_.insert(shares_.end(), leg.shares.begin(), leg.shares.end());
      }
      links_.insert(links_.end(), leg.links.begin(), leg.links.end());
    }
    return route;
  }

  Routing::Policy policy_;
  bool by_channel_;  // channels of a pair may take ways of their own
  bool has_choice_ = false;
  int copies_ = 1;  // for how many equal messages one stands
  Network& network_;
  std::vector<Route> routes_;
  Known known_{routes_};
  tsl::robin_map<std::uint64_t, std::uint32_t, MixedHash> messages_of_;  // of a pair, so far: for flow_spray
  std::map<std::uint32_t, std::uint32_t> turns_;  // by route: as Path::turns, if there are several
  std::vector<LegUse> legs_;
  std::map<std::uint32_t, std::int64_t> beyond_;  // by leg
  std::vector<LinkId> links_;                     // of all legs
  std::vector<double> shares_;                    // [as links_] up to the last leg that has some; beyond it they are 1
};

}  // namespace ringsim
