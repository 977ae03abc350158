#include "tools/explanations/training_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "tools/output/page.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

namespace {

constexpr const char* training_introduction = R"(# Published training figures compared with predictions

`ringsim scorecard --training validate/measured/training_figures --format markdown` prints this page, and a test checks that it is up to date.
[published.csv](../../validate/measured/training_figures/published.csv) lists the figures as printed in their sources. The machines and regimes that
are assumed for them are in [mapping.json](../../validate/measured/training_figures/mapping.json) and at the end of this page.

In each group, the row with the fewest GPUs (usually one) is an input. Its step is assumed to consist of computation only, which is divided among the
layers by their multiply-adds, with a backward pass twice as long as the forward pass. The two GPUs of a K80 board share its power, so all models lose
4 to 9 % from one to two GPUs, regardless of the exchange. Therefore, if a table for K80 has a row with two GPUs, that row is the input. No other
number in the table is used, and nothing is fitted. The error is predicted step / published step - 1. Efficiencies are relative to the row with the
fewest GPUs.

The first predictions of these rows had a median error of 11.8 % and a 90th percentile of 17.2 %. After that, three properties of Horovod and NCCL 1
were taken from their source code: the time at which gradients are requested, the rule that a collective waits for all kernels launched before it, and
the order in which NCCL 1 connects GPUs. The decision to use the row of a full board as input was also made at that point. No number was tuned.

Hooks, launches, the slowdown of kernels during a collective, jitter and data loading are not modeled, because no source specifies them. The collectives
are textbook algorithms (protocol none, no launch time), not the ones that `library` would choose.

- **ringsim** simulates the regime on the machine, message by message, including the overlap with the backward pass.
- **perfect scaling** is the step time of the input row.
- **no overlap** is that step time plus the time of the textbook ring, 2(K-1)(a + p/(K b)), with a and b of the same machine.

Only rows with an efficiency below 90 % are scored. The other rows are shown but not scored, because even perfect scaling is within 10 % of their
published steps. If the two simple models are within 5 % of each other, the row hardly distinguishes between models, and the column "informative" says
"no".
)";

std::string percent_cell(double share) { return fmt::format("{:+.1f}", 100 * share); }

std::string errors_cell(const std::optional<ErrorBand>& band) {
  return band ? fmt::format("{:.1f} / {:.1f}", 100 * band->median_abs, 100 * band->p90_abs) : "-";
}

/// How ringsim stands next to the two simple models, by the median; equal: within 0.1 %.
std::string verdict(const TrainingScore& score, const std::string& family, bool only_counting) {
  const double own = band_of(score, StepModel::ringsim, family, only_counting)->median_abs;
  const auto stands = [&](StepModel other) {
    const double difference = own - band_of(score, other, family, only_counting)->median_abs;
    return difference < -0.001 ? "better than" : difference > 0.001 ? "worse than" : "as good as";
  };
  const std::string perfect = stands(StepModel::perfect), ring = stands(StepModel::ring);
  if (perfect == ring) return perfect + " both";
  return fmt::format("{} {}, {} {}", perfect, to_string(StepModel::perfect), ring, to_string(StepModel::ring));
}

std::vector<std::vector<std::string>> family_rows(const TrainingScore& score, bool only_counting) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> names = families_of(score);
  names.emplace_back("");
  for (const std::string& family : names) {
    const auto own = band_of(score, StepModel::ringsim, family, only_counting);
    if (!own) continue;
    rows.push_back(
        {family.empty() ? "all" : family, fmt::to_string(own->rows), errors_cell(own), percent_cell(own->median_signed),
         errors_cell(band_of(score, StepModel::perfect, family, only_counting)),
         errors_cell(band_of(score, StepModel::ring, family, only_counting)), verdict(score, family, only_counting)});
  }
  return rows;
}

std::vector<std::string> figure_cells(const ScoredFigure& each) {
  return {each.family,
          each.row.model,
          fmt::to_string(each.row.batch),
          fmt::to_string(each.row.gpus),
          fmt::format("{:.1f}", each.compute / 1e3),
          fmt::format("{:.1f}", each.published / 1e3),
          fmt::format("{:.1f}", each.of(StepModel::ringsim) / 1e3),
          percent_cell(each.error(StepModel::ringsim)),
          fmt::format("{:.1f}", (each.published - each.compute) / 1e3),
          fmt::format("{:.1f}", (each.of(StepModel::ringsim) - each.compute) / 1e3),
          fmt::format("{:.1f}", 100 * each.efficiency()),
          fmt::format("{:.1f}", 100 * each.alone / each.of(StepModel::ringsim)),
          percent_cell(each.error(StepModel::perfect)),
          percent_cell(each.error(StepModel::ring)),
          each.tells() ? "yes" : "no"};
}

const std::vector<std::string> figure_head{"machine and regime",
                                           "model",
                                           "batch",
                                           "GPUs",
                                           "compute ms",
                                           "published ms",
                                           "predicted ms",
                                           "error %",
                                           "overhead ms",
                                           "predicted overhead ms",
                                           "efficiency %",
                                           "predicted %",
                                           "perfect scaling %",
                                           "no overlap %",
                                           "informative"};

std::vector<std::vector<std::string>> figure_rows(const TrainingScore& score, bool counting) {
  std::vector<std::vector<std::string>> rows;
  for (const ScoredFigure& each : score.rows)
    if (each.counts() == counting) rows.push_back(figure_cells(each));
  return rows;
}

/// Rows that count and are off by more than the goal's median.
std::vector<std::vector<std::string>> miss_rows(const TrainingScore& score) {
  std::vector<std::vector<std::string>> rows;
  for (const ScoredFigure& each : score.rows)
    if (each.counts() && std::abs(each.error(StepModel::ringsim)) > goal_median)
      rows.push_back({fmt::format("{} on {} GPUs, {}", each.row.model, each.row.gpus, each.family),
                      percent_cell(each.error(StepModel::ringsim)), each.bottleneck.empty() ? "-" : each.bottleneck,
                      each.missing.empty() ? "not investigated" : each.missing});
  return rows;
}

std::size_t n_unmapped(const TrainingScore& score) {
  std::size_t n = 0;
  for (const UnmappedFigures& each : score.unmapped) n += each.where.size();
  return n;
}

std::string file_of_line(const std::string& where) { return where.substr(where.find_last_of('/') + 1); }

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "\"" : " \"") + word + '"';
  return text;
}

/// What was assumed, by entry of the mapping.
void assumptions(Page& page, const TrainingMap& map) {
  page.heading("Assumed machines and regimes");
  std::vector<std::vector<std::string>> rows;
  for (const TrainingMachine& each : map.machines)
    rows.push_back({"machine " + listed(each.words), each.source, each.assumed.empty() ? "-" : each.assumed});
  for (const TrainingWay& each : map.ways)
    rows.push_back({"regime " + listed(each.words), each.source, each.assumed.empty() ? "-" : each.assumed});
  page.table({"wording of the row", "source", "assumptions"}, rows);
}

std::string training_page(const TrainingScore& score, const TrainingMap& map, bool markdown) {
  Page page(markdown);
  if (markdown) page.lines(training_introduction);
  const auto counting =
      std::count_if(score.rows.begin(), score.rows.end(), [](const ScoredFigure& each) { return each.counts(); });
  page.lines(
      fmt::format("Of {} rows, {} are inputs and {} are predicted. Of the predicted rows, {} (those below {:.0f} % "
                  "efficiency) are scored. {} rows are not mapped.",
                  score.rows.size() + score.inputs.size() + n_unmapped(score), score.inputs.size(), score.rows.size(),
                  counting, 100 * efficiency_that_counts, n_unmapped(score)));
  if (const auto all = band_of(score, StepModel::ringsim, "", true))
    page.lines(
        fmt::format("The goal is a median of {:.0f} % and a 90th percentile of {:.0f} %. The result is {:.1f} % and "
                    "{:.1f} %, which {} the goal.",
                    100 * goal_median, 100 * goal_p90, 100 * all->median_abs, 100 * all->p90_abs,
                    all->median_abs <= goal_median && all->p90_abs <= goal_p90 ? "meets" : "misses"));
  const std::vector<std::string> head{
      "machine and regime", "rows",      "ringsim, median / p90 %", "bias %", "perfect scaling %",
      "no overlap %",       "ringsim is"};
  for (const bool only_counting : {true, false}) {
    const auto rows = family_rows(score, only_counting);
    if (rows.empty()) continue;
    page.heading(only_counting ? "By family: scored rows" : "By family: all rows");
    page.table(head, rows);
  }
  if (const auto rows = figure_rows(score, true); !rows.empty()) {
    page.heading("Scored rows");
    page.table(figure_head, rows);
  }
  if (const auto rows = miss_rows(score); !rows.empty()) {
    page.heading("Suspected causes of errors above 4 %");
    page.table({"row", "error %", "ringsim's bottleneck", "cause (inferred, not proved)"}, rows);
  }
  if (const auto rows = figure_rows(score, false); !rows.empty()) {
    page.heading("Rows that are not scored");
    page.table(figure_head, rows);
  }
  if (!score.unmapped.empty()) {
    page.heading("Rows that are not mapped");
    std::vector<std::vector<std::string>> rows;
    for (const UnmappedFigures& each : score.unmapped)
      rows.push_back({each.reason, fmt::to_string(each.where.size()), file_of_line(each.where.front())});
    page.table({"reason", "rows", "first row"}, rows);
  }
  if (markdown) assumptions(page, map);
  return page.text();
}

Json figure_json(const ScoredFigure& each) {
  return {{"where", file_of_line(each.row.where)},
          {"machine", each.row.machine},
          {"regime", each.row.regime},
          {"model", each.row.model},
          {"batch", each.row.batch},
          {"gpus", each.row.gpus},
          {"compute_us", each.compute},
          {"compute_from", file_of_line(each.input)},
          {"one_gpu_us", each.alone},
          {"published_us", each.published},
          {"predicted_us", each.of(StepModel::ringsim)},
          {"perfect_scaling_us", each.of(StepModel::perfect)},
          {"no_overlap_us", each.of(StepModel::ring)},
          {"error", each.error(StepModel::ringsim)},
          {"efficiency", each.efficiency()},
          {"counts", each.counts()},
          {"tells", each.tells()},
          {"bottleneck", each.bottleneck},
          {"missing", each.missing}};
}

std::string training_csv(const TrainingScore& score) {
  std::string text;
  for (const ScoredFigure& each : score.rows) {
    const Json row = figure_json(each);
    std::vector<std::string> head, cells;
    for (const auto& [key, value] : row.items()) {
      head.push_back(key);
      cells.push_back(value.is_string() ? value.get<std::string>() : json_text(value));
    }
    if (text.empty()) text = csv_line(head);
    text += csv_line(cells);
  }
  return text;
}

Json bands_json(const TrainingScore& score, const std::string& family, bool only_counting) {
  Json bands = Json::object();
  for (const StepModel model : step_models)
    if (const auto band = band_of(score, model, family, only_counting))
      bands[std::string(to_string(model))] = {
          {"rows", band->rows}, {"median", band->median_abs}, {"p90", band->p90_abs}, {"bias", band->median_signed}};
  return bands;
}

std::string training_json(const TrainingScore& score) {
  Json out{{"rows", Json::array()}, {"families", Json::array()}, {"not_mapped", Json::array()}};
  for (const ScoredFigure& each : score.rows) out["rows"].push_back(figure_json(each));
  std::vector<std::string> names = families_of(score);
  names.emplace_back("");
  for (const std::string& family : names)
    out["families"].push_back({{"name", family.empty() ? "all" : family},
                               {"counting", bands_json(score, family, true)},
                               {"all_rows", bands_json(score, family, false)}});
  for (const UnmappedFigures& each : score.unmapped) {
    Json lines = Json::array();
    for (const std::string& where : each.where) lines.push_back(file_of_line(where));
    out["not_mapped"].push_back({{"because", each.reason}, {"rows", lines}});
  }
  return json_text(out, 2) + "\n";
}

}  // namespace

std::string training_text(const TrainingScore& score, const TrainingMap& map, ScorecardFormat format) {
  switch (format) {
    case ScorecardFormat::table:
      return training_page(score, map, false);
    case ScorecardFormat::markdown:
      return training_page(score, map, true);
    case ScorecardFormat::csv:
      return training_csv(score);
    case ScorecardFormat::json:
      return training_json(score);
    case ScorecardFormat::limits:
      break;
  }
  fail_invariant("a scorecard is written in one of four formats");
}

}  // namespace ringsim::tools
