// The flow models `ideal` and `fair`: data as a fluid, rates by max-min fairness.
#pragma once

#include <tsl/robin_map.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/network/network.hpp"

namespace ringsim {

/// Max-min fair sharing, worked out again only if something changed.
///
/// A flow's rate is max-min fair when the flow has a bottleneck: a saturated resource on which no flow is faster. So a
/// change needs to touch only the flows whose bottleneck it takes away, and those that are faster than the new share of
/// a resource: settle() solves for the flows next to the change, holds the rest fixed, and widens the circle if one
/// of the rest loses its bottleneck or exceeds somebody else's (Bertsekas & Gallager, Data Networks, 2nd ed., 6.5.2).
///
/// `ideal` is the same with fewer shared resources: the first and last link of a path. The other links of a leg only
/// cap each flow by itself.
///
/// Assumptions: rates adapt at once; a flow holds all links of its leg from its start until its last byte has left;
/// a link's capacity does not depend on the number of flows.
class FlowNetwork final : public Network {
 public:
  /// Rates that differ by less are equal: sums of a few thousand shares are exact to about 10^-13.
  static constexpr double tolerance = 1e-9;
  /// A link is full that has room for more than its flows by less, relatively, and links are equally narrow whose rates
  /// differ by less; chosen, far above the noise of sums and far below `tolerance`.
  static constexpr double full = 1e-11;
  /// A time in ps, rounded up; a small tolerance keeps floating-point noise from adding a picosecond.
  static double whole_picoseconds(double time) { return std::ceil(time - 1e-3 - time * 1e-15); }

  FlowNetwork(NetworkModel model, const Topology& topology, Engine<Event>& engine);

  std::uint32_t add_leg(const Leg& leg, bool first, bool last) override;
  Picoseconds latency(std::uint32_t leg) const override { return legs_[leg].latency; }
  void start(std::uint32_t leg, Bytes size, std::uint64_t piece) override;
  void settle() override;
  std::optional<Told> due(Event event) override;
  void expect_left() override { tells_all_left_ = true; }
  void expect_changes() override { keeps_inner_ = true; }
  void expect_any_order() override { must_be_sure_ = true; }
  void expect_copies(int copies) override { copies_ = copies; }
  void set_bandwidth(ResourceId resource, Bandwidth bandwidth) override;
  std::vector<Withdrawn> withdraw(const std::vector<std::uint64_t>& pieces) override;
  bool any_under_way(const std::function<bool(std::uint64_t)>& counts) const override;
  Carried carried(ResourceId resource) const override;

  /// Rate of each flow in progress by piece, bytes/s: for tests.
  double rate_of(std::uint64_t piece) const;
  /// How many flows settle() has worked out so far: what the incremental solver touched. For tests and benchmarks.
  std::int64_t flows_solved() const { return flows_solved_; }

 private:
  using FlowIndex = std::uint32_t;
  static constexpr std::uint32_t none = UINT32_MAX;
  static bool clearly_above(double a, double b) { return a > b * (1 + tolerance); }

  struct Use {  // of a resource by a leg
    std::uint32_t resource = 0;
    std::uint32_t weight = 0;  // in weights_: how many of the leg's bytes cross it, for each that is moved of a flow
  };
  struct LegInfo {
    double alone = 0;           // the rate of a flow that is alone on all of it, without copies_
    Picoseconds latency{0};     // with Leg::beyond
    ResourceId alone_resource;  // what sets that rate
    std::uint32_t first_use = 0, n_uses = 0;
    std::uint32_t own = none;  // in own_legs_: no other leg uses its resources, so far; none: some does
    bool is_whole_path = false;
    bool tells_left = false;
  };
  static_assert(sizeof(LegInfo) == 40);
  struct Cap {  // of a leg: the narrowest link that the model does not share
    double rate = std::numeric_limits<double>::infinity();
    ResourceId resource = no_resource;
  };
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
  // What the solver looks at of other flows comes first.
  struct Flow {
    double rate = -1;     // bytes/s; negative: not settled yet
    double decided = -1;  // within settle(): its new rate; negative: not decided yet
    ResourceId limiter = no_resource, decided_limiter = no_resource;
    std::uint32_t solve_mark = 0;  // equal to epoch_: to be solved in this settle()
    std::uint32_t leg = 0;
    std::uint64_t piece = 0;
    Bytes size;
    double left = 0;  // bytes that had not left at `since`
    SimTime since{};
    SimTime due{};                                // when all has left at this rate
    std::uint64_t turn = 0;                       // of that among what is due then
    std::uint32_t stamp = 0;                      // raised at every change of rate: events of older rates are void
    std::uint32_t first_place = 0, n_places = 0;  // in places_: room for as many uses as it ever had
    bool is_scheduled = false;                    // with this stamp
    bool is_member = false;                       // of its resources
    bool is_unsure = false;                       // as Told::is_unsure
  };
  static_assert(sizeof(Flow) <= 96, "a run has as many flows as messages under way");
  struct Member {
    FlowIndex flow = 0;
    std::uint16_t use = 0;     // which use of the flow's leg
    std::uint16_t weight = 0;  // as Use::weight
  };
  struct Usage {                               // of a resource
    std::uint32_t last_leg = 0, last_use = 0;  // the leg (from 1) that was added last of those that use it, and its use
    std::uint32_t owner = none;                // the leg that has it for itself
  };
  struct alignas(64) ResourceState {
    // What a flow needs that is alone there, in one cache line.
    std::vector<Member> members;
    SimTime busy_since{};
    Carried carried;              // not by a leg that has it for itself now
    std::uint32_t n_limited = 0;  // members whose limiter this is: above 0, it is saturated
    bool is_dirty = false;
    bool is_regrouped = false;  // within apply(): the flows that it limits, or their rates, are others now
    // What solve() and apply() need besides.
    double capacity = 0;
    double residual = 0;       // what the decided flows leave
    double open_weight = 0;    // of the undecided flows
    SimTime first_due{};       // of a regrouped one: of the flows that it limits
    std::uint32_t n_open = 0;  // how many uses the undecided flows are
    std::uint32_t touch_mark = 0;
  };
  static_assert(sizeof(ResourceState) == 128);

  static void narrow(double& least, ResourceId& whose, double rate, ResourceId resource);
  void make_resources();
  double capacity(std::uint32_t resource) const;
  Cap cap(std::uint32_t leg) const { return caps_.empty() ? Cap{} : caps_[leg]; }
  std::uint32_t weight_number(double weight);
  double weight(const auto& use_or_member) const { return weights_[use_or_member.weight]; }
  std::span<const Use> inner(std::uint32_t leg) const;
  bool any_link(std::uint32_t leg, const std::function<bool(const Use&)>& is_it) const;
  void take_turn(FlowIndex index);
  void open_up(std::uint32_t leg);
  void join(FlowIndex index);
  void enter(FlowIndex index);
  void leave(FlowIndex index);
  bool is_alone(const Flow& flow) const;
  bool to_be_solved(FlowIndex index) const { return flows_[index].solve_mark == epoch_; }
  void mark_dirty(std::uint32_t resource);
  void add_to_solve(FlowIndex index);
  void touch(std::uint32_t resource);
  void touch_uses(const LegInfo& leg);
  void take(double& residual, double weight, double rate) const;
  bool is_exact(const ResourceState& resource) const;
  void solve();
  void decide(FlowIndex index, double rate, ResourceId limiter);
  bool widen();
  void widen_to_all_connected();
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
  void land(const Flow& flow);
  SimTime later(Picoseconds delay) const { return SimTime{add(engine_.now().time_since_epoch(), delay)}; }
  Told arrived(std::uint32_t landing);
  void go_alone(std::uint32_t own, Bytes size, std::uint64_t piece);
  void take_size(OwnLeg& own, Bytes size);
  static void count_alike(const OwnLeg& own, Carried& carried);
  Carried carried_by(const LegInfo& leg, const Use& use) const;
  void add_own_leg(std::uint32_t resource, Carried& sum) const;
  bool is_moving(const OwnLeg& own) const { return own.is_taken() && engine_.now() < own.until; }
  void set_limiter(Flow& flow, ResourceId limiter);
  Picoseconds time_left(const Flow& flow) const;
  static Picoseconds time_alone(const LegInfo& leg, Bytes size);
  double bytes_left(const Flow& flow) const;
  bool is_under_way(FlowIndex flow) const;
  void set_alone_rate(std::uint32_t leg);
  void add_rate_with_copies(std::uint32_t leg);
  void take_changes();
  void check_rates() const;
  double room(const Use& use, double rate) const;
  void choose_limiter(Flow& flow, double rate);
  bool limiter_is_unsure(const Flow& flow, double rate, double doubt) const;
  bool cap_is_unsure(const Flow& flow) const;
  double doubt() const;
  void expect_sure(const Flow& flow, double before, double doubt) const;
  void expect_sure_rates() const;

  const Topology& topology_;
  Engine<Event>& engine_;
  NetworkModel model_;
  std::vector<LegInfo> legs_;
  std::vector<Cap> caps_;  // [leg] only of `ideal`: `fair` shares all links
  std::vector<OwnLeg> own_legs_;
  std::vector<Carried> own_carried_;  // [own leg] each byte counted once, whatever the weights
  std::vector<std::uint32_t> free_own_legs_;
  std::vector<Use> uses_;
  std::vector<double> weights_{1};  // all that there are; most are 1
  tsl::robin_map<double, std::uint32_t> weight_numbers_;
  bool tells_all_left_ = false;
  bool keeps_inner_ = false;
  std::vector<Inner> inner_of_;  // [leg], then
  std::vector<Use> inner_;
  bool must_be_sure_ = false;
  int copies_ = 1;  // for how many equal flows one stands: weights of shared resources are so many times as large
  bool has_whole_weights_ = true;    // without copies_, up to rounding: so sums of them are exact
  bool is_exact_ = false;            // within settle(): rates have the bits that they have without copies_
  std::vector<char> flow_is_exact_;  // [flow] the same of its rate and of what is left of it; only with copies_
  struct Alone {
    double rate = 0;
    ResourceId limiter = no_resource;
  };
  std::vector<Alone> with_copies_;        // [leg] of a flow that shares it with its copies only; only with copies_
  std::vector<std::uint32_t> changed_;    // resources whose bandwidth changed at this instant
  std::vector<Usage> usage_;              // [resource]
  std::vector<ResourceState> resources_;  // the same; made when the first flow needs one
  std::vector<Flow> flows_;
  std::vector<SimTime> turn_taken_;  // [flow] when its turn was taken; only if must_be_sure_
  std::vector<FlowIndex> free_flows_;
  std::vector<Landing> landings_;
  std::vector<Order> landing_orders_;  // [landing] only if must_be_sure_
  std::uint64_t free_landing_ = none;
  std::vector<std::uint32_t> places_;  // [flow, use] where it stands among the resource's members
  std::vector<FlowIndex> new_flows_;   // started since the last settle()
  std::vector<FlowIndex> opened_;      // that had a leg for themselves since then, and share it now
  std::vector<std::uint32_t> dirty_;   // resources that a limited flow joined or left since then

  std::vector<double> new_weights_;  // room for add_leg()

  // Room for settle(), kept between calls.
  std::uint32_t epoch_ = 0, touch_epoch_ = 0;
  std::vector<FlowIndex> to_solve_;
  std::vector<FlowIndex> outside_;
  std::vector<std::uint32_t> touched_;  // resources of the flows to solve
  std::vector<std::uint32_t> regrouped_;
  std::vector<FlowIndex> first_due_;
  struct Level {  // an equal share at which flows are decided: a resource's, or a flow's cap
    double share = 0;
    std::uint32_t index = 0;  // resource, or flow
    bool is_cap = false;
    bool operator<(const Level& other) const;  // std heaps have the largest on top: the smallest share is that
  };
  std::vector<Level> levels_;
  std::size_t undecided_ = 0;
  std::int64_t flows_solved_ = 0;
};

}  // namespace ringsim
