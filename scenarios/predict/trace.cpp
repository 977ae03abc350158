#include "scenarios/predict/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

namespace {

/// Slices and the ends of the flow between them.
constexpr std::size_t events_of_message = 4;

/// The order of Trace::slices. It is also that in which slices of one track open: parents before their children.
bool opens_before(const Trace::Slice& a, const Trace::Slice& b) {
  if (a.begin != b.begin) return a.begin < b.begin;
  const bool a_is_empty = a.begin == a.end, b_is_empty = b.begin == b.end;
  if (a_is_empty != b_is_empty) return a_is_empty;
  return a.end > b.end;
}

}  // namespace

double utilization(const Recording& recording, const Recording::Use& use, std::size_t step) {
  const SimTime begin{static_cast<std::int64_t>(step) * recording.step};
  const Picoseconds time = std::min(recording.step, recording.finish - begin);
  const double most = static_cast<double>(use.bandwidth.bytes_per_second) * static_cast<double>(time.count()) /
                      static_cast<double>(picoseconds_per_second);
  return most > 0 ? static_cast<double>(use.bytes[step]) / most : 0;
}

// ------------------------------------------------------------------------------------------------------- collecting

Tracer::Tracer(const TraceFilter& filter, const Topology& topology, const RunOptions& options,
               std::vector<std::string> actors, int ranks, const ProgramsRun* program)
    : filter_(filter),
      topology_(topology),
      options_(options),
      actors_(std::move(actors)),
      ranks_(ranks),
      program_(program) {
  if (!filter.ranks.empty()) wanted_ranks_.resize(actors_.size());
  for (const Actor rank : filter.ranks) {
    if (rank < 0 || rank >= ranks)
      throw InputError("--trace-rank", fmt::format("expected a rank from 0 to {}, found {}", ranks - 1, rank));
    wanted_ranks_[static_cast<std::size_t>(rank)] = true;
  }
  if (filter.links.empty()) return;
  wanted_links_.resize(topology.n_links());
  for (const std::string& name : filter.links)
    for (const LinkId link : links_named(topology, name, "--trace-link")) wanted_links_[link.value] = true;
  if (!RouteUse::is_known(options))
    throw InputError("--trace-link",
                     "expected no --trace-link, because messages of a pair use several routes (flow_spray) or links go "
                     "down, found one",
                     "select ranks with --trace-rank, or a time range with --trace-from and --trace-to");
  routes_.emplace(topology, options, [this](LinkId link) { return wanted_links_[link.value]; });
}

// Half of the events are for messages and tasks. They come in the order in which they end.
bool Tracer::has_room(std::size_t events, SimTime now) {
  if (filter_.critical_rank && !trace_.critical_rank) return true;  // keep_critical_rank() counts them
  if (!cut_ && events_ + events <= filter_.most_events / 2) {
    events_ += events;
    return true;
  }
  if (!cut_) cut_ = now;
  return false;
}

void Tracer::on_message(const Span& message) {
  if (!overlaps(message.start, message.finish)) return;
  if (!is_wanted(message.from) && !is_wanted(message.to)) return;
  if (routes_ && !routes_->crosses(message)) return;
  if (has_room(events_of_message, message.finish))
    messages_.push_back(message);
  else
    ++messages_left_out_;
}

void Tracer::keep_task(Task task) {
  if (overlaps(task.begin, task.end) && is_wanted(task.actor) && has_room(2, task.end))  // it, and a step
    tasks_.push_back(std::move(task));
}

void Tracer::on_compute(const ComputeEvent& event) {
  SimTime& begin = computing_[{event.actor, event.lane}];
  if (event.begins)
    begin = event.when;
  else
    keep_task({.actor = event.actor, .stream = event.lane, .begin = begin, .end = event.when, .name = "compute"});
}

void Tracer::on_task(const ProgramsRun::Task& task) {
  keep_task({.actor = task.actor,
             .stream = task.stream,
             .iteration = task.iteration,
             .begin = task.begin,
             .end = task.end,
             .name = task.name});
}

// --------------------------------------------------------------------------------------------------------- the tracks

std::uint32_t Tracer::add_process(const std::string& name) {
  trace_.processes.push_back({name});
  return static_cast<std::uint32_t>(trace_.processes.size()) - 1;
}

std::uint32_t Tracer::add_track(std::uint32_t process, const std::string& name, bool is_counter) {
  trace_.tracks.push_back({process, name, is_counter});
  return static_cast<std::uint32_t>(trace_.tracks.size()) - 1;
}

Trace::Slice Tracer::slice_of(const PathElement& element) const {
  const bool of_message =
      element.cause == PathCause::link || element.cause == PathCause::latency || element.cause == PathCause::staging;
  Trace::Slice slice{
      .begin = element.begin, .end = element.end, .category = to_string(element.cause), .actor = element.from};
  const std::string what = element.cause == PathCause::link && element.resource != no_resource
                               ? topology_.resource_name(element.resource)
                               : std::string(to_string(element.cause));
  if (program_ != nullptr) {
    const PathTask task = program_->task_of(element.by, element.lane, element.step, element.cause);
    slice.name = of_message               ? fmt::format("{}: {}", task.name, what)
                 : task.cause == "launch" ? fmt::format("launch of {}", task.name)
                                          : task.name;
  } else {
    slice.name = of_message ? what : fmt::format("{}, {}", what, actors_[static_cast<std::size_t>(element.by)]);
  }
  if (of_message) slice.bytes = element.bytes;
  return slice;
}

// A quarter of the events is for it.
void Tracer::add_path(const std::vector<PathElement>& path) {
  const std::uint32_t on = add_track(add_process("critical path"), "critical path");
  for (const PathElement& element : path) {
    if (!overlaps(element.begin, element.end) || (cut_ && element.end > *cut_)) continue;
    if (trace_.slices.size() == filter_.most_events / 4) {
      cut_ = std::min(cut_.value_or(SimTime::max()), element.begin);
      break;
    }
    trace_.slices.push_back(slice_of(element));
    trace_.slices.back().track = on;
  }
}

/// The tasks of an actor, a track per stream; of training, under the steps that they belong to.
void Tracer::add_tasks(const std::vector<std::uint32_t>& own, std::uint32_t process) {
  std::map<Stream, std::vector<const Task*>> streams;
  for (const std::uint32_t index : own) streams[tasks_[index].stream].push_back(&tasks_[index]);
  int lanes = 0;
  for (auto& [stream, tasks] : streams) {
    const std::string name = program_ != nullptr ? program_->stream_name(stream)
                             : lanes++ == 0      ? "compute"
                                                 : fmt::format("compute {}", lanes);
    const std::uint32_t on = add_track(process, name);
    std::map<int, std::pair<SimTime, SimTime>> steps;
    for (const Task* task : tasks) {
      trace_.slices.push_back(
          {.track = on, .begin = task->begin, .end = task->end, .name = task->name, .category = "task"});
      auto& [begin, end] = steps.try_emplace(task->iteration, task->begin, task->end).first->second;
      begin = std::min(begin, task->begin);
      end = std::max(end, task->end);
    }
    if (program_ == nullptr) continue;
    for (const auto& [iteration, time] : steps)
      trace_.slices.push_back({.track = on,
                               .begin = time.first,
                               .end = time.second,
                               .name = fmt::format("step {}", iteration),
                               .category = "step"});
  }
}

/// What an actor sends, or receives, on as many tracks as there are messages at a time. `own`: in messages_, by start.
void Tracer::add_messages(Actor actor, std::uint32_t process, const std::vector<std::uint32_t>& own, bool sends) {
  std::vector<std::uint32_t> tracks;
  std::vector<SimTime> free;  // [tracks]
  for (const std::uint32_t index : own) {
    const Span& message = messages_[index];
    if ((sends ? message.from : message.to) != actor) continue;
    std::size_t on = 0;
    while (on < free.size() && free[on] > message.start) ++on;
    if (on == free.size()) {
      const std::string name = sends ? "sends" : "receives";
      tracks.push_back(add_track(process, on == 0 ? name : fmt::format("{} {}", name, on + 1)));
      free.emplace_back();
    }
    free[on] = message.finish;
    const std::string& other = actors_[static_cast<std::size_t>(sends ? message.to : message.from)];
    Trace::Slice slice{.track = tracks[on],
                       .begin = message.start,
                       .end = message.finish,
                       .name = fmt::format("{} {}", sends ? "to" : "from", other.substr(0, other.find(" ("))),
                       .category = "message",
                       .flow = index + 1,
                       .flow_ends = !sends,
                       .bytes = message.bytes,
                       .step = message.step};
    if (program_ != nullptr) {
      const PathTask task = program_->task_of(message.from, message.lane, message.step, PathCause::link);
      slice.name = fmt::format("{} {}", task.name, slice.name);
      slice.step = task.step;
    }
    trace_.slices.push_back(std::move(slice));
  }
}

// A quarter of the events is for it: the links that carried most come first.
void Tracer::add_use(const Recording& recording) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < recording.use.size(); ++i) order.push_back(i);
  const auto total = [&](std::size_t i) {
    return std::accumulate(recording.use[i].bytes.begin(), recording.use[i].bytes.end(), std::int64_t{0});
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return total(a) > total(b); });
  std::optional<std::uint32_t> process;
  std::size_t left_out = 0;
  for (const std::size_t i : order) {
    const Recording::Use& use = recording.use[i];
    if (!wanted_links_.empty() && !wanted_links_[use.id.value]) continue;
    if (trace_.samples.size() + use.bytes.size() + 1 > filter_.most_events / 4) {
      ++left_out;
      continue;
    }
    if (!process) process = add_process("link utilization, %");
    const std::uint32_t on = add_track(*process, use.link, true);
    double before = -1;
    for (std::size_t step = 0; step <= use.bytes.size(); ++step) {
      const bool is_end = step == use.bytes.size();
      const SimTime when = is_end ? recording.finish : SimTime{static_cast<std::int64_t>(step) * recording.step};
      if (when + recording.step < filter_.begin || when > filter_.end || (cut_ && when > *cut_)) continue;
      const double value = is_end ? 0 : 100 * utilization(recording, use, step);
      if (value == before) continue;
      trace_.samples.push_back({.track = on, .when = when, .value = value});
      before = value;
    }
  }
  if (left_out > 0)
    trace_.left_out += fmt::format("the utilization of {} of {} links, those that carried the least; ", left_out,
                                   recording.use.size());
}

void Tracer::say_left_out(const Timeline& timeline) {
  if (cut_)
    trace_.left_out += fmt::format("everything that ended after {} of {}, including {} messages; ",
                                   format(cut_->time_since_epoch()), format(timeline.duration()), messages_left_out_);
  if (!trace_.left_out.empty())
    trace_.left_out = fmt::format(
        "the trace is limited to {} events; it lacks {}select a part with --trace-rank, --trace-link, --trace-from and "
        "--trace-to",
        filter_.most_events, trace_.left_out);
}

/// Drops what is of other ranks, when the critical path is known.
void Tracer::keep_critical_rank(const Timeline& timeline) {
  std::map<Actor, Picoseconds> times;
  for (const PathElement& element : timeline.path)
    if (element.from < ranks_) times[element.from] += element.end - element.begin;
  Actor longest = 0;
  for (const auto& [actor, time] : times)
    if (time > times[longest]) longest = actor;
  trace_.critical_rank = longest;
  std::erase_if(messages_, [&](const Span& message) { return message.from != longest && message.to != longest; });
  std::erase_if(tasks_, [&](const Task& task) { return task.actor != longest; });
  messages_left_out_ +=
      std::erase_if(messages_, [&](const Span& message) { return !has_room(events_of_message, message.finish); });
  std::erase_if(tasks_, [&](const Task& task) { return !has_room(2, task.end); });
}

Trace Tracer::finish(const Timeline& timeline, const Recording& recording) {
  if (filter_.critical_rank) keep_critical_rank(timeline);
  add_path(timeline.path);
  // The path may have been cut before them.
  const auto is_late = [&](SimTime end) { return cut_ && end > *cut_; };
  messages_left_out_ += std::erase_if(messages_, [&](const Span& message) { return is_late(message.finish); });
  std::erase_if(tasks_, [&](const Task& task) { return is_late(task.end); });
  std::vector<std::vector<std::uint32_t>> own(actors_.size());
  for (std::uint32_t i = 0; i < messages_.size(); ++i) {
    own[static_cast<std::size_t>(messages_[i].from)].push_back(i);
    if (messages_[i].to != messages_[i].from) own[static_cast<std::size_t>(messages_[i].to)].push_back(i);
  }
  std::vector<std::vector<std::uint32_t>> own_tasks(actors_.size());
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) own_tasks[static_cast<std::size_t>(tasks_[i].actor)].push_back(i);
  for (std::size_t a = 0; a < actors_.size(); ++a) {
    if (own[a].empty() && own_tasks[a].empty()) continue;
    std::stable_sort(own[a].begin(), own[a].end(),
                     [&](std::uint32_t x, std::uint32_t y) { return messages_[x].start < messages_[y].start; });
    const std::uint32_t process = add_process(actors_[a]);
    const auto actor = static_cast<Actor>(a);
    add_tasks(own_tasks[a], process);
    add_messages(actor, process, own[a], true);
    add_messages(actor, process, own[a], false);
  }
  add_use(recording);
  std::stable_sort(trace_.slices.begin(), trace_.slices.end(), opens_before);
  std::stable_sort(trace_.samples.begin(), trace_.samples.end(),
                   [](const Trace::Sample& a, const Trace::Sample& b) { return a.when < b.when; });
  say_left_out(timeline);
  return std::move(trace_);
}

}  // namespace ringsim
