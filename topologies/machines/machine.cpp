#include "topologies/machines/machine.hpp"

#include <algorithm>

namespace ringsim {

namespace {
std::string bundle_of(int count) { return std::to_string(count) + " links as one, of each: "; }
}  // namespace

std::size_t Machine::n_gpus() const {
  return static_cast<std::size_t>(
      std::count_if(devices.begin(), devices.end(), [](const Device& d) { return d.kind == NodeKind::gpu; }));
}

LinkSpec joined(LinkSpec each, int count) {
  if (count == 1) return each;
  each.bandwidth.bytes_per_second *= count;
  each.joined = static_cast<std::uint16_t>(count);
  each.source = bundle_of(count) + each.source;
  return each;
}

LinkSpec each_of(LinkSpec link) {
  if (link.joined <= 1) return link;
  const std::string prefix = bundle_of(link.joined);
  if (link.source.starts_with(prefix)) link.source.erase(0, prefix.size());
  link.bandwidth.bytes_per_second /= link.joined;
  link.joined = 1;
  return link;
}

}  // namespace ringsim
