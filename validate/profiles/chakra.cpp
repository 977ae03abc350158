#include "validate/profiles/chakra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "algorithms/traces/chakra_reader.hpp"
#include "algorithms/traces/rank_trace.hpp"
#include "sim/base/ascii.hpp"
#include "sim/base/error.hpp"
#include "sim/text/foreign_format.hpp"
#include "validate/profiles/kineto.hpp"

namespace ringsim::profiles {

namespace {

using traces::Communication;
using traces::ExecutionTrace;
using traces::TracedKind;
using traces::TraceNode;

bool is_named_so(std::string_view name) { return name.ends_with(".et") || name.ends_with(".et.gz"); }

/// 3 of "job.3.et", "chakra_3.et.gz" and "rank3.et": after "rank", else all digits that end the name before its ending,
/// if a dot, a dash or an underscore stands before them, or nothing.
std::optional<std::uint32_t> rank_of_trace(std::string_view path) {
  if (const auto rank = rank_of_name(path)) return rank;
  if (const std::size_t bar = path.rfind('/'); bar != std::string_view::npos) path.remove_prefix(bar + 1);
  if (path.ends_with(".gz")) path.remove_suffix(3);
  path = path.substr(0, path.rfind('.'));
  std::size_t begin = path.size();
  while (begin > 0 && is_digit(path[begin - 1])) --begin;
  if (begin > 0 && path[begin - 1] != '.' && path[begin - 1] != '-' && path[begin - 1] != '_') return std::nullopt;
  std::uint32_t out = 0;
  const auto [at, error] = std::from_chars(path.data() + begin, path.data() + path.size(), out);
  return begin < path.size() && error == std::errc() ? std::optional(out) : std::nullopt;
}

CallOp op_of(const TraceNode& node, const Communication& its) {
  if (node.kind == TracedKind::send) return CallOp::send;
  if (node.kind == TracedKind::receive) return CallOp::recv;
  switch (its.op) {
    case CollectiveOp::all_reduce:
      return CallOp::all_reduce;
    case CollectiveOp::reduce_scatter:
      return CallOp::reduce_scatter;
    case CollectiveOp::all_gather:
      return CallOp::all_gather;
    case CollectiveOp::broadcast:
      return CallOp::broadcast;
    case CollectiveOp::all_to_all:
      return CallOp::all_to_all;
    case CollectiveOp::reduce:
      return CallOp::reduce;
    case CollectiveOp::scatter:
      return CallOp::scatter;
    case CollectiveOp::gather:
      return CallOp::gather;
    case CollectiveOp::barrier:
      return CallOp::barrier;
    case CollectiveOp::pairs:
    case CollectiveOp::send_recv:
      break;
  }
  fail_invariant("a trace has no such collective");
}

}  // namespace

bool is_chakra(std::string_view name, std::string_view beginning) {
  if (is_named_so(name)) return true;
  return is_chakra_trace(beginning.substr(0, recognized_bytes));
}

void read_chakra_profile(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile) {
  traces::ChakraReader reader(file.name(), {.nodes = file.limits().records});
  std::string piece;
  while (file.next(piece)) reader.feed(piece);
  const ExecutionTrace trace = reader.finish();
  const traces::TraceCounts counts = count_trace(trace);
  if (!rank) rank = rank_of_trace(file.name());
  const std::string hint = fmt::format("set the rank with --rank {}=N", file.name());
  if (!rank) throw InputError(file.name(), "expected the rank in the file's name, as in job.3.et, found none", hint);
  if (*rank >= file.limits().ranks)
    throw InputError(file.name(), fmt::format("expected a rank below {}, found {}", file.limits().ranks, *rank), hint);
  ProfileSource source{.file = file.name(),
                       .format = trace.version.empty() ? "Chakra" : "Chakra " + trace.version.substr(0, 64),
                       .rank = *rank,
                       .about = describe(counts)};
  for (const TraceNode& node : trace.nodes) {
    if (node.communication < 0) continue;
    const Communication& its = trace.communications[static_cast<std::size_t>(node.communication)];
    Call call;
    call.rank = *rank;
    call.op = op_of(node, its);
    call.bytes = its.input.count;
    call.size_from = SizeFrom::comm_size;
    if (call.op == CallOp::all_gather || call.op == CallOp::gather) call.flags |= Call::is_share;
    call.root = static_cast<std::int32_t>(its.root);
    call.stream = static_cast<std::uint32_t>(node.stream & 0xffffffff);
    call.end_ns = node.duration.count() / 1000;
    if (counts.has_times) {
      call.begin_ns = node.start_us * 1000;
      call.end_ns += call.begin_ns;
      call.flags |= Call::is_timed;
    }
    const std::string& name = trace.names[its.group];
    if (const auto known = trace.groups.find(name); known != trace.groups.end())
      call.group = profile.group(name, static_cast<std::uint32_t>(known->second.size()), known->second);
    else if (!name.empty())
      call.group = profile.group(name, 0, {});
    if (profile.groups.size() > file.limits().groups)
      throw InputError(file.name(), fmt::format("expected at most {} groups, found more", file.limits().groups));
    if (profile.calls.size() >= file.limits().records)
      throw InputError(file.name(), fmt::format("expected at most {} calls, found more", file.limits().records),
                       "increase --limit-records");
    ++source.kernels;
    ++source.calls;
    profile.calls.push_back(call);
  }
  for (const auto& [name, members] : trace.groups)
    source.world = std::max(source.world, static_cast<std::uint32_t>(members.size()));
  profile.sources.push_back(std::move(source));
}

}  // namespace ringsim::profiles
