// The launch of a machine and its harness, solved from the smallest rows that were measured on it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/units.hpp"
#include "validate/measured/measured.hpp"

namespace ringsim {

/// Rows above this size do not give a launch: transfers are most of their time.
inline constexpr Bytes most_for_launch{65'536};
/// The median of this many rows counts, as one of the first rows of a benchmark may be an outlier: two nodes of H100
/// took 68.5 us for 8 B and 25.0 us for 16 B (NVIDIA/nccl-tests issue 309).
inline constexpr std::size_t rows_for_launch = 3;
/// A measured launch that exceeds the scenario's by more than this many microseconds has another cause. One thread that
/// launches eight kernels in turn adds 52 (the fit of launch_of_others(), topologies/nccl/nccl_costs.hpp), and machines
/// with equal GPUs differ by -17 to +59.
inline constexpr double most_more_launch = 100;
/// Where launch is less than this share of a predicted time, the rest of the time may as well be what is off.
inline constexpr double telling_share = 0.25;

/// A measured row next to its prediction with the scenario's own launch.
struct LaunchRow {
  Bytes bytes;
  double measured_us = 0, predicted_us = 0;
};

/// A launch that makes predictions agree with measured rows. Time is launch and a rest that does not depend on it, so
/// the launch is the scenario's plus measured - predicted, exactly.
struct GivenLaunch {
  std::string key;              ///< launch_key() of the scenario; empty: not known
  std::vector<LaunchRow> rows;  ///< the input, by size
  Picoseconds own{0};           ///< of the scenario
  Picoseconds solved{0};        ///< own plus the median of measured - predicted; may be negative
  bool is_implausible() const;  ///< exceeds `own` by more than most_more_launch
  bool is_negative() const { return solved < Picoseconds{0}; }
  /// True if `own` is less than telling_share of the smallest row's prediction.
  bool is_vague() const;
  /// The launch to take: `solved`, or 0 if that is negative.
  Picoseconds launch() const { return is_negative() ? Picoseconds{0} : solved; }
  /// What it adds to each predicted time.
  Picoseconds shift() const { return launch() - own; }
};

/// The places of the rows that give a launch: the rows_for_launch smallest sizes up to most_for_launch, by size; empty
/// if there is none.
std::vector<std::size_t> rows_that_give_launch(std::span<const Bytes> sizes);

/// Solves for the launch. Requires one row or more.
GivenLaunch solve_launch(std::vector<LaunchRow> rows, Picoseconds own);

/// The key of a scenario that sets its launch: of a library's kernels, or of a protocol.
std::string launch_key(const Scenario& scenario);

/// What launch_key() has in that scenario, stated or by default: what a time loses without it. `text`, `name` and
/// `set`: as ScenarioFile::parse(), with one size.
Picoseconds own_launch(const std::string& text, const std::string& name, const std::vector<std::string>& set);

/// Solves for the launch from a measured table of the scenario's machine, collective and number of ranks: predicts its
/// smallest rows. `text`, `name` and `set`: as ScenarioFile::parse(). Throws InputError if the table does not fit the
/// scenario (load_at_measured_sizes() says how), has no row up to most_for_launch, needs an implausible launch, or if
/// the scenario has several predictions for a size. Appends doubts_of() the launch to `warnings`, and what
/// load_at_measured_sizes() warns of.
GivenLaunch launch_from_table(const std::string& text, const std::string& name, const std::vector<std::string>& set,
                              const MeasuredFile& from, std::optional<int> run, const PredictOptions& options,
                              std::vector<std::string>& warnings);

/// The option of --set for a launch, exact to the picosecond: "devices.gpu.launch=12.340000 us".
std::string launch_setting(const std::string& key, Picoseconds launch);

/// "8 B, 16 B and 32 B"
std::string sizes_text(std::span<const LaunchRow> rows);
/// Why a launch is to be taken with care, as sentences without an end: negative, or vague. Empty: nothing is.
std::vector<std::string> doubts_of(const GivenLaunch& given);
/// Why a launch cannot be taken, as a sentence without an end. Requires is_implausible().
std::string implausible_text(const GivenLaunch& given);

}  // namespace ringsim
