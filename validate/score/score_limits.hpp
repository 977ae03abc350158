// A ratchet on the scorecard: what errors of the column `library` a reviewed file allows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/score/scorecard.hpp"

namespace ringsim {

/// Errors of one band of sizes, of all tables or of one family, in percent.
struct ScoreLimit {
  std::string tables, sizes;  ///< "all", or to_string(Family); as ErrorBand::name
  int rows = 0;               ///< how many the figures are of
  double median = 0, p90 = 0;
};

/// What Model::library has of these tables: for all of them and for each family every band that has scored rows, and
/// all sizes. Rounded to 0.1 %.
std::vector<ScoreLimit> score_limits_of(std::span<const ScoredTable> tables);

/// As a file, one band a line, and back. Throws InputError at `file` for what is no such file.
std::string to_json(std::span<const ScoreLimit> limits);
std::vector<ScoreLimit> read_score_limits(std::string_view text, const std::string& file);

/// Percentage points that a band may be off its limit: rounding, and last digits that differ between compilers.
inline constexpr double limit_tolerance = 0.5;

/// How bands differ from their limits by more than the tolerance, as sentences.
struct LimitCheck {
  std::vector<std::string> worse;   ///< also: a band without a limit, a limit without a band
  std::vector<std::string> better;  ///< the limit can be lower
};
LimitCheck check_limits(std::span<const ScoreLimit> now, std::span<const ScoreLimit> limits);

}  // namespace ringsim
