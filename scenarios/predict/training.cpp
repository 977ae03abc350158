#include "scenarios/predict/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "algorithms/training/gossip.hpp"
#include "algorithms/training/local_sgd.hpp"
#include "algorithms/training/model_parallel.hpp"
#include "algorithms/training/optimizer.hpp"
#include "algorithms/training/program_sizes.hpp"
#include "algorithms/training/server.hpp"
#include "scenarios/predict/plan_training.hpp"
#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/progress_text.hpp"

namespace ringsim {

namespace {

/// Adds what an actor does. Neighbors that are alike are one entry, whose first is `first`; servers come after `ranks`.
void add_report(std::vector<RankReport>& reports, RankReport one, Actor actor, int ranks, Actor& first) {
  const bool is_alike = !reports.empty() && actor != ranks && reports.back().split == one.split &&
                        reports.back().sent == one.sent && reports.back().received == one.received &&
                        reports.back().memory == one.memory;
  if (!is_alike) {
    first = actor;
    reports.push_back(std::move(one));
  }
  const char* what = actor < ranks ? "rank" : "server";
  const Actor zero = actor < ranks ? 0 : ranks;
  reports.back().who = first == actor ? fmt::format("{} {}", what, actor - zero)
                                      : fmt::format("{}s {} to {}", what, first - zero, actor - zero);
}

std::string group_of(const PlanExchange& exchange) {
  switch (exchange.use) {
    case PlanUse::tensor:
      return "tensor";
    case PlanUse::data:
      return "data";
    case PlanUse::forward:
      return "forward";
    case PlanUse::backward:
      return "backward";
    case PlanUse::embedding:
      return "embedding";
    case PlanUse::shard:
      return "shard";
    case PlanUse::replica:
      return "replica";
    case PlanUse::context:
    case PlanUse::ring:
    case PlanUse::ring_back:
      return "context";
    case PlanUse::expert:
      return "expert";
    case PlanUse::expert_data:
      return "expert data";
    case PlanUse::traced:
      return fmt::format("group {}", exchange.stage);
  }
  fail_invariant("an exchange has one of thirteen uses");
}

}  // namespace

std::vector<ExchangeReport> exchanges_of(const Scenario& scenario, std::size_t job) {
  std::vector<ExchangeReport> found;
  const LibraryRun* library = scenario.library_of(job);
  const TrainingSpec* training = scenario.training_of(job);
  if (library == nullptr || training == nullptr || scenario.jobs[job].request.ranks == 1) return found;
  for (const auto& entry : library->exchanges) {
    const PlanExchange& exchange = entry.first;
    const LibraryCall& call = entry.second;
    const auto times = std::count_if(training->step.buckets.begin(), training->step.buckets.end(),
                                     [&](const Bucket& bucket) { return bucket.bytes == exchange.bytes; });
    found.push_back({.group = group_of(exchange),
                     .stage = training->trace ? 0 : exchange.stage,
                     .op = training->plan || training->trace ? exchange.op : scenario.jobs[job].request.op,
                     .bytes = exchange.bytes,
                     .times = std::max<std::int64_t>(1, training->trace  ? training->trace->uses_of(exchange)
                                                        : training->plan ? uses_of(*training->plan, exchange)
                                                                         : times),
                     .algorithm = std::string(to_string(call.plan.algorithm)),
                     .protocol = std::string(to_string(call.plan.protocol)),
                     .channels = call.channels});
  }
  return found;
}

TrainingStep training_step_of(const Scenario& scenario) {
  TrainingStep step = scenario.training->step;
  if (!exchanges(scenario)) {
    step.buckets.clear();  // nobody to exchange gradients with
    return step;
  }
  if (!scenario.library) {
    step.launch = launch_of(scenario);
    return step;
  }
  // Each exchange has a launch of its own.
  step.launch = scenario.calibration ? scenario.calibration->launch : Picoseconds{0};
  for (Bucket& bucket : step.buckets) {
    const LibraryCall& call = scenario.library->exchanges.at(all_reduce_of(bucket.bytes));
    bucket.beyond = call.launch + call.own_pass;
    bucket.plan = call.number;
  }
  if (step.buckets.empty()) {
    step.launch += scenario.library->call.launch + scenario.library->call.own_pass;
    step.plan = scenario.library->call.number;
  }
  return step;
}

PlacedCollective bucket_of(const Scenario& scenario, const PlacedCollective& placed, Bytes bytes) {
  if (scenario.library) {
    const auto found = std::find_if(placed.exchanges.begin(), placed.exchanges.end(),
                                    [&](const PlacedCollective& each) { return each.job.request.bytes == bytes; });
    ensure(found != placed.exchanges.end(), "the library decides for every size that is exchanged");
    return *found;
  }
  PlacedCollective one = placed;
  one.job.request.bytes = bytes;
  return one;
}

Picoseconds alone_step_time(const TrainingSpec& spec) {
  std::optional<Picoseconds> loss;
  if (spec.regime->kind == Regime::Kind::data_parallel) loss = spec.loss;
  if (spec.async) return alone_step_time(spec.step, loss, spec.async->warmup, spec.async->updates);
  return alone_step_time(spec.step, loss, static_cast<std::int64_t>(spec.warmup) * spec.every,
                         static_cast<std::int64_t>(spec.step.steps) * spec.every);
}

LaunchOrder launch_order(const TrainingSpec& spec) {
  return spec.launch_by_layer ? LaunchOrder::by_layer : LaunchOrder::by_gpu;
}

bool exchanges(const Scenario& scenario) { return scenario.main().request.ranks > 1 || scenario.training->servers > 0; }

PlacedCollective exchange_of(const TrainingSpec& spec, const PlacedCollective& placed, CollectiveOp op, Bytes bytes) {
  PlacedCollective one = placed;
  // Of data_parallel the scenario may say how the model and the gradients move.
  if (spec.regime->kind != Regime::Kind::data_parallel ||
      (op != CollectiveOp::broadcast && op != CollectiveOp::reduce)) {
    one.job.algorithm = find_algorithm("direct");
    one.job.arguments = {};
  }
  one.job.request.op = op;
  one.job.request.bytes = bytes;
  one.job.request.root = spec.master;
  if (spec.servers > 0) one.job.request.root = one.job.request.ranks++;
  return one;
}

PlacedCollective transfer_of(const TrainingSpec& spec, const PlacedCollective& placed) {
  PlacedCollective one = exchange_of(spec, placed, CollectiveOp::broadcast, spec.activations);
  one.job.request.ranks = 2;
  one.ranks.resize(2);
  return one;
}

Bytes samples_sent(const TrainingSpec& spec, int ranks, std::uint32_t shard) {
  if (spec.servers == 0) return spec.sample * (spec.batch * ranks);
  return Layout::near_equal(spec.sample * spec.batch, spec.servers).size(shard, 1) * (ranks + 1);
}

Program TrainingRun::program_of(const Scenario& scenario, const PredictOptions& options, WatchedWork* work) {
  const int ranks = placed_.job.request.ranks;
  const bool is_alone = !exchanges(scenario);
  const Bytes gradients = spec_.gradients();
  const auto exchange = [&](CollectiveOp op, Bytes bytes) {
    return schedule_of(scenario, exchange_of(spec_, placed_, op, bytes), options.stop, options.element);
  };
  switch (spec_.regime->kind) {
    case Regime::Kind::single:
    case Regime::Kind::ddp: {
      std::map<Bytes, CheckedSchedule> known;  // buckets of one size have one schedule
      for (const Bucket& bucket : step_.buckets) {
        auto found = known.find(bucket.bytes);
        if (found == known.end()) {
          const PlacedCollective one = bucket_of(scenario, placed_, bucket.bytes);
          found = known.emplace(bucket.bytes, schedule_of(scenario, one, options.stop, options.element)).first;
        }
        step_.schedules.push_back(found->second);
      }
      return training_program(step_, work);
    }
    case Regime::Kind::parameter_server: {
      if (spec_.async) {
        async_ = std::make_unique<AsyncServer>(async_server_of(spec_, placed_));
        return async_server_program(step_, *async_, spec_.stragglers, work);
      }
      if (is_alone) return parameter_server_program(step_, ranks, std::nullopt, work);
      ServerExchange by{.push = {}, .pull = {}, .samples = {}, .servers = spec_.servers, .master = spec_.master};
      const int n_shards = std::max(1, spec_.servers);
      const Layout shards = Layout::near_equal(gradients, n_shards);
      std::map<Bytes, std::pair<CheckedSchedule, CheckedSchedule>> known;
      for (std::uint32_t shard = 0; shard < static_cast<std::uint32_t>(n_shards); ++shard) {
        const Bytes bytes = shards.size(shard, 1);
        auto found = known.find(bytes);
        if (found == known.end())
          found = known
                      .emplace(bytes, std::pair{exchange(CollectiveOp::reduce, bytes),
                                                exchange(CollectiveOp::broadcast, bytes)})
                      .first;
        by.push.push_back(found->second.first);
        by.pull.push_back(found->second.second);
        if (spec_.sample.count > 0)
          by.samples.push_back(exchange(CollectiveOp::scatter, samples_sent(spec_, ranks, shard)));
      }
      return parameter_server_program(step_, ranks, by, work);
    }
    case Regime::Kind::data_parallel: {
      std::optional<MasterExchange> by;
      const std::int64_t samples = spec_.batch * ranks;
      if (!is_alone)
        by = MasterExchange{.batch = exchange(CollectiveOp::scatter, spec_.sample * samples),
                            .model = exchange(CollectiveOp::broadcast, gradients),
                            .outputs = exchange(CollectiveOp::gather, spec_.output * samples),
                            .loss = exchange(CollectiveOp::scatter, spec_.output * samples),
                            .gradients = exchange(CollectiveOp::reduce, gradients),
                            .master = spec_.master};
      return data_parallel_program(step_, ranks, spec_.loss, by, launch_order(spec_), work);
    }
    case Regime::Kind::local_sgd: {
      std::optional<CheckedSchedule> average;
      if (!is_alone) average = schedule_of(scenario, placed_, options.stop, options.element);
      return local_sgd_program(step_, spec_.every, average, work);
    }
    case Regime::Kind::gossip: {
      std::optional<CheckedSchedule> to_the_next;
      if (!is_alone) to_the_next = schedule_of(scenario, placed_, options.stop, options.element);
      return gossip_program(step_, {.every = spec_.every, .overlap = spec_.overlap}, to_the_next, work);
    }
    case Regime::Kind::model_parallel: {
      Pipeline pipeline{.ranks = ranks, .microbatches = spec_.microbatches};
      if (!is_alone)
        pipeline.transfer = schedule_of(scenario, transfer_of(spec_, placed_), options.stop, options.element);
      return model_parallel_program(step_, pipeline, work);
    }
    case Regime::Kind::plan:
    case Regime::Kind::trace:
      return plan_program_of(scenario, options, work);
  }
  fail_invariant("a training has a regime or a plan");
}

ProgramSize TrainingRun::size_of(const Scenario& scenario) const {
  const int ranks = placed_.job.request.ranks, helpers = static_cast<int>(placed_.helpers.size());
  const bool exchanges = ringsim::exchanges(scenario);
  switch (spec_.regime->kind) {
    case Regime::Kind::single:
    case Regime::Kind::ddp:
      return training_program_size(step_, ranks, helpers);
    case Regime::Kind::parameter_server:
      if (spec_.async) return async_program_size(step_, async_server_of(spec_, placed_));
      if (!exchanges) return training_program_size(step_, ranks, 0);
      return server_program_size(step_, ranks, spec_.servers, spec_.sample.count > 0);
    case Regime::Kind::data_parallel:
      return data_parallel_program_size(step_, ranks, exchanges);
    case Regime::Kind::local_sgd:
      return local_sgd_program_size(step_, spec_.every, ranks, helpers, exchanges);
    case Regime::Kind::gossip:
      return gossip_program_size(step_, {.every = spec_.every, .overlap = spec_.overlap}, ranks, exchanges);
    case Regime::Kind::model_parallel:
      return model_parallel_program_size(step_, ranks, spec_.microbatches, exchanges);
    case Regime::Kind::plan:
      return plan_program_size(spec_.plan->program);
    case Regime::Kind::trace:
      return spec_.trace->size();
  }
  fail_invariant("a training has a regime or a plan");
}

namespace {

/// What would make a program smaller, of what the scenario has much of.
std::string smaller(const TrainingSpec& spec, int ranks) {
  std::vector<std::string> ways;
  if (spec.step.layers.size() > 1) ways.emplace_back("fewer layers, with one entry for several identical layers");
  if (spec.step.buckets.size() > 1) ways.emplace_back("a larger regime.buckets.size");
  if (spec.every > 1) ways.emplace_back("a smaller regime.every");
  if (spec.microbatches > 1) ways.emplace_back("fewer regime.microbatches");
  if (spec.trace) ways.emplace_back("traces of fewer steps");
  if (spec.plan && spec.plan->program.micro_batches > 1) ways.emplace_back("a smaller workload.global_batch_size");
  if (spec.servers > 1) ways.emplace_back("fewer regime.servers");
  if (ranks > 1) ways.emplace_back("fewer GPUs");
  return fmt::format("{}", fmt::join(ways, ", "));
}

}  // namespace

void TrainingRun::expect_room(const Scenario& scenario, const ProgramSize& size, Bytes most) const {
  if (size.memory() <= most) return;
  throw InputError(
      fmt::format("{}: /{}", scenario.file, spec_.key()),
      fmt::format("expected {} whose program takes at most {}, found one of {} tasks and {} variables on {} actors, "
                  "which takes "
                  "about {}",
                  spec_.what(), rough_size(most), size.tasks, size.variables, size.actors, rough_size(size.memory())),
      fmt::format("{}; or --max-memory {:.0f}GB, if this machine has that much",
                  smaller(spec_, placed_.job.request.ranks),
                  std::ceil(static_cast<double>(size.memory().count) / 1e9)));
}

// Transfers between stages slow no kernel. The program receives as early as it can, so that such a call is open until
// the other stage sends; NCCL's kernel for it has a block or two, and frameworks launch it when its data is needed
// (Megatron-LM: megatron/core/pipeline_parallel/schedules.py, recv_forward() and recv_backward()).
std::vector<Stream> TrainingRun::streams_of_stages() const {
  std::vector<Stream> found;
  const auto& streams = run_->program().streams;
  if (spec_.plan == nullptr && spec_.regime->kind != Regime::Kind::model_parallel) return found;
  for (Stream stream = 0; static_cast<std::size_t>(stream) < streams.size(); ++stream)
    if (streams[static_cast<std::size_t>(stream)] == Program::StreamKind::communication &&
        !plan_streams_.is_data(stream) && !plan_streams_.is_between_kernels(stream))
      found.push_back(stream);
  return found;
}

TrainingRun::TrainingRun(const Scenario& scenario, const PlacedCollective& placed, const PredictOptions& options,
                         int room)
    : spec_(*scenario.training), placed_(placed), step_(training_step_of(scenario)) {
  const ProgramSize size = size_of(scenario);
  if (options.max_memory) expect_room(scenario, size, *options.max_memory);
  const std::string doing = fmt::format("proving a program of {} tasks", size.tasks);
  Watch watch{.stop = options.stop};
  if (options.stage) {
    options.stage(fmt::format("{}, which takes about {} and {}", doing, rough_size(size.memory()),
                              rough_duration(size.proof_seconds())));
    watch.progress = [&](double share) { options.stage(fmt::format("{}: {:.0f} %", doing, 100 * share)); };
  }
  WatchedWork work(watch, "a program was being proved", size.parts());
  Program program = program_of(scenario, options, &work);
  if (!async_) add_stragglers(program, spec_.stragglers, spec_.every);
  run_.emplace(std::move(program), spec_.warmup, SimTime{scenario.main().start}, room, &work);
  if (spec_.slowdown > 1'000'000) run_->slow_down(spec_.slowdown, streams_of_stages());
  if (async_) account_ = std::make_unique<AsyncAccount>(run_->lowered(), *async_, spec_.async->warmup);
  if (!spec_.plan) return;
  run_->tell_events(
      [this, start = SimTime{scenario.main().start}](const LoweredProgram& lowered) {
        plan_account_ = std::make_unique<PlanAccount>(lowered, plan_streams_, spec_.warmup, start);
      },
      [this](const ComputeEvent& event) { plan_account_->on_compute(event); });
}

void TrainingRun::listen(RunOptions& options) {
  if (!async_) return;
  AsyncAccount& account = *account_;
  options.on_compute = [&account, before = options.on_compute](const ComputeEvent& event) {
    account.on_compute(event);
    if (before) before(event);
  };
  options.on_message = [&account](const Span& message) { account.on_message(message); };
  options.enough = [&account] { return account.enough(); };
  if (options.progress)
    options.progress = [&account, before = options.progress](double) { before(account.progress()); };
}

std::vector<NodeId> TrainingRun::placement() const {
  std::vector<NodeId> nodes = placed_.ranks;
  if (spec_.calls_in_groups()) {
    nodes.insert(nodes.end(), plan_helpers_.begin(), plan_helpers_.end());
    return nodes;
  }
  if (!async_) {
    nodes.insert(nodes.end(), placed_.helpers.begin(), placed_.helpers.end());
    const auto n = static_cast<std::size_t>(run_->program().actors);
    ensure(n <= nodes.size(), "every actor of a step has a place");
    nodes.resize(n);
    return nodes;
  }
  for (Actor worker = 0; worker < async_->workers; ++worker)
    for (int server = 0; server < async_->servers; ++server) nodes.push_back(node_of_server(server));
  return nodes;
}

NodeId TrainingRun::node_of_server(int server) const {
  return async_->master >= 0 ? placed_.ranks[static_cast<std::size_t>(async_->master)]
                             : placed_.helpers[static_cast<std::size_t>(server)];
}

void TrainingRun::name_lanes(const Topology& topology, std::vector<std::string>& names) const {
  if (!async_) return;
  names.resize(static_cast<std::size_t>(async_->workers));
  for (Actor worker = 0; worker < async_->workers; ++worker)
    for (int server = 0; server < async_->servers; ++server)
      names.push_back(
          fmt::format("server {} for rank {} ({})", server, worker, topology.node(node_of_server(server)).name));
}

std::int64_t TrainingRun::n_messages() const {
  return async_ ? 2 * async_->updates * async_->servers : run_->schedule().proof().operations / 2;
}

TrainingMemory TrainingRun::memory_of(Actor actor) const {
  TrainingMemory memory;
  if (spec_.trace) return memory;  // a trace does not say
  // Without the copy of the weights that mixed precision adds.
  const Bytes all = spec_.gradients(), state = Bytes{spec_.parameters} * moment_bytes(spec_.optimizer);
  const int ranks = placed_.job.request.ranks;
  if (spec_.plan) {
    if (actor >= ranks) return memory;
    const auto stage = static_cast<std::size_t>(spec_.plan->program.grid.digits(actor).stage);
    const PlanMemory& its = spec_.plan->memory[stage];
    return {.weights = its.weights,
            .gradients = its.gradients,
            .state = its.state,
            .copies = {},
            .outputs = {},
            .activations = its.activations,
            .cache = its.cache};
  }
  memory.weights = memory.gradients = all;
  memory.state = state;
  if (actor >= ranks) {
    if (spec_.servers == 0) return {};  // a helper of an all-reduce keeps nothing
    const auto shard = static_cast<std::uint32_t>(actor - ranks);
    memory.weights = memory.gradients = Layout::near_equal(all, spec_.servers).size(shard, 1);
    memory.state = Layout::near_equal(state, spec_.servers).size(shard, 1);
    return memory;
  }
  if (spec_.regime->kind == Regime::Kind::model_parallel) {  // its own layers
    const std::int64_t own = stages_of(step_.layers, ranks)[static_cast<std::size_t>(actor)].parameters;
    memory.weights = memory.gradients = Bytes{own} * spec_.bytes_per_parameter;
    memory.state = Bytes{own} * moment_bytes(spec_.optimizer);
  }
  for (const Bucket& bucket : step_.buckets) memory.copies += bucket.bytes;
  if (spec_.regime->kind == Regime::Kind::gossip)  // a copy of the weights from each neighbor
    for (std::size_t i = 0; i < run_->program().calls.size(); ++i) memory.copies += all;
  const bool has_master =
      spec_.regime->kind == Regime::Kind::data_parallel || spec_.regime->kind == Regime::Kind::parameter_server;
  if (!has_master || run_->program().actors == 1) return memory;
  if (async_ && actor == async_->master) {  // what a worker has, and what a server has: weights and what comes in
    memory.copies = all + all;
    return memory;
  }
  if (async_ && spec_.every > 1) return memory;  // it updates weights of its own
  if (spec_.servers > 0 || actor != spec_.master) {
    memory.state = {};  // the rank that updates has it
  } else if (spec_.regime->kind == Regime::Kind::data_parallel) {
    memory.copies = all;
    memory.outputs = spec_.output * (spec_.batch * ranks);
  }
  return memory;
}

namespace {

std::string gigabytes(Bytes size) { return fmt::format("{:.1f} GB", static_cast<double>(size.count) / 1e9); }

/// "85.9 GB (80 GiB)", or "2.0 GB" of a size that is no whole number of binary units.
std::string both_units(Bytes size) {
  const std::string own = format(size);
  return own.ends_with("iB") ? fmt::format("{} ({})", gigabytes(size), own) : gigabytes(size);
}

/// "weights 27.0 GB, gradients 27.0 GB, optimizer 53.9 GB"
std::string parts_of(const TrainingMemory& memory, Regime::Kind regime) {
  const char* copies = regime == Regime::Kind::gossip                                     ? "neighbors' weights"
                       : regime == Regime::Kind::ddp || regime == Regime::Kind::local_sgd ? "buckets"
                                                                                          : "incoming data";
  std::string text = fmt::format("weights {}, gradients {}", gigabytes(memory.weights), gigabytes(memory.gradients));
  for (const auto& [name, size] :
       {std::pair{"optimizer", memory.state}, {copies, memory.copies}, {"outputs", memory.outputs}})
    if (size.count > 0) text += fmt::format(", {} {}", name, gigabytes(size));
  return text;
}

}  // namespace

std::string TrainingRun::lacking_memory(const Topology& topology, const std::string& pointer) const {
  const int ranks = placed_.job.request.ranks;
  int n_lacking = 0;
  Actor worst = -1;
  Bytes most_lacking, has;
  for (Actor rank = 0; rank < ranks; ++rank) {
    const Bytes memory = spec_.gpu_memory.value_or(topology.node(placed_.ranks[static_cast<std::size_t>(rank)]).memory);
    const Bytes needs = memory_of(rank).total();
    if (memory.count == 0 || needs <= memory) continue;
    ++n_lacking;
    if (worst >= 0 && needs - memory <= most_lacking) continue;
    most_lacking = needs - memory;
    worst = rank;
    has = memory;
  }
  if (worst < 0) return "";
  if (spec_.plan)  // expect_plans_fit() has let it through
    return pointer + ": " + plan_needs(spec_, placed_.ranks, topology, worst, has);
  const TrainingMemory memory = memory_of(worst);
  const std::string& device = topology.node(placed_.ranks[static_cast<std::size_t>(worst)]).name;
  const std::string who = n_lacking == ranks && ranks > 1 ? "each GPU"
                          : n_lacking > 1 ? fmt::format("{} of {} GPUs, most on {}", n_lacking, ranks, device)
                                          : device;
  return fmt::format("{}: {} with {} needs {} on {}, which has {}: {}, excluding activations", pointer, spec_.workload,
                     spec_.optimizer, gigabytes(memory.total()), who, both_units(has),
                     parts_of(memory, spec_.regime->kind));
}

std::vector<RankReport> TrainingRun::by_rank(const Traffic& traffic) const {
  const int ranks = placed_.job.request.ranks, steps = (step_.steps - spec_.warmup) * spec_.every;
  const int all_steps = step_.steps * spec_.every;
  std::vector<RankReport> reports;
  Actor first = 0;  // of the last entry
  const Actor end = ranks + spec_.servers;
  for (Actor actor = 0; actor < end; ++actor) {
    RankReport one;
    one.split = run_->accounts().of(actor).split / steps;
    one.memory = memory_of(actor);
    one.sent = {traffic.sent_by[static_cast<std::size_t>(actor)].count / all_steps};
    one.received = {traffic.received_by[static_cast<std::size_t>(actor)].count / all_steps};
    add_report(reports, std::move(one), actor, ranks, first);
  }
  return reports;
}

void TrainingRun::describe_trace(TrainingReport& report) const {
  const traces::TraceJob& job = *spec_.trace;
  TraceReport out{.files = static_cast<std::int64_t>(job.n_files()), .sync = job.of(0).synced_at};
  for (const auto& rank : job.ranks()) {
    out.nodes += static_cast<std::int64_t>(rank->counts.nodes);
    out.tasks += static_cast<std::int64_t>(rank->n_tasks());
    out.collectives += static_cast<std::int64_t>(rank->counts.collectives);
    out.unwaited += static_cast<std::int64_t>(rank->counts.unwaited);
  }
  report.trace = std::move(out);
}

// What follows from the scenario and the parts of the step.
void TrainingRun::describe(TrainingReport& report) const {
  report.regime = spec_.regime->name;
  report.workload = spec_.workload;
  report.compute = spec_.compute;
  report.optimizer = spec_.optimizer;
  const InferencePlan* serving = spec_.inference();
  report.batch = serving != nullptr ? serving->batch
                 : spec_.plan       ? spec_.plan->global_batch
                                    : spec_.batch * placed_.job.request.ranks;
  report.parameters = spec_.parameters;
  report.buckets = step_.buckets.size();
  report.step = report.split.total();
  if (spec_.trace) return describe_trace(report);
  for (Actor rank = 0; rank < placed_.job.request.ranks; ++rank)
    if (const TrainingMemory memory = memory_of(rank); memory.total() > report.memory.total()) report.memory = memory;
  const double seconds = static_cast<double>(report.step.count()) / static_cast<double>(picoseconds_per_second);
  if (seconds <= 0) return;
  report.samples_per_s = static_cast<double>(report.batch) / seconds;
  report.tokens_per_s = serving != nullptr ? static_cast<double>(serving->all_tokens()) / seconds
                                           : report.samples_per_s * static_cast<double>(spec_.sequence);
  // Samples of a GPU.
  const double samples =
      spec_.plan ? static_cast<double>(report.batch) / placed_.job.request.ranks : static_cast<double>(spec_.batch);
  report.tflops_per_gpu = 6e-12 * static_cast<double>(spec_.macs) * samples / seconds;
  if (spec_.peak > 0) report.mfu = 1e12 * report.tflops_per_gpu / static_cast<double>(spec_.peak);
  const Picoseconds one = spec_.plan ? plan_compute_time(*spec_.plan) : alone_step_time(spec_);
  report.efficiency = static_cast<double>(one.count()) / static_cast<double>(report.step.count());
}

// Reports per rank: for a worker the mean over its own updates, for a server per update of the model.
std::vector<RankReport> TrainingRun::async_by_rank() const {
  const AsyncResult& result = account_->result();
  const Bytes all = spec_.gradients();
  std::vector<RankReport> reports;
  Actor first = 0;
  for (Actor w = 0; w < async_->workers; ++w) {
    const AsyncWorker& worker = result.workers[static_cast<std::size_t>(w)];
    RankReport one{.sent = {all.count / spec_.every}, .received = {all.count / spec_.every}};
    if (worker.updates > 0) {
      one.split = worker.split / (worker.updates * spec_.every);
    }
    if (w == async_->master) {  // it sends and receives for the others
      const std::int64_t others = result.updates - worker.updates, own = std::max<std::int64_t>(1, worker.updates);
      one.sent = one.received = {(all * others).count / own / spec_.every};
    }
    one.memory = memory_of(w);
    add_report(reports, std::move(one), w, async_->workers, first);
  }
  if (async_->master >= 0) return reports;
  const Layout shards = Layout::near_equal(all, async_->servers);
  for (int server = 0; server < async_->servers; ++server) {
    RankReport one;
    const std::int64_t steps = result.updates * spec_.every;
    one.sent = one.received = {shards.size(static_cast<std::uint32_t>(server), 1).count / spec_.every};
    one.split.compute = result.busy[static_cast<std::size_t>(server)] / steps;
    one.split.idle = result.window / steps - one.split.compute;
    one.memory = memory_of(async_->workers + server);
    add_report(reports, std::move(one), async_->workers + server, async_->workers, first);
  }
  return reports;
}

TrainingReport TrainingRun::async_training_report() const {
  const AsyncResult& result = account_->result();
  ensure(account_->enough(), "the run of an asynchronous server ends when enough updates are there");
  TrainingReport report;
  report.split = async_split(result, spec_.every);
  report.async = async_report(spec_, result);
  for (const AsyncWorker& worker : result.workers) {
    if (worker.longest.count() == 0) continue;
    const Picoseconds shortest = worker.shortest / spec_.every;
    report.shortest = report.shortest.count() == 0 ? shortest : std::min(report.shortest, shortest);
    report.longest = std::max(report.longest, worker.longest / spec_.every);
  }
  report.steady = report.longest.count() > 0 && report.shortest == report.longest;
  const int senders = async_->workers - (async_->master >= 0 ? 1 : 0);
  report.sent = {2 * spec_.gradients().count * senders / spec_.every};
  report.by_rank = async_by_rank();
  return report;
}

TrainingReport TrainingRun::report(const Traffic& traffic) const {
  if (async_) {
    TrainingReport report = async_training_report();
    describe(report);
    return report;
  }
  const RankAccount last = run_->last_to_end();
  const int rounds = step_.steps - spec_.warmup, steps = rounds * spec_.every;
  TrainingReport report;
  report.split = last.split / steps;
  report.shortest = last.shortest / spec_.every;
  report.longest = last.longest / spec_.every;
  report.steady = rounds > 1 && last.last == last.before_last;
  report.sent = Bytes{traffic.sent.count / (static_cast<std::int64_t>(step_.steps) * spec_.every)};
  report.by_rank = by_rank(traffic);
  describe(report);
  if (spec_.plan) describe_plan(report);
  if (const InferencePlan* serving = spec_.inference()) {
    report.inference = {.phase = serving->phase, .context = serving->context};
    const double step = static_cast<double>(report.step.count());
    if (step > 0)
      report.inference->communication =
          static_cast<double>((report.plan->split.tensor + report.plan->split.expert).count()) / step;
    report.inference->tokens_per_s_per_gpu = report.tokens_per_s / placed_.job.request.ranks;
  }
  return report;
}

}  // namespace ringsim
