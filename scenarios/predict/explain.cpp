#include "scenarios/predict/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "scenarios/predict/route_use.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/figures.hpp"
#include "topologies/bound/cut_text.hpp"
#include "topologies/machines/scale_links.hpp"

namespace ringsim {

std::string_view to_string(PathCause cause) {
  switch (cause) {
    case PathCause::link:
      return "link";
    case PathCause::staging:
      return "staging";
    case PathCause::latency:
      return "latency";
    case PathCause::compute:
      return "compute";
    case PathCause::late:
      return "late";
    case PathCause::slow:
      return "slow";
    case PathCause::jitter:
      return "jitter";
    case PathCause::known:
      return "known";
  }
  fail_invariant("a stretch of the critical path has one of the known causes");
}

namespace {

bool is_of_message(PathCause cause) {
  return cause == PathCause::link || cause == PathCause::staging || cause == PathCause::latency;
}

std::string link_class_name(const Topology& topology, ResourceId resource) {
  return std::string(class_name(topology, topology.link(topology.resource(resource).link)));
}

// ------------------------------------------------------------------------------------------------------- the parts

/// What the last fault of a link does to it; empty: nothing.
std::string fault_of(const Topology& topology, ResourceId resource, const Disturbance& disturbance) {
  std::string text;
  SimTime latest{};
  for (const LinkChange& change : disturbance.links) {
    const bool hits = std::any_of(change.links.begin(), change.links.end(),
                                  [&](LinkId link) { return topology.link(link).resource == resource; });
    if (!hits || change.at < latest || change.to == LinkChange::To::restored) continue;
    latest = change.at;
    const std::string since =
        change.at == SimTime{} ? "" : fmt::format(" at {} us", microseconds(change.at.time_since_epoch()));
    const Bandwidth nominal = topology.resource(resource).bandwidth;
    const auto own = [&](Bandwidth rate) {
      return rate_text(Bandwidth{std::llround(static_cast<double>(rate.bytes_per_second) / change.reached)});
    };
    text = change.to == LinkChange::To::down
               ? fmt::format("a fault takes it down{}", since)
               : fmt::format("a fault cuts it from {} to {}{}", own(nominal), own(change.of(nominal)), since);
  }
  return text;
}

std::optional<LinkSharing> sharing_of(const Topology& topology, const PathElement& element, const Timeline& timeline,
                                      const RunOptions& options) {
  if (timeline.spans.empty() || !RouteUse::is_known(options)) return std::nullopt;
  RouteUse routes(topology, options, [&](LinkId link) { return topology.link(link).resource == element.resource; });
  LinkSharing sharing{.messages = -1, .ranks = {}};  // the path's own message is one of them
  std::set<Actor> ranks;
  for (const Span& span : timeline.spans) {
    if (span.start >= element.end || span.finish <= element.begin || span.bytes.count == 0 || !routes.crosses(span))
      continue;
    ++sharing.messages;
    ranks.insert(span.from);
  }
  sharing.messages = std::max(0, sharing.messages);
  sharing.ranks.assign(ranks.begin(), ranks.end());
  return sharing;
}

/// An element, and what it is in its program; of a collective all but the cause is empty.
struct KnownElement : PathElement {
  PathTask task;
};

/// Those between two moments.
std::vector<KnownElement> elements_between(const std::vector<PathElement>& path, SimTime begin, SimTime end,
                                           const ProgramPath* program) {
  std::vector<KnownElement> known;
  for (const PathElement& element : path) {
    KnownElement own{element, {}};
    own.begin = std::max(element.begin, begin);
    own.end = std::min(element.end, end);
    if (own.begin >= own.end) continue;
    if (program != nullptr)
      own.task = program->task_of(element);
    else
      own.task = {.kind = "", .name = "", .cause = std::string(to_string(element.cause)), .step = element.step};
    known.push_back(std::move(own));
  }
  return known;
}

/// Adds up the elements of one cause, task and group of links.
struct PartSum {
  ExplainedPart part;
  std::map<std::string, Picoseconds> by_task;
  std::map<ResourceId, Picoseconds> by_link;
  std::map<Actor, Picoseconds> by_actor;
  KnownElement longest;
};

void longest_first(std::vector<ExplainedPart>& parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const ExplainedPart& a, const ExplainedPart& b) { return a.time > b.time; });
}

std::vector<ExplainedPart> parts_of(const Topology& topology, const std::vector<KnownElement>& path,
                                    const Timeline& timeline, const RunOptions& options) {
  std::vector<std::pair<std::string, std::string>> names(topology.n_resources());  // [resource] of its group, its class
  std::map<std::tuple<PathCause, std::string, std::string, std::string>, PartSum> sums;  // by cause, the task's, links
  for (const KnownElement& element : path) {
    std::string links;
    if (element.resource != no_resource) {
      auto& [group, kind] = names[element.resource.value];
      if (group.empty()) {
        group = without_numbers(topology.resource_name(element.resource));
        kind = link_class_name(topology, element.resource);
      }
      links = group;
    }
    PartSum& sum = sums[{element.cause, element.task.cause, element.task.kind, links}];
    sum.part.cause = element.task.cause;
    sum.part.task = element.task.kind;
    sum.part.links = links;
    if (!element.task.name.empty()) sum.by_task[element.task.name] += element.time();
    if (element.resource != no_resource) sum.part.kind = names[element.resource.value].second;
    sum.part.time += element.time();
    sum.by_link[element.resource] += element.time();
    sum.by_actor[element.to] += element.time();
    if (element.time() > sum.longest.time()) sum.longest = element;
  }
  std::vector<ExplainedPart> parts;
  const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };  // of equals the first
  for (auto& [key, sum] : sums) {
    ExplainedPart& part = sum.part;
    const PathCause cause = std::get<0>(key);
    if (!sum.by_task.empty()) {
      const auto longest_task = std::max_element(sum.by_task.begin(), sum.by_task.end(), by_time);
      part.longest_task = longest_task->first;
      part.task_time = longest_task->second;
    }
    if (cause == PathCause::link && !part.links.empty()) {
      const auto longest = std::max_element(sum.by_link.begin(), sum.by_link.end(), by_time);
      part.link = topology.resource_name(longest->first);
      part.link_time = longest->second;
      part.n_links = static_cast<int>(sum.by_link.size());
      part.fault = fault_of(topology, longest->first, options.disturbance);
    } else if (!is_of_message(cause) && cause != PathCause::compute) {
      part.rank = std::max_element(sum.by_actor.begin(), sum.by_actor.end(), by_time)->first;
    }
    parts.push_back(part);
  }
  longest_first(parts);
  // Looking for those that share takes a pass over all messages: for the part that counts most.
  const auto first =
      std::find_if(parts.begin(), parts.end(), [](const ExplainedPart& part) { return !part.link.empty(); });
  if (first != parts.end())
    first->sharing = sharing_of(topology, sums[{PathCause::link, first->cause, first->task, first->links}].longest,
                                timeline, options);
  return parts;
}

__extension__ using WideTime = __int128;

/// The mean of iterations that sum to `total`; `time` is that of `total`.
Picoseconds mean_of(Picoseconds part, Picoseconds total, Picoseconds time) {
  return Picoseconds{static_cast<std::int64_t>(WideTime{part.count()} * time.count() / total.count())};
}

/// Replaces parts that sum to `total` by their means, rounded so that the sum stays.
template <class Part>
void take_means(std::vector<Part>& parts, Picoseconds total, Picoseconds time) {
  Picoseconds before{0}, mean_before{0};
  for (Part& part : parts) {
    before += part.time;
    const Picoseconds mean = mean_of(before, total, time);
    part.time = mean - std::exchange(mean_before, mean);
  }
}

std::vector<ExplainedTask> tasks_of(const std::vector<KnownElement>& path) {
  std::vector<ExplainedTask> tasks;
  std::map<std::string, std::size_t> place;
  for (const KnownElement& element : path) {
    const auto [entry, is_new] = place.try_emplace(element.task.name, tasks.size());
    if (is_new) tasks.push_back({.name = element.task.name});
    tasks[entry->second].time += element.time();
  }
  return tasks;
}

// ------------------------------------------------------------------------------------------------------- the lines

/// A line, and what its words for the ranks are made of.
struct LineDraft {
  ExplainedLine line;
  std::set<std::pair<Actor, Actor>> pairs;

  auto kind() const { return std::tie(line.cause, line.task, line.kind, line.links); }
  void add(const LineDraft& other) {
    line.end = other.line.end;
    line.last_task = other.line.last_task;
    line.first_step = std::min(line.first_step, other.line.first_step);
    line.last_step = std::max(line.last_step, other.line.last_step);
    line.messages += other.line.messages;
    line.busy += other.line.busy;
    line.staging += other.line.staging;
    line.latency += other.line.latency;
    pairs.insert(other.pairs.begin(), other.pairs.end());
  }
};

std::string actor_name(Actor actor, int ranks) {
  return actor < ranks ? fmt::format("rank {}", actor) : fmt::format("helper {}", actor - ranks);
}

std::string ranks_of(const LineDraft& draft, int ranks) {
  const auto [from, to] = *draft.pairs.begin();
  const auto all = [&](auto holds) { return std::all_of(draft.pairs.begin(), draft.pairs.end(), holds); };
  if (draft.line.cause != to_string(PathCause::link) && draft.line.cause != to_string(PathCause::latency))
    return draft.pairs.size() == 1 ? actor_name(from, ranks) : fmt::format("{} ranks", draft.pairs.size());
  if (draft.pairs.size() == 1) return actor_name(from, ranks) + " -> " + actor_name(to, ranks);
  if (all([&](const auto& pair) { return pair.second == (pair.first + 1) % ranks; })) return "rank k -> rank k+1";
  if (all([&](const auto& pair) { return pair.first == (pair.second + 1) % ranks; })) return "rank k+1 -> rank k";
  const Actor one_from = from, one_to = to;  // no lambda of clang 14 captures a structured binding
  if (all([&](const auto& pair) { return pair.second == one_to; }))
    return fmt::format("{} ranks -> {}", draft.pairs.size(), actor_name(to, ranks));
  if (all([&](const auto& pair) { return pair.first == one_from; }))
    return fmt::format("{} -> {} ranks", actor_name(from, ranks), draft.pairs.size());
  return fmt::format("{} pairs of ranks", draft.pairs.size());
}

/// One line per message or wait; then one per run of equal ones.
std::vector<LineDraft> drafts_of(const Topology& topology, const std::vector<KnownElement>& path) {
  std::vector<LineDraft> lines;
  std::vector<std::string> names(topology.n_resources());
  for (std::size_t i = 0; i < path.size();) {
    const KnownElement& first = path[i];
    LineDraft draft;
    draft.line = {.begin = first.begin,
                  .end = first.end,
                  .cause = is_of_message(first.cause) ? std::string(to_string(PathCause::latency)) : first.task.cause,
                  .task = first.task.kind,
                  .first_task = first.task.name,
                  .last_task = first.task.name,
                  .first_step = first.task.step,
                  .last_step = first.task.step,
                  .messages = 1};
    draft.pairs.insert({first.from, first.to});
    PathCause before = first.cause;
    std::size_t next = i;
    do {
      const PathElement& each = path[next];
      if (each.cause == PathCause::link && each.resource != no_resource) {
        std::string& name = names[each.resource.value];
        if (name.empty()) name = without_numbers(topology.resource_name(each.resource));
        draft.line.cause = to_string(PathCause::link);
        draft.line.links = name;
        draft.line.kind = link_class_name(topology, each.resource);
      }
      (each.cause == PathCause::staging   ? draft.line.staging
       : each.cause == PathCause::latency ? draft.line.latency
                                          : draft.line.busy) += each.time();
      draft.line.end = each.end;
      before = each.cause;
      ++next;
    } while (next < path.size() && is_of_message(before) && is_of_message(path[next].cause) &&
             path[next].cause > before && path[next].from == first.from && path[next].to == first.to &&
             path[next].step == first.step && path[next].lane == first.lane);
    i = next;
    if (!lines.empty() && lines.back().kind() == draft.kind())
      lines.back().add(draft);
    else
      lines.push_back(std::move(draft));
  }
  return lines;
}

/// Makes one group of a few lines that repeat.
std::vector<ExplainedLine> folded_lines(std::vector<LineDraft> drafts, int ranks) {
  constexpr std::size_t longest_period = 16;
  std::vector<ExplainedLine> lines;
  std::size_t group = 0;
  for (std::size_t i = 0; i < drafts.size(); ++group) {
    std::size_t period = 1, repeats = 1;
    for (std::size_t p = 2; p <= longest_period; ++p) {
      std::size_t same = i;
      while (same + p < drafts.size() && drafts[same].kind() == drafts[same + p].kind()) ++same;
      const std::size_t n = (same - i) / p + 1;
      if (n > 1 && n * p > period * repeats) {
        period = p;
        repeats = n;
      }
    }
    for (std::size_t k = 0; k < period; ++k) {
      LineDraft& draft = drafts[i + k];
      for (std::size_t n = 1; n < repeats; ++n) draft.add(drafts[i + n * period + k]);
      draft.line.ranks = ranks_of(draft, ranks);
      draft.line.times = repeats;
      draft.line.group = group;
      lines.push_back(draft.line);
    }
    i += period * repeats;
  }
  return lines;
}

}  // namespace

Explanation explanation_of(const Topology& topology, const std::vector<PathElement>& path, const Timeline& timeline,
                           const RunOptions& options, int ranks, Picoseconds start, const TimeOffSteps& off_steps,
                           Picoseconds time, const ProgramPath* program) {
  const SimTime begin = program != nullptr ? program->begin : SimTime{start};
  const SimTime end = program != nullptr ? program->end : SimTime::max();
  const std::vector<KnownElement> own = elements_between(path, begin, end, program);
  Explanation explanation;
  explanation.parts = parts_of(topology, own, timeline, options);
  if (program == nullptr) {
    explanation.n_elements = own.size();
    explanation.lines = folded_lines(drafts_of(topology, own), ranks);
  } else {
    const std::vector<KnownElement> last = elements_between(path, program->last_begin, end, program);
    explanation.n_elements = last.size();
    explanation.lines = folded_lines(drafts_of(topology, last), ranks);
    explanation.tasks = tasks_of(own);
    const Picoseconds total = end - begin, mean = time - off_steps.launch - off_steps.own_pass;
    if (total.count() > 0) {
      for (ExplainedPart& part : explanation.parts) {
        part.link_time = mean_of(part.link_time, total, mean);
        part.task_time = mean_of(part.task_time, total, mean);
      }
      take_means(explanation.parts, total, mean);
      take_means(explanation.tasks, total, mean);
    }
  }
  for (const auto& [cause, off] : {std::pair{"launch", off_steps.launch}, std::pair{"own pass", off_steps.own_pass}}) {
    if (off.count() == 0) continue;
    explanation.parts.push_back({.cause = cause, .time = off});
    if (program != nullptr) explanation.tasks.push_back({.name = cause, .time = off});
  }
  longest_first(explanation.parts);
  std::set<LinkClass> used;
  for (std::uint32_t l = 0; l < timeline.link_bytes.size(); ++l) {
    const Link& link = topology.link({l});
    if (link.leads_to_itself()) continue;  // its rates are the scenario's
    if (timeline.link_bytes[l].count > 0) used.insert(class_of(topology, link));
  }
  for (const LinkClass each : used) explanation.kinds.emplace_back(to_string(each));
  Picoseconds sum{0}, sum_of_tasks{0};
  for (const ExplainedPart& part : explanation.parts) sum += part.time;
  for (const ExplainedTask& task : explanation.tasks) sum_of_tasks += task.time;
  ensure(sum == time, "the parts of an explanation sum to the time");
  ensure(program == nullptr || sum_of_tasks == time, "the tasks of an explanation sum to the time");
  return explanation;
}

}  // namespace ringsim
