#include "validate/score/mismatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

namespace {

/// -1: predicted too fast; 1: too slow; 0: they agree.
int side_of(const ComparedRow& row) {
  const double error = error_of(row.result);
  return std::abs(error) <= agreement ? 0 : error < 0 ? -1 : 1;
}

std::string in_us(double us) { return us < 100 ? fmt::format("{:.2f} us", us) : fmt::format("{:.1f} us", us); }

/// Of the largest row that is faster than any algorithm can be.
std::optional<std::string> above_the_wires(std::span<const ComparedRow> rows) {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (measured_of_bound(row->result).value_or(0) <= 1) continue;
    const double bound = microseconds(*row->result.bound);
    return fmt::format(
        "At {} no algorithm takes less than {} over these links, {} was measured: {}", format(row->bytes()),
        in_us(bound), in_us(row->measured_us()),
        row->algorithm == "NVLS" || row->scenario.main().uses_fabric()
            ? "the links are faster, or more, than the scenario says."
            : "switches add up (NVLS, SHARP), or the links are faster, or more, than the scenario says.");
  }
  return std::nullopt;
}

/// What the plan puts on its busiest link takes longer than the measurement.
std::optional<std::string> above_the_plan(const ComparedRow& row) {
  const auto& links = row.result.prediction.links;
  const auto busiest = std::max_element(
      links.begin(), links.end(), [](const LinkGroup& a, const LinkGroup& b) { return a.utilisation < b.utilisation; });
  if (busiest == links.end()) return std::nullopt;
  const double least = busiest->utilisation * row.predicted_us();
  if (least <= row.measured_us()) return std::nullopt;
  return fmt::format(
      "At {} {} {} puts {} on {}, which takes {} at least, {} was measured: another plan ran, or the link is faster.",
      format(row.bytes()), row.algorithm, row.protocol, format(busiest->through_busiest), busiest->busiest,
      in_us(least), in_us(row.measured_us()));
}

/// Rows over a span of sizes that are off by the same time.
std::optional<std::string> constant_offset(const MismatchRange& range, std::span<const ComparedRow> rows) {
  constexpr double steady = 0.3;  // of the mean, from least to most
  constexpr int span_of_sizes = 4;
  const double mean = (range.least_us + range.most_us) / 2;
  if (rows.size() < 3 || rows.back().bytes().count < span_of_sizes * rows.front().bytes().count ||
      range.most_us - range.least_us > steady * std::abs(mean))
    return std::nullopt;
  return fmt::format("The difference is about the same at all sizes, {:.1f} us: launch, or the harness that calls.",
                     mean);
}

void add_facts(MismatchRange& range, std::span<const ComparedRow> rows) {
  if (auto fact = above_the_wires(rows))
    range.facts.push_back(std::move(*fact));
  else if (!range.is_slower())
    if (auto plan = above_the_plan(rows.back())) range.facts.push_back(std::move(*plan));
  if (auto fact = constant_offset(range, rows)) range.facts.push_back(std::move(*fact));
}

bool same_times(const Trial& a, const Trial& b) {
  return std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
                    [](const Trial::Row& x, const Trial::Row& y) { return x.us == y.us; });
}

}  // namespace

ErrorBand errors_of_rows(std::span<const ComparedRow> rows) {
  std::vector<SizedError> errors;
  for (const ComparedRow& row : rows) errors.push_back({row.bytes(), error_of(row.result)});
  return error_band("", errors);
}

std::vector<MismatchRange> mismatches_of(std::span<const ComparedRow> rows) {
  std::vector<MismatchRange> ranges;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int side = side_of(rows[i]);
    if (side == 0) continue;
    const bool goes_on = !ranges.empty() && ranges.back().last + 1 == i && side_of(rows[i - 1]) == side &&
                         rows[i].same_plan(rows[i - 1]);
    if (!goes_on) ranges.push_back({.first = i, .last = i});
    ranges.back().last = i;
  }
  for (MismatchRange& range : ranges) {
    const auto own = rows.subspan(range.first, range.size());
    range.error = errors_of_rows(own);
    range.least_us = range.most_us = own.front().measured_us() - own.front().predicted_us();
    for (const ComparedRow& row : own) {
      const double difference = row.measured_us() - row.predicted_us();
      range.least_us = std::min(range.least_us, difference);
      range.most_us = std::max(range.most_us, difference);
    }
    add_facts(range, own);
  }
  return ranges;
}

namespace {

/// Calls take(row, scenario, prediction) for the scenario with those changes, at the size of each row.
template <class Take>
void predict_at(const std::vector<const ComparedRow*>& rows, const std::string& text, const std::string& name,
                std::vector<std::string> set, const PredictOptions& options, Take take) {
  if (rows.empty()) return;
  std::string sizes;
  for (const ComparedRow* row : rows) sizes += fmt::format("{}\"{} B\"", sizes.empty() ? "" : ", ", row->bytes().count);
  set.push_back("collective.bytes=[" + sizes + "]");
  const ScenarioFile file = ScenarioFile::parse(text, name, set);
  if (file.size() != rows.size())
    throw InputError(name + ": /where", fmt::format("expected {} sizes, found {}", rows.size(), file.size()));
  for (std::size_t i = 0; i < file.size(); ++i) {
    const Scenario scenario = file.point(i);
    take(*rows[i], scenario, predict(scenario, options));
  }
}

/// What NCCL's formula takes `trial` to last, over what it takes the choice to last; 1 where it does not choose.
double formula_ratio(const Scenario& trial, const Scenario& choice) {
  if (!trial.library || !choice.library) return 1;
  const double chosen = choice.library->plan.tuner_us, other = trial.library->plan.tuner_us;
  return chosen > 0 && other > 0 ? other / chosen : 1;
}

}  // namespace

void run_trial(Trial& trial, const std::string& text, const std::string& name, std::vector<std::string> set,
               std::span<const ComparedRow> rows, const MismatchRange& range, const PredictOptions& options) {
  std::vector<const ComparedRow*> own, agreeing;
  for (const ComparedRow& row : rows.subspan(range.first, range.size())) own.push_back(&row);
  for (const ComparedRow& row : rows)
    if (side_of(row) == 0) agreeing.push_back(&row);
  set.insert(set.end(), trial.what.set.begin(), trial.what.set.end());
  std::vector<SizedError> errors;
  std::vector<double> ratios;
  trial.is_idle = true;
  try {
    predict_at(own, text, name, set, options,
               [&](const ComparedRow& row, const Scenario& scenario, const Prediction& p) {
                 trial.rows.push_back({.us = microseconds(p.time),
                                       .algorithm = algorithm_text(p),
                                       .protocol = protocol_text(p),
                                       .channels = p.request.channels});
                 errors.push_back({row.bytes(), trial.rows.back().us / row.measured_us() - 1});
                 ratios.push_back(formula_ratio(scenario, row.scenario));
                 if (p.time != row.result.prediction.time) trial.is_idle = false;
               });
    trial.by_formula = quantile(ratios, 0.5);
    trial.error = error_band("", errors);
    if (!trial.at_all_sizes()) return;
    trial.agreed = static_cast<int>(agreeing.size());
    predict_at(agreeing, text, name, set, options, [&](const ComparedRow& row, const Scenario&, const Prediction& p) {
      if (std::abs(microseconds(p.time) / row.measured_us() - 1) > agreement) ++trial.lost;
    });
  } catch (const InputError& error) {
    trial.rows.clear();
    trial.refused = error.what();
  }
}

void rank_trials(MismatchRange& range, std::vector<Trial> trials) {
  for (Trial& trial : trials) {
    if (!trial.was_run()) {
      range.refused.push_back(std::move(trial));
      continue;
    }
    const bool known = std::any_of(range.trials.begin(), range.trials.end(), [&](const Trial& other) {
      return same_times(trial, other) && trial.at_all_sizes() == other.at_all_sizes() && trial.lost == other.lost;
    });
    if (!trial.is_idle && !known) range.trials.push_back(std::move(trial));
  }
  std::stable_sort(range.trials.begin(), range.trials.end(), [](const Trial& a, const Trial& b) {
    return std::pair(a.what.is_fitted, a.error.median_abs) < std::pair(b.what.is_fitted, b.error.median_abs);
  });
}

const Trial* likely_of(const MismatchRange& range) {
  const Trial* best = nullptr;
  const auto rank = [](const Trial& trial) { return std::pair(trial.what.is_fitted, trial.must_be_set()); };
  for (const Trial& trial : range.trials)
    if (trial.explains() && (best == nullptr || rank(trial) < rank(*best))) best = &trial;
  return best;
}

}  // namespace ringsim
