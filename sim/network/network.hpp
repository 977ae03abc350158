// Network models: how fast bytes move while others move too. The one seam of ringsim with several implementations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/base/error.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/network/network_model.hpp"
#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// What can be due in a run. `id` and `stamp` belong to whoever scheduled it. `within`: a message from a device to
/// itself arrives. Of all others the network tells, when a `flow` is due.
struct Event {
  enum class Kind : std::uint8_t { flow, within, local, told, device, posted, link_change, resume, background };

  Event() = default;
  Event(Kind what, std::uint32_t number, std::uint32_t its_stamp)
      : id(number), stamp(its_stamp), turn_and_kind_(static_cast<std::uint64_t>(what)) {}

  Kind kind() const { return static_cast<Kind>(turn_and_kind_ & 0xFF); }
  /// For Engine.
  std::uint64_t turn() const { return turn_and_kind_ >> 8; }
  void set_turn(std::uint64_t turn) { turn_and_kind_ = turn << 8 | (turn_and_kind_ & 0xFF); }

  std::uint32_t id = 0;
  std::uint32_t stamp = 0;

 private:
  std::uint64_t turn_and_kind_ = 0;  // as one word: as two it would be put together in memory
};
static_assert(sizeof(Event) == 16, "a run has as many events as messages under way");

/// What a network tells of a piece of data: that its last byte has left the source of its leg, has arrived at the leg's
/// end, or both, if no time lies between. It tells of each arrival; for what has left see NetworkUse.
struct Told {
  std::uint64_t piece = 0;
  bool has_left = false, has_arrived = false;
  ResourceId limiter = no_resource;  ///< what set its speed; no_resource for an empty piece
  Picoseconds latency{0};            ///< once arrived: the part of its time that was not due to the limiter
  SimTime turn{};          ///< when its place in the order within this instant was taken; with NetworkUse::any_order
  bool is_unsure = false;  ///< whether another link was as full is too near to tell; with NetworkUse::any_order
};

/// What a resource (a link) carried in a run.
struct Carried {
  std::int64_t pieces = 0;  ///< with `packet`: packets
  double bytes = 0;         ///< counted once a crossing; whole numbers, exact below 2^53, but if packets are spread
  Picoseconds busy{0};      ///< time during which at least one piece used it

  Carried& operator+=(const Carried& more) {
    pieces += more.pieces;
    bytes += more.bytes;
    busy += more.busy;
    return *this;
  }
};

/// A part of a piece that has moved, evenly over its time. The flow models say it once for all links of a leg, as the
/// data leaves the leg's source; `packet` says it of each packet on each link.
struct Moved {
  std::uint64_t piece = 0;
  LinkId link = no_link;  ///< no_link: all links of the piece's leg
  SimTime begin{}, end{};
  double bytes = 0;  ///< those of one piece sum to its size, but for rounding
};

/// Thrown if a result that must not depend on an order does.
struct Unsure {
  std::string why;
};

/// The needs of a run beyond arrivals.
struct NetworkUse {
  /// It tells when each piece has left. Else it does so only on legs that are a part of a path, whose next piece waits
  /// for it.
  bool tells_left = false;
  /// All times must be those that they would be if what happens at one instant happened in any other order, and
  /// resources were numbered in any other; else it throws Unsure.
  bool any_order = false;
  /// Each piece stands for so many equal ones that start together on its leg: on a link that pieces share it counts as
  /// all of them, and carried() counts all.
  int copies = 1;
  /// The run is disturbed: bandwidths may change, pieces be withdrawn, or be under way at the end.
  bool may_change = false;
};

/// Moves pieces of data over legs and tells when each has arrived.
class Network {
 public:
  virtual ~Network() = default;

  /// Makes a leg known; `first`, `last`: whether it is the first, the last of its path. Returns its number:
  /// they count from 0.
  virtual std::uint32_t add_leg(const Leg& leg, bool first, bool last) = 0;
  /// The latency of a leg, Leg::beyond included.
  virtual Picoseconds latency(std::uint32_t leg) const = 0;
  /// A piece starts on a leg, now. `piece` comes back in Told.
  virtual void start(std::uint32_t leg, Bytes size, std::uint64_t piece) = 0;
  /// All that happens at this instant has happened: work out who moves how fast from here on.
  virtual void settle() = 0;
  /// An event of kind `flow` is due. Nothing if there is nothing to tell, as after a change of rate.
  virtual std::optional<Told> due(Event event) = 0;
  /// Nothing is due any more, though pieces are under way. Throws InputError if the network knows why.
  virtual void explain_stall() const {}

  // Disturbance (sim/run/disturbance.hpp).

  /// The resource has that bandwidth from now on. Comes before what else happens at this instant.
  virtual void set_bandwidth(ResourceId resource, Bandwidth bandwidth) = 0;
  /// A piece taken off the network, and how much of it had not left. Whole bytes: one that has begun to leave has left.
  struct Withdrawn {
    std::uint64_t piece = 0;
    Bytes rest;                        ///< 0 if all of it leaves at this instant
    ResourceId limiter = no_resource;  ///< as Told's
  };
  /// Takes off those of the pieces (given in ascending order) that have not left. due() will not tell that they have
  /// left. What has left arrives, as a smaller piece, if its leg is a whole path; else only if that is all of it.
  virtual std::vector<Withdrawn> withdraw(const std::vector<std::uint64_t>& pieces) = 0;

  /// True if a piece is under way, up to its arrival, that `counts(piece)`; in a disturbed run. Looks at all of them:
  /// for rare questions.
  virtual bool any_under_way(const std::function<bool(std::uint64_t)>& counts) const = 0;

  /// What a resource carried so far, if the model can saturate it.
  virtual Carried carried(ResourceId resource) const = 0;

  /// Told of all that moves, no later than due() tells of it. Comes before the first piece.
  void watch(std::function<void(const Moved&)> watcher) { watcher_ = std::move(watcher); }

 protected:
  std::function<void(const Moved&)> watcher_;
};

/// Both references must outlive the network. `options` are for `packet`, which moves no copies.
std::unique_ptr<Network> make_network(NetworkModel model, const PacketOptions& options, const Topology& topology,
                                      Engine<Event>& engine, const NetworkUse& use = {});

}  // namespace ringsim
