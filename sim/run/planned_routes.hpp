// The links that messages cross in a run, each by the plan of its channel.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/run/run.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// True if the channels of a pair may take ways of their own.
bool differ_by_channel(const Topology& topology, const RunOptions& options);

/// Routes with what a device puts in front of them, what links cost a plan, and what its protocol takes at the end.
class PlannedRoutes {
 public:
  /// Both must outlive it. `down`: as of Routes.
  PlannedRoutes(const Topology& topology, const RunOptions& options, const std::vector<bool>& down = {});

  /// As Routes::find_parts(). `label`: that of CompiledRoutes::label(); if calls have plans of their own, the channel.
  std::vector<Path> find_parts(NodeId from, NodeId to, std::uint32_t label);

 private:
  void leave_device(NodeId from, const CallPlan& plan, std::uint32_t label, std::vector<Path>& parts) const;

  const Topology& topology_;
  const RunOptions& options_;
  std::vector<Routes> routes_;  // [plan]
};

}  // namespace ringsim
