#include "validate/score/plan_score.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "scenarios/predict/measured_share.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using Status = ScoredPlan::Status;

constexpr double giga = 1e9;

double seconds(Picoseconds time) {
  return static_cast<double>(time.count()) / static_cast<double>(picoseconds_per_second);
}

/// Rows of one group have one share.
auto group_of(const PlanFigure& row) { return std::tie(row.model, row.gpu, row.precision); }

std::string in_words(const InputError& error) {
  std::string text = error.message();
  if (!error.hint().empty()) text += fmt::format(" ({})", error.hint());
  return text;
}

class PlanScorer {
 public:
  PlanScorer(const PlanFigures& figures, const PlanScoreOptions& options) : options_(options) {
    score_.input = options.input;
    score_.notes = figures.notes;
    for (const PlanFigure& row : figures.rows) {
      ScoredPlan& made = score_.rows.emplace_back();
      made.row = row;
      made.reason = inexpressible(row);
      if (made.reason.empty()) made.unmodeled = ringsim::left_out(row);
    }
  }

  PlanScore score() {
    if (options_.input == PlanInput::none)
      take_fitted();
    else
      take_inputs();
    std::vector<ScoredPlan*> open;
    for (ScoredPlan& row : score_.rows)
      if (row.reason.empty() && row.status != Status::input) open.push_back(&row);
    options_.for_each("predicting plans", open.size(), [&](std::size_t i) { predict_row(*open[i]); });
    return std::move(score_);
  }

 private:
  PredictOptions predict_options() const { return {.stop = options_.stop, .max_memory = options_.max_memory}; }

  Scenario scenario_with(const ScoredPlan& row, const PlanShares& shares) const {
    return ScenarioFile::parse(plan_scenario(row.row, shares), row.row.where, options_.set).point(0);
  }

  void take_fitted() {
    for (ScoredPlan& row : score_.rows) {
      if (!row.reason.empty()) continue;
      const FittedShares* shares = fitted_shares_of(row.row);
      if (shares == nullptr) {
        row.reason = fmt::format("no fitted share for {} with {}; --input group uses one of its rows", row.row.gpu,
                                 row.row.precision);
        continue;
      }
      row.shares = stated_shares(row.row);
      row.shares.gemm = shares->gemm;
      row.compute_from = fmt::format("fitted to {}", shares->fitted_to);
      take_simple(row, shares->one, shares->one_bubble);
    }
  }

  /// Steps of models 0 and 1 with their shares of the peak.
  static void take_simple(ScoredPlan& row, double share, double share_with_bubble) {
    row.steps[static_cast<std::size_t>(PlanModelKind::flops)] = at_peak(row.row, false) / share;
    row.steps[static_cast<std::size_t>(PlanModelKind::bubble)] = at_peak(row.row, true) / share_with_bubble;
  }

 public:
  /// The step of model 0 or 1 at the peak.
  static double at_peak(const PlanFigure& row, bool with_bubble) {
    const double step = plan_operations(row) / (peak_of(row) * static_cast<double>(row.gpus));
    if (!with_bubble) return step;
    const double data = static_cast<double>(row.gpus) / static_cast<double>(row.tensor * row.pipeline * row.context);
    const double micro_batches =
        std::max(1.0, static_cast<double>(row.global_batch) / (data * static_cast<double>(row.micro_batch)));
    return step * (1 + static_cast<double>(row.pipeline - 1) / (micro_batches * static_cast<double>(row.chunks)));
  }

 private:
  void take_inputs() {
    std::vector<std::vector<ScoredPlan*>> groups;
    for (ScoredPlan& row : score_.rows) {
      if (!row.reason.empty()) continue;
      const auto found = std::find_if(groups.begin(), groups.end(), [&](const std::vector<ScoredPlan*>& group) {
        return group_of(group.front()->row) == group_of(row.row);
      });
      if (found == groups.end())
        groups.push_back({&row});
      else
        found->push_back(&row);
    }
    std::erase_if(groups, [](const std::vector<ScoredPlan*>& group) {
      if (group.size() == 1)
        group.front()->reason = "the only row with its model, GPU and precision; use --input none to score it";
      return group.size() == 1;
    });
    if (options_.input == PlanInput::group)
      for (std::vector<ScoredPlan*>& group : groups)
        std::stable_sort(group.begin(), group.end(), [](const ScoredPlan* a, const ScoredPlan* b) {
          return at_peak(a->row, false) / a->row.step > at_peak(b->row, false) / b->row.step;
        });
    options_.for_each("solving shares of the peak", groups.size(), [&](std::size_t i) { solve(groups[i]); });
  }

  void solve(const std::vector<ScoredPlan*>& group) const {
    for (ScoredPlan* input : group) {
      input->shares = stated_shares(input->row);
      const auto at = [&](double share) {
        PlanShares shares = input->shares;
        shares.gemm = share;
        return scenario_with(*input, shares);
      };
      try {
        at(1);
      } catch (const InputError& error) {
        input->reason = in_words(error);  // no plan that ringsim has: the next row is the input
        continue;
      }
      try {
        const Picoseconds measured{std::llround(input->row.step * static_cast<double>(picoseconds_per_second))};
        const MeasuredShare solved = measured_share(measured, at, predict_options());
        input->status = Status::input;
        take_from(*input, solved.gemm, *input);
        input->steps[static_cast<std::size_t>(PlanModelKind::ringsim)] = seconds(solved.step);
        for (ScoredPlan* row : group)
          if (row != input && row->reason.empty()) take_from(*row, solved.gemm, *input);
      } catch (const InputError& error) {
        for (ScoredPlan* row : group)
          if (row->reason.empty())
            row->reason = fmt::format("the input {} does not determine a share: {}", input->row.id, in_words(error));
      }
      return;
    }
  }

  static void take_from(ScoredPlan& row, double gemm, const ScoredPlan& input) {
    row.shares = stated_shares(row.row);
    row.shares.gemm = gemm;
    row.compute_from = fmt::format("{} ({}:{})", input.row.id, input.row.file,
                                   input.row.where.substr(input.row.where.find_last_of(':') + 1));
    take_simple(row, at_peak(input.row, false) / input.row.step, at_peak(input.row, true) / input.row.step);
  }

  void predict_row(ScoredPlan& row) const {
    try {
      row.scenario = plan_scenario(row.row, row.shares);
      const Scenario scenario = scenario_with(row, row.shares);
      const Prediction prediction = predict(scenario, predict_options());
      row.steps[static_cast<std::size_t>(PlanModelKind::ringsim)] = seconds(prediction.time);
      take_report(row, scenario, prediction);
      row.status = Status::scored;
    } catch (const InputError& error) {
      row.reason = in_words(error);
    }
  }

  static void take_report(ScoredPlan& row, const Scenario& scenario, const Prediction& prediction) {
    Bytes most;
    for (const PlanMemory& stage : scenario.training->plan->memory) most = std::max(most, stage.total());
    row.needs_gb = static_cast<double>(most.count) / giga;
    row.fits = !scenario.training->gpu_memory || most <= *scenario.training->gpu_memory;
    if (!prediction.training || !prediction.training->plan) return;
    const PlanSplit& split = prediction.training->plan->split;
    row.parts = {{"passes", seconds(split.passes)},       {"recompute", seconds(split.recompute)},
                 {"optimizer", seconds(split.optimizer)}, {"tensor", seconds(split.tensor)},
                 {"context", seconds(split.context)},     {"expert", seconds(split.expert)},
                 {"pipeline", seconds(split.pipeline)},   {"data", seconds(split.data)},
                 {"bubble", seconds(split.bubble)}};
  }

  const PlanScoreOptions& options_;
  PlanScore score_;
};

/// The places of values in their order, from 1; equal values have the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto smaller = std::count_if(values.begin(), values.end(), [&](double other) { return other < value; });
    const auto equal = std::count(values.begin(), values.end(), value);
    ranks.push_back(static_cast<double>(smaller) + (static_cast<double>(equal) + 1) / 2);
  }
  return ranks;
}

}  // namespace

std::string_view to_string(PlanModelKind kind) {
  constexpr std::array<std::string_view, plan_model_kinds.size()> names{"ringsim", "FLOPs", "FLOPs and bubble"};
  return names[static_cast<std::size_t>(kind)];
}

PlanScore score_plans(const PlanFigures& figures, const PlanScoreOptions& options) {
  return PlanScorer(figures, options).score();
}

std::optional<PlanBand> plan_band(const PlanScore& score, PlanModelKind kind,
                                  const std::function<bool(const ScoredPlan&)>& wanted) {
  std::vector<SizedError> errors;
  double worst = 0;
  for (const ScoredPlan& row : score.rows) {
    if (row.status != Status::scored || !wanted(row)) continue;
    errors.push_back({Bytes{0}, row.error(kind)});
    if (std::abs(row.error(kind)) > std::abs(worst)) worst = row.error(kind);
  }
  if (errors.empty()) return {};
  return PlanBand{error_band("", errors), worst};
}

std::vector<PlanSet> plan_sets(const PlanScore& score) {
  constexpr std::size_t fewest = 4;
  std::vector<PlanSet> sets;
  const auto key = [](const PlanFigure& row) {
    return std::tie(row.file, row.source, row.system, row.model, row.gpu, row.precision, row.gpus, row.global_batch,
                    row.sequence);
  };
  for (const ScoredPlan& row : score.rows) {
    if (row.status == Status::left_out) continue;
    const auto found = std::find_if(sets.begin(), sets.end(),
                                    [&](const PlanSet& set) { return key(set.rows.front()->row) == key(row.row); });
    if (found != sets.end()) {
      found->rows.push_back(&row);
      continue;
    }
    sets.push_back({fmt::format("{} on {} {}, {} sequences of {}", row.row.model, row.row.gpus, row.row.gpu,
                                row.row.global_batch, row.row.sequence),
                    {&row}});
  }
  std::erase_if(sets, [](const PlanSet& set) { return set.rows.size() < fewest; });
  return sets;
}

double rank_correlation(const PlanSet& set, PlanModelKind kind) {
  std::vector<double> measured, predicted;
  for (const ScoredPlan* row : set.rows) {
    measured.push_back(row->row.step);
    predicted.push_back(row->of(kind));
  }
  const std::vector<double> x = ranks_of(measured), y = ranks_of(predicted);
  const double mean = (static_cast<double>(x.size()) + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double regret(const PlanSet& set, PlanModelKind kind) {
  const auto best = std::min_element(set.rows.begin(), set.rows.end(), [&](const ScoredPlan* a, const ScoredPlan* b) {
    return a->of(kind) < b->of(kind);
  });
  double least = (*best)->row.step;
  for (const ScoredPlan* row : set.rows) least = std::min(least, row->row.step);
  return (*best)->row.step / least - 1;
}

}  // namespace ringsim
