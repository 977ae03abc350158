#include "scenarios/meaning/meaning_transport.hpp"

#include <nlohmann/json.hpp>

#include "scenarios/fields/fields.hpp"
#include "scenarios/fields/member.hpp"

namespace ringsim::scenarios {

Transport transport_of(const nlohmann::json& transport, CollectiveOp op) {
  Transport out;
  read_members(field_at("transport"), transport, out);
  out.point_to_point = is_point_to_point(op);
  return out;
}

}  // namespace ringsim::scenarios
