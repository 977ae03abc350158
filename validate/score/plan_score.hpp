// Measured steps of large models next to predictions, and to two models that need no simulation.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/measured/plan_figures.hpp"
#include "validate/score/plan_scenario.hpp"
#include "validate/score/scorecard.hpp"

namespace ringsim {

/// Who predicts a plan's step.
enum class PlanModelKind : std::uint8_t {
  ringsim,
  flops,   ///< model FLOPs / (peak x one share)
  bubble,  ///< that times 1 + (p-1)/(m v)
};
inline constexpr std::array plan_model_kinds = {PlanModelKind::ringsim, PlanModelKind::flops, PlanModelKind::bubble};
std::string_view to_string(PlanModelKind kind);

/// Where the share of matrix products comes from.
enum class PlanInput : std::uint8_t {
  group,  ///< the row of each model, GPU and precision that reaches most FLOP/s is the input, and not scored: what
          ///< slows steps down and no model knows, such as launches, slows that one down least
  first,  ///< the first row of each model, GPU and precision
  none,   ///< fitted_shares()
};

struct ScoredPlan {
  PlanFigure row;
  enum class Status : std::uint8_t { scored, input, left_out } status = Status::left_out;
  std::string reason;                  ///< why it is left out
  std::vector<std::string> unmodeled;  ///< left_out(row)
  std::string compute_from;            ///< "gpt-22b-8-322 (megatron.csv:9)", or what the fitted share was fitted to
  PlanShares shares;
  std::array<double, plan_model_kinds.size()> steps{};  ///< [PlanModelKind] seconds
  double needs_gb = 0;                                  ///< memory of the rank that needs most
  bool fits = true;                                     ///< in its GPU's memory
  std::vector<std::pair<std::string, double>> parts;    ///< of the step, in seconds: "compute", "bubble"
  std::string scenario;                                 ///< as JSON

  double of(PlanModelKind kind) const { return steps[static_cast<std::size_t>(kind)]; }
  double error(PlanModelKind kind) const { return of(kind) / row.step - 1; }
};

struct PlanScore {
  PlanInput input = PlanInput::group;
  std::vector<ScoredPlan> rows;  ///< all, in the order of the tables
  std::vector<std::string> notes;
};

struct PlanScoreOptions {
  PlanInput input = PlanInput::group;
  std::vector<std::string> set;  ///< changes of every scenario
  const std::atomic<bool>* stop = nullptr;
  std::optional<Bytes> max_memory;
  /// Does work(0) ... work(n-1), several at a time, and says `what` is done.
  std::function<void(const std::string& what, std::size_t n, const std::function<void(std::size_t)>& work)> for_each;
};

/// Predicts every row that can be expressed. A row that ringsim refuses is left out with the refusal. Of a group whose
/// input is refused the next one is the input. If only a share above 1 explains the input, the whole group
/// is left out, and so is a group of one row.
PlanScore score_plans(const PlanFigures& figures, const PlanScoreOptions& options);

/// Errors of a model over the scored rows that `wanted` chooses; nothing if there is none.
struct PlanBand {
  ErrorBand band;
  double worst = 0;  ///< with its sign
};
std::optional<PlanBand> plan_band(const PlanScore& score, PlanModelKind kind,
                                  const std::function<bool(const ScoredPlan&)>& wanted);

/// Rows that train one model on the same GPUs, with the same batch and sequence: only the plan differs. Inputs belong
/// to them, with the step that was simulated.
struct PlanSet {
  std::string name;
  std::vector<const ScoredPlan*> rows;  ///< at least 4
};
std::vector<PlanSet> plan_sets(const PlanScore& score);
/// Spearman's rank correlation of measured and predicted steps; ties have their mean rank.
double rank_correlation(const PlanSet& set, PlanModelKind kind);
/// How much longer the plan with the shortest predicted step takes than the best one, as measured.
double regret(const PlanSet& set, PlanModelKind kind);

}  // namespace ringsim
