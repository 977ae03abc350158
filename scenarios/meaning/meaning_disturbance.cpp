#include "scenarios/meaning/meaning_disturbance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/fields/fields.hpp"
#include "scenarios/meaning/enum_of.hpp"
#include "scenarios/meaning/meaning_jobs.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;

Picoseconds time_of(const Canonical& value) { return Picoseconds{value.get<std::int64_t>()}; }

FaultSpec fault_of(const Canonical& fault, const std::string& pointer, const Blame& blame) {
  FaultSpec out;
  out.link = fault["link"].get<std::string>();
  out.change.at = SimTime{time_of(fault["at"])};
  if (fault.contains("bandwidth") == fault.contains("state")) {
    blame.fail(pointer, fmt::format(R"(expected one of the keys "bandwidth", "state", found {})",
                                    fault.contains("state") ? "both" : "none"));
  }
  if (fault.contains("state")) {
    out.change.to = enum_of<LinkChange::To>(fault["state"],
                                            {{"down", LinkChange::To::down}, {"restored", LinkChange::To::restored}});
  } else if (fault["bandwidth"].is_object()) {
    out.change.to = LinkChange::To::share;
    out.change.millionths = fault["bandwidth"]["millionths"].get<std::int64_t>();
  } else {
    out.change.to = LinkChange::To::bandwidth;
    out.change.bandwidth = {fault["bandwidth"].get<std::int64_t>()};
  }
  if (!fault.contains("until")) return out;
  out.until = SimTime{time_of(fault["until"])};
  if (out.change.to == LinkChange::To::restored) {
    blame.fail(
        pointer + "/until", "cannot be combined with the state restored",
        "remove \"until\", or write the fault that ends then, such as \"state\": \"down\", instead of \"restored\"");
  }
  if (*out.until <= out.change.at) {
    blame.fail(pointer + "/until",
               fmt::format("expected a time after \"at\", {}, found {}", format(out.change.at.time_since_epoch()),
                           format(out.until->time_since_epoch())));
  }
  return out;
}

/// The job's number (0: main) and the rank of a delay.
std::pair<std::size_t, Actor> rank_of(const Canonical& delay, const std::string& pointer, const Blame& blame,
                                      const Scenario& scenario) {
  const auto name = delay["job"].get<std::string>();
  const std::optional<std::size_t> job = find_job(scenario.jobs, name);
  if (!job) blame.fail(pointer + "/job", fmt::format("expected main or the name of a job, found \"{}\"", name));
  const int ranks = scenario.jobs[*job].members();
  const auto rank = delay["rank"].get<Actor>();
  if (rank >= ranks)
    blame.fail(pointer + "/rank", fmt::format("expected a rank from 0 to {}, found {}", ranks - 1, rank));
  return {*job, rank};
}

BackgroundSpec background_of(const Canonical& message, const std::string& pointer, const Blame& blame) {
  BackgroundSpec out;
  read_members(field_at("disturbance.background").members.front(), message, out);
  if (out.message.every && out.message.every->count() == 0)
    blame.fail(pointer + "/every", "expected a time above 0 between two messages, found 0",
               "remove \"every\" to send each message when the previous one is delivered");
  if (out.message.until && *out.message.until < out.message.start)
    blame.fail(pointer + "/until", fmt::format("expected a time no earlier than the first message, {}, found {}",
                                               format(out.message.start.time_since_epoch()),
                                               format(out.message.until->time_since_epoch())));
  return out;
}

}  // namespace

void drop_empty_disturbance(Canonical& canonical) {
  if (canonical.contains("disturbance") && canonical["disturbance"].is_object())
    for (const char* list : {"late", "slow", "background"})
      if (canonical["disturbance"].contains(list) && canonical["disturbance"][list] == Canonical::array())
        canonical["disturbance"].erase(list);
  for (const char* key : {"faults", "disturbance", "jobs", "calibration"})
    if (canonical.contains(key) && canonical[key].is_structured() && canonical[key].empty()) canonical.erase(key);
}

void take_disturbance(const Canonical& canonical, const Blame& blame, Scenario& scenario) {
  if (canonical.contains("faults")) {
    for (std::size_t i = 0; i < canonical["faults"].size(); ++i) {
      const std::string pointer = fmt::format("/faults/{}", i);
      scenario.faults.push_back(fault_of(canonical["faults"][i], pointer, blame));
      if (!takes_back(scenario.model) && scenario.faults.back().change.to == LinkChange::To::down) {
        blame.fail(pointer + "/state",
                   fmt::format("down cannot be combined with the network model {}", to_string(scenario.model)),
                   "packets cannot be removed from the buffers that they wait in: use the model fair");
      }
    }
  }
  if (!canonical.contains("disturbance")) return;
  const Canonical& given = canonical["disturbance"];
  const auto for_each = [&](const char* list, const auto& take) {
    if (!given.contains(list)) return;
    for (std::size_t i = 0; i < given[list].size(); ++i)
      take(given[list][i], fmt::format("/disturbance/{}/{}", list, i));
  };
  for_each("late", [&](const Canonical& each, const std::string& pointer) {
    const auto [job, rank] = rank_of(each, pointer, blame, scenario);
    scenario.late.push_back({job, rank, time_of(each["by"])});
    const Picoseconds start = scenario.jobs[job].start;
    if (start.count() > 0 && time_of(each["by"]) <= start)
      scenario.warnings.push_back(blame.where(pointer + "/by") +
                                  fmt::format(": has no effect, because the whole job starts at {}", format(start)));
  });
  for_each("slow", [&](const Canonical& each, const std::string& pointer) {
    const auto [job, rank] = rank_of(each, pointer, blame, scenario);
    scenario.slow.push_back({job, rank, time_of(each["step_delay"])});
  });
  if (given.contains("jitter")) read_members(field_at("disturbance.jitter"), given["jitter"], scenario.jitter);
  for_each("background", [&](const Canonical& each, const std::string& pointer) {
    scenario.background.push_back(background_of(each, pointer, blame));
  });
}

}  // namespace ringsim::scenarios
