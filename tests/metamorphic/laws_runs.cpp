// Laws of one run: what it says of itself, and what looking at it changes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/run/run.hpp"
#include "tests/metamorphic/law.hpp"
#include "validate/closed_forms/bound.hpp"
#include "validate/results/columns.hpp"
#include "validate/results/result.hpp"

namespace ringsim::metamorphic {

namespace {

std::string rows_text(const std::vector<Result>& rows) {
  std::string text;
  for (const Result& row : rows) text += json_text(as_json(row, true)) + '\n';
  return text;
}

void hold_twice(Trial& trial) {
  const Scenario scenario = decoded(trial.scenario);
  const std::string first = rows_text(results_of(scenario)), second = rows_text(results_of(decoded(trial.scenario)));
  trial.require(first == second, fmt::format("expected {} found {}", first, second));
}

void hold_explained(Trial& trial) {
  const Prediction after = trial.run(trial.scenario, {.explain = true});
  trial.require_same_run(after);
  const Prediction& whole = after.explanation ? after : after.jobs.back();
  trial.require(whole.explanation.has_value(), "expected an explanation, found none");
  Picoseconds sum{0};
  for (const ExplainedPart& part : whole.explanation->parts) {
    trial.require(part.time.count() >= 0, fmt::format("expected no negative part, found {}", part.time.count()));
    sum += part.time;
  }
  trial.require_time(sum, whole.time);
}

/// The trace's end, or the latest event.
Picoseconds last_event(const Trace& trace) {
  SimTime last{};
  for (const Trace::Slice& slice : trace.slices) last = std::max(last, slice.end);
  for (const Trace::Sample& sample : trace.samples) last = std::max(last, sample.when);
  return last.time_since_epoch();
}

/// The critical path has no gap from 0 to the end, and what a message took there lies within one that was sent, of the
/// same rank and as many bytes.
void require_path(const Trial& trial, const Recording& recording) {
  const Trace& trace = recording.trace;
  const auto process_of = [&](const Trace::Slice& slice) {
    return std::string_view(trace.processes[trace.tracks[slice.track].process].name);
  };
  const auto is_sent_as = [&](const Trace::Slice& element, const Trace::Slice& message) {
    if (message.category != "message" || message.flow_ends || message.bytes != element.bytes) return false;
    if (message.begin > element.begin || message.end < element.end) return false;
    const std::string_view sender = process_of(message);  // a job's has the job's name first
    return !sender.starts_with("rank ") || sender.starts_with(fmt::format("rank {} ", *element.actor));
  };
  const bool adds = trial.scenario.contains("devices");  // then additions have bytes as well
  SimTime now{};
  for (const Trace::Slice& slice : trace.slices) {
    if (process_of(slice) != "critical path") continue;
    trial.require(slice.begin == now && slice.end > now,
                  fmt::format("expected the critical path to go on at {} ps, found {}", now.time_since_epoch().count(),
                              slice.begin.time_since_epoch().count()));
    now = slice.end;
    if (!slice.bytes || adds) continue;
    const auto is_it = [&](const Trace::Slice& message) { return is_sent_as(slice, message); };
    trial.require(std::any_of(trace.slices.begin(), trace.slices.end(), is_it),
                  fmt::format("expected a message of {} bytes from actor {} at {} ps, found none: {}",
                              slice.bytes->count, *slice.actor, slice.begin.time_since_epoch().count(), slice.name));
  }
  trial.require(now == recording.finish, "expected the critical path to last as long as the run");
}

void hold_traced(Trial& trial) {
  Recording recording{.filter = TraceFilter{}};
  const Prediction after = trial.run(trial.scenario, {.recording = &recording});
  trial.require_same_run(after);
  for (const Trace::Slice& slice : recording.trace.slices)
    trial.require(slice.begin >= SimTime{} && slice.begin <= slice.end,
                  fmt::format("expected slices from 0 on that end after their begin, found {}", slice.name));
  const Picoseconds end = recording.finish.time_since_epoch();
  trial.require(last_event(recording.trace) <= end, fmt::format("expected no event after {} ps, found one at {} ps",
                                                                end.count(), last_event(recording.trace).count()));
  if (recording.trace.left_out.empty()) require_path(trial, recording);
}

/// Each switch only passes on. Of staged copies and reductions in a switch that is not so.
bool fits_conserved(Draw& /*draw*/, Json& scenario) {
  return (is_bare(scenario) || is_at(scenario, "topology.kind", "graph")) && !uses_switches(scenario);
}

void hold_conserved(Trial& trial) {
  Recording recording{.use_step = Picoseconds{0}};
  trial.require_same_run(trial.run(trial.scenario, {.recording = &recording}));
  std::map<std::string, std::int64_t> balance;  // [node] in less out
  std::map<std::string, std::int64_t> links;
  for (const Recording::Use& use : recording.use) {
    const std::size_t arrow = use.link.find(" -> ");
    if (arrow == std::string::npos) continue;  // a device's own work
    const std::int64_t bytes = std::accumulate(use.bytes.begin(), use.bytes.end(), std::int64_t{0});
    for (const auto& [node, sign] :
         {std::pair{use.link.substr(0, arrow), -1}, std::pair{use.link.substr(arrow + 4), 1}}) {
      balance[node] += sign * bytes;
      ++links[node];
    }
  }
  // Flows are divided evenly among ways in whole bytes: a byte per link of the switch.
  for (const auto& [node, bytes] : balance)
    if (node[0] == 's')
      trial.require(std::abs(bytes) <= (is_at(trial.scenario, "network.routing", "packet_spray") ? links[node] : 0),
                    fmt::format("expected as much into {} as out of it, found {} B more", node, bytes));
}

bool fits_folded(Draw& /*draw*/, Json& scenario) {
  return is_collective(scenario) && !has_groups(scenario) && !scenario.contains("jobs");
}

Timeline run_of(const Scenario& scenario, bool fold) {
  const Setup setup = set_up(scenario);
  const PlacedCollective& placed = setup.collectives.front();
  const CheckedSchedule schedule = schedule_of(scenario, placed, nullptr);
  RunOptions options{.model = scenario.model,
                     .packet = scenario.packet,
                     .plans = {{.protocol = scenario.protocol, .transport = scenario.transport}},
                     .routing = setup.routing,
                     .placement = placed.ranks,
                     .fold = fold,
                     .fold_from = 0,
                     .on_compute = [](const ComputeEvent&) {}};  // keeps ranks from standing for others to rounding
  options.placement.insert(options.placement.end(), placed.helpers.begin(), placed.helpers.end());
  std::vector<Actor> actors(options.placement.size());
  std::iota(actors.begin(), actors.end(), 0);
  const Topology topology = rated(setup.topology, scenario, {schedule});
  options.disturbance = disturbance_of(topology, scenario, {actors}, {});
  return run(topology, schedule, options);
}

void hold_folded(Trial& trial) {
  const Scenario scenario = decoded(trial.scenario);
  const Timeline some = run_of(scenario, true);
  if (!some.folded) throw DoesNotApply(some.not_folded);
  const Timeline all = run_of(scenario, false);
  trial.require_time(some.duration(), all.duration());
  trial.require(some.actor_finish == all.actor_finish, "expected all ranks to finish at the same times, found others");
  trial.require(some.link_bytes == all.link_bytes, "expected the same bytes on each link, found others");
  trial.require(some.transfers == all.transfers, "expected the same number of messages, found another");
  // The whole run of many channels has events that are overtaken (FoldingByChannels).
  if (trial.scenario.value("/transport/channels"_json_pointer, 1) == 1)
    trial.require(some.events == all.events, "expected the same number of events, found another");
}

void hold_bound(Trial& trial) {
  Bounds bounds;
  for (const Result& row : results_of(decoded(trial.scenario), {}, &bounds))
    if (row.bound)
      trial.require(row.prediction.time >= *row.bound, fmt::format("expected at least the bound, {} ps, found {} ps",
                                                                   row.bound->count(), row.prediction.time.count()));
}

bool fits_bound(Draw& /*draw*/, Json& scenario) {
  return scenario.contains("collective") && !has_groups(scenario) && !scenario.contains("jobs") &&
         !is_at(scenario, "network.model", "ideal");
}

void hold_closed_form(Trial& trial) {
  bool any = false;
  for (const Result& row : results_of(decoded(trial.scenario)))
    if (row.form && row.form->holds()) {
      any = true;
      trial.require(row.form->agrees(row.prediction.time),
                    fmt::format("expected from {} to {} ps by {}, found {} ps", row.form->low.count(),
                                row.form->time.count(), row.form->formula, row.prediction.time.count()));
    }
  if (!any) throw DoesNotApply("no closed form holds");
}

bool fits_closed_form(Draw& draw, Json& scenario) {
  make_calm(scenario);
  if (!is_calm(scenario)) return false;
  scenario["topology"] = star_of(draw, static_cast<int>(draw.number(2, 9)));
  scenario["collective"] = random_collective(draw, ranks_of_bare(scenario["topology"]));
  scenario.erase("devices");
  return true;
}

void hold_bandwidths(Trial& trial) {
  const Prediction& found = trial.before;
  if (found.time.count() == 0 || found.request.ranks < 2) throw DoesNotApply("nothing moves");
  const double algbw = static_cast<double>(found.request.bytes.count) / static_cast<double>(found.time.count()) * 1000;
  const int n = found.request.ranks;
  double factor = static_cast<double>(n - 1) / n;
  switch (found.request.op) {
    case CollectiveOp::all_reduce:
      factor *= 2;
      break;
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
    case CollectiveOp::send_recv:
      factor = 1;
      break;
    case CollectiveOp::pairs:
    case CollectiveOp::barrier:
      throw DoesNotApply("nccl-tests has no such factor");
    default:
      break;
  }
  trial.require(std::abs(found.algbw - algbw) <= algbw * 1e-12,
                fmt::format("expected an algbw of {}, found {}", algbw, found.algbw));
  trial.require(std::abs(found.busbw - algbw * factor) <= algbw * 1e-12,
                fmt::format("expected a busbw of {}, found {}", algbw * factor, found.busbw));
}

bool fits_bandwidths(Draw& /*draw*/, Json& scenario) { return scenario.contains("collective"); }

bool fits_one_rank(Draw& draw, Json& scenario) {
  make_calm(scenario);
  if (!is_calm(scenario)) return false;
  scenario.erase("devices");  // a copy out of the input takes its time
  scenario["topology"] = star_of(draw, 3);
  scenario["collective"] = random_collective(draw, 1);
  scenario["collective"]["ranks"] = Json::array({"gpu1"});
  return json_text(scenario["collective"]).find("servers") == std::string::npos;
}

void hold_one_rank(Trial& trial) {
  trial.require(trial.before.busbw == 0, "expected a busbw of 0, found more");
  trial.require_time(trial.before.time, Picoseconds{0});
}

}  // namespace

std::vector<Law> run_laws() {
  return {
      {"twice", "The same scenario twice: the same rows, byte for byte.", always, hold_twice},
      {"explained", "To explain a run does not change it, and the causes sum to its time.", always, hold_explained},
      {"traced",
       "To trace a run does not change it; no event is before 0 or after its end; the critical path has no gap; its "
       "messages are those that were sent.",
       always, hold_traced},
      {"conserved", "As many bytes go into each switch as out of it, give or take one per link if packets are spread.",
       fits_conserved, hold_conserved},
      {"folded", "One rank for all: the times, bytes and messages of the whole run, where it may be done.", fits_folded,
       hold_folded},
      {"bound", "No run is faster than the bound of the wires, which counts what must cross each cut.", fits_bound,
       hold_bound},
      {"closed_form", "Where the closed form says that it holds, the time is its, to a picosecond per step.",
       fits_closed_form, hold_closed_form},
      {"bandwidths", "algbw is bytes over time, busbw is that times the factor of nccl-tests.", fits_bandwidths,
       hold_bandwidths},
      {"one_rank", "One rank takes no time, if devices copy in no time.", fits_one_rank, hold_one_rank},
  };
}

}  // namespace ringsim::metamorphic
