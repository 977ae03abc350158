#include "tools/reports/best_plans_picture.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "sim/text/figures.hpp"
#include "tools/explanations/best_plans_text.hpp"
#include "tools/pictures/svg.hpp"

namespace ringsim::tools {

namespace {

double seconds_of(Picoseconds time) {
  return static_cast<double>(time.count()) / static_cast<double>(picoseconds_per_second);
}

}  // namespace

std::string best_plans_svg(const OpenPlans& plans, const PlanSearch& found, std::size_t top) {
  struct Part {
    const char* name;
    Picoseconds (*of)(const PlanSplit&);
  };
  // As many as the palette has colors.
  static constexpr Part parts[] = {
      {"forward and backward", [](const PlanSplit& split) { return split.passes; }},
      {"recomputation", [](const PlanSplit& split) { return split.recompute; }},
      {"tensor, context, expert", [](const PlanSplit& split) { return split.tensor + split.context + split.expert; }},
      {"pipeline and bubble", [](const PlanSplit& split) { return split.pipeline + split.bubble; }},
      {"data", [](const PlanSplit& split) { return split.data; }},
      {"optimizer", [](const PlanSplit& split) { return split.optimizer; }}};
  std::vector<const RankedPlan*> drawn;
  for (const RankedPlan& plan : found.ranked)
    if (plan.result && drawn.size() < top) drawn.push_back(&plan);
  if (drawn.empty()) return "";
  const Prediction& fastest = drawn.front()->result->prediction;
  const TimeUnit unit = TimeUnit::of(fastest.time);
  const std::vector<std::string> labels = short_names(plans, drawn);
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const Picoseconds time = drawn[i]->result->prediction.time;
    bars.push_back({.label = labels[i],
                    .value = fmt::format("{} {}", unit.number(time), unit.name()),
                    .length = seconds_of(time)});
  }
  std::vector<std::string> names;
  for (const Part& part : parts) {
    const auto of = [&](const RankedPlan& plan) {
      return seconds_of(part.of(plan.result->prediction.training->plan->split));
    };
    names.emplace_back(part.name);
    for (std::size_t i = 0; i < drawn.size(); ++i) bars[i].parts.push_back(of(*drawn[i]));
  }
  const std::string title =
      fmt::format("The fastest simulated plans out of {}: {} on {} GPUs", found.plans,
                  fastest.training->workload.empty() ? "a step" : fastest.training->workload, fastest.request.ranks);
  std::vector<std::string> notes{
      fmt::format("Fastest: {:.1f} tokens/s/GPU{}. Only exposed communication counts, on the rank that ends last.",
                  fastest.training->tokens_per_s / fastest.request.ranks,
                  fastest.training->mfu > 0 ? fmt::format(", MFU {:.1f} %", 100 * fastest.training->mfu) : "")};
  if (found.too_long > 0) notes.push_back(too_long_text(found));
  return bars_svg(title, bars, names, {.alone = true, .notes = notes});
}

}  // namespace ringsim::tools
