// Finds calls that use one thing at the same time: a link, a connection's slots, a device that posts messages.
#pragma once

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/mixed_hash.hpp"
#include "sim/base/units.hpp"
#include "sim/program/program.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// The things that a call uses when it takes a course, and when: times count from the base of the course.
struct CallUses {
  struct Use {
    std::int64_t of = 0;  ///< which link, connection or actor
    Picoseconds first{0}, last{0};
  };
  /// In order of `of`. Links are numbered as resources. `senders` have messages in slots until `last`.
  std::vector<Use> links, connections, senders, posters;
  std::vector<std::pair<Actor, Picoseconds>> receivers;  ///< with the first moment at which something is sent to each
  Stream stream = 0;
  int kind = 0;  ///< calls of a kind use the same things

  Picoseconds first{0}, last{0};  ///< its first and its last use of a link, a connection or a poster
  void set_bounds();
};

/// Looks for meetings of calls in one run. Known calls take courses; the others are simulated in the run itself.
class CallMeetings {
 public:
  /// `met`: called for each known call that meets another. `horizon`: no later call uses anything before that moment,
  /// and no traffic before it is yet to come. The topology must outlive it.
  CallMeetings(const Topology& topology, std::function<void(int call)> met, std::function<SimTime()> horizon)
      : topology_(topology), met_(std::move(met)), horizon_(std::move(horizon)) {}

  /// A run begins. Uses that overlap by `slack` or less do not meet.
  void begin(std::size_t n_actors, Picoseconds slack);

  /// A known call uses that from `base` on; `uses` stays until the next run begins.
  void known(const CallUses& uses, int call, SimTime base);

  /// An actor launches a simulated call; it ends there.
  void launched(Stream stream, Actor actor, SimTime when);
  void ended(Stream stream, Actor actor, SimTime when);
  /// A simulated call has crossed a link.
  void crossed(const Traffic& traffic);

 private:
  struct Taken {  // by a known call
    const CallUses* uses = nullptr;
    SimTime base{};
    SimTime begin{}, end{};  // of its uses
    SimTime reach{};         // the last end among it and those before it in recent_
    int call = 0;
  };

  bool meet(const Taken& one, const Taken& other);
  bool meets_simulated(const Taken& one) const;
  void add(const Taken& taken);
  /// look(taken) for each of recent_ whose uses overlap.
  template <class Look>
  void each_between(SimTime from, SimTime to, const Look& look) const;
  static std::uint64_t at_stream(Stream stream, Actor actor) {
    return static_cast<std::uint64_t>(stream) << 32 | static_cast<std::uint64_t>(actor);
  }

  const Topology& topology_;
  std::function<void(int)> met_;
  std::function<SimTime()> horizon_;
  tsl::robin_map<std::uint64_t, bool, MixedHash> shares_;  // by two kinds: they use one thing
  Picoseconds slack_{0};

  std::vector<Taken> recent_;    // those that a later call may meet, in order of `begin`
  std::size_t much_recent_ = 0;  // with so many, old ones are dropped

  // By simulated calls.
  SimTime until_{};                                          // the last moment that is known
  std::vector<SimTime> crossed_;                             // [link] until when it was used, so far
  int n_launched_ = 0;                                       // that have not ended, over all actors
  std::vector<int> launched_;                                // [actor] likewise
  std::vector<SimTime> posted_;                              // [actor] the end of the last
  tsl::robin_map<std::uint64_t, SimTime, MixedHash> ended_;  // by stream and actor: the end of the last
};

}  // namespace ringsim
