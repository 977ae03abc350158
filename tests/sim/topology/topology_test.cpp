#include "sim/topology/topology.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/names.hpp"

namespace topology_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

/// Of 512 machines with 8 GPUs: enough that a search by halves takes 12 steps, and that hashes come in any order.
std::vector<std::string> names_of_gpus() {
  std::vector<std::string> names;
  for (int host = 0; host < 512; ++host)
    for (int gpu = 0; gpu < 8; ++gpu) names.push_back(fmt::format("node{}.gpu{}", host, gpu));
  return names;
}

}  // namespace

TEST_CASE("a full-duplex cable is two links, each with a bandwidth of its own") {
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("a"), b = builder.add_gpu("b");
  builder.add_cable(a, b, {.bandwidth = 10_GBps, .latency = 2_ps, .kind = LinkKind::nvlink, .source = "a page"});
  const Topology t = builder.build();
  REQUIRE(t.n_links() == 2);
  CHECK(t.n_resources() == 2);
  CHECK(t.link_name(LinkId{0}) == "a -> b");
  CHECK(t.link_name(LinkId{1}) == "b -> a");
  for (const Link& link : t.links()) {
    CHECK(link.bandwidth == 10_GBps);
    CHECK(link.latency == 2_ps);
    CHECK(link.kind == LinkKind::nvlink);
    CHECK(t.source(link) == "a page");
    CHECK(t.resource(link.resource).bandwidth == 10_GBps);
    CHECK_FALSE(t.resource(link.resource).shared);
  }
  CHECK(t.resource_name(t.link(LinkId{1}).resource) == "b -> a");
}

TEST_CASE("both directions of a half-duplex cable draw on one resource") {
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("a"), m = builder.add_node("m", NodeKind::memory);
  builder.add_cable(a, m, {.bandwidth = 3_GBps, .duplex = Duplex::half});
  const Topology t = builder.build();
  REQUIRE(t.n_links() == 2);
  REQUIRE(t.n_resources() == 1);
  CHECK(t.link(LinkId{0}).resource == t.link(LinkId{1}).resource);
  CHECK(t.resource(ResourceId{0}).shared);
  CHECK(t.resource(ResourceId{0}).link == LinkId{0});
  CHECK(t.resource_name(ResourceId{0}) == "a <-> m");
}

TEST_CASE("a one-way link has no way back") {
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("a"), b = builder.add_gpu("b");
  builder.add_link(a, b, {.bandwidth = 1_GBps});
  const Topology t = builder.build();
  CHECK(names_of(t, t.links_from(a)) == std::vector<std::string>{"a -> b"});
  CHECK(names_of(t, t.links_from(b)).empty());
  CHECK(names_of(t, t.links_to(b)) == std::vector<std::string>{"a -> b"});
  CHECK(names_of(t, t.links_to(a)).empty());
}

TEST_CASE("links of a node are in the order in which they were added") {
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("a"), b = builder.add_gpu("b"), c = builder.add_gpu("c");
  builder.add_cable(a, c, {.bandwidth = 1_GBps});
  builder.add_cable(b, a, {.bandwidth = 1_GBps});
  builder.add_cable(a, c, {.bandwidth = 2_GBps});  // a second cable between the same pair is a link of its own
  const Topology t = builder.build();
  CHECK(names_of(t, t.links_from(a)) == std::vector<std::string>{"a -> c", "a -> b", "a -> c"});
  CHECK(names_of(t, t.links_to(a)) == std::vector<std::string>{"c -> a", "b -> a", "c -> a"});
  CHECK(t.links_from(c).size() == 2);
}

TEST_CASE("nodes are found by name; ranks and helpers keep their order") {
  TopologyBuilder builder;
  const NodeId server = builder.add_node("server0", NodeKind::cpu);
  const NodeId second = builder.add_node("gpu1", NodeKind::gpu, 3);
  const NodeId first = builder.add_gpu("gpu0");
  builder.add_rank(second);
  builder.add_helper(server);
  const Topology t = builder.build();
  CHECK(t.find("gpu1") == second);
  CHECK_FALSE(t.find("gpu2"));
  CHECK(t.node(second).host == 3U);
  CHECK_FALSE(t.node(first).host);
  CHECK(std::vector(t.ranks().begin(), t.ranks().end()) == std::vector{first, second});
  CHECK(std::vector(t.helpers().begin(), t.helpers().end()) == std::vector{server});
}

TEST_CASE("each of thousands of names is found with its own node, and no other name is found") {
  const std::vector<std::string> names = names_of_gpus();
  TopologyBuilder builder;
  for (const std::string& name : names) builder.add_gpu(name);
  const Topology t = builder.build();
  for (std::uint32_t n = 0; n < names.size(); ++n) {
    CAPTURE(names[n]);
    REQUIRE(t.find(names[n]) == NodeId{n});
    // Near misses: longer, shorter, without its host. A view of a longer text is also a name: no zero ends it.
    const std::string longer = names[n] + "8";
    REQUIRE_FALSE(t.find(longer));
    REQUIRE_FALSE(t.find(names[n] + " "));
    REQUIRE_FALSE(t.find(std::string_view(names[n]).substr(0, names[n].size() - 1)));
    REQUIRE_FALSE(t.find(local_name(names[n])));
    REQUIRE(t.find(std::string_view(longer).substr(0, names[n].size())) == NodeId{n});
  }
  CHECK_FALSE(t.find(""));
  CHECK_FALSE(t.find("node512.gpu0"));
  CHECK_FALSE(Topology{}.find("node0.gpu0"));
}

TEST_CASE("a builder finds names before it builds, and takes the same names again for its next topology") {
  const std::vector<std::string> names = names_of_gpus();
  const auto size = static_cast<std::uint32_t>(names.size());
  TopologyBuilder builder;
  for (std::uint32_t n = 0; n < size; ++n) {
    CHECK_FALSE(builder.find(names[n]));
    builder.add_gpu(names[n]);
    CHECK(builder.find(names[n]) == NodeId{n});
  }
  for (std::uint32_t n = 0; n < size; ++n) REQUIRE(builder.find(names[n]) == NodeId{n});
  CHECK_FALSE(builder.find("node512.gpu0"));
  const Topology first = builder.build();

  // In the opposite order: each name has another number than before.
  for (std::uint32_t n = 0; n < size; ++n) {
    const std::string& name = names[size - 1 - n];
    REQUIRE_FALSE(builder.find(name));
    REQUIRE_NOTHROW(builder.add_gpu(name));
    REQUIRE(builder.find(name) == NodeId{n});
  }
  CHECK_THROWS_AS(builder.add_gpu(names[0]), InputError);
  const Topology second = builder.build();
  for (std::uint32_t n = 0; n < size; ++n) {
    CAPTURE(names[n]);
    REQUIRE(first.find(names[n]) == NodeId{n});
    REQUIRE(second.find(names[n]) == NodeId{size - 1 - n});
  }
}

TEST_CASE("what cannot be built is refused by name") {
  TopologyBuilder builder;
  const NodeId a = builder.add_node("a", NodeKind::network_switch);
  CHECK_THROWS_WITH_AS(builder.add_gpu("a"), "two nodes are named \"a\"\n  hint: give every node a unique name",
                       InputError);
  SUBCASE("no rank") {
    CHECK_THROWS_WITH_AS(builder.build(), "the topology has no rank\n  hint: add at least one gpu", InputError);
  }
  const NodeId b = builder.add_gpu("b");
  SUBCASE("a link to itself") {
    builder.add_link(b, b, {.bandwidth = 1_GBps});
    CHECK_THROWS_WITH_AS(builder.build(), "link b -> b leads from a node to itself", InputError);
  }
  SUBCASE("no bandwidth") {
    builder.add_cable(b, a, {});
    CHECK_THROWS_WITH_AS(builder.build(), "link b -> a: expected a bandwidth of at least 1 B/s, found 0 B/s",
                         InputError);
  }
  SUBCASE("a link before its end") {
    builder.add_cable(b, a, {.bandwidth = 1_GBps, .latency = Picoseconds{-1}});
    CHECK_THROWS_WITH_AS(builder.build(), "link b -> a: expected a latency of 0 or more, found less", InputError);
  }
}

TEST_CASE("kinds are written as users read them") {
  CHECK(to_string(NodeKind::gpu) == "gpu");
  CHECK(to_string(NodeKind::pcie_switch) == "pcie_switch");
  CHECK(to_string(NodeKind::network_switch) == "switch");
  CHECK(to_string(LinkKind::generic) == "link");
  CHECK(to_string(LinkKind::infiniband) == "infiniband");
}

}  // namespace topology_test
