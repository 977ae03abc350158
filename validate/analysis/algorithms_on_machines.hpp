// Every algorithm on the same five machines: what `ringsim list comparison` prints and docs/results/algorithms.md
// shows.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// An algorithm on a machine, with a message of 64 MB (barriers: none).
struct ComparisonRow {
  std::string machine;  ///< "star", "star of 13", "ring", "torus 2x4", "dgx-1v", "hgx-h100"
  CollectiveOp op = CollectiveOp::all_reduce;
  std::string algorithm;  ///< its name in the catalog
  std::string settings;   ///< those that are not the default: "group=4"
  std::string refused;    ///< why the machine or the number of ranks does not do; empty: it does, and then:
  Picoseconds time{0};
  Bytes sent;        ///< the most that one rank sends; servers and switches do not count
  std::string link;  ///< the one that its bytes keep busy longest; empty if no bytes move
  Bytes carried;     ///< what crossed it
  double busy = 0;   ///< the share of the run that this takes at its bandwidth
};

/// One machine after the other, on each the same algorithms in the same order, but for those that show only there.
std::vector<ComparisonRow> algorithms_on_machines();

/// As tables of Markdown, one per machine, in columns of equal width.
std::string to_markdown(const std::vector<ComparisonRow>& rows);

/// The most bytes that one rank sends, from the schedule alone: sends of all its steps are counted.
Bytes most_sent(const Schedule& schedule);

}  // namespace ringsim
