// Messages that a device posts one after another, as the proxy thread of a communication library does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/network/network.hpp"
#include "sim/run/transfers.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A first-come server for each device whose messages take time to post, by DeviceRates::post or Protocol::post: a
/// message to another host starts when its post is over, and the next one is posted then. That is LogGP's overhead of a
/// sender, with a gap of the same length (Alexandrov et al., SPAA 1995).
///
/// Assumptions: a message is posted once, whole, or once for each part that starts when slots are given back. Of those
/// that are ready at one instant the one of the lower lane goes first, then that to the next rank, as NCCL's sends to
/// all peers have it (NVIDIA/nccl src/init.cc, p2pSchedule), then that of the lower channel. What links that go down
/// cut off is posted again. Background messages are not posted.
template <class Run>
class Posts {
 public:
  explicit Posts(Run& run) : run_(run), free_(run.topology_.n_nodes()) {}

  /// True if the transfer has to be posted first; then it goes on when that is over.
  bool take(std::uint32_t index) {
    const Transfer& transfer = run_.transfers_[index];
    if (transfer.whole >= first_background && transfer.whole != no_transfer) return false;
    const Actor from = run_.lanes_.actor(transfer.sender), to = run_.receiver_of(transfer);
    const NodeId device = run_.node_of(from);
    const DeviceLinks* rates = run_.topology_.device(device);
    const Picoseconds post =
        std::max(rates == nullptr ? Picoseconds{0} : rates->post, run_.protocol(transfer.channel).post);
    if (post.count() == 0 || !run_.topology_.joins_hosts(device, run_.node_of(to))) return false;
    ready_.push_back({transfer.sender, wrap(to - from, run_.schedule_.actors), transfer.channel, index, device, post});
    return true;
  }

  /// What is ready now takes its turn, if nothing more happens at this instant.
  void take_turns() {
    if (ready_.empty() || run_.engine_.expects_more_now()) return;
    const auto turn = [](const Ready& it) { return std::tuple(it.lane, it.distance, it.channel); };
    std::stable_sort(ready_.begin(), ready_.end(), [&](const Ready& a, const Ready& b) { return turn(a) < turn(b); });
    for (const Ready& it : std::exchange(ready_, {})) {
      SimTime& free = free_[it.device.value];
      free = SimTime{add(std::max(free, run_.engine_.now()).time_since_epoch(), it.post)};
      run_.engine_.at(free, {Event::Kind::posted, it.index, 0});
    }
  }

  /// The transfer starts to move now.
  void moves(std::uint32_t index) {
    if (since_.size() <= index) since_.resize(index + 1);
    since_[index] = run_.engine_.now();
  }
  SimTime since(std::uint32_t index) const { return since_[index]; }

 private:
  struct Ready {
    LaneNumber lane = 0;
    Actor distance = 0;  // from the sender to the receiver
    std::uint16_t channel = 0;
    std::uint32_t index = 0;
    NodeId device;
    Picoseconds post{0};
  };

  Run& run_;
  std::vector<SimTime> free_;   // [node] when its next post can begin
  std::vector<Ready> ready_;    // at this instant
  std::vector<SimTime> since_;  // [transfer]
};

}  // namespace ringsim
