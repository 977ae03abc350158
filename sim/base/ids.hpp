// Ids: dense numbers that index vectors, one type for each thing counted.
#pragma once

#include <compare>
#include <cstdint>

namespace ringsim {

/// A dense number from 0; vectors are indexed by `.value`. Ids of different things do not mix.
template <class Tag>
struct Id {
  std::uint32_t value = 0;
  auto operator<=>(const Id&) const = default;
};

using NodeId = Id<struct NodeTag>;          ///< a device of the topology
using LinkId = Id<struct LinkTag>;          ///< one direction of a cable
using ResourceId = Id<struct ResourceTag>;  ///< what links may share: a half-duplex cable is two links, one resource

inline constexpr NodeId no_node{UINT32_MAX};
inline constexpr LinkId no_link{UINT32_MAX};
inline constexpr ResourceId no_resource{UINT32_MAX};

/// A participant of a schedule: ranks 0..n-1, then helpers without data of their own (servers, a CPU root, a switch).
/// A plain number, because algorithms calculate with it: `wrap(r + 1, n)`.
using Actor = std::int32_t;

/// A sequence of steps of one actor: a thread block, a stream, a channel's thread.
using Lane = std::int32_t;

}  // namespace ringsim
