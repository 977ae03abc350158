// How large the programs of the regimes are, before anything of them is made.
#pragma once

#include "algorithms/training/async_server.hpp"
#include "algorithms/training/ddp.hpp"
#include "algorithms/training/gossip.hpp"
#include "sim/program/program_size.hpp"

namespace ringsim {

/// As the writer of that name makes it for the same step. `exchanges`: false for one GPU alone, and without a
/// collective. `helpers`: actors of an all-reduce that are no ranks.
ProgramSize training_program_size(const TrainingStep& step, int ranks, int helpers);
ProgramSize local_sgd_program_size(const TrainingStep& step, int every, int ranks, int helpers, bool exchanges);
ProgramSize gossip_program_size(const TrainingStep& step, const Gossip& gossip, int ranks, bool exchanges);
ProgramSize data_parallel_program_size(const TrainingStep& step, int ranks, bool exchanges);
/// `servers`: as ServerExchange's. A tensor that lies in several shards is taken to be cut by each border between them:
/// so many variables at most.
ProgramSize server_program_size(const TrainingStep& step, int ranks, int servers, bool hands_out);
ProgramSize async_program_size(const TrainingStep& step, const AsyncServer& given);
ProgramSize model_parallel_program_size(const TrainingStep& step, int ranks, int microbatches, bool exchanges);

}  // namespace ringsim
