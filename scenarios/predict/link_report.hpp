// What the links of a run did, by their names.
#pragma once

#include <optional>
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

}  // namespace ringsim
