#include "validate/replay/lab/lab_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/error.hpp"

namespace ringsim::replay {

namespace {

using Program = LabCommand::Program;

bool is_switch(const Topology& topology, NodeId node) { return topology.node(node).kind == NodeKind::network_switch; }

/// The name of a node's namespace. It has the node's number, because names of nodes may have characters that names of
/// namespaces may not.
std::string namespace_of(const Topology& topology, NodeId node, const LabOptions& options) {
  if (is_switch(topology, node)) return options.prefix + "fabric";
  return fmt::format("{}n{}", options.prefix, node.value);
}

/// The device through which a link leaves its first node.
std::string device_of(const Topology& topology, LinkId id) {
  const Link& link = topology.link(id);
  if (!is_switch(topology, link.from)) return "eth0";
  return fmt::format("p{}-{}", link.from.value, link.to.value);
}

[[noreturn]] void refuse(const std::string& expected, const std::string& found) {
  throw InputError("/topology", fmt::format("expected {}, found {}", expected, found),
                   "the lab supports stars and trees of switches in which each endpoint has one full-duplex cable");
}

void require_cables(const Topology& topology) {
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    const Link& link = topology.link({l});
    if (topology.resource(link.resource).shared)
      refuse("full-duplex cables", "the half-duplex " + topology.resource_name(link.resource));
    const auto leads_back = [&](LinkId id) { return topology.link(id).to == link.from; };
    const auto back = topology.links_from(link.to), there = topology.links_from(link.from);
    if (std::count_if(back.begin(), back.end(), leads_back) != 1 ||
        std::count_if(there.begin(), there.end(), [&](LinkId id) { return topology.link(id).to == link.to; }) != 1)
      refuse("one cable in both directions between two nodes",
             "another number of links with " + topology.link_name({l}));
  }
}

/// Requires a tree, and tells for each pair of switches the link to take: [from][to].
class Tree {
 public:
  explicit Tree(const Topology& topology) : topology_(topology) {
    require_cables(topology);
    std::size_t n_switches = 0, n_trunks = 0;
    for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
      const NodeId node{n};
      const auto links = topology.links_from(node);
      if (is_switch(topology, node)) {
        ++n_switches;
        first_switch_ = first_switch_.value_or(node);
        for (const LinkId link : links) n_trunks += is_switch(topology, topology.link(link).to) ? 1U : 0U;
      } else if (topology.node(node).host || links.size() != 1 || !is_switch(topology, topology.link(links[0]).to)) {
        refuse("endpoints with one cable, to a switch", topology.node(node).name);
      }
    }
    if (!first_switch_ || n_trunks / 2 + 1 != n_switches || reached(*first_switch_) != topology.n_nodes())
      refuse("switches that are one tree",
             fmt::format("{} switches and {} cables between them", n_switches, n_trunks / 2));
  }

  /// The links from one endpoint to another.
  std::vector<LinkId> path(NodeId from, NodeId to) const {
    std::vector<LinkId> links;
    find(from, to, std::nullopt, links);
    return links;
  }

 private:
  bool find(NodeId at, NodeId to, std::optional<NodeId> before, std::vector<LinkId>& links) const {
    if (at == to) return true;
    for (const LinkId link : topology_.links_from(at)) {
      const NodeId next = topology_.link(link).to;
      if (before && next == *before) continue;
      links.push_back(link);
      if (find(next, to, at, links)) return true;
      links.pop_back();
    }
    return false;
  }

  std::size_t reached(NodeId from) const {
    std::vector<bool> seen(topology_.n_nodes());
    std::vector<NodeId> open{from};
    std::size_t n = 0;
    seen[from.value] = true;
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      ++n;
      for (const LinkId link : topology_.links_from(at)) {
        const NodeId next = topology_.link(link).to;
        if (!seen[next.value]) open.push_back(next);
        seen[next.value] = true;
      }
    }
    return n;
  }

  const Topology& topology_;
  std::optional<NodeId> first_switch_;
};

std::string address_of(std::size_t process) { return fmt::format("10.88.{}.{}", process / 250, process % 250 + 1); }

/// TCP hands down several frames as one packet, up to 64 KiB. Ports take turns by packets, whose sizes must then be
/// alike: two frames, and what the kernel keeps of this figure for headers (320 bytes, net/core/sock.c).
int largest_packet(int mtu) { return 2 * (mtu + 14) + 512; }

/// A turn is a packet: as long as none is larger, htb gives each class the same in the long run.
std::string class_text(const char* verb, const std::string& device, const char* parent, int number, std::int64_t rate,
                       std::int64_t ceil, const char* burst, int mtu) {
  return fmt::format(
      "class {0} dev {1} parent {2} classid 1:{3:x} htb rate {4}bit ceil {5}bit burst {6} cburst {6} quantum {7}", verb,
      device, parent, number, rate, ceil, burst, largest_packet(mtu));
}

constexpr int root_class = 1, first_class = 16;
constexpr const char* root_burst = "64kb";  // one credit after each pause: 64 KiB faster than the rate

std::string tbf_text(const char* verb, const std::string& device, std::int64_t rate) {
  return fmt::format("qdisc {} dev {} root tbf rate {}bit burst {} limit 64mb", verb, device, rate, root_burst);
}

/// A port that takes turns: all of its rate is borrowed, in equal turns, by those who have something to send.
void shape_fairly(std::vector<LabCommand>& up, const std::string& where, const std::string& device, std::int64_t rate,
                  const LabPairs& pairs, int mtu) {
  const auto tc = [&](std::string text) { up.push_back({Program::tc, where, std::move(text)}); };
  tc(fmt::format("qdisc add dev {} root handle 1: htb default 0", device));
  tc(class_text("add", device, "1:", root_class, rate, rate, root_burst, mtu));
  int number = first_class;
  for (const auto& [from, to] : pairs) {
    tc(class_text("add", device, "1:1", number, std::max<std::int64_t>(rate / 1000, 8000), rate, "18kb", mtu));
    tc(fmt::format("qdisc add dev {} parent 1:{:x} pfifo limit 10000", device, number));
    tc(fmt::format(
        "filter add dev {} parent 1: protocol ip prio 1 u32 match ip src {}/32 match ip dst {}/32 flowid 1:{:x}",
        device, address_of(static_cast<std::size_t>(from)), address_of(static_cast<std::size_t>(to)), number));
    ++number;
  }
}

}  // namespace

std::int64_t shaped_rate(Bandwidth bandwidth, int mtu) {
  const std::int64_t frame = mtu + 14, payload = mtu - 52;
  return (8 * bandwidth.bytes_per_second * frame + payload / 2) / payload;  // in 64 bits up to 10 TB/s
}

LabPlan plan_lab(const Topology& topology, const std::vector<NodeId>& places, const LabPairs& pairs,
                 const LabOptions& options) {
  const Tree tree(topology);
  std::map<std::uint32_t, LabPairs> through;  // [link]
  for (const auto& pair : pairs)
    for (const LinkId link :
         tree.path(places[static_cast<std::size_t>(pair.first)], places[static_cast<std::size_t>(pair.second)]))
      through[link.value].push_back(pair);

  LabPlan plan;
  const std::string fabric = options.prefix + "fabric";
  plan.namespaces.push_back(fabric);
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n)
    if (!is_switch(topology, {n})) plan.namespaces.push_back(namespace_of(topology, {n}, options));
  const auto say = [&](Program program, const std::string& where, std::string text) {
    plan.up.push_back({program, where, std::move(text)});
  };
  for (const std::string& name : plan.namespaces) say(Program::ip, "", "netns add " + name);
  for (const std::string& name : plan.namespaces) {
    // Neighbor discovery would be traffic besides.
    say(Program::sh, name,
        "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do if [ -e $f ]; then echo 1 > $f; fi; done");
    say(Program::sh, name, "echo 0 > /proc/sys/net/ipv4/tcp_slow_start_after_idle");
    say(Program::ip, name, "link set lo up");
  }
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    if (!is_switch(topology, {n})) continue;
    say(Program::ip, fabric, fmt::format("link add br{} type bridge stp_state 0 forward_delay 0 mcast_snooping 0", n));
    say(Program::ip, fabric, fmt::format("link set br{} up", n));
  }
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    const Link& link = topology.link({l});
    if (!is_switch(topology, link.from)) continue;
    const bool trunk = is_switch(topology, link.to);
    const std::string device = device_of(topology, {l});
    if (!trunk)
      say(Program::ip, fabric,
          fmt::format("link add {} mtu {} type veth peer name eth0 mtu {} netns {}", device, options.mtu, options.mtu,
                      namespace_of(topology, link.to, options)));
    else if (link.from.value < link.to.value)  // once for both directions
      say(Program::ip, fabric,
          fmt::format("link add {} mtu {} type veth peer name p{}-{} mtu {}", device, options.mtu, link.to.value,
                      link.from.value, options.mtu));
  }
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    const NodeId from = topology.link({l}).from;
    const std::string where = namespace_of(topology, from, options), device = device_of(topology, {l});
    say(Program::ip, where,
        fmt::format("link set {} gso_max_size {} gso_max_segs 2 up{}", device, largest_packet(options.mtu),
                    is_switch(topology, from) ? fmt::format(" master br{}", from.value) : ""));
  }
  for (std::size_t p = 0; p < places.size(); ++p) {
    if (is_switch(topology, places[p]))
      throw InputError(
          "/collective",
          fmt::format("expected actors only at endpoints, found one in the switch {}", topology.node(places[p]).name),
          "bridges cannot add data");
    plan.process_namespace.push_back(namespace_of(topology, places[p], options));
    plan.process_address.push_back(address_of(p));
    say(Program::ip, plan.process_namespace.back(), fmt::format("addr add {}/16 dev eth0", address_of(p)));
  }
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    const Link& link = topology.link({l});
    const std::string where = namespace_of(topology, link.from, options), device = device_of(topology, {l});
    const std::int64_t rate = shaped_rate(link.bandwidth, options.mtu);
    if (options.fair_ports)
      shape_fairly(plan.up, where, device, rate, through[l], options.mtu);
    else
      say(Program::tc, where, tbf_text("add", device, rate));
    // Packets of one flow on several processors overtake each other, and TCP takes that for loss.
    say(Program::sh, where,
        fmt::format("echo {:x} > /sys/class/net/{}/queues/rx-0/rps_cpus",
                    (std::uint64_t{1} << std::clamp(options.cpus, 1, 32)) - 1, device));
  }
  return plan;
}

LabCommand change_link(const Topology& topology, LinkId link, Bandwidth bandwidth, const LabOptions& options) {
  const std::string device = device_of(topology, link);
  const std::int64_t rate = shaped_rate(bandwidth, options.mtu);
  return {Program::tc, namespace_of(topology, topology.link(link).from, options),
          options.fair_ports ? class_text("change", device, "1:", root_class, rate, rate, root_burst, options.mtu)
                             : tbf_text("change", device, rate)};
}

}  // namespace ringsim::replay
