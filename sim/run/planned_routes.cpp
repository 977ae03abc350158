#include "sim/run/planned_routes.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace ringsim {

bool differ_by_channel(const Topology& topology, const RunOptions& options) {
  return options.routing.policy == Routing::Policy::ecmp || options.plans.size() > 1 || topology.has_channel_rates() ||
         options.plans.front().transport.nics == Transport::Nics::per_channel;
}

namespace {

void add_costs(const std::vector<double>& costs, std::vector<Path>& parts) {
  for (Path& path : parts)
    for (Leg& leg : path.legs) {
      if (leg.shares.empty()) leg.shares.assign(leg.links.size(), 1);
      for (std::size_t i = 0; i < leg.links.size(); ++i) leg.shares[i] *= costs[leg.links[i].value];
      if (std::all_of(leg.shares.begin(), leg.shares.end(), [](double share) { return share == 1; }))
        leg.shares.clear();
    }
}

}  // namespace

PlannedRoutes::PlannedRoutes(const Topology& topology, const RunOptions& options, const std::vector<bool>& down)
    : topology_(topology), options_(options) {
  for (const CallPlan& plan : options.plans) routes_.emplace_back(topology, plan.transport, options.routing, down);
}

std::vector<Path> PlannedRoutes::find_parts(NodeId from, NodeId to, std::uint32_t label) {
  const std::size_t number = options_.plan_number(label);
  const CallPlan& plan = options_.plans[number];
  std::vector<Path> parts = routes_[number].find_parts(from, to, label);
  if (!plan.costs.empty()) add_costs(plan.costs, parts);
  for (Path& path : parts)
    if (!path.legs.empty()) path.legs.back().beyond = plan.protocol->latency(path.type);
  leave_device(from, plan, label, parts);
  return parts;
}

// What leaves a device crosses its own links first: that of its copies, unless they draw on another link, and that of
// the channel.
void PlannedRoutes::leave_device(NodeId from, const CallPlan& plan, std::uint32_t label,
                                 std::vector<Path>& parts) const {
  const DeviceLinks* device = topology_.device(from);
  if (device == nullptr) return;
  std::vector<LinkId> first;
  if (const LinkId copy = device->copy.link; copy != no_link && topology_.has_own_resource(copy)) first.push_back(copy);
  const auto n = plan.n_device_channels == CallPlan::all_device_channels
                     ? device->channels.size()
                     : std::min(device->channels.size(), static_cast<std::size_t>(plan.n_device_channels));
  if (n > 0) first.push_back(device->channels[static_cast<std::size_t>(plan.first_device_channel) + label % n]);
  for (Path& path : parts) {
    if (path.legs.empty()) continue;
    Leg& leg = path.legs.front();
    leg.links.insert(leg.links.begin(), first.begin(), first.end());
    if (!leg.shares.empty()) leg.shares.insert(leg.shares.begin(), first.size(), 1);
  }
}

}  // namespace ringsim
