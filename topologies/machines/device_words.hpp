// What the attributes of devices say: those that something reads, in the words of NCCL's topology XML.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topologies/catalog.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim {

/// The attribute as a whole number from `least` to `most`, digits alone; nothing if it is missing or something else.
std::optional<int> whole_attribute(const Machine::Device& device, const std::string& key, int least, int most);

/// The GPU's compute capability, "sm": 90 of an H100.
std::optional<int> compute_capability(const Machine::Device& gpu);

/// True if the driver of a GPU or a NIC supports GPUDirect RDMA. "gdr" of a GPU, "net0.gdr", "net1.gdr" ... of the
/// ports of a NIC, or "gdr" of it: "0" denies it, also if it is said of one port only.
///
/// Without the attribute it does. NCCL writes it into every dump, and if a file that NCCL reads lacks it, asks the
/// driver (NVIDIA/nccl 5067397c2676 src/graph/topo.cc, ncclTopoGetSystem and ncclTopoPopulateNics: xmlInitAttrInt). The
/// 0 that ncclTopoAddNet takes by default is for NICs that no network of NCCL has, which are not used.
bool has_gpudirect(const Machine::Device& device);

/// Counts the cabled NICs and the GPUs without GPUDirect: "gdr=0 on 2 of 2 GPUs and 1 of 2 NICs"; empty: none.
std::string without_gpudirect(const Machine& machine);
/// True if some machine of a cluster has such devices.
bool denies_gpudirect(const TopologySpec& topology);
/// A warning of it.
std::string what_denied_gpudirect_means(const std::string& denied);

/// What is expected of the value of that attribute, if it is something else: "0 or 1". Empty: the value is right, or
/// nothing reads the attribute.
std::string expected_of_attribute(NodeKind kind, std::string_view key, const std::string& value);

}  // namespace ringsim
