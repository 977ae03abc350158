// ringsim schedule show|check|import|export: who sends what to whom in which step, the proof that it is right, and
// files.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "algorithms/formats/goal.hpp"
#include "algorithms/formats/json_schedule.hpp"
#include "algorithms/formats/msccl_export.hpp"
#include "algorithms/formats/schedule_file.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tools/commands/commands.hpp"
#include "tools/output/output.hpp"
#include "tools/output/schedule_text.hpp"
#include "tools/output/warnings.hpp"

namespace ringsim::tools {

namespace {

constexpr int max_ranks_shown = 16;

std::string title(const Scenario& scenario) {
  const std::string name =
      scenario.main().arguments.file ? scenario.main().arguments.file->name : scenario.main().algorithm->name;
  return fmt::format("{} {}, {} ranks, {}", name, to_string(scenario.main().request.op), scenario.main().request.ranks,
                     format(scenario.main().request.bytes));
}

/// A schedule's own file, read and proved at the size in which every chunk is equal.
struct FromFile {
  std::shared_ptr<const StoredSchedule> stored;
  CheckedSchedule checked;

  std::string title() const {
    if (!stored->names_regions) return fmt::format("{}, {} ranks", stored->name, stored->ranks);
    return fmt::format("{} {}, {} ranks", stored->name, to_string(stored->op), stored->ranks);
  }
};

FromFile read_file(const std::string& path, const std::string& text, Warnings& warnings) {
  auto stored = std::make_shared<const StoredSchedule>(read_schedule(text, path));
  warnings.say(stored->warnings);
  try {
    CheckedSchedule checked = check(schedule_of(stored, even_size(*stored)), {.stop = &stop_requested});
    return {std::move(stored), std::move(checked)};
  } catch (const InputError& error) {
    throw InputError(path + (error.where().empty() ? "" : ": " + error.where()), error.message(), error.hint());
  }
}

/// Every point's schedule, proved, or that of a schedule's file: writes write(title, schedule, order of the ring or
/// nothing).
template <class Write>
int for_each_schedule(const ShowArguments& arguments, Write write) {
  Output output;
  Warnings warnings;
  const std::string text = scenarios::read_text(arguments.scenario, "a scenario, or a schedule's file");
  if (is_schedule(text)) {
    if (!arguments.set.empty())
      throw InputError("--set", "expected it only for a scenario, found a schedule's file: " + arguments.scenario);
    const FromFile file = read_file(arguments.scenario, text, warnings);
    output.write(write(file.title(), file.checked, ""));
  } else {
    const ScenarioFile file = ScenarioFile::parse(text, arguments.scenario, arguments.set);
    for (std::size_t i = 0; i < file.size(); ++i) {
      if (stop_requested) throw Interrupted(fmt::format("{} of {} points done", i, file.size()));
      const Scenario scenario = file.point(i);
      warnings.say(scenario.warnings);
      output.write(write(title(scenario), schedule_of(scenario, &stop_requested), ring_order_of(scenario)));
    }
  }
  output.finish();
  return good;
}

std::string schedule_as(const Scenario& scenario, const std::string& format) {
  const CheckedSchedule checked = schedule_of(scenario, &stop_requested);
  try {
    if (format == "goal") {
      Warnings().say({"GOAL holds no regions: who reads it can see what meets, not what it means"});
      return export_goal(checked.schedule());
    }
    const StoredSchedule stored =
        scenario.main().arguments.file ? *scenario.main().arguments.file : store(checked.schedule());
    return format == "msccl" ? export_msccl(stored) : export_json(stored);
  } catch (const ScheduleError&) {
    throw;
  } catch (const InputError& error) {
    throw InputError(scenario.file, error.message(), error.hint());
  }
}

void write_file(const std::string& input, const std::string& path, const std::string& text) {
  std::error_code ignored;
  if (!path.empty() && std::filesystem::equivalent(input, path, ignored))
    throw InputError(path, "expected another file than the one that is read");
  stop_if_asked();
  Output output(path);
  output.write(text);
  output.finish();
}

}  // namespace

int schedule_show_command(const ShowArguments& arguments) {
  bool first = true;
  return for_each_schedule(
      arguments, [&](const std::string& name, const CheckedSchedule& checked, const std::string& ring) {
        const Schedule& schedule = checked.schedule();
        if (schedule.actors > max_ranks_shown)
          throw InputError(
              arguments.scenario,
              fmt::format("expected at most {} ranks and helpers to show, found {}", max_ranks_shown, schedule.actors),
              "try --set topology.ranks=8");
        const std::string text = arguments.picture ? schedule_picture(schedule) : schedule_table(schedule);
        return fmt::format("{}{}\n{}", std::exchange(first, false) ? "" : "\n", name,
                           ring.empty() ? "" : fmt::format("ring: {}\n", ring)) +
               text;
      });
}

int schedule_check_command(const ShowArguments& arguments) {
  return for_each_schedule(arguments, [](const std::string& name, const CheckedSchedule& checked, const std::string&) {
    return fmt::format("{}: proved; {}\n", name, to_string(checked.proof()));
  });
}

int schedule_import_command(const ImportScheduleArguments& arguments) {
  Warnings warnings;
  const std::string text = scenarios::read_text(arguments.file, "a schedule's file");
  const FromFile file = read_file(arguments.file, text, warnings);
  say(fmt::format("ringsim: {}: proved; {}\n", file.title(), to_string(file.checked.proof())));
  write_file(arguments.file, arguments.output, export_json(*file.stored));
  return good;
}

int schedule_export_command(const ExportArguments& arguments) {
  const ScenarioFile file = ScenarioFile::load(arguments.scenario, arguments.set);
  const Scenario scenario = file.point(0);
  Warnings().say(scenario.warnings);
  if (file.size() > 1) say(fmt::format("ringsim: the first of {} points; choose another with --set\n", file.size()));
  write_file(arguments.scenario, arguments.output, schedule_as(scenario, arguments.to));
  return good;
}

}  // namespace ringsim::tools
