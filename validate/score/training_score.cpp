#include "validate/score/training_score.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "scenarios/fields/workload_files.hpp"
#include "scenarios/meaning/meaning_training.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "validate/measured/measured_detail.hpp"
#include "validate/score/baselines.hpp"

namespace ringsim {

namespace {

/// Why a row is not predicted.
[[noreturn]] void unmapped_because(const std::string& reason) { throw InputError("", reason); }

template <class Entry>
const Entry& mapped(const std::vector<Entry>& entries, const std::string& text, const char* what) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return has_words(text, entry.words); });
  if (found == entries.end()) unmapped_because(fmt::format("no entry for the {} {}", what, in_quotes(text)));
  return *found;
}

/// What belongs together.
auto group_of(const TrainingFigure& row) {
  return std::tie(row.source, row.model, row.batch, row.precision, row.machine, row.regime);
}

enum class FigureKind { step, rate, efficiency };
struct FigureUnit {
  FigureKind kind;
  double us = 0;  ///< step: of one of it; rate: of its time
};

FigureUnit unit_of_figure(const TrainingFigure& row) {
  const std::string word = row.unit.substr(0, row.unit.find(' '));
  if (word == "efficiency") return {FigureKind::efficiency};
  if (word == "s/step") return {FigureKind::step, 1e6};
  if (word == "ms/step") return {FigureKind::step, 1e3};
  for (const char* rate : {"img/s", "images/s", "samples/s", "sequences/s"})
    if (word == rate) return {FigureKind::rate, 1e6};
  unmapped_because(fmt::format("unknown unit {}", in_quotes(row.unit)));
}

/// The step of a row that is no efficiency, in us.
double step_us(const TrainingFigure& row) {
  const FigureUnit unit = unit_of_figure(row);
  if (unit.kind == FigureKind::step) return row.value * unit.us;
  return static_cast<double>(row.batch) * row.gpus / row.value * unit.us;
}

int bytes_of_precision(const TrainingFigure& row) {
  const std::string precision = measured::lower(row.precision);
  if (precision == "fp32" || precision == "tf32") return 4;
  if (precision == "fp16" || precision == "bf16") return 2;
  unmapped_because(fmt::format("unknown gradient size for the precision {}", in_quotes(row.precision)));
}

std::string model_of(const TrainingFigure& row) {
  std::string name = measured::lower(row.model);
  std::replace(name.begin(), name.end(), '-', '_');
  const auto& files = scenarios::workload_files();
  if (std::none_of(files.begin(), files.end(), [&](const auto& file) { return file.first == name; }))
    unmapped_because(fmt::format("no workload for the model {}", in_quotes(row.model)));
  std::int64_t parameters = 0;
  for (const LayerCost& layer : scenarios::workload_named(name).layers)
    for (const std::int64_t tensor : layer.tensors) parameters += tensor;
  const double difference =
      row.parameters ? static_cast<double>(*row.parameters) / static_cast<double>(parameters) - 1 : 0;
  if (std::abs(difference) > 0.01)
    unmapped_because(fmt::format("{} has {} parameters here, {} in the table", name, parameters, *row.parameters));
  return name;
}

/// "ddp 25MB": 25.
std::optional<int> megabytes_in(const std::string& text) {
  const std::size_t unit = text.find("MB");
  std::size_t begin = unit;
  if (unit == std::string::npos) return std::nullopt;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  if (begin == unit || unit - begin > 6) return std::nullopt;
  return std::stoi(text.substr(begin, unit - begin));
}

/// `order`: of ranks within a node; empty: by number.
Json topology_of_figure(const TrainingFigure& row, const TrainingMachine& machine, const std::vector<int>& order,
                        int& nodes, Json& ranks) {
  Json topology = parse_json(machine.topology, "topology");
  nodes = 1;
  if (machine.gpus_per_node == 0) {
    topology["ranks"] = row.gpus;
    return topology;
  }
  const int each = machine.gpus_per_node;
  if (row.gpus > each && row.gpus % each != 0)
    unmapped_because(fmt::format("{} GPUs are not a whole number of nodes with {} GPUs", row.gpus, each));
  nodes = std::max(1, row.gpus / each);
  topology["nodes"] = nodes;
  if (nodes == 1) topology.erase("fabric");
  const int used = std::min(row.gpus, each);
  if (used == each && order.empty()) return topology;
  for (int node = 0; node < nodes; ++node)
    for (int gpu = 0, taken = 0; taken < used; ++gpu) {
      const int number = order.empty() ? gpu : order[static_cast<std::size_t>(gpu)];
      ranks.push_back(fmt::format("node{}.gpu{}", node, number));
      ++taken;
    }
  return topology;
}

/// Ranks that are listed do not say what a node is: `hierarchical` takes it as `group`.
void tell_group(Json& regime, int gpus_per_node) {
  if (!regime.is_object() || !regime.contains("algorithm")) return;
  Json& algorithm = regime["algorithm"];
  if (algorithm == "hierarchical") algorithm = {{"name", "hierarchical"}};
  if (algorithm.is_object() && algorithm.value("name", "") == "hierarchical" && !algorithm.contains("group"))
    algorithm["group"] = gpus_per_node;
}

/// The row of a group with the fewest GPUs, at least `least`; the first of several.
const TrainingFigure* fewest(std::span<const TrainingFigure> rows, std::span<const TrainingFigure> more,
                             const TrainingFigure& like, int least) {
  const TrainingFigure* best = nullptr;
  for (const auto& table : {rows, more})
    for (const TrainingFigure& row : table)
      if (group_of(row) == group_of(like) && row.gpus >= least && (best == nullptr || row.gpus < best->gpus))
        best = &row;
  return best;
}

int gpus_per_board(const TrainingFigure& row, const TrainingMap& map) {
  const auto found = std::find_if(map.machines.begin(), map.machines.end(),
                                  [&](const TrainingMachine& each) { return has_words(row.machine, each.words); });
  return found == map.machines.end() ? 1 : found->gpus_per_board;
}

/// One GPU's row of the same model, batch, precision and GPU, on whatever machine; for groups of efficiencies.
const TrainingFigure* borrowed(std::span<const TrainingFigure> rows, std::span<const TrainingFigure> more,
                               const TrainingFigure& like, const TrainingMap& map) {
  const std::string gpu = mapped(map.machines, like.machine, "machine").gpu;
  for (const auto& table : {rows, more})
    for (const TrainingFigure& row : table) {
      if (row.gpus != 1 || row.model != like.model || row.batch != like.batch || row.precision != like.precision ||
          row.unit.starts_with("efficiency"))
        continue;
      const auto its = std::find_if(map.machines.begin(), map.machines.end(),
                                    [&](const TrainingMachine& each) { return has_words(row.machine, each.words); });
      if (!gpu.empty() && its != map.machines.end() && its->gpu == gpu) return &row;
    }
  unmapped_because(fmt::format("an efficiency without a rate, because no row with one {} trains {} with batch {}",
                               gpu.empty() ? "GPU" : gpu, like.model, like.batch));
}

/// Throws if a row means nothing, whatever the number of GPUs.
void check_mapped(const TrainingFigure& row, const TrainingMap& map) {
  mapped(map.machines, row.machine, "machine");
  mapped(map.ways, row.regime, "regime");
  model_of(row);
  bytes_of_precision(row);
}

std::string gap_of(const TrainingFigure& row, const TrainingMap& map) {
  const std::string all = row.machine + " " + row.regime + " " + row.model;
  for (const TrainingGap& gap : map.gaps)
    if (has_words(all, gap.words)) return gap.missing;
  return "";
}

ScoredFigure score_figure(const TrainingFigure& row, const TrainingFigure& input, bool is_borrowed,
                          const TrainingMap& map, const PredictAll& predict_all, const std::vector<std::string>& set) {
  ScoredFigure scored;
  scored.row = row;
  scored.family = row.machine + ", " + row.regime;
  scored.compute = step_us(input);
  scored.input = input.where;
  if (is_borrowed) scored.input += fmt::format(" (one GPU of {})", input.machine);
  scored.published = unit_of_figure(row).kind == FigureKind::efficiency ? scored.compute / row.value : step_us(row);
  scored.missing = gap_of(row, map);
  scored.scenario = scenario_of(row, map, scored.compute);
  const ScenarioFile file = ScenarioFile::parse(scored.scenario, row.where, set);
  const std::vector<Prediction> predictions = predict_all(file);
  ensure(predictions.size() == 1, "a published row is one point");
  const Prediction& prediction = predictions.front();
  if (prediction.bottleneck) scored.bottleneck = prediction.bottleneck->link;
  const auto ring = textbook_time(textbook_machine(file.point(0)), CollectiveOp::all_reduce, prediction.request.bytes);
  scored.steps = {microseconds(prediction.time), scored.compute, scored.compute + (ring ? ring->us : 0)};
  return scored;
}

void count_unmapped(TrainingScore& score, const std::string& reason, const std::string& where) {
  for (UnmappedFigures& each : score.unmapped)
    if (each.reason == reason) {
      each.where.push_back(where);
      return;
    }
  score.unmapped.push_back({reason, {where}});
}

}  // namespace

std::string_view to_string(StepModel model) {
  constexpr std::array<std::string_view, step_models.size()> names{"ringsim", "perfect scaling", "no overlap"};
  return names[static_cast<std::size_t>(model)];
}

std::string scenario_of(const TrainingFigure& row, const TrainingMap& map, double compute_us) {
  const TrainingMachine& machine = mapped(map.machines, row.machine, "machine");
  const TrainingWay& way = mapped(map.ways, row.regime, "regime");
  const std::vector<int> order = way.by_number ? std::vector<int>{} : machine.order;
  int nodes = 1;
  Json ranks = Json::array();
  Json scenario{{"version", 1}, {"topology", topology_of_figure(row, machine, order, nodes, ranks)}};
  const std::string& written = nodes > 1 ? way.several_nodes : way.one_node;
  if (written.empty())
    unmapped_because(fmt::format("the entry of the regime {} does not cover {}", in_quotes(row.regime),
                                 nodes > 1 ? "several nodes" : "one node"));
  Json regime = parse_json(written, "regime");
  if (const auto size = megabytes_in(row.regime); way.bucket_in_text && size)
    regime["buckets"]["size"] = fmt::format("{} MiB", *size);
  if (nodes > 1 && !ranks.empty()) tell_group(regime, machine.gpus_per_node);
  scenario["training"] = {{"workload",
                           {{"model", model_of(row)},
                            {"batch", row.batch},
                            {"bytes_per_parameter", bytes_of_precision(row)},
                            {"compute", {{"step", fmt::format("{:.6f} us", compute_us)}}}}},
                          {"regime", regime},
                          {"steps", 1},
                          {"warmup", 0}};
  if (!ranks.empty()) scenario["training"]["ranks"] = ranks;
  return json_text(scenario);
}

TrainingScore score_training(const TrainingFigures& figures, std::span<const TrainingFigure> more,
                             const PredictAll& predict_all, const std::vector<std::string>& set) {
  TrainingScore score;
  for (const TrainingFigure& row : figures.rows) {
    const TrainingFigure* alone = fewest(figures.rows, more, row, 1);
    ensure(alone != nullptr, "a row is of its own group");
    const int board = gpus_per_board(row, figures.map);
    const TrainingFigure* input = fewest(figures.rows, more, row, board);
    if (input == nullptr || input->gpus > board) input = alone;  // a row of several boards is there to be predicted
    bool is_borrowed = false;
    try {
      if (unit_of_figure(*input).kind == FigureKind::efficiency) {
        input = borrowed(figures.rows, more, row, figures.map);
        is_borrowed = true;
      } else if (row.gpus <= input->gpus) {
        check_mapped(row, figures.map);
        if (row.gpus < input->gpus) unmapped_because(fmt::format("some GPUs of a {}-GPU board are idle", board));
        score.inputs.push_back(row.where);
        continue;
      }
      const std::string scenario = scenario_of(row, figures.map, step_us(*input));  // may say why not
      if (!set.empty()) ScenarioFile::parse(scenario, row.where, set).point(0);
    } catch (const InputError& error) {
      count_unmapped(score, error.message(), row.where);
      continue;
    }
    ScoredFigure scored = score_figure(row, *input, is_borrowed, figures.map, predict_all, set);
    scored.alone = is_borrowed ? scored.compute : step_us(*alone);
    score.rows.push_back(std::move(scored));
  }
  return score;
}

std::vector<std::string> families_of(const TrainingScore& score) {
  std::vector<std::string> names;
  for (const ScoredFigure& each : score.rows)
    if (std::find(names.begin(), names.end(), each.family) == names.end()) names.push_back(each.family);
  return names;
}

std::optional<ErrorBand> band_of(const TrainingScore& score, StepModel model, const std::string& family,
                                 bool only_counting) {
  std::vector<SizedError> errors;
  for (const ScoredFigure& each : score.rows)
    if ((family.empty() || each.family == family) && (!only_counting || each.counts()))
      errors.push_back({Bytes{0}, each.error(model)});
  if (errors.empty()) return std::nullopt;
  return error_band(family, errors);
}

}  // namespace ringsim
