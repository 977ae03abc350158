#include "scenarios/predict/plan_account.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/program/account.hpp"

namespace ringsim {

namespace {

constexpr std::array parts_of_split{&PlanSplit::passes, &PlanSplit::recompute, &PlanSplit::optimizer,
                                    &PlanSplit::tensor, &PlanSplit::context,   &PlanSplit::expert,
                                    &PlanSplit::data,   &PlanSplit::pipeline,  &PlanSplit::bubble};
constexpr int open_iterations = 4;  // an iteration's gathers may end when the next one's passes have begun

Picoseconds PlanSplit::*part_of(const Program::Task& task) {
  if (task.name.starts_with("recompute ")) return &PlanSplit::recompute;
  return task.name == "update" ? &PlanSplit::optimizer : &PlanSplit::passes;
}

}  // namespace

PlanAccount::PlanAccount(const LoweredProgram& lowered, const PlanStreams& streams, int warmup, SimTime start)
    : lowered_(lowered), streams_(streams), warmup_(warmup) {
  const Program& program = lowered.program();
  const std::size_t n_streams = program.streams.size();
  actors_.resize(static_cast<std::size_t>(program.ranks));
  for (Actor rank = 0; rank < program.ranks; ++rank) {
    Of& it = actors_[static_cast<std::size_t>(rank)];
    it.since = start;
    it.done.resize(n_streams);
    it.launched.resize(n_streams);
    it.left.assign(open_iterations, n_ending_tasks(program, warmup, rank));
    for (std::size_t s = 0; s < n_streams; ++s) {
      const auto stream = static_cast<Stream>(s);
      const bool is_cut = stream != 0 && !streams.is_between_kernels(stream) && !streams.is_data(stream);
      it.begun.emplace_back(is_cut ? static_cast<std::size_t>(n_tasks(rank, stream)) : 0);
    }
  }
  for (const Program::Role& role : program.roles) {
    place_of_.emplace_back(program.calls.size(), -1);
    for (const std::vector<Program::Task>& tasks : role.streams)
      for (std::size_t t = 0; t < tasks.size(); ++t)
        if (tasks[t].call >= 0) place_of_.back()[static_cast<std::size_t>(tasks[t].call)] = static_cast<int>(t);
  }
}

std::int64_t PlanAccount::n_tasks(Actor actor, Stream stream) const {
  return static_cast<std::int64_t>(lowered_.program().role(actor).streams[static_cast<std::size_t>(stream)].size());
}

void PlanAccount::wait_for_stage(Actor actor, Stream stream, std::int64_t place, SimTime since, SimTime now) {
  Of& it = actors_[static_cast<std::size_t>(actor)];
  const Program& program = lowered_.program();
  const std::int64_t n = n_tasks(actor, stream), iteration = place / n;
  const auto& task = program.role(actor).streams[static_cast<std::size_t>(stream)][static_cast<std::size_t>(place % n)];
  const Program::Call& call = program.calls[static_cast<std::size_t>(task.call)];
  const auto me = std::find(call.members.begin(), call.members.end(), actor) - call.members.begin();
  const Actor sender = call.members[static_cast<std::size_t>(me / 2 * 2)];
  SimTime sent = since;
  if (sender != actor) {
    const Of& other = actors_[static_cast<std::size_t>(lowered_.stand_in(sender))];
    const int at =
        place_of_[static_cast<std::size_t>(program.role_number(sender))][static_cast<std::size_t>(task.call)];
    const bool is_launched =
        other.launched[static_cast<std::size_t>(stream)] > iteration * n_tasks(sender, stream) + at;
    sent = is_launched
               ? std::clamp(other.begun[static_cast<std::size_t>(stream)][static_cast<std::size_t>(at)], since, now)
               : now;
  }
  it.split.bubble += sent - since;
  it.split.pipeline += now - sent;
}

PlanAccount::Awaited PlanAccount::cut_before(Actor actor, const Awaited& collective) const {
  const Of& it = actors_[static_cast<std::size_t>(actor)];
  const auto stream = static_cast<std::size_t>(collective.stream);
  if (it.launched[stream] > collective.place) return {};
  const std::int64_t n = n_tasks(actor, collective.stream), iteration = collective.place / n;
  const auto& task = lowered_.program().role(actor).streams[stream][static_cast<std::size_t>(collective.place % n)];
  for (const Program::After& after : task.after) {
    if (after.stream == 0 || streams_.is_between_kernels(after.stream) || streams_.is_data(after.stream)) continue;
    const std::int64_t wanted = (iteration - after.back) * n_tasks(actor, after.stream) + after.tasks;
    if (iteration >= after.back && after.tasks > 0 && it.done[static_cast<std::size_t>(after.stream)] < wanted)
      return {after.stream, wanted - 1};
  }
  return {};
}

// Adds the time to the part that the next kernel waits for.
void PlanAccount::wait(Actor actor, SimTime since, SimTime now) {
  Of& it = actors_[static_cast<std::size_t>(actor)];
  const Program& program = lowered_.program();
  const std::int64_t n = n_tasks(actor, 0), next = it.done[0], iteration = n == 0 ? 0 : next / n;
  if (n == 0 || iteration >= program.iterations) {
    bool reduces = false;
    for (const Stream stream : {streams_.data, streams_.replica})
      if (stream >= 0 && it.done[static_cast<std::size_t>(stream)] < n_tasks(actor, stream) * program.iterations)
        reduces = true;
    (reduces ? it.split.data : it.split.bubble) += now - since;
    return;
  }
  Stream cut = -1;
  std::int64_t place = 0;
  bool reduces = false;
  for (const Program::After& after : program.role(actor).streams[0][static_cast<std::size_t>(next % n)].after) {
    const std::int64_t wanted = (iteration - after.back) * n_tasks(actor, after.stream) + after.tasks;
    if (iteration < after.back || after.tasks == 0 || it.done[static_cast<std::size_t>(after.stream)] >= wanted)
      continue;
    if (streams_.is_between_kernels(after.stream)) {
      const Awaited before = cut_before(actor, {after.stream, wanted - 1});
      if (before.stream >= 0) return wait_for_stage(actor, before.stream, before.place, since, now);
      (after.stream == streams_.tensor    ? it.split.tensor
       : after.stream == streams_.context ? it.split.context
                                          : it.split.expert) += now - since;
      return;
    }
    if (streams_.is_data(after.stream))
      reduces = true;
    else
      std::tie(cut, place) = std::pair{after.stream, wanted - 1};
  }
  if (cut >= 0) return wait_for_stage(actor, cut, place, since, now);
  (reduces ? it.split.data : it.split.bubble) += now - since;
}

void PlanAccount::pass(Actor actor, SimTime now) {
  Of& it = actors_[static_cast<std::size_t>(actor)];
  const SimTime since = std::exchange(it.since, now);
  if (since == now) return;
  if (it.runs != nullptr)
    it.split.*it.runs += now - since;
  else
    wait(actor, since, now);
}

void PlanAccount::end_task(Actor actor, const StepPlace& place) {
  Of& it = actors_[static_cast<std::size_t>(actor)];
  ++it.done[static_cast<std::size_t>(place.stream)];
  const Program& program = lowered_.program();
  if (!ends_iteration(program, warmup_, place.stream)) return;
  ensure(place.iteration < it.iteration + open_iterations, "few iterations of a plan overlap");
  --it.left[static_cast<std::size_t>(place.iteration % open_iterations)];
  while (it.left[static_cast<std::size_t>(it.iteration % open_iterations)] == 0) {
    it.left[static_cast<std::size_t>(it.iteration % open_iterations)] = n_ending_tasks(program, warmup_, actor);
    if (it.iteration >= warmup_)
      for (Picoseconds PlanSplit::*part : parts_of_split) it.all.*part += it.split.*part;
    it.split = {};
    ++it.iteration;
  }
}

const PlanSplit& PlanAccount::of(Actor rank) const {
  return actors_[static_cast<std::size_t>(lowered_.stand_in(rank))].all;
}

void PlanAccount::on_compute(const ComputeEvent& event) {
  if (event.actor >= lowered_.program().ranks) return;
  Of& it = actors_[static_cast<std::size_t>(event.actor)];
  const StepPlace place = lowered_.place_of(event.actor, event.lane, event.step);
  if (!place.first && !place.last) return;
  const Program::Task& task = lowered_.task_of(event.actor, place);
  pass(event.actor, event.when);
  if (event.begins) {
    if (place.first && task.call < 0) it.runs = part_of(task);
    return;
  }
  const auto stream = static_cast<std::size_t>(place.stream);
  if (task.call >= 0 && place.first) {
    ++it.launched[stream];
    if (!it.begun[stream].empty()) it.begun[stream][static_cast<std::size_t>(place.task)] = event.when;
  }
  if (!place.last) return;
  if (task.call < 0) it.runs = nullptr;
  end_task(event.actor, place);
}

}  // namespace ringsim
