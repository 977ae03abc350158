// RCCL's own estimate of how long a collective takes, by which it chooses algorithm and protocol; and its latencies,
// which its authors measured.
//
// A description of the formula as code, with its constants as facts. Source: ROCm/rccl 0cbce2a7571c (2.21.5)
// src/graph/tuning.cc: rcclTuningModel, ncclTopoTuneModel, ncclTopoGetAlgoTime; the fifth model, which the known
// machines of gfx942 name (src/graph/rome_models.cc, "tuning=5").
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/collective.hpp"
#include "topologies/nccl/nccl_tuner.hpp"

namespace ringsim::rccl {

/// What users set by environment variables.
struct Settings {
  std::vector<nccl::TunerAlgorithm> algorithms;  ///< NCCL_ALGO; empty: all
  std::vector<nccl::TunerProtocol> protocols;    ///< NCCL_PROTO; empty: all
  bool msccl = true;                             ///< RCCL_MSCCL_ENABLE
};

/// Microseconds of a step by that algorithm and protocol, within a node, with the link's own latency: hwLat, "NVLINK".
/// The algorithm is ring or tree, the protocol LL or Simple.
double step_us(nccl::TunerAlgorithm algorithm, nccl::TunerProtocol protocol);
/// Microseconds that a collective takes before its first step: baseLat.
double base_us(nccl::TunerProtocol protocol);

/// All that RCCL weighs for the op, within the user's settings: empty for one that the formula does not cover (all but
/// all_reduce, all_gather, reduce_scatter, broadcast, reduce), or for one rank. If the settings leave nothing, rings by
/// all protocols, as there ("at least set ring algo available"). LL128 is never chosen on gfx942: its share of the
/// links is 0. Trees by Simple are not on one node.
std::vector<nccl::TunerChoice> tuner_choices(CollectiveOp op, const nccl::TunerMachine& machine,
                                             const Settings& settings = {});

/// What RCCL takes it to last, in microseconds.
double tuner_time_us(const nccl::TunerChoice& choice, Bytes bytes, const nccl::TunerMachine& machine);

}  // namespace ringsim::rccl
