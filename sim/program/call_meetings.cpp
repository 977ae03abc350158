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

/// The last moment of an actor's use; without one, before all moments.
Picoseconds last_of(const Uses& uses, Actor actor) {
  const auto found = std::lower_bound(uses.begin(), uses.end(), actor,
                                      [](const CallUses::Use& use, Actor its) { return use.of < its; });
  return found == uses.end() || found->of != actor ? Picoseconds::min() : found->last;
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
  n_listed_ = much_recent_ = 0;
  on_links_.assign(topology_.n_resources(), {});
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

void CallMeetings::known(const CallUses& uses, int call, SimTime base) {
  const Taken its{.uses = &uses, .base = base, .begin = base + uses.first, .end = base + uses.last, .call = call};
  if (meets_simulated(its)) met_(call);
  for (const Taken& each : recent_) {
    if (each.end <= its.begin || its.end <= each.begin || !meet(each, its)) continue;
    met_(each.call);
    met_(call);
  }
  if (recent_.size() >= much_recent_) {
    const auto is_over = [from = horizon_()](const Taken& each) { return each.end <= from; };
    n_listed_ -= static_cast<std::size_t>(
        std::count_if(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(n_listed_), is_over));
    std::erase_if(recent_, is_over);
    much_recent_ = 2 * recent_.size() + 8;
  }
  recent_.push_back(its);
}

void CallMeetings::launched(Stream stream, Actor actor, SimTime when) {
  for (const Taken& each : recent_) {
    if (each.end <= when) continue;
    const auto lasts = [&](const Uses& uses) {
      const Picoseconds last = last_of(uses, actor);
      return last != Picoseconds::min() && when + slack_ < each.base + last;
    };
    if ((each.uses->stream == stream && lasts(each.uses->senders)) || lasts(each.uses->posters)) met_(each.call);
  }
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
  for (; n_listed_ < recent_.size(); ++n_listed_) list_on_links(recent_[n_listed_]);
  const std::vector<Interval>& known = on_links_[link];
  auto next = std::lower_bound(known.begin(), known.end(), traffic.end,
                               [](const Interval& each, SimTime end) { return each.begin < end; });
  for (; next != known.begin() && (next - 1)->reach > traffic.begin; --next)
    if ((next - 1)->end > traffic.begin + slack_ && (next - 1)->begin + slack_ < traffic.end) met_((next - 1)->call);
}

void CallMeetings::list_on_links(const Taken& taken) {
  for (const CallUses::Use& use : taken.uses->links) {
    std::vector<Interval>& known = on_links_[static_cast<std::size_t>(use.of)];
    if (!known.empty() && known.size() == known.capacity())
      std::erase_if(known, [from = horizon_()](const Interval& each) { return each.end <= from; });
    const Interval its{.begin = taken.base + use.first, .end = taken.base + use.last, .reach = {}, .call = taken.call};
    auto at = std::upper_bound(known.begin(), known.end(), its.begin,
                               [](SimTime begin, const Interval& each) { return begin < each.begin; });
    for (at = known.insert(at, its); at != known.end(); ++at)
      at->reach = at == known.begin() ? at->end : std::max((at - 1)->reach, at->end);
  }
}

}  // namespace ringsim
