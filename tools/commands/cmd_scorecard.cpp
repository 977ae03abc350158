// ringsim scorecard: every published table against what is predicted for its machine; published figures of training.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/decoder/files.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/explanations/plan_text.hpp"
#include "tools/explanations/scorecard_text.hpp"
#include "tools/explanations/training_text.hpp"
#include "tools/memory.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/points.hpp"
#include "tools/sweep/workers.hpp"
#include "validate/measured/plan_figures.hpp"
#include "validate/score/plan_score.hpp"
#include "validate/score/score_limits.hpp"
#include "validate/score/scorecard.hpp"
#include "validate/score/training_score.hpp"

namespace ringsim::tools {

namespace {

struct ScorecardArguments {
  std::string folder;    ///< of tables and their scenarios; empty: those of the library
  std::string training;  ///< folder of published figures of training; empty: tables of collectives
  std::optional<ScorecardFormat> said_format;
  ScorecardFormat format = ScorecardFormat::table;  ///< `said_format`, or what the ending of `output` says
  std::string output;                               ///< a file; empty or "-": stdout
  int jobs = 0;                                     ///< points at a time; 0: one per core
  ScoreOptions score;
  std::optional<PlanInput> input;  ///< of plans; none: group
  std::string limits;              ///< a file of allowed errors; empty: none

  void settle() {
    using F = ScorecardFormat;
    format = format_by_ending(output, said_format, F::table,
                              {{".csv", F::csv}, {".json", F::json}, {".json", F::limits}, {".md", F::markdown}});
  }
};

void declare(Options& options, ScorecardArguments& scorecard) {
  Option& folder = options.argument("FOLDER", scorecard.folder,
                                    "a folder of measured tables (ID.csv) and their scenarios (ID.json)");
  folder.required = false;
  folder.file = true;
  folder.fallback = "the bundled tables in validate/measured/tables";
  options
      .choice<ScorecardFormat>("--format",
                               {{"table", ScorecardFormat::table},
                                {"csv", ScorecardFormat::csv},
                                {"json", ScorecardFormat::json},
                                {"markdown", ScorecardFormat::markdown},
                                {"limits", ScorecardFormat::limits}},
                               scorecard.said_format,
                               "the format of the results; csv: all rows with the predictions of all models; json: "
                               "only with --training; limits: a file for --limits")
      .fallback = "table";
  options.file("--training", "DIR", scorecard.training,
               "score published training figures instead: DIR/published.csv, with any machines and regimes that the "
               "bundled mapping lacks in DIR/mapping.json, and all tables of large-model plans, DIR/*.csv, with model "
               "cards in DIR/models.json; DIR can also be one such table");
  options
      .choice<PlanInput>("--input",
                         {{"group", PlanInput::group}, {"first", PlanInput::first}, {"none", PlanInput::none}},
                         scorecard.input,
                         "plans: for each model, GPU and precision, the input row, which is not scored and determines "
                         "the share of matrix products; group: the row with the most FLOP/s; first: the first row; "
                         "none: no row, use the fitted shares of the GPU")
      .fallback = "group";
  options.changes("--set", scorecard.score.set,
                  "change every scenario; keys below library change only the library column, and with --training only "
                  "the predictions of ringsim are affected, for example by training.slowdown=1.03");
  options.flag("--only-library", scorecard.score.only_library,
               "skip predictions without a library, which take most of the time");
  options.flag("--launch-given", scorecard.score.launch_given,
               "for the library column, fit the launch time to the three smallest scored rows, up to 64 KiB, of each "
               "table; these rows are then not scored");
  options.file("--limits", "FILE", scorecard.limits,
               "exit with 1 if a size band in the library column is worse than FILE allows");
  options.output(scorecard.output);
  options.jobs(scorecard.jobs);
}

/// The predictions of all points of a file, so many at a time.
PredictAll predict_with(int jobs) {
  return [jobs](const ScenarioFile& file) {
    std::vector<Prediction> predictions;
    predict_points(file, jobs, /*fold=*/true,
                   [&](Result&& result) { predictions.push_back(std::move(result.prediction)); });
    return predictions;
  };
}

PlanScore score_plans_of(const PlanFigures& figures, const ScorecardArguments& arguments) {
  PlanScoreOptions options{.input = arguments.input.value_or(PlanInput::group),
                           .set = arguments.score.set,
                           .stop = &stop_requested,
                           .max_memory = memory_limit(),
                           .for_each = {}};
  options.for_each = [&](const std::string& what, std::size_t n, const std::function<void(std::size_t)>& work) {
    ProgressLine progress(n);
    progress.now(what);
    for_each_index(n, arguments.jobs, [&](std::size_t i) {
      work(i);
      progress.add(1.0);
      return true;
    });
  };
  return score_plans(figures, options);
}

int execute_training(const ScorecardArguments& arguments) {
  if (!arguments.folder.empty()) throw UsageError("", "FOLDER cannot be combined with --training");
  const auto alone = [](const char* option) {
    throw UsageError("", std::string(option) + " cannot be combined with --training");
  };
  if (arguments.format == ScorecardFormat::limits) alone("--format limits");
  if (!arguments.limits.empty()) alone("--limits");
  if (arguments.score.only_library) alone("--only-library");
  if (arguments.score.launch_given) alone("--launch-given");
  const std::filesystem::path folder(arguments.training);
  const PlanFigures plans = plan_figures_in(arguments.training);
  std::error_code none;
  const bool has_figures = plans.rows.empty() || std::filesystem::exists(folder / "published.csv", none);
  if (has_figures && !plans.rows.empty() && arguments.format == ScorecardFormat::csv)
    throw UsageError("--format",
                     "expected a format other than csv, because the folder has both published.csv and tables of plans",
                     "give a single table of plans instead of the folder");
  for (const std::string& input : plans.tables) refuse_as_output(input, arguments.output);
  for (const char* input : {"published.csv", "mapping.json", "models.json"})
    refuse_as_output((folder / input).string(), arguments.output);
  std::optional<TrainingFigures> figures;
  if (has_figures) figures = training_figures_in(arguments.training);
  Output output(arguments.output);
  Json all = Json::object();
  if (figures) {
    const TrainingScore scored =
        score_training(*figures, bundled_training().rows, predict_with(arguments.jobs), arguments.score.set);
    if (plans.rows.empty() || arguments.format != ScorecardFormat::json)
      output.write(training_text(scored, figures->map, arguments.format));
    else
      all = parse_json(training_text(scored, figures->map, arguments.format), "figures");
  }
  if (!plans.rows.empty()) {
    const PlanScore scored = score_plans_of(plans, arguments);
    if (figures && arguments.format == ScorecardFormat::json) {
      all["plans"] = plan_json(scored);
      output.write(json_text(all, 2) + "\n");
    } else {
      output.write(plan_text(scored, arguments.format));
    }
    if (arguments.format == ScorecardFormat::csv)
      for (const std::string& note : scored.notes) say("ringsim: " + note + '\n');
  }
  output.finish();
  return good;
}

/// Says how the tables differ from the limits; the exit code.
int verdict_on_limits(const std::vector<ScoredTable>& scored, const std::vector<ScoreLimit>& limits,
                      const std::string& file) {
  const LimitCheck check = check_limits(score_limits_of(scored), limits);
  const auto list = [](const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += "  " + line + '\n';
    return text;
  };
  if (!check.better.empty())
    say(fmt::format(
        "ringsim: better than {} requires; to tighten the limits, run: ringsim scorecard --format limits -o {}\n{}",
        file, file, list(check.better)));
  if (check.worse.empty()) return good;
  say(fmt::format(
      "ringsim: worse than {} allows, by more than {} percentage points; if this is acceptable or the tables have "
      "changed, update the limits and state the reason in that commit: ringsim scorecard --format limits -o {}\n{}",
      file, limit_tolerance, file, list(check.worse)));
  return check_failed;
}

int execute(const ScorecardArguments& arguments) {
  if (!arguments.training.empty()) return execute_training(arguments);
  if (arguments.format == ScorecardFormat::json)
    throw UsageError("--format", "expected table, csv, markdown or limits without --training, found json");
  if (arguments.score.launch_given && (arguments.format == ScorecardFormat::limits || !arguments.limits.empty()))
    throw UsageError("", "--launch-given cannot be combined with --limits and --format limits",
                     "limits apply to predictions that use no measured row");
  const std::vector<PublishedTable> published =
      arguments.folder.empty() ? published_tables() : tables_in(arguments.folder);
  for (const PublishedTable& each : published)
    for (const std::string& input : {each.csv_file, each.scenario_file})
      if (!arguments.folder.empty() && !input.empty()) refuse_as_output(input, arguments.output);
  std::vector<ScoreLimit> limits;
  if (!arguments.limits.empty()) {
    refuse_as_output(arguments.limits, arguments.output);
    limits = read_score_limits(scenarios::read_text(arguments.limits, "a limits file"), arguments.limits);
  }
  Output output(arguments.output);
  const PredictAll predict_all = predict_with(arguments.jobs);
  std::vector<ScoredTable> scored;
  for (const PublishedTable& each : published) scored.push_back(score(each, predict_all, arguments.score));
  for (const ScoredTable& each : scored) Warnings().say(each.warnings);
  output.write(scorecard_text(scored, arguments.format, arguments.score.launch_given));
  output.finish();
  return limits.empty() ? good : verdict_on_limits(scored, limits, arguments.limits);
}

}  // namespace

Command scorecard_command() {
  return {.name = "scorecard",
          .group = Group::check,
          .summary = "Compare predictions with all bundled measurements",
          .example = "ringsim scorecard --format csv -o scorecard.csv",
          .details = "",
          .prepare = with<ScorecardArguments>(declare, execute)};
}

}  // namespace ringsim::tools
