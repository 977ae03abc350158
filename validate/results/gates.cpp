#include "validate/results/gates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "validate/results/column_names.hpp"

namespace ringsim {

namespace {

/// "+2.04 %"; of no time at all there is no share.
std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:+.2f} %", 100 * share) : "from 0"; }

double share_of_move(double was, double is) {
  if (was == is) return 0;
  return was == 0 ? std::numeric_limits<double>::infinity() : is / was - 1;
}

}  // namespace

Assertion Assertion::parse(const std::string& text) {
  const std::string name = "--assert " + in_quotes(text);
  constexpr std::string_view word = "where";
  const std::size_t cut = find_word(text, word);
  if (cut == std::string::npos) return {text, Expression::parse(text, name), std::nullopt};
  // Blanks in place of what comes before keep the columns right.
  const std::string behind = std::string(cut + word.size(), ' ') + text.substr(cut + word.size());
  return {text, Expression::parse(std::string_view(text).substr(0, cut), name), Expression::parse(behind, name)};
}

std::optional<bool> Assertion::ask(const ResultRow& row) const {
  const LookUp look_up = [&](const std::string& path) { return row.value(path); };
  try {
    if (where_ && !where_->holds(look_up)) return std::nullopt;
    return condition_.holds(look_up);
  } catch (const InputError& error) {
    throw InputError(error.where(), error.message() + ", in the row of " + row.label(), error.hint());
  }
}

std::vector<std::string> Assertion::paths() const {
  std::vector<std::string> paths = condition_.paths();
  if (where_)
    for (std::string& path : where_->paths()) paths.push_back(std::move(path));
  return paths;
}

void Assertion::require_known(const std::vector<std::string>& columns, const std::vector<std::string>& varied) const {
  for (const std::string& path : paths())
    if (const auto hint = hint_of_unknown(path, columns, varied))
      throw InputError("--assert " + in_quotes(text_),
                       fmt::format("expected a column of the results or a path that varies, found {}", in_quotes(path)),
                       *hint);
}

std::string Assertion::found(const ResultRow& row) const {
  std::string text;
  for (const std::string& path : condition_.paths()) {
    const Cell* cell = row.find(path);
    if (cell == nullptr) cell = row.find("point." + path);
    if (cell != nullptr) text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", path, plain_text(*cell));
  }
  return text;
}

Baseline::Baseline(const std::string& file) {
  const FileEnd end = read_results(file, [&](ResultRow&& row, std::string_view, const RowPlace& place) {
    Was was{.label = row.label(), .time_us = std::nullopt};
    if (!row.failed()) was.time_us = row.time_us();
    const auto [at, is_new] = points_[row.point()].emplace(row.job(), was);
    if (!is_new && at->second.time_us != was.time_us)
      throw InputError(
          fmt::format("{}:{}", file, place.line),
          fmt::format("expected each point only once in a baseline, found {} again with another time", was.label),
          "a baseline contains the results of one scenario");
  });
  if (end.torn)
    throw InputError(file, "expected complete lines in a baseline, found an incomplete last line",
                     "finish the sweep with --resume");
  if (points_.empty()) throw InputError(file, "expected a baseline with at least one result, found none");
}

const Baseline::Was* Baseline::meet(const ResultRow& row) {
  const auto point = points_.find(row.point());
  if (point == points_.end()) return nullptr;
  if (row.failed())  // it has no jobs now: all of the point are met
    for (auto& [job, was] : point->second) was.met = true;
  auto found = point->second.find(row.job());
  // A point that failed has one row; one with jobs has several.
  if (found == point->second.end() && (row.failed() || !point->second.begin()->second.time_us))
    found = point->second.begin();
  if (found == point->second.end()) return nullptr;
  found->second.met = true;
  return &found->second;
}

std::vector<std::string> Baseline::missing() const {
  std::vector<std::string> labels;
  for (const auto& [point, jobs] : points_)
    for (const auto& [job, was] : jobs)
      if (!was.met) labels.push_back(was.label);
  return labels;
}

Gates::Gates(const GateOptions& options) : options_(options) {
  for (const std::string& text : options_.assertions) assertions_.push_back(Assertion::parse(text));
  asked_.assign(assertions_.size(), 0);
  if (!options_.baseline.empty()) baseline_.emplace(options_.baseline);
}

void Gates::take(const ResultRow& row) {
  GateReport::Point point{.label = row.label(), .error = "", .failures = {}};
  if (row.failed()) {
    point.error = row.error();
    ++report_.failed_points;
  } else {
    for (std::size_t i = 0; i < assertions_.size(); ++i) {
      const std::optional<bool> holds = assertions_[i].ask(row);
      if (holds) ++asked_[i];
      if (holds && !*holds)
        point.failures.push_back(fmt::format("{}: {}", assertions_[i].text(), assertions_[i].found(row)));
    }
  }
  if (baseline_) compare(row, point);
  report_.failed_gates += point.failures.size();
  report_.points.push_back(std::move(point));
}

void Gates::compare(const ResultRow& row, GateReport::Point& point) {
  const Baseline::Was* was = baseline_->meet(row);
  if (was == nullptr) {
    report_.new_ones.push_back(point.label);
    return;
  }
  ++report_.compared;
  if (row.failed()) {
    if (was->time_us) point.failures.push_back(fmt::format("fails now, but took {} us in the baseline", *was->time_us));
    return;
  }
  const double is = row.time_us();
  if (!was->time_us) {
    point.failures.push_back(fmt::format("takes {} us now, but failed in the baseline", is));
    return;
  }
  const double share = share_of_move(*was->time_us, is);
  // A change of exactly the tolerance passes, however 102 / 100 - 1 is rounded.
  if (std::abs(is - *was->time_us) <= options_.tolerance * *was->time_us * (1 + 1e-12)) return;
  ++report_.moved;
  report_.largest_move = std::max(report_.largest_move, std::abs(share));
  point.failures.push_back(fmt::format("{}: {} us, in the baseline {} us ({})", share > 0 ? "slower" : "faster", is,
                                       *was->time_us, percent(share)));
}

GateReport Gates::report() && {
  if (options_.all_points) {
    for (std::size_t i = 0; i < assertions_.size(); ++i)
      if (asked_[i] == 0) report_.general.push_back(fmt::format("{}: it applies to no result", assertions_[i].text()));
    if (baseline_)
      for (const std::string& label : baseline_->missing())
        report_.general.push_back(fmt::format("missing: {} is only in the baseline", label));
  }
  report_.failed_gates += report_.general.size();
  return std::move(report_);
}

}  // namespace ringsim
