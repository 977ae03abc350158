#include "tests/support/naive/naive_fair.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace ringsim::naive {

namespace {

constexpr long double infinite = std::numeric_limits<long double>::infinity();

/// What one flow draws on: resource -> how many bytes for each of its own; and its own cap, the narrowest link that it
/// does not share.
struct Needs {
  std::map<std::uint32_t, long double> crossings;
  long double cap = infinite;
};

std::int64_t bandwidth_of(const Topology& topology, const std::vector<Bandwidth>& bandwidths, ResourceId resource) {
  return (bandwidths.empty() ? topology.resource(resource).bandwidth : bandwidths[resource.value]).bytes_per_second;
}

Needs needs_of(const Topology& topology, NetworkModel model, const Flow& flow,
               const std::vector<Bandwidth>& bandwidths) {
  Needs needs;
  for (std::size_t i = 0; i < flow.leg.links.size(); ++i) {
    const Link& link = topology.link(flow.leg.links[i]);
    const bool is_port = (flow.first && link.from == topology.link(flow.leg.links.front()).from) ||
                         (flow.last && link.to == topology.link(flow.leg.links.back()).to);
    if (model == NetworkModel::fair || is_port)
      needs.crossings[link.resource.value] += flow.leg.share(i);
    else
      needs.cap = std::min(
          needs.cap, static_cast<long double>(bandwidth_of(topology, bandwidths, link.resource)) / flow.leg.share(i));
  }
  return needs;
}

}  // namespace

std::vector<Bandwidth> bandwidths_at(const Topology& topology, const std::vector<Change>& changes, SimTime when) {
  std::vector<Bandwidth> result;
  for (std::uint32_t r = 0; r < topology.n_resources(); ++r) result.push_back(topology.resource({r}).bandwidth);
  for (const Change& change : changes)
    if (change.at <= when) result[change.resource.value] = change.bandwidth;
  return result;
}

std::vector<long double> rates(const Topology& topology, NetworkModel model, const std::vector<Flow>& flows,
                               const std::vector<Bandwidth>& bandwidths) {
  std::vector<Needs> needs;
  for (const Flow& flow : flows) needs.push_back(needs_of(topology, model, flow, bandwidths));
  std::vector<long double> rate(flows.size(), -1);  // negative: not frozen yet
  for (std::size_t n_frozen = 0; n_frozen < flows.size();) {
    std::vector<long double> share(topology.n_resources(), infinite);  // [resource] what each open flow could have
    for (std::uint32_t r = 0; r < topology.n_resources(); ++r) {
      long double room = static_cast<long double>(bandwidth_of(topology, bandwidths, {r}));
      long double open = 0;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        const auto crossing = needs[f].crossings.find(r);
        if (crossing == needs[f].crossings.end()) continue;
        if (rate[f] < 0)
          open += crossing->second;
        else
          room -= rate[f] * crossing->second;
      }
      if (open > 0) share[r] = room / open;
    }
    long double level = infinite;
    for (const long double s : share) level = std::min(level, s);
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (rate[f] < 0) level = std::min(level, needs[f].cap);
    const long double full = level * (1 + 1e-15L);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (rate[f] >= 0) continue;
      bool is_held = needs[f].cap <= full;
      for (const auto& [r, times] : needs[f].crossings) is_held = is_held || share[r] <= full;
      if (!is_held) continue;
      rate[f] = level;
      ++n_frozen;
    }
  }
  return rate;
}

Result simulate(const Topology& topology, NetworkModel model, const std::vector<Flow>& flows,
                const std::vector<Change>& changes) {
  Result result;
  result.finish.resize(flows.size());
  std::vector<long double> left;
  for (const Flow& flow : flows) left.push_back(static_cast<long double>(flow.size.count));
  std::vector<bool> started(flows.size(), false), ended(flows.size(), false);
  SimTime now{};
  for (;;) {
    bool changed = false;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (started[f] || flows[f].start > now) continue;
      started[f] = changed = true;
      if (flows[f].size.count > 0) continue;
      ended[f] = true;
      result.finish[f] = now;
    }
    std::vector<std::size_t> moving;
    std::vector<Flow> together;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (!started[f] || ended[f]) continue;
      moving.push_back(f);
      together.push_back(flows[f]);
    }
    result.changes += changed ? 1 : 0;
    const std::vector<long double> rate = rates(topology, model, together, bandwidths_at(topology, changes, now));
    SimTime next = SimTime::max();
    for (const Change& change : changes)
      if (change.at > now && !moving.empty()) next = std::min(next, change.at);
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (!started[f]) next = std::min(next, flows[f].start);
    std::vector<SimTime> end(moving.size());
    for (std::size_t m = 0; m < moving.size(); ++m) {
      const long double time = left[moving[m]] / rate[m] * 1e12L;
      end[m] = now + Picoseconds{static_cast<std::int64_t>(std::ceil(time - 1e-3L))};
      next = std::min(next, end[m]);
    }
    if (next == SimTime::max()) return result;
    const long double seconds = static_cast<long double>((next - now).count()) / 1e12L;
    bool some_ended = false;
    for (std::size_t m = 0; m < moving.size(); ++m) {
      left[moving[m]] = std::max(0.0L, left[moving[m]] - rate[m] * seconds);
      if (end[m] > next) continue;
      ended[moving[m]] = some_ended = true;
      result.finish[moving[m]] = next;
    }
    result.changes += some_ended ? 1 : 0;
    for (const Change& change : changes) result.changes += change.at == next ? 1 : 0;
    now = next;
  }
}

bool each_has_a_bottleneck(const Topology& topology, NetworkModel model, const std::vector<Flow>& flows,
                           const std::vector<double>& rates, const std::vector<Bandwidth>& bandwidths) {
  constexpr double little = 1e-9;
  std::vector<Needs> needs;
  for (const Flow& flow : flows) needs.push_back(needs_of(topology, model, flow, bandwidths));
  std::vector<double> total(topology.n_resources(), 0), fastest(topology.n_resources(), 0);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const auto& [r, times] : needs[f].crossings) {
      total[r] += rates[f] * static_cast<double>(times);
      fastest[r] = std::max(fastest[r], rates[f]);
    }
  }
  for (std::size_t f = 0; f < flows.size(); ++f) {
    bool found = rates[f] >= static_cast<double>(needs[f].cap) * (1 - little);
    for (const auto& [r, times] : needs[f].crossings) {
      const auto capacity = static_cast<double>(bandwidth_of(topology, bandwidths, {r}));
      found = found || (total[r] >= capacity * (1 - little) && rates[f] >= fastest[r] * (1 - little));
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace ringsim::naive
