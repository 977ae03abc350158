#include "tools/command_line/help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/text/wrap.hpp"
#include "tools/output/color.hpp"

namespace ringsim::tools {

namespace {

constexpr std::size_t help_width = 80;

std::vector<Definition> lines_of(const std::vector<const Command*>& commands) {
  std::vector<Definition> lines;
  for (const Command* command : commands)
    lines.push_back({command->name, command->summary + (command->left_out.empty() ? "" : " (left out of this build)")});
  return lines;
}

}  // namespace

std::string takes_of(const std::vector<Command>& table, const Command& command) {
  if (!command.prepare) return below(table, command.name).empty() ? "" : "COMMAND [OPTIONS]";
  std::string text;
  const Options options = options_of(command);
  for (const Option& option : options.all()) {
    if (!option.is_argument()) continue;
    const std::string name = option.name + (option.repeats ? "..." : "");
    text += option.required ? name + ' ' : '[' + name + "] ";
  }
  bool more = false;
  for (const Option& option : options.all()) {
    if (option.is_argument() || !option.replaced_by.empty()) continue;
    if (option.required)
      text += fmt::format("{} {} ", option.letter.empty() ? option.name : option.letter, option.value);
    else
      more = true;
  }
  if (more) return text + "[OPTIONS]";
  if (!text.empty()) text.pop_back();
  return text;
}

std::string usage_of(const std::vector<Command>& table, const Command* command) {
  if (command == nullptr) return "usage: ringsim COMMAND [OPTIONS]; run `ringsim help` for the list of commands\n";
  const std::string takes = takes_of(table, *command);
  return fmt::format("usage: ringsim {}{}{}; run `ringsim help {}` for details\n", command->name,
                     takes.empty() ? "" : " ", takes, command->name);
}

std::string spelling_of(const Option& option) {
  if (option.is_argument()) return option.name + (option.repeats ? "..." : "");
  std::string text = option.letter.empty() ? option.name : option.letter + ", " + option.name;
  if (!option.is_flag()) text += ' ' + option.value;
  return text;
}

std::string meaning_of(const Option& option) {
  std::string text = option.help;
  if (option.repeats && !option.is_argument()) text += "; can be repeated";
  if (!option.needs.empty()) text += "; needs " + option.needs;
  if (!option.fallback.empty()) text += fmt::format(" (default: {})", option.fallback);
  return text;
}

std::string help_of_all(const std::vector<Command>& table, bool color) {
  std::string text = "ringsim predicts how long a collective takes on a GPU cluster, and explains why.\n\n" +
                     styled(Style::bold, "Usage:", color) + " ringsim COMMAND [OPTIONS]\n";
  std::size_t width = 0;  // one for all groups
  for (const Group group : groups) width = std::max(width, width_of(lines_of(of_group(table, group))));
  for (const Group group : groups) {
    const std::vector<const Command*> commands = of_group(table, group);
    if (commands.empty()) continue;
    text += fmt::format("\n{}\n", styled(Style::bold, to_string(group), color)) +
            definitions(lines_of(commands), width, help_width);
  }
  text +=
      fmt::format("\nTo get help on a command, run `ringsim help COMMAND` or `ringsim COMMAND --help`.\n\n{}\n  {}\n",
                  styled(Style::bold, "Example", color), first_example);
  return text;
}

std::string help_of(const std::vector<Command>& table, const Command& command, bool color) {
  const auto heading = [&](const char* text) { return '\n' + styled(Style::bold, text, color) + '\n'; };
  std::string text = command.summary + ".\n";
  if (!command.details.empty()) text += '\n' + wrapped(command.details, 0, help_width) + '\n';
  const std::string head = "Usage:",
                    usage = fmt::format("{} ringsim {} {}", head, command.name, takes_of(table, command));
  // Styled after it is wrapped: escape sequences are no characters.
  text += '\n' + styled(Style::bold, head, color) +
          wrapped(usage.substr(0, usage.find_last_not_of(' ') + 1), 4, help_width).substr(head.size()) + '\n';
  const std::vector<const Command*> lower = below(table, command.name);
  if (!lower.empty()) text += heading("Commands") + definitions(lines_of(lower), width_of(lines_of(lower)), help_width);
  std::vector<Definition> arguments, options;
  const Options declared = options_of(command);
  for (const Option& option : declared.all()) {
    if (!option.replaced_by.empty()) continue;
    (option.is_argument() ? arguments : options).push_back({spelling_of(option), meaning_of(option)});
  }
  options.push_back({"-h, --help", "print this help"});
  if (!arguments.empty()) text += heading("Arguments") + definitions(arguments, width_of(arguments), help_width);
  text += heading("Options") + definitions(options, width_of(options), help_width);
  return text + heading("Example") + "  " + command.example + '\n';
}

}  // namespace ringsim::tools
