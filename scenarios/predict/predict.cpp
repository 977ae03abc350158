#include "scenarios/predict/predict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "algorithms/stored_schedule.hpp"
#include "scenarios/predict/beyond_machine.hpp"
#include "scenarios/predict/flow_record.hpp"
#include "scenarios/predict/kernel_record.hpp"
#include "scenarios/predict/link_report.hpp"
#include "scenarios/predict/stream_record.hpp"
#include "scenarios/predict/work.hpp"
#include "sim/base/ascii.hpp"
#include "sim/base/error.hpp"
#include "sim/base/setting_error.hpp"
#include "sim/run/link_use.hpp"
#include "sim/run/run.hpp"
#include "sim/text/json.hpp"
#include "topologies/machines/scale_links.hpp"

namespace ringsim {

std::string algorithm_text(const Prediction& prediction) {
  if (!prediction.library_algorithm.empty()) return prediction.library_algorithm;
  std::string text = prediction.algorithm;
  for (const auto& [name, value] : prediction.parameters) text += fmt::format(" {}={}", name, without_quotes(value));
  return text;
}

namespace {

/// Names of what the library takes for a job; of a training step each once, the one of most bytes first.
std::string choices_of(const Scenario& scenario, std::size_t job, std::string ExchangeReport::*name,
                       const std::string& alone) {
  std::vector<std::pair<std::string, Bytes>> names;
  for (const ExchangeReport& exchange : exchanges_of(scenario, job)) {
    const auto known =
        std::find_if(names.begin(), names.end(), [&](const auto& each) { return each.first == exchange.*name; });
    Bytes& bytes = known == names.end() ? names.emplace_back(exchange.*name, Bytes{}).second : known->second;
    bytes += exchange.bytes * exchange.times;
  }
  if (names.empty()) return alone;
  std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [one, its] : names) text += (text.empty() ? "" : ", ") + one;
  return text;
}

}  // namespace

std::string library_protocol_of(const Scenario& scenario, std::size_t job) {
  const LibraryRun* library = scenario.library_of(job);
  if (library == nullptr) return "";
  return choices_of(scenario, job, &ExchangeReport::protocol, std::string(to_string(library->call.plan.protocol)));
}

namespace {

/// "simple, ll" of "Simple, LL".
std::string as_results_have_them(std::string library_protocol) {
  std::transform(library_protocol.begin(), library_protocol.end(), library_protocol.begin(),
                 [](char c) { return is_letter(c) ? static_cast<char>(c | 0x20) : c; });
  return library_protocol;
}

}  // namespace

std::string protocols_of(const Scenario& scenario, std::size_t job) {
  if (scenario.library_of(job) == nullptr) return std::string(scenario.protocol->name);
  return as_results_have_them(library_protocol_of(scenario, job));
}

std::string protocols_of(const Prediction& prediction) {
  if (prediction.library_protocol.empty()) return std::string(prediction.protocol->name);
  return as_results_have_them(prediction.library_protocol);
}

std::string library_algorithm_of(const Scenario& scenario, std::size_t job) {
  const LibraryRun* library = scenario.library_of(job);
  if (library == nullptr) return "";
  const bool by_msccl = library->call.plan.algorithm == nccl::TunerAlgorithm::msccl;
  if (nccl::sends_to_peers(scenario.jobs[job].request.op) && !by_msccl) return "SendRecv";
  return choices_of(scenario, job, &ExchangeReport::algorithm, std::string(to_string(library->call.plan.algorithm)));
}

std::string protocol_text(const Prediction& prediction) {
  return prediction.library_protocol.empty() ? std::string(prediction.protocol->name) : prediction.library_protocol;
}

Picoseconds launch_of(const Scenario& scenario, std::size_t job) {
  const LibraryRun* library = scenario.library_of(job);
  const Picoseconds launch =
      library != nullptr && job > 0 ? library->call.launch : scenario.launch.value_or(scenario.protocol->launch);
  return scenario.calibration ? launch + scenario.calibration->launch : launch;
}

Picoseconds own_pass_of(const Scenario& scenario, std::size_t job) {
  const LibraryRun* library = scenario.library_of(job);
  return library != nullptr ? library->call.own_pass : Picoseconds{0};
}

bool is_disturbed(const Scenario& scenario) {
  return !scenario.faults.empty() || !scenario.late.empty() || !scenario.slow.empty() ||
         scenario.jitter.most.count() > 0 || !scenario.background.empty() || scenario.jobs.size() > 1;
}

namespace {

std::vector<std::pair<std::string, std::string>> parameters_of(const Job& job) {
  std::vector<std::pair<std::string, std::string>> result;
  if (job.arguments.file) result.emplace_back("name", in_quotes(job.arguments.file->name));
  for (const Parameter& parameter : job.algorithm->parameters) {
    if (!parameter.choices.empty() || !parameter.example.empty()) {
      const std::string value = text(*job.algorithm, job.arguments, parameter.name);
      if (!value.empty()) result.emplace_back(parameter.name, '"' + value + '"');
    } else if (const auto value = number(*job.algorithm, job.arguments, parameter.name);
               value >= parameter.min) {  // a default below is none
      result.emplace_back(parameter.name, fmt::to_string(value));
    }
  }
  return result;
}

int n_hosts(const Topology& topology, const std::vector<NodeId>& ranks) {
  std::set<std::uint32_t> hosts;
  for (const NodeId rank : ranks)
    if (const auto host = topology.node(rank).host) hosts.insert(*host);
  return static_cast<int>(hosts.size());
}

/// Everything about a collective except its time and what limited it.
Prediction about(const Scenario& scenario, const Setup& setup, std::size_t j) {
  const PlacedCollective& placed = setup.collectives[j];
  const Job& job = placed.job;
  Prediction result;
  if (scenario.jobs.size() > 1) result.job = job.name;
  result.request = job.request;
  result.algorithm = job.algorithm->name;
  result.parameters = parameters_of(job);
  result.model = scenario.model;
  result.protocol = find_protocol(scenario.protocol->name);  // which outlives the scenario
  result.launch = launch_of(scenario, j);
  if (const LibraryRun* library = scenario.library_of(j)) {
    result.library = fmt::format("{} {}", library->name, library->version);
    result.library_algorithm = library_algorithm_of(scenario, j);
    result.library_protocol = library_protocol_of(scenario, j);
    result.protocol = find_protocol(library->call.protocol->name);
  }
  const bool of_kernels = scenario.training && (scenario.training->trace || scenario.training->inference() != nullptr);
  if (j == 0 && of_kernels && result.library.empty() && result.protocol == &no_protocol() && job.request.ranks > 1) {
    if (result.launch.count() == 0) result.untimed.emplace_back("launches");
    if (!scenario.devices.gpu || !scenario.devices.gpu->copy) result.untimed.emplace_back("copies");
    if (!scenario.devices.gpu || !scenario.devices.gpu->reduce) result.untimed.emplace_back("additions");
  }
  if (scenario.calibration) result.calibration = to_string(*scenario.calibration);
  result.varied = scenario.varied;
  result.start = job.start;
  result.disturbed = is_disturbed(scenario);
  result.ring = placed.ring;
  std::vector<NodeId> ranks = placed.ranks;
  for (const PlacedCollective& other : setup.other_groups[j])
    ranks.insert(ranks.end(), other.ranks.begin(), other.ranks.end());
  result.nodes = n_hosts(setup.topology, ranks);
  result.groups = static_cast<int>(scenario.jobs[j].groups.size());
  return result;
}

std::string place_of(SettingError::Setting setting) {
  switch (setting) {
    case SettingError::Setting::scale:
      return "";
    case SettingError::Setting::protocol:
      return ": /transport/protocol";
    case SettingError::Setting::packets:
      return ": /network/packet";
  }
  fail_invariant("a setting has one of three places");
}

// What the topology lacks, or what its faults take away.
Timeline run_blaming(const Scenario& scenario, const Topology& topology, Work& work, const RunOptions& options,
                     std::string& remembered) {
  try {
    std::string why_not;
    if (std::optional<Timeline> folded = run_folded(topology, work.whole(), options, why_not))
      return std::move(*folded);
    std::optional<Timeline> timeline = work.run_remembering(topology, options, remembered);
    if (!timeline) {
      RunOptions whole = options;
      whole.fold = false;
      timeline = run(topology, work.whole(), whole);
    }
    timeline->not_folded = std::move(why_not);
    return std::move(*timeline);
  } catch (const StrandedError& error) {
    throw InputError(scenario.file + ": /faults", error.message(), error.hint());
  } catch (const SettingError& error) {
    throw InputError(scenario.file + place_of(error.setting()), error.message(), error.hint());
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": /topology" + error.where(), error.message(), error.hint());
  }
}

/// Fills a Recording while the run goes.
class Recorder {
 public:
  /// Sets what the options must tell it. All references must outlive it.
  Recorder(Recording& recording, const Topology& topology, RunOptions& options, std::vector<std::string> actors,
           int ranks, ProgramsRun* program)
      : recording_(recording),
        topology_(topology),
        use_(recording.use_step.value_or(Picoseconds{0})),
        is_spread_(moves_packets(options.model) && options.routing.policy == Routing::Policy::packet_spray),
        actors_(actors) {
    if (recording.keep_streams) streams_.emplace(*program, 0);
    if (recording.keep_kernels) kernels_.emplace(*program, 0);
    if (!recording.filter && !recording.use_step && !recording.keep_flows) return;  // the run may fold
    options.on_traffic = [this](const Traffic& traffic) { use_.add(traffic); };
    if (recording.keep_flows && RouteUse::is_known(options)) {
      flows_.emplace(topology, options);
      options.on_message = [this, before = options.on_message](const Span& message) {
        if (before) before(message);
        flows_->on_message(message);
      };
    }
    if (!recording.filter) return;
    options.record_path = true;
    tracer_.emplace(*recording.filter, topology, options, std::move(actors), ranks, program);
    options.on_message = [this, before = options.on_message](const Span& message) {
      if (before) before(message);
      tracer_->on_message(message);
    };
    if (program != nullptr)
      program->tell_tasks([this](const ProgramsRun::Task& task) { tracer_->on_task(task); });
    else
      options.on_compute = [this](const ComputeEvent& event) { tracer_->on_compute(event); };
  }

  void finish(const Timeline& timeline) {
    recording_.finish = timeline.finish;
    if (streams_) recording_.streams = streams_->finish(actors_);
    if (kernels_) kernels_->finish(recording_);
    if (!recording_.filter && !recording_.use_step && !recording_.keep_flows) return;
    std::vector<LinkUse::Series> all;
    try {
      all = use_.finish(timeline, is_spread_);
    } catch (const InputError& error) {
      throw InputError("--utilization-step", error.message(), error.hint());
    }
    for (LinkUse::Series& series : all)
      recording_.use.push_back({.id = series.link,
                                .link = topology_.link_name(series.link),
                                .kind = std::string(class_name(topology_, topology_.link(series.link))),
                                .bandwidth = topology_.link(series.link).bandwidth,
                                .bytes = std::move(series.bytes)});
    recording_.step = use_.step();
    if (flows_) recording_.flows = flows_->finish(actors_);
    if (tracer_) recording_.trace = tracer_->finish(timeline, recording_);
  }

 private:
  Recording& recording_;
  const Topology& topology_;
  LinkUse use_;
  bool is_spread_;
  std::optional<Tracer> tracer_;
  std::optional<FlowRecord> flows_;
  std::optional<StreamRecord> streams_;
  std::optional<KernelRecord> kernels_;
  std::vector<std::string> actors_;
};

void set_time(Prediction& result, Picoseconds time) {
  result.time = time;
  result.algbw = gigabytes_per_second(result.request.bytes, time);
  result.busbw = result.algbw * busbw_factor(result.request.op, result.request.ranks);
}

}  // namespace

Prediction predict(const Scenario& scenario, const PredictOptions& options) {
  if (options.stage) options.stage("building the topology");
  return predict(scenario, set_up(scenario, options.stop), options);
}

namespace {

// What holds a step is the critical path to its end; without steps there is none.
void expect_explainable(const Scenario& scenario, const PredictOptions& options) {
  if (options.explain && scenario.training && scenario.training->async)
    throw InputError(scenario.file + ": /training/regime/mode",
                     "expected the mode sync, because asynchronous workers have no common step to explain, found async",
                     "`ringsim run --explain --format json` shows where each worker and server spends its time");
}

// Kernels are those of one program whose iterations all ranks have in common.
void expect_kernels(const Scenario& scenario) {
  if (!scenario.training)
    throw InputError(scenario.file + ": /collective", "expected a training step, because a trace contains its kernels",
                     "to view a collective, use `ringsim run --trace`");
  if (scenario.jobs.size() > 1)
    throw InputError(scenario.file + ": /jobs",
                     "expected one job, because a trace contains the ranks of one job, found several",
                     "export each job separately");
  if (scenario.training->async)
    throw InputError(scenario.file + ": /training/regime/mode",
                     "expected the mode sync, found async, in which workers have no common step",
                     "`ringsim run --trace` shows what each worker does");
}

// Streams are those of a program whose iterations all actors have in common.
void expect_streams(const Scenario& scenario, const PredictOptions& options) {
  if (options.recording == nullptr) return;
  if (options.recording->keep_kernels) expect_kernels(scenario);
  if (!options.recording->keep_streams) return;
  if (!scenario.training)
    throw InputError(scenario.file + ": /collective", "expected a training step, because the picture shows its streams",
                     "to draw a collective, use `ringsim schedule picture`");
  if (scenario.training->async)
    throw InputError(
        scenario.file + ": /training/regime/mode",
        "expected the mode sync for a picture of a step, found async, in which workers have no common step",
        "--trace FILE shows what each worker does");
}

/// Reports one collective, or its groups.
void report_collective(const Topology& topology, const Timeline& timeline, Picoseconds time, Prediction& result) {
  set_time(result, time);
  result.transfers = timeline.transfers;
  if (timeline.bottleneck) result.bottleneck = bottleneck_report(topology, *timeline.bottleneck, result.time);
  const auto bytes = most_leaving_a_host(topology, timeline);
  if (bytes && result.time.count() > 0) result.inter_node = {*bytes, gigabytes_per_second(*bytes, result.time)};
}

void report_training(const Scenario& scenario, const Topology& topology, const Timeline& timeline, const Work& work,
                     Prediction& result) {
  result.training = work.report(0);
  result.training->exchanges = exchanges_of(scenario, 0);
  result.time = result.training->step;
  result.transfers = timeline.transfers;
  if (timeline.bottleneck) result.bottleneck = bottleneck_report(topology, *timeline.bottleneck, timeline.duration());
}

/// How the fabric chose, if it had a choice.
std::string routing_text(const Timeline& timeline, const RoutingSpec& routing) {
  if (!timeline.has_choice) return "";
  const bool draws = routing.policy == Routing::Policy::ecmp || routing.policy == Routing::Policy::flow_spray;
  return draws ? fmt::format("{}, seed {}", to_string(routing.policy), routing.seed)
               : std::string(to_string(routing.policy));
}

/// Reports a job that is a collective. Its time counts from its start; after other jobs, from the start of its first
/// GPU.
void report_job(const Scenario& scenario, std::size_t j, const JobsRun::Done& done, Prediction& one) {
  const SimTime begin = scenario.jobs[j].after.empty() ? SimTime{scenario.jobs[j].start} : done.begin;
  one.start = begin.time_since_epoch();
  set_time(one, std::max(Picoseconds{0}, done.end - begin));
  one.transfers = done.messages;
  one.proof = done.proof;
}

/// Reports each of several jobs.
void report_jobs(const Scenario& scenario, const Setup& setup, const Topology& topology, const Timeline& timeline,
                 const Work& work, Prediction& result) {
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    if (j > 0) result.jobs.push_back(about(scenario, setup, j));
    Prediction& one = j == 0 ? result : result.jobs.back();
    const JobTimeline& job = timeline.jobs[j];
    one.fingerprint = timeline.fingerprint;
    Picoseconds length = job.finish.time_since_epoch() - scenario.jobs[j].start;
    if (work.training(j) != nullptr) {
      one.training = work.report(j);
      one.training->exchanges = exchanges_of(scenario, j);
      one.time = one.training->step;
      one.transfers = job.transfers;
      one.proof = work.training(j)->run().schedule().proof();
    } else {
      report_job(scenario, j, work.jobs()->jobs()[j], one);
      length = one.time;
      if (!scenario.jobs[j].after.empty()) continue;  // what held it back is what held back the jobs before it
    }
    if (job.bottleneck && length.count() > 0) one.bottleneck = bottleneck_report(topology, *job.bottleneck, length);
  }
}

/// The library's choices for all jobs, without repetition.
std::string all_jobs(const Scenario& scenario, std::string (*of)(const Scenario&, std::size_t job)) {
  std::vector<std::string> names;
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j)
    if (std::string one = of(scenario, j); std::find(names.begin(), names.end(), one) == names.end())
      names.push_back(std::move(one));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The result of all jobs together; its bottleneck is that of the run.
Prediction total_of(const Scenario& scenario, const Setup& setup, const Topology& topology, const Timeline& timeline,
                    const JobsRun& run) {
  Prediction all = about(scenario, setup, 0);
  all.job = "all";
  all.is_total = true;
  all.parameters.clear();
  all.library_algorithm = all_jobs(scenario, library_algorithm_of);
  all.library_protocol = all_jobs(scenario, library_protocol_of);
  all.groups = 0;
  all.request.ranks = run.n_gpus();
  all.time = run.time();
  all.transfers = timeline.transfers;
  all.fingerprint = timeline.fingerprint;
  all.proof = run.jobs().front().proof;
  all.ring.clear();
  if (timeline.bottleneck) all.bottleneck = bottleneck_report(topology, *timeline.bottleneck, all.time);
  return all;
}

/// The schedule's phases with what comes before its first step and after its last.
std::vector<PhaseTime> phases_with_rest(std::vector<PhaseTime> phases, Picoseconds launch, Picoseconds own_pass,
                                        Picoseconds time) {
  for (PhaseTime& phase : phases) {
    for (PhaseUse& step : phase.steps) step.shift(launch);
    phase.whole.shift(launch);
  }
  const auto alone = [](const char* name, SimTime begin, Picoseconds length) {
    return PhaseTime{
        .name = name, .whole = {.first_start = begin, .last_end = begin + length, .critical = length}, .steps = {}};
  };
  if (launch.count() > 0) phases.insert(phases.begin(), alone("launch", SimTime{}, launch));
  if (own_pass.count() > 0) phases.push_back(alone("own pass", SimTime{time - own_pass}, own_pass));
  Picoseconds sum{0};
  for (const PhaseTime& phase : phases) sum += phase.whole.critical;
  ensure(sum == time, "the phases' critical times sum to the time");
  return phases;
}

/// The explanation of the run. If several jobs have no result together, that of the scenario's own job.
Explanation explanation_of_run(const Scenario& scenario, const Topology& topology, const Timeline& timeline,
                               const RunOptions& options, const Work& work, const TimeOffSteps& off_steps,
                               Picoseconds time) {
  const bool is_whole = scenario.jobs.size() == 1 || scenario.has_total();
  std::optional<ProgramPath> program;
  if (work.programs() != nullptr) program = work.programs()->path_of(work.part_of(0));
  if (program && !is_whole && work.training(0) == nullptr)  // its calls alone
    program->end = program->begin + time;
  return explanation_of(topology, is_whole ? timeline.path : timeline.jobs.front().path, timeline, options,
                        work.n_ranks(), Picoseconds{0}, off_steps, time, program ? &*program : nullptr);
}

}  // namespace

Prediction predict(const Scenario& scenario, const Setup& setup, const PredictOptions& options) {
  const std::size_t n = setup.collectives.size();
  ensure(!options.schedules || options.schedules->size() == n, "given schedules are those of all jobs");
  expect_explainable(scenario, options);
  expect_streams(scenario, options);
  expect_plans_fit(scenario, setup);
  Work work(scenario, setup, options);
  RunOptions run_options{.model = scenario.model,
                         .packet = scenario.packet,
                         .routing = setup.routing,
                         .placement = work.placement(),
                         .fold = options.fold,
                         .most_messages = options.most_messages,
                         .stop = options.stop,
                         .progress = options.progress};
  work.listen(run_options, options.recording != nullptr);
  const Topology topology = rated(setup.topology, scenario, work.called());
  run_options.plans = call_plans(scenario, topology);
  if (run_options.plans.size() > 1) run_options.plan_of_channel = work.plan_of_channel();
  run_options.disturbance = disturbance_of(topology, scenario, work.actors(), work.lanes());
  if (work.programs() != nullptr)
    run_options.disturbance.delays = [&](Actor actor, Lane lane, int step) {
      return work.programs()->is_called(actor, lane, step);
    };
  const std::int64_t n_messages = work.n_messages();
  if (options.stage) {
    options.stage(fmt::format("simulating {} messages", n_messages));
    run_options.on_whole = [&options, n_messages](const std::string& why_not) {
      options.stage(fmt::format("simulating {} messages individually: {}", n_messages, why_not));
    };
  }
  // Programs are accounted for by their tasks.
  std::optional<PhaseAccount> phases;
  if (options.phases && work.programs() == nullptr) phases.emplace(work.whole().schedule());
  run_options.record_path = options.explain || phases;
  if (phases) {
    run_options.on_message = [&](const Span& message) { phases->on_message(message); };
    run_options.messages_may_fold = true;
  }
  std::optional<Recorder> recorder;
  if (options.recording != nullptr)
    recorder.emplace(*options.recording, topology, run_options, work.names(), work.n_ranks(), work.programs());
  // They would prevent folding.
  run_options.record_spans = options.explain && !is_worth_folding(work.whole(), run_options);
  std::string remembered;
  const Timeline timeline = run_blaming(scenario, topology, work, run_options, remembered);
  work.finish(timeline);
  if (recorder) recorder->finish(timeline);

  Prediction result = about(scenario, setup, 0);
  result.events = timeline.events;
  result.fingerprint = timeline.fingerprint;
  result.folded = timeline.folded;
  result.not_folded = timeline.not_folded;
  result.remembered = std::move(remembered);
  result.proof = work.proof();
  const bool moves = result.request.ranks > 1;
  // A program has its launches within. Without one all ranks launch at once, so that a launch shifts everything.
  const Picoseconds launch = moves && work.programs() == nullptr ? launch_of(scenario) : Picoseconds{0};
  const Picoseconds own_pass = moves ? own_pass_of(scenario) : Picoseconds{0};
  if (n > 1)
    report_jobs(scenario, setup, topology, timeline, work, result);
  else if (work.training(0) != nullptr)
    report_training(scenario, topology, timeline, work, result);
  else
    report_collective(topology, timeline, (work.jobs() ? work.jobs()->time() : timeline.duration()) + launch + own_pass,
                      result);
  for (std::size_t j = 0; j < n; ++j)
    if (work.training(j) != nullptr)
      if (std::string lacking = work.training(j)->lacking_memory(
              topology, scenario.file + (j == 0 ? fmt::format(": /{}", scenario.training->key())
                                                : fmt::format(": /jobs/{}/training", j - 1)));
          !lacking.empty())
        result.warnings.push_back(std::move(lacking));
  for (std::string& warning : beyond_machine(scenario, setup)) result.warnings.push_back(std::move(warning));
  if (scenario.has_total()) result.jobs.push_back(total_of(scenario, setup, topology, timeline, *work.jobs()));
  result.routing = routing_text(timeline, scenario.routing);
  for (Prediction& other : result.jobs) other.routing = result.routing;
  if (timeline.duration().count() > 0) result.links = link_groups(topology, timeline);
  result.settings = effects_of_settings(scenario, topology, run_options, work.whole(), timeline);
  for (SettingEffect& effect : work.effects()) result.settings.push_back(std::move(effect));
  result.staged = stages_between_hosts(scenario, topology, run_options, work.whole(), timeline);
  if (phases) result.phases = phases_with_rest(phases->finish(timeline), launch, own_pass, result.time);
  if (options.explain) {
    Prediction& explained = scenario.has_total() ? result.jobs.back() : result;
    explained.beyond_gpudirect = beyond_gpudirect(scenario, topology, run_options, work.whole(), timeline);
    explained.explanation = explanation_of_run(scenario, topology, timeline, run_options, work,
                                               {.launch = launch, .own_pass = own_pass}, explained.time);
  }
  return result;
}

}  // namespace ringsim
