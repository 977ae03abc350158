#include "tools/command_line/man.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/base/version.hpp"
#include "tools/command_line/help.hpp"

namespace ringsim::tools {

namespace {

/// Text that roff shows as it is: a minus is not a hyphen, a backslash is none of its commands, nor is a line's first
/// dot.
std::string roff(const std::string& text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    begins_line = c == '\n';
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

/// The first letter small, unless it begins an abbreviation.
std::string in_sentence(std::string text) {
  if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) == 0)
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string entry_of(const std::string& head, const std::string& text) {
  return ".TP\n" + head + '\n' + roff(text) + '\n';
}

std::string head_of(const Option& option) {
  if (option.is_argument()) return italic(spelling_of(option));
  std::string head = option.letter.empty() ? bold(option.name) : bold(option.letter) + ", " + bold(option.name);
  if (!option.is_flag()) head += ' ' + italic(option.value);
  return head;
}

std::string options_text(const Command& command) {
  std::string arguments, options;
  const Options declared = options_of(command);
  for (const Option& option : declared.all())
    if (option.replaced_by.empty())
      (option.is_argument() ? arguments : options) += entry_of(head_of(option), meaning_of(option));
  options += entry_of(bold("-h") + ", " + bold("--help"), "print a summary of this page");
  return (arguments.empty() ? "" : ".SH ARGUMENTS\n" + arguments) + ".SH OPTIONS\n" + options;
}

std::string commands_text(const std::vector<const Command*>& commands) {
  std::string text;
  for (const Command* command : commands) text += entry_of(bold(command->name), command->summary + '.');
  return text;
}

constexpr const char* exit_status =
    ".SH EXIT STATUS\n.TP\n0\nsuccess\n.TP\n1\na check or a threshold failed, or points of a sweep failed\n.TP\n2\nan "
    "error on the command line\n.TP\n3\nan error in the input: a file is missing or malformed, or describes something "
    "impossible\n.TP\n4\nthe simulation violated one of its own invariants; please report this as a bug\n.TP\n5\nthis "
    "machine lacks something that the command needs, such as a GPU, disk space or the permission to "
    "write\n.TP\n130\ninterrupted\n";

}  // namespace

std::string man_name(const Command* command) {
  std::string name = command == nullptr ? "ringsim" : "ringsim-" + command->name;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(const std::vector<Command>& table, const Command* command) {
  std::string title = man_name(command);
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string text = fmt::format(".TH {} 1 \"\" \"ringsim {}\" \"ringsim\"\n.SH NAME\n", roff(title), version);
  if (command == nullptr) {
    text +=
        "ringsim \\- predict how long a collective takes on a GPU cluster\n.SH SYNOPSIS\n.B ringsim\n.I "
        "COMMAND\n[OPTIONS]\n.SH DESCRIPTION\nringsim simulates collectives such as all\\-reduce on a GPU cluster and "
        "shows which link limits them.\nEach command has its own man page: \\fBringsim\\-run\\fR(1) describes "
        "\\fBringsim run\\fR.\n.SH COMMANDS\n";
    for (const Group group : groups) {
      const auto commands = of_group(table, group);
      if (!commands.empty()) text += fmt::format(".SS {}\n", to_string(group)) + commands_text(commands);
    }
    text += std::string(exit_status) +
            ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf set to a non-empty value, terminal output has no colors.\n.SH "
            "EXAMPLE\n.nf\n" +
            roff(first_example) + "\n.fi\n";
    return text;
  }
  text += fmt::format("{} \\- {}\n.SH SYNOPSIS\n{} {}\n.SH DESCRIPTION\n{}.\n", roff(man_name(command)),
                      roff(in_sentence(command->summary)), bold("ringsim " + command->name),
                      roff(takes_of(table, *command)), roff(command->summary));
  if (!command->details.empty()) {
    text += ".PP\n";
    for (const char c : command->details) text += c == '\n' ? "\n.br\n" : roff(std::string(1, c));
    text += '\n';
  }
  const auto lower = below(table, command->name);
  if (!lower.empty()) text += ".SH COMMANDS\n" + commands_text(lower);
  text += options_text(*command) + exit_status + ".SH EXAMPLE\n.nf\n" + roff(command->example) + "\n.fi\n";
  return text + ".SH SEE ALSO\n\\fBringsim\\fR(1)\n";
}

}  // namespace ringsim::tools
