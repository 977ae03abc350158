// Which links the messages of a run cross, from their ends and their channel alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/run/planned_routes.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

class RouteUse {
 public:
  /// True if routes depend on nothing but the ends and the channel of a message.
  static bool is_known(const RunOptions& options) {
    if (options.routing.policy == Routing::Policy::flow_spray) return false;
    return std::none_of(options.disturbance.links.begin(), options.disturbance.links.end(),
                        [](const LinkChange& change) { return change.to == LinkChange::To::down; });
  }

  /// Both must outlive it. Requires is_known(). `wanted`: the links.
  RouteUse(const Topology& topology, const RunOptions& options, std::function<bool(LinkId)> wanted)
      : options_(options),
        by_channel_(differ_by_channel(topology, options)),
        routes_(topology, options),
        wanted_(std::move(wanted)) {}

  bool crosses(const Span& message) { return !links_of(message).empty(); }

  /// The wanted links that it crosses, ascending.
  const std::vector<LinkId>& links_of(const Span& message) {
    const std::uint16_t label = by_channel_ ? message.channel : std::uint16_t{0};
    const auto [entry, is_new] = known_.try_emplace({message.from, message.to, label});
    std::vector<LinkId>& links = entry->second;
    if (!is_new) return links;
    const auto place = [&](Actor actor) { return options_.placement[static_cast<std::size_t>(actor)]; };
    for (const Path& path : routes_.find_parts(place(message.from), place(message.to), label))
      for (const Leg& leg : path.legs)
        std::copy_if(leg.links.begin(), leg.links.end(), std::back_inserter(links), wanted_);
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    return links;
  }

 private:
  const RunOptions& options_;
  bool by_channel_;
  PlannedRoutes routes_;
  std::function<bool(LinkId)> wanted_;
  std::map<std::tuple<Actor, Actor, std::uint16_t>, std::vector<LinkId>> known_;
};

}  // namespace ringsim
