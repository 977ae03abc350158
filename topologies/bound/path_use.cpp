#include "topologies/bound/path_use.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// "node0.pcie3 -> node0.cpu1" as "node0.pcie* -> node0.cpu*": the numbers of devices, not that of their node.
std::string like_name(const std::string& name) {
  std::string result;
  bool of_device = false;  // past the dot of "node0."
  for (const char c : name) {
    if (c == ' ') of_device = false;
    if (c == '.') of_device = true;
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !of_device)
      result += c;
    else if (result.back() != '*')
      result += '*';
  }
  return result;
}

/// How often paths cross the like links of a host, over the pairs seen so far.
class Crossings {
 public:
  explicit Crossings(const Topology& topology) : topology_(topology), group_of_(topology.n_resources(), none) {
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> known;
    for (std::uint32_t r = 0; r < topology.n_resources(); ++r) {
      const Link& link = topology.link(topology.resource({r}).link);
      const auto host = topology.node(link.from).host;
      if (!host || topology.node(link.to).host != host) continue;
      const auto [found, is_new] = known.try_emplace({*host, like_name(topology.resource_name({r}))},
                                                     static_cast<std::uint32_t>(groups_.size()));
      if (is_new) groups_.push_back({.host = *host, .name = found->first.second});
      group_of_[r] = found->second;
    }
    pairs_.resize(topology.hosts().size());
  }

  void add(NodeId from, NodeId to, const std::vector<Path>& parts) {
    const auto here = topology_.node(from).host, there = topology_.node(to).host;
    if (here == there || !here || !there) return;
    ++pairs_[*here].out;
    ++pairs_[*there].in;
    std::map<std::uint32_t, double> counts;  // [group]
    for (const Path& path : parts)
      for (const Leg& leg : path.legs)
        for (std::size_t i = 0; i < leg.links.size(); ++i) {
          const ResourceId resource = topology_.link(leg.links[i]).resource;
          if (group_of_[resource.value] == none) continue;
          counts[group_of_[resource.value]] += leg.share(i) / static_cast<double>(parts.size());
          used_.insert(resource);
        }
    for (const auto& [group, count] : counts) {
      Of& of = groups_[group].host == *here ? groups_[group].out : groups_[group].in;
      of.least = of.pairs == 0 ? count : std::min(of.least, count);
      ++of.pairs;
    }
  }

  std::vector<HostLinks> host_links() const {
    std::vector<HostLinks> result;
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      const Counted& counted = groups_[g];
      HostLinks group{.host = counted.host, .name = counted.name, .in = {}, .out = {}};
      // If some pair does not cross it at all, the least is 0.
      if (counted.in.pairs == pairs_[counted.host].in) group.in = per_byte(counted.in.least);
      if (counted.out.pairs == pairs_[counted.host].out) group.out = per_byte(counted.out.least);
      if (group.in.over == 0 && group.out.over == 0) continue;
      for (const ResourceId resource : used_)
        if (group_of_[resource.value] == g) group.resources.push_back(resource);
      result.push_back(std::move(group));
    }
    return result;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Of {
    std::size_t pairs = 0;
    double least = 0;
  };
  struct Counted {
    std::uint32_t host = 0;
    std::string name;
    Of in = {}, out = {};
  };
  struct Pairs {
    std::size_t in = 0, out = 0;
  };

  /// In thousandths, rounded down but for the noise of sums of shares: what a byte costs at least.
  static Fraction per_byte(double count) { return fraction(static_cast<std::int64_t>(count * 1000 + 1e-6), 1000); }

  const Topology& topology_;
  std::vector<std::uint32_t> group_of_;  // [resource]
  std::vector<Counted> groups_;
  std::vector<Pairs> pairs_;  // [host]
  std::set<ResourceId> used_;
};

/// All ways that a policy may take, as one path whose links are theirs.
Routing all_ways(Routing routing) {
  if (routing.policy != Routing::Policy::fixed) routing.policy = Routing::Policy::packet_spray;
  return routing;
}

bool leads(Routes& routes, NodeId from, NodeId to) {
  try {
    routes.find_parts(from, to);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

std::vector<LinkId> links_of(const std::vector<Path>& parts) {
  std::vector<LinkId> links;
  for (const Path& path : parts)
    for (const Leg& leg : path.legs) links.insert(links.end(), leg.links.begin(), leg.links.end());
  return links;
}

/// The ways of a pair's messages, each in its equal parts. Several with Nics::per_channel: the channels of a GPU take
/// turns, so once as many of them as there are ways have added none, further ones do not either.
std::vector<std::vector<Path>> ways_of(Routes& routes, NodeId from, NodeId to, Transport::Nics nics) {
  std::vector<std::vector<Path>> ways{routes.find_parts(from, to)};
  if (nics != Transport::Nics::per_channel) return ways;
  std::set<std::vector<LinkId>> known{links_of(ways.front())};
  std::uint32_t last = 0;  // that added one
  for (std::uint32_t channel = 1; channel <= last + ways.size(); ++channel) {
    std::vector<Path> parts = routes.find_parts(from, to, channel);
    if (!known.insert(links_of(parts)).second) continue;
    ways.push_back(std::move(parts));
    last = channel;
  }
  return ways;
}

PathUse all_links(const Topology& topology) {
  return {.links = std::vector<bool>(topology.n_links(), true), .cost = {}, .host_links = {}, .all_pairs = false};
}

void add_links(const std::vector<Path>& parts, PathUse& use) {
  for (const Path& path : parts) {
    for (const Leg& leg : path.legs) {
      for (std::size_t i = 0; i < leg.links.size(); ++i) {
        const std::uint32_t link = leg.links[i].value;
        const double cost = std::max(1.0, leg.share(i));
        use.cost[link] = use.links[link] ? std::min(use.cost[link], cost) : cost;
        use.links[link] = true;
      }
    }
  }
}

}  // namespace

PathUse path_use(const Topology& topology, std::span<const NodeId> devices, const Transport& transport,
                 const Routing& routing, const std::vector<bool>& down) {
  PathUse use;
  const std::set<NodeId> distinct(devices.begin(), devices.end());
  if (distinct.size() * distinct.size() > most_pairs_of_paths) return all_links(topology);
  use.links.assign(topology.n_links(), false);
  use.cost.assign(topology.n_links(), 1);
  Crossings crossings(topology);
  Routes routes(topology, transport, all_ways(routing), down), chosen(topology, transport, routing, down);
  for (const NodeId from : distinct) {
    for (const NodeId to : distinct) {
      if (from == to) continue;
      std::vector<std::vector<Path>> ways;
      try {
        ways = ways_of(routes, from, to, transport.nics);
      } catch (const InputError&) {
        // Packets cannot be spread over GPUs that relay, so their ways are not listed; a message takes one of them.
        if (leads(chosen, from, to)) return all_links(topology);
        continue;  // others may relay; if nobody can, the bound says that ranks cannot be reached
      }
      for (const std::vector<Path>& parts : ways) {
        add_links(parts, use);
        crossings.add(from, to, parts);
      }
    }
  }
  use.host_links = crossings.host_links();
  return use;
}

}  // namespace ringsim
