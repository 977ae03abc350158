// Dumps of PyTorch's Flight Recorder as dump_json() writes them, of jobs that are made up.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "validate/profiles/flight_recorder.hpp"

namespace ringsim::test {

/// An entry of a dump.
struct MadeEntry {
  std::string name = "all_reduce";
  std::int64_t number = 1;  ///< of collectives
  std::string state = "completed";
  std::string in = "[[1024]]", out{};  ///< sizes; out: empty: as in
  std::string type = "Float";
  std::string group = "0";
  std::int64_t message = 0;  ///< number of sends and receives
  double duration_ms = -1;   ///< below 0: none
  bool saw_start = false;    ///< TORCH_NCCL_ENABLE_TIMING was set
  bool retired = false;
};

struct MadeGroup {
  std::string name, description;
  std::vector<int> ranks;
};

inline std::string made_entry(const MadeEntry& e, std::int64_t record) {
  const auto type = [&](const std::string& sizes) { return sizes == "[]" ? std::string() : '"' + e.type + '"'; };
  const std::string& out = e.out.empty() ? e.in : e.out;
  return fmt::format(
      R"({{"collective_seq_id": {}, {}"input_dtypes": [{}], "input_sizes": {}, "is_p2p": {}, "op_id": 1, "output_dtypes": [{}], "output_sizes": {}, "p2p_seq_id": {}, "pg_id": 0, "process_group": ["{}", ""], "profiling_name": "nccl:{}", "record_id": {}, "retired": {}, "state": "{}", "time_created_ns": 1, "time_discovered_completed_ns": 0, "time_discovered_started_ns": {}, "timeout_ms": 600000}})",
      e.number, e.duration_ms < 0 ? "" : fmt::format("\"duration_ms\": {}, ", e.duration_ms), type(e.in), e.in,
      e.name.starts_with("send") || e.name.starts_with("recv"), type(out), out, e.message, e.group, e.name, record,
      e.retired || e.state == "completed", e.state, e.saw_start ? 5 : 0);
}

inline std::string made_dump(const std::vector<MadeEntry>& entries, const std::vector<MadeGroup>& groups,
                             std::int64_t first_record = 0) {
  std::vector<std::string> config, list;
  for (const MadeGroup& group : groups)
    config.push_back(fmt::format(R"("{}": {{"desc": "{}", "name": "{}", "ranks": "[{}]"}})", group.name,
                                 group.description, group.name, fmt::join(group.ranks, ", ")));
  for (const MadeEntry& entry : entries) list.push_back(made_entry(entry, first_record++));
  return fmt::format(R"({{"comm_lib_version": "2.26.2", {}"pg_config": {{{}}}, "pg_status": {{}}, "version": "2.10"}})",
                     list.empty() ? "" : fmt::format("\"entries\": [{}], ", fmt::join(list, ",\n")),
                     fmt::join(config, ", "));
}

/// Reads a text as the dump of that name.
inline profiles::FlightDump read_dump(const std::string& name, const std::string& text,
                                      const profiles::Limits& limits = {}) {
  profiles::Pieces file(std::make_unique<std::istringstream>(text), name, limits);
  return profiles::read_flight_recorder(file, std::nullopt);
}

}  // namespace ringsim::test
