// Schedules: MSCCL XML, plans of MSCCL++, GOAL, ringsim's JSON.
#include <cstddef>
#include <memory>
#include <string>

#include "algorithms/formats/goal.hpp"
#include "algorithms/formats/json_schedule.hpp"
#include "algorithms/formats/msccl_export.hpp"
#include "algorithms/formats/msccl_import.hpp"
#include "algorithms/formats/mscclpp_export.hpp"
#include "algorithms/formats/mscclpp_import.hpp"
#include "algorithms/formats/schedule_file.hpp"
#include "algorithms/formats/thread_blocks.hpp"
#include "algorithms/stored_schedule.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "tests/fuzz/laws.hpp"
#include "tests/fuzz/targets.hpp"

namespace ringsim::fuzz {

namespace {

/// As JSON each lane takes a list, empty or not.
constexpr std::size_t most_lanes_written = 20'000;

/// The proof of larger ones would take long.
bool is_small(const StoredSchedule& stored) {
  std::size_t n = 0;
  for (const auto& lane : stored.steps)
    for (const Step& step : lane)
      for (const Op& op : step.ops) n += 1 + op.region.count;
  std::size_t chunks = 0;
  for (const Grid& grid : stored.grids) chunks += static_cast<std::size_t>(grid.chunks);
  return n < 20'000 && chunks < 2000 && stored.actors <= 64 && stored.steps.size() < 4000;
}

/// Whatever it came from: ringsim's own format holds it, and the checker decides about it.
void check_stored(const StoredSchedule& stored) {
  if (stored.steps.size() > most_lanes_written) return;
  const std::string written = export_json(stored);
  const StoredSchedule again = import_json(written, "again.json");
  law(same_schedule(stored, again), "a schedule that was written as JSON is read again");
  law(export_json(again) == written, "a schedule is written as JSON in one way");
  if (!is_small(stored)) return;
  const Schedule schedule = schedule_of(std::make_shared<const StoredSchedule>(stored), even_size(stored));
  check(schedule);
  // What was proved can be written as GOAL, and is proved again.
  const StoredSchedule goal = import_goal(export_goal(schedule), "again.goal");
  check(schedule_of(std::make_shared<const StoredSchedule>(goal), even_size(goal)));
}

/// The text, unless MSCCL or its runtime cannot hold it.
std::string msccl_of(const StoredSchedule& stored) {
  try {
    return export_msccl(stored);
  } catch (const InputError&) {
    return "";
  }
}

/// As a plan of MSCCL++; empty if it cannot be one. The exporter proves what it writes.
std::string plan_of(const StoredSchedule& stored) {
  try {
    return export_mscclpp(stored);
  } catch (const InputError&) {
    return "";
  }
}

}  // namespace

bool read_goal(std::string_view text) {
  const auto read = [&](const GoalOptions& options) {
    return reads_or_refuses([&] { check_stored(import_goal(text, "schedule.goal", options)); });
  };
  const bool at_once = read({});
  return read({.sends_in_turn = true}) || at_once;
}

bool read_msccl(std::string_view text) {
  return reads_or_refuses([&] {
    const StoredSchedule stored = import_msccl(text, "schedule.xml");
    if (is_small(stored)) {
      if (const std::string written = msccl_of(stored); !written.empty()) {
        const StoredSchedule again = import_msccl(written, "again.xml");
        law(same_schedule(as_thread_blocks(stored), again), "a schedule that was written as MSCCL XML is read again");
        law(export_msccl(again) == written, "a schedule is written as MSCCL XML in one way");
      }
    }
    check_stored(stored);
  });
}

bool read_mscclpp(std::string_view text) {
  return reads_or_refuses([&] {
    const StoredSchedule stored = import_mscclpp(text, "plan.json");
    if (is_small(stored)) {
      const Schedule schedule = schedule_of(std::make_shared<const StoredSchedule>(stored), even_size(stored));
      check(schedule);
      if (const std::string written = plan_of(stored); !written.empty())
        law(plan_of(stored) == written, "a schedule is written as a plan in one way");
    }
    check_stored(stored);
  });
}

bool read_schedule_json(std::string_view text) {
  is_schedule(text);
  is_goal(text);
  return reads_or_refuses([&] {
    const StoredSchedule stored = import_json(text, "schedule.json");
    check_stored(stored);
    if (!is_small(stored)) return;
    if (const std::string written = msccl_of(stored); !written.empty()) import_msccl(written, "again.xml");
    if (const std::string written = plan_of(stored); !written.empty()) import_mscclpp(written, "again.json");
  });
}

}  // namespace ringsim::fuzz
