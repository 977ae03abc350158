// The communicators of a plan while it is played: joined, connected, waited for; and given up if a peer or a GPU
// does not come back.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "validate/replay/gpu/gpu_replay.hpp"

namespace ringsim::replay::gpu {

/// With a plan that has no communicators it waits for the GPU alone. What it throws is said at replay_part(). When it
/// goes, communicators are left; unless depart() was called before, they are aborted first.
class Peers {
 public:
  /// All must outlive it; `communicators` may be null.
  Peers(Device& device, Communicators* communicators, const GpuOptions& options);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  ~Peers();

  /// Joins all that the plan has, with a send and a receive between any two that will have one: connections are made at
  /// the first use, which waits for the peer; so they are made in one group a communicator before anything else.
  void join(const Plan& plan, const Places& places);
  /// All runs are done: whoever leaves now disturbs nobody.
  void depart() { departed_ = true; }

  /// Polls until all that was issued before `event` is done.
  void settle(Event event);

  void begin_group();
  /// Polls until it is under way.
  void end_group();
  Result send(const Command& command, Actor actor, Stream stream, Memory from);
  Result receive(const Command& command, Actor actor, Stream stream, Memory to);
  Result collective(const Command& command, Actor actor, Stream stream, CollectiveOp op, Memory to, Memory from);

 private:
  struct Contact {
    Stream stream{};
    Event event{};
    Memory memory;
  };

  void finish(std::string_view doing);
  void abort() noexcept;
  Contact contact_of(int gpu);
  void connect(const Plan& plan, std::uint32_t communicator);
  Memory or_nothing(Memory memory, Actor actor) const;
  Memory or_one(Memory memory, Actor actor, int which) const;
  End end(std::uint32_t communicator, Actor actor) const;

  Device& device_;
  Communicators* communicators_;
  const GpuOptions& options_;
  bool departed_ = false, aborted_ = false;
  std::vector<std::vector<std::optional<End>>> ends_;  // [communicator][actor], of mine
  std::vector<std::optional<Contact>> contacts_;       // [actor], of mine
};

}  // namespace ringsim::replay::gpu
