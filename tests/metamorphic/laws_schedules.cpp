// Laws of schedules and machines that are written to files and read back.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algorithms/formats/goal.hpp"
#include "algorithms/formats/json_schedule.hpp"
#include "algorithms/formats/msccl_export.hpp"
#include "algorithms/formats/msccl_import.hpp"
#include "algorithms/formats/thread_blocks.hpp"
#include "algorithms/stored_schedule.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "tests/metamorphic/law.hpp"
#include "tests/support/command.hpp"
#include "topologies/machines/machine_text.hpp"
#include "validate/results/results.hpp"

namespace ringsim::metamorphic {

namespace {

bool fits_schedule(Draw& /*draw*/, Json& scenario) {
  return is_collective(scenario) && !has_groups(scenario) && !scenario.contains("jobs");
}

/// Runs that schedule in place of the scenario's own.
Prediction run_with(const Json& scenario, Schedule schedule) {
  const Scenario point = decoded(scenario);
  const Setup setup = set_up(point);
  std::vector<NodeId> nodes = setup.collectives.front().ranks;
  nodes.insert(nodes.end(), setup.collectives.front().helpers.begin(), setup.collectives.front().helpers.end());
  const std::vector<PlacedSchedule> given{{.job = "", .schedule = check(std::move(schedule)), .nodes = nodes}};
  return predict(point, setup, {.schedules = &given});
}

Schedule schedule_in(const Trial& trial) { return schedule_of(decoded(trial.scenario)).schedule(); }

/// What a format cannot hold says nothing about what it can.
template <class Write>
auto written(Write write) {
  try {
    return write();
  } catch (const ScheduleError&) {
    throw;
  } catch (const InputError& error) {
    throw DoesNotApply(error.what());
  }
}

std::shared_ptr<const StoredSchedule> shared(StoredSchedule stored) {
  return std::make_shared<const StoredSchedule>(std::move(stored));
}

void hold_json_schedule(Trial& trial) {
  const Schedule plain = schedule_in(trial);
  const std::string text = written([&] { return export_json(store(plain)); });
  const StoredSchedule read = import_json(text, "schedule.json");
  trial.require(export_json(read) == text, "expected the same text when written again, found another");
  trial.require_same_run(run_with(trial.scenario, schedule_of(shared(read), plain.collective.bytes)));
}

/// The schedule as commands get it: from a file that the scenario names.
void hold_schedule_file(Trial& trial) {
  const Schedule plain = schedule_in(trial);
  if (plain.actors != plain.collective.ranks) throw DoesNotApply("helpers of a file need ports");
  const std::string text = written([&] { return export_json(store(plain)); });
  Json changed = trial.scenario;
  changed["collective"]["algorithm"] = {{"file", file_with("metamorphic.json", text)}};
  changed["collective"].erase("in_place");  // which the file says
  if (changed.contains("transport"))        // and so it does of these
    for (const char* key : {"channels", "chunk"}) changed["transport"].erase(key);
  trial.require_same_run(trial.run(changed));
}

void hold_msccl(Trial& trial) {
  const Schedule plain = schedule_in(trial);
  if (plain.collective.ranks < 2) throw DoesNotApply("the channels of one rank have no connections, which tell them");
  const StoredSchedule stored = written([&] { return store(plain); });
  const std::string text = written([&] { return export_msccl(stored); });
  const StoredSchedule read = import_msccl(text, "schedule.xml");
  trial.require(export_msccl(read) == text, "expected the same text when written again, found another");
  const Bytes size = plain.collective.bytes;
  const Schedule blocks = written([&] { return schedule_of(shared(as_thread_blocks(stored)), size); });
  const Schedule again = written([&] { return schedule_of(shared(read), size); });
  const auto timed = [&](const Schedule& schedule) {
    return written([&] { return run_with(trial.scenario, schedule); });
  };
  const Prediction expected = timed(blocks), found = timed(again);
  trial.require_time(found.time, expected.time);
  trial.require(found.transfers == expected.transfers, "expected as many messages, found others");
}

void hold_goal(Trial& trial) {
  const Schedule plain = schedule_in(trial);
  const std::string text = written([&] { return export_goal(plain); });
  const StoredSchedule read = import_goal(text, "schedule.goal");
  const Schedule again = schedule_of(shared(read), Bytes{plain.collective.bytes});
  if (again.actors != plain.actors) throw DoesNotApply("ranks without messages");
  const Prediction found = written([&] { return run_with(trial.scenario, again); });
  trial.require_time(found.time, trial.before.time);
  trial.require(found.transfers == trial.before.transfers, "expected as many messages, found others");
}

/// MSCCL's blocks of an all-to-all are equal.
bool fits_msccl(Draw& draw, Json& scenario) {
  if (!fits_schedule(draw, scenario)) return false;
  if (is_at(scenario, "collective.op", "all_to_all"))
    scenario["collective"]["bytes"] = fmt::format("{} B", draw.number(0, 9) * even_bytes);
  if (scenario.contains("transport")) scenario["transport"].erase("chunk");  // whose pieces need not be
  return true;
}

bool fits_goal(Draw& draw, Json& scenario) {
  if (!fits_schedule(draw, scenario)) return false;
  make_calm(scenario);
  scenario.erase("devices");  // GOAL knows no additions
  return value_at(scenario, "transport.protocol").is_null() && !is_at(scenario, "network.model", "packet");
}

void hold_without_symmetry(Trial& trial) {
  Schedule plain = schedule_in(trial);
  if (!plain.symmetry.claimed()) throw DoesNotApply("no symmetry is claimed");
  plain.symmetry = Symmetry{};
  const Prediction found = run_with(trial.scenario, std::move(plain));
  trial.require(found.proof.by == Proof::By::all_ranks || !found.proof.from.empty(),
                "expected a proof over all ranks, found another");
  trial.require(found.proof.slots_needed == trial.before.proof.slots_needed &&
                    found.proof.operations == trial.before.proof.operations,
                "expected a proof of the same operations and slots, found another");
  trial.require_same_run(found);
}

bool fits_machine_file(Draw& /*draw*/, Json& scenario) { return is_at(scenario, "topology.kind", "cluster"); }

void hold_machine_file(Trial& trial) {
  const Scenario scenario = decoded(trial.scenario);
  const Machine& machine = *std::get<Cluster>(scenario.topology).parts.front().machine;
  Json changed = trial.scenario;
  changed["topology"].erase("node");
  changed["topology"]["node_file"] = file_with("machine.json", to_machine_file(machine));
  trial.require_same_run(trial.run(changed));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string output_of(Trial& trial, const std::vector<std::string>& words) {
  const test::Outcome outcome = test::run_command(words);
  trial.require(outcome.code == 0, fmt::format("expected exit code 0, found {}: {}", outcome.code, outcome.err));
  return outcome.out;
}

/// All rows have the times of predict(), to the last digit of a double.
void hold_command(Trial& trial) {
  const std::string file = file_with("metamorphic.json", json_text(trial.scenario, 2));
  const std::vector<std::string> lines = lines_of(output_of(trial, {"run", file, "--format", "jsonl"}));
  std::vector<const Prediction*> expected{&trial.before};
  for (const Prediction& job : trial.before.jobs) expected.push_back(&job);
  trial.require(lines.size() == expected.size(), "expected a row per collective, found another number");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double found = ResultRow::parse(lines[i], "run").time_us();
    trial.require(found == microseconds(expected[i]->time),
                  fmt::format("expected {} us, found {} us", microseconds(expected[i]->time), found));
  }
  const Json document = parse_json(output_of(trial, {"run", file, "--format", "json"}), "run");
  const auto csv = lines_of(output_of(trial, {"run", file, "--format", "csv"}));
  trial.require(document["results"].size() == lines.size() && csv.size() == lines.size() + 1,
                "expected a row per collective in JSON and CSV, found another number");
  for (std::size_t i = 0; i < lines.size(); ++i)
    trial.require(document["results"][i]["time_us"] == microseconds(expected[i]->time),
                  "expected the same times in JSON, found others");
}

bool fits_sweep(Draw& draw, Json& scenario) {
  if (!scenario.contains("collective") || is_at(scenario, "collective.op", "barrier")) return false;
  Json sizes = Json::array();
  for (std::int64_t i = 0; i < 3; ++i) sizes.push_back(fmt::format("{} B", (i * 1000 + draw.number(1, 999)) * 100));
  scenario["collective"]["bytes"] = sizes;
  return true;
}

void hold_merged(Trial& trial) {
  const std::string file = file_with("metamorphic.json", json_text(trial.scenario, 2));
  const std::string counted = output_of(trial, {"sweep", file, "--dry-run"});
  trial.require(counted.find("to do                3\n") != std::string::npos, "expected 3 points, found: " + counted);
  const std::string whole = file_with("whole.jsonl", output_of(trial, {"sweep", file, "-j", "1"}));
  std::vector<std::string> shards, merge{"merge"};
  for (const char* shard : {"2/2", "1/2"})
    merge.push_back(file_with("shard.jsonl", output_of(trial, {"sweep", file, "-j", "1", "--shard", shard})));
  merge.insert(merge.end(), {"-o", "-"});
  trial.require(output_of(trial, merge) == output_of(trial, {"merge", whole, "-o", "-"}),
                "expected the merged shards to be the whole sweep, found other rows");
}

}  // namespace

std::vector<Law> schedule_laws() {
  return {
      {"json_schedule", "A schedule written as JSON and read back: the same run, and the same text when written again.",
       fits_schedule, hold_json_schedule},
      {"schedule_file",
       "A scenario that names the written schedule: the same run. Channels and pieces are in the file; helpers are "
       "not, "
       "because ports for them are the scenario's.",
       fits_schedule, hold_schedule_file},
      {"msccl",
       "A schedule written as MSCCL XML and read back takes the time of its thread blocks, which the format consists "
       "of, "
       "and has the same text when written again. What the format refuses is left out; blocks of an all-to-all are "
       "equal.",
       fits_msccl, hold_msccl},
      {"goal",
       "A schedule written as GOAL and read back takes the same time. GOAL holds no slots, copies and additions: "
       "without "
       "protocol and device rates. Not with packets: which of those that arrive at one instant goes on first differs.",
       fits_goal, hold_goal},
      {"without_symmetry", "A schedule that does not claim its symmetry is proved over all ranks, and runs as before.",
       fits_schedule, hold_without_symmetry},
      {"machine_file", "A preset written as a machine file and read back: the same run.", fits_machine_file,
       hold_machine_file},
      {"command", "The command's JSON lines, JSON and CSV have the times of the library, to the last digit.", always,
       hold_command},
      {"merged",
       "Two shards of a sweep, merged, are the whole sweep, merged, byte for byte; --dry-run counts its points.",
       fits_sweep, hold_merged},
  };
}

}  // namespace ringsim::metamorphic
