#include "sim/program/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/setting_error.hpp"
#include "sim/program/call_kinds.hpp"

namespace ringsim {

/// What the steps of a program are worked out from.
struct LoweredProgram::Parts {
  /// Before which step of an iteration each task of a lane begins: [task], and one more for all.
  struct Table {
    std::vector<int> first;
    int width = 0;  // of every task, if all have the same; else 0
  };

  /// Which actor of a call's schedule an actor is.
  struct Members {
    struct Range {  // actors first, first + 1, ... have the numbers number, number + 1, ...
      Actor first = 0, number = 0;
      int n = 0;
    };
    std::vector<Range> ranges;  // in order of actors; empty: all have the same numbers in both
  };

  static Members members_of(const Program::Call& call) {
    std::vector<std::pair<Actor, Actor>> sorted;
    for (std::size_t i = 0; i < call.members.size(); ++i) sorted.emplace_back(call.members[i], static_cast<Actor>(i));
    std::sort(sorted.begin(), sorted.end());
    Members found;
    for (const auto& [actor, number] : sorted) {
      if (!found.ranges.empty()) {
        Members::Range& last = found.ranges.back();
        if (last.first + last.n == actor && last.number + last.n == number) {
          ++last.n;
          continue;
        }
      }
      found.ranges.push_back({.first = actor, .number = number, .n = 1});
    }
    return found;
  }

  explicit Parts(std::shared_ptr<const Program> given, int room = all_channels, WatchedWork* work = nullptr,
                 KnownCourses known = {})
      : owned(std::move(given)), program(*owned), known_courses(std::move(known)) {
    lay_out_lanes(room);
    lay_out_chunks();
    for (const Program::Call& call : program.calls) {
      done(work, static_cast<std::int64_t>(call.members.size()));
      members.push_back(members_of(call));
    }
    find_tables(work);
    for (Table& table : tables) {
      const auto n = table.first.size() - 1;
      bool is_even = n > 0;
      for (std::size_t i = 1; i <= n; ++i) is_even = is_even && table.first[i] == static_cast<int>(i) * table.first[1];
      if (is_even) table.width = table.first[1];
    }
  }

  /// [role * streams + stream] calls of each kind that have steps of their own.
  std::vector<std::vector<int>> calls_with_steps() const {
    const std::vector<int> kinds = kinds_of_calls(program);
    std::vector<std::vector<int>> found;
    for (const Program::Role& role : program.roles)
      for (const std::vector<Program::Task>& stream : role.streams) {
        std::vector<int>& calls = found.emplace_back();
        for (const Program::Task& task : stream)
          if (task.call >= 0 && !is_known(task.call)) calls.push_back(kinds[static_cast<std::size_t>(task.call)]);
        std::sort(calls.begin(), calls.end());
        calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
      }
    return found;
  }

  void find_tables(WatchedWork* work) {
    std::map<std::vector<int>, std::uint32_t> known;
    std::map<std::vector<int>, std::uint32_t> like;  // by what a lane of an actor is worked out from
    const std::vector<std::vector<int>> calls = calls_with_steps();
    for (Actor actor = 0; actor < program.actors; ++actor)
      for (Lane lane = 0; lane < lanes; ++lane) {
        done(work);
        const auto role = static_cast<std::size_t>(program.role_number(actor));
        const auto stream = static_cast<std::size_t>(stream_of[static_cast<std::size_t>(lane)]);
        std::vector<int> from{static_cast<int>(role), lane, is_stood_for(actor) ? 1 : 0};
        if (!is_stood_for(actor) || !known_courses.have_no_steps)
          for (const int call : calls[role * program.streams.size() + stream])
            from.push_back(steps_of_call(call, actor, lane - base[stream]));
        const auto [table, is_new] = like.try_emplace(std::move(from), 0);
        if (is_new) {
          std::vector<int> first = steps_of(actor, lane);
          done(work, static_cast<std::int64_t>(first.size()));
          const auto [entry, is_first] = known.try_emplace(first, static_cast<std::uint32_t>(tables.size()));
          if (is_first) tables.push_back({std::move(first), 0});
          table->second = entry->second;
        }
        table_of.push_back(table->second);
      }
  }
  /// Counts the steps of that lane in the called schedule.
  int steps_of_call(int call, Actor actor, Lane own) const {
    const Schedule& called = program.calls[static_cast<std::size_t>(call)].schedule.schedule();
    return own < called.lanes ? called.n_steps(member(call, actor), own) : 0;
  }

  void lay_out_lanes(int room) {
    std::vector<int> widths(program.streams.size(), 1);
    std::map<std::pair<Stream, int>, int> pairs;  // of streams and plans: in this order, their channels
    for (const Program::Role& role : program.roles)
      for (std::size_t s = 0; s < widths.size(); ++s)
        for (const Program::Task& task : role.streams[s]) {
          if (task.call < 0) continue;
          if (!is_known(task.call)) widths[s] = std::max(widths[s], call_of(task).schedule.schedule().lanes);
          pairs.emplace(std::pair{static_cast<Stream>(s), call_of(task).plan}, 0);
        }
    channels = channels_apart(std::max(1, static_cast<int>(pairs.size())), room);
    first_channel.resize(widths.size());
    for (auto& [pair, first] : pairs) {
      first = static_cast<int>(plan_of.size()) * channels;
      plan_of.push_back(pair.second);
      first_channel[static_cast<std::size_t>(pair.first)].emplace_back(pair.second, first);
    }
    for (std::size_t s = 0; s < widths.size(); ++s) {
      base.push_back(lanes);
      for (int i = 0; i < widths[s]; ++i) stream_of.push_back(static_cast<Stream>(s));
      lanes += widths[s];
    }
  }

  void lay_out_chunks() {
    std::array<std::vector<Bytes>, n_buffers> chunks;
    for (const Program::Call& call : program.calls) {
      first_chunk.emplace_back();
      for (std::size_t b = 0; b < n_buffers; ++b) {
        const Layout& one = call.schedule.schedule().layout[b];
        first_chunk.back()[b] = static_cast<std::uint32_t>(chunks[b].size());
        for (int c = 0; c < one.n_chunks(); ++c) chunks[b].push_back(one.size(static_cast<std::uint32_t>(c), 1));
      }
    }
    for (std::size_t b = 0; b < n_buffers; ++b) layout[b] = Layout::of_sizes(chunks[b]);
  }

  bool is_known(int call) const {
    return !known_courses.calls.empty() && known_courses.calls[static_cast<std::size_t>(call)];
  }
  /// The actor that does its tasks for it; itself if no other.
  Actor stand_in(Actor actor) const {
    return known_courses.stand_ins.empty() ? actor : known_courses.stand_ins[static_cast<std::size_t>(actor)];
  }
  bool is_stood_for(Actor actor) const { return stand_in(actor) != actor; }
  const Program::Call& call_of(const Program::Task& task) const {
    return program.calls[static_cast<std::size_t>(task.call)];
  }
  Actor member(int call, Actor actor) const {
    const std::vector<Members::Range>& ranges = members[static_cast<std::size_t>(call)].ranges;
    if (ranges.empty()) return actor;
    const auto next = std::upper_bound(ranges.begin(), ranges.end(), actor,
                                       [](Actor a, const Members::Range& range) { return a < range.first; });
    ensure(next != ranges.begin(), "who calls is a member");
    const Members::Range& its = *(next - 1);
    ensure(actor < its.first + its.n, "who calls is a member");
    return its.number + (actor - its.first);
  }
  const std::vector<Program::Task>& tasks(Actor actor, Stream stream) const {
    return program.role(actor).streams[static_cast<std::size_t>(stream)];
  }
  const Table& table(Actor actor, Lane lane) const {
    return tables[table_of[static_cast<std::size_t>(actor) * static_cast<std::size_t>(lanes) +
                           static_cast<std::size_t>(lane)]];
  }

  std::vector<int> steps_of(Actor actor, Lane lane) const {
    const Stream stream = stream_of[static_cast<std::size_t>(lane)];
    const Lane own = lane - base[static_cast<std::size_t>(stream)];
    std::vector<int> first{0};
    const bool is_idle = is_stood_for(actor);
    for (const Program::Task& task : tasks(actor, stream)) {
      if (is_idle && (known_courses.have_no_steps || task.call < 0 || is_known(task.call))) {
        first.push_back(first.back());
        continue;
      }
      std::int64_t steps = own == 0 ? 1 : 0;
      if (task.call >= 0) {
        steps = own == 0 ? 2 : 0;  // it launches, and joins
        if (!is_known(task.call)) steps += steps_of_call(task.call, actor, own);
      }
      if ((first.back() + steps) * program.iterations > INT_MAX)
        throw InputError(
            "",
            fmt::format("program {}: {} iterations have more than 2^31 - 1 steps", program.name, program.iterations),
            "use fewer iterations");
      first.push_back(first.back() + static_cast<int>(steps));
    }
    return first;
  }

  /// The iteration and task of a step, and the step within the task.
  struct Found {
    int iteration = 0, task = 0, step = 0;
  };
  static Found find(const Table& table, int step) {
    const auto n = static_cast<unsigned>(table.first.back());  // unsigned divisions are faster
    const unsigned iteration = static_cast<unsigned>(step) / n, rest = static_cast<unsigned>(step) % n;
    if (table.width > 0) {
      const auto width = static_cast<unsigned>(table.width);
      return {static_cast<int>(iteration), static_cast<int>(rest / width), static_cast<int>(rest % width)};
    }
    const auto next = std::upper_bound(table.first.begin(), table.first.end(), static_cast<int>(rest));
    const auto task = static_cast<int>(next - table.first.begin()) - 1;
    return {static_cast<int>(iteration), task, static_cast<int>(rest) - *(next - 1)};
  }
  /// How many steps a lane has done when the first `n_tasks` tasks of the iteration are.
  int steps_after(Actor actor, Lane lane, int iteration, int n_tasks) const {
    const Table& its = table(actor, lane);
    return iteration * its.first.back() + its.first[static_cast<std::size_t>(n_tasks)];
  }

  void wait_for_others(Actor actor, const Program::Task& task, int iteration, Step& out) const {
    for (const Program::After& after : task.after) {
      if (after.tasks == 0 || iteration < after.back) continue;
      const Lane lane = base[static_cast<std::size_t>(after.stream)];
      const Actor other = after.actor < 0 ? actor : after.actor;
      out.wait(lane, steps_after(other, lane, iteration - after.back, after.tasks), after.actor);
    }
  }

  void step(Actor actor, Lane lane, int i, Step& out) const {
    const Found found = find(table(actor, lane), i);
    const Stream stream = stream_of[static_cast<std::size_t>(lane)];
    const Lane first = base[static_cast<std::size_t>(stream)];
    const Program::Task& task = tasks(actor, stream)[static_cast<std::size_t>(found.task)];
    if (lane != first) {
      called_step(actor, lane, found, task, found.step, out);  // which expects `out` to be empty
      if (found.step == 0) out.wait(first, steps_after(actor, first, found.iteration, found.task) + 1);
      return;
    }
    if (found.step == 0 && is_stood_for(actor)) {  // it launches when its stand-in has
      const Actor other = stand_in(actor);
      out.wait(lane, steps_after(other, lane, found.iteration, found.task) + 1, other);
      return out.compute(Picoseconds{0});
    }
    if (found.step == 0) {
      wait_for_others(actor, task, found.iteration, out);
      out.compute(program.time ? program.time(actor, stream, found.task, found.iteration) : task.time, task.unit);
      return;
    }
    if (is_known(task.call)) return out.compute(until_told);
    const std::vector<int>& firsts = table(actor, lane).first;
    const auto t = static_cast<std::size_t>(found.task);
    if (firsts[t] + found.step + 1 < firsts[t + 1]) return called_step(actor, lane, found, task, found.step - 1, out);
    for (Lane other = first + 1; other < first + call_of(task).schedule.schedule().lanes; ++other)
      out.wait(other, steps_after(actor, other, found.iteration, found.task + 1));
    out.compute(Picoseconds{0});
  }

  int first_channel_of(std::size_t stream, int plan) const {
    const auto& all = first_channel[stream];
    if (all.size() == 1) return all.front().second;
    return std::lower_bound(all.begin(), all.end(), std::pair{plan, 0})->second;
  }

  void called_step(Actor actor, Lane lane, const Found& found, const Program::Task& task, int i, Step& out) const {
    const auto stream = static_cast<std::size_t>(stream_of[static_cast<std::size_t>(lane)]);
    const std::size_t n_waits = out.waits.size();
    take_step(call_of(task), member(task.call, actor), lane - base[stream], i,
              first_channel_of(stream, call_of(task).plan), out);
    for (std::size_t w = n_waits; w < out.waits.size(); ++w) {
      Wait& wait = out.waits[w];
      wait.lane += base[stream];
      wait.steps += steps_after(actor, wait.lane, found.iteration, found.task);
    }
    const auto& chunk_of = first_chunk[static_cast<std::size_t>(task.call)];
    for (Op& op : out.ops) {
      op.region.first += chunk_of[static_cast<std::size_t>(op.region.buffer)];
      if (op.operand.count > 0) op.operand.first += chunk_of[static_cast<std::size_t>(op.operand.buffer)];
    }
  }
  /// A step of what a member calls, on its channels of the program and to actors of it. On the first lane the launch
  /// comes before. Lanes and regions are the call's own.
  void take_step(const Program::Call& call, Actor number, Lane lane, int i, int first, Step& out) const {
    const std::size_t n_waits = out.waits.size();
    call.schedule.schedule().step(number, lane, i, out);
    for (std::size_t w = n_waits; w < out.waits.size(); ++w)
      if (out.waits[w].lane == 0) ++out.waits[w].steps;
    for (Op& op : out.ops) {
      if (op.peer < 0) continue;
      if (!call.members.empty()) op.peer = call.members[static_cast<std::size_t>(op.peer)];
      if (op.channel >= channels) too_many_channels(op.channel, channels);
      op.channel = static_cast<std::uint16_t>(op.channel + first);
    }
  }

  /// A call by itself, as LoweredProgram::alone() has it.
  Schedule alone(int index, Stream stream, const std::shared_ptr<const Parts>& self, std::vector<Picoseconds> arrivals,
                 const std::vector<bool>& lanes_with_steps) const {
    const Program::Call& call = program.calls[static_cast<std::size_t>(index)];
    const Schedule& called = call.schedule.schedule();
    ensure(arrivals.size() == static_cast<std::size_t>(called.actors), "each member arrives");
    Schedule one{.algorithm = called.algorithm, .collective = called.collective, .actors = program.actors};
    one.lanes = called.lanes;
    one.layout = called.layout;
    one.names_regions = called.names_regions;
    std::vector<Actor> numbers(static_cast<std::size_t>(program.actors), -1);
    for (Actor number = 0; number < called.actors; ++number)
      numbers[static_cast<std::size_t>(call.member(number))] = number;
    for (Actor actor = 0; known_courses.have_no_steps && actor < program.actors; ++actor)
      if (is_stood_for(actor)) numbers[static_cast<std::size_t>(actor)] = -1;
    const auto has_steps = [has = lanes_with_steps](Lane lane) {
      return has.empty() || has[static_cast<std::size_t>(lane)];
    };
    ensure(has_steps(0), "a call begins and ends on its first lane");
    one.n_steps = [&called, numbers, has_steps](Actor actor, Lane lane) {
      const Actor number = numbers[static_cast<std::size_t>(actor)];
      return number < 0 || !has_steps(lane) ? 0 : called.n_steps(number, lane) + (lane == 0 ? 2 : 0);
    };
    const int first = first_channel_of(static_cast<std::size_t>(stream), call.plan);
    one.step = [self, &call, &called, numbers, first, has_steps, times = std::move(arrivals)](Actor actor, Lane lane,
                                                                                              int i, Step& out) {
      const Actor number = numbers[static_cast<std::size_t>(actor)];
      if (lane != 0) {
        self->take_step(call, number, lane, i, first, out);
        if (i == 0) out.wait(0, 1);
      } else if (i == 0) {
        out.compute(times[static_cast<std::size_t>(number)]);
      } else if (i <= called.n_steps(number, 0)) {
        self->take_step(call, number, 0, i - 1, first, out);
      } else {
        for (Lane other = 1; other < called.lanes; ++other)
          if (has_steps(other)) out.wait(other, called.n_steps(number, other));
        out.compute(Picoseconds{0});
      }
    };
    return one;
  }

  std::shared_ptr<const Program> owned;
  const Program& program;
  KnownCourses known_courses;
  Lane lanes = 0;
  int channels = all_channels;                                    // of each pair of a stream and a plan
  std::vector<Lane> base;                                         // [stream] its first lane
  std::vector<Stream> stream_of;                                  // [lane]
  std::vector<int> plan_of;                                       // [channel / channels]
  std::vector<std::vector<std::pair<int, int>>> first_channel;    // [stream] of its plans, in order: plan, channel
  std::vector<std::array<std::uint32_t, n_buffers>> first_chunk;  // [call][buffer]
  std::array<Layout, n_buffers> layout;
  std::vector<Members> members;  // [call]
  std::vector<Table> tables;
  std::vector<std::uint32_t> table_of;  // [actor * lanes + lane]
};

Schedule LoweredProgram::make(std::shared_ptr<const Parts> parts) {
  const Program& program = parts->program;
  Schedule whole{.algorithm = program.name, .collective = {.ranks = program.ranks}, .actors = program.actors};
  whole.lanes = parts->lanes;
  whole.layout = parts->layout;
  for (const Program::Call& call : program.calls) {
    whole.collective.bytes += call.schedule.schedule().collective.bytes;
    whole.names_regions = whole.names_regions && call.schedule.schedule().names_regions;
  }
  if (!program.process_of.empty()) whole.process = [parts](Actor actor) { return parts->program.process(actor); };
  whole.n_steps = [parts](Actor actor, Lane lane) {
    return parts->program.iterations * parts->table(actor, lane).first.back();
  };
  whole.step = [parts = std::move(parts)](Actor actor, Lane lane, int i, Step& out) {
    parts->step(actor, lane, i, out);
  };
  return whole;
}

int channels_apart(int n, int room) {
  const int most = room / n;
  for (const int multiple : {10'080, 2'520, 96, 32, 8})
    if (n > 1 && most >= multiple) return most - most % multiple;
  return most;
}

void too_many_channels(int channel, int most) {
  throw SettingError(
      SettingError::Setting::scale,
      fmt::format("expected at most {} channels of each of the calls that may run at the same time, found {}", most,
                  channel + 1),
      "use fewer jobs or fewer transport.channels");
}

Schedule lowered(const Program& program) {
  return LoweredProgram::make(std::make_shared<const LoweredProgram::Parts>(std::make_shared<const Program>(program)));
}

namespace {

/// Why a call is not the same for all actors; empty: it is.
std::string why_unlike(const Program& program, const Program::Call& call, const Symmetry& symmetry) {
  const Schedule& called = call.schedule.schedule();
  const Symmetry& its = call.schedule.proof().symmetry;
  if (!call.members.empty() || called.actors != program.actors) return call.name + " is among some of the ranks";
  if (!its.claimed()) return fmt::format("{}: no symmetry of {} was proved", call.name, called.algorithm);
  if (its.radices() != symmetry.radices()) return call.name + " has another symmetry than the first call";
  for (const Layout& layout : called.layout)
    if (!layout.uniform())
      return fmt::format("{}: {} bytes in {} chunks are not equal chunks", call.name, layout.total().count,
                         layout.n_chunks());
  return "";
}

bool shares_units(const Program& program) {
  for (const Program::Role& role : program.roles)
    for (const std::vector<Program::Task>& tasks : role.streams)
      if (std::any_of(tasks.begin(), tasks.end(), [](const Program::Task& task) { return task.unit >= 0; }))
        return true;
  return false;
}

/// That step(g + a) = g + step(a) for all actors, in each lane, but for the numbers of chunks: they have the same tasks
/// and times, and what they call has this symmetry.
void prove_symmetry(const Program& program, Proof& proof) {
  Proof::Repeated& repeated = proof.repeated;
  const std::vector<int>& roles = program.role_of;
  if (std::any_of(roles.begin(), roles.end(), [&](int role) { return role != roles.front(); }))
    repeated.why_no_symmetry = "not all take part in the same tasks";
  else if (program.time)
    repeated.why_no_symmetry = "tasks take a time of their own at each rank";
  else if (shares_units(program))
    repeated.why_no_symmetry = "tasks of several ranks share a unit";
  else if (!program.process_of.empty())
    repeated.why_no_symmetry = "ranks of one process may wait for each other";
  else if (program.calls.empty())
    repeated.why_no_symmetry = "nothing is exchanged";
  if (!repeated.why_no_symmetry.empty()) return;
  const Symmetry& symmetry = program.calls.front().schedule.proof().symmetry;
  repeated.at_every_rank = true;
  for (const Program::Call& call : program.calls) {
    repeated.why_no_symmetry = why_unlike(program, call, symmetry);
    if (!repeated.why_no_symmetry.empty()) return;
    repeated.at_every_rank = repeated.at_every_rank && call.schedule.proof().by == Proof::By::symmetry;
  }
  proof.symmetry = symmetry;
}

Proof proof_of(const CheckedProgram& checked) {
  Proof proof{.by = Proof::By::parts};
  proof.operations = checked.operations() * checked.program().iterations;
  for (const Program::Call& call : checked.program().calls)
    proof.slots_needed = std::max(proof.slots_needed, call.schedule.proof().slots_needed);
  proof.repeated.iterations = checked.program().iterations;
  prove_symmetry(checked.program(), proof);
  return proof;
}

}  // namespace

LoweredProgram::LoweredProgram(const CheckedProgram& program, int room, WatchedWork* work, KnownCourses known)
    : program_(program),
      parts_(std::make_shared<const Parts>(program.program_, room, work, std::move(known))),
      schedule_(make(parts_), proof_of(program)) {}

CheckedSchedule LoweredProgram::alone(int call, Stream stream, std::vector<Picoseconds> arrivals,
                                      const std::vector<bool>& lanes) const {
  Proof proof = program().calls[static_cast<std::size_t>(call)].schedule.proof();
  proof.symmetry = {};   // members arrive when they do
  proof.positions = {};  // likewise
  return {parts_->alone(call, stream, parts_, std::move(arrivals), lanes), std::move(proof)};
}

Actor LoweredProgram::stand_in(Actor actor) const { return parts_->stand_in(actor); }

bool LoweredProgram::has_stand_ins() const { return !parts_->known_courses.stand_ins.empty(); }

int LoweredProgram::first_step(Actor actor, Lane lane, int iteration, int task) const {
  return parts_->steps_after(actor, lane, iteration, task);
}

int LoweredProgram::first_channel(Stream stream, int plan) const {
  return parts_->first_channel_of(static_cast<std::size_t>(stream), plan);
}

std::vector<std::uint16_t> LoweredProgram::plan_of_channel() const {
  const std::vector<int>& plans = parts_->plan_of;
  if (std::all_of(plans.begin(), plans.end(), [](int plan) { return plan == 0; })) return {};
  std::vector<std::uint16_t> found;
  for (const int plan : plans)
    found.insert(found.end(), static_cast<std::size_t>(parts_->channels), static_cast<std::uint16_t>(plan));
  return found;
}

LoweredProgram::LaneRange LoweredProgram::lanes_of(Stream stream) const {
  const auto s = static_cast<std::size_t>(stream);
  const Lane end = s + 1 < parts_->base.size() ? parts_->base[s + 1] : parts_->lanes;
  return {.first = parts_->base[s], .count = end - parts_->base[s]};
}

StepPlace LoweredProgram::place_of(Actor actor, Lane lane, int step) const {
  const Stream stream = parts_->stream_of[static_cast<std::size_t>(lane)];
  const Parts::Table& table = parts_->table(actor, lane);
  const Parts::Found found = Parts::find(table, step);
  const auto t = static_cast<std::size_t>(found.task);
  if (lane != parts_->base[static_cast<std::size_t>(stream)])
    return {.iteration = found.iteration, .stream = stream, .task = found.task, .step = found.step};
  const bool calls = parts_->tasks(actor, stream)[t].call >= 0;
  return {.iteration = found.iteration,
          .stream = stream,
          .task = found.task,
          .step = calls ? found.step - 1 : found.step,
          .first = found.step == 0,
          .last = table.first[t] + found.step + 1 == table.first[t + 1]};
}

}  // namespace ringsim
