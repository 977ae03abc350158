#include "tools/command_line/plan_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/fields/workload_files.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "sim/text/spelling.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/machines/machine_gpus.hpp"
#include "topologies/machines/preset_names.hpp"
#include "validate/score/plan_scenario.hpp"

namespace ringsim::tools {

namespace {

/// The batch that Llama 2 was trained with (Touvron et al., arXiv 2307.09288, 2.2: "a global batch-size of 4M tokens").
constexpr std::int64_t usual_tokens = std::int64_t{4} << 20;

/// Shares that a plan without measured steps takes. Memory: stated for all rows of docs/results/plans.md alike. Matrix
/// products: fitted_shares(); on others docs/results/gpu-compute.md, one H200, large products of Llama 3.
constexpr int memory_share = 80, h200_products = 70;

struct Products {
  int share = h200_products;
  std::string source = "as measured on one H200 (docs/results/gpu-compute.md)";
  std::string near = "no predicted step on this GPU has been compared with a measured one";
};
Products products_of(const PlanGpu& gpu) {
  for (const FittedShares& each : fitted_shares())
    if (std::string(each.family) == gpu.family && each.bits == 16)
      return {static_cast<int>(std::lround(100 * each.gemm)),
              fmt::format("fitted to measured steps of {} on {}", each.models, each.family), each.near};
  return {};
}

/// The name of each model with a card.
std::vector<std::string> divisible_models() {
  std::vector<std::string> names;
  for (const auto& [name, text] : scenarios::workload_files())
    if (parse_json(text, name).contains("transformer")) names.push_back(name);
  return names;
}

/// The card as its file has it.
Json card_of(const std::string& model) {
  std::string hint = did_you_mean(model, divisible_models());
  if (hint.empty()) hint = "a scenario can describe other models: docs/guide/training.md, Model cards";
  for (const auto& [name, text] : scenarios::workload_files()) {
    if (name != model) continue;
    if (Json card = parse_json(text, name); card.contains("transformer")) return card;
    const std::string family = model.substr(0, model.find('_') + 1);  // "bert_"
    const std::vector<std::string> others = divisible_models();
    const auto like =
        std::find_if(others.begin(), others.end(), [&](const std::string& other) { return other.starts_with(family); });
    hint = fmt::format("{} is described only by layers, which cannot be divided; use {}", model,
                       family.empty() || like == others.end()
                           ? "a scenario with a model card: docs/guide/training.md, Model cards"
                           : *like + ", which has a model card");
  }
  throw InputError("MODEL",
                   fmt::format("expected a model that a plan can divide, one of {}, found {}",
                               fmt::join(divisible_models(), ", "), in_quotes(model)),
                   hint);
}

const PlanGpu& gpu_of(const MachineWords& machine) {
  const bool is_file = preset_named(machine.node) == nullptr && !machine.like.empty();
  const std::string& name = is_file ? machine.like : machine.node;
  const PresetNames* preset = preset_named(name);
  if (preset == nullptr)
    throw InputError(is_file ? "--like" : "--node",
                     fmt::format("expected the name of a machine{}, found {}", is_file ? "" : ", or a file with --like",
                                 in_quotes(name)),
                     preset_hint(name));
  const Machine node = node_preset(name);
  const auto its = std::find_if(node.devices.begin(), node.devices.end(),
                                [](const Machine::Device& device) { return device.kind == NodeKind::gpu; });
  for (const PlanGpu& each : plan_gpus())  // of two cards with one name that with the node's memory
    if (std::string(each.name).starts_with(preset->gpu) && its != node.devices.end() &&
        Bytes{std::int64_t{each.memory_gib} << 30} == its->memory)
      return each;
  if (const PlanGpu* gpu = plan_gpu(preset->gpu); gpu != nullptr) return *gpu;
  std::vector<std::string> known;
  for (const PlanGpu& each : plan_gpus()) known.emplace_back(each.name);
  throw InputError("--node",
                   fmt::format("expected a machine with GPUs of known peak ({}), found {} with {}",
                               fmt::join(known, ", "), preset->name, preset->gpu),
                   "write a scenario that sets peak and hbm in training.workload.compute");
}

/// A batch of about the usual tokens, so that every data rank has as many sequences.
std::int64_t usual_batch(std::int64_t gpus, std::int64_t sequence) {
  return std::max<std::int64_t>(1, (usual_tokens / sequence + gpus / 2) / gpus) * gpus;
}

}  // namespace

bool is_divisible_model(const std::string& word) {
  const std::vector<std::string> names = divisible_models();
  return std::find(names.begin(), names.end(), word) != names.end();
}

MachineScenario scenario_of(const PlanWords& words) {
  const Json card = card_of(words.model);
  const PlanGpu& gpu = gpu_of(words.machine);
  MachineScenario out = scenario_of(words.machine);
  out.document.erase("collective");
  std::erase_if(out.assumptions, [](const Assumption& each) { return each.path.starts_with("collective"); });
  const auto assume = [&](const char* path, std::string text) { out.assumptions.push_back({path, std::move(text)}); };

  Json workload{{"model", words.model}};
  const std::int64_t sequence = words.sequence > 0 ? words.sequence : card.at("sequence").get<std::int64_t>();
  if (words.sequence > 0)
    workload["sequence"] = sequence;
  else
    assume("training.workload.sequence", fmt::format("sequences of {} tokens, as on the model card", sequence));
  const auto gpus = static_cast<int>(out.gpus);
  const std::int64_t batch = words.batch > 0 ? words.batch : usual_batch(gpus, sequence);
  workload["global_batch_size"] = batch;
  if (words.batch == 0)
    assume("training.workload.global_batch_size", fmt::format("{} sequences per step, {:.1f} million tokens", batch,
                                                              static_cast<double>(batch * sequence) / 1e6));
  const Products products = products_of(gpu);
  const FlashShare flash = flash_share(gpu.family, FlashKernel::cudnn);
  const auto attention = std::lround(100 * flash.share);
  const std::optional<double> fp32 = words.fp32 ? most_fp32_flops_of(node_preset(gpu.machine)) : std::nullopt;
  const double peak = fp32 ? *fp32 / 1e12 : gpu.peak16;
  workload["compute"] = {{"gemm", fmt::format("{}%", products.share)}, {"attention", fmt::format("{}%", attention)},
                         {"memory", fmt::format("{}%", memory_share)}, {"peak", fmt::format("{:g} TFLOP/s", peak)},
                         {"hbm", fmt::format("{:g} GB/s", gpu.hbm)},   {"source", gpu.source}};
  assume("training.workload.compute",
         fmt::format("matrix products reach {} % of {:g} TFLOP/s{}, {}; attention {} %, {} (docs/guide/training.md, "
                     "Measured steps); memory-limited kernels {} % of {:g} GB/s",
                     products.share, peak, fp32 ? " (TF32 or fp32)" : "", products.source, attention, flash.like,
                     memory_share, gpu.hbm));
  out.near = {"training.workload.compute.gemm",
              products.near +
                  ". To predict another program, choose training.workload.compute.gemm so that one of its "
                  "measured steps is reproduced."};
  assume("training.workload.attention", "flash attention, which keeps no scores");
  assume("training.optimizer", "Adam");
  out.document["name"] = fmt::format("{} on {}", words.model, out.document["name"].get<std::string>());
  out.document["training"] = {{"workload", std::move(workload)},
                              {"parallel", Json::object()},
                              {"optimizer", "adam"},
                              {"steps", 1},
                              {"warmup", 1}};  // gathers of weights hide in the step after
  return out;
}

}  // namespace ringsim::tools
