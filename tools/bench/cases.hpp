// What is measured: named cases, from a topology to a proved schedule, that every tool of this folder runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/run/run.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim::bench {

struct Case {
  std::string name;  ///< "ring/1024": what it is and how many ranks, then what is particular
  std::function<Topology()> topology;
  std::function<Schedule()> schedule;
  RunOptions options;
  bool shuffled = false;  ///< ranks are dealt out to the topology's in a random order (always the same one)
  bool slow = false;      ///< takes more than some seconds: only if it is asked for by name, or with all
};

const std::vector<Case>& cases();
/// Throws InputError naming the nearest thing to do: --list.
const Case& find_case(const std::string& name);

/// A case made ready: what comes before the run.
struct Prepared {
  Topology topology;
  CheckedSchedule checked;
  RunOptions options;
  double build_seconds = 0, proof_seconds = 0;
};
Prepared prepare(const Case& chosen);

/// Packets from end to end, not link by link: of every message of the schedule its bytes over the MTU, rounded up.
std::int64_t packets_of(const Schedule& schedule, Bytes mtu);

/// The most memory that this process has ever had. Not getrusage's, which remembers what forked it.
double peak_mib();

/// Processor time of this process: on an idle machine the time that passes, on a busy one less.
double cpu_seconds();

}  // namespace ringsim::bench
