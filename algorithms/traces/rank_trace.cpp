#include "algorithms/traces/rank_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/utf8.hpp"

namespace ringsim::traces {

namespace {

constexpr std::size_t most_clock_entries = std::size_t{1} << 29;

/// "at::native::CatArrayBatchedCopy": a kernel's name without what it returns, its template's arguments and its
/// parameters.
std::string short_name(std::string name) {
  if (name.starts_with("void ")) name.erase(0, 5);
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = name.find(anonymous)) != std::string::npos;) name.erase(at, anonymous.size());
  if (const std::size_t end = name.find_first_of("<("); end != std::string::npos && end > 0) {
    const bool is_numbered =
        name[end] == '(' && name.ends_with(')') && name.find_first_not_of("0123456789", end + 1) == name.size() - 1;
    if (!is_numbered) name.resize(end);  // "aten::mm(1)": the second part of what a converter cut in two
  }
  name.erase(name.find_last_not_of(' ') + 1);
  if (name.size() <= longest_task_name) return name;
  return beginning_of(name, longest_task_name - 3) + "...";
}

/// Nodes by number, and their dependencies that are kept.
class Graph {
 public:
  explicit Graph(const ExecutionTrace& trace) : trace_(trace) {
    number_nodes();
    link();
    drop_cycles();
    sort();
  }

  std::size_t size() const { return trace_.nodes.size(); }
  const TraceNode& node(std::uint32_t n) const { return trace_.nodes[n]; }
  const std::string& name(std::uint32_t n) const { return trace_.names[node(n).name]; }
  std::span<const std::uint32_t> before(std::uint32_t n) const {
    return {before_.data() + first_[n], before_.data() + first_[n + 1]};
  }
  /// All nodes, such that each comes after what it waits for.
  const std::vector<std::uint32_t>& order() const { return order_; }
  const TraceCounts& counts() const { return counts_; }

 private:
  std::string called(std::uint32_t n) const { return fmt::format("node {} ({})", node(n).id, short_name(name(n))); }

  void number_nodes() {
    number_.reserve(size());
    least_id_ = trace_.nodes.empty() ? 0 : trace_.nodes.front().id;
    for (std::uint32_t n = 0; n < size(); ++n) {
      least_id_ = std::min(least_id_, node(n).id);
      const auto [known, is_new] = number_.try_emplace(node(n).id, n);
      if (!is_new)
        throw InputError(trace_.file, fmt::format("expected nodes with different ids, found {} and {}",
                                                  called(known->second), called(n)));
    }
  }

  void link() {
    counts_.dependencies = trace_.waits.size();
    first_.assign(1, 0);
    for (std::uint32_t n = 0; n < size(); ++n) {
      const TraceNode& its = node(n);
      const auto take = [&](std::size_t from, std::size_t count, bool is_control) {
        for (std::size_t i = from; i < from + count; ++i) {
          const std::uint64_t id = trace_.waits[i];
          const auto found = number_.find(id);
          if (found == number_.end()) {
            ++counts_.missing[id];
            ++counts_.missing_all;
            counts_.missing_known += id < least_id_ ? 1U : 0U;
            continue;
          }
          before_.push_back(found->second);
          is_control_.push_back(is_control);
        }
      };
      take(its.first_wait, its.n_data, false);
      take(its.first_wait + its.n_data, its.n_control, true);
      first_.push_back(before_.size());
    }
  }

  /// Tarjan's strongly connected components: [node] which; those of one node alone have numbers of their own.
  std::vector<std::uint32_t> components() const {
    constexpr std::uint32_t none = ~0U;
    std::vector<std::uint32_t> index(size(), none), low(size(), 0), component(size(), none), stack;
    std::vector<bool> on_stack(size(), false);
    std::vector<std::pair<std::uint32_t, std::size_t>> work;  // a node, and its next edge
    std::uint32_t next = 0, found = 0;
    for (std::uint32_t root = 0; root < size(); ++root) {
      if (index[root] != none) continue;
      work.emplace_back(root, first_[root]);
      while (!work.empty()) {
        const std::uint32_t n = work.back().first;
        if (index[n] == none) {
          index[n] = low[n] = next++;
          stack.push_back(n);
          on_stack[n] = true;
        }
        std::size_t& edge = work.back().second;
        if (edge < first_[n + 1]) {
          const std::uint32_t to = before_[edge++];
          if (index[to] == none)
            work.emplace_back(to, first_[to]);
          else if (on_stack[to])
            low[n] = std::min(low[n], index[to]);
          continue;
        }
        if (low[n] == index[n]) {
          for (std::uint32_t top = none; top != n;) {
            top = stack.back();
            stack.pop_back();
            on_stack[top] = false;
            component[top] = found;
          }
          ++found;
        }
        work.pop_back();
        if (!work.empty()) low[work.back().first] = std::min(low[work.back().first], low[n]);
      }
    }
    return component;
  }

  void drop_cycles() {
    const std::vector<std::uint32_t> component = components();
    std::size_t kept = 0;
    std::size_t from = 0;
    for (std::uint32_t n = 0; n < size(); ++n) {
      const std::size_t to = first_[n + 1];
      for (std::size_t i = from; i < to; ++i) {
        if (is_control_[i] && component[before_[i]] == component[n]) {
          ++counts_.dropped_control;
          counts_.dropped_self += before_[i] == n ? 1U : 0U;
          continue;
        }
        before_[kept++] = before_[i];
      }
      from = to;
      first_[n + 1] = kept;
    }
    before_.resize(kept);
    is_control_ = {};
  }

  /// Kahn's algorithm; of nodes that are ready the one that starts first, then the first in the file.
  void sort() {
    std::vector<std::uint32_t> waits(size());
    std::vector<std::size_t> next(size() + 1, 0);
    for (const std::uint32_t before : before_) ++next[before];
    std::size_t sum = 0;
    for (std::size_t& each : next) each = sum += each;
    std::vector<std::uint32_t> followers(before_.size());
    for (std::uint32_t n = 0; n < size(); ++n) {
      waits[n] = static_cast<std::uint32_t>(before(n).size());
      for (const std::uint32_t each : before(n)) followers[--next[each]] = n;
    }
    const auto later = [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(node(a).start_us, a) > std::pair(node(b).start_us, b);
    };
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, decltype(later)> ready(later);
    for (std::uint32_t n = 0; n < size(); ++n)
      if (waits[n] == 0) ready.push(n);
    order_.reserve(size());
    while (!ready.empty()) {
      const std::uint32_t n = ready.top();
      ready.pop();
      order_.push_back(n);
      for (std::size_t i = next[n]; i < next[n + 1]; ++i)
        if (--waits[followers[i]] == 0) ready.push(followers[i]);
    }
    if (order_.size() < size()) refuse_circle(waits);
  }

  /// From a node that never comes to one that it waits for, until one comes up again.
  [[noreturn]] void refuse_circle(const std::vector<std::uint32_t>& waits) const {
    std::uint32_t n = 0;
    while (waits[n] == 0) ++n;
    std::vector<std::uint32_t> chain;
    std::vector<bool> seen(size(), false);
    while (!seen[n]) {
      seen[n] = true;
      chain.push_back(n);
      for (const std::uint32_t each : before(n))
        if (waits[each] > 0) {
          n = each;
          break;
        }
    }
    std::string text;
    const auto begin = std::find(chain.begin(), chain.end(), n);
    constexpr std::ptrdiff_t shown = 4;
    for (auto each = begin; each != chain.end() && each - begin < shown; ++each)
      text += fmt::format("{}{}", text.empty() ? "" : " waits for ", called(*each));
    if (chain.end() - begin > shown) text += fmt::format(" ({} in total)", chain.end() - begin);
    throw InputError(
        trace_.file,
        fmt::format("expected data dependencies without cycles, found {}, which waits for {}", text, called(*begin)),
        "only control dependencies can be dropped from a cycle; convert the trace again");
  }

  const ExecutionTrace& trace_;
  std::unordered_map<std::uint64_t, std::uint32_t> number_;
  std::uint64_t least_id_ = 0;
  std::vector<std::size_t> first_;     // [node] into before_
  std::vector<std::uint32_t> before_;  // the nodes that they wait for
  std::vector<bool> is_control_;       // of before_
  std::vector<std::uint32_t> order_;
  TraceCounts counts_;
};

/// Adds what the nodes are, and how much of the recorded time they cover.
TraceCounts counts_of(const ExecutionTrace& trace, const Graph& graph) {
  TraceCounts out = graph.counts();
  out.nodes = graph.size();
  out.cpu_collectives = trace.cpu_collectives;
  out.memory_nodes = trace.memory_nodes;
  out.counted_compute = trace.counted_compute;
  std::vector<bool> is_waited_for(graph.size(), false);
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    const TraceNode& node = graph.node(n);
    (node.on_cpu ? out.cpu_nodes : out.kernels) += 1;
    out.collectives += node.kind == TracedKind::collective ? 1U : 0U;
    out.point_to_point += node.kind == TracedKind::send || node.kind == TracedKind::receive ? 1U : 0U;
    out.has_times = out.has_times || node.start_us != 0;
    for (const std::uint32_t before : graph.before(n)) is_waited_for[before] = true;
    if (node.duration.count() > 0) spans.emplace_back(node.start_us, node.start_us + node.duration.count() / 1'000'000);
  }
  for (std::uint32_t n = 0; n < graph.size(); ++n)
    out.unwaited += graph.node(n).kind == TracedKind::collective && !is_waited_for[n] ? 1U : 0U;
  if (!out.has_times || spans.empty()) return out;
  std::sort(spans.begin(), spans.end());
  std::int64_t end = spans.front().first;
  for (const auto& [from, to] : spans) {
    out.covered_us += std::max<std::int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  out.recorded_us = end - spans.front().first;
  return out;
}

/// Puts the nodes on streams.
class Writer {
 public:
  Writer(const ExecutionTrace& trace, const Graph& graph, const GraphOptions& options)
      : trace_(trace), graph_(graph), options_(options) {}

  RankTrace write() {
    place();
    reduce();
    if (options_.reduce) merge();
    return std::move(out_);
  }

 private:
  using Key = std::tuple<TracedStream::Kind, std::int64_t, std::string, std::int64_t, std::int64_t>;

  struct Place {
    std::uint32_t stream = 0, task = 0;
  };

  Key key_of(std::uint32_t n) const {
    const TraceNode& node = graph_.node(n);
    if (node.communication < 0)
      return {node.on_cpu ? TracedStream::Kind::cpu : TracedStream::Kind::kernels, node.stream, "", -1, -1};
    const Communication& its = trace_.communications[static_cast<std::size_t>(node.communication)];
    if (node.kind == TracedKind::collective) return {TracedStream::Kind::calls, 0, trace_.names[its.group], -1, -1};
    return {TracedStream::Kind::calls, 0, "", its.from, its.to};
  }

  void place() {
    place_.resize(graph_.size());
    std::map<Key, std::uint32_t> streams;
    for (const std::uint32_t n : graph_.order()) {
      const Key key = key_of(n);
      const auto [found, is_new] = streams.try_emplace(key, static_cast<std::uint32_t>(out_.streams.size()));
      if (is_new)
        out_.streams.push_back({.kind = std::get<0>(key),
                                .number = std::get<1>(key),
                                .group = std::get<2>(key),
                                .from = std::get<3>(key),
                                .to = std::get<4>(key),
                                .tasks = {}});
      std::vector<TracedTask>& tasks = out_.streams[found->second].tasks;
      place_[n] = {found->second, static_cast<std::uint32_t>(tasks.size())};
      tasks.push_back(task_of(n));
    }
  }

  TracedTask task_of(std::uint32_t n) {
    const TraceNode& node = graph_.node(n);
    TracedTask out{.name = short_name(graph_.name(n)), .time = node.duration, .call = -1, .waits = {}};
    if (node.communication < 0) return out;
    const Communication& its = trace_.communications[static_cast<std::size_t>(node.communication)];
    if (!its.in_all_dimensions && its.group == 0)
      throw InputError(fmt::format("{}: node {}", trace_.file, node.id),
                       "expected a group by name (pg_name), found an involved_dim that excludes dimensions",
                       "dimensions of a topology are not process groups; convert the trace with a newer converter");
    if (node.kind != TracedKind::collective && its.from < 0 && its.to < 0)
      throw InputError(fmt::format("{}: node {}", trace_.file, node.id),
                       "expected comm_src and comm_dst of a send or receive, found none",
                       "PyTorch traces do not name the peers; use a trace without sends and receives");
    out.time = {};
    out.call = static_cast<std::int32_t>(out_.calls.size());
    out_.calls.push_back({.op = node.kind == TracedKind::collective ? its.op : CollectiveOp::send_recv,
                          .input = its.input,
                          .root = its.root,
                          .from = its.from,
                          .to = its.to,
                          .tag = its.tag,
                          .recorded = node.duration,
                          .node = node.id});
    return out;
  }

  /// [place in the order] what a node waits for: its dependencies, what is before it on its recorded stream if that is
  /// another one here, and for `sync` all collectives.
  void each_wait(std::uint32_t n, std::vector<Place>& out) {
    out.clear();
    for (const std::uint32_t before : graph_.before(n)) out.push_back(place_[before]);
    const TraceNode& node = graph_.node(n);
    const auto [last, is_first] = last_on_.try_emplace({node.on_cpu, node.stream}, n);
    if (!is_first) {
      if (place_[last->second].stream != place_[n].stream) out.push_back(place_[last->second]);
      last->second = n;
    }
    if (!options_.sync.empty() && out_.synced_at.empty() && node.communication < 0 && !node.on_cpu &&
        graph_.name(n).find(options_.sync) != std::string::npos) {
      out_.synced_at = short_name(graph_.name(n));
      out.insert(out.end(), calls_so_far_.begin(), calls_so_far_.end());
    }
    if (node.kind == TracedKind::collective) calls_so_far_.push_back(place_[n]);
  }

  /// Keeps the waits that do not follow from others, by vector clocks over the streams: [stream] so many of its first
  /// tasks are done when a task begins. A chain decomposition makes the transitive reduction exact.
  void reduce() {
    const std::size_t n_streams = out_.streams.size();
    const bool has_clocks = options_.reduce && graph_.size() * n_streams <= most_clock_entries;
    std::vector<std::uint32_t> clocks(has_clocks ? graph_.size() * n_streams : 0);  // after the task, itself included
    std::vector<std::vector<std::uint32_t>> node_at(n_streams);                     // [stream][task]
    std::vector<std::uint32_t> turn(graph_.size());                                 // [node] place in the order
    std::vector<std::uint32_t> latest(n_streams);
    std::vector<Place> waits;
    std::vector<std::uint32_t> needed;
    std::uint32_t turns = 0;
    for (const std::uint32_t n : graph_.order()) {
      turn[n] = turns++;
      const Place at = place_[n];
      each_wait(n, waits);
      TracedTask& task = out_.streams[at.stream].tasks[at.task];
      node_at[at.stream].push_back(n);
      if (!options_.reduce) {
        for (const Place& wait : waits) task.waits.push_back({wait.stream, wait.task + 1});
        out_.counts.kept_edges += waits.size();
        continue;
      }
      // Of each other stream the last that is waited for.
      needed.clear();
      for (const Place& wait : waits) {
        if (wait.stream == at.stream) continue;
        if (latest[wait.stream] == 0) needed.push_back(wait.stream);
        latest[wait.stream] = std::max(latest[wait.stream], wait.task + 1);
      }
      std::sort(needed.begin(), needed.end(), [&](std::uint32_t a, std::uint32_t b) {
        return turn[node_at[a][latest[a] - 1]] > turn[node_at[b][latest[b] - 1]];
      });
      std::uint32_t* clock = has_clocks ? clocks.data() + std::size_t{n} * n_streams : nullptr;
      const auto join = [&](std::uint32_t other) {
        const std::uint32_t* its = clocks.data() + std::size_t{other} * n_streams;
        for (std::size_t s = 0; s < n_streams; ++s) clock[s] = std::max(clock[s], its[s]);
      };
      if (has_clocks && at.task > 0) join(node_at[at.stream][at.task - 1]);
      for (const std::uint32_t stream : needed) {
        const std::uint32_t tasks = std::exchange(latest[stream], 0U);
        if (has_clocks && clock[stream] >= tasks) continue;
        task.waits.push_back({stream, tasks});
        ++out_.counts.kept_edges;
        if (has_clocks) join(node_at[stream][tasks - 1]);
      }
      if (has_clocks) clock[at.stream] = at.task + 1;
    }
  }

  /// A computation that waits for its stream alone becomes part of the one before it, if nothing waits for that.
  void merge() {
    std::vector<std::vector<bool>> is_waited_for;
    for (const TracedStream& stream : out_.streams) is_waited_for.emplace_back(stream.tasks.size() + 1, false);
    const auto each_wait_of_all = [&](const auto& visit) {
      for (TracedStream& stream : out_.streams)
        for (TracedTask& task : stream.tasks)
          for (TracedWait& wait : task.waits) visit(wait);
    };
    each_wait_of_all([&](const TracedWait& wait) { is_waited_for[wait.stream][wait.tasks] = true; });
    std::vector<std::vector<std::uint32_t>> tasks_then(out_.streams.size());  // [stream][tasks before] tasks after
    for (std::size_t s = 0; s < out_.streams.size(); ++s) {
      std::vector<TracedTask>& tasks = out_.streams[s].tasks;
      std::vector<TracedTask> merged;
      std::vector<std::size_t> parts;
      tasks_then[s].push_back(0);
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        const bool joins = !merged.empty() && tasks[t].call < 0 && merged.back().call < 0 && tasks[t].waits.empty() &&
                           !is_waited_for[s][t];
        if (joins) {
          merged.back().time = add(merged.back().time, tasks[t].time);
          ++parts.back();
        } else {
          merged.push_back(std::move(tasks[t]));
          parts.push_back(1);
        }
        tasks_then[s].push_back(static_cast<std::uint32_t>(merged.size()));
      }
      for (std::size_t t = 0; t < merged.size(); ++t)
        if (parts[t] > 1) merged[t].name += fmt::format(" and {} more", parts[t] - 1);
      tasks = std::move(merged);
    }
    each_wait_of_all([&](TracedWait& wait) { wait.tasks = tasks_then[wait.stream][wait.tasks]; });
  }

  const ExecutionTrace& trace_;
  const Graph& graph_;
  const GraphOptions& options_;
  RankTrace out_;
  std::vector<Place> place_;  // [node]
  std::map<std::pair<bool, std::int64_t>, std::uint32_t> last_on_;
  std::vector<Place> calls_so_far_;
};

/// Converters take out the first nodes of a trace. If more than 1 % of the dependencies name other nodes that are not
/// there, the trace is damaged.
void expect_few_missing(const ExecutionTrace& trace, const TraceCounts& counts) {
  const std::size_t unknown = counts.missing_all - counts.missing_known;
  if (unknown * 100 <= counts.dependencies) return;
  throw InputError(trace.file,
                   fmt::format("expected at most 1 % of the dependencies to refer to missing nodes, found {} of {}, "
                               "not counting nodes before the first one",
                               unknown, counts.dependencies),
                   "the trace is truncated or filtered; to drop these dependencies, set \"missing\": \"drop\"");
}

}  // namespace

std::size_t RankTrace::n_tasks() const {
  return std::accumulate(streams.begin(), streams.end(), std::size_t{0},
                         [](std::size_t sum, const TracedStream& stream) { return sum + stream.tasks.size(); });
}

TraceCounts count_trace(const ExecutionTrace& trace) { return counts_of(trace, Graph(trace)); }

RankTrace rank_trace(const ExecutionTrace& trace, const GraphOptions& options) {
  const Graph graph(trace);
  TraceCounts counts = counts_of(trace, graph);
  if (!options.drop_missing) expect_few_missing(trace, counts);
  RankTrace out = Writer(trace, graph, options).write();
  counts.kept_edges = out.counts.kept_edges;
  out.counts = std::move(counts);
  out.file = trace.file;
  out.groups = trace.groups;
  return out;
}

std::vector<std::string> describe(const TraceCounts& counts) {
  std::vector<std::string> out;
  out.push_back(
      fmt::format("{} nodes: {} kernels, including {} collectives and {} sends and receives; {} nodes on the CPU",
                  counts.nodes, counts.kernels, counts.collectives, counts.point_to_point, counts.cpu_nodes));
  if (counts.cpu_collectives > 0)
    out.push_back(fmt::format("{} communication nodes are CPU calls: read as compute", counts.cpu_collectives));
  if (counts.memory_nodes > 0)
    out.push_back(fmt::format("{} memory or storage nodes take their recorded time", counts.memory_nodes));
  if (counts.counted_compute > 0)
    out.push_back(
        fmt::format("{} nodes have operation counts but no durations, so they take no time", counts.counted_compute));
  if (counts.missing_all > 0) {
    const auto most = std::max_element(counts.missing.begin(), counts.missing.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    out.push_back(fmt::format("{} of {} dependencies refer to missing nodes ({} ids; {} of them node {}): dropped",
                              counts.missing_all, counts.dependencies, counts.missing.size(), most->second,
                              most->first));
  }
  if (counts.dropped_control > 0)
    out.push_back(fmt::format("{} control dependencies are in cycles ({} of them from a node to itself): dropped",
                              counts.dropped_control, counts.dropped_self));
  if (counts.unwaited > 0)
    out.push_back(fmt::format("no task waits for {} of {} collectives", counts.unwaited, counts.collectives));
  if (!counts.has_times)
    out.emplace_back("nodes have no start times, so waiting and CPU gaps are unknown");
  else if (counts.recorded_us > 0)
    out.push_back(fmt::format("nodes cover {:.1f} % of the recorded {:.3f} ms",
                              100.0 * static_cast<double>(counts.covered_us) / static_cast<double>(counts.recorded_us),
                              static_cast<double>(counts.recorded_us) / 1e3));
  return out;
}

}  // namespace ringsim::traces
