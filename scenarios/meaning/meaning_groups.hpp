// Several groups of GPUs with a collective each: `collective.groups` and `collective.split`.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenarios/decoder/blame.hpp"

namespace ringsim::scenarios {

/// The names of all groups' GPUs, one group after the other; empty if there are none.
std::vector<std::string> names_in_groups(const nlohmann::json& collective);

/// [group][rank of the group] its place among the ranks of the collective; empty if it has no groups. `ranks`: how
/// many GPUs take part. Throws InputError at `pointer`, the collective's, where groups differ in size, or a GPU is in
/// two of them.
std::vector<std::vector<int>> groups_of(const nlohmann::json& collective, std::size_t ranks, const std::string& pointer,
                                        const Blame& blame);

}  // namespace ringsim::scenarios
