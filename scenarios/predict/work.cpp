#include "scenarios/predict/work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/program/remembered_calls.hpp"

namespace ringsim {

namespace {

std::vector<Actor> first_actors(std::size_t n) {
  std::vector<Actor> actors(n);
  std::iota(actors.begin(), actors.end(), 0);
  return actors;
}

/// "rank 3 (gpu3)", "helper 0 (port8)". `nodes`: [actor], ranks first.
std::vector<std::string> names_of(const Topology& topology, const std::vector<NodeId>& nodes, std::size_t ranks) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    names.push_back(fmt::format("{} {} ({})", i < ranks ? "rank" : "helper", i < ranks ? i : i - ranks,
                                topology.node(nodes[i]).name));
  return names;
}

}  // namespace

Work::Work(const Scenario& scenario, const Setup& setup, const PredictOptions& options)
    : scenario_(scenario),
      setup_(setup),
      trainings_(scenario.jobs.size()),
      part_of_(scenario.jobs.size()),
      actors_(scenario.jobs.size()) {
  if (options.stage) options.stage(fmt::format("proving the schedule of {} ranks", scenario.main().request.ranks));
  const bool is_one = scenario.jobs.size() == 1;
  if (is_one && scenario.training)
    take_training_alone(options);
  else if (is_one && scenario.main().groups.empty())
    take_collective(options);
  else if (!scenario.trains())
    take_jobs_alone(options);
  else
    take_several(options);
  if (!is_one) job_of_lane_ = programs_->jobs();
}

void Work::take_collective(const PredictOptions& options) {
  const PlacedCollective& placed = setup_.collectives.front();
  for (const auto* nodes : {&placed.ranks, &placed.helpers})
    placement_.insert(placement_.end(), nodes->begin(), nodes->end());
  collective_ = options.schedules ? options.schedules->front().schedule : schedule_of(scenario_, placed, options.stop);
  n_ranks_ = placed.job.request.ranks;
  actors_.front() = first_actors(placement_.size());
  names_ = names_of(setup_.topology, placement_, placed.ranks.size());
}

void Work::take_training_alone(const PredictOptions& options) {
  const PlacedCollective& placed = setup_.collectives.front();
  trainings_.front().take(std::make_unique<TrainingRun>(scenario_, placed, options));
  TrainingRun& run = *trainings_.front().run;
  placement_ = run.placement();
  n_ranks_ = placed.job.request.ranks;
  actors_.front() = first_actors(placement_.size());
  names_ = names_of(setup_.topology, placement_, placed.ranks.size());
  run.name_lanes(setup_.topology, names_);
  const Program& program = run.run().program();
  programs_ = std::make_unique<ProgramsRun>(
      std::vector<ProgramsRun::Part>{{.run = &run.run(),
                                      .actors = actors_.front(),
                                      .jobs = std::vector<std::size_t>(program.streams.size()),
                                      .streams = ProgramsRun::stream_names(program, "")}});
}

void Work::take_jobs_alone(const PredictOptions& options) {
  jobs_ = std::make_unique<JobsRun>(scenario_, setup_, options.schedules, all_channels, options.stop);
  placement_ = jobs_->placement();
  names_ = jobs_->names();
  actors_ = jobs_->actors();
  n_ranks_ = jobs_->n_gpus();
  ProgramsRun::Part part{.run = &jobs_->run(), .actors = first_actors(placement_.size())};
  name_jobs(part);
  programs_ = std::make_unique<ProgramsRun>(std::vector<ProgramsRun::Part>{std::move(part)});
}

void Work::name_jobs(ProgramsRun::Part& part) const {
  for (std::size_t j = 0; j < scenario_.jobs.size(); ++j) {
    part.jobs.push_back(j);
    part.streams.push_back(scenario_.jobs.size() > 1 ? scenario_.jobs[j].name : "communication");
  }
}

// A GPU computes for one training: what two of them would leave each other of its processors is not modeled.
void Work::expect_own_gpus() const {
  std::map<std::uint32_t, std::size_t> trains;  // [node] which job
  for (std::size_t j = 0; j < scenario_.jobs.size(); ++j) {
    if (scenario_.training_of(j) == nullptr) continue;
    for (const NodeId gpu : setup_.collectives[j].ranks) {
      const auto [known, is_new] = trains.try_emplace(gpu.value, j);
      if (!is_new)
        throw InputError(fmt::format("{}: /jobs/{}/training/ranks", scenario_.file, j - 1),
                         fmt::format("expected GPUs that no other job trains on, found {}, which trains for {}",
                                     setup_.topology.node(gpu).name, scenario_.jobs[known->second].name),
                         "give each training its own GPUs with \"ranks\"; only jobs with a collective can share GPUs");
    }
  }
}

void Work::take_trainings(int room, const PredictOptions& options) {
  for (std::size_t j = 0; j < scenario_.jobs.size(); ++j) {
    const TrainingSpec* spec = scenario_.training_of(j);
    if (spec == nullptr) continue;
    TrainingJob& job = trainings_[j];
    if (j > 0) {
      auto alone = std::make_unique<Scenario>(scenario_);
      alone->training = *spec;
      alone->jobs = {scenario_.jobs[j]};
      if (const LibraryRun* library = scenario_.library_of(j)) alone->library = *library;
      job.alone = std::move(alone);
    }
    const Scenario& its = job.alone ? *job.alone : scenario_;
    job.take(std::make_unique<TrainingRun>(its, setup_.collectives[j], options, room));
  }
}

ProgramsRun::Part Work::part_with(ProgramRun& run, const std::vector<NodeId>& nodes, std::size_t ranks) {
  ProgramsRun::Part part{.run = &run};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i < ranks) {
      part.actors.push_back(gpus_.at(nodes[i].value));
      continue;
    }
    part.actors.push_back(static_cast<Actor>(placement_.size()));
    placement_.push_back(nodes[i]);
    names_.push_back(setup_.topology.node(nodes[i]).name);
  }
  return part;
}

void Work::take_several(const PredictOptions& options) {
  expect_own_gpus();
  std::size_t n_programs = 0;
  bool has_collectives = false;
  for (std::size_t j = 0; j < scenario_.jobs.size(); ++j) {
    n_programs += scenario_.training_of(j) != nullptr ? 1U : 0U;
    has_collectives = has_collectives || scenario_.training_of(j) == nullptr;
    std::vector<const PlacedCollective*> groups{&setup_.collectives[j]};
    for (const PlacedCollective& other : setup_.other_groups[j]) groups.push_back(&other);
    for (const PlacedCollective* group : groups) {
      for (const NodeId gpu : group->ranks) {
        if (!gpus_.try_emplace(gpu.value, static_cast<Actor>(placement_.size())).second) continue;
        placement_.push_back(gpu);
        names_.push_back(setup_.topology.node(gpu).name);
      }
    }
  }
  n_ranks_ = static_cast<int>(placement_.size());
  const int room = ProgramsBeside::room_of(n_programs + (has_collectives ? 1 : 0));
  take_trainings(room, options);
  std::vector<ProgramsRun::Part> parts;
  for (std::size_t j = 0; j < scenario_.jobs.size(); ++j) {
    if (trainings_[j].run == nullptr) continue;
    TrainingRun& run = *trainings_[j].run;
    const auto ranks = static_cast<std::size_t>(run.run().program().ranks);
    ProgramsRun::Part part = part_with(run.run(), run.placement(), ranks);
    part.jobs.assign(run.run().program().streams.size(), j);
    part.streams = ProgramsRun::stream_names(run.run().program(), scenario_.jobs[j].name + ": ");
    part.start = SimTime{scenario_.jobs[j].start};
    actors_[j] = part.actors;
    part_of_[j] = parts.size();
    parts.push_back(std::move(part));
  }
  if (has_collectives) {
    jobs_ = std::make_unique<JobsRun>(scenario_, setup_, nullptr, room, options.stop);
    ProgramsRun::Part part = part_with(jobs_->run(), jobs_->placement(), static_cast<std::size_t>(jobs_->n_gpus()));
    name_jobs(part);
    for (std::size_t j = 0; j < scenario_.jobs.size(); ++j) {
      if (trainings_[j].run != nullptr) continue;
      part_of_[j] = parts.size();
      for (const Actor actor : jobs_->actors()[j]) actors_[j].push_back(part.actors[static_cast<std::size_t>(actor)]);
    }
    parts.push_back(std::move(part));
  }
  programs_ = std::make_unique<ProgramsRun>(std::move(parts));
}

std::vector<CheckedSchedule> Work::called() const {
  return programs_ ? programs_->called() : std::vector<CheckedSchedule>{*collective_};
}

std::vector<std::uint16_t> Work::plan_of_channel() const {
  ensure(programs_ != nullptr, "calls that differ are those of programs");
  std::vector<std::uint16_t> found = programs_->plan_of_channel();
  found.resize(std::size_t{1} << 16);
  return found;
}

void Work::TrainingJob::take(std::unique_ptr<TrainingRun> its) {
  run = std::move(its);
  const auto actors = static_cast<std::size_t>(run->run().program().actors);
  traffic.sent_by.resize(actors);
  traffic.received_by.resize(actors);
}

TrainingRun* Work::training(std::size_t job) const { return trainings_[job].run.get(); }

void Work::count_message(const Span& message) {
  const std::size_t job = job_of_lane_.empty() ? 0 : job_of_lane_[message.lane];
  if (trainings_[job].run == nullptr) return;
  TrainingRun::Traffic& traffic = trainings_[job].traffic;
  traffic.sent += message.bytes;
  traffic.sent_by[static_cast<std::size_t>(programs_->own_actor(message.from, message.lane))] += message.bytes;
  traffic.received_by[static_cast<std::size_t>(programs_->own_actor(message.to, message.lane))] += message.bytes;
}

std::vector<Disturbance::Lanes> Work::lanes() const {
  std::vector<Disturbance::Lanes> lanes;
  for (std::size_t j = 0; j < scenario_.jobs.size() && scenario_.jobs.size() > 1; ++j)
    lanes.push_back(programs_->lanes_of(part_of_[j], j));
  return lanes;
}

void Work::listen(RunOptions& options, bool is_recorded) {
  if (!programs_) return;
  const bool is_async = training(0) != nullptr && training(0)->is_async();
  if (!is_async || is_recorded) options.on_compute = [this](const ComputeEvent& event) { programs_->listen(event); };
  if (std::any_of(scenario_.jobs.begin(), scenario_.jobs.end(), [&](const Job& job) {
        const TrainingSpec* spec = scenario_.training_of(static_cast<std::size_t>(&job - scenario_.jobs.data()));
        return spec != nullptr && spec->slowdown > 1'000'000;
      }))
    options.longer = [this](const ComputeEvent& event) { return programs_->longer(event); };
  if (is_async) training(0)->listen(options);
  options.jobs = job_of_lane_;
  if (scenario_.trains() && !is_async) {
    options.on_message = [this](const Span& message) { count_message(message); };
    options.messages_may_fold = true;
  }
}

std::optional<Timeline> Work::run_remembering(const Topology& topology, const RunOptions& options,
                                              std::string& remembered) {
  if (scenario_.jobs.size() > 1 || training(0) == nullptr || training(0)->is_async()) return std::nullopt;
  if (programs_->parts().front().start != SimTime{}) return std::nullopt;
  ProgramRun& run_of = training(0)->run();
  TrainingRun::Traffic& traffic = trainings_.front().traffic;
  const auto begin = [&](const std::shared_ptr<const LoweredProgram>& lowered) {
    run_of.listen_to(lowered);
    traffic = {.sent = {},
               .sent_by = std::vector<Bytes>(traffic.sent_by.size()),
               .received_by = std::vector<Bytes>(traffic.received_by.size())};
  };
  std::optional<RememberedRun> run =
      ringsim::run_remembering(topology, run_of.lowered().checked(), all_channels, options, begin);
  if (!run) {
    begin(nullptr);
    return std::nullopt;
  }
  for (std::size_t actor = 0; actor < traffic.sent_by.size(); ++actor) {
    traffic.sent += run->sent_by[actor];
    traffic.sent_by[actor] += run->sent_by[actor];
    traffic.received_by[actor] += run->received_by[actor];
  }
  remembered = run->calls.remembered == 0 ? fmt::format("all {} calls were simulated", run->calls.met)
                                          : fmt::format(
                                                "{} calls followed one of {} patterns, each simulated once; {} calls "
                                                "overlapped with others and were simulated together",
                                                run->calls.remembered, run->calls.simulated, run->calls.met);
  if (run->calls.stand_ins > 0)
    remembered += fmt::format("; {} of {} ranks represented all", run->calls.stand_ins, run_of.program().ranks);
  return std::move(run->timeline);
}

void Work::finish(const Timeline& timeline) {
  if (!timeline.folded || training(0) == nullptr) return;
  TrainingRun::Traffic& traffic = trainings_.front().traffic;
  traffic.sent = timeline.bytes_sent;
  for (auto* by : {&traffic.sent_by, &traffic.received_by}) std::fill(by->begin() + 1, by->end(), by->front());
}

std::vector<SettingEffect> Work::effects() const {
  std::vector<SettingEffect> effects;
  if (jobs_) effects = jobs_->effects();
  for (std::size_t j = 0; j < scenario_.jobs.size(); ++j) {
    const TrainingSpec* spec = scenario_.training_of(j);
    if (spec == nullptr || spec->slowdown <= 1'000'000) continue;
    effects.push_back(
        {.setting =
             fmt::format("{}: {}/training/slowdown: {:.6g}", scenario_.file,
                         j == 0 ? "" : fmt::format("/jobs/{}", j - 1), 1e-6 * static_cast<double>(spec->slowdown)),
         .idle = training(j)->run().has_slowed()
                     ? ""
                     : "no kernel overlaps with a collective on its GPU, except transfers between stages"});
  }
  return effects;
}

const Proof& Work::proof() const {
  if (scenario_.training) return training(0)->run().schedule().proof();
  return jobs_ ? jobs_->jobs().front().proof : collective_->proof();
}

std::int64_t Work::n_messages() const {
  if (training(0) != nullptr && training(0)->is_async()) return training(0)->n_messages();
  return whole().proof().operations / 2;  // a message is two operations
}

}  // namespace ringsim
