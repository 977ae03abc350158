// ringsim schedule show|picture|check|import|export: which rank sends what to which in which step, the proof that it is
// right, and files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/formats/goal.hpp"
#include "algorithms/formats/json_schedule.hpp"
#include "algorithms/formats/msccl_export.hpp"
#include "algorithms/formats/schedule_file.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/wrap.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/explanations/schedule_text.hpp"
#include "tools/formats/mscclpp_file.hpp"
#include "tools/formats/own_files.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/warnings.hpp"
#include "tools/pictures/picture_file.hpp"
#include "tools/pictures/schedule_svg.hpp"
#include "tools/stop.hpp"

namespace ringsim::tools {

namespace {

constexpr int max_ranks_shown = most_actors_drawn;

struct ShowArguments {
  std::string scenario;  ///< or a schedule's own file
  std::vector<std::string> set;
  bool picture = false;  ///< rows of ranks, columns of steps
};

void declare_scenario_or_schedule(Options& options, ShowArguments& show) {
  options.scenario(show.scenario, show.set).help =
      "a scenario file or a schedule file (MSCCL XML, MSCCL++, GOAL or ringsim JSON); - reads standard input";
}

void declare(Options& options, ShowArguments& show) {
  declare_scenario_or_schedule(options, show);
  options.flag("--picture", show.picture, "draw a grid with ranks as rows and steps as columns");
}

struct PictureArguments {
  ShowArguments show;
  std::string output;
  bool force = false;
};

void declare(Options& options, PictureArguments& picture) {
  declare_scenario_or_schedule(options, picture.show);
  options.picture_output(picture.output, picture.force);
}

struct ImportScheduleArguments {
  std::string file, output;
  bool sends_in_turn = false;  ///< GOAL: as in LogGOPSim

  void settle() const { expect_ending(output, {".json"}); }
};

void declare(Options& options, ImportScheduleArguments& import) {
  options.argument("FILE", import.file, "a schedule file").file = true;
  options.flag("--sends-in-turn", import.sends_in_turn,
               "GOAL: run unordered sends of a rank one after another, as in LogGOPSim");
  options.output(import.output, "the schedule");
}

enum class ScheduleFormat { msccl, mscclpp, json, goal };

struct ExportScheduleArguments {
  std::string scenario;
  std::vector<std::string> set;
  std::optional<ScheduleFormat> said_to;
  ScheduleFormat to = ScheduleFormat::json;  ///< `said_to`, or what the ending of `output` says
  std::string output;

  void settle() {
    using enum ScheduleFormat;
    to = export_format(output, said_to, {{".xml", msccl}, {".json", json}, {".json", mscclpp}, {".goal", goal}},
                       "msccl|mscclpp|json|goal");
  }
};

void declare(Options& options, ExportScheduleArguments& export_) {
  options.scenario(export_.scenario, export_.set);
  options
      .choice<ScheduleFormat>("--to",
                              {{"msccl", ScheduleFormat::msccl},
                               {"mscclpp", ScheduleFormat::mscclpp},
                               {"json", ScheduleFormat::json},
                               {"goal", ScheduleFormat::goal}},
                              export_.said_to,
                              "msccl: MSCCL XML; mscclpp: MSCCL++ execution plan (JSON); json: ringsim's own format, "
                              "which is complete; goal: sizes only")
      .fallback = "msccl for FILE.xml, json for FILE.json, goal for FILE.goal";
  options.replaced("--format", "--to");
  options.output(export_.output, "the schedule");
}

/// "halving_doubling fold=naive all_reduce, 8 ranks".
std::string title(const Scenario& scenario) {
  std::string name =
      scenario.main().arguments.file ? scenario.main().arguments.file->name : scenario.main().algorithm->name;
  for (const auto& [parameter, value] : scenario.main().arguments.numbers)
    name += fmt::format(" {}={}", parameter, value);
  for (const auto& [parameter, value] : scenario.main().arguments.texts)
    name += fmt::format(" {}={}", parameter, value);
  return fmt::format("{} {}, {} ranks", name, to_string(scenario.main().request.op), scenario.main().request.ranks);
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

FromFile read_file(const std::string& path, const std::string& text, Warnings& warnings, const GoalOptions& goal = {}) {
  auto stored = std::make_shared<const StoredSchedule>(read_schedule(text, path, goal));
  warnings.say(stored->warnings);
  try {
    CheckedSchedule checked = check(schedule_of(stored, even_size(*stored)), {.stop = &stop_requested});
    return {std::move(stored), std::move(checked)};
  } catch (const InputError& error) {
    throw InputError(path + (error.where().empty() ? "" : ": " + error.where()), error.message(), error.hint());
  }
}

/// A schedule that was proved, and how it is called.
struct Shown {
  std::string name, size;  ///< size: empty of a file
  const CheckedSchedule& checked;
  std::string ring;  ///< the order of its ring; empty: it has none
};

/// Every point's schedule, or that of a schedule's file: writes what `write` returns for each, then what `finish`
/// returns.
template <class Write, class Finish>
int for_each_schedule(const ShowArguments& arguments, Write write, Finish finish) {
  Output output;
  Warnings warnings;
  const ScenarioText input = read_input(arguments.scenario, "a scenario or a schedule file");
  if (is_schedule(input.text)) {
    if (!arguments.set.empty())
      throw InputError("--set", "expected this option only with a scenario, found a schedule file: " + input.name);
    const FromFile file = read_file(input.name, input.text, warnings);
    output.write(write(Shown{file.title(), "", file.checked, ""}));
  } else {
    const ScenarioFile file = ScenarioFile::parse(input.text, input.name, arguments.set);
    for (std::size_t i = 0; i < file.size(); ++i) {
      if (stop_requested) throw Interrupted(fmt::format("{} of {} points done", i, file.size()));
      const Scenario scenario = file.point(i);
      warnings.say(scenario.warnings);
      const CheckedSchedule checked =
          while_saying("proving the schedule", [&] { return schedule_of(scenario, &stop_requested); });
      output.write(
          write(Shown{title(scenario), format(scenario.main().request.bytes), checked, ring_order_of(scenario)}));
    }
  }
  output.write(finish());
  output.finish();
  return good;
}

std::string schedule_as(const Scenario& scenario, ScheduleFormat to) {
  const CheckedSchedule checked =
      while_saying("proving the schedule", [&] { return schedule_of(scenario, &stop_requested); });
  try {
    if (to == ScheduleFormat::goal) {
      Warnings().say(
          {"GOAL has no regions, so its readers see which messages match, but not what the messages contain"});
      return export_goal(checked.schedule());
    }
    const StoredSchedule stored =
        scenario.main().arguments.file ? *scenario.main().arguments.file : store(checked.schedule());
    if (to == ScheduleFormat::mscclpp) return mscclpp_of(scenario, stored);
    return to == ScheduleFormat::msccl ? export_msccl(stored) : export_json(stored);
  } catch (const ScheduleError&) {
    throw;
  } catch (const InputError& error) {
    throw InputError(scenario.file, error.message(), error.hint());
  }
}

void write_file(const std::string& input, const std::string& path, const std::string& text) {
  refuse_as_output(input, path);
  stop_if_asked();
  Output output(path);
  output.write(text);
  output.finish();
}

void require_few(const std::string& file, const Schedule& schedule) {
  if (schedule.actors <= max_ranks_shown) return;
  throw InputError(
      file, fmt::format("expected at most {} ranks and helpers to show, found {}", max_ranks_shown, schedule.actors),
      "try --set topology.ranks=8");
}

/// An output for a schedule, with all sizes that share it. Points that differ only in size or in the network model
/// often have the same schedule, which is then printed once.
struct Said {
  std::string name, text;
  std::vector<std::string> sizes;
};
void say_once(const Shown& shown, std::string text, std::vector<Said>& all) {
  auto same = std::find_if(all.begin(), all.end(),
                           [&](const Said& each) { return each.name == shown.name && each.text == text; });
  if (same == all.end()) same = all.insert(all.end(), {shown.name, std::move(text), {}});
  std::vector<std::string>& sizes = same->sizes;
  if (!shown.size.empty() && std::find(sizes.begin(), sizes.end(), shown.size) == sizes.end())
    sizes.push_back(shown.size);
}

int execute(const ShowArguments& arguments) {
  std::vector<Said> all;
  return for_each_schedule(
      arguments,
      [&](const Shown& shown) {
        const Schedule& schedule = shown.checked.schedule();
        require_few(arguments.scenario, schedule);
        const std::string ring = shown.ring.empty() ? "" : wrapped("ring: " + shown.ring) + '\n';
        say_once(shown, ring + (arguments.picture ? schedule_picture(schedule) : schedule_table(schedule)), all);
        return std::string();
      },
      [&] {
        std::string text;
        constexpr std::size_t most_listed = 4;
        for (const Said& each : all) {
          const std::string sizes = each.sizes.size() > most_listed ? fmt::format("{} sizes", each.sizes.size())
                                                                    : fmt::format("{}", fmt::join(each.sizes, ", "));
          text += fmt::format("{}{}{}{}\n{}", text.empty() ? "" : "\n", each.name, sizes.empty() ? "" : ", ", sizes,
                              each.text);
        }
        return text;
      });
}

int prove(const ShowArguments& arguments) {
  std::vector<Said> all;
  return for_each_schedule(
      arguments,
      [&](const Shown& shown) {
        say_once(shown, to_string(shown.checked.proof()), all);
        return std::string();
      },
      [&] {
        std::string text;
        for (const Said& each : all)
          text += wrapped(fmt::format("{}{}: proved; {}", each.name,
                                      each.sizes.size() > 1 ? fmt::format(", {} sizes", each.sizes.size())
                                      : each.sizes.empty()  ? ""
                                                            : ", " + each.sizes.front(),
                                      each.text)) +
                  '\n';
        return text;
      });
}

/// Draws the first point.
int draw(const PictureArguments& arguments) {
  refuse_as_output(arguments.show.scenario, arguments.output);
  refuse_to_replace(arguments.output, arguments.force);
  const ScenarioText input = read_input(arguments.show.scenario, "a scenario or a schedule file");
  Warnings warnings;
  const auto drawn = [&](const CheckedSchedule& checked, const std::string& name) {
    require_few(input.name, checked.schedule());
    return schedule_svg(checked.schedule(), name);
  };
  std::string picture;
  if (is_schedule(input.text)) {
    if (!arguments.show.set.empty())
      throw InputError("--set", "expected this option only with a scenario, found a schedule file: " + input.name);
    const FromFile file = read_file(input.name, input.text, warnings);
    picture = drawn(file.checked, file.title());
  } else {
    const Scenario scenario = first_point(ScenarioFile::parse(input.text, input.name, arguments.show.set));
    const CheckedSchedule checked =
        while_saying("proving the schedule", [&] { return schedule_of(scenario, &stop_requested); });
    picture = drawn(checked, fmt::format("{}, {}", title(scenario), format(scenario.main().request.bytes)));
  }
  stop_if_asked();
  write_picture(arguments.output, picture);
  return good;
}

int execute(const ImportScheduleArguments& arguments) {
  Warnings warnings;
  const std::string text = scenarios::read_text(arguments.file, "a schedule file");
  if (arguments.sends_in_turn && !is_goal(text))
    warnings.say({arguments.file +
                  ": --sends-in-turn has no effect: the file is not in GOAL format, and it already orders its sends"});
  const FromFile file = read_file(arguments.file, text, warnings, {.sends_in_turn = arguments.sends_in_turn});
  say(fmt::format("ringsim: {}: proved; {}\n", file.title(), to_string(file.checked.proof())));
  write_file(arguments.file, arguments.output, export_json(*file.stored));
  return good;
}

int execute(const ExportScheduleArguments& arguments) {
  const ScenarioFile file = load_scenario(arguments.scenario, arguments.set);
  write_file(arguments.scenario, arguments.output, schedule_as(first_point(file), arguments.to));
  return good;
}

}  // namespace

Command schedule_command() {
  return {.name = "schedule",
          .group = Group::look,
          .summary = "Show, prove, import and export schedules",
          .example = "ringsim schedule check scenarios/star.json",
          .details = "",
          .prepare = {}};
}

Command schedule_show_command() {
  return {.name = "schedule show",
          .group = Group::look,
          .summary = "Show step by step what each rank sends, and to which rank",
          .example = "ringsim schedule show scenarios/star.json --set topology.ranks=4 --picture",
          .details = "",
          .prepare = with<ShowArguments>(declare, execute)};
}

Command schedule_picture_command() {
  return {.name = "schedule picture",
          .group = Group::look,
          .summary = "Draw step by step which chunks go where (SVG, PNG)",
          .example = "ringsim schedule picture scenarios/star.json --set topology.ranks=4 -o ring.svg",
          .details =
              "Draws one panel per step, for up to 16 ranks and 32 steps. A step contains the messages that would be "
              "sent at the same time if all messages took equally long. `schedule show --picture` prints a similar "
              "grid as text, with the steps of each rank. If the scenario has several points, the first is drawn; "
              "choose another with --set.",
          .prepare = with<PictureArguments>(declare, draw)};
}

Command schedule_check_command() {
  return {.name = "schedule check",
          .group = Group::look,
          .summary = "Prove that schedules implement their collectives",
          .example = "ringsim schedule check scenarios/star.json",
          .details = "Prints one line for each distinct schedule.",
          .prepare = with<ShowArguments>(declare_scenario_or_schedule, prove)};
}

Command schedule_import_command() {
  return {.name = "schedule import",
          .group = Group::look,
          .summary = "Convert MSCCL XML, MSCCL++, GOAL or JSON to ringsim JSON, with a proof",
          .example = "ringsim schedule import allreduce.xml -o allreduce.json",
          .details = "",
          .prepare = with<ImportScheduleArguments>(declare, execute)};
}

Command schedule_export_command() {
  return {.name = "schedule export",
          .group = Group::look,
          .summary = "Write the schedule of a scenario for other programs",
          .example = "ringsim schedule export scenarios/star.json --to msccl -o ring.xml",
          .details = "If the scenario has several points, the first is written; choose another with --set.",
          .prepare = with<ExportScheduleArguments>(declare, execute)};
}

}  // namespace ringsim::tools
