// Training steps as scenarios, in one line.
#pragma once

#include <string>

#include "validate/results/result.hpp"

namespace ringsim::test {

/// ResNet-50, 32 images, whose step takes 97 ms: the key `workload` of a training.
inline constexpr const char* resnet = R"("workload": {"model": "resnet50", "batch": 32, "compute": {"step": "97 ms"}})";

/// A scenario on ports of 12.5 GB/s, where a path takes 2 us. `training`: an object; `more`: keys next to it, each
/// after a comma.
std::string star_scenario(int ranks, const std::string& training, const std::string& more = "");
/// Of its one point.
ringsim::Result result_of(const std::string& scenario);
/// With which words a scenario is refused, after its place; or "accepted".
std::string complaint_of(const std::string& scenario);
/// ResNet-50 on star_scenario(). `more`: keys of the training.
ringsim::Result resnet_by(const std::string& regime, int ranks, const std::string& more = "");

}  // namespace ringsim::test
