#include "tools/explanations/plan_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/output/page.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

namespace {

using Status = ScoredPlan::Status;

std::string signed_cell(double share) { return fmt::format("{:+.1f}", 100 * share); }

/// A source by its first words: "NVIDIA-NeMo/Megatron-Bridge".
std::string short_source(const ScoredPlan& row) {
  const std::string& text = row.row.source;
  return text.substr(0, text.find_first_of("@:;"));
}

std::vector<std::string> sources_of(const PlanScore& score) {
  std::vector<std::string> names;
  for (const ScoredPlan& row : score.rows)
    if (std::find(names.begin(), names.end(), short_source(row)) == names.end()) names.push_back(short_source(row));
  return names;
}

std::size_t count_of(const PlanScore& score, Status status) {
  return static_cast<std::size_t>(
      std::count_if(score.rows.begin(), score.rows.end(), [&](const ScoredPlan& row) { return row.status == status; }));
}

std::string plan_band_cell(const std::optional<PlanBand>& found) {
  if (!found) return "-";
  return fmt::format("{:.1f} / {:.1f} / {}", 100 * found->band.median_abs, 100 * found->band.p90_abs,
                     signed_cell(found->worst));
}

std::vector<std::vector<std::string>> source_rows(const PlanScore& score) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> names = sources_of(score);
  names.emplace_back("");
  for (const std::string& name : names) {
    const auto wanted = [&](const ScoredPlan& row) { return name.empty() || short_source(row) == name; };
    const auto own = plan_band(score, PlanModelKind::ringsim, wanted);
    if (!own) continue;
    rows.push_back({name.empty() ? "all" : name, fmt::to_string(own->band.rows), plan_band_cell(own),
                    signed_cell(own->band.median_signed),
                    plan_band_cell(plan_band(score, PlanModelKind::flops, wanted)),
                    plan_band_cell(plan_band(score, PlanModelKind::bubble, wanted))});
  }
  return rows;
}

std::vector<std::vector<std::string>> set_rows(const PlanScore& score) {
  std::vector<std::vector<std::string>> rows;
  for (const PlanSet& set : plan_sets(score)) {
    std::vector<std::string> cells{set.name, fmt::to_string(set.rows.size())};
    for (const PlanModelKind kind : plan_model_kinds)
      cells.push_back(fmt::format("{:.3f}, {:.1f} %", rank_correlation(set, kind), 100 * regret(set, kind)));
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::string plan_cell(const PlanFigure& row) {
  std::string text = fmt::format("tp {} pp {}", row.tensor, row.pipeline);
  if (row.chunks > 1) text += fmt::format(" vp {}", row.chunks);
  if (row.context > 1) text += fmt::format(" cp {}", row.context);
  if (row.expert > 1) text += fmt::format(" ep {}", row.expert);
  text += fmt::format(" mbs {}", row.micro_batch);
  if (row.shard != "none") text += " " + row.shard;
  if (row.recompute != "none") text += ", recompute " + row.recompute;
  return text;
}

/// The three parts of a step that take longest, apart from the passes.
std::string losses_cell(const ScoredPlan& row) {
  std::vector<std::pair<std::string, double>> parts;
  for (const auto& part : row.parts)
    if (part.first != "passes" && part.second > 0.01 * row.of(PlanModelKind::ringsim)) parts.push_back(part);
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (parts.size() > 3) parts.resize(3);
  std::vector<std::string> cells;
  for (const auto& [name, time] : parts)
    cells.push_back(fmt::format("{} {:.0f} %", name, 100 * time / row.of(PlanModelKind::ringsim)));
  return cells.empty() ? "-" : fmt::format("{}", fmt::join(cells, ", "));
}

std::vector<std::vector<std::string>> row_rows(const PlanScore& score) {
  std::vector<std::vector<std::string>> rows;
  for (const ScoredPlan& row : score.rows) {
    if (row.status != Status::scored) continue;
    rows.push_back({row.row.id, row.row.model, fmt::format("{} {}", row.row.gpus, row.row.gpu), plan_cell(row.row),
                    fmt::format("{:.3f}", row.row.step), fmt::format("{:.3f}", row.of(PlanModelKind::ringsim)),
                    signed_cell(row.error(PlanModelKind::ringsim)), signed_cell(row.error(PlanModelKind::flops)),
                    signed_cell(row.error(PlanModelKind::bubble)), losses_cell(row),
                    fmt::format("{:.1f}{}", row.needs_gb, row.fits ? "" : "!")});
  }
  return rows;
}

std::vector<std::vector<std::string>> input_rows(const PlanScore& score) {
  std::vector<std::vector<std::string>> rows;
  for (const ScoredPlan& row : score.rows)
    if (row.status == Status::input)
      rows.push_back({row.row.id, row.row.model, fmt::format("{} {}", row.row.gpus, row.row.gpu), row.row.precision,
                      fmt::format("{:.3f}", row.row.step), fmt::format("{:.1f}", 100 * row.shares.gemm),
                      fmt::format("{:.0f}", 100 * row.shares.attention),
                      fmt::format("{:.0f}", 100 * row.shares.memory)});
  return rows;
}

std::vector<std::vector<std::string>> fitted_rows() {
  std::vector<std::vector<std::string>> rows;
  for (const FittedShares& each : fitted_shares())
    rows.push_back({fmt::format("{}, {} bit", each.family, each.bits), fmt::format("{:.1f}", 100 * each.gemm),
                    fmt::format("{:.1f}", 100 * each.one), fmt::format("{:.1f}", 100 * each.one_bubble),
                    each.fitted_to});
  return rows;
}

/// Rows by why they are left out, or by what their scenario leaves out.
std::vector<std::vector<std::string>> reason_rows(const PlanScore& score, bool of_scored) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  const auto add = [&](const std::string& reason, const std::string& id) {
    const auto found =
        std::find_if(by_reason.begin(), by_reason.end(), [&](const auto& each) { return each.first == reason; });
    if (found == by_reason.end())
      by_reason.push_back({reason, {id}});
    else
      found->second.push_back(id);
  };
  for (const ScoredPlan& row : score.rows) {
    if (of_scored && row.status == Status::scored)
      for (const std::string& each : row.unmodeled) add(each, row.row.id);
    if (!of_scored && row.status == Status::left_out) add(row.reason, row.row.id);
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [reason, ids] : by_reason)
    rows.push_back({reason, fmt::to_string(ids.size()), fmt::format("{}", fmt::join(ids, " "))});
  return rows;
}

std::string plan_page(const PlanScore& score, bool markdown) {
  Page page(markdown);
  page.lines(fmt::format("{} measured plans: {} scored, {} inputs, {} left out.", score.rows.size(),
                         count_of(score, Status::scored), count_of(score, Status::input),
                         count_of(score, Status::left_out)));
  for (const std::string& note : score.notes) page.lines("note: " + note);
  const auto table = [&](const char* title, const std::vector<std::string>& head,
                         const std::vector<std::vector<std::string>>& rows) {
    if (rows.empty()) return;
    page.heading(title);
    page.table(head, rows);
  };
  table("By source: |error of the step time|, median / 90th percentile / worst, %",
        {"source", "rows", "ringsim", "bias %", "0: FLOPs / (peak x share)", "1: and bubble"}, source_rows(score));
  table(
      "Sets of plans: Spearman's rank correlation, and by how much the plan predicted to be best is slower than the "
      "best",
      {"set", "plans", "ringsim", "0: FLOPs", "1: and bubble"}, set_rows(score));
  table("Rows",
        {"id", "model", "GPUs", "plan", "measured s", "predicted s", "error %", "0 %", "1 %", "largest losses",
         "memory GB"},
        row_rows(score));
  if (score.input != PlanInput::none)
    table("Inputs: the share of matrix products follows from the step time, the other shares are given; %",
          {"id", "model", "GPUs", "precision", "measured s", "gemm", "attention", "memory"}, input_rows(score));
  else
    table("Fitted shares, %", {"GPU", "gemm", "model 0", "model 1", "fitted to"}, fitted_rows());
  table("Not modeled in rows that are scored", {"what", "rows", "ids"}, reason_rows(score, true));
  table("Left out", {"because", "rows", "ids"}, reason_rows(score, false));
  return page.text();
}

constexpr const char* status_words[] = {"scored", "input", "left out"};

Json row_json(const ScoredPlan& row) {
  const PlanFigure& figure = row.row;
  const bool has_steps = row.status != Status::left_out;
  const auto number = [&](double value) { return has_steps ? Json(value) : Json(""); };
  Json out{{"id", figure.id},
           {"table", figure.file},
           {"source", figure.source},
           {"system", figure.system},
           {"model", figure.model},
           {"gpu", figure.gpu},
           {"gpus", figure.gpus},
           {"precision", figure.precision},
           {"plan", plan_cell(figure)},
           {"status", status_words[static_cast<std::size_t>(row.status)]},
           {"because", row.reason},
           {"measured_s", figure.step},
           {"predicted_s", number(row.of(PlanModelKind::ringsim))},
           {"error", number(has_steps ? row.error(PlanModelKind::ringsim) : 0)},
           {"flops_s", number(row.of(PlanModelKind::flops))},
           {"flops_and_bubble_s", number(row.of(PlanModelKind::bubble))},
           {"gemm", number(row.shares.gemm)},
           {"attention", number(row.shares.attention)},
           {"memory", number(row.shares.memory)},
           {"compute_from", row.compute_from}};
  const bool is_scored = row.status == Status::scored;
  for (const char* part :
       {"passes", "recompute", "optimizer", "tensor", "context", "expert", "pipeline", "data", "bubble"}) {
    const auto found =
        std::find_if(row.parts.begin(), row.parts.end(), [&](const auto& each) { return each.first == part; });
    out[std::string(part) + "_s"] = is_scored && found != row.parts.end() ? Json(found->second) : Json("");
  }
  out["needs_gb"] = is_scored ? Json(row.needs_gb) : Json("");
  out["fits"] = is_scored ? Json(row.fits) : Json("");
  out["not_modeled"] = fmt::format("{}", fmt::join(row.unmodeled, "; "));
  return out;
}

std::string plan_csv(const PlanScore& score) {
  std::string text;
  for (const ScoredPlan& row : score.rows) {
    std::vector<std::string> head, cells;
    const Json made = row_json(row);
    for (const auto& [key, value] : made.items()) {
      head.push_back(key);
      cells.push_back(value.is_string() ? value.get<std::string>() : json_text(value));
    }
    if (text.empty()) text = csv_line(head);
    text += csv_line(cells);
  }
  return text;
}

Json bands_json(const PlanScore& score, const std::string& source) {
  Json out{{"source", source.empty() ? "all" : source}};
  for (const PlanModelKind kind : plan_model_kinds)
    if (const auto found = plan_band(
            score, kind, [&](const ScoredPlan& row) { return source.empty() || short_source(row) == source; }))
      out[std::string(to_string(kind))] = {{"rows", found->band.rows},
                                           {"median", found->band.median_abs},
                                           {"p90", found->band.p90_abs},
                                           {"worst", found->worst},
                                           {"bias", found->band.median_signed}};
  return out;
}

}  // namespace

Json plan_json(const PlanScore& score) {
  Json out{{"rows", Json::array()}, {"sources", Json::array()}, {"sets", Json::array()}, {"notes", score.notes}};
  for (const ScoredPlan& row : score.rows) out["rows"].push_back(row_json(row));
  for (const std::string& source : sources_of(score)) out["sources"].push_back(bands_json(score, source));
  out["sources"].push_back(bands_json(score, ""));
  for (const PlanSet& set : plan_sets(score)) {
    Json made{{"name", set.name}, {"plans", set.rows.size()}};
    for (const PlanModelKind kind : plan_model_kinds)
      made[std::string(to_string(kind))] = {{"rank_correlation", rank_correlation(set, kind)},
                                            {"regret", regret(set, kind)}};
    out["sets"].push_back(std::move(made));
  }
  return out;
}

std::string plan_text(const PlanScore& score, ScorecardFormat format) {
  switch (format) {
    case ScorecardFormat::table:
      return plan_page(score, false);
    case ScorecardFormat::markdown:
      return plan_page(score, true);
    case ScorecardFormat::csv:
      return plan_csv(score);
    case ScorecardFormat::json:
      return json_text(plan_json(score), 2) + "\n";
    case ScorecardFormat::limits:
      break;
  }
  fail_invariant("a scorecard is written in one of four formats");
}

}  // namespace ringsim::tools
