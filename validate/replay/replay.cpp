#include "validate/replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/base/error.hpp"
#include "validate/replay/actor_run.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::replay {

void require_replayable(const CheckedSchedule& checked) {
  const Schedule& schedule = checked.schedule();
  const int slots = checked.proof().slots_needed;
  if (!schedule.names_regions)
    throw InputError("", "expected a schedule with regions, found one with sizes only",
                     "GOAL has no regions, so results cannot be checked");
  if (slots > 0)
    throw InputError("",
                     fmt::format("expected a schedule in which no rank sends before the receiver is ready, found one "
                                 "that needs {} per connection",
                                 slots == Proof::any_number ? "any number of slots" : fmt::format("{} slots", slots)),
                     "a replay has no slots");
  if (schedule.collective.ranks > 1 << 24)
    throw InputError("", fmt::format("expected at most 2^24 ranks, found {}", schedule.collective.ranks),
                     "float32 sums are exact only up to that number");
  for (std::size_t b = 0; b < n_buffers; ++b) {
    const Layout& layout = schedule.layout[b];
    for (int chunk = 0; chunk < layout.n_chunks(); ++chunk) {
      const auto c = static_cast<std::uint32_t>(chunk);
      if (layout.size(c, 1).count % element_bytes == 0) continue;
      throw InputError("",
                       fmt::format("expected chunks of whole elements of {} bytes, found {} of {} bytes", element_bytes,
                                   to_string(Region{static_cast<Buffer>(b), c, 1}), layout.size(c, 1).count));
    }
  }
}

namespace {

/// When an actor was through with the iterations of a program.
class IterationTimes {
 public:
  IterationTimes(const ReplayProgram& program, const Exchange& exchange, ProgramData& data)
      : warmup_(program.warmup), ends_(static_cast<std::size_t>(program.lowered->program().iterations)) {
    ensure(warmup_ < static_cast<int>(ends_.size()), "an iteration counts");
    data.on_iteration = [this, &exchange](int iteration) {
      ends_[static_cast<std::size_t>(iteration)] = exchange.now();
    };
  }
  /// The mean of those that count, in a run that is over.
  std::chrono::nanoseconds mean(Moment begin) const {
    const Moment first = warmup_ == 0 ? begin : ends_[static_cast<std::size_t>(warmup_) - 1];
    return (ends_.back() - first) / (static_cast<int>(ends_.size()) - warmup_);
  }

 private:
  int warmup_;
  std::vector<Moment> ends_;
};

/// One actor's memory, in a collective or in a program.
struct Part {
  Part(const Schedule& schedule, Actor actor, const Exchange& exchange, const ReplayProgram* program)
      : memory(schedule, actor) {
    if (program == nullptr) return;
    data.emplace(*program->lowered, actor, memory);
    iterations.emplace(*program, exchange, *data);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  void fill() {
    if (data)
      data->fill();
    else
      memory.fill();
  }
  void check(ActorRecord& record) {
    ProgramVerdict verdict;
    if (data) {
      verdict = data->check();
    } else {
      const Verdict of = memory.check();
      verdict = {of.checked, of.wrong, of.first ? to_string(*of.first) : ""};
    }
    record.checked = record.checked.value_or(0) + verdict.checked;
    record.wrong += verdict.wrong;
    if (record.first_wrong.empty()) record.first_wrong = verdict.first;
  }

  ActorMemory memory;
  std::optional<ProgramData> data;
  std::optional<IterationTimes> iterations;
};

}  // namespace

ActorRecord replay_actor(const Schedule& schedule, Actor actor, Exchange& exchange, const Repeats& repeats,
                         const ReplayProgram* program) {
  ensure(repeats.timed >= 1 && repeats.warmups >= 0, "a replay has a run at least");
  Part part(schedule, actor, exchange, program);
  ActorRun run(schedule, actor, part.memory, exchange, part.data ? &*part.data : nullptr);
  ActorRecord record;
  std::vector<Ticket> done;
  for (int i = 0; i < repeats.warmups + repeats.timed; ++i) {
    part.fill();
    const Moment begin = exchange.barrier();
    run.start();
    const auto in_run = [&](const EnvironmentError& error) {
      return fmt::format("{} (in run {} of {}; still pending: {})", error.what(), i + 1,
                         repeats.warmups + repeats.timed, run.open());
    };
    while (!run.finished()) {
      done.clear();
      try {
        exchange.wait_some(done);
      } catch (const PeerLost& error) {  // each stays what it is: who leads tells causes from consequences
        throw PeerLost(in_run(error));
      } catch (const Late& error) {
        throw Late(in_run(error));
      } catch (const EnvironmentError& error) {
        throw EnvironmentError(in_run(error));
      }
      for (const Ticket ticket : done) run.done(ticket);
    }
    const Moment end = exchange.now();
    if (i >= repeats.warmups) record.times.push_back(part.iterations ? part.iterations->mean(begin) : end - begin);
    part.check(record);
  }
  return record;
}

Measured combine(const std::vector<ActorRecord>& records) {
  ensure(!records.empty() && !records.front().times.empty(), "a replay has an actor and a run at least");
  Measured all;
  std::vector<std::chrono::nanoseconds> slowest(records.front().times.size(), std::chrono::nanoseconds::min());
  for (const ActorRecord& record : records) {
    ensure(record.times.size() == slowest.size(), "all actors have done all runs");
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], record.times[i]);
    if (record.checked) all.checked = all.checked.value_or(0) + *record.checked;
    all.wrong += record.wrong;
    if (all.first_wrong.empty()) all.first_wrong = record.first_wrong;
  }
  std::sort(slowest.begin(), slowest.end());
  const std::size_t n = slowest.size();
  all.min = slowest.front();
  all.max = slowest.back();
  all.median = (Picoseconds(slowest[(n - 1) / 2]) + Picoseconds(slowest[n / 2])) / 2;
  return all;
}

}  // namespace ringsim::replay
