#include "algorithms/trees/trees_in_turn.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

std::size_t place_of(int i) { return static_cast<std::size_t>(i); }

/// One part of the schedule, up or down, as rank 0 sees it.
struct Turns {
  TurningTree tree;                     // [slice * K + d]
  std::vector<std::vector<int>> at;     // [turn * ports + port] places in the tree that are reached in it
  std::vector<std::vector<int>> below;  // [place] the places that receive from it
  int ranks = 0, steps = 0;

  Turns(TurningTree of, int n) : tree(std::move(of)), below(tree.parent.size()), ranks(n) {
    for (int place = 0; place < static_cast<int>(tree.parent.size()); ++place) {
      if (tree.parent[place_of(place)] < 0) continue;
      const int turn = tree.turn[place_of(place)], above = parent_of(place);
      ensure(turn > tree.turn[place_of(above)], "a rank receives before it passes on");
      steps = std::max(steps, turn + 1);
      at.resize(place_of(steps * tree.ports));
      at[place_of(turn * tree.ports + tree.port[place_of(place)])].push_back(place);
      below[place_of(above)].push_back(place);
    }
  }
  static const std::vector<int>& none() {
    static const std::vector<int> nothing;
    return nothing;
  }
  const std::vector<int>& reached(int turn, int port) const {
    return port < tree.ports ? at[place_of(turn * tree.ports + port)] : none();
  }
  int slice_of(int place) const { return place / ranks; }
  Actor displacement(int place) const { return place % ranks; }
  int parent_of(int place) const { return slice_of(place) * ranks + tree.parent[place_of(place)]; }
  int turn_of(int place) const { return tree.turn[place_of(place)]; }
  int port_of(int place) const { return tree.port[place_of(place)]; }
};

/// A step of a port. Those up come first.
struct PortStep {
  int port = 0, number = 0;
};

/// Step i of port p is in lane p * lanes + i modulo lanes.
class InTurn {
 public:
  InTurn(CollectiveOp op, const Symmetry& group, const TurningTree& down, const TurningTree& up, int slices, int lanes)
      : group_(group),
        up_(op == CollectiveOp::all_gather ? TurningTree{} : up, group.order()),
        down_(op == CollectiveOp::reduce_scatter ? TurningTree{} : down, group.order()),
        slices_(slices),
        lanes_(lanes),
        ports_(std::max(up_.tree.ports, down_.tree.ports)) {
    for (int i = 0; i < steps(); ++i)
      for (int port = 0; port < ports_; ++port) waits_.push_back(waits_of({port, i}));
  }

  int up_steps() const { return up_.steps; }
  int steps(Lane lane) const { return (steps() - lane % lanes_ + lanes_ - 1) / lanes_; }
  int lanes() const { return ports_ * lanes_; }
  PortStep step_of(Lane lane, int i) const { return {lane / lanes_, i * lanes_ + lane % lanes_}; }

  void step(Actor a, const PortStep& at, Step& out) const {
    for (const Wait& each : waits_[place_of(at.number * ports_ + at.port)]) out.wait(each.lane, each.steps);
    const bool is_up = at.number < up_.steps;
    const Turns& turns = is_up ? up_ : down_;
    const int channel = at.number % lanes_ + (is_up ? lanes_ : 0);  // a connection stays in one lane
    for (const int place : places_of(at)) {
      const Actor child = turns.displacement(place), parent = turns.displacement(turns.parent_of(place));
      // As the child of one root's tree, and as the parent in another's.
      const Actor own = group_.subtract(a, child), other = group_.subtract(a, parent);
      const int slice = turns.slice_of(place);
      if (is_up) {
        out.send(group_.add(own, parent), block(own, slice), channel);
        out.receive_add(group_.add(other, child), block(other, slice), channel);
      } else {
        out.send(group_.add(other, child), block(other, slice), channel);
        out.receive(group_.add(own, parent), block(own, slice), channel);
      }
    }
  }

 private:
  int steps() const { return up_.steps + down_.steps; }
  Region block(Actor root, int slice) const { return chunk(root * slices_ + slice); }
  PortStep up_step_of(int place) const { return {up_.port_of(place), up_.steps - 1 - up_.turn_of(place)}; }
  PortStep down_step_of(int place) const { return {down_.port_of(place), up_.steps + down_.turn_of(place)}; }
  const std::vector<int>& places_of(const PortStep& at) const {
    return at.number < up_.steps ? up_.reached(up_.steps - 1 - at.number, at.port)
                                 : down_.reached(at.number - up_.steps, at.port);
  }

  /// What must be done before a step, of other lanes: for each of them the last step.
  std::vector<Wait> waits_of(const PortStep& at) const {
    std::map<Lane, int> last;
    const auto lane_of = [&](const PortStep& step) { return step.port * lanes_ + step.number % lanes_; };
    const auto after = [&](const PortStep& step) {
      ensure(step.number < at.number, "a step waits for earlier ones");
      if (lane_of(step) != lane_of(at)) last[lane_of(step)] = std::max(last[lane_of(step)], step.number / lanes_ + 1);
    };
    // Lanes that begin together stay in step, and then all wait at the same time: each begins after another port's
    // step.
    if (at.number > 0 && at.number < lanes_)
      for (int port = 0; port < ports_; ++port)
        if (port != at.port) after({port, at.number - 1});
    for (const int place : places_of(at)) {
      if (at.number < up_.steps) {  // what is sent has come in
        for (const int each : up_.below[place_of(place)]) after(up_step_of(each));
        continue;
      }
      const int above = down_.parent_of(place);
      const bool from_root = down_.displacement(above) == 0;
      if (!from_root) after(down_step_of(above));
      if (up_.steps == 0) continue;
      // The root's block is whole; and where the sum is written, the part sum has left.
      if (from_root)
        for (const int each : up_.below[place_of(above)]) after(up_step_of(each));
      after(up_step_of(place));
    }
    std::vector<Wait> waits;
    for (const auto& [lane, steps] : last) waits.push_back({lane, steps});
    return waits;
  }

  Symmetry group_;
  Turns up_, down_;
  int slices_, lanes_, ports_;
  std::vector<std::vector<Wait>> waits_;  // [step * ports + port]
};

Collective collective_in_turn(CollectiveOp op, int ranks, Bytes bytes, int slices) {
  switch (op) {
    case CollectiveOp::all_gather:
      return all_gather_in_pieces(ranks, bytes, slices);
    case CollectiveOp::reduce_scatter:
      return reduce_scatter_in_pieces(ranks, bytes, slices);
    case CollectiveOp::all_reduce:
      return all_reduce(ranks, bytes);
    default:
      fail_invariant("trees in turn make no other collective");
  }
}

}  // namespace

Schedule trees_in_turn(CollectiveOp op, Bytes bytes, const Symmetry& group, const TurningTree& down,
                       const TurningTree& up, int slices, int lanes) {
  const int ranks = group.order();
  const auto made = std::make_shared<const InTurn>(op, group, down, up, slices, lanes);
  Schedule s{.algorithm = "trees_in_turn",
             .collective = collective_in_turn(op, ranks, bytes, slices),
             .actors = ranks,
             .lanes = made->lanes()};
  s.layout[0] = Layout::near_equal(bytes, ranks * slices);
  if (slices == 1) s.symmetry = group;
  s.n_steps = [made](Actor, Lane lane) { return made->steps(lane); };
  s.step = [made](Actor a, Lane lane, int i, Step& out) { made->step(a, made->step_of(lane, i), out); };
  if (op == CollectiveOp::all_reduce)
    s.phases = {{"reduce up", "broadcast down"}, [made](Actor, Lane lane, int i) {
                  const int number = made->step_of(lane, i).number;
                  return number < made->up_steps() ? PhaseStep{0, number} : PhaseStep{1, number - made->up_steps()};
                }};
  return s;
}

}  // namespace ringsim
