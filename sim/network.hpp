// Network models: how fast bytes move while others move too. The one seam of ringsim with several implementations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/engine.hpp"
#include "sim/ids.hpp"
#include "sim/routes.hpp"
#include "sim/topology.hpp"
#include "sim/units.hpp"

namespace ringsim {

enum class NetworkModel : std::uint8_t {
  ideal,  ///< only a path's first and last link can be shared; whatever lies between has room for all
  fair,   ///< flows that share a link share it max-min fairly
};
std::string_view to_string(NetworkModel model);

/// What can be due in a run. `id` and `stamp` belong to whoever scheduled it.
struct Event {
  enum class Kind : std::uint32_t { flow, arrival, local } kind = Kind::flow;
  std::uint32_t id = 0;
  std::uint32_t stamp = 0;
};

/// A piece of data whose last byte has left the source of its leg; it arrives a latency later.
struct Left {
  std::uint64_t piece = 0;
  ResourceId limiter = no_resource;  ///< what set its speed at the end; no_resource for an empty piece
};

/// What a resource (a link) carried in a run.
struct Carried {
  std::int64_t pieces = 0;
  double bytes = 0;     ///< counted once a crossing; whole numbers, exact below 2^53, but where packets are spread
  Picoseconds busy{0};  ///< time during which at least one piece used it
};

/// Moves pieces of data over legs and says when each has left. Latency is the caller's affair: a leg's links are held
/// from a piece's start until its last byte has left.
class Network {
 public:
  virtual ~Network() = default;

  /// Makes a leg known; `first`, `last`: whether it is the first, the last of its path. Returns its number.
  virtual std::uint32_t add_leg(const Leg& leg, bool first, bool last) = 0;
  /// A piece starts on a leg, now. `piece` comes back in Left.
  virtual void start(std::uint32_t leg, Bytes size, std::uint64_t piece) = 0;
  /// All that happens at this instant has happened: work out who moves how fast from here on.
  virtual void settle() = 0;
  /// An event of kind `flow` is due. Nothing where it was overtaken by a change of rate.
  virtual std::optional<Left> due(const Event& event) = 0;
  /// What each resource carried so far, [resource]; of those that the model can saturate.
  virtual std::vector<Carried> carried() const = 0;
};

/// The flow models. Both references must outlive the network.
std::unique_ptr<Network> make_network(NetworkModel model, const Topology& topology, Engine<Event>& engine);

}  // namespace ringsim
