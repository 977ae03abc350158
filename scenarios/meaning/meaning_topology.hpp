// What the canonical form of a topology means.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/files.hpp"
#include "topologies/catalog.hpp"

namespace ringsim::scenarios {

/// Reads the files that it names. Throws InputError at a pointer below /topology, or in the words of such a file.
TopologySpec topology_of(const nlohmann::json& topology, const Blame& blame, const Files& files);

/// How many gpus there are; what the topology itself refuses is put in the scenario's words.
std::size_t gpus_of(const TopologySpec& topology, const Blame& blame);

}  // namespace ringsim::scenarios
