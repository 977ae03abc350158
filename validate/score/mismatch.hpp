// Finds where measured and predicted times differ, and which change of the scenario makes them agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/measured/measured.hpp"
#include "validate/score/alternatives.hpp"

namespace ringsim {

/// Rows within this share of each other agree. The same system measured again is as far off in one row of ten (computed
/// from repeated published tables: 6 % up to 64 KiB, 24 % up to 8 MiB, 3 % above).
inline constexpr double agreement = 0.10;
/// A change explains a range if the median of its rows comes as near as this, nine of ten rows agree, and, for what is
/// so at all sizes, nine of ten of the rows that agree without it still do.
inline constexpr double explained_within = 0.05;
/// A plan that comes as near as this has probably run if the scenario's own cannot have run, though it explains
/// nothing.
inline constexpr double probable_within = 0.15;
/// A plan that is near in a range of three rows or more is chance if a fitted number that holds at all sizes explains
/// the range so many times nearer.
inline constexpr double much_nearer = 3;
/// Times of two changes that are as near as this do not tell them apart.
inline constexpr double alike_within = 0.005;
/// NCCL chooses by a formula. What that takes to last more than this many times as long as the choice, NCCL does only
/// if a variable says so, and then at all sizes. Speeds that its search found may differ from those here by less.
inline constexpr double far_from_chosen = 2;

/// An alternative, run at the sizes of a range.
struct Trial {
  Alternative what;
  struct Row {
    double us = 0;
    std::string algorithm, protocol;
    int channels = 1;
  };
  std::vector<Row> rows;  ///< as the range's; empty if it was refused
  std::string refused;    ///< why it cannot be
  ErrorBand error;        ///< against what was measured
  bool is_idle = false;   ///< it changes nothing
  /// What NCCL's formula takes the trial to last, over what it takes its own choice to last: the median of the rows.
  double by_formula = 1;
  int agreed = 0;          ///< rows of the table that agree without it; 0 if it need not be so at all sizes
  int lost = 0;            ///< those of them that no longer do
  bool is_common = false;  ///< it explains every range, and these are of several plans

  bool was_run() const { return refused.empty(); }
  /// Of another plan. What takes a way from NCCL changes the formula's times as well, and its choice with them.
  bool must_be_set() const { return what.is_plan && by_formula > far_from_chosen; }
  bool at_all_sizes() const { return what.is_everywhere || must_be_set(); }
  bool comes_near() const { return error.median_abs <= explained_within && error.p90_abs <= agreement; }
  bool explains() const { return comes_near() && 10 * lost <= agreed; }
};

/// Consecutive rows that are off to the same side, by one plan.
struct MismatchRange {
  std::size_t first = 0, last = 0;   ///< rows, both inclusive
  ErrorBand error;                   ///< of the prediction
  double least_us = 0, most_us = 0;  ///< of measured - predicted
  std::vector<std::string> facts;    ///< what follows from the rows alone, as sentences
  std::string starts;                ///< what old releases of NCCL would add, if it matters, as a sentence
  /// The difference in microseconds, if it is about the same in all ranges, or explains all of them: four rows or more,
  /// of different plans.
  std::optional<double> shared_us;
  bool other_plan = false;     ///< the plan's own bytes take longer over its links than was measured
  std::vector<Trial> trials;   ///< those that changed something, the nearest first; fitted ones after the others
  std::vector<Trial> refused;  ///< alternatives that cannot be

  bool is_slower() const { return error.median_signed < 0; }  ///< measured takes longer than predicted
  std::size_t size() const { return last - first + 1; }
};

/// The errors of those rows together.
ErrorBand errors_of_rows(std::span<const ComparedRow> rows);

/// Rows by size, the smallest first. Those that agree are in no range. `release`: of NCCL, as the measured file has it,
/// one that is modeled; empty: it does not say.
std::vector<MismatchRange> mismatches_of(std::span<const ComparedRow> rows, const std::string& release = {});

/// Runs a trial at the sizes of a range and, for what is so at all sizes, at those of all rows that agree: the
/// scenario's text with `set` and its own changes, as `ringsim run --set` would. A plan of NCCL's is so at all sizes if
/// the formula is far from choosing it. What cannot be is refused, with its reason. `rows`: all of them.
void run_trial(Trial& trial, const std::string& text, const std::string& name, std::vector<std::string> set,
               std::span<const ComparedRow> rows, const MismatchRange& range, const PredictOptions& options);

/// Sorts the trials that were run by the median of their errors and sets those apart that were refused; drops those
/// that change nothing, and plans that come out as an earlier one.
void rank_trials(MismatchRange& range, std::vector<Trial> trials);

/// Of ranges of several plans, whose trials are ranked: marks the changes without a fitted number that explain every
/// range. If one of them is nearer than the launch, the difference is the same by chance, and no longer shared.
void compare_ranges(std::vector<MismatchRange>& ranges, std::span<const ComparedRow> rows);

/// What the trials of a range say.
struct Verdict {
  enum class Kind : std::uint8_t {
    likely,    ///< `causes` explain the range
    probably,  ///< the scenario's plan cannot have run; of others the cause comes nearest, within probable_within
    none,      ///< no trial explains it; the cause, if any, comes nearest and is noticeably nearer than the prediction
  } kind = Kind::none;
  /// The nearest of its class, then those whose times are alike: times do not tell them apart.
  std::vector<const Trial*> causes;
  std::vector<const Trial*> others;  ///< also explain the range, with a fitted number if the causes have one
};

/// Likely is the nearest trial that explains the range, one that explains all ranges before others, one that must be
/// set only if no other does, one with a fitted number only if none of these does, or if it is so at all sizes and each
/// of these is a plan: one that it is much_nearer than, or, if the ranges share their difference, any.
Verdict verdict_of(const MismatchRange& range);

struct CommonCauses {
  int ranges = 0;                   ///< how many each of them explains
  std::vector<std::string> labels;  ///< in the order of the trials; releases, which count one by one, last
};
/// The changes without a fitted number that explain most ranges: two or more, and half of all. None: no ranges.
CommonCauses common_causes(std::span<const MismatchRange> ranges);

/// Names what can make all measured times longer than predicted by about `us`; if it is below 0, shorter. A sentence.
std::string_view causes_of_offset(double us);

/// Checks a verdict against the table of trials; returns what is wrong, or an empty string. A likely cause must explain
/// the range, and no other cause of the same class may be nearer, nor any cause of a class that comes first. Without a
/// likely cause, no trial may explain the range. A plan that probably ran must be within probable_within.
std::string contradiction(const Verdict& verdict, const MismatchRange& range);

}  // namespace ringsim
