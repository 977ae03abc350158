#include "tools/traces/kineto_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/text/json.hpp"

namespace ringsim::tools {

namespace {

using TracedKernel = Recording::Kernel;

/// How PyTorch and NCCL name an operation.
struct KinetoName {
  std::string_view collective, kernel;
};

KinetoName kineto_name(CollectiveOp op, const Recording::Traffic* traffic) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return {"allreduce", "AllReduce"};
    case CollectiveOp::reduce_scatter:
      return {"_reduce_scatter_base", "ReduceScatter"};
    case CollectiveOp::all_gather:
      return {"_allgather_base", "AllGather"};
    case CollectiveOp::broadcast:
      return {"broadcast", "Broadcast"};
    case CollectiveOp::reduce:
      return {"reduce", "Reduce"};
    case CollectiveOp::all_to_all:
      return {"all_to_all", "SendRecv"};
    case CollectiveOp::scatter:
      return {"scatter", "SendRecv"};
    case CollectiveOp::gather:
      return {"gather", "SendRecv"};
    case CollectiveOp::barrier:
      return {"barrier", "AllReduce"};
    case CollectiveOp::send_recv:
    case CollectiveOp::pairs:
      break;
  }
  const bool sends = traffic != nullptr && traffic->sent.count > 0;
  const bool receives = traffic != nullptr && traffic->received.count > 0;
  return {sends && !receives ? "send" : receives && !sends ? "recv" : "coalesced", "SendRecv"};
}

/// Bytes that go in and come out, per rank.
std::pair<std::int64_t, std::int64_t> in_and_out(const Recording::Call& call, std::size_t ranks,
                                                 const Recording::Traffic* traffic) {
  if (traffic != nullptr) return {traffic->sent.count, traffic->received.count};
  const std::int64_t bytes = call.bytes.count,
                     share = bytes / static_cast<std::int64_t>(std::max<std::size_t>(ranks, 1));
  switch (call.op) {
    case CollectiveOp::all_gather:
    case CollectiveOp::gather:
      return {share, bytes};
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::scatter:
      return {bytes, share};
    default:
      return {bytes, bytes};
  }
}

std::int64_t kineto_ns(SimTime time) { return time.time_since_epoch().count() / 1000; }

std::string us_text(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

}  // namespace

KinetoTraces::KinetoTraces(const Recording& recording, const KinetoJob& job)
    : recording_(recording), places_(recording.calls.size()) {
  std::vector<SimTime> first(recording.calls.size(), SimTime::max());
  for (const auto& kernels : recording.kernels)
    for (const TracedKernel& kernel : kernels)
      if (kernel.call >= 0)
        first[static_cast<std::size_t>(kernel.call)] =
            std::min(first[static_cast<std::size_t>(kernel.call)], kernel.begin);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < recording.calls.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
  std::map<std::vector<Actor>, std::size_t> groups;
  std::vector<int> n_calls;          // [group]
  std::vector<std::string> configs;  // [group]
  for (const std::size_t i : order)
    for (const std::vector<Actor>& members : recording.calls[i].groups) {
      const auto [known, is_new] = groups.try_emplace(members, groups.size());
      const std::size_t group = known->second;
      if (is_new) {
        n_calls.push_back(0);
        configs.push_back(fmt::format(
            R"({{"pg_name": "{}", "pg_desc": "group {}", "backend_config": "cuda:nccl", "pg_size": {}, "ranks": [{}]}})",
            group, group, members.size(), fmt::join(members, ", ")));
      }
      places_[i].push_back({.group = group, .number = ++n_calls[group]});
    }
  job_ = fmt::format(
      R"("world_size": {}, "pg_count": {}, "pg_config": [{}]{})", job.ranks, configs.size(), fmt::join(configs, ", "),
      job.nccl_version.empty() ? "" : fmt::format(R"(, "nccl_version": {})", json_text(Json(job.nccl_version))));
}

std::string KinetoTraces::call_arguments(const TracedKernel& kernel, Actor rank, std::string& name) const {
  const auto index = static_cast<std::size_t>(kernel.call);
  const Recording::Call& call = recording_.calls[index];
  for (std::size_t g = 0; g < call.groups.size(); ++g) {
    const std::vector<Actor>& members = call.groups[g];
    const auto member = std::find(members.begin(), members.end(), rank);
    if (member == members.end()) continue;
    const Recording::Traffic* traffic =
        call.traffic.empty() ? nullptr : &call.traffic[g][static_cast<std::size_t>(member - members.begin())];
    const KinetoName words = kineto_name(call.op, traffic);
    const auto [in, out] = in_and_out(call, members.size(), traffic);
    const auto [group, number] = places_[index][g];
    name = fmt::format("ncclDevKernel_{}", words.kernel);
    std::string text = fmt::format(
        R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "Group size": {}, "dtype": "Byte", "Process Group Name": "{}", "Process Group Description": "group {}", "Process Group Ranks": "[{}]", "Seq": {})",
        words.collective, in, out, members.size(), group, group, fmt::join(members, ", "), number);
    if (has_root(call.op)) text += fmt::format(R"(, "Root rank": {})", call.root);
    return text;
  }
  return "";
}

std::string KinetoTraces::of(std::uint32_t rank) const {
  std::string text = fmt::format(
      R"({{"schemaVersion": 1, "deviceProperties": [], "distributedInfo": {{"backend": "nccl", "rank": {}, {}}}, "displayTimeUnit": "ms", "traceName": "rank{}.json", "traceEvents": [)",
      rank, job_, rank);
  const std::vector<TracedKernel>& kernels = recording_.kernels.at(rank);
  const std::int64_t begin = kernels.empty() ? 0 : kineto_ns(kernels.front().begin);
  std::int64_t end = begin;
  for (const TracedKernel& kernel : kernels) end = std::max(end, kineto_ns(kernel.end));
  text += fmt::format(
      R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": {}, "tid": 1, "ts": {}, "dur": {}, "args": {{}}}})",
      1000 + rank, us_text(begin), us_text(end - begin));
  int id = 0;
  for (const TracedKernel& kernel : kernels) {
    const std::int64_t from = kineto_ns(kernel.begin), to = kineto_ns(kernel.end);
    const auto stream = static_cast<int>(kernel.stream) + 7;  // NCCL's and PyTorch's own streams begin there
    ++id;
    const std::string when = fmt::format(R"("ts": {}, "dur": {})", us_text(from), us_text(to - from));
    if (kernel.kind == Program::StreamKind::host) {
      text += fmt::format(
          ",\n"
          R"({{"ph": "X", "cat": "cpu_op", "name": {}, "pid": {}, "tid": {}, {}, "args": {{"External id": {}}}}})",
          json_text(Json(kernel.name)), 1000 + rank, stream, when, id);
      continue;
    }
    std::string name = kernel.name;
    const std::string arguments = kernel.call < 0 ? "" : call_arguments(kernel, static_cast<Actor>(rank), name);
    text += fmt::format(
        ",\n"
        R"({{"ph": "X", "cat": "kernel", "name": {}, "pid": 0, "tid": {}, {}, "args": {{"External id": {}, "device": 0, "context": 1, "stream": {}, "correlation": {}{}{}}}}})",
        json_text(Json(name)), stream, when, id, stream, id, arguments,
        kernel.call < 0 ? "" : fmt::format(R"(, "task": {})", json_text(Json(kernel.name))));
  }
  return text + "\n]}\n";
}

}  // namespace ringsim::tools
