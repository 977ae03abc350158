#include "validate/results/nested_lists.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"

namespace ringsim {

Json links_of(const Prediction& p) {
  Json links = Json::array();
  for (const LinkGroup& group : p.links)
    links.push_back({{"links", group.links},
                     {"kind", group.kind},
                     {"count", group.count},
                     {"most_bytes", group.most.count},
                     {"utilisation", group.utilization}});
  return links;
}

namespace {

Json use_json(const PhaseUse& use) {
  const auto moment = [&](SimTime when) {
    return use.has_moments() ? Json(microseconds(when.time_since_epoch())) : Json(nullptr);
  };
  return {{"first_start_us", moment(use.first_start)},
          {"last_end_us", moment(use.last_end)},
          {"critical_us", microseconds(use.critical)},
          {"messages", use.messages},
          {"bytes", use.bytes.count}};
}

}  // namespace

Json phases_json(const Prediction& p) {
  Json phases = Json::array();
  for (const PhaseTime& phase : p.phases) {
    Json steps = Json::array();
    for (std::size_t i = 0; i < phase.steps.size(); ++i) {
      if (!phase.steps[i].is_used()) continue;
      Json step{{"step", i}};
      step.update(use_json(phase.steps[i]));
      steps.push_back(std::move(step));
    }
    Json json{{"name", phase.name}, {"steps", steps.size()}};
    json.update(use_json(phase.whole));
    json["each_step"] = std::move(steps);
    phases.push_back(std::move(json));
  }
  return phases;
}

Json ranks_of(const TrainingReport& training) {
  Json ranks = Json::array();
  for (const RankReport& rank : training.by_rank) {
    const TimeSplit& split = rank.split;
    const TrainingMemory& memory = rank.memory;
    ranks.push_back({{"who", rank.who},
                     {"split_us",
                      {{"compute", microseconds(split.compute)},
                       {"exposed_communication", microseconds(split.exposed_communication)},
                       {"waiting_for_others", microseconds(split.waiting_for_others)},
                       {"waiting_for_host", microseconds(split.waiting_for_host)},
                       {"idle", microseconds(split.idle)}}},
                     {"overlapped_us", microseconds(split.overlapped)},
                     {"sent_bytes", rank.sent.count},
                     {"received_bytes", rank.received.count},
                     {"memory",
                      {{"parameters", memory.weights.count},
                       {"gradients", memory.gradients.count},
                       {"optimizer", memory.state.count},
                       {"buckets", memory.copies.count},
                       {"outputs", memory.outputs.count}}}});
  }
  return ranks;
}

Json exchanges_json(const TrainingReport& training) {
  Json all = Json::array();
  for (const ExchangeReport& one : training.exchanges)
    all.push_back({{"group", one.group},
                   {"stage", one.stage},
                   {"collective", to_string(one.op)},
                   {"bytes", one.bytes.count},
                   {"times", one.times},
                   {"algorithm", one.algorithm},
                   {"protocol", one.protocol},
                   {"channels", one.channels}});
  return all;
}

Json stages_json(const PlanReport& plan) {
  Json all = Json::array();
  for (const PlanMemory& stage : plan.memory)
    all.push_back({{"parameters", stage.weights.count},
                   {"gradients", stage.gradients.count},
                   {"optimizer", stage.state.count},
                   {"activations", stage.activations.count},
                   {"in_flight", stage.in_flight}});
  return all;
}

Json staleness_of(const AsyncReport& async) {
  Json histogram = Json::array(), workers = Json::array();
  for (const auto& [staleness, updates] : async.histogram) histogram.push_back({staleness, updates});
  for (const AsyncReport::Worker& worker : async.workers)
    workers.push_back({{"updates", worker.updates}, {"mean", worker.staleness}, {"largest", worker.stalest}});
  return {{"histogram", std::move(histogram)}, {"by_worker", std::move(workers)}};
}

}  // namespace ringsim
