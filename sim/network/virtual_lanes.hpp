// Virtual lanes: which routes may share buffers without ever waiting for each other in a circle.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/ids.hpp"

namespace ringsim {

/// A packet that waits in the buffer of one link for room in the buffer of the next makes the first depend on the
/// second. If such dependencies close a circle, packets may wait for each other for ever (Dally & Seitz, IEEE
/// Transactions on Computers 36(5), 1987). So each route is put on the first lane, with buffers of its own, in which
/// its dependencies close no circle, as subnet managers do (LASH: Skeie, Lysne & Theiss, IPDPS 2002; DFSSSP: Domke,
/// Hoefler & Nagel, IPDPS 2011). Up and down a tree one lane is enough.
class VirtualLanes {
 public:
  VirtualLanes(std::size_t n_links, int most);

  using Dependency = std::pair<LinkId, LinkId>;
  /// The lane for a route with these dependencies. The last lane if all would have a circle: then one may arise.
  std::uint32_t place(std::span<const Dependency> route);

 private:
  /// The dependencies on one lane, with a topological order of the links that is kept up as they come (Pearce & Kelly,
  /// ACM Journal of Experimental Algorithmics 11, 2006).
  class Lane {
   public:
    explicit Lane(std::size_t n_links);
    /// Adds all of them, or, if they would close a circle, none.
    bool add(std::span<const Dependency> route);

   private:
    bool add(std::uint32_t from, std::uint32_t to);
    bool collect(std::uint32_t start, const std::vector<std::vector<std::uint32_t>>& next, std::uint32_t low,
                 std::uint32_t high, std::uint32_t forbidden, std::vector<std::uint32_t>& found);
    std::vector<std::uint32_t> place_;                  // [link] in the order
    std::vector<std::vector<std::uint32_t>> out_, in_;  // [link] on which it depends; which depend on it
    std::vector<bool> seen_;
  };

  std::size_t n_links_;
  std::size_t most_;
  std::vector<Lane> lanes_;
};

}  // namespace ringsim
