// The ways between the devices of a node, as NCCL finds them.
#include <algorithm>
#include <bit>
#include <utility>

#include "sim/base/error.hpp"
#include "topologies/nccl_search/seen_node.hpp"

namespace ringsim::nccl {

namespace {

/// Two parts of a way. A chip-to-chip link and PCIe below the same CPU are P2C.
PathType with_both(PathType one, PathType other) {
  const PathType far = std::max(one, other), near = std::min(one, other);
  return far == PathType::phb && near == PathType::c2c ? PathType::p2c : far;
}

std::uint32_t mirrored(std::uint32_t value, std::uint32_t power_of_two) {
  std::uint32_t out = 0;
  for (std::uint32_t bit = 1, back = power_of_two >> 1; bit < power_of_two; bit <<= 1, back >>= 1)
    if ((value & bit) != 0) out |= back;
  return out;
}

}  // namespace

/// Breadth first from `base`; a device is visited again when a better way to it is found. Better is: of a nearer type,
/// else faster, else shorter.
void SeenNode::find_ways_to(std::uint32_t base) {
  const SeenKind base_kind = devices[base].kind;
  const std::uint32_t own_board = base_kind == SeenKind::gpu ? devices[base].board : base;
  const std::size_t longest = base_kind == SeenKind::gpu ? 2 : 1;
  way_(base, base) = {{}, unbounded_rate, PathType::loc};
  std::vector<std::uint32_t> now{base}, next;
  for (; !now.empty(); now.swap(next)) {
    next.clear();
    for (const std::uint32_t d : now) {
      for (const std::uint32_t l : devices[d].links) {
        const SeenLink& link = links[l];
        const SeenWay& so_far = way_(d, base);
        SeenWay& there = way_(link.to, base);
        const SeenKind kind = devices[d].kind, to_kind = devices[link.to].kind;
        const float rate = std::min(so_far.rate, link.rate);
        // Through a board only to its own GPU, or as a relay of NVLink between two others.
        if (d != own_board && kind == SeenKind::board && (link.type != PathType::loc || to_kind != SeenKind::gpu) &&
            (link.type != PathType::nvl || to_kind != SeenKind::board || so_far.links.size() > longest))
          continue;
        PathType type = link.type == PathType::net ? PathType::loc : link.type;
        if (kind == SeenKind::pci && to_kind == SeenKind::pci) type = PathType::pxb;
        if (link.type == PathType::pix && (kind == SeenKind::cpu || to_kind == SeenKind::cpu)) type = PathType::phb;
        if (kind == SeenKind::board && so_far.type == PathType::nvl && type == PathType::nvl &&
            so_far.links.size() == longest)
          type = PathType::nvb;
        type = std::max(so_far.type, type);
        const bool better =
            type < there.type ||
            (type == there.type &&
             (there.rate < rate || (there.rate == rate && there.links.size() > so_far.links.size() + 1)));
        if (!better) continue;
        const auto& back = devices[link.to].links;
        const auto reverse = std::find_if(
            back.begin(), back.end(), [&](std::uint32_t r) { return links[r].to == d && links[r].type == link.type; });
        ensure(reverse != back.end(), "links lead both ways");
        std::vector<std::uint32_t> way{*reverse};
        way.insert(way.end(), so_far.links.begin(), so_far.links.end());
        there = {std::move(way), rate, type};
        if (std::find(next.begin(), next.end(), link.to) == next.end()) next.push_back(link.to);
      }
    }
  }
}

void SeenNode::find_ways() {
  ways_.assign(devices.size() * devices.size(), {});
  for (const SeenKind kind : {SeenKind::cpu, SeenKind::board, SeenKind::gpu, SeenKind::net, SeenKind::nvswitch})
    for (const std::uint32_t base : of_kind(kind)) find_ways_to(base);
  const std::size_t gpus = count(SeenKind::gpu);
  for (std::size_t g = 0; g < gpus; ++g) {
    for (std::size_t p = 0; p < gpus; ++p)
      if (!peers(p, g)) go_over(SeenKind::cpu, cpu_of(g), SeenKind::gpu, p, SeenKind::gpu, g);
    for (std::size_t p = 0; p < gpus; ++p) {
      bool relayed = false;
      const bool direct = peers(p, g, &relayed);
      nics_join_gpus = nics_join_gpus || (p != g && nics_are_faster(p, g) && !(direct && relayed));
    }
  }
  relabel_chip_to_chip();
  route_nets();
}

std::vector<std::uint32_t> SeenNode::nearest(SeenKind from, std::size_t number, SeenKind to) const {
  PathType type = PathType::dir;
  float most = 0;
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < count(to); ++i) {
    const SeenWay& there = way(from, number, to, i);
    if (there.rate > most || (there.rate == most && there.type < type)) {
      most = there.rate;
      type = there.type;
      out.clear();
    }
    if (there.rate == most && there.type == type) out.push_back(i);
  }
  return out;
}

std::uint32_t SeenNode::cpu_of(std::size_t gpu) const {
  const std::vector<std::uint32_t> near = nearest(SeenKind::gpu, gpu, SeenKind::cpu);
  ensure(!near.empty(), "a GPU is below a CPU");
  const auto hops = [&](std::uint32_t cpu) { return way(SeenKind::gpu, gpu, SeenKind::cpu, cpu).links.size(); };
  return *std::min_element(near.begin(), near.end(),
                           [&](std::uint32_t a, std::uint32_t b) { return hops(a) < hops(b); });
}

/// GPUs that share NICs begin with different ones, and channels take one after the other.
std::uint32_t SeenNode::net_of(std::size_t gpu, int channel) const {
  const std::vector<std::uint32_t> nets = nearest(SeenKind::gpu, gpu, SeenKind::net);
  ensure(!nets.empty(), "a GPU of several nodes reaches a NIC");
  const auto n_nets = static_cast<std::uint32_t>(nets.size());
  const auto sharing = static_cast<std::uint32_t>(nearest(SeenKind::net, nets.front(), SeenKind::gpu).size());
  const std::uint32_t each = (n_nets + sharing - 1) / sharing;
  std::uint32_t net = static_cast<std::uint32_t>(at(SeenKind::gpu, gpu).dev) % sharing;
  if (std::has_single_bit(n_nets)) net = mirrored(net, n_nets);
  return nets[(net + static_cast<std::uint32_t>(channel) % each) % n_nets];
}

/// The gpu that takes the net for the lowest channel.
std::uint32_t SeenNode::gpu_of(std::size_t net) const {
  const std::vector<std::uint32_t> gpus = nearest(SeenKind::net, net, SeenKind::gpu);
  for (int channel = 0; channel < most_channels_asked; ++channel)
    for (const std::uint32_t gpu : gpus)
      if (net_of(gpu, channel) == net) return gpu;
  return no_gpu;
}

/// True if the GPUs read and write each other's memory. `relayed`: over the NVLinks of another.
bool SeenNode::peers(std::size_t from, std::size_t to, bool* relayed) const {
  const SeenWay& between = way(SeenKind::gpu, from, SeenKind::gpu, to);
  if (relayed != nullptr)
    *relayed = between.links.size() == 4 && devices[links[between.links[1]].to].kind == SeenKind::board;
  return between.type <= options_.p2p_level && (between.type <= PathType::nvb || between.type <= options_.peer_access);
}

/// src/graph/paths.cc, ncclTopoCheckNet: both reach NICs, without a CPU on the way, faster than each other.
bool SeenNode::nics_are_faster(std::size_t one, std::size_t other) const {
  const auto to_nets = [&](std::size_t gpu) {
    float most = 0;
    for (std::size_t n = 0; n < count(SeenKind::net); ++n) {
      const SeenWay& there = way(SeenKind::gpu, gpu, SeenKind::net, n);
      if (there.type <= PathType::pxb) most = std::max(most, there.rate);
    }
    return most;
  };
  const float between = way(SeenKind::gpu, one, SeenKind::gpu, other).rate;
  return to_nets(one) > between && to_nets(other) > between;
}

/// The way from `from` to `to` leads over `over` from now on.
void SeenNode::go_over(SeenKind over, std::size_t o, SeenKind from, std::size_t f, SeenKind to, std::size_t t) {
  const SeenWay first = way(from, f, over, o), second = way(over, o, to, t);
  SeenWay& all = way_(from, f, to, t);
  all.links = first.links;
  all.links.insert(all.links.end(), second.links.begin(), second.links.end());
  all.type = over == SeenKind::gpu ? PathType::pxn : with_both(first.type, second.type);
  all.rate = std::min(first.rate, second.rate);
}

/// A NIC that is nearest to a GPU, on the PCIe of the CPU that the GPU is joined to chip to chip.
void SeenNode::relabel_chip_to_chip() {
  for (std::size_t g = 0; g < count(SeenKind::gpu); ++g) {
    const std::uint32_t cpu = cpu_of(g);
    for (const std::uint32_t n : nearest(SeenKind::gpu, g, SeenKind::net)) {
      if (with_both(way(SeenKind::gpu, g, SeenKind::cpu, cpu).type, way(SeenKind::net, n, SeenKind::cpu, cpu).type) !=
          PathType::p2c)
        continue;
      for (SeenWay* between : {&way_(SeenKind::gpu, g, SeenKind::net, n), &way_(SeenKind::net, n, SeenKind::gpu, g)})
        between->type = std::min(PathType::p2c, between->type);
    }
  }
}

/// The gpu over which PXN goes: the first board after the NVSwitches.
std::uint32_t SeenNode::relay(std::size_t gpu, std::size_t net) const {
  const SeenWay& there = way(SeenKind::gpu, gpu, SeenKind::net, net);
  if (there.type != PathType::pxn) return static_cast<std::uint32_t>(gpu);
  std::size_t i = 1;
  while (i + 1 < there.links.size() && devices[links[there.links[i]].to].kind == SeenKind::nvswitch) ++i;
  const std::uint32_t board = links[there.links[i]].to;
  for (const std::uint32_t each : of_kind(SeenKind::gpu))
    if (devices[each].board == board) return devices[each].number;
  fail_invariant("PXN goes over a GPU");
}

/// True if NIC and GPU exchange data without host memory (src/graph/paths.cc, ncclTopoCheckGdr). `reads`: the NIC
/// reads, to send; before Ampere only if NVLink joins the GPUs, or there is one alone.
bool SeenNode::reaches_directly(std::size_t gpu, std::size_t net, bool reads) const {
  const SeenDevice& from = at(SeenKind::gpu, gpu);
  if (!from.gpudirect || !at(SeenKind::net, net).gpudirect) return false;
  if (reads && from.sm < 80 && count(SeenKind::gpu) > 1) {
    bool by_nvlink = false;
    for (std::size_t other = 0; other < count(SeenKind::gpu); ++other)
      by_nvlink = by_nvlink || (other != gpu && way(SeenKind::gpu, gpu, SeenKind::gpu, other).type == PathType::nvl);
    if (!by_nvlink) return false;
  }
  return way(SeenKind::gpu, relay(gpu, net), SeenKind::net, net).type <= options_.gdr_level;
}

/// Sends over another GPU's NVLink if its NIC is nearer to that (PXN); else, without GPUDirect, through the CPU's
/// memory.
void SeenNode::route_nets() {
  for (std::size_t n = 0; n < count(SeenKind::net); ++n) {
    for (std::size_t g = 0; g < count(SeenKind::gpu); ++g) {
      const std::uint32_t peer = gpu_of(n);
      const SeenWay& there = way(SeenKind::gpu, g, SeenKind::net, n);
      if (options_.pxn && peer != g && peer != no_gpu) {
        const SeenWay& of_peer = way(SeenKind::gpu, peer, SeenKind::net, n);
        const auto host = [&](std::size_t gpu) { return at(SeenKind::cpu, cpu_of(gpu)).host; };
        if (of_peer.type <= PathType::p2c && reaches_directly(peer, n, true) &&
            way(SeenKind::gpu, peer, SeenKind::gpu, g).type <= PathType::nvl && host(peer) == host(g) &&
            (of_peer.rate > there.rate || there.type > PathType::pxn))
          go_over(SeenKind::gpu, peer, SeenKind::gpu, g, SeenKind::net, n);
      }
      if (there.type < PathType::phb && !reaches_directly(g, n, false)) {
        const std::uint32_t cpu = cpu_of(g);
        go_over(SeenKind::cpu, cpu, SeenKind::net, n, SeenKind::gpu, g);
        go_over(SeenKind::cpu, cpu, SeenKind::gpu, g, SeenKind::net, n);
      }
    }
  }
  for (std::size_t n = 0; n < count(SeenKind::net); ++n) at(SeenKind::net, n).nearest_gpu = gpu_of(n);
}

}  // namespace ringsim::nccl
