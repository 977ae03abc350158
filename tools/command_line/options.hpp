// What a command takes, declared once: the parser, the help, the man pages and the shells' completion all read it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/output/ending.hpp"
#include "tools/output/format.hpp"

namespace ringsim::tools {

/// An option, or an argument by its place. Help texts are imperative, short, and without a full stop.
struct Option {
  std::string name;                                          ///< "--format"; of an argument "SCENARIO"
  std::string letter;                                        ///< "-o"; empty: none
  std::string value;                                         ///< what help calls its value, "FILE"; empty: a flag
  std::string help;                                          ///< one sentence
  std::vector<std::string> choices;                          ///< the only values that it takes; empty: `take` decides
  std::vector<std::pair<std::string, std::string>> aliases;  ///< other words for choices: {"machines", "nodes"}
  std::string fallback;                                      ///< the default, for help; empty: none, or `help` tells it
  bool required = false;
  bool repeats = false;     ///< may be given several times; of an argument: takes all the words that are left
  bool file = false;        ///< its value names a file: shells complete it
  std::string needs;        ///< an option without which this one is a mistake; empty: none
  std::string replaced_by;  ///< the option that took its place: a mistake that says so; not in the help
  std::vector<std::string> suggested;  ///< values that shells offer, if others are taken as well
  /// Stores the value; a flag's is empty. Throws InputError: what was expected and found; its `where` is not looked at.
  std::function<void(const std::string& value)> take;

  bool is_argument() const { return !name.starts_with('-'); }
  bool is_flag() const { return value.empty() && !is_argument(); }
};

/// The formats of results by the endings of their files.
const std::vector<std::pair<std::string, Format>>& result_endings();

/// The formats of matrices, and how they are spelled.
const std::vector<std::pair<std::string, Format>>& matrix_formats();

/// Gathers the options of one command. Targets must outlive the parsing; they keep their value, the default, if the
/// option is not given. The references that are returned hold as long as the Options.
class Options {
 public:
  /// `names`: "--output" or "-o,--output".
  Option& text(const std::string& names, const std::string& value, std::string& target, const std::string& help);
  Option& file(const std::string& names, const std::string& value, std::string& target, const std::string& help);
  /// A value that `take` reads, as Option::take.
  Option& read(const std::string& names, const std::string& value, std::function<void(const std::string&)> take,
               const std::string& help);
  Option& texts(const std::string& names, const std::string& value, std::vector<std::string>& target,
                const std::string& help);
  /// Changes of a scenario, as `--set`: PATH=VALUE.
  Option& changes(const std::string& names, std::vector<std::string>& target, const std::string& help);
  Option& flag(const std::string& names, bool& target, const std::string& help, bool becomes = true);
  /// A whole number within bounds.
  Option& whole(const std::string& names, const std::string& value, int least, int most,
                const std::function<void(int)>& store, const std::string& help);
  Option& whole(const std::string& names, const std::string& value, int least, int most, int& target,
                const std::string& help);
  /// A share, typed with its sign: "15%" is 0.15.
  Option& percentage(const std::string& names, const std::function<void(double)>& store, const std::string& help);
  /// A time above 0, typed with its unit.
  Option& time(const std::string& names, std::chrono::nanoseconds& target, const std::string& help);
  /// A size, typed with its unit.
  Option& size(const std::string& names, Bytes least, Bytes most, Bytes& target, const std::string& help);
  /// One of a few words, and what each means. A target may be a std::optional<Value>.
  template <class Value, class Target>
  Option& choice(const std::string& names, const std::vector<std::pair<std::string, Value>>& meanings, Target& target,
                 const std::string& help);
  /// An argument by its place.
  Option& argument(const std::string& name, std::string& target, const std::string& help);
  Option& arguments(const std::string& name, std::vector<std::string>& target, const std::string& help);
  /// An option that is gone, and what took its place.
  void replaced(const std::string& name, const std::string& by);

  // What several commands take.
  /// SCENARIO and --set.
  Option& scenario(std::string& target, std::vector<std::string>& set);
  /// --max-memory, for commands that predict; memory_limit() has it.
  void max_memory();
  void jobs(int& target, const std::string& what = "points");
  void output(std::string& target, const std::string& what = "the results");
  /// -o of commands that do nothing but draw, which is required, and --force.
  void picture_output(std::string& target, bool& force);
  void format(std::optional<Format>& target, const std::string& more = "");
  /// --format for commands that print matrices as well.
  Option& format_or_matrix(std::optional<Format>& target);
  /// --rows, --columns and --cell of a matrix.
  void matrix(MatrixFields& fields);
  /// --x, --y and --by of a plot.
  void chart(ChartFields& fields);
  /// --bound: results as shares of what the machine allows.
  void bound(bool& target);
  /// --collective, for a file of measured times that does not say what was measured.
  void collective(std::string& target);
  /// COLLECTIVE, by any of its names; becomes as scenarios write it.
  void collective_argument(std::string& target);
  /// --run, for a log with several.
  Option& run_of_log(std::optional<int>& target);

  const std::deque<Option>& all() const { return all_; }
  /// The names of all options that are not gone, without arguments.
  std::vector<std::string> names() const;

 private:
  Option& add(const std::string& names, const std::string& value, const std::string& help);
  std::deque<Option> all_;
};

template <class Value, class Target>
Option& Options::choice(const std::string& names, const std::vector<std::pair<std::string, Value>>& meanings,
                        Target& target, const std::string& help) {
  std::string value;
  for (const auto& [word, meaning] : meanings) value += (value.empty() ? "" : "|") + word;
  Option& option = add(names, value, help);
  for (const auto& [word, meaning] : meanings) option.choices.push_back(word);
  option.take = [&target, meanings](const std::string& text) {
    for (const auto& [word, meaning] : meanings)
      if (word == text) target = meaning;
  };
  return option;
}

}  // namespace ringsim::tools
