// The flow models `ideal` and `fair`: data as a fluid, rates by max-min fairness.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/network/network.hpp"
#include "sim/network/shares.hpp"

namespace ringsim {

/// Flows over links, whose rates are max-min fair at every moment (Shares); settle() has them worked out again where
/// something changed, and schedules the first to leave of those that one link limits.
///
/// `ideal` is the same with fewer shared resources: the first and last link of a path. The other links of a leg only
/// cap each flow by itself.
///
/// Assumptions: rates adapt at once; a flow holds all links of its leg from its start until its last byte has left;
/// a link's capacity does not depend on the number of flows.
class FlowNetwork final : public Network {
 public:
  /// A time in ps, rounded up; a small tolerance keeps floating-point noise from adding a picosecond.
  static double whole_picoseconds(double time) { return std::ceil(time - 1e-3 - time * 1e-15); }

  FlowNetwork(NetworkModel model, const Topology& topology, Engine<Event>& engine, const NetworkUse& use = {});

  std::uint32_t add_leg(const Leg& leg, bool first, bool last) override;
  Picoseconds latency(std::uint32_t leg) const override { return legs_[leg].latency; }
  void start(std::uint32_t leg, Bytes size, std::uint64_t piece) override;
  void settle() override;
  std::optional<Told> due(Event event) override;
  void set_bandwidth(ResourceId resource, Bandwidth bandwidth) override;
  std::vector<Withdrawn> withdraw(const std::vector<std::uint64_t>& pieces) override;
  bool any_under_way(const std::function<bool(std::uint64_t)>& counts) const override;
  Carried carried(ResourceId resource) const override;

  /// Rate of each flow in progress by piece, bytes/s: for tests.
  double rate_of(std::uint64_t piece) const;
  /// How many flows settle() has worked out so far. For tests and benchmarks.
  std::int64_t flows_solved() const { return shares_.flows_solved(); }

 private:
  using FlowIndex = std::uint32_t;
  static constexpr std::uint32_t none = UINT32_MAX;

  using Use = Shares::Use;      // weight: how many of the leg's bytes cross it, for each that is moved of a flow
  struct LegInfo {              // its number is that of its route in shares_
    double alone = 0;           // the rate of a flow that is alone on all of it, without copies
    Picoseconds latency{0};     // with Leg::beyond
    ResourceId alone_resource;  // what sets that rate
    std::uint32_t own = none;   // in own_legs_: no other leg uses its resources, so far; none: some does
    bool is_whole_path = false;
    bool tells_left = false;
  };
  static_assert(sizeof(LegInfo) == 32);
  struct Inner {                     // of a leg: links that the model does not share
    std::uint32_t first = 0, n = 0;  // in inner_
  };
  // A leg that has its resources for itself, and no more than one piece at a time on its way: there is nothing to
  // share, and no need of a flow. When another leg or piece comes, open_up() makes a flow of what is there.
  struct alignas(64) OwnLeg {
    std::uint32_t leg = 0;
    std::uint32_t stamp = 0;  // odd while a piece is on its way, and an event due for it: of this stamp
    std::uint64_t piece = 0;  // which one, or the last that was
    SimTime until{};          // when it has left
    Bytes size{-1};           // of that piece
    Picoseconds time{0};      // that a piece of that size takes
    std::int64_t alike = 0;   // pieces of that size which own_carried_ does not count yet
    // As the leg's, so that what most pieces need is in one place.
    Picoseconds latency{0};
    ResourceId limiter = no_resource;
    bool tells_left = false;

    bool is_taken() const { return stamp % 2 == 1; }
  };
  static_assert(sizeof(OwnLeg) == 64);
  // In an event's id: of own_legs_, of landings_; else of flows_.
  static constexpr std::uint32_t own_event = 1U << 31, landing_event = 1U << 30;
  struct Landing {             // a piece that has left, until it arrives
    std::uint64_t piece = 0;   // of no piece: the next of the free ones
    std::uint32_t leg = none;  // none: of no piece
    ResourceId limiter;
  };
  static_assert(sizeof(Landing) == 16, "there may be as many as messages under way");
  struct Order {  // as Told's
    SimTime turn{};
    bool is_unsure = false;
  };
  struct Flow {  // its number is the one that it has in shares_, which knows its leg (as its route) and its rate
    std::uint32_t stamp = 0;    // raised at every change of rate: events of older rates are void
    bool is_scheduled = false;  // with this stamp
    std::uint64_t piece = 0;
    Bytes size;
    double left = 0;  // bytes that had not left at `since`
    SimTime since{};
    SimTime due{};           // when all has left at this rate
    std::uint64_t turn = 0;  // of that among what is due then
  };
  static_assert(sizeof(Flow) == 56, "a run has as many flows as messages under way");
  struct Usage {  // of a resource
    std::uint32_t last_leg = 0,
                  last_use =
                      0;  // the leg (from 1) that was added last of those that use it, and its use, counted within it
    std::uint32_t owner = none;  // the leg that has it for itself
  };
  struct alignas(64) Account {  // of a resource
    SimTime busy_since{};
    Carried carried;            // not by a leg that has it for itself now
    SimTime first_due{};        // of a regrouped one: of the flows that it limits
    bool is_regrouped = false;  // within apply(): the flows that it limits, or their rates, are others now
  };
  static_assert(sizeof(Account) == 64);

  static void narrow(double& least, ResourceId& whose, double rate, ResourceId resource);
  void make_resources();
  double capacity(std::uint32_t resource) const;
  std::span<const Use> inner(std::uint32_t leg) const;
  bool any_link(std::uint32_t leg, const std::function<bool(const Use&)>& is_it) const;
  void take_turn(FlowIndex index);
  void open_up(std::uint32_t leg);
  void join(FlowIndex index);
  void enter(FlowIndex index);
  void leave(FlowIndex index);
  void apply();
  void set_rate(FlowIndex index, double rate, ResourceId limiter);
  void schedule(FlowIndex index);
  void regroup(ResourceId limiter);
  void schedule_first_of_groups(std::uint64_t first_turn);
  void tell_moved(const Flow& flow, double bytes) const;
  void tell_moved(const OwnLeg& own) const;
  FlowIndex new_flow(std::uint32_t leg, Bytes size, std::uint64_t piece);
  void start_flow(std::uint32_t leg, Bytes size, std::uint64_t piece);
  std::optional<Told> own_due(Event event);
  std::optional<Told> flow_due(Event event);
  void land(std::uint32_t leg, std::uint64_t piece, ResourceId limiter, bool is_unsure, SimTime due);
  void land(FlowIndex flow);
  SimTime later(Picoseconds delay) const { return SimTime{add(engine_.now().time_since_epoch(), delay)}; }
  Told arrived(std::uint32_t landing);
  void go_alone(std::uint32_t own, Bytes size, std::uint64_t piece);
  void take_size(OwnLeg& own, Bytes size);
  static void count_alike(const OwnLeg& own, Carried& carried);
  Carried carried_by(const LegInfo& leg, const Use& use) const;
  void add_own_leg(std::uint32_t resource, Carried& sum) const;
  bool is_moving(const OwnLeg& own) const { return own.is_taken() && engine_.now() < own.until; }
  Picoseconds time_left(FlowIndex flow) const;
  static Picoseconds time_alone(const LegInfo& leg, Bytes size);
  double bytes_left(FlowIndex flow) const;
  bool is_under_way(FlowIndex flow) const;
  void set_alone_rate(std::uint32_t leg);
  void take_changes();
  void expect_sure(FlowIndex flow, double before, double doubt) const;

  const Topology& topology_;
  Engine<Event>& engine_;
  NetworkModel model_;
  NetworkUse use_;
  Shares shares_;  // of resources that flows share; routes are legs
  std::vector<LegInfo> legs_;
  std::vector<OwnLeg> own_legs_;
  std::vector<Carried> own_carried_;  // [own leg] each byte counted once, whatever the weights
  std::vector<std::uint32_t> free_own_legs_;
  std::vector<Inner> inner_of_;  // [leg], if use_.may_change
  std::vector<Use> inner_;
  std::vector<Shares::Decision> with_copies_;  // [leg] of a flow that shares it with its copies only; if there are some
  std::vector<std::uint32_t> changed_;         // resources whose bandwidth changed at this instant
  std::vector<Usage> usage_;                   // [resource]
  std::vector<Account> accounts_;  // the same; made, like the resources of shares_, when the first flow needs one
  std::vector<Flow> flows_;
  std::vector<SimTime> turn_taken_;  // [flow] when its turn was taken; only if use_.any_order
  std::vector<FlowIndex> free_flows_;
  std::vector<Landing> landings_;
  std::vector<Order> landing_orders_;  // [landing] only if use_.any_order
  std::uint64_t free_landing_ = none;
  std::vector<FlowIndex> new_flows_;  // started since the last settle()
  std::vector<FlowIndex> opened_;     // that had a leg for themselves since then, and share it now

  std::vector<Shares::Wanted> wanted_;  // room for add_leg()

  // Room for settle(), kept between calls.
  std::vector<std::uint32_t> regrouped_;
  std::vector<FlowIndex> first_due_;
};

}  // namespace ringsim
