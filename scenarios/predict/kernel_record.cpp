#include "scenarios/predict/kernel_record.hpp"

#include <algorithm>
#include <utility>

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
        const Actor actor = call.members.empty() ? own : call.members[static_cast<std::size_t>(own)];
        members.push_back(part_.actors[static_cast<std::size_t>(actor)]);
      }
      out.groups.push_back(std::move(members));
    }
    if (is_point_to_point(schedule.collective.op) && schedule.collective.op != CollectiveOp::all_to_all)
      add_traffic(call, out);
    recording.calls.push_back(std::move(out));
  }
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
