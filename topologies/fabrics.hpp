// What add_fabric() calls: one function a kind of fabric, each in the .cpp of its name.
#pragma once

#include <span>

#include "topologies/fabric.hpp"

namespace ringsim {

void add(const StarFabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder);

}  // namespace ringsim
