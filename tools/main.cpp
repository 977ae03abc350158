// The command line: what is typed becomes a value, the value a call, the outcome an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

#include "sim/error.hpp"
#include "sim/version.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "validate/measured.hpp"

namespace ringsim::tools {

std::atomic<bool> stop_requested{false};

void stop_if_asked() {
  if (stop_requested.load(std::memory_order_relaxed)) throw Interrupted("stopped before the result was written");
}

namespace {

void on_interrupt(int) { stop_requested.store(true, std::memory_order_relaxed); }

// A file opened later must not get the number of a closed stderr: messages would go into it.
void hold_stderr() {
  if (fcntl(STDERR_FILENO, F_GETFD) != -1) return;
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere != -1 && nowhere != STDERR_FILENO) {
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
  }
}

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second Ctrl-C ends the process at once
  sigaction(SIGINT, &action, nullptr);
}

int fail(Exit code, const char* kind, const std::string& what) {
  say(fmt::format("ringsim: {}: {}\n", kind, what));
  return code;
}

template <class Command>
int guarded(Command command) {
  try {
    return command();
  } catch (const InputError& error) {
    return fail(bad_input, "error", error.what());
  } catch (const EnvironmentError& error) {
    return fail(lacking, "error", error.what());
  } catch (const Interrupted& how_far) {
    return fail(interrupted, "interrupted", how_far.what());
  } catch (const InvariantError& error) {
    return fail(broken, "the simulation is wrong, not your input",
                std::string(error.what()) + "\n  hint: please report it, with the scenario");
  } catch (const std::bad_alloc&) {
    return fail(lacking, "error", "out of memory: the scenario is too large for this machine");
  } catch (const std::system_error& error) {
    return fail(lacking, "error", error.what());
  } catch (const std::exception& error) {
    return fail(broken, "an error of ringsim's own, not of your input",
                std::string(error.what()) + "\n  hint: please report it, with the scenario");
  }
}

void add_scenario(CLI::App& command, std::string& scenario, std::vector<std::string>& set) {
  command.add_option("SCENARIO", scenario, "a scenario file (JSON)")->required();
  command.add_option("--set", set, "PATH=VALUE: replaces what stands at a dotted path, say topology.ranks=16")
      ->allow_extra_args(false);
}

/// "15%" as a share; nothing where it is none.
std::optional<double> percentage(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  if (text.ends_with(' ')) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value < 1e6)) return std::nullopt;
  return value / 100;
}

std::string is_percentage(const std::string& text) {  // as CLI11 wants it: what is wrong, or nothing
  return percentage(text) ? "" : fmt::format("expected a percentage such as 15%, found \"{}\"", text);
}

CLI::App* add_sweep(CLI::App& app, SweepArguments& sweep) {
  CLI::App* command = app.add_subcommand("sweep", "simulates every point, over cores, jobs and machines; gates for CI");
  add_scenario(*command, sweep.scenario, sweep.set);
  command->add_option("-j,--jobs", sweep.jobs, "points at a time; default: one a core; under mpirun one a process")
      ->check(CLI::Range(1, 4096));
  command->add_option("--shard", sweep.shard, "I/N: every Nth point from the Ith; default: Slurm's job array, or all");
  command->add_option("-o,--output", sweep.output, "a file of JSON lines; default: standard output");
  command->add_flag("--resume", sweep.resume, "goes on with the file of -o, with what it lacks");
  command->add_flag("--dry-run", sweep.dry_run, "counts points, and simulates none");
  command
      ->add_option("--assert", sweep.assertions,
                   "must hold for every result: \"busbw_GBps > 40 where bytes >= 64 MiB\"")
      ->allow_extra_args(false);
  auto* baseline = command->add_option("--baseline", sweep.baseline, "results that these are compared with");
  command
      ->add_option_function<std::string>(
          "--tolerance", [&sweep](const std::string& text) { sweep.tolerance = *percentage(text); },
          "by how much a time may differ from the baseline's, say 2%; default: 0%")
      ->check(is_percentage)
      ->option_text("PERCENT")
      ->needs(baseline);
  command->add_option("--junit", sweep.junit, "a file for the verdict as JUnit XML");
  command->footer(
      "Example: ringsim sweep scenarios/star.json -o star.jsonl --assert \"busbw_GBps > 4 where bytes >= 64 MiB\"");
  return command;
}

CLI::App* add_merge(CLI::App& app, MergeArguments& merge) {
  CLI::App* command = app.add_subcommand("merge", "files of sweeps as one, each result once, in one order");
  command->add_option("FILES", merge.files, "what ringsim sweep wrote")->required();
  command->add_option("-o,--output", merge.output, "FILE.jsonl, FILE.csv or FILE.sqlite; - is JSON lines")->required();
  command->footer("Example: ringsim merge shard-*.jsonl -o all.csv");
  return command;
}

CLI::App* add_calibrate(CLI::App& app, CalibrateArguments& calibrate) {
  CLI::App* command =
      app.add_subcommand("calibrate", "fits few factors to measured times, says which the measurements determine");
  add_scenario(*command, calibrate.scenario, calibrate.set);
  command
      ->add_option("MEASURED", calibrate.measured, "a file of measured times; which are read:\n" + measured_formats())
      ->required();
  command->add_option("--collective", calibrate.collective, "what was measured, where the file does not say it");
  const std::map<std::string, Rows> rows{{"all", Rows::all}, {"odd", Rows::odd}, {"even", Rows::even}};
  command->add_option("--rows", calibrate.rows, "which rows are fitted, by size; the others are predicted")
      ->transform(CLI::CheckedTransformer(rows))
      ->option_text("all|odd|even");
  command
      ->add_option("-o,--output", calibrate.output,
                   "a file for the factors, which scenarios take: \"calibration\": {\"file\": \"FILE\"}")
      ->required();
  command->footer(
      "Example: ringsim calibrate scenarios/abci-v100.json validate/measured/abci-v100-2n4g-all_reduce.csv -o "
      "abci.json");
  return command;
}

CLI::App* add_scorecard(CLI::App& app, ScorecardArguments& scorecard) {
  CLI::App* command = app.add_subcommand("scorecard", "every published table beside what is predicted for its machine");
  command->add_option("FOLDER", scorecard.folder,
                      "measured tables, ID.csv, and their scenarios, ID.json; default: those of validate/measured");
  const std::map<std::string, ScorecardFormat> formats{
      {"table", ScorecardFormat::table}, {"csv", ScorecardFormat::csv}, {"markdown", ScorecardFormat::markdown}};
  command->add_option("--format", scorecard.format, "how it looks; csv: every row with what each model says of it")
      ->transform(CLI::CheckedTransformer(formats))
      ->option_text("table|csv|markdown");
  command->add_option("-o,--output", scorecard.output, "a file for the result; - is standard output");
  command->add_option("-j,--jobs", scorecard.jobs, "points at a time; default: one a core")->check(CLI::Range(1, 4096));
  command->footer("Example: ringsim scorecard --format csv -o scorecard.csv");
  return command;
}

int command_line(int argc, char** argv) {
  CLI::App app{"ringsim predicts how long a collective takes on a cluster of GPUs, and says why."};
  app.footer("Example: ringsim run scenarios/two-node-server.json");
  app.set_version_flag("--version", fmt::format("ringsim {} (model {})", version, model_version));
  app.require_subcommand(1);

  RunArguments run;
  const std::map<std::string, Format> formats{{"table", Format::table},
                                              {"json", Format::json},
                                              {"jsonl", Format::jsonl},
                                              {"csv", Format::csv},
                                              {"nccl-tests", Format::nccl_tests}};
  auto* run_app = app.add_subcommand("run", "simulates every point of a scenario");
  add_scenario(*run_app, run.scenario, run.set);
  std::string format = "table";
  run_app->add_option("--format", format, "how results look")
      ->check(CLI::IsMember({"table", "json", "jsonl", "csv", "nccl-tests"}))
      ->option_text("table|json|jsonl|csv|nccl-tests");
  run_app->add_option("-o,--output", run.output, "a file for the results; - is standard output");
  run_app->add_option("-j,--jobs", run.jobs, "points at a time; default: one a core")->check(CLI::Range(1, 4096));
  run_app->add_flag("--explain", run.explain, "adds what the links carried");
  run_app->add_flag_callback(
      "--no-fold", [&run] { run.fold = false; }, "simulates every rank, even where one could stand for all");
  run_app->add_flag("--timing", run.timing, "prints events, wall time, and why a large run was not folded to stderr");
  run_app->footer("Example: ringsim run scenarios/star.json --set topology.ranks=16 --format csv -o star.csv");

  run_app->add_option("--measured", run.measured, "a file of measured times, which stand beside the predicted ones");
  run_app->add_option("--collective", run.collective, "what was measured, where the file does not say it");

  CompareArguments compare;
  auto* compare_app = app.add_subcommand("compare", "predicted beside measured, at the sizes that were measured");
  add_scenario(*compare_app, compare.scenario, compare.set);
  compare_app
      ->add_option("MEASURED", compare.measured, "a file of measured times; which are read:\n" + measured_formats())
      ->required();
  compare_app->add_option("--algorithm", compare.algorithm, "this one instead of the scenario's");
  compare_app->add_option("--collective", compare.collective, "what was measured, where the file does not say it");
  std::string max_error;
  compare_app
      ->add_option("--max-error", max_error,
                   "exit code 1 where no algorithm has nine rows of ten within it (the 90th percentile of "
                   "|predicted/measured - 1| over all rows), say 15%")
      ->check(is_percentage)
      ->option_text("PERCENT");
  compare_app->add_option("--format", format, "how results look; the table has a picture")
      ->check(CLI::IsMember({"table", "json", "jsonl", "csv", "nccl-tests"}))
      ->option_text("table|json|jsonl|csv|nccl-tests");
  compare_app->add_option("-o,--output", compare.output, "a file for the results; - is standard output");
  compare_app->add_option("-j,--jobs", compare.jobs, "points at a time; default: one a core")
      ->check(CLI::Range(1, 4096));
  compare_app->footer(
      "Example: ringsim compare scenarios/abci-v100.json validate/measured/abci-v100-2n4g-all_reduce.csv");

  CrossoverArguments crossover;
  const std::map<std::string, CrossoverFormat> crossover_formats{
      {"table", CrossoverFormat::table}, {"csv", CrossoverFormat::csv}, {"nccl-tuner", CrossoverFormat::nccl_tuner}};
  auto* crossover_app = app.add_subcommand("crossover", "which of a scenario's algorithms is best at which size");
  add_scenario(*crossover_app, crossover.scenario, crossover.set);
  std::string crossover_format = "table";
  crossover_app
      ->add_option("--format", crossover_format, "how results look; nccl-tuner: for NCCL's example tuner plugin")
      ->check(CLI::IsMember({"table", "csv", "nccl-tuner"}))
      ->option_text("table|csv|nccl-tuner");
  crossover_app->add_flag(
      "--refine", crossover.refine,
      "simulates sizes between the scenario's, until each change is located: to a byte below 1 MiB, "
      "to a KiB above");
  crossover_app->add_option("-o,--output", crossover.output, "a file for the results; - is standard output");
  crossover_app->add_option("-j,--jobs", crossover.jobs, "points at a time; default: one a core")
      ->check(CLI::Range(1, 4096));
  crossover_app->footer("Example: ringsim crossover scenarios/crossover-hgx-h100.json --refine");

  SweepArguments sweep;
  const auto* sweep_app = add_sweep(app, sweep);
  MergeArguments merge;
  CalibrateArguments calibrate;
  const auto* calibrate_app = add_calibrate(app, calibrate);
  ScorecardArguments scorecard;
  const auto* scorecard_app = add_scorecard(app, scorecard);
  const auto* merge_app = add_merge(app, merge);

  CheckArguments check;
  auto* check_app = app.add_subcommand("check", "simulated beside closed form; exit code 1 where they part");
  check_app->add_option("SCENARIO", check.scenario, "a scenario file; default: the grid of closed forms");
  check_app->add_option("--set", check.set, "PATH=VALUE, as for run")->allow_extra_args(false);
  check_app->add_option("-j,--jobs", check.jobs, "cases at a time; default: one a core")->check(CLI::Range(1, 4096));
  check_app->footer("Example: ringsim check");

  std::string what;
  auto* list_app = app.add_subcommand("list", "algorithms, topologies, nodes, models; comparison");
  list_app
      ->add_option("WHAT", what,
                   "one of them; comparison: what every algorithm does on five machines; default: all but this")
      ->check(CLI::IsMember({"algorithms", "topologies", "nodes", "models", "comparison"}));
  list_app->footer("Example: ringsim list algorithms");

  auto* schema_app = app.add_subcommand("schema", "the JSON Schema of a scenario");
  schema_app->footer("Example: ringsim schema > scenario.schema.json");

  ShowArguments show;
  auto* topology_app = app.add_subcommand("topology", "looks at a scenario's topology; from and to other formats");
  topology_app->require_subcommand(1);
  auto* topology_show = topology_app->add_subcommand("show", "devices, links, and how near they are to each other");
  TopologyShowArguments topology;
  add_scenario(*topology_show, topology.scenario, topology.set);
  topology_show->add_option("--node", topology.host, "the node whose matrices are printed; default: 0");
  topology_show->add_flag("--pairs", topology.pairs, "type, bandwidth and latency from each gpu to each other");
  topology_show->footer("Example: ringsim topology show scenarios/two-node-server.json");
  PathArguments paths;
  auto* topology_paths = topology_app->add_subcommand("paths", "one path, leg by leg, and why it is this one");
  add_scenario(*topology_paths, paths.scenario, paths.set);
  topology_paths->add_option("FROM", paths.from, "a device, say node0.gpu0")->required();
  topology_paths->add_option("TO", paths.to, "another device")->required();
  topology_paths->footer("Example: ringsim topology paths scenarios/two-node-server.json node0.gpu0 node1.gpu1");
  ImportArguments import_;
  auto* topology_import = topology_app->add_subcommand(
      "import", "reads NCCL's topology XML or `nvidia-smi topo -m`, prints a machine file");
  topology_import->add_option("FILE", import_.file, "an XML file, or the matrix as text")->required();
  topology_import->add_option("--like", import_.like, "a preset for the speeds that a matrix does not tell");
  topology_import->add_option("--nvlink", import_.nvlink, "a preset whose NVLinks the XML file lacks");
  topology_import->add_option("--nic", import_.nic, "the rate of NICs where the XML file tells none, say \"200 Gb/s\"");
  topology_import->add_option("--gpu", import_.gpu, "the GPUs' model where the XML file does not tell it, say V100");
  topology_import->add_option("-o,--output", import_.output, "a file for the machine; - is standard output");
  topology_import->footer(
      "Example: ringsim topology import topo.xml --nvlink dgx-1v --nic \"100 Gb/s\" -o machine.json");
  ExportArguments export_;
  auto* topology_export = topology_app->add_subcommand("export", "writes a scenario's topology for other programs");
  add_scenario(*topology_export, export_.scenario, export_.set);
  topology_export->add_option("--to", export_.to, "nccl-xml and machine: the machine of the first node")
      ->required()
      ->check(CLI::IsMember({"nccl-xml", "graphml", "dot", "machine"}))
      ->option_text("nccl-xml|graphml|dot|machine");
  topology_export->add_option("-o,--output", export_.output, "a file for the result; - is standard output");
  topology_export->footer("Example: ringsim topology export scenarios/two-node-server.json --to dot -o topology.dot");

  auto* schedule_app =
      app.add_subcommand("schedule", "looks at schedules, of scenarios and of files; from and to other formats");
  schedule_app->require_subcommand(1);
  auto* schedule_show = schedule_app->add_subcommand("show", "who sends which chunk to whom in which step");
  add_scenario(*schedule_show, show.scenario, show.set);
  schedule_show->add_flag("--picture", show.picture, "ranks as rows, steps as columns");
  schedule_show->footer("Example: ringsim schedule show scenarios/star.json --set topology.ranks=4 --picture");
  auto* schedule_check = schedule_app->add_subcommand("check", "proves that the schedule does what it promises");
  add_scenario(*schedule_check, show.scenario, show.set);
  schedule_check->footer("Example: ringsim schedule check allreduce.xml");
  ImportScheduleArguments import_schedule;
  auto* schedule_import =
      schedule_app->add_subcommand("import", "reads MSCCL XML, GOAL or ringsim's JSON, proves it, prints the JSON");
  schedule_import->add_option("FILE", import_schedule.file, "a schedule's file")->required();
  schedule_import->add_option("-o,--output", import_schedule.output, "a file for the schedule; - is standard output");
  schedule_import->footer("Example: ringsim schedule import allreduce.xml -o allreduce.json");
  ExportArguments export_schedule;
  auto* schedule_export = schedule_app->add_subcommand("export", "writes a scenario's schedule for other programs");
  add_scenario(*schedule_export, export_schedule.scenario, export_schedule.set);
  schedule_export
      ->add_option("--format", export_schedule.to,
                   "msccl: XML; json: ringsim's own, with everything; goal: sizes alone")
      ->required()
      ->check(CLI::IsMember({"msccl", "json", "goal"}))
      ->option_text("msccl|json|goal");
  schedule_export->add_option("-o,--output", export_schedule.output, "a file for the result; - is standard output");
  schedule_export->footer("Example: ringsim schedule export scenarios/star.json --format msccl -o ring.xml");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? good : bad_command_line;
  }
  hold_stderr();
  catch_interrupts();
  return guarded([&]() -> int {
    run.format = formats.at(format);
    if (*run_app) return run_command(run);
    if (*compare_app) {
      compare.format = run.format;
      if (!max_error.empty()) compare.max_error = percentage(max_error);
      return compare_command(compare);
    }
    crossover.format = crossover_formats.at(crossover_format);
    if (*crossover_app) return crossover_command(crossover);
    if (*calibrate_app) return calibrate_command(calibrate);
    if (*scorecard_app) return scorecard_command(scorecard);
    if (*sweep_app) return sweep_command(sweep);
    if (*merge_app) return merge_command(merge);
    if (*check_app) return check_command(check);
    if (*list_app) return list_command(what);
    if (*schema_app) return schema_command();
    if (*topology_show) return topology_show_command(topology);
    if (*topology_paths) return topology_paths_command(paths);
    if (*topology_import) return topology_import_command(import_);
    if (*topology_export) return topology_export_command(export_);
    if (*schedule_show) return schedule_show_command(show);
    if (*schedule_import) return schedule_import_command(import_schedule);
    if (*schedule_export) return schedule_export_command(export_schedule);
    return schedule_check_command(show);
  });
}

}  // namespace

}  // namespace ringsim::tools

int main(int argc, char** argv) { return ringsim::tools::command_line(argc, argv); }
