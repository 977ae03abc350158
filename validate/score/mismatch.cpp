#include "validate/score/mismatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

/// Rows that are faster than any algorithm can be: then the bound is wrong, and says nothing of the others either.
std::optional<std::string> above_the_wires(std::span<const ComparedRow> rows) {
  const ComparedRow* largest = nullptr;
  std::size_t n = 0;
  for (const ComparedRow& row : rows)
    if (measured_of_bound(row.result).value_or(0) > 1) ++n, largest = &row;
  if (n == 0) return std::nullopt;
  return fmt::format(
      "The bound does not hold for this machine: {} row{} faster than the links of the scenario allow, the largest {} "
      "in {}. {}",
      n, n == 1 ? " is" : "s are", format(largest->bytes()), in_us(largest->measured_us()),
      largest->algorithm == "NVLS" || largest->scenario.main().uses_fabric()
          ? "There are more or faster links than in the scenario."
          : "Switches add data (NVLS, SHARP), or there are more or faster links than in the scenario.");
}

/// What the plan puts on its busiest link takes longer than the measurement.
std::optional<std::string> above_the_plan(const ComparedRow& row) {
  const auto& links = row.result.prediction.links;
  const auto busiest = std::max_element(
      links.begin(), links.end(), [](const LinkGroup& a, const LinkGroup& b) { return a.utilization < b.utilization; });
  if (busiest == links.end()) return std::nullopt;
  const double least = busiest->utilization * row.predicted_us();
  if (least <= row.measured_us()) return std::nullopt;
  return fmt::format(
      "At {}, {} {} puts {} on {}, which takes at least {}, but {} was measured: another plan ran, or the link is "
      "faster.",
      format(row.bytes()), row.algorithm, row.protocol, format(busiest->through_busiest), busiest->busiest,
      in_us(least), in_us(row.measured_us()));
}

/// Before 2.18 the host starts each channel by itself: about 1.3 us each on the A100 and V100 of ABCI with 2.8.4
/// (validate/measured/tables/abci-a100-1n8g-all_reduce, abci-v100-1n4g-all_reduce). The costs do not have it, but a
/// scenario can (devices.gpu.launch_channel).
std::string starts_of_channels(const ComparedRow& row) {
  constexpr double each_us = 1.3, worth_saying = 0.25;  // of what is missing
  if (!row.scenario.library || row.scenario.library->name == "rccl") return "";
  if (row.scenario.library->call.starts_channels) return "";
  const int more = row.scenario.library->call.plan.launched - 1;
  const double missing = row.measured_us() - row.predicted_us();
  if (more * each_us < worth_saying * missing) return "";
  return fmt::format(
      "Before 2.18, NCCL starts each channel separately, in about 1.3 us: this is {:.0f} of the {:.0f} us missing at "
      "{} (devices.gpu.launch_channel).",
      std::min(more * each_us, missing), missing, format(row.bytes()));
}

constexpr double steady_offset = 0.3;  ///< from the least to the most difference, as a share of the mean

/// Rows over a span of sizes that are off by the same time.
std::optional<std::string> constant_offset(const MismatchRange& range, std::span<const ComparedRow> rows) {
  constexpr int span_of_sizes = 4;
  const double mean = (range.least_us + range.most_us) / 2;
  if (rows.size() < 3 || rows.back().bytes().count < span_of_sizes * rows.front().bytes().count ||
      range.most_us - range.least_us > steady_offset * std::abs(mean))
    return std::nullopt;
  return fmt::format("The difference is about the same at all sizes, {:.1f} us. {}", mean, causes_of_offset(mean));
}

void add_facts(MismatchRange& range, std::span<const ComparedRow> rows) {
  if (auto fact = above_the_wires(rows)) {
    range.facts.push_back(std::move(*fact));
  } else if (!range.is_slower()) {
    if (auto plan = above_the_plan(rows.back())) range.facts.push_back(std::move(*plan)), range.other_plan = true;
  }
  if (auto fact = constant_offset(range, rows)) range.facts.push_back(std::move(*fact));
}

/// Within a share of the first one's times.
bool same_times(const Trial& a, const Trial& b, double within) {
  return std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
                    [&](const Trial::Row& x, const Trial::Row& y) { return std::abs(x.us - y.us) <= within * x.us; });
}

/// True if a launch that is so much longer explains all rows of the ranges and leaves those alone that agree.
bool explains_all(double difference_us, std::span<const MismatchRange> ranges, std::span<const ComparedRow> rows) {
  const auto error = [&](const ComparedRow& row) {
    return std::abs((row.predicted_us() + difference_us) / row.measured_us() - 1);
  };
  std::vector<SizedError> errors;
  for (const MismatchRange& range : ranges)
    for (const ComparedRow& row : rows.subspan(range.first, range.size())) errors.push_back({row.bytes(), error(row)});
  std::ptrdiff_t agreed = 0, lost = 0;
  for (const ComparedRow& row : rows)
    if (side_of(row) == 0) ++agreed, lost += error(row) > agreement ? 1 : 0;
  const ErrorBand band = error_band("", errors);
  return band.median_abs <= explained_within && band.p90_abs <= agreement && 10 * lost <= agreed;
}

bool have_several_plans(std::span<const MismatchRange> ranges, std::span<const ComparedRow> rows) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const MismatchRange& range) {
    return !rows[range.first].same_plan(rows[ranges.front().first]);
  });
}

/// The difference if it is about the same in ranges of several plans, or one number explains all of them, with enough
/// rows that this is no chance.
std::optional<double> shared_difference(std::span<const MismatchRange> ranges, std::span<const ComparedRow> rows) {
  constexpr std::size_t enough = 4;
  std::size_t n = 0;
  for (const MismatchRange& range : ranges) n += range.size();
  if (!have_several_plans(ranges, rows) || n < enough) return std::nullopt;
  double least = ranges.front().least_us, most = ranges.front().most_us;
  for (const MismatchRange& range : ranges) {
    least = std::min(least, range.least_us);
    most = std::max(most, range.most_us);
  }
  const double mean = (least + most) / 2;
  if (most - least <= steady_offset * std::abs(mean)) return mean;
  std::vector<double> differences;  // a measurement's own spread may be as large
  for (const MismatchRange& range : ranges)
    for (const ComparedRow& row : rows.subspan(range.first, range.size()))
      differences.push_back(row.measured_us() - row.predicted_us());
  const double median = quantile(differences, 0.5);
  return explains_all(median, ranges, rows) ? std::optional(median) : std::nullopt;
}

}  // namespace

ErrorBand errors_of_rows(std::span<const ComparedRow> rows) {
  std::vector<SizedError> errors;
  for (const ComparedRow& row : rows) errors.push_back({row.bytes(), error_of(row.result)});
  return error_band("", errors);
}

std::vector<MismatchRange> mismatches_of(std::span<const ComparedRow> rows, const std::string& release) {
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
    if (range.is_slower() && may_start_channels_alone(release)) range.starts = starts_of_channels(own.back());
  }
  const std::optional<double> shared = shared_difference(ranges, rows);
  for (MismatchRange& range : ranges) range.shared_us = shared;
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

/// What NCCL's formula takes `trial` to last, over what it takes the choice to last; 1 if it does not choose.
double formula_ratio(const Scenario& trial, const Scenario& choice) {
  if (!trial.library || !choice.library) return 1;
  const double chosen = choice.library->call.plan.tuner_us, other = trial.library->call.plan.tuner_us;
  return chosen > 0 && other > 0 ? other / chosen : 1;
}

/// Puts the number in that brings the rows to what was measured in the median, and says what it is.
void fit_trial(Trial& trial, const std::string& text, const std::string& name, const std::vector<std::string>& set,
               const std::vector<const ComparedRow*>& rows, const PredictOptions& options) {
  constexpr int passes = 3;  // times may depend on it unevenly if it hides behind something else
  const Alternative::Fit& fit = *trial.what.fit;
  const auto said = [&](double us) { return fmt::format("{}={:.6f} us", fit.key, us); };
  double us = fit.unit_us;
  for (int pass = 0; pass < passes && us > 0 && us <= fit.most_us; ++pass) {
    std::vector<std::string> more = set;
    more.push_back(said(fit.now_us + us));
    std::vector<double> needed;
    predict_at(rows, text, name, std::move(more), options,
               [&](const ComparedRow& row, const Scenario&, const Prediction& p) {
                 const double gained = microseconds(p.time) - row.predicted_us();
                 if (gained > 0) needed.push_back(us * (row.measured_us() - row.predicted_us()) / gained);
               });
    us = needed.empty() ? 0 : std::round(100 * quantile(needed, 0.5)) / 100;
  }
  trial.what.label = fmt::format(fmt::runtime(fit.label), fmt::format("{:.3g}", fit.shown * us));
  trial.is_idle = us <= 0 || us > fit.most_us;
  trial.what.set = {said(fit.now_us + us)};
}

}  // namespace

void run_trial(Trial& trial, const std::string& text, const std::string& name, std::vector<std::string> set,
               std::span<const ComparedRow> rows, const MismatchRange& range, const PredictOptions& options) {
  std::vector<const ComparedRow*> own, agreeing;
  for (const ComparedRow& row : rows.subspan(range.first, range.size())) own.push_back(&row);
  for (const ComparedRow& row : rows)
    if (side_of(row) == 0) agreeing.push_back(&row);
  std::vector<SizedError> errors;
  std::vector<double> ratios;
  try {
    if (trial.what.fit) fit_trial(trial, text, name, set, own, options);
    if (trial.is_idle) return;
    set.insert(set.end(), trial.what.set.begin(), trial.what.set.end());
    trial.is_idle = true;
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
    // Variables that lead to one plan are one cause; what is so of the machine is another one.
    const bool known = std::any_of(range.trials.begin(), range.trials.end(), [&](const Trial& other) {
      return !trial.what.is_everywhere && !other.what.is_everywhere && same_times(trial, other, 0) &&
             trial.at_all_sizes() == other.at_all_sizes() && trial.lost == other.lost;
    });
    if (!trial.is_idle && !known) range.trials.push_back(std::move(trial));
  }
  std::stable_sort(range.trials.begin(), range.trials.end(), [](const Trial& a, const Trial& b) {
    return std::pair(a.what.is_fitted, a.error.median_abs) < std::pair(b.what.is_fitted, b.error.median_abs);
  });
}

namespace {

/// Less: said before others.
std::tuple<bool, bool, bool, bool> class_of(const Trial& trial) {
  return {trial.what.is_fitted, !trial.is_common, trial.must_be_set(), !trial.what.is_shared};
}

bool may_have_run(const Trial& trial) {
  return trial.what.is_plan && trial.error.median_abs <= probable_within && 10 * trial.lost <= trial.agreed;
}

bool is_nearer(const Trial& a, const Trial& b) { return a.error.median_abs < b.error.median_abs; }

/// True if a number that holds at all sizes explains the range much better than this plan, which NCCL takes at some
/// sizes or only if it must. One or two rows can be fitted by any number. If ranges of different plans share their
/// difference, a number that explains the range outdoes every other change: none explains them all (compare_ranges()).
bool is_outdone(const Trial& trial, const MismatchRange& range) {
  if (trial.what.is_fitted || (trial.what.is_everywhere && !range.shared_us)) return false;
  if (trial.rows.size() < 3 && !range.shared_us) return false;
  return std::any_of(range.trials.begin(), range.trials.end(), [&](const Trial& fitted) {
    return fitted.what.is_fitted && fitted.at_all_sizes() && fitted.explains() &&
           (range.shared_us || much_nearer * fitted.error.median_abs < trial.error.median_abs);
  });
}

/// The mean of the medians of what a label's trials are off, over all rows; nothing unless they explain every range.
std::optional<double> error_over_all(std::span<const MismatchRange> ranges,
                                     const std::function<bool(const Trial&)>& is_meant) {
  double sum = 0;
  std::size_t n = 0;
  for (const MismatchRange& range : ranges) {
    const auto found = std::find_if(range.trials.begin(), range.trials.end(),
                                    [&](const Trial& trial) { return is_meant(trial) && trial.explains(); });
    if (found == range.trials.end()) return std::nullopt;
    sum += found->error.median_abs * static_cast<double>(range.size());
    n += range.size();
  }
  return sum / static_cast<double>(n);
}

/// True if it may be named as a cause.
bool is_cause(const Trial& trial, const MismatchRange& range) { return trial.explains() && !is_outdone(trial, range); }

}  // namespace

void compare_ranges(std::vector<MismatchRange>& ranges, std::span<const ComparedRow> rows) {
  if (!have_several_plans(ranges, rows)) return;
  const std::optional<double> launch =
      error_over_all(ranges, [](const Trial& trial) { return trial.what.is_fitted && trial.what.is_everywhere; });
  std::set<std::string> common;
  bool is_nearer_than_launch = !launch;
  for (const Trial& trial : ranges.front().trials) {
    if (trial.what.is_fitted) continue;
    const std::optional<double> all =
        error_over_all(ranges, [&](const Trial& other) { return other.what.label == trial.what.label; });
    if (!all) continue;
    common.insert(trial.what.label);
    is_nearer_than_launch = is_nearer_than_launch || *all < *launch;
  }
  if (common.empty()) return;
  for (MismatchRange& range : ranges) {
    if (range.shared_us && is_nearer_than_launch) range.shared_us.reset();
    for (Trial& trial : range.trials)
      trial.is_common = !range.shared_us && !trial.what.is_fitted && common.contains(trial.what.label);
  }
}

Verdict verdict_of(const MismatchRange& range) {
  Verdict out;
  const Trial *likely = nullptr, *nearest = nullptr, *plan = nullptr;
  for (const Trial& trial : range.trials) {
    const auto before = [&](const Trial* best) {
      return best == nullptr || class_of(trial) < class_of(*best) ||
             (class_of(trial) == class_of(*best) && is_nearer(trial, *best));
    };
    if (is_cause(trial, range) && before(likely)) likely = &trial;
    if (nearest == nullptr || is_nearer(trial, *nearest)) nearest = &trial;
    if (may_have_run(trial) && (plan == nullptr || is_nearer(trial, *plan))) plan = &trial;
  }
  if (likely == nullptr) {
    if (range.other_plan && plan != nullptr) return {Verdict::Kind::probably, {plan}, {}};
    constexpr double noticeably = 0.001;  // the last digit that is printed
    if (nearest != nullptr && nearest->error.median_abs < range.error.median_abs - noticeably) out.causes = {nearest};
    return out;
  }
  out.kind = Verdict::Kind::likely;
  out.causes = {likely};
  for (const Trial& trial : range.trials) {
    if (&trial == likely || !is_cause(trial, range) || trial.what.is_fitted != likely->what.is_fitted) continue;
    const bool alike = class_of(trial) == class_of(*likely) && same_times(*likely, trial, alike_within);
    (alike ? out.causes : out.others).push_back(&trial);
  }
  return out;
}

std::string_view causes_of_offset(double us) {
  return us > 0 ? "A longer launch, the benchmark harness, or a rank that is late each time can cause this."
                : "A shorter launch can cause this: a faster CPU or driver, or CUDA graphs.";
}

CommonCauses common_causes(std::span<const MismatchRange> ranges) {
  // [cause] how many ranges it explains, each release by itself. In the order of the trials of the first such range.
  std::vector<std::pair<std::string, int>> counts;
  std::set<std::string> releases;
  for (const MismatchRange& range : ranges) {
    std::set<std::string> here;
    for (const Trial& trial : range.trials) {
      if (trial.what.is_fitted || !is_cause(trial, range)) continue;
      releases.insert(trial.what.releases.begin(), trial.what.releases.end());
      for (const std::string& cause :
           trial.what.releases.empty() ? std::vector{trial.what.label} : trial.what.releases) {
        if (!here.insert(cause).second) continue;
        const auto known =
            std::find_if(counts.begin(), counts.end(), [&](const auto& each) { return each.first == cause; });
        if (known == counts.end())
          counts.emplace_back(cause, 1);
        else
          ++known->second;
      }
    }
  }
  CommonCauses out;
  for (const auto& [cause, n] : counts) out.ranges = std::max(out.ranges, n);
  if (out.ranges < 2 || 2 * static_cast<std::size_t>(out.ranges) < ranges.size()) return {};
  std::vector<std::string> versions;
  for (const auto& [cause, n] : counts) {
    if (n < out.ranges) continue;
    if (releases.contains(cause))
      versions.push_back(cause);
    else
      out.labels.push_back(cause);
  }
  if (!versions.empty()) out.labels.push_back(releases_text(versions));
  return out;
}

std::string contradiction(const Verdict& verdict, const MismatchRange& range) {
  const Trial* first = verdict.causes.empty() ? nullptr : verdict.causes.front();
  if (verdict.kind != Verdict::Kind::likely) {
    for (const Trial& trial : range.trials)
      if (trial.explains()) return fmt::format("{} explains the range, and no cause is said to", trial.what.label);
    if (verdict.kind == Verdict::Kind::none) return "";
    if (first == nullptr || !may_have_run(*first)) return "a plan is said to have run that is not near enough";
    return range.other_plan ? "" : "another plan is said to have run, and the scenario's own can have";
  }
  if (first == nullptr) return "a cause is likely, and none is named";
  for (const Trial* cause : verdict.causes)
    if (!is_cause(*cause, range))
      return fmt::format("{} is said to be likely, and does not explain", cause->what.label);
  for (const Trial& trial : range.trials) {
    if (!is_cause(trial, range)) continue;
    if (class_of(trial) < class_of(*first)) return fmt::format("{} comes before the likely cause", trial.what.label);
    if (class_of(trial) == class_of(*first) && is_nearer(trial, *first))
      return fmt::format("{} is nearer than the likely cause", trial.what.label);
  }
  return "";
}

}  // namespace ringsim
