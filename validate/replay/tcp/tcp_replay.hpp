// Schedules carried out over TCP: a process an actor, on this machine or on several.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "validate/replay/replay.hpp"
#include "validate/replay/tcp/hosts.hpp"
#include "validate/replay/tcp/secret.hpp"
#include "validate/replay/tcp/tcp_options.hpp"

namespace ringsim::replay {

/// One collective, or a program; several run at the same time, and begin together.
struct TcpJob {
  std::string name;  ///< for errors; empty if there is but one
  const Schedule* schedule = nullptr;
  const ReplayProgram* program = nullptr;  ///< of which it is the schedule; nullptr: of a collective
};

/// Processes are numbered through all jobs: the actors of the first, then those of the second.
struct TcpReplay {
  std::vector<TcpJob> jobs;
  Repeats repeats;
  TcpOptions options;
  /// What tells this replay from others: all processes must say the same. No secret.
  std::string key;
};
int n_processes(const TcpReplay& replay);

/// The address and network namespace of a process on this machine.
struct TcpPlace {
  std::string address = "127.0.0.1";  ///< of its sockets
  std::string net_namespace;          ///< a path such as /run/netns/a; empty: this one
};

/// What happens besides: called by the process that leads, which waits for it.
struct TcpMeanwhile {
  struct At {
    std::chrono::nanoseconds time;  ///< from the begin of each run
    std::function<void()> act;
  };
  std::vector<At> during;              ///< in order of time
  std::function<void()> between = {};  ///< before each run, when all stand still; may be empty
};

struct TcpOutcome {
  std::vector<Measured> jobs;
  std::vector<std::string> notes;  ///< options that could not be met, in words
};

/// All processes are children of this one, and are gone when it returns or throws; they ignore Ctrl-C and die with
/// their parent. All runs begin at one moment of the machine's clock. `places`: [process]; empty: loopback. They share
/// a secret that is drawn for this replay.
///
/// Throws EnvironmentError if a process is lost, the time-out passes, or no socket can be made; Interrupted.
/// The calling process must have no other threads.
TcpOutcome replay_here(const TcpReplay& replay, const std::vector<TcpPlace>& places = {},
                       const TcpMeanwhile& meanwhile = {});

/// Process 0 of several machines. A run begins when a process hears of it, so times are right to within half a round
/// trip. Strangers that come to its port are turned away, and counted in the notes. Throws as replay_here(), and as
/// own_address().
TcpOutcome lead_replay(const TcpReplay& replay, const TcpHosts& hosts, const Secret& secret);
/// One of the others; it waits for process 0, if need be, and returns when all is done. It believes nobody who does not
/// prove to have the secret. Throws the same.
void follow_replay(const TcpReplay& replay, const TcpHosts& hosts, int process, const Secret& secret);

}  // namespace ringsim::replay
