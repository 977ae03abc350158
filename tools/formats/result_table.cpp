#include "tools/formats/result_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/explanations/phases_text.hpp"
#include "tools/explanations/staged_text.hpp"
#include "tools/formats/shown_columns.hpp"
#include "tools/formats/step_table.hpp"

namespace ringsim::tools {

namespace {

/// What collectives without a library lack.
std::string untimed_text(const std::vector<std::string>& lacks) {
  const bool has_launch = std::find(lacks.begin(), lacks.end(), "launches") == lacks.end();
  std::string list;
  for (std::size_t i = 0; i < lacks.size(); ++i)
    list += (i == 0 ? "" : i + 1 == lacks.size() ? " and " : ", ") + lacks[i];
  return fmt::format(
      "collectives without a library take only their time on the network{}: no {}. Runs with library nccl include "
      "these, "
      "so a small lead over such a run proves nothing; {}",
      has_launch ? " and their launch" : "", list,
      has_launch ? "devices.gpu can have rates for them"
                 : "transport.launch adds a launch to each, and devices.gpu can have rates for the rest");
}

/// The lines below a table, each once: what (*) means, calibration, folding, what was not proved.
std::string notes(const std::vector<Result>& results, bool closed_forms) {
  std::vector<std::string> lines;
  const auto add = [&](std::string line) {
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  };
  const bool any_form = std::any_of(results.begin(), results.end(), [](const Result& r) { return r.form.has_value(); });
  if (!closed_forms && any_form)
    add("closed form: not compared because its assumptions do not hold here; --explain lists them");
  for (const Result& r : results)
    if (closed_forms && r.form)
      for (const std::string& because : r.form->because)
        add("(*) outside the assumptions of the closed form: " + because);
  for (const Result& r : results)
    if (!r.prediction.calibration.empty()) add("calibrated: " + r.prediction.calibration);
  for (const Result& r : results)
    if (r.prediction.folded) add("folded: " + *r.prediction.folded);
  for (const Result& r : results)
    if (!r.prediction.remembered.empty()) add("remembered: " + r.prediction.remembered);
  for (const Result& r : results)  // channels that stand for others have the same links
    if (r.prediction.folded && r.prediction.folded->find("ranks") != std::string::npos && r.prediction.bottleneck &&
        !r.prediction.bottleneck->link.empty())
      add("the bottleneck of a folded run is a link that represents others; --no-fold finds the first one among all");
  for (const Result& r : results)
    if (const std::string staged = staged_text(r.prediction); !staged.empty()) add(staged);
  for (const Result& r : results)
    if (const auto& training = r.prediction.training;
        training && training->plan && !training->inference && training->plan->shard == "full")
      // pytorch.org/blog/maximizing-training-throughput; torchtitan's docs/performance.md has as much for Llama 3 8B.
      add("PyTorch's FSDP is slower than shard full is predicted: Llama 2 7B on A100 reached 57 % MFU, and 68 % with "
          "torch.compile");
  for (const Result& r : results)
    if (const auto& training = r.prediction.training;
        training && training->plan && training->plan->pipeline > 1 && training->split.overlapped.count() > 0)
      add("overlapped communication also counts receives from the neighboring stages while they wait for the data to "
          "be "
          "computed");
  for (const Result& r : results)
    if (!r.prediction.untimed.empty()) add(untimed_text(r.prediction.untimed));
  for (const Result& r : results)
    if (r.prediction.proof.by == Proof::By::matching)
      add(
          fmt::format("matching only: {} has no regions, so it is not proved that it implements the collective; "
                      "bandwidths are collective.bytes over time, whatever it sends",
                      algorithm_text(r.prediction)));
  std::string text;
  for (const std::string& line : lines) text += wrapped(line) + '\n';
  return text;
}

/// Who does what in a training step, and what it keeps.
std::string ranks_of_step(const TrainingReport& training, Picoseconds step) {
  Table ranks({"who", "compute", "exposed", "waiting", "host", "idle", "sends", "receives", "memory"});
  ranks.parts_of(step);
  for (const RankReport& rank : training.by_rank)
    ranks.add({rank.who, rank.split.compute, rank.split.exposed_communication, rank.split.waiting_for_others,
               rank.split.waiting_for_host, rank.split.idle, size_text(rank.sent), size_text(rank.received),
               size_text(rank.memory.total())});
  return ranks.fitted();
}

/// What a library takes for each size that a training step exchanges.
std::string exchanges_of_step(const TrainingReport& training) {
  if (training.exchanges.empty()) return "";
  const bool stages = std::any_of(training.exchanges.begin(), training.exchanges.end(),
                                  [](const ExchangeReport& one) { return one.stage > 0; });
  Table sizes({"exchanges", "bytes", "a step", "algorithm", "protocol", "channels"});
  for (const ExchangeReport& one : training.exchanges)
    sizes.add({fmt::format("{} {}{}", one.group, to_string(one.op), stages ? fmt::format(", stage {}", one.stage) : ""),
               format(one.bytes), fmt::to_string(one.times), one.algorithm, one.protocol,
               fmt::to_string(one.channels)});
  return sizes.fitted();
}

/// "16 MiB all_reduce ring, network.model fair", "training step of resnet50, ddp": what the result is of, so that no
/// two have the same heading.
std::string heading_of_result(const Prediction& r) {
  std::string heading = r.job.empty() ? "" : r.job + ": ";
  heading += r.training ? step_name(*r.training)
                        : fmt::format("{} {} {}", format(r.request.bytes), to_string(r.request.op), algorithm_text(r));
  for (const auto& [path, value] : r.varied) {
    const bool is_said =
        path == "collective.bytes" || path == "collective.op" || path.starts_with("collective.algorithm");
    if (!is_said) heading += fmt::format(", {} {}", path, shown_value(r, path));
  }
  return heading;
}

/// What --phases adds to the table.
std::string all_phases(const std::vector<Result>& results) {
  std::string text;
  for (const Result& result : results)
    if (const Prediction& r = result.prediction; !r.phases.empty())
      text += '\n' + wrapped(heading_of_result(r)) + phases_text(r) + phase_steps_text(r);
  return text;
}

/// What --explain adds to the table: what held each run back, and what its links carried.
std::string explanation(const std::vector<Result>& results) {
  std::string text;
  for (const Result& result : results) {
    const Prediction& r = result.prediction;
    std::string heading = heading_of_result(r);
    if (r.bottleneck)
      heading += fmt::format(": {:.1f} % of the critical path is due to {}, {:.1f} % to latency and filling",
                             100 * r.bottleneck->busy, r.bottleneck->link.empty() ? "no link" : r.bottleneck->link,
                             100 * r.bottleneck->latency);
    if (r.bottleneck && r.bottleneck->delay > 0)
      heading += fmt::format(", {:.1f} % to ranks that are late, slow or unsteady", 100 * r.bottleneck->delay);
    text += '\n' + wrapped(heading) + '\n';
    if (!r.ring.empty()) text += wrapped("ring: " + r.ring) + '\n';
    if (!r.job.empty() && r.links.empty()) continue;  // printed with the first job
    if (r.training) text += ranks_of_step(*r.training, r.time) + exchanges_of_step(*r.training);
    // Ranks' bytes are those of one step, links' those of all steps that are simulated.
    Table links({"links", "kind", "count", r.training ? "busiest, all steps" : "busiest carried", "utilization"});
    for (const LinkGroup& group : r.links)
      links.add({group.links, group.kind, fmt::to_string(group.count), size_text(group.most),
                 fmt::format("{:.1f} %", 100 * group.utilization)});
    text += links.fitted();
  }
  return text;
}

std::string table_of_collectives(const std::vector<Result>& results, bool explain, bool& closed_forms) {
  const std::vector<ShownColumn> columns = shown_columns(results, explain, closed_forms);
  Table table = table_of_columns(columns, results);
  for (const ShownColumn& column : columns)
    if (!column.above.empty()) table.pull_out(column.heading, column.above);
  return table.fitted();
}

}  // namespace

std::string result_table(const ScenarioFile& file, const std::vector<Result>& results, bool explain) {
  bool closed_forms = false;
  const bool steps = !results.empty() && std::all_of(results.begin(), results.end(),
                                                     [](const Result& r) { return r.prediction.training.has_value(); });
  const std::string table =
      steps ? step_table(file, results, explain, closed_forms) : table_of_collectives(results, explain, closed_forms);
  return table + notes(results, closed_forms) + (explain ? explanation(results) : "") + all_phases(results);
}

std::vector<std::vector<std::string>> table_cells(const std::vector<Result>& results) {
  bool closed_forms = false;
  return table_of_columns(shown_columns(results, /*explain=*/false, closed_forms), results).cells();
}

}  // namespace ringsim::tools
