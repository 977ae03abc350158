#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "sim/check/check_detail.hpp"

namespace ringsim::check_detail {

namespace {

using LookAt = std::function<void(Lane, int i, const Step& step)>;

enum class Access : std::uint8_t { read, write, add };

struct Touch {
  Access access;
  Region region;
};

// What an operation does to the memory of its own actor.
void touches(const Op& op, std::vector<Touch>& out) {
  switch (op.what) {
    case Do::send:
      out.push_back({Access::read, op.region});
      break;
    case Do::receive:
      out.push_back({Access::write, op.region});
      break;
    case Do::receive_add:
      if (op.operand.count > 0) {  // region = operand + what comes in: what stood there is lost
        out.push_back({Access::read, op.operand});
        out.push_back({Access::write, op.region});
      } else {
        out.push_back({Access::add, op.region});
      }
      break;
    case Do::copy:
      out.push_back({Access::read, op.operand});
      out.push_back({Access::write, op.region});
      break;
    case Do::add:
      out.push_back({Access::read, op.operand});
      out.push_back({Access::add, op.region});
      break;
    case Do::compute:
      break;
  }
}

bool conflict(Access a, Access b) {
  if (a == Access::read && b == Access::read) return false;
  return !(a == Access::add && b == Access::add);
}

/// The last access of a kind by a lane to one chunk.
struct LastAccess {
  Lane lane;
  Access kind;
  int step, op;
  bool is_before(Lane other, Access its) const { return lane != other ? lane < other : kind < its; }
};

/// Follows one actor. Vector clocks over its lanes: clock[m] = how many steps of lane m are known to be complete when
/// the present step begins. An access of lane m in step s is ordered before it if s < clock[m].
class Races {
 public:
  Races(const Schedule& schedule, Actor actor, const LookAt& look_at)
      : schedule_(schedule), actor_(actor), look_at_(look_at), n_lanes_(schedule.lanes) {
    std::size_t chunks = 0;
    for (std::size_t b = 0; b < n_buffers; ++b) {
      base_[b] = chunks;
      chunks += static_cast<std::size_t>(schedule.layout[b].n_chunks());
    }
    last_.resize(chunks);
    const auto lanes = static_cast<std::size_t>(n_lanes_);
    clock_.assign(lanes, std::vector<int>(lanes, 0));
    history_.resize(lanes);
    done_.assign(lanes, 0);
    step_.resize(lanes);
    is_read_.assign(lanes, false);
  }

  void go() {
    // Any order that respects lanes and waits will do; what cannot go on is a cycle, which the untimed run reports.
    bool moved = true;
    while (moved) {
      moved = false;
      for (Lane lane = 0; lane < n_lanes_; ++lane)
        while (try_step(lane)) moved = true;
    }
    for (Lane lane = 0; lane < n_lanes_; ++lane) look_at_rest(lane);
  }

 private:
  bool try_step(Lane lane) {
    const auto l = static_cast<std::size_t>(lane);
    const int i = done_[l];
    if (i == schedule_.n_steps(actor_, lane)) return false;
    Step& step = step_[l];
    if (!is_read_[l]) {  // read once, however often it is tried
      read(lane, i, step);
      is_read_[l] = true;
    }
    // Waits for other actors order more than is counted here: without them fewer accesses are ordered, never more.
    for (const Wait& wait : step.waits)
      if (wait.of(actor_) == actor_ && done_[static_cast<std::size_t>(wait.lane)] < wait.steps) return false;
    is_read_[l] = false;
    std::vector<int>& clock = clock_[l];
    for (const Wait& wait : step.waits) {
      if (wait.steps == 0 || wait.of(actor_) != actor_) continue;
      if (wait.lane == lane) continue;  // the lane's own order says so already
      const auto other = static_cast<std::size_t>(wait.lane);
      const std::size_t then = static_cast<std::size_t>(wait.steps - 1) * clock.size();
      for (std::size_t m = 0; m < clock.size(); ++m) clock[m] = std::max(clock[m], history_[other][then + m]);
      clock[other] = std::max(clock[other], wait.steps);
    }
    for (int k = 0; k < static_cast<int>(step.ops.size()); ++k) {
      touched_.clear();
      touches(step.ops[static_cast<std::size_t>(k)], touched_);
      for (const Touch& touch : touched_)
        for (std::uint32_t c = 0; c < touch.region.count; ++c) access(lane, i, k, touch.access, touch.region, c);
    }
    clock[l] = ++done_[l];
    history_[l].insert(history_[l].end(), clock.begin(), clock.end());
    return true;
  }

  void read(Lane lane, int i, Step& step) const {
    step.clear();
    schedule_.step(actor_, lane, i, step);
    look_at_(lane, i, step);
  }
  // Steps after one that cannot begin.
  void look_at_rest(Lane lane) {
    const auto l = static_cast<std::size_t>(lane);
    for (int i = done_[l] + (is_read_[l] ? 1 : 0); i < schedule_.n_steps(actor_, lane); ++i) read(lane, i, step_[l]);
  }

  void access(Lane lane, int step, int op, Access kind, const Region& region, std::uint32_t c) {
    std::vector<LastAccess>& known = last_[base_[static_cast<std::size_t>(region.buffer)] + region.first + c];
    const std::vector<int>& clock = clock_[static_cast<std::size_t>(lane)];
    auto own = known.begin();
    for (const LastAccess& before : known) {
      if (before.is_before(lane, kind)) ++own;
      if (!conflict(before.kind, kind) || before.step < clock[static_cast<std::size_t>(before.lane)]) continue;
      if (before.lane == lane && before.step == step && before.op == op) continue;  // one operation reads and adds
      refuse(schedule_,
             fmt::format("{} and {}: both access {}[{}], at least one of them writes, and nothing orders them",
                         describe(schedule_, actor_, before.lane, before.step, before.op),
                         describe(schedule_, actor_, lane, step, op), to_string(region.buffer), region.first + c),
             "move one of them to a later step of the lane, or add a wait");
    }
    if (own == known.end() || own->lane != lane || own->kind != kind) own = known.insert(own, {lane, kind, step, op});
    own->step = step;
    own->op = op;
  }

  const Schedule& schedule_;
  Actor actor_;
  const LookAt& look_at_;
  Lane n_lanes_;
  std::array<std::size_t, n_buffers> base_{};
  std::vector<std::vector<LastAccess>> last_;  // [chunk] by lane and kind
  std::vector<std::vector<int>> clock_;        // [lane][lane]
  std::vector<std::vector<int>> history_;      // [lane][step and lane] its clock after each step
  std::vector<int> done_;                      // [lane] steps
  std::vector<Step> step_;                     // [lane] its next step, if it was read
  std::vector<bool> is_read_;                  // [lane]
  std::vector<Touch> touched_;
};

/// One lane: its steps are in order, so that only operations of one step can race. Sorted by chunk, each is held
/// against the one of each kind that reaches farthest: O(n log n), where a root's step has an operation for every rank.
void check_steps(const Schedule& schedule, Actor actor, const LookAt& look_at) {
  struct Span {
    std::uint64_t first, end;  // chunks, over all buffers
    Access kind;
    int op;
  };
  std::array<std::uint64_t, n_buffers + 1> base{};
  for (std::size_t b = 0; b < n_buffers; ++b)
    base[b + 1] = base[b] + static_cast<std::uint64_t>(schedule.layout[b].n_chunks());
  std::vector<Span> accesses;
  std::vector<Touch> touched;
  Step step;
  for (int i = 0; i < schedule.n_steps(actor, 0); ++i) {
    step.clear();
    schedule.step(actor, 0, i, step);
    look_at(0, i, step);
    if (step.ops.size() < 2) continue;
    accesses.clear();
    for (int k = 0; k < static_cast<int>(step.ops.size()); ++k) {
      touched.clear();
      touches(step.ops[static_cast<std::size_t>(k)], touched);
      for (const Touch& touch : touched) {
        const std::uint64_t first = base[static_cast<std::size_t>(touch.region.buffer)] + touch.region.first;
        accesses.push_back({first, first + touch.region.count, touch.access, k});
      }
    }
    std::stable_sort(accesses.begin(), accesses.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
    // The two accesses of each kind that reach farthest, of different operations: one of them is not the operation
    // itself.
    std::array<std::array<const Span*, 2>, 3> farthest{};
    for (const Span& access : accesses) {
      for (const Access earlier : {Access::read, Access::write, Access::add}) {
        if (!conflict(earlier, access.kind)) continue;
        for (const Span* other : farthest[static_cast<std::size_t>(earlier)]) {
          if (other == nullptr || other->op == access.op || other->end <= access.first) continue;
          std::size_t buffer = 0;
          while (access.first >= base[buffer + 1]) ++buffer;
          refuse(schedule,
                 fmt::format("{} and {}: both access {}[{}], at least one of them writes, and nothing orders them",
                             describe(schedule, actor, 0, i, std::min(other->op, access.op)),
                             describe(schedule, actor, 0, i, std::max(other->op, access.op)),
                             to_string(static_cast<Buffer>(buffer)), access.first - base[buffer]),
                 "move one of them to a later step of the lane, or add a wait");
        }
      }
      auto& kept = farthest[static_cast<std::size_t>(access.kind)];
      if (kept[0] == nullptr || access.end > kept[0]->end) {
        if (kept[0] != nullptr && kept[0]->op != access.op) kept[1] = kept[0];
        kept[0] = &access;
      } else if (kept[0]->op != access.op && (kept[1] == nullptr || access.end > kept[1]->end)) {
        kept[1] = &access;
      }
    }
  }
}

}  // namespace

void follow_accesses(const Schedule& schedule, Actor actor, const LookAt& look_at) {
  if (schedule.lanes == 1)
    check_steps(schedule, actor, look_at);
  else
    Races(schedule, actor, look_at).go();
}

}  // namespace ringsim::check_detail
