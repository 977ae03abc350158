#include "algorithms/formats/mscclpp_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "algorithms/formats/mscclpp_plan.hpp"
#include "sim/base/error.hpp"

namespace ringsim::mscclpp {

namespace {

bool sends(const Op& op) { return op.what == Do::send; }
bool receives(const Op& op) { return op.what == Do::receive || op.what == Do::receive_add; }
bool adds(const Op& op) { return op.what == Do::add || (op.what == Do::receive_add && op.operand.count == 0); }
bool overlap(const Region& a, const Region& b) {
  return a.buffer == b.buffer && a.first < b.first + b.count && b.first < a.first + a.count;
}

/// One end of the messages of a connection at a GPU; or, with no peer, what the GPU does within itself.
using End = std::tuple<bool, Actor, int>;  // sends, peer, channel
End end_of(const Op& op) { return sends(op) || receives(op) ? End{sends(op), op.peer, op.channel} : End{false, -1, 0}; }

/// [rank][lane][step][operation] the number of its message; -1: it is none.
using MessageNumbers = std::vector<std::vector<std::vector<int>>>;

/// The k-th send of a connection meets its k-th receive.
MessageNumbers number_messages(const StoredSchedule& stored, std::vector<Message>& messages) {
  MessageNumbers numbers(stored.steps.size());
  std::map<std::tuple<Actor, Actor, int>, std::vector<int>> of;  // [k] its number
  std::map<std::pair<std::tuple<Actor, Actor, int>, bool>, std::size_t> seen;
  for (std::size_t i = 0; i < stored.steps.size(); ++i) {
    const auto rank = static_cast<Actor>(i / static_cast<std::size_t>(stored.lanes));
    for (const Step& step : stored.steps[i]) {
      numbers[i].emplace_back();
      for (const Op& op : step.ops) {
        if (!sends(op) && !receives(op)) {
          numbers[i].back().push_back(-1);
          continue;
        }
        const std::tuple connection{sends(op) ? rank : op.peer, sends(op) ? op.peer : rank, int{op.channel}};
        std::vector<int>& list = of[connection];
        const std::size_t k = seen[{connection, sends(op)}]++;
        if (k == list.size()) {
          list.push_back(static_cast<int>(messages.size()));
          messages.push_back({.from = std::get<0>(connection), .to = std::get<1>(connection), .channel = op.channel});
        }
        Message& message = messages[static_cast<std::size_t>(list[k])];
        if (sends(op)) {
          message.source = op.region;
        } else {
          message.pulled = op.what == Do::receive_add;
          message.target = op.region;
          message.operand = op.operand;
        }
        numbers[i].back().push_back(list[k]);
      }
    }
  }
  return numbers;
}

/// Which thread block of a lane has which ends. What the GPU itself does in one step (puts, reads, its own copies) is
/// spread, but for additions to one chunk and for messages of one connection, which follow one another.
class Spread {
 public:
  Spread(const std::vector<Step>& steps, const std::vector<std::vector<int>>& numbers,
         const std::vector<Message>& messages) {
    for (std::size_t i = 0; i < steps.size(); ++i) add_step(steps[i], numbers[i], messages);
    color();
  }

  int count() const { return std::max(count_, 1); }
  int block_of(const Op& op) const { return blocks_.at(end_of(op)); }

  static bool is_done_here(const Op& op, int number, const std::vector<Message>& messages) {
    return number < 0 || messages[static_cast<std::size_t>(number)].pulled != sends(op);
  }

 private:
  void add_step(const Step& step, const std::vector<int>& numbers, const std::vector<Message>& messages) {
    std::vector<std::size_t> active;
    std::vector<const Op*> ops;
    for (std::size_t k = 0; k < step.ops.size(); ++k) {
      const Op& op = step.ops[k];
      const auto [found, is_new] = ids_.try_emplace(end_of(op), ids_.size());
      if (is_new) {
        order_.push_back(end_of(op));
        parent_.push_back(found->second);
        is_active_.push_back(false);
      }
      if (!is_done_here(op, numbers[k], messages)) continue;
      is_active_[found->second] = true;
      for (std::size_t other = 0; other < active.size(); ++other)
        if (adds(op) && adds(*ops[other]) && overlap(op.region, ops[other]->region))
          parent_[root(active[other])] = root(found->second);
      active.push_back(found->second);
      ops.push_back(&op);
    }
    std::sort(active.begin(), active.end());
    active.erase(std::unique(active.begin(), active.end()), active.end());
    together_.insert(std::move(active));
  }

  std::size_t root(std::size_t id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }

  /// The first thread block that has nothing else to do in the same step; ends that only wait go where the fewest are.
  void color() {
    std::vector<std::set<std::size_t>> apart(ids_.size());
    for (const auto& active : together_)
      for (const std::size_t a : active)
        for (const std::size_t b : active)
          if (root(a) != root(b)) apart[root(a)].insert(root(b));
    std::vector<int> block(ids_.size(), -1);
    for (std::size_t id = 0; id < ids_.size(); ++id) {
      if (!is_active_[id] || block[root(id)] != -1) continue;
      std::set<int> taken;
      for (const std::size_t other : apart[root(id)]) taken.insert(block[other]);
      int& mine = block[root(id)];
      for (mine = 0; taken.count(mine) != 0;) ++mine;
      count_ = std::max(count_, mine + 1);
    }
    std::vector<int> ends(static_cast<std::size_t>(count()), 0);
    for (const bool passive : {false, true})
      for (std::size_t id = 0; id < ids_.size(); ++id) {
        if (is_active_[id] == passive) continue;
        const int chosen =
            passive ? static_cast<int>(std::min_element(ends.begin(), ends.end()) - ends.begin()) : block[root(id)];
        ++ends[static_cast<std::size_t>(chosen)];
        blocks_[order_[id]] = chosen;
      }
  }

  std::map<End, std::size_t> ids_;
  std::vector<End> order_;  // [id]
  std::vector<std::size_t> parent_;
  std::vector<bool> is_active_;
  std::set<std::vector<std::size_t>> together_;  // ids that are active in one step
  int count_ = 0;
  std::map<End, int> blocks_;
};

/// The operations of one thread block. Only its first threads signal and wait: between what they and all threads do
/// stands a nop.
class Writer {
 public:
  void data(PlanOp op) {
    sync(data_ || waited_ != 0);
    data_ = true;
    ops.push_back(std::move(op));
  }
  void signal(int message) {
    sync(data_ || waited_ > 1);
    ops.push_back({.what = PlanOp::signal, .number = message});
  }
  void wait(int message) {
    waited_ = std::max(waited_, 1);
    ops.push_back({.what = PlanOp::wait, .number = message});
  }
  void barrier(int number, int blocks) {
    data_ = false;
    waited_ = 0;
    ops.push_back({.what = PlanOp::barrier, .number = number, .blocks = blocks});
  }
  void semaphores(PlanOp::What what, const std::vector<int>& waits) {
    for (std::size_t first = 0; first < waits.size(); first += most_semaphores_op) {
      const std::size_t n = std::min(most_semaphores_op, waits.size() - first);
      const auto begin = waits.begin() + static_cast<std::ptrdiff_t>(first);
      if (what == PlanOp::release) sync(data_ || waited_ != 0);
      if (what == PlanOp::acquire) waited_ = std::max(waited_, static_cast<int>(n));
      ops.push_back({.what = what, .waits = {begin, begin + static_cast<std::ptrdiff_t>(n)}});
    }
  }

  std::vector<PlanOp> ops;

 private:
  void sync(bool needed) {
    if (needed) ops.push_back({});
    if (needed) data_ = false;
    if (needed) waited_ = 0;
  }
  bool data_ = false;
  int waited_ = 0;  // threads that have waited since the last nop
};

/// One GPU.
class BlockCutter {
 public:
  BlockCutter(const StoredSchedule& stored, Actor rank, const MessageNumbers& numbers, LaidOut& out)
      : stored_(stored),
        rank_(rank),
        numbers_(numbers),
        out_(out),
        blocks_(out.blocks[static_cast<std::size_t>(rank)]) {}

  void cut() {
    number_waits();
    for (Lane lane = 0; lane < stored_.lanes; ++lane)
      if (!stored_.lane(rank_, lane).empty()) cut_lane(lane);
  }

 private:
  struct Waits {
    std::vector<int> before, after;  // taken before a step, given after it
  };

  /// A wait for what the lane has waited for before needs no semaphore.
  void number_waits() {
    waits_.resize(static_cast<std::size_t>(stored_.lanes));
    for (Lane lane = 0; lane < stored_.lanes; ++lane)
      waits_[static_cast<std::size_t>(lane)].resize(stored_.lane(rank_, lane).size());
    for (Lane lane = 0; lane < stored_.lanes; ++lane) {
      std::map<Lane, int> latest;
      const auto& steps = stored_.lane(rank_, lane);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        std::map<Lane, int> needed;
        for (const Wait& wait : steps[i].waits)
          if (wait.lane != lane) needed[wait.lane] = std::max(needed[wait.lane], wait.steps);
        for (const auto& [other, n] : needed) {
          if (n <= latest[other]) continue;
          latest[other] = n;
          const auto id = static_cast<int>(out_.waits.size());
          out_.waits.emplace_back();
          waits_[static_cast<std::size_t>(lane)][i].before.push_back(id);
          waits_[static_cast<std::size_t>(other)][static_cast<std::size_t>(n - 1)].after.push_back(id);
        }
      }
    }
  }

  /// The thread blocks that follow each other through a lane, as many at a time as it needs.
  struct Segment {
    int first = 0;    // its first thread block
    int barrier = 0;  // where they meet
    std::vector<Writer> writers;
  };

  Segment next_segment(int n) {
    Segment segment{.first = static_cast<int>(blocks_.size())};
    blocks_.resize(blocks_.size() + static_cast<std::size_t>(n));
    segment.writers.resize(static_cast<std::size_t>(n));
    if (n > 1 && (segment.barrier = barriers_++) >= most_barriers)
      refuse_plan(stored_,
                  fmt::format("gpu {} needs more than {} barriers between thread blocks", rank_, most_barriers),
                  "use fewer messages at a time or fewer steps");
    return segment;
  }

  void cut_lane(Lane lane) {
    const auto& steps = stored_.lane(rank_, lane);
    const auto& numbers = numbers_[stored_.index(rank_, lane)];
    const Spread spread(steps, numbers, out_.messages);
    Segment segment = next_segment(spread.count());
    bool fresh = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Segment tried = segment;
      add_step(tried, lane, i, spread);
      if (!fits(tried)) {
        if (fresh)
          refuse_plan(
              stored_,
              fmt::format("step {} of rank {}, lane {} needs more than the {} operations that a thread block can have",
                          i, rank_, lane, most_operations),
              "use fewer ranks, or an algorithm with fewer messages per step, such as ring or halving_doubling");
        segment = follow_on(std::move(segment));
        --i;
        fresh = true;
        continue;
      }
      segment = std::move(tried);
      settle(segment, lane, i, spread);
      fresh = false;
    }
    keep(segment);
  }

  /// Room is left for a nop and the semaphore to the next segment.
  static bool fits(const Segment& segment) {
    return std::all_of(segment.writers.begin(), segment.writers.end(),
                       [](const Writer& writer) { return writer.ops.size() + 2 <= most_operations; });
  }

  Segment follow_on(Segment segment) {
    Segment next = next_segment(static_cast<int>(segment.writers.size()));
    for (std::size_t b = 0; b < next.writers.size(); ++b) {
      const auto id = static_cast<int>(out_.waits.size());
      out_.waits.push_back(
          {.releasing = segment.first + static_cast<int>(b), .acquiring = next.first + static_cast<int>(b)});
      segment.writers[b].semaphores(PlanOp::release, {id});
      next.writers[b].semaphores(PlanOp::acquire, {id});
    }
    keep(segment);
    return next;
  }

  void keep(Segment& segment) {
    for (std::size_t b = 0; b < segment.writers.size(); ++b)
      blocks_[static_cast<std::size_t>(segment.first) + b] = std::move(segment.writers[b].ops);
  }

  void add_step(Segment& segment, Lane lane, std::size_t i, const Spread& spread) {
    const Waits& waits = waits_[static_cast<std::size_t>(lane)][i];
    const auto n = static_cast<int>(segment.writers.size());
    const auto meet = [&] {
      if (n > 1)
        for (Writer& writer : segment.writers) writer.barrier(segment.barrier, n);
    };
    segment.writers[0].semaphores(PlanOp::acquire, waits.before);
    if (!waits.before.empty()) meet();
    const Step& step = stored_.lane(rank_, lane)[i];
    const auto& numbers = numbers_[stored_.index(rank_, lane)][i];
    const auto for_each = [&](bool active, const auto& what) {
      for (const std::size_t k : in_turn(step))
        if (Spread::is_done_here(step.ops[k], numbers[k], out_.messages) == active)
          what(segment.writers[static_cast<std::size_t>(spread.block_of(step.ops[k]))], step.ops[k], numbers[k]);
    };
    for_each(false, [](Writer& writer, const Op&, int message) { writer.signal(message); });
    for_each(true, [](Writer& writer, const Op& op, int message) { do_it(writer, op, message); });
    for_each(false, [](Writer& writer, const Op&, int message) { writer.wait(message); });
    const bool last = i + 1 == stored_.lane(rank_, lane).size();
    if (!last || !waits.after.empty()) meet();
    segment.writers[0].semaphores(PlanOp::release, waits.after);
  }

  /// The operations of a step, by peers from the next rank on: if all ranks do the same one after the other, each
  /// has another peer.
  std::vector<std::size_t> in_turn(const Step& step) const {
    std::vector<std::size_t> order(step.ops.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto distance = [&](std::size_t k) {
      const Actor peer = step.ops[k].peer;
      return peer < 0 ? -1 : (peer - rank_ + stored_.ranks) % stored_.ranks;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
    return order;
  }

  static void do_it(Writer& writer, const Op& op, int message) {
    if (message < 0)
      return writer.data(
          {.what = op.what == Do::copy ? PlanOp::copy : PlanOp::add, .region = op.region, .operand = op.operand});
    writer.wait(message);
    writer.data({.what = sends(op) ? PlanOp::put : PlanOp::read_add, .number = message});
    writer.signal(message);
  }

  /// The step is in this segment: so are its ends.
  void settle(const Segment& segment, Lane lane, std::size_t i, const Spread& spread) {
    const Waits& waits = waits_[static_cast<std::size_t>(lane)][i];
    for (const int id : waits.before) out_.waits[static_cast<std::size_t>(id)].acquiring = segment.first;
    for (const int id : waits.after) out_.waits[static_cast<std::size_t>(id)].releasing = segment.first;
    const Step& step = stored_.lane(rank_, lane)[i];
    const auto& numbers = numbers_[stored_.index(rank_, lane)][i];
    for (std::size_t k = 0; k < step.ops.size(); ++k) {
      if (numbers[k] < 0) continue;
      Message& message = out_.messages[static_cast<std::size_t>(numbers[k])];
      (sends(step.ops[k]) ? message.sender : message.receiver) = segment.first + spread.block_of(step.ops[k]);
    }
  }

  const StoredSchedule& stored_;
  Actor rank_;
  const MessageNumbers& numbers_;
  LaidOut& out_;
  std::vector<std::vector<PlanOp>>& blocks_;
  std::vector<std::vector<Waits>> waits_;  // [lane][step]
  int barriers_ = 0;
};

}  // namespace

void refuse_plan(const StoredSchedule& stored, const std::string& what, const std::string& hint) {
  throw InputError("", fmt::format("an MSCCL++ plan cannot represent {}: {}", stored.name, what), hint);
}

LaidOut lay_out(const StoredSchedule& stored) {
  LaidOut out;
  const MessageNumbers numbers = number_messages(stored, out.messages);
  out.blocks.resize(static_cast<std::size_t>(stored.ranks));
  for (Actor rank = 0; rank < stored.ranks; ++rank) BlockCutter(stored, rank, numbers, out).cut();
  return out;
}

}  // namespace ringsim::mscclpp
