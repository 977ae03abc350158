// What devices do with data within themselves, if that takes time: additions, copies, and sending it off.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/base/units.hpp"
#include "sim/network/network.hpp"
#include "sim/run/lane_trails.hpp"
#include "sim/run/represented.hpp"
#include "sim/run/transfers.hpp"
#include "sim/schedule/lane_states.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// Additions and copies of a run whose topology has rates of devices. Each belongs to one operation of a lane, which is
/// done when it is; work of one device shares the device's rate as messages share a link.
///
/// Assumptions: a message that is added is added when all of it is there, at once and whole (NCCL and MPI do so slice
/// by slice: cut messages into chunks); if links of a staged or cut message come and go, its addition waits for the
/// last of them.
class DeviceWork {
 public:
  /// All references must outlive it.
  DeviceWork(const Topology& topology, const Represented& represented, const LaneStates& lanes, Engine<Event>& engine,
             Transfers& transfers, LaneTrails& trails)
      : topology_(topology),
        represented_(represented),
        lanes_(lanes),
        engine_(engine),
        transfers_(transfers),
        trails_(trails) {}

  /// True if it takes time; `kind`: copy or reduce.
  bool takes_time(LaneNumber lane, LinkKind kind) const {
    const DeviceLinks* device = device_of(lane);
    return device != nullptr && work_of(*device, kind).link != no_link;
  }

  /// The work of an operation of the lane begins now; `trail` leads to this moment. Requires takes_time().
  void begin(LaneNumber lane, LinkKind kind, Bytes size, const Trail& trail) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(works_.size()));
      works_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    const DeviceLinks& device = *device_of(lane);
    works_[index] = {.lane = lane, .size = size, .trail = trail};
    works_[index].route =
        transfers_.ways().of_work(lanes_.actor(lane), kind, represented_.simulated(work_of(device, kind)));
    if (device.start.count() > 0)
      engine_.after(device.start, {Event::Kind::device, index, 0});
    else
      started(index);
  }

  /// Its first byte is being worked on.
  void started(std::uint32_t index) {
    Work& work = works_[index];
    work.since = engine_.now();
    if (const Picoseconds start = work.since - work.trail.at; start.count() > 0)
      go_on(work, no_resource, Picoseconds{0}, start);
    Route& way = transfers_.ways()[work.route];
    way.carried += work.size;
    transfers_.network().start(way.first, work.size, piece_of(index, mark));
  }

  /// The recorded paths that lead to works which are not over.
  void add_path_ends(std::vector<PathEnd*>& ends) {
    for (Work& work : works_) ends.push_back(&work.trail.path_end);
  }

  static bool is_work(std::uint64_t piece) { return leg_of(piece) == mark; }
  std::uint32_t route(std::uint64_t piece) const { return works_[transfer_of(piece)].route; }

  /// Its last byte has been worked on: an operation of this lane ends. The lane's trail leads to it, if it is the
  /// step's last.
  LaneNumber done(const Told& told) {
    const std::uint32_t index = transfer_of(told.piece);
    const LaneNumber lane = works_[index].lane;
    if (lanes_.is_last(lane)) {
      go_on(works_[index], told.limiter, engine_.now() - works_[index].since, Picoseconds{0});
      trails_.take(lane, works_[index].trail);
    }
    works_[index].trail.path_end = {};  // of what is over nothing is kept
    free_.push_back(index);
    return lane;
  }

 private:
  static constexpr std::uint32_t mark = UINT32_MAX;  // the leg that no message has
  struct Work {
    LaneNumber lane = 0;
    std::uint32_t route = 0;
    Bytes size;
    SimTime since{};  // its first byte
    Trail trail;      // the critical path up to its begin, then to its first byte
  };

  const DeviceLinks* device_of(LaneNumber lane) const {
    return topology_.device(transfers_.node_of(lanes_.actor(lane)));
  }
  static const DeviceLinks::Work& work_of(const DeviceLinks& device, LinkKind kind) {
    return kind == LinkKind::reduce ? device.reduce : device.copy;
  }

  void go_on(Work& work, ResourceId limiter, Picoseconds busy, Picoseconds start) {
    trails_.go_on(work.trail, work.lane, work.size, {.busy = busy, .latency = start, .limiter = limiter});
  }

  const Topology& topology_;
  const Represented& represented_;
  const LaneStates& lanes_;
  Engine<Event>& engine_;
  Transfers& transfers_;
  LaneTrails& trails_;
  std::vector<Work> works_;
  std::vector<std::uint32_t> free_;
};

}  // namespace ringsim
