#include "validate/analysis/synthesize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "algorithms/catalog.hpp"
#include "algorithms/formats/schedule_file.hpp"
#include "algorithms/trees/packed_trees.hpp"
#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "topologies/search/channel_rings.hpp"
#include "topologies/search/ring_order.hpp"
#include "validate/analysis/greedy.hpp"
#include "validate/analysis/message_ways.hpp"
#include "validate/analysis/turned.hpp"
#include "validate/results/columns.hpp"

namespace ringsim {

namespace {

/// A simulation of more takes minutes; streams that are out of step take longer, since fewer messages end together.
constexpr std::int64_t most_messages(int streams) { return std::int64_t{1} << (streams == 1 ? 20 : 19); }
constexpr int most_streams = 3;

bool serves_trees(CollectiveOp op) {
  return op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_reduce ||
         op == CollectiveOp::broadcast || op == CollectiveOp::reduce;
}

void refuse_what_trees_cannot(const Scenario& scenario) {
  expect_collective(scenario);
  const auto refuse = [&](const std::string& place, const std::string& message, const std::string& hint) {
    throw InputError(fmt::format("{}: {}", scenario.file, place), message, hint);
  };
  if (scenario.library)
    refuse("/library", "cannot be combined with synthesis: a library chooses its own algorithms",
           "--set library=null --set collective.algorithm=ring");
  if (scenario.jobs.size() > 1)
    refuse("/jobs", fmt::format("expected one collective, found {}", scenario.jobs.size()), "--set jobs=null");
  const CollectiveRequest& request = scenario.main().request;
  if (!serves_trees(request.op))
    refuse("/collective/op",
           fmt::format("expected all_gather, reduce_scatter, all_reduce, broadcast or reduce, found {}",
                       to_string(request.op)),
           "trees support only these");
  if (request.ranks < 2) refuse("/collective", "expected at least two ranks, found one", "");
}

std::vector<SpanningTree> one_by_one(const std::optional<DirectedTrees>& planned) {
  std::vector<SpanningTree> trees;
  if (!planned) return trees;
  for (const PackedTree& tree : planned->plan.trees)
    for (std::int64_t copy = 0; copy < tree.copies; ++copy) trees.push_back({tree.root, tree.parent});
  return trees;
}

/// The worst share of the optimum's rate, on the ways that messages take.
double worst_share_of(const Synthesis::Trees& trees) {
  double worst = 1;
  for (const auto* each : {&trees.down, &trees.up})
    if (*each) worst = std::min(worst, (*each)->plan.share_of_optimum() / (*each)->plan.crowding);
  return worst;
}

class SynthesisRun {
 public:
  SynthesisRun(const Scenario& scenario, const Setup& setup, const SynthesisOptions& options)
      : scenario_(scenario),
        setup_(setup),
        options_(options),
        request_(scenario.main().request),
        machine_(scenario, setup, setup.collectives.front().ranks, {}, Counted::routed),
        ways_(scenario, setup, machine_) {}

  Synthesis run() {
    bounds();
    // A message over all NICs has several ways at once, and these methods count one.
    if (!options_.trees && scenario_.transport.nics != Transport::Nics::all) try_other_methods();
    if (out_.made.empty() || !turned_is_enough()) plan_trees_of_each_root();
    std::stable_sort(out_.made.begin(), out_.made.end(),
                     [](const MadeSchedule& a, const MadeSchedule& b) { return a.time < b.time; });
    try_catalog();
    return std::move(out_);
  }

 private:
  /// True if trees of each root are not worth their simulation: from 128 ranks on, if the turned one is within 2 % of
  /// the target, and if it comes near with room for trees of each root to have no second slice.
  bool turned_is_enough() const {
    if (request_.ranks < 128) return false;
    const std::int64_t edges = std::int64_t{request_.ranks} * (request_.ranks - 1);
    const bool uncut = edges * (request_.op == CollectiveOp::all_reduce ? 4 : 2) > most_messages(1);
    if (!out_.turned) return false;
    return out_.made.front().time.count() <= out_.target.count() / 50 * 51 || (uncut && out_.turned->share >= 0.985);
  }
  void plan_trees_of_each_root() {
    // Few trees, unless more of them are needed to come near the target.
    take(attempt({197, 200}));
    if (!options_.trees && out_.trees.time.count() > out_.target.count() / 50 * 51 &&
        worst_share_of(out_.trees) < 0.995)
      take(attempt({199, 200}));
    const TreeSlices& slices = out_.trees.slices;
    // First, so that of equal times this is kept.
    out_.made.insert(out_.made.begin(),
                     {fmt::format("trees, {} slice{}{}", slices.count, slices.count == 1 ? "" : "s",
                                  slices.streams == 1 ? "" : fmt::format(" in each of {} streams", slices.streams)),
                      out_.trees.time, out_.trees.schedule});
  }
  void try_other_methods() {
    const CandidateTimes times{
        .scenario = scenario_,
        .time_of = [this](const auto& stored) { return time_of(with_schedule(scenario_, stored)).time; },
        .say = [this](const std::string& what) { say(what); },
        .breathe = [this] { breathe(); }};
    TurnedRun turned(times, machine_, ways_, setup_.collectives.front().ranks, options_.most_slices);
    out_.turned = turned.plan();
    if (out_.turned) out_.made.push_back(turned.fastest());
    if (auto greedy = greedy_schedule(times, machine_, ways_)) out_.made.push_back(std::move(*greedy));
    keep_writable();
  }

  /// If nothing is left, trees of each root are planned, which say why they cannot be written either.
  void keep_writable() {
    out_.left_out += static_cast<int>(
        std::erase_if(out_.made, [this](const MadeSchedule& each) { return !is_writable(*each.schedule); }));
  }

  void say(const std::string& what) const {
    if (options_.stage) options_.stage(what);
  }
  void breathe() const {
    if (options_.stop != nullptr && *options_.stop) throw Interrupted("the schedule was not finished");
  }

  void bounds() {
    say("finding the bound");
    const auto of = [&](CollectiveOp op) {
      return *machine_.of({.op = op, .root = has_root(op) ? request_.root : 0}, request_.bytes);
    };
    out_.bound = of(request_.op);
    out_.target = out_.bound.time;
    out_.target_why = out_.bound.why;
    if (request_.op != CollectiveOp::all_reduce) return;
    const Bound in = of(CollectiveOp::reduce_scatter), out = of(CollectiveOp::all_gather);
    out_.target = in.time + out.time;
    out_.target_why = in.why == out.why ? in.why : in.why + "; then " + out.why;
  }

  Synthesis::Trees attempt(const Fraction& enough) {
    const bool reduces = request_.op == CollectiveOp::all_reduce || request_.op == CollectiveOp::reduce_scatter ||
                         request_.op == CollectiveOp::reduce;
    const bool copies = !reduces || request_.op == CollectiveOp::all_reduce;
    std::optional<std::int64_t> k = options_.trees;
    Synthesis::Trees made;
    if (copies) {
      made.down = trees(k, enough, false);
      k = made.down->plan.rate.k;
    }
    if (reduces) made.up = trees(k, enough, true);
    choose_slices(made);
    return made;
  }
  void take(Synthesis::Trees made) {
    if (out_.trees.schedule == nullptr || made.time < out_.trees.time) out_.trees = std::move(made);
  }

  /// `up`: trees are planned on the wires backwards, and used from their leaves to the root.
  DirectedTrees trees(std::optional<std::int64_t> k, const Fraction& enough, bool up) {
    say(up ? "planning reduction trees" : "planning broadcast trees");
    const Wires wires = up ? reversed(machine_.wires()) : machine_.wires();
    TreeOptions options{
        .roots = {}, .k = k, .enough = enough, .ways = ways_.on(tree_wires(wires), up), .breath = [this] {
          breathe();
        }};
    if (has_root(request_.op)) options.roots = {request_.root};
    DirectedTrees made;
    try {
      made.plan = plan_trees(wires, options);
    } catch (const InputError& error) {
      throw InputError(scenario_.file + ": /topology", error.message(), error.hint());
    }
    made.lowest = height(made.plan.trees.front());
    for (const PackedTree& tree : made.plan.trees) {
      made.lowest = std::min(made.lowest, height(tree));
      made.highest = std::max(made.highest, height(tree));
    }
    return made;
  }

  /// Twice as many slices until that is slower: they fill the trees sooner, and pay more latencies. Then, from the best
  /// of these, two and three streams, which hide latency, but are slow to simulate: on links that many ranks share, 30
  /// times slower. They are not tried if the fastest schedule so far, by whatever method, is near the target.
  void choose_slices(Synthesis::Trees& made) {
    const std::vector<SpanningTree> down = one_by_one(made.down), up = one_by_one(made.up);
    const auto n_trees = static_cast<std::int64_t>(std::max(down.size(), up.size()));
    const std::int64_t edges = static_cast<std::int64_t>(down.size() + up.size()) * (request_.ranks - 1);
    bool near =
        std::any_of(out_.made.begin(), out_.made.end(), [&](const auto& each) { return is_near_target(each.time); });
    for (int streams = 1; streams <= most_streams && made.slices.streams >= streams - 1; ++streams) {
      if (streams > 1 && near) break;
      for (int count = streams == 1 ? 1 : made.slices.count; count <= options_.most_slices; count *= 2) {
        const TreeSlices slices{.count = count, .streams = streams};
        const std::int64_t messages = static_cast<std::int64_t>(count) * streams;
        if (messages > 1 &&
            (edges * messages > most_messages(streams) || request_.bytes.count < n_trees * messages * streams))
          break;
        say(fmt::format("timing {} trees in {} slices, {} streams", n_trees, count, streams));
        auto stored =
            std::make_shared<StoredSchedule>(store(packed_trees(request_.op, request_.bytes, down, up, slices)));
        if (made.schedule && !is_writable(*stored)) {
          ++out_.left_out;
          break;
        }
        if (!made.schedule && options_.expect_writable) options_.expect_writable(*stored);
        const Picoseconds time = time_of(with_schedule(scenario_, stored)).time;
        made.tried.emplace_back(slices, time);
        const Picoseconds before = made.schedule ? made.time : Picoseconds::max();
        if (time >= before) break;
        made.schedule = std::move(stored);
        made.slices = slices;
        made.time = time;
        if (before - time < before / 500) break;  // twice the work for next to nothing
      }
      near = near || is_near_target(made.time);
    }
  }

  bool is_writable(const StoredSchedule& stored) const {
    try {
      if (options_.expect_writable) options_.expect_writable(stored);
      return true;
    } catch (const ScheduleError&) {
      throw;
    } catch (const InputError&) {
      return false;
    }
  }

  /// Within half a percent.
  bool is_near_target(Picoseconds time) const { return time - out_.target <= out_.target / 200; }

  Prediction time_of(const Scenario& scenario) const { return predict(scenario, {.stop = options_.stop}); }

  void try_catalog() {
    try_one(scenario_);
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.supports(request_.op) || algorithm.in_fabric) continue;
      try_set(algorithm, {});
      const auto& all = algorithm.parameters;
      if (std::any_of(all.begin(), all.end(), [](const Parameter& each) { return each.name == "segments"; }))
        for (const int segments : {16, 128}) try_set(algorithm, segments);
    }
    try_best_ring();
    try_channel_rings();
    std::stable_sort(out_.catalog.begin(), out_.catalog.end(),
                     [](const TimedAlgorithm& a, const TimedAlgorithm& b) { return a.time < b.time; });
  }
  void try_set(const Algorithm& algorithm, std::optional<int> segments) {
    Scenario changed = scenario_;
    Job& job = changed.jobs.front();
    job.algorithm = &algorithm;
    job.arguments = {};
    if (segments) job.arguments.numbers["segments"] = *segments;
    try_one(changed);
  }
  /// A scenario with the ring of the catalog; nothing if that is no ring of all ranks.
  std::optional<Scenario> with_ring() const {
    const Algorithm* ring = find_algorithm("ring");
    if (!ring->supports(request_.op) || has_root(request_.op)) return std::nullopt;
    Scenario changed = scenario_;
    Job& job = changed.jobs.front();
    job.algorithm = ring;
    job.arguments = {};
    job.best_ring = job.channel_rings = false;
    return changed;
  }
  /// Around slow links, in one direction and in both.
  void try_best_ring() {
    std::optional<Scenario> changed = with_ring();
    if (!changed || setup_.collectives.front().ranks.size() > most_in_best_ring) return;
    Job& job = changed->jobs.front();
    job.best_ring = true;
    for (const int rings : {1, 2}) {
      job.arguments.numbers["rings"] = rings;
      try {
        try_one(*changed, ", order best_ring");
      } catch (const InputError&) {
        return;  // no candidate: no ring joins the ranks
      }
    }
  }
  /// As NCCL runs it: a ring of its own for each channel.
  void try_channel_rings() {
    std::optional<Scenario> with = with_ring();
    if (!with) return;
    say("timing rings on channels");
    Scenario& changed = *with;
    Job& job = changed.jobs.front();
    job.channel_rings = true;
    try {
      const ChannelRings rings = channel_rings(topology_at_start(machine_.topology(), scenario_),
                                               setup_.collectives.front().ranks, scenario_.transport, options_.stop);
      job.request.channels = static_cast<int>(rings.orders.size());
    } catch (const InputError&) {
      return;  // no candidate: no ring joins the ranks
    }
    try_one(changed, fmt::format(", order channel_rings, {} channels", job.request.channels));
  }
  void try_one(const Scenario& scenario, const std::string& more = "") {
    breathe();
    say(fmt::format("timing {}", scenario.main().algorithm->name));
    try {
      const Prediction result = time_of(scenario);
      const std::string name = algorithm_text(result) + more;
      if (std::none_of(out_.catalog.begin(), out_.catalog.end(), [&](const auto& each) { return each.name == name; }))
        out_.catalog.push_back({name, result.time, scenario});
    } catch (const UnservedError&) {
      // no candidate: not this number of ranks, or not this machine
    }
  }

  const Scenario& scenario_;
  const Setup& setup_;
  const SynthesisOptions& options_;
  const CollectiveRequest& request_;
  MachineBounds machine_;
  MessageWays ways_;
  Synthesis out_;
};

}  // namespace

Scenario with_schedule(const Scenario& scenario, std::shared_ptr<const StoredSchedule> stored) {
  Scenario changed = scenario;
  Job& job = changed.jobs.front();
  job.algorithm = &file_algorithm();
  job.arguments = {};
  job.arguments.file = std::move(stored);
  job.channel_rings = false;
  job.servers_on_cpu = false;
  job.request.channels = 1;
  job.request.chunk.reset();
  job.request.in_place.reset();
  return changed;
}

Synthesis synthesize(const Scenario& scenario, const Setup& setup, const SynthesisOptions& options) {
  refuse_what_trees_cannot(scenario);
  return SynthesisRun(scenario, setup, options).run();
}

}  // namespace ringsim
