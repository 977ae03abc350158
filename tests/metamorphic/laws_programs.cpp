// Laws of groups and of several jobs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/metamorphic/law.hpp"

namespace ringsim::metamorphic {

namespace {

Json names_of(const std::vector<int>& ranks) {
  Json names = Json::array();
  for (const int rank : ranks) names.push_back(fmt::format("gpu{}", rank));
  return names;
}

std::vector<int> from_to(int first, int end) {
  std::vector<int> found;
  for (int r = first; r < end; ++r) found.push_back(r);
  return found;
}

/// One collective of n ranks on a star of that many ports and more, calm.
bool make_star_collective(Draw& draw, Json& scenario, int members, int ports) {
  make_calm(scenario);
  if (!is_calm(scenario)) return false;
  scenario["topology"] = star_of(draw, ports);
  scenario["collective"] = random_collective(draw, members);
  // Those have ports or switches of their own, which groups and jobs do not share out. Of packets that arrive at one
  // instant the first goes on first, and which that is differs between a collective and a program that calls it.
  return json_text(scenario["collective"]).find("servers") == std::string::npos && !uses_switches(scenario) &&
         value_at(scenario, "network.routing").is_null() && !is_at(scenario, "network.model", "packet");
}

struct Split {
  int groups = 0, members = 0;
};

Split random_split(Draw& draw) { return {static_cast<int>(draw.number(2, 4)), static_cast<int>(draw.number(1, 4))}; }

bool fits_split_by_names(Draw& draw, Json& scenario) {
  const Split split = random_split(draw);
  if (!make_star_collective(draw, scenario, split.members, split.groups * split.members)) return false;
  scenario["collective"]["split"] =
      draw.once_in(2) ? fmt::format("DIV {}", split.members) : fmt::format("MOD {}", split.groups);
  return true;
}

/// [group] its ranks: DIV m: blocks of m; MOD g: every g-th.
std::vector<std::vector<int>> groups_of(const Json& scenario) {
  const std::string rule = scenario["collective"]["split"].get<std::string>();
  const int number = std::stoi(rule.substr(4)), n = scenario["topology"]["ranks"].get<int>();
  const bool is_block = rule[0] == 'D';
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(is_block ? n / number : number));
  for (int r = 0; r < n; ++r) groups[static_cast<std::size_t>(is_block ? r / number : r % number)].push_back(r);
  return groups;
}

void hold_split_by_names(Trial& trial) {
  Json changed = trial.scenario;
  changed["collective"].erase("split");
  for (const std::vector<int>& group : groups_of(trial.scenario))
    changed["collective"]["groups"].push_back(names_of(group));
  trial.require_same(changed);
}

void hold_groups_alone(Trial& trial) {
  Json changed = trial.scenario;
  changed["collective"].erase("split");
  changed["collective"]["ranks"] = names_of(groups_of(trial.scenario).back());
  trial.require_time(trial.run(changed).time, trial.before.time);
}

bool fits_one_group(Draw& draw, Json& scenario) {
  const int n = static_cast<int>(draw.number(1, 8));
  return make_star_collective(draw, scenario, n, n);
}

void hold_one_group(Trial& trial) {
  const int n = trial.scenario["topology"]["ranks"].get<int>();
  const Prediction after = trial.run(with(trial.scenario, "collective.split", fmt::format("DIV {}", n)));
  trial.require_time(after.time, trial.before.time);
  trial.require(after.transfers == trial.before.transfers, "expected as many messages, found others");
}

/// A second job on ports of its own.
bool fits_apart(Draw& draw, Json& scenario) {
  const int n = static_cast<int>(draw.number(2, 5)), m = static_cast<int>(draw.number(2, 5));
  if (!make_star_collective(draw, scenario, n, n + m)) return false;
  Json other = scenario;
  if (!make_star_collective(draw, other, m, n + m)) return false;
  scenario["collective"]["ranks"] = names_of(from_to(0, n));
  Json collective = other["collective"];
  collective["ranks"] = names_of(from_to(n, n + m));
  Json job = {{"name", "second"}, {"collective", collective}};
  job["start"] = time_text(Picoseconds{draw.number(0, 90'000'000)});
  scenario["jobs"] = Json::array({job});
  return true;
}

void hold_apart(Trial& trial) {
  trial.require_time(trial.run(without(trial.scenario, "jobs")).time, trial.before.time);
  Json second = without(trial.scenario, "jobs");
  second["collective"] = trial.scenario["jobs"][0]["collective"];
  trial.require_time(trial.run(second).time, trial.before.jobs.at(0).time);
}

void hold_later_start(Trial& trial) {
  Json changed = trial.scenario;
  changed["jobs"][0]["start"] = time_text(Picoseconds{trial.draw.number(0, 900'000'000)});
  const Prediction after = trial.run(changed);
  trial.require_time(after.time, trial.before.time);
  trial.require_time(after.jobs.at(0).time, trial.before.jobs.at(0).time);
}

Json job_after_main(const Json& collective) {
  return {{"name", "second"}, {"collective", collective}, {"after", Json::array({"main"})}};
}

/// Collectives of one star, in turn, each of which all ranks end at the same moment.
bool fits_in_turn(Draw& draw, Json& scenario) {
  make_unshared(draw, scenario);
  const int n = scenario["topology"]["ranks"].get<int>();
  const auto symmetric = [&] {
    const char* op = draw.one_of(std::array{"all_reduce", "reduce_scatter", "all_gather"});
    return Json{{"op", op}, {"algorithm", "ring"}, {"bytes", fmt::format("{} B", n * draw.number(0, 200'000))}};
  };
  scenario["collective"] = symmetric();
  scenario["jobs"] = Json::array({job_after_main(symmetric())});
  if (draw.once_in(2)) scenario["transport"] = {{"launch", time_text(Picoseconds{draw.number(0, 9'000'000)})}};
  return true;
}

void hold_in_turn(Trial& trial) {
  const Prediction first = trial.run(without(trial.scenario, "jobs"));
  Json second = without(trial.scenario, "jobs");
  second["collective"] = trial.scenario["jobs"][0]["collective"];
  const Prediction then = trial.run(second);
  trial.require_time(trial.before.jobs.back().time, first.time + then.time);
  trial.require_time(trial.before.jobs.at(0).start, first.time);
}

/// Within any network and protocol, as one collective or as two in turn: the ring's two halves.
bool fits_two_halves(Draw& draw, Json& scenario) {
  make_unshared(draw, scenario);
  const int n = scenario["topology"]["ranks"].get<int>();
  scenario["collective"] = {
      {"op", "all_reduce"}, {"algorithm", "ring"}, {"bytes", fmt::format("{} B", n * draw.number(0, 200'000))}};
  return true;
}

void hold_two_halves(Trial& trial) {
  Json scatter = trial.scenario, gather = trial.scenario;
  scatter["collective"]["op"] = "reduce_scatter";
  gather["collective"]["op"] = "all_gather";
  trial.require_time(trial.run(scatter).time + trial.run(gather).time, trial.before.time);
  Json in_turn = scatter;
  in_turn["jobs"] = Json::array({job_after_main(gather["collective"])});
  trial.require_time(trial.run(in_turn).jobs.back().time, trial.before.time);
}

/// Data goes the same ways backward.
bool fits_mirrored(Draw& draw, Json& scenario) {
  make_unshared(draw, scenario);
  scenario["collective"]["op"] = "reduce_scatter";
  scenario["collective"]["algorithm"] = draw.one_of(std::array{"ring", "halving_doubling"});
  int n = scenario["topology"]["ranks"].get<int>();
  if (is_at(scenario, "collective.algorithm", "halving_doubling")) n = 4;
  scenario["topology"]["ranks"] = n;
  scenario["collective"]["bytes"] = fmt::format("{} B", n * draw.number(0, 200'000));
  return true;
}

void hold_mirrored(Trial& trial) {
  trial.require_time(trial.run(with(trial.scenario, "collective.op", "all_gather")).time, trial.before.time);
}

}  // namespace

std::vector<Law> program_laws() {
  return {
      {"split_by_names", "Groups by a rule are those by names: the same times.", fits_split_by_names,
       hold_split_by_names},
      {"groups_alone", "Groups that share no port take the time of one alone.", fits_split_by_names, hold_groups_alone},
      {"one_group", "One group of all ranks is the collective without groups.", fits_one_group, hold_one_group},
      {"jobs_apart", "Two jobs on ports of their own each take the time that they take alone.", fits_apart, hold_apart},
      {"job_starts_later",
       "A job on ports of its own that starts at another time takes as long, and so does the first.", fits_apart,
       hold_later_start},
      {"in_turn",
       "A job after another begins when that ends, and both take the sum, where all ranks end at the same moment.",
       fits_in_turn, hold_in_turn},
      {"two_halves",
       "A ring's reduce-scatter and its all-gather take the time of its all-reduce together, and in turn as jobs. The "
       "ranks divide the bytes: no chunk waits for a larger one.",
       fits_two_halves, hold_two_halves},
      {"mirrored",
       "An all-gather takes the time of a reduce-scatter, whose messages it sends in reverse order. The ranks divide "
       "the "
       "bytes.",
       fits_mirrored, hold_mirrored},
  };
}

}  // namespace ringsim::metamorphic
