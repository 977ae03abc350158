// Which command words name; and what was meant if they name none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/command_line/command.hpp"

namespace ringsim::tools {

struct Named {
  const Command* command;
  std::size_t words;  ///< how many words its name has
};
/// The command that the words begin with. Throws UsageError if they begin with none, with the nearest one as a hint.
/// Requires a word.
Named named_by(const std::vector<Command>& table, const std::vector<std::string>& words);

/// The command that all of the words name. Throws UsageError. Requires a word.
const Command& named(const std::vector<Command>& table, const std::vector<std::string>& words);

/// Throws UsageError for a word that is not the name of a command below `command`, or for none: `words` are those of
/// the command, and what follows.
[[noreturn]] void fail_none_below(const std::vector<Command>& table, const Command& command,
                                  const std::vector<std::string>& words);

/// What to do about an option that the command lacks: the nearest one, what it is called here ("--json" is --format
/// json), the key of a scenario that it names, or the commands that have it; else empty. `value`: what follows it; may
/// be empty.
std::string hint_of_unknown(const std::vector<Command>& table, const Options& options, const std::string& option,
                            const std::string& value);

/// "did you mean `ringsim run --explain`?" for an option that few commands have; else empty.
std::string hint_of_others(const std::vector<Command>& table, const std::string& option);

}  // namespace ringsim::tools
