#include "validate/profiles/record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"

namespace ringsim::profiles {

std::string_view to_string(CallOp op) {
  static constexpr std::string_view names[] = {"unknown",    "all_reduce", "all_gather", "reduce_scatter",
                                               "all_to_all", "broadcast",  "reduce",     "gather",
                                               "scatter",    "send",       "recv",       "barrier"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view to_string(SizeFrom from) {
  static constexpr std::string_view names[] = {"none",      "kernel",          "record_param_comms", "annotation",
                                               "inspector", "flight_recorder", "comm_size",          "NVTX"};
  return names[static_cast<std::size_t>(from)];
}

std::string_view to_string(Lost lost) {
  static constexpr std::string_view words[] = {"nothing",
                                               "launched before the profile started",
                                               "launched by a CUDA graph",
                                               "no PyTorch event around the launch",
                                               "no shapes: profile with record_shapes=True",
                                               "several calls in one kernel (coalesced)",
                                               "the name is not an NCCL operation",
                                               "unknown element type",
                                               "no NVTX range of NCCL around the launch",
                                               "no size in the NVTX range"};
  return words[static_cast<std::size_t>(lost)];
}

Profile::Profile() : groups{{.name = "", .size = 0, .members = {}, .places = {}}}, names{""} {}

std::uint16_t Profile::name(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto known = name_index_.find(text); known != name_index_.end()) return known->second;
  constexpr std::size_t most = 10'000;  // element types, algorithms, protocols: some tens
  if (names.size() == most)
    throw InputError("", fmt::format("expected at most {} names of element types, algorithms and protocols", most),
                     "the files are not NCCL profiles, or are damaged");
  names.emplace_back(text);
  return name_index_.emplace(text, static_cast<std::uint16_t>(names.size() - 1)).first->second;
}

std::uint32_t Profile::group(const std::string& name, std::uint32_t size, const std::vector<std::uint32_t>& members) {
  const std::string key = fmt::format("{}\n{}\n{}", name, size, fmt::join(members, ","));
  if (const auto known = group_index_.find(key); known != group_index_.end()) return known->second;
  groups.push_back({.name = name, .size = size, .members = members, .places = {}});
  return group_index_.emplace(key, static_cast<std::uint32_t>(groups.size() - 1)).first->second;
}

}  // namespace ringsim::profiles
