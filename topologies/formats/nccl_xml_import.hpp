// NCCL's topology XML (NCCL_TOPO_DUMP_FILE writes it, NCCL_TOPO_FILE reads it) as a machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topologies/machines/machine.hpp"

namespace ringsim {

/// What a file may lack.
struct NcclXmlOptions {
  std::optional<std::string> gpu;      ///< the GPUs' model ("V100"), if the file gives no compute capability
  std::optional<Machine> nvlink_from;  ///< a machine with as many GPUs, whose NVLinks and NVSwitch are taken
  std::optional<LinkSpec> nic;         ///< the port of NICs whose speed the file does not tell
  /// A machine that supplies what neither the file nor the options above tell: the GPUs' compute capability, NVLinks
  /// (if it has as many GPUs), the ports of NICs, and PCIe links without a link_speed, which NCCL takes for 8 GT/s.
  std::optional<Machine> like;
};

/// Reads both dialects: full dumps, and the skeletons of clouds (only cpu and pci; devices are counted by class).
///
/// Devices: gpu0.. in the order of `dev`, in a skeleton in that of bus ids (as NVML counts); nic0.. likewise, one per
/// physical NIC: nets of one guid below one switch are one, with the sum of its ports' speeds; an interface without a
/// PCI device is one, however many CPUs list it, and is joined to each of them; pcie0.. and cpu0.. in the order of the
/// file, each CPU with a memory mem0..; one nvswitch0 for all NVSwitches. Device::attributes keep
/// what the file says of each, a NIC's nets as "net0.name"... slot0.. if functions of one PCI device share its link;
/// the two levels of a Broadcom switch are one. Sockets of a host are fully joined. Bandwidths are NCCL's
/// (nccl_rules.hpp): what NCCL takes links to carry, not their line rates. Latencies and memories are assumed. On Intel
/// GPU peers do not reach across sockets, and what they send through a CPU costs 6/5.
///
/// An <nvlink> leads where its `tclass` says, as NCCL takes it: to the GPU that `target` names, to the GPU's CPU, or to
/// the NVSwitches. Entries to NVSwitches that name GPUs and are together more links than a GPU of the generation has
/// are the same links as each peer sees them: they count once.
///
/// What is odd, unreadable or not understood is a warning that says what is taken instead. Throws InputError at
/// FILE:LINE: not XML; another kind of file; no GPU; an element where NCCL does not read it; a link to a bus id that
/// two devices have; devices below a device; parts of a GPU; several hosts that NVLink does not join (what a CPU or a
/// switch of one host reaches is not reachable from another but through NICs); options that contradict the file.
///
/// Several hosts whose GPUs all have NVLinks to NVSwitches outside their hosts are the trays of a rack, and one
/// machine: NCCL fuses their files (src/graph/topo.cc, ncclTopoGetSystem, MNNVL). Devices come host by host.
Machine import_nccl_xml(std::string_view text, const std::string& file, const NcclXmlOptions& options = {});

}  // namespace ringsim
