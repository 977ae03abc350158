#include "algorithms/trees/ordered_messages.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

/// The steps of all lanes, message by message.
class MessageTable {
 public:
  explicit MessageTable(int ranks) : lanes_(static_cast<std::size_t>(ranks)), steps_(lanes_.size()) {}

  void send_up(const std::vector<OrderedMessage>& list) {
    for (auto each = list.rbegin(); each != list.rend(); ++each) {
      const Place sent = add(0, each->to, each->from, true), received = add(0, each->from, each->to, false);
      step(each->to, sent).send(each->from, chunk(each->piece), 0);
      step(each->from, received).receive_add(each->to, chunk(each->piece), 0);
      wait(each->to, sent, added_[{each->to, each->piece}]);
      added_[{each->from, each->piece}].push_back(received);
      left_[{each->to, each->piece}].push_back(sent);
    }
  }
  void send_down(const std::vector<OrderedMessage>& list) {
    for (const OrderedMessage& each : list) {
      const Place sent = add(1, each.from, each.to, true), received = add(1, each.to, each.from, false);
      step(each.from, sent).send(each.to, chunk(each.piece), 1);
      step(each.to, received).receive(each.from, chunk(each.piece), 1);
      const auto came = came_.find({each.from, each.piece});
      // A rank has its own piece: whole, when all that is added has come.
      wait(each.from, sent, came == came_.end() ? added_[{each.from, each.piece}] : std::vector{came->second});
      wait(each.to, received, left_[{each.to, each.piece}]);  // the part of a sum is sent before the sum overwrites it
      came_[{each.to, each.piece}] = received;
    }
  }

  int lanes() const {
    std::size_t most = 1;
    for (const auto& each : steps_) most = std::max(most, each.size());
    return static_cast<int>(most);
  }
  int n_steps(Actor rank, Lane lane) const {
    const auto& steps = steps_[static_cast<std::size_t>(rank)];
    return lane < static_cast<Lane>(steps.size()) ? static_cast<int>(steps[static_cast<std::size_t>(lane)].size()) : 0;
  }
  const Step& at(Actor rank, Lane lane, int i) const {
    return steps_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(lane)][static_cast<std::size_t>(i)];
  }

 private:
  struct Place {
    Lane lane = 0;
    int step = 0;
  };
  using Places = std::map<std::pair<Actor, int>, std::vector<Place>>;  // by rank and piece

  Place add(int part, Actor rank, Actor peer, bool sends) {
    auto& lanes = lanes_[static_cast<std::size_t>(rank)];
    auto& steps = steps_[static_cast<std::size_t>(rank)];
    const Lane lane = lanes.try_emplace({part, sends, peer}, static_cast<Lane>(lanes.size())).first->second;
    steps.resize(lanes.size());
    steps[static_cast<std::size_t>(lane)].emplace_back();
    return {lane, static_cast<int>(steps[static_cast<std::size_t>(lane)].size()) - 1};
  }
  Step& step(Actor rank, const Place& place) {
    return steps_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(place.lane)]
                 [static_cast<std::size_t>(place.step)];
  }
  void wait(Actor rank, const Place& place, const std::vector<Place>& others) {
    for (const Place& other : others)
      if (other.lane != place.lane) step(rank, place).wait(other.lane, other.step + 1);
  }

  std::vector<std::map<std::tuple<int, bool, Actor>, Lane>> lanes_;  // [rank] by part, direction and peer
  std::vector<std::vector<std::vector<Step>>> steps_;                // [rank][lane]
  Places added_, left_;
  std::map<std::pair<Actor, int>, Place> came_;
};

Collective collective_of_messages(CollectiveOp op, int ranks, Bytes bytes, int pieces) {
  if (op == CollectiveOp::all_gather) return all_gather_in_pieces(ranks, bytes, pieces);
  if (op == CollectiveOp::reduce_scatter) return reduce_scatter_in_pieces(ranks, bytes, pieces);
  ensure(op == CollectiveOp::all_reduce, "ordered messages make no other collective");
  return all_reduce(ranks, bytes);
}

}  // namespace

Schedule ordered_messages(CollectiveOp op, int ranks, Bytes bytes, int pieces, const std::vector<OrderedMessage>& down,
                          const std::vector<OrderedMessage>& up) {
  auto table = std::make_shared<MessageTable>(ranks);
  if (op != CollectiveOp::all_gather) table->send_up(up);
  if (op != CollectiveOp::reduce_scatter) table->send_down(down);
  Schedule s{.algorithm = "ordered_messages",
             .collective = collective_of_messages(op, ranks, bytes, pieces),
             .actors = ranks,
             .lanes = table->lanes()};
  s.layout[0] = Layout::near_equal(bytes, ranks * pieces);
  const std::shared_ptr<const MessageTable> made = std::move(table);
  s.n_steps = [made](Actor rank, Lane lane) { return made->n_steps(rank, lane); };
  s.step = [made](Actor rank, Lane lane, int i, Step& out) { out = made->at(rank, lane, i); };
  return s;
}

}  // namespace ringsim
