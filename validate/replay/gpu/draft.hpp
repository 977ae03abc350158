// What all ways to plan a schedule share: streams and their events, where things lie in memory, additions in an order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "validate/replay/gpu/plan.hpp"

namespace ringsim::replay::gpu {

/// No event; no stream.
inline constexpr std::uint32_t none = UINT32_MAX;

/// Commands to streams. It records an event where a stream stands only once, and leaves out what waits for nothing new.
/// Of actors that are not of this process it issues nothing: their streams and events are `none`.
class Streams {
 public:
  Streams(int actors, std::span<const Actor> mine);

  std::uint32_t make(Actor actor);
  std::uint32_t n() const { return static_cast<std::uint32_t>(plan_.stream_of.size()); }
  bool is_mine(Actor actor) const { return is_mine_[static_cast<std::size_t>(actor)]; }

  void issue(Command command);
  /// begin_group or end_group, which belong to no stream.
  void bracket(Command::What what) { plan_.commands.push_back({.what = what}); }
  /// The event at which all that was issued to the stream so far is done.
  std::uint32_t record(std::uint32_t stream);
  void wait(std::uint32_t stream, std::uint32_t event);

  /// Without the events that nobody waits for; the others are renumbered.
  Plan finish();

 private:
  Plan plan_;
  std::vector<bool> is_mine_;            // [actor]
  std::vector<std::uint32_t> standing_;  // [stream] the event recorded where it stands; none
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> waited_;  // {stream, of stream} the latest event
};

/// A plan in the making. Stream 0, of the first that is mine, begins: all others wait for it.
class Draft {
 public:
  /// `schedule` must outlive it. `mine`: ascending, one at least.
  Draft(const Schedule& schedule, std::span<const Actor> mine);

  Streams& streams() { return streams_; }
  std::uint32_t make_stream(Actor actor);

  Stretch stretch(Actor actor, const Region& region) const;
  std::int64_t elements(const Region& region) const;
  /// [lane] the offset of its part of the actor's incoming room; a part is as large as the lane's largest step needs.
  const std::vector<std::int64_t>& first_room(Actor actor) const {
    return first_room_[static_cast<std::size_t>(actor)];
  }

  void copy(std::uint32_t on, const Stretch& to, const Stretch& from);
  /// region = base + from. Another stream that adds to the same chunks comes before or after, never at the same time.
  void add(std::uint32_t on, const Region& region, const Stretch& base, const Stretch& from);
  /// A copy, an addition or a computation that the schedule has.
  void alone(std::uint32_t on, Actor actor, const Op& op);

  /// Stream 0 waits for all others.
  Plan finish();

 private:
  void make_rooms(Actor actor);

  const Schedule& schedule_;
  std::vector<Actor> mine_;
  Streams streams_;
  std::uint32_t start_ = none;
  std::vector<std::array<std::int64_t, n_rooms>> elements_;
  std::vector<std::vector<std::int64_t>> first_room_;  // [actor][lane]
  std::vector<std::map<std::pair<Buffer, std::uint32_t>, std::uint32_t>>
      adders_;  // [actor][chunk] the last add's event
};

}  // namespace ringsim::replay::gpu
