#include "algorithms/formats/schedule_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/formats/goal.hpp"
#include "algorithms/formats/json_schedule.hpp"
#include "algorithms/formats/msccl_import.hpp"
#include "algorithms/formats/mscclpp_import.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

namespace {

Schedule make(const CollectiveRequest& request, const Arguments& arguments) {
  ensure(arguments.file != nullptr, "a schedule from a file has its file");
  ensure(file_serves(*arguments.file, request).part.empty(), "a file is asked only for what it has");
  Schedule schedule = schedule_of(arguments.file, request.bytes);
  if (!arguments.file->names_regions) schedule.collective.op = request.op;
  return schedule;
}

/// What stands first but for blanks and comments.
std::string_view without_comments(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (text.starts_with("//"))
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    else if (text.starts_with("/*"))
      text.remove_prefix(std::min(text.find("*/", 2), text.size() - 2) + 2);
    else
      return text;
  }
}

/// True if `key` is written as a key: what comes after it is a colon.
bool has_key(std::string_view json, std::string_view key) {
  for (std::size_t at = json.find(key); at != std::string_view::npos; at = json.find(key, at + 1)) {
    const std::size_t next = json.find_first_not_of(" \t\r\n", at + key.size());
    if (next != std::string_view::npos && json[next] == ':') return true;
  }
  return false;
}

/// A key that every plan of MSCCL++ has, and neither a scenario nor ringsim's own schedules.
bool is_mscclpp(std::string_view json) { return has_key(json, "\"threadblocks\""); }

}  // namespace

bool is_schedule(std::string_view text) {
  const std::string_view first = without_comments(text);
  if (first.starts_with("{")) return text.find("\"ringsim_schedule\"") != std::string_view::npos || is_mscclpp(first);
  return first.starts_with("<") || first.starts_with("num_ranks");
}

bool is_goal(std::string_view text) { return without_comments(text).starts_with("num_ranks"); }

StoredSchedule read_schedule(std::string_view text, const std::string& file, const GoalOptions& goal) {
  const std::string_view first = without_comments(text);
  if (first.empty())
    throw InputError(file, "expected a schedule, found an empty file",
                     "supported formats: MSCCL XML, MSCCL++ JSON, ringsim JSON and GOAL");
  if (first[0] == '<') return import_msccl(text, file);
  if (first[0] == '{') return is_mscclpp(first) ? import_mscclpp(text, file) : import_json(text, file);
  if (is_goal(text)) return import_goal(text, file, goal);
  throw InputError(
      file, "expected MSCCL XML (<algo ...), MSCCL++ or ringsim JSON ({...) or GOAL (num_ranks ...), found other text");
}

const Algorithm& file_algorithm() {
  static const Algorithm algorithm{
      .name = "file",
      .summary = "a schedule from a file (MSCCL XML, MSCCL++, JSON or GOAL)",
      .source = "the file",
      .ops = {collective_ops().begin(), collective_ops().end()},
      .parameters = {},
      .make = make,
      .helpers = [](const Arguments& arguments) { return arguments.file->actors - arguments.file->ranks; }};
  return algorithm;
}

Mismatch file_serves(const StoredSchedule& stored, const CollectiveRequest& request) {
  if (stored.ranks != request.ranks)
    return {"ranks", fmt::format("expected as many GPUs as {} has ranks, {}, found {}", stored.name, stored.ranks,
                                 request.ranks)};
  if (!stored.names_regions) return {};
  if (stored.op != request.op)
    return {"op", fmt::format("expected the collective of {}, {}, found {}", stored.name, to_string(stored.op),
                              to_string(request.op))};
  if (has_root(stored.op) && stored.root != request.root)
    return {"root", fmt::format("expected the root of {}, {}, found {}", stored.name, stored.root, request.root)};
  if (stored.op == CollectiveOp::pairs && stored.both_ways != request.both_ways)
    return {"both_ways",
            fmt::format("expected both_ways as in {}, {}, found {}", stored.name, stored.both_ways, request.both_ways)};
  return {};
}

std::string outside_of_range(const StoredSchedule& stored, Bytes bytes) {
  if (bytes.count >= stored.min_bytes && (stored.max_bytes == 0 || bytes.count <= stored.max_bytes)) return "";
  return fmt::format("{} is intended for {} to {} B; it is timed for {} B anyway", stored.name, stored.min_bytes,
                     stored.max_bytes == 0 ? "any number of" : fmt::to_string(stored.max_bytes), bytes.count);
}

}  // namespace ringsim
