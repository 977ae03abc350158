#include "algorithms/formats/mscclpp_import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/formats/lane_limit.hpp"
#include "algorithms/formats/mscclpp_plan.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace mscclpp {

namespace {

/// How many entries of clocks may be compared: seconds of work. A small file can ask for far more.
constexpr std::int64_t most_work = std::int64_t{1} << 27;

/// How a thread block reaches the memory of another GPU; `proxy`: what sends for it, on its own GPU, by port channels.
enum class Reach : std::uint8_t { store, port, load, proxy };

/// Lane of an actor -> how many of its steps are over.
using Clock = std::map<std::pair<Actor, Lane>, int>;

/// What a thread block waits for and another one counts up: a channel in one direction, or a semaphore.
struct Counter {
  int first = 0;             // its value in the beginning
  std::vector<Clock> posts;  // [n] what is over when it is counted up the n-th time
  int taken = 0;
  int poster = -1, taker = -1;  // thread blocks

  bool is_above_zero() const { return taken < first + static_cast<int>(posts.size()); }
};

struct Running {
  Actor rank = 0;
  Lane lane = 0;
  const std::vector<Operation>* ops = nullptr;
  std::size_t next = 0;
  Clock known = {};       // what is over when the next operation starts
  Clock on_its_way = {};  // puts of port channels, which only a signal or flush knows to be over
  int arrived = -1;       // at which round of its barrier; -1: not yet
};

struct Barrier {
  int arrived = 0, round = 0;
  Clock gathered, known;  // of the round under way, of the last one
};

class Follower {
 public:
  Follower(Plan plan, const std::string& file) : plan_(std::move(plan)), file_(file) {}

  StoredSchedule follow() {
    start();
    bool moved = true;
    while (moved) {
      moved = false;
      for (Running& block : running_) {
        work(1);
        while (block.next < block.ops->size() && advance(block)) moved = true;
      }
    }
    for (const Running& block : running_)
      if (block.next < block.ops->size()) fail_stuck(block);
    return finish();
  }

 private:
  [[noreturn]] void fail(const Operation& op, const std::string& message, const std::string& hint = "") const {
    throw InputError(fmt::format("{}: {}", file_, op.pointer), message, hint);
  }

  void work(std::size_t n) {
    if ((worked_ += static_cast<std::int64_t>(n)) > most_work)
      throw InputError(file_, "expected a plan that can be followed in seconds, found too many operations and waits");
  }

  void start() {
    for (std::size_t rank = 0; rank < plan_.blocks.size(); ++rank) {
      lanes_.emplace_back(plan_.blocks[rank].size());
      std::map<int, std::set<std::size_t>> meeting;
      for (std::size_t b = 0; b < plan_.blocks[rank].size(); ++b) {
        running_.push_back(
            {.rank = static_cast<Actor>(rank), .lane = static_cast<Lane>(b), .ops = &plan_.blocks[rank][b]});
        for (const Operation& op : plan_.blocks[rank][b])
          if (op.verb == Verb::barrier) meeting[op.ids[0]].insert(b);
      }
      for (const auto& block : plan_.blocks[rank])
        for (const Operation& op : block)
          if (op.verb == Verb::barrier && meeting[op.ids[0]].size() != static_cast<std::size_t>(op.blocks))
            fail(op, fmt::format("expected barrier {} to be in {} thread blocks, found it in {}", op.ids[0], op.blocks,
                                 meeting[op.ids[0]].size()));
      for (std::size_t s = 0; s < plan_.semaphores[rank].size(); ++s)
        semaphores_[{static_cast<Actor>(rank), static_cast<int>(s)}].first = plan_.semaphores[rank][s];
    }
    waited_.resize(lanes_.size());
  }

  // ------------------------------------------------------------------------------------------------------------ order

  void merge(const Clock& from, Clock& into) {
    work(from.size());
    for (const auto& [lane, steps] : from) {
      int& here = into[lane];
      here = std::max(here, steps);
    }
  }

  /// The counter that a signal on this end of a channel counts up.
  Counter& signals_of(Actor rank, const ChannelEnd& end) { return channels_[{rank, end.peer, end.number, end.port}]; }
  /// The one that a wait at this end takes from.
  Counter& awaited_by(Actor rank, const ChannelEnd& end) { return channels_[{end.peer, rank, end.number, end.port}]; }

  void post(Counter& counter, Running& block, const Operation& op, bool with_puts) {
    hold_to_one(counter.poster, block, op, "counted up");
    counter.posts.push_back(block.known);
    work(block.known.size());
    if (with_puts) merge(block.on_its_way, counter.posts.back());
  }
  void take(Counter& counter, Running& block, const Operation& op) {
    hold_to_one(counter.taker, block, op, "waited for");
    const int n = counter.taken++ - counter.first;
    if (n >= 0) merge(counter.posts[static_cast<std::size_t>(n)], block.known);
  }
  void hold_to_one(int& user, const Running& block, const Operation& op, const char* what) const {
    if (user == -1) user = block.lane;
    if (user != block.lane)
      fail(op,
           fmt::format("expected one thread block in which this channel or semaphore is {}, found {} and {}", what,
                       user, block.lane),
           "their order is undefined; give each its own");
  }

  /// Does the thread block's next operation, unless it has to wait.
  bool advance(Running& block) {
    const Operation& op = (*block.ops)[block.next];
    switch (op.verb) {
      case Verb::nop:
        break;
      case Verb::flush:
        merge(block.on_its_way, block.known);
        break;
      case Verb::signal:
        for (const ChannelEnd& end : op.channels) post(signals_of(block.rank, end), block, op, end.port);
        break;
      case Verb::release:
        for (const int id : op.ids) post(semaphores_[{block.rank, id}], block, op, false);
        break;
      case Verb::wait:
        for (const ChannelEnd& end : op.channels)
          if (!awaited_by(block.rank, end).is_above_zero()) return false;
        for (const ChannelEnd& end : op.channels) {
          if (!awaited_by(block.rank, end).is_above_zero()) fail(op, "expected a channel once, found it twice");
          take(awaited_by(block.rank, end), block, op);
        }
        break;
      case Verb::acquire:
        for (const int id : op.ids)
          if (!semaphores_[{block.rank, id}].is_above_zero()) return false;
        for (const int id : op.ids) {
          if (!semaphores_[{block.rank, id}].is_above_zero()) fail(op, "expected a semaphore once, found it twice");
          take(semaphores_[{block.rank, id}], block, op);
        }
        break;
      case Verb::barrier:
        if (!meet(block, op)) return false;
        break;
      default:
        if (!packets_are_there(block, op)) return false;
        move_data(block, op);
    }
    ++block.next;
    return true;
  }

  bool meet(Running& block, const Operation& op) {
    Barrier& barrier = barriers_[{block.rank, op.ids[0]}];
    if (block.arrived == -1) {
      block.arrived = barrier.round;
      merge(block.known, barrier.gathered);
      if (++barrier.arrived == op.blocks) {
        barrier.known = std::exchange(barrier.gathered, {});
        barrier.arrived = 0;
        ++barrier.round;
      }
    }
    if (block.arrived == barrier.round) return false;
    merge(barrier.known, block.known);
    block.arrived = -1;
    return true;
  }

  // ---------------------------------------------------------------------------------------------------------- packets

  static bool reads_packets(Verb verb) {
    return verb == Verb::unpack_packets || verb == Verb::read_put_packets || verb == Verb::reduce_packets;
  }

  /// Packets carry a flag: a reader waits until they are there.
  bool packets_are_there(Running& block, const Operation& op) {
    if (!reads_packets(op.verb)) return true;
    const std::size_t first = op.verb == Verb::reduce_packets ? 1 : 0;
    for (const bool only_look : {true, false})
      for (std::size_t i = first; i < op.from.size(); ++i)
        for (std::uint32_t c = 0; c < op.from[i].region.count; ++c) {
          work(1);
          const auto found = packets_.find(packet(op.from[i], c, op));
          if (found == packets_.end()) return false;
          if (!only_look) merge(found->second, block.known);
        }
    return true;
  }

  void write_packets(const Running& block, const Operation& op, const Spot& spot) {
    Clock done = block.known;
    if (op.port) merge(block.on_its_way, done);
    work(spot.region.count * (1 + done.size()));
    for (std::uint32_t c = 0; c < spot.region.count; ++c)
      if (!packets_.try_emplace(packet(spot, c, op), done).second)
        fail(op,
             fmt::format("expected each packet to be written only once, found chunk {} of the scratch of gpu {} again",
                         spot.region.first + c, spot.rank),
             "the reader could not distinguish the two packets");
  }

  std::pair<Actor, std::uint32_t> packet(const Spot& spot, std::uint32_t chunk, const Operation& op) const {
    if (spot.region.buffer != Buffer::scratch)
      fail(op, fmt::format("expected {} to have its packets in scratch, found {}", op.name, to_string(spot.region)));
    return {spot.rank, spot.region.first + chunk};
  }

  // ------------------------------------------------------------------------------------------------------------- steps

  /// A new step of the lane, which waits for what is known to be over on that GPU.
  Step& append(Actor rank, Lane lane, const Clock& known) {
    auto& steps = lanes_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(lane)];
    Step& step = steps.emplace_back();
    auto& waited = waited_[static_cast<std::size_t>(rank)][lane];
    const auto end = known.lower_bound({rank + 1, 0});
    for (auto at = known.lower_bound({rank, 0}); at != end; ++at) {
      work(1);
      const auto [other, n] = std::pair{at->first.second, at->second};
      int& before = waited[other];
      if (other == lane || n <= before) continue;
      step.wait(other, n);
      before = n;
    }
    return step;
  }
  int steps_of(Actor rank, Lane lane) const {
    return static_cast<int>(lanes_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(lane)].size());
  }

  /// The lane of `rank` for what `block` does to its memory, or for what a port channel to `peer` does for `block`; and
  /// the number of the channel that the messages are on.
  std::pair<Lane, int> lane_for(const Running& block, Actor rank, Actor peer, Reach reach) {
    const auto key = std::tuple{rank, peer, block.lane, reach};
    const auto found = helpers_.find(key);
    if (found != helpers_.end()) return found->second;
    auto& lanes = lanes_[static_cast<std::size_t>(rank)];
    if (lanes.size() >= static_cast<std::size_t>(file_limits::lanes))
      throw InputError(file_, fmt::format("expected at most {} lanes of gpu {}, for its thread blocks and those that "
                                          "reach its memory",
                                          file_limits::lanes, rank));
    lanes.emplace_back();
    int channel = 0;
    if (reach != Reach::proxy)
      channel = channel_numbers_[reach == Reach::load ? std::pair{rank, block.rank} : std::pair{block.rank, rank}]++;
    return helpers_[key] = {static_cast<Lane>(lanes.size() - 1), channel};
  }

  void over(Clock& known, Actor rank, Lane lane) { known[{rank, lane}] = steps_of(rank, lane); }

  /// Sends each source to its target, all of them together.
  void send(Running& block, const std::vector<std::pair<Region, Spot>>& what, bool by_port) {
    const Reach reach = by_port ? Reach::port : Reach::store;
    std::map<Lane, std::vector<Op>> own;  // [lane of the sender] its step
    Clock done;
    for (const auto& [source, target] : what) {
      const auto [receiver, channel] = lane_for(block, target.rank, block.rank, reach);
      append(target.rank, receiver, block.known).receive(block.rank, target.region, channel);
      over(done, target.rank, receiver);
      const Lane lane = by_port ? lane_for(block, block.rank, target.rank, Reach::proxy).first : block.lane;
      Step step;
      step.send(target.rank, source, channel);
      own[lane].push_back(step.ops[0]);
    }
    for (auto& [lane, ops] : own) {
      append(block.rank, lane, block.known).ops = std::move(ops);
      over(done, block.rank, lane);
    }
    merge(done, by_port ? block.on_its_way : block.known);
  }

  /// Takes what other GPUs hold: to `region`, or adds it there.
  void fetch(Running& block, const std::vector<Spot>& sources, const Region& operand, const Region& region, bool adds) {
    if (sources.empty()) return;
    Clock done;
    Step step;
    for (const Spot& source : sources) {
      const auto [sender, channel] = lane_for(block, source.rank, block.rank, Reach::load);
      append(source.rank, sender, block.known).send(block.rank, source.region, channel);
      over(done, source.rank, sender);
      if (adds)
        step.receive_add(source.rank, operand, region, channel);
      else
        step.receive(source.rank, region, channel);
    }
    append(block.rank, block.lane, block.known).ops = std::move(step.ops);
    over(done, block.rank, block.lane);
    merge(done, block.known);
  }

  void copy(Running& block, const Region& from, const Region& to) {
    append(block.rank, block.lane, block.known).copy(from, to);
    over(block.known, block.rank, block.lane);
  }

  void move_data(Running& block, const Operation& op) {
    work(op.from.size() + op.to.size());
    switch (op.verb) {
      case Verb::copy:
      case Verb::copy_packets:
      case Verb::unpack_packets:
        copy(block, op.from[0].region, op.to[0].region);
        if (op.verb == Verb::copy_packets) write_packets(block, op, op.to[0]);
        return;
      case Verb::get:
        for (std::size_t i = 0; i < op.to.size(); ++i) fetch(block, {op.from[i]}, {}, op.to[i].region, false);
        return;
      case Verb::put:
      case Verb::put_packets:
      case Verb::read_put_packets:
        return put(block, op);
      default:
        reduce(block, op);
    }
  }

  void put(Running& block, const Operation& op) {
    std::vector<std::pair<Region, Spot>> what;
    for (std::size_t i = 0; i < op.to.size(); ++i) {
      what.emplace_back(op.from[std::min(i, op.from.size() - 1)].region, op.to[i]);
      // A thread block's own stores follow one another, but for those of one packet that it has read.
      if (!op.port && op.verb != Verb::read_put_packets) send(block, std::exchange(what, {}), false);
    }
    send(block, what, op.port);
    if (op.verb != Verb::put)
      for (const Spot& target : op.to) write_packets(block, op, target);
    if (op.signals)
      for (const ChannelEnd& end : op.channels) post(signals_of(block.rank, end), block, op, end.port);
    if (op.flushes) merge(block.on_its_way, block.known);
  }

  /// to[0] = the sum of `from`; then to the other `to`.
  void reduce(Running& block, const Operation& op) {
    const Region& target = op.to[0].region;
    std::vector<Region> local;
    std::vector<Spot> remote;
    for (const Spot& source : op.from) {
      if (source.rank != block.rank)
        remote.push_back(source);
      else if (source.region == target)
        local.insert(local.begin(), source.region);
      else
        local.push_back(source.region);
    }
    for (std::size_t i = 0; i < local.size(); ++i)
      if (overlap(local[i], target) && (local[i] != target || i > 0))
        fail(op, fmt::format("expected a source that equals the target, {}, or does not overlap with it, found {}",
                             to_string(target), to_string(local[i])));
    const bool in_one = local.size() == 1 && remote.size() == 1;
    if (local[0] != target && !in_one) copy(block, local[0], target);
    if (local.size() > 1) {
      Step& step = append(block.rank, block.lane, block.known);
      for (std::size_t i = 1; i < local.size(); ++i) step.add(local[i], target);
      over(block.known, block.rank, block.lane);
    }
    fetch(block, remote, in_one ? local[0] : target, target, true);
    send_on(block, op, target);
  }
  static bool overlap(const Region& a, const Region& b) {
    return a.buffer == b.buffer && a.first < b.first + b.count && b.first < a.first + a.count;
  }

  void send_on(Running& block, const Operation& op, const Region& sum) {
    std::vector<std::pair<Region, Spot>> what;
    for (std::size_t i = 1; i < op.to.size(); ++i) {
      if (op.to[i].rank == block.rank)
        copy(block, sum, op.to[i].region);
      else
        what.emplace_back(sum, op.to[i]);
    }
    send(block, what, op.port);
    if (op.verb == Verb::reduce_packets)
      for (std::size_t i = 1; i < op.to.size(); ++i) write_packets(block, op, op.to[i]);
  }

  // --------------------------------------------------------------------------------------------------------------- end

  [[noreturn]] void fail_stuck(const Running& block) const {
    const Operation& op = (*block.ops)[block.next];
    std::string what = "for the other thread blocks of its barrier";
    if (op.verb == Verb::wait) {
      what = "for a signal";
      for (const ChannelEnd& end : op.channels) {
        const auto found = channels_.find({end.peer, block.rank, end.number, end.port});
        if (found == channels_.end() || !found->second.is_above_zero()) {
          what = fmt::format("for a signal of gpu {} on its channel {} to gpu {}", end.peer, end.number, block.rank);
          break;
        }
      }
    } else if (op.verb == Verb::acquire) {
      what = fmt::format("for semaphore {}", fmt::join(op.ids, " or "));
    } else if (reads_packets(op.verb)) {
      what = "for packets";
    }
    fail(op, fmt::format("gpu {}, thread block {} waits {}, which never comes", block.rank, block.lane, what),
         "no other thread block can continue either, or none has a matching operation left");
  }

  StoredSchedule finish() {
    StoredSchedule out = std::move(plan_.head);
    int unheard = 0;
    for (const auto& [key, channel] : channels_)
      if (channel.taken < static_cast<int>(channel.posts.size())) ++unheard;
    if (unheard > 0)
      out.warnings.push_back(fmt::format(
          "{}: on {} channel{}, no rank waits for a signal, which would remain for the next run of the plan", file_,
          unheard, unheard == 1 ? "" : "s"));
    std::size_t lanes = 1;
    for (const auto& each : lanes_) lanes = std::max(lanes, each.size());
    if (const std::string mistake = too_many_lanes(lanes_.size(), lanes, "thread blocks"); !mistake.empty())
      throw InputError(file_, mistake);
    out.lanes = static_cast<int>(lanes);
    out.steps.resize(lanes_.size() * lanes);
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank)
      for (std::size_t lane = 0; lane < lanes_[rank].size(); ++lane)
        out.lane(static_cast<Actor>(rank), static_cast<Lane>(lane)) = std::move(lanes_[rank][lane]);
    return out;
  }

  Plan plan_;
  const std::string& file_;
  std::int64_t worked_ = 0;
  std::vector<Running> running_;
  std::vector<std::vector<std::vector<Step>>> lanes_;                // [rank][lane][step]
  std::vector<std::map<Lane, std::map<Lane, int>>> waited_;          // [rank][lane][other] steps waited for
  std::map<std::tuple<Actor, Actor, int, bool>, Counter> channels_;  // from, to, number, port
  std::map<std::pair<Actor, int>, Counter> semaphores_;
  std::map<std::pair<Actor, int>, Barrier> barriers_;
  std::map<std::pair<Actor, std::uint32_t>, Clock> packets_;  // rank, chunk of scratch
  std::map<std::tuple<Actor, Actor, Lane, Reach>, std::pair<Lane, int>> helpers_;
  std::map<std::pair<Actor, Actor>, int> channel_numbers_;
};

}  // namespace

}  // namespace mscclpp

StoredSchedule import_mscclpp(std::string_view text, const std::string& file) {
  return mscclpp::Follower(mscclpp::read_plan(text, file), file).follow();
}

}  // namespace ringsim
