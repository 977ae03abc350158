#include "validate/score/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "validate/results/columns.hpp"

namespace ringsim {

namespace {

/// "4 B, 8 B, 16 B and 3 more".
std::string list_of(const std::vector<std::string>& items) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), most); ++i) text += (i == 0 ? "" : ", ") + items[i];
  if (items.size() > most) text += fmt::format(" and {} more", items.size() - most);
  return text;
}

std::string key_text(CollectiveOp op, std::int64_t bytes) {
  return fmt::format("{} of {}", to_string(op), format(Bytes{bytes}));
}

void require_one_op(const ScenarioFile& file, const std::string& path) {
  const Scenario first = file.point(0);
  for (std::size_t i = 0; i < file.size(); ++i) {
    const Scenario point = file.point(i);
    expect_collective(point);
    if (point.jobs.size() > 1)
      throw InputError(path + ": /jobs", "expected a single collective, as in the measurement, found other jobs");
    if (point.main().request.op != first.main().request.op)
      throw InputError(path + ": /collective/op",
                       fmt::format("expected one collective, found {} and {}", to_string(first.main().request.op),
                                   to_string(point.main().request.op)),
                       "choose one with --set collective.op=NAME");
  }
}

/// Rows that gave the launch would be compared with themselves.
void leave_out(MeasuredTable& table, std::span<const LaunchRow> input, std::vector<std::string>& warnings) {
  std::vector<LaunchRow> out;
  for (const LaunchRow& each : input)
    if (std::erase_if(table.rows, [&](const MeasuredRow& row) {
          return each.bytes == row.bytes && each.measured_us == row.time_us;
        }) > 0)
      out.push_back(each);
  if (out.empty()) return;
  if (table.rows.empty())
    throw InputError(table.file, "expected more rows than those used to fit the launch, found none",
                     "these rows would be compared with themselves");
  warnings.push_back(fmt::format("{}: {} determine{} the launch and {} not compared", table.file, sizes_text(out),
                                 out.size() == 1 ? "s" : "", out.size() == 1 ? "is" : "are"));
}

std::string with_size(std::int64_t bytes) { return fmt::format("\"{} B\"", bytes); }

/// "ring", "nccl 2.22.3", "parameter_server servers=2, topology.nodes 4".
std::string name_of(const Prediction& p) {
  std::string name = p.library.empty() ? algorithm_text(p) : p.library;
  for (const auto& [path, value] : p.varied)
    if (path != "collective.bytes" && !path.starts_with("collective.algorithm"))
      name += fmt::format(", {} {}", path, without_quotes(value));
  return name;
}

}  // namespace

ComparedWith compared_with(const ScenarioFile& file) {
  std::set<CollectiveOp> ops;
  std::set<int> ranks;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const Scenario point = file.point(i);
    ops.insert(point.main().request.op);
    ranks.insert(point.main().request.ranks);
  }
  return {.ops = {ops.begin(), ops.end()}, .ranks = {ranks.begin(), ranks.end()}};
}

ComparedFile load_at_measured_sizes(std::string_view text, const std::string& name, std::vector<std::string> overrides,
                                    const MeasuredFile& measured, std::optional<int> run,
                                    std::vector<std::string>& warnings, std::span<const LaunchRow> input) {
  // Once at any size that was measured, for its collective and ranks.
  overrides.push_back("collective.bytes=" + with_size(measured.first_size().count));
  const ScenarioFile at_one_size = ScenarioFile::parse(text, name, overrides);
  require_one_op(at_one_size, name);
  MeasuredTable table = measured.table(run, compared_with(at_one_size));
  warnings.insert(warnings.end(), table.warnings.begin(), table.warnings.end());
  if (!table.ranks)
    warnings.push_back(table.file +
                       ": the file does not state the number of ranks; the number in the scenario is assumed");
  leave_out(table, input, warnings);
  std::string sizes;
  for (const MeasuredRow& row : table.rows) sizes += (sizes.empty() ? "" : ", ") + with_size(row.bytes.count);
  overrides.back() = "collective.bytes=[" + sizes + "]";
  ScenarioFile file = ScenarioFile::parse(text, name, overrides);
  require_measured_ranks(file, table);
  return {std::move(file), std::move(table)};
}

void require_measured_ranks(const ScenarioFile& file, const MeasuredTable& table) {
  if (!table.ranks) return;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const Scenario point = file.point(i);
    if (point.main().request.ranks == *table.ranks) continue;
    throw InputError(table.file,
                     fmt::format("expected as many ranks as {} has, {}, found measurements with {}", point.file,
                                 point.main().request.ranks, *table.ranks),
                     how_to_change_ranks);
  }
}

Beside::Beside(const MeasuredTable& table) : table_(table) {
  for (const MeasuredRow& row : table.rows) rows_.emplace(Key{row.op, row.bytes.count}, std::pair{&row, false});
}

void Beside::add(Result& result) {
  const Prediction& prediction = result.prediction;
  if (!prediction.job.empty() && prediction.job != "main") return;
  const Key key{prediction.request.op, prediction.request.bytes.count};
  const auto found = rows_.find(key);
  if (found == rows_.end()) {
    if (std::find(alone_.begin(), alone_.end(), key) == alone_.end()) alone_.push_back(key);
    return;
  }
  found->second.second = true;
  result.measured_us = found->second.first->time_us;
}

std::vector<std::string> Beside::unmatched() const {
  std::vector<std::string> rows, points, told;
  for (const auto& [key, row] : rows_)
    if (!row.second) rows.push_back(key_text(key.first, key.second));
  for (const Key& key : alone_) points.push_back(key_text(key.first, key.second));
  if (!rows.empty())
    told.push_back(fmt::format("{}: {} of {} measured rows match no point of the scenario: {}", table_.file,
                               rows.size(), rows_.size(), list_of(rows)));
  if (!points.empty()) told.push_back(fmt::format("{}: there are no measurements of {}", table_.file, list_of(points)));
  return told;
}

namespace {

using Points = std::vector<const Result*>;

std::vector<SizedError> errors_of_points(const Points& points) {
  std::vector<SizedError> errors;
  for (const Result* r : points) errors.push_back({r->prediction.request.bytes, error_of(*r)});
  return errors;
}

/// Those of one plan each, in the order of their first points.
std::vector<ErrorBand> bands_by_plan(const Points& points) {
  std::vector<std::pair<std::string, Points>> plans;
  for (const Result* r : points) {
    const Prediction& p = r->prediction;
    if (p.library.empty()) return {};
    const std::string plan = algorithm_text(p) + ' ' + protocol_text(p);
    auto found = std::find_if(plans.begin(), plans.end(), [&](const auto& each) { return each.first == plan; });
    if (found == plans.end()) found = plans.insert(plans.end(), {plan, {}});
    found->second.push_back(r);
  }
  std::vector<ErrorBand> bands;
  if (plans.size() < 2) return bands;
  for (const auto& [plan, own] : plans) bands.push_back(error_band(plan, errors_of_points(own)));
  return bands;
}

}  // namespace

std::vector<Curve> curves_of(std::span<const Result> results) {
  std::vector<Curve> curves;
  std::size_t measured = 0, placed = 0;
  for (const Result& r : results) {
    if (!r.measured_us) continue;
    ++measured;
    const std::string name = name_of(r.prediction);
    auto curve = std::find_if(curves.begin(), curves.end(), [&](const Curve& c) { return c.name == name; });
    if (curve == curves.end()) curve = curves.insert(curves.end(), Curve{.name = name});
    curve->points.push_back(&r);
  }
  for (Curve& curve : curves) {
    const std::vector<SizedError> errors = errors_of_points(curve.points);
    curve.all = error_band("all sizes", errors);
    curve.bands = error_bands(errors);
    curve.plans = bands_by_plan(curve.points);
    placed += curve.points.size();
  }
  ensure(placed == measured, "each measured row is on one curve");
  return curves;
}

const Curve& nearest_of(std::span<const Curve> curves) {
  ensure(!curves.empty(), "the nearest is one of several curves");
  return *std::min_element(curves.begin(), curves.end(),
                           [](const Curve& a, const Curve& b) { return a.all.median_abs < b.all.median_abs; });
}

ErrorBand errors_of(std::span<const Curve> curves) {
  Points all;
  for (const Curve& curve : curves) all.insert(all.end(), curve.points.begin(), curve.points.end());
  return error_band("all rows", errors_of_points(all));
}

std::string headline_of(std::span<const Curve> curves) {
  const auto off = [](const ErrorBand& band) {
    std::string text =
        fmt::format("by {:.1f} % (median of {} row{})", 100 * band.median_abs, band.rows, band.rows == 1 ? "" : "s");
    if (band.rows >= 10) text += fmt::format(", and by more than {:.1f} % in one row out of ten", 100 * band.p90_abs);
    return text;
  };
  const Curve& nearest = nearest_of(curves);
  if (curves.size() == 1)
    return fmt::format("{}: predicted and measured times differ {}.", nearest.name, off(nearest.all));
  return fmt::format("Predicted and measured times differ {}. The nearest of the {} predictions is {}: {}.",
                     off(errors_of(curves)), curves.size(), nearest.name, off(nearest.all));
}

}  // namespace ringsim
