// A command of ringsim: what the table in main.cpp is made of.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/command_line/options.hpp"

namespace ringsim::tools {

/// The headings of `ringsim help`, in this order.
enum class Group { predict, check, replay, look, results, help };
const char* to_string(Group group);  ///< "Predict"
inline constexpr Group groups[] = {Group::predict, Group::check,   Group::replay,
                                   Group::look,    Group::results, Group::help};

struct Command {
  std::string name;  ///< "run"; of one below another command "topology show"
  Group group = Group::predict;
  std::string summary;   ///< a line for lists: imperative, without a full stop
  std::string example;   ///< a command line that works
  std::string details;   ///< more for its help and its man page, paragraphs between empty lines; may be empty
  std::string left_out;  ///< the setting of the build that left this command out; empty: it is there
  /// Declares the options, and returns the function that runs the command with their values and gives the exit code.
  /// Empty for a command that only has others below it.
  std::function<std::function<int()>(Options&)> prepare;
};

/// For Command::prepare: `declare` fills an Arguments, which `run` is called with. If it has a settle(), that is called
/// before: it decides what several options say together, such as the format of a file.
template <class Arguments>
std::function<std::function<int()>(Options&)> with(void (*declare)(Options&, Arguments&),
                                                   int (*run)(const Arguments&)) {
  return [declare, run](Options& options) -> std::function<int()> {
    auto arguments = std::make_shared<Arguments>();
    declare(options, *arguments);
    return [arguments, run] {
      if constexpr (requires { arguments->settle(); }) arguments->settle();
      return run(*arguments);
    };
  };
}

/// The options of a command; none for one that only has others below it.
Options options_of(const Command& command);

/// The command of that name; nullptr if there is none.
const Command* find(const std::vector<Command>& table, const std::string& name);
/// The commands directly below: "topology show" and the others of "topology".
std::vector<const Command*> below(const std::vector<Command>& table, const std::string& name);
/// The commands that stand alone or have others below them, of that group.
std::vector<const Command*> of_group(const std::vector<Command>& table, Group group);

}  // namespace ringsim::tools
