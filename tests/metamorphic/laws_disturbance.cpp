// Laws of faults, delays and the traffic of others.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/quantity.hpp"
#include "tests/metamorphic/law.hpp"

namespace ringsim::metamorphic {

namespace {

Json with_fault(Json scenario, const Json& fault) {
  scenario["faults"].push_back(fault);
  return scenario;
}

/// A node whose links exist in any scenario of the maker.
std::string some_gpu(const Json& scenario) {
  return is_at(scenario, "topology.kind", "cluster") ? "node0.gpu0" : "gpu0";
}

/// One GPU without links has none that could fail.
bool has_links(const Json& scenario) {
  return !is_bare(scenario) || is_at(scenario, "topology.kind", "star") || ranks_of_bare(scenario["topology"]) > 1;
}

bool fits_fault(Draw& /*draw*/, Json& scenario) { return has_links(scenario); }

/// When the run is over, with all jobs and warm-up steps, as if launch came on top.
Picoseconds surely_over(const Prediction& before) {
  Picoseconds end = before.start + before.time;
  for (const Prediction& job : before.jobs) end = std::max(end, job.start + job.time);
  // Steps of training that do not count may be longer than those that do; there are at most a dozen.
  return before.training ? before.training->longest * 100 + end * 100 : end;
}

void hold_fault_after_end(Trial& trial) {
  const Picoseconds at = surely_over(trial.before) + Picoseconds{trial.draw.number(1, 9'000'000)};
  Json fault = {{"link", some_gpu(trial.scenario)}, {"at", time_text(at)}};
  // Packets in buffers cannot be taken back: with them nothing may go down.
  if (trial.draw.once_in(2) && !is_at(trial.scenario, "network.model", "packet"))
    fault["state"] = "down";
  else
    fault["bandwidth"] = "1%";
  trial.require_same(with_fault(trial.scenario, fault));
}

bool fits_fault_of_nothing(Draw& /*draw*/, Json& scenario) {
  return has_links(scenario) && !scenario.contains("faults") && !is_at(scenario, "network.model", "packet");
}

void hold_fault_of_nothing(Trial& trial) {
  Json fault = {{"link", some_gpu(trial.scenario)}, {"bandwidth", "100%"}};
  fault["at"] = time_text(Picoseconds{trial.draw.number(0, std::max<std::int64_t>(1, trial.before.time.count()))});
  trial.require_same(with_fault(trial.scenario, fault));
}

/// A star of which the last GPU takes no part.
bool fits_idle_gpu(Draw& draw, Json& scenario) {
  if (!is_collective(scenario) || scenario.contains("jobs") || has_groups(scenario)) return false;
  const int n = static_cast<int>(draw.number(2, 6));
  scenario["topology"] = star_of(draw, n + 2);
  scenario.erase("disturbance");
  scenario.erase("faults");
  Json names = Json::array();
  for (int r = 0; r < n; ++r) names.push_back(fmt::format("gpu{}", r));
  scenario["collective"] = random_collective(draw, n);
  scenario["collective"]["ranks"] = names;
  return true;
}

std::string idle_gpu(const Json& scenario, int back) {
  return fmt::format("gpu{}", scenario["topology"]["ranks"].get<int>() - back);
}

void hold_fault_elsewhere(Trial& trial) {
  Json fault = {{"link", idle_gpu(trial.scenario, 1)}, {"bandwidth", "10%"}};
  fault["at"] = time_text(Picoseconds{trial.draw.number(0, std::max<std::int64_t>(1, trial.before.time.count()))});
  trial.require_same(with_fault(trial.scenario, fault));
}

Json with_background(const Json& scenario, const std::string& from, const std::string& to, Picoseconds start) {
  Json changed = scenario;
  changed["disturbance"]["background"].push_back(
      {{"from", from}, {"to", to}, {"bytes", "1 MB"}, {"start", time_text(start)}});
  return changed;
}

void hold_background_elsewhere(Trial& trial) {
  trial.require_same(with_background(trial.scenario, idle_gpu(trial.scenario, 1), idle_gpu(trial.scenario, 2),
                                     Picoseconds{trial.draw.number(0, 9'000'000)}));
}

bool fits_background_after_end(Draw& /*draw*/, Json& scenario) {
  return is_collective(scenario) && is_bare(scenario) && ranks_of_bare(scenario["topology"]) > 1;
}

void hold_background_after_end(Trial& trial) {
  trial.require_same(with_background(trial.scenario, "gpu0", "gpu1",
                                     surely_over(trial.before) + Picoseconds{trial.draw.number(1, 9'000'000)}));
}

bool fits_constant_fault(Draw& /*draw*/, Json& scenario) {
  if (!is_at(scenario, "topology.kind", "graph") || is_at(scenario, "network.model", "packet")) return false;
  scenario.erase("faults");
  const Json& topology = scenario["topology"];
  return topology["links"].size() + 1 == topology["nodes"].size();  // a tree
}

void hold_constant_fault(Trial& trial) {
  const Json link = trial.scenario["topology"]["links"][static_cast<std::size_t>(
      trial.draw.number(0, static_cast<std::int64_t>(trial.scenario["topology"]["links"].size()) - 1))];
  const std::int64_t share = trial.draw.one_of(std::array{10, 25, 50});  // of rates that are multiples of 100 Mb/s
  Json slower = trial.scenario;
  for (Json& each : slower["topology"]["links"])
    if (each == link)
      each["bandwidth"] =
          format(Bandwidth{parse_bandwidth(link["bandwidth"].get<std::string>()).bytes_per_second * share / 100});
  Json faulty = trial.scenario;
  for (const auto& [from, to] : {std::pair{"from", "to"}, std::pair{"to", "from"}})
    faulty = with_fault(faulty,
                        {{"link", fmt::format("{} -> {}", link[from].get<std::string>(), link[to].get<std::string>())},
                         {"bandwidth", fmt::format("{}%", share)}});
  const Prediction other = trial.run(slower);
  trial.require_time(trial.run(faulty).time, other.time);
}

/// All ranks, so that nothing happens before.
Json all_late(const Json& scenario, int ranks, Picoseconds by) {
  Json changed = scenario;
  Json& late = changed["disturbance"]["late"];
  late = Json::array();
  for (int r = 0; r < ranks; ++r) late.push_back({{"rank", r}, {"by", time_text(by)}});
  return changed;
}

bool fits_all_late(Draw& /*draw*/, Json& scenario) {
  if (!is_collective(scenario) || has_groups(scenario)) return false;
  scenario.erase("jobs");
  scenario.erase("faults");
  if (scenario.contains("disturbance"))
    for (const char* key : {"late", "background"}) scenario["disturbance"].erase(key);
  // Switches and servers are not late: their jitter passes while they wait.
  const bool has_helpers = uses_switches(scenario) || json_text(scenario).find("servers") != std::string::npos;
  if (has_helpers && scenario.contains("disturbance")) scenario["disturbance"].erase("jitter");
  return true;
}

void hold_all_late(Trial& trial) {
  const Picoseconds by{trial.draw.number(0, 90'000'000)};
  const int ranks = trial.before.request.ranks;
  if (ranks < 2) throw DoesNotApply("of one rank it depends on whether its schedule has any step");
  trial.require_time(trial.run(all_late(trial.scenario, ranks, by)).time, trial.before.time + by);
}

void hold_fault_before_start(Trial& trial) {
  const Picoseconds by{trial.draw.number(2, 90'000'000)};
  const Json late = all_late(trial.scenario, trial.before.request.ranks, by);
  Json fault = {{"link", some_gpu(trial.scenario)}, {"bandwidth", "10%"}, {"until", time_text(by - Picoseconds{1})}};
  const Picoseconds expected = trial.run(late).time;
  trial.require_time(trial.run(with_fault(late, fault)).time, expected);
}

bool fits_fault_before_start(Draw& draw, Json& scenario) {
  return fits_all_late(draw, scenario) && has_links(scenario) && !is_at(scenario, "network.model", "packet");
}

bool fits_no_delay(Draw& /*draw*/, Json& scenario) {
  // A program, of groups or jobs after others, has no jitter.
  if (!is_collective(scenario) || has_groups(scenario) || scenario.contains("jobs")) return false;
  if (!scenario.contains("disturbance")) return true;
  for (const char* key : {"late", "slow", "jitter"})
    if (scenario["disturbance"].contains(key)) return false;
  return true;
}

void hold_no_delay(Trial& trial) {
  Json changed = trial.scenario;
  Json& disturbance = changed["disturbance"];
  const auto rank = trial.draw.number(0, trial.before.request.ranks - 1);
  if (trial.draw.once_in(2)) disturbance["late"] = Json::array({{{"rank", rank}, {"by", "0 us"}}});
  if (trial.draw.once_in(2)) disturbance["slow"] = Json::array({{{"rank", rank}, {"step_delay", "0 us"}}});
  disturbance["jitter"] = {{"most", "0 us"}, {"seed", trial.draw.number(0, 99)}};
  trial.require_same(changed);
}

bool fits_unshared_delay(Draw& draw, Json& scenario) {
  make_unshared(draw, scenario);
  return true;
}

void hold_delay(Trial& trial) {
  const Picoseconds by{trial.draw.number(0, 200'000'000)};
  Json late = trial.scenario;
  late["disturbance"]["late"] =
      Json::array({{{"rank", trial.draw.number(0, trial.before.request.ranks - 1)}, {"by", time_text(by)}}});
  const Prediction after = trial.run(late);
  trial.require(after.time >= std::max(trial.before.time, by) && after.time <= trial.before.time + by,
                fmt::format("expected from {} to {}, found {}", std::max(trial.before.time, by).count(),
                            (trial.before.time + by).count(), after.time.count()));
}

}  // namespace

std::vector<Law> disturbance_laws() {
  return {
      {"fault_after_end",
       "A fault that begins when all is over changes no time. Messages that arrive at one instant may do so in another "
       "order: a network that faults may change finds arrivals in another way.",
       fits_fault, hold_fault_after_end},
      {"fault_of_nothing",
       "A fault that leaves a link all of its bandwidth changes no time: flows get the shares that they had. Not with "
       "packets, which may not have faults.",
       fits_fault_of_nothing, hold_fault_of_nothing},
      {"fault_elsewhere", "A fault at a port that no message passes changes nothing.", fits_idle_gpu,
       hold_fault_elsewhere},
      {"background_elsewhere", "Messages of others over other ports of a star change nothing.", fits_idle_gpu,
       hold_background_elsewhere},
      {"background_after_end", "Messages of others that start when all is over change nothing.",
       fits_background_after_end, hold_background_after_end},
      {"constant_fault",
       "A fault of both directions from the beginning is a cable of that bandwidth. In a tree, where the bandwidth "
       "does "
       "not choose the way.",
       fits_constant_fault, hold_constant_fault},
      {"all_late", "All ranks late by t: t more, because nothing else depends on the moment.", fits_all_late,
       hold_all_late},
      {"fault_before_start", "A fault that ends before the ranks begin changes nothing.", fits_fault_before_start,
       hold_fault_before_start},
      {"no_delay", "Delays and jitter of 0 change nothing.", fits_no_delay, hold_no_delay},
      {"one_late",
       "One rank late by t: no less than before, no less than t, at most t more; a longest sum of which some terms "
       "grow "
       "by t once.",
       fits_unshared_delay, hold_delay},
  };
}

}  // namespace ringsim::metamorphic
