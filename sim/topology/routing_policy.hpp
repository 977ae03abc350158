// How the switches of a fabric choose among ways that are equally short.
#pragma once

#include <cstdint>
#include <string_view>

namespace ringsim {

enum class RoutingPolicy : std::uint8_t {
  fixed,         ///< a table in every switch, as Topology::ties() says
  ecmp,          ///< a connection (from, to, channel) keeps to one way, drawn by a seeded hash at every switch
  flow_spray,    ///< each message of a pair takes the next way in turn
  packet_spray,  ///< each message is spread over all ways at once, equally at every switch
};

std::string_view to_string(RoutingPolicy policy);  ///< "static", "ecmp", "flow_spray", "packet_spray"

}  // namespace ringsim
