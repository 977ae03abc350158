// Max-min fair shares of resources: who gets how much, without any notion of time.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/base/ids.hpp"

namespace ringsim {

/// Flows over resources of given capacities, and the max-min fair rate of each; worked out again only if something
/// changed.
///
/// A flow's rate is max-min fair when the flow has a bottleneck: a saturated resource on which no flow is faster. So a
/// change needs to touch only the flows whose bottleneck it takes away, and those that are faster than the new share of
/// a resource: solve() takes the flows next to the change, holds the rest fixed, and widens the circle if one of the
/// rest loses its bottleneck or exceeds somebody else's (Bertsekas & Gallager, Data Networks, 2nd ed., 6.5.2).
///
/// Use: flows enter() and leave(), capacities change; then begin(), add_new() of each flow that is new, add() of each
/// whose rate no longer counts, and solve(). Its decisions become rates by take(), of each flow in solved(). A flow
/// that is alone needs no solving: it takes its rate.
///
/// Units are the caller's: capacity and rate are both, say, bytes/s.
class Shares {
 public:
  using Flow = std::uint32_t;   ///< a number that the caller gives
  using Route = std::uint32_t;  ///< what a flow uses; they count from 0

  /// Rates that differ by less are equal: sums of a few thousand shares are exact to about 10^-13.
  static constexpr double tolerance = 1e-9;
  /// A resource is full that has room for more than its flows by less, relatively, and resources are equally narrow
  /// whose rates differ by less; chosen, far above the noise of sums and far below `tolerance`.
  static constexpr double full = 1e-11;
  /// Floating-point errors of sums of shares stay below this, relatively; chosen, far below `tolerance`.
  static constexpr double noise = 1e-12;
  /// Rates that differ by less, relatively, are one rate.
  static constexpr double same_rate = 1e-13;

  /// A resource of a route. `weight`: how much of it a flow takes, for each unit of the flow's rate.
  struct Use {
    std::uint32_t resource = 0;
    std::uint32_t weight = 0;  ///< a number, as weight_number()
  };
  struct Wanted {
    std::uint32_t resource = 0;
    double weight = 1;
  };
  /// A rate that a flow cannot exceed, and a resource that stands for it: one that is not shared.
  struct Cap {
    double rate = std::numeric_limits<double>::infinity();
    ResourceId resource = no_resource;
  };
  struct Decision {
    double rate = -1;
    ResourceId limiter = no_resource;
  };
  struct Member {  // of a resource
    Flow flow = 0;
    std::uint16_t use = 0;     // which use of the flow's route
    std::uint16_t weight = 0;  // as Use::weight
  };

  /// `copies`: each flow stands for so many equal ones, and Wanted::weight counts for one of them. `any_order`:
  /// decisions must not depend on the order of flows and resources, so is_unsure() says whether they do.
  explicit Shares(int copies = 1, bool any_order = false) : must_be_sure_(any_order), copies_(copies) {}
  int copies() const { return copies_; }

  // --- resources and routes ----------------------------------------------------------------------------------------

  /// Makes the resources; comes before the first flow that enters.
  void make_resources(const std::vector<double>& capacities);
  bool has_resources() const { return !resources_.empty(); }
  double capacity(std::uint32_t resource) const { return resources_[resource].capacity; }
  /// Flows over it must be added, or take another rate.
  void set_capacity(std::uint32_t resource, double capacity) { resources_[resource].capacity = capacity; }

  /// Each resource once at most.
  Route add_route(std::span<const Wanted> uses);
  /// If one route has a cap, all must be given one; it may be infinite.
  void set_cap(Route route, const Cap& cap);
  Cap cap(Route route) const { return caps_.empty() ? Cap{} : caps_[route]; }
  std::span<const Use> uses(Route route) const {
    return {uses_.data() + routes_[route].first_use, routes_[route].n_uses};
  }
  /// Throws InputError if there are more than 2^16 different weights.
  std::uint32_t weight_number(double weight);
  double weight(const auto& use_or_member) const { return weights_[use_or_member.weight]; }
  /// The rate and limiter of a flow that shares the route with its copies only. Requires has_resources().
  Decision alone(Route route) const;

  // --- flows -------------------------------------------------------------------------------------------------------

  /// The number is a flow's, from now on: it has no rate, and does not take part yet.
  void make(Flow flow, Route route);
  void enter(Flow flow);
  void leave(Flow flow);

  Route route(Flow flow) const { return flows_[flow].route; }
  double rate(Flow flow) const { return flows_[flow].rate; }
  ResourceId limiter(Flow flow) const { return flows_[flow].limiter; }
  bool is_member(Flow flow) const { return flows_[flow].is_member; }
  /// True if the limiter of its decision depends on an order; false without `any_order`.
  bool is_unsure(Flow flow) const { return flows_[flow].is_unsure; }
  std::span<const Member> members(std::uint32_t resource) const { return resources_[resource].members; }
  /// True if the flow shares its resources with its copies only. False if weights are not whole numbers: then rounding
  /// may depend on the copies, and solve() checks it.
  bool is_alone(Flow flow) const;

  /// The flow has this rate and limiter from now on. A member counts among those that the resource limits, so that a
  /// flow takes a limiter after it enters, if it enters at all.
  void take(Flow flow, double rate, ResourceId limiter);
  void take_limiter(Flow flow, ResourceId limiter);
  /// Marks a flow that has no bytes to move (0), or none left (-1).
  void set_no_rate(Flow flow, double rate) { flows_[flow].rate = rate; }

  // --- solving -----------------------------------------------------------------------------------------------------

  /// True if a flow has left a resource that limits others, since the last solve().
  bool is_dirty() const { return !dirty_.empty(); }
  void begin();
  /// The flow's rate is to be decided.
  void add(Flow flow);
  /// As add(), of a flow that is new: others may have to make room for it.
  void add_new(Flow flow);
  /// Decides; false if there was nothing to.
  bool solve();
  std::span<const Flow> solved() const { return to_solve_; }
  Decision decision(Flow flow) const { return {flows_[flow].decided, flows_[flow].decided_limiter}; }

  /// Ensures that no resource gives more than it has, after all that was solved is taken.
  void check_rates() const;
  /// By how much a rate may be off, relatively, because sums depend on an order.
  double doubt() const;
  /// True if the flow has the same bits of its rate in any order.
  bool is_exact(Flow flow) const { return copies_ > 1 && flow_is_exact_[flow] != 0; }
  /// False if two rates are too near to each other to tell whether they are equal, after all that was solved is taken.
  bool rates_are_sure() const;

  /// How many flows solve() has worked out so far: what it touched. For tests and benchmarks.
  std::int64_t flows_solved() const { return flows_solved_; }

 private:
  struct RouteUses {
    std::uint32_t first_use = 0, n_uses = 0;
  };
  struct FlowState {
    double rate = -1;     // negative: not settled yet
    double decided = -1;  // within solve(): its new rate; negative: not decided yet
    ResourceId limiter = no_resource, decided_limiter = no_resource;
    std::uint32_t solve_mark = 0;  // equal to epoch_: to be solved now
    Route route = 0;
    std::uint32_t first_place = 0;  // in places_
    std::uint16_t n_places = 0;     // room for as many uses as it ever had
    bool is_member = false;         // of its resources
    bool is_unsure = false;
  };
  static_assert(sizeof(FlowState) == 40, "a run has as many flows as messages under way");
  struct alignas(64) Resource {
    std::vector<Member> members;
    std::uint32_t n_limited = 0;  // members whose limiter this is: above 0, it is saturated
    std::uint32_t n_open = 0;     // how many uses the undecided flows are
    double capacity = 0;
    double residual = 0;     // capacity minus the decided flows
    double open_weight = 0;  // of the undecided flows
    std::uint32_t touch_mark = 0;
    bool is_dirty = false;
  };
  static_assert(sizeof(Resource) == 64);
  struct Level {  // an equal share at which flows are decided: a resource's, or a flow's cap
    double share = 0;
    std::uint32_t index = 0;  // resource, or flow
    bool is_cap = false;
    bool operator<(const Level& other) const;  // std heaps have the largest on top: the smallest share is that
  };

  static bool clearly_above(double a, double b) { return a > b * (1 + tolerance); }
  bool to_be_solved(Flow flow) const { return flows_[flow].solve_mark == epoch_; }
  std::span<const Use> uses_of(const FlowState& flow) const { return uses(flow.route); }
  void mark_dirty(std::uint32_t resource);
  void touch(std::uint32_t resource);
  void touch_uses(const FlowState& flow);
  void subtract(double& residual, double weight, double rate) const;
  bool is_exact_on(const Resource& resource) const;
  void fill();
  void decide(Flow flow, double rate, ResourceId limiter);
  bool widen();
  void widen_to_all_connected();
  double room(const Use& use, double rate) const;
  void choose_limiter(FlowState& flow, double rate);
  bool limiter_is_unsure(const FlowState& flow, double rate, double doubt) const;
  bool cap_is_unsure(const FlowState& flow) const;

  std::vector<RouteUses> routes_;
  std::vector<Cap> caps_;  // [route], if any has one
  std::vector<Use> uses_;
  std::vector<double> weights_{1};  // all that there are; most are 1
  tsl::robin_map<double, std::uint32_t> weight_numbers_;
  bool must_be_sure_;
  int copies_;                       // weights of resources are so many times as large
  bool has_whole_weights_ = true;    // without copies_, up to rounding: so sums of them are exact
  bool is_exact_ = false;            // within solve(): rates have the bits that they have without copies_
  std::vector<char> flow_is_exact_;  // [flow] the same of its rate and of what is left of it; only with copies_
  std::vector<Resource> resources_;
  std::vector<FlowState> flows_;
  std::vector<std::uint32_t> places_;  // [flow, use] where it stands among the resource's members
  std::vector<std::uint32_t>
      dirty_;  // resources with a limited member that a flow left, or a new one joined, since the last solve()

  // Room for solve(), kept between calls.
  std::uint32_t epoch_ = 0, touch_epoch_ = 0;
  std::vector<Flow> to_solve_;
  std::vector<Flow> outside_;
  std::vector<std::uint32_t> touched_;  // resources of the flows to solve
  std::vector<Level> levels_;
  std::size_t undecided_ = 0;
  std::int64_t flows_solved_ = 0;
};

}  // namespace ringsim
