#include "scenarios/predict/jobs_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "scenarios/predict/predict.hpp"

namespace ringsim {

namespace {

/// The GPUs of all groups, as the ranks of the job are numbered.
std::vector<NodeId> in_rank_order(const Job& job, const std::vector<const PlacedCollective*>& groups) {
  if (job.groups.empty()) return groups.front()->ranks;
  std::vector<NodeId> gpus(static_cast<std::size_t>(job.members()));
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t i = 0; i < groups[g]->ranks.size(); ++i)
      gpus[static_cast<std::size_t>(job.groups[g][i])] = groups[g]->ranks[i];
  return gpus;
}

}  // namespace

JobsRun::JobsRun(const Scenario& scenario, const Setup& setup, const std::vector<PlacedSchedule>* schedules, int room,
                 const std::atomic<bool>* stop)
    : scenario_(scenario), setup_(setup), jobs_(scenario.jobs.size()) {
  program_.name = "of the jobs";
  std::vector<std::vector<const PlacedCollective*>> groups;  // [job]
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    groups.push_back({&setup.collectives[j]});
    if (scenario.training_of(j) != nullptr) {
      actors_.emplace_back();
      continue;
    }
    for (const PlacedCollective& other : setup.other_groups[j]) groups.back().push_back(&other);
    actors_.emplace_back();
    for (const NodeId gpu : in_rank_order(scenario.jobs[j], groups.back())) actors_.back().push_back(actor_of(gpu));
  }
  program_.ranks = static_cast<int>(placement_.size());
  calls_.assign(placement_.size(), std::vector<int>(jobs_.size(), -1));
  for (std::size_t j = 0; j < jobs_.size(); ++j)
    if (scenario.training_of(j) == nullptr) add_calls(j, groups[j], schedules, stop);
  program_.actors = static_cast<int>(placement_.size());
  program_.streams.assign(jobs_.size(), Program::StreamKind::communication);

  std::map<std::pair<bool, std::vector<int>>, int> known;
  for (std::size_t actor = 0; actor < calls_.size(); ++actor) {
    const bool is_rank = actor < static_cast<std::size_t>(program_.ranks);
    const auto [role, is_new] = known.try_emplace({is_rank, calls_[actor]}, static_cast<int>(program_.roles.size()));
    if (is_new) program_.roles.push_back(role_of(calls_[actor], is_rank));
    program_.role_of.push_back(role->second);
  }
  run_.emplace(std::move(program_), 0, SimTime{}, room);
  run_->tell_tasks([this](const TaskSpan& span) {
    if (run_->lowered().task_of(span.actor, span.place).call < 0) return;
    Done& done = jobs_[static_cast<std::size_t>(span.place.stream)];
    // A switch that adds up has no calls before that it would have to wait for.
    if (span.actor < run_->program().ranks) done.begin = std::min(done.begin, span.begin);
    done.end = std::max(done.end, span.end);
  });
}

Actor JobsRun::actor_of(NodeId gpu) {
  const auto [found, is_new] = gpus_.try_emplace(gpu.value, static_cast<Actor>(placement_.size()));
  if (is_new) {
    placement_.push_back(gpu);
    names_.push_back(setup_.topology.node(gpu).name);
  }
  return found->second;
}

void JobsRun::add_calls(std::size_t job, const std::vector<const PlacedCollective*>& groups,
                        const std::vector<PlacedSchedule>* schedules, const std::atomic<bool>* stop) {
  const Job& its = scenario_.jobs[job];
  const PlacedCollective& first = *groups.front();
  std::optional<CheckedSchedule> schedule;
  if (schedules != nullptr) schedule = (*schedules)[job].schedule;
  for (const PlacedCollective* group : groups) {
    // Groups of one size have one schedule, unless it goes by the links between their GPUs.
    const CollectiveRequest& request = group->job.request;
    if (!schedule || request.orders != first.job.request.orders || request.tree != first.job.request.tree)
      schedule = schedule_of(scenario_, *group, stop);
    if (group == &first) jobs_[job].proof = schedule->proof();
    jobs_[job].messages += schedule->proof().operations / 2;
    const auto call = static_cast<int>(program_.calls.size());
    std::vector<Actor> members;
    for (const NodeId gpu : group->ranks) members.push_back(actor_of(gpu));
    for (const NodeId helper : group->helpers) {
      members.push_back(static_cast<Actor>(placement_.size()));
      placement_.push_back(helper);
      names_.push_back(fmt::format("{} ({})", setup_.topology.node(helper).name, its.name));
      calls_.emplace_back(jobs_.size(), -1);
    }
    for (const Actor member : members) calls_[static_cast<std::size_t>(member)][job] = call;
    const std::string name = jobs_.size() > 1 ? its.name : std::string(to_string(its.request.op));
    const LibraryRun* library = scenario_.library_of(job);
    program_.calls.push_back({.name = name,
                              .schedule = *schedule,
                              .members = members,
                              .plan = library == nullptr ? 0 : library->call.number,
                              .variables = {}});
  }
}

std::vector<SettingEffect> JobsRun::effects() const {
  std::vector<SettingEffect> effects;
  for (std::size_t j = 0; j < scenario_.jobs.size(); ++j) {
    for (const std::size_t before : scenario_.jobs[j].after) {
      const bool meet = std::any_of(calls_.begin(), calls_.end(),
                                    [&](const std::vector<int>& calls) { return calls[j] >= 0 && calls[before] >= 0; });
      const std::string &name = scenario_.jobs[j].name, &other = scenario_.jobs[before].name;
      effects.push_back({.setting = fmt::format("{}: /jobs/{}/after: {}", scenario_.file, j - 1, other),
                         .idle = meet ? "" : fmt::format("no GPU of {} participates in {}", name, other)});
    }
  }
  return effects;
}

// The time before a rank's first step. A job that runs alone reports its own pass separately.
Picoseconds JobsRun::before_steps(std::size_t job) const {
  const Picoseconds launch = launch_of(scenario_, job);
  return scenario_.jobs.size() > 1 ? launch + own_pass_of(scenario_, job) : launch;
}

// A job's start is a task of its own, which waits for nothing.
Program::Role JobsRun::role_of(const std::vector<int>& calls, bool is_rank) const {
  Program::Role role;
  role.streams.resize(calls.size());
  for (std::size_t j = 0; j < calls.size(); ++j) {
    if (calls[j] < 0) continue;
    const Job& job = scenario_.jobs[j];
    std::vector<Program::Task>& tasks = role.streams[j];
    if (job.start.count() > 0) tasks.push_back({.name = "start of " + job.name, .time = job.start});
    Program::Task call{.name = job.name, .call = calls[j]};
    if (is_rank && job.request.ranks > 1) call.time = before_steps(j);
    for (const std::size_t before : job.after) {
      const auto n = static_cast<int>(role.streams[before].size());
      if (n > 0) call.after.push_back({static_cast<Stream>(before), n, 0});
    }
    tasks.push_back(std::move(call));
  }
  return role;
}

}  // namespace ringsim
