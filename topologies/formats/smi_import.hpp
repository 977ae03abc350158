// The matrix that `nvidia-smi topo -m` prints, as a coarse machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topologies/machines/machine.hpp"

namespace ringsim {

/// The matrix ranks distances and tells no speeds: these are the first link of each kind of `like`, and of NICs `nic`,
/// if it is given.
///
/// Devices: gpu0.., nic0.. as the columns stand; PIX to each other: one PCIe switch; PXB: their switches below a
/// further one; PHB: one host bridge; NODE: host bridges of one CPU (the old word SOC: SYS). A device that is nearer to
/// nothing than PHB hangs on its host bridge directly. Each CPU, which is a NUMA domain, has a memory: its share of
/// what a socket of `like` has (Host::domains). CPUs are fully joined. NV# hides how near two GPUs are on PCIe: if
/// NICs do not tell, GPUs of one CPU affinity share the CPU, each on a host bridge of its own. NV#: # of `like`'s
/// NVLinks, directly; but if all pairs of a group of GPUs have the same # and that would take more links than a GPU
/// of `like` has, each GPU has # to an NVSwitch.
///
/// Throws InputError at FILE:LINE: no matrix; rows that do not fit the header; a word that nvidia-smi does not print;
/// cells that contradict each other, naming row and column; links of a kind that `like` lacks.
Machine import_nvidia_smi(std::string_view text, const std::string& file, const Machine& like,
                          const std::optional<LinkSpec>& nic = std::nullopt);

}  // namespace ringsim
