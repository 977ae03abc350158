#include "tools/command_line/lookup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/text/spelling.hpp"
#include "tools/exit.hpp"

namespace ringsim::tools {

namespace {

using Words = std::vector<std::string>;

/// "did you mean `ringsim topology show` or `ringsim schedule show`?", or empty.
std::string mean(const Words& lines) {
  if (lines.empty()) return "";
  return fmt::format("did you mean `ringsim {}`?", fmt::join(lines, "` or `ringsim "));
}

/// What may have been meant by a first word that is no command: a command, one below another, an option of one, or a
/// scenario to run.
std::string hint_for(const std::vector<Command>& table, const std::string& word) {
  Words first, lower, options;
  for (const Command& command : table) {
    if (command.name.find(' ') == std::string::npos) first.push_back(command.name);
    if (command.name.ends_with(' ' + word)) lower.push_back(command.name);
    for (std::string& name : options_of(command).names()) options.push_back(std::move(name));
  }
  if (std::string hint = did_you_mean(word, first); !hint.empty()) return hint;
  if (!lower.empty()) return mean(lower);
  if (word.ends_with(".json")) return mean({"run " + word});
  return hint_of_others(table, nearest(word, options));
}

}  // namespace

Named named_by(const std::vector<Command>& table, const Words& words) {
  const std::string& word = words.front();
  const Command* command = find(table, word);
  if (command == nullptr)
    throw UsageError("", fmt::format("expected a command, found \"{}\"", word),
                     word.starts_with('-') ? "options follow the command; --help and --version may stand alone"
                                           : hint_for(table, word));
  if (words.size() > 1)
    if (const Command* lower = find(table, word + ' ' + words[1])) return {lower, 2};
  return {command, 1};
}

const Command& named(const std::vector<Command>& table, const Words& words) {
  const auto [command, used] = named_by(table, words);
  if (used == words.size()) return *command;
  if (!command->prepare) fail_none_below(table, *command, words);
  throw UsageError("", fmt::format("expected the name of a command, found \"{}\"", fmt::join(words, " ")),
                   fmt::format("did you mean \"{}\"?", command->name));
}

void fail_none_below(const std::vector<Command>& table, const Command& command, const Words& words) {
  Words names;
  for (const Command* each : below(table, command.name)) names.push_back(each->name.substr(command.name.size() + 1));
  throw UsageError(command.name,
                   fmt::format("expected one of {}, found {}", fmt::join(names, ", "),
                               words.size() < 2 ? "nothing" : '"' + words[1] + '"'),
                   words.size() < 2 ? "" : did_you_mean(words[1], names));
}

std::string hint_of_others(const std::vector<Command>& table, const std::string& option) {
  constexpr std::size_t few = 3;
  Words lines;
  for (const Command& command : table) {
    const Words names = options_of(command).names();
    if (std::find(names.begin(), names.end(), option) != names.end()) lines.push_back(command.name + ' ' + option);
  }
  return lines.size() <= few ? mean(lines) : "";
}

}  // namespace ringsim::tools
