#include "validate/score/calibrate.hpp"

#include <fmt/format.h>
#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <span>

#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "validate/score/scorecard.hpp"

namespace ringsim {

namespace {

/// [Factor]
using Values = std::array<double, factors.size()>;

constexpr std::size_t at(Factor factor) { return static_cast<std::size_t>(factor); }

Values nominal_values() {
  Values values{};
  for (const Factor factor : factors) values[at(factor)] = range_of(factor).nominal;
  return values;
}

/// As the optimizer sees them: ratios by their logarithm, launch in tens of microseconds, so that steps are alike.
double to_search(Factor factor, double value) { return factor == Factor::launch ? value / 10 : std::log(value); }
double from_search(Factor factor, double x) { return factor == Factor::launch ? x * 10 : std::exp(x); }

/// A point of the scenario with its proved schedules, which no factor changes.
struct Candidate {
  Scenario scenario;
  std::vector<PlacedSchedule> schedules;
};

struct FitRow {
  Bytes bytes;
  double measured_us = 0;
  bool fitted = true;
  std::vector<Candidate> candidates;
  std::size_t chosen = 0;
};

/// Rows with their candidates, and what they predict.
class Rowset {
 public:
  Rowset(const ScenarioFile& file, const MeasuredTable& table, Rows which, const std::atomic<bool>* stop)
      : stop_(stop) {
    take_rows(table, which);
    for (std::size_t i = 0; i < file.size(); ++i) {
      Scenario scenario = file.point(i);
      if (scenario.calibration)
        throw InputError(scenario.file + ": /calibration",
                         "expected a scenario without calibration, found a calibrated one",
                         "remove the calibration; the fitted factors apply to the published figures");
      const auto row = by_size_.find(scenario.main().request.bytes);
      if (row == by_size_.end() || table.rows.front().op != scenario.main().request.op) continue;
      auto schedules = schedules_of_elements(scenario, 1, stop);
      rows[row->second].candidates.push_back({std::move(scenario), std::move(schedules)});
    }
    for (const FitRow& row : rows) ensure(!row.candidates.empty(), "the scenario has the measured sizes");
  }

  /// Chooses the fastest candidate of each row. True if one changed.
  bool choose(const Values& values) {
    bool changed = false;
    for (FitRow& row : rows) {
      std::size_t best = 0;
      double least = 0;
      for (std::size_t c = 0; c < row.candidates.size(); ++c) {
        const double us = predicted(row.candidates[c], values);
        if (c == 0 || us < least) least = us, best = c;
      }
      changed = changed || best != row.chosen;
      row.chosen = best;
    }
    return changed;
  }

  double predicted(const FitRow& row, const Values& values) const {
    return predicted(row.candidates[row.chosen], values);
  }

  double mean_loss(const Values& values) const {
    double sum = 0;
    int n = 0;
    for (const FitRow& row : rows)
      if (row.fitted) sum += loss_of(predicted(row, values), row.measured_us), ++n;
    return sum / n;
  }

  std::optional<ErrorBand> errors(const Values& values, bool fitted) const {
    std::vector<SizedError> errors;
    for (const FitRow& row : rows)
      if (row.fitted == fitted) errors.push_back({row.bytes, predicted(row, values) / row.measured_us - 1});
    if (errors.empty()) return std::nullopt;
    return error_band("all sizes", errors);
  }

  std::vector<FitRow> rows;

 private:
  void take_rows(const MeasuredTable& table, Rows which) {
    const ScoredSizes sizes = scored_sizes(table);
    for (const MeasuredRow& row : table.rows)
      if (row.op == table.rows.front().op && sizes.contains(row.bytes))
        rows.push_back({.bytes = row.bytes, .measured_us = row.time_us});
    std::stable_sort(rows.begin(), rows.end(), [](const FitRow& a, const FitRow& b) { return a.bytes < b.bytes; });
    std::size_t n = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].fitted = which == Rows::all || (which == Rows::odd) == (i % 2 == 0);
      if (rows[i].fitted) ++n;
      by_size_[rows[i].bytes] = i;
    }
    if (n <= factors.size())
      throw InputError(table.file,
                       fmt::format("expected at least {} rows to fit, one more than the number of factors, found {}",
                                   factors.size() + 1, n));
  }

  double predicted(const Candidate& candidate, const Values& values) const {
    Scenario scenario = candidate.scenario;
    scale_links(scenario.topology, {.latency = values[at(Factor::latency)],
                                    .inside = values[at(Factor::inside)],
                                    .between = values[at(Factor::between)]});
    const Prediction p = predict(scenario, {.stop = stop_, .schedules = &candidate.schedules});
    return microseconds(p.time) + values[at(Factor::launch)];
  }

  const std::atomic<bool>* stop_;
  std::map<Bytes, std::size_t> by_size_;
};

/// Minimizes the mean loss over some factors for the points that are chosen.
class Search {
 public:
  Search(const Rowset& rows, const std::vector<Factor>& free, const Values& start)
      : rows_(rows), free_(free), values_(start), best_(start), least_(rows.mean_loss(start)) {}

  Values minimize() {
    constexpr int most_evaluations = 150;  // about 60 do for four factors
    constexpr double step = 0.2, precision = 1e-4;
    const auto n = static_cast<unsigned>(free_.size());
    std::vector<double> x, low, high;
    for (const Factor factor : free_) {
      const FactorRange range = range_of(factor);
      x.push_back(to_search(factor, values_[at(factor)]));
      low.push_back(to_search(factor, range.least));
      high.push_back(to_search(factor, range.most));
    }
    const std::unique_ptr<nlopt_opt_s, void (*)(nlopt_opt)> opt(nlopt_create(NLOPT_LN_BOBYQA, n), nlopt_destroy);
    ensure(opt != nullptr, "NLopt has BOBYQA");
    opt_ = opt.get();
    const bool set = nlopt_set_min_objective(opt_, objective, this) > 0 &&
                     nlopt_set_lower_bounds(opt_, low.data()) > 0 && nlopt_set_upper_bounds(opt_, high.data()) > 0 &&
                     nlopt_set_initial_step1(opt_, step) > 0 && nlopt_set_xtol_abs1(opt_, precision) > 0 &&
                     nlopt_set_maxeval(opt_, most_evaluations) > 0;
    ensure(set, "NLopt takes its settings");
    double loss = 0;
    // Its result code says why it ended; the best that it met is kept here in any case.
    nlopt_optimize(opt_, x.data(), &loss);
    if (error_) std::rethrow_exception(error_);
    return best_;
  }

 private:
  /// NLopt is C: nothing may be thrown through it.
  static double objective(unsigned n, const double* x, double*, void* self) {
    auto& search = *static_cast<Search*>(self);
    try {
      return search.loss_at({x, n});
    } catch (...) {
      search.error_ = std::current_exception();
      nlopt_force_stop(search.opt_);
      return 0;
    }
  }

  double loss_at(std::span<const double> x) {
    for (std::size_t i = 0; i < free_.size(); ++i) values_[at(free_[i])] = from_search(free_[i], x[i]);
    const double loss = rows_.mean_loss(values_);
    if (loss < least_) least_ = loss, best_ = values_;
    return loss;
  }

  const Rowset& rows_;
  const std::vector<Factor>& free_;
  Values values_, best_;
  double least_;
  nlopt_opt opt_ = nullptr;
  std::exception_ptr error_;
};

Values fit(Rowset& rows, const std::vector<Factor>& free, const Values& start) {
  constexpr int most_rounds = 8;
  Values best = start;
  rows.choose(best);
  double least = rows.mean_loss(best);
  for (int round = 0; round < most_rounds && !free.empty(); ++round) {
    const Values found = Search(rows, free, best).minimize();
    const bool changed = rows.choose(found);
    const double loss = rows.mean_loss(found);
    if (loss >= least) {
      rows.choose(best);
      break;
    }
    least = loss, best = found;
    if (!changed) break;
  }
  return best;
}

/// How the rows depend on the free factors: columns of d ln(predicted), for a launch per us, else per ln(factor).
std::vector<std::vector<double>> columns_at(const Rowset& rows, const std::vector<Factor>& free, const Values& values) {
  constexpr double step = 0.05;  // of a ratio: well above the picosecond's rounding, well below what turns a bottleneck
  std::vector<std::vector<double>> columns;
  for (const Factor factor : free) {
    std::vector<double> column;
    for (const FitRow& row : rows.rows) {
      if (!row.fitted) continue;
      if (factor == Factor::launch) {
        column.push_back(1 / rows.predicted(row, values));
        continue;
      }
      Values more = values, less = values;
      more[at(factor)] *= 1 + step;
      less[at(factor)] /= 1 + step;
      column.push_back(std::log(rows.predicted(row, more) / rows.predicted(row, less)) / (2 * std::log1p(step)));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The length of what is left of column k when all that the others can do is taken away (Gram and Schmidt, twice).
double left_of(const std::vector<std::vector<double>>& columns, std::size_t k) {
  std::vector<std::vector<double>> basis;
  const auto reduced = [&](std::vector<double> column) {
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::vector<double>& unit : basis) {
        const double along = dot(column, unit);
        for (std::size_t i = 0; i < column.size(); ++i) column[i] -= along * unit[i];
      }
    }
    return column;
  };
  for (std::size_t other = 0; other < columns.size(); ++other) {
    if (other == k) continue;
    std::vector<double> column = reduced(columns[other]);
    const double length = std::sqrt(dot(column, column));
    if (length < 1e-9 * std::sqrt(dot(columns[other], columns[other])) || length == 0) continue;
    for (double& each : column) each /= length;
    basis.push_back(std::move(column));
  }
  const std::vector<double> rest = reduced(columns[k]);
  return std::sqrt(dot(rest, rest));
}

/// Scatter of the rows about the fit: 1.4826 times the median |ln(predicted/measured)|, the standard deviation if
/// errors are normal; at least 1 %, what the same system measured again differs by (docs/results/accuracy.md's best
/// tables).
double scatter_of(const Rowset& rows, const Values& values) {
  std::vector<double> errors;
  for (const FitRow& row : rows.rows)
    if (row.fitted) errors.push_back(std::abs(std::log(rows.predicted(row, values) / row.measured_us)));
  return std::max(0.01, 1.4826 * quantile(std::move(errors), 0.5));
}

/// How uncertain a factor is, in units of what is allowed: above 1 it is not determined.
struct Uncertainty {
  double standard_error = 0, of_allowed = 0;
  bool moves_nothing = false;
};

std::vector<Uncertainty> uncertainties(const Rowset& rows, const std::vector<Factor>& free, const Values& values) {
  const auto columns = columns_at(rows, free, values);
  const double scatter = scatter_of(rows, values);
  std::vector<Uncertainty> out;
  for (std::size_t k = 0; k < free.size(); ++k) {
    const double left = left_of(columns, k);
    Uncertainty one{.standard_error = left > 0 ? scatter / left : std::numeric_limits<double>::infinity()};
    // Beyond a thousand it is rounding that decides which of two is worse: then the first of them is.
    const double allowed = free[k] == Factor::launch ? std::max(0.5, values[at(free[k])] / 4) : 0.25;
    one.of_allowed = std::min(one.standard_error / allowed, 1000.0);
    // Half or twice the factor, or 100 us, would not change any row by a hundredth.
    one.moves_nothing = std::all_of(columns[k].begin(), columns[k].end(),
                                    [&](double d) { return std::abs(d) < (free[k] == Factor::launch ? 1e-4 : 0.01); });
    out.push_back(one);
  }
  return out;
}

}  // namespace

std::string_view to_string(Factor factor) {
  constexpr std::array<std::string_view, factors.size()> names{"launch", "latency_scale", "efficiency_inside",
                                                               "efficiency_between"};
  return names[at(factor)];
}

FactorRange range_of(Factor factor) {
  switch (factor) {
    case Factor::launch:
      return {0, 0, 100};
    case Factor::latency:
      return {1, 0.25, 16};
    case Factor::inside:
    case Factor::between:
      return {1, 0.2, 1.2};
  }
  fail_invariant("there are four factors");
}

double loss_of(double predicted_us, double measured_us) {
  const double e = std::log(predicted_us / measured_us) / 0.1;
  return std::sqrt(1 + e * e) - 1;
}

Calibration CalibrationFit::calibration() const {
  const auto ratio = [&](Factor factor) { return std::round(factors[at(factor)].value * 1e6) / 1e6; };
  return {
      .launch = Picoseconds{std::llround(factors[at(Factor::launch)].value * 1e3) * 1000},
      .links = {.latency = ratio(Factor::latency), .inside = ratio(Factor::inside), .between = ratio(Factor::between)}};
}

CalibrationFit calibrate(const ScenarioFile& file, const MeasuredTable& table, Rows which,
                         const std::atomic<bool>* stop) {
  Rowset rows(file, table, which, stop);
  Values values = nominal_values();
  rows.choose(values);
  CalibrationFit out{.loss_before = rows.mean_loss(values),
                     .before = rows.errors(values, true),
                     .others_before = rows.errors(values, false)};
  for (const Factor factor : factors) out.factors.push_back({.factor = factor, .value = values[at(factor)]});

  std::vector<Factor> free(factors.begin(), factors.end());
  const auto leave_out = [&](std::size_t k, const char* because) {
    const Factor factor = free[k];
    out.factors[at(factor)].left_out = because;
    values[at(factor)] = range_of(factor).nominal;
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(k));
  };
  constexpr const char* nothing = "no row depends on it";
  const auto at_first = uncertainties(rows, free, values);
  for (std::size_t k = free.size(); k-- > 0;)
    if (at_first[k].moves_nothing) leave_out(k, nothing);
  for (;;) {
    values = fit(rows, free, values);
    const auto now = uncertainties(rows, free, values);
    const auto worst = std::max_element(
        now.begin(), now.end(), [](const Uncertainty& a, const Uncertainty& b) { return a.of_allowed < b.of_allowed; });
    if (worst != now.end() && worst->of_allowed > 1) {
      leave_out(static_cast<std::size_t>(worst - now.begin()),
                worst->moves_nothing ? nothing : "the rows do not distinguish it from other factors and from noise");
      continue;
    }
    for (std::size_t k = 0; k < free.size(); ++k) {
      FittedFactor& factor = out.factors[at(free[k])];
      const FactorRange range = range_of(free[k]);
      const auto near = [&](double bound) {
        return std::abs(to_search(free[k], values[at(free[k])]) - to_search(free[k], bound)) < 1e-3;
      };
      factor.value = values[at(free[k])];
      factor.standard_error = now[k].standard_error;
      factor.at_bound = (near(range.least) && range.least != range.nominal) || near(range.most);
    }
    break;
  }
  out.loss_after = rows.mean_loss(values);
  out.after = rows.errors(values, true);
  out.others_after = rows.errors(values, false);
  return out;
}

}  // namespace ringsim
