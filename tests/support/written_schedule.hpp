// Schedules written out step by step: to build odd ones by hand, and to change one operation of a real one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A schedule whose steps are stored.
struct WrittenSchedule {
  Schedule like;                                      ///< everything but its steps
  std::vector<std::vector<std::vector<Step>>> steps;  ///< [actor][lane][i]

  /// No steps yet; `data` has that many near-equal chunks.
  WrittenSchedule(Collective collective, int actors, int lanes, int chunks) {
    like.algorithm = "by hand";
    like.actors = actors;
    like.lanes = lanes;
    like.layout[0] = Layout::near_equal(collective.bytes, chunks);
    like.collective = std::move(collective);
    steps.assign(static_cast<std::size_t>(actors), std::vector<std::vector<Step>>(static_cast<std::size_t>(lanes)));
  }
  /// Writes out all steps of a schedule; the symmetry is no longer claimed.
  explicit WrittenSchedule(const Schedule& schedule) : like(schedule) {
    like.symmetry = {};
    for (Actor actor = 0; actor < schedule.actors; ++actor) {
      steps.emplace_back(static_cast<std::size_t>(schedule.lanes));
      for (Lane lane = 0; lane < schedule.lanes; ++lane) {
        for (int i = 0; i < schedule.n_steps(actor, lane); ++i) {
          Step step;
          schedule.step(actor, lane, i, step);
          steps.back()[static_cast<std::size_t>(lane)].push_back(std::move(step));
        }
      }
    }
  }

  /// Appends an empty step. The reference holds until the lane's next one.
  Step& step(Actor actor, Lane lane = 0) {
    auto& all = steps[static_cast<std::size_t>(actor)][static_cast<std::size_t>(lane)];
    all.emplace_back();
    return all.back();
  }

  Schedule schedule() const {
    Schedule made = like;
    made.n_steps = [all = steps](Actor actor, Lane lane) {
      return static_cast<int>(all[static_cast<std::size_t>(actor)][static_cast<std::size_t>(lane)].size());
    };
    made.step = [all = steps](Actor actor, Lane lane, int i, Step& out) {
      const Step& stored =
          all[static_cast<std::size_t>(actor)][static_cast<std::size_t>(lane)][static_cast<std::size_t>(i)];
      out.ops.insert(out.ops.end(), stored.ops.begin(), stored.ops.end());
      out.waits.insert(out.waits.end(), stored.waits.begin(), stored.waits.end());
    };
    return made;
  }
};

struct Move {
  Actor from, to;
};

/// No steps yet: chunk i, of sizes[i], has to come from the input of rank moves[i].from into the output of
/// rank moves[i].to. One lane.
inline WrittenSchedule of_moves(int ranks, const std::vector<Bytes>& sizes, const std::vector<Move>& moves) {
  Collective c{.op = CollectiveOp::pairs, .ranks = ranks};
  for (const Bytes size : sizes) c.bytes += size;
  c.before = [moves](Actor r, Buffer b, std::uint32_t i) {
    return b == Buffer::input && r == moves[i].from ? Content{Content::Who::one, r, i} : Content{};
  };
  c.after = [moves](Actor r, Buffer b, std::uint32_t i) {
    return b == Buffer::output && r == moves[i].to ? Content{Content::Who::one, moves[i].from, i} : Content{};
  };
  WrittenSchedule made(c, ranks, 1, 0);
  for (const Buffer b : {Buffer::input, Buffer::output})
    made.like.layout[static_cast<std::size_t>(b)] = Layout::of_sizes(sizes);
  return made;
}

}  // namespace ringsim
