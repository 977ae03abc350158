#include "sim/run/protocol.hpp"

#include <algorithm>
#include <array>

namespace ringsim {

namespace {

constexpr Picoseconds ns(std::int64_t value) { return Picoseconds{value * 1000}; }

// Slots: LL has 8 lines of 16 B for each of 512 threads and each step, half of it flags. LL128 has 120 elements of 8 B
// for each of 640 threads in all steps. Simple has 4 MiB in all.
constexpr std::int64_t steps = 8;
constexpr std::array all = {
    Protocol{.name = "none", .doc = "the textbook model: both ends wait for each other, and every byte is payload"},
    Protocol{.name = "ll",
             .doc = "NCCL's LL: a flag for every 4 bytes, half the bandwidth, the lowest latency",
             .slots = steps,
             .slot = {512L * 8 * 16},
             .done_when_left = true,
             .wire = 2,
             .payload = 1,
             // NVIDIA/nccl 5067397c2676 src/transport/net.cc, sendProxyConnect: only buffers of other protocols are in
             // the GPU's memory if the connection uses GPUDirect.
             .in_host_memory = true,
             .launch = ns(6600)},
    Protocol{.name = "ll128",
             .doc = "NCCL's LL128: 120 of 128 bytes are payload",
             .slots = steps,
             .slot = {120L * 640 * 8},
             .done_when_left = true,
             .wire = 128,
             .payload = 120,
             .nvlink = ns(1900 - 600),
             .pcie = ns(2500 - 1000),
             .network = ns(4000 - 2700),
             .launch = ns(14000)},
    Protocol{.name = "simple",
             .doc = "NCCL's Simple: every byte is payload, the highest latency",
             .slots = steps,
             .slot = {4L * 1024 * 1024 / steps},
             .done_when_left = true,
             .nvlink = ns(3400 - 600),
             .pcie = ns(5700 - 1000),
             .network = ns(14000 - 2700),
             .launch = ns(8400)},
};

}  // namespace

int Protocol::slots_of(Bytes message) const {
  const std::int64_t filled = message.count / slot.count + (message.count % slot.count > 0 ? 1 : 0);
  return static_cast<int>(std::clamp<std::int64_t>(filled, 1, slots + 1));
}

Picoseconds Protocol::latency(PathType type) const {
  switch (type) {
    case PathType::loc:
    case PathType::dir:
      return Picoseconds{0};
    case PathType::nvl:
    case PathType::nvb:
    case PathType::c2c:
      return nvlink;
    case PathType::pix:
    case PathType::pxb:
    case PathType::p2c:
    case PathType::phb:
    case PathType::sys:
      return pcie;
    case PathType::pxn:
    case PathType::net:
      return network;
  }
  return Picoseconds{0};
}

std::span<const Protocol> protocols() { return all; }

const Protocol& no_protocol() { return all[0]; }

const Protocol* find_protocol(std::string_view name) {
  for (const Protocol& protocol : all)
    if (protocol.name == name) return &protocol;
  return nullptr;
}

}  // namespace ringsim
