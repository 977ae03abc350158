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
      return "calls separately, then the program";
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
    Column{.name = "ringsim.version",
           .unit = "",
           .meaning = "version of ringsim that made the prediction",
           .in_csv = false},
    Column{.name = "ringsim.model_version",
           .unit = "",
           .meaning = "increases when a change to the model changes predicted times",
           .in_csv = false},
    Column{.name = "scenario.name", .unit = "", .meaning = "name of the scenario"},
    Column{.name = "scenario.hash",
           .unit = "",
           .meaning = "XXH3-128 hash of the canonical scenario; in a sweep, of the point",
           .in_csv = false},
    Column{.name = "key",
           .unit = "",
           .meaning = "in a sweep, a hash of everything that the row depends on",
           .in = In::some_rows,
           .in_csv = false},
    Column{.name = "job",
           .unit = "",
           .meaning = "name of the job, if there are several collectives: main is the scenario's own collective; all "
                      "is the total, if some jobs have groups or start after others",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.job); },
           .heading = "job"},
    Column{.name = "collective",
           .unit = "",
           .meaning = "operation: all_reduce, all_gather ...",
           .value =
               [](const Result& r) { return of_collective(r, [](const auto& p) { return to_string(p.request.op); }); },
           .heading = "collective",
           .above = "{}"},
    Column{.name = "algorithm",
           .unit = "",
           .meaning = "as named by `ringsim list algorithms`",
           .value = [](const Result& r) { return of_collective(r, [](const auto& p) { return p.algorithm; }); },
           .heading = "algorithm",
           .above = "{}",
           .shown = [](const Result& r) { return r.prediction.is_total ? "" : algorithm_text(r.prediction); }},
    Column{.name = "parameters.*",
           .unit = "",
           .meaning = "parameters of the algorithm",
           .in = In::some_rows,
           .value = [](const Result& r) { return object_of(r.prediction.parameters); }},
    Column{.name = "library",
           .unit = "",
           .meaning = "library that chose the algorithm, the protocol and the channels, with its version",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.library); },
           .heading = "library",
           .above = "{}"},
    Column{.name = "library_algorithm",
           .unit = "",
           .meaning =
               "the library's name for the algorithm, such as Ring, Tree, NVLS, NVLSTree or SendRecv; for a "
               "training step, the names for all of its exchanges, starting with the one that has the most bytes",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.library_algorithm); }},
    Column{.name = "channels",
           .unit = "",
           .meaning = "number of channels that the library uses at this size; null if the exchanges of a step, or the "
                      "jobs, differ",
           .in = In::some_rows,
           .value = [](const Result& r) { return has_one_plan(r) ? Json(r.prediction.request.channels) : Json(); },
           .heading = "channels",
           .above = "{} channels"},
    Column{.name = "protocol",
           .unit = "",
           .meaning = "none, ll, ll128 or simple; several if exchanges differ (simple, ll)",
           .value = [](const Result& r) { return Json(protocols_of(r.prediction)); },
           .heading = "protocol",
           .above = "protocol {}",
           .shown = [](const Result& r) { return protocol_text(r.prediction); },
           .relevant = [](const Result& r) { return r.prediction.protocol->slots > 0; }},
    Column{.name = "model",
           .unit = "",
           .meaning = "the network model: ideal, fair or packet",
           .value = [](const Result& r) { return Json(to_string(r.prediction.model)); },
           .heading = "model",
           .above = "{}"},
    Column{.name = "routing",
           .unit = "",
           .meaning =
               "how switches choose among equally short paths, if there are several: static, ecmp with its seed ...",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.routing); },
           .heading = "routing",
           .above = "routing {}"},
    Column{.name = "ranks",
           .unit = "",
           .meaning = "number of ranks in the collective, or in one group, not counting helpers such as servers; for "
                      "all jobs together, the number of GPUs",
           .value = [](const Result& r) { return Json(r.prediction.request.ranks); },
           .heading = "ranks",
           .above = "{} ranks"},
    Column{
        .name = "groups",
        .unit = "",
        .meaning = "number of groups that run the collective at the same time; the time is that of the slowest group",
        .in = In::some_rows,
        .value = [](const Result& r) { return r.prediction.groups > 0 ? Json(r.prediction.groups) : Json(nullptr); },
        .heading = "groups",
        .above = "{} groups"},
    Column{
        .name = "bytes",
        .unit = "B",
        .meaning = "message size as defined by nccl-tests",
        .value = [](const Result& r) { return of_collective(r, [](const auto& p) { return p.request.bytes.count; }); },
        .heading = "bytes",
        .above = "{}",
        .shown = [](const Result& r) { return r.prediction.is_total ? "" : format(r.prediction.request.bytes); }},
    Column{.name = "calibration",
           .unit = "",
           .meaning = "the fitted factors that the scenario uses",
           .in = In::some_rows,
           .value = [](const Result& r) { return text_or_null(r.prediction.calibration); }},
    Column{.name = "point.*",
           .unit = "",
           .meaning = "values that vary between the points of the scenario, by path",
           .in = In::some_rows,
           .value = [](const Result& r) { return object_of(r.prediction.varied); }},
    Column{.name = "start_us",
           .unit = "us",
           .meaning = "start time of the job; its time_us counts from there",
           .in = In::some_rows,
           .value =
               [](const Result& r) {
                 return r.prediction.start.count() > 0 ? Json(microseconds(r.prediction.start)) : Json(nullptr);
               }},
    Column{
        .name = "time_us",
        .unit = "us",
        .meaning = "predicted time; for training, the mean step after the warm-up; for inference and traces, one step",
        .value = [](const Result& r) { return Json(microseconds(r.prediction.time)); },
        .heading = "time us"},
    Column{.name = "training",
           .unit = "",
           .meaning =
               "regime of the training step, as named by `ringsim list regimes`; the collective covers all gradients",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_training(r, [](const auto& t) { return t.regime; }); },
           .heading = "training",
           .above = "{}"},
    Column{
        .name = "workload",
        .unit = "",
        .meaning = "the model that is trained or served; layers, if the scenario defines its own; the name of a trace",
        .in = In::some_rows,
        .value = [](const Result& r) { return of_step(r, [](const auto& t) { return t.workload; }); },
        .heading = "workload",
        .above = "{}"},
    Column{.name = "compute_from",
           .unit = "",
           .meaning =
               "source of the compute times: measured (a step), flops (a peak and a share of it), roofline (shares of "
               "a plan or of inference), measured plan (with the resulting share), stated, recorded (in a trace)",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_step(r, [](const auto& t) { return t.compute; }); }},
    Column{.name = "batch",
           .unit = "",
           .meaning = "samples per step over all GPUs; for inference, sequences",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_model(r, [](const auto& t) { return t.batch; }); },
           .heading = "batch",
           .relevant = is_inference},
    Column{.name = "buckets",
           .unit = "",
           .meaning = "number of gradient buckets",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_training(r, [](const auto& t) { return t.buckets; }); },
           .heading = "buckets"},
    Column{.name = "samples_per_s",
           .unit = "1/s",
           .meaning = "batch divided by time_us",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_training(r, [](const auto& t) { return t.samples_per_s; }); },
           .heading = "samples/s"},
    Column{.name = "tokens_per_s",
           .unit = "1/s",
           .meaning = "for a transformer, samples_per_s times the sequence length; for prefill, the tokens of the "
                      "prompts per second; for decode, the generated tokens per second",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_transformer(r, &TrainingReport::tokens_per_s); },
           .heading = "tokens/s"},
    Column{.name = "phase",
           .unit = "",
           .meaning = "for inference: prefill or decode",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_inference(r, [](const auto& i) { return to_string(i.phase); }); },
           .heading = "phase",
           .above = "{}",
           .relevant = is_inference},
    Column{.name = "context",
           .unit = "",
           .meaning = "for inference, tokens per sequence; for decode, the tokens that a new token attends to",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_inference(r, [](const auto& i) { return i.context; }); },
           .heading = "context",
           .relevant = is_inference},
    time_of_step("time_to_first_token_us",
                 "for prefill, the time from the prompts to the logits of the first token (equal to time_us)",
                 [](const Result& r) { return time_of_phase(r, InferencePhase::prefill); }),
    time_of_step("time_per_token_us",
                 "for decode, the time from one token of each sequence to the next (equal to time_us)",
                 [](const Result& r) { return time_of_phase(r, InferencePhase::decode); }),
    Column{
        .name = "tokens_per_s_per_gpu",
        .unit = "1/s",
        .meaning = "for inference, tokens_per_s divided by the number of ranks",
        .in = In::some_rows,
        .value = [](const Result& r) { return of_inference(r, [](const auto& i) { return i.tokens_per_s_per_gpu; }); },
        .heading = "tokens/s per GPU",
        .relevant = is_inference},
    Column{.name = "communication_share",
           .unit = "share",
           .meaning = "for inference, the share of time_us spent in exposed collectives (exposed_tensor_us and "
                      "exposed_expert_us)",
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
           .meaning = "for a transformer, model operations per second per GPU; a multiply-add counts as two "
                      "operations, the backward pass as twice the forward pass, and recomputation is not counted",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_transformer(r, &TrainingReport::tflops_per_gpu); },
           .heading = "TFLOP/s per GPU"},
    Column{
        .name = "mfu",
        .unit = "share",
        .meaning =
            "for a transformer, tflops_per_gpu divided by the stated peak (compute.flops, or compute.peak for a plan)",
        .in = In::some_rows,
        .value = [](const Result& r) { return of_transformer(r, &TrainingReport::mfu); },
        .heading = "MFU",
        .shown =
            [](const Result& r) {
              return is_training(r) && r.prediction.training->mfu > 0 ? share_text(r.prediction.training->mfu) : "";
            }},
    Column{.name = "tp",
           .unit = "",
           .meaning = "for a plan or inference, the number of tensor parallel ranks",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_ranks(r, [](const auto& plan) { return plan.tensor; }); },
           .heading = "tp",
           .relevant = has_tensor_ranks},
    Column{.name = "pp",
           .unit = "",
           .meaning = "for a plan, the number of pipeline stages",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.pipeline; }); },
           .heading = "pp",
           .relevant = is_plan},
    Column{.name = "vp",
           .unit = "",
           .meaning = "for a plan, the number of layer chunks per stage",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.virtual_pipeline; }); }},
    Column{.name = "cp",
           .unit = "",
           .meaning = "for a plan, the number of context parallel ranks, if there are several",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_shared(r, [](const auto& plan) { return plan.context; }); },
           .heading = "cp",
           .relevant = shares_samples},
    Column{.name = "ep",
           .unit = "",
           .meaning = "for a plan or inference, the number of expert parallel ranks, if there are several",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_experts(r, [](const auto& plan) { return plan.expert; }); },
           .heading = "ep",
           .relevant = divides_experts},
    Column{.name = "dp",
           .unit = "",
           .meaning = "for a plan, the number of data parallel ranks",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.data; }); },
           .heading = "dp",
           .relevant = is_plan},
    Column{.name = "micro_batches",
           .unit = "",
           .meaning = "for a plan, the number of micro-batches that pass through a pipeline per step",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.micro_batches; }); }},
    Column{.name = "schedule",
           .unit = "",
           .meaning = "for a plan: gpipe, 1f1b, interleaved, zero_bubble_h1 or zero_bubble_h2",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.schedule; }); }},
    Column{.name = "shard",
           .unit = "",
           .meaning =
               "for a plan, what is sharded across data parallel ranks: none, optimizer, optimizer_gradients or full",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_plan(r, [](const auto& plan) { return plan.shard; }); }},
    Column{.name = "efficiency",
           .unit = "share",
           .meaning = "the step time of a single GPU with the same batch per GPU, divided by this step time; for a "
                      "plan, the average compute time per GPU divided by the step time",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_model(r, [](const auto& t) { return t.efficiency; }); },
           .heading = "efficiency",
           .shown =
               [](const Result& r) {
                 return is_step(r) && !is_trace(r) ? share_text(r.prediction.training->efficiency) : "";
               }},
    Column{.name = "trace.files",
           .unit = "",
           .meaning = "for a trace, the number of files; 1 means that one rank's trace represents all ranks",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.files; }); }},
    Column{.name = "trace.nodes",
           .unit = "",
           .meaning = "for a trace, the number of nodes in all files",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.nodes; }); }},
    Column{.name = "trace.tasks",
           .unit = "",
           .meaning = "for a trace, the number of tasks after merging consecutive computations that no other task "
                      "waits for or feeds",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.tasks; }); }},
    Column{.name = "trace.collectives",
           .unit = "",
           .meaning = "for a trace, the number of collective kernels in all files",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.collectives; }); },
           .heading = "collectives",
           .relevant = is_trace},
    Column{.name = "trace.unwaited",
           .unit = "",
           .meaning = "for a trace, the number of these collectives that no task waits for",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return t.unwaited; }); },
           .heading = "unwaited",
           .relevant = is_trace},
    Column{.name = "trace.sync",
           .unit = "",
           .meaning = "for a trace with sync, the kernel that waits for all collectives before it",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_trace(r, [](const auto& t) { return text_or_null(t.sync); }); }},
    Column{.name = "updates_per_s",
           .unit = "1/s",
           .meaning = "for a parameter_server with mode async, model updates per second by all workers after the "
                      "warm-up; time_us is then the number of workers divided by this rate (the mean step of a "
                      "worker), and the five parts of a step are means over all workers and updates",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.updates_per_s; }); },
           .heading = "updates/s",
           .relevant = is_async},
    Column{.name = "updates",
           .unit = "",
           .meaning = "number of updates that were counted for updates_per_s",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.updates; }); }},
    Column{.name = "staleness_mean",
           .unit = "updates",
           .meaning = "mean number of updates by other workers between the moment when a worker's weights start to be "
                      "sent and the worker's own update, per shard of the model; K - 1 except at the ends of the run",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.staleness; }); },
           .heading = "staleness",
           .relevant = is_async},
    Column{.name = "staleness_max",
           .unit = "updates",
           .meaning = "maximum of this number",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.stalest; }); },
           .heading = "stalest",
           .relevant = is_async},
    Column{.name = "worker_start",
           .unit = "",
           .meaning = "for mode async, when the workers start: staggered, together, or random with a seed",
           .in = In::some_rows,
           .value = [](const Result& r) { return of_async(r, [](const auto& a) { return a.start; }); }},
    time_of_step(
        "step_min_us", "shortest step after the warm-up",
        [](const Result& r) { return of_training(r, [](const auto& t) { return microseconds(t.shortest); }); }),
    time_of_step("step_max_us", "longest step after the warm-up",
                 [](const Result& r) { return of_training(r, [](const auto& t) { return microseconds(t.longest); }); }),
    Column{
        .name = "steady",
        .unit = "",
        .meaning = "true if the last two steps took the same time, to the picosecond; false if only one step is timed",
        .in = In::some_rows,
        .value = [](const Result& r) { return of_training(r, [](const auto& t) { return t.steady; }); }},
    time_of_step(
        "split_us.compute",
        "time per step in which kernels run on the rank that ends last; the five parts of split_us add up to time_us",
        [](const Result& r) { return of_step(r, [](const auto& t) { return microseconds(t.split.compute); }); },
        "compute us"),
    time_of_step(
        "split_us.exposed_communication",
        "time without computation, during an exchange that all of its members have launched",
        [](const Result& r) {
          return of_step(r, [](const auto& t) { return microseconds(t.split.exposed_communication); });
        },
        "exposed us"),
    time_of_step(
        "split_us.waiting_for_others",
        "time without computation, during an exchange that a member (or a server) has not launched yet",
        [](const Result& r) {
          return of_step(r, [](const auto& t) { return microseconds(t.split.waiting_for_others); });
        },
        "waiting us",
        [](const Result& r) { return is_step(r) && r.prediction.training->split.waiting_for_others.count() > 0; }),
    time_of_step("split_us.waiting_for_host", "time in which nothing happens except the host's launches or its cycle",
                 [](const Result& r) {
                   return of_step(r, [](const auto& t) { return microseconds(t.split.waiting_for_host); });
                 }),
    time_of_step("split_us.idle", "time in which nothing happens",
                 [](const Result& r) { return of_step(r, [](const auto& t) { return microseconds(t.split.idle); }); }),
    time_of_step(
        "overlapped_us", "compute time during which an exchange is open",
        [](const Result& r) { return of_open(r, [](const auto& t) { return microseconds(t.split.overlapped); }); },
        "overlapped us"),
    time_of_step("communication_us",
                 "time during which an exchange is open: exposed, waiting for others, and overlapped",
                 [](const Result& r) {
                   return of_open(r, [](const auto& t) { return microseconds(t.split.communication()); });
                 }),
    time_of_step(
        "bubble_us",
        "for a plan, time in which the next kernel of the rank that ends last waits for data that another stage has "
        "not sent yet; together with split_us.compute and the exposed times below, it adds up to time_us",
        [](const Result& r) { return time_of_plan(r, &PlanSplit::bubble); }, "bubble us", is_plan),
    time_of_step(
        "exposed_tensor_us", "time in which the rank's next kernel waits for a collective of its tensor group",
        [](const Result& r) { return of_ranks(r, [](const auto& plan) { return microseconds(plan.split.tensor); }); },
        "tensor us", has_tensor_ranks),
    time_of_step(
        "exposed_context_us", "time in which the rank's next kernel waits for a collective of its context group",
        [](const Result& r) { return of_shared(r, [](const auto& plan) { return microseconds(plan.split.context); }); },
        "context us", shares_samples),
    time_of_step(
        "exposed_expert_us", "time in which the rank's next kernel waits for an all_to_all of its expert group",
        [](const Result& r) { return of_experts(r, [](const auto& plan) { return microseconds(plan.split.expert); }); },
        "expert us", divides_experts),
    time_of_step(
        "exposed_pipeline_us", "time in which the rank's next kernel waits for data in transit from another stage",
        [](const Result& r) { return time_of_plan(r, &PlanSplit::pipeline); }, "pipeline us", is_plan),
    time_of_step(
        "exposed_data_us",
        "time in which the rank's next kernel, or the end of the step, waits for a collective of its data group",
        [](const Result& r) { return time_of_plan(r, &PlanSplit::data); }, "data us", is_plan),
    time_of_step("recompute_us", "for a plan, the compute time spent on recomputing parts of forward passes",
                 [](const Result& r) { return time_of_plan(r, &PlanSplit::recompute); }),
    time_of_step("optimizer_us", "for a plan, the compute time spent on updates",
                 [](const Result& r) { return time_of_plan(r, &PlanSplit::optimizer); }),
    memory_of_step("sent_bytes", "bytes that all ranks send per step",
                   [](const Result& r) { return of_step(r, [](const auto& t) { return t.sent.count; }); }),
    memory_of_step("memory.parameters",
                   "weights on the GPU that needs the most memory; a weight has the size of a gradient, or for plans "
                   "and inference the size given by their precision",
                   [](const Result& r) { return of_model(r, [](const auto& t) { return t.memory.weights.count; }); }),
    memory_of_step(
        "memory.gradients", "gradients on that GPU",
        [](const Result& r) { return of_training(r, [](const auto& t) { return t.memory.gradients.count; }); }),
    memory_of_step("memory.optimizer",
                   "optimizer state: 0, 4 or 8 B per parameter (sgd, momentum, adam); for a plan in fp16 or bf16, 4 B "
                   "more for a copy of the weights",
                   [](const Result& r) { return of_training(r, [](const auto& t) { return t.memory.state.count; }); }),
    memory_of_step("memory.buckets",
                   "the buckets, which are a copy of the gradients; for data_parallel, the master's buffers for "
                   "incoming gradients; activations are counted only for plans",
                   [](const Result& r) { return of_training(r, [](const auto& t) { return t.memory.copies.count; }); }),
    memory_of_step("memory.outputs", "for data_parallel, the outputs of the whole batch on the master",
                   [](const Result& r) {
                     if (!is_training(r) || r.prediction.training->regime != "data_parallel") return Json(nullptr);
                     return Json(r.prediction.training->memory.outputs.count);
                   }),
    memory_of_step("memory.activations", "for a plan, the peak size of activations that are kept for backward passes",
                   [](const Result& r) {
                     return is_plan(r) ? Json(r.prediction.training->memory.activations.count) : Json(nullptr);
                   }),
    memory_of_step("memory.kv_cache", "for inference, the keys and values of all sequences, on one GPU",
                   [](const Result& r) {
                     return is_inference(r) ? Json(r.prediction.training->memory.cache.count) : Json(nullptr);
                   }),
    memory_of_step("memory_bytes", "for a plan, the sum of the above; for inference, of parameters and KV cache",
                   [](const Result& r) {
                     return has_tensor_ranks(r) ? Json(r.prediction.training->memory.total().count) : Json(nullptr);
                   }),
    Column{.name = "algbw_GBps",
           .unit = "GB/s",
           .meaning = "bytes divided by time",
           .value = [](const Result& r) { return has_bandwidth(r) ? Json(r.prediction.algbw) : Json(nullptr); },
           .heading = "algbw GB/s",
           .relevant = [](const Result& r) { return !is_step(r); }},
    Column{.name = "busbw_GBps",
           .unit = "GB/s",
           .meaning = "algbw scaled as in nccl-tests, so that it can be compared with the speed of a link",
           .value = [](const Result& r) { return has_bandwidth(r) ? Json(r.prediction.busbw) : Json(nullptr); },
           .heading = "busbw GB/s",
           .relevant = [](const Result& r) { return !is_step(r); }},
    Column{.name = "bound_us",
           .unit = "us",
           .meaning =
               "with --bound, a lower bound on the time of any algorithm on this machine, considering only bandwidth",
           .in = In::some_rows,
           .value = [](const Result& r) { return r.bound ? Json(microseconds(*r.bound)) : Json(nullptr); }},
    Column{.name = "of_bound",
           .unit = "share",
           .meaning = "with --bound, bound_us divided by time_us; 1 is the best that the machine allows",
           .in = In::some_rows,
           .value = [](const Result& r) { return number_or_null(of_bound(r)); },
           .heading = "of bound",
           .shown = [](const Result& r) { return share_or_nothing(of_bound(r)); }},
    Column{
        .name = "latency_floor_us",
        .unit = "us",
        .meaning =
            "with --bound, a lower bound on the time of any algorithm on this machine, considering only link latencies",
        .in = In::some_rows,
        .value =
            [](const Result& r) { return r.latency_floor ? Json(microseconds(*r.latency_floor)) : Json(nullptr); }},
    Column{.name = "measured_us",
           .unit = "us",
           .meaning = "measured time; for a replay, the median",
           .in = In::compared,
           .value = [](const Result& r) { return r.measured_us ? Json(*r.measured_us) : Json(nullptr); },
           .heading = "measured us"},
    Column{.name = "measured_of_bound",
           .unit = "share",
           .meaning = "with --bound, bound_us divided by measured_us; if it is above 1, the scenario does not match "
                      "the measured machine",
           .in = In::compared,
           .value = [](const Result& r) { return number_or_null(measured_of_bound(r)); },
           .heading = "measured of bound",
           .shown = [](const Result& r) { return share_or_nothing(measured_of_bound(r)); }},
    Column{.name = "measured_min_us",
           .unit = "us",
           .meaning = "for a replay, the fastest run",
           .in = In::compared,
           .value = [](const Result& r) { return r.replayed ? Json(r.replayed->min_us) : Json(nullptr); },
           .heading = "min us"},
    Column{.name = "measured_max_us",
           .unit = "us",
           .meaning = "for a replay, the slowest run",
           .in = In::compared,
           .value = [](const Result& r) { return r.replayed ? Json(r.replayed->max_us) : Json(nullptr); },
           .heading = "max us"},
    Column{.name = "checked",
           .unit = "",
           .meaning = "for a replay over TCP or MPI, the number of elements that were checked in all runs",
           .in = In::compared,
           .value =
               [](const Result& r) {
                 return r.replayed && r.replayed->checked ? Json(*r.replayed->checked) : Json(nullptr);
               },
           .heading = "checked"},
    Column{.name = "wrong",
           .unit = "",
           .meaning = "for a replay, the number of wrong elements in all runs",
           .in = In::compared,
           .value = [](const Result& r) { return r.replayed ? Json(r.replayed->wrong) : Json(nullptr); },
           .heading = "wrong"},
    Column{.name = "modelled_in_turn_us",
           .unit = "us",
           .meaning =
               "for a replay on GPUs, the time predicted from a probe's measurements if copies run one after another",
           .in = In::compared,
           .value = [](const Result& r) { return r.modeled ? Json(r.modeled->in_turn_us) : Json(nullptr); },
           .heading = "in turn us"},
    Column{.name = "modelled_shared_us",
           .unit = "us",
           .meaning = "the same, if copies share the bandwidth",
           .in = In::compared,
           .value = [](const Result& r) { return r.modeled ? Json(r.modeled->shared_us) : Json(nullptr); },
           .heading = "shared us"},
    Column{.name = "error",
           .unit = "share",
           .meaning = "predicted / measured - 1; for a failed point, an object: error.kind, error.where, "
                      "error.message, error.hint",
           .in = In::compared,
           .value = [](const Result& r) { return r.measured_us ? Json(error_of(r)) : Json(nullptr); },
           .heading = "error",
           .shown = [](const Result& r) { return r.measured_us ? fmt::format("{:+.1f} %", 100 * error_of(r)) : ""; }},
    Column{.name = "transfers",
           .unit = "",
           .meaning = "number of messages",
           .value = [](const Result& r) { return Json(r.prediction.transfers); }},
    Column{.name = "inter_node.bytes",
           .unit = "B",
           .meaning = "maximum number of bytes that left any one node, if there are several",
           .in = In::some_rows,
           .value =
               [](const Result& r) {
                 return r.prediction.inter_node ? Json(r.prediction.inter_node->first.count) : Json(nullptr);
               }},
    Column{.name = "inter_node.GBps",
           .unit = "GB/s",
           .meaning = "these bytes divided by the time",
           .in = In::some_rows,
           .value =
               [](const Result& r) {
                 return r.prediction.inter_node ? Json(r.prediction.inter_node->second) : Json(nullptr);
               },
           .heading = "node out GB/s",
           .relevant = [](const Result&) { return false; }},
    Column{.name = "closed_form.formula",
           .unit = "",
           .meaning = "the textbook cost model; null if none is known",
           .value = [](const Result& r) { return r.form ? Json(r.form->formula) : Json(nullptr); }},
    Column{.name = "closed_form.time_us",
           .unit = "us",
           .meaning = "time according to the formula",
           .value = [](const Result& r) { return r.form ? Json(microseconds(r.form->time)) : Json(nullptr); }},
    Column{.name = "closed_form.ratio",
           .unit = "",
           .meaning = "predicted time divided by the formula's time; null if the latter is 0",
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
           .meaning = "true if the formula's assumptions hold here",
           .value = [](const Result& r) { return r.form ? Json(r.form->holds()) : Json(nullptr); }},
    Column{.name = "closed_form.because",
           .unit = "",
           .meaning = "list of the assumptions that do not hold",
           .value = [](const Result& r) { return r.form ? Json(r.form->because) : Json(nullptr); },
           .in_csv = false},
    Column{.name = "bottleneck.link",
           .unit = "",
           .meaning = "link that limited the critical path for the longest time; null if only latency did",
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
           .meaning = "kind of that link: nvlink, pcie, infiniband ...",
           .value =
               [](const Result& r) {
                 return r.prediction.bottleneck ? text_or_null(r.prediction.bottleneck->kind) : Json(nullptr);
               }},
    Column{
        .name = "bottleneck.busy",
        .unit = "share",
        .meaning = "share of the time for which that link, or an identical one, was the limit",
        .value =
            [](const Result& r) {
              return r.prediction.bottleneck ? Json(r.prediction.bottleneck->busy) : Json(nullptr);
            },
        .heading = "busy",
        .shown =
            [](const Result& r) { return r.prediction.bottleneck ? share_text(r.prediction.bottleneck->busy) : ""; }},
    Column{.name = "bottleneck.latency",
           .unit = "share",
           .meaning = "share of the time due to latency and to filling staging buffers",
           .value =
               [](const Result& r) {
                 return r.prediction.bottleneck ? Json(r.prediction.bottleneck->latency) : Json(nullptr);
               }},
    Column{.name = "delayed",
           .unit = "share",
           .meaning = "share of the time spent waiting for ranks that are late, slow or unsteady",
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
    Column{.name = "proof",
           .unit = "",
           .meaning = "how the schedule was proved correct: over all ranks, by its symmetry, or only by matching sends "
                      "and receives; with channels or pieces, by construction from one of these",
           .value =
               [](const Result& r) {
                 return is_trace(r)
                            ? Json(
                                  "calls separately, then their order; a trace does not contain the data between calls")
                            : Json(proof_text(r.prediction.proof));
               }},
    Column{.name = "fingerprint",
           .unit = "",
           .meaning = "hash of all messages with their times; null if one rank was simulated for all, or if results of "
                      "calls were reused",
           .value =
               [](const Result& r) {
                 return r.prediction.fingerprint ? Json(fmt::format("{:016x}", *r.prediction.fingerprint))
                                                 : Json(nullptr);
               }},
    Column{.name = "folded",
           .unit = "",
           .meaning = "the reason why one rank could represent all ranks",
           .in = In::some_rows,
           .value = [](const Result& r) { return r.prediction.folded ? Json(*r.prediction.folded) : Json(nullptr); }},
    Column{.name = "remembered",
           .unit = "",
           .meaning = "for a training step, the number of calls that reused the simulation of an identical call",
           .in = In::some_rows,
           .value =
               [](const Result& r) {
                 return r.prediction.remembered.empty() ? Json(nullptr) : Json(r.prediction.remembered);
               }},
    Column{.name = "by_rank",
           .unit = "",
           .meaning = "for a training step, a list of the ranks and servers that differ, each with who, split_us, "
                      "sent_bytes and received_bytes (over the links of its node), and memory",
           .in = In::details,
           .value = [](const Result& r) { return is_step(r) ? ranks_of(*r.prediction.training) : Json(nullptr); },
           .in_csv = false},
    Column{.name = "exchanges",
           .unit = "",
           .meaning = "for a training step with a library, a list of the exchanges, each with group (data, tensor, "
                      "forward and backward between stages ...), stage, collective, bytes, times (per step), "
                      "algorithm, protocol and channels",
           .in = In::details,
           .value = [](const Result& r) { return is_step(r) ? exchanges_json(*r.prediction.training) : Json(nullptr); },
           .in_csv = false},
    Column{.name = "stages",
           .unit = "",
           .meaning = "for a plan, a list of what a rank of each stage keeps: parameters, gradients, optimizer, "
                      "activations, and in_flight, the number of passes whose activations it keeps",
           .in = In::details,
           .value = [](const Result& r) { return of_plan(r, stages_json); },
           .in_csv = false},
    Column{.name = "staleness",
           .unit = "",
           .meaning = "for mode async: histogram, a list of staleness values, each with the number of shard updates; "
                      "by_worker, the updates, mean staleness and maximum staleness of each rank",
           .in = In::details,
           .value = [](const Result& r) { return of_async(r, staleness_of); },
           .in_csv = false},
    Column{.name = "ring",
           .unit = "",
           .meaning = "with order best_ring, the ranks in ring order; with channel_rings, the rings found",
           .in = In::details,
           .value = [](const Result& r) { return text_or_null(r.prediction.ring); },
           .in_csv = false},
    Column{.name = "links",
           .unit = "",
           .meaning = "a list of link groups with the fields links, kind, count, most_bytes, utilisation; if the plans "
                      "of library calls differ, bytes are weighted by how much of the link's rate their kernels reach "
                      "(a smaller share gives a larger weight)",
           .in = In::details,
           .value = [](const Result& r) { return links_of(r.prediction); },
           .in_csv = false},
    Column{.name = "phases",
           .unit = "",
           .meaning = "a list of the algorithm's phases, each with name, steps (their number), first_start_us, "
                      "last_end_us, critical_us (these sum to time_us), messages, bytes (sent on the wire), and "
                      "each_step, a list of the same per step, counted from 0",
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
