#include "tools/explanations/explain_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "scenarios/predict/link_report.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/explanations/phases_text.hpp"
#include "tools/explanations/staged_text.hpp"
#include "validate/results/columns.hpp"

namespace ringsim::tools {

namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string signed_percent(double change) {
  if (change == 0) return "0 %";
  return std::abs(change) < 5e-4 ? fmt::format("{:+.1g} %", 100 * change) : fmt::format("{:+.1f} %", 100 * change);
}
double share_of(Picoseconds part, Picoseconds whole) {
  return whole.count() > 0 ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

std::string few_ranks(const std::vector<Actor>& ranks) {
  constexpr std::size_t most = 8;
  std::vector<Actor> first(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(most, ranks.size())));
  std::string text = fmt::format("{}", fmt::join(first, ", "));
  if (ranks.size() > most) text += fmt::format(" and {} more", ranks.size() - most);
  return text;
}

/// "bucket 3 over node0.nic0 -> leaf0", "the backward pass": a part of a training step.
std::string task_text(const ExplainedPart& part) {
  if (part.cause == "link") return fmt::format("{} over {}", part.task, part.links.empty() ? part.link : part.links);
  if (part.cause == "compute")
    return part.task == "forward" || part.task == "backward" ? fmt::format("the {} pass", part.task)
                                                             : "the " + part.task;
  return fmt::format("{} of {}", part.cause, part.task);
}

/// What holds a training step; and, if that is computation, what holds it most besides.
std::string training_blame(const Prediction& p) {
  std::string text = blame_text(p.explanation->parts.front(), p.time);
  if (p.explanation->parts.front().cause != "compute") return text;
  for (const ExplainedPart& part : p.explanation->parts)
    if (part.cause != "compute") {
      const double percent = 100 * share_of(part.time, p.time);
      return text + fmt::format("; apart from computation, {} takes the most time: {:.{}f} %", task_text(part), percent,
                                percent < 1 ? 1 : 0);
    }
  return text + "; all of the time is computation";
}

std::string training_sentence(const Scenario& scenario, const Prediction& p) {
  const TrainingReport& training = *p.training;
  const std::optional<InferenceReport>& serves = training.inference;
  std::string text =
      serves ? fmt::format("{} of {} ({}), {} sequence{} of {} tokens", to_string(serves->phase), training.workload,
                           scenario.name, training.batch, training.batch == 1 ? "" : "s", serves->context)
      : training.trace ? fmt::format("replay of {} ({})", training.workload, scenario.name)
                       : fmt::format("training step of {} ({}), {}", training.workload, scenario.name, training.regime);
  if (p.request.ranks > 1) text += fmt::format(", {}, {} ranks", algorithm_text(p), p.request.ranks);
  if (training.buckets > 0) text += fmt::format(", {} bucket{}", training.buckets, training.buckets == 1 ? "" : "s");
  text += training.trace ? fmt::format(": {}", short_time(p.time))
          : serves       ? fmt::format(": {}, {:.4g} tokens/s", short_time(p.time), training.tokens_per_s)
                         : fmt::format(": {}, {:.4g} samples/s", short_time(p.time), training.samples_per_s);
  if (!p.explanation->parts.empty()) text += "; " + training_blame(p);
  return text;
}

std::string jobs_sentence(const Scenario& scenario, const Prediction& p) {
  std::vector<std::string> names;
  for (const Job& job : scenario.jobs) names.push_back(job.name);
  std::string text = fmt::format("jobs {} on {} GPUs ({}): {}", fmt::join(names, ", "), p.request.ranks, scenario.name,
                                 short_time(p.time));
  if (!p.explanation->parts.empty()) text += fmt::format("; {}", blame_text(p.explanation->parts.front(), p.time));
  return text;
}

std::string cause_text(const ExplainedPart& part) {
  if (part.cause == "link") return part.kind.empty() ? "link" : part.kind;
  if (part.rank) return fmt::format("{} rank {}", part.cause, *part.rank);
  return part.cause;
}

std::string task_parts_text(const Prediction& p) {
  Table table({"task", "cause", "time", "share", "links", "longest", "time there"});
  table.parts_of(p.time);
  for (const ExplainedPart& part : p.explanation->parts) {
    const bool over_link = !part.link.empty();
    const bool has_longest = over_link || part.longest_task != part.task;
    table.add({part.task, cause_text(part), part.time, percent(share_of(part.time, p.time)), part.links,
               over_link     ? part.link
               : has_longest ? part.longest_task
                             : "",
               has_longest ? TableCell(over_link ? part.link_time : part.task_time) : ""});
  }
  const bool is_mean = p.training && p.training->shortest != p.training->longest;
  return fmt::format("\nThe critical path by task and cause{}; the parts sum to {}:\n{}",
                     is_mean ? ", the mean of the steps" : "", time_text(p.time), table.fitted());
}

std::string parts_text(const Prediction& p) {
  if (p.training || p.is_total) return task_parts_text(p);
  Table table({"cause", "time", "share", "links", "longest", "time there"});
  table.parts_of(p.time);
  for (const ExplainedPart& part : p.explanation->parts)
    table.add({cause_text(part), part.time, percent(share_of(part.time, p.time)), part.links, part.link,
               part.link.empty() ? "" : TableCell(part.link_time)});
  return fmt::format("\nThe critical path by cause; the parts sum to {}:\n{}", time_text(p.time), table.fitted());
}

std::string steps_text(const ExplainedLine& line) {
  return line.first_step == line.last_step ? fmt::format("step {}", line.first_step + 1)
                                           : fmt::format("steps {}-{}", line.first_step + 1, line.last_step + 1);
}

/// "bucket 3, steps 1-14: rank k -> rank k+1", "forward conv1 to forward fc, 54 tasks: rank 0"
std::string begin_of_line(const ExplainedLine& line) {
  if (line.task.empty()) return fmt::format("{}: {}", steps_text(line), line.ranks);
  if (line.cause == "link" || line.cause == "latency")
    return fmt::format("{}, {}: {}", line.task, steps_text(line), line.ranks);
  if (line.cause == "launch") return fmt::format("launch of {}: {}", line.task, line.ranks);
  if (line.messages == 1) return fmt::format("{}: {}", line.first_task, line.ranks);
  if (line.first_task == line.last_task) return fmt::format("{} times {}: {}", line.messages, line.task, line.ranks);
  return fmt::format("{} to {}, {} tasks: {}", line.first_task, line.last_task, line.messages, line.ranks);
}

/// `unit`: that of the whole path.
std::string line_text(const ExplainedLine& line, const TimeUnit& unit) {
  std::string text = begin_of_line(line);
  if (line.cause == "link" && !line.links.empty()) text += " over " + line.links;
  if (line.cause != "link" && line.cause != "latency" && line.cause != "launch")
    text += line.cause == "compute" ? " computes"
            : line.cause == "host"  ? "'s host"
                                    : fmt::format(" delays the others ({})", line.cause);
  if (line.messages > 1 && (line.task.empty() || line.cause == "link" || line.cause == "latency"))
    text += fmt::format(", {} messages", line.messages);
  text += fmt::format(": {} {}", unit.number(line.time()), unit.name());
  if (line.cause == "link" || line.cause == "latency") {
    std::vector<std::string> of;
    if (line.busy.count() > 0) of.push_back(unit.number(line.busy) + " at link speed");
    if (line.staging.count() > 0) of.push_back(unit.number(line.staging) + " staging");
    if (line.latency.count() > 0) of.push_back(unit.number(line.latency) + " latency");
    if (of.size() > 1 || line.busy.count() == 0) text += fmt::format(" ({})", fmt::join(of, ", "));
  }
  return text;
}

/// From the end to the start. Of a path that is long even when folded the longest groups.
std::string path_text(const Prediction& p) {
  constexpr std::size_t most_groups = 12;
  const std::vector<ExplainedLine>& lines = p.explanation->lines;
  if (lines.empty()) return "";
  std::vector<std::vector<ExplainedLine>> groups;
  for (const ExplainedLine& line : lines) {
    if (groups.empty() || groups.back().front().group != line.group) groups.emplace_back();
    groups.back().push_back(line);
  }
  const auto time_of = [](const std::vector<ExplainedLine>& group) {
    Picoseconds sum{0};
    for (const ExplainedLine& line : group) sum += line.time();
    return sum;
  };
  const TimeUnit unit = TimeUnit::of(p.time);
  std::vector<Picoseconds> times;
  for (const auto& group : groups) times.push_back(time_of(group));
  std::sort(times.rbegin(), times.rend());
  const Picoseconds least = times.size() > most_groups ? times[most_groups - 1] : Picoseconds{0};
  std::string text = fmt::format("\nThe critical path{}, from its end to its start ({} elements):\n",
                                 p.training ? " of the last step" : "", p.explanation->n_elements);
  std::size_t shown = 0, left_out = 0;
  Picoseconds time_left_out{0};
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    if (shown == most_groups || time_of(*group) < least) {
      ++left_out;
      time_left_out += time_of(*group);
      continue;
    }
    ++shown;
    const bool repeats = group->front().times > 1;
    if (repeats)
      text +=
          fmt::format("  repeated {} times, {} {}:\n", group->front().times, unit.number(time_of(*group)), unit.name());
    for (auto line = group->rbegin(); line != group->rend(); ++line)
      text += wrapped((repeats ? "    " : "  ") + line_text(*line, unit), 6) + '\n';
  }
  if (left_out > 0)
    text += fmt::format("  and {} shorter parts, {} {}; --format json prints all\n", left_out,
                        unit.number(time_left_out), unit.name());
  return text;
}

std::string notes_text(const Prediction& p) {
  std::string text;
  for (const ExplainedPart& part : p.explanation->parts) {
    if (!part.fault.empty()) text += wrapped(fmt::format("{}: {}", part.link, part.fault)) + '\n';
    if (part.sharing && part.sharing->messages > 0)
      text += wrapped(fmt::format(
                  "{}: during its longest stretch on the path, {} other message{} it; all senders: rank{} {}",
                  part.link, part.sharing->messages, part.sharing->messages == 1 ? " shares" : "s share",
                  part.sharing->ranks.size() == 1 ? "" : "s", few_ranks(part.sharing->ranks))) +
              '\n';
  }
  if (p.folded) text += wrapped("folded: " + *p.folded + "; the ranks on the path represent others") + '\n';
  return text.empty() ? text : '\n' + text;
}

/// The decisions of a library that some of these changed: a line for each decision.
std::string plans_text(const std::vector<const WhatIf*>& what_ifs) {
  std::vector<std::pair<std::string, std::string>> lines;  // decision, labels
  for (const WhatIf* each : what_ifs) {
    if (each->plan.empty()) continue;
    const auto same =
        std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == each->plan; });
    if (same == lines.end())
      lines.emplace_back(each->plan, each->label);
    else
      same->second += ", " + each->label;
  }
  std::string text;
  for (const auto& [plan, labels] : lines) text += wrapped(fmt::format("{}: {}", labels, plan)) + '\n';
  return text;
}

std::string form_state(const Result& result) {
  if (!result.form) return "";
  if (result.form->holds()) return "all hold";
  return fmt::format("{} broken", result.form->because.size());
}

std::string form_text(const Result& result, const std::vector<WhatIf>& what_ifs) {
  if (!result.form) return "\nThere is no closed form for this case.\n";
  const Picoseconds time = result.prediction.time;
  std::string text =
      '\n' +
      wrapped(
          fmt::format("The closed form {}: {}, {}", result.form->formula, time_text(result.form->time),
                      result.form->holds() ? "and its assumptions hold." : "if its assumptions held. They do not:")) +
      '\n';
  for (const std::string& because : result.form->because) text += wrapped("- " + because) + '\n';
  Table table({"run again", "time", "difference", "change", "assumptions"});
  table.parts_of(time);
  std::vector<const WhatIf*> shown;
  for (const WhatIf& each : what_ifs) {
    if (each.of != WhatIf::Of::assumption) continue;
    shown.push_back(&each);
    if (each.result)
      table.add({each.label, each.result->prediction.time, TableCell::with_sign(each.result->prediction.time - time),
                 signed_percent(change_of(each, result)), form_state(*each.result)});
    else
      table.add({each.label, "refused", "", "", ""});
  }
  return table.size() > 0 ? text + table.fitted() + plans_text(shown) : text;
}

/// Which what-ifs the text lists. Other seeds are no changes that somebody makes: routing_text() sums them up.
bool is_listed(const WhatIf& each) { return each.of != WhatIf::Of::routing || each.is_advice; }

/// The fastest first; equal ones in the order in which they were asked.
std::vector<const WhatIf*> ranked(const std::vector<WhatIf>& what_ifs, const Result& result) {
  std::vector<const WhatIf*> all;
  for (const WhatIf& each : what_ifs)
    if (each.of != WhatIf::Of::assumption && is_listed(each)) all.push_back(&each);
  std::stable_sort(all.begin(), all.end(), [&](const WhatIf* a, const WhatIf* b) {
    if (a->result.has_value() != b->result.has_value()) return a->result.has_value();
    return a->result && change_of(*a, result) < change_of(*b, result);
  });
  return all;
}

/// The changes which gain most, of those that are listed below.
std::string best_text(const Result& result, const std::vector<WhatIf>& what_ifs) {
  std::vector<const WhatIf*> listed;
  for (const WhatIf& each : what_ifs)
    if (is_listed(each)) listed.push_back(&each);
  Best best = best_of(listed, result);
  if (best.of_all == nullptr) return "";
  const auto gain = [&](const WhatIf& what_if) { return signed_percent(change_of(what_if, result)); };
  if (best.of_part != nullptr && gain(*best.of_part) == gain(*best.of_all)) best.of_all = best.of_part;
  const auto helps = [&](const WhatIf& what_if) {
    return fmt::format("\"{}\" helps the most: {}{}", what_if.label, gain(what_if),
                       what_if.plan.empty() ? "" : fmt::format(" ({})", what_if.plan));
  };
  // What somebody can change comes first; all links at once show how much the rest holds back.
  std::string text;
  if (best.of_part == nullptr)
    text = "No change to a part of the machine or scenario helps; of the changes below, " + helps(*best.of_all);
  else if (best.of_part == best.of_all)
    text = "Of the changes below, " + helps(*best.of_all);
  else
    text = fmt::format("Of the changes to a part of the machine or scenario, {}; of all changes below, {}",
                       helps(*best.of_part), helps(*best.of_all));
  return wrapped(text) + '\n';
}

/// How switches chose among equally short ways, and how much that matters.
std::string routing_text(const Scenario& scenario, const Result& result, const std::vector<WhatIf>& what_ifs) {
  const Prediction& p = result.prediction;
  if (p.routing.empty()) return "";
  std::string text = fmt::format("Routing: {}{}", p.routing,
                                 scenario.routing.is_auto ? ", the default for the network of these NICs" : "");
  if (const auto spread = routing_spread_of(result, what_ifs))
    text += fmt::format(". With {}, {} seeds take {} to {} (median {})", spread->routing, spread->seeds,
                        short_time(spread->least), short_time(spread->most), short_time(spread->median));
  return wrapped(text) + '\n';
}

/// The changes that do nothing, and why.
std::string idle_text(const Result& result, const std::vector<WhatIf>& what_ifs) {
  std::string text;
  for (const WhatIf& each : what_ifs)
    if (!each.idle.empty() && is_listed(each))
      text += wrapped(fmt::format("{}: this change does {} because {}", each.label,
                                  change_of(each, result) == 0 ? "nothing" : "almost nothing", each.idle)) +
              '\n';
  return text;
}

/// Changes of link_class (faster links, latencies, computation, launches) that make it slower although a library, if
/// any, decides alike.
std::string slower_text(const Result& result, const std::vector<WhatIf>& what_ifs) {
  std::vector<std::string> slower;
  for (const WhatIf& each : what_ifs)
    if (each.of == WhatIf::Of::link_class && each.result && each.plan.empty() &&
        change_of(each, result) > next_to_nothing)
      slower.push_back(each.label);
  if (slower.empty()) return "";
  return wrapped(fmt::format("{}: slower; messages that start earlier probably meet others on shared links, and the "
                             "critical path waits for those",
                             fmt::join(slower, ", "))) +
         '\n';
}

std::string what_if_text(const Result& result, const std::vector<WhatIf>& what_ifs) {
  const std::vector<const WhatIf*> all = ranked(what_ifs, result);
  if (all.empty()) return "";
  Table table({"what if", "time", "change", "--set"});
  table.parts_of(result.prediction.time);
  std::string notes, unchanged;
  for (const WhatIf* each : all) {
    const std::string set = fmt::format("{}", fmt::join(each->set, " "));
    if (each->result && each->of != WhatIf::Of::own && change_of(*each, result) == 0)
      unchanged += (unchanged.empty() ? "" : ", ") + each->label;
    else if (each->result)
      table.add({each->label, each->result->prediction.time, signed_percent(change_of(*each, result)), set});
    else
      table.add({each->label, "refused", "", set});
  }
  for (const WhatIf& each : what_ifs)
    if (!each.refused.empty()) notes += wrapped(fmt::format("{}: refused: {}", each.label, each.refused)) + '\n';
  notes = plans_text(all) + slower_text(result, what_ifs) + notes;
  if (!unchanged.empty()) notes = wrapped("These changes have no effect: " + unchanged) + '\n' + notes;
  return "\nSimulated again with one change:\n" + (table.size() > 0 ? table.fitted() : "") + notes;
}

Json part_json(const ExplainedPart& part) {
  Json json{{"cause", part.cause}, {"kind", part.kind}, {"link", part.link}, {"us", microseconds(part.time)}};
  if (!part.task.empty()) {
    json["task"] = part.task;
    json["longest_task"] = part.longest_task;
    json["task_us"] = microseconds(part.task_time);
  }
  if (!part.link.empty()) {
    json["links"] = part.links;
    json["n_links"] = part.n_links;
    json["link_us"] = microseconds(part.link_time);
  }
  if (!part.fault.empty()) json["fault"] = part.fault;
  if (part.rank) json["rank"] = *part.rank;
  if (part.sharing) json["shared_with"] = {{"messages", part.sharing->messages}, {"ranks", part.sharing->ranks}};
  return json;
}

Json line_json(const ExplainedLine& line) {
  Json json{{"group", line.group},
            {"times", line.times},
            {"cause", line.cause},
            {"kind", line.kind},
            {"links", line.links},
            {"ranks", line.ranks},
            {"first_step", line.first_step},
            {"last_step", line.last_step},
            {"messages", line.messages},
            {"begin_us", microseconds(line.begin.time_since_epoch())},
            {"end_us", microseconds(line.end.time_since_epoch())},
            {"us", microseconds(line.time())},
            {"busy_us", microseconds(line.busy)},
            {"staging_us", microseconds(line.staging)},
            {"latency_us", microseconds(line.latency)}};
  if (line.task.empty()) return json;
  json["task"] = line.task;
  json["first_task"] = line.first_task;
  json["last_task"] = line.last_task;
  return json;
}

Json what_if_json(const WhatIf& what_if, const Result& base) {
  const char* of = what_if.of == WhatIf::Of::link_class   ? "links"
                   : what_if.of == WhatIf::Of::assumption ? "assumption"
                   : what_if.of == WhatIf::Of::routing    ? "routing"
                                                          : "own";
  Json json{{"of", of}, {"label", what_if.label}, {"set", what_if.set}};
  if (what_if.result) {
    json["time_us"] = microseconds(what_if.result->prediction.time);
    json["change"] = change_of(what_if, base);
    json["because"] = what_if.result->form ? Json(what_if.result->form->because) : Json(nullptr);
  } else {
    json["refused"] = what_if.refused;
  }
  if (!what_if.plan.empty()) json["plan"] = what_if.plan;
  if (!what_if.idle.empty()) json["idle"] = what_if.idle;
  return json;
}

}  // namespace

std::string short_time(Picoseconds time) {
  const double in_us = microseconds(time);
  if (in_us >= 1e6) return fmt::format("{:.3g} s", in_us / 1e6);
  if (in_us >= 1e3) return fmt::format("{:.3g} ms", in_us / 1e3);
  return fmt::format("{:.3g} us", in_us);
}

std::string blame_text(const ExplainedPart& part, Picoseconds time) {
  const auto share = [&](Picoseconds of) { return fmt::format("{:.0f} %", 100 * share_of(of, time)); };
  if (part.cause == "link" && !part.link.empty()) {
    const std::string of = part.task.empty() ? "" : part.task + " over ";
    // A link of the group stands for it if it held the path for more than half of the group's time.
    if (part.link_time > part.time - part.link_time)
      return fmt::format("limited by {}{} for {} of the critical path{}", of, part.link, share(part.link_time),
                         part.fault.empty() ? "" : "; " + part.fault);
    return fmt::format("limited by {}the {} links {} for {} of the critical path", of, part.n_links, part.links,
                       share(part.time));
  }
  if (!part.task.empty() && !part.rank)
    return fmt::format("limited by {} for {} of the critical path", task_text(part), share(part.time));
  if (part.rank)
    return fmt::format("rank {} is {}: {} of the critical path waits for {}", *part.rank,
                       part.cause == "jitter" ? "unsteady" : part.cause, share(part.time),
                       part.cause == "late" ? "it" : "such ranks");
  const std::string what = part.cause == "staging" ? "copying through memory (staging)"
                           : part.cause == "link"  ? "moving data"
                                                   : part.cause;
  return fmt::format("limited by {} for {} of the critical path", what, share(part.time));
}

std::string why_sentence(const Scenario& scenario, const Result& result) {
  const Prediction& p = result.prediction;
  if (p.training) return training_sentence(scenario, p);
  if (p.is_total) return jobs_sentence(scenario, p);
  std::string text = fmt::format("{} of {}, {}, {} rank{} ({}): {}", to_string(p.request.op), format(p.request.bytes),
                                 algorithm_text(p), p.request.ranks, p.request.ranks == 1 ? "" : "s", scenario.name,
                                 short_time(p.time));
  if (p.groups > 0) text += fmt::format(" in each of {} group{}", p.groups, p.groups == 1 ? "" : "s");
  if (p.busbw > 0) text += fmt::format(", {:.4g} GB/s bus", p.busbw);
  if (const auto share = of_bound(result)) text += fmt::format(", {:.0f} % of what the links allow", 100 * *share);
  if (p.explanation->parts.empty()) return text;
  const ExplainedPart& first = p.explanation->parts.front();
  text += "; " + blame_text(first, p.time);
  if (first.link.empty() || !first.fault.empty()) return text;
  const std::string others = as_busy_text(classes_as_busy(p, {first.kind}));
  return others.empty() ? text : text + "; " + others;
}

std::string explain_text(const Scenario& scenario, const Result& result, const std::vector<WhatIf>& what_ifs) {
  ensure(result.prediction.explanation.has_value(), "only what was explained is shown");
  const Prediction& p = result.prediction;
  const std::string acs = scenario.transport.acs ? wrapped(
                                                       "ACS is on (transport.acs): data between two devices below a "
                                                       "PCIe switch goes up to the root complex and back.") +
                                                       '\n'
                                                 : "";
  const std::string staged = p.staged ? wrapped(staged_text(p)) + '\n' : "";
  return wrapped(why_sentence(scenario, result)) + '\n' + acs + staged + best_text(result, what_ifs) +
         routing_text(scenario, result, what_ifs) + idle_text(result, what_ifs) + notes_text(p) + parts_text(p) +
         phases_text(p) + path_text(p) + form_text(result, what_ifs) + what_if_text(result, what_ifs);
}

std::string why_json(const ScenarioFile& file, const Scenario& scenario, const Result& result,
                     const std::vector<WhatIf>& what_ifs, const std::string& input) {
  const Explanation& explanation = *result.prediction.explanation;
  Json document{{"ringsim", {{"version", version}, {"model_version", model_version}}},
                {"scenario", {{"name", file.name()}, {"hash", scenario.hash}}},
                {"input", Json::parse(input)}};
  document.update(as_json(result, true));
  document["summary"] = why_sentence(scenario, result);
  document["why"] = Json::array();
  for (const ExplainedPart& part : explanation.parts) document["why"].push_back(part_json(part));
  if (result.prediction.training || result.prediction.is_total) {
    document["tasks"] = Json::array();
    for (const ExplainedTask& task : explanation.tasks)
      document["tasks"].push_back({{"task", task.name}, {"us", microseconds(task.time)}});
  }
  document["path"] = Json::array();
  for (const ExplainedLine& line : explanation.lines) document["path"].push_back(line_json(line));
  if (const auto spread = routing_spread_of(result, what_ifs))
    document["routing_spread"] = {{"routing", spread->routing},
                                  {"seeds", spread->seeds},
                                  {"least_us", microseconds(spread->least)},
                                  {"median_us", microseconds(spread->median)},
                                  {"most_us", microseconds(spread->most)}};
  document["what_if"] = Json::array();
  for (const WhatIf& each : what_ifs) document["what_if"].push_back(what_if_json(each, result));
  return json_text(document, 2) + "\n";
}

}  // namespace ringsim::tools
