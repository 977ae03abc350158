// How near the devices of a host are, as `nvidia-smi topo -m` prints it: a table to hold a machine against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/topology/topology.hpp"

namespace ringsim {

/// Rows and columns are the host's GPUs, then its NICs, in the order of the topology.
struct SmiMatrix {
  std::vector<std::string> names;               ///< as the topology's nodes: "node0.gpu0", "node0.nic0"
  std::vector<std::vector<std::string>> cells;  ///< [row][column]: see smi_matrix()
  std::vector<std::string> numa;                ///< [row]: the number of the GPU's nearest CPU; empty for a NIC
};

/// X, the device itself; NV#, two GPUs and how many NVLinks join them, or join the row's GPU to their NVSwitches; XGMI,
/// two GPUs that it joins (rocm-smi's word). Over PCIe: PIX, at most one switch; PXB, several; PHB, one host bridge;
/// NODE, two host bridges of one CPU, or SYS if Host::bridges_apart; SYS, two CPUs. `-` if nothing joins them.
/// A CPU is its own host bridge for what is cabled to it directly; a GPU on a C2C link has one for itself.
/// Requires host < topology.hosts().size(). O(devices^2) cells.
SmiMatrix smi_matrix(const Topology& topology, std::uint32_t host);

}  // namespace ringsim
