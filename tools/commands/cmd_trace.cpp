// ringsim trace show|compare: profiles of real jobs, alone and next to predictions.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/explanations/hang_text.hpp"
#include "tools/explanations/profile_text.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/reports/hang_report.hpp"
#include "tools/reports/job_report.hpp"
#include "tools/reports/run_report.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/workers.hpp"
#include "tools/traces/trace_file.hpp"
#include "validate/profiles/hang.hpp"
#include "validate/profiles/job_comparison.hpp"
#include "validate/profiles/read.hpp"
#include "validate/profiles/waiting.hpp"
#include "validate/results/gates.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

namespace {

/// What both commands take.
struct ProfileArguments {
  std::vector<std::string> files;
  std::vector<std::string> ranks;  ///< "FILE=N"
  std::string group;
  int ranks_per_host = 0;
  Bytes limit_event{static_cast<std::int64_t>(profiles::Limits().event_bytes)};
  int limit_records = static_cast<int>(profiles::Limits().records);
  int limit_ratio = static_cast<int>(profiles::Limits().ratio);
  Format format = Format::table;
  std::string output;
  std::string report;  ///< a page of all, FILE.html; empty: none
  bool force = false;  ///< let it replace a file that is not ringsim's
  std::string trace;   ///< for a viewer; empty: none
};

void declare_profiles(Options& options, ProfileArguments& profile) {
  options
      .arguments("FILES", profile.files,
                 "the profiles of one job, one file per rank: PyTorch profiler traces (.json, .json.gz), Flight "
                 "Recorder dumps in JSON, NCCL Inspector logs, Nsight Systems reports in SQLite (nsys export --type "
                 "sqlite --include-blobs=true) or Chakra execution traces (.et, .et.gz)")
      .file = true;
  options.texts(
      "--rank", "FILE=N", profile.ranks,
      "the rank of a file that does not contain it; if the file covers several GPUs, the rank of the first GPU");
  options.text("--group", "GROUP", profile.group,
               "the ranks of calls whose file does not list them: all; \"DIV n\" (0 to n-1, n to 2n-1, ...); \"MOD n\" "
               "(0, n, 2n, ...); or a file with [[0, 1], [2, 3]]");
  options.whole("--ranks-per-host", "N", 1, 65536, profile.ranks_per_host,
                "the number of ranks per host, which share a clock, if the files do not contain it");
  options
      .choice("--format",
              std::vector<std::pair<std::string, Format>>{
                  {"table", Format::table}, {"json", Format::json}, {"csv", Format::csv}},
              profile.format, "the output format")
      .fallback = "table";
  options.output(profile.output);
  declare_report(options, profile.report, "write a page with a timeline of all ranks and the tables to FILE.html");
  options.flag("--force", profile.force, "allow --report to overwrite a file that does not contain results").needs =
      "--report";
  options.file("--trace", "FILE", profile.trace,
               "write the calls of all ranks on one clock for a viewer, split into wait and transfer: .json, .json.gz, "
               ".pftrace");
  options
      .size("--limit-event", Bytes{1024}, Bytes{std::int64_t{1} << 30}, profile.limit_event,
            "the maximum size of an event or line")
      .fallback = "4 MiB";
  options.whole("--limit-records", "N", 1, 1 << 28, profile.limit_records, "the maximum number of calls to read")
      .fallback = fmt::to_string(profiles::Limits().records);
  options.whole("--limit-ratio", "N", 1, 2000, profile.limit_ratio, "the maximum decompression ratio beyond 1 GiB")
      .fallback = fmt::to_string(profiles::Limits().ratio);
}

std::map<std::string, std::uint32_t> ranks_of(const ProfileArguments& arguments) {
  std::map<std::string, std::uint32_t> out;
  for (const std::string& each : arguments.ranks) {
    const std::size_t sign = each.rfind('=');
    std::uint32_t rank = 0;
    const char* end = each.data() + each.size();
    const bool is_number = sign != std::string::npos && [&] {
      const auto [at, error] = std::from_chars(each.data() + sign + 1, end, rank);
      return error == std::errc() && at == end && rank < profiles::Limits().ranks;
    }();
    if (!is_number)
      throw UsageError("--rank",
                       fmt::format("expected FILE=N, N below {}, found {}", profiles::Limits().ranks, in_quotes(each)),
                       "--rank profile.json=3");
    const std::string file = each.substr(0, sign);
    if (std::find(arguments.files.begin(), arguments.files.end(), file) == arguments.files.end())
      throw UsageError("--rank",
                       fmt::format("expected one of the files on the command line, found {}", in_quotes(file)));
    out[file] = rank;
  }
  return out;
}

profiles::Profile read(const ProfileArguments& arguments, std::vector<profiles::FlightDump>* dumps = nullptr) {
  profiles::ReadOptions options;
  options.dumps = dumps;
  options.ranks = ranks_of(arguments);
  options.limits.event_bytes = static_cast<std::size_t>(arguments.limit_event.count);
  options.limits.records = static_cast<std::size_t>(arguments.limit_records);
  options.limits.ratio = static_cast<std::uint64_t>(arguments.limit_ratio);
  try {
    if (!arguments.group.empty()) options.groups = profiles::read_assumed_groups(arguments.group);
  } catch (const InputError& error) {
    if (error.where().empty()) throw UsageError("--group", error.message(), error.hint());
    throw;
  }
  for (const std::string& file : arguments.files) refuse_as_output(file, arguments.output);
  ProgressLine progress(arguments.files.size());
  std::uint64_t before = 0;
  options.progress = [&](std::uint64_t done, std::uint64_t size) {
    stop_if_asked();
    if (done < before) before = 0;  // the next file
    if (size > 0) progress.add(static_cast<double>(done - before) / static_cast<double>(size));
    progress.now(fmt::format("reading: {} MB", done / 1'000'000));
    before = done;
  };
  return profiles::read_profiles(arguments.files, options);
}

void say_findings(const profiles::Profile& profile, const profiles::Account& account) {
  Warnings warnings;
  warnings.say(profile.warnings);
  warnings.say(account.matching.findings);
  constexpr double one_clock_ns = 1e6;
  if (account.spread_ns && *account.spread_ns > one_clock_ns)
    warn(
        fmt::format("on ranks assumed to share a host, matched collectives end {:.3g} ms apart (median): the ranks do "
                    "not share a clock, or calls are matched incorrectly; --ranks-per-host sets which ranks share one",
                    *account.spread_ns / 1e6));
}

/// "ringsim trace show a.json --group all": what makes the page again.
std::string command_of(const char* command, const ProfileArguments& arguments) {
  std::string text = fmt::format("ringsim trace {}", command);
  for (const std::string& file : arguments.files) text += ' ' + shell_word(file);
  for (const std::string& rank : arguments.ranks) text += " --rank " + shell_word(rank);
  if (!arguments.group.empty()) text += " --group " + shell_word(arguments.group);
  if (arguments.ranks_per_host > 0) text += fmt::format(" --ranks-per-host {}", arguments.ranks_per_host);
  return text + " --report " + shell_word(arguments.report);
}

/// The page that --report names; nothing if it names none. Refuses files that are read.
std::optional<Output> open_page(const ProfileArguments& arguments) {
  for (const std::string& file : arguments.files) {
    if (!arguments.report.empty()) refuse_as_output(file, arguments.report);
    if (!arguments.trace.empty()) refuse_as_output(file, arguments.trace);
  }
  if (!arguments.trace.empty()) trace_format_of(arguments.trace);  // a wrong ending shows now
  return open_report(arguments.report, {arguments.output}, arguments.force);
}

/// Of dumps of Flight Recorder: why the job hangs.
int show_hang(const ProfileArguments& arguments, const profiles::Profile& profile,
              const std::vector<profiles::FlightDump>& dumps, std::optional<Output>& page) {
  if (!arguments.trace.empty())
    throw UsageError("--trace", "expected profiles with times, found Flight Recorder dumps, which have none",
                     "remove this option; --format json prints everything that is known, and --report draws it");
  if (!arguments.group.empty()) warn("--group has no effect: Flight Recorder dumps list the ranks of each group");
  const profiles::Account account = profiles::account_of(profile, static_cast<std::uint32_t>(arguments.ranks_per_host));
  say_findings(profile, account);
  const profiles::Hang hang = profiles::hang_of(dumps);
  const ShownHang shown{.dumps = dumps, .hang = hang, .profile = profile, .account = account};
  Output output(arguments.output);
  output.write(arguments.format == Format::json  ? hang_json(shown)
               : arguments.format == Format::csv ? hang_csv(shown)
                                                 : hang_text(shown));
  output.finish();
  if (page) {
    page->write(hang_page(shown, command_of("show", arguments)));
    page->finish();
  }
  return good;
}

int show(const ProfileArguments& arguments) {
  std::vector<profiles::FlightDump> dumps;
  std::optional<Output> page = open_page(arguments);
  const profiles::Profile profile = read(arguments, &dumps);
  if (!dumps.empty()) return show_hang(arguments, profile, dumps, page);
  const profiles::Account account = profiles::account_of(profile, static_cast<std::uint32_t>(arguments.ranks_per_host));
  say_findings(profile, account);
  Output output(arguments.output);
  output.write(arguments.format == Format::json  ? profile_json(profile, account)
               : arguments.format == Format::csv ? profile_csv(profile, account)
                                                 : profile_text(profile, account));
  output.finish();
  if (!arguments.trace.empty()) write_trace(job_trace(profile, account), arguments.trace);
  if (page) {
    page->write(job_page(profile, account, nullptr, std::nullopt, command_of("show", arguments)));
    page->finish();
  }
  return good;
}

struct TraceCompareArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;  ///< if the scenario is a machine: how many, and what joins them
  ProfileArguments profile;
  std::string nccl;         ///< version; empty: that of the files
  double interference = 0;  ///< a share: transfers take so much longer while other kernels run
  std::vector<std::string> assertions;
  int jobs = 0;
};

void declare_compare(Options& options, TraceCompareArguments& compare) {
  options.scenario(compare.scenario, compare.set);
  declare_nodes(options, compare.machine);
  declare_profiles(options, compare.profile);
  options.text("--nccl", "VERSION", compare.nccl,
               "the version of NCCL, such as 2.21.5, instead of the version in the files");
  options
      .percentage(
          "--interference", [&compare](double share) { compare.interference = share; },
          "assume that transfers take PERCENT longer while other kernels run on their GPU")
      .fallback = "0%";
  Option& assertion =
      options.texts("--assert", "CONDITION", compare.assertions,
                    "exit with 1 unless CONDITION holds for every row that has a value in its columns, such as "
                    "\"waiting_share < 0.2\" or \"transfer_over_predicted < 1.5 where bytes >= 1 MiB\"");
  assertion.take = [&compare](const std::string& text) {
    static_cast<void>(Assertion::parse(text));  // a mistake shows now
    compare.assertions.push_back(text);
  };
  options.jobs(compare.jobs, "rows");
}

ResultRow as_result_row(const Json& row) {
  ResultRow out;
  for (const auto& item : row.items()) {
    const Json& value = item.value();
    if (value.is_boolean()) out.cells.push_back({item.key(), value.get<bool>()});
    if (value.is_number_integer()) out.cells.push_back({item.key(), value.get<std::int64_t>()});
    if (value.is_number_float()) out.cells.push_back({item.key(), value.get<double>()});
    if (value.is_string()) out.cells.push_back({item.key(), value.get<std::string>()});
  }
  return out;
}

/// False if a row fails, or no row has what a condition asks for.
bool passes(const std::vector<std::string>& assertions, const profiles::Profile& profile,
            const profiles::JobComparison& comparison) {
  bool all = true;
  for (const std::string& text : assertions) {
    const Assertion assertion = Assertion::parse(text);
    std::size_t asked = 0;
    for (const profiles::ComparedCalls& calls : comparison.rows) {
      const Json json = compared_json(profile, calls);
      std::vector<std::string> columns;
      for (const auto& item : json.items()) columns.push_back(item.key());
      try {
        assertion.require_known(columns, {});
      } catch (const InputError& error) {
        throw UsageError(error.where(), error.message(), error.hint());
      }
      const ResultRow row = as_result_row(json);
      const std::vector<std::string> paths = assertion.paths();
      if (std::any_of(paths.begin(), paths.end(), [&](const std::string& path) { return row.find(path) == nullptr; }))
        continue;
      const std::optional<bool> answer = assertion.ask(row);
      if (!answer) continue;
      ++asked;
      if (*answer) continue;
      all = false;
      say(fmt::format("ringsim: --assert {}: does not hold for {} of {}: {}\n", text, to_string(calls.row.op),
                      size_text(calls.row), assertion.found(row)));
    }
    if (asked > 0) continue;
    all = false;
    say(fmt::format("ringsim: --assert {}: no row has these values\n", text));
  }
  return all;
}

/// Dumps of Flight Recorder have durations only if the job asked for them.
void refuse_without_durations(const profiles::Profile& profile) {
  const bool are_dumps = std::any_of(profile.sources.begin(), profile.sources.end(), [](const auto& source) {
    return source.format.starts_with(profiles::flight_recorder_format);
  });
  if (!are_dumps) return;
  if (profile.calls.empty())
    throw InputError(profile.sources.front().file, "expected calls with \"duration_ms\" to compare, found none",
                     "run the job with TORCH_NCCL_ENABLE_TIMING=1; `ringsim trace show` needs no durations");
  warn(
      "Flight Recorder measures durations between two events around each kernel, which include a few us of kernel "
      "launch, so small collectives look slower than they are");
}

int compare(const TraceCompareArguments& arguments) {
  const ScenarioText scenario = read_input(arguments.scenario, arguments.machine);
  std::optional<Output> page = open_page(arguments.profile);
  const profiles::Profile profile = read(arguments.profile);
  refuse_without_durations(profile);
  refuse_as_output(arguments.scenario, arguments.profile.output);
  profiles::JobOptions options;
  options.set = arguments.set;
  options.nccl = arguments.nccl;
  options.interference = 1 + arguments.interference;
  options.ranks_per_host = static_cast<std::uint32_t>(arguments.profile.ranks_per_host);
  options.stop = &stop_requested;
  options.for_each = [&](std::size_t n, const std::function<void(std::size_t)>& work) {
    ProgressLine progress(n);
    progress.now("predicting");
    for_each_index(n, arguments.jobs, [&](std::size_t i) {
      stop_if_asked();
      work(i);
      progress.add(1.0);
      return true;
    });
  };
  const profiles::JobComparison comparison = profiles::compare_job(profile, scenario.text, scenario.name, options);
  say_findings(profile, comparison.account);
  if (arguments.interference > 0 &&
      std::none_of(comparison.rows.begin(), comparison.rows.end(), [&](const profiles::ComparedCalls& calls) {
        return calls.predicted_ns && profiles::slowed_by(calls.row, comparison.interference) > 1;
      }))
    warn("--interference has no effect: in these files, no predicted collective overlaps with other kernels");
  Output output(arguments.profile.output);
  const Format format = arguments.profile.format;
  output.write(format == Format::json  ? job_json(profile, comparison)
               : format == Format::csv ? job_csv(profile, comparison)
                                       : job_text(profile, comparison));
  output.finish();
  if (!arguments.profile.trace.empty()) write_trace(job_trace(profile, comparison.account), arguments.profile.trace);
  if (page) {
    const std::string command =
        command_of(("compare " + shell_word(arguments.scenario)).c_str(), arguments.profile) +
        set_words("--set", arguments.set) + words_of(arguments.machine) +
        (arguments.nccl.empty() ? "" : " --nccl " + shell_word(arguments.nccl)) +
        (arguments.interference > 0 ? fmt::format(" --interference {:.6g}%", 100 * arguments.interference) : "");
    page->write(job_page(profile, comparison.account, &comparison, scenario, command));
    page->finish();
  }
  return passes(arguments.assertions, profile, comparison) ? good : check_failed;
}

}  // namespace

Command trace_command() {
  return {.name = "trace",
          .group = Group::check,
          .summary = "Analyze profiles of real jobs: waiting, transfer, late ranks",
          .example =
              "ringsim trace show --group all \\\n    tests/data/profiles/two-of-128-rank-0.json.gz \\\n    "
              "tests/data/profiles/two-of-128-rank-1.json.gz",
          .details =
              "A profile records when each NCCL kernel started and ended on each rank. A kernel starts when its rank "
              "arrives, so its duration is the wait for the last rank plus the transfer.",
          .prepare = {}};
}

Command trace_show_command() {
  return {.name = "trace show",
          .group = Group::check,
          .summary = "Show the collectives of a job: waiting, transfer, late ranks",
          .example =
              "ringsim trace show --group all \\\n    tests/data/profiles/two-of-128-rank-0.json.gz \\\n    "
              "tests/data/profiles/two-of-128-rank-1.json.gz",
          .details =
              "Reads PyTorch profiler traces, NCCL Inspector logs, Nsight Systems reports exported to SQLite, and "
              "Chakra execution traces. From PyTorch Flight Recorder dumps, it determines why a job hangs. To "
              "distinguish waiting from transfer, it needs the files of several ranks. Times are means in ms, except "
              "transfer, which is a median. \">=\" and \"<=\" mark groups in which some ranks have no file; \"~\" "
              "marks files with durations but no start times.",
          .prepare = with<ProfileArguments>(declare_profiles, show)};
}

Command trace_compare_command() {
  return {.name = "trace compare",
          .group = Group::check,
          .summary = "Compare the collectives of a job with predictions",
          .example = "ringsim trace compare dgx-a100 tests/data/profiles/resnet50-2xa100.json.gz",
          .details =
              "Predicts each collective of the job on SCENARIO, whose GPUs are the ranks in order, with the NCCL "
              "version named in the files. \"allowed\" is the minimum time that the links allow with any algorithm. "
              "The verdicts are: late rank; slow transfer; slowed by compute; as predicted; faster than the model; and "
              "cannot say, with a reason. docs/guide/my-job-is-slow.md lists the rules.",
          .prepare = with<TraceCompareArguments>(declare_compare, compare)};
}

}  // namespace ringsim::tools
