// Dumps of PyTorch's Flight Recorder: what `ringsim trace show` prints of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "validate/profiles/hang.hpp"
#include "validate/profiles/waiting.hpp"

namespace ringsim::tools {

/// Dumps of a job, and what was found out.
struct ShownHang {
  const std::vector<profiles::FlightDump>& dumps;
  const profiles::Hang& hang;
  const profiles::Profile& profile;  ///< of the calls that have a duration
  const profiles::Account& account;
};

/// What the files are; findings; a table of groups, of the ranks in those that stand still, of sends and receives that
/// are pending, and of durations.
std::string hang_text(const ShownHang& shown);
/// Its parts: what the files are, a few lines; and the tables, each with its headings in the first line. `standings`
/// has a line for ranks that are equally far in a group that stands still. Both may have no further lines.
std::string hang_head(const ShownHang& shown);
using HangCells = std::vector<std::vector<std::string>>;
HangCells group_cells(const profiles::Hang& hang);
HangCells standing_cells(const profiles::Hang& hang);
HangCells message_cells(const profiles::Hang& hang);
/// Calls in all dumps that have not completed.
std::size_t pending_calls(const ShownHang& shown);
/// One document, with its newline. Durations in us, as in profile_json().
std::string hang_json(const ShownHang& shown);
/// A line for each rank of each group.
std::string hang_csv(const ShownHang& shown);

}  // namespace ringsim::tools
