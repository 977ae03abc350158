#include "scenarios/predict/flow_record.hpp"

#include <algorithm>
#include <cstddef>

namespace ringsim {

namespace {

/// Sorts the times, and joins those that touch.
void join(std::vector<std::pair<SimTime, SimTime>>& times) {
  std::sort(times.begin(), times.end());
  std::vector<std::pair<SimTime, SimTime>> joined;
  for (const auto& time : times) {
    if (!joined.empty() && time.first <= joined.back().second)
      joined.back().second = std::max(joined.back().second, time.second);
    else
      joined.push_back(time);
  }
  times = std::move(joined);
}

}  // namespace

void FlowRecord::on_message(const Span& message) {
  const std::vector<LinkId>& links = routes_.links_of(message);
  std::vector<Recording::Flow>& ways = flows_[{message.from, message.to}];
  auto flow = std::find_if(ways.begin(), ways.end(), [&](const Recording::Flow& each) { return each.links == links; });
  if (flow == ways.end()) {
    ways.emplace_back().links = links;
    flow = ways.end() - 1;
  }
  ++flow->messages;
  flow->bytes += message.bytes;
  if (!flow->when.empty() && flow->when.back().second == message.start)
    flow->when.back().second = message.finish;
  else
    flow->when.emplace_back(message.start, message.finish);
}

std::vector<Recording::Flow> FlowRecord::finish(const std::vector<std::string>& actors) {
  std::vector<Recording::Flow> all;
  for (auto& [ends, ways] : flows_)
    for (Recording::Flow& flow : ways) {
      flow.from = actors[static_cast<std::size_t>(ends.first)];
      flow.to = actors[static_cast<std::size_t>(ends.second)];
      join(flow.when);
      all.push_back(std::move(flow));
    }
  return all;
}

}  // namespace ringsim
