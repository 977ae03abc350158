// Why links with other figures change nothing in a run.
#pragma once

#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim {

/// Compares the links of two scenarios whose runs take the same time, or nearly: no link differs, those that differ
/// carry nothing, or something else sets the time. A group of like links with more of them, or fewer, differs.
/// `before`, `after`: their predictions; the first one has an explanation. `of_topology`: the change is one of the
/// topology's keys, so that links are expected to change. Empty if the topologies have other hosts, only some of like
/// links differ ("node0.nic0 -> leaf0" of "node*.nic* -> leaf*"), or the reason is not known. Throws what topology_of()
/// throws.
std::string why_links_are_idle(const Scenario& scenario, const Prediction& before, const Scenario& changed,
                               const Prediction& after, bool of_topology);

}  // namespace ringsim
