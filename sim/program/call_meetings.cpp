#include "sim/program/call_meetings.hpp"

#include <algorithm>

namespace ringsim {

namespace {

using Uses = std::vector<CallUses::Use>;

/// True if holds(one, other) of some pair of uses of the same thing; both are in order of `of`.
template <class Holds>
bool any_shared(const Uses& uses, const Uses& others, const Holds& holds) {
  auto other = others.begin();
  for (const CallUses::Use& one : uses) {
    while (other != others.end() && other->of < one.of) ++other;
    if (other == others.end()) return false;
    if (other->of == one.of && holds(one, *other)) return true;
  }
  return false;
}

template <class Holds>
bool any_shared(const CallUses& uses, const CallUses& others, const Holds& holds) {
  return any_shared(uses.links, others.links, holds) || any_shared(uses.connections, others.connections, holds) ||
         any_shared(uses.posters, others.posters, holds);
}

/// The use of that; nullptr if there is none.
const CallUses::Use* find(const Uses& uses, std::int64_t of) {
  const auto found = std::lower_bound(uses.begin(), uses.end(), of,
                                      [](const CallUses::Use& use, std::int64_t its) { return use.of < its; });
  return found == uses.end() || found->of != of ? nullptr : &*found;
}

}  // namespace

void CallUses::set_bounds() {
  first = Picoseconds::max();
  for (const Uses* uses : {&links, &connections, &posters})
    for (const Use& each : *uses) {
      first = std::min(first, each.first);
      last = std::max(last, each.last);
    }
  if (first > last) first = last;  // nothing moves
}

void CallMeetings::begin(std::size_t n_actors, Picoseconds slack) {
  slack_ = slack;
  recent_.clear();
  much_recent_ = 0;
  until_ = SimTime::min();
  crossed_.assign(topology_.n_resources(), SimTime::min());
  n_launched_ = 0;
  launched_.assign(n_actors, 0);
  posted_.assign(n_actors, SimTime::min());
  ended_.clear();
}

bool CallMeetings::meet(const Taken& one, const Taken& other) {
  const std::uint64_t kinds =
      static_cast<std::uint64_t>(one.uses->kind) << 32 | static_cast<std::uint64_t>(other.uses->kind);
  auto known = shares_.find(kinds);
  if (known == shares_.end()) {
    const auto always = [](const CallUses::Use&, const CallUses::Use&) { return true; };
    known = shares_.emplace(kinds, any_shared(*one.uses, *other.uses, always)).first;
  }
  const Picoseconds shift = other.base - one.base;
  return known->second && any_shared(*one.uses, *other.uses, [&](const CallUses::Use& a, const CallUses::Use& b) {
           return a.first + slack_ < shift + b.last && shift + b.first + slack_ < a.last;
         });
}

bool CallMeetings::meets_simulated(const Taken& one) const {
  if (n_launched_ == 0 && until_ <= one.begin) return false;
  const SimTime base = one.base + slack_;
  for (const CallUses::Use& each : one.uses->links)
    if (base + each.first < crossed_[static_cast<std::size_t>(each.of)]) return true;
  for (const auto& [actor, first] : one.uses->receivers)
    if (const auto found = ended_.find(at_stream(one.uses->stream, actor)); found != ended_.end())
      if (base + first < found->second) return true;
  return std::any_of(one.uses->posters.begin(), one.uses->posters.end(), [&](const CallUses::Use& each) {
    const auto actor = static_cast<std::size_t>(each.of);
    return launched_[actor] > 0 || base + each.first < posted_[actor];
  });
}

template <class Look>
void CallMeetings::each_between(SimTime from, SimTime to, const Look& look) const {
  auto next = std::lower_bound(recent_.begin(), recent_.end(), to,
                               [](const Taken& each, SimTime end) { return each.begin < end; });
  for (; next != recent_.begin() && (next - 1)->reach > from; --next)
    if ((next - 1)->end > from) look(*(next - 1));
}

void CallMeetings::add(const Taken& taken) {
  if (recent_.size() >= much_recent_) {
    std::erase_if(recent_, [from = horizon_()](const Taken& each) { return each.end <= from; });
    much_recent_ = 2 * recent_.size() + 8;
  }
  auto at = std::upper_bound(recent_.begin(), recent_.end(), taken.begin,
                             [](SimTime begin, const Taken& each) { return begin < each.begin; });
  at = recent_.insert(at, taken);
  at->reach = at == recent_.begin() ? at->end : std::max((at - 1)->reach, at->end);
  const SimTime reach = at->reach;
  for (++at; at != recent_.end() && at->reach < reach; ++at) at->reach = reach;
}

void CallMeetings::known(const CallUses& uses, int call, SimTime base) {
  const Taken its{
      .uses = &uses, .base = base, .begin = base + uses.first, .end = base + uses.last, .reach = {}, .call = call};
  if (meets_simulated(its)) met_(call);
  each_between(its.begin, its.end, [&](const Taken& each) {
    if (!meet(each, its)) return;
    met_(each.call);
    met_(call);
  });
  add(its);
}

void CallMeetings::launched(Stream stream, Actor actor, SimTime when) {
  each_between(when, SimTime::max(), [&](const Taken& each) {
    const auto lasts = [&](const Uses& uses) {
      const CallUses::Use* use = find(uses, actor);
      return use != nullptr && when + slack_ < each.base + use->last;
    };
    if ((each.uses->stream == stream && lasts(each.uses->senders)) || lasts(each.uses->posters)) met_(each.call);
  });
  ++n_launched_;
  ++launched_[static_cast<std::size_t>(actor)];
}

void CallMeetings::ended(Stream stream, Actor actor, SimTime when) {
  ended_[at_stream(stream, actor)] = when;
  posted_[static_cast<std::size_t>(actor)] = when;
  until_ = std::max(until_, when);
  --n_launched_;
  --launched_[static_cast<std::size_t>(actor)];
}

void CallMeetings::crossed(const Traffic& traffic) {
  const std::uint32_t link = topology_.link(traffic.link).resource.value;
  crossed_[link] = std::max(crossed_[link], traffic.end);
  until_ = std::max(until_, traffic.end);
  each_between(traffic.begin, traffic.end, [&](const Taken& each) {
    const CallUses::Use* use = find(each.uses->links, link);
    if (use != nullptr && each.base + use->last > traffic.begin + slack_ &&
        each.base + use->first + slack_ < traffic.end)
      met_(each.call);
  });
}

}  // namespace ringsim
