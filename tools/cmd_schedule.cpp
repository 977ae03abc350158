// ringsim schedule show|check: who sends what to whom in which step, and the proof that it is right.
#include <fmt/format.h>

#include "scenarios/scenario.hpp"
#include "sim/error.hpp"
#include "sim/quantity.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/warnings.hpp"
#include "validate/predict.hpp"

namespace ringsim::tools {

namespace {

constexpr int max_ranks_shown = 16;

std::string title(const Scenario& scenario) {
  return fmt::format("{} {}, {} ranks, {}", scenario.algorithm->name, to_string(scenario.request.op),
                     scenario.request.ranks, format(scenario.request.bytes));
}

std::string actor_name(const Schedule& schedule, Actor actor) {
  if (actor < schedule.collective.ranks) return fmt::to_string(actor);
  return fmt::format("h{}", actor - schedule.collective.ranks);
}

std::string short_text(const Schedule& schedule, const Op& op) {
  switch (op.what) {
    case Do::send:
      return fmt::format("{} -> {}", to_string(op.region), actor_name(schedule, op.peer));
    case Do::receive:
      return fmt::format("{} <- {}", to_string(op.region), actor_name(schedule, op.peer));
    case Do::receive_add:
      return fmt::format("{} += {}", to_string(op.region), actor_name(schedule, op.peer));
    case Do::copy:
      return fmt::format("{} = {}", to_string(op.region), to_string(op.operand));
    case Do::add:
      return fmt::format("{} += {}", to_string(op.region), to_string(op.operand));
    case Do::compute:
      return fmt::format("compute {}", format(op.time));
  }
  fail_invariant("an operation has one of six names");
}

// Every point's schedule, proved: calls write(point number, scenario, schedule).
template <class Write>
int for_each_schedule(const ShowArguments& arguments, Output& output, Write write) {
  const ScenarioFile file = ScenarioFile::load(arguments.scenario, arguments.set);
  Warnings warnings;
  for (std::size_t i = 0; i < file.size(); ++i) {
    if (stop_requested) throw Interrupted(fmt::format("{} of {} points done", i, file.size()));
    const Scenario scenario = file.point(i);
    warnings.say(scenario.warnings);
    write(i, scenario, schedule_of(scenario, &stop_requested));
  }
  output.finish();
  return good;
}

std::string steps_text(const Schedule& schedule) {
  Table table({"actor", "lane", "step", "operations (-> sends, <- receives, += receives and adds)"});
  Step step;
  for (Actor actor = 0; actor < schedule.actors; ++actor) {
    for (Lane lane = 0; lane < schedule.lanes; ++lane) {
      for (int s = 0; s < schedule.n_steps(actor, lane); ++s) {
        step.clear();
        schedule.step(actor, lane, s, step);
        std::string text;
        for (const Op& op : step.ops) text += (text.empty() ? "" : ", ") + short_text(schedule, op);
        for (const Wait& wait : step.waits) text += fmt::format(" (after step {} of lane {})", wait.steps, wait.lane);
        table.add({actor_name(schedule, actor), fmt::to_string(lane), fmt::to_string(s), text});
      }
    }
  }
  return table.text();
}

}  // namespace

int schedule_show_command(const ShowArguments& arguments) {
  Output output;
  return for_each_schedule(
      arguments, output, [&](std::size_t i, const Scenario& scenario, const CheckedSchedule& checked) {
        const Schedule& schedule = checked.schedule();
        if (schedule.actors > max_ranks_shown)
          throw InputError(
              arguments.scenario,
              fmt::format("expected at most {} ranks and helpers to show, found {}", max_ranks_shown, schedule.actors),
              "try --set topology.ranks=8");
        output.write(fmt::format("{}{}\n", i == 0 ? "" : "\n", title(scenario)));
        if (const std::string ring = ring_order_of(scenario); !ring.empty())
          output.write(fmt::format("ring: {}\n", ring));
        output.write(steps_text(schedule));
      });
}

int schedule_check_command(const ShowArguments& arguments) {
  Output output;
  return for_each_schedule(arguments, output,
                           [&](std::size_t, const Scenario& scenario, const CheckedSchedule& checked) {
                             output.write(fmt::format("{}: proved; {}\n", title(scenario), to_string(checked.proof())));
                           });
}

}  // namespace ringsim::tools
