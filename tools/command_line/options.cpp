#include "tools/command_line/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/text/json.hpp"
#include "sim/text/spelling.hpp"
#include "tools/memory.hpp"
#include "tools/pictures/picture_file.hpp"
#include "validate/measured/measured.hpp"

namespace ringsim::tools {

namespace {

/// All of the text as a number, or nothing.
template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double share_of(const std::string& text) {
  constexpr double most = 1e6;
  std::string_view digits = text;
  const bool has_sign = digits.ends_with('%');
  if (has_sign) digits.remove_suffix(1);
  if (digits.ends_with(' ')) digits.remove_suffix(1);
  const std::optional<double> percent = number<double>(digits);
  const bool good = percent && *percent >= 0 && *percent < most;
  if (!good || !has_sign) {
    std::string hint;
    if (good && *percent > 0 && *percent < 1)
      hint = fmt::format("write {:g}% for this share, or {}%", 100 * *percent, digits);
    else if (good)
      hint = fmt::format("write {}%", digits);
    throw InputError("", fmt::format("expected a percentage such as 15%, found \"{}\"", text), hint);
  }
  return *percent / 100;
}

}  // namespace

Option& Options::add(const std::string& names, const std::string& value, const std::string& help) {
  Option& option = all_.emplace_back();
  const std::size_t comma = names.find(',');
  option.name = comma == std::string::npos ? names : names.substr(comma + 1);
  if (comma != std::string::npos) option.letter = names.substr(0, comma);
  option.value = value;
  option.help = help;
  return option;
}

Option& Options::text(const std::string& names, const std::string& value, std::string& target,
                      const std::string& help) {
  Option& option = add(names, value, help);
  option.take = [&target](const std::string& text) { target = text; };
  return option;
}

Option& Options::file(const std::string& names, const std::string& value, std::string& target,
                      const std::string& help) {
  Option& option = text(names, value, target, help);
  option.file = true;
  return option;
}

Option& Options::read(const std::string& names, const std::string& value, std::function<void(const std::string&)> take,
                      const std::string& help) {
  Option& option = add(names, value, help);
  option.take = std::move(take);
  return option;
}

Option& Options::texts(const std::string& names, const std::string& value, std::vector<std::string>& target,
                       const std::string& help) {
  Option& option = add(names, value, help);
  option.repeats = true;
  option.take = [&target](const std::string& text) { target.push_back(text); };
  return option;
}

Option& Options::changes(const std::string& names, std::vector<std::string>& target, const std::string& help) {
  Option& option = texts(names, "PATH=VALUE", target, help);
  option.take = [&target](const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw InputError("", fmt::format("expected PATH=VALUE, found {}", in_quotes(text)), "such as topology.ranks=16");
    target.push_back(text);
  };
  return option;
}

Option& Options::flag(const std::string& names, bool& target, const std::string& help, bool becomes) {
  Option& option = add(names, "", help);
  option.take = [&target, becomes](const std::string&) { target = becomes; };
  return option;
}

Option& Options::whole(const std::string& names, const std::string& value, int least, int most,
                       const std::function<void(int)>& store, const std::string& help) {
  Option& option = add(names, value, help);
  option.take = [=](const std::string& text) {
    const std::optional<int> found = number<int>(text);
    if (!found || *found < least || *found > most)
      throw InputError("", fmt::format("expected a whole number from {} to {}, found \"{}\"", least, most, text));
    store(*found);
  };
  return option;
}

Option& Options::whole(const std::string& names, const std::string& value, int least, int most, int& target,
                       const std::string& help) {
  return whole(
      names, value, least, most, [&target](int found) { target = found; }, help);
}

Option& Options::percentage(const std::string& names, const std::function<void(double)>& store,
                            const std::string& help) {
  Option& option = add(names, "PERCENT", help);
  option.take = [store](const std::string& text) { store(share_of(text)); };
  return option;
}

Option& Options::time(const std::string& names, std::chrono::nanoseconds& target, const std::string& help) {
  Option& option = add(names, "TIME", help);
  option.take = [&target](const std::string& text) {
    const Picoseconds time = parse_time(text);
    if (time <= Picoseconds{0}) throw InputError("", fmt::format("expected a time above 0, found \"{}\"", text));
    target = std::chrono::ceil<std::chrono::nanoseconds>(time);
  };
  return option;
}

Option& Options::size(const std::string& names, Bytes least, Bytes most, Bytes& target, const std::string& help) {
  Option& option = add(names, "SIZE", help);
  option.take = [=, &target](const std::string& text) {
    const Bytes size = parse_bytes(text);
    if (size < least || size > most)
      throw InputError(
          "", fmt::format("expected {} to {}, found \"{}\"", ringsim::format(least), ringsim::format(most), text));
    target = size;
  };
  return option;
}

Option& Options::argument(const std::string& name, std::string& target, const std::string& help) {
  Option& option = add(name, name, help);
  option.required = true;
  option.take = [&target](const std::string& text) { target = text; };
  return option;
}

Option& Options::arguments(const std::string& name, std::vector<std::string>& target, const std::string& help) {
  Option& option = add(name, name, help);
  option.required = option.repeats = true;
  option.take = [&target](const std::string& text) { target.push_back(text); };
  return option;
}

void Options::replaced(const std::string& name, const std::string& by) {
  Option& option = add(name, "VALUE", "");
  option.repeats = true;
  option.replaced_by = by;
}

Option& Options::scenario(std::string& target, std::vector<std::string>& set) {
  Option& scenario =
      argument("SCENARIO", target, "a scenario file (JSON) or the name of a machine; - reads standard input");
  scenario.file = true;
  changes("--set", set,
          "set the value at a dotted path, such as topology.ranks=16; null removes the key, so the default applies");
  return scenario;
}

void Options::max_memory() {
  tools::max_memory.reset();
  Option& option = add("--max-memory", "SIZE", "refuse to run training steps that would need more memory than this");
  option.fallback = "the memory of this machine";
  option.take = [](const std::string& text) {
    const Bytes size = parse_bytes(text);
    if (size <= Bytes{}) throw InputError("", fmt::format("expected more than 0 B, found \"{}\"", text));
    tools::max_memory = size;
  };
}

void Options::jobs(int& target, const std::string& what) {
  whole("-j,--jobs", "N", 1, 4096, target, what + " to simulate at a time").fallback = "one per core";
}

void Options::output(std::string& target, const std::string& what) {
  file("-o,--output", "FILE", target, fmt::format("write {} to FILE; - writes to standard output", what));
}

void Options::picture_output(std::string& target, bool& force) {
  Option& output =
      file("-o,--output", "FILE", target, "write the picture to FILE.svg or FILE.png; - writes SVG to standard output");
  output.required = true;
  output.take = [&target](const std::string& path) {
    if (path != "-") expect_picture_name(path);
    target = path;
  };
  flag("--force", force, "allow -o to overwrite a file that ringsim did not write");
}

namespace {

const std::vector<std::pair<std::string, Format>> formats{{"table", Format::table},
                                                          {"json", Format::json},
                                                          {"jsonl", Format::jsonl},
                                                          {"csv", Format::csv},
                                                          {"nccl-tests", Format::nccl_tests}};

}  // namespace

const std::vector<std::pair<std::string, Format>>& result_endings() {
  static const std::vector<std::pair<std::string, Format>> endings{
      {".json", Format::json}, {".jsonl", Format::jsonl}, {".ndjson", Format::jsonl}, {".csv", Format::csv}};
  return endings;
}

void Options::format(std::optional<Format>& target, const std::string& more) {
  choice<Format>("--format", formats, target, "format of the results" + more).fallback =
      "taken from the extension of FILE.json, FILE.jsonl or FILE.csv, else table";
}

Option& Options::format_or_matrix(std::optional<Format>& target) {
  std::vector<std::pair<std::string, Format>> all = formats;
  all.insert(all.end(), matrix_formats().begin(), matrix_formats().end());
  Option& option = choice<Format>("--format", all, target,
                                  "format of the results: table, json, jsonl, csv, nccl-tests; matrix, "
                                  "matrix-markdown and matrix-csv need --rows and --columns");
  option.value = "FORMAT";
  option.fallback = "taken from the extension of FILE.json, FILE.jsonl or FILE.csv, else table";
  return option;
}

const std::vector<std::pair<std::string, Format>>& matrix_formats() {
  static const std::vector<std::pair<std::string, Format>> matrices{
      {"matrix", Format::matrix}, {"matrix-markdown", Format::matrix_markdown}, {"matrix-csv", Format::matrix_csv}};
  return matrices;
}

void Options::matrix(MatrixFields& fields) {
  text("--rows", "NAME", fields.rows, "matrix: one row per value of this result column or varying path");
  text("--columns", "NAME", fields.columns, "matrix: one column per value of this result column or varying path");
  text("--cell", "NAME", fields.cell, "matrix: the result column to show in the cells").fallback = fields.cell;
}

void Options::chart(ChartFields& fields) {
  text("--x", "NAME", fields.x, "plot: the result column or varying path on the horizontal axis").fallback =
      "bytes if it varies, else the first number that varies";
  text("--y", "NAME", fields.y, "plot: the result column or varying path on the vertical axis").fallback =
      "busbw_GBps; time_us for training";
  text("--by", "NAME", fields.by, "plot: one series per value of this column or path").fallback =
      "everything that varies except --x";
  replaced("--series", "--by");
}

void Options::bound(bool& target) {
  flag("--bound", target,
       "add the minimum time that the machine allows, and the share of that bound that each result reaches");
}

Option& Options::run_of_log(std::optional<int>& target) {
  constexpr int most = 1'000'000;
  return whole(
      "--run", "N", 1, most, [&target](int number) { target = number; },
      "the run to use from a log whose runs disagree, counted from 1");
}

namespace {

/// For an option or argument that names a collective: its value is as scenarios write it.
void take_collective(Option& option, std::string& target) {
  std::vector<std::string> names;
  for (const CollectiveOp op : collective_ops()) names.emplace_back(to_string(op));
  option.suggested = names;
  option.take = [&target, names](const std::string& text) {
    const std::optional<CollectiveOp> op = collective_named(text);
    if (!op)
      throw InputError("", fmt::format("expected the name of a collective, found \"{}\"", text),
                       spelling_hint(text, names));
    target = to_string(*op);
  };
}

}  // namespace

void Options::collective(std::string& target) {
  take_collective(
      text("--collective", "NAME", target, "the collective that was measured, if the file does not name it"), target);
}

void Options::collective_argument(std::string& target) {
  take_collective(argument("COLLECTIVE", target,
                           "such as all_reduce; the names used by MPI, NCCL, nccl-tests and PyTorch also work"),
                  target);
}

std::vector<std::string> Options::names() const {
  std::vector<std::string> names;
  for (const Option& option : all_)
    if (!option.is_argument() && option.replaced_by.empty()) names.push_back(option.name);
  return names;
}

}  // namespace ringsim::tools
