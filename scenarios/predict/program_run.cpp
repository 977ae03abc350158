#include "scenarios/predict/program_run.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace ringsim {

ProgramRun::ProgramRun(Program program, int warmup, SimTime start, int room, WatchedWork* work)
    : warmup_(warmup),
      start_(start),
      lowered_(std::make_shared<const LoweredProgram>(check(std::move(program), work), room, work)) {
  listen_to(nullptr);
}

void ProgramRun::listen_to(std::shared_ptr<const LoweredProgram> lowered) {
  in_run_ = lowered ? std::move(lowered) : lowered_;
  accounts_ = std::make_unique<Accounts>(*in_run_, warmup_, start_);
  if (slowdown_) slowdown_.emplace(*in_run_, slowdown_millionths_, streams_apart_);
  if (begins_) begins_(*in_run_);
  for (const auto& begins : on_begin_) begins();
  accounts_->on_task = [this](const TaskSpan& span) {
    for (const auto& listener : on_task_) listener(span);
  };
  if (!in_run_->has_stand_ins() || on_task_.empty()) return;
  std::vector<std::vector<Actor>> alike(static_cast<std::size_t>(program().actors));
  for (Actor actor = 0; actor < program().actors; ++actor)
    alike[static_cast<std::size_t>(in_run_->stand_in(actor))].push_back(actor);
  accounts_->on_task = [each = accounts_->on_task, alike = std::move(alike)](TaskSpan span) {
    for (const Actor actor : alike[static_cast<std::size_t>(span.actor)]) {
      span.actor = actor;
      each(span);
    }
  };
}

RankAccount ProgramRun::last_to_end() const {
  const std::vector<RankAccount> ranks = accounts_->ranks();
  return *std::max_element(ranks.begin(), ranks.end(),
                           [](const RankAccount& a, const RankAccount& b) { return a.end < b.end; });
}

ProgramPath ProgramRun::path() const {
  const RankAccount last = last_to_end();
  return {.begin = last.end - last.split.total(),
          .end = last.end,
          .last_begin = last.end - last.last,
          .task_of = [this](const PathElement& element) {
            return task_of(element.by, element.lane, element.step, element.cause);
          }};
}

PathTask ProgramRun::task_of(Actor actor, Lane lane, int step, PathCause cause) const {
  const StepPlace place = lowered_->place_of(actor, lane, step);
  const auto stream = static_cast<std::size_t>(place.stream);
  const Program::Task& task = lowered_->task_of(actor, place);
  const std::string& name = program().name_of(task);
  PathTask found{
      .kind = name.substr(0, name.find(' ')), .name = name, .cause = std::string(to_string(cause)), .step = place.step};
  if (task.call >= 0) {
    found.kind = found.name = program().calls[static_cast<std::size_t>(task.call)].name;
    if (cause == PathCause::compute && place.step < 0) found.cause = "launch";
  } else if (program().streams[stream] == Program::StreamKind::host) {
    found.cause = "host";
  }
  return found;
}

}  // namespace ringsim
