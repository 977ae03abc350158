// Max-min fair sharing as the textbook has it: slow, short, and worked out from nothing after every event.
#pragma once

#include <vector>

#include "sim/network/network.hpp"
#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim::naive {

struct Flow {
  SimTime start{};
  Leg leg;
  Bytes size;
  bool first = true, last = true;  ///< whether the leg is the first, the last of its path
};

/// Rate of each flow, bytes/s, when all of these move at once: progressive filling (Bertsekas & Gallager, Data
/// Networks, 2nd ed., 6.5.2). Raise all rates alike until a link is full; freeze what crosses it; go on.
/// `bandwidths`: [resource]; empty: the topology's.
std::vector<long double> rates(const Topology& topology, NetworkModel model, const std::vector<Flow>& flows,
                               const std::vector<Bandwidth>& bandwidths = {});

struct Change {  ///< of a link's bandwidth
  SimTime at{};
  ResourceId resource;
  Bandwidth bandwidth;
};
/// What the resources have at that time, [resource]. `changes` in order of time.
std::vector<Bandwidth> bandwidths_at(const Topology& topology, const std::vector<Change>& changes, SimTime when);

struct Result {
  std::vector<SimTime> finish;  ///< [flow] when its last byte has left
  int changes = 0;              ///< instants at which some flow came or went, or a link changed
};

/// Moves the flows one after another event; a flow ends at a whole picosecond, rounded up.
Result simulate(const Topology& topology, NetworkModel model, const std::vector<Flow>& flows,
                const std::vector<Change>& changes = {});

/// True if each flow has a full link (or a cap of its own) on which no flow is faster: what max-min fair means.
bool each_has_a_bottleneck(const Topology& topology, NetworkModel model, const std::vector<Flow>& flows,
                           const std::vector<double>& rates, const std::vector<Bandwidth>& bandwidths = {});

}  // namespace ringsim::naive
