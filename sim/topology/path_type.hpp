// How near two devices are, in NCCL's words.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringsim {

/// In NCCL's order, nearest first (src/graph/topo.h of NCCL 2.27); `dir` is not a word of NCCL.
enum class PathType : std::uint8_t {
  loc,  ///< the same device
  nvl,  ///< NVLink or xGMI, directly or through an NVSwitch
  nvb,  ///< NVLink, relayed by another GPU
  c2c,  ///< the chip-to-chip link of a GPU and its CPU
  pix,  ///< at most one PCIe switch
  pxb,  ///< several PCIe switches, no CPU
  p2c,  ///< GPU and NIC: the CPU's chip-to-chip link, then PCIe
  pxn,  ///< GPU and NIC: NVLink to another GPU, which is near the NIC
  phb,  ///< through one CPU's host bridge
  sys,  ///< through the link between CPU sockets
  net,  ///< through NICs, to another host
  dir,  ///< plain links of a free topology (star, ring, mesh, torus, graph)
};

std::string_view to_string(PathType type);  ///< "NVL", "PIX", ...
/// The type of that name, nothing if there is none.
std::optional<PathType> path_type(std::string_view name);

}  // namespace ringsim
