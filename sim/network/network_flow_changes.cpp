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
  const std::span<const Use> uses = shares_.uses(number), others = inner(number);
  return std::any_of(uses.begin(), uses.end(), is_it) || std::any_of(others.begin(), others.end(), is_it);
}

void FlowNetwork::set_bandwidth(ResourceId changed, Bandwidth bandwidth) {
  make_resources();
  shares_.set_capacity(changed.value, static_cast<double>(bandwidth.bytes_per_second));
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
    if (shares_.rate(f) <= 0) continue;  // has left, or is new already
    if (any_link(shares_.route(f), has_changed)) new_flows_.push_back(f);
  }
  changed_.clear();
}

// As add_leg() works them out, in the same order.
void FlowNetwork::set_alone_rate(std::uint32_t number) {
  LegInfo& leg = legs_[number];
  Shares::Cap cap;
  leg.alone = std::numeric_limits<double>::infinity();
  for (const Use& use : shares_.uses(number))
    narrow(leg.alone, leg.alone_resource, shares_.capacity(use.resource) / shares_.weight(use), {use.resource});
  for (const Use& use : inner(number)) {
    const double rate = shares_.capacity(use.resource) / shares_.weight(use);
    narrow(cap.rate, cap.resource, rate, {use.resource});
    narrow(leg.alone, leg.alone_resource, rate, {use.resource});
  }
  if (!shares_all_links(model_)) shares_.set_cap(number, cap);
}

// Empty flows have a rate of 0, those that have left one of -1, and so have new ones, which are members already.
bool FlowNetwork::is_under_way(FlowIndex flow) const { return shares_.rate(flow) > 0 || shares_.is_member(flow); }

bool FlowNetwork::any_under_way(const std::function<bool(std::uint64_t)>& counts) const {
  for (FlowIndex f = 0; f < flows_.size(); ++f)
    if ((shares_.rate(f) == 0 || is_under_way(f)) && counts(flows_[f].piece)) return true;
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
    const double little = 1e-6 + static_cast<double>(flow.size.count) * 1e-14 + std::max(0.0, shares_.rate(f)) * 2e-15;
    const auto rest = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(bytes_left(f) - little)));
    taken.push_back({flow.piece, {rest}, shares_.limiter(f)});
    if (watcher_) tell_moved(flow, flow.left - static_cast<double>(rest));
    const LegInfo& leg = legs_[shares_.route(f)];
    for (const Use& use : shares_.uses(shares_.route(f)))
      accounts_[use.resource].carried.bytes -= static_cast<double>(rest) * shares_.weight(use);
    leave(f);
    if (rest == 0 || (leg.is_whole_path && rest < flow.size.count)) landing.push_back(f);
    ++flow.stamp;
    shares_.set_no_rate(f, -1);
    free_flows_.push_back(f);
  }
  if (!taken.empty()) std::erase_if(new_flows_, [&](FlowIndex f) { return !shares_.is_member(f); });
  // In an order that does not depend on the numbers of the flows.
  std::sort(landing.begin(), landing.end(),
            [&](FlowIndex a, FlowIndex b) { return flows_[a].piece < flows_[b].piece; });
  for (const FlowIndex f : landing) land(f);
  return taken;
}

}  // namespace ringsim
