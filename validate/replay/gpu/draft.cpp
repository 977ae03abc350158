#include "validate/replay/gpu/draft.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::replay::gpu {

Streams::Streams(int actors, std::span<const Actor> mine) : is_mine_(at(actors), false) {
  for (const Actor actor : mine) is_mine_[at(actor)] = true;
}

std::uint32_t Streams::make(Actor actor) {
  if (!is_mine(actor)) return none;
  plan_.stream_of.push_back(actor);
  standing_.push_back(none);
  return n() - 1;
}

void Streams::issue(Command command) {
  if (command.stream == none) return;
  standing_[command.stream] = none;
  plan_.commands.push_back(command);
}

std::uint32_t Streams::record(std::uint32_t stream) {
  if (stream == none) return none;
  if (standing_[stream] != none) return standing_[stream];
  const auto event = static_cast<std::uint32_t>(plan_.event_on.size());
  plan_.event_on.push_back(stream);
  plan_.commands.push_back({.what = Command::What::record, .stream = stream, .event = event});
  return standing_[stream] = event;
}

void Streams::wait(std::uint32_t stream, std::uint32_t event) {
  if (stream == none || event == none) return;
  const std::uint32_t on = plan_.event_on[event];
  if (on == stream) return;
  const auto [seen, is_new] = waited_.try_emplace({stream, on}, event);
  if (!is_new && seen->second >= event) return;  // events of one stream come in the order of their numbers
  seen->second = event;
  issue({.what = Command::What::wait, .stream = stream, .event = event});
}

Plan Streams::finish() {
  std::vector<std::uint32_t> number(plan_.event_on.size(), none);
  std::vector<std::uint32_t> event_on;
  for (const Command& command : plan_.commands)
    if (command.what == Command::What::wait) number[command.event] = 0;
  std::erase_if(plan_.commands, [&](const Command& command) {
    return command.what == Command::What::record && number[command.event] == none;
  });
  for (Command& command : plan_.commands) {
    if (command.what == Command::What::record) {
      number[command.event] = static_cast<std::uint32_t>(event_on.size());
      event_on.push_back(command.stream);
    }
    if (command.what == Command::What::record || command.what == Command::What::wait)
      command.event = number[command.event];
  }
  plan_.event_on = std::move(event_on);
  return std::move(plan_);
}

Draft::Draft(const Schedule& schedule, std::span<const Actor> mine)
    : schedule_(schedule),
      mine_(mine.begin(), mine.end()),
      streams_(schedule.actors, mine),
      adders_(at(schedule.actors)) {
  ensure(!mine.empty() && std::is_sorted(mine.begin(), mine.end()), "a plan is of one actor at least, in their order");
  start_ = streams_.record(streams_.make(mine[0]));
  for (Actor actor = 0; actor < schedule.actors; ++actor) make_rooms(actor);
}

std::uint32_t Draft::make_stream(Actor actor) {
  const std::uint32_t made = streams_.make(actor);
  streams_.wait(made, start_);
  return made;
}

std::int64_t Draft::elements(const Region& region) const { return schedule_.size(region).count / element_bytes; }

Stretch Draft::stretch(Actor actor, const Region& region) const {
  return {actor, static_cast<int>(region.buffer), elements({region.buffer, 0, region.first}), elements(region)};
}

void Draft::make_rooms(Actor actor) {
  auto& elements_of = elements_.emplace_back();
  auto& first = first_room_.emplace_back();
  if (!streams_.is_mine(actor)) {
    first.assign(at(schedule_.lanes), 0);
    return;
  }
  for (std::size_t b = 0; b < n_buffers; ++b) elements_of[b] = schedule_.layout[b].total().count / element_bytes;
  std::int64_t end = 0;
  Step step;
  for (Lane lane = 0; lane < schedule_.lanes; ++lane) {
    first.push_back(end);
    std::int64_t most = 0;
    for (int i = 0; i < schedule_.n_steps(actor, lane); ++i) {
      step.clear();
      schedule_.step(actor, lane, i, step);
      std::int64_t room = 0;
      for (const Op& op : step.ops)
        if (op.what == Do::receive_add) room += elements(op.region);
      most = std::max(most, room);
    }
    end += most;
  }
  elements_of[incoming_room] = end;
}

void Draft::copy(std::uint32_t on, const Stretch& to, const Stretch& from) {
  ensure(to.count == from.count, "regions that are copied are of one size");
  if (to.count > 0) streams_.issue({.what = Command::What::copy, .stream = on, .to = to, .from = from});
}

void Draft::add(std::uint32_t on, const Region& region, const Stretch& base, const Stretch& from) {
  const Stretch to = stretch(base.actor, region);
  ensure(to.count == from.count && to.count == base.count, "regions that are added are of one size");
  if (to.count == 0) return;
  auto& adders = adders_[at(to.actor)];
  const auto chunk = [&](std::uint32_t c) { return std::pair{region.buffer, region.first + c}; };
  for (std::uint32_t c = 0; c < region.count; ++c)
    if (const auto last = adders.find(chunk(c)); last != adders.end()) streams_.wait(on, last->second);
  streams_.issue({.what = Command::What::add, .stream = on, .to = to, .base = base, .from = from});
  const std::uint32_t done = streams_.record(on);
  for (std::uint32_t c = 0; c < region.count; ++c) adders[chunk(c)] = done;
}

void Draft::alone(std::uint32_t on, Actor actor, const Op& op) {
  if (op.what == Do::compute) {
    streams_.issue(
        {.what = Command::What::compute, .stream = on, .time = std::chrono::ceil<std::chrono::nanoseconds>(op.time)});
  } else if (op.what == Do::add) {
    add(on, op.region, stretch(actor, op.region), stretch(actor, op.operand));
  } else {
    copy(on, stretch(actor, op.region), stretch(actor, op.operand));
  }
}

Plan Draft::finish() {
  for (std::uint32_t stream = 1; stream < streams_.n(); ++stream) streams_.wait(0, streams_.record(stream));
  Plan plan = streams_.finish();
  plan.mine = std::move(mine_);
  plan.elements = std::move(elements_);
  return plan;
}

}  // namespace ringsim::replay::gpu
