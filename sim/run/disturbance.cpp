#include "sim/run/disturbance.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/splitmix.hpp"

namespace ringsim {

namespace {
__extension__ using Wide = unsigned __int128;

}  // namespace

Bandwidth LinkChange::of(Bandwidth nominal) const {
  if (to == To::bandwidth) return bandwidth;
  if (to != To::share) return nominal;
  const Wide part = static_cast<Wide>(nominal.bytes_per_second) * static_cast<Wide>(millionths) / 1'000'000;
  return {std::max<std::int64_t>(1, static_cast<std::int64_t>(part))};
}

Picoseconds jitter_of(const Disturbance::Jitter& jitter, Actor actor, Lane lane, int step) {
  const auto place = splitmix(static_cast<std::uint64_t>(actor) << 32 | static_cast<std::uint32_t>(lane));
  const std::uint64_t drawn = splitmix(splitmix(jitter.seed) ^ splitmix(place ^ static_cast<std::uint32_t>(step)));
  // The high half of the product: [0, most], without a division.
  return Picoseconds{
      static_cast<std::int64_t>(static_cast<Wide>(drawn) * (static_cast<Wide>(jitter.most.count()) + 1) >> 64)};
}

LinkStates::LinkStates(const Topology& topology, const std::vector<LinkChange>& changes)
    : topology_(topology), changes_(changes), down_(topology.n_links(), false) {
  std::stable_sort(changes_.begin(), changes_.end(),
                   [](const LinkChange& a, const LinkChange& b) { return a.at < b.at; });
  for (std::uint32_t r = 0; r < topology.n_resources(); ++r) rate_.push_back(topology.resource({r}).bandwidth);
  for (const LinkChange& change : changes_) {
    if (instants_.empty() || instants_.back() != change.at) instants_.push_back(change.at);
    for (const LinkId link : change.links) {
      const Bandwidth nominal = topology.link(link).bandwidth;
      if (change.of(nominal).bytes_per_second >= 1 && change.of(nominal) <= nominal) continue;
      throw InputError("",
                       fmt::format("expected at most the bandwidth of {} without faults, {}, found {}",
                                   topology.link_name(link), format(nominal), format(change.of(nominal))),
                       "a fault can only reduce bandwidth; set a higher bandwidth in the topology");
    }
  }
}

LinkStates::Applied LinkStates::advance() {
  ensure(next_ < changes_.size(), "a change of links is due at each of their instants");
  Applied applied;
  const std::vector<bool> down_before = down_;
  const std::vector<Bandwidth> rate_before = rate_;
  for (const SimTime now = changes_[next_].at; next_ < changes_.size() && changes_[next_].at == now; ++next_) {
    const LinkChange& change = changes_[next_];
    for (const LinkId id : change.links) {
      const Link& link = topology_.link(id);
      down_[id.value] = change.to == LinkChange::To::down;
      if (change.to != LinkChange::To::down) rate_[link.resource.value] = change.of(link.bandwidth);
    }
  }
  for (std::uint32_t l = 0; l < down_.size(); ++l) {
    if (down_[l] == down_before[l]) continue;
    applied.routes_changed = true;
    n_down_ += down_[l] ? 1 : -1UL;
    if (down_[l]) applied.gone.push_back({l});
  }
  for (std::uint32_t r = 0; r < rate_.size(); ++r)
    if (rate_[r] != rate_before[r]) applied.rates.emplace_back(ResourceId{r}, rate_[r]);
  return applied;
}

bool LinkStates::some_come_back() const {
  return std::any_of(changes_.begin() + static_cast<std::ptrdiff_t>(next_), changes_.end(), [&](const auto& change) {
    return change.to != LinkChange::To::down &&
           std::any_of(change.links.begin(), change.links.end(), [&](LinkId link) { return down_[link.value]; });
  });
}

}  // namespace ringsim
