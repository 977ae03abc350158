#include "tools/explanations/best_plans_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/text/figures.hpp"
#include "sim/text/table.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/pictures/svg.hpp"

namespace ringsim::tools {

namespace {

double seconds(Picoseconds time) {
  return static_cast<double>(time.count()) / static_cast<double>(picoseconds_per_second);
}

std::string gigabytes(Bytes size, int digits = 2) {
  return fmt::format("{:.{}f}", static_cast<double>(size.count) / 1e9, digits);
}

/// The largest parts of a step that are not forward and backward passes.
std::string losses_of(const PlanSplit& split, Picoseconds step) {
  std::vector<std::pair<Picoseconds, const char*>> parts{{split.bubble, "bubble"},     {split.tensor, "tensor"},
                                                         {split.data, "data"},         {split.recompute, "recompute"},
                                                         {split.pipeline, "pipeline"}, {split.context, "context"},
                                                         {split.expert, "expert"},     {split.optimizer, "optimizer"}};
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::size_t most = 3;
  constexpr double least = 0.001;  // of the step: less is not worth a word
  std::string text;
  for (std::size_t i = 0; i < most; ++i) {
    const double share = seconds(parts[i].first) / seconds(step);
    if (share < least) break;
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", parts[i].second, 100 * share);
  }
  return text;
}

/// The last word of a path, shorter where Megatron-LM has a short word.
std::string heading_of(const std::string& path) {
  static const std::pair<std::string, std::string> short_words[] = {
      {"tensor", "tp"}, {"pipeline", "pp"},       {"virtual_pipeline", "vp"},  {"context", "cp"},
      {"expert", "ep"}, {"expert_tensor", "etp"}, {"micro_batch_size", "mbs"}, {"sequence_parallel", "sp"}};
  std::string key = path.substr(path.rfind('.') + 1);
  for (const auto& [word, its] : short_words)
    if (word == key) return its;
  return key;
}

/// The plan's value of a key.
std::string value_of(const std::vector<std::pair<std::string, std::string>>& values, const SearchedKey& key) {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const auto& each) { return each.first == key.path; });
  return found == values.end() ? "-" : without_quotes(found->second);
}

/// Unless the scenario lists them, what overlaps and sequence_parallel follow from the other keys.
bool is_shown(const OpenPlans& plans, const SearchedKey& key) {
  return plans.lists(key.path) || (!key.path.ends_with(".overlap") && !key.path.ends_with(".sequence_parallel"));
}

std::string table_of(const OpenPlans& plans, const PlanSearch& found, std::size_t top) {
  const RankedPlan& fastest = found.ranked.front();
  const TimeUnit unit = TimeUnit::of(fastest.result ? fastest.result->prediction.time : fastest.bound);
  std::vector<std::string> head{""};
  for (const SearchedKey& key : plans.keys())
    if (is_shown(plans, key)) head.push_back(heading_of(key.path));
  head.insert(head.end(),
              {"dp", "memory GB", fmt::format("step {}", unit.name()), "tokens/s/GPU", "MFU %", "largest losses"});
  Table table(head);
  for (std::size_t i = 0; i < std::min(top, found.ranked.size()); ++i) {
    const RankedPlan& plan = found.ranked[i];
    const std::vector<std::pair<std::string, std::string>> values = plans.values_of(plan.plan);
    std::vector<std::string> row{fmt::to_string(i + 1)};
    for (const SearchedKey& key : plans.keys())
      if (is_shown(plans, key)) row.push_back(value_of(values, key));
    row.insert(row.end(), {fmt::to_string(plan.data), gigabytes(plan.memory)});
    if (plan.result) {
      const Prediction& r = plan.result->prediction;
      row.insert(row.end(), {unit.number(r.time), fmt::format("{:.1f}", r.training->tokens_per_s / r.request.ranks),
                             r.training->mfu > 0 ? fmt::format("{:.1f}", 100 * r.training->mfu) : "",
                             losses_of(r.training->plan->split, r.time)});
    } else {
      row.insert(row.end(), {fmt::format(">= {}", unit.number(plan.bound)), "", "", ""});
    }
    table.add(std::move(row));
  }
  return table.fitted();
}

/// nullptr: none was simulated.
const RankedPlan* first_simulated(const PlanSearch& found) {
  for (const RankedPlan& plan : found.ranked)
    if (plan.result) return &plan;
  return nullptr;
}

std::string plans_text(std::size_t n) { return fmt::format("{} plan{}", n, n == 1 ? "" : "s"); }

std::string counts_text(const PlanSearch& found, std::size_t top) {
  std::string text = wrapped(fmt::format("{} in all.", plans_text(found.plans)));
  if (found.too_large > 0)
    text += "\n" + wrapped(fmt::format("Too large for the memory of a GPU: {}; the smallest needs {} of {} GB.",
                                       found.too_large, gigabytes(found.least, 3), gigabytes(found.room, 3)));
  constexpr std::size_t most_reasons = 5;
  for (std::size_t i = 0; i < std::min(most_reasons, found.refused.size()); ++i)
    text += "\n" + wrapped(fmt::format("Refused: {}: {}.", found.refused[i].second, found.refused[i].first));
  if (found.refused.size() > most_reasons)
    text += fmt::format("\nRefused for {} other reasons as well.", found.refused.size() - most_reasons);
  text += "\n" + wrapped(fmt::format("Simulated: {}{}.", found.simulated,
                                     found.simulated + found.too_long > top
                                         ? fmt::format("; --top {} shows all", found.simulated + found.too_long)
                                         : ""));
  if (found.too_long > 0) text += "\n" + wrapped(too_long_text(found));
  if (found.others)
    text += "\n" + wrapped(fmt::format("Not simulated: {}; each takes at least {} (lower bound; {} collectives "
                                       "were simulated alone).",
                                       found.not_simulated, time_text(*found.others), found.collectives));
  return text;
}

}  // namespace

std::string too_long_text(const PlanSearch& found) {
  const RankedPlan* first = first_simulated(found);
  std::size_t below = 0;
  std::int64_t least = 0;
  for (const RankedPlan& plan : found.ranked) {
    if (plan.messages == 0) continue;
    if (first == nullptr || plan.bound < first->least()) ++below;
    if (least == 0 || plan.messages < least) least = plan.messages;
  }
  constexpr std::int64_t million = 1'000'000;
  std::string text = fmt::format(
      "Too long to simulate: {}, listed with {} lower bound{}, because {} would move {}{} messages{}, one by one; "
      "--messages {} simulates {}.",
      found.too_long, found.too_long == 1 ? "its" : "their", found.too_long == 1 ? "" : "s",
      found.too_long == 1 ? "it" : "they", least < million ? least : least / million, least < million ? "" : " million",
      found.too_long == 1 ? "" : " or more", least, found.too_long == 1 ? "it" : "the shortest");
  if (first != nullptr && below > 0)
    text += fmt::format(" {} below the fastest that was simulated.",
                        below == 1 ? "One bound lies" : fmt::format("{} bounds lie", below));
  return text;
}

std::string best_plans_text(const OpenPlans& plans, const PlanSearch& found, std::size_t top,
                            const std::string& scenario) {
  if (found.ranked.empty())
    return counts_text(found, top) + "\n" +
           wrapped(
               "No plan fits: take more GPUs, a smaller micro_batch_size, or list context ranks: "
               "--set training.parallel.context=[1,2,4,8] --set training.parallel.cp_comm=all_gather") +
           "\n";
  const RankedPlan* first = first_simulated(found);
  const std::string set = set_words("--set", plans.set_of(first != nullptr ? first->plan : found.ranked.front().plan));
  return table_of(plans, found, top) + "\n" + counts_text(found, top) + "\n\n" +
         (first == &found.ranked.front() || first == nullptr ? "To run and to explain the first:\n"
                                                             : "To run and to explain the fastest simulated plan:\n") +
         fmt::format("  ringsim run {}{}\n  ringsim explain {}{}\n", scenario, set, scenario, set);
}

/// "tp 4, pp 4, vp 10, optimizer, mbs 1": the keys in which the plans differ.
static std::string short_name_of(const OpenPlans& plans, const RankedPlan& plan) {
  const std::vector<std::pair<std::string, std::string>> values = plans.values_of(plan.plan);
  std::vector<std::string> words;
  for (const SearchedKey& key : plans.keys()) {
    if (!is_shown(plans, key)) continue;
    const std::string heading = heading_of(key.path), value = value_of(values, key);
    if (value != "1" && value != "-" && value != "none") words.push_back(fmt::format("{} {}", heading, value));
  }
  words.push_back(fmt::format("dp {}", plan.data));
  return fmt::format("{}", fmt::join(words, ", "));
}

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
  std::vector<Bar> bars;
  for (const RankedPlan* plan : drawn) {
    const Prediction& r = plan->result->prediction;
    bars.push_back({.label = short_name_of(plans, *plan),
                    .value = fmt::format("{} {}", unit.number(r.time), unit.name()),
                    .length = seconds(r.time)});
  }
  std::vector<std::string> names;
  for (const Part& part : parts) {
    const auto of = [&](const RankedPlan& plan) {
      return seconds(part.of(plan.result->prediction.training->plan->split));
    };
    if (std::none_of(drawn.begin(), drawn.end(), [&](const RankedPlan* plan) { return of(*plan) > 0; })) continue;
    names.emplace_back(part.name);
    for (std::size_t i = 0; i < drawn.size(); ++i) bars[i].parts.push_back(of(*drawn[i]));
  }
  const std::string title =
      fmt::format("The fastest of {}: {} on {} GPUs", plans_text(found.plans),
                  fastest.training->workload.empty() ? "a step" : fastest.training->workload, fastest.request.ranks);
  std::vector<std::string> notes{
      fmt::format("Fastest: {:.1f} tokens/s/GPU{}. Communication is the part that compute does not hide, at the rank "
                  "that ends last.",
                  fastest.training->tokens_per_s / fastest.request.ranks,
                  fastest.training->mfu > 0 ? fmt::format(", MFU {:.1f} %", 100 * fastest.training->mfu) : "")};
  return bars_svg(title, bars, names, {.alone = true, .notes = notes});
}

}  // namespace ringsim::tools
