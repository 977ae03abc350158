// Links that fail while transfers are under way over them, or are to take them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/network/network.hpp"
#include "sim/run/disturbance.hpp"
#include "sim/run/planned_routes.hpp"
#include "sim/run/run.hpp"
#include "sim/run/staged_transfers.hpp"
#include "sim/run/transfers.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// Applies Disturbance::links to a run: takes data that has not left off links that go down, and sends it over other
/// ways. Messages without a way wait until a link comes back. Undisturbed runs do not have this object.
///
/// All references must outlive it. Throws InputError if links go down under a model whose network cannot take back.
class LinkFaults {
 public:
  /// `n_ranks`: how many actors an error may call ranks.
  LinkFaults(const Topology& topology, const RunOptions& options, int n_ranks, Engine<Event>& engine,
             Transfers& transfers);

  /// Before anything begins: what changes at 0 counts from the first step on; all else is scheduled.
  void begin();
  /// The event `link_change` is due. True if routes that are kept elsewhere hold no longer: nothing in it uses those.
  bool change_links();

  bool any_down() const { return states_.any_down(); }
  /// The routes of now, if links are down.
  std::vector<Path> find_parts(NodeId from, NodeId to, std::uint32_t label);
  /// The links that are down leave the message no way: it waits for one that comes back.
  void strand(std::uint32_t transfer);
  /// Finds the transfer a way as of now, and sets it out if there is one.
  void set_out(std::uint32_t transfer);
  /// As set_out(), of a transfer that has been posted while links may have gone down.
  void posted(std::uint32_t transfer);

  /// An arrival within a staged message whose way was given up: true if nobody waits for it.
  bool swallows(std::uint32_t transfer, std::uint32_t leg);
  /// A part is delivered; false if its number is still in use.
  bool may_free(std::uint32_t part);

  /// True if the route is one of background messages.
  bool is_background(std::uint32_t route) const { return background_routes_.contains(route); }
  /// Number of transfers that are given up, but still have data on its way that nobody waits for.
  std::size_t n_given_up() const { return given_up_.size(); }

  /// Throws StrandedError if a transfer waits for links of which none comes back.
  void expect_a_way_some_day();

 private:
  using Taken = std::map<std::uint64_t, Network::Withdrawn>;  // by piece
  struct Ends {
    Actor from, to;
    std::uint16_t channel;
  };
  struct GivenUp {
    std::uint32_t on_their_way = 0;  // arrivals that are to be swallowed
    bool is_over = false;            // its number is free when they are
  };

  bool find_way(std::uint32_t transfer);
  std::uint32_t route(const Ends& ends);
  Ends ends(std::uint32_t transfer) const;

  void give_up_ways(const std::vector<LinkId>& gone);
  std::vector<std::uint32_t> hit_by(const std::vector<bool>& links) const;
  std::vector<std::uint64_t> pieces_of(const std::vector<std::uint32_t>& transfers,
                                       const std::function<bool(std::uint32_t leg)>& counts) const;
  Taken withdraw(std::vector<std::uint64_t> pieces);
  void note_if_left(std::uint32_t transfer, std::uint32_t leg, const Taken& taken);
  bool crosses(std::uint32_t leg, const std::vector<bool>& links) const;
  bool leads_over(std::uint32_t transfer, const std::vector<bool>& links) const;
  void give_up(std::uint32_t transfer, const Network::Withdrawn& taken);
  void give_up_staged(std::uint32_t transfer, const Taken& taken);
  void carried_less(std::uint32_t route, Bytes by);
  std::uint32_t split(std::uint32_t transfer, Bytes rest);
  [[noreturn]] void fail_stranded();

  const Topology& topology_;
  const RunOptions& options_;
  int n_ranks_;
  Engine<Event>& engine_;
  Transfers& transfers_;
  LinkStates states_;
  std::unique_ptr<PlannedRoutes> detours_;
  std::vector<std::uint32_t> stranded_;
  std::map<std::uint32_t, GivenUp> given_up_;
  std::set<std::uint32_t> background_routes_;
};

}  // namespace ringsim
