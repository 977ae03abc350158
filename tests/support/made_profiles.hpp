// Profiles as PyTorch and NCCL Inspector write them, of jobs that are made up.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "validate/profiles/read.hpp"

namespace ringsim::test {

/// One kernel of a rank. Times in us, by the clock of its host.
struct MadeKernel {
  double begin = 0, duration = 0;
  std::string op = "allreduce";        ///< "Collective name"; empty: a kernel of compute
  std::int64_t elements = 0;           ///< of float; what goes in
  std::int64_t sequence = -1;          ///< -1: the trace has none, as before 2026
  std::vector<std::uint32_t> group{};  ///< ranks; empty: all
  int stream = 20;
  int blocks = 16;  ///< of its launch; 0: not in the trace
};

/// A trace of one rank, as PyTorch wrote it from 2024 on.
inline std::string made_trace(std::uint32_t rank, std::uint32_t world, const std::vector<MadeKernel>& kernels) {
  std::string text = fmt::format(
      R"({{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}, "nccl_version": "2.21.5"}}, "traceEvents": [)",
      rank, world);
  int id = 1;
  for (const MadeKernel& k : kernels) {
    std::vector<std::uint32_t> group = k.group;
    if (group.empty())
      for (std::uint32_t r = 0; r < world; ++r) group.push_back(r);
    const std::int64_t out =
        k.op == "_allgather_base" ? k.elements * static_cast<std::int64_t>(group.size()) : k.elements;
    const std::string said =
        k.op.empty()
            ? ""
            : fmt::format(
                  R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "dtype": "Float", "Group size": {}, "Process Group Name": "{}", "Process Group Ranks": "[{}]"{})",
                  k.op, k.elements, out, group.size(), fmt::join(group, "-"), fmt::join(group, ", "),
                  k.sequence < 0 ? "" : fmt::format(R"(, "Seq": {})", k.sequence));
    text += fmt::format(
        R"({}{{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {{"External id": {}, "device": 0, "stream": {}, "correlation": {}{}{}}}}})",
        id == 1 ? "\n" : ",\n", k.op.empty() ? "gemm" : "ncclDevKernel_Any(ncclDevKernelArgsStorage<4096ul>)", k.stream,
        k.begin, k.duration, id, k.stream, id,
        k.blocks == 0 ? "" : fmt::format(R"(, "grid": [{}, 1, 1], "block": [544, 1, 1])", k.blocks), said);
    ++id;
  }
  return text + "\n]}\n";
}

/// Reads texts as files of these names, and settles them.
inline profiles::Profile read_texts(const std::vector<std::pair<std::string, std::string>>& files,
                                    const profiles::AssumedGroups& groups = {}, const profiles::Limits& limits = {}) {
  profiles::Profile profile;
  for (const auto& [name, text] : files) {
    profiles::Pieces file(std::make_unique<std::istringstream>(text), name, limits);
    profiles::read_profile(file, std::nullopt, profile);
  }
  profiles::settle(profile, groups);
  return profile;
}

}  // namespace ringsim::test
