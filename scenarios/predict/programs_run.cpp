#include "scenarios/predict/programs_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// "communication", the second of them "communication 2".
std::string name_of(const Program& program, Stream stream) {
  const auto kind = [&](Stream which) { return program.streams[static_cast<std::size_t>(which)]; };
  int earlier = 0;
  for (Stream each = 0; each < stream; ++each) earlier += kind(each) == kind(stream) ? 1 : 0;
  const std::string name = kind(stream) == Program::StreamKind::compute         ? "compute"
                           : kind(stream) == Program::StreamKind::communication ? "communication"
                                                                                : "host";
  return earlier == 0 ? name : fmt::format("{} {}", name, earlier + 1);
}

}  // namespace

std::vector<std::string> ProgramsRun::stream_names(const Program& program, const std::string& before) {
  std::vector<std::string> names;
  for (Stream stream = 0; stream < static_cast<Stream>(program.streams.size()); ++stream)
    names.push_back(before + name_of(program, stream));
  return names;
}

ProgramsRun::ProgramsRun(std::vector<Part> parts) : parts_(std::move(parts)) {
  ensure(!parts_.empty(), "a run has a program");
  Actor actors = 0;
  for (const Part& part : parts_) {
    actors = std::max(actors, *std::max_element(part.actors.begin(), part.actors.end()) + 1);
    ensure(part.streams.size() == part.run->program().streams.size(), "every stream has a name");
    streams_.insert(streams_.end(), part.streams.begin(), part.streams.end());
  }
  if (parts_.size() == 1 && parts_.front().start == SimTime{}) return;
  std::vector<ProgramsBeside::Part> together;
  for (const Part& part : parts_)
    together.push_back({.program = &part.run->lowered(), .actors = part.actors, .start = part.start});
  beside_.emplace(std::move(together), actors);
}

const CheckedSchedule& ProgramsRun::schedule() const {
  return beside_ ? beside_->schedule() : parts_.front().run->schedule();
}

std::vector<std::uint16_t> ProgramsRun::plan_of_channel() const {
  return beside_ ? beside_->plan_of_channel() : parts_.front().run->lowered().plan_of_channel();
}

std::vector<std::size_t> ProgramsRun::jobs() const {
  std::vector<std::size_t> jobs;
  for (const Part& part : parts_) {
    for (std::size_t s = 0; s < part.jobs.size(); ++s)
      jobs.insert(jobs.end(), static_cast<std::size_t>(part.run->lowered().lanes_of(static_cast<Stream>(s)).count),
                  part.jobs[s]);
    if (part.start > SimTime{}) jobs.push_back(part.jobs.front());
  }
  return jobs;
}

Disturbance::Lanes ProgramsRun::lanes_of(std::size_t part, std::size_t job) const {
  Disturbance::Lanes found{.first = -1, .count = 0};
  const std::vector<std::size_t>& jobs = parts_[part].jobs;
  for (std::size_t s = 0; s < jobs.size(); ++s) {
    if (jobs[s] != job) continue;
    const LoweredProgram::LaneRange lanes = parts_[part].run->lowered().lanes_of(static_cast<Stream>(s));
    if (found.first < 0) found.first = beside_ ? beside_->lane(part, lanes.first) : lanes.first;
    found.count += lanes.count;  // streams of a job lie next to each other
  }
  ensure(found.first >= 0, "a job has lanes");
  return found;
}

Actor ProgramsRun::own_actor(Actor actor, Lane lane) const {
  return beside_ ? beside_->place_of(actor, lane).actor : actor;
}

std::vector<CheckedSchedule> ProgramsRun::called() const {
  std::vector<CheckedSchedule> found;
  for (const Part& part : parts_)
    for (const Program::Call& call : part.run->program().calls)
      if (found.empty() || &found.back().schedule() != &call.schedule.schedule()) found.push_back(call.schedule);
  return found;
}

void ProgramsRun::listen(const ComputeEvent& event) {
  if (const auto own = own_event(event)) parts_[own->first].run->listen(own->second);
}

Picoseconds ProgramsRun::longer(const ComputeEvent& event) {
  const auto own = own_event(event);
  return own ? parts_[own->first].run->longer(own->second) : Picoseconds{0};
}

std::optional<std::pair<std::size_t, ComputeEvent>> ProgramsRun::own_event(const ComputeEvent& event) const {
  if (!beside_) return std::pair{std::size_t{0}, event};
  const ProgramsBeside::Place place = beside_->place_of(event.actor, event.lane);
  if (place.is_start) return std::nullopt;
  ComputeEvent own = event;
  own.actor = place.actor;
  own.lane = place.lane;
  return std::pair{place.part, own};
}

void ProgramsRun::tell_tasks(const std::function<void(const Task&)>& on_task, const std::function<void()>& begins) {
  Stream first = 0;
  for (const Part& part : parts_) {
    part.run->tell_tasks(
        [&part, first, on_task](const TaskSpan& span) {
          on_task({.actor = part.actors[static_cast<std::size_t>(span.actor)],
                   .stream = first + span.place.stream,
                   .iteration = span.place.iteration,
                   .begin = span.begin,
                   .end = span.end,
                   .name = part.run->program().name_of(part.run->lowered().task_of(span.actor, span.place))});
        },
        begins);
    first += static_cast<Stream>(part.run->program().streams.size());
  }
}

PathTask ProgramsRun::task_of(Actor actor, Lane lane, int step, PathCause cause) const {
  if (!beside_) return parts_.front().run->task_of(actor, lane, step, cause);
  const ProgramsBeside::Place place = beside_->place_of(actor, lane);
  if (place.is_start) return {.kind = "start", .name = "start", .cause = std::string(to_string(cause)), .step = 0};
  return parts_[place.part].run->task_of(place.actor, place.lane, step, cause);
}

ProgramPath ProgramsRun::path_of(std::size_t part) const {
  ProgramPath path = parts_[part].run->path();
  path.task_of = [this](const PathElement& element) {
    return task_of(element.by, element.lane, element.step, element.cause);
  };
  return path;
}

bool ProgramsRun::is_called(Actor actor, Lane lane, int step) const {
  std::size_t part = 0;
  if (beside_) {
    const ProgramsBeside::Place place = beside_->place_of(actor, lane);
    if (place.is_start) return false;
    part = place.part;
    actor = place.actor;
    lane = place.lane;
  }
  const StepPlace place = parts_[part].run->lowered().place_of(actor, lane, step);
  return !place.first && !place.last;
}

}  // namespace ringsim
