// What `training` means: layers with their times, buckets, and the collective that reduces them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// Reads the canonical `training`. `gpus`: of the topology. `speed`: they compute so many times as fast as it says;
/// above 0. Settings without effect become warnings.
TrainingSpec training_of(const nlohmann::json& canonical, std::size_t gpus, double speed, const Blame& blame,
                         std::vector<std::string>& warnings);

/// The exchange of all gradients (of local_sgd: weights), as the canonical form of a `collective`: an all-reduce; of
/// data_parallel the reduce to the master, of gossip what each rank sends to the next.
nlohmann::json gradients_of(const nlohmann::json& canonical, const TrainingSpec& training);

/// The layers of a model of scenarios/workloads, without times, and their multiply-adds.
struct Workload {
  std::vector<LayerCost> layers;
  std::vector<std::int64_t> macs;  ///< [layer] of the forward pass, one sample
  std::string sample, source;
  std::int64_t sequence = 0;  ///< tokens of a sample; 0: it has none
};
/// `sequence`: tokens of a sample, for a transformer; none: its own. Throws InputError (`where` empty) if another
/// model is given one.
Workload workload_named(const std::string& name, std::optional<std::int64_t> sequence = {});

/// Shared by regimes and plans.
namespace training_detail {
/// Throws InputError unless the workload says in one way what it trains.
void expect_one_model(const nlohmann::json& workload, const Blame& blame);
/// Its layers, with multiply-adds.
Workload layers_of(const nlohmann::json& workload, const Blame& blame);
/// Ranks that are slow, and random times: `slow` and `jitter`. Requires out.step.steps.
void take_stragglers(const nlohmann::json& canonical, std::int64_t ranks, TrainingSpec& out, const Blame& blame,
                     std::vector<std::string>& warnings);
}  // namespace training_detail

/// "125 TFLOP/s" in operations per second. Throws InputError (empty `where`).
std::int64_t parse_flops(const std::string& text);

}  // namespace ringsim::scenarios
