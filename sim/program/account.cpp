#include "sim/program/account.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

using StreamKind = Program::StreamKind;

namespace {

constexpr std::array parts_of_time{&TimeSplit::compute,
                                   &TimeSplit::waiting_for_others,
                                   &TimeSplit::exposed_communication,
                                   &TimeSplit::waiting_for_host,
                                   &TimeSplit::idle,
                                   &TimeSplit::overlapped};

}  // namespace

TimeSplit& TimeSplit::operator+=(const TimeSplit& other) {
  for (Picoseconds TimeSplit::*part : parts_of_time) this->*part = add(this->*part, other.*part);
  return *this;
}

TimeSplit TimeSplit::operator/(std::int64_t n) const {
  TimeSplit mean;
  for (Picoseconds TimeSplit::*part : parts_of_time) mean.*part = this->*part / n;
  return mean;
}

bool ends_iteration(const Program& program, int warmup, Stream stream) {
  return warmup == 0 || !program.overlaps_next || stream == 0;
}

int n_ending_tasks(const Program& program, int warmup, Actor actor) {
  const Program::Role& role = program.role(actor);
  std::size_t n = 0;
  for (std::size_t s = 0; s < role.streams.size(); ++s)
    if (ends_iteration(program, warmup, static_cast<Stream>(s))) n += role.streams[s].size();
  return static_cast<int>(n);
}

Accounts::Accounts(const LoweredProgram& lowered, int warmup, SimTime start)
    : lowered_(lowered),
      warmup_(warmup),
      actors_(static_cast<std::size_t>(lowered.program().actors)),
      stands_for_(static_cast<std::size_t>(lowered.program().actors)),
      launches_(lowered.program().calls.size()),
      first_(lowered.program().calls.size()) {
  ensure(warmup >= 0 && warmup < lowered.program().iterations, "some iterations come after the warm-up");
  for (Actor actor = 0; actor < lowered.program().actors; ++actor)
    ++stands_for_[static_cast<std::size_t>(lowered.stand_in(actor))];
  for (Of& it : actors_) {
    it.begun.resize(lowered.program().streams.size());
    it.since = it.ended = start;
  }
}

Accounts::Launches& Accounts::launches_of(int call, int iteration) {
  auto& known = launches_[static_cast<std::size_t>(call)];
  const auto at = static_cast<std::size_t>(iteration - first_[static_cast<std::size_t>(call)]);
  while (known.size() <= at) known.push_back({});
  return known[at];
}

// What the actor has been doing since its last event.
void Accounts::pass(Of& it, SimTime now) {
  const SimTime since = std::exchange(it.since, now);
  const Picoseconds time = now - since;
  if (time.count() == 0) return;
  if (it.computing > 0) {
    it.split.compute += time;
    if (!it.open.empty()) it.split.overlapped += time;
    return;
  }
  if (it.open.empty()) {
    (it.hosting > 0 ? it.split.waiting_for_host : it.split.idle) += time;
    return;
  }
  // The first of the open calls that all have launched ends the wait for others.
  SimTime all = now;
  for (const Open& open : it.open) {
    const Launches& launches = launches_of(open.call, open.iteration);
    const Program::Call& call = lowered_.program().calls[static_cast<std::size_t>(open.call)];
    if (launches.launched == call.schedule.schedule().actors) all = std::min(all, launches.all);
  }
  const SimTime split = std::max(since, all);
  it.split.waiting_for_others += split - since;
  it.split.exposed_communication += now - split;
}

void Accounts::begin_task(Of& it, const StepPlace& place, const Program::Task& task, SimTime now) {
  it.begun[static_cast<std::size_t>(place.stream)] = now;
  if (task.call >= 0) {
    it.open.push_back({task.call, place.iteration});
    return;
  }
  const StreamKind kind = lowered_.program().streams[static_cast<std::size_t>(place.stream)];
  if (kind == StreamKind::compute) ++it.computing;
}

// A thread of the process that begins or ends a task is one that all of its actors wait for.
void Accounts::count_host(Actor actor, int change, SimTime now) {
  const auto count = [&](Actor each) {
    Of& it = actors_[static_cast<std::size_t>(each)];
    pass(it, now);
    it.hosting += change;
  };
  const Program& program = lowered_.program();
  if (program.process_of.empty()) return count(actor);
  for (Actor each = 0; each < program.actors; ++each)
    if (program.process(each) == program.process(actor)) count(each);
}

void Accounts::end_task(Of& it, const StepPlace& place, const Program::Task& task, Actor actor, SimTime now) {
  if (task.call >= 0) {
    const auto call = static_cast<std::size_t>(task.call);
    std::erase_if(it.open,
                  [&](const Open& open) { return open.call == task.call && open.iteration == place.iteration; });
    launches_of(task.call, place.iteration).ended += stands_for_[static_cast<std::size_t>(actor)];
    const int members = lowered_.program().calls[call].schedule.schedule().actors;
    while (!launches_[call].empty() && launches_[call].front().ended == members) {
      launches_[call].pop_front();
      ++first_[call];
    }
  } else {
    const StreamKind kind = lowered_.program().streams[static_cast<std::size_t>(place.stream)];
    if (kind == StreamKind::compute) --it.computing;
  }
  if (on_task) on_task({actor, place, it.begun[static_cast<std::size_t>(place.stream)], now});
  if (!ends_iteration(lowered_.program(), warmup_, place.stream)) return;
  const auto at = static_cast<std::size_t>(place.iteration - it.iteration);
  while (it.left.size() <= at) it.left.push_back(n_ending_tasks(lowered_.program(), warmup_, actor));
  --it.left[at];
  while (!it.left.empty() && it.left.front() == 0) {
    it.left.pop_front();
    const Picoseconds time = now - it.ended;
    RankAccount& account = it.account;
    if (it.iteration == 0) account.first_end = now;
    if (it.iteration >= warmup_) {
      account.shortest = it.iteration == warmup_ ? time : std::min(account.shortest, time);
      account.longest = std::max(account.longest, time);
      account.before_last = std::exchange(account.last, time);
      ensure(it.split.total() == time, "the parts of an iteration add up to its time");
      account.split += it.split;
    }
    it.split = {};
    it.ended = account.end = now;
    ++it.iteration;
  }
}

void Accounts::on_compute(const ComputeEvent& event) {
  Of& it = actors_[static_cast<std::size_t>(event.actor)];
  const StepPlace place = lowered_.place_of(event.actor, event.lane, event.step);
  const Program::Task& task = lowered_.task_of(event.actor, place);
  pass(it, event.when);
  const bool is_host = lowered_.program().streams[static_cast<std::size_t>(place.stream)] == StreamKind::host;
  if (is_host && task.call < 0) count_host(event.actor, event.begins ? 1 : -1, event.when);
  if (event.begins) {
    if (place.first) begin_task(it, place, task, event.when);
    return;
  }
  if (task.call >= 0 && place.first) {
    Launches& launches = launches_of(task.call, place.iteration);
    launches.launched += stands_for_[static_cast<std::size_t>(event.actor)];
    launches.all = event.when;
  }
  if (place.last) end_task(it, place, task, event.actor, event.when);
}

const RankAccount& Accounts::of(Actor actor) const {
  const Of& it = actors_[static_cast<std::size_t>(lowered_.stand_in(actor))];
  ensure(it.iteration == lowered_.program().iterations, "every iteration has ended");
  return it.account;
}

std::vector<RankAccount> Accounts::ranks() const {
  std::vector<RankAccount> ranks;
  for (Actor rank = 0; rank < lowered_.program().ranks; ++rank) ranks.push_back(of(rank));
  return ranks;
}

}  // namespace ringsim
