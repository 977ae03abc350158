// What else may have run, or what the machine may lack, where a measured time is not what was predicted.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "validate/results/result.hpp"

namespace ringsim {

/// A measured row next to its prediction.
struct ComparedRow {
  Scenario scenario;
  Result result;                    ///< with its explanation, and measured_us
  std::string algorithm, protocol;  ///< algorithm_text() and protocol_text() of the prediction

  Bytes bytes() const { return result.prediction.request.bytes; }
  double measured_us() const { return *result.measured_us; }
  double predicted_us() const { return microseconds(result.prediction.time); }
  bool same_plan(const ComparedRow& other) const { return algorithm == other.algorithm && protocol == other.protocol; }
};

/// One change of the scenario, as options of --set.
struct Alternative {
  std::string label;  ///< "NCCL_PROTO=LL", "through host memory: NCCL_NET_GDR_LEVEL=LOC"
  std::vector<std::string> set;
  /// The number that it sets was chosen from the measured rows that it is to explain. So a good match says less
  /// than that of a change without such a number.
  bool is_fitted = false;
  bool is_shared = false;  ///< the number was chosen from the rows of all ranges
  /// True for a cause in the machine or the harness, which acts at all sizes. Else NCCL may choose it at some sizes.
  bool is_everywhere = false;
  bool is_plan = false;                    ///< another algorithm or protocol
  std::string look = {};                   ///< if it can be seen: "`lspci -vvv`: ACSCtl of the PCIe switches"
  std::vector<std::string> releases = {};  ///< of NCCL, that are alike at the rows' sizes
  /// A time to be fitted, of which the rows depend evenly: the scenario is run with `unit` more, which tells how each
  /// row depends on it, and again with as much as removes the median difference.
  struct Fit {
    std::string key;         ///< "devices.gpu.post"
    double now_us = 0;       ///< what the scenario has
    double unit_us = 1;      ///< of the first run
    double most_us = 1000;   ///< no more than this can be meant
    double shown = 1;        ///< what is said for each us of the key: both links of a message's way
    std::string label = {};  ///< "steps between nodes {} us longer"
  };
  std::optional<Fit> fit = {};
};

/// The release of NCCL that a measured file names may start each channel by itself: one before 2.18, or `release` is
/// empty because the file names none.
bool may_start_channels_alone(const std::string& release);

/// What is worth another run for rows that follow each other, have one plan, and are all off to one side. Derived from
/// the scenario and from what limits the rows: other protocols and algorithms; of rows that were measured slower
/// GPUDirect, peer access and PXN switched off, ACS in PCIe switches, fewer channels, fewer NICs and slower ones, other
/// links at half their rates, oversubscribed switches, one thread that calls all GPUs of a node, the plugin's latency;
/// of rows that were measured faster their opposites. Then, of two rows or more, changes with one fitted number: the
/// launch that removes the median difference, but none below 0, the rate of the links that limit the largest row, and,
/// of slower rows, longer steps between nodes, a cost of each remote peer of sends, and a start of each channel.
/// `launch_off`: launch_of() of the largest row's scenario with `devices.gpu.launch` 0. `release`: as the measured file
/// has it. `shared_us`: MismatchRange's; then the launch has this difference, also for a single row.
/// Requires rows.
std::vector<Alternative> alternatives_of(std::span<const ComparedRow> rows, Picoseconds launch_off,
                                         const std::string& release = {}, std::optional<double> shared_us = {});

/// "release 2.14.3 to 2.17.1 or 2.20.5": neighbors among those that ringsim tells apart as a range.
std::string releases_text(const std::vector<std::string>& versions);

/// Releases of the scenario's library whose choices or costs differ at the rows' sizes. A file that names its release
/// leaves only that; else all, the nearest older one first. Text, name and options as of run_trial().
std::vector<Alternative> other_releases(std::span<const ComparedRow> rows, const std::string& release,
                                        const std::string& text, const std::string& name,
                                        const std::vector<std::string>& set);

}  // namespace ringsim
