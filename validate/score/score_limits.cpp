#include "validate/score/score_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"

namespace ringsim {

namespace {

double percent_of(double share) { return std::round(1000 * share) / 10; }

const ScoreLimit* limit_like(std::span<const ScoreLimit> limits, const ScoreLimit& band) {
  const auto found = std::find_if(limits.begin(), limits.end(), [&](const ScoreLimit& each) {
    return each.tables == band.tables && each.sizes == band.sizes;
  });
  return found == limits.end() ? nullptr : &*found;
}

std::string name_of_band(const ScoreLimit& band) { return fmt::format("{}, {}", band.tables, band.sizes); }

template <class Value>
Value member(const Json& entry, const char* key, bool fits, const std::string& file) {
  if (!entry.is_object() || !entry.contains(key) || !fits)
    throw InputError(file,
                     fmt::format("expected a list of objects with tables, sizes, rows, median and p90, found {}",
                                 in_quotes(json_text(entry))),
                     "`ringsim scorecard --format limits` writes these files");
  return entry[key].get<Value>();
}

}  // namespace

std::vector<ScoreLimit> score_limits_of(std::span<const ScoredTable> tables) {
  std::vector<ScoreLimit> limits;
  const auto add = [&](const std::string& name, const std::optional<Family>& family) {
    const std::vector<SizedError> errors = errors_of(tables, Model::library, family);
    if (errors.empty()) return;
    std::vector<ErrorBand> bands = error_bands(errors);
    bands.push_back(error_band("all sizes", errors));
    for (const ErrorBand& band : bands)
      limits.push_back({name, band.name, band.rows, percent_of(band.median_abs), percent_of(band.p90_abs)});
  };
  add("all", std::nullopt);
  for (const Family family : families) add(std::string(to_string(family)), family);
  return limits;
}

std::string to_json(std::span<const ScoreLimit> limits) {
  std::string text = "[";
  for (const ScoreLimit& limit : limits) {
    const Json entry{{"tables", limit.tables},
                     {"sizes", limit.sizes},
                     {"rows", limit.rows},
                     {"median", limit.median},
                     {"p90", limit.p90}};
    text += fmt::format("{}\n  {}", &limit == limits.data() ? "" : ",", json_text(entry));
  }
  return text + "\n]\n";
}

std::vector<ScoreLimit> read_score_limits(std::string_view text, const std::string& file) {
  const Json document = parse_json(text, file);
  if (!document.is_array() || document.empty())
    throw InputError(file, fmt::format("expected a list of bands, found {}", describe(document)),
                     "`ringsim scorecard --format limits` writes these files");
  std::vector<ScoreLimit> limits;
  for (const Json& entry : document) {
    const auto is_text = [&](const char* key) { return entry.is_object() && entry.value(key, Json()).is_string(); };
    const auto is_number = [&](const char* key) { return entry.is_object() && entry.value(key, Json()).is_number(); };
    const auto is_count = [&](const char* key) {
      if (!is_number(key) || !entry[key].is_number_integer()) return false;
      const auto count = entry[key].get<std::int64_t>();
      return count >= 0 && count <= INT_MAX;
    };
    limits.push_back({member<std::string>(entry, "tables", is_text("tables"), file),
                      member<std::string>(entry, "sizes", is_text("sizes"), file),
                      member<int>(entry, "rows", is_count("rows"), file),
                      member<double>(entry, "median", is_number("median"), file),
                      member<double>(entry, "p90", is_number("p90"), file)});
  }
  return limits;
}

LimitCheck check_limits(std::span<const ScoreLimit> now, std::span<const ScoreLimit> limits) {
  LimitCheck check;
  for (const ScoreLimit& band : now) {
    const ScoreLimit* limit = limit_like(limits, band);
    if (limit == nullptr) {
      check.worse.push_back(name_of_band(band) + ": there is no limit");
      continue;
    }
    const std::string rows = limit->rows == band.rows ? fmt::format("{} rows", band.rows)
                                                      : fmt::format("{} rows, then {}", band.rows, limit->rows);
    for (const auto& [what, is, was] :
         {std::tuple{"median", band.median, limit->median}, std::tuple{"90th percentile", band.p90, limit->p90}}) {
      if (is > was + limit_tolerance)
        check.worse.push_back(fmt::format("{}: {} {:.1f} %, but at most {:.1f} % is allowed ({})", name_of_band(band),
                                          what, is, was, rows));
      if (is < was - limit_tolerance)
        check.better.push_back(
            fmt::format("{}: {} {:.1f} %, {:.1f} % is allowed ({})", name_of_band(band), what, is, was, rows));
    }
  }
  for (const ScoreLimit& limit : limits)
    if (limit_like(now, limit) == nullptr)
      check.worse.push_back(name_of_band(limit) + ": it has a limit, but no scored row");
  return check;
}

}  // namespace ringsim
