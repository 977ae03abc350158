// Cuts the lanes of a schedule into thread blocks of MSCCL++, whose operations are one-sided. For the exporter alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/stored_schedule.hpp"

namespace ringsim::mscclpp {

/// A message of the schedule: a put of the sender, or a read and add of the receiver.
struct Message {
  Actor from = 0, to = 0;
  int channel = 0;
  bool pulled = false;  ///< by the receiver, which adds it
  Region source, target, operand{.count = 0};
  int sender = -1, receiver = -1;  ///< thread blocks, by their number in the GPU
};

/// A wait of one lane for another.
struct PlanWait {
  int releasing = -1, acquiring = -1;  ///< thread blocks
};

struct PlanOp {
  enum What : std::uint8_t { nop, barrier, acquire, release, copy, add, signal, wait, put, read_add };
  What what = nop;
  int number = -1;                   ///< barrier: its own; signal, wait, put, read_add: of the message
  int blocks = 0;                    ///< barrier: how many meet
  std::vector<int> waits = {};       ///< acquire, release
  Region region = {}, operand = {};  ///< copy, add
};

struct LaidOut {
  std::vector<Message> messages;
  std::vector<PlanWait> waits;
  std::vector<std::vector<std::vector<PlanOp>>> blocks;  ///< [rank][thread block][operation]
};

/// Throws what refuse_plan() throws if a thread block cannot hold a step, or the GPU has not enough barriers. Requires
/// a proved schedule whose actors are ranks, without compute.
LaidOut lay_out(const StoredSchedule& stored);

/// Throws InputError (empty `where`): why MSCCL++ cannot hold the schedule.
[[noreturn]] void refuse_plan(const StoredSchedule& stored, const std::string& what, const std::string& hint = "");

}  // namespace ringsim::mscclpp
