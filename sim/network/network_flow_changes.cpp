// Links that change while flows are under way, and flows that are taken back.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "sim/network/network_flow.hpp"

namespace ringsim {

std::span<const FlowNetwork::Use> FlowNetwork::inner(std::uint32_t leg) const {
  return {inner_.data() + inner_of_[leg].first, inner_of_[leg].n};
}

bool FlowNetwork::any_link(std::uint32_t number, const std::function<bool(const Use&)>& is_it) const {
  const LegInfo& leg = legs_[number];
  const auto uses = uses_.begin() + leg.first_use;
  const std::span<const Use> others = inner(number);
  return std::any_of(uses, uses + leg.n_uses, is_it) || std::any_of(others.begin(), others.end(), is_it);
}

void FlowNetwork::set_bandwidth(ResourceId changed, Bandwidth bandwidth) {
  make_resources();
  resources_[changed.value].capacity = static_cast<double>(bandwidth.bytes_per_second);
  changed_.push_back(changed.value);
  const auto is_it = [&](const Use& use) { return use.resource == changed.value; };
  for (std::uint32_t leg = 0; leg < legs_.size(); ++leg)
    if (any_link(leg, is_it)) set_alone_rate(leg);
}

// All flows over the resources count as new ones: what other flows take is left to settle().
void FlowNetwork::take_changes() {
  std::sort(changed_.begin(), changed_.end());
  const auto has_changed = [&](const Use& use) {
    return std::binary_search(changed_.begin(), changed_.end(), use.resource);
  };
  for (FlowIndex f = 0; f < flows_.size(); ++f) {
    if (flows_[f].rate <= 0) continue;  // has left, or is new already
    if (any_link(flows_[f].leg, has_changed)) new_flows_.push_back(f);
  }
  changed_.clear();
}

// As add_leg() works them out, in the same order.
void FlowNetwork::set_alone_rate(std::uint32_t number) {
  LegInfo& leg = legs_[number];
  Cap cap;
  leg.alone = std::numeric_limits<double>::infinity();
  for (std::uint32_t u = leg.first_use; u < leg.first_use + leg.n_uses; ++u)
    narrow(leg.alone, leg.alone_resource, resources_[uses_[u].resource].capacity / weight(uses_[u]),
           {uses_[u].resource});
  for (const Use& use : inner(number)) {
    const double rate = resources_[use.resource].capacity / weight(use);
    narrow(cap.rate, cap.resource, rate, {use.resource});
    narrow(leg.alone, leg.alone_resource, rate, {use.resource});
  }
  if (!caps_.empty()) caps_[number] = cap;
}

// Empty flows have a rate of 0, those that have left one of -1, and so have new ones, which are members already.
bool FlowNetwork::is_under_way(FlowIndex flow) const { return flows_[flow].rate > 0 || flows_[flow].is_member; }

bool FlowNetwork::any_under_way(const std::function<bool(std::uint64_t)>& counts) const {
  for (FlowIndex f = 0; f < flows_.size(); ++f)
    if ((flows_[f].rate == 0 || is_under_way(f)) && counts(flows_[f].piece)) return true;
  return std::any_of(landings_.begin(), landings_.end(),
                     [&](const Landing& each) { return each.leg != none && counts(each.piece); });
}

std::vector<Network::Withdrawn> FlowNetwork::withdraw(const std::vector<std::uint64_t>& pieces) {
  std::vector<Withdrawn> taken;
  std::vector<FlowIndex> landing;
  for (FlowIndex f = 0; f < flows_.size(); ++f) {
    Flow& flow = flows_[f];
    if (!is_under_way(f) || !std::binary_search(pieces.begin(), pieces.end(), flow.piece)) continue;
    // The tolerance covers floating-point noise, and what leaves within the picosecond to which times are rounded.
    const double little = 1e-6 + static_cast<double>(flow.size.count) * 1e-14 + std::max(0.0, flow.rate) * 2e-15;
    const auto rest = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(bytes_left(flow) - little)));
    taken.push_back({flow.piece, {rest}, flow.limiter});
    if (watcher_) tell_moved(flow, flow.left - static_cast<double>(rest));
    const LegInfo& leg = legs_[flow.leg];
    for (std::uint32_t u = leg.first_use; u < leg.first_use + leg.n_uses; ++u)
      resources_[uses_[u].resource].carried.bytes -= static_cast<double>(rest) * weight(uses_[u]);
    leave(f);
    if (rest == 0 || (leg.is_whole_path && rest < flow.size.count)) landing.push_back(f);
    ++flow.stamp;
    flow.rate = -1;
    free_flows_.push_back(f);
  }
  if (!taken.empty()) std::erase_if(new_flows_, [&](FlowIndex f) { return !flows_[f].is_member; });
  // In an order that does not depend on the numbers of the flows.
  std::sort(landing.begin(), landing.end(),
            [&](FlowIndex a, FlowIndex b) { return flows_[a].piece < flows_[b].piece; });
  for (const FlowIndex f : landing) land(flows_[f]);
  return taken;
}

}  // namespace ringsim
