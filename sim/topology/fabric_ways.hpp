// Ways over the fabric, or a free topology: how Routing uses several that are equally short.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/topology/cheapest_way.hpp"
#include "sim/topology/host_ways.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// Keeps references to the topology and the hosts.
class FabricWays {
 public:
  /// `usable`: the links that are not down. An entry of a table that leads over one that is down is not followed.
  FabricWays(const Topology& topology, const HostWays& hosts, Routing routing, Usable usable = {});

  /// True if any way leads from one NIC to another.
  bool are_joined(NodeId out, NodeId in);
  struct Crossing {
    std::vector<Share> links;
    std::uint32_t turns = 1;  ///< as Path::turns
    bool has_choice = false;  ///< as Path::has_choice
  };
  /// From one port of the fabric to another, as the policy says; `from` and `to` are the devices that talk, `label` as
  /// in Routes::find(). Throws InputError naming both if there is none.
  Crossing across(NodeId port, NodeId far, NodeId from, NodeId to, std::uint32_t label);

 private:
  bool has_choice_beside(const Way& way, NodeId port, NodeId far);
  Pick chooser(NodeId far, NodeId from, NodeId to, std::uint32_t label, std::uint32_t& turns) const;
  std::optional<LinkId> listed_link(NodeId at, NodeId far) const;
  [[noreturn]] void fail_across(NodeId from, NodeId to, NodeId port, NodeId far) const;

  const Topology& topology_;
  const HostWays& hosts_;
  const Routing routing_;
  const Usable usable_;
  CheapestWay search_;
  std::unordered_map<std::uint32_t, std::uint64_t> numbers_;  // of NICs, in the order of their cables to the fabric
  std::map<std::pair<NodeId, NodeId>, NodeId> table_;         // [at, to] via
};

/// The links of a way, each crossed by all bytes.
std::vector<Share> chain(const Way& way);

/// Throws InputError: no path from one to the other, because.
[[noreturn]] void fail_path(const Topology& topology, NodeId from, NodeId to, const std::string& because,
                            const std::string& hint);

}  // namespace ringsim
