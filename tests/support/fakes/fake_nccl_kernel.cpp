#include "tests/support/fakes/fake_nccl_kernel.hpp"

#include <fmt/format.h>

namespace ringsim::test {

using Time = std::chrono::nanoseconds;

std::shared_ptr<FakeKernel> NcclKernel::issue() const {
  const std::lock_guard lock(world_->mutex);
  auto run = std::make_shared<NcclKernel>(*this);
  if (process_->aborted) return run;
  line().kernels.push_back(run.get());
  ++line().communicator->at_work;
  return run;
}

bool NcclKernel::may_start() const {
  const std::lock_guard lock(world_->mutex);
  return process_->aborted || line().kernels.front() == this;
}

void NcclKernel::start(Time now) {
  const std::lock_guard lock(world_->mutex);
  finish_ = now;
  if (process_->aborted) return;
  for (NcclPart& part : parts_) part.what == NcclPart::What::collective ? enter(part, now) : post(part, now);
}

bool NcclKernel::go_on(std::mt19937_64& random) {
  const std::lock_guard lock(world_->mutex);
  std::vector<NcclPart*> may;
  for (NcclPart& part : parts_)
    if (may_go_on(part)) may.push_back(&part);
  if (may.empty()) return false;
  go_on(*may[random() % may.size()]);
  if (std::all_of(parts_.begin(), parts_.end(), [](const NcclPart& part) { return part.done; })) {
    line().kernels.pop_front();
    --line().communicator->at_work;
    done_ = true;
  }
  return true;
}

bool NcclKernel::is_done() const {
  const std::lock_guard lock(world_->mutex);
  return done_ || process_->aborted;
}

void NcclKernel::post(NcclPart& part, Time now) {
  const NcclConnection connection = part.connection();
  NcclWire& wire = line().communicator->wires[{std::get<0>(connection), std::get<1>(connection)}];
  const bool is_send = part.what == NcclPart::What::send;
  part.message = wire.next(is_send);
  NcclMessage& message = *part.message;
  (is_send ? message.sent : message.received) = is_send ? part.from.count : part.to.count;
  message.since = std::max(message.since, now);
  if (message.sent && message.received && *message.sent != *message.received)
    world_->broken = fmt::format("a message of {} elements met a receive of {}", *message.sent, *message.received);
}

void NcclKernel::enter(NcclPart& part, Time now) {
  NcclCommunicator& all = *line().communicator;
  auto& round = all.rounds[all.rounds_of[line().rank]++];
  if (!round) {
    round = std::make_shared<NcclRound>();
    round->op = part.op;
    round->root = part.peer;
    round->from.resize(static_cast<std::size_t>(all.size));
  }
  if (round->op != part.op || round->root != part.peer) world_->broken = "a collective met another";
  part.round = round;
  ++round->running;
  round->since = std::max(round->since, now);
}

bool NcclKernel::may_go_on(const NcclPart& part) const {
  if (part.done || !world_->broken.empty()) return false;
  if (part.what == NcclPart::What::collective)
    return part.given ? part.round->given == line().communicator->size
                      : part.round->running == line().communicator->size;
  if (part.what == NcclPart::What::send) return part.from.count == 0 || part.message->received.has_value();
  return part.to.count == 0 || part.message->taken;  // of nothing, NCCL's LL protocol waits for nothing
}

void NcclKernel::go_on(NcclPart& part) {
  const auto takes = [&](Time since, const Memory& memory) {
    const double bytes = static_cast<double>(memory.count) * sizeof(float);
    finish_ = std::max(finish_, since + costs_.kernel + Time(static_cast<std::int64_t>(bytes / costs_.peer)));
  };
  const auto copied = [](const Memory& memory) { return std::vector<float>(memory.data, memory.data + memory.count); };
  part.done = true;
  if (part.what == NcclPart::What::send) {
    part.message->data = copied(part.from);
    part.message->taken = true;
    takes(part.message->since, part.from);
  } else if (part.what == NcclPart::What::receive) {
    std::copy(part.message->data.begin(), part.message->data.end(), part.to.data);
    takes(part.message->since, part.to);
  } else if (!part.given) {
    part.given = true;
    part.done = false;
    part.round->from[static_cast<std::size_t>(line().rank)] = copied(part.from);
    ++part.round->given;
  } else {
    result(part);
    takes(part.round->since, part.to);
  }
}

void NcclKernel::result(const NcclPart& part) const {
  const auto& from = part.round->from;
  const auto rank = static_cast<std::size_t>(line().rank), root = static_cast<std::size_t>(part.peer);
  const auto count = static_cast<std::size_t>(part.to.count);
  if (part.op == CollectiveOp::reduce && rank != root) return;
  for (std::size_t i = 0; i < count; ++i) {
    float& to = part.to.data[i];
    if (part.op == CollectiveOp::broadcast) {
      to = from[root][i];
    } else if (part.op == CollectiveOp::all_gather) {
      const std::size_t block = count / from.size();
      to = from[i / block][i % block];
    } else {
      const std::size_t first = part.op == CollectiveOp::reduce_scatter ? rank * count : 0;
      to = 0;
      for (const auto& one : from) to += one[first + i];
    }
  }
}

}  // namespace ringsim::test
