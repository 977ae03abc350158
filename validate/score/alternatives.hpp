// What else may have run, or what the machine may lack, where a measured time is not what was predicted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "validate/results/result.hpp"

namespace ringsim {

/// A measured row next to its prediction.
struct ComparedRow {
  Scenario scenario;
  Result result;                    ///< with Why, and measured_us
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
  /// The number that it sets was chosen from the measured rows that it is to explain. It comes near them more easily
  /// than a change without such a number, and says less.
  bool is_fitted = false;
  /// Of the machine or the harness: if it is so, it is so at all sizes. Else NCCL may choose it at some.
  bool is_everywhere = false;
};

/// What is worth another run for rows that follow each other, have one plan, and are all off to one side. Derived from
/// the scenario and from what holds the rows: other protocols and algorithms; of rows that were measured slower
/// GPUDirect, peer access and PXN switched off, fewer channels, NICs and PCIe at parts of their rate, one thread that
/// calls all GPUs of a node, the plugin's latency; of rows that were measured faster their opposites. Then, of two rows
/// or more, changes with one fitted number: the launch that removes the median difference, and the rate of the links
/// that hold the largest row. `launch_off`: launch_of() of the largest row's scenario with `devices.gpu.launch` 0.
/// Requires rows.
std::vector<Alternative> alternatives_of(std::span<const ComparedRow> rows, Picoseconds launch_off);

}  // namespace ringsim
