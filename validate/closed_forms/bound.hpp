// How fast a scenario's collective can be on its machine, with any algorithm.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/topology/topology.hpp"
#include "topologies/bound/fraction.hpp"
#include "topologies/bound/limits.hpp"
#include "topologies/bound/path_use.hpp"
#include "topologies/bound/wires.hpp"

namespace ringsim {

/// A collective as bounds see it: what must come out, not how.
struct BoundedCollective {
  CollectiveOp op = CollectiveOp::all_reduce;
  Actor root = 0;
  bool both_ways = false;  ///< pairs
  /// Helpers (servers, switches) add up too. Then an all-reduce is bound by what each rank must send and receive; all
  /// other bounds hold as they are, because they count information.
  bool helpers_add = false;
  bool point_to_point = false;  ///< its messages take the ways of NCCL's sends and receives: Transport::point_to_point
  auto operator<=>(const BoundedCollective&) const = default;
};

/// No run is faster than this, as far as bandwidth goes; latency has a floor of its own.
struct Bound {
  /// Seconds for 1 GB of what `is_block` says. "3/65": blocks of 65 GB take 3 seconds.
  Fraction inverse_rate;
  bool is_block = false;    ///< of one rank's block (bytes / ranks, rounded down); else of the whole message
  Picoseconds time{0};      ///< for the scenario's bytes, rounded down
  double algbw = 0;         ///< GB/s; 0 if nothing has to move
  bool is_optimum = false;  ///< trees reach it; false: it is a lower bound, and the optimum may be slower
  std::string why;          ///< the bottleneck in words
  std::vector<LinkId> cut;  ///< its links, in the order of the topology
  /// MachineBounds::latency_floor(), where Bounds says of whose collective everybody waits for everybody, or a root.
  std::optional<Picoseconds> latency_floor;
};

/// Which links a bound counts.
enum class Counted : std::uint8_t {
  /// Within hosts those that a path between two ranks (or helpers) crosses under the scenario's transport: with NVLink,
  /// PCIe does not count, nor do the NICs of a single node. Outside of hosts all, used by the routing or not: data
  /// could take any way, even a longer one.
  any_way,
  /// Only those that a path crosses under the scenario's transport and routing.
  routed,
  all,
};

/// A machine, the ranks on it, and the links that their messages can take.
///
/// Paths of point-to-point operations are others with PXN: BoundedCollective says which. A half-duplex cable carries
/// both directions together. Data that rests in host memory crosses host memory and the PCIe uplinks once more
/// (HostLinks). A fault counts if it holds for the whole run. Left out: rates of devices and protocols, what a
/// library's kernels reach of a link, background messages, other collectives.
class MachineBounds {
 public:
  /// `setup`: of the scenario. Throws InputError for faults that its topology does not have.
  MachineBounds(const Scenario& scenario, const Setup& setup, std::vector<NodeId> ranks, std::vector<NodeId> helpers,
                Counted counted = Counted::any_way);

  const Topology& topology() const { return topology_; }
  const std::vector<Bandwidth>& rates() const { return rates_; }  ///< [link] that hold in the run
  /// The wires of the scenario's own collective.
  const Wires& wires() const { return ways_of(transport_.point_to_point).wires; }
  const PathUse& use() const { return ways_of(transport_.point_to_point).use; }
  /// Links that count and that no path of the scenario's own collective crosses: its routing leaves them unused.
  const std::vector<LinkId>& unused() const { return ways_of(transport_.point_to_point).unused; }

  /// Nothing for a barrier, which moves no bytes. Kept, so that asking again costs nothing. Throws InputError if some
  /// ranks cannot be reached.
  std::optional<Bound> of(const BoundedCollective& what, Bytes bytes);
  /// The least time for a signal to get where it must: from the root, to the root, or between any two ranks (if there
  /// are more than 512, from some of them). Kept, likewise.
  Picoseconds latency_floor(const BoundedCollective& what);

 private:
  /// What messages can use.
  struct Ways {
    PathUse use;  // whose `links` are those that count
    std::vector<LinkId> unused;
    Wires wires;
  };
  const Ways& ways_of(bool point_to_point) const { return *ways_[point_to_point]; }
  void find_ways(bool point_to_point);
  void count_any_way(Ways& ways) const;
  Bound make(const BoundedCollective& what) const;
  Limit limit(const BoundedCollective& what) const;
  void tighten_by_host_links(const BoundedCollective& what, Bound& bound) const;

  std::string file_;  // what errors call the scenario
  Topology topology_;
  std::vector<NodeId> ranks_, devices_;  // devices_: the ranks and the helpers
  Transport transport_;
  Routing routing_;
  std::vector<Bandwidth> rates_;
  Counted counted_;
  std::optional<Ways> ways_[2];               // [point to point]; the scenario's own, others once asked for
  std::map<BoundedCollective, Bound> known_;  // of no bytes
  std::map<BoundedCollective, Picoseconds> known_floors_;
};

/// The bound of the scenario's own collective, if only its ranks add up. Throws InputError for a barrier, and what
/// MachineBounds throws.
Bound own_bound(const Scenario& scenario);

/// The bounds of the points of a sweep. Points with equal topology, ranks, transport, routing and faults share the
/// work. May be used by several threads.
class Bounds {
 public:
  /// One per collective of the scenario, as if it ran alone. Nothing for a barrier, and with the network model `ideal`,
  /// whose inner links have room for all. Throws what MachineBounds throws.
  std::vector<std::optional<Bound>> of(const Scenario& scenario, const Setup& setup);
  std::size_t n_machines() const { return machines_.size(); }  ///< that were worked out

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<MachineBounds>> machines_;
};

}  // namespace ringsim
