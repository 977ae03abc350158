// One row of results: a prediction, its closed form, and what was measured of the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "validate/closed_forms/closed_form.hpp"

namespace ringsim {

class Bounds;

struct Result {
  Prediction prediction;  ///< of one collective: its `jobs` are rows of their own
  std::optional<ClosedForm> form;
  /// No algorithm needs less on this machine, as far as bandwidth goes (validate/closed_forms/bound.hpp); only if asked
  /// for.
  std::optional<Picoseconds> bound;
  std::optional<Picoseconds> latency_floor;  ///< likewise, as far as latency goes; if it is known
  std::optional<double> measured_us;         ///< of a file of measured times, or the median of a replay
  struct Replayed {
    double min_us = 0, max_us = 0;
    std::optional<std::int64_t> checked;  ///< elements that were compared, over all runs; on GPUs they are not counted
    std::int64_t wrong = 0;               ///< elements, over all runs
  };
  std::optional<Replayed> replayed;
  /// What a GPU probe's measurements predict for a replay on GPUs, additions included.
  struct Modeled {
    double in_turn_us = 0;  ///< if copies are served one after the other
    double shared_us = 0;   ///< if they share
  };
  std::optional<Modeled> modeled;
};

/// Predicts a scenario: one row per collective, the scenario's own first. `bounds`: sets Result::bound; nullptr: it
/// stays empty. Throws what predict() throws.
std::vector<Result> results_of(const Scenario& scenario, const PredictOptions& options = {}, Bounds* bounds = nullptr);

/// The row of everything that ran: of all jobs together if some come after others, else the scenario's own. With
/// what the run says of links and settings. `rows`: of results_of().
Result whole_of(std::vector<Result> rows);

/// How many rows results_of() gives: one per collective, and one for all together if Scenario::has_total().
std::size_t n_results(const Scenario& scenario);

/// One value of a row. Objects lie flat, "closed_form.ratio"; what varied is "point." and its path; lists are JSON
/// text; nothing stands for null.
struct Cell {
  std::string column;
  std::variant<bool, std::int64_t, double, std::string> value;
};

/// A result as a row: the columns that it has a value for, by the names, in the units and in the order of
/// docs/results/columns.md; without those of its origin. `details`: also those of --explain.
std::vector<Cell> row_of(const Result& result, bool details = false);

/// predicted/measured - 1. Requires a result that was measured.
double error_of(const Result& result);

/// bound / predicted time, 0 to 1; nothing if there is no bound or no time passed.
std::optional<double> of_bound(const Result& result);
/// bound / measured time. Above 1: the scenario's machine is not the one that was measured.
std::optional<double> measured_of_bound(const Result& result);

}  // namespace ringsim
