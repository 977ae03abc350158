// The only file that includes CLI11, which takes seconds to compile. CLI11 takes the words apart; what may be wrong
// with them is found here, so that every message has the same form.
#include "tools/command_line/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>

#include "sim/text/spelling.hpp"
#include "tools/command_line/guarded.hpp"
#include "tools/command_line/help.hpp"
#include "tools/command_line/lookup.hpp"
#include "tools/exit.hpp"
#include "tools/output/color.hpp"
#include "tools/output/output.hpp"
#include "tools/stop.hpp"
#include "topologies/machines/preset_names.hpp"

namespace ringsim::tools {

namespace {

using Words = std::vector<std::string>;

std::string in_quotes_all(const Words& words) { return fmt::format("\"{}\"", fmt::join(words, "\" \"")); }

/// "--jobs (-j)".
std::string called(const Option& option) {
  return option.letter.empty() ? option.name : fmt::format("{} ({})", option.name, option.letter);
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

/// The words of one command, taken apart by CLI11.
class Parsed {
 public:
  Parsed(const Options& options, const Words& words) {
    app_.allow_extras();
    app_.set_help_flag();
    help_ = app_.add_flag("-h,--help");
    for (const Option& option : options.all()) {
      const std::string names = option.letter.empty() ? option.name : option.letter + ',' + option.name;
      if (option.is_flag()) {
        given_.push_back({&option, app_.add_flag(names), {}});
        continue;
      }
      given_.push_back({&option, nullptr, {}});
      Given& given = given_.back();
      given.found = app_.add_option(names, given.values);
      if (option.is_argument()) given.found->expected(1, option.repeats ? CLI::detail::expected_max_vector_size : 1);
      given.found->allow_extra_args(option.is_argument() && option.repeats);
    }
    parse(words);
  }

  bool asks_for_help() const { return help_->count() > 0; }

  /// What was not expected, as typed.
  Words unexpected() const {
    Words words = app_.remaining();
    words.erase(std::remove(words.begin(), words.end(), "--"), words.end());
    return words;
  }

  std::size_t count(const std::string& name) const {
    for (const Given& given : given_)
      if (given.option->name == name) return given.found->count();
    return 0;
  }

  /// Checks what was given, and stores it. Throws UsageError.
  void store() const {
    for (const Given& given : given_) refuse_replaced(given);
    for (const Given& given : given_) check(given);
    for (const Given& given : given_) {
      const Option& option = *given.option;
      if (option.is_flag() && given.found->count() > 0) option.take("");
      for (const std::string& value : given.values) take(option, value);
    }
  }

 private:
  struct Given {
    const Option* option;
    CLI::Option* found;
    Words values;
  };

  void parse(Words words) {
    for (const std::string& word : words)  // CLI11 would take the next word for the value
      if (word.starts_with("--") && word.size() > 3 && word.find('=') == word.size() - 1)
        throw UsageError(word.substr(0, word.size() - 1), "expected a value after \"=\", found none");
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ArgumentMismatch& error) {  // "--format: 1 required ...": the words end before the value
      const std::string text = error.what();
      throw UsageError(text.substr(0, text.find(':')), "expected a value, found nothing");
    } catch (const CLI::Error& error) {
      throw UsageError("", error.what());
    }
  }

  static void refuse_replaced(const Given& given) {
    const Option& option = *given.option;
    if (given.found->count() == 0 || option.replaced_by.empty()) return;
    throw UsageError("", fmt::format("{} has been replaced by {}", option.name, option.replaced_by));
  }

  void check(const Given& given) const {
    const Option& option = *given.option;
    const std::size_t n = given.found->count();
    if (option.required && n == 0)
      throw UsageError("", fmt::format("expected {}, found nothing", spelling_of(option)),
                       fmt::format("{}: {}", option.name, meaning_of(option)));
    if (n > 1 && !option.repeats && !option.is_flag())
      throw UsageError(called(option), fmt::format("expected this option once, found it {} times", n));
    if (n > 0 && option.is_flag() && given.found->results().back() != "true")
      throw UsageError(called(option), fmt::format("expected no value, found \"{}\"", given.found->results().back()));
    if (n > 0 && !option.needs.empty() && count(option.needs) == 0)
      throw UsageError(called(option), fmt::format("expected {} as well, found none", option.needs));
  }

  static void take(const Option& option, const std::string& typed) {
    const Words& choices = option.choices;
    const auto alias = std::find_if(option.aliases.begin(), option.aliases.end(),
                                    [&](const auto& each) { return each.first == typed; });
    const std::string& value = alias == option.aliases.end() ? typed : alias->second;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
      Words known = choices;
      for (const auto& [word, choice] : option.aliases) known.push_back(word);
      throw UsageError(option.name, fmt::format("expected one of {}, found \"{}\"", fmt::join(choices, ", "), value),
                       did_you_mean(value, known));
    }
    try {
      option.take(value);
    } catch (const InputError& error) {
      throw UsageError(error.where().starts_with(option.name) ? error.where() : called(option), error.message(),
                       error.hint());
    }
  }

  CLI::App app_;
  CLI::Option* help_;
  std::deque<Given> given_;  // CLI11 keeps references
};

bool is_option(const std::string& word) { return word.size() > 1 && word.starts_with('-'); }

/// The word after an option, if it may be its value; else empty.
std::string value_after(const Words& words, const std::string& option) {
  const auto found = std::find(words.begin(), words.end(), option);
  if (found == words.end() || found + 1 == words.end() || is_option(*(found + 1))) return "";
  return *(found + 1);
}

/// Throws UsageError for "--set topology.ranks 16", where one argument too many may be its value.
void refuse_change_apart(const Options& options, const Words& words) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i)
    for (const Option& option : options.all()) {
      const bool is_change = option.value == "PATH=VALUE" && (words[i] == option.name || words[i] == option.letter);
      if (!is_change || words[i + 1].find('=') != std::string::npos || is_option(words[i + 2])) continue;
      throw UsageError(option.name,
                       fmt::format("expected PATH=VALUE, found {}", in_quotes_all({words[i + 1], words[i + 2]})),
                       fmt::format("write {} {}={}", option.name, words[i + 1], words[i + 2]));
    }
}

/// `words`: all that were typed; `unexpected`: those that the command does not take.
[[noreturn]] void fail_unexpected(const std::vector<Command>& table, const Command& command, const Options& options,
                                  const Words& words, const Words& unexpected) {
  refuse_change_apart(options, words);
  const auto option = std::find_if(unexpected.begin(), unexpected.end(), is_option);
  if (option == unexpected.end()) {
    const bool takes_node = std::any_of(options.all().begin(), options.all().end(), [](const Option& each) {
      return each.name == "--node" && each.value.starts_with("NAME");
    });
    const std::string& first = unexpected.front();
    throw UsageError(command.name, fmt::format("expected no further argument, found {}", in_quotes_all(unexpected)),
                     takes_node && preset_named(first) != nullptr ? "write --node " + first : "");
  }
  const std::size_t equals = option->find('=');
  const std::string name = option->substr(0, equals);
  const std::string value = equals == std::string::npos ? value_after(words, *option) : option->substr(equals + 1);
  throw UsageError(command.name, "unknown option " + name, hint_of_unknown(table, options, name, value));
}

std::function<int()> prepared(const std::vector<Command>& table, const Command& command, const Words& words) {
  Options options;
  std::function<int()> run = command.prepare(options);
  const Parsed parsed(options, words);
  if (parsed.asks_for_help()) {
    return [&table, &command] {
      Output output;
      output.write_styled(help_of(table, command, has_color(STDOUT_FILENO)));
      output.finish();
      return static_cast<int>(good);
    };
  }
  if (const Words unexpected = parsed.unexpected(); !unexpected.empty())
    fail_unexpected(table, command, options, words, unexpected);
  parsed.store();
  return run;
}

}  // namespace

int run_command_line(const std::vector<Command>& table, const Words& typed) {
  Words words = typed;
  if (!words.empty() && asks_for_help(words.front())) words.front() = "help";
  if (!words.empty() && words.front() == "--version") words.front() = "version";
  const Command* command = nullptr;
  const Ending ending = ending_of([&]() -> int {
    if (words.empty()) throw UsageError("", "expected a command, found nothing");
    const Named named = named_by(table, words);
    command = named.command;
    if (!command->left_out.empty())
      throw EnvironmentError(
          fmt::format("ringsim {} was left out of this build ({})\n"
                      "  hint: tools/build.sh builds all of it",
                      command->name, command->left_out));
    if (!command->prepare) {
      if (words.size() == 1 || !asks_for_help(words[1])) fail_none_below(table, *command, words);
      words = {"help", command->name};
      command = find(table, "help");
    }
    const std::function<int()> run =
        prepared(table, *command, {words.begin() + static_cast<std::ptrdiff_t>(named.words), words.end()});
    catch_interrupts();
    return run();
  });
  if (!ending.said.empty()) say_styled(ending.said);
  if (ending.code == bad_command_line) say(usage_of(table, command));
  return ending.code;
}

}  // namespace ringsim::tools
