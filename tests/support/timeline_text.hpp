// What a run reports, as text: two runs that ought to be one are compared by it.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sim/run/timeline.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// All that a run reports but its fingerprint, and but which of several equally narrow links is its bottleneck.
inline std::string report_of(const Topology& net, const Timeline& timeline) {
  std::string text = fmt::format("{} ps, {} messages, {} B, {} events\nranks:", timeline.duration().count(),
                                 timeline.transfers, timeline.bytes_sent.count, timeline.events);
  for (const SimTime end : timeline.actor_finish) text += fmt::format(" {}", end.time_since_epoch().count());
  text += "\nlinks:";
  for (const Bytes bytes : timeline.link_bytes) text += fmt::format(" {}", bytes.count);
  if (!timeline.bottleneck) return text;
  const Bottleneck& held = *timeline.bottleneck;
  text += fmt::format("\nheld for {} ps, others {}, latency {}, compute {}, delay {}", held.busy.count(),
                      held.others.count(), held.latency.count(), held.compute.count(), held.delay.count());
  if (held.resource == no_resource) return text;
  const LinkId link = net.resource(held.resource).link;
  return text + fmt::format(", by a link of {} B/s with {} B", net.link(link).bandwidth.bytes_per_second,
                            timeline.link_bytes[link.value].count);
}

}  // namespace ringsim
