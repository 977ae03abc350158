#include "scenarios/predict/kernel_record.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/program/account.hpp"

namespace ringsim {

namespace {

/// Adds what each member sends and receives in a call that has no operation of its own in NCCL.
void add_traffic(const Program::Call& call, Recording::Call& out) {
  const Schedule& schedule = call.schedule.schedule();
  const auto n = static_cast<std::size_t>(schedule.actors / schedule.groups);
  for (std::size_t group = 0; group < out.groups.size(); ++group) {
    std::vector<Recording::Traffic> of_group(out.groups[group].size());
    for (std::size_t i = 0; i < of_group.size(); ++i)
      each_op(schedule, static_cast<Actor>(group * n + i), [&](const Op& op) {
        const Bytes bytes = schedule.size(op.region);
        if (op.what == Do::send) of_group[i].sent.count += bytes.count;
        if (op.what == Do::receive || op.what == Do::receive_add) of_group[i].received.count += bytes.count;
      });
    out.traffic.push_back(std::move(of_group));
  }
}

/// The group of the call that the actor is in; nullptr: it only helps, as a server does.
const std::vector<Actor>* group_of(const Recording::Call& call, Actor actor) {
  const auto found = std::find_if(call.groups.begin(), call.groups.end(), [&](const std::vector<Actor>& group) {
    return std::find(group.begin(), group.end(), actor) != group.end();
  });
  return found == call.groups.end() ? nullptr : &*found;
}

}  // namespace

KernelRecord::KernelRecord(ProgramsRun& programs, std::size_t part) : part_(programs.parts()[part]) {
  const Actor actors = *std::max_element(part_.actors.begin(), part_.actors.end()) + 1;
  kernels_.resize(static_cast<std::size_t>(actors));
  ProgramRun& run = *part_.run;
  run.tell_tasks(
      [this, &run, last = run.program().iterations - 1](const TaskSpan& span) {
        if (span.place.iteration != last || span.begin == span.end) return;
        const Program::Task& task = run.lowered().task_of(span.actor, span.place);
        const Actor actor = part_.actors[static_cast<std::size_t>(span.actor)];
        kernels_[static_cast<std::size_t>(actor)].push_back(
            {.begin = span.begin,
             .end = span.end,
             .name = run.program().name_of(task),
             .stream = span.place.stream,
             .kind = run.program().streams[static_cast<std::size_t>(span.place.stream)],
             .call = task.call});
      },
      [this] {
        for (std::vector<Recording::Kernel>& each : kernels_) each.clear();
      });
}

// A receive is called as soon as the one before it is over, which may be long before the step begins; a profiler that
// starts with the step sees it from there. The time from the last member's call on is that of the exchange: it stays.
void KernelRecord::cut_early_waits(const std::vector<Recording::Call>& calls) {
  const std::vector<RankAccount> ranks = part_.run->accounts().ranks();
  struct Early {
    Recording::Kernel* kernel;
    SimTime step;                     // when its rank's begins
    const std::vector<Actor>* group;  // its members in the call
  };
  std::vector<Early> early;
  std::map<const std::vector<Actor>*, SimTime> last_to_call;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto actor = static_cast<std::size_t>(part_.actors[rank]);
    SimTime step = ranks[rank].end - ranks[rank].last;
    for (const Recording::Kernel& kernel : kernels_[actor])
      if (kernel.call < 0) step = std::min(step, kernel.begin);
    for (Recording::Kernel& kernel : kernels_[actor]) {
      if (kernel.call < 0 || kernel.begin >= step) continue;
      const std::vector<Actor>* group = group_of(calls[static_cast<std::size_t>(kernel.call)], part_.actors[rank]);
      if (group == nullptr) continue;
      early.push_back({&kernel, step, group});
      last_to_call.try_emplace(group);
    }
  }
  if (early.empty()) return;
  std::set<int> asked;
  for (const Early& each : early) asked.insert(each.kernel->call);
  for (const Actor actor : part_.actors)
    for (const Recording::Kernel& kernel : kernels_[static_cast<std::size_t>(actor)]) {
      if (!asked.contains(kernel.call)) continue;
      const auto known = last_to_call.find(group_of(calls[static_cast<std::size_t>(kernel.call)], actor));
      if (known != last_to_call.end()) known->second = std::max(known->second, kernel.begin);
    }
  for (const Early& each : early)
    each.kernel->begin = std::max(each.kernel->begin, std::min(each.step, last_to_call.at(each.group)));
}

void KernelRecord::finish(Recording& recording) {
  const Program& program = part_.run->program();
  for (const Program::Call& call : program.calls) {
    const Schedule& schedule = call.schedule.schedule();
    Recording::Call out{.op = schedule.collective.op,
                        .bytes = schedule.collective.bytes,
                        .root = schedule.collective.root,
                        .groups = {},
                        .traffic = {}};
    const int n = schedule.actors / schedule.groups;
    for (int group = 0; group < schedule.groups; ++group) {
      std::vector<Actor> members;
      for (int i = 0; i < schedule.collective.ranks; ++i) {
        const int own = group * n + i;
        const Actor actor = call.member(own);
        members.push_back(part_.actors[static_cast<std::size_t>(actor)]);
      }
      out.groups.push_back(std::move(members));
    }
    if (is_point_to_point(schedule.collective.op) && schedule.collective.op != CollectiveOp::all_to_all)
      add_traffic(call, out);
    recording.calls.push_back(std::move(out));
  }
  cut_early_waits(recording.calls);
  SimTime first = SimTime::max();
  for (const auto& kernels : kernels_)
    for (const Recording::Kernel& kernel : kernels) first = std::min(first, kernel.begin);
  for (auto& kernels : kernels_) {
    for (Recording::Kernel& kernel : kernels) {
      kernel.begin -= first.time_since_epoch();
      kernel.end -= first.time_since_epoch();
    }
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const Recording::Kernel& a, const Recording::Kernel& b) { return a.begin < b.begin; });
  }
  recording.kernels = std::move(kernels_);
}

}  // namespace ringsim
