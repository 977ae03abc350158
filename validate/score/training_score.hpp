// Published figures of training next to predictions, and to two models that need no simulation.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "validate/measured/measured.hpp"
#include "validate/measured/training_figures.hpp"
#include "validate/score/scorecard.hpp"

namespace ringsim {

/// Who predicts a step.
enum class StepModel : std::uint8_t {
  ringsim,
  perfect,  ///< perfect scaling: the step of one GPU
  ring,     ///< no overlap: that step, then the textbook's ring all-reduce of all gradients
};
inline constexpr std::array step_models = {StepModel::ringsim, StepModel::perfect, StepModel::ring};
std::string_view to_string(StepModel model);

/// Below this efficiency a row counts for the goal: above it perfect scaling is hard to beat.
inline constexpr double efficiency_that_counts = 0.9;
/// The goal for rows that count: |error of the step|, median and 90th percentile.
inline constexpr double goal_median = 0.04, goal_p90 = 0.12;

/// A row with its prediction. Times in us.
struct ScoredFigure {
  TrainingFigure row;
  std::string family;    ///< machine and regime, as the row has them
  std::string input;     ///< where the time of one GPU's step is from: "file:line", and what was borrowed
  double compute = 0;    ///< a step without communication: of the published row that is the input
  double alone = 0;      ///< the step of the published row with the fewest GPUs
  double published = 0;  ///< the step
  std::array<double, step_models.size()> steps{};  ///< [StepModel]
  std::string bottleneck;                          ///< of the prediction; empty: no link
  std::string missing;                             ///< what the model leaves out, if somebody looked
  std::string scenario;                            ///< that was predicted, as JSON

  double of(StepModel model) const { return steps[static_cast<std::size_t>(model)]; }
  double error(StepModel model) const { return of(model) / published - 1; }
  double efficiency() const { return alone / published; }
  bool counts() const { return efficiency() < efficiency_that_counts; }
  /// True if the two simple models differ by more than 5 %, so that the row can tell models apart.
  bool tells() const { return of(StepModel::ring) > 1.05 * of(StepModel::perfect); }
};

/// Rows that cannot be predicted, for one reason.
struct UnmappedFigures {
  std::string reason;  ///< "machine \"X\" is in no mapping"
  std::vector<std::string> where;
};

struct TrainingScore {
  std::vector<ScoredFigure> rows;
  std::vector<std::string> inputs;  ///< [row] the rows that others take their compute time from: file:line
  std::vector<UnmappedFigures> unmapped;
};

/// Predicts every row. Rows of one source, model, batch, precision, machine and regime belong together; the one with
/// the fewest GPUs, of these or of `more` (rows that only serve as inputs), is the input and not scored: its step is
/// taken to be compute. If GPUs share a board, that is the row of one full board, if there is one; rows with
/// fewer GPUs are not predicted. Efficiencies are relative to the row with the fewest GPUs. A group of efficiencies has
/// no rate: it takes that of one GPU from the first row of the same model, batch, precision and GPU. No other number of
/// the table is used. Files that a mapping names are relative to the folder of the rows. Throws InputError, at the row,
/// for a mapping that makes no scenario. `set`: changes of every scenario, as ScenarioFile::parse() takes them; a row
/// whose scenario refuses one (no regime but ddp has hooks) is not mapped.
TrainingScore score_training(const TrainingFigures& figures, std::span<const TrainingFigure> more,
                             const PredictAll& predict_all, const std::vector<std::string>& set = {});

/// The names of the families, in the order of the rows.
std::vector<std::string> families_of(const TrainingScore& score);
/// Errors of a model. `family` empty: of all; `only_counting`: of rows that count. Nothing if there is no row.
std::optional<ErrorBand> band_of(const TrainingScore& score, StepModel model, const std::string& family,
                                 bool only_counting);

/// The scenario of a row, as JSON text. `compute_us`: a step of one GPU. Throws InputError, whose message is the reason
/// why the row is not mapped.
std::string scenario_of(const TrainingFigure& row, const TrainingMap& map, double compute_us);

}  // namespace ringsim
