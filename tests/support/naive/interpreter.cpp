#include "tests/support/naive/interpreter.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace ringsim {

namespace {

struct LaneState {
  int step = 0, open = 0;
  bool begun = false;
};

struct Action {  // something that may happen now
  enum class What : std::uint8_t { begin, message, local } what = What::begin;
  Actor actor = 0;  // of the step, or the receiver
  Lane lane = 0;
  Op op;
  Actor sender = 0;
  Lane sender_lane = 0;
  Region source;
};

struct Posted {
  Lane lane = 0;
  Op op;
};

class Interpreter {
 public:
  Interpreter(const Schedule& schedule, std::uint64_t seed) : s_(schedule), random_(seed) {
    lanes_.assign(static_cast<std::size_t>(s_.actors), std::vector<LaneState>(static_cast<std::size_t>(s_.lanes)));
    for (Actor actor = 0; actor < s_.actors; ++actor) {
      for (int b = 0; b < n_buffers; ++b) {
        const int n = s_.layout[static_cast<std::size_t>(b)].n_chunks();
        for (int c = 0; c < n; ++c) {
          const auto buffer = static_cast<Buffer>(b);
          const auto chunk = static_cast<std::uint32_t>(c);
          const bool is_rank = actor < s_.collective.ranks;
          const Content content = is_rank ? s_.collective.before(actor, buffer, chunk) : Content{};
          std::uint64_t& cell = memory_[{actor, buffer, chunk}];
          if (content.who == Content::Who::one)
            cell = contribution(content.rank, content.chunk);
          else
            cell = is_rank && buffer != Buffer::scratch ? random_() : 0;
        }
      }
    }
  }

  Outcome go() {
    for (;;) {
      std::vector<Action> may = actions_;
      const std::size_t n_ready = may.size();
      for (Actor actor = 0; actor < s_.actors; ++actor)
        for (Lane lane = 0; lane < s_.lanes; ++lane)
          if (may_begin(actor, lane)) may.push_back({.actor = actor, .lane = lane});
      if (may.empty()) break;
      const std::size_t chosen = random_() % may.size();
      if (chosen < n_ready) actions_.erase(actions_.begin() + static_cast<std::ptrdiff_t>(chosen));
      happen(may[chosen]);
    }
    return outcome();
  }

 private:
  std::uint64_t contribution(Actor rank, std::uint32_t chunk) {
    const auto [entry, is_new] = contributions_.try_emplace({rank, chunk}, 0);
    if (is_new) entry->second = std::mt19937_64(static_cast<std::uint64_t>(rank) << 32 | chunk)();
    return entry->second;
  }
  std::uint64_t sum_of(std::uint32_t chunk) {
    const auto [entry, is_new] = sums_.try_emplace(chunk, 0);
    if (is_new)
      for (Actor rank = 0; rank < s_.collective.ranks; ++rank) entry->second += contribution(rank, chunk);
    return entry->second;
  }

  LaneState& state(Actor actor, Lane lane) {
    return lanes_[static_cast<std::size_t>(actor)][static_cast<std::size_t>(lane)];
  }

  bool may_begin(Actor actor, Lane lane) {
    const LaneState& here = state(actor, lane);
    if (here.begun || here.step == s_.n_steps(actor, lane)) return false;
    Step step;
    s_.step(actor, lane, here.step, step);
    return std::all_of(step.waits.begin(), step.waits.end(),
                       [&](const Wait& wait) { return state(actor, wait.lane).step >= wait.steps; });
  }

  void happen(const Action& action) {
    if (action.what == Action::What::begin) return begin(action.actor, action.lane);
    const Region& from = action.source;
    const Actor source = action.what == Action::What::message ? action.sender : action.actor;
    const bool adds = action.op.what == Do::receive_add || action.op.what == Do::add;
    for (std::uint32_t i = 0; i < std::min(from.count, action.op.region.count); ++i) {
      const std::uint64_t value = memory_[{source, from.buffer, from.first + i}];
      const Region& operand = action.op.operand;
      const bool elsewhere = action.op.what == Do::receive_add && operand.count > 0;
      const std::uint64_t base = elsewhere ? memory_[{action.actor, operand.buffer, operand.first + i}] : 0;
      std::uint64_t& target = memory_[{action.actor, action.op.region.buffer, action.op.region.first + i}];
      target = elsewhere ? base + value : adds ? target + value : value;
    }
    if (action.what == Action::What::message) done(action.sender, action.sender_lane);
    done(action.actor, action.lane);
  }

  void begin(Actor actor, Lane lane) {
    Step step;
    s_.step(actor, lane, state(actor, lane).step, step);
    state(actor, lane).begun = true;
    state(actor, lane).open = static_cast<int>(step.ops.size()) + 1;  // one for the step itself
    for (const Op& op : step.ops) {
      if (op.what == Do::compute) {
        done(actor, lane);
      } else if (op.what == Do::copy || op.what == Do::add) {
        actions_.push_back({Action::What::local, actor, lane, op, 0, 0, op.operand});
      } else {
        const bool sends = op.what == Do::send;
        auto& box = sends ? boxes_[{actor, op.peer, op.channel}] : boxes_[{op.peer, actor, op.channel}];
        (sends ? box.first : box.second).push_back({lane, op});
        if (box.first.empty() || box.second.empty()) continue;
        const Posted send = box.first.front(), receive = box.second.front();
        box.first.pop_front();
        box.second.pop_front();
        actions_.push_back({Action::What::message, sends ? op.peer : actor, receive.lane, receive.op,
                            sends ? actor : op.peer, send.lane, send.op.region});
      }
    }
    done(actor, lane);
  }

  void done(Actor actor, Lane lane) {
    LaneState& here = state(actor, lane);
    if (--here.open > 0) return;
    here.begun = false;
    ++here.step;
  }

  Outcome outcome() {
    for (Actor actor = 0; actor < s_.actors; ++actor)
      for (Lane lane = 0; lane < s_.lanes; ++lane)
        if (state(actor, lane).step < s_.n_steps(actor, lane)) return Outcome::stuck;
    for (const auto& [key, value] : memory_) {
      const auto [actor, buffer, chunk] = key;
      if (actor >= s_.collective.ranks) continue;
      const Content expected = s_.collective.after(actor, buffer, chunk);
      if (expected.who == Content::Who::nothing) continue;
      const bool one = expected.who == Content::Who::one;
      if (value != (one ? contribution(expected.rank, expected.chunk) : sum_of(expected.chunk))) return Outcome::wrong;
    }
    return Outcome::right;
  }

  const Schedule& s_;
  std::mt19937_64 random_;
  std::map<std::pair<Actor, std::uint32_t>, std::uint64_t>
      contributions_;                            // worked out once: a generator is slow to seed
  std::map<std::uint32_t, std::uint64_t> sums_;  // [chunk] over all ranks
  std::vector<std::vector<LaneState>> lanes_;
  std::map<std::tuple<Actor, Buffer, std::uint32_t>, std::uint64_t> memory_;
  std::map<std::tuple<Actor, Actor, std::uint16_t>, std::pair<std::deque<Posted>, std::deque<Posted>>> boxes_;
  std::vector<Action> actions_;
};

}  // namespace

Outcome interpret(const Schedule& schedule, std::uint64_t seed) { return Interpreter(schedule, seed).go(); }

}  // namespace ringsim
