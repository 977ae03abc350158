#include "sim/topology/routing_policy.hpp"

#include "sim/base/error.hpp"

namespace ringsim {

std::string_view to_string(RoutingPolicy policy) {
  switch (policy) {
    case RoutingPolicy::fixed:
      return "static";
    case RoutingPolicy::ecmp:
      return "ecmp";
    case RoutingPolicy::flow_spray:
      return "flow_spray";
    case RoutingPolicy::packet_spray:
      return "packet_spray";
  }
  fail_invariant("a routing policy has one of four names");
}

}  // namespace ringsim
