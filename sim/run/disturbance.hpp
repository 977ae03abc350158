// What disturbs a run: links that fail, ranks that are late, slow or unsteady, and traffic of others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// From `at` on, links have another bandwidth, are down, or are what they were at first. The latest change of a link is
/// what holds; of several at one instant, the last in the list. A change takes effect at the beginning of its instant:
/// what starts then knows of it, what leaves its source then has left.
///
/// Another bandwidth. `ideal`, `fair`: flows move at the old rates until then, at the new ones from there on.
/// `packet`: packets that start from then on; those on the link go on as they are. Half-duplex links share one
/// bandwidth, so that to change one direction is to change both.
///
/// Down. Nothing new takes the link. Of a message that is under way over it, what has left its source by then arrives;
/// the rest takes a new way at once, and pays that way's latency. If data is staged (several legs) what has left on
/// the last leg arrives, and all else, which lies in rooms of the old way, is sent again from the source. Messages
/// whose way does not lead over the link keep to it, and so do those whose data is past it. With no way left a message
/// waits until a link is restored; if none ever is, StrandedError names it, at the instant at which it has none. (Real
/// RC connections give up after NCCL_IB_RETRY_CNT times 4.096 us 2^NCCL_IB_TIMEOUT or so, 30 s by default; ringsim
/// waits.) That time is counted to the link that then sets its speed. `packet` refuses links that are down.
///
/// Restored, or given a bandwidth. What starts from then on takes the ways of old; what is under way stays where it is.
struct LinkChange {
  enum class To : std::uint8_t {
    share,      ///< `millionths` of the nominal bandwidth, rounded down, at least 1 B/s
    bandwidth,  ///< `bandwidth`
    down,
    restored,
  } to = To::restored;
  SimTime at{};
  std::vector<LinkId> links;
  std::int64_t millionths = 1'000'000;
  Bandwidth bandwidth;
  double reached = 1;  ///< the part of the links' own rates that the topology and `bandwidth` have, for texts

  /// What a link of that nominal bandwidth has then; nominal if it is down (nothing uses it).
  Bandwidth of(Bandwidth nominal) const;
};

/// Faults leave messages without a way for good.
class StrandedError : public InputError {
 public:
  using InputError::InputError;
};

/// A step of an actor can begin when its lane's previous step is done and its waits are met. It does begin at
///     max(that, late) + step_delay + jitter
/// of its actor; each of them 0 if nothing is said. They also count on helpers.
struct Disturbance {
  std::vector<LinkChange> links;

  /// A range of an actor's lanes; count -1: all of them.
  struct Lanes {
    Lane first = 0;
    int count = -1;
  };
  /// The actor's lanes begin no earlier than `by`.
  struct Late {
    Actor actor = 0;
    SimTime by{};
    Lanes lanes = {};
  };
  std::vector<Late> late;
  /// Each step of the actor begins this much later than it could: a time added per step, as by a slower host.
  struct Slow {
    Actor actor = 0;
    Picoseconds step_delay{0};
    Lanes lanes = {};
  };
  std::vector<Slow> slow;
  /// Each step of each actor begins later by a time drawn from [0, most], all equally likely; see jitter_of().
  struct Jitter {
    Picoseconds most{0};
    std::uint64_t seed = 0;
  } jitter;
  /// Which steps `slow` and `jitter` delay; none: all. A program's launches and starts are no steps of a collective.
  std::function<bool(Actor, Lane, int step)> delays;

  /// Messages that are no part of the schedule but share links with it, by the same model and routes (channel 0).
  /// They are sent until the schedule is done, none after `until`; what is under way then is left where it is.
  struct Background {
    NodeId from, to;
    Bytes bytes;      ///< of each; at least 1
    SimTime start{};  ///< of the first
    std::optional<Picoseconds>
        every;  ///< the time between the starts of two; none: each as its forerunner is delivered
    std::optional<SimTime> until;
  };
  std::vector<Background> background;

  bool empty() const {
    return links.empty() && late.empty() && slow.empty() && jitter.most.count() == 0 && background.empty();
  }
};

/// The draw for one step: a hash of what it is for, so that it does not depend on the order of events. Whole numbers
/// only. Uniform but for most/2^64.
Picoseconds jitter_of(const Disturbance::Jitter& jitter, Actor actor, Lane lane, int step);

/// The changes of links, instant by instant, and what they add up to.
class LinkStates {
 public:
  /// Throws InputError for a bandwidth above the link's own: a fault adds none.
  LinkStates(const Topology& topology, const std::vector<LinkChange>& changes);

  /// When the changes come; ascending, each instant once.
  const std::vector<SimTime>& instants() const { return instants_; }
  struct Applied {
    std::vector<std::pair<ResourceId, Bandwidth>> rates;  ///< of resources whose bandwidth is another than before
    std::vector<LinkId> gone;                             ///< links that were up until now
    bool routes_changed = false;                          ///< some link is down, or up, that was not
  };
  /// Takes the changes of the next instant.
  Applied advance();

  const std::vector<bool>& down() const { return down_; }  ///< [link]
  bool any_down() const { return n_down_ > 0; }
  /// True if a later change brings some link up again that is down now.
  bool some_come_back() const;

 private:
  const Topology& topology_;
  std::vector<LinkChange> changes_;  // in order of time
  std::size_t next_ = 0;             // the first that is not applied
  std::vector<SimTime> instants_;
  std::vector<bool> down_;
  std::vector<Bandwidth> rate_;  // [resource]
  std::size_t n_down_ = 0;
};

}  // namespace ringsim
