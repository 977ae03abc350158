#include "scenarios/meaning/meaning_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "algorithms/catalog.hpp"
#include "algorithms/formats/schedule_file.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/fields/workload_files.hpp"
#include "scenarios/meaning/meaning_parallel.hpp"
#include "scenarios/meaning/transformer.hpp"
#include "sim/base/error.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;
__extension__ using WideCount = unsigned __int128;

/// floor(a b / c). Throws InputError beyond 64 bits. Requires a, b >= 0, c > 0.
std::int64_t scaled(WideCount a, WideCount b, WideCount c) {
  const WideCount result = a * b / c;
  if (result > static_cast<WideCount>(INT64_MAX)) fail_too_long();
  return static_cast<std::int64_t>(result);
}

/// Divides `total` among the layers by their multiply-adds; each boundary between layers is rounded once.
void divide(Picoseconds total, const std::vector<std::int64_t>& macs, std::vector<LayerCost>& layers,
            Picoseconds LayerCost::*part) {
  const auto all = static_cast<WideCount>(std::accumulate(macs.begin(), macs.end(), std::int64_t{0}));
  WideCount before = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::int64_t begin = scaled(static_cast<WideCount>(total.count()), before, all);
    before += static_cast<WideCount>(macs[l]);
    layers[l].*part = Picoseconds{scaled(static_cast<WideCount>(total.count()), before, all) - begin};
  }
}

Workload workload_written(const Canonical& layers) {
  Workload workload;
  for (const Canonical& each : layers)
    for (std::int64_t i = 0, n = each["times"].get<std::int64_t>(); i < n; ++i) {
      const auto name = each["name"].get<std::string>();
      workload.layers.push_back({.name = n == 1 ? name : fmt::format("{}.{}", name, i),
                                 .tensors = {each["parameters"].get<std::int64_t>()},
                                 .forward = Picoseconds{each.value("forward", std::int64_t{0})},
                                 .backward = Picoseconds{each.value("backward", std::int64_t{0})}});
      workload.macs.push_back(each.value("macs", std::int64_t{0}));
    }
  return workload;
}

/// The sum of both passes, from the figures of `compute`.
Picoseconds work_of(const Canonical& compute, const Workload& workload, std::int64_t batch, Picoseconds update,
                    const Blame& blame) {
  const std::string at = "/training/workload/compute";
  const std::int64_t backward = compute["backward"].get<std::int64_t>();
  if (compute.contains("step") == compute.contains("flops"))
    blame.fail(at,
               fmt::format("expected either step or flops, found {}", compute.contains("step") ? "both" : "neither"),
               R"(for example {"step": "351.5 ms"} or {"flops": "125 TFLOP/s", "efficiency": "40%"})");
  if (compute.contains("step")) {
    if (compute.contains("efficiency"))
      blame.fail(at + "/efficiency", "expected an efficiency only with flops, found a measured step");
    const Picoseconds step{compute["step"].get<std::int64_t>()};
    if (step < update)
      blame.fail(at + "/step", fmt::format("expected at least the time of the optimizer, {} us, found {} us",
                                           microseconds(update), microseconds(step)));
    return step - update;
  }
  if (!compute.contains("efficiency"))
    blame.fail(at, "expected the key \"efficiency\" with flops, a share such as \"40%\", found none",
               "no GPU reaches its peak, and no share fits all models, so you must set it");
  if (!compute["efficiency"].is_object())
    blame.fail(at + "/efficiency", "expected a share such as \"40%\", found a rate");
  std::int64_t flops = 0;
  try {
    flops = parse_flops(compute["flops"].get<std::string>());
  } catch (const InputError& error) {
    blame.fail(at + "/flops", error.message(), error.hint());
  }
  const auto macs =
      static_cast<WideCount>(std::accumulate(workload.macs.begin(), workload.macs.end(), std::int64_t{0}));
  const auto efficiency = static_cast<WideCount>(compute["efficiency"]["millionths"].get<std::int64_t>());
  // 2 operations a multiply-add; picoseconds; efficiency and `backward` are in millionths.
  const std::int64_t forward =
      scaled(2 * macs * static_cast<WideCount>(batch), WideCount{picoseconds_per_second} * 1'000'000,
             static_cast<WideCount>(flops) * efficiency);
  return add(Picoseconds{forward},
             Picoseconds{scaled(static_cast<WideCount>(forward), static_cast<WideCount>(backward), 1'000'000)});
}

void take_compute(const Canonical& workload, Workload& made, TrainingSpec& out, const Blame& blame) {
  const std::string at = "/training/workload";
  const Canonical& compute = workload["compute"];
  const bool asked = compute.contains("step") || compute.contains("flops");
  std::size_t n_times = 0, n_layers = 0;
  if (workload.contains("layers"))
    for (const Canonical& layer : workload["layers"]) {
      n_times += (layer.contains("forward") ? 1U : 0U) + (layer.contains("backward") ? 1U : 0U);
      ++n_layers;
    }
  if (n_times > 0) {
    if (asked) blame.fail(at + "/compute", "cannot be combined with layer times");
    if (n_times != 2 * n_layers)
      blame.fail(at + "/layers", "expected forward and backward for every layer, found a layer without them");
    out.compute = "stated";
    return;
  }
  if (std::accumulate(made.macs.begin(), made.macs.end(), std::int64_t{0}) == 0)
    blame.fail(at + "/layers", "expected macs, which determine how compute is divided among the layers, found none",
               "set macs, or forward and backward, for every layer");
  const Picoseconds work = work_of(compute, made, out.batch, out.step.update, blame);
  out.compute = compute.contains("step") ? "measured" : "flops";
  const std::int64_t backward = compute["backward"].get<std::int64_t>();
  const Picoseconds forward{
      scaled(static_cast<WideCount>(work.count()), 1'000'000, WideCount{1'000'000} + static_cast<WideCount>(backward))};
  divide(forward, made.macs, made.layers, &LayerCost::forward);
  divide(work - forward, made.macs, made.layers, &LayerCost::backward);
}

void take_buckets(const Canonical& regime, TrainingSpec& out, const Blame& blame) {
  const std::string at = "/training/regime/buckets";
  const Canonical& buckets = regime["buckets"];
  const bool horovod = buckets["rule"] == "horovod";
  for (const char* key : {"first", "cycle", "requested"})
    if (buckets.contains(key) && (key != std::string("first")) != horovod)
      blame.fail(at + "/" + key, fmt::format("expected {} only with the rule {}, found {}", key,
                                             horovod ? "pytorch" : "horovod", horovod ? "horovod" : "pytorch"));
  const Bytes size{buckets.value("size", (horovod ? std::int64_t{64} : std::int64_t{25}) << 20)};
  if (horovod) {
    out.step.cycle = Picoseconds{buckets.value("cycle", std::int64_t{1'000'000'000})};
    if (out.step.cycle.count() == 0) blame.fail(at + "/cycle", "expected a cycle longer than 0, found 0");
    std::optional<Picoseconds> launch = out.step.host_launch;
    if (buckets.value("requested", "launched") == "computed") launch.reset();
    out.step.buckets = horovod_buckets(out.step.layers, out.bytes_per_parameter, size, out.step.cycle, launch);
  } else {
    out.step.buckets = pytorch_buckets(out.step.layers, out.bytes_per_parameter,
                                       Bytes{buckets.value("first", std::int64_t{1} << 20)}, size);
  }
}

}  // namespace

Workload workload_named(const std::string& name, std::optional<std::int64_t> sequence) {
  const auto& files = workload_files();
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.first == name; });
  ensure(found != files.end(), "the table of fields names the workloads");
  const Json file = parse_json(found->second, "scenarios/workloads/" + name + ".json");
  if (file.contains("transformer")) {
    Workload workload = workload_of(transformer_of(Canonical(file["transformer"])),
                                    sequence.value_or(file["sequence"].get<std::int64_t>()));
    workload.source = file["source"].get<std::string>();
    return workload;
  }
  if (sequence)
    throw InputError(
        "", fmt::format("expected a sequence only for a model with a transformer card, found the model {}", name),
        "its layers are defined for a fixed length: " + file["sample"].get<std::string>());
  Workload workload;
  workload.sample = file["sample"].get<std::string>();
  workload.source = file["source"].get<std::string>();
  for (const Json& each : file["layers"])
    for (std::int64_t i = 0, n = each.value("times", std::int64_t{1}); i < n; ++i) {
      const auto layer = each["name"].get<std::string>();
      workload.layers.push_back({.name = n == 1 ? layer : fmt::format("{}.{}", layer, i),
                                 .tensors = each["tensors"].get<std::vector<std::int64_t>>()});
      workload.macs.push_back(each["macs"].get<std::int64_t>());
    }
  return workload;
}

std::int64_t parse_flops(const std::string& text) {
  const auto fail = [&] {
    throw InputError("", fmt::format("expected a speed such as \"125 TFLOP/s\", found {}", in_quotes(text)),
                     "GFLOP/s is 10^9, TFLOP/s 10^12, PFLOP/s 10^15 operations per second");
  };
  std::size_t end = 0;
  std::int64_t digits = 0, decimals = -1;
  for (; end < text.size() && end < 12 && (text[end] == '.' || (text[end] >= '0' && text[end] <= '9')); ++end) {
    if (text[end] == '.') {
      if (decimals >= 0 || end == 0) fail();
      decimals = 0;
    } else {
      digits = digits * 10 + (text[end] - '0');
      if (decimals >= 0) ++decimals;
    }
  }
  if (end == 0 || decimals == 0) fail();
  std::string unit = text.substr(end);
  if (unit.starts_with(' ')) unit.erase(0, 1);
  constexpr std::pair<const char*, int> units[] = {{"GFLOP/s", 9}, {"TFLOP/s", 12}, {"PFLOP/s", 15}};
  for (const auto& [name, exponent] : units) {
    if (unit != name) continue;
    std::int64_t value = digits;
    for (std::int64_t i = std::max<std::int64_t>(decimals, 0); i < exponent; ++i)
      if (__builtin_mul_overflow(value, 10, &value)) fail();
    if (decimals > exponent || value == 0) fail();
    return value;
  }
  fail();
  return 0;
}

namespace {

/// Each kernel is rounded to a picosecond.
void speed_up(Picoseconds& kernel, double speed) {
  if (speed != 1) kernel = Picoseconds{std::llround(static_cast<double>(kernel.count()) / speed)};
}

/// The settings of the regimes with a server or a master.
void take_master(const Canonical& canonical, std::int64_t ranks, double speed, TrainingSpec& out, const Blame& blame,
                 std::vector<std::string>& warnings) {
  const Canonical &regime = canonical["regime"], &workload = canonical["workload"];
  const std::string at = "/training/regime";
  if (out.servers > 0 && regime.contains("master"))
    blame.fail(at + "/master", "cannot be combined with separate servers",
               "the master is the server only if there are no separate servers");
  if (out.master >= ranks)
    blame.fail(at + "/master", fmt::format("expected a rank from 0 to {}, found {}", ranks - 1, out.master));
  if (out.regime->kind == Regime::Kind::parameter_server && regime.value("mode", "sync") == "sync")
    out.sample = Bytes{workload.value("sample_bytes", std::int64_t{0})};
  if (out.regime->kind != Regime::Kind::data_parallel) return;
  speed_up(out.loss, speed);
  for (const char* key : {"sample_bytes", "output_bytes"})
    if (!workload.contains(key))
      blame.fail("/training/workload",
                 fmt::format("expected the key \"{}\" with the regime data_parallel, found none", key),
                 "the master sends samples and collects outputs, so their sizes are required");
  out.sample = Bytes{workload["sample_bytes"].get<std::int64_t>()};
  out.output = Bytes{workload["output_bytes"].get<std::int64_t>()};
  if (regime.contains("algorithm")) {
    const std::string name = regime["algorithm"]["name"].get<std::string>();
    const Algorithm* algorithm = name == file_algorithm().name ? nullptr : find_algorithm(name);
    if (algorithm == nullptr || algorithm->in_fabric || !algorithm->supports(CollectiveOp::broadcast) ||
        !algorithm->supports(CollectiveOp::reduce))
      blame.fail(at + "/algorithm",
                 fmt::format("expected an algorithm of GPUs that broadcasts and reduces, found {}", name),
                 "such as chain, binomial_tree or direct; `ringsim list algorithms` shows what each supports");
  }
  // torch/csrc/cuda/comm.cpp, broadcast_out(), and torch/nn/parallel/comm.py, reduce_add(): NCCL, if it is there.
  if (ranks > 2 && !regime.contains("algorithm"))
    warnings.push_back(blame.where(at) +
                       ": the master itself copies the model to each GPU and adds up the gradients. PyTorch with NCCL "
                       "uses rings, which are faster with more than 2 GPUs. To model rings, add \"algorithm\": "
                       "{\"name\": \"chain\", \"segments\": 64}; to keep the copies, add \"algorithm\": \"direct\"");
}

/// The settings of model_parallel.
void take_pipeline(const Canonical& canonical, std::int64_t ranks, TrainingSpec& out, const Blame& blame) {
  const Canonical& workload = canonical["workload"];
  if (static_cast<std::size_t>(ranks) > out.step.layers.size())
    blame.fail("/training/regime",
               fmt::format("expected at most as many GPUs as layers in the model, {}, found {}", out.step.layers.size(),
                           ranks),
               "each GPU needs at least one layer; `training.ranks` selects the participating GPUs");
  if (!workload.contains("activation_bytes"))
    blame.fail("/training/workload", "expected the key \"activation_bytes\" with the regime model_parallel, found none",
               "each GPU sends the output of its last layer, so its size per sample is required");
  const std::int64_t samples = out.batch * ranks;
  if (samples % out.microbatches != 0)
    blame.fail("/training/regime/microbatches",
               fmt::format("expected a divisor of the samples of all GPUs, {}, found {}", samples, out.microbatches),
               "all microbatches must have the same number of samples");
  out.activations = Bytes{workload["activation_bytes"].get<std::int64_t>()} * (samples / out.microbatches);
}

}  // namespace

void training_detail::take_stragglers(const Canonical& canonical, std::int64_t ranks, TrainingSpec& out,
                                      const Blame& blame, std::vector<std::string>& warnings) {
  const auto warn = [&](const std::string& pointer, const std::string& why) {
    warnings.push_back(blame.where(pointer) + ": has no effect: " + why);
  };
  const std::int64_t n_steps = static_cast<std::int64_t>(out.step.steps) * out.every;
  if (canonical.contains("slow"))
    for (std::size_t i = 0; i < canonical["slow"].size(); ++i) {
      const std::string at = fmt::format("/training/slow/{}", i);
      Stragglers::Slow one;
      read_members(field_at("training.slow").members.front(), canonical["slow"][i], one);
      if (one.rank >= ranks)
        blame.fail(at + "/rank", fmt::format("expected a rank from 0 to {}, found {}", ranks - 1, one.rank));
      if (one.until <= one.from)
        blame.fail(at + "/until", fmt::format("expected a step after {}, found {}", one.from, one.until));
      if (one.millionths == 1'000'000) warn(at, "a factor of 1 has no effect");
      if (one.from >= n_steps) warn(at, fmt::format("the run ends after step {}", n_steps - 1));
      out.stragglers.slow.push_back(one);
    }
  if (!out.stragglers.jitter) return;
  if (out.stragglers.jitter->spread.count() == 0) warn("/training/jitter", "a spread of 0 has no effect");
}

namespace {

void expect_no_async_keys(const Canonical& canonical, const Blame& blame) {
  const auto refuse = [&](const std::string& pointer, const std::string& key) {
    blame.fail(pointer,
               fmt::format("expected {} only with mode async of parameter_server, found another mode or regime", key),
               R"("regime": {"name": "parameter_server", "servers": 1, "mode": "async"})");
  };
  const bool is_server = canonical["regime"]["name"] == "parameter_server";
  for (const char* key : {"start", "seed", "every"})
    if ((is_server || key != std::string("every")) && canonical["regime"].contains(key))
      refuse(fmt::format("/training/regime/{}", key), key);
  for (const char* key : {"updates", "warmup_updates"})
    if (canonical.contains(key)) refuse(fmt::format("/training/{}", key), key);
}

void take_async(const Canonical& canonical, std::int64_t ranks, TrainingSpec& out, const Blame& blame,
                std::vector<std::string>& warnings) {
  const Canonical& regime = canonical["regime"];
  if (regime.value("mode", "sync") != "async") return expect_no_async_keys(canonical, blame);
  const auto warn = [&](const std::string& pointer, const std::string& why) {
    warnings.push_back(blame.where(pointer) + ": has no effect: " + why);
  };
  AsyncSpec async;
  const std::string start = regime.value("start", "staggered");
  async.start = start == "together" ? AsyncSpec::Start::together
                : start == "random" ? AsyncSpec::Start::random
                                    : AsyncSpec::Start::staggered;
  async.seed = regime.value("seed", std::uint64_t{0});
  if (regime.contains("seed") && async.start != AsyncSpec::Start::random)
    warn("/training/regime/seed", "only start random uses it");
  async.updates = canonical.value("updates", 110 * ranks);
  async.warmup = canonical.value("warmup_updates", async.updates > 10 * ranks ? 10 * ranks : std::int64_t{0});
  if (!canonical.contains("warmup_updates") && async.warmup == 0)
    warnings.push_back(
        blame.where("/training/updates") +
        fmt::format(
            ": no warm-up, because {} updates are too few for 10 per worker; the start-up is included in the time",
            async.updates));
  if (async.updates <= async.warmup)
    blame.fail(canonical.contains("updates") ? "/training/updates" : "/training/warmup_updates",
               fmt::format("expected more updates than warmup_updates, found {} and {}", async.updates, async.warmup),
               "updates is the total number, including the warm-up");
  out.step.steps = static_cast<int>(async.updates);  // no worker has more
  out.warmup = 0;
  out.async = async;
}

/// How many samples a GPU has; of a global batch its part, in its part of the time.
void divide_batch(const Canonical& workload, std::int64_t ranks, TrainingSpec& out, const Blame& blame) {
  if (!workload.contains("global_batch")) return;
  if (out.batch % ranks != 0)
    blame.fail("/training/workload/global_batch",
               fmt::format("expected a multiple of the number of GPUs, {}, found {}", ranks, out.batch),
               "all GPUs must compute the same number of samples");
  out.batch /= ranks;
  for (LayerCost& layer : out.step.layers) {
    layer.forward /= ranks;
    layer.backward /= ranks;
  }
}

}  // namespace

namespace training_detail {

void expect_one_model(const Canonical& workload, const Blame& blame) {
  std::string found;
  int n = 0;
  for (const char* key : {"model", "layers", "transformer"}) {
    if (!workload.contains(key)) continue;
    found += fmt::format("{}{}", n++ == 0 ? "" : " and ", key);
  }
  if (n != 1)
    blame.fail("/training/workload",
               fmt::format("expected either model, layers or transformer, found {}", n == 0 ? "none" : found));
}

Workload layers_of(const Canonical& workload, const Blame& blame) {
  const std::string at = "/training/workload";
  const auto blamed = [&](const std::string& pointer, const auto& make) {
    try {
      return make();
    } catch (const InputError& error) {
      blame.fail(pointer + error.where(), error.message(), error.hint());
    }
  };
  std::optional<std::int64_t> sequence;
  if (workload.contains("sequence")) sequence = workload["sequence"].get<std::int64_t>();
  if (workload.contains("model"))
    return blamed(at + "/sequence", [&] { return workload_named(workload["model"].get<std::string>(), sequence); });
  if (workload.contains("transformer")) {
    if (!sequence)
      blame.fail(at, "expected the key \"sequence\" with a transformer, found none",
                 "sequence is the number of tokens per sample, such as 4096");
    return blamed(at + "/transformer", [&] { return workload_of(transformer_of(workload["transformer"]), *sequence); });
  }
  if (sequence) blame.fail(at + "/sequence", "expected a sequence only with a transformer or its card, found layers");
  return workload_written(workload["layers"]);
}

}  // namespace training_detail

using namespace training_detail;

namespace {

/// Keys of a plan's workload and machine, which no regime reads.
void expect_no_plan_keys(const Canonical& canonical, const Blame& blame) {
  const auto refuse = [&](const std::string& pointer, const char* key) {
    blame.fail(pointer, fmt::format("expected {} only with parallel, found a regime", key),
               R"(to describe a plan, write "parallel": {"tensor": 8, "pipeline": 2} instead of "regime")");
  };
  const Canonical& workload = canonical["workload"];
  for (const char* key : {"micro_batch_size", "global_batch_size", "precision", "attention"})
    if (workload.contains(key)) refuse(fmt::format("/training/workload/{}", key), key);
  for (const char* key : {"gemm", "attention", "memory", "peak", "hbm", "measured"})
    if (workload["compute"].contains(key)) refuse(fmt::format("/training/workload/compute/{}", key), key);
  if (canonical.contains("memory")) refuse("/training/memory", "memory");
}

}  // namespace

TrainingSpec training_of(const Canonical& canonical, std::size_t gpus, double speed, const Blame& blame,
                         std::vector<std::string>& warnings) {
  if (canonical.contains("parallel") == canonical.contains("regime"))
    blame.fail(
        "/training",
        fmt::format("expected either regime or parallel, found {}", canonical.contains("regime") ? "both" : "neither"),
        "regime selects how GPUs train together, such as ddp; parallel is a plan of tensor, pipeline and data "
        "parallelism");
  if (canonical.contains("parallel")) return plan_training_of(canonical, gpus, speed, blame, warnings);
  expect_no_plan_keys(canonical, blame);
  TrainingSpec out;
  const Canonical& workload = canonical["workload"];
  expect_one_model(workload, blame);
  if (workload.contains("batch") == workload.contains("global_batch"))
    blame.fail(
        "/training/workload",
        fmt::format("expected either batch or global_batch, found {}", workload.contains("batch") ? "both" : "neither"),
        "batch is the number of samples per GPU, global_batch over all GPUs");
  Workload made = layers_of(workload, blame);
  out.regime = find_regime(canonical["regime"]["name"].get<std::string>());
  ensure(out.regime != nullptr, "the table of fields names the regimes");
  const Regime::Kind kind = out.regime->kind;
  out.workload = workload.contains("model")    ? workload["model"].get<std::string>()
                 : workload.contains("layers") ? "layers"
                                               : "transformer";
  out.batch = workload[workload.contains("batch") ? "batch" : "global_batch"].get<std::int64_t>();
  out.bytes_per_parameter = out.step.bytes_per_element = workload["bytes_per_parameter"].get<int>();
  const Field& row = field_at("training");
  read_members(row, canonical, out);
  for (const char* part : {"optimizer", "host"}) read_members(*find(row.members, part), canonical[part], out);
  const Canonical& regime = canonical["regime"];
  read_members(chosen_variant(*find(row.members, "regime"), regime), regime, out);
  out.step.name = fmt::format("{} of {}", out.regime->name, out.workload);
  take_compute(workload, made, out, blame);
  out.sequence = made.sequence;
  if (made.sequence > 0) out.macs = std::accumulate(made.macs.begin(), made.macs.end(), std::int64_t{0});
  if (workload["compute"].contains("flops")) out.peak = parse_flops(workload["compute"]["flops"].get<std::string>());
  out.step.layers = std::move(made.layers);
  speed_up(out.step.update, speed);
  for (LayerCost& layer : out.step.layers) {  // before buckets, which may go by these times
    speed_up(layer.forward, speed);
    speed_up(layer.backward, speed);
  }
  for (const LayerCost& layer : out.step.layers)
    for (const std::int64_t tensor : layer.tensors) out.parameters += tensor;
  out.step.steps = out.warmup + canonical["steps"].get<int>();
  if (kind == Regime::Kind::single && canonical.contains("ranks") && canonical["ranks"].size() > 1)
    blame.fail("/training/ranks",
               fmt::format("expected one gpu for the regime single, found {}", canonical["ranks"].size()));
  std::int64_t ranks = static_cast<std::int64_t>(canonical.contains("ranks") ? canonical["ranks"].size() : gpus);
  if (kind == Regime::Kind::single) ranks = 1;
  divide_batch(workload, ranks, out, blame);
  if (kind == Regime::Kind::ddp) take_buckets(canonical["regime"], out, blame);
  speed_up(out.step.hook, speed);
  if (kind == Regime::Kind::data_parallel || kind == Regime::Kind::parameter_server)
    take_master(canonical, ranks, speed, out, blame, warnings);
  if (kind == Regime::Kind::model_parallel) take_pipeline(canonical, ranks, out, blame);
  if (canonical["host"].contains("order") && kind != Regime::Kind::data_parallel)
    blame.fail("/training/host/order", "expected order only with the regime data_parallel, found another regime",
               "only in this regime does one thread launch the kernels of several GPUs");
  take_async(canonical, ranks, out, blame, warnings);
  training_detail::take_stragglers(canonical, ranks, out, blame, warnings);
  if (canonical.contains("slowdown") && out.async)
    blame.fail("/training/slowdown", "cannot be combined with mode async",
               "workers alternate between computing and exchanging, so nothing would slow down");
  constexpr std::string_view samples = "sample_bytes";
  for (const std::string_view key : {samples, std::string_view("output_bytes")})
    if (workload.contains(key) && kind != Regime::Kind::data_parallel && !(key == samples && out.sample.count > 0))
      warnings.push_back(
          blame.where(fmt::format("/training/workload/{}", key)) +
          fmt::format(": has no effect with the regime {}{}: only data_parallel {}", out.regime->name,
                      out.async ? ", mode async" : "",
                      key == samples ? "and a synchronous parameter server send samples" : "sends outputs"));
  if (workload.contains("activation_bytes") && kind != Regime::Kind::model_parallel)
    warnings.push_back(
        blame.where("/training/workload/activation_bytes") +
        fmt::format(": has no effect with the regime {}: only model_parallel sends activations", out.regime->name));
  return out;
}

Canonical gradients_of(const Canonical& canonical, const TrainingSpec& training) {
  if (training.plan) return plan_gradients_of(canonical, training);
  const Canonical& regime = canonical["regime"];
  Canonical collective{{"op", "all_reduce"},
                       {"bytes", training.gradients().count},
                       {"root", training.master},
                       {"order", "given"},
                       {"seed", 0},
                       {"both_ways", false}};
  switch (training.regime->kind) {
    case Regime::Kind::single:  // it has no steps
      collective["bytes"] = 0;
      collective["algorithm"] = {{"name", "ring"}};
      break;
    case Regime::Kind::ddp:
    case Regime::Kind::local_sgd:
      if (regime.contains("algorithm")) collective["algorithm"] = regime["algorithm"];
      if (regime.contains("order")) collective["order"] = regime["order"];  // a library's
      if (regime.contains("servers_on")) collective["servers_on"] = regime["servers_on"];
      break;
    case Regime::Kind::parameter_server:
      collective["algorithm"] = {{"name", "parameter_server"}};
      if (training.servers > 0) collective["algorithm"]["servers"] = training.servers;
      if (regime.contains("servers_on")) collective["servers_on"] = regime["servers_on"];
      break;
    case Regime::Kind::data_parallel:
      collective["op"] = "reduce";
      collective["algorithm"] = regime.value("algorithm", Canonical{{"name", "direct"}});
      break;
    case Regime::Kind::gossip:
      collective["op"] = "send_recv";
      collective["algorithm"] = {{"name", "direct"}};
      break;
    case Regime::Kind::model_parallel:  // what each rank but the last sends on
      collective["op"] = "send_recv";
      collective["bytes"] = training.activations.count;
      collective["algorithm"] = {{"name", "direct"}};
      break;
    case Regime::Kind::plan:
    case Regime::Kind::trace:
      fail_invariant("a plan is no regime, nor is a trace");
  }
  if (canonical.contains("ranks")) collective["ranks"] = canonical["ranks"];
  return collective;
}

}  // namespace ringsim::scenarios
