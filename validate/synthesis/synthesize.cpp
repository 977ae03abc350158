#include "validate/synthesis/synthesize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "algorithms/catalog.hpp"
#include "algorithms/formats/schedule_file.hpp"
#include "algorithms/trees/packed_trees.hpp"
#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"
#include "validate/results/columns.hpp"

namespace ringsim {

namespace {

/// A file holds 2^22 operations (stored_schedule.cpp), and a message has two.
constexpr std::int64_t most_messages = std::int64_t{1} << 20;
constexpr int most_slices = 256;

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
    refuse("/library", "expected no library, found one, which chooses its own algorithms",
           "--set library=null --set collective.algorithm=ring");
  if (scenario.jobs.size() > 1)
    refuse("/jobs", fmt::format("expected one collective, found {}", scenario.jobs.size()), "--set jobs=null");
  const CollectiveRequest& request = scenario.main().request;
  if (!serves_trees(request.op))
    refuse("/collective/op",
           fmt::format("expected all_gather, reduce_scatter, all_reduce, broadcast or reduce, found {}",
                       to_string(request.op)),
           "trees are made for these");
  if (request.ranks < 2) refuse("/collective", "expected at least two ranks, found one", "");
}

/// The links that messages take between ranks, as edges of wires.
class MessageWays {
 public:
  MessageWays(const Scenario& scenario, const Setup& setup, const MachineBounds& machine)
      : ranks_(setup.collectives.front().ranks), topology_(machine.topology()) {
    std::vector<bool> down(topology_.n_links());
    for (std::size_t l = 0; l < down.size(); ++l) down[l] = machine.rates()[l].bytes_per_second == 0;
    routes_ = std::make_unique<Routes>(topology_, scenario.transport, setup.routing, std::move(down));
  }

  /// [from * ranks + to] edges in order; none for a rank to itself, and where the wires do not have them.
  std::vector<std::vector<int>> on(const TreeWires& wires, bool backwards) {
    std::map<LinkId, int> by_link;
    std::map<std::pair<NodeId, NodeId>, int> by_ends;
    for (std::size_t e = 0; e < wires.wires.edges.size(); ++e) {
      const Wires::Edge& edge = wires.wires.edges[e];
      const bool is_medium = wires.medium[e] >= 0;
      const NodeId a = wires.wires.vertices[static_cast<std::size_t>(edge.from)].node;
      const NodeId b = wires.wires.vertices[static_cast<std::size_t>(edge.to)].node;
      if (is_medium)
        by_ends[backwards ? std::pair(b, a) : std::pair(a, b)] = static_cast<int>(e);
      else
        by_link[edge.link] = static_cast<int>(e);
    }
    std::vector<std::vector<int>> ways;
    for (const NodeId from : ranks_)
      for (const NodeId to : ranks_) {
        // What goes up a tree takes the way from child to parent; the tree was planned from parent to child.
        const std::vector<LinkId>& links = backwards ? links_between(to, from) : links_between(from, to);
        std::vector<int> way;
        for (const LinkId link : links) {
          const Link& of = topology_.link(link);
          const auto found = by_link.find(link);
          const auto medium = by_ends.find({of.from, of.to});
          if (found != by_link.end())
            way.push_back(found->second);
          else if (medium != by_ends.end())
            way.push_back(medium->second);
        }
        if (way.size() != links.size()) way.clear();
        if (backwards) std::reverse(way.begin(), way.end());
        ways.push_back(std::move(way));
      }
    return ways;
  }

 private:
  const std::vector<LinkId>& links_between(NodeId from, NodeId to) {
    const auto [known, is_new] = known_.try_emplace({from, to});
    if (!is_new || from == to) return known->second;
    for (const Path& path : routes_->find_parts(from, to))
      for (const Leg& leg : path.legs) known->second.insert(known->second.end(), leg.links.begin(), leg.links.end());
    return known->second;
  }

  std::vector<NodeId> ranks_;
  const Topology& topology_;
  std::unique_ptr<Routes> routes_;
  std::map<std::pair<NodeId, NodeId>, std::vector<LinkId>> known_;
};

/// The share of the trees' edges that are planned on the way which messages take, `ways` as MessageWays::on().
double share_as_planned(const TreePlan& plan, const std::vector<std::vector<int>>& ways) {
  const std::size_t n = plan.graph.ranks.size();
  std::map<int, std::size_t> rank_of;
  for (std::size_t r = 0; r < n; ++r) rank_of[plan.graph.ranks[r]] = r;
  std::vector<std::int64_t> followed(n * n), used(n * n);
  for (const TreeGraph::Edge& edge : plan.graph.edges) {
    const std::size_t pair = rank_of[edge.from] * n + rank_of[edge.to];
    if (edge.way == ways[pair]) followed[pair] += edge.capacity;
  }
  for (const PackedTree& tree : plan.trees)
    for (std::size_t r = 0; r < n; ++r)
      if (tree.parent[r] >= 0) used[static_cast<std::size_t>(tree.parent[r]) * n + r] += tree.copies;
  double all = 0, kept = 0;
  for (std::size_t pair = 0; pair < used.size(); ++pair) {
    all += static_cast<double>(used[pair]);
    kept += static_cast<double>(std::min(used[pair], followed[pair]));
  }
  return all > 0 ? kept / all : 1;
}

std::vector<SpanningTree> one_by_one(const TreePlan& plan) {
  std::vector<SpanningTree> trees;
  for (const PackedTree& tree : plan.trees)
    for (std::int64_t copy = 0; copy < tree.copies; ++copy) trees.push_back({tree.root, tree.parent});
  return trees;
}

class SynthesisRun {
 public:
  SynthesisRun(const Scenario& scenario, const Setup& setup, const SynthesisOptions& options)
      : scenario_(scenario),
        setup_(setup),
        options_(options),
        request_(scenario.main().request),
        machine_(scenario, setup, setup.collectives.front().ranks, {}),
        ways_(scenario, setup, machine_) {}

  Synthesis run() {
    bounds();
    const bool reduces = request_.op == CollectiveOp::all_reduce || request_.op == CollectiveOp::reduce_scatter ||
                         request_.op == CollectiveOp::reduce;
    const bool copies = !reduces || request_.op == CollectiveOp::all_reduce;
    std::optional<std::int64_t> k = options_.trees;
    if (copies) {
      out_.down = trees(k, false);
      k = out_.down->plan.rate.k;
    }
    if (reduces) out_.up = trees(k, true);
    choose_slices();
    try_catalog();
    return std::move(out_);
  }

 private:
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
    out_.target = request_.op == CollectiveOp::all_reduce
                      ? of(CollectiveOp::reduce_scatter).time + of(CollectiveOp::all_gather).time
                      : out_.bound.time;
  }

  /// `up`: trees are planned on the wires backwards, and used from their leaves to the root.
  DirectedTrees trees(std::optional<std::int64_t> k, bool up) {
    say(up ? "planning trees to add up" : "planning trees to copy");
    const Wires wires = up ? reversed(machine_.wires()) : machine_.wires();
    std::vector<std::vector<int>> ways = ways_.on(tree_wires(wires), up);
    TreeOptions options{.roots = {}, .k = k, .preferred = {}, .breath = [this] { breathe(); }};
    if (has_root(request_.op)) options.roots = {request_.root};
    for (const std::vector<int>& way : ways)
      if (!way.empty()) options.preferred.push_back(way);
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
    made.as_planned = share_as_planned(made.plan, ways);
    return made;
  }

  /// Twice as many, until that is slower. More slices fill the trees sooner, and pay more latencies.
  void choose_slices() {
    const std::vector<SpanningTree> down = out_.down ? one_by_one(out_.down->plan) : std::vector<SpanningTree>{};
    const std::vector<SpanningTree> up = out_.up ? one_by_one(out_.up->plan) : std::vector<SpanningTree>{};
    const auto n_trees = static_cast<std::int64_t>(std::max(down.size(), up.size()));
    const std::int64_t per_slice = static_cast<std::int64_t>(down.size() + up.size()) * (request_.ranks - 1);
    for (int slices = 1; slices <= most_slices; slices *= 2) {
      if (slices > 1 && (per_slice * slices > most_messages || request_.bytes.count < n_trees * slices)) break;
      say(fmt::format("timing {} trees in {} slices", n_trees, slices));
      auto stored = std::make_shared<StoredSchedule>(
          store(packed_trees(request_.op, request_.bytes, down, up, slices)));
      const Picoseconds time = time_of(with_schedule(scenario_, stored)).time;
      out_.tried.emplace_back(slices, time);
      if (out_.schedule && time >= out_.time) break;
      out_.schedule = std::move(stored);
      out_.slices = slices;
      out_.time = time;
    }
  }

  Prediction time_of(const Scenario& scenario) const {
    return predict(scenario, {.stop = options_.stop});
  }

  void try_catalog() {
    try_one(scenario_);
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.supports(request_.op) || algorithm.in_fabric) continue;
      try_set(algorithm, {});
      const auto& all = algorithm.parameters;
      if (std::any_of(all.begin(), all.end(), [](const Parameter& each) { return each.name == "segments"; }))
        for (const int segments : {16, 128}) try_set(algorithm, segments);
    }
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
  void try_one(const Scenario& scenario) {
    breathe();
    say(fmt::format("timing {}", scenario.main().algorithm->name));
    try {
      const Prediction result = time_of(scenario);
      const std::string name = algorithm_text(result);
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
