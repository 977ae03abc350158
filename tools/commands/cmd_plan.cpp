// ringsim plan: the fastest way to divide a model among GPUs.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/explanations/best_plans_text.hpp"
#include "tools/formats/own_files.hpp"
#include "tools/formats/result_text.hpp"
#include "tools/memory.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/workers.hpp"

namespace ringsim::tools {

namespace {

struct PlanArguments {
  std::string scenario;
  std::vector<std::string> set;
  int top = 10;
  double within = 0.05;
  int messages = 15'000'000;
  bool simulate = true;
  bool free = false;
  std::optional<Format> said_format;
  Format format = Format::table;  ///< `said_format`, or what the ending of `output` says
  std::string output;             ///< a file; empty or "-": stdout
  bool force = false;
  int jobs = 0;

  void settle() { format = format_by_ending(output, said_format, Format::table, result_endings()); }
};

constexpr int most_top = 100'000;
constexpr int most_simulated = 2'000'000'000;

void declare(Options& options, PlanArguments& plan) {
  options.scenario(plan.scenario, plan.set);
  options.flag("--free", plan.free, "also search the keys that training.parallel fixes");
  options.whole("--top", "N", 1, most_top, plan.top, "plans to show").fallback = "10";
  options
      .percentage(
          "--within", [&](double share) { plan.within = share; },
          "simulate plans whose bound is at most that much above the fastest")
      .fallback = "5%";
  options
      .whole("--messages", "N", 1, most_simulated, plan.messages,
             "list a plan with its bound if its simulation takes more messages, one by one")
      .fallback = "15000000";
  options.flag("--bounds", plan.simulate, "simulate nothing: rank plans by lower bounds", false);
  options.format(plan.said_format, "; the table says what became of the other plans");
  options.output(plan.output);
  options.flag("--force", plan.force, "let -o replace a file that holds something other than results");
  options.jobs(plan.jobs);
  options.max_memory();
}

/// Progress of stages that follow each other, as one line each.
class Stages {
 public:
  void say(const std::string& stage, double done) {
    if (done == 0) {
      line_.emplace(1);
      line_->now(stage);
      last_ = 0;
    }
    if (!line_) return;
    line_->add(done - last_);
    last_ = done;
    if (done == 1) line_.reset();
  }

 private:
  std::optional<ProgressLine> line_;
  double last_ = 0;
};

int execute(const PlanArguments& arguments) {
  if (!arguments.simulate && arguments.format != Format::table)
    throw UsageError("--bounds", "expected the table, found another format", "rows of results are of simulated plans");
  const ScenarioText input = read_input(arguments.scenario);
  refuse_as_output(arguments.scenario, arguments.output);
  refuse_to_replace(arguments.output, arguments.force);
  const OpenPlans plans(input.text, input.name, arguments.set, arguments.free);
  Output output(arguments.output);
  Stages stages;
  const PlanSearch found = search_plans(
      plans,
      {.top = static_cast<std::size_t>(arguments.top),
       .within = arguments.within,
       .simulate = arguments.simulate,
       .for_each = [&](std::size_t n,
                       const std::function<bool(std::size_t)>& work) { for_each_index(n, arguments.jobs, work); },
       .run = {.stop = &stop_requested, .max_memory = memory_limit(), .most_messages = arguments.messages},
       .progress = [&](const std::string& stage, double done) { stages.say(stage, done); }});
  Warnings warnings;
  std::vector<Result> results;
  for (const RankedPlan& plan : found.ranked) {
    if (!plan.result) continue;
    warnings.say(plan.result->prediction.warnings);
    if (results.size() == static_cast<std::size_t>(arguments.top)) continue;
    results.push_back(*plan.result);
    results.back().prediction.varied = plans.values_of(plan.plan);
  }
  if (found.too_long > 0 && arguments.format != Format::table)
    warnings.say({fmt::format("{}: {}", input.name, too_long_text(found))});
  const std::string scenario = shell_word(arguments.scenario) + set_words("--set", arguments.set);
  output.write(arguments.format == Format::table
                   ? best_plans_text(plans, found, static_cast<std::size_t>(arguments.top), scenario)
                   : report(plans.file(), results, arguments.format, /*explain=*/false));
  output.finish();
  return found.ranked.empty() ? check_failed : good;
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .group = Group::predict,
          .summary = "Find the fastest way to divide a model among GPUs",
          .example = "ringsim plan scenarios/examples/training/plans.json --free",
          .details =
              "training.parallel says what to search. Keys with a value are fixed, and each value of a list "
              "is tried. These keys are searched if they are left out: tensor, pipeline, virtual_pipeline, "
              "expert, expert_tensor, micro_batch_size, shard and recompute. Plans that exceed the memory of "
              "a GPU are left out. The others are ranked by a lower bound on their step time and simulated "
              "best first, until no other plan can be among the --top fastest. Plans that would take very "
              "long to simulate, because hardly any of their collectives repeats another, are listed with "
              "their bounds (--messages). Bounds count kernels, the pipeline and each collective by itself, "
              "not contention on links.\n\nExit code 1: no plan fits.",
          .prepare = with<PlanArguments>(declare, execute)};
}

}  // namespace ringsim::tools
