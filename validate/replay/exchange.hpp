// What a replay needs of the outside: messages between actors, a barrier and a clock. One class a backend.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/ids.hpp"

namespace ringsim::replay {

/// Messages of one connection arrive in the order in which they were sent.
struct Connection {
  Actor from = 0, to = 0;
  std::uint16_t channel = 0;
  auto operator<=>(const Connection&) const = default;
};

/// Names something that was started, until it is done. Chosen by who starts it.
using Ticket = std::uint32_t;

/// Real time, from an origin that the backend chooses.
using Moment = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

/// Another process of the replay is gone, or wants no more: not what ended it, but what that led to.
class PeerLost : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// A wait reached its time-out: the process itself may only have waited for another that hangs.
class Late : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// How one actor starts what takes time. What is started on a connection is done in order; else in any order. None of
/// these waits.
class Messages {
 public:
  virtual ~Messages() = default;
  /// `data` is neither changed nor gone before the ticket is done; done is when the actor may change it, whether or not
  /// it has arrived.
  virtual void start_send(const Connection& connection, std::span<const float> data, Ticket ticket) = 0;
  /// Done when all of `data` has come in. A message of another length is an error of the backend's.
  virtual void start_receive(const Connection& connection, std::span<float> data, Ticket ticket) = 0;
  /// Done when this time has passed.
  virtual void start_compute(std::chrono::nanoseconds time, Ticket ticket) = 0;
};

/// One actor's view of a backend.
class Exchange : public Messages {
 public:
  /// Waits until something that was started is done, and appends it; throws EnvironmentError if a peer is lost or
  /// nothing is done in time, Interrupted if the user stops it.
  virtual void wait_some(std::vector<Ticket>& done) = 0;
  /// Waits for all actors; returns the moment at which the run that follows begins, which has come.
  virtual Moment barrier() = 0;
  virtual Moment now() const = 0;
};

}  // namespace ringsim::replay
