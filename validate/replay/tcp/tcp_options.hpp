// How sockets of a replay are made, and how long they are waited for.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

namespace ringsim::replay {

struct TcpOptions {
  /// The most that joining, connecting, or a run with the check of its numbers may take: then it ends with
  /// EnvironmentError.
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  /// SO_RCVBUF: bounds what is queued on the way, so that acknowledgments do not wait behind megabytes of data. Halved
  /// the spread of times in namespaces of 200 Mb/s. A path longer than this many bytes (rate times round trip) needs
  /// more. 0: the system's own, which grows.
  int receive_buffer = 262144;
  /// TCP_CONGESTION: some systems' default (bbr) paces by what it measures, and takes 5 % more on equal links. Empty:
  /// the system's own.
  std::string congestion = "cubic";
  int priority = 0;  ///< as nice(1); less than 0 needs root
  /// Asked ten times per second; true ends the replay with Interrupted.
  const std::atomic<bool>* stop = nullptr;
};

}  // namespace ringsim::replay
