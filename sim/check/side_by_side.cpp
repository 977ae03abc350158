// Several proved schedules as one.
#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/check/check.hpp"

namespace ringsim {

namespace {

/// A part, and what its actors and chunks have before them in the whole.
struct Part {
  CheckedSchedule checked;
  Actor first_actor = 0;
  std::array<std::uint32_t, n_buffers> first_chunk{};

  Region moved(Region region) const {
    region.first += first_chunk[static_cast<std::size_t>(region.buffer)];
    return region;
  }
  void step(Actor actor, Lane lane, int i, Step& out) const {
    checked.schedule().step(actor - first_actor, lane, i, out);
    for (Op& op : out.ops) {
      op.region = moved(op.region);
      if (op.operand.count > 0) op.operand = moved(op.operand);
      if (op.peer >= 0) op.peer += first_actor;
    }
  }
};

}  // namespace

CheckedSchedule side_by_side(const std::vector<CheckedSchedule>& jobs) {
  ensure(!jobs.empty(), "something stands side by side");
  std::vector<Part> parts;
  Schedule whole;
  Proof proof{.by = Proof::By::symmetry};
  std::array<std::vector<Bytes>, n_buffers> chunks;
  for (const CheckedSchedule& job : jobs) {
    const Schedule& one = job.schedule();
    Part part{job, whole.actors};
    for (std::size_t b = 0; b < n_buffers; ++b) {
      part.first_chunk[b] = static_cast<std::uint32_t>(chunks[b].size());
      for (int c = 0; c < one.layout[b].n_chunks(); ++c)
        chunks[b].push_back(one.layout[b].size(static_cast<std::uint32_t>(c), 1));
    }
    whole.algorithm += (whole.algorithm.empty() ? "" : " and ") + one.algorithm;
    whole.jobs.push_back(whole.actors);
    whole.actors += one.actors;
    whole.lanes = std::max(whole.lanes, one.lanes);
    whole.names_regions = whole.names_regions && one.names_regions;
    whole.collective.ranks += one.collective.ranks;
    whole.collective.bytes += one.collective.bytes;
    proof.slots_needed = std::max(proof.slots_needed, job.proof().slots_needed);
    proof.operations += job.proof().operations;
    // all_ranks says most, matching least.
    const auto weight = [](Proof::By by) { return static_cast<int>(by); };
    if (parts.empty() || weight(job.proof().by) > weight(proof.by)) proof.by = job.proof().by;
    parts.push_back(std::move(part));
  }
  whole.collective.op = jobs.front().schedule().collective.op;
  for (std::size_t b = 0; b < n_buffers; ++b) whole.layout[b] = Layout::of_sizes(chunks[b]);

  const auto shared = std::make_shared<const std::vector<Part>>(std::move(parts));
  const auto part_of = [shared, firsts = whole.jobs](Actor actor) -> const Part& {
    const auto next = std::upper_bound(firsts.begin(), firsts.end(), actor);
    return (*shared)[static_cast<std::size_t>(next - firsts.begin()) - 1];
  };
  whole.n_steps = [part_of](Actor actor, Lane lane) {
    const Part& part = part_of(actor);
    const Schedule& one = part.checked.schedule();
    return lane < one.lanes ? one.n_steps(actor - part.first_actor, lane) : 0;
  };
  whole.step = [part_of](Actor actor, Lane lane, int i, Step& out) { part_of(actor).step(actor, lane, i, out); };
  return {std::move(whole), proof};
}

}  // namespace ringsim
