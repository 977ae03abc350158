// Messages that a device posts one after another, as the proxy thread of a communication library does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/base/units.hpp"
#include "sim/network/network.hpp"
#include "sim/schedule/lane_states.hpp"

namespace ringsim {

/// A first-come server for each device whose messages take time to post, by DeviceRates::post or Protocol::post: a
/// message to another host starts when its post is over, and the next one is posted then. That is LogGP's overhead of a
/// sender, with a gap of the same length (Alexandrov et al., SPAA 1995).
///
/// Assumptions: a message is posted once, whole, or once for each part that starts when slots are given back. Of those
/// that are ready at one instant the one of the lower lane goes first, then that to the next rank, as NCCL's sends to
/// all peers have it (NVIDIA/nccl src/init.cc, p2pSchedule), then that of the lower channel. What links that go down
/// cut off is posted again. Background messages are not posted.
class Posts {
 public:
  /// A transfer that is ready to be posted; `distance`: from its sender to its receiver, in ranks.
  struct Ready {
    LaneNumber lane = 0;
    Actor distance = 0;
    std::uint16_t channel = 0;
    std::uint32_t transfer = 0;
    NodeId device;
    Picoseconds post{0};
  };

  Posts(std::size_t n_nodes, Engine<Event>& engine) : engine_(engine), free_(n_nodes) {}

  /// The event `posted` comes when it is over.
  void add(const Ready& ready) { ready_.push_back(ready); }

  /// What is ready now takes its turn, if nothing more happens at this instant.
  void take_turns() {
    if (ready_.empty() || engine_.expects_more_now()) return;
    const auto turn = [](const Ready& it) { return std::tuple(it.lane, it.distance, it.channel); };
    std::stable_sort(ready_.begin(), ready_.end(), [&](const Ready& a, const Ready& b) { return turn(a) < turn(b); });
    for (const Ready& it : std::exchange(ready_, {})) {
      SimTime& free = free_[it.device.value];
      free = SimTime{ringsim::add(std::max(free, engine_.now()).time_since_epoch(), it.post)};
      engine_.at(free, {Event::Kind::posted, it.transfer, 0});
    }
  }

  /// The transfer starts to move now.
  void moves(std::uint32_t transfer) {
    if (since_.size() <= transfer) since_.resize(transfer + 1);
    since_[transfer] = engine_.now();
  }
  SimTime since(std::uint32_t transfer) const { return since_[transfer]; }

 private:
  Engine<Event>& engine_;
  std::vector<SimTime> free_;   // [node] when its next post can begin
  std::vector<Ready> ready_;    // at this instant
  std::vector<SimTime> since_;  // [transfer]
};

}  // namespace ringsim
