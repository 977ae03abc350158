#include "tools/command_line/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "tools/command_line/help.hpp"

namespace ringsim::tools {

namespace {

using Words = std::vector<std::string>;

/// The names of the commands below; of none ("") the first words of all.
std::vector<std::pair<std::string, std::string>> names_below(const std::vector<Command>& table,
                                                             const std::string& parent) {
  std::vector<std::pair<std::string, std::string>> names;
  if (!parent.empty()) {
    for (const Command* each : below(table, parent))
      names.emplace_back(each->name.substr(parent.size() + 1), each->summary);
  } else {
    for (const Command& each : table)
      if (each.name.find(' ') == std::string::npos) names.emplace_back(each.name, each.summary);
  }
  return names;
}

Words parents(const std::vector<Command>& table) {
  Words names;
  for (const Command& each : table)
    if (!below(table, each.name).empty()) names.push_back(each.name);
  return names;
}

const Words& values_of(const Option& option) { return option.choices.empty() ? option.suggested : option.choices; }

std::vector<Option> shown(const Command& command) {
  std::vector<Option> options;
  const Options declared = options_of(command);
  for (const Option& option : declared.all())
    if (option.replaced_by.empty()) options.push_back(option);
  return options;
}

Words words_of(const std::vector<std::pair<std::string, std::string>>& names) {
  Words words;
  for (const auto& [name, summary] : names) words.push_back(name);
  return words;
}

// ------------------------------------------------------------------------------------------------------------- bash

/// What may follow an option that takes a value, as a line of `case $previous in`.
std::string bash_value(const Option& option) {
  const std::string names = option.letter.empty() ? option.name : option.letter + '|' + option.name;
  if (option.file || !values_of(option).empty())
    return fmt::format("        {}) words='{}' kind={} ;;\n", names, fmt::join(values_of(option), " "),
                       option.file ? "files" : "words");
  return fmt::format("        {}) kind=none ;;\n", names);
}

std::string bash_command(const Command& command) {
  std::string values;
  Words options{"--help"}, words;
  bool files = false;
  for (const Option& option : shown(command)) {
    if (option.is_argument()) {
      files = files || option.file;
      words.insert(words.end(), values_of(option).begin(), values_of(option).end());
      continue;
    }
    options.push_back(option.name);
    if (!option.letter.empty()) options.push_back(option.letter);
    if (!option.is_flag()) values += bash_value(option);
  }
  std::string text = fmt::format("    '{}')\n      options='{}' words='{}' kind={}\n", command.name,
                                 fmt::join(options, " "), fmt::join(words, " "), files ? "files" : "words");
  if (!values.empty()) text += "      case $previous in\n" + values + "      esac\n";
  return text + "      ;;\n";
}

std::string bash_script(const std::vector<Command>& table) {
  std::string text =
      "# Completion of ringsim for bash, made by `ringsim completion bash`.\n"
      "_ringsim() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  local command= options= words= kind=words\n"
      "  # bash takes --format=json for three words.\n"
      "  if [[ $current == = ]]; then\n"
      "    current=\n"
      "  elif [[ $previous == = ]]; then\n"
      "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  [[ $COMP_CWORD -gt 1 ]] && command=${COMP_WORDS[1]}\n";
  text += fmt::format(
      "  case $command in\n    {}) [[ $COMP_CWORD -gt 2 ]] && command+=\" ${{COMP_WORDS[2]}}\" ;;\n  esac\n",
      fmt::join(parents(table), "|"));
  text += fmt::format("  case $command in\n    '') words='{}' options='--help --version' ;;\n",
                      fmt::join(words_of(names_below(table, "")), " "));
  for (const Command& command : table) {
    if (command.prepare)
      text += bash_command(command);
    else
      text += fmt::format("    '{}') words='{}' options='--help' ;;\n", command.name,
                          fmt::join(words_of(names_below(table, command.name)), " "));
  }
  return text +
         "  esac\n"
         "  [[ $current == -* && $kind != none ]] && words=$options kind=words\n"
         "  case $kind in\n"
         "    words) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\") ;;\n"
         "    files)\n"
         "      compopt -o filenames 2> /dev/null\n"
         "      mapfile -t COMPREPLY < <(compgen -W \"$words\" -f -- \"$current\")\n"
         "      ;;\n"
         "    none) COMPREPLY=() ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _ringsim ringsim\n";
}

// -------------------------------------------------------------------------------------------------------------- zsh

/// Text within '...' of zsh or fish; `special` are characters that get a backslash.
std::string quoted_for(const std::string& text, std::string_view special, const char* quote) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    if (c == '\'')
      out += quote;
    else
      out += c;
  }
  return out;
}
std::string for_zsh(const std::string& text) { return quoted_for(text, "[]:\\", "'\\''"); }
std::string for_fish(const std::string& text) { return quoted_for(text, "\\", "\\'"); }

std::string zsh_action(const Option& option) {
  std::string words;
  for (const std::string& word : values_of(option)) words += (words.empty() ? "" : " ") + for_zsh(word);
  if (!words.empty()) return '(' + words + ')';
  return option.file ? "_files" : " ";
}

std::string zsh_option(const Option& option) {
  if (option.is_argument())
    return fmt::format("        '{}:{}:{}' \\\n",
                       option.repeats    ? "*"
                       : option.required ? ""
                                         : ":",
                       for_zsh(option.name), zsh_action(option));
  const std::string help = fmt::format("[{}]", for_zsh(option.help));
  const std::string value = option.is_flag() ? "" : fmt::format(":{}:{}", for_zsh(option.value), zsh_action(option));
  std::string text;
  const auto add = [&](const std::string& name, const char* joint) {
    const std::string others = option.repeats          ? "*"
                               : option.letter.empty() ? ""
                                                       : fmt::format("({} {})", option.letter, option.name);
    text += fmt::format("        '{}{}{}{}{}' \\\n", others, name, option.is_flag() ? "" : joint, help, value);
  };
  if (!option.letter.empty()) add(option.letter, "+");
  add(option.name, "=");
  return text;
}

std::string zsh_names(const std::vector<Command>& table, const std::string& parent, const char* indent) {
  std::string text = fmt::format("{}commands=(\n", indent);
  for (const auto& [name, summary] : names_below(table, parent))
    text += fmt::format("{}  '{}:{}'\n", indent, for_zsh(name), for_zsh(summary));
  return text + fmt::format("{}) && _describe command commands\n", indent);
}

std::string zsh_script(const std::vector<Command>& table) {
  std::string text =
      "#compdef ringsim\n"
      "# Completion of ringsim for zsh, made by `ringsim completion zsh`.\n"
      "_ringsim() {\n"
      "  local -a commands\n"
      "  if (( CURRENT == 2 )); then\n" +
      zsh_names(table, "", "    ") +
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  integer named=1\n"
      "  case $command in\n";
  for (const std::string& parent : parents(table))
    text += fmt::format(
        "    {})\n      if (( CURRENT == 3 )); then\n{}        return\n      fi\n"
        "      command+=\" $words[3]\"\n      named=2\n      ;;\n",
        parent, zsh_names(table, parent, "        "));
  text +=
      "  esac\n"
      "  shift $named words\n"
      "  (( CURRENT -= named ))\n"
      "  case $command in\n";
  for (const Command& command : table) {
    if (!command.prepare) continue;
    text += fmt::format("    '{}')\n      _arguments -s \\\n", command.name);
    for (const Option& option : shown(command)) text += zsh_option(option);
    text += "        '(- *)'{-h,--help}'[print help]'\n      ;;\n";
  }
  return text +
         "  esac\n"
         "}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
         "  _ringsim \"$@\"\n"
         "else\n"
         "  compdef _ringsim ringsim\n"
         "fi\n";
}

// ------------------------------------------------------------------------------------------------------------- fish

std::string fish_values(const Option& option) {
  if (values_of(option).empty()) return option.file ? " -F" : " -f";
  return fmt::format(" {} -a '{}'", option.file ? "-F" : "-f",
                     for_fish(fmt::format("{}", fmt::join(values_of(option), " "))));
}

std::string fish_script(const std::vector<Command>& table) {
  std::string text =
      "# Completion of ringsim for fish, made by `ringsim completion fish`.\n"
      "function __ringsim_is # whether the words so far are of this command\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  set -l n (count $argv)\n"
      "  test (count $words) -ge $n; and test \"$words[1..$n]\" = \"$argv\"\n"
      "end\n"
      "function __ringsim_wants_name # whether the next word is a command's name, or one below this command\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  test \"$words\" = \"$argv\"\n"
      "end\n"
      "complete -c ringsim -f\n";
  const auto add_names = [&](const std::string& parent) {
    for (const auto& [name, summary] : names_below(table, parent))
      text += fmt::format("complete -c ringsim -n '__ringsim_wants_name {}' -a {} -d '{}'\n", parent, name,
                          for_fish(summary));
  };
  add_names("");
  for (const std::string& parent : parents(table)) add_names(parent);
  for (const Command& command : table) {
    if (!command.prepare) continue;
    const std::string head = fmt::format("complete -c ringsim -n '__ringsim_is {}'", command.name);
    text += fmt::format("{} -s h -l help -d 'print help'\n", head);
    for (const Option& option : shown(command)) {
      if (option.is_argument()) {
        if (option.file || !values_of(option).empty()) text += head + fish_values(option) + '\n';
        continue;
      }
      text += head + (option.letter.empty() ? "" : " -s " + option.letter.substr(1)) + " -l " + option.name.substr(2);
      if (!option.is_flag()) text += " -r" + fish_values(option);
      text += fmt::format(" -d '{}'\n", for_fish(option.help));
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const std::vector<Command>& table, Shell shell) {
  switch (shell) {
    case Shell::bash:
      return bash_script(table);
    case Shell::zsh:
      return zsh_script(table);
    case Shell::fish:
      return fish_script(table);
  }
  fail_invariant("a shell is one of three");
}

}  // namespace ringsim::tools
