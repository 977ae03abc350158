// ringsim plan: the fastest way to divide a model among GPUs.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "sim/text/wrap.hpp"
#include "tools/command_line/input.hpp"
#include "tools/command_line/made_scenario.hpp"
#include "tools/command_line/plan_words.hpp"
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
#include "tools/pictures/picture_file.hpp"
#include "tools/reports/best_plans_picture.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/workers.hpp"

namespace ringsim::tools {

namespace {

struct PlanArguments {
  std::string scenario;  ///< a file; with --node a model
  PlanWords words;       ///< but for the model
  std::string save;      ///< a file for the scenario of the words; empty: none
  std::vector<std::string> set;
  int top = 10;
  double within = 0.05;
  int messages = 15'000'000;
  bool simulate = true;
  bool free = false;
  std::optional<Format> said_format;
  Format format = Format::table;  ///< `said_format`, or what the ending of `output` says
  std::string output;             ///< a file; empty or "-": stdout
  std::string picture;            ///< a file; empty: none
  bool force = false;
  int jobs = 0;

  void settle() { format = format_by_ending(output, said_format, Format::table, result_endings()); }
};

constexpr int most_top = 100'000;
constexpr int most_simulated = 2'000'000'000;

constexpr int most_batch = 1'000'000'000;     // as training.workload.global_batch_size
constexpr int most_sequence = 1'000'000'000;  // tokens

void declare(Options& options, PlanArguments& plan) {
  options.scenario(plan.scenario, plan.set).help =
      "a scenario file (JSON), or with --node the name of a model, such as llama3_70b";
  Option& node = options.file("--node", "NAME|FILE", plan.words.machine.node,
                              "search plans for a model on this machine, without a scenario file: dgx-h100, dgx-a100, "
                              "hgx-b200 ... (`ringsim list nodes` lists all), or a file with --like, as in `ringsim "
                              "predict`");
  suggest_machines(node);
  declare_nodes(options, plan.words.machine);
  options.whole("--batch", "N", 1, most_batch, plan.words.batch, "the number of sequences per step, over all GPUs")
      .fallback = "about 4 million tokens";
  options.whole("--sequence", "N", 1, most_sequence, plan.words.sequence, "the number of tokens per sequence")
      .fallback = "as on the model card";
  options
      .file("--save", "FILE", plan.save,
            "write the scenario that corresponds to --node to FILE.json, for `ringsim run`")
      .needs = "--node";
  options.flag("--free", plan.free, "also search over the keys that training.parallel fixes");
  options.whole("--top", "N", 1, most_top, plan.top, "the number of plans to show").fallback = "10";
  options
      .percentage(
          "--within", [&](double share) { plan.within = share; },
          "simulate plans whose bound exceeds the fastest time by at most this much")
      .fallback = "5%";
  options
      .whole("--messages", "N", 1, most_simulated, plan.messages,
             "do not simulate plans that need more than this many individual messages; list them with their bounds")
      .fallback = "15000000";
  options.flag("--bounds", plan.simulate, "do not simulate; rank plans by their lower bounds", false);
  options.format(plan.said_format, "; table also shows what happened to the other plans");
  options.output(plan.output);
  options
      .file("--picture", "FILE", plan.picture, "draw how the step time of each plan is spent, to FILE.svg or FILE.png")
      .take = [&plan](const std::string& path) {
    expect_picture_name(path);
    plan.picture = path;
  };
  options.flag("--force", plan.force, "allow -o to overwrite a file that does not contain results");
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

/// What is searched.
struct Searched {
  std::string text, name;
  std::string words;  ///< as `ringsim run` takes it
  std::optional<MachineScenario> made;
};

Searched searched(const PlanArguments& arguments) {
  if (arguments.words.machine.node.empty()) {
    std::vector<std::pair<std::string, std::string>> given = given_words(arguments.words.machine);
    if (arguments.words.batch != 0) given.emplace_back("--batch", "training.workload.global_batch_size=N");
    if (arguments.words.sequence != 0) given.emplace_back("--sequence", "training.workload.sequence=N");
    if (!given.empty())
      throw UsageError(given.front().first, "expected --node as well, to name the machine",
                       "to change a scenario, use --set " + given.front().second);
    if (is_divisible_model(arguments.scenario) && !std::filesystem::exists(arguments.scenario))
      throw UsageError("--node", fmt::format("expected a machine for {}, found none", arguments.scenario),
                       "such as --node dgx-h100 --nodes 8");
    const ScenarioText input = read_input(arguments.scenario);
    return {input.text, input.name, shell_word(arguments.scenario), std::nullopt};
  }
  if (std::filesystem::is_regular_file(arguments.scenario))
    throw UsageError("--node",
                     fmt::format("expected a model name with this option, found the file {}", arguments.scenario),
                     "a scenario file specifies its own machine; change it with --set topology.node=NAME");
  require_json_name(arguments.save);
  PlanWords words = arguments.words;
  words.model = arguments.scenario;
  words.machine = settled(words.machine);
  for (const std::string& change : arguments.set)
    if (change.starts_with("training.workload.precision="))
      words.fp32 = change.ends_with("=fp32") || change.ends_with("=\"fp32\"");
  MachineScenario made = scenario_of(words);
  const std::string text = json_text(made.document);
  return {text, "ringsim plan", arguments.save.empty() ? "FILE.json" : shell_word(arguments.save), std::move(made)};
}

/// What a plan's scenario is warned of, except of how it is divided: a key may be without effect in this plan alone.
std::vector<std::string> warnings_of(const OpenPlans& plans, std::size_t plan) {
  std::vector<std::string> found = plans.whole(plan).warnings;
  std::erase_if(found, [](const std::string& each) { return each.find("/training/parallel/") != std::string::npos; });
  return found;
}

/// How near such predictions are to measured steps, while the shares are those that they were compared with.
std::string near_text(const std::vector<Assumption>& near) {
  return near.empty() ? "" : "\n" + wrapped("How near: " + near.front().text, 2) + '\n';
}

int execute(const PlanArguments& arguments) {
  if (!arguments.simulate && arguments.format != Format::table)
    throw UsageError("--bounds", "expected the format table, found another one",
                     "only simulated plans have rows of results");
  if (!arguments.simulate && !arguments.picture.empty())
    throw UsageError("--picture", "expected simulated plans, found --bounds", "remove one of the two options");
  const Searched input = searched(arguments);
  if (!input.made) refuse_as_output(arguments.scenario, arguments.output);
  refuse_to_replace(arguments.output, arguments.force);
  if (!input.made) refuse_as_output(arguments.scenario, arguments.picture);
  refuse_as_output(arguments.output, arguments.picture);
  if (is_plain_file(arguments.picture)) const Output probe(arguments.picture);  // so that nothing is searched in vain
  const OpenPlans plans(input.text, input.name, arguments.set, arguments.free);
  Output output(arguments.output);
  if (std::optional<Output> saved = open_saved(arguments.save, arguments.force, {arguments.output}))
    write_saved(*saved, parse_json(with_overrides(input.text, input.name, arguments.set), input.name), arguments.save);
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
  if (!found.ranked.empty()) warnings.say(warnings_of(plans, found.ranked.front().plan));
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
  // The saved scenario has the changes of --set.
  const std::string set = input.made ? "" : set_words("--set", arguments.set);
  std::string text = arguments.format == Format::table
                         ? best_plans_text(plans, found, static_cast<std::size_t>(arguments.top), input.words + set)
                         : report(plans.file(), results, arguments.format, /*explain=*/false);
  if (input.made) {
    const std::vector<Assumption> assumed = assumed_with(input.made->assumptions, arguments.set);
    const std::vector<Assumption> near = assumed_with({input.made->near}, arguments.set);
    if (arguments.format == Format::table)
      text +=
          near_text(near) + assumed_text(assumed) +
          shown_scenario(parse_json(with_overrides(input.text, input.name, arguments.set), input.name), arguments.save,
                         "`ringsim plan`, and, with the options of a plan, for `run` and `explain`");
    else
      note_assumed(assumed);
  }
  output.write(text);
  output.finish();
  if (!arguments.picture.empty()) {
    const std::string svg = best_plans_svg(plans, found, static_cast<std::size_t>(arguments.top));
    if (svg.empty())
      warn(arguments.picture + ": not drawn because no plan was simulated");
    else
      write_picture(arguments.picture, svg);
  }
  if (!found.interrupted.empty()) throw Interrupted(found.interrupted);
  return found.ranked.empty() ? check_failed : good;
}

}  // namespace

Command plan_command() {
  return {
      .name = "plan",
      .group = Group::predict,
      .summary = "Find the fastest way to divide a model among GPUs",
      .example = "ringsim plan llama3_70b --node dgx-h100 --nodes 8 --batch 512",
      .details =
          "training.parallel defines the search space. Keys with a value are fixed; for keys with a list, each value "
          "is tried; and these keys are searched if they are absent: tensor, pipeline, virtual_pipeline, expert, "
          "expert_tensor, micro_batch_size, shard and recompute. Plans that do not fit in GPU memory are left out. The "
          "others are ranked by a lower bound on the step time and simulated best first, until no remaining plan can "
          "be among the --top fastest. Plans that would take very long to simulate, because hardly any of their "
          "collectives repeat, are listed with their bounds (--messages). Bounds cover kernels, the pipeline and each "
          "collective on its own, but not contention on links.\n\nThe exit code is 1 if no plan fits.",
      .prepare = with<PlanArguments>(declare, execute)};
}

}  // namespace ringsim::tools
