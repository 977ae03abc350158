// A bottleneck in words.
#pragma once

#include <string>

#include "sim/topology/topology.hpp"
#include "topologies/bound/limits.hpp"
#include "topologies/bound/wires.hpp"

namespace ringsim {

/// "node0.nic3 -> leaf1" as "node*.nic* -> leaf*": like links have one such name.
std::string without_numbers(const std::string& name);

/// "56 of the 64 blocks must enter node1 over leaf* -> node1.nic* (8 links, 400 GB/s)". `amount`: what must cross, in
/// words: "56 of the 64 blocks". For several sets: "node0, node1 and 6 more must send 14 times the message in all,
/// over ...". `rates`: [link], as for wires_of().
std::string cut_in_words(const Topology& topology, const Wires& wires, const Limit& limit, const std::string& amount,
                         const std::vector<Bandwidth>& rates = {});

/// The names of like links with their number and what they carry together: "leaf* -> node1.nic* (8 links, 400 GB/s)".
std::string links_in_words(const Topology& topology, const std::vector<LinkId>& links,
                           const std::vector<Bandwidth>& rates = {});

}  // namespace ringsim
