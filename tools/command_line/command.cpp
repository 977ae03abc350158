#include "tools/command_line/command.hpp"

#include "sim/base/error.hpp"

namespace ringsim::tools {

const char* to_string(Group group) {
  switch (group) {
    case Group::predict:
      return "Predict";
    case Group::check:
      return "Check";
    case Group::replay:
      return "Replay";
    case Group::look:
      return "Look";
    case Group::results:
      return "Results";
    case Group::help:
      return "Help";
  }
  fail_invariant("a command is of one of six groups");
}

Options options_of(const Command& command) {
  Options options;
  if (command.prepare) command.prepare(options);
  return options;
}

const Command* find(const std::vector<Command>& table, const std::string& name) {
  for (const Command& command : table)
    if (command.name == name) return &command;
  return nullptr;
}

std::vector<const Command*> below(const std::vector<Command>& table, const std::string& name) {
  std::vector<const Command*> found;
  for (const Command& command : table)
    if (command.name.starts_with(name + ' ')) found.push_back(&command);
  return found;
}

std::vector<const Command*> of_group(const std::vector<Command>& table, Group group) {
  std::vector<const Command*> found;
  for (const Command& command : table)
    if (command.group == group && command.name.find(' ') == std::string::npos) found.push_back(&command);
  return found;
}

}  // namespace ringsim::tools
