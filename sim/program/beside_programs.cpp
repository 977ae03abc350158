#include "sim/program/beside_programs.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

struct ProgramsBeside::Table {
  explicit Table(std::vector<Part> given, int actors) : parts(std::move(given)), channels(room_of(parts.size())) {
    ensure(!parts.empty(), "something runs");
    std::array<std::vector<Bytes>, n_buffers> chunks;
    for (const Part& part : parts) {
      const Schedule& one = schedule_of(part);
      base.push_back(lanes);
      lanes += one.lanes + (waits(part) ? 1 : 0);
      std::vector<Actor>& its = number.emplace_back(static_cast<std::size_t>(actors), -1);
      ensure(part.actors.size() == static_cast<std::size_t>(one.actors),
             "every actor of a program is one of the whole");
      for (std::size_t i = 0; i < part.actors.size(); ++i) {
        Actor& at = its.at(static_cast<std::size_t>(part.actors[i]));
        ensure(at < 0, "two actors of a program are two of the whole");
        at = static_cast<Actor>(i);
      }
      auto& first = first_chunk.emplace_back();
      for (std::size_t b = 0; b < n_buffers; ++b) {
        first[b] = static_cast<std::uint32_t>(chunks[b].size());
        for (int c = 0; c < one.layout[b].n_chunks(); ++c)
          chunks[b].push_back(one.layout[b].size(static_cast<std::uint32_t>(c), 1));
      }
    }
    for (std::size_t b = 0; b < n_buffers; ++b) layout[b] = Layout::of_sizes(chunks[b]);
  }

  static const Schedule& schedule_of(const Part& part) { return part.program->schedule().schedule(); }
  static bool waits(const Part& part) { return part.start > SimTime{}; }

  Place place_of(Actor actor, Lane lane) const {
    const auto next = std::upper_bound(base.begin(), base.end(), lane);
    const auto p = static_cast<std::size_t>(next - base.begin()) - 1;
    const Lane own = lane - base[p];
    return {.part = p,
            .actor = number[p][static_cast<std::size_t>(actor)],
            .lane = own,
            .is_start = own == schedule_of(parts[p]).lanes};
  }

  int n_steps(Actor actor, Lane lane) const {
    const Place place = place_of(actor, lane);
    if (place.actor < 0) return 0;
    return place.is_start ? 1 : schedule_of(parts[place.part]).n_steps(place.actor, place.lane);
  }

  void step(Actor actor, Lane lane, int i, Step& out) const {
    const Place place = place_of(actor, lane);
    const Part& part = parts[place.part];
    if (place.is_start) return out.compute(part.start.time_since_epoch());
    const Schedule& one = schedule_of(part);
    one.step(place.actor, place.lane, i, out);
    for (Wait& wait : out.waits) {
      wait.lane += base[place.part];
      if (wait.actor >= 0) wait.actor = part.actors[static_cast<std::size_t>(wait.actor)];
    }
    if (i == 0 && waits(part)) out.wait(base[place.part] + one.lanes, 1);
    const auto& chunk_of = first_chunk[place.part];
    for (Op& op : out.ops) {
      op.region.first += chunk_of[static_cast<std::size_t>(op.region.buffer)];
      if (op.operand.count > 0) op.operand.first += chunk_of[static_cast<std::size_t>(op.operand.buffer)];
      if (op.peer < 0) continue;
      op.peer = part.actors[static_cast<std::size_t>(op.peer)];
      if (parts.size() == 1) continue;
      if (op.channel >= channels) too_many_channels(op.channel, channels);
      op.channel = static_cast<std::uint16_t>(op.channel + static_cast<int>(place.part) * channels);
    }
  }

  std::vector<Part> parts;
  int channels;  // of each part
  int lanes = 0;
  std::vector<Lane> base;                                         // [part] its first lane
  std::vector<std::vector<Actor>> number;                         // [part][actor] of the part; -1: takes no part
  std::vector<std::array<std::uint32_t, n_buffers>> first_chunk;  // [part][buffer]
  std::array<Layout, n_buffers> layout;
};

Schedule ProgramsBeside::make(const std::shared_ptr<const Table>& table, int actors) {
  Schedule whole{.algorithm = "programs", .collective = {}, .actors = actors};
  whole.lanes = table->lanes;
  whole.layout = table->layout;
  for (const Part& part : table->parts) {
    const Schedule& one = Table::schedule_of(part);
    whole.collective.bytes += one.collective.bytes;
    whole.names_regions = whole.names_regions && one.names_regions;
  }
  whole.n_steps = [table](Actor actor, Lane lane) { return table->n_steps(actor, lane); };
  whole.step = [table](Actor actor, Lane lane, int i, Step& out) { table->step(actor, lane, i, out); };
  return whole;
}

Proof ProgramsBeside::proof_of(const std::vector<Part>& parts) {
  Proof proof{.by = Proof::By::parts};
  proof.repeated.why_no_symmetry = "programs run next to each other, or later than 0";
  for (const Part& part : parts) {
    const Proof& one = part.program->schedule().proof();
    proof.operations += one.operations;
    proof.slots_needed = std::max(proof.slots_needed, one.slots_needed);
  }
  return proof;
}

ProgramsBeside::ProgramsBeside(std::vector<Part> parts, int actors)
    : table_(std::make_shared<const Table>(std::move(parts), actors)),
      schedule_(make(table_, actors), proof_of(table_->parts)) {}

std::vector<std::uint16_t> ProgramsBeside::plan_of_channel() const {
  std::vector<std::uint16_t> found;
  bool any = false;
  for (const Part& part : table_->parts) {
    std::vector<std::uint16_t> one = part.program->plan_of_channel();
    any = any || !one.empty();
    one.resize(static_cast<std::size_t>(table_->channels));
    found.insert(found.end(), one.begin(), one.end());
  }
  return any ? found : std::vector<std::uint16_t>{};
}

std::vector<std::size_t> ProgramsBeside::jobs() const {
  std::vector<std::size_t> jobs;
  for (Lane lane = 0; lane < table_->lanes; ++lane) jobs.push_back(table_->place_of(0, lane).part);
  return jobs;
}

Lane ProgramsBeside::lane(std::size_t part, Lane lane) const { return table_->base[part] + lane; }

ProgramsBeside::Place ProgramsBeside::place_of(Actor actor, Lane lane) const { return table_->place_of(actor, lane); }

}  // namespace ringsim
