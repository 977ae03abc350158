// Who sends over which links and when: the messages of a run, added up by their ends and their way.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/route_use.hpp"
#include "scenarios/predict/trace.hpp"

namespace ringsim {

/// Listens to a run. All references must outlive it.
///
/// Memory: 16 bytes per message, less if messages of one flow follow each other without a gap.
class FlowRecord {
 public:
  /// Requires RouteUse::is_known(options).
  FlowRecord(const Topology& topology, const RunOptions& options)
      : routes_(topology, options, [](LinkId) { return true; }) {}

  void on_message(const Span& message);
  /// When the run is over. `actors`: their names.
  std::vector<Recording::Flow> finish(const std::vector<std::string>& actors);

 private:
  RouteUse routes_;
  std::map<std::pair<Actor, Actor>, std::vector<Recording::Flow>> flows_;  // by ends, one for each way
};

}  // namespace ringsim
