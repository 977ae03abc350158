#include "topologies/machines/link_types.hpp"

#include <cmath>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim {

namespace {
const std::vector<std::pair<std::string, LinkKind>> link_kinds = {
    {"nvlink", LinkKind::nvlink},
    {"xgmi", LinkKind::xgmi},
    {"c2c", LinkKind::c2c},
    {"pcie", LinkKind::pcie},
    {"socket", LinkKind::socket},
    {"memory", LinkKind::memory},
    {"infiniband", LinkKind::infiniband},
    {"ethernet", LinkKind::ethernet},
};

std::vector<std::pair<std::string, RoutingPolicy>> routing_policies() {
  std::vector<std::pair<std::string, RoutingPolicy>> words;
  for (const RoutingPolicy policy :
       {RoutingPolicy::fixed, RoutingPolicy::ecmp, RoutingPolicy::flow_spray, RoutingPolicy::packet_spray})
    words.emplace_back(to_string(policy), policy);
  return words;
}

double efficiency(const Place& value) {
  if (!value.json.is_number()) value.fail("expected a share such as 0.96");
  const double share = value.json.get<double>();
  if (!(share > 0 && share <= 1)) value.fail("expected a share above 0 and at most 1, found " + value.json.dump());
  return share;
}

/// `bandwidth` is what payload reaches; if it comes from a line rate, `line_rate` times `efficiency`.
LinkSpec link_type(const Place& type) {
  type.allow({"kind", "duplex", "bandwidth", "line_rate", "efficiency", "latency", "routing", "nccl_bandwidth"});
  LinkSpec link;
  link.kind = type.at("kind").word(link_kinds);
  if (type.has("duplex")) {
    link.duplex = type.at("duplex").word<Duplex>({{"full", Duplex::full}, {"half", Duplex::half}});
  }
  if (type.has("bandwidth") == type.has("line_rate") || type.has("line_rate") != type.has("efficiency")) {
    type.fail("expected either \"bandwidth\", or \"line_rate\" and \"efficiency\"");
  }
  if (type.has("bandwidth")) {
    link.bandwidth = quantity(sourced(type.at("bandwidth"), "bandwidth", link.source), parse_bandwidth);
  } else {
    const Bandwidth line = quantity(sourced(type.at("line_rate"), "line rate", link.source), parse_bandwidth);
    const double share = efficiency(sourced(type.at("efficiency"), "efficiency", link.source));
    link.bandwidth = {std::llround(static_cast<double>(line.bytes_per_second) * share)};
    if (link.bandwidth.bytes_per_second < 1) type.fail("expected a rate of at least 1 B/s");
  }
  link.latency = quantity(sourced(type.at("latency"), "latency", link.source), parse_time);
  if (type.has("routing")) {
    if (link.kind != LinkKind::infiniband && link.kind != LinkKind::ethernet)
      type.fail("expected no \"routing\" for a link within a machine", "it belongs to the network behind a NIC's port");
    link.routing = sourced(type.at("routing"), "routing", link.source).word<RoutingPolicy>(routing_policies());
  }
  if (type.has("nccl_bandwidth")) {
    if (link.kind != LinkKind::socket) type.fail("expected \"nccl_bandwidth\" only for links between sockets");
    link.nccl_bandwidth =
        quantity(sourced(type.at("nccl_bandwidth"), "NCCL's bandwidth", link.source), parse_bandwidth);
  }
  return link;
}
}  // namespace

std::map<std::string, LinkSpec> read_link_types(const Place& types) {
  std::map<std::string, LinkSpec> links;
  for (const auto& [name, type] : types.entries()) links.emplace(name, link_type(type));
  return links;
}

const std::map<std::string, LinkSpec>& library_links() {
  static const std::map<std::string, LinkSpec> links = [] {
    const std::string file = "link_types.json";
    const Json json = parse_json(link_types_file(), file);
    return read_link_types({json, file, ""});
  }();
  return links;
}

const LinkSpec& library_link(const std::string& name) {
  const auto found = library_links().find(name);
  if (found != library_links().end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [each, link] : library_links()) names.push_back(each);
  throw InputError("", "expected the name of a link type, found \"" + name + "\"", did_you_mean(name, names));
}

}  // namespace ringsim
