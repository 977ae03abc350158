// ringsim predict: a first answer without a scenario file, and the scenario to go on with.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/predict/link_report.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/json.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "sim/topology/topology.hpp"
#include "tools/command_line/machine_scenario.hpp"
#include "tools/command_line/made_scenario.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/explanations/staged_text.hpp"
#include "tools/formats/own_files.hpp"
#include "tools/formats/result_text.hpp"
#include "tools/output/output.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/sweep/points.hpp"
#include "validate/results/columns.hpp"

namespace ringsim::tools {

namespace {

struct PredictArguments {
  MachineWords machine;
  CollectiveWords collective;
  std::optional<Json> bytes;
  std::vector<std::string> set;
  std::optional<Format> said_format;
  Format format = Format::table;  ///< `said_format`, or what the ending of `output` says
  std::string output;             ///< a file; empty or "-": stdout
  std::string save;               ///< a file for the scenario; empty: none
  bool force = false;
  int jobs = 0;

  void settle() { format = format_by_ending(output, said_format, Format::table, result_endings()); }
};

/// Those that a name alone chooses: of a file the scenario says which one.
std::vector<std::string> known_algorithms() {
  std::vector<std::string> names;
  for (const Algorithm& each : algorithms())
    if (each.name != "file") names.push_back(each.name);
  return names;
}

/// "ring,direct": names of the catalog.
std::vector<std::string> algorithm_names(const std::string& word) {
  const std::vector<std::string> known = known_algorithms();
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find(',', begin), word.size());
    names.push_back(word.substr(begin, end - begin));
    if (std::find(known.begin(), known.end(), names.back()) == known.end()) {
      const std::string hint = scenarios::algorithm_hint(names.back());
      throw InputError("", fmt::format("expected a name from `ringsim list algorithms`, found \"{}\"", names.back()),
                       hint.empty() ? "without --algorithm, NCCL chooses the algorithm" : hint);
    }
    begin = end + 1;
  }
  return names;
}

constexpr int most_gpus = 1024;  // of a node

void declare(Options& options, PredictArguments& predict) {
  options.collective_argument(predict.collective.op);
  Option& node = options.file("--node", "NAME|FILE", predict.machine.node,
                              "the machine: a name such as dgx-h100, dgx-a100, hgx-b200, gb200-nvl72, p5.48xlarge or "
                              "a3-megagpu-8g (`ringsim list nodes` lists all), a machine file (.json), an NCCL "
                              "topology file (.xml) or the output of `nvidia-smi topo -m`");
  node.required = true;
  suggest_machines(node);
  declare_nodes(options, predict.machine);
  options.whole("--gpus", "N", 1, most_gpus, predict.machine.gpus, "use only the first N GPUs of each node").fallback =
      "all";
  options
      .read(
          "--bytes", "SIZES", [&](const std::string& word) { predict.bytes = parse_sizes(word); },
          "the message size, as nccl-tests counts it: 1GiB; several, separated by commas; or a range, 8B..1GiB in "
          "steps of 2x or 8B..1GiB:4 in steps of 4x")
      .fallback = "five from 1 KiB to 1 GiB";
  Option& algorithm = options.read(
      "--algorithm", "NAME", [&](const std::string& word) { predict.collective.algorithms = algorithm_names(word); },
      "use this algorithm instead of NCCL's choice; separate several with commas");
  algorithm.suggested = known_algorithms();
  options.text("--nccl", "VERSION", predict.collective.nccl, "the version of NCCL, such as 2.21.5").fallback =
      "the newest that is modeled";
  options.changes("--set", predict.set,
                  "set the value at a dotted path of the scenario, such as topology.fabric.link.bandwidth='200 Gb/s'");
  options.format(predict.said_format, "; table also prints the scenario");
  options.output(predict.output);
  options.file("--save", "FILE", predict.save, "write the scenario to FILE.json, for `ringsim run`");
  options.flag("--force", predict.force, "allow -o and --save to overwrite a file with other contents");
  options.jobs(predict.jobs, "sizes");
}

/// The limit of a result.
struct Limit {
  std::string part;       ///< "nvlink", "latency"; several classes of links that are as busy: "fabric, nic"
  std::string words;      ///< the same for results that one sentence can name
  double share = 0;       ///< of the time
  std::string also = {};  ///< an addition to the sentence: other links that are as busy
};

constexpr const char* latency_words = "latency, because each message waits for the previous one";

Limit limit_of(const Prediction& r, const ExplainedPart& part) {
  const double share = microseconds(part.time) / microseconds(r.time);
  if (!part.link.empty()) {
    if (!part.fault.empty())
      return {part.kind, fmt::format("the {} link {}, where {}", part.kind, part.link, part.fault), share};
    const std::vector<std::string> others = classes_as_busy(r, {part.kind});
    const std::string links = fmt::format("the {} links {}", part.kind, part.links.empty() ? part.link : part.links);
    if (others.empty()) return {part.kind, links, share};
    return {fmt::format("{}, {}", part.kind, fmt::join(others, ", ")), links, share, "; " + as_busy_text(others)};
  }
  if (part.cause == "latency") return {part.cause, latency_words, share};
  if (part.cause == "launch")
    return {part.cause,
            r.library.empty() ? "the launch of the collective"
                              : "the launch and one-time costs of the kernels, such as filling the pipeline",
            share};
  return {part.cause, part.cause, share};
}

/// The part of the critical path that takes longest; of runs too large to keep their path the bottleneck. Nothing if
/// nothing moves.
std::optional<Limit> limit_of(const Prediction& r) {
  if (r.explanation && !r.explanation->parts.empty()) return limit_of(r, r.explanation->parts.front());
  if (!r.bottleneck) return std::nullopt;
  if (r.bottleneck->latency > r.bottleneck->busy) return Limit{"latency", latency_words, r.bottleneck->latency};
  return Limit{r.bottleneck->kind, fmt::format("links such as {}", r.bottleneck->link), r.bottleneck->busy};
}

/// The settings that --set varies, without size and algorithm, which have columns of their own.
std::vector<std::pair<std::string, std::string>> varied_of(const Prediction& r) {
  std::vector<std::pair<std::string, std::string>> varied = r.varied;
  std::erase_if(varied, [](const auto& each) {
    return each.first == "collective.bytes" || each.first.starts_with("collective.algorithm");
  });
  return varied;
}

std::string answer_table(const std::vector<Result>& results) {
  std::vector<std::string> head{"algorithm", "protocol",   "channels",   "bytes",
                                "time",      "algbw GB/s", "busbw GB/s", "limited by"};
  std::vector<std::string> varying;
  for (const auto& [path, value] : varied_of(results.front().prediction)) varying.push_back(path);
  head.insert(head.begin(), varying.begin(), varying.end());
  Table table(head);
  for (const Result& each : results) {
    const Prediction& r = each.prediction;
    const std::optional<Limit> limit = limit_of(r);
    std::vector<TableCell> row{algorithm_text(r),
                               protocol_text(r),
                               fmt::to_string(r.request.channels),
                               format(r.request.bytes),
                               r.time,
                               figure(r.algbw),
                               figure(r.busbw),
                               limit ? fmt::format("{} {:.0f} %", limit->part, 100 * limit->share) : ""};
    std::vector<std::string> values;
    for (const auto& [path, value] : varied_of(r)) values.push_back(without_quotes(value));
    row.insert(row.begin(), values.begin(), values.end());
    table.add(std::move(row));
  }
  return table.fitted();
}

/// A sentence for each run of sizes that the same thing limits.
std::string limits_text(const std::vector<Result>& results) {
  std::string text;
  for (std::size_t first = 0, end = 0; first < results.size(); first = end) {
    const Prediction& a = results[first].prediction;
    const std::optional<Limit> limit = limit_of(a);
    double least = 1, most = 0;
    for (end = first; end < results.size(); ++end) {
      const Prediction& r = results[end].prediction;
      const std::optional<Limit> next = limit_of(r);
      if (next.has_value() != limit.has_value() || algorithm_text(r) != algorithm_text(a) ||
          varied_of(r) != varied_of(a))
        break;
      if (next && (next->words != limit->words || next->also != limit->also)) break;
      least = std::min(least, next ? next->share : 0);
      most = std::max(most, next ? next->share : 0);
    }
    if (!limit) continue;
    std::string sizes = format(a.request.bytes);
    if (end - first > 1) sizes += " to " + format(results[end - 1].prediction.request.bytes);
    const std::string low = fmt::format("{:.0f}", 100 * least), high = fmt::format("{:.0f}", 100 * most);
    if (const auto varied = varied_of(a); !varied.empty()) sizes += ", " + set_text(varied);
    const std::string share = low == high ? high : fmt::format("{} to {}", low, high);
    text += wrapped(fmt::format("{}, {}: limited by {} ({} % of the time){}", sizes, algorithm_text(a), limit->words,
                                share, limit->also));
    text += '\n';
  }
  return text;
}

std::string title_of(const PredictArguments& arguments, const std::vector<Result>& results) {
  const Prediction& r = results.front().prediction;
  std::string title(to_string(r.request.op));
  const bool equal = std::all_of(results.begin(), results.end(), [&](const Result& each) {
    return each.prediction.request.ranks == r.request.ranks && each.prediction.nodes == r.nodes;
  });
  if (equal)
    title += fmt::format(", {} GPU{} on {} x {}", r.request.ranks, r.request.ranks == 1 ? "" : "s",
                         std::max(1, r.nodes), arguments.machine.node);
  return title + (r.library.empty() ? "" : ", " + r.library);
}

/// A draw of paths is one of many.
std::string routing_text(const std::vector<Result>& results) {
  for (const Result& each : results)
    if (const std::string& routing = each.prediction.routing; routing.starts_with("ecmp"))
      return wrapped(fmt::format(
                 "Routing: {}. Other seeds take other times; `ringsim explain` shows how far they spread.", routing)) +
             '\n';
  return "";
}

std::string staged_line(const std::vector<Result>& results) {
  for (const Result& each : results)
    if (each.prediction.staged) return wrapped(staged_text(each.prediction)) + '\n';
  return "";
}

std::string answer_text(const PredictArguments& arguments, const std::vector<Result>& results,
                        const std::vector<Assumption>& assumed, const Json& document) {
  return wrapped(title_of(arguments, results)) + '\n' + answer_table(results) + '\n' + limits_text(results) +
         routing_text(results) + staged_line(results) + assumed_text(assumed) +
         shown_scenario(document, arguments.save);
}

/// The place of mistakes in the scenario, which no file has.
constexpr const char* where = "ringsim predict";

/// Calls `work`; a mistake in a part of the scenario that an option decides is one of that option.
template <class Work>
auto naming_options(const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    for (const auto& [pointer, option] : {std::pair{"/topology/fabric", "--fabric"},
                                          {"/library/version", "--nccl"},
                                          {"/collective/algorithm", "--algorithm"},
                                          {"/collective/bytes", "--bytes"},
                                          {"/collective/op", "COLLECTIVE"}})
      if (error.where().starts_with(fmt::format("{}: {}", where, pointer)))
        throw InputError(option, error.message(), error.hint());
    throw;
  }
}

void require_consistent(const PredictArguments& arguments) {
  if (!arguments.collective.nccl.empty() && !arguments.collective.algorithms.empty())
    throw UsageError("", "--nccl cannot be combined with --algorithm", "NCCL chooses its own algorithm");
  require_json_name(arguments.save);
  if (arguments.collective.op == "barrier" && arguments.bytes)
    throw UsageError("--bytes", "expected no size, because a barrier moves no data");
}

/// The sizes that show every protocol of NCCL.
Json some_sizes() { return {"1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB"}; }

MachineScenario stated(const PredictArguments& arguments) {
  CollectiveWords collective = arguments.collective;
  const bool is_barrier = collective.op == "barrier";
  collective.bytes = is_barrier ? Json("0 B") : arguments.bytes.value_or(some_sizes());
  MachineScenario scenario = scenario_of(settled(arguments.machine), collective);
  if (!arguments.bytes && !is_barrier) scenario.assumptions.push_back({"collective.bytes", "five sizes"});
  return scenario;
}

/// All that neither an option nor --set states, and the decisions of the run.
std::vector<Assumption> assumed_of(const MachineScenario& scenario, const Prediction& r,
                                   const std::vector<std::string>& set) {
  std::vector<Assumption> all = scenario.assumptions;
  if (!r.routing.empty())
    all.push_back({"network.routing", fmt::format("routing {} across the switches of the fabric{}", r.routing,
                                                  r.routing == "static" ? "; Ethernet usually has ecmp" : "")});
  return assumed_with(std::move(all), set);
}

std::vector<Result> results_at(const ScenarioFile& file, const PredictArguments& arguments) {
  // A run that keeps its critical path simulates all ranks, which costs textbook algorithms their folding.
  constexpr int most_explained = 2048;
  const bool explains = arguments.format == Format::table && file.point(0).main().request.ranks <= most_explained;
  std::vector<Result> results;
  const auto take = [&](Result&& result) { results.push_back(std::move(result)); };
  predict_points(file, arguments.jobs, /*fold=*/true, take, {}, nullptr, nullptr, /*phases=*/false, explains);
  return results;
}

int execute(const PredictArguments& arguments) {
  require_consistent(arguments);
  const MachineScenario scenario = stated(arguments);
  const Json document = parse_json(with_overrides(json_text(scenario.document), where, arguments.set), where);
  const ScenarioFile file =
      naming_options([&] { return ScenarioFile::parse(json_text(scenario.document), where, arguments.set); });
  refuse_as_output(arguments.machine.node, arguments.output);
  refuse_to_replace(arguments.output, arguments.force);
  std::optional<Output> saved = open_saved(arguments.save, arguments.force, {arguments.machine.node, arguments.output});
  Output output(arguments.output);
  const std::vector<Result> results = naming_options([&] { return results_at(file, arguments); });
  if (saved) write_saved(*saved, document, arguments.save);
  const std::vector<Assumption> assumed = assumed_of(scenario, results.front().prediction, arguments.set);
  if (arguments.format == Format::table) {
    output.write(answer_text(arguments, results, assumed, document));
  } else {
    note_assumed(assumed);
    output.write(report(file, results, arguments.format, /*explain=*/false));
  }
  output.finish();
  return good;
}

}  // namespace

Command predict_command() {
  return {
      .name = "predict",
      .group = Group::predict,
      .summary = "Predict a collective on a named machine, without a scenario file",
      .example = "ringsim predict all_reduce --node dgx-h100 --nodes 4 --fabric leaf_spine:2 --bytes 1GiB",
      .details =
          "For each size, the table shows the time, the bandwidths as defined by nccl-tests (algbw is size over "
          "time, busbw corresponds to the bytes that a link carries), the choices of NCCL (of RCCL on AMD MI300X), "
          "and the limiting resource. Below the table are the assumptions for all values that no option states, and "
          "the equivalent scenario, which you can edit to change values that have no option.",
      .prepare = with<PredictArguments>(declare, execute)};
}

}  // namespace ringsim::tools
