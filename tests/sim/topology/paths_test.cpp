// The data paths of real machines: host memory, PXN, levels, several NICs; and what switches choose among equal ways.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/topology/cheapest_way.hpp"
#include "sim/topology/routes.hpp"
#include "tests/support/names.hpp"
#include "tests/support/sketch.hpp"

namespace paths_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {
const LinkSpec pcie{.bandwidth = 12_GBps, .latency = 1_ps, .kind = LinkKind::pcie};
const LinkSpec nvlink{.bandwidth = 50_GBps, .latency = 1_ps, .kind = LinkKind::nvlink};
const LinkSpec c2c{.bandwidth = 400_GBps, .latency = 1_ps, .kind = LinkKind::c2c};
const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1_ps, .kind = LinkKind::infiniband};

std::string found(const Topology& t, const Transport& transport, const std::string& from, const std::string& to) {
  Routes routes(t, transport);
  return text_of(t, routes.find(at(t, from), at(t, to)));
}

/// Two sockets, each with memory; g0, g1 below a PCIe switch of c0, g2 below c0 itself, g3 below c1.
///
///   g0 - p0 - c0 ---- c1 - g3
///   g1 - p0   | \    |
///            m0  g2   m1
Sketch box() {
  Sketch s;
  for (const char* name : {"g0", "g1", "g2", "g3", "p0", "c0", "c1", "m0", "m1"}) s.node(name, 0);
  const auto join = [&](const char* a, const char* b) { s.cable(a, b, pcie); };
  join("g0", "p0");
  join("g1", "p0");
  join("p0", "c0");
  join("g2", "c0");
  join("g3", "c1");
  join("c0", "c1");
  join("m0", "c0");
  join("m1", "c1");
  return s;
}
}  // namespace

TEST_CASE(
    "peer access reaches as far as the machine and p2p_level let it; beyond, data is staged in the receiver's memory") {
  struct Row {
    PathType access, level;
    std::string same_switch, same_cpu, other_cpu;
  };
  const std::string direct_pix = "PIX: g0 > p0 > g1", direct_phb = "PHB: g0 > p0 > c0 > g2",
                    direct_sys = "SYS: g0 > p0 > c0 > c1 > g3";
  const std::string by_memory_pix = "PIX: g0 > p0 > c0 > m0 | m0 > c0 > p0 > g1",
                    by_memory_phb = "PHB: g0 > p0 > c0 > m0 | m0 > c0 > g2",
                    by_memory_sys = "SYS: g0 > p0 > c0 > c1 > m1 | m1 > c1 > g3";
  using enum PathType;
  const std::vector<Row> rows = {{sys, sys, direct_pix, direct_phb, direct_sys},
                                 {phb, sys, direct_pix, direct_phb, by_memory_sys},
                                 {sys, pxb, direct_pix, by_memory_phb, by_memory_sys},
                                 {nvl, sys, by_memory_pix, by_memory_phb, by_memory_sys},
                                 {sys, loc, by_memory_pix, by_memory_phb, by_memory_sys}};
  for (const Row& row : rows) {
    CAPTURE(to_string(row.access));
    CAPTURE(to_string(row.level));
    Sketch s = box();
    s.builder.describe_host(0, {.peer_access = row.access});
    const Topology t = s.builder.build();
    CHECK(found(t, {.p2p_level = row.level}, "g0", "g1") == row.same_switch);
    CHECK(found(t, {.p2p_level = row.level}, "g0", "g2") == row.same_cpu);
    CHECK(found(t, {.p2p_level = row.level}, "g0", "g3") == row.other_cpu);
  }
}

TEST_CASE("a level below NVL turns NVLink off, one below NVB the relay") {
  Sketch s = box();
  s.cable("g0", "g1", nvlink);
  s.cable("g1", "g3", nvlink);
  const Topology t = s.builder.build();
  CHECK(found(t, {}, "g0", "g3") == "NVB: g0 > g1 | g1 > g3");
  CHECK(found(t, {.p2p_level = PathType::nvl}, "g0", "g1") == "NVL: g0 > g1");
  CHECK(found(t, {.p2p_level = PathType::nvl}, "g0", "g3") == "SYS: g0 > p0 > c0 > c1 > m1 | m1 > c1 > g3");
  CHECK(found(t, {.p2p_level = PathType::loc}, "g0", "g1") == "PIX: g0 > p0 > c0 > m0 | m0 > c0 > p0 > g1");
  // How near they are is what PCIe and sockets say, not the NVLink that is not used.
  CHECK(found(t, {.p2p_level = PathType::loc}, "g1", "g3") == "SYS: g1 > p0 > c0 > c1 > m1 | m1 > c1 > g3");
}

TEST_CASE("through an Intel CPU, a byte from GPU to GPU costs more than one on every PCIe link of its way") {
  Sketch s = box();
  s.builder.describe_host(0, {.peer_cost = 1.2});
  const Topology t = s.builder.build();
  Routes routes(t);
  const Path path = routes.find(at(t, "g0"), at(t, "g2"));
  CHECK(path.legs[0].shares == std::vector<double>{1.2, 1.2, 1.2});
  CHECK(narrowest(t, path) == 10_GBps);  // 12 / 1.2
  CHECK(latency(path) == 3_ps);
  CHECK(routes.find(at(t, "g0"), at(t, "g1")).legs[0].shares.empty());  // no CPU on the way
  CHECK(routes.find(at(t, "g0"), at(t, "m0")).legs[0].shares.empty());  // no peer
}

TEST_CASE("host bridges of one CPU are PHB, a chip-to-chip link is C2C, and P2C with PCIe after it") {
  // g0 - b0 - c0 - b1 - g1, n0;  g2 = c2c = c0
  Sketch s;
  for (const char* name : {"g0", "g1", "g2", "n0", "b0", "b1", "c0", "m0"}) s.node(name, 0);
  s.cable("g0", "b0", pcie);
  s.cable("b0", "c0", pcie);
  s.cable("c0", "b1", pcie);
  s.cable("b1", "g1", pcie);
  s.cable("b1", "n0", pcie);
  s.cable("c0", "m0", pcie);
  s.cable("g2", "c0", c2c);
  const Topology t = s.builder.build();
  CHECK(found(t, {}, "g0", "g1") == "PHB: g0 > b0 > c0 > b1 > g1");
  CHECK(found(t, {}, "g1", "n0") == "PHB: g1 > b1 > n0");
  CHECK(found(t, {}, "g2", "c0") == "C2C: g2 > c0");
  CHECK(found(t, {}, "g2", "n0") == "P2C: g2 > c0 > b1 > n0");
}

namespace {
/// Two hosts on rails: g0, g1 with NVLink between them and a NIC each below a PCIe switch of its own; NIC i of either
/// host on switch s<i>. `spine`: s0 and s1 are joined by t.
Topology rails(bool spine, bool nvlinks = true, const Host& like = {}) {
  Sketch s;
  for (const std::uint32_t host : {0U, 1U}) {
    const std::string h = host == 0 ? "" : "'";
    for (const char* name : {"g0", "g1", "p0", "p1", "n0", "n1", "c0", "m0"}) s.node(name + h, host);
    for (const std::string i : {"0", "1"}) {
      s.cable("g" + i + h, "p" + i + h, pcie);
      s.cable("n" + i + h, "p" + i + h, pcie);
      s.cable("p" + i + h, "c0" + h, pcie);
    }
    s.cable("c0" + h, "m0" + h, pcie);
    if (nvlinks) s.cable("g0" + h, "g1" + h, nvlink);
    s.builder.describe_host(host, like);
  }
  for (const std::string i : {"0", "1"}) {
    s.node("s" + i);
    s.cable("n" + i, "s" + i, cable);
    s.cable("n" + i + "'", "s" + i, cable);
  }
  if (spine) {
    s.node("t");
    s.cable("s0", "t", cable);
    s.cable("s1", "t", cable);
  }
  return s.builder.build();
}
}  // namespace

TEST_CASE("PXN sends over NVLink to the GPU on the receiver's rail; without it the spine, or a farther NIC, must do") {
  const Topology joined = rails(true), apart = rails(false);
  CHECK(found(joined, {}, "g0", "g0'") == "NET: g0 > p0 > n0 > s0 > n0' > p0' > g0'");
  const std::string by_proxy = "NET: g0 > g1 | g1 > p1 > n1 > s1 > n1' > p1' > g1'";
  CHECK(found(joined, {}, "g0", "g1'") == by_proxy);
  CHECK(found(apart, {}, "g0", "g1'") == by_proxy);
  CHECK(found(joined, {.pxn = false}, "g0", "g1'") == "NET: g0 > p0 > n0 > s0 > t > s1 > n1' > p1' > g1'");
  // No spine and no PXN: the NIC of the right rail is across the CPU, beyond GPUDirect's reach.
  CHECK(found(apart, {.pxn = false}, "g0", "g1'") ==
        "NET: g0 > p0 > c0 > m0 | m0 > c0 > p1 > n1 > s1 > n1' > p1' > g1'");
  CHECK(found(apart, {.gdr_level = PathType::phb, .pxn = false}, "g0", "g1'") ==
        "NET: g0 > p0 > c0 > p1 > n1 > s1 > n1' > p1' > g1'");
  // PXN needs peer access over NVLink, GPUDirect at the NIC, and NVLink to the proxy.
  CHECK(found(joined, {.p2p_level = PathType::loc}, "g0", "g1'") ==
        "NET: g0 > p0 > n0 > s0 > t > s1 > n1' > p1' > g1'");
  CHECK(found(joined, {.gdr_level = PathType::loc}, "g0", "g1'") ==
        "NET: g0 > p0 > c0 > m0 | m0 > c0 > p0 > n0 > s0 > t > s1 > n1' > p1' > c0' > m0' | m0' > c0' > p1' > g1'");
  CHECK(found(rails(true, false), {}, "g0", "g1'") == "NET: g0 > p0 > n0 > s0 > t > s1 > n1' > p1' > g1'");

  Routes routes(joined);
  const Path path = routes.find(at(joined, "g0"), at(joined, "g1'"));
  CHECK(path.out == PathType::pxn);
  CHECK(path.in == PathType::pix);
}

TEST_CASE("a NIC that reads from GPUs more slowly than its link does so for every GPU, and for nothing else") {
  const Topology t = rails(true, true, {.gpudirect_cost = 1.5});
  const auto path = [&](const Transport& transport, const char* from, const char* to) {
    Routes routes(t, transport);
    return routes.find(at(t, from), at(t, to));
  };
  // g0 > p0 > n0 > s0 > n0' > p0' > g0': only n0 reads, over p0 > n0.
  const Path direct = path({}, "g0", "g0'");
  CHECK(direct.legs[0].shares == std::vector<double>{1, 1.5, 1, 1, 1, 1});
  CHECK(narrowest(t, direct) == 8_GBps);  // 12 / 1.5, below the cable's 10
  CHECK(latency(direct) == 6_ps);
  // By proxy: what n1 reads is g1's memory, where the data rests.
  const Path by_proxy = path({}, "g0", "g1'");
  CHECK(by_proxy.legs[0].shares.empty());
  CHECK(by_proxy.legs[1].shares == std::vector<double>{1, 1.5, 1, 1, 1, 1});
  // From host memory, staged or sent by a CPU, it reads at the rate of its link.
  for (const Leg& leg : path({.gdr_level = PathType::loc}, "g0", "g0'").legs) CHECK(leg.shares.empty());
  CHECK(path({}, "c0", "c0'").legs[0].shares.empty());
}

TEST_CASE("with all NICs, those that are far from the sender are reached by proxy as well") {
  const Topology t = rails(true);
  const auto parts = [&](const Transport& transport) {
    Routes routes(t, transport);
    std::vector<std::string> texts;
    for (const Path& part : routes.find_parts(at(t, "g0"), at(t, "g0'"))) texts.push_back(text_of(t, part));
    return texts;
  };
  const std::string near = "NET: g0 > p0 > n0 > s0 > n0' > p0' > g0'",
                    staged = "n1' > p1' > c0' > m0' | m0' > c0' > p0' > g0'";
  CHECK(parts({.nics = Transport::Nics::all}) ==
        std::vector<std::string>{near, "NET: g0 > g1 | g1 > p1 > n1 > s1 > " + staged});
  CHECK(parts({.pxn = false, .nics = Transport::Nics::all}) ==
        std::vector<std::string>{near, "NET: g0 > p0 > c0 > m0 | m0 > c0 > p1 > n1 > s1 > " + staged});
}

TEST_CASE("a GPU without a NIC of its own sends through that of a GPU it has NVLink to, and receives through memory") {
  // Host 0: g0 next to n0 (PIX), g1 alone on its switch; host 1: g0' next to n0'.
  Sketch s;
  for (const char* name : {"g0", "g1", "p0", "p1", "c0", "m0", "n0"}) s.node(name, 0);
  for (const char* name : {"g0'", "n0'"}) s.node(name, 1);
  s.cable("g0", "p0", pcie);
  s.cable("n0", "p0", pcie);
  s.cable("g1", "p1", pcie);
  s.cable("p0", "c0", pcie);
  s.cable("p1", "c0", pcie);
  s.cable("c0", "m0", pcie);
  s.cable("g0", "g1", nvlink);
  s.cable("g0'", "n0'", pcie);
  s.node("s");
  s.cable("n0", "s", cable);
  s.cable("n0'", "s", cable);
  const Topology t = s.builder.build();
  CHECK(found(t, {}, "g1", "g0'") == "NET: g1 > g0 | g0 > p0 > n0 > s > n0' > g0'");
  CHECK(found(t, {.pxn = false}, "g1", "g0'") == "NET: g1 > p1 > c0 > m0 | m0 > c0 > p0 > n0 > s > n0' > g0'");
  CHECK(found(t, {}, "g0'", "g1") == "NET: g0' > n0' > s > n0 > p0 > c0 > m0 | m0 > c0 > p1 > g1");
}

TEST_CASE("four GPUs, a NIC at every other: those without send through the proxy whose NIC the receiver has") {
  // g0, n0 below p0; g1 below p1; g2, n2 below p2; g3 below p3; all switches below c0; NVLink between all.
  Sketch s;
  s.node("s");
  for (const std::uint32_t host : {0U, 1U}) {
    const std::string h = host == 0 ? "" : "'";
    s.node("c0" + h, host);
    s.node("m0" + h, host);
    s.cable("c0" + h, "m0" + h, pcie);
    for (int g = 0; g < 4; ++g) {
      const std::string i = std::to_string(g) + h;
      s.node("g" + i, host);
      s.node("p" + i, host);
      s.cable("g" + i, "p" + i, pcie);
      s.cable("p" + i, "c0" + h, pcie);
      for (int other = 0; other < g; ++other) s.cable("g" + i, "g" + std::to_string(other) + h, nvlink);
      if (g % 2 != 0) continue;
      s.node("n" + i, host);
      s.cable("n" + i, "p" + i, pcie);
      s.cable("n" + i, "s", cable);
    }
  }
  const Topology t = s.builder.build();
  CHECK(found(t, {}, "g0", "g0'") == "NET: g0 > p0 > n0 > s > n0' > p0' > g0'");
  // g1 and g3 share n0 and n2, both beyond the CPU: g1 receives by the one, g3 by the other.
  CHECK(found(t, {}, "g1", "g1'") == "NET: g1 > g0 | g0 > p0 > n0 > s > n0' > p0' > c0' > m0' | m0' > c0' > p1' > g1'");
  CHECK(found(t, {}, "g3", "g3'") == "NET: g3 > g2 | g2 > p2 > n2 > s > n2' > p2' > c0' > m0' | m0' > c0' > p3' > g3'");
}

TEST_CASE("of NICs that are equally near, GPUs take different ones; with all, a message takes every one") {
  // Each host: g0, g1 and n0, n1 below one switch.
  Sketch s;
  s.node("s");
  for (const std::uint32_t host : {0U, 1U}) {
    const std::string h = host == 0 ? "" : "'";
    s.node("p" + h, host);
    for (const char* name : {"g0", "g1", "n0", "n1"}) {
      s.node(name + h, host);
      s.cable(name + h, "p" + h, pcie);
    }
    s.cable("n0" + h, "s", cable);
    s.cable("n1" + h, "s", cable);
  }
  const Topology t = s.builder.build();
  CHECK(found(t, {}, "g0", "g0'") == "NET: g0 > p > n0 > s > n0' > p' > g0'");
  CHECK(found(t, {}, "g1", "g1'") == "NET: g1 > p > n1 > s > n1' > p' > g1'");
  Routes routes(t, {.nics = Transport::Nics::all});
  std::vector<std::string> parts;
  for (const Path& part : routes.find_parts(at(t, "g1"), at(t, "g0'"))) parts.push_back(text_of(t, part));
  CHECK(parts ==
        std::vector<std::string>{"NET: g1 > p > n0 > s > n0' > p' > g0'", "NET: g1 > p > n1 > s > n1' > p' > g0'"});
  CHECK(routes.find_parts(at(t, "g0"), at(t, "g1")).size() == 1);
}

namespace {
Topology two_leaves(Ties ties, int n_spines = 4) {
  Sketch s = two_leaves(n_spines, pcie, cable);
  s.builder.break_ties(ties);
  return s.builder.build();
}

std::string spine_of(const Topology& t, Routes& routes, int from, int to, std::uint32_t label = 0) {
  const Path path = routes.find(at(t, "g" + std::to_string(from)), at(t, "g" + std::to_string(to)), label);
  for (const LinkId id : path.legs[0].links)
    if (t.node(t.link(id).to).name.starts_with("spine")) return t.node(t.link(id).to).name;
  return "";
}
}  // namespace

TEST_CASE("of NICs that are equally near, a CPU sends from the one on the receiver's rail, if it is one of them") {
  // Each host: g0, g1, n0 and n1 below one switch, which hangs on the CPU; g2 and n2 below another switch.
  Sketch s;
  s.node("s");
  for (const std::uint32_t host : {0U, 1U}) {
    const std::string h = host == 0 ? "" : "'";
    for (const char* name : {"c0", "p0", "p1", "p2"}) s.node(name + h, host);
    for (const auto& [name, below] :
         {std::pair{"g0", "p0"}, {"g1", "p0"}, {"n0", "p0"}, {"n1", "p0"}, {"g2", "p1"}, {"n2", "p1"}}) {
      s.node(name + h, host);
      s.cable(name + h, below + h, pcie);
    }
    s.cable("p0" + h, "c0" + h, pcie);
    s.cable("p2" + h, "c0" + h, pcie);  // n2 is one switch farther from the CPU
    s.cable("p1" + h, "p2" + h, pcie);
    for (const char* nic : {"n0", "n1", "n2"}) s.cable(nic + h, "s", cable);
  }
  const Topology t = s.builder.build();
  CHECK(found(t, {}, "c0'", "g0") == "NET: c0' > p0' > n0' > s > n0 > p0 > g0");
  CHECK(found(t, {}, "c0'", "g1") == "NET: c0' > p0' > n1' > s > n1 > p0 > g1");
  CHECK(found(t, {}, "c0'", "g2") == "NET: c0' > p0' > n0' > s > n2 > p1 > g2");  // n2' is farther: the first one
}

TEST_CASE("static tables choose by destination, so that a shift of all ports meets on no link") {
  const Topology t = two_leaves(Ties::by_destination);
  Routes routes(t);
  for (int to = 4; to < 8; ++to) {
    CAPTURE(to);
    for (int from = 0; from < 4; ++from) CHECK(spine_of(t, routes, from, to) == "spine" + std::to_string(to % 4));
  }
  const Topology first = two_leaves(Ties::first);
  Routes plain(first);
  for (int to = 4; to < 8; ++to) CHECK(spine_of(first, plain, 0, to) == "spine0");
}

TEST_CASE("D-mod-k takes another digit at each level: 16 destinations of a 3-level tree spread over all 4 cores") {
  // One edge switch e below a0, a1; a0 below core 0, 1; a1 below core 2, 3; a mirror image on the other side.
  Sketch s;
  for (const char* name : {"e", "a0", "a1", "x0", "x1", "x2", "x3", "b0", "b1", "f"}) s.node(name);
  for (const char* side : {"ea", "fb"}) {
    const std::string edge(1, side[0]), agg(1, side[1]);
    s.cable(edge, agg + "0", cable);
    s.cable(edge, agg + "1", cable);
    for (const std::string i : {"0", "1"}) s.cable(agg + "0", "x" + i, cable);
    for (const std::string i : {"2", "3"}) s.cable(agg + "1", "x" + i, cable);
  }
  for (int i = 0; i < 17; ++i) {
    const auto host = static_cast<std::uint32_t>(i);
    s.node("n" + std::to_string(i), host);
    s.cable("n" + std::to_string(i), i == 16 ? "e" : "f", cable);
  }
  s.node("g0", 17);
  s.builder.break_ties(Ties::by_destination);
  const Topology t = s.builder.build();
  Routes routes(t);
  std::map<std::string, int> used;
  for (int to = 0; to < 16; ++to) {
    const Path path = routes.find(at(t, "n16"), at(t, "n" + std::to_string(to)));
    for (const LinkId id : path.legs[0].links)
      if (t.node(t.link(id).to).name[0] == 'x') ++used[t.node(t.link(id).to).name];
  }
  CHECK(used == std::map<std::string, int>{{"x0", 4}, {"x1", 4}, {"x2", 4}, {"x3", 4}});
}

TEST_CASE("entries of a table replace what a switch would do, and circles are refused") {
  const Topology t = two_leaves(Ties::by_destination);
  const auto id = [&](const char* name) { return at(t, name); };
  Routes routes(t, {}, {.table = {{id("leaf0"), no_node, id("spine3")}, {id("leaf0"), id("n4"), id("spine1")}}});
  CHECK(spine_of(t, routes, 0, 4) == "spine1");
  CHECK(spine_of(t, routes, 0, 5) == "spine3");
  CHECK(spine_of(t, routes, 4, 1) == "spine1");  // leaf1's own table: NIC 1 of 8, by destination
  Routes circle(t, {}, {.table = {{id("spine0"), no_node, id("leaf0")}, {id("leaf0"), no_node, id("spine0")}}});
  CHECK_THROWS_WITH_AS(circle.find(id("g0"), id("g4")),
                       doctest::Contains("the tables send data from n0 to n4 round in circles, through "), InputError);
}

TEST_CASE("a switch's table looks at hops: one cable that differs from the rest keeps its share of the destinations") {
  Sketch s = two_leaves(1, pcie, cable);
  s.node("spine1");
  s.cable("leaf0", "spine1", {.bandwidth = 1_GBps, .latency = 9_ps});
  s.cable("leaf1", "spine1", cable);
  s.builder.break_ties(Ties::by_destination);
  const Topology t = s.builder.build();
  Routes routes(t);
  CHECK(spine_of(t, routes, 0, 4) == "spine0");
  CHECK(spine_of(t, routes, 0, 5) == "spine1");
}

TEST_CASE("where nothing leads every policy says so") {
  Sketch s;
  for (const char* name : {"g0", "g1", "s0", "s1"}) s.node(name);
  s.cable("g0", "s0", cable);
  s.cable("g1", "s1", cable);
  const Topology t = s.builder.build();
  for (const RoutingPolicy policy :
       {RoutingPolicy::fixed, RoutingPolicy::ecmp, RoutingPolicy::flow_spray, RoutingPolicy::packet_spray}) {
    Routes routes(t, {}, {.policy = policy});
    CHECK_THROWS_WITH_AS(routes.find(at(t, "g0"), at(t, "g1")),
                         doctest::Contains("no path from g0 to g1: no chain of links leads there"), InputError);
  }
}

TEST_CASE("ECMP keeps a connection on one way, draws by the seed, and uses all ways") {
  const Topology t = two_leaves(Ties::by_destination);
  std::set<std::string> seen, with_seed_7;
  std::vector<std::string> once, again, other;
  for (std::uint32_t channel = 0; channel < 16; ++channel) {
    Routes a(t, {}, {.policy = Routing::Policy::ecmp}), b(t, {}, {.policy = Routing::Policy::ecmp, .seed = 7});
    once.push_back(spine_of(t, a, 0, 4, channel));
    again.push_back(spine_of(t, a, 0, 4, channel));
    other.push_back(spine_of(t, b, 0, 4, channel));
    seen.insert(once.back());
  }
  CHECK(once == again);
  CHECK(once != other);
  CHECK(seen.size() == 4);
}

TEST_CASE("spraying by flow takes turns: four messages in a row use four spines") {
  const Topology t = two_leaves(Ties::by_destination);
  Routes routes(t, {}, {.policy = Routing::Policy::flow_spray});
  for (const int to : {4, 5, 6}) {
    std::set<std::string> seen;
    for (std::uint32_t message = 0; message < 4; ++message) seen.insert(spine_of(t, routes, 0, to, message));
    CHECK(seen.size() == 4);
    CHECK(routes.find(at(t, "g0"), at(t, "g" + std::to_string(to))).turns == 4);
  }
  CHECK(routes.find(at(t, "g0"), at(t, "g1")).turns == 1);  // on one leaf there is no choice
}

TEST_CASE("spraying by packet divides equally at every switch, and a leg is as fast as its fullest link allows") {
  for (const int n_spines : {1, 3, 4}) {
    CAPTURE(n_spines);
    const Topology t = two_leaves(Ties::by_destination, n_spines);
    Routes routes(t, {}, {.policy = Routing::Policy::packet_spray});
    const Path path = routes.find(at(t, "g0"), at(t, "g4"));
    REQUIRE(path.legs.size() == 1);
    const Leg& leg = path.legs[0];
    CHECK(leg.links.size() == static_cast<std::size_t>(4 + 2 * n_spines));
    CHECK(leg.latency == 6_ps);
    std::map<std::string, double> into;  // which share arrives at each node
    for (std::size_t i = 0; i < leg.links.size(); ++i) into[t.node(t.link(leg.links[i]).to).name] += leg.share(i);
    CHECK(into["spine0"] == doctest::Approx(1.0 / n_spines).epsilon(1e-15));
    CHECK(into["leaf1"] == doctest::Approx(1).epsilon(1e-15));
    CHECK(into["g4"] == 1);
    CHECK(narrowest(t, path) == 10_GBps);
  }
  // A slow spine cable takes its full share: it holds all the rest back.
  Sketch s;
  for (const char* name : {"n0", "n1"}) s.node(name, name[1] - '0');
  s.node("g0", 0);
  for (const char* name : {"a", "b", "x", "y"}) s.node(name);
  s.cable("n0", "a", cable);
  s.cable("n1", "b", cable);
  s.cable("a", "x", cable);
  s.cable("x", "b", cable);
  s.cable("a", "y", {.bandwidth = 1_GBps});
  s.cable("y", "b", cable);
  const Topology t = s.builder.build();
  Routes routes(t, {}, {.policy = Routing::Policy::packet_spray});
  CHECK(narrowest(t, routes.find(at(t, "n0"), at(t, "n1"))) == 2_GBps);
}

TEST_CASE("several cables to the receiver are one leg when packets are spread over them") {
  Sketch s;
  for (const char* name : {"g0", "g1", "s0", "s1"}) s.node(name);
  s.cable("g0", "g1", cable);
  s.cable("g0", "g1", cable);
  const Topology two = s.builder.build();
  Routes spread(two, {}, {.policy = Routing::Policy::packet_spray});
  const Path path = spread.find(at(two, "g0"), at(two, "g1"));
  REQUIRE(path.legs.size() == 1);
  CHECK(path.legs[0].shares == std::vector<double>{0.5, 0.5});
  CHECK(narrowest(two, path) == 20_GBps);
}

TEST_CASE("a PCIe cable between two GPUs is no NVLink") {
  Sketch s;
  for (const char* name : {"g0", "g1"}) s.node(name, 0);
  s.cable("g0", "g1", pcie);
  const Topology t = s.builder.build();
  CHECK(found(t, {}, "g0", "g1") == "PIX: g0 > g1");
}

TEST_CASE("data that rests in a GPU on its way cannot be spread by packet") {
  Sketch s;
  for (const char* name : {"g0", "g1", "g2"}) s.node(name);
  s.cable("g0", "g1", cable);
  s.cable("g1", "g2", cable);
  const Topology t = s.builder.build();
  Routes routes(t, {}, {.policy = Routing::Policy::packet_spray});
  CHECK_THROWS_WITH_AS(routes.find(at(t, "g0"), at(t, "g2")),
                       "no path from g0 to g2: data is staged in g1 on the way and cannot be spread by packet\n  hint: "
                       "take a policy other than packet_spray",
                       InputError);
}

TEST_CASE("picking the first candidate everywhere is the plain search") {
  const Topology t = two_leaves(Ties::first, 3);
  const auto role = [](const Node& node) { return node.kind == NodeKind::network_switch ? Role::transit : Role::end; };
  CheapestWay search(t, 0, static_cast<std::uint32_t>(t.n_nodes()), role);
  for (std::uint32_t from = 0; from < t.n_nodes(); ++from) {
    for (std::uint32_t to = 0; to < t.n_nodes(); ++to) {
      CAPTURE(from);
      CAPTURE(to);
      const auto plain = search.find({from}, {to});
      const auto picked = search.find({from}, {to}, false, [](NodeId, std::span<const LinkId> all) { return all[0]; });
      CHECK(plain == picked);
    }
  }
}

}  // namespace paths_test
