// What AMD's RCCL takes a machine to be: eight GPUs of gfx942 in a full mesh of xGMI, and the rings that it knows for
// them.
//
// A description of its rules, with its constants as facts. Source: ROCm/rccl 0cbce2a7571c (2.21.5, ROCm 6.3):
// src/graph/rome_models.cc (rings of known machines), src/graph/search.cc and src/graph/topo.h (speeds),
// src/graph/connect.cc and src/init.cc (channels).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/formats/nccl_graph.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/nccl/nccl_tuner.hpp"

namespace ringsim::rccl {

/// The release whose rules are here. Its own number is that of the NCCL that it is made from.
inline constexpr std::string_view modeled_version = "2.21.5";

/// Throws InputError (`where` empty) for any other version, with what to do.
void require_modeled(const std::string& version);

/// GPUs of a machine that RCCL knows.
inline constexpr int gpus_of_mesh = 8;

/// A machine as RCCL sees it.
struct KnownMachine {
  /// As NCCL's tuner has a machine: `nvlink` stands for xGMI, `sm` is 0. Rings and trees have all channels that run,
  /// each with its part of the 336 GB/s that RCCL counts for the seven links of a GPU (GFX94X_XGMI_WIDTH; the speed
  /// that parseGraph() gives to known rings, also between nodes).
  nccl::TunerMachine tuner;
  nccl::SearchGraph rings;  ///< each once; channel k takes ring k modulo their number
  nccl::SearchGraph trees;  ///< the same orders, of which every node's begins with the root of its chain
  Picoseconds link{0};      ///< latency of an xGMI link, the longest of them
};

/// `gpus`: those of each node that take part. `nic`: the rate of the cables; not looked at on one node.
///
/// One node: 14 rings (model 79), four channels each. Several, an even number of them: 8 rings (model 81), eight
/// channels each, that enter and leave each node by the NICs of their first and last GPU; every second node is crossed
/// backwards, so that a NIC sends to the NIC of the same GPU there.
///
/// Assumption: GPUs and NICs have RCCL's numbers in the order of the machine's file. RCCL maps them by their NUMA node
/// and distance, which on a mesh of equal links changes no time.
///
/// Throws InputError (`where` empty), with what to do, for what is not modeled: GPUs of NVIDIA; others of AMD than
/// gfx942; fewer than eight, or eight that are not joined each to each by one link; not two CPUs; an odd number of
/// nodes above one, whose last two have other rings; other than eight NICs, one for each GPU.
KnownMachine known_machine(const Machine& machine, const std::vector<std::string>& gpus, int nodes, Bandwidth nic);

}  // namespace ringsim::rccl
