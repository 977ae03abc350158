// The cheapest way through a part of a topology, found with Boost.Graph. What is cheap is the same everywhere; which
// nodes may be crossed is what the caller decides (sim/topology/routes.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// What a search may do at a node.
enum class Role : std::uint8_t {
  outside,  ///< no part of the search
  end,      ///< only first or last
  relay,    ///< crossed if no way without leads there
  transit,  ///< crossed freely
};

/// A chain of links, from the source on.
using Way = std::vector<LinkId>;

/// At a node from which several links lead on equally well: which one to take. It may take another than these as well.
using Pick = std::function<LinkId(NodeId at, std::span<const LinkId> candidates)>;

/// Which links a search may use; empty: all.
using Usable = std::function<bool(LinkId)>;

/// A link, and which share of the data crosses it.
struct Share {
  LinkId link;
  double share = 1;
};

/// Finds the way with the fewest relays, then the fewest hops, the lowest latency, the widest narrowest link; of equals
/// the one that takes, at the first node where they part, the link added first.
///
/// Three things keep it fast and small: a direct link is always cheapest; a node with one neighbor is never crossed,
/// so it is taken off and its port put back (a way between two ranks of a star costs O(1)); and the rest, the core, is
/// built only when a way through it is asked for. The core's trees are kept, one a destination, up to 64 MiB.
/// Keeps a reference to the topology.
class CheapestWay {
 public:
  /// Searches among the nodes with ids in [first, last) to which `role` gives a part, over the links that are `usable`
  /// (all, if it is empty).
  CheapestWay(const Topology& topology, std::uint32_t first, std::uint32_t last, std::function<Role(const Node&)> role,
              Usable usable = {});
  ~CheapestWay();
  CheapestWay(CheapestWay&&) noexcept;

  /// Empty if from == to; none if nothing leads there.
  std::optional<Way> find(NodeId from, NodeId to);
  /// As find() above, but at every node with a choice `pick` decides: among the links that are equally good in all of
  /// the above, or with `by_hops` among all on a way with the fewest relays and hops, as a switch sees them. None also
  /// where `pick` led to if nothing leads on. Throws InputError if it went round in circles.
  std::optional<Way> find(NodeId from, NodeId to, bool by_hops, const Pick& pick);
  /// All ways with the fewest relays and hops at once: at every node what comes in is divided equally among the links
  /// that lead on. In order of distance from the source. None if nothing leads there.
  std::optional<std::vector<Share>> spread(NodeId from, NodeId to);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The best direct link among the usable: lower latency, then higher bandwidth, then added first. O(the smaller
/// degree).
std::optional<LinkId> best_link(const Topology& topology, NodeId from, NodeId to, const Usable& usable = {});

}  // namespace ringsim
