// A scenario that a command line stands for, as the command shows and saves it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/text/json.hpp"
#include "tools/command_line/machine_scenario.hpp"
#include "tools/output/output.hpp"

namespace ringsim::tools {

/// A line for each value that no option says; empty if there are none.
std::string assumed_text(const std::vector<Assumption>& assumed);

/// The same on stderr, for formats that have no room for it.
void note_assumed(const std::vector<Assumption>& assumed);

/// The scenario, and where it is: `save` is the file of --save, empty without.
std::string shown_scenario(const Json& document, const std::string& save,
                           const std::string& commands = "`ringsim run`, `explain` and others");

/// Throws UsageError if the name of --save does not end in .json.
void require_json_name(const std::string& save);
/// A file that --save may write; nothing if none is asked for. `others`: files that it must not replace. Throws
/// UsageError.
std::optional<Output> open_saved(const std::string& save, bool force, const std::vector<std::string>& others);
/// Writes the scenario to the file; files that it names are relative to the folder of `save`.
void write_saved(Output& file, const Json& document, const std::string& save);

}  // namespace ringsim::tools
