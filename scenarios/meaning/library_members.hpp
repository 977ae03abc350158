// Which GPUs a library's collective is of, on which nodes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

/// The GPUs of each node by their local names, and on how many nodes.
struct Members {
  std::vector<std::string> gpus;
  int nodes = 1;
};

/// `pointer`: where the ranks are named. Refuses names that are no GPU's, and nodes with other GPUs than the first.
Members members_of(const nlohmann::json& collective, const Cluster& cluster, const std::string& pointer,
                   const Blame& blame);

/// The only kind of node of a cluster; refuses other topologies.
const Cluster& one_kind(const TopologySpec& topology, const Blame& blame);

/// The rate of the fabric's cables; 0 without a fabric.
Bandwidth cables_of(const Cluster& cluster);

/// The collective of its first group, with the names of that group as its ranks: what the library decides for it, all
/// groups do. So they must lie alike.
nlohmann::json of_first_group(const nlohmann::json& collective, const std::string& pointer,
                              const TopologySpec& topology, const Blame& blame);

/// GPUs of a node that take part, in whichever group.
int gpus_called(const nlohmann::json& collective, const Cluster& cluster);

/// GPUs that one thread calls, of the `gpus` of a node: threads of a node call equally many.
int in_turn_of(const nlohmann::json& harness, int gpus, const Blame& blame);

}  // namespace ringsim::scenarios
