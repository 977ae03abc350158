// Which NICs and which GPU in between a message takes: NCCL's rule against a second, naive one, on all presets and on
// random machines; and its times on fabrics whose edge switches do not fit the machines.
#include "sim/topology/nic_choice.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/routes.hpp"
#include "tests/support/names.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/sketch.hpp"
#include "topologies/catalog.hpp"

namespace nic_choice_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

// --- NCCL's rule once more -------------------------------------------------------------------------------------------
// Written from the description in nic_choice.hpp and from reading NCCL 2.30.7, without HostWays: paths are found by
// relaxing labels, tables are dense, and nothing is kept between questions, as in NCCL.

/// A path as NCCL knows it: type first, then width, then hops.
struct Rated {
  PathType type = PathType::dir;
  std::int64_t width = 0;
  int hops = 0;
  bool found() const { return width > 0; }
};

struct NaiveHost {
  const Topology& t;
  Transport transport;
  std::uint32_t host;
  std::vector<NodeId> gpus, nics, cpus;
  std::vector<std::vector<Rated>> gpu_nic, nic_gpu, gpu_gpu;
  std::vector<std::vector<int>> proxy;  // of gpu_nic where its type is PXN

  NaiveHost(const Topology& topology, Transport how, std::uint32_t number) : t(topology), transport(how), host(number) {
    for (std::uint32_t i = 0; i < t.n_nodes(); ++i) {
      if (t.node(NodeId{i}).host != host) continue;
      switch (t.node(NodeId{i}).kind) {
        case NodeKind::gpu:
          gpus.push_back(NodeId{i});
          break;
        case NodeKind::cpu:
          cpus.push_back(NodeId{i});
          break;
        case NodeKind::nic:
          if (cable(NodeId{i}) > 0) nics.push_back(NodeId{i});
          break;
        default:
          break;
      }
    }
    gpu_nic.assign(gpus.size(), std::vector<Rated>(nics.size()));
    gpu_gpu.assign(gpus.size(), std::vector<Rated>(gpus.size()));
    nic_gpu.assign(nics.size(), std::vector<Rated>(gpus.size()));
    proxy.assign(gpus.size(), std::vector<int>(nics.size(), -1));
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      const auto from_gpu = rated_from(gpus[g], false), over_nvlink = rated_from(gpus[g], true);
      for (std::size_t n = 0; n < nics.size(); ++n) gpu_nic[g][n] = with_cable(from_gpu.at(nics[n]), nics[n]);
      for (std::size_t p = 0; p < gpus.size(); ++p) gpu_gpu[g][p] = over_nvlink.at(gpus[p]);
    }
    for (std::size_t n = 0; n < nics.size(); ++n) {
      const auto from_nic = rated_from(nics[n], false);
      for (std::size_t g = 0; g < gpus.size(); ++g) nic_gpu[n][g] = with_cable(from_nic.at(gpus[g]), nics[n]);
    }
    correct();
  }

  std::int64_t cable(NodeId nic) const {
    std::int64_t width = 0;
    for (const LinkId id : t.links_from(nic))
      if (t.node(t.link(id).to).host != host) width = std::max(width, t.link(id).bandwidth.bytes_per_second);
    return width;
  }
  Rated with_cable(Rated path, NodeId nic) const {
    path.width = std::min(path.width, cable(nic));
    return path;
  }

  static bool is_cpu(NodeKind kind) { return kind == NodeKind::cpu || kind == NodeKind::host_bridge; }

  /// Paths from one device to all of its host: over NVLink and NVSwitches, or over everything else.
  std::map<NodeId, Rated> rated_from(NodeId base, bool nvlink) const {
    std::map<NodeId, Rated> best;
    for (std::uint32_t i = 0; i < t.n_nodes(); ++i)
      if (t.node(NodeId{i}).host == host) best[NodeId{i}] = {};
    best[base] = {PathType::loc, INT64_MAX, 0};
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [at, path] : std::map<NodeId, Rated>(best)) {
        if (!path.found()) continue;
        const NodeKind kind = t.node(at).kind;
        const bool crossed =
            at == base || (nvlink ? kind == NodeKind::nvswitch : is_cpu(kind) || kind == NodeKind::pcie_switch);
        if (!crossed) continue;
        for (const LinkId id : t.links_from(at)) {
          const Link& link = t.link(id);
          if (t.node(link.to).host != host) continue;
          const bool is_nvlink = link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi;
          if (is_nvlink != nvlink) continue;
          const Rated longer{std::max(path.type, type_of(id)), std::min(path.width, link.bandwidth.bytes_per_second),
                             path.hops + 1};
          Rated& there = best[link.to];
          const auto key = [](const Rated& r) { return std::tuple(r.type, -r.width, r.hops); };
          if (there.found() && key(longer) >= key(there)) continue;
          there = longer, changed = true;
        }
      }
    }
    return best;
  }

  PathType type_of(LinkId id) const {
    const Link& link = t.link(id);
    const NodeKind a = t.node(link.from).kind, b = t.node(link.to).kind;
    if (link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi) return PathType::nvl;
    if (link.kind == LinkKind::c2c) return PathType::c2c;
    if (a == NodeKind::cpu && b == NodeKind::cpu) return PathType::sys;
    if (is_cpu(a) || is_cpu(b)) return PathType::phb;
    return a == NodeKind::pcie_switch && b == NodeKind::pcie_switch ? PathType::pxb : PathType::pix;
  }

  static std::vector<int> local(const std::vector<Rated>& paths) {
    std::int64_t widest = 0;
    for (const Rated& path : paths) widest = std::max(widest, path.width);
    PathType nearest = PathType::dir;
    for (const Rated& path : paths)
      if (path.width == widest) nearest = std::min(nearest, path.type);
    std::vector<int> found;
    for (std::size_t i = 0; i < paths.size(); ++i)
      if (widest > 0 && paths[i].width == widest && paths[i].type == nearest) found.push_back(static_cast<int>(i));
    return found;
  }

  int local_nic(int gpu, int channel) const {
    const std::vector<int> nets = local(gpu_nic[static_cast<std::size_t>(gpu)]);
    if (nets.empty()) return -1;
    const int n = static_cast<int>(nets.size());
    const int sharers = static_cast<int>(local(nic_gpu[static_cast<std::size_t>(nets[0])]).size());
    const int each = (n + sharers - 1) / sharers;
    int net = gpu % sharers;
    if (n == 1 || n == 2 || n == 4 || n == 8 || n == 16 || n == 32 || n == 64) {
      int bits = 0;
      while ((1 << bits) < n) ++bits;
      int mirror = 0;
      for (int b = 0; b < bits; ++b) mirror += (net >> b & 1) << (bits - 1 - b);
      net = mirror;
    }
    return nets[static_cast<std::size_t>((net + channel % each) % n)];
  }

  int local_gpu(int nic) const {
    for (int channel = 0; channel < 64; ++channel)
      for (const int gpu : local(nic_gpu[static_cast<std::size_t>(nic)]))
        if (local_nic(gpu, channel) == nic) return gpu;
    return -1;
  }

  bool gpudirect(int gpu, int nic) const {
    const auto g = static_cast<std::size_t>(gpu), n = static_cast<std::size_t>(nic);
    if (!t.node(gpus[g]).gpudirect || !t.node(nics[n]).gpudirect) return false;
    const PathType type = gpu_nic[g][n].type;
    if (type == PathType::pxn) return gpu_nic[static_cast<std::size_t>(proxy[g][n])][n].type <= transport.gdr_level;
    return type <= transport.gdr_level;
  }
  bool nvlinked(int a, int b) const {
    return a == b || (transport.p2p_level >= PathType::nvl &&
                      gpu_gpu[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)].found());
  }

  void correct() {
    const auto local_cpu = [&](std::size_t g) {
      const auto paths = rated_from(gpus[g], false);
      std::vector<Rated> to_cpus;
      for (const NodeId cpu : cpus) to_cpus.push_back(paths.at(cpu));
      const std::vector<int> near = local(to_cpus);
      int best = near.empty() ? -1 : near[0];
      for (const int c : near)
        if (to_cpus[static_cast<std::size_t>(c)].hops < to_cpus[static_cast<std::size_t>(best)].hops) best = c;
      return best;
    };
    const auto merge = [](PathType a, PathType b) {
      const PathType most = std::max(a, b), least = std::min(a, b);
      return most == PathType::phb && least == PathType::c2c ? PathType::p2c : most;
    };
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      const int c = local_cpu(g);
      if (c < 0) continue;
      const NodeId cpu = cpus[static_cast<std::size_t>(c)];
      const PathType to_cpu = rated_from(gpus[g], false).at(cpu).type;
      const auto from_cpu = rated_from(cpu, false);
      for (const int l : local(gpu_nic[g])) {
        const auto n = static_cast<std::size_t>(l);
        if (merge(to_cpu, from_cpu.at(nics[n]).type) != PathType::p2c) continue;
        gpu_nic[g][n].type = std::min(gpu_nic[g][n].type, PathType::p2c);
        nic_gpu[n][g].type = std::min(nic_gpu[n][g].type, PathType::p2c);
      }
    }
    for (std::size_t n = 0; n < nics.size(); ++n) {
      for (std::size_t g = 0; g < gpus.size(); ++g) {
        const int by = transport.pxn ? local_gpu(static_cast<int>(n)) : -1;
        if (by >= 0 && by != static_cast<int>(g)) {
          const auto p = static_cast<std::size_t>(by);
          const Rated its = gpu_nic[p][n], own = gpu_nic[g][n];
          if (its.type <= PathType::p2c && gpudirect(by, static_cast<int>(n)) && nvlinked(by, static_cast<int>(g)) &&
              (its.width > own.width || own.type > PathType::pxn)) {
            gpu_nic[g][n] = {PathType::pxn, std::min(its.width, gpu_gpu[g][p].width), 0};
            proxy[g][n] = by;
          }
        }
        if (gpu_nic[g][n].type < PathType::phb && !gpudirect(static_cast<int>(g), static_cast<int>(n))) {
          const int c = local_cpu(g);
          if (c < 0) continue;
          const NodeId cpu = cpus[static_cast<std::size_t>(c)];
          const Rated up = rated_from(gpus[g], false).at(cpu), down = rated_from(cpu, false).at(gpus[g]);
          const Rated out = with_cable(rated_from(cpu, false).at(nics[n]), nics[n]);
          const Rated in = with_cable(rated_from(nics[n], false).at(cpu), nics[n]);
          proxy[g][n] = -1;
          gpu_nic[g][n] = {merge(up.type, out.type), std::min(up.width, out.width), 0};
          nic_gpu[n][g] = {merge(in.type, down.type), std::min(in.width, down.width), 0};
        }
      }
    }
  }

  /// The NIC by which GPU `gpu` sends to the GPU of that number on another host, and the GPU in between (or itself).
  std::pair<int, int> exit(int gpu, int peer, int channel, int own_channel) const {
    const int own = local_nic(gpu, own_channel);
    const auto intermediate = [&](int nic) {
      const auto g = static_cast<std::size_t>(gpu), n = static_cast<std::size_t>(nic);
      return std::pair(nic, gpu_nic[g][n].type == PathType::pxn ? proxy[g][n] : gpu);
    };
    const std::pair by_itself{own, gpu};
    if (!transport.pxn || peer >= static_cast<int>(gpus.size()))
      return transport.point_to_point ? by_itself : intermediate(own);
    const int nic = local_nic(peer, channel);
    if (transport.point_to_point) {
      const int by = local_gpu(nic);
      if (by >= 0 && nvlinked(by, gpu) && t.node(gpus[static_cast<std::size_t>(gpu)]).gpudirect &&
          gpu_nic[static_cast<std::size_t>(by)][static_cast<std::size_t>(nic)].type <= PathType::p2c &&
          gpudirect(by, nic))
        return {nic, by};
      return by_itself;
    }
    if (gpu_nic[static_cast<std::size_t>(gpu)][static_cast<std::size_t>(nic)].type <= PathType::pxn)
      return intermediate(nic);
    return intermediate(own);
  }

  /// Where all channels take one NIC: the ith of the GPUs without a NIC of their own takes the ith of those they share.
  int usual_channel(int gpu) const {
    const std::vector<int> nets = local(gpu_nic[static_cast<std::size_t>(gpu)]);
    int before = 0;
    for (int g = 0; g < gpu; ++g) before += local(gpu_nic[static_cast<std::size_t>(g)]) == nets ? 1 : 0;
    return before / static_cast<int>(local(nic_gpu[static_cast<std::size_t>(nets[0])]).size());
  }
};

/// What a path shows of the choice: "gpu 3, nic 1" out, "nic 1" in.
struct Seen {
  NodeId proxy = no_node, out = no_node, in = no_node;
  bool operator==(const Seen&) const = default;
};

Seen seen(const Topology& t, const Path& path) {
  Seen found;
  for (const Leg& leg : path.legs) {
    for (const LinkId id : leg.links) {
      const NodeId to = t.link(id).to;
      if (t.node(to).kind == NodeKind::nic) (found.out == no_node ? found.out : found.in) = to;
    }
    const NodeId end = t.link(leg.links.back()).to;
    if (found.out == no_node && t.node(end).kind == NodeKind::gpu) found.proxy = end;
  }
  return found;
}

std::string text_of(const Topology& t, const Seen& seen) {
  const auto name = [&](NodeId id) { return id == no_node ? std::string("-") : t.node(id).name; };
  return name(seen.proxy) + " " + name(seen.out) + " " + name(seen.in);
}

std::vector<Transport> transports() {
  std::vector<Transport> all;
  for (const bool pxn : {true, false})
    for (const bool point_to_point : {false, true})
      for (const PathType gdr : {PathType::p2c, PathType::loc, PathType::pix, PathType::pxb, PathType::sys})
        all.push_back({.gdr_level = gdr, .pxn = pxn, .point_to_point = point_to_point});
  all.push_back({.p2p_level = PathType::loc});
  return all;
}

/// Every pair of GPUs of hosts 0 and 1, in both directions. Counts them.
int expect_as_naive(const Topology& t, const Transport& transport) {
  const NaiveHost hosts[] = {{t, transport, 0}, {t, transport, 1}};
  Routes routes(t, transport);
  int n_pairs = 0;
  for (const int h : {0, 1}) {
    const NaiveHost &here = hosts[h], &there = hosts[1 - h];
    for (std::size_t g = 0; g < here.gpus.size(); ++g) {
      for (std::size_t p = 0; p < there.gpus.size(); ++p) {
        const int gpu = static_cast<int>(g), peer = static_cast<int>(p);
        const int rail = p < here.gpus.size() ? here.usual_channel(peer) : 0;
        const auto [nic, by] = here.exit(gpu, peer, rail, here.usual_channel(gpu));
        const Seen wanted{by == gpu ? no_node : here.gpus[static_cast<std::size_t>(by)],
                          here.nics[static_cast<std::size_t>(nic)],
                          there.nics[static_cast<std::size_t>(there.local_nic(peer, there.usual_channel(peer)))]};
        const Seen found = seen(t, routes.find(here.gpus[g], there.gpus[p]));
        CHECK_MESSAGE(found == wanted, t.node(here.gpus[g]).name, " -> ", t.node(there.gpus[p]).name, ": ",
                      text_of(t, found), ", expected ", text_of(t, wanted));
        ++n_pairs;
      }
    }
  }
  return n_pairs;
}

/// The same channel by channel, where no fabric comes into it.
void expect_channels_as_naive(const Topology& t, const Transport& transport) {
  const NaiveHost host(t, transport, 0);
  HostWays ways(t);
  NicChoice choice(t, ways, transport);
  const NaiveHost far(t, transport, 1);
  for (int channel = 0; channel < 9; ++channel) {
    CAPTURE(channel);
    for (std::size_t g = 0; g < host.gpus.size(); ++g) {
      const int gpu = static_cast<int>(g);
      CHECK(choice.entry(host.gpus[g], channel).nic ==
            host.nics[static_cast<std::size_t>(host.local_nic(gpu, channel))]);
      for (std::size_t p = 0; p < far.gpus.size(); p += 3) {
        const auto [nic, by] = host.exit(gpu, static_cast<int>(p), channel, channel);
        const Gate found = choice.exit(host.gpus[g], far.gpus[p], channel);
        CHECK(found.nic == host.nics[static_cast<std::size_t>(nic)]);
        CHECK(found.proxy == (by == gpu ? no_node : host.gpus[static_cast<std::size_t>(by)]));
      }
    }
  }
}

bool has_nics(const Machine& machine) {
  return std::any_of(machine.devices.begin(), machine.devices.end(),
                     [](const Machine::Device& device) { return device.port.has_value(); });
}

const StarFabric star{{.bandwidth = 1600_Gbps, .latency = 1'000'000_ps}};
}  // namespace

TEST_CASE("between two machines of any preset, all pairs take the NICs and the GPU in between that NCCL's rule says") {
  int n_presets = 0;
  for (const PresetFile& file : preset_files()) {
    const std::string preset(file.name);
    CAPTURE(preset);
    if (!has_nics(node_preset(preset))) continue;
    ++n_presets;
    const Topology t = build(cluster_of(preset, 2, star));
    const auto n_gpus = static_cast<int>(node_preset(preset).n_gpus());
    for (const Transport& transport : transports()) {
      // 72 GPUs: 10368 pairs, so only what is asked by default.
      if (n_gpus > 16 && (transport.gdr_level != PathType::p2c || !transport.pxn)) continue;
      CAPTURE(transport.pxn);
      CAPTURE(transport.point_to_point);
      CAPTURE(to_string(transport.gdr_level));
      CHECK(expect_as_naive(t, transport) == 2 * n_gpus * n_gpus);
      expect_channels_as_naive(t, transport);
    }
  }
  CHECK(n_presets == 40);  // all but the two of GeForce cards, which have no NIC
}

TEST_CASE("between unlike machines a GPU whose number the other host lacks is reached by the sender's own NIC") {
  Cluster cluster = cluster_of("hgx-h100", 1, star);
  cluster.parts.push_back({std::make_shared<Machine>(node_preset("polaris")), 1});
  const Topology t = build(cluster);
  for (const Transport& transport : transports()) CHECK(expect_as_naive(t, transport) == 2 * 8 * 4);
}

namespace {
/// A host of 1 or 2 CPUs, PCIe switches in one or two levels, 1 to 8 GPUs and 1 to 6 NICs anywhere below, NVLink
/// between some; PCIe and cables of three widths each, so that equal and unequal paths occur. Both hosts are alike.
/// `denies`: about a third of the GPUs and NICs have no GPUDirect.
Topology random_hosts(std::uint64_t seed, bool denies = false) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  const auto link = [&](LinkKind kind) {
    return LinkSpec{.bandwidth = {(1 + draw(3)) * 10'000'000'000}, .latency = 1_ps, .kind = kind};
  };
  struct Cable {
    std::string a, b;
    LinkSpec spec;
  };
  std::vector<std::string> nodes{"c0", "m0"};
  std::vector<Cable> cables{{"m0", "c0", link(LinkKind::memory)}};
  std::vector<std::string> trunks{"c0"};
  if (draw(2) == 0) {
    nodes.emplace_back("c1");
    cables.push_back({"c0", "c1", link(LinkKind::socket)});
    trunks.emplace_back("c1");
  }
  const auto hang = [&](const std::string& name, LinkKind kind) {
    nodes.push_back(name);
    cables.push_back({name, trunks[static_cast<std::size_t>(draw(static_cast<int>(trunks.size())))], link(kind)});
  };
  const int n_switches = draw(5);
  for (int i = 0; i < n_switches; ++i) {
    hang("p" + std::to_string(i), LinkKind::pcie);
    trunks.push_back("p" + std::to_string(i));
  }
  const bool grace = draw(6) == 0;  // GPUs at their CPU, by chip-to-chip links
  const int n_gpus = 1 + draw(8), n_nics = 1 + draw(6), nvlink = draw(3);
  for (int i = 0; i < n_gpus; ++i) {
    const std::string name = "g" + std::to_string(i);
    if (grace) {
      nodes.push_back(name);
      cables.push_back({name, nodes[2] == "c1" && i % 2 == 1 ? "c1" : "c0", link(LinkKind::c2c)});
    } else {
      hang(name, LinkKind::pcie);
    }
  }
  for (int i = 0; i < n_nics; ++i) hang("n" + std::to_string(i), LinkKind::pcie);
  for (int i = 0; nvlink > 0 && i < n_gpus; ++i)
    for (int other = 0; other < i; ++other)
      if (nvlink == 1 || draw(2) == 0)
        cables.push_back({"g" + std::to_string(i), "g" + std::to_string(other), link(LinkKind::nvlink)});
  std::vector<LinkSpec> ports;
  for (int i = 0; i < n_nics; ++i) ports.push_back(link(LinkKind::infiniband));

  Sketch s;
  s.node("s");
  for (const std::uint32_t host : {0U, 1U}) {
    const std::string h = host == 0 ? "" : "'";
    for (const std::string& name : nodes) s.node(name + h, host);
    for (const Cable& cable : cables) s.cable(cable.a + h, cable.b + h, cable.spec);
    for (int i = 0; i < n_nics; ++i) s.cable("n" + std::to_string(i) + h, "s", ports[static_cast<std::size_t>(i)]);
  }
  for (const std::string& name : nodes) {
    if (!denies || (name[0] != 'g' && name[0] != 'n') || draw(3) > 0) continue;
    for (const char* h : {"", "'"}) s.builder.deny_gpudirect(s.ids.at(name + h));
  }
  return s.builder.build();
}
}  // namespace

TEST_CASE("on random machines all pairs take what NCCL's rule says as well") {
  const std::vector<Transport> all = transports();
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    const Topology t = random_hosts(seed);
    const Transport& transport = all[seed % all.size()];
    CAPTURE(transport.pxn);
    CAPTURE(transport.point_to_point);
    CAPTURE(to_string(transport.gdr_level));
    expect_as_naive(t, transport);
    expect_channels_as_naive(t, transport);
  }
}

TEST_CASE("on random machines with GPUs and NICs that lack GPUDirect all pairs take what NCCL's rule says") {
  const std::vector<Transport> all = transports();
  int differ = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    const Topology t = random_hosts(seed, true), all_have = random_hosts(seed);
    const Transport& transport = all[seed % all.size()];
    expect_as_naive(t, transport);
    expect_channels_as_naive(t, transport);
    Routes denied(t, transport), plain(all_have, transport);
    const NodeId from = t.ranks().front(), to = t.ranks().back();
    differ += denied.find(from, to).legs.size() > plain.find(from, to).legs.size() ? 1 : 0;
    // Whoever assumes that all have it finds what is found where all do.
    Transport assumes = transport;
    assumes.assumes_gpudirect = true;
    Routes assumed(t, assumes);
    const Path path = assumed.find(from, to), other = plain.find(from, to);
    REQUIRE(path.legs.size() == other.legs.size());
    for (std::size_t i = 0; i < path.legs.size(); ++i) CHECK(path.legs[i].links == other.legs[i].links);
  }
  CHECK(differ > 50);  // their data rests in host memory
}

TEST_CASE("of eight GPUs at four NICs the four without one are dealt out: every NIC serves two") {
  const Topology t = build(cluster_of("hgx-h100-4nic", 2, star));
  HostWays ways(t);
  NicChoice choice(t, ways, {});
  std::map<std::string, int> senders, receivers;
  for (int g = 0; g < 8; ++g) {
    const NodeId from = at(t, "node0.gpu" + std::to_string(g)), to = at(t, "node1.gpu" + std::to_string(g));
    const Gate out = choice.exit(from, to), in = choice.entry(to);
    ++senders[t.node(out.nic).name];
    ++receivers[t.node(in.nic).name];
    // GPU 2i has NIC i; of those without, 1, 3, 5, 7, the ith takes NIC i, through its GPU.
    CHECK(t.node(out.nic).name == "node0.nic" + std::to_string(g / 2));
    CHECK(out.proxy == (g % 2 == 0 ? no_node : at(t, "node0.gpu" + std::to_string(g - 1))));
    CHECK(t.node(in.nic).name == "node1.nic" + std::to_string(g / 2));
    // Channel by channel such a GPU takes the NICs in turn, as in NCCL.
    if (g % 2 == 1)
      for (int channel = 0; channel < 8; ++channel)
        CHECK(t.node(choice.entry(to, channel).nic).name == "node1.nic" + std::to_string(channel % 4));
  }
  CHECK(senders.size() == 4);
  CHECK(receivers.size() == 4);
}

TEST_CASE("in a collective a GPU goes to a NIC below its own switch itself, in point-to-point through the NIC's GPU") {
  // dgx-a100: gpu0, gpu1, nic0, nic1 below pcie0; each GPU is the local GPU of the NIC of its number.
  const Topology t = build(cluster_of("dgx-a100", 2, star));
  const NodeId from = at(t, "node0.gpu0"), to = at(t, "node1.gpu1");
  Routes collective(t), point_to_point(t, {.point_to_point = true});
  const Seen seen_in_collective = seen(t, collective.find(from, to));
  CHECK(text_of(t, seen_in_collective) == "- node0.nic1 node1.nic1");
  CHECK(text_of(t, seen(t, point_to_point.find(from, to))) == "node0.gpu1 node0.nic1 node1.nic1");
  // A GPU of another switch needs PXN in both.
  const NodeId far = at(t, "node1.gpu4");
  CHECK(text_of(t, seen(t, collective.find(from, far))) == "node0.gpu4 node0.nic6 node1.nic6");
  CHECK(text_of(t, seen(t, point_to_point.find(from, far))) == "node0.gpu4 node0.nic6 node1.nic6");
}

namespace {
const LinkSpec cable{.bandwidth = 400_Gbps, .latency = 1'000'000_ps};

Picoseconds hierarchical(const std::string& preset, int nodes, const Fabric& fabric) {
  const Topology t = build(cluster_of(preset, nodes, fabric));
  const CollectiveRequest request{
      .op = CollectiveOp::all_reduce, .ranks = static_cast<int>(t.ranks().size()), .bytes = 1_GiB};
  const Algorithm* algorithm = find_algorithm("hierarchical");
  REQUIRE(algorithm != nullptr);
  return run(t, check(algorithm->make(request, {.numbers = {{"group", 8}}}))).duration();
}
}  // namespace

TEST_CASE("an edge switch that the NICs of a node straddle is no reason to send all of them by one NIC") {
  // k = 12: six NICs an edge switch, so that node 0 has nic0 to nic5 on edge0, node 1 nic0 to nic3 on edge1. Its gpu0
  // receives by nic0 on edge1, where node 0 has nic6 and nic7.
  const Topology t = build(cluster_of("hgx-h100", 16, FatTree{.k = 12, .link = cable}));
  Routes routes(t);
  for (int g = 0; g < 8; ++g) {
    const std::string i = std::to_string(g);
    const Seen found = seen(t, routes.find(at(t, "node0.gpu" + i), at(t, "node1.gpu" + i)));
    CHECK(text_of(t, found) == "- node0.nic" + i + " node1.nic" + i);
  }
}

TEST_CASE("16 nodes whose NICs never wait for each other are as fast on all fabrics of full bandwidth") {
  // The ring over nodes keeps to rails, and every fabric here has a cable up for every cable down: what differs is the
  // hops of a step, 2 to 6 cables of 1 us. 30 steps of at most 4 us more, of 10.4 ms on hgx-h100.
  for (const char* preset : {"hgx-h100", "dgx-a100"}) {
    CAPTURE(preset);
    const Picoseconds on_star = hierarchical(preset, 16, StarFabric{cable});
    const std::vector<Fabric> fabrics{
        FatTree{.k = 12, .link = cable}, FatTree{.k = 16, .link = cable}, LeafSpine{.nodes_per_leaf = 4, .link = cable},
        RailFabric{.nodes_per_group = 16, .link = cable}, RailFabric{.nodes_per_group = 8, .spines = 8, .link = cable}};
    for (const Fabric& fabric : fabrics) {
      CAPTURE(fabric.index());
      const Picoseconds time = hierarchical(preset, 16, fabric);
      CHECK(time >= on_star);
      CHECK(time <= on_star + 30 * 4'000'000_ps);
      CHECK(static_cast<double>(time.count()) < 1.05 * static_cast<double>(on_star.count()));
    }
  }
}

TEST_CASE("64 nodes: a fat tree of full bandwidth is never slower than one oversubscribed 2:1") {
  // 512 NICs: with k = 14 seven an edge switch, with k = 12 and 2:1 twelve. Neither is a multiple of a node's eight.
  for (const int k : {14, 16, 18}) {
    CAPTURE(k);
    const Picoseconds full = hierarchical("hgx-h100", 64, FatTree{.k = k, .link = cable});
    for (const int narrow : {12, 14, 16}) {
      CAPTURE(narrow);
      CHECK(full <= hierarchical("hgx-h100", 64, FatTree{.k = narrow, .oversubscription = 2, .link = cable}));
    }
  }
}

}  // namespace nic_choice_test
