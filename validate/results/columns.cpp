#include "validate/results/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "validate/results/nested_lists.hpp"

namespace ringsim {

Json object_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json result = Json::object();
  for (const auto& [key, value] : pairs) result[key] = Json::parse(value);
  return result;
}

namespace {

using In = Column::In;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string proof_text(Proof::By by) {
  switch (by) {
    case Proof::By::all_ranks:
      return "all ranks";
    case Proof::By::symmetry:
      return "symmetry";
    case Proof::By::symmetry_samples:
      return "symmetry, checked at samples";
    case Proof::By::parts:
      return "calls by themselves, then the program";
    case Proof::By::matching:
      return "matching only";
  }
  fail_invariant("a proof was found in one of five ways");
}

std::string proof_text(const Proof& proof) {
  return (proof.from.empty() ? "" : "by construction from ") + proof_text(proof.by);
}

std::string share_text(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string share_or_nothing(const std::optional<double>& share) { return share ? share_text(*share) : ""; }
Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

/// A step of training, of inference, or of a trace.
bool is_step(const Result& r) { return r.prediction.training.has_value(); }
bool is_inference(const Result& r) { return is_step(r) && r.prediction.training->inference.has_value(); }
bool is_trace(const Result& r) { return is_step(r) && r.prediction.training->trace.has_value(); }
bool is_training(const Result& r) { return is_step(r) && !is_inference(r) && !is_trace(r); }

/// A figure of a collective; null of all jobs together.
template <class Of>
Json of_collective(const Result& r, Of of) {
  return r.prediction.is_total ? Json(nullptr) : Json(of(r.prediction));
}

bool has_bandwidth(const Result& r) { return !is_step(r) && !r.prediction.is_total; }

/// True if a library chose, and chose one number of channels.
bool has_one_plan(const Result& r) {
  const Prediction& p = r.prediction;
  if (p.library.empty() || p.is_total || !p.training) return !p.library.empty() && !p.is_total;
  return std::all_of(p.training->exchanges.begin(), p.training->exchanges.end(), [&](const ExchangeReport& exchange) {
    return exchange.channels == p.training->exchanges.front().channels;
  });
}

/// A figure of a transformer's training step, or of inference; null of others.
Json of_transformer(const Result& r, double TrainingReport::*figure) {
  return r.prediction.training && (*r.prediction.training).*figure > 0 ? Json((*r.prediction.training).*figure)
                                                                       : Json(nullptr);
}

/// A figure of a training step; null of a collective, of inference and of a trace.
template <class Of>
Json of_training(const Result& r, Of of) {
  return is_training(r) ? Json(of(*r.prediction.training)) : Json(nullptr);
}
/// A figure of any of them; null of a collective.
template <class Of>
Json of_step(const Result& r, Of of) {
  return is_step(r) ? Json(of(*r.prediction.training)) : Json(nullptr);
}
/// A figure of training and inference; null of a trace and a collective.
template <class Of>
Json of_model(const Result& r, Of of) {
  return is_step(r) && !is_trace(r) ? Json(of(*r.prediction.training)) : Json(nullptr);
}
/// A figure of exchanges next to computation: of training and of a trace.
template <class Of>
Json of_open(const Result& r, Of of) {
  return is_training(r) || is_trace(r) ? Json(of(*r.prediction.training)) : Json(nullptr);
}
/// A figure of a trace; null of all else.
template <class Of>
Json of_trace(const Result& r, Of of) {
  return is_trace(r) ? Json(of(*r.prediction.training->trace)) : Json(nullptr);
}
/// A figure of inference; null of all else.
template <class Of>
Json of_inference(const Result& r, Of of) {
  return is_inference(r) ? Json(of(*r.prediction.training->inference)) : Json(nullptr);
}
Json time_of_phase(const Result& r, InferencePhase phase) {
  if (!is_inference(r) || r.prediction.training->inference->phase != phase) return nullptr;
  return microseconds(r.prediction.time);
}

/// A figure of a plan; null of all else.
template <class Of>
Json of_plan(const Result& r, Of of) {
  return is_training(r) && r.prediction.training->plan ? Json(of(*r.prediction.training->plan)) : Json(nullptr);
}
/// True if several ranks share each sample.
bool shares_samples(const Result& r) {
  return is_training(r) && r.prediction.training->plan && r.prediction.training->plan->context > 1;
}
template <class Of>
Json of_shared(const Result& r, Of of) {
  return shares_samples(r) ? of_plan(r, of) : Json(nullptr);
}
/// True of training with a plan, and of inference.
bool has_tensor_ranks(const Result& r) { return is_step(r) && r.prediction.training->plan.has_value(); }
/// A figure of a plan or of inference; null of all else.
template <class Of>
Json of_ranks(const Result& r, Of of) {
  return has_tensor_ranks(r) ? Json(of(*r.prediction.training->plan)) : Json(nullptr);
}
/// True if ranks have different experts.
bool divides_experts(const Result& r) { return has_tensor_ranks(r) && r.prediction.training->plan->expert > 1; }
template <class Of>
Json of_experts(const Result& r, Of of) {
  return divides_experts(r) ? of_ranks(r, of) : Json(nullptr);
}
bool is_plan(const Result& r) { return is_training(r) && r.prediction.training->plan.has_value(); }
Json time_of_plan(const Result& r, Picoseconds PlanSplit::*part) {
  return of_plan(r, [part](const auto& plan) { return microseconds(plan.split.*part); });
}

/// A figure of a server that waits for nobody; null of all else.
template <class Of>
Json of_async(const Result& r, Of of) {
  return is_training(r) && r.prediction.training->async ? Json(of(*r.prediction.training->async)) : Json(nullptr);
}
bool is_async(const Result& r) { return is_training(r) && r.prediction.training->async.has_value(); }

/// A column of a part of the step's time.
constexpr Column time_of_step(std::string_view name, std::string_view meaning, Json (*value)(const Result&),
                              std::string_view heading = "", bool (*relevant)(const Result&) = nullptr) {
  return {.name = name,
          .unit = "us",
          .meaning = meaning,
          .in = In::some_rows,
          .value = value,
          .heading = heading,
          .relevant = relevant};
}
constexpr Column memory_of_step(std::string_view name, std::string_view meaning, Json (*value)(const Result&)) {
  return {.name = name, .unit = "B", .meaning = meaning, .in = In::some_rows, .value = value};
}

constexpr std::array columns{
    Column{.name = "ringsim.version", .unit = "", .meaning = "the program that predicted it", .in_csv = false},
    Column{.name = "ringsim.model_version",
           .unit = "",
           .meaning = "raised when the model's times change",
           .in_csv = false},
    Column{.name = "scenario.name", .unit = "", .meaning = "the scenario's name"},
    Column{.name = "scenario.hash",
           .unit = "",
           .meaning = "XXH3-128 of the canonical scenario; in rows of a sweep, of the point",
           .in_csv = false},
    Column{.name = "key",
           .unit = "",
           .meaning = "in rows of a sweep: a hash of everything that the row depends on",
           .in = In::some_rows,
           .in_csv = false},
    Column{.name = "job",
           .unit = "",
           .meaning = "which collective, if there are several; main is the scenario's own; all: together, where some "
                      "have groups or come after others",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.job); },
           .heading = "job"},
    Column{.name = "collective",
           .unit = "",
           .meaning = "all_reduce, all_gather ...",
           .value =
               [](const Result& r) { return of_collective(r, [](const auto& p) { return to_string(p.request.op); }); },
           .heading = "collective",
           .above = "{}"},
    Column{.name = "algorithm",
           .unit = "",
           .meaning = "as `ringsim list algorithms` names it",
           .value = [](const Result& r) { return of_collective(r, [](const auto& p) { return p.algorithm; }); },
           .heading = "algorithm",
           .above = "{}",
           .shown = [](const Result& r) { return r.prediction.is_total ? "" : algorithm_text(r.prediction); }},
    Column{.name = "parameters.*",
           .unit = "",
           .meaning = "the algorithm's parameters",
           .in = In::some_rows,
           .value = [](const Result& r) { return object_of(r.prediction.parameters); }},
    Column{.name = "library",
           .unit = "",
           .meaning = "which library chose algorithm, protocol and channels, and its version",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.library); },
           .heading = "library",
           .above = "{}"},
    Column{.name = "library_algorithm",
           .unit = "",
           .meaning = "with a library: its name for the algorithm, such as Ring, Tree, NVLS, NVLSTree or SendRecv; "
                      "of a training step all that its exchanges take, the one of most bytes first",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.library_algorithm); }},
    Column{.name = "channels",
           .unit = "",
           .meaning = "how many channels the library uses at this size; null if exchanges of a step, or jobs, differ",
           .in = In::some_rows,
           .value = [](const Result& r) { return has_one_plan(r) ? Json(r.prediction.request.channels) : Json(); },
           .heading = "channels",
           .above = "{} channels"},
    Column{.name = "protocol",
           .unit = "",
           .meaning = "none, ll, ll128 or simple; of exchanges that differ all: simple, ll",
           .value = [](const Result& r) { return Json(protocols_of(r.prediction)); },
           .heading = "protocol",
           .above = "protocol {}",
           .shown = [](const Result& r) { return protocol_text(r.prediction); },
           .relevant = [](const Result& r) { return r.prediction.protocol->slots > 0; }},
    Column{.name = "model",
           .unit = "",
           .meaning = "how the network shares links: ideal, fair or packet",
           .value = [](const Result& r) { return Json(to_string(r.prediction.model)); },
           .heading = "model",
           .above = "{}"},
    Column{.name = "routing",
           .unit = "",
           .meaning = "how switches chose, if the fabric had several equally short ways: static, ecmp and its seed ...",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.routing); },
           .heading = "routing",
           .above = "routing {}"},
    Column{.name = "ranks",
           .unit = "",
           .meaning = "members of the collective, of one group, without helpers such as servers; of all jobs: GPUs",
           .value = [](const Result& r) { return Json(r.prediction.request.ranks); },
           .heading = "ranks",
           .above = "{} ranks"},
    Column{.name = "groups",
           .unit = "",
           .meaning = "how many groups do it at the same time; the time is that of the slowest",
           .in = In::some_rows,
           .value = [](const Result& r) { return r.prediction.groups > 0 ? Json(r.prediction.groups) : Json(nullptr); },
           .heading = "groups",
           .above = "{} groups"},
    Column{
        .name = "bytes",
        .unit = "B",
        .meaning = "message size as nccl-tests counts it",
        .value = [](const Result& r) { return of_collective(r, [](const auto& p) { return p.request.bytes.count; }); },
        .heading = "bytes",
        .above = "{}",
        .shown = [](const Result& r) { return r.prediction.is_total ? "" : format(r.prediction.request.bytes); }},
    Column{.name = "calibration",
           .unit = "",
           .meaning = "fitted factors that the scenario uses",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.calibration); }},
    Column{.name = "point.*",
           .unit = "",
           .meaning = "what varies between the points of the scenario, by its path",
           .in = In::some_rows,
           .value = [](const Result& r) { return object_of(r.prediction.varied); }},
    Column{.name = "start_us",
           .unit = "us",
           .meaning = "of a job: when it starts; its time counts from there",
           .in = In::some_rows,
           .value =
               [](const Result& r) {
                 return r.prediction.start.count() > 0 ? Json(microseconds(r.prediction.start)) : Json(nullptr);
               }},
    Column{.name = "time_us",
           .unit = "us",
           .meaning = "predicted time; of training a step's: the mean of those after the warm-up; of inference and "
                      "a trace that of one step",
           .value = [](const Result& r) { return Json(microseconds(r.prediction.time)); },
           .heading = "time us"},
    Column{
        .name = "training",
        .unit = "",
        .meaning =
            "of a training step: its regime, as `ringsim list regimes` names it; the collective is all its gradients",
        .in = In::some_rows,
        .value = [](const Result& r) { return of_training(r, [](const auto& t) { return t.regime; }); },
        .heading = "training",
        .above = "{}"},
    Column{.name = "workload",
           .unit = "",
           .meaning = "the model that is trained or serves; layers, if the scenario has its own; the name of a trace",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_step(r, [](const auto& t) { return t.workload; }); },
           .heading = "workload",
           .above = "{}"},
    Column{
        .name = "compute_from",
        .unit = "",
        .meaning =
            "where compute times come from: measured (a step), flops (a peak and a share of it), roofline (shares of a "
            "plan or of inference), measured plan (with the share that it gave), stated, recorded (of a trace)",
        .in = In::some_rows,
        .value = [](const Result& r) { return of_step(r, [](const auto& t) { return t.compute; }); }},
    Column{.name = "batch",
           .unit = "",
           .meaning = "samples of all GPUs in a step; of inference sequences",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_model(r, [](const auto& t) { return t.batch; }); },
           .heading = "batch",
           .relevant = is_inference},
    Column{.name = "buckets",
           .unit = "",
           .meaning = "into how many buckets the gradients are put",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_training(r, [](const auto& t) { return t.buckets; }); },
           .heading = "buckets"},
    Column{.name = "samples_per_s",
           .unit = "1/s",
           .meaning = "batch over time_us",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_training(r, [](const auto& t) { return t.samples_per_s; }); },
           .heading = "samples/s"},
    Column{.name = "tokens_per_s",
           .unit = "1/s",
           .meaning = "of a transformer: samples_per_s times its sequence; of inference: of prefill the prompts' "
                      "tokens, of decode "
                      "those that it makes",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_transformer(r, &TrainingReport::tokens_per_s); },
           .heading = "tokens/s"},
    Column{.name = "phase",
           .unit = "",
           .meaning = "of inference: prefill or decode",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_inference(r, [](const auto& i) { return to_string(i.phase); }); },
           .heading = "phase",
           .above = "{}",
           .relevant = is_inference},
    Column{.name = "context",
           .unit = "",
           .meaning = "of inference: tokens of each sequence; of decode those that the new token meets",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_inference(r, [](const auto& i) { return i.context; }); },
           .heading = "context",
           .relevant = is_inference},
    time_of_step("time_to_first_token_us", "of prefill: time_us, from the prompts to the logits of the first token",
                 [](const Result& r) { return time_of_phase(r, InferencePhase::prefill); }),
    time_of_step("time_per_token_us", "of decode: time_us, from one token of each sequence to the next",
                 [](const Result& r) { return time_of_phase(r, InferencePhase::decode); }),
    Column{
        .name = "tokens_per_s_per_gpu",
        .unit = "1/s",
        .meaning = "of inference: tokens_per_s over the ranks",
        .in = In::some_rows,
        .value = [](const Result& r) { return of_inference(r, [](const auto& i) { return i.tokens_per_s_per_gpu; }); },
        .heading = "tokens/s per GPU",
        .relevant = is_inference},
    Column{
        .name = "communication_share",
        .unit = "share",
        .meaning = "of inference: exposed_tensor_us and exposed_expert_us over time_us, the share of its collectives",
        .in = In::some_rows,
        .value = [](const Result& r) { return of_inference(r, [](const auto& i) { return i.communication; }); },
        .heading = "collectives",
        .shown =
            [](const Result& r) {
              return is_inference(r) ? share_text(r.prediction.training->inference->communication) : "";
            },
        .relevant = is_inference},
    Column{.name = "tflops_per_gpu",
           .unit = "TFLOP/s",
           .meaning = "of a transformer: operations of the model per second and GPU, two a multiply-add, the backward "
                      "pass twice the forward pass, recomputation not counted",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_transformer(r, &TrainingReport::tflops_per_gpu); },
           .heading = "TFLOP/s per GPU"},
    Column{.name = "mfu",
           .unit = "share",
           .meaning = "of a transformer: tflops_per_gpu over the stated peak (compute.flops, of a plan compute.peak)",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_transformer(r, &TrainingReport::mfu); },
           .heading = "MFU",
           .shown =
               [](const Result& r) {
                 return is_training(r) && r.prediction.training->mfu > 0 ? share_text(r.prediction.training->mfu) : "";
               }},
    Column{.name = "tp",
           .unit = "",
           .meaning = "of a plan or of inference: tensor parallel ranks",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_ranks(r, [](const auto& plan) { return plan.tensor; }); },
           .heading = "tp",
           .relevant = has_tensor_ranks},
    Column{.name = "pp",
           .unit = "",
           .meaning = "of a plan: pipeline stages",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.pipeline; }); },
           .heading = "pp",
           .relevant = is_plan},
    Column{.name = "vp",
           .unit = "",
           .meaning = "of a plan: chunks of layers of a stage",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.virtual_pipeline; }); }},
    Column{.name = "cp",
           .unit = "",
           .meaning = "of a plan: context parallel ranks, if there are several",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_shared(r, [](const auto& plan) { return plan.context; }); },
           .heading = "cp",
           .relevant = shares_samples},
    Column{.name = "ep",
           .unit = "",
           .meaning = "of a plan or of inference: ranks that have different experts, if there are several",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_experts(r, [](const auto& plan) { return plan.expert; }); },
           .heading = "ep",
           .relevant = divides_experts},
    Column{.name = "dp",
           .unit = "",
           .meaning = "of a plan: data parallel ranks",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.data; }); },
           .heading = "dp",
           .relevant = is_plan},
    Column{.name = "micro_batches",
           .unit = "",
           .meaning = "of a plan: those that pass through a pipeline in a step",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.micro_batches; }); }},
    Column{.name = "schedule",
           .unit = "",
           .meaning = "of a plan: gpipe, 1f1b, interleaved or zero_bubble_h1",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.schedule; }); }},
    Column{.name = "shard",
           .unit = "",
           .meaning = "of a plan: what data parallel ranks divide: none, optimizer, optimizer_gradients or full",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.shard; }); }},
    Column{.name = "efficiency",
           .unit = "share",
           .meaning = "the step of one GPU alone, with the same batch per GPU, over this step; of a plan what a GPU "
                      "computes, on average, over the step",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_model(r, [](const auto& t) { return t.efficiency; }); },
           .heading = "efficiency",
           .shown =
               [](const Result& r) {
                 return is_step(r) && !is_trace(r) ? share_text(r.prediction.training->efficiency) : "";
               }},
    Column{.name = "trace.files",
           .unit = "",
           .meaning = "of a trace: how many; 1: one rank's trace represents all ranks",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.files; }); }},
    Column{.name = "trace.nodes",
           .unit = "",
           .meaning = "of a trace: nodes in all files",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.nodes; }); }},
    Column{.name = "trace.tasks",
           .unit = "",
           .meaning = "of a trace: tasks that are left when computations that nothing else waits for or feeds are put "
                      "together",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.tasks; }); }},
    Column{.name = "trace.collectives",
           .unit = "",
           .meaning = "of a trace: kernels of collectives in all files",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.collectives; }); },
           .heading = "collectives",
           .relevant = is_trace},
    Column{.name = "trace.unwaited",
           .unit = "",
           .meaning = "of a trace: of these, how many have nothing that waits for them",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.unwaited; }); },
           .heading = "unwaited",
           .relevant = is_trace},
    Column{.name = "trace.sync",
           .unit = "",
           .meaning = "of a trace with sync: the kernel that waits for all collectives before it",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return text_or_null(t.sync); }); }},
    Column{.name = "updates_per_s",
           .unit = "1/s",
           .meaning =
               "of a parameter_server of mode async: updates of the model by all workers, after the warm-up. Then "
               "time_us is the workers over it, the mean step of a worker, and the five parts are means over all "
               "workers and updates",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.updates_per_s; }); },
           .heading = "updates/s",
           .relevant = is_async},
    Column{.name = "updates",
           .unit = "",
           .meaning = "how many updates that is",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.updates; }); }},
    Column{.name = "staleness_mean",
           .unit = "updates",
           .meaning =
               "updates by other workers between the moment when weights begin to leave for a worker and its own "
               "update, per shard of the model; K - 1 but for the ends of the run",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.staleness; }); },
           .heading = "staleness",
           .relevant = is_async},
    Column{.name = "staleness_max",
           .unit = "updates",
           .meaning = "the largest",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.stalest; }); },
           .heading = "stalest",
           .relevant = is_async},
    Column{.name = "worker_start",
           .unit = "",
           .meaning = "mode async: when workers began: staggered, together, or random and the seed",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.start; }); }},
    time_of_step(
        "step_min_us", "the shortest step after the warm-up",
        [](const Result& r) { return of_training(r, [](const auto& t) { return microseconds(t.shortest); }); }),
    time_of_step("step_max_us", "the longest",
                 [](const Result& r) { return of_training(r, [](const auto& t) { return microseconds(t.longest); }); }),
    Column{.name = "steady",
           .unit = "",
           .meaning = "whether the last two steps took the same time, to the picosecond; false if only one is timed",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_training(r, [](const auto& t) { return t.steady; }); }},
    time_of_step(
        "split_us.compute", "of a step, by the rank that ends last: kernels run. The five parts add up to time_us",
        [](const Result& r) { return of_step(r, [](const auto& t) { return microseconds(t.split.compute); }); },
        "compute us"),
    time_of_step(
        "split_us.exposed_communication", "nothing computes, and an exchange runs that all its members have launched",
        [](const Result& r) {
          return of_step(r, [](const auto& t) { return microseconds(t.split.exposed_communication); });
        },
        "exposed us"),
    time_of_step(
        "split_us.waiting_for_others",
        "nothing computes, and an exchange is open that a member (or a server) has not launched",
        [](const Result& r) {
          return of_step(r, [](const auto& t) { return microseconds(t.split.waiting_for_others); });
        },
        "waiting us",
        [](const Result& r) { return is_step(r) && r.prediction.training->split.waiting_for_others.count() > 0; }),
    time_of_step("split_us.waiting_for_host", "nothing else happens than the host's launches, or its cycle",
                 [](const Result& r) {
                   return of_step(r, [](const auto& t) { return microseconds(t.split.waiting_for_host); });
                 }),
    time_of_step("split_us.idle", "nothing happens",
                 [](const Result& r) { return of_step(r, [](const auto& t) { return microseconds(t.split.idle); }); }),
    time_of_step(
        "overlapped_us", "of compute: an exchange is open meanwhile",
        [](const Result& r) { return of_open(r, [](const auto& t) { return microseconds(t.split.overlapped); }); },
        "overlapped us"),
    time_of_step("communication_us", "an exchange is open: exposed, waiting for others, and overlapped",
                 [](const Result& r) {
                   return of_open(r, [](const auto& t) { return microseconds(t.split.communication()); });
                 }),
    time_of_step(
        "bubble_us",
        "of a plan's step, by the rank that ends last: its next kernel waits for what another stage has not sent. With "
        "split_us.compute and the exposed times below it adds up to time_us",
        [](const Result& r) { return time_of_plan(r, &PlanSplit::bubble); }, "bubble us", is_plan),
    time_of_step(
        "exposed_tensor_us", "its next kernel waits for a collective of its tensor group",
        [](const Result& r) { return of_ranks(r, [](const auto& plan) { return microseconds(plan.split.tensor); }); },
        "tensor us", has_tensor_ranks),
    time_of_step(
        "exposed_context_us", "its next kernel waits for a collective of its context group",
        [](const Result& r) { return of_shared(r, [](const auto& plan) { return microseconds(plan.split.context); }); },
        "context us", shares_samples),
    time_of_step(
        "exposed_expert_us", "its next kernel waits for an all_to_all of its expert group",
        [](const Result& r) { return of_experts(r, [](const auto& plan) { return microseconds(plan.split.expert); }); },
        "expert us", divides_experts),
    time_of_step(
        "exposed_pipeline_us", "its next kernel waits for what another stage has sent",
        [](const Result& r) { return time_of_plan(r, &PlanSplit::pipeline); }, "pipeline us", is_plan),
    time_of_step(
        "exposed_data_us", "its next kernel waits for a collective of its data group, or the step ends with one",
        [](const Result& r) { return time_of_plan(r, &PlanSplit::data); }, "data us", is_plan),
    time_of_step("recompute_us", "of a plan's compute: parts of forward passes again",
                 [](const Result& r) { return time_of_plan(r, &PlanSplit::recompute); }),
    time_of_step("optimizer_us", "of a plan's compute: updates",
                 [](const Result& r) { return time_of_plan(r, &PlanSplit::optimizer); }),
    memory_of_step("sent_bytes", "what all ranks send in a step",
                   [](const Result& r) { return of_step(r, [](const auto& t) { return t.sent.count; }); }),
    memory_of_step("memory.parameters",
                   "of the GPU that needs most: the weights, in the size of a gradient; of a plan and of inference in "
                   "that of its precision",
                   [](const Result& r) { return of_model(r, [](const auto& t) { return t.memory.weights.count; }); }),
    memory_of_step(
        "memory.gradients", "its gradients",
        [](const Result& r) { return of_training(r, [](const auto& t) { return t.memory.gradients.count; }); }),
    memory_of_step("memory.optimizer",
                   "the optimizer's state: 0, 4 or 8 B per parameter (sgd, momentum, adam); of a plan in fp16 or bf16 "
                   "4 B more, a copy of the weights",
                   [](const Result& r) { return of_training(r, [](const auto& t) { return t.memory.state.count; }); }),
    memory_of_step(
        "memory.buckets",
        "the buckets, a copy of the gradients; of data_parallel room at the master for gradients that come in; "
        "activations are counted only for plans",
        [](const Result& r) { return of_training(r, [](const auto& t) { return t.memory.copies.count; }); }),
    memory_of_step("memory.outputs", "data_parallel: the outputs of the whole batch, at the master",
                   [](const Result& r) {
                     if (!is_training(r) || r.prediction.training->regime != "data_parallel") return Json(nullptr);
                     return Json(r.prediction.training->memory.outputs.count);
                   }),
    memory_of_step("memory.activations",
                   "of a plan: what it keeps for backward passes, at the moment when that is most",
                   [](const Result& r) {
                     return is_plan(r) ? Json(r.prediction.training->memory.activations.count) : Json(nullptr);
                   }),
    memory_of_step("memory.kv_cache", "of inference: keys and values of all sequences, on one GPU",
                   [](const Result& r) {
                     return is_inference(r) ? Json(r.prediction.training->memory.cache.count) : Json(nullptr);
                   }),
    memory_of_step("memory_bytes", "of a plan: all of these; of inference parameters and KV cache",
                   [](const Result& r) {
                     return has_tensor_ranks(r) ? Json(r.prediction.training->memory.total().count) : Json(nullptr);
                   }),
    Column{.name = "algbw_GBps",
           .unit = "GB/s",
           .meaning = "bytes over time",
           .value = [](const Result& r) { return has_bandwidth(r) ? Json(r.prediction.algbw) : Json(nullptr); },
           .heading = "algbw GB/s",
           .relevant = [](const Result& r) { return !is_step(r); }},
    Column{.name = "busbw_GBps",
           .unit = "GB/s",
           .meaning = "algbw scaled as nccl-tests does, so that it compares with the speed of a link",
           .value = [](const Result& r) { return has_bandwidth(r) ? Json(r.prediction.busbw) : Json(nullptr); },
           .heading = "busbw GB/s",
           .relevant = [](const Result& r) { return !is_step(r); }},
    Column{.name = "bound_us",
           .unit = "us",
           .meaning = "with --bound: no algorithm needs less on this machine, as far as bandwidth goes",
           .in = In::some_rows,
           .value = [](const Result& r) { return r.bound ? Json(microseconds(*r.bound)) : Json(nullptr); }},
    Column{.name = "of_bound",
           .unit = "share",
           .meaning = "with --bound: bound_us over time_us; 1 is the best that the machine allows",
           .in = In::some_rows,
           .value = [](const Result& r) { return number_or_null(of_bound(r)); },
           .heading = "of bound",
           .shown = [](const Result& r) { return share_or_nothing(of_bound(r)); }},
    Column{.name = "latency_floor_us",
           .unit = "us",
           .meaning = "with --bound: no algorithm needs less on this machine, as far as latencies of links go",
           .in = In::some_rows,
           .value =
               [](const Result& r) { return r.latency_floor ? Json(microseconds(*r.latency_floor)) : Json(nullptr); }},
    Column{.name = "measured_us",
           .unit = "us",
           .meaning = "measured time; of a replay the median",
           .in = In::compared,
           .value = [](const Result& r) { return r.measured_us ? Json(*r.measured_us) : Json(nullptr); },
           .heading = "measured us"},
    Column{
        .name = "measured_of_bound",
        .unit = "share",
        .meaning = "with --bound: bound_us over measured_us; above 1 the scenario is not the machine that was measured",
        .in = In::compared,
        .value = [](const Result& r) { return number_or_null(measured_of_bound(r)); },
        .heading = "measured of bound",
        .shown = [](const Result& r) { return share_or_nothing(measured_of_bound(r)); }},
    Column{.name = "measured_min_us",
           .unit = "us",
           .meaning = "of a replay: the fastest run",
           .in = In::compared,
           .value = [](const Result& r) { return r.replayed ? Json(r.replayed->min_us) : Json(nullptr); },
           .heading = "min us"},
    Column{.name = "measured_max_us",
           .unit = "us",
           .meaning = "of a replay: the slowest run",
           .in = In::compared,
           .value = [](const Result& r) { return r.replayed ? Json(r.replayed->max_us) : Json(nullptr); },
           .heading = "max us"},
    Column{.name = "checked",
           .unit = "",
           .meaning = "of a replay over TCP or MPI: elements that were checked, over all runs",
           .in = In::compared,
           .value =
               [](const Result& r) {
                 return r.replayed && r.replayed->checked ? Json(*r.replayed->checked) : Json(nullptr);
               },
           .heading = "checked"},
    Column{.name = "wrong",
           .unit = "",
           .meaning = "of a replay: wrong elements over all runs",
           .in = In::compared,
           .value = [](const Result& r) { return r.replayed ? Json(r.replayed->wrong) : Json(nullptr); },
           .heading = "wrong"},
    Column{.name = "modelled_in_turn_us",
           .unit = "us",
           .meaning = "of a replay on GPUs: predicted from a probe's measurements, if copies are served in turn",
           .in = In::compared,
           .value = [](const Result& r) { return r.modeled ? Json(r.modeled->in_turn_us) : Json(nullptr); },
           .heading = "in turn us"},
    Column{.name = "modelled_shared_us",
           .unit = "us",
           .meaning = "the same, if copies share",
           .in = In::compared,
           .value = [](const Result& r) { return r.modeled ? Json(r.modeled->shared_us) : Json(nullptr); },
           .heading = "shared us"},
    Column{.name = "error",
           .unit = "share",
           .meaning = "predicted / measured - 1; of a failed point an object: error.kind, error.where, error.message, "
                      "error.hint",
           .in = In::compared,
           .value = [](const Result& r) { return r.measured_us ? Json(error_of(r)) : Json(nullptr); },
           .heading = "error",
           .shown = [](const Result& r) { return r.measured_us ? fmt::format("{:+.1f} %", 100 * error_of(r)) : ""; }},
    Column{.name = "transfers",
           .unit = "",
           .meaning = "messages",
           .value = [](const Result& r) { return Json(r.prediction.transfers); }},
    Column{.name = "inter_node.bytes",
           .unit = "B",
           .meaning = "the most bytes that left one node, if there are several",
           .in = In::some_rows,
           .value =
               [](const Result& r) {
                 return r.prediction.inter_node ? Json(r.prediction.inter_node->first.count) : Json(nullptr);
               }},
    Column{.name = "inter_node.GBps",
           .unit = "GB/s",
           .meaning = "those bytes over the time",
           .in = In::some_rows,
           .value =
               [](const Result& r) {
                 return r.prediction.inter_node ? Json(r.prediction.inter_node->second) : Json(nullptr);
               },
           .heading = "node out GB/s",
           .relevant = [](const Result&) { return false; }},
    Column{.name = "closed_form.formula",
           .unit = "",
           .meaning = "the textbook's cost model; null if none is known",
           .value = [](const Result& r) { return r.form ? Json(r.form->formula) : Json(nullptr); }},
    Column{.name = "closed_form.time_us",
           .unit = "us",
           .meaning = "the time by that formula",
           .value = [](const Result& r) { return r.form ? Json(microseconds(r.form->time)) : Json(nullptr); }},
    Column{.name = "closed_form.ratio",
           .unit = "",
           .meaning = "predicted time over the formula's; null if the formula's is 0",
           .value =
               [](const Result& r) {
                 const auto ratio = r.form ? r.form->ratio(r.prediction.time) : std::nullopt;
                 return ratio ? Json(*ratio) : Json(nullptr);
               },
           .heading = "closed form",
           .above = "closed form {}",
           .shown = [](const Result& r) -> std::string {
             if (!r.form) return "none known";
             const auto ratio = r.form->ratio(r.prediction.time);
             return (ratio ? fmt::format("x {:.4f}", *ratio) : "0 us") + (r.form->holds() ? "" : " (*)");
           },
           // The ratio to a closed form that does not apply says little.
           .relevant = [](const Result& r) { return !r.form || r.form->holds(); }},
    Column{.name = "closed_form.holds",
           .unit = "",
           .meaning = "whether the formula's assumptions hold here",
           .value = [](const Result& r) { return r.form ? Json(r.form->holds()) : Json(nullptr); }},
    Column{.name = "closed_form.because",
           .unit = "",
           .meaning = "which of its assumptions do not hold: a list",
           .value = [](const Result& r) { return r.form ? Json(r.form->because) : Json(nullptr); },
           .in_csv = false},
    Column{.name = "bottleneck.link",
           .unit = "",
           .meaning = "the link that limited the critical path for longest; null if only latency did",
           .value =
               [](const Result& r) {
                 return r.prediction.bottleneck ? text_or_null(r.prediction.bottleneck->link) : Json(nullptr);
               },
           .heading = "bottleneck",
           .shown = [](const Result& r) -> std::string {
             if (!r.prediction.bottleneck) return "";
             return r.prediction.bottleneck->link.empty() ? "latency" : r.prediction.bottleneck->link;
           }},
    Column{.name = "bottleneck.kind",
           .unit = "",
           .meaning = "its kind: nvlink, pcie, infiniband ...",
           .value =
               [](const Result& r) {
                 return r.prediction.bottleneck ? text_or_null(r.prediction.bottleneck->kind) : Json(nullptr);
               }},
    Column{
        .name = "bottleneck.busy",
        .unit = "share",
        .meaning = "of the time: that link, or an identical one, was the limit",
        .value =
            [](const Result& r) {
              return r.prediction.bottleneck ? Json(r.prediction.bottleneck->busy) : Json(nullptr);
            },
        .heading = "busy",
        .shown =
            [](const Result& r) { return r.prediction.bottleneck ? share_text(r.prediction.bottleneck->busy) : ""; }},
    Column{.name = "bottleneck.latency",
           .unit = "share",
           .meaning = "of the time: latency, and filling staging buffers",
           .value =
               [](const Result& r) {
                 return r.prediction.bottleneck ? Json(r.prediction.bottleneck->latency) : Json(nullptr);
               }},
    Column{.name = "delayed",
           .unit = "share",
           .meaning = "of the time: waiting for ranks that are late, slow or unsteady",
           .in = In::some_rows,
           .value =
               [](const Result& r) {
                 if (!r.prediction.disturbed) return Json(nullptr);
                 return Json(r.prediction.bottleneck ? r.prediction.bottleneck->delay : 0.0);
               },
           .heading = "delayed",
           .shown =
               [](const Result& r) {
                 return r.prediction.bottleneck && r.prediction.bottleneck->delay > 0
                            ? share_text(r.prediction.bottleneck->delay)
                            : "";
               }},
    Column{
        .name = "proof",
        .unit = "",
        .meaning = "how the schedule was proved: over all ranks, by its symmetry, or its matching only; over channels "
                   "and in pieces by construction from one of these",
        .value =
            [](const Result& r) {
              return is_trace(r) ? Json(
                                       "calls by themselves, then their order; a trace does not have the data between "
                                       "them")
                                 : Json(proof_text(r.prediction.proof));
            }},
    Column{.name = "fingerprint",
           .unit = "",
           .meaning = "a digest of all messages with their times; null if one rank was simulated for all, or calls are "
                      "remembered",
           .value =
               [](const Result& r) {
                 return r.prediction.fingerprint ? Json(fmt::format("{:016x}", *r.prediction.fingerprint))
                                                 : Json(nullptr);
               }},
    Column{.name = "folded",
           .unit = "",
           .meaning = "why one rank could be simulated for all",
           .in = In::some_rows,
           .value = [](const Result& r) { return r.prediction.folded ? Json(*r.prediction.folded) : Json(nullptr); }},
    Column{.name = "remembered",
           .unit = "",
           .meaning = "of a training step, how many of its calls took the course of another that was simulated once",
           .in = In::some_rows,
           .value =
               [](const Result& r) {
                 return r.prediction.remembered.empty() ? Json(nullptr) : Json(r.prediction.remembered);
               }},
    Column{.name = "by_rank",
           .unit = "",
           .meaning = "of a training step, a list of ranks and servers that differ: who, split_us, sent_bytes and "
                      "received_bytes over the links of its node, memory",
           .in = In::details,
           .value = [](const Result& r) { return is_step(r) ? ranks_of(*r.prediction.training) : Json(nullptr); },
           .in_csv = false},
    Column{.name = "exchanges",
           .unit = "",
           .meaning = "of a training step with a library, a list of the sizes that are exchanged: bytes, times in a "
                      "step, algorithm, protocol, channels",
           .in = In::details,
           .value = [](const Result& r) { return is_step(r) ? exchanges_json(*r.prediction.training) : Json(nullptr); },
           .in_csv = false},
    Column{.name = "stages",
           .unit = "",
           .meaning = "of a plan, a list of what a rank of each stage keeps: parameters, gradients, optimizer, "
                      "activations, and in_flight, of how many passes",
           .in = In::details,
           .value = [](const Result& r) { return of_plan(r, stages_json); },
           .in_csv = false},
    Column{.name = "staleness",
           .unit = "",
           .meaning = "mode async: histogram, a list of staleness and how many updates of a shard; by_worker: updates, "
                      "mean and largest staleness of each rank",
           .in = In::details,
           .value = [](const Result& r) { return of_async(r, staleness_of); },
           .in_csv = false},
    Column{.name = "ring",
           .unit = "",
           .meaning = "with order best_ring: the ranks in that order; with channel_rings: the rings found",
           .in = In::details,
           .value = [](const Result& r) { return text_or_null(r.prediction.ring); },
           .in_csv = false},
    Column{.name = "links",
           .unit = "",
           .meaning =
               "a list of link groups: links, kind, count, most_bytes, utilisation; where calls of a library differ in "
               "plan, a byte counts more if its kernels reach a smaller share of the link's rate",
           .in = In::details,
           .value = [](const Result& r) { return links_of(r.prediction); },
           .in_csv = false},
    Column{.name = "phases",
           .unit = "",
           .meaning = "a list of the algorithm's phases: name, steps (how many), first_start_us, last_end_us, "
                      "critical_us (these sum to time_us), messages, bytes (sent, on the wire), and each_step, a list "
                      "of the same per step, counted from 0",
           .in = In::phases,
           .value =
               [](const Result& r) { return r.prediction.phases.empty() ? Json(nullptr) : phases_json(r.prediction); },
           .in_csv = false},
};

}  // namespace

std::span<const Column> result_columns() { return columns; }

Json as_json(const Result& result, bool details) {
  Json out = Json::object();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.value == nullptr || (column.in == In::details && !details)) continue;
    Json value = column.value(result);
    if (column.name.ends_with(".*")) {
      if (!value.empty()) out[std::string(column.name.substr(0, column.name.size() - 2))] = std::move(value);
      continue;
    }
    if (value.is_null() && column.in != In::every_row) continue;
    const std::size_t dot = column.name.find('.');
    if (dot == std::string_view::npos)
      out[std::string(column.name)] = std::move(value);
    else
      out[std::string(column.name.substr(0, dot))][std::string(column.name.substr(dot + 1))] = std::move(value);
  }
  // A group without any value is null itself.
  for (auto& [key, value] : out.items())
    if (value.is_object() && !value.empty() &&
        std::all_of(value.begin(), value.end(), [](const Json& member) { return member.is_null(); }))
      value = nullptr;
  return out;
}

}  // namespace ringsim
