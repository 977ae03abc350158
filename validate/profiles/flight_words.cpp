#include "validate/profiles/flight_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace ringsim::profiles {

std::string title_of(const std::string& name, const std::string& description) {
  return description.empty() ? name : fmt::format("{} ({})", name, description);
}

std::string names_of(const FlightDump& dump, const FlightCall& call) {
  const std::string& first = dump.text(call.ops.front().name);
  if (call.ops.size() == 1) return first;
  std::set<std::string> names;
  for (const FlightOp& op : call.ops) names.insert(dump.text(op.name));
  return fmt::format("{} coalesced: {}", call.ops.size(), fmt::join(names, ", "));
}

std::string words_of(const FlightDump& dump, const FlightCall& call) {
  const FlightOp& op = call.ops.front();
  const FlightTensors& tensors = op.in.shapes != 0 ? op.in : op.out;
  std::string text = names_of(dump, call);
  if (call.ops.size() > 1) return text;
  if (tensors.shapes != 0) text += ' ' + dump.text(tensors.shapes);
  if (tensors.dtypes != 0) text += ' ' + dump.text(tensors.dtypes);
  return text;
}

std::string call_text(const FlightDump& dump, const FlightCall& call) {
  const FlightGroup& group = dump.groups[call.group];
  if (call.is_point_to_point)
    return fmt::format("{} of group {}", words_of(dump, call), title_of(group.name, group.description));
  return fmt::format("{} number {} of group {}", names_of(dump, call), call.number,
                     title_of(group.name, group.description));
}

}  // namespace ringsim::profiles
