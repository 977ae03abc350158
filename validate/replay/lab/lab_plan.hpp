// A network of namespaces that is shaped as a topology is: what to say to `ip` and `tc` to have it. Nothing is done
// here.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/topology/topology.hpp"

namespace ringsim::replay {

/// A line for `ip -batch`, for `tc -batch`, or for a shell.
struct LabCommand {
  enum class Program { ip, tc, sh } program = Program::ip;
  std::string net_namespace;  ///< in which it is done; empty: the machine's own
  std::string text;
  bool operator==(const LabCommand&) const = default;
};

struct LabOptions {
  /// Begins every namespace's name; no other namespace of the machine may begin with it.
  std::string prefix = "ringsim-";
  /// The MTU of all links. Large frames cost the machine less: at 1500 a rank takes ten times the processor time.
  int mtu = 9000;
  /// Every port takes turns between the pairs that use it, as model `fair` has it: one htb class per pair. False: a
  /// port is one queue (tbf), and a process that sends more gets more.
  bool fair_ports = true;
  int cpus = 1;  ///< of the machine: each of them may take packets, in their order (RPS)
};

/// Which process sends to which, by number.
using LabPairs = std::vector<std::pair<int, int>>;

struct LabPlan {
  std::vector<std::string> namespaces;         ///< all of them
  std::vector<LabCommand> up;                  ///< in this order
  std::vector<std::string> process_namespace;  ///< [process]
  std::vector<std::string> process_address;    ///< [process] one of its own, also if two are at one node
};

/// What tc must be told for payload to reach `bandwidth`, in bit/s. It counts frames of `mtu` + 14 bytes, in which mtu
/// - 52 are payload (IPv4 20, TCP 20, its time stamps 12; the frame's check sequence does not count).
std::int64_t shaped_rate(Bandwidth bandwidth, int mtu);

/// Each endpoint becomes a namespace, each switch a bridge; all bridges are in a namespace of their own. Every link is
/// shaped where it begins. `places`: [process] the node at which it runs. `pairs` are those that have classes; what is
/// not of them (acknowledgments, ARP) is neither shaped nor counted.
///
/// Throws InputError (`where` a JSON pointer within the scenario, or empty) if namespaces cannot be that topology:
/// it has to be a star or a tree of switches, with one full-duplex cable for each endpoint.
LabPlan plan_lab(const Topology& topology, const std::vector<NodeId>& places, const LabPairs& pairs,
                 const LabOptions& options);

/// Gives a link of the lab another bandwidth, or its own again.
LabCommand change_link(const Topology& topology, LinkId link, Bandwidth bandwidth, const LabOptions& options);

}  // namespace ringsim::replay
