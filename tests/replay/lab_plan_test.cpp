// What is said to `ip` and `tc` to have a topology made of namespaces: no root is needed to look at it.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "topologies/catalog.hpp"
#include "validate/replay/lab/lab_plan.hpp"

namespace lab_plan_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using Program = LabCommand::Program;

namespace {

/// 200 Mb/s of payload in frames of 9000: 8948 bytes of each 9014 that tc counts.
constexpr const char* rate_of_25_MBps = "201475190bit";

Topology star_of(int ranks) { return build(Star{.ranks = ranks, .link = {.bandwidth = Bandwidth{25'000'000}}}); }

/// gpus 0 and 1 at one switch, 2 at the other.
Topology two_racks() {
  TopologyBuilder b;
  for (const char* name : {"a", "b", "c"}) b.add_gpu(name);
  const NodeId left = b.add_node("left", NodeKind::network_switch),
               right = b.add_node("right", NodeKind::network_switch);
  for (const char* name : {"a", "b"}) b.add_cable(*b.find(name), left, {.bandwidth = Bandwidth{25'000'000}});
  b.add_cable(*b.find("c"), right, {.bandwidth = Bandwidth{25'000'000}});
  b.add_cable(left, right, {.bandwidth = Bandwidth{50'000'000}});
  return b.build();
}

LabPlan plan_of(const Topology& topology, const LabPairs& pairs, LabOptions options = {}) {
  return plan_lab(topology, {topology.ranks().begin(), topology.ranks().end()}, pairs, options);
}

/// Texts of one program in one namespace, in order.
std::vector<std::string> texts(const LabPlan& plan, Program program, const std::string& where) {
  std::vector<std::string> found;
  for (const LabCommand& command : plan.up)
    if (command.program == program && command.net_namespace == where) found.push_back(command.text);
  return found;
}

std::string refusal(const Topology& topology) {
  try {
    plan_of(topology, {});
  } catch (const InputError& error) {
    return error.where() + ": " + error.message();
  }
  return "";
}

}  // namespace

TEST_CASE("a star of two becomes two namespaces, a third with its bridge, and a veth pair each") {
  const LabPlan plan = plan_of(star_of(2), {{0, 1}}, {.prefix = "x-", .cpus = 2});
  CHECK(plan.namespaces == std::vector<std::string>{"x-fabric", "x-n0", "x-n1"});
  CHECK(texts(plan, Program::ip, "") ==
        std::vector<std::string>{"netns add x-fabric", "netns add x-n0", "netns add x-n1"});
  CHECK(texts(plan, Program::ip, "x-fabric") ==
        std::vector<std::string>{
            "link set lo up", "link add br2 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            "link set br2 up", "link add p2-0 mtu 9000 type veth peer name eth0 mtu 9000 netns x-n0",
            "link add p2-1 mtu 9000 type veth peer name eth0 mtu 9000 netns x-n1",
            "link set p2-0 gso_max_size 18540 gso_max_segs 2 up master br2",
            "link set p2-1 gso_max_size 18540 gso_max_segs 2 up master br2"});
  CHECK(texts(plan, Program::ip, "x-n1") ==
        std::vector<std::string>{"link set lo up", "link set eth0 gso_max_size 18540 gso_max_segs 2 up",
                                 "addr add 10.88.0.2/16 dev eth0"});
  CHECK(plan.process_namespace == std::vector<std::string>{"x-n0", "x-n1"});
  CHECK(plan.process_address == std::vector<std::string>{"10.88.0.1", "10.88.0.2"});
  const auto shell = texts(plan, Program::sh, "x-n0");
  CHECK(std::find(shell.begin(), shell.end(), "echo 3 > /sys/class/net/eth0/queues/rx-0/rps_cpus") != shell.end());
}

TEST_CASE("a port has a class for each pair that passes it, and borrows its rate to them in equal turns") {
  const LabPlan plan = plan_of(star_of(3), {{0, 2}, {1, 2}}, {.prefix = "x-"});
  const std::string rate = rate_of_25_MBps;
  const auto class_of = [&](const std::string& device, const std::string& id, const std::string& parent,
                            const std::string& own, const std::string& burst) {
    return "class add dev " + device + " parent " + parent + " classid 1:" + id + " htb rate " + own + " ceil " + rate +
           " burst " + burst + " cburst " + burst + " quantum 18540";
  };
  const std::vector<std::string> one{
      "qdisc add dev eth0 root handle 1: htb default 0", class_of("eth0", "1", "1:", rate, "64kb"),
      class_of("eth0", "10", "1:1", "201475bit", "18kb"),  // a thousandth
      "qdisc add dev eth0 parent 1:10 pfifo limit 10000",
      "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.88.0.1/32 match ip dst 10.88.0.3/32 flowid "
      "1:10"};
  CHECK(texts(plan, Program::tc, "x-n0") == one);
  const auto fabric = texts(plan, Program::tc, "x-fabric");
  const auto count = [&](const std::string& part) {
    return std::count_if(fabric.begin(), fabric.end(),
                         [&](const std::string& text) { return text.find(part) != std::string::npos; });
  };
  CHECK(count("class add dev p3-2 parent 1:1 ") == 2);  // both flows leave the switch for gpu2
  CHECK(count("class add dev p3-0 parent 1:1 ") == 0);  // none for gpu0
  CHECK(count("class add dev p3-0 parent 1: ") == 1);   // but the port is there
  CHECK(count("match ip src 10.88.0.2/32 match ip dst 10.88.0.3/32 flowid 1:11") == 1);
}

TEST_CASE("ports that are one queue have tbf, at the same rate") {
  const LabPlan plan = plan_of(star_of(2), {{0, 1}}, {.prefix = "x-", .fair_ports = false});
  CHECK(texts(plan, Program::tc, "x-n0") == std::vector<std::string>{std::string("qdisc add dev eth0 root tbf rate ") +
                                                                     rate_of_25_MBps + " burst 64kb limit 64mb"});
}

TEST_CASE("switches are bridges of one namespace, and flows pass the links of their way, trunks too") {
  const LabPlan plan = plan_of(two_racks(), {{0, 2}, {1, 2}, {2, 1}, {0, 1}}, {.prefix = "x-"});
  const auto ip = texts(plan, Program::ip, "x-fabric");
  CHECK(std::count(ip.begin(), ip.end(), "link add p3-4 mtu 9000 type veth peer name p4-3 mtu 9000") == 1);
  CHECK(std::count(ip.begin(), ip.end(), "link set p4-3 gso_max_size 18540 gso_max_segs 2 up master br4") == 1);
  const auto pairs_at = [&](const std::string& where, const std::string& device) {
    std::multiset<std::string> found;
    for (const std::string& text : texts(plan, Program::tc, where)) {
      const auto at = text.find("match ip src 10.88.0.");
      if (text.find("dev " + device + " ") == std::string::npos || at == std::string::npos) continue;
      found.insert(text.substr(at + 21, 1) + text.substr(text.find("dst 10.88.0.") + 12, 1));
    }
    return found;
  };
  using Pairs = std::multiset<std::string>;  // "13": from address 1 to address 3
  CHECK(pairs_at("x-fabric", "p3-4") == Pairs{"13", "23"});
  CHECK(pairs_at("x-fabric", "p4-3") == Pairs{"32"});
  CHECK(pairs_at("x-fabric", "p4-2") == Pairs{"13", "23"});
  CHECK(pairs_at("x-fabric", "p3-1") == Pairs{"32", "12"});
  CHECK(pairs_at("x-n0", "eth0") == Pairs{"12", "13"});
  CHECK(pairs_at("x-n2", "eth0") == Pairs{"32"});
}

TEST_CASE("two processes at one node have an address each") {
  const Topology topology = star_of(2);
  const NodeId first = topology.ranks()[0], second = topology.ranks()[1];
  const LabPlan plan = plan_lab(topology, {first, second, first}, {{0, 1}, {2, 1}}, {.prefix = "x-"});
  CHECK(plan.process_namespace == std::vector<std::string>{"x-n0", "x-n1", "x-n0"});
  CHECK(plan.process_address == std::vector<std::string>{"10.88.0.1", "10.88.0.2", "10.88.0.3"});
  const auto ip = texts(plan, Program::ip, "x-n0");
  CHECK(std::count(ip.begin(), ip.end(), "addr add 10.88.0.3/16 dev eth0") == 1);
}

TEST_CASE("rates are of payload: tc's has the frames on top") {
  CHECK(shaped_rate(Bandwidth{25'000'000}, 9000) == 201'475'190);  // x 9014/8948
  CHECK(shaped_rate(Bandwidth{25'000'000}, 1500) == 209'116'022);  // x 1514/1448
  const Topology topology = star_of(2);
  const LinkId up = topology.links_from(topology.ranks()[0])[0];
  CHECK(change_link(topology, up, Bandwidth{12'500'000}, {.prefix = "x-"}) ==
        LabCommand{
            Program::tc, "x-n0",
            "class change dev eth0 parent 1: classid 1:1 htb rate 100737595bit ceil 100737595bit burst 64kb cburst "
            "64kb quantum 18540"});
  CHECK(change_link(topology, up, Bandwidth{12'500'000}, {.prefix = "x-", .fair_ports = false}).text ==
        "qdisc change dev eth0 root tbf rate 100737595bit burst 64kb limit 64mb");
}

TEST_CASE("what namespaces cannot be is refused") {
  const LinkSpec link{.bandwidth = Bandwidth{25'000'000}};
  CHECK(refusal(build(Ring{.ranks = 3, .link = link})) ==
        "/topology: expected endpoints with one cable, to a switch, found gpu0");
  LinkSpec half = link;
  half.duplex = Duplex::half;
  CHECK(refusal(build(Star{.ranks = 2, .link = half})) ==
        "/topology: expected full-duplex cables, found the half-duplex gpu0 <-> switch0");
  TopologyBuilder twice;
  const NodeId gpu = twice.add_gpu("g"), bridge = twice.add_node("s", NodeKind::network_switch);
  twice.add_cable(gpu, bridge, link);
  twice.add_cable(gpu, bridge, link);
  CHECK(
      refusal(twice.build()) ==
      "/topology: expected one cable in both directions between two nodes, found another number of links with g -> s");
  TopologyBuilder loop;  // three switches in a circle
  std::vector<NodeId> switches;
  for (const char* name : {"s0", "s1", "s2"}) switches.push_back(loop.add_node(name, NodeKind::network_switch));
  loop.add_cable(loop.add_gpu("g"), switches[0], link);
  for (std::size_t i = 0; i < 3; ++i) loop.add_cable(switches[i], switches[(i + 1) % 3], link);
  CHECK(refusal(loop.build()) ==
        "/topology: expected switches that are one tree, found 3 switches and 3 cables between them");
  TopologyBuilder apart;
  for (const char* name : {"0", "1"}) {
    const NodeId own = apart.add_node(std::string("s") + name, NodeKind::network_switch);
    apart.add_cable(apart.add_gpu(std::string("g") + name), own, link);
  }
  CHECK(refusal(apart.build()) ==
        "/topology: expected switches that are one tree, found 2 switches and 0 cables between them");
  const Topology topology = star_of(2);
  CHECK_THROWS_WITH_AS(plan_lab(topology, {*topology.find("switch0")}, {}, {}),
                       "/collective: expected actors only at endpoints, found one in the switch switch0\n  hint: "
                       "bridges cannot add data",
                       InputError);
}

}  // namespace lab_plan_test
