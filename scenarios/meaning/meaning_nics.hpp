// What NCCL_IB_HCA of `library.env` means: NICs that are cabled, and not used.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scenarios/decoder/blame.hpp"
#include "topologies/catalog.hpp"

namespace ringsim::scenarios {

/// Marks the NICs that the library does not use (Machine::Device::idle). Requires the key `library`. Refuses a list
/// that leaves several nodes without a NIC, warns of one that changes nothing.
void select_nics(const nlohmann::json& canonical, TopologySpec& topology, const Blame& blame,
                 std::vector<std::string>& warnings);

}  // namespace ringsim::scenarios
