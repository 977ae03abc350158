#include "tools/pictures/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/quantity.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/json.hpp"
#include "tools/exit.hpp"
#include "tools/formats/result_fields.hpp"
#include "validate/results/column_names.hpp"

namespace ringsim::tools {

namespace {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;  // field and its text

std::optional<Quantity> number_in(const ResultRow& row, const std::string& name) {
  const auto value = row.value(name);
  if (!value || !std::holds_alternative<Quantity>(*value)) return std::nullopt;
  return std::get<Quantity>(*value);
}

AxisOf axis_of(const std::string& name, const std::vector<ResultRow>& rows) {
  bool whole = true;
  for (const ResultRow& row : rows) {
    const auto number = number_in(row, name);
    if (!number) continue;
    if (number->dimension == Dimension::size) return AxisOf::size;
    if (number->dimension == Dimension::time) return AxisOf::time;
    if (number->dimension == Dimension::rate) return AxisOf::rate;
    whole = whole && number->value == std::floor(number->value);
  }
  if (unit_of(name) == "B") return AxisOf::size;
  if (unit_of(name) == "share") return AxisOf::share;
  return whole ? AxisOf::count : AxisOf::number;
}

/// The name of a column in words, without its unit: "tokens/s per GPU" of tokens_per_s_per_gpu.
std::string words_of(std::string column) {
  const auto replace = [&](std::string_view part, std::string_view by) {
    for (std::size_t at = 0; (at = column.find(part, at)) != std::string::npos; at += by.size())
      column.replace(at, part.size(), by);
  };
  for (const char* unit : {"_us", "_GBps", "_bytes"})
    if (column.ends_with(unit)) column.resize(column.size() - std::string_view(unit).size());
  replace("split_us.", "");
  replace("_per_s", "/s");
  replace("_per_gpu", " per GPU");
  replace(".", " ");
  replace("_", " ");
  return column;
}

/// A column of results in words; a path as it is.
std::string label_of(const std::string& name, AxisOf of) {
  static const std::map<std::string, std::string> known{{"bytes", "message size"},
                                                        {"collective.bytes", "message size"},
                                                        {"busbw_GBps", "bus bandwidth (GB/s)"},
                                                        {"algbw_GBps", "algorithm bandwidth (GB/s)"},
                                                        {"of_bound", "share of what the machine allows"},
                                                        {"samples_per_s", "samples per second"},
                                                        {"tflops_per_gpu", "TFLOP/s per GPU"},
                                                        {"mfu", "MFU"},
                                                        {"tp", "tensor parallel ranks"},
                                                        {"pp", "pipeline stages"},
                                                        {"cp", "context parallel ranks"},
                                                        {"ep", "expert parallel ranks"},
                                                        {"dp", "data parallel ranks"},
                                                        {"inter_node.bytes", "bytes out of a node"},
                                                        {"inter_node.GBps", "rate out of a node (GB/s)"}};
  if (const auto found = known.find(name); found != known.end()) return found->second;
  const std::vector<std::string> columns = column_names(/*compared=*/true);
  const bool is_column = std::find(columns.begin(), columns.end(), name) != columns.end();
  const std::string words = is_column ? words_of(name) : name;
  return of == AxisOf::rate ? words + " (GB/s)" : words;
}

/// Paths that a column has the value of.
bool has_column(const std::string& path) {
  return path == "collective.bytes" || path == "collective.op" || path == "network.model" || path == "topology.ranks" ||
         path == "transport.protocol" || path == "collective.algorithm" || path.starts_with("collective.algorithm.");
}

/// What tells a row from others. What a library decides for each size is not among it, but for its name.
NamedTexts identity_of(const ResultRow& row) {
  NamedTexts fields;
  const bool planned = row.find("library") != nullptr;
  for (const char* column : {"file", "scenario.name", "job", "collective", "training", "workload", "library",
                             "algorithm", "protocol", "model", "ranks", "bytes"}) {
    const Cell* cell = row.find(column);
    const std::string name = column;
    if (cell == nullptr || (planned && (name == "algorithm" || name == "protocol"))) continue;
    fields.emplace_back(name, name == "algorithm" ? algorithm_text(row) : key_text(*cell));
  }
  for (const Cell& cell : row.cells)
    if (cell.column.starts_with("point.") && !has_column(cell.column.substr(6)))
      fields.emplace_back(cell.column, key_text(cell));
  return fields;
}

std::string text_in(const NamedTexts& fields, const std::string& name) {
  for (const auto& [field, text] : fields)
    if (field == name) return text;
  return "";
}

/// A value of a field for legends and titles: "ring", "tp 4", "8 ranks".
std::string in_words(const std::string& name, const std::string& value) {
  if (name == "ranks") return value + " ranks";
  if (name == "bytes") return size_text(parse_bytes(value));
  for (const char* bare :
       {"file", "scenario.name", "collective", "training", "workload", "library", "algorithm", "protocol", "model"})
    if (name == bare) return value;
  return fmt::format("{} {}", name.substr(name.rfind('.') + 1), value);
}

/// "1 point", "2 points".
std::string counted(std::size_t n, const std::string& what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// Identities of all rows, and which of their fields tell series apart.
class Splitting {
 public:
  Splitting(const std::vector<const ResultRow*>& rows, const std::string& x) : x_(x) {
    for (const ResultRow* row : rows) {
      identities_.push_back(identity_of(*row));
      const auto number = number_in(*row, x);
      xs_.push_back(number ? number->value : 0);
      for (const auto& [name, text] : identities_.back())
        if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
    }
    const auto drop_if = [&](auto&& holds) {
      names_.erase(std::remove_if(names_.begin(), names_.end(), holds), names_.end());
    };
    drop_if([&](const std::string& name) { return !varies(name) || name == x || name == "point." + x || is_x(name); });
    for (const char* derived : {"bytes", "ranks", "scenario.name"}) {
      const auto found = std::find(names_.begin(), names_.end(), derived);
      if (found != names_.end() && follows_from_others(derived)) names_.erase(found);
    }
  }

  const std::vector<std::string>& names() const { return names_; }

  /// What tells the row's series from others, whole.
  std::string series_of(std::size_t row) const {
    Json values = Json::array();
    for (const std::string& name : names_) values.push_back(text_in(identities_[row], name));
    return values.dump();
  }

  /// "ring, nodes 4": the same for display.
  std::string name_of(std::size_t row) const {
    std::string text;
    for (const std::string& name : names_) {
      const std::string value = text_in(identities_[row], name);
      if (value.empty()) continue;
      text += (text.empty() ? "" : ", ") + in_words(name, value);
    }
    if (!text.empty()) return text;
    for (const char* name : {"library", "algorithm"})
      if (std::string value = text_in(identities_[row], name); !value.empty()) return value;
    return "predicted";
  }

  /// "two DGX A100: all_reduce, 16 ranks": what all rows share.
  std::string title() const {
    const auto shared = [&](const std::string& name) {
      return varies(name) || identities_.empty() ? "" : text_in(identities_.front(), name);
    };
    std::string text;
    for (const char* name : {"collective", "training", "workload", "library", "algorithm", "ranks", "bytes"}) {
      const std::string value = shared(name);
      const bool is_collective_of_step = std::string(name) == "collective" && !shared("training").empty();
      if (value.empty() || name == x_ || is_x(name) || is_collective_of_step) continue;
      text += (text.empty() ? "" : ", ") + in_words(name, value);
    }
    const std::string scenario = shared("scenario.name");
    return scenario.empty() ? text : scenario + (text.empty() ? "" : ": " + text);
  }

 private:
  bool varies(const std::string& name) const {
    return std::any_of(identities_.begin(), identities_.end(), [&](const NamedTexts& fields) {
      return text_in(fields, name) != text_in(identities_.front(), name);
    });
  }

  /// True if it is a number that says the same as x: ranks, if x is the number of nodes.
  bool is_x(const std::string& name) const {
    if (name == "bytes" && (x_ == "bytes" || x_ == "collective.bytes")) return true;
    if (x_ == "bytes" || x_ == "collective.bytes" || (name != "ranks" && name.find('.') == std::string::npos))
      return false;
    std::map<double, std::string> of_x;
    std::map<std::string, double> to_x;
    for (std::size_t i = 0; i < identities_.size(); ++i) {
      const std::string text = text_in(identities_[i], name);
      if (of_x.try_emplace(xs_[i], text).first->second != text) return false;
      if (to_x.try_emplace(text, xs_[i]).first->second != xs_[i]) return false;
    }
    return of_x.size() > 1;
  }

  bool follows_from_others(const std::string& name) const {
    std::map<std::vector<std::string>, std::string> of_others;
    if (names_.size() < 2) return false;
    for (const NamedTexts& fields : identities_) {
      std::vector<std::string> others;
      for (const std::string& other : names_)
        if (other != name) others.push_back(text_in(fields, other));
      const std::string text = text_in(fields, name);
      if (of_others.try_emplace(others, text).first->second != text) return false;
    }
    return true;
  }

  std::string x_;
  std::vector<NamedTexts> identities_;  // [row]
  std::vector<double> xs_;              // [row]
  std::vector<std::string> names_;
};

/// bytes, if they vary; else the first number that does.
std::string chosen_x(const std::vector<const ResultRow*>& rows) {
  std::vector<std::string> names{"bytes", "ranks"};
  if (rows.front()->find("job") != nullptr)
    names.insert(names.begin(), "collective.bytes");  // jobs have their own sizes
  for (const Cell& cell : rows.front()->cells)
    if (cell.column.starts_with("point.") && !has_column(cell.column.substr(6))) names.push_back(cell.column.substr(6));
  for (const std::string& name : names) {
    std::set<double> values;
    for (const ResultRow* row : rows)
      if (const auto number = number_in(*row, name)) values.insert(number->value);
    if (values.size() > 1) return name;
  }
  return "bytes";
}

std::string chosen_y(const std::vector<const ResultRow*>& rows) {
  for (const ResultRow* row : rows)
    if (const auto busbw = number_in(*row, "busbw_GBps"); busbw && busbw->value > 0) return "busbw_GBps";
  return "time_us";
}

/// y if the run took `time` instead of its own: a time, a bandwidth, a share of the bound. Nothing for other columns.
std::optional<double> y_at(const std::string& y, const ResultRow& row, double value, const char* time) {
  const auto other = number_in(row, time), own = number_in(row, "time_us");
  if (!other || !own || other->value <= 0) return std::nullopt;
  if (y == "time_us") return other->value;
  if (y == "busbw_GBps" || y == "algbw_GBps" || y == "of_bound") return value * own->value / other->value;
  return std::nullopt;
}

/// y if the run were as fast as bandwidths and latencies of the machine's links allow.
std::optional<double> bound_at(const std::string& y, const ResultRow& row, double value) {
  const auto bandwidth = y_at(y, row, value, "bound_us"), latency = y_at(y, row, value, "latency_floor_us");
  if (!bandwidth || !latency) return bandwidth;
  return y == "time_us" ? std::max(*bandwidth, *latency) : std::min(*bandwidth, *latency);
}

/// The first point at the x of all others, as if n times its x were n times as fast.
std::vector<ChartPoint> ideal_of(const std::vector<ChartPoint>& points, bool is_time) {
  std::vector<ChartPoint> ideal;
  for (const ChartPoint& point : points) {
    const double speedup = point.x / points.front().x;
    ideal.push_back({point.x, is_time ? points.front().y / speedup : points.front().y * speedup});
  }
  return ideal;
}

/// Adds the series of measured times or bounds: one, if those of all series agree, else one for each.
void add_beside(Chart& chart, ChartSeries::Of of, const std::string& name,
                const std::vector<std::pair<std::string, std::vector<ChartPoint>>>& found) {
  std::map<double, double> together;
  bool agree = true;
  for (const auto& [of_series, points] : found)
    for (const ChartPoint& point : points) {
      const double there = together.try_emplace(point.x, point.y).first->second;
      agree = agree && std::abs(there - point.y) <= 1e-6 * there;
    }
  if (together.empty()) return;
  if (agree) {
    ChartSeries all{.of = of, .name = name, .points = {}};
    for (const auto& [x, y] : together) all.points.push_back({x, y});
    chart.series.push_back(std::move(all));
    return;
  }
  for (const auto& [of_series, points] : found)
    if (!points.empty())
      chart.series.push_back({.of = of, .name = fmt::format("{}: {}", name, of_series), .points = points});
}

std::vector<double> all_of(const Chart& chart, double ChartPoint::*coordinate) {
  std::vector<double> values;
  for (const ChartSeries& series : chart.series)
    for (const ChartPoint& point : series.points) values.push_back(point.*coordinate);
  return values;
}

}  // namespace

std::vector<double> Chart::xs() const { return all_of(*this, &ChartPoint::x); }
std::vector<double> Chart::ys() const { return all_of(*this, &ChartPoint::y); }

bool Chart::differs_in_names_alone() const {
  const auto predicted = std::count_if(series.begin(), series.end(),
                                       [](const ChartSeries& each) { return each.of == ChartSeries::Of::predicted; });
  const std::vector<double> all = xs();
  return predicted > 1 && std::all_of(all.begin(), all.end(), [&](double x) { return x == all.front(); });
}

void require_chart_fields(const ChartFields& fields, const std::vector<std::string>& varied, bool measured) {
  for (const auto& [option, name] :
       {std::pair<const char*, const std::string&>{"--x", fields.x}, {"--y", fields.y}, {"--by", fields.by}})
    if (!name.empty()) require_field(option, name, varied, measured);
}

Chart chart_of(const std::vector<ResultRow>& rows, const ChartFields& fields) {
  std::vector<const ResultRow*> done;
  for (const ResultRow& row : rows)
    if (!row.failed()) done.push_back(&row);
  if (done.empty()) throw UsageError("", "expected results to plot, found only failed points");
  const std::string x = fields.x.empty() ? chosen_x(done) : fields.x, y = fields.y.empty() ? chosen_y(done) : fields.y;
  Chart chart;
  chart.x_of = axis_of(x, rows);
  chart.y_of = axis_of(y, rows);
  if (fields.ideal && chart.y_of != AxisOf::time && !y.ends_with("_per_s"))
    throw UsageError("--ideal", fmt::format("expected a time or a rate per second as --y, found {}", in_quotes(y)),
                     "for example time_us, samples_per_s or tokens_per_s, over ranks");
  chart.x_label = label_of(x, chart.x_of);
  chart.y_label = label_of(y, chart.y_of);
  const Splitting splitting(done, x);
  chart.title = splitting.title();

  struct Drawn {
    std::vector<ChartPoint> predicted, measured, bound;
    std::map<double, const ResultRow*> at;
  };
  std::vector<std::pair<std::string, Drawn>> drawn;  // by name
  std::map<std::string, std::string> names;          // of series, by what tells them apart
  std::size_t no_place = 0, no_value = 0;
  for (std::size_t i = 0; i < done.size(); ++i) {
    const ResultRow& row = *done[i];
    const auto value_of = [&](const char* option, const std::string& name) -> std::optional<double> {
      const Cell* cell = field_of(row, name);
      if (cell == nullptr) return std::nullopt;
      const auto number = number_in(row, name);
      if (!number)
        throw UsageError(option, fmt::format("expected a column of numbers, found {}, which is {} in \"{}\"",
                                             in_quotes(name), in_quotes(plain_text(*cell)), row.label()));
      return number->value;
    };
    const std::optional<double> at = value_of("--x", x), value = value_of("--y", y);
    if (!at || !value) {
      ++no_value;
      continue;
    }
    std::string name = splitting.name_of(i);
    if (!fields.by.empty()) {
      const Cell* by = field_of(row, fields.by);
      name = by == nullptr ? "no " + fields.by
                           : in_words(fields.by, fields.by == "algorithm" ? algorithm_text(row) : key_text(*by));
    }
    const std::string own = fields.by.empty() ? splitting.series_of(i) : name;
    if (const auto known = names.find(own); known != names.end()) {
      name = known->second;
    } else {
      const std::string first = name;
      const auto is_taken = [&](const auto& each) { return each.first == name; };
      for (int n = 2; std::any_of(drawn.begin(), drawn.end(), is_taken); ++n) name = fmt::format("{} ({})", first, n);
      names.emplace(own, name);
    }
    auto found = std::find_if(drawn.begin(), drawn.end(), [&](const auto& each) { return each.first == name; });
    if (found == drawn.end()) found = drawn.insert(drawn.end(), {name, {}});
    Drawn& series = found->second;
    const auto [there, is_free] = series.at.try_emplace(*at, &row);
    if (!is_free) {
      const Difference difference = difference_of(*there->second, row, {x, fields.by});
      throw UsageError(fields.by.empty() ? "--x" : "--by",
                       fmt::format("expected one point per series and {}, found two of \"{}\" at {}: {}", x, name,
                                   axis_text(*at, chart.x_of),
                                   difference.text.empty() ? "this point occurs twice" : difference.text),
                       difference.name.empty() ? "remove one of them" : "remove --by, or choose one of them");
    }
    const auto add = [&](std::vector<ChartPoint>& points, double height) {
      if (*at > 0 && height > 0)
        points.push_back({*at, height});
      else
        ++no_place;
    };
    add(series.predicted, *value);
    if (const auto measured = y_at(y, row, *value, "measured_us")) add(series.measured, *measured);
    if (const auto bound = bound_at(y, row, *value); fields.bound && bound) add(series.bound, *bound);
  }
  std::vector<std::pair<std::string, std::vector<ChartPoint>>> measured, bounds, ideals;
  for (auto& [name, series] : drawn) {
    for (std::vector<ChartPoint>* points : {&series.predicted, &series.measured, &series.bound})
      std::sort(points->begin(), points->end(), [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    if (!series.predicted.empty())
      chart.series.push_back({.of = ChartSeries::Of::predicted, .name = name, .points = series.predicted});
    measured.emplace_back(name, series.measured);
    bounds.emplace_back(name, series.bound);
    if (fields.ideal && !series.predicted.empty())
      ideals.emplace_back(name, ideal_of(series.predicted, chart.y_of == AxisOf::time));
  }
  if (chart.series.empty())
    throw UsageError(no_value > 0 ? "--y" : "",
                     no_value > 0 ? fmt::format("expected names for which results have values, found {} and {}",
                                                in_quotes(x), in_quotes(y))
                                  : "expected a value above 0 to plot on logarithmic axes, found none");
  add_beside(chart, ChartSeries::Of::measured, "measured", measured);
  add_beside(chart, ChartSeries::Of::bound, "bound of the machine", bounds);
  add_beside(chart, ChartSeries::Of::bound, "ideal scaling", ideals);
  if (rows.size() > done.size()) chart.notes.push_back(counted(rows.size() - done.size(), "point") + " failed");
  if (no_value > 0)
    chart.notes.push_back(fmt::format("{} without {} or {} left out", counted(no_value, "point"), x, y));
  if (no_place > 0)
    chart.notes.push_back(fmt::format("{} not above 0 left out: the axes are logarithmic", counted(no_place, "value")));
  return chart;
}

}  // namespace ringsim::tools
