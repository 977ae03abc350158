// A machine as NCCL's topology XML, which NCCL reads where NCCL_TOPO_FILE says.
#pragma once

#include <string>

#include "topologies/machines/machine.hpp"

namespace ringsim {

/// Works for any machine. What Device::attributes hold is written as it is; the rest is made up, consistently: bus ids
/// in the order of the devices (all of them, unless each has one of its own), classes, CPUs whose inter-socket
/// bandwidth by NCCL is nearest, the generation and width of PCIe links whose bandwidth by NCCL is nearest, "sm" by
/// PCIe generation. import_nccl_xml() of it gives the same devices by kind and order, the same PCIe tree, counts of
/// links between GPUs and to NVSwitches, C2C, and the NICs' speed (in whole Mb/s) and latency.
///
/// What the format cannot hold: latencies but a NIC's; bandwidths that differ from NCCL's constants; half-duplex links;
/// memories (the importer gives each CPU one); host bridges (what hangs below one is written below its CPU); which
/// sockets are joined (all are); several NVSwitches (they become one); the names of devices; the sum of a NIC's ports
/// if it is not that of its nets. A GPU or NIC without a PCIe link of its own is written below the CPU that it is
/// joined to (else the first), a GPU at x16; a machine without a CPU gets one. A slot is in the bus ids of its
/// functions; what it is wider than they are is lost.
std::string to_nccl_xml(const Machine& machine);

}  // namespace ringsim
