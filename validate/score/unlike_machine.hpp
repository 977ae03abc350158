// Is the machine of a scenario the one that was measured?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace ringsim {

/// Compares the machine of a scenario with the one that a file of measured rows names: one sentence if the number of
/// nodes differs, one if the GPUs do. `about`: MeasuredTable::about, of which `nodes` and `gpu` are used. Empty if both
/// agree or cannot be compared: topologies that are not clusters, GPUs of no preset, nodes that are racks, and
/// scenarios that list the ranks that take part. GPUs are compared by model, so A100 PCIe and SXM count as equal.
std::vector<std::string> unlike_machine(const std::map<std::string, std::string>& about, const Scenario& scenario);

/// machine_without() of the scenario's machines: of the first that lacks the GPU.
std::string machine_without(const std::string& gpu, const Scenario& scenario);

}  // namespace ringsim
