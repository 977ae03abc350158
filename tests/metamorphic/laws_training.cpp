// Laws of training steps.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/quantity.hpp"
#include "tests/metamorphic/law.hpp"

namespace ringsim::metamorphic {

namespace {

bool fits_training(Draw& /*draw*/, Json& scenario) { return scenario.contains("training"); }

/// Ranks that lie alike, without random or temporary slowness, so that steps may come out alike.
bool fits_steady(Draw& /*draw*/, Json& scenario) {
  if (!scenario.contains("training") || !is_bare(scenario)) return false;
  const Json routing = value_at(scenario, "network.routing");
  if (routing == "flow_spray" || routing == "packet_spray") return false;  // which go on in turn from step to step
  scenario["training"].erase("jitter");
  scenario.erase("faults");
  return true;
}

void hold_steps(Trial& trial) {
  const TrainingReport& report = *trial.before.training;
  if (!report.steady || report.shortest != report.longest) throw DoesNotApply("the steps are not alike");
  Json changed = trial.scenario;
  changed["training"]["steps"] = trial.scenario["training"].value("steps", 2) + trial.draw.number(1, 4);
  trial.require_time(trial.run(changed).time, trial.before.time);
}

Json with_layers(const Json& scenario, const Json& layers) {
  return with(scenario, "training.workload.layers", layers);
}

void hold_layers_written_out(Trial& trial) {
  Json layers = Json::array();
  for (const Json& layer : trial.scenario["training"]["workload"]["layers"])
    for (int i = 0; i < layer["times"].get<int>(); ++i) {
      Json one = layer;
      one.erase("times");
      one["name"] = fmt::format("{} number {}", layer["name"].get<std::string>(), i);
      layers.push_back(one);
    }
  trial.require_same_run(trial.run(with_layers(trial.scenario, layers)));
}

void hold_optimizer_state(Trial& trial) {
  trial.require_same_run(trial.run(
      with(trial.scenario, "training.optimizer.name", trial.draw.one_of(std::array{"sgd", "momentum", "adam"}))));
}

/// Nothing to send: not even empty messages.
bool fits_no_parameters(Draw& /*draw*/, Json& scenario) {
  if (!scenario.contains("training")) return false;
  const Json regime = scenario["training"]["regime"]["name"];
  if (regime != "ddp") return false;
  scenario["training"].erase("host");
  for (Json& layer : scenario["training"]["workload"]["layers"]) layer["parameters"] = 0;
  scenario["training"].erase("jitter");
  scenario["training"].erase("slow");
  scenario.erase("faults");
  return true;
}

void hold_no_parameters(Trial& trial) {
  Json changed = trial.scenario;
  changed["training"]["regime"] = "single";
  const Prediction single = trial.run(changed);
  trial.require(trial.before.transfers == 0 || trial.before.request.ranks > 1, "expected no messages, found some");
  if (trial.before.training->buckets == 0) trial.require_time(trial.before.time, single.time);
  trial.require(trial.before.time >= single.time,
                fmt::format("expected at least {} ps, found {} ps", single.time.count(), trial.before.time.count()));
}

bool is_ddp(const Json& scenario) { return is_at(scenario, "training.regime.name", "ddp"); }

bool fits_one_bucket(Draw& draw, Json& scenario) {
  if (!scenario.contains("training")) return false;
  if (!is_ddp(scenario)) scenario["training"]["regime"] = {{"name", "ddp"}, {"algorithm", "ring"}};
  const std::string size = fmt::format("{} MB", draw.number(16, 99));  // the maker's models have at most 14.4 MB
  scenario["training"]["regime"]["buckets"] = {{"size", size}, {"first", size}};
  scenario["training"]["regime"].erase("overlap");
  return true;
}

void hold_larger_bucket(Trial& trial) {
  trial.require(trial.before.training->buckets <= 1, "expected one bucket, found more");
  trial.require_same_run(
      trial.run(with(trial.scenario, "training.regime.buckets", {{"size", "3 GB"}, {"first", "2 GB"}})));
}

/// It is ready at the end of the backward pass, if the first layer has parameters.
bool fits_no_overlap(Draw& draw, Json& scenario) {
  if (!fits_one_bucket(draw, scenario)) return false;
  Json& parameters = scenario["training"]["workload"]["layers"][0]["parameters"];
  if (parameters == 0) parameters = 1000;
  return true;
}

void hold_no_overlap(Trial& trial) { trial.require_same(with(trial.scenario, "training.regime.overlap", false)); }

void hold_split_sums(Trial& trial) {
  const TrainingReport& report = *trial.before.training;
  trial.require_time(report.split.total(), trial.before.time);
  trial.require(report.shortest - Picoseconds{5} <= report.step && report.step <= report.longest,
                "expected the step between the shortest and the longest, found another");
}

/// A host that launches kernels, and no work that several GPUs or servers divide among them.
bool fits_efficiency(Draw& draw, Json& scenario) {
  if (!scenario.contains("training")) return false;
  Json& training = scenario["training"];
  if (draw.once_in(2)) training["host"] = {{"launch", time_text(Picoseconds{draw.number(1, 2'000) * 100'000})}};
  if (training.contains("host") && draw.once_in(3)) {
    training["host"]["waits"] = false;
    training.erase("jitter");  // a long first step would leave the host ahead in the next ones
  }
  if (training["regime"]["name"] == "model_parallel") training.erase("host");
  return true;
}

void hold_efficiency(Trial& trial) {
  const TrainingReport& report = *trial.before.training;
  trial.require(report.efficiency <= 1 + 5.0 / static_cast<double>(report.step.count()),
                fmt::format("expected an efficiency of at most 1, found {}", report.efficiency));
}

/// Twice as fast GPUs on a network twice as fast, with half the latency.
bool fits_scaled_training(Draw& draw, Json& scenario) {
  if (!scenario.contains("training")) return false;
  const Json training = scenario["training"];
  scenario = {{"version", 1}, {"topology", star_of(draw, static_cast<int>(draw.number(1, 6)))}, {"training", training}};
  scenario["training"].erase("jitter");
  if (!is_ddp(scenario) || is_at(scenario, "training.regime.buckets.rule", "horovod"))
    scenario["training"]["regime"] = {{"name", "ddp"}, {"algorithm", "ring"}};
  return true;
}

void scale_times(Json& value, std::int64_t c) {
  if (value.is_structured())
    for (Json& member : value) scale_times(member, c);
  if (!value.is_string()) return;
  const std::string text = value.get<std::string>();
  if (text.ends_with(" us") || text.ends_with(" ns")) value = time_text(parse_time(text) * c);
}

void hold_scaled_training(Trial& trial) {
  Json changed = trial.scenario;
  scale_times(changed, 2);
  Json& rate = changed["topology"]["link"]["bandwidth"];
  rate = format(Bandwidth{parse_bandwidth(rate.get<std::string>()).bytes_per_second / 2});
  // A message is rounded once in each run; the parts of the split are rounded down.
  trial.require_near(trial.run(changed).time, trial.before.time * 2, Picoseconds{2 * trial.before.transfers + 16});
}

}  // namespace

std::vector<Law> training_laws() {
  return {
      {"more_steps",
       "If all steps take equally long, so do further ones. Where ranks lie alike: others drift apart, and may share "
       "links in a later step only.",
       fits_steady, hold_steps},
      {"layers_written_out", "A layer that is there n times is n layers: the same run.", fits_training,
       hold_layers_written_out},
      {"optimizer_state", "What the optimizer keeps changes memory, not time: its time is given.", fits_training,
       hold_optimizer_state},
      {"no_parameters", "A model without parameters exchanges no bytes: its step is at least that of one GPU.",
       fits_no_parameters, hold_no_parameters},
      {"larger_bucket", "A bucket larger than the model is one bucket, however large: the same run.", fits_one_bucket,
       hold_larger_bucket},
      {"no_overlap", "One bucket is ready when the backward pass ends: the same times with and without overlap.",
       fits_no_overlap, hold_no_overlap},
      {"split_sums",
       "The parts of a step sum to its time, which lies between the shortest and the longest; each of the five parts "
       "is "
       "rounded down to a picosecond.",
       fits_training, hold_split_sums},
      {"efficiency",
       "No step is shorter than that of one GPU that exchanges nothing, whose host launches as many kernels; each of "
       "the "
       "five parts is rounded down to a picosecond. Without hosts of several GPUs that share the layers.",
       fits_efficiency, hold_efficiency},
      {"scaled_training",
       "Compute times and latencies times 2, rates by 2: twice the step, give or take 2 ps per message.",
       fits_scaled_training, hold_scaled_training},
  };
}

}  // namespace ringsim::metamorphic
