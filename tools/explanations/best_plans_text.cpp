#include "tools/explanations/best_plans_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "sim/base/ascii.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/table.hpp"
#include "tools/output/shell_words.hpp"

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

/// Unless the scenario lists them, what overlaps, what counts as a layer and sequence_parallel follow from the other
/// keys.
bool is_shown(const OpenPlans& plans, const SearchedKey& key) {
  const auto is = [&](const char* word) { return key.path.ends_with(word); };
  return plans.lists(key.path) ||
         !(is(".overlap") || is(".sequence_parallel") || is(".account_for_embedding") || is(".account_for_loss"));
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
    std::vector<std::string> row{plan.result ? fmt::to_string(i + 1) : "-"};  // a bound has no place
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

/// Plans that are refused for one reason, or for reasons that differ in numbers alone.
struct Refusal {
  std::string kind;  ///< the reason without digits
  std::string reason;
  std::size_t plans = 0;
  bool is_example = false;  ///< other plans have other numbers
};

std::vector<Refusal> refusals_of(const PlanSearch& found) {
  std::vector<Refusal> out;
  for (const auto& [reason, plans] : found.refused) {
    std::string kind = reason;
    std::erase_if(kind, is_digit);
    const auto known = std::find_if(out.begin(), out.end(), [&](const Refusal& each) { return each.kind == kind; });
    if (known == out.end()) {
      out.push_back({.kind = std::move(kind), .reason = reason, .plans = plans});
      continue;
    }
    known->plans += plans;
    known->is_example = true;
  }
  return out;
}

std::string counts_text(const PlanSearch& found, std::size_t top) {
  std::string text = wrapped(fmt::format("{} in total.", plans_text(found.plans)));
  if (found.too_large > 0)
    text += "\n" + wrapped(fmt::format("Too large for GPU memory: {}; the smallest needs {} of {} GB.", found.too_large,
                                       gigabytes(found.least, 3), gigabytes(found.room, 3)));
  constexpr std::size_t most_reasons = 5;
  const std::vector<Refusal> refusals = refusals_of(found);
  for (std::size_t i = 0; i < std::min(most_reasons, refusals.size()); ++i)
    text += "\n" + wrapped(fmt::format("Not modeled: {}{}: {}.", plans_text(refusals[i].plans),
                                       refusals[i].is_example ? ", for example" : "", refusals[i].reason));
  if (refusals.size() > most_reasons)
    text += fmt::format("\nOther plans are not modeled for {} more reasons.", refusals.size() - most_reasons);
  text += "\n" + wrapped(fmt::format("Simulated: {}{}.", found.simulated,
                                     found.simulated + found.too_long > top
                                         ? fmt::format("; --top {} shows all", found.simulated + found.too_long)
                                         : ""));
  if (!found.interrupted.empty())
    text += "\n" + wrapped("The search was interrupted, so plans that were not simulated may be faster.");
  if (found.too_long > 0) text += "\n" + wrapped(too_long_text(found));
  if (found.others)
    text +=
        "\n" + wrapped(fmt::format(
                   "Not simulated: {}; each takes at least {} (lower bound; {} collectives were simulated separately).",
                   found.not_simulated, time_text(*found.others), found.collectives));
  return text;
}

}  // namespace

std::vector<std::string> short_names(const OpenPlans& plans, const std::vector<const RankedPlan*>& drawn) {
  std::vector<std::vector<std::string>> words(drawn.size());
  for (const SearchedKey& key : plans.keys()) {
    if (!is_shown(plans, key)) continue;
    std::vector<std::string> values;
    for (const RankedPlan* plan : drawn) values.push_back(value_of(plans.values_of(plan->plan), key));
    const bool differ = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end();
    for (std::size_t i = 0; differ && i < drawn.size(); ++i)
      if (values[i] != "1" && values[i] != "none" && values[i] != "-")
        words[i].push_back(fmt::format("{} {}", heading_of(key.path), values[i]));
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    words[i].push_back(fmt::format("dp {}", drawn[i]->data));
    names.push_back(fmt::format("{}", fmt::join(words[i], ", ")));
  }
  return names;
}

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
      "Not simulated because it would take too long: {}, listed with {} lower bound{}; {} would move {}{} individual "
      "messages{}. --messages {} simulates {}.",
      found.too_long, found.too_long == 1 ? "its" : "their", found.too_long == 1 ? "" : "s",
      found.too_long == 1 ? "it" : "they", least < million ? least : least / million, least < million ? "" : " million",
      found.too_long == 1 ? "" : " or more", least, found.too_long == 1 ? "it" : "the shortest");
  if (first != nullptr && below > 0)
    text += fmt::format(" {} below the fastest simulated time.",
                        below == 1 ? "One bound is" : fmt::format("{} bounds are", below));
  return text;
}

namespace {

/// A warning of a plan that leaves less than a twentieth of the memory; else empty, also if the search has not noted
/// how much the GPU has, because all plans fit.
std::string little_room_text(const PlanSearch& found, const RankedPlan& plan) {
  if (found.room.count == 0 || plan.memory.count * 20 <= found.room.count * 19) return "";
  return "\n" +
         wrapped(fmt::format("This plan leaves {} GB of GPU memory for what is not counted: the CUDA context, NCCL's "
                             "buffers and gaps of the allocator. --set training.gpu_memory={:.3g}GB leaves a tenth.",
                             gigabytes(found.room - plan.memory, 2), 0.9e-9 * static_cast<double>(found.room.count))) +
         "\n";
}

/// Advice for a search without a plan that fits, without what it has tried.
std::string no_plan_text(const OpenPlans& plans) {
  const auto is_searched = [&](std::string_view path) {
    return std::any_of(plans.keys().begin(), plans.keys().end(),
                       [&](const SearchedKey& key) { return key.path == path && key.values.size() > 1; });
  };
  // DDP keeps whole copies, whatever the number of GPUs.
  const std::vector<std::pair<std::string, std::string>> stated = plans.values_of(0);
  const bool copies =
      !is_searched("training.parallel.shard") &&
      std::find(stated.begin(), stated.end(),
                std::pair<std::string, std::string>("training.parallel.shard", "\"none\"")) != stated.end();
  std::string text = copies
                         ? "No plan fits. Shard the optimizer (--set training.parallel.shard=optimizer), or use more "
                           "tensor ranks or stages"
                         : "No plan fits. Use more GPUs";
  if (!is_searched("training.workload.micro_batch_size")) text += " or a smaller micro_batch_size";
  if (!is_searched("training.parallel.context"))
    text +=
        ", or also try context ranks: --set training.parallel.context=[1,2,4,8] --set "
        "training.parallel.cp_comm=all_gather";
  return wrapped(text) + "\n";
}

}  // namespace

std::string best_plans_text(const OpenPlans& plans, const PlanSearch& found, std::size_t top,
                            const std::string& scenario) {
  if (found.ranked.empty()) return counts_text(found, top) + "\n" + no_plan_text(plans);
  const RankedPlan* first = first_simulated(found);
  const RankedPlan& best = first != nullptr ? *first : found.ranked.front();
  const std::string set = set_words("--set", plans.set_of(best.plan));
  return table_of(plans, found, top) + "\n" + counts_text(found, top) + "\n\n" +
         (first == &found.ranked.front() || first == nullptr ? "To run and explain the first plan:\n"
                                                             : "To run and explain the fastest simulated plan:\n") +
         fmt::format("  ringsim run {}{}\n  ringsim explain {}{}\n", scenario, set, scenario, set) +
         little_room_text(found, best);
}

}  // namespace ringsim::tools
