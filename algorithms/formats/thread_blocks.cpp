#include "algorithms/formats/thread_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/check/check_detail.hpp"

namespace ringsim {

namespace {

bool is_send(const Op& op) { return op.what == Do::send; }
bool is_receive(const Op& op) { return op.what == Do::receive || op.what == Do::receive_add; }

struct Ends {
  Actor send = -1, receive = -1;
  int channel = -1;
};

/// One actor: its lanes, cut into thread blocks.
class Cutter {
 public:
  Cutter(const StoredSchedule& stored, Actor actor) : stored_(stored), actor_(actor) {}

  /// [thread block] its steps
  std::vector<std::vector<Step>> cut() {
    lanes_.resize(static_cast<std::size_t>(stored_.lanes));
    for (Lane lane = 0; lane < stored_.lanes; ++lane) place_ops(lane);
    for (Lane lane = 0; lane < stored_.lanes; ++lane) {
      const Cut& cut = lanes_[static_cast<std::size_t>(lane)];
      cut.blocks.size() == 1 ? copy_waits(lane) : add_waits(lane);
    }
    while (!out_.empty() && out_.back().empty()) out_.pop_back();
    return std::move(out_);
  }

 private:
  /// The thread blocks into which a lane was cut.
  struct Cut {
    std::size_t first = 0;  // they are [first, first + blocks.size()) of out_
    std::vector<Ends> blocks;
    std::vector<std::vector<int>> done;  // [steps of the lane][block] steps of it that belong to them
    std::map<std::pair<std::size_t, int>, std::vector<std::pair<std::size_t, int>>> adds_after;  // block and step, both
  };

  /// Which block of the lane does it; for a message the one that has its connection, or has room for it.
  static std::size_t block_for(const Op& op, std::vector<Ends>& blocks) {
    if (!is_send(op) && !is_receive(op)) {
      if (blocks.empty()) blocks.emplace_back();
      return 0;
    }
    const auto peer = is_send(op) ? &Ends::send : &Ends::receive;
    for (std::size_t b = 0; b < blocks.size(); ++b)
      if (blocks[b].*peer == op.peer && blocks[b].channel == op.channel) return b;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].*peer != -1 || (blocks[b].channel != -1 && blocks[b].channel != op.channel)) continue;
      blocks[b].*peer = op.peer;
      blocks[b].channel = op.channel;
      return b;
    }
    blocks.push_back({.channel = op.channel});
    blocks.back().*peer = op.peer;
    return blocks.size() - 1;
  }

  /// Orders one block's operations within a step: local ones first, then sends and receives in turn, which needs few
  /// slots.
  static void in_turn(std::vector<Op>& ops) {
    std::vector<Op> sends, receives, out;
    for (const Op& op : ops) (is_send(op) ? sends : is_receive(op) ? receives : out).push_back(op);
    for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
      if (i < sends.size()) out.push_back(sends[i]);
      if (i < receives.size()) out.push_back(receives[i]);
    }
    ops = std::move(out);
  }

  void place_ops(Lane lane) {
    Cut& cut = lanes_[static_cast<std::size_t>(lane)];
    cut.first = out_.size();
    std::vector<std::vector<std::vector<Op>>> placed;  // [step of the lane][block]
    for (const Step& step : stored_.lane(actor_, lane)) {
      placed.emplace_back();
      for (const Op& op : step.ops) {
        const std::size_t block = block_for(op, cut.blocks);
        placed.back().resize(std::max(placed.back().size(), block + 1));
        placed.back()[block].push_back(op);
      }
    }
    if (cut.blocks.empty()) cut.blocks.emplace_back();
    out_.resize(cut.first + cut.blocks.size());
    cut.done.emplace_back(cut.blocks.size(), 0);
    for (auto& step : placed) {
      std::vector<int> done = cut.done.back();
      step.resize(cut.blocks.size());
      bool empty = true;
      for (std::size_t b = 0; b < step.size(); ++b) {
        in_turn(step[b]);
        for (const Op& op : step[b]) out_[cut.first + b].push_back({.ops = {op}, .waits = {}});
        done[b] += static_cast<int>(step[b].size());
        empty = empty && step[b].empty();
      }
      if (empty) {  // it only waits, or is waited for
        out_[cut.first].emplace_back();
        ++done[0];
      }
      order_adds(step, cut);
      cut.done.push_back(std::move(done));
    }
  }

  /// Each addition of a step comes after those of other blocks to the same chunks.
  static void order_adds(const std::vector<std::vector<Op>>& step, Cut& cut) {
    struct Addition {
      Region region;
      std::size_t block;
      int at;
    };
    std::vector<Addition> earlier;
    for (std::size_t b = 0; b < step.size(); ++b) {
      const std::size_t n_before = earlier.size();
      for (std::size_t k = 0; k < step[b].size(); ++k) {
        const Op& op = step[b][k];
        if ((op.what != Do::receive_add || op.operand.count > 0) && op.what != Do::add) continue;
        const int at = cut.done.back()[b] + static_cast<int>(k);
        for (std::size_t e = n_before; e-- > 0;) {
          if (!overlap(earlier[e].region, op.region)) continue;
          cut.adds_after[{b, at}].emplace_back(earlier[e].block, earlier[e].at);
          if (earlier[e].region == op.region) break;  // it waited for those before it
        }
        earlier.push_back({op.region, b, at});
      }
    }
  }
  static bool overlap(const Region& a, const Region& b) {
    return a.buffer == b.buffer && a.first < b.first + b.count && b.first < a.first + a.count;
  }

  /// What `wait` means in thread blocks: [block] so many of its steps.
  void translate(const Wait& wait, std::map<Lane, int>& out) const {
    const Cut& cut = lanes_[static_cast<std::size_t>(wait.lane)];
    const std::vector<int>& done = cut.done[static_cast<std::size_t>(wait.steps)];
    for (std::size_t b = 0; b < done.size(); ++b) {
      if (done[b] == 0) continue;
      int& steps = out[static_cast<Lane>(cut.first + b)];
      steps = std::max(steps, done[b]);
    }
  }

  static void write(const std::map<Lane, int>& waits, Step& step) {
    for (const auto& [lane, steps] : waits) step.wait(lane, steps);
  }

  void copy_waits(Lane lane) {
    const Cut& cut = lanes_[static_cast<std::size_t>(lane)];
    const std::vector<Step>& steps = stored_.lane(actor_, lane);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::map<Lane, int> waits;
      for (const Wait& wait : steps[i].waits) translate(wait, waits);
      write(waits, out_[cut.first][static_cast<std::size_t>(cut.done[i][0])]);
    }
  }

  /// The blocks of one lane: the first operation of each in a step waits for the waits of the step, and for all that
  /// the lane did before, unless it knows that they are over.
  void add_waits(Lane lane) {
    const Cut& cut = lanes_[static_cast<std::size_t>(lane)];
    const std::vector<Step>& steps = stored_.lane(actor_, lane);
    const std::size_t n = cut.blocks.size();
    using Clock = std::map<Lane, int>;
    std::vector<Clock> known(n);                 // [block] what is over when its next step begins
    std::vector<std::vector<Clock>> history(n);  // [block][step] what is over when it is done
    Clock required;                              // what the lane has waited for so far
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const Wait& wait : steps[i].waits) translate(wait, required);
      for (std::size_t b = 0; b < n; ++b) {
        const int from = cut.done[i][b], to = cut.done[i + 1][b];
        if (from == to) continue;
        Clock waits;
        // The block that acted last knows most: it comes first.
        for (const std::size_t other : latest_first(cut, i)) {
          const auto id = static_cast<Lane>(cut.first + other);
          const int need = cut.done[i][other];
          if (other == b || need == 0 || known[b][id] >= need) continue;
          waits[id] = need;
          merge(history[other][static_cast<std::size_t>(need - 1)], known[b]);
        }
        for (const auto& [id, need] : required) {
          if (known[b][id] >= need) continue;
          waits[id] = std::max(waits[id], need);
          known[b][id] = need;
        }
        for (int at = from; at < to; ++at) {
          const auto adds = cut.adds_after.find({b, at});
          if (adds != cut.adds_after.end())
            for (const auto& [other, step] : adds->second) {
              const auto id = static_cast<Lane>(cut.first + other);
              if (known[b][id] > step) continue;
              waits[id] = step + 1;
              merge(history[other][static_cast<std::size_t>(step)], known[b]);
            }
          write(waits, out_[cut.first + b][static_cast<std::size_t>(at)]);
          waits.clear();
          known[b][static_cast<Lane>(cut.first + b)] = at + 1;
          history[b].push_back(known[b]);
        }
      }
    }
  }

  static void merge(const std::map<Lane, int>& from, std::map<Lane, int>& into) {
    for (const auto& [lane, steps] : from) {
      int& here = into[lane];
      here = std::max(here, steps);
    }
  }

  /// The blocks of a cut lane, by when they acted last before step i of it.
  static std::vector<std::size_t> latest_first(const Cut& cut, std::size_t i) {
    std::vector<std::pair<std::size_t, std::size_t>> acted;  // when, block
    for (std::size_t b = 0; b < cut.blocks.size(); ++b) {
      std::size_t when = i;
      while (when > 0 && cut.done[when - 1][b] == cut.done[i][b]) --when;
      acted.emplace_back(when, b);
    }
    std::sort(acted.rbegin(), acted.rend());  // of equals the last block: it may have added after the others
    std::vector<std::size_t> out;
    for (const auto& [when, block] : acted) out.push_back(block);
    return out;
  }

  const StoredSchedule& stored_;
  Actor actor_;
  std::vector<Cut> lanes_;
  std::vector<std::vector<Step>> out_;
};

/// Drops the steps that only wait, if nobody waits for them and another step of the lane can.
void drop_pauses(std::vector<std::vector<Step>>& lanes) {
  std::set<std::pair<Lane, int>> waited_for;
  for (const auto& lane : lanes)
    for (const Step& step : lane)
      for (const Wait& wait : step.waits) waited_for.insert({wait.lane, wait.steps});
  std::vector<std::vector<int>> now(lanes.size());  // [lane][steps before] after dropping
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    std::vector<Step> kept;
    std::vector<Wait> pending;
    now[l].push_back(0);
    for (std::size_t i = 0; i < lanes[l].size(); ++i) {
      Step step = std::move(lanes[l][i]);
      pending.insert(pending.end(), step.waits.begin(), step.waits.end());
      const bool goes = step.ops.empty() && i + 1 < lanes[l].size() &&
                        waited_for.count({static_cast<Lane>(l), static_cast<int>(i) + 1}) == 0;
      if (!goes) {
        step.waits = std::exchange(pending, {});
        kept.push_back(std::move(step));
      }
      now[l].push_back(static_cast<int>(kept.size()));
    }
    lanes[l] = std::move(kept);
  }
  for (auto& lane : lanes) {
    for (Step& step : lane) {
      std::map<Lane, int> latest;
      for (const Wait& wait : step.waits) {
        int& steps = latest[wait.lane];
        steps = std::max(steps, now[static_cast<std::size_t>(wait.lane)][static_cast<std::size_t>(wait.steps)]);
      }
      step.waits.clear();
      for (const auto& [other, steps] : latest)
        if (steps > 0) step.wait(other, steps);
    }
  }
}

/// Puts every chunk of every operation where moved(rank, chunk, is_input) says, in operations of one chunk. `is_input`:
/// the operation reads it, and no step before, lane by lane, has written to it.
template <class Moved>
void renumber(StoredSchedule& stored, Moved moved) {
  using Chunk = std::pair<Buffer, std::uint32_t>;
  for (Actor rank = 0; rank < stored.actors; ++rank) {
    std::set<Chunk> written;
    const auto place = [&](const Region& region, std::uint32_t c, bool reads) {
      const std::uint32_t chunk = region.first + c;
      return moved(rank, Region{region.buffer, chunk, 1}, reads && written.count({region.buffer, chunk}) == 0);
    };
    for (Lane lane = 0; lane < stored.lanes; ++lane) {
      for (Step& step : stored.lane(rank, lane)) {
        std::vector<Op> ops;
        std::vector<Chunk> writes;
        for (const Op& op : step.ops) {
          for (std::uint32_t c = 0; c < op.region.count; ++c) {
            Op single = op;
            single.region = place(op.region, c, op.what == Do::send);
            if (op.operand.count > 0) single.operand = place(op.operand, c, true);
            ops.push_back(single);
            if (op.what != Do::send) writes.emplace_back(op.region.buffer, op.region.first + c);
          }
        }
        step.ops = std::move(ops);
        written.insert(writes.begin(), writes.end());
      }
    }
  }
}

/// Blocks numbered from the rank itself become MPI's. In place they are the result's, but in what the rank reads before
/// it writes there: so each piece puts its input aside, as in_place() writes it.
void number_absolutely(StoredSchedule& stored) {
  const bool in_one = in_one_buffer(stored.placement);
  const Grid& whole = stored.grids[static_cast<std::size_t>(in_one ? Buffer::data : Buffer::input)];
  const auto m = static_cast<std::uint32_t>(whole.chunks / stored.ranks);
  renumber(stored, [&](Actor rank, Region region, bool reads_input) {
    if (region.buffer == Buffer::scratch) return region;
    const bool is_input = region.buffer == Buffer::input || (in_one && reads_input);
    const auto j = static_cast<int>(region.first / m);
    region.first =
        static_cast<std::uint32_t>(wrap(is_input ? rank + j : rank - j, stored.ranks)) * m + region.first % m;
    return region;
  });
  stored.placement = in_one ? Placement::in_place : Placement::separate;
}

/// If a buffer has a place for every block, MSCCL keeps only the rank's own there: the others go to the end of scratch.
void keep_own_block(StoredSchedule& stored, Buffer buffer) {
  Grid &blocks = stored.grids[static_cast<std::size_t>(buffer)],
       &scratch = stored.grids[static_cast<std::size_t>(Buffer::scratch)];
  const auto m = static_cast<std::uint32_t>(blocks.chunks / stored.ranks);
  const auto base = static_cast<std::uint32_t>(scratch.chunks);
  std::uint32_t end = base;
  renumber(stored, [&](Actor rank, Region region, bool) {
    if (region.buffer != buffer) return region;
    const std::uint32_t own = static_cast<std::uint32_t>(rank) * m;
    if (region.first >= own && region.first < own + m) return Region{buffer, region.first - own, 1};
    const std::uint32_t place = base + region.first - (region.first < own ? 0 : m);
    end = std::max(end, place + 1);
    return Region{Buffer::scratch, place, 1};
  });
  blocks.chunks = static_cast<int>(m);
  if (end > 0) scratch = {.chunks = static_cast<int>(end), .of = blocks.of, .sizes = {}};
}

/// In the buffers that MSCCL has: input and output as MPI numbers them, or one in place.
void use_plain_buffers(StoredSchedule& stored) {
  if (stored.placement == Placement::relative || stored.placement == Placement::relative_in_place)
    return number_absolutely(stored);
  if (stored.placement != Placement::input_kept) return;
  if (stored.op == CollectiveOp::all_gather) keep_own_block(stored, Buffer::input);
  if (stored.op == CollectiveOp::reduce_scatter) keep_own_block(stored, Buffer::output);
  stored.placement = Placement::separate;
}

}  // namespace

StoredSchedule in_plain_buffers(StoredSchedule stored) {
  stored.symmetry.clear();
  use_plain_buffers(stored);
  return stored;
}

std::string unordered_adds(const StoredSchedule& stored) {
  auto writes = std::make_shared<StoredSchedule>(stored);
  for (auto& lane : writes->steps)
    for (Step& step : lane)
      for (Op& op : step.ops) {
        if (op.what == Do::receive_add && op.operand.count == 0) op.what = Do::receive;
        if (op.what == Do::add) op.what = Do::copy;
      }
  const Schedule schedule = schedule_of(writes, even_size(stored));
  try {
    for (Actor actor = 0; actor < schedule.actors; ++actor)
      check_detail::follow_accesses(schedule, actor, [](Lane, int, const Step&) {});
  } catch (const ScheduleError& error) {
    return error.message();
  }
  return "";
}

void require_ranks_that_only_move(const StoredSchedule& stored, const Refusal& refuse) {
  if (!stored.names_regions) refuse("it has no regions", "");
  if (stored.actors > stored.ranks)
    refuse(fmt::format("it has {} helpers, but the format supports only gpus that are ranks",
                       stored.actors - stored.ranks),
           "");
  for (std::size_t i = 0; i < stored.steps.size(); ++i)
    for (const Step& step : stored.steps[i])
      for (const Op& op : step.ops)
        if (op.what == Do::compute) refuse(fmt::format("rank {} computes", static_cast<int>(i) / stored.lanes), "");
}

int common_chunks(const StoredSchedule& stored, const Refusal& refuse) {
  int chunks = 1;
  for (const Grid& grid : stored.grids) {
    if (!grid.sizes.empty()) refuse("its chunks have individual sizes", "--to json supports them");
    chunks = std::max(chunks, grid.of);
  }
  for (const Grid& grid : stored.grids)
    if (grid.chunks > 0 && grid.of != chunks)
      refuse(fmt::format("one buffer is cut into parts of 1/{} of the message, another into parts of 1/{}", grid.of,
                         chunks),
             "");
  return chunks;
}

StoredSchedule as_thread_blocks(const StoredSchedule& stored) {
  StoredSchedule out = in_plain_buffers(stored);
  std::vector<std::vector<std::vector<Step>>> cut;
  int lanes = 1;
  for (Actor actor = 0; actor < out.actors; ++actor) {
    cut.push_back(Cutter(out, actor).cut());
    drop_pauses(cut.back());
    lanes = std::max(lanes, static_cast<int>(cut.back().size()));
  }
  out.lanes = lanes;
  out.places.clear();
  out.steps.assign(static_cast<std::size_t>(out.actors) * static_cast<std::size_t>(lanes), {});
  for (Actor actor = 0; actor < out.actors; ++actor)
    for (std::size_t lane = 0; lane < cut[static_cast<std::size_t>(actor)].size(); ++lane)
      out.lane(actor, static_cast<Lane>(lane)) = std::move(cut[static_cast<std::size_t>(actor)][lane]);
  return out;
}

}  // namespace ringsim
