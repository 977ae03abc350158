// ringsim synthesize: a schedule made for a machine, as good as any on its links.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/formats/json_schedule.hpp"
#include "algorithms/formats/msccl_export.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/json.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/formats/mscclpp_file.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/stop.hpp"
#include "validate/analysis/synthesize.hpp"

namespace ringsim::tools {

namespace {

enum class SynthesizedFormat { json, msccl, mscclpp };

struct SynthesizeArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;  ///< if the scenario is a machine: how many, and what joins them
  std::optional<std::int64_t> trees;
  int most_slices = 256;
  bool trees_only = false;
  std::optional<SynthesizedFormat> said_to;
  SynthesizedFormat to = SynthesizedFormat::json;  ///< `said_to`, or what the ending of `output` says
  bool timing = false;
  std::string output;  ///< the schedule's file; empty: none is written

  void settle() {
    using enum SynthesizedFormat;
    if (output.empty()) return;
    expect_ending(output, {".json", ".xml"}, OtherEndings::refused);
    to = format_to(output, said_to, json, {{".json", json}, {".json", mscclpp}, {".xml", msccl}});
  }
};

void declare(Options& options, SynthesizeArguments& synthesize) {
  options.scenario(synthesize.scenario, synthesize.set);
  declare_nodes(options, synthesize.machine);
  options.whole(
      "--trees", "K", 1, 1024, [&synthesize](int k) { synthesize.trees = k; },
      "the number of trees per root; by default, the fewest that come close to the optimum");
  options
      .whole("--slices", "N", 1, 256, synthesize.most_slices,
             "cut the data of each tree into at most N messages, sent one after another")
      .fallback = "256";
  options.flag("--trees-only", synthesize.trees_only,
               "write the synthesized schedule even if a catalog algorithm is faster");
  options
      .choice<SynthesizedFormat>("--to",
                                 {{"json", SynthesizedFormat::json},
                                  {"msccl", SynthesizedFormat::msccl},
                                  {"mscclpp", SynthesizedFormat::mscclpp}},
                                 synthesize.said_to,
                                 "the format of FILE; by default, msccl if it ends in .xml, else json")
      .needs = "--output";
  options.flag("--timing", synthesize.timing, "print the time of each stage to stderr");
  options.file("-o,--output", "FILE", synthesize.output, "write the schedule to FILE");
}

/// Says how long each stage took when the next one begins, and the last one at its end.
class StageTimes {
 public:
  explicit StageTimes(bool on) : on_(on) {}
  ~StageTimes() { now(""); }
  StageTimes(const StageTimes&) = delete;
  StageTimes& operator=(const StageTimes&) = delete;

  void now(const std::string& stage) {
    const auto time = std::chrono::steady_clock::now();
    if (on_ && !stage_.empty())
      say(fmt::format("{:9.3f} s  {}\n", std::chrono::duration<double>(time - since_).count(), stage_));
    stage_ = stage;
    since_ = time;
  }

 private:
  bool on_;
  std::string stage_;
  std::chrono::steady_clock::time_point since_;
};

std::string written_as(SynthesizedFormat format, const Scenario& scenario, const StoredSchedule& stored) {
  if (format == SynthesizedFormat::mscclpp) return mscclpp_of(scenario, stored);
  std::string text = format == SynthesizedFormat::msccl ? export_msccl(stored) : export_json(stored);
  if (text.size() > scenarios::most_bytes)
    throw InputError(
        "",
        fmt::format("expected a schedule of at most {} MiB, the maximum that ringsim can read, found one of {:.1f} MiB",
                    scenarios::most_bytes >> 20, static_cast<double>(text.size()) / (1 << 20)),
        "reduce the number of steps with fewer slices, such as --slices 16");
  return text;
}

std::string trees_in_words(const DirectedTrees& trees, const std::string& what) {
  const TreePlan& plan = trees.plan;
  std::string text = fmt::format("{}: {} per root, {} in total, depth {}; {:.2f} % of the optimal rate", what,
                                 plan.rate.k, plan.graph.n_trees(),
                                 trees.lowest == trees.highest ? fmt::to_string(trees.lowest)
                                                               : fmt::format("{} to {}", trees.lowest, trees.highest),
                                 100 * plan.share_of_optimum());
  // Twice the rounding of a double: a link that is full carries exactly what it should.
  if (plan.crowding > 1 + 1e-9)
    text += fmt::format(
        "; switches and NICs route some messages over other links than planned, and one link carries {:.2f} times its "
        "planned load",
        plan.crowding);
  return text;
}

std::string text_of(const Scenario& scenario, const Synthesis& made) {
  const CollectiveRequest& request = scenario.main().request;
  std::string text = wrapped(fmt::format("{}: {} of {} over {} ranks", scenario.name, to_string(request.op),
                                         format(request.bytes), request.ranks));
  text += '\n' +
          wrapped(fmt::format("{}: {} ({})",
                              request.op == CollectiveOp::all_reduce ? "optimum of a reduce-scatter and an all-gather"
                              : made.bound.is_optimum                ? "optimum"
                                                                     : "lower bound",
                              time_text(made.target), made.target_why));
  if (made.turned)
    text += '\n' + wrapped(fmt::format("one tree rotated to all roots: depth {}; {:.2f} % of the optimal rate",
                                       std::max(made.turned->down ? made.turned->down->height : 0,
                                                made.turned->up ? made.turned->up->height : 0),
                                       100 * made.turned->share));
  if (made.trees.up) text += '\n' + wrapped(trees_in_words(*made.trees.up, "reduction trees"));
  if (made.trees.down) text += '\n' + wrapped(trees_in_words(*made.trees.down, "broadcast trees"));
  if (made.trees.schedule == nullptr)
    text += "\n" + wrapped(
                       "no separate trees per root were planned, because simulating that many messages takes long and "
                       "the rotated tree comes close to the optimal rate");
  Table table({"schedule", "time", "share of the optimum"});
  const auto row = [&](const std::string& name, Picoseconds time) {
    const double share = static_cast<double>(made.target.count()) / static_cast<double>(time.count());
    table.add({name, time, fmt::format("{:.1f} %", 100 * share)});
  };
  for (const MadeSchedule& each : made.made) row(each.name, each.time);
  for (std::size_t i = 0; i < made.catalog.size() && i < 3; ++i) row(made.catalog[i].name, made.catalog[i].time);
  text += "\n\n" + table.fitted() + '\n';
  if (made.left_out > 0)
    text += wrapped(fmt::format("Left out because the file format cannot represent {}: {} schedule{}.",
                                made.left_out == 1 ? "it" : "them", made.left_out, made.left_out == 1 ? "" : "s")) +
            '\n';
  const Picoseconds time = made.made.front().time;
  const auto times_as_long = [](Picoseconds a, Picoseconds b) {
    return static_cast<double>(a.count()) / static_cast<double>(b.count());
  };
  if (made.catalog.empty())
    text += wrapped("No catalog algorithm implements this collective here.");
  else if (time == made.catalog.front().time)
    text += wrapped(fmt::format("The synthesized schedule and {} are equally fast.", made.catalog.front().name));
  else if (made.made_is_faster())
    text += wrapped(fmt::format("The synthesized schedule is the fastest; {} takes {:.3f} times as long.",
                                made.catalog.front().name, times_as_long(made.catalog.front().time, time)));
  else
    text += wrapped(
        fmt::format("{} from the catalog is faster at this size; the synthesized schedule takes {:.3f} times as long.",
                    made.catalog.front().name, times_as_long(time, made.catalog.front().time)));
  const auto rings = std::find_if(made.catalog.begin(), made.catalog.end(),
                                  [](const TimedAlgorithm& each) { return each.scenario.main().channel_rings; });
  if (rings != made.catalog.end() && rings->time <= made.target / 9 * 10)
    text += '\n' + wrapped(fmt::format("Rings reach {:.1f} % of the optimum. To write them as graph XML for NCCL, run "
                                       "`ringsim topology rings --to nccl-graph` on a scenario with library \"nccl\".",
                                       100 * times_as_long(made.target, rings->time)));
  if (std::holds_alternative<Cluster>(scenario.topology))
    text += '\n' + wrapped(
                       "NCCL's own choice is not in the table: `ringsim run` with --set library=nccl and --set "
                       "collective.algorithm=null predicts it. That time includes the launch and what NCCL's kernels "
                       "lose on links (`ringsim topology show` states their shares); the times above do not.");
  return text + '\n';
}

/// The schedule that is written: the fastest that was made, or what is faster.
StoredSchedule chosen(const Synthesis& made, bool trees_only) {
  if (trees_only || made.made_is_faster()) return *made.made.front().schedule;
  return store(schedule_of(made.catalog.front().scenario, &stop_requested).schedule());
}

/// `of_machine`: as ScenarioText; `points`: of the scenario's file.
std::string run_command_of(const SynthesizeArguments& arguments, bool of_machine, const Scenario& scenario,
                           std::size_t points) {
  // Files in a scenario are relative to its folder; the scenario of a machine is in none, and has a library.
  const std::filesystem::path folder = std::filesystem::path(arguments.scenario).parent_path();
  const std::string file = of_machine
                               ? arguments.output
                               : std::filesystem::proximate(arguments.output, folder.empty() ? "." : folder).string();
  std::string line = "ringsim run " + arguments.scenario + words_of(arguments.machine);
  if (of_machine) line += " --set library=null";
  for (const std::string& each : arguments.set)
    if (!each.starts_with("collective.algorithm=") && !(of_machine && each.starts_with("library=")))
      line += fmt::format(" --set '{}'", each);
  line += fmt::format(" --set 'collective.algorithm={{\"file\": \"{}\"}}'", file);
  const CollectiveRequest& request = scenario.main().request;
  if (points > 1) line += fmt::format(" --set 'collective.bytes={} B'", request.bytes.count);
  if (request.channels > 1) line += " --set transport.channels=null";
  if (request.chunk) line += " --set transport.chunk=null";
  if (request.in_place) line += " --set collective.in_place=null";
  if (scenario.main().channel_rings) line += " --set collective.order=null";
  return line;
}

void write_schedule(const SynthesizeArguments& arguments, const Scenario& scenario, const std::string& command,
                    const Synthesis& made, Output& file) {
  const bool trees = arguments.trees_only || made.made_is_faster();
  const std::string name = trees ? made.made.front().name : made.catalog.front().name;
  try {
    const StoredSchedule stored = chosen(made, arguments.trees_only);
    file.write(written_as(arguments.to, scenario, stored));
  } catch (const ScheduleError&) {
    throw;
  } catch (const InputError& error) {
    const std::string hint =
        error.hint().empty() && trees ? "reduce the number of steps with fewer slices: --slices 8" : error.hint();
    throw InputError(arguments.output, fmt::format("cannot write {}: {}", name, error.message()), hint);
  }
  file.finish();
  say(fmt::format("ringsim: wrote {} to {}; run it with\n  {}\n", name, arguments.output, command));
}

int execute(const SynthesizeArguments& arguments) {
  refuse_as_output(arguments.scenario, arguments.output);
  std::optional<Output> file;
  if (!arguments.output.empty()) {
    file.emplace(arguments.output);
  }
  const ScenarioText input = read_input(arguments.scenario, arguments.machine, {.algorithms = {"ring"}});
  const ScenarioFile scenarios = parse_with_any_algorithm(input, arguments.set);
  const Scenario scenario = first_point(scenarios);
  expect_collective(scenario);
  const Setup setup = while_saying("building the topology", [&] { return set_up(scenario, &stop_requested); });
  const auto expect_writable = [&](const StoredSchedule& stored) {
    if (!file) return;
    try {
      (void)written_as(arguments.to, scenario, stored);
    } catch (const ScheduleError&) {
      throw;
    } catch (const InputError& error) {
      throw InputError(arguments.output, fmt::format("cannot write a schedule: {}", error.message()),
                       error.hint().empty() ? "--to json has no such limit" : error.hint());
    }
  };
  const Synthesis made = [&] {
    ProgressLine progress(1);
    StageTimes times(arguments.timing);
    return synthesize(scenario, setup,
                      {.trees = arguments.trees,
                       .most_slices = arguments.most_slices,
                       .expect_writable = expect_writable,
                       .stop = &stop_requested,
                       .stage = [&](const std::string& stage) {
                         progress.now(stage);
                         times.now(stage);
                       }});
  }();
  Output output;
  output.write(text_of(scenario, made));
  output.finish();
  if (file)
    write_schedule(arguments, scenario, run_command_of(arguments, input.of_machine, scenario, scenarios.size()), made,
                   *file);
  return good;
}

}  // namespace

Command synthesize_command() {
  return {.name = "synthesize",
          .group = Group::predict,
          .summary = "Generate the schedule that makes the best use of a machine's links",
          .example = "ringsim synthesize scenarios/two-dgx-a100.json --set collective.bytes=256MiB",
          .details =
              "Packs spanning trees into the links of the scenario's first point; enough trees move data as fast as "
              "any schedule can. Then proves the schedule, simulates it, and compares its time with the bound and with "
              "the catalog algorithms. Supports all-gather, reduce-scatter, all-reduce (as a reduce-scatter followed "
              "by an all-gather), broadcast and reduce.\n\nThe optimum may need many trees per root; a few often come "
              "within a percent of it. Without --trees, two more methods are tried: one tree rotated to all roots "
              "(with at most 64 slices), and a greedy method that takes latency into account. -o writes the fastest "
              "schedule. Unless --trees-only is given, this can be a catalog algorithm, especially for small messages. "
              "Algorithms that reduce in switches are not compared.\n\ndocs/guide/synthesize.md explains the result.",
          .prepare = with<SynthesizeArguments>(declare, execute)};
}

}  // namespace ringsim::tools
