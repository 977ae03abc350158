// Model cards and the rates of kernels, as plans of training and inference state them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "algorithms/training/transformer_card.hpp"
#include "algorithms/training/transformer_costs.hpp"
#include "scenarios/decoder/blame.hpp"

namespace ringsim::scenarios {

/// The object that a plan or inference reads, for errors.
struct RooflinePlace {
  std::string workload;        ///< its pointer, "/training/workload"
  std::string user;            ///< who needs its keys, "with parallel"
  std::string otherwise = {};  ///< what may be stated in place of shares, for a hint

  std::string compute() const { return workload + "/compute"; }
};

/// The card that `workload` has, or that of the model which it names. Throws InputError for a model without a card, or
/// if the card's figures do not fit together.
TransformerCard card_of(const nlohmann::json& workload, const RooflinePlace& place, const Blame& blame);

/// The share of the key, above 0. Throws InputError if there is none, or a rate in its place.
double share_of(const nlohmann::json& compute, const char* key, const RooflinePlace& place, const Blame& blame);
/// "125 TFLOP/s" of the key, in operations per second. Throws InputError.
double flops_of(const nlohmann::json& compute, const char* key, const RooflinePlace& place, const Blame& blame);

/// From the shares of `peak` and `hbm` that kernels reach; `speed` times as fast. Throws InputError if a key is
/// missing: none has a default.
KernelSpeeds roofline_of(const nlohmann::json& compute, double speed, const RooflinePlace& place, const Blame& blame);

}  // namespace ringsim::scenarios
