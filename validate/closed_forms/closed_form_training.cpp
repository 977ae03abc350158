#include "validate/closed_forms/closed_form_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "algorithms/training/async_server.hpp"
#include "algorithms/training/data_parallel.hpp"
#include "algorithms/training/gossip.hpp"
#include "algorithms/training/local_sgd.hpp"
#include "algorithms/training/model_parallel.hpp"
#include "algorithms/training/server.hpp"
#include "algorithms/training/stragglers.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/predict/training.hpp"
#include "validate/closed_forms/forms.hpp"

namespace ringsim {

namespace {

/// In these all ranks begin and end an all-reduce together, if they have launched it together.
bool ends_together(const std::string& algorithm, int ranks) {
  const bool power = (ranks & (ranks - 1)) == 0;
  return algorithm == "ring" || (power && (algorithm == "halving_doubling" || algorithm == "recursive_doubling"));
}

/// The form of a step, put together of those of its exchanges.
class TrainingForm {
 public:
  TrainingForm(const Scenario& scenario, const Setup& setup)
      : scenario_(scenario),
        setup_(setup),
        spec_(*scenario.training),
        placed_(setup.collectives.front()),
        step_(training_step_of(scenario)) {}

  std::optional<ClosedForm> form() {
    if (spec_.calls_in_groups())
      return std::nullopt;  // closed_form_plans.hpp has those of equal stages; a transformer's have embedding or head
    if (calls_of(scenario_).size() > 1)
      assume("exchanges use different protocols, which reach different shares of the link rates");
    if (spec_.slowdown > 1'000'000) assume("collectives slow down concurrent kernels");
    if (!exchanges(scenario_) && spec_.microbatches == 1) return alone();
    if (step_.host_launch.count() > 0 && !step_.host_waits)
      assume("the host launches a step before the previous one is done");
    switch (spec_.regime->kind) {
      case Regime::Kind::single:
        return alone();
      case Regime::Kind::ddp:
        return ddp();
      case Regime::Kind::parameter_server:
        return parameter_server();
      case Regime::Kind::data_parallel:
        return data_parallel();
      case Regime::Kind::local_sgd:
        return local_sgd();
      case Regime::Kind::gossip:
        return gossip();
      case Regime::Kind::model_parallel:
        return model_parallel();
      case Regime::Kind::plan:
      case Regime::Kind::trace:
        break;
    }
    return std::nullopt;
  }

 private:
  struct Times {
    Picoseconds low{0}, high{0};
  };
  static constexpr Picoseconds parts{5};  // a mean step is the sum of five parts, each rounded down

  void assume(const std::string& because) {
    if (std::find(form_.because.begin(), form_.because.end(), because) == form_.because.end())
      form_.because.push_back(because);
  }

  Times take(ClosedForm one, const Algorithm& algorithm, const Arguments& arguments, const CollectiveRequest& request,
             const Uniform& machine) {
    assume_protocol(one, algorithm, arguments, request, machine, *scenario_.protocol);
    assume_even_sizes(one);
    if (moves_packets(scenario_.model)) assume_packets(one, scenario_.packet);
    for (const std::string& each : one.because) assume(each);
    form_.steps += one.steps;
    return {one.low, one.time};
  }

  Uniform machine_of(const Job& job) const {
    return uniform_of(setup_.topology, placed_.ranks, placed_.endpoints(), scenario_.transport, setup_.routing,
                      grid_of(*job.algorithm, job.arguments, job.request));
  }

  // The time of a collective, with its launch; its formula in `formula`.
  std::optional<Times> time_of(const Job& job, std::string* formula = nullptr) {
    const Uniform machine = machine_of(job);
    std::optional<ClosedForm> one = closed_form(*job.algorithm, job.arguments, job.request, machine);
    if (!one) return std::nullopt;
    if (formula != nullptr) *formula = one->formula;
    // Ranks whose blocks are a byte shorter are ahead of the others, and so a little earlier in the next step.
    CollectiveRequest even = job.request;
    even.bytes.count -= even.bytes.count % even.ranks;
    if (const auto low = closed_form(*job.algorithm, job.arguments, even, machine))
      one->low = std::min(one->low, low->low);
    const Times times = take(std::move(*one), *job.algorithm, job.arguments, job.request, machine);
    return Times{add(times.low, step_.launch), add(times.high, step_.launch)};
  }
  std::optional<Times> time_of(CollectiveOp op, Bytes bytes) {
    return time_of(exchange_of(spec_, placed_, op, bytes).job);
  }

  std::optional<ClosedForm> alone() {
    assume_equal();
    if (spec_.async && step_.host_launch.count() > 0) assume("hosts do not launch the updates of a server");
    form_.formula = spec_.loss.count() > 0 ? "f + B + loss + u" : "f + B + u";
    form_.low = form_.time = alone_step_time(spec_);
    if (step_.host_launch.count() > 0 && !step_.host_waits) {
      form_.formula = fmt::format("max({}, a launch of each kernel), later in the first step", form_.formula);
      form_.low -= parts;
    }
    return std::move(form_);
  }

  std::optional<ClosedForm> ddp() {
    form_.formula = "max(f + B, max_j (ready_j + T_j + ... + T_n)) + u";
    std::vector<Picoseconds> low, high;
    for (const Bucket& bucket : step_.buckets) {
      const Job job = bucket_of(scenario_, placed_, bucket.bytes).job;
      std::string formula;
      const std::optional<Times> one = time_of(job, &formula);
      if (!one) return std::nullopt;
      low.push_back(add(one->low, bucket.beyond));
      high.push_back(add(one->high, bucket.beyond));
      if (&bucket == &step_.buckets.front()) form_.formula += ", T_j = t + " + formula;
    }
    if (!step_.buckets.empty()) assume_together();
    if (is_barrel()) {
      const auto mean = [&](const std::vector<Picoseconds>& times) {
        return barrel_step_time(step_, spec_.stragglers, placed_.job.request.ranks, times, 1, spec_.warmup);
      };
      take_mean(mean(low), mean(high));
      return std::move(form_);
    }
    form_.low = training_step_time(step_, low);
    form_.time = training_step_time(step_, high);
    return std::move(form_);
  }

  void assume_equal() {
    if (spec_.stragglers.any()) assume("ranks compute at different speeds");
  }

  /// True if the form of unequal ranks can be worked out: a mean over steps whose parts are each rounded down.
  bool is_barrel() {
    if (!spec_.stragglers.any()) return false;
    if (step_.host_launch.count() == 0 && step_.cycle.count() == 0) return true;
    assume_equal();
    return false;
  }
  void take_mean(Picoseconds low, Picoseconds high) {
    form_.formula += ", C of each rank and step as drawn";
    form_.low = low - parts;
    form_.time = high;
  }

  void assume_together() {
    if (!ends_together(placed_.job.algorithm->name, placed_.job.request.ranks))
      assume("the ranks do not end an all-reduce at the same time");
  }

  std::optional<ClosedForm> parameter_server() {
    const bool hands_out = spec_.sample.count > 0;
    const std::string launches = step_.launch.count() == 0 ? "" : hands_out ? " + 3t" : " + 2t";
    if (spec_.servers == 0) {
      const auto push = time_of(CollectiveOp::reduce, spec_.gradients());
      const auto pull = time_of(CollectiveOp::broadcast, spec_.gradients());
      if (!push || !pull) return std::nullopt;
      if (spec_.async) return async_server(machine_of(placed_.job));
      if (is_queue() && !hands_out) return queue(spec_.master, launches);
      Times samples;
      if (hands_out) {
        assume_equal();
        samples = *time_of(CollectiveOp::scatter, samples_sent(spec_, placed_.job.request.ranks, 0));
      }
      form_.formula = fmt::format("f + B + u + 2(K-1) p/b + 2a{}{}", hands_out ? " + (K-1) x/b + a" : "", launches);
      form_.low = server_step_time(step_, 0, push->low, pull->low, samples.low);
      form_.time = server_step_time(step_, 0, push->high, pull->high, samples.high);
      return std::move(form_);
    }
    const Job& job = placed_.job;
    const Uniform machine = machine_of(job);
    if (machine.b.bytes_per_second == 0) return std::nullopt;
    ClosedForm one = server_form(spec_.servers, job.request, machine);
    // A server whose shard is a byte shorter has its gradients earlier, and sends its shard earlier.
    CollectiveRequest even = job.request;
    even.bytes.count -= even.bytes.count % spec_.servers;
    one.low = std::min(one.low, server_form(spec_.servers, even, machine).low);
    const Times both = take(std::move(one), *job.algorithm, job.arguments, job.request, machine);
    if (spec_.async) return async_server(machine);
    if (job.request.channels > 1 || job.request.chunk) assume("several channels or pieces");
    if (spec_.servers == 1 && is_queue() && !hands_out) return queue(-1, launches);
    assume_equal();
    Times samples;
    if (hands_out) {  // as if a worker's samples were a model to pull
      CollectiveRequest request = job.request;
      request.bytes = spec_.sample * spec_.batch;
      const ClosedForm twice = server_form(spec_.servers, request, machine);
      if (request.bytes.count % spec_.servers != 0 || spec_.gradients().count % spec_.servers != 0)
        assume("servers have shards of different sizes, so some send samples before others");
      samples = {add(twice.low / 2, step_.launch), add(twice.time / 2, step_.launch)};
    }
    form_.formula = fmt::format("f + B + u/S + 2 max(W ceil(p/S), p)/b + 2a{}{}",
                                hands_out ? " + max(W ceil(x/S), x)/b + a" : "", launches);
    const auto step_time = [&](Picoseconds exchanged, Picoseconds handed_out) {  // both halves take equally long
      const Picoseconds half = add(exchanged / 2, step_.launch);
      return server_step_time(step_, spec_.servers, half, half, handed_out);
    };
    form_.low = step_time(both.low, samples.low);
    form_.time = step_time(both.high, samples.high);
    return std::move(form_);
  }

  /// The rounding of a mean over the steps of a round.
  Picoseconds rounded() const { return spec_.every > 1 ? parts : Picoseconds{0}; }

  // If equal workers never meet, all steps are alike, and in one step there are as many updates as workers.
  std::optional<ClosedForm> async_server(const Uniform& machine) {
    const AsyncServer given = async_server_of(spec_, placed_);
    const Picoseconds copy = transfer_time(spec_.gradients(), machine.b), update = server_update(step_, given.servers);
    const Picoseconds passes = async_passes(step_, given.every, {}, 0), gap = passes / given.workers;
    const int every = given.every;
    const bool has_master = given.master >= 0;
    const char *all_passes = every > 1 ? "H(f + B + u)" : "f + B", *launch = step_.launch.count() > 0 ? " + t" : "";
    form_.formula =
        fmt::format("K / {}, X = {}sum over {}workers of 1/({} + 2(p/b + a) + u{}{})", every > 1 ? "(H X)" : "X",
                    has_master ? fmt::format("1/({} + u{}) + ", all_passes, launch) : "", has_master ? "other " : "",
                    all_passes, given.servers > 1 ? "/S" : "", launch);
    if (spec_.async->start != AsyncSpec::Start::staggered || copy > gap || update > gap || spec_.stragglers.any())
      assume("several workers may use a server's port or compute unit at the same time");
    if (has_master && update.count() > 0) assume("passes of the master and updates wait for each other");
    if (spec_.gradients().count % given.servers != 0) assume("shards have different sizes");
    if (step_.host_launch.count() > 0) assume("a host launches kernels");
    if (spec_.async->warmup == 0) assume("the start-up is included because there is no warm-up");
    const UpdateRates rates = async_rates(step_, given, spec_.stragglers, copy, machine.a);
    const std::int64_t counted = spec_.async->updates - spec_.async->warmup;
    if (!form_.because.empty()) {
      form_.time = form_.low = Picoseconds{static_cast<std::int64_t>(given.workers * 1e12 / rates.apart / every)};
      return std::move(form_);
    }
    form_.time = add(add(passes, step_.launch), add(add(copy, machine.a), add(copy, add(machine.a, update))));
    const Picoseconds edge_of_all = form_.time;
    form_.time = form_.time / every;
    if (has_master) {  // it has another step
      form_.time = Picoseconds{static_cast<std::int64_t>(given.workers * 1e12 / rates.apart / every)};
      form_.formula += ", to within a step at both ends of the window";
    }
    form_.low = form_.time - parts;
    form_.steps = 2 * given.servers;
    if (counted % given.workers == 0 && spec_.async->warmup > 0 && !has_master) return std::move(form_);
    const Picoseconds edge{2 * edge_of_all.count() / every / counted * given.workers +
                           given.workers};  // a step at both ends
    form_.low -= edge;
    form_.time += edge;
    return std::move(form_);
  }

  // Unequal workers and one server on a star, whose port serves one after the other.
  bool is_queue() { return is_barrel() && machine_of(placed_.job).shape == Shape::star; }
  std::optional<ClosedForm> queue(Actor master, const std::string& launches) {
    const Uniform machine = machine_of(placed_.job);
    const int ranks = placed_.job.request.ranks;
    const Picoseconds mean = server_queue_step_time(
        step_, spec_.stragglers, ranks, master, transfer_time(spec_.gradients(), machine.b), machine.a, spec_.warmup);
    form_.formula = "queue of W pushes at the server's port + u + W p/b + 2a" + launches;
    form_.steps += 2 * ranks;  // a share of the port is rounded whenever a push begins or ends
    take_mean(mean, mean);
    return std::move(form_);
  }

  std::optional<ClosedForm> data_parallel() {
    if (placed_.job.algorithm->name != "direct") return std::nullopt;  // the form is that of copies
    const std::int64_t samples = spec_.batch * placed_.job.request.ranks;
    std::vector<Times> calls;
    Times all;
    for (const auto& [op, bytes] : {std::pair{CollectiveOp::scatter, spec_.sample * samples},
                                    {CollectiveOp::broadcast, spec_.gradients()},
                                    {CollectiveOp::gather, spec_.output * samples},
                                    {CollectiveOp::scatter, spec_.output * samples},
                                    {CollectiveOp::reduce, spec_.gradients()}}) {
      const auto one = time_of(op, bytes);
      if (!one) return std::nullopt;
      calls.push_back(*one);
      all = {add(all.low, one->low), add(all.high, one->high)};
    }
    assume_equal();
    if (step_.host_launch.count() > 0) return one_thread(calls);
    form_.formula = "(K-1)(2p + (x + 2o)/K)/b + 5a + f + B + loss + u";
    if (step_.launch.count() > 0) form_.formula += " + 5t";
    form_.low = data_parallel_step_time(step_, spec_.loss, all.low);
    form_.time = data_parallel_step_time(step_, spec_.loss, all.high);
    return std::move(form_);
  }

  // `calls`: the five exchanges. One thread launches for all GPUs, which end a pass one after the other.
  std::optional<ClosedForm> one_thread(const std::vector<Times>& calls) {
    const int ranks = placed_.job.request.ranks;
    const Uniform machine = machine_of(exchange_of(spec_, placed_, CollectiveOp::reduce, spec_.gradients()).job);
    if (machine.shape != Shape::star) assume("GPUs end a pass one after another, and the machine is not a star");
    const auto step_time = [&](Picoseconds Times::*part) {
      return launched_step_time(step_, ranks, spec_.master, spec_.loss, launch_order(spec_),
                                {.before = add(calls[0].*part, calls[1].*part),
                                 .loss = calls[3].*part,
                                 .outputs = transfer_time(spec_.output * spec_.batch, machine.b),
                                 .gradients = transfer_time(spec_.gradients(), machine.b),
                                 .a = machine.a});
    };
    form_.formula =
        "the step of the last GPU: its n-th kernel starts no earlier than n l; outputs and gradients queue at the "
        "master's port";
    form_.steps += 4 * ranks;  // a share of the port is rounded whenever a message begins or ends
    form_.low = step_time(&Times::low);
    form_.time = step_time(&Times::high);
    return std::move(form_);
  }

  std::optional<ClosedForm> local_sgd() {
    std::string formula;
    const std::optional<Times> average = time_of(placed_.job, &formula);
    if (!average) return std::nullopt;
    assume_together();
    form_.formula = "f + B + u + T/H, T = t + " + formula;
    if (is_barrel()) {
      const auto mean = [&](Picoseconds time) {
        return barrel_step_time(step_, spec_.stragglers, placed_.job.request.ranks, {time}, spec_.every, spec_.warmup);
      };
      take_mean(mean(average->low), mean(average->high));
      return std::move(form_);
    }
    form_.low = local_sgd_round_time(step_, spec_.every, average->low) / spec_.every - rounded();
    form_.time = local_sgd_round_time(step_, spec_.every, average->high) / spec_.every;
    return std::move(form_);
  }

  // Each rank sends to both neighbors at once: on a star through one port, else each copy has a cable to itself.
  std::optional<ClosedForm> gossip() {
    const std::optional<Times> once = time_of(placed_.job);
    if (!once) return std::nullopt;
    const Gossip rounds{.every = spec_.every, .overlap = spec_.overlap};
    const int ranks = placed_.job.request.ranks;
    const Uniform machine = machine_of(placed_.job);
    const int copies = machine.shape == Shape::star && ranks > 2 ? 2 : 1;
    const Picoseconds copy = transfer_time(spec_.gradients(), machine.b);
    const std::string exchange =
        fmt::format("{}p/b + a{}", copies == 2 ? "2" : "", step_.launch.count() > 0 ? " + t" : "");
    form_.formula = fmt::format("f + B + u + {}, T = {}", spec_.overlap ? "max(0, T - f - B)/H" : "T/H", exchange);
    if (is_barrel()) {
      const StepLimits limits =
          gossip_step_limits(step_, rounds, spec_.stragglers, ranks, copy, copies, machine.a, spec_.warmup);
      form_.formula += ", of the slowest of a rank and its neighbors";
      form_.steps += 4 * ranks;  // shares of ports are rounded whenever a copy begins or ends
      take_mean(limits.low, limits.high);
      return std::move(form_);
    }
    const Picoseconds more = copies == 2 ? transfer_time(spec_.gradients() * 2, machine.b) - copy : Picoseconds{0};
    form_.low = gossip_round_time(step_, rounds, add(once->low, more)) / spec_.every - rounded();
    form_.time = gossip_round_time(step_, rounds, add(once->high, more)) / spec_.every;
    return std::move(form_);
  }

  // Each rank sends to the next or to the one before, never both at once; so no transfer waits for another one's.
  std::optional<ClosedForm> model_parallel() {
    const int ranks = placed_.job.request.ranks;
    const std::optional<Times> once = ranks == 1 ? Times{step_.launch, step_.launch} : time_of(placed_.job);
    if (!once) return std::nullopt;
    assume_equal();
    if (step_.host_launch.count() > 0) assume("hosts launch kernels");
    const auto step_time = [&](Picoseconds transfer) {
      const std::vector<Picoseconds> ends =
          pipeline_step_ends(step_, {.ranks = ranks, .microbatches = spec_.microbatches}, transfer - step_.launch);
      if (*std::max_element(ends.begin(), ends.end()) != ends.front())
        assume("a rank updates its layers after rank 0 has updated its own");
      return ends.front();
    };
    form_.formula =
        "the end of rank 0's update: M microbatches pass through K ranks and back, and a rank computes one at a time";
    form_.low = step_time(once->low);
    form_.time = step_time(once->high);
    form_.steps *= 2 * spec_.microbatches * (ranks - 1);
    return std::move(form_);
  }

  const Scenario& scenario_;
  const Setup& setup_;
  const TrainingSpec& spec_;
  const PlacedCollective& placed_;
  TrainingStep step_;
  ClosedForm form_;
};

}  // namespace

std::optional<ClosedForm> training_form(const Scenario& scenario, const Setup& setup) {
  return TrainingForm(scenario, setup).form();
}

}  // namespace ringsim
