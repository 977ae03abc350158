#include "algorithms/traces/chakra_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/utf8.hpp"
#include "sim/text/json.hpp"

namespace ringsim::traces {

namespace {

constexpr int longest_varint = 10;  // bytes of 64 bits, seven in a byte
constexpr std::size_t longest_name = 1024;

/// NodeType of the format.
enum Type : std::int32_t {
  invalid = 0,
  metadata = 1,
  mem_load = 2,
  mem_store = 3,
  comp = 4,
  comm_send = 5,
  comm_recv = 6,
  comm_coll = 7,
  storage = 8,
  batch = 9,
  checkpoint = 10
};

/// CollectiveCommType of the format.
constexpr CollectiveOp ops[] = {CollectiveOp::all_reduce, CollectiveOp::reduce,         CollectiveOp::all_gather,
                                CollectiveOp::gather,     CollectiveOp::scatter,        CollectiveOp::broadcast,
                                CollectiveOp::all_to_all, CollectiveOp::reduce_scatter, CollectiveOp::reduce_scatter,
                                CollectiveOp::barrier};

}  // namespace

ChakraReader::ChakraReader(std::string file, TraceLimits limits) : limits_(limits) {
  out_.file = std::move(file);
  out_.names.emplace_back();
  known_.emplace("", 0);
  if (!has_chakra())
    throw InputError(
        out_.file,
        "expected a file that this ringsim can read, found a Chakra trace, but ringsim was built without libprotobuf",
        why_no_chakra());
}

void ChakraReader::fail(std::uint64_t at, const std::string& expected, const std::string& found,
                        const std::string& hint) const {
  throw InputError(fmt::format("{}: byte {}", out_.file, at), fmt::format("expected {}, found {}", expected, found),
                   hint);
}

void ChakraReader::fail_node(const std::string& expected, const std::string& found, const std::string& hint) const {
  throw InputError(fmt::format("{}: node {}", out_.file, message_.id),
                   fmt::format("expected {}, found {}", expected, found), hint);
}

std::string ChakraReader::hint_of_damage() const {
  if (first_ == '{' || first_ == '[')
    return "the file is damaged or is JSON; chakra_converter converts PyTorch output to Chakra traces";
  return "the file is damaged or is not a Chakra trace";
}

void ChakraReader::feed(std::string_view piece) {
  if (read_ == 0 && !piece.empty()) first_ = piece.front();
  while (!piece.empty()) {
    if (!in_message_) {
      if (length_bytes_ == 0) began_ = read_;
      const auto byte = static_cast<unsigned char>(piece.front());
      piece.remove_prefix(1);
      ++read_;
      if (length_bytes_ >= longest_varint || (length_bytes_ == longest_varint - 1 && byte > 1))
        fail(began_, "the length of a message, a varint of at most 10 bytes", "a longer one", hint_of_damage());
      length_ |= static_cast<std::uint64_t>(byte & 0x7fU) << (7 * length_bytes_);
      ++length_bytes_;
      if ((byte & 0x80U) != 0) continue;
      if (length_ > limits_.message_bytes)
        fail(began_, fmt::format("messages of at most {} bytes", limits_.message_bytes),
             fmt::format("one of {}", length_), hint_of_damage());
      in_message_ = true;
      length_bytes_ = 0;
    }
    const std::uint64_t missing = length_ - kept_.size();
    const std::size_t n = std::min<std::uint64_t>(missing, piece.size());
    if (n == missing && kept_.empty()) {
      take(piece.substr(0, n));
    } else {
      kept_.append(piece.substr(0, n));
      if (kept_.size() == length_) {
        take(kept_);
        kept_.clear();
      }
    }
    piece.remove_prefix(n);
    read_ += n;
  }
  if (in_message_ && length_ == 0) take({});
}

void ChakraReader::take(std::string_view bytes) {
  in_message_ = false;
  length_ = 0;
  const bool is_read = has_head_ ? read_chakra_node(bytes, message_) : read_chakra_head(bytes, message_);
  if (!is_read)
    fail(began_, has_head_ ? "a node, a protobuf message" : "metadata, a protobuf message", "a damaged one",
         fmt::format("messages nest at most {} deep; {}", most_nested_messages, hint_of_damage()));
  if (!has_head_) return take_head();
  take_node();
}

void ChakraReader::take_head() {
  has_head_ = true;
  out_.version = as_utf8(beginning_of(message_.name, longest_name));
  if (out_.version.empty()) out_.version = text("schema");
  if (const ChakraAttribute* groups = find(head_groups))
    if (const auto* list = std::get_if<std::string>(&groups->value)) take_groups(*list);
}

const ChakraAttribute* ChakraReader::find(std::string_view name) const {
  for (const ChakraAttribute& each : message_.attributes)
    if (each.name == name) return &each;
  return nullptr;
}

std::int64_t ChakraReader::whole(std::string_view name, std::int64_t least, std::int64_t most,
                                 std::int64_t otherwise) const {
  const ChakraAttribute* found = find(name);
  if (found == nullptr) return otherwise;
  const auto expected = [&] { return fmt::format("{} as a whole number from {} to {}", name, least, most); };
  if (const auto* number = std::get_if<std::int64_t>(&found->value)) {
    if (*number < least || *number > most) fail_node(expected(), fmt::to_string(*number));
    return *number;
  }
  if (const auto* count = std::get_if<std::uint64_t>(&found->value)) {
    if (*count > static_cast<std::uint64_t>(most) || static_cast<std::int64_t>(*count) < least)
      fail_node(expected(), fmt::to_string(*count));
    return static_cast<std::int64_t>(*count);
  }
  const char* what = std::holds_alternative<std::string>(found->value)         ? "a text"
                     : std::holds_alternative<double>(found->value)            ? "a real number"
                     : std::holds_alternative<std::vector<bool>>(found->value) ? "a list"
                                                                               : "a value of another type";
  fail_node(expected(), what);
}

std::string ChakraReader::text(std::string_view name) const {
  const ChakraAttribute* found = find(name);
  if (found == nullptr) return "";
  if (const auto* its = std::get_if<std::string>(&found->value)) return as_utf8(beginning_of(*its, longest_name));
  if (const auto* number = std::get_if<std::int64_t>(&found->value)) return fmt::to_string(*number);
  if (const auto* count = std::get_if<std::uint64_t>(&found->value)) return fmt::to_string(*count);
  fail_node(fmt::format("{} as a text", name), "a value of another type");
}

std::uint32_t ChakraReader::name_of(const std::string& text) {
  const std::string its = as_utf8(beginning_of(text, longest_name));
  const auto [found, is_new] = known_.try_emplace(its, static_cast<std::uint32_t>(out_.names.size()));
  if (is_new) out_.names.push_back(its);
  return found->second;
}

Picoseconds ChakraReader::time(std::uint64_t us, const char* field) const {
  constexpr std::uint64_t most = 4'000'000'000'000;  // 46 days, of the 106 that Picoseconds count
  if (us > most) fail_node(fmt::format("{} up to {} us", field, most), fmt::to_string(us));
  return Picoseconds{static_cast<std::int64_t>(us) * 1'000'000};
}

void ChakraReader::take_node() {
  if (out_.nodes.size() >= limits_.nodes)
    fail(began_, fmt::format("at most {} nodes", limits_.nodes), "more", "use a trace of fewer steps");
  if (out_.waits.size() + message_.data.size() + message_.control.size() > limits_.waits)
    fail(began_, fmt::format("at most {} dependencies", limits_.waits), "more", "use a trace of fewer steps");
  TraceNode node;
  node.id = message_.id;
  node.name = name_of(message_.name);
  node.duration = time(message_.duration_us, "duration_micros");
  // Start times count from any moment: the clock of the machine, or the beginning of the trace. Only differences count.
  // Nanoseconds of such a time fit 64 bits.
  constexpr std::uint64_t latest_us = std::uint64_t{9'000'000'000'000'000};
  if (message_.start_us > latest_us)
    fail_node(fmt::format("start_time_micros up to {}", latest_us), fmt::to_string(message_.start_us));
  node.start_us = static_cast<std::int64_t>(message_.start_us);
  node.first_wait = out_.waits.size();
  node.n_data = static_cast<std::uint32_t>(message_.data.size());
  node.n_control = static_cast<std::uint32_t>(message_.control.size());
  out_.waits.insert(out_.waits.end(), message_.data.begin(), message_.data.end());
  out_.waits.insert(out_.waits.end(), message_.control.begin(), message_.control.end());
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  node.on_cpu = whole("is_cpu_op", 0, 1, 0) == 1;
  const std::int64_t thread = whole("tid", -any, any, 0);
  node.stream = node.on_cpu ? thread : whole("stream", -any, any, thread);
  switch (message_.type) {
    case comm_coll:
    case comm_send:
    case comm_recv:
      if (node.on_cpu) {
        ++out_.cpu_collectives;
        break;
      }
      node.kind = message_.type == comm_coll   ? TracedKind::collective
                  : message_.type == comm_send ? TracedKind::send
                                               : TracedKind::receive;
      take_communication(node);
      break;
    case comp:
      if (node.duration.count() == 0 && find("num_ops") != nullptr) ++out_.counted_compute;
      break;
    case invalid:
    case metadata:
      node.kind = TracedKind::nothing;
      node.duration = {};
      // The values are a Python list of one text: ['[{"pg_name": "0", "ranks": [0, 1], ...}]'].
      if (const std::string& values = message_.input_values;
          values.size() >= 4 && message_.name.find("process_group:init") != std::string::npos)
        take_groups(std::string_view(values).substr(2, values.size() - 4));
      break;
    case mem_load:
    case mem_store:
    case storage:
    case batch:
    case checkpoint:
      ++out_.memory_nodes;
      break;
    default:
      fail_node("a type from 0 to 10", fmt::to_string(message_.type), "the trace has a newer format");
  }
  out_.nodes.push_back(node);
}

void ChakraReader::take_communication(TraceNode& node) {
  Communication its;
  constexpr std::int64_t most_bytes = std::int64_t{1} << 60, most_ranks = 1'048'576;
  const bool is_collective = node.kind == TracedKind::collective;
  for (const char* needed : {"comm_type", "comm_size"}) {
    if (find(needed) != nullptr || (!is_collective && std::string_view(needed) == "comm_type")) continue;
    fail_node(fmt::format("the attribute {} of a node of communication", needed), "none",
              "convert the trace again: chakra_converter writes it");
  }
  its.input = Bytes{whole("comm_size", 0, most_bytes, 0)};
  // Of send and receive ASTRA-sim writes types of its own.
  if (is_collective) its.op = ops[whole("comm_type", 0, static_cast<std::int64_t>(std::size(ops)) - 1, 0)];
  its.group = name_of(text("pg_name"));
  its.root = whole("root", -1, most_ranks, -1);
  its.from = whole("comm_src", -1, most_ranks, -1);
  its.to = whole("comm_dst", -1, most_ranks, -1);
  its.tag = whole("comm_tag", 0, std::numeric_limits<std::int64_t>::max(), 0);
  if (const ChakraAttribute* dimensions = find("involved_dim")) {
    const auto* flags = std::get_if<std::vector<bool>>(&dimensions->value);
    if (flags == nullptr) fail_node("involved_dim as a list of true and false", "a value of another type");
    its.in_all_dimensions = std::all_of(flags->begin(), flags->end(), [](bool flag) { return flag; });
  }
  node.communication = static_cast<std::int32_t>(out_.communications.size());
  out_.communications.push_back(its);
}

void ChakraReader::take_groups(std::string_view list) {
  Json groups;
  try {
    groups = parse_json(list, "");
  } catch (const InputError&) {
    return;  // a later version may write another list; then groups must be stated
  }
  if (!groups.is_array()) return;
  for (const Json& group : groups) {
    if (!group.is_object() || !group.contains("pg_name") || !group["pg_name"].is_string() || !group.contains("ranks") ||
        !group["ranks"].is_array())
      continue;
    std::vector<std::uint32_t> ranks;
    for (const Json& rank : group["ranks"])
      if (rank.is_number_unsigned() && rank.get<std::uint64_t>() < 1'048'576)
        ranks.push_back(rank.get<std::uint32_t>());
    if (!ranks.empty() && ranks.size() == group["ranks"].size())
      out_.groups[group["pg_name"].get<std::string>()] = std::move(ranks);
  }
}

ExecutionTrace ChakraReader::finish() {
  if (in_message_ || length_bytes_ > 0)
    fail(began_, in_message_ ? fmt::format("a message of {} bytes", length_) : "the length of a message",
         fmt::format("the end of the file after {}", read_ - began_),
         first_ == '{' || first_ == '[' ? hint_of_damage() : "the file is truncated");
  if (out_.nodes.empty()) throw InputError(out_.file, "expected a Chakra trace, found one without nodes");
  return std::move(out_);
}

ExecutionTrace read_chakra(std::string_view text, const std::string& file, TraceLimits limits) {
  ChakraReader reader(file, limits);
  reader.feed(text);
  return reader.finish();
}

}  // namespace ringsim::traces
