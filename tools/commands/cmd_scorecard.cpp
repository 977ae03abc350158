// ringsim scorecard: every published table against what is predicted for its machine.
#include <vector>

#include "tools/commands/commands.hpp"
#include "tools/output/output.hpp"
#include "tools/output/scorecard_text.hpp"
#include "tools/output/warnings.hpp"
#include "tools/sweep/points.hpp"
#include "validate/score/scorecard.hpp"

namespace ringsim::tools {

int scorecard_command(const ScorecardArguments& arguments) {
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

}  // namespace ringsim::tools
