// The command line: what is typed becomes a value, the value a call, the outcome an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <exception>
#include <optional>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/guarded.hpp"
#include "tools/output/output.hpp"
#include "validate/measured/measured.hpp"

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

const std::map<std::string, Format> formats{{"table", Format::table},
                                            {"json", Format::json},
                                            {"jsonl", Format::jsonl},
                                            {"csv", Format::csv},
                                            {"nccl-tests", Format::nccl_tests}};

void add_format(CLI::App& command, std::string& format, const std::string& what) {
  command.add_option("--format", format, what)
      ->check(CLI::IsMember({"table", "json", "jsonl", "csv", "nccl-tests"}))
      ->option_text("table|json|jsonl|csv|nccl-tests");
}

std::string is_time(const std::string& text) {  // as is_percentage
  try {
    return parse_time(text) > Picoseconds{0} ? "" : "expected a time above 0, found \"" + text + '"';
  } catch (const InputError& error) {
    return error.message();
  }
}

std::string is_size(const std::string& text) {
  try {
    return parse_bytes(text) >= Bytes{16384} ? "" : "expected 16 KiB or more, found \"" + text + '"';
  } catch (const InputError& error) {
    return error.message();
  }
}

/// What is typed for a replay, and becomes a ReplayArguments.
struct ReplayOptions {
  std::string timeout = "30 s", backend;
  int rank = -1;
};

void add_replay_options(CLI::App& command, ReplayArguments& replay, ReplayOptions& typed) {
  command.add_option("--repeats", replay.repeats.timed, "runs that are timed; default: 5")
      ->check(CLI::Range(1, 1000000));
  command.add_option("--warmups", replay.repeats.warmups, "runs before them; default: 2")
      ->check(CLI::Range(0, 1000000));
  command.add_option("--timeout", typed.timeout, "how long joining, connecting and each run may take; default: 30s")
      ->check(is_time)
      ->option_text("TIME");
  command.add_option("-o,--output", replay.output, "a file for the results; - is standard output");
}

CLI::App* add_replay(CLI::App& app, ReplayArguments& replay, ReplayOptions& typed, std::string& format) {
  CLI::App* command = app.add_subcommand(
      "replay", "carries schedules out for real, checks every number, and times them beside the prediction");
  add_scenario(*command, replay.scenario, replay.set);
  command
      ->add_option("--backend", typed.backend,
                   "tcp: sockets, a process a rank; mpi: MPI's messages, under mpirun; cuda: GPUs; nccl: GPUs through "
                   "NCCL, a GPU a rank, in one process or under mpirun")
      ->required()
      ->check(CLI::IsMember({"tcp", "mpi", "cuda", "nccl"}))
      ->option_text("tcp|mpi|cuda|nccl");
  add_replay_options(*command, replay, typed);
  auto* hosts = command->add_option("--hosts", replay.hosts, "a file: a host a process, HOST:PORT the first");
  auto* rank =
      command->add_option("--rank", typed.rank, "which process of it this is, from 0")->check(CLI::Range(0, 65535));
  hosts->needs(rank);
  rank->needs(hosts);
  command->add_flag("--streams", replay.streams, "on GPUs: call by call, not as one graph");
  command->add_flag("--library", replay.library, "with nccl: NCCL's own collective in place of the schedule");
  command->add_option("--copy-blocks", replay.copy_blocks, "on GPUs: copies by kernels of so many thread blocks")
      ->check(CLI::Range(1, 65535));
  command->add_option("--samples", replay.samples,
                      "on GPUs: a probe's table; tells what it makes of each point, additions included, on stderr");
  add_format(*command, format, "how results look");
  command->footer("Example: ringsim replay scenarios/examples/replay/replay-star.json --backend tcp --repeats 10");
  return command;
}

std::string is_window(const std::string& text) {  // as is_percentage
  if (text == "free") return "";
  try {
    const Bytes size = parse_bytes(text);
    return size >= Bytes{4096} && size <= Bytes{1 << 30} ? ""
                                                         : "expected 4 KiB to 1 GiB, or free, found \"" + text + '"';
  } catch (const InputError& error) {
    return error.message();
  }
}

void add_lab(CLI::App& app, LabArguments& lab, ReplayOptions& typed, std::string& window, std::string& format) {
  CLI::App* command = app.add_subcommand(
      "lab", "a network of namespaces that is shaped as a scenario's, and replays in it; needs root and iproute2");
  command->require_subcommand(1);
  auto* up =
      command->add_subcommand("up", "makes the network, and leaves it there: to look at, to run other things in");
  auto* run =
      command->add_subcommand("run", "replays over TCP in the network: in that of `lab up`, or in one of its own");
  auto* down = command->add_subcommand("down", "takes down a scenario's network, or all; and what was left over");
  for (CLI::App* each : {up, run}) add_scenario(*each, lab.replay.scenario, lab.replay.set);
  down->add_option("SCENARIO", lab.replay.scenario, "a scenario file; default: all networks");
  down->add_option("--set", lab.replay.set, "PATH=VALUE, as for up")->allow_extra_args(false);
  for (CLI::App* each : {up, run, down})
    each->add_flag("--fifo", lab.fifo, "ports are one queue each; else they take turns between those who use them");
  add_replay_options(*run, lab.replay, typed);
  run->add_option("--window", window, "of TCP, in bytes (SO_RCVBUF), or free: the system's; default: 256KiB")
      ->check(is_window)
      ->option_text("SIZE|free");
  add_format(*run, format, "how results look");
  up->footer("Example: ringsim lab up scenarios/examples/replay/replay-star.json");
  run->footer("Example: ringsim lab run scenarios/examples/replay/replay-star.json");
  down->footer("Example: ringsim lab down");
  up->callback([&lab] { lab.what = LabArguments::What::up; });
  run->callback([&lab] { lab.what = LabArguments::What::run; });
  down->callback([&lab] { lab.what = LabArguments::What::down; });
}

CLI::App* add_probe(CLI::App& app, ProbeArguments& probe, std::string& most, std::string& timeout) {
  CLI::App* command =
      app.add_subcommand("probe", "measures the links of this machine's GPUs, writes a scenario on them");
  command->add_option("--ranks", probe.ranks, "virtual ranks, where there is one GPU; default: 16")
      ->check(CLI::Range(1, 1024));
  command->add_option("--most", most, "the largest size that is measured; default: 256 MiB")
      ->check(is_size)
      ->option_text("SIZE");
  command->add_option("--repeats", probe.repeats, "of each measurement; default: 20")->check(CLI::Range(1, 1000000));
  command->add_option("--timeout", timeout, "how long each run may take; default: 30s")
      ->check(is_time)
      ->option_text("TIME");
  command->add_option("--samples", probe.samples, "a file for every measurement, as CSV");
  command->add_option("-o,--output", probe.output, "a file for the scenario; - is standard output");
  command->footer("Example: ringsim probe --samples probe.csv -o gpu.json");
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
      "Example: ringsim calibrate scenarios/examples/machines/abci-v100.json "
      "validate/measured/tables/abci-v100-2n4g-all_reduce.csv -o "
      "abci.json");
  return command;
}

CLI::App* add_scorecard(CLI::App& app, ScorecardArguments& scorecard) {
  CLI::App* command = app.add_subcommand("scorecard", "every published table beside what is predicted for its machine");
  command->add_option(
      "FOLDER", scorecard.folder,
      "measured tables, ID.csv, and their scenarios, ID.json; default: those of validate/measured/tables");
  const std::map<std::string, ScorecardFormat> pages{
      {"table", ScorecardFormat::table}, {"csv", ScorecardFormat::csv}, {"markdown", ScorecardFormat::markdown}};
  command->add_option("--format", scorecard.format, "how it looks; csv: every row with what each model says of it")
      ->transform(CLI::CheckedTransformer(pages))
      ->option_text("table|csv|markdown");
  command->add_option("-o,--output", scorecard.output, "a file for the result; - is standard output");
  command->add_option("-j,--jobs", scorecard.jobs, "points at a time; default: one a core")->check(CLI::Range(1, 4096));
  command->footer("Example: ringsim scorecard --format csv -o scorecard.csv");
  return command;
}

int command_line(int argc, char** argv) {
  CLI::App app{"ringsim predicts how long a collective takes on a cluster of GPUs, and says why."};
  app.footer("Example: ringsim run scenarios/examples/machines/two-node-server.json");
  app.set_version_flag("--version", fmt::format("ringsim {} (model {})", version, model_version));
  app.require_subcommand(1);

  RunArguments run;
  auto* run_app = app.add_subcommand("run", "simulates every point of a scenario");
  add_scenario(*run_app, run.scenario, run.set);
  std::string format = "table";
  add_format(*run_app, format, "how results look");
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
  add_format(*compare_app, format, "how results look; the table has a picture");
  compare_app->add_option("-o,--output", compare.output, "a file for the results; - is standard output");
  compare_app->add_option("-j,--jobs", compare.jobs, "points at a time; default: one a core")
      ->check(CLI::Range(1, 4096));
  compare_app->footer(
      "Example: ringsim compare scenarios/examples/machines/abci-v100.json "
      "validate/measured/tables/abci-v100-2n4g-all_reduce.csv");

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
  crossover_app->footer("Example: ringsim crossover scenarios/examples/algorithms/crossover-hgx-h100.json --refine");

  ReplayArguments replay;
  ReplayOptions replay_typed;
  const auto* replay_app = add_replay(app, replay, replay_typed, format);
  LabArguments lab;
  std::string window = "256KiB";
  add_lab(app, lab, replay_typed, window, format);
  ProbeArguments probe;
  std::string probe_most = "256 MiB", probe_timeout = "30 s";
  const auto* probe_app = add_probe(app, probe, probe_most, probe_timeout);

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
                   "one of them; comparison: what every algorithm does on five machines; columns: those of a "
                   "result; default: all but these two")
      ->check(CLI::IsMember({"algorithms", "topologies", "nodes", "models", "comparison", "columns"}));
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
  topology_show->footer("Example: ringsim topology show scenarios/examples/machines/two-node-server.json");
  PathArguments paths;
  auto* topology_paths = topology_app->add_subcommand("paths", "one path, leg by leg, and why it is this one");
  add_scenario(*topology_paths, paths.scenario, paths.set);
  topology_paths->add_option("FROM", paths.from, "a device, say node0.gpu0")->required();
  topology_paths->add_option("TO", paths.to, "another device")->required();
  topology_paths->footer(
      "Example: ringsim topology paths scenarios/examples/machines/two-node-server.json node0.gpu0 node1.gpu1");
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
  topology_export->footer(
      "Example: ringsim topology export scenarios/examples/machines/two-node-server.json --to dot -o topology.dot");

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
    replay.format = run.format;
    replay.timeout = std::chrono::ceil<std::chrono::nanoseconds>(parse_time(replay_typed.timeout));
    if (replay_typed.rank >= 0) replay.rank = replay_typed.rank;
    if (replay_typed.backend == "mpi") replay.backend = ReplayArguments::Backend::mpi;
    if (replay_typed.backend == "cuda") replay.backend = ReplayArguments::Backend::cuda;
    if (replay_typed.backend == "nccl") replay.backend = ReplayArguments::Backend::nccl;
    if (*replay_app) return replay_command(replay);
    if (app.got_subcommand("lab")) {
      lab.replay.format = run.format;
      lab.replay.timeout = replay.timeout;
      lab.window = window == "free" ? 0 : static_cast<int>(parse_bytes(window).count);
      return lab_command(lab);
    }
    probe.most = parse_bytes(probe_most);
    probe.timeout = std::chrono::ceil<std::chrono::nanoseconds>(parse_time(probe_timeout));
    if (*probe_app) return probe_command(probe);
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
