// What the links of a run did, by their names.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "sim/run/timeline.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

BottleneckReport bottleneck_report(const Topology& topology, const Bottleneck& found, Picoseconds duration);
/// The most bytes that left one host for the fabric; nothing if fewer than two hosts send there.
std::optional<Bytes> most_leaving_a_host(const Topology& topology, const Timeline& timeline);
/// Links that carried data, grouped by their names without numbers; the highest utilization first.
std::vector<LinkGroup> link_groups(const Topology& topology, const Timeline& timeline);

/// Classes of links, other than `own`, that are at least as busy as the busiest link of these classes; the busiest
/// first. The busiest links need not limit the critical path: their transfers may overlap with others. A
/// bandwidth that a fault changes does not count: utilizations are shares of what links could carry without.
std::vector<std::string> classes_as_busy(const Prediction& prediction, const std::set<std::string>& own);
/// "nic and pcie links are at least as busy": classes_as_busy() in words. Empty if there are none.
std::string as_busy_text(const std::vector<std::string>& classes);

}  // namespace ringsim
