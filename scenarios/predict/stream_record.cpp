#include "scenarios/predict/stream_record.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// The first word of a task's name: what kind of task it is.
std::string kind_of(const std::string& name) { return name.substr(0, name.find(' ')); }

/// What of `time` lies in none of `busy`, which are in order and do not overlap.
std::vector<std::pair<SimTime, SimTime>> rest_of(std::pair<SimTime, SimTime> time,
                                                 const std::vector<std::pair<SimTime, SimTime>>& busy) {
  std::vector<std::pair<SimTime, SimTime>> rest;
  for (const auto& [begin, end] : busy) {
    if (end <= time.first) continue;
    if (begin >= time.second) break;
    if (begin > time.first) rest.emplace_back(time.first, begin);
    time.first = end;
  }
  if (time.first < time.second) rest.push_back(time);
  return rest;
}

}  // namespace

StreamRecord::StreamRecord(ProgramsRun& programs, std::size_t part) : part_(programs.parts()[part]) {
  for (std::size_t p = 0; p < part; ++p) first_ += static_cast<Stream>(programs.parts()[p].streams.size());
  end_ = first_ + static_cast<Stream>(part_.streams.size());
  const Actor actors = *std::max_element(part_.actors.begin(), part_.actors.end()) + 1;
  tasks_.resize(static_cast<std::size_t>(actors));
  const auto keep = [this, last = part_.run->program().iterations - 1](const ProgramsRun::Task& task) {
    if (task.stream < first_ || task.stream >= end_ || task.iteration != last || task.begin == task.end) return;
    tasks_[static_cast<std::size_t>(task.actor)].push_back(
        {.stream = task.stream - first_, .task = {.begin = task.begin, .end = task.end, .name = task.name}});
  };
  programs.tell_tasks(keep, [this] {
    for (std::vector<Kept>& tasks : tasks_) tasks.clear();
  });
}

std::vector<Recording::Stream> StreamRecord::streams_of(const std::vector<Kept>& tasks, Picoseconds begin) const {
  const Program& program = part_.run->program();
  std::vector<Recording::Stream> streams;
  std::vector<std::pair<SimTime, SimTime>> computing;
  for (Stream stream = 0; stream < end_ - first_; ++stream) {
    Recording::Stream one{.name = part_.streams[static_cast<std::size_t>(stream)], .tasks = {}};
    const Program::StreamKind kind = program.streams[static_cast<std::size_t>(stream)];
    for (const Kept& kept : tasks) {
      if (kept.stream != stream) continue;
      one.tasks.push_back(kept.task);
      Recording::StreamTask& task = one.tasks.back();
      task.begin -= begin;
      task.end -= begin;
      task.kind = kind == Program::StreamKind::communication ? "communication" : kind_of(task.name);
      if (kind == Program::StreamKind::compute) computing.emplace_back(task.begin, task.end);
    }
    if (!one.tasks.empty()) streams.push_back(std::move(one));
  }
  if (computing.empty()) return streams;
  std::sort(computing.begin(), computing.end());
  Recording::Stream exposed{.name = "exposed", .tasks = {}};
  for (Recording::Stream& stream : streams)
    for (Recording::StreamTask& task : stream.tasks) {
      if (task.kind != "communication") continue;
      for (const auto& [from, to] : rest_of({task.begin, task.end}, computing)) {
        task.exposed += to - from;
        exposed.tasks.push_back({.begin = from, .end = to, .name = task.name, .kind = "exposed", .exposed = to - from});
      }
    }
  if (!exposed.tasks.empty()) streams.push_back(std::move(exposed));
  return streams;
}

std::vector<Recording::Streams> StreamRecord::finish(const std::vector<std::string>& actors) const {
  SimTime begin = SimTime::max();
  for (const auto& tasks : tasks_)
    for (const Kept& kept : tasks) begin = std::min(begin, kept.task.begin);
  std::vector<Recording::Streams> all;
  std::vector<std::size_t> first;  // [group] its first actor
  for (std::size_t actor = 0; actor < tasks_.size(); ++actor) {
    if (tasks_[actor].empty()) continue;
    const auto alike = [&](std::size_t other) { return tasks_[other] == tasks_[actor]; };
    const auto group = std::find_if(first.begin(), first.end(), alike);
    if (group != first.end()) {
      ++all[static_cast<std::size_t>(group - first.begin())].others;
      continue;
    }
    first.push_back(actor);
    all.push_back({.who = actors[actor], .others = 0, .streams = streams_of(tasks_[actor], begin.time_since_epoch())});
  }
  return all;
}

}  // namespace ringsim
