#include "tools/explanations/mismatch_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/json.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "validate/results/columns.hpp"
#include "validate/score/baselines.hpp"

namespace ringsim::tools {

namespace {

/// How many trials of a range the text shows; JSON has all.
constexpr std::size_t most_trials = 4;
/// Ranges of fewer rows are explained by chance too easily: there are some twenty changes to choose from.
constexpr std::size_t few_rows = 3;

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string us_text(double us) { return us < 1e4 ? fmt::format("{:.2f}", us) : fmt::format("{:.0f}", us); }
std::string rate_text(double GBps) { return GBps < 100 ? fmt::format("{:.2f}", GBps) : fmt::format("{:.1f}", GBps); }
std::string rows_of_count(std::size_t n) { return fmt::format("{} row{}", n, n == 1 ? "" : "s"); }

double measured_busbw(const ComparedRow& row) {
  const CollectiveRequest& request = row.result.prediction.request;
  return static_cast<double>(row.bytes().count) / row.measured_us() / 1e3 * busbw_factor(request.op, request.ranks);
}

/// Nothing moves of one rank.
const ExplainedPart* holder_of(const ComparedRow& row) {
  const auto& parts = row.result.prediction.explanation->parts;
  return parts.empty() ? nullptr : &parts.front();
}

double share_of_holder(const ComparedRow& row) { return microseconds(holder_of(row)->time) / row.predicted_us(); }

std::string holder_name(const ExplainedPart& part) { return part.kind.empty() ? part.cause : part.kind; }

std::string rows_text(std::span<const ComparedRow> rows) {
  Table table(
      {"bytes", "algorithm", "protocol", "ch", "measured us", "GB/s", "predicted us", "GB/s", "error", "limited by"});
  std::vector<std::string> links;
  for (const ComparedRow& row : rows) {
    const ExplainedPart* holder = holder_of(row);
    table.add({format(row.bytes()), row.algorithm, row.protocol, fmt::to_string(row.result.prediction.request.channels),
               us_text(row.measured_us()), rate_text(measured_busbw(row)), us_text(row.predicted_us()),
               rate_text(row.result.prediction.busbw), fmt::format("{:+.1f} %", 100 * error_of(row.result)),
               holder == nullptr ? "" : fmt::format("{} {:.0f} %", holder_name(*holder), 100 * share_of_holder(row))});
    if (holder == nullptr || holder->link.empty()) continue;
    std::string line =
        fmt::format("{}: {}", holder_name(*holder), holder->links.empty() ? holder->link : holder->links);
    if (std::find(links.begin(), links.end(), line) == links.end()) links.push_back(std::move(line));
  }
  std::string text = table.fitted();
  for (const std::string& line : links) text += wrapped(line) + '\n';
  return text;
}

std::string sizes_text(const MismatchRange& range, std::span<const ComparedRow> rows) {
  if (range.size() == 1) return format(rows[range.first].bytes());
  return fmt::format("{} to {} ({})", format(rows[range.first].bytes()), format(rows[range.last].bytes()),
                     rows_of_count(range.size()));
}

/// "512 KiB to 1 MiB (2 rows), Ring LL: predicted 19.4 % too slow, by 3.72 to 5.13 us"
std::string heading_text(const MismatchRange& range, std::span<const ComparedRow> rows) {
  const double a = std::min(std::abs(range.least_us), std::abs(range.most_us));
  const double b = std::max(std::abs(range.least_us), std::abs(range.most_us));
  return fmt::format("{}, {} {}: the prediction is {} too {}, by {} us", sizes_text(range, rows),
                     rows[range.first].algorithm, rows[range.first].protocol, percent_text(range.error.median_abs),
                     range.is_slower() ? "fast" : "slow",
                     range.size() == 1 ? us_text(a) : fmt::format("{} to {}", us_text(a), us_text(b)));
}

std::string trials_text(const MismatchRange& range, std::span<const ComparedRow> rows) {
  if (range.trials.empty()) return "";
  const Verdict verdict = verdict_of(range);
  std::vector<const Trial*> shown;
  std::size_t plain = 0, fitted = 0;
  for (const Trial& trial : range.trials) {
    const bool named = std::find(verdict.causes.begin(), verdict.causes.end(), &trial) != verdict.causes.end();
    if ((trial.what.is_fitted ? fitted++ : plain++) < most_trials || named) shown.push_back(&trial);
  }
  std::vector<std::string> head{"run again with", "plan", "us at " + format(rows[range.last].bytes()), "median off",
                                "90 % within"};
  const bool breaks = std::any_of(shown.begin(), shown.end(), [](const Trial* trial) { return trial->at_all_sizes(); });
  if (breaks) head.emplace_back("breaks");
  Table table(head);
  for (const Trial* trial : shown) {
    const Trial::Row& row = trial->rows.back();
    std::vector<std::string> cells{trial->what.label + (trial->what.is_fitted ? " (fitted)" : ""),
                                   fmt::format("{} {}, {} ch", row.algorithm, row.protocol, row.channels),
                                   us_text(row.us), percent_text(trial->error.median_abs),
                                   percent_text(trial->error.p90_abs)};
    if (breaks) cells.push_back(trial->at_all_sizes() ? fmt::format("{} of {}", trial->lost, trial->agreed) : "");
    table.add(std::move(cells));
  }
  return table.fitted();
}

/// The objection to a plan that NCCL would not choose; empty if it may.
std::string must_be_set_text(const Trial& trial) {
  if (!trial.must_be_set()) return "";
  return fmt::format(
      "; NCCL would not choose it (its formula predicts {:.1f} times the time of its choice), so a variable would have "
      "to force it at all sizes",
      trial.by_formula);
}

/// Says why a trial that comes close does not explain the rows.
std::string objections(const Trial& trial) {
  std::string text = must_be_set_text(trial);
  if (trial.comes_near() || 10 * trial.lost > trial.agreed)
    text += fmt::format("; with this change, {} of the {} rows that agree now would not", trial.lost, trial.agreed);
  return text;
}

std::string no_verdict_text(const Verdict& verdict, const MismatchRange& range) {
  const std::string none = fmt::format("None of {} changes explains the difference", range.trials.size());
  const std::string starts = range.starts.empty() ? "" : ' ' + range.starts;
  if (verdict.causes.empty())
    return none + (range.trials.empty() ? "." : "; none of them fits noticeably better than the scenario itself.") +
           starts;
  const Trial& nearest = *verdict.causes.front();
  std::string text =
      fmt::format("{}. The nearest is {}: the median error is {}, the 90th percentile {}{}.", none, nearest.what.label,
                  percent_text(nearest.error.median_abs), percent_text(nearest.error.p90_abs), objections(nearest));
  for (const Trial& trial : range.trials)
    if (&trial != &nearest && trial.comes_near() && trial.must_be_set())
      return fmt::format("{} {} is also close{}.{}", text, trial.what.label, objections(trial), starts);
  return text + starts;
}

std::string probable_text(const Trial& plan, const MismatchRange& range) {
  return fmt::format(
      "Another plan probably ran: with {}, the median error is {}{}. None of {} changes explains the difference within "
      "{:.0f} %.",
      plan.what.label, percent_text(plan.error.median_abs), must_be_set_text(plan), range.trials.size(),
      100 * explained_within);
}

std::vector<std::string> labels_of(const std::vector<const Trial*>& trials) {
  std::vector<std::string> out;
  for (const Trial* trial : trials) out.push_back(trial->what.label);
  return out;
}

/// "; look at ...": each place once.
std::string look_text(const std::vector<const Trial*>& causes) {
  std::vector<std::string> places;
  for (const Trial* cause : causes)
    if (!cause->what.look.empty() && std::find(places.begin(), places.end(), cause->what.look) == places.end())
      places.push_back(cause->what.look);
  return places.empty() ? "" : fmt::format("; check {}", fmt::join(places, "; "));
}

std::string verdict_text(const MismatchRange& range, std::span<const ComparedRow> rows) {
  const Verdict verdict = verdict_of(range);
  const std::string wrong = contradiction(verdict, range);
  ensure(wrong.empty(), wrong);
  if (verdict.kind == Verdict::Kind::none) return no_verdict_text(verdict, range);
  const Trial& likely = *verdict.causes.front();
  if (verdict.kind == Verdict::Kind::probably) return probable_text(likely, range);
  const bool several = verdict.causes.size() > 1;
  std::string text =
      fmt::format("Likely: {} {} {} us at {}, measured {}", fmt::join(labels_of(verdict.causes), ", or "),
                  several ? "give" : "gives", us_text(likely.rows.back().us), format(rows[range.last].bytes()),
                  us_text(rows[range.last].measured_us()));
  if (several) text += "; their times are equal, so the measurement cannot distinguish them";
  if (likely.what.is_fitted) text += "; the number is fitted to these rows";
  text += must_be_set_text(likely);
  const bool has_others = std::any_of(
      rows.begin(), rows.end(), [](const ComparedRow& row) { return std::abs(error_of(row.result)) <= agreement; });
  if (has_others &&
      std::none_of(verdict.causes.begin(), verdict.causes.end(), [](const Trial* t) { return t->at_all_sizes(); }))
    text += "; other sizes were not tried, because NCCL chooses separately for each size";
  if (!verdict.others.empty())
    text += fmt::format("; these changes also explain it: {}", fmt::join(labels_of(verdict.others), ", "));
  if (range.size() < few_rows && !range.shared_us)
    text += fmt::format("; with only {}, the agreement may be a coincidence", rows_of_count(range.size()));
  return text + look_text(verdict.causes) + '.';
}

std::string about_text(const MeasuredTable& table, const ComparedRow& row) {
  const Prediction& p = row.result.prediction;
  std::string text = fmt::format("{} of {} ranks, {}: {} against {}", to_string(p.request.op), p.request.ranks,
                                 p.library.empty() ? algorithm_text(p) : p.library, row.scenario.name, table.file);
  if (table.about.contains("library")) text += fmt::format(" ({})", table.about.at("library"));
  return text;
}

/// Of files that do not name NCCL's release; else empty.
std::string assumed_release_text(const MeasuredTable& table, const ComparedRow& row) {
  const auto& library = row.scenario.library;
  const std::optional<SaidLibrary> said = said_library(table.about);
  if (!library || library->name != "nccl" || (said && (said->is_rccl || !said->version.empty()))) return "";
  return wrapped(fmt::format("{} does not name NCCL's release, so {} is assumed; to change it, set library.version.",
                             table.file, library->version)) +
         '\n';
}

Json row_json(const ComparedRow& row) {
  Json json = as_json(row.result, false);
  json["plan"] = {{"algorithm", row.algorithm}, {"protocol", row.protocol}};
  json["measured_busbw_GBps"] = measured_busbw(row);
  if (const ExplainedPart* holder = holder_of(row))
    json["held_by"] = {{"cause", holder->cause},
                       {"kind", holder->kind},
                       {"link", holder->link},
                       {"links", holder->links},
                       {"share", share_of_holder(row)}};
  return json;
}

Json trial_json(const Trial& trial) {
  Json json{{"label", trial.what.label}, {"set", trial.what.set}, {"fitted", trial.what.is_fitted}};
  if (!trial.was_run()) {
    json["refused"] = trial.refused;
    return json;
  }
  json["median_abs_error"] = trial.error.median_abs;
  json["p90_abs_error"] = trial.error.p90_abs;
  if (trial.by_formula != 1) json["by_formula"] = trial.by_formula;
  if (trial.at_all_sizes()) json["breaks"] = {{"rows", trial.lost}, {"of", trial.agreed}};
  json["explains"] = trial.explains();
  json["rows"] = Json::array();
  for (const Trial::Row& row : trial.rows)
    json["rows"].push_back(
        {{"time_us", row.us}, {"algorithm", row.algorithm}, {"protocol", row.protocol}, {"channels", row.channels}});
  return json;
}

Json range_json(const MismatchRange& range, std::span<const ComparedRow> rows) {
  Json json{{"from_bytes", rows[range.first].bytes().count},
            {"to_bytes", rows[range.last].bytes().count},
            {"rows", range.size()},
            {"algorithm", rows[range.first].algorithm},
            {"protocol", rows[range.first].protocol},
            {"median_error", range.error.median_signed},
            {"least_us", range.least_us},
            {"most_us", range.most_us},
            {"facts", range.facts}};
  const Verdict verdict = verdict_of(range);
  const bool is_likely = verdict.kind == Verdict::Kind::likely;
  json["likely"] = is_likely ? Json(verdict.causes.front()->what.label) : Json(nullptr);
  json["alike"] = is_likely ? labels_of(verdict.causes) : std::vector<std::string>{};
  json["probably"] = verdict.kind == Verdict::Kind::probably ? Json(verdict.causes.front()->what.label) : Json(nullptr);
  json["verdict"] = verdict_text(range, rows);
  json["trials"] = Json::array();
  for (const Trial& trial : range.trials) json["trials"].push_back(trial_json(trial));
  json["refused"] = Json::array();
  for (const Trial& trial : range.refused) json["refused"].push_back(trial_json(trial));
  return json;
}

}  // namespace

std::string mismatch_text(const MeasuredTable& table, std::span<const ComparedRow> rows,
                          std::span<const MismatchRange> ranges) {
  ensure(!rows.empty(), "there are rows to explain");
  const ErrorBand all = errors_of_rows(rows);
  std::string text =
      wrapped(about_text(table, rows.front())) + '\n' + assumed_release_text(table, rows.front()) + rows_text(rows);
  std::size_t apart = 0;
  for (const MismatchRange& range : ranges) apart += range.size();
  const std::string errors =
      fmt::format("median |error| {}, 90th percentile {}", percent_text(all.median_abs), percent_text(all.p90_abs));
  if (ranges.empty())
    return text +
           wrapped(fmt::format("Measured and predicted times agree within {:.0f} % in all rows: {}.", 100 * agreement,
                               errors)) +
           '\n';
  text += wrapped(fmt::format("Measured and predicted times differ by more than {:.0f} % in {} of {}: {}.",
                              100 * agreement, apart, rows_of_count(rows.size()), errors)) +
          '\n';
  for (const MismatchRange& range : ranges) {
    text += '\n' + wrapped(heading_text(range, rows)) + '\n';
    for (const std::string& fact : range.facts) text += wrapped(fact) + '\n';
    text += trials_text(range, rows) + wrapped(verdict_text(range, rows)) + '\n';
  }
  if (const std::optional<double> offset = ranges.front().shared_us)
    text += '\n' +
            wrapped(fmt::format("The difference is about the same in {} ranges, {:.0f} us, regardless of the plan. {}",
                                ranges.size() == 2 ? "both" : fmt::format("all {}", ranges.size()), *offset,
                                causes_of_offset(*offset))) +
            '\n';
  if (const CommonCauses common = common_causes(ranges); common.ranges > 1) {
    const auto n = static_cast<std::size_t>(common.ranges);
    text += '\n' +
            wrapped(fmt::format("{} {} ranges: {}.",
                                common.labels.size() == 1 ? "One change explains" : "Each of these changes explains",
                                n < ranges.size()    ? fmt::format("{} of {}", n, ranges.size())
                                : ranges.size() == 2 ? "both"
                                                     : fmt::format("all {}", n),
                                fmt::join(common.labels, "; "))) +
            '\n';
  }
  if (const auto missing = table.about.find("missing"); missing != table.about.end())
    text +=
        '\n' + wrapped(fmt::format("What the model lacks, according to {}: {}", table.file, missing->second)) + '\n';
  return text;
}

std::string mismatch_json(const ScenarioFile& file, const MeasuredTable& table, std::span<const ComparedRow> rows,
                          std::span<const MismatchRange> ranges) {
  ensure(!rows.empty(), "there are rows to explain");
  const ErrorBand all = errors_of_rows(rows);
  Json document{{"ringsim", {{"version", version}, {"model_version", model_version}}},
                {"scenario", {{"name", file.name()}, {"hash", file.hash()}}},
                {"measured", {{"file", table.file}, {"format", table.format}, {"about", table.about}}},
                {"median_abs_error", all.median_abs},
                {"p90_abs_error", all.p90_abs},
                {"rows", Json::array()},
                {"ranges", Json::array()}};
  for (const ComparedRow& row : rows) document["rows"].push_back(row_json(row));
  for (const MismatchRange& range : ranges) document["ranges"].push_back(range_json(range, rows));
  const CommonCauses common = common_causes(ranges);
  document["explain_several_ranges"] = {{"ranges", common.ranges}, {"labels", common.labels}};
  return json_text(document, 2) + "\n";
}

}  // namespace ringsim::tools
