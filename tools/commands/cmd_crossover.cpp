// ringsim crossover: which of a scenario's algorithms is best at which size.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/explanations/crossover_text.hpp"
#include "tools/formats/result_text.hpp"
#include "tools/output/output.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/points.hpp"

namespace ringsim::tools {

namespace {

enum class CrossoverFormat { table, csv, nccl_tuner };

struct CrossoverArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;  ///< if the scenario is a machine: how many, and what joins them
  std::optional<CrossoverFormat> said_format;
  CrossoverFormat format = CrossoverFormat::table;  ///< `said_format`, or what the ending of `output` says
  std::string output;                               ///< a file; empty or "-": stdout
  int jobs = 0;                                     ///< points at a time; 0: one per core
  bool refine = false;                              ///< bisects between the scenario's sizes

  void settle() {
    using enum CrossoverFormat;
    format = format_by_ending(output, said_format, table, {{".csv", csv}, {".csv", nccl_tuner}});
  }
};

void declare(Options& options, CrossoverArguments& crossover) {
  options.scenario(crossover.scenario, crossover.set);
  declare_nodes(options, crossover.machine);
  options
      .choice<CrossoverFormat>("--format",
                               {{"table", CrossoverFormat::table},
                                {"csv", CrossoverFormat::csv},
                                {"nccl-tuner", CrossoverFormat::nccl_tuner}},
                               crossover.said_format,
                               "the format of the results; nccl-tuner is the input of NCCL's example tuner plugin")
      .fallback = "table";
  options.flag(
      "--refine", crossover.refine,
      "simulate sizes between those of the scenario to locate each change: to the byte below 1 MiB, to the KiB above");
  options.output(crossover.output);
  options.jobs(crossover.jobs);
}

using Varied = std::vector<std::pair<std::string, std::string>>;

/// True if points that differ in it compete with each other.
bool competes(const std::string& path) {
  return path == "collective.algorithm" || path.starts_with("collective.algorithm.") || path == "transport.protocol" ||
         path == "transport.channels";
}

/// What stands for all points with which this one is compared.
Varied others_of(const Varied& varied) {
  Varied others;
  for (const auto& each : varied)
    if (!competes(each.first) && each.first != "collective.bytes") others.push_back(each);
  return others;
}

Contender contender_of(const Prediction& result) {
  const std::string text = algorithm_text(result);
  if (!result.library.empty()) return {text, "", protocol_text(result), result.request.channels};
  return {result.algorithm, text == result.algorithm ? "" : text.substr(result.algorithm.size() + 1),
          std::string(result.protocol->name), result.request.channels};
}

/// What was compared, and the scenario of each contender for more of the same.
class Groups {
 public:
  explicit Groups(const ScenarioFile& file) : file_(file) {}

  void take(const Prediction& result, std::size_t point) {
    const Varied others = others_of(result.varied);
    auto found =
        std::find_if(all.begin(), all.end(), [&](const CrossoverGroup& group) { return group.others == others; });
    if (found == all.end()) {
      all.push_back({result.request.op, result.request.ranks, result.nodes, others, {}});
      points_.emplace_back();
      found = std::prev(all.end());
    }
    const std::size_t i = found->comparison.add(contender_of(result), result.request.bytes, result.time);
    points_[static_cast<std::size_t>(found - all.begin())].emplace(i, point);
  }

  void locate_changes() {
    for (std::size_t g = 0; g < all.size(); ++g) {
      refine(all[g].comparison, [&](std::size_t contender, Bytes size) -> std::optional<Picoseconds> {
        if (stop_requested) throw Interrupted("all points are done, but not all changes are located");
        try {
          const auto scenario = file_.point(points_[g].at(contender), size);
          if (!scenario) return std::nullopt;
          return predict(*scenario, {.stop = &stop_requested}).time;
        } catch (const UnservedError&) {
          return std::nullopt;
        }
      });
    }
  }

  std::vector<CrossoverGroup> all;  ///< in the order of their first points

 private:
  const ScenarioFile& file_;
  std::vector<std::map<std::size_t, std::size_t>> points_;  // [group][contender] one of its points
};

/// What was left out, once each, with the number of points.
class LeftOut {
 public:
  void take(const UnservedError& error) {
    const std::string named = error.algorithm() + ": ";
    const std::string note = (error.message().starts_with(named) ? "" : named) + error.message();
    const auto found = std::find_if(notes_.begin(), notes_.end(), [&](const auto& each) { return each.first == note; });
    if (found == notes_.end())
      notes_.emplace_back(note, 1);
    else
      ++found->second;
  }
  void say_all(std::size_t points) const {
    for (const auto& [what, count] : notes_)
      say(fmt::format("ringsim: note: left out at {} of {} points: {}\n", count, points, what));
  }

 private:
  std::vector<std::pair<std::string, std::size_t>> notes_;
};

/// True if algorithms vary at all: as the first point says that its algorithm can serve.
bool compares(const ScenarioFile& file) {
  for (std::size_t i = 0; i < file.size(); ++i) {
    try {
      const Varied varied = file.point(i).varied;
      return std::any_of(varied.begin(), varied.end(), [](const auto& each) { return competes(each.first); });
    } catch (const UnservedError&) {
      if (file.size() == 1) throw;
    }
  }
  return false;
}

[[noreturn]] void nothing_to_compare(const std::string& scenario, const std::string& found) {
  throw InputError(scenario + ": /collective/algorithm", "expected several algorithms to compare, found " + found,
                   R"(list algorithms or parameters: "algorithm": ["ring", {"name": "chain", "segments": [1, 8]}])");
}

std::string text_of(const std::vector<CrossoverGroup>& groups, const CrossoverArguments& arguments) {
  switch (arguments.format) {
    case CrossoverFormat::table:
      return crossover_table(groups);
    case CrossoverFormat::csv:
      return crossover_csv(groups);
    case CrossoverFormat::nccl_tuner:
      return crossover_nccl_tuner(groups, arguments.refine);
  }
  fail_invariant("a crossover is written in one of three formats");
}

/// What is compared on a machine that takes the place of a scenario.
CollectiveWords compared_collective() {
  return {.bytes = {{"from", "1 KiB"}, {"to", "1 GiB"}, {"factor", 4}},
          .algorithms = {"ring", "halving_doubling", "double_binary_tree"}};
}

int execute(const CrossoverArguments& arguments) {
  const ScenarioText input = read_input(arguments.scenario, arguments.machine, compared_collective());
  const ScenarioFile file = ScenarioFile::parse(input.text, input.name, arguments.set);
  refuse_as_output(arguments.scenario, arguments.output);
  if (!compares(file)) nothing_to_compare(input.name, "one");
  Output output(arguments.output);
  Groups groups(file);
  LeftOut left_out;
  std::size_t point = 0;
  try {
    predict_points(
        file, arguments.jobs, true,
        [&](Result&& result) {
          // A scenario's other jobs run at the same time as what is compared; their times are not asked for.
          const Prediction& prediction = result.prediction;
          if (prediction.job.empty() || prediction.job == "main") groups.take(prediction, point++);
        },
        [&](const UnservedError& error) {
          left_out.take(error);
          ++point;
        });
  } catch (const Interrupted&) {  // half a comparison would name wrong winners: nothing is written
    throw Interrupted(fmt::format("{} of {} points done", point, file.size()));
  }
  left_out.say_all(file.size());
  const auto one = [](const CrossoverGroup& group) { return group.comparison.contenders.size() < 2; };
  if (std::all_of(groups.all.begin(), groups.all.end(), one))
    nothing_to_compare(input.name,
                       groups.all.empty() ? "none that runs at any point" : "no two that run at the same point");
  if (arguments.refine) groups.locate_changes();
  output.write(text_of(groups.all, arguments));
  output.finish();
  return good;
}

}  // namespace

Command crossover_command() {
  return {.name = "crossover",
          .group = Group::predict,
          .summary = "Find the best algorithm for each message size",
          .example = "ringsim crossover scenarios/examples/algorithms/crossover-hgx-h100.json --refine",
          .details = "",
          .prepare = with<CrossoverArguments>(declare, execute)};
}

}  // namespace ringsim::tools
