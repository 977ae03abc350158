#include "tools/command_line/lookup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "scenarios/decoder/key_hint.hpp"
#include "sim/text/spelling.hpp"
#include "tools/exit.hpp"
#include "topologies/machines/preset_names.hpp"

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
  if (preset_named(word) != nullptr) return mean({"run " + word});
  if (std::string hint = did_you_mean(word, first); !hint.empty()) return hint;
  if (!lower.empty()) return mean(lower);
  if (word.ends_with(".json")) return mean({"run " + word});
  return hint_of_others(table, nearest(word, options));
}

/// For an option in the place of the command.
std::string hint_for_first_option(const std::string& word) {
  if (word == "-V" || word == "-v") return "did you mean \"--version\"?";
  const std::string near = did_you_mean(word, {"--version", "--help"});
  return near.empty() ? "put options after the command; only --help and --version work without one" : near;
}

/// Options of other programs, and what is the same here.
struct Foreign {
  std::vector<std::string> names;
  std::string needs;    ///< an option or argument that the command must have; empty: none
  std::string hint;     ///< {}: the value
  std::string of = {};  ///< the option whose value it is; empty: `needs`
};

const std::vector<Foreign>& foreign_options() {
  static const std::vector<Foreign> all{
      {{"-b", "-e", "-s", "--size", "--sizes", "--minbytes", "--maxbytes"},
       "--bytes",
       "write --bytes {}, or a range such as --bytes 8B..1GiB"},
      {{"-N", "-n"}, "--node", "write --nodes {}", "--nodes"},  // elsewhere -n may be a number of GPUs
      {{"--machines", "--hosts"}, "--nodes", "write --nodes {}"},
      {{"-g", "--ngpus", "--gpus-per-node"}, "--gpus", "write --gpus {}"},
      {{"-f", "-F", "--fmt", "--output-format", "--out-format", "--type"}, "--format", "write --format {}"},
      {{"-f", "-F", "--fmt", "--output-format", "--out-format", "--type"}, "--to", "write --to {}"},
      {{"--threads", "--jobs", "--nproc", "--parallel", "--workers", "-t", "-p", "-np", "-T"}, "--jobs", "write -j {}"},
      {{"--threads", "--jobs", "--nproc", "--parallel", "--workers", "-j", "-t", "-p"},
       "",
       "this command uses one core"},
      {{"-n", "--count"},
       "--dry-run",
       "--dry-run counts the points; to set the number of GPUs, write --set topology.ranks=N"},
      {{"-n", "-np", "-N", "-g", "--ngpus", "--gpus"},
       "--set",
       "to set the number of GPUs, write --set topology.ranks={}, or for a cluster --set topology.nodes={}"},
      {{"-q", "--quiet", "--silent", "-s"},
       "",
       "results go to standard output, everything else to standard error; add 2>/dev/null to hide the latter"},
      {{"-v", "-vv", "--verbose", "--debug", "-d"}, "--explain", "use --explain or --timing for more detail"},
      {{"-v", "-vv", "--verbose", "--debug", "-d"}, "--timing", "use --timing for more detail"},
      {{"-v", "-vv", "--verbose", "--debug", "-d"},
       "--whatif",
       "no more detail is available; --format json prints the numbers"},
      {{"-v", "-vv", "--verbose", "--debug", "-d"}, "SCENARIO", "`ringsim explain` explains the time of a point"},
      {{"-O", "--out", "--outfile", "--output-file", "--save", "--write"}, "--output", "write -o {}"},
      {{"-c", "-i", "--config", "--input", "--file", "--scenario", "--topology-file"},
       "SCENARIO",
       "give SCENARIO without an option: {}"},
      {{"-s", "-D", "--define", "--param", "--override"}, "--set", "write --set {}"},
      {{"--json", "--jsonl", "--csv", "--yaml", "--xml"}, "", "this command only prints text"},
      {{"-y", "--yes", "--overwrite"}, "--force", "write --force"},
  };
  return all;
}

const Option* option_of(const Options& options, const std::string& name) {
  const auto found = std::find_if(options.all().begin(), options.all().end(), [&](const Option& option) {
    return option.name == name && option.replaced_by.empty();
  });
  return found == options.all().end() ? nullptr : &*found;
}

/// For "--json", if --format takes json.
std::string hint_of_format(const Options& options, const std::string& name) {
  for (const char* option : {"--format", "--to"}) {
    const Option* format = option_of(options, option);
    if (format == nullptr || !name.starts_with("--")) continue;
    const std::string word = name.substr(2);
    const auto& choices = format->choices;
    for (const std::string& choice : {word, "matrix-" + word})
      if (std::find(choices.begin(), choices.end(), choice) != choices.end())
        return fmt::format("write {} {}", option, choice);
  }
  return "";
}

/// nccl-tests' 1M is 1 MiB; here it would be ambiguous.
std::string size_of_nccl_tests(std::string value) {
  const bool has_prefix = value.size() > 1 && std::isdigit(static_cast<unsigned char>(value[value.size() - 2])) != 0 &&
                          std::string_view("KMGT").find(value.back()) != std::string_view::npos;
  return has_prefix ? value + "iB" : value;
}

std::string hint_of_foreign(const Options& options, const std::string& name, const std::string& value) {
  for (const Foreign& each : foreign_options()) {
    if (std::find(each.names.begin(), each.names.end(), name) == each.names.end()) continue;
    const Option* needed = each.needs.empty() ? nullptr : option_of(options, each.needs);
    if (!each.needs.empty() && needed == nullptr) continue;
    std::string shown = each.needs == "--bytes" ? size_of_nccl_tests(value) : value;
    if (!each.of.empty()) needed = option_of(options, each.of);
    if (shown.empty() && needed != nullptr)
      shown = needed->is_argument() ? "ringsim COMMAND " + needed->name : needed->value;
    std::string hint = each.hint;
    for (std::size_t at = 0; (at = hint.find("{}", at)) != std::string::npos; at += shown.size())
      hint.replace(at, 2, shown);
    return hint;
  }
  return "";
}

/// "--ranks 16" for `--set topology.ranks=16`.
std::string hint_of_key(const Options& options, const std::string& name, const std::string& value) {
  if (option_of(options, "--set") == nullptr || !name.starts_with("--")) return "";
  std::string key = name.substr(2);
  std::replace(key.begin(), key.end(), '-', '_');
  const std::vector<std::string> paths = scenarios::paths_of(key, value);
  if (paths.empty()) return "";
  std::string hint = fmt::format("write --set {}={}", paths.front(), value.empty() ? "VALUE" : value);
  for (std::size_t i = 1; i < paths.size(); ++i)
    hint += (i == 1 ? ", or change " : i + 1 == paths.size() ? " or " : ", ") + paths[i];
  return hint;
}

}  // namespace

std::string hint_of_unknown(const std::vector<Command>& table, const Options& options, const std::string& option,
                            const std::string& value) {
  Words known = options.names();
  known.emplace_back("--help");
  const bool is_letter = option.size() == 2;  // near to each other
  for (std::string hint : {is_letter ? "" : did_you_mean(option, known), hint_of_format(options, option),
                           hint_of_foreign(options, option, value), hint_of_key(options, option, value)})
    if (!hint.empty()) return hint;
  return hint_of_others(table, option);
}

Named named_by(const std::vector<Command>& table, const Words& words) {
  const std::string& word = words.front();
  const Command* command = find(table, word);
  if (command == nullptr)
    throw UsageError("", fmt::format("expected a command, found \"{}\"", word),
                     word.starts_with('-') ? hint_for_first_option(word) : hint_for(table, word));
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
