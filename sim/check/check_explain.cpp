// Whose contribution is there twice and whose is missing: the explanation of a chunk whose sum is wrong.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/check/check_detail.hpp"

namespace ringsim::check_detail {

namespace {

std::string text_of(const Content& content) {
  if (content.who == Content::Who::all) return fmt::format("chunk {} of every rank, once", content.chunk);
  return fmt::format("chunk {} of rank {}", content.chunk, content.rank);
}

/// Follows the contributions to one chunk number by rank, everywhere, to say whose is there twice and whose is missing.
class CountRun {
 public:
  CountRun(const Schedule& schedule, std::uint32_t chunk, int slots) : schedule_(schedule) {
    for (Actor actor = 0; actor < schedule.collective.ranks; ++actor) {
      for (int b = 0; b < n_buffers; ++b) {
        const int n = schedule.layout[static_cast<std::size_t>(b)].n_chunks();
        for (int c = 0; c < n; ++c) {
          const Content content =
              schedule.collective.before(actor, static_cast<Buffer>(b), static_cast<std::uint32_t>(c));
          if (content.who == Content::Who::one && content.chunk == chunk)
            held_[{actor, static_cast<Buffer>(b), static_cast<std::uint32_t>(c)}].counts[content.rank] = 1;
        }
      }
    }
    LaneRunner<CountRun> lanes(schedule, slots, *this);
    runner_ = &lanes;
    lanes.run_ready();
    runner_ = nullptr;
  }

  [[noreturn]] void explain(Actor actor, Buffer buffer, std::uint32_t chunk, const Content& expected) {
    const std::string where = fmt::format("{}, {}[{}]", name_of(schedule_, actor), to_string(buffer), chunk);
    const Held& held = held_[{actor, buffer, chunk}];
    if (held.twice)
      refuse(schedule_, fmt::format("{}: the contribution of rank {} is added twice, by {}", where, held.twice->first,
                                    describe(schedule_, held.twice->second)));
    const std::string last =
        held.last ? ", last changed by " + describe(schedule_, *held.last) : ", which no operation changes";
    for (Actor rank = 0; rank < schedule_.collective.ranks; ++rank) {
      const bool wanted = expected.who == Content::Who::all || expected.rank == rank;
      const auto found = held.counts.find(rank);
      const int count = found == held.counts.end() ? 0 : found->second;
      if (wanted && count == 0)
        refuse(schedule_, fmt::format("{}: the contribution of rank {} is missing{}", where, rank, last));
      if (!wanted && count > 0)
        refuse(schedule_, fmt::format("{}: contains the contribution of rank {}, which does not belong there{}", where,
                                      rank, last));
    }
    refuse(schedule_, fmt::format("{}: contains the contributions of another chunk; expected {}{}", where,
                                  text_of(expected), last));
  }

  struct Note {
    Region region, operand;
  };
  Note note(const Op& op) const { return {op.region, op.operand}; }
  std::uint64_t connection(Actor self, const Op& op) const { return connection_key(self, op); }
  void begins(LaneNumber) {}
  void woken(LaneNumber, LaneNumber) {}
  void left(std::uint32_t slot, OpPlace place, const Note& sent, LaneNumber, std::uint32_t& /*kept*/) {
    const Region& region = sent.region;
    slots_[slot].clear();
    for (std::uint32_t i = 0; i < region.count; ++i) slots_[slot].push_back(read(place, region, i));
    runner_->op_done(place.lane);
  }
  void matched(const Message<Note>& message, std::uint32_t& /*kept*/) {
    const Region& operand = message.target.operand;
    for (std::uint32_t i = 0; i < message.source.region.count; ++i) {
      Held held = message.slot == no_slot ? read(message.sender, message.source.region, i) : slots_[message.slot][i];
      if (operand.count > 0) merge(held, read(message.receiver, operand, i), message.receiver);
      write(message.receiver, message.target.region, i, std::move(held), message.add && operand.count == 0);
    }
    if (message.slot == no_slot) runner_->op_done(message.sender.lane);
    runner_->op_done(message.receiver.lane);
  }
  void local(OpPlace place, const Op& op) {
    if (op.what != Do::compute)
      for (std::uint32_t i = 0; i < op.region.count; ++i)
        write(place, op.region, i, read(place, op.operand, i), op.what == Do::add);
    runner_->op_done(place.lane);
  }

 private:
  using Key = std::tuple<Actor, Buffer, std::uint32_t>;
  struct Held {
    std::map<Actor, int> counts;  // [rank] how often its contribution is in the sum
    std::optional<std::pair<Actor, OpPlace>> twice;
    std::optional<OpPlace> last;
  };

  Key key(OpPlace place, const Region& region, std::uint32_t i) const {
    return {runner_->actor(place.lane), region.buffer, region.first + i};
  }
  Held read(OpPlace place, const Region& region, std::uint32_t i) const {
    const auto found = held_.find(key(place, region, i));
    return found == held_.end() ? Held{} : found->second;
  }
  static void merge(Held& incoming, const Held& here, OpPlace place) {
    if (!incoming.twice) incoming.twice = here.twice;
    for (const auto& [rank, count] : here.counts)
      if ((incoming.counts[rank] += count) > 1 && !incoming.twice) incoming.twice = {rank, place};
  }
  void write(OpPlace place, const Region& region, std::uint32_t i, Held incoming, bool add) {
    const Key at = key(place, region, i);
    if (incoming.counts.empty() && held_.find(at) == held_.end()) return;  // no contribution to this chunk here
    if (add) merge(incoming, held_[at], place);
    incoming.last = place;
    held_[at] = std::move(incoming);
  }

  const Schedule& schedule_;
  std::map<Key, Held> held_;
  std::map<std::uint32_t, std::vector<Held>> slots_;
  LaneRunner<CountRun>* runner_ = nullptr;
};

}  // namespace

void explain_wrong_chunk(const Schedule& schedule, int slots, Actor actor, Buffer buffer, std::uint32_t chunk,
                         const Content& expected) {
  CountRun(schedule, expected.chunk, slots).explain(actor, buffer, chunk, expected);
}

}  // namespace ringsim::check_detail
