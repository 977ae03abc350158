#include "algorithms/composed/compose.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

constexpr auto data_index = static_cast<std::size_t>(Buffer::data);
constexpr auto scratch_index = static_cast<std::size_t>(Buffer::scratch);

class Sequence {
 public:
  explicit Sequence(std::vector<Part> parts) : parts_(std::move(parts)) {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const Part& part = parts_[p];
      lanes_ = std::max(lanes_, end(part));
      // Whatever lanes an earlier part had that this one comes after.
      std::vector<Lane> before;
      for (std::size_t q = 0; q < p; ++q)
        if (parts_[q].lane < end(part) && part.lane < end(parts_[q]))
          for (Lane lane = parts_[q].lane; lane < end(parts_[q]); ++lane) before.push_back(lane);
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      before_.push_back(std::move(before));
    }
    for (const Part& part : parts_) {
      std::vector<int>& numbers = phases_.emplace_back();
      for (std::string& name : part.schedule.phase_names()) {
        if (!part.where.empty()) name += ' ' + part.where;
        const auto known = std::find(phase_names_.begin(), phase_names_.end(), name);
        numbers.push_back(static_cast<int>(known - phase_names_.begin()));
        if (known == phase_names_.end()) phase_names_.push_back(std::move(name));
      }
    }
    of_lane_.resize(static_cast<std::size_t>(lanes_));
    for (std::size_t p = 0; p < parts_.size(); ++p)
      for (Lane lane = parts_[p].lane; lane < end(parts_[p]); ++lane)
        of_lane_[static_cast<std::size_t>(lane)].push_back(p);
  }

  int lanes() const { return lanes_; }
  bool has_scratch() const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [](const Part& part) { return part.schedule.layout[scratch_index].n_chunks() > 0; });
  }

  int n_steps(Actor rank, Lane lane) const { return steps_before(parts_.size(), rank, lane); }

  const std::vector<std::string>& phase_names() const { return phase_names_; }
  PhaseStep phase_of(Actor rank, Lane lane, int i) const {
    for (const std::size_t p : of_lane_[static_cast<std::size_t>(lane)]) {
      const Part& part = parts_[p];
      if (const int n = steps_of(part, rank, lane); i >= n) {
        i -= n;
        continue;
      }
      PhaseStep at = part.schedule.phases.at(part.digit.of(rank), lane - part.lane, i);
      at.phase = phases_[p][static_cast<std::size_t>(at.phase)];
      return at;
    }
    fail_invariant("a lane is asked only for steps that it has");
  }

  void step(Actor rank, Lane lane, int i, Step& out) const {
    for (const std::size_t p : of_lane_[static_cast<std::size_t>(lane)]) {
      const Part& part = parts_[p];
      const int n = steps_of(part, rank, lane);
      if (i >= n) {
        i -= n;
        continue;
      }
      const std::size_t first_op = out.ops.size(), first_wait = out.waits.size();
      part.schedule.step(part.digit.of(rank), lane - part.lane, i, out);
      place(part, rank, std::span(out.ops).subspan(first_op));
      for (std::size_t w = first_wait; w < out.waits.size(); ++w) {
        Wait& wait = out.waits[w];
        wait.lane += part.lane;
        wait.steps += steps_before(p, rank, wait.lane);
      }
      if (i > 0) return;
      for (const Lane other : before_[p])
        if (const int steps = steps_before(p, rank, other); other != lane && steps > 0) out.wait(other, steps);
      return;
    }
    fail_invariant("a lane is asked only for steps that it has");
  }

 private:
  static Lane end(const Part& part) { return part.lane + part.schedule.lanes; }
  static int steps_of(const Part& part, Actor rank, Lane lane) {
    return part.schedule.n_steps(part.digit.of(rank), lane - part.lane);
  }
  int steps_before(std::size_t end, Actor rank, Lane lane) const {
    int steps = 0;
    for (const std::size_t p : of_lane_[static_cast<std::size_t>(lane)]) {
      if (p >= end) break;
      steps += steps_of(parts_[p], rank, lane);
    }
    return steps;
  }

  // From the words of the group to those of the whole.
  static void place(const Part& part, Actor rank, std::span<Op> ops) {
    const int base = part.first_chunk(rank);
    const auto placed = [&](Region region) {
      return Region{region.buffer,
                    static_cast<std::uint32_t>(base) + region.first * static_cast<std::uint32_t>(part.scale),
                    region.count * static_cast<std::uint32_t>(part.scale)};
    };
    for (Op& op : ops) {
      op.region = placed(op.region);
      if (op.operand.count > 0) op.operand = placed(op.operand);
      op.channel = static_cast<std::uint16_t>(op.channel + part.lane);
      if (op.peer >= 0) op.peer = part.digit.with(rank, op.peer);
    }
  }

  std::vector<Part> parts_;
  std::vector<std::vector<Lane>> before_;          // [part] lanes that its first steps wait for
  std::vector<std::vector<std::size_t>> of_lane_;  // [lane] its parts, in order
  std::vector<std::string> phase_names_;
  std::vector<std::vector<int>> phases_;  // [part][phase of its schedule] in phase_names_
  int lanes_ = 0;
};

void expect_fitting(const Part& part, int ranks, int n_chunks) {
  const int data = part.schedule.layout[data_index].n_chunks(),
            scratch = part.schedule.layout[scratch_index].n_chunks();
  ensure(part.schedule.actors == part.digit.size && ranks % (part.digit.size * part.digit.stride) == 0,
         "a part is run by groups of as many ranks as it has actors");
  ensure(data * part.scale <= n_chunks && (scratch == 0 || scratch == data),
         "a part's chunks are chunks of the whole, and its scratch is like its data");
}

}  // namespace

Schedule in_sequence(Collective collective, int n_chunks, std::vector<Part> parts) {
  for (const Part& part : parts) expect_fitting(part, collective.ranks, n_chunks);
  const auto sequence = std::make_shared<const Sequence>(std::move(parts));
  Schedule s{.algorithm = "in_sequence", .collective = std::move(collective), .actors = 0};
  s.actors = s.collective.ranks;
  s.lanes = std::max(1, sequence->lanes());
  s.layout[data_index] = Layout::near_equal(s.collective.bytes, n_chunks);
  if (sequence->has_scratch()) s.layout[scratch_index] = s.layout[data_index];
  s.n_steps = [sequence](Actor rank, Lane lane) {
    return lane < sequence->lanes() ? sequence->n_steps(rank, lane) : 0;
  };
  s.step = [sequence](Actor rank, Lane lane, int i, Step& out) { sequence->step(rank, lane, i, out); };
  s.phases = {sequence->phase_names(),
              [sequence](Actor rank, Lane lane, int i) { return sequence->phase_of(rank, lane, i); }};
  return s;
}

}  // namespace ringsim
