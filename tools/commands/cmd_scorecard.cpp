// ringsim scorecard: every published table against what is predicted for its machine; published figures of training.
#include <filesystem>
#include <string>
#include <vector>

#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/scorecard_text.hpp"
#include "tools/output/training_text.hpp"
#include "tools/output/warnings.hpp"
#include "tools/sweep/points.hpp"
#include "validate/score/scorecard.hpp"
#include "validate/training/training_score.hpp"

namespace ringsim::tools {

namespace {

struct ScorecardArguments {
  std::string folder;    ///< of tables and their scenarios; empty: those of the library
  std::string training;  ///< folder of published figures of training; empty: tables of collectives
  ScorecardFormat format = ScorecardFormat::table;
  std::string output;  ///< a file; empty or "-": stdout
  int jobs = 0;        ///< points at a time; 0: one per core
};

void declare(Options& options, ScorecardArguments& scorecard) {
  Option& folder =
      options.argument("FOLDER", scorecard.folder, "measured tables, ID.csv, and their scenarios, ID.json");
  folder.required = false;
  folder.file = true;
  folder.fallback = "the bundled ones, validate/measured/tables";
  options
      .choice<ScorecardFormat>(
          "--format",
          {{"table", ScorecardFormat::table},
           {"csv", ScorecardFormat::csv},
           {"json", ScorecardFormat::json},
           {"markdown", ScorecardFormat::markdown}},
          scorecard.format,
          "format of the results; csv: every row with every model's prediction; json: --training only")
      .fallback = "table";
  options.file("--training", "DIR", scorecard.training,
               "score published figures of training instead: DIR/published.csv, and what its machines and regimes are, "
               "DIR/mapping.json, where the bundled mapping does not say it");
  options.output(scorecard.output);
  options.jobs(scorecard.jobs);
}

int execute_training(const ScorecardArguments& arguments) {
  if (!arguments.folder.empty()) throw UsageError("--training", "expected either FOLDER or --training, found both");
  const TrainingFigures figures = training_figures_in(arguments.training);
  const std::filesystem::path folder(arguments.training);
  for (const char* input : {"published.csv", "mapping.json"})
    refuse_as_output((folder / input).string(), arguments.output);
  Output output(arguments.output);
  const PredictSteps predict_steps = [&](const ScenarioFile& file) {
    std::vector<Prediction> predictions;
    predict_points(file, arguments.jobs, /*fold=*/true,
                   [&](Result&& result) { predictions.push_back(std::move(result.prediction)); });
    return predictions;
  };
  const TrainingScore scored = score_training(figures, bundled_training().rows, predict_steps);
  output.write(training_text(scored, figures.map, arguments.format));
  output.finish();
  return good;
}

int execute(const ScorecardArguments& arguments) {
  if (!arguments.training.empty()) return execute_training(arguments);
  if (arguments.format == ScorecardFormat::json)
    throw UsageError("--format", "expected table, csv or markdown without --training, found json");
  const std::vector<PublishedTable> published =
      arguments.folder.empty() ? published_tables() : tables_in(arguments.folder);
  for (const PublishedTable& each : published)
    for (const std::string& input : {each.csv_file, each.scenario_file})
      if (!arguments.folder.empty() && !input.empty()) refuse_as_output(input, arguments.output);
  Output output(arguments.output);
  const PredictAll predict_all = [&](const ScenarioFile& file) {
    std::vector<Prediction> predictions;
    predict_points(file, arguments.jobs, /*fold=*/true,
                   [&](Result&& result) { predictions.push_back(std::move(result.prediction)); });
    return predictions;
  };
  std::vector<ScoredTable> scored;
  for (const PublishedTable& each : published) scored.push_back(score(each, predict_all));
  output.write(scorecard_text(scored, arguments.format));
  output.finish();
  return good;
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
