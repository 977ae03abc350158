// ringsim help, version, man, completion: what describes the commands, all from their table.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/version.hpp"
#include "tools/command_line/completion.hpp"
#include "tools/command_line/help.hpp"
#include "tools/command_line/lookup.hpp"
#include "tools/command_line/man.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/color.hpp"
#include "tools/output/output.hpp"

namespace ringsim::tools {

namespace {

struct HelpArguments {
  std::vector<std::string> words;  ///< of a command's name; empty: all commands
};

Option& declare_words(Options& options, std::vector<std::string>& words, const char* help) {
  Option& command = options.arguments("COMMAND", words, help);
  command.required = false;
  for (const Group group : groups)
    for (const Command* each : of_group(command_table(), group)) command.suggested.push_back(each->name);
  return command;
}

void declare(Options& options, HelpArguments& help) {
  declare_words(options, help.words, "the command to describe, such as run or topology show");
}

int execute(const HelpArguments& arguments) {
  const bool color = has_color(STDOUT_FILENO);
  Output output;
  if (arguments.words.empty())
    output.write_styled(help_of_all(command_table(), color));
  else
    output.write_styled(help_of(command_table(), named(command_table(), arguments.words), color));
  output.finish();
  return good;
}

struct VersionArguments {};

void declare(Options&, VersionArguments&) {}

int execute(const VersionArguments&) {
  Output output;
  output.write(fmt::format("ringsim {} (model {})\n", version, model_version));
  output.finish();
  return good;
}

struct ManArguments {
  std::vector<std::string> words;  ///< of a command's name; empty: ringsim itself
  std::string folder;              ///< for all pages; empty: one to stdout
};

void declare(Options& options, ManArguments& man) {
  declare_words(options, man.words, "the command to describe, such as run or topology show").fallback =
      "ringsim itself";
  options.file("-o,--output", "FOLDER", man.folder, "write the pages of all commands to FOLDER");
}

void write_page(const std::string& path, const Command* command) {
  Output output(path);
  output.write(man_page(command_table(), command));
  output.finish();
}

int execute(const ManArguments& arguments) {
  if (arguments.folder.empty()) {
    write_page("", arguments.words.empty() ? nullptr : &named(command_table(), arguments.words));
    return good;
  }
  if (!arguments.words.empty())
    throw UsageError("", "--output (-o) cannot be combined with COMMAND: it writes the pages of all commands");
  const auto path_of = [&](const Command* command) {
    return (std::filesystem::path(arguments.folder) / (man_name(command) + ".1")).string();
  };
  write_page(path_of(nullptr), nullptr);
  for (const Command& command : command_table()) write_page(path_of(&command), &command);
  return good;
}

struct CompletionArguments {
  Shell shell = Shell::bash;
  std::string output;
};

void declare(Options& options, CompletionArguments& completion) {
  options
      .choice<Shell>("SHELL", {{"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}}, completion.shell,
                     "bash, zsh or fish")
      .required = true;
  options.output(completion.output, "the script");
}

int execute(const CompletionArguments& arguments) {
  Output output(arguments.output);
  output.write(completion_script(command_table(), arguments.shell));
  output.finish();
  return good;
}

}  // namespace

Command help_command() {
  return {.name = "help",
          .group = Group::help,
          .summary = "Describe a command, or list all of them",
          .example = "ringsim help topology show",
          .details = "",
          .prepare = with<HelpArguments>(declare, execute)};
}

Command version_command() {
  return {.name = "version",
          .group = Group::help,
          .summary = "Print the versions of ringsim and of its model",
          .example = "ringsim version",
          .details = "",
          .prepare = with<VersionArguments>(declare, execute)};
}

Command man_command() {
  return {.name = "man",
          .group = Group::help,
          .summary = "Print a man page in roff format",
          .example = "ringsim man run | man -l -",
          .details = "",
          .prepare = with<ManArguments>(declare, execute)};
}

Command completion_command() {
  return {.name = "completion",
          .group = Group::help,
          .summary = "Print the completion script for a shell",
          .example = "source <(ringsim completion bash)",
          .details =
              "bash: source <(ringsim completion bash)\nzsh: ringsim completion zsh > ~/.zfunc/_ringsim, where "
              "~/.zfunc is in $fpath\nfish: ringsim completion fish > ~/.config/fish/completions/ringsim.fish\nAn "
              "installation of ringsim already includes all three.",
          .prepare = with<CompletionArguments>(declare, execute)};
}

}  // namespace ringsim::tools
