#include "validate/profiles/nsight_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"
#include "validate/profiles/call_names.hpp"

namespace ringsim::profiles {

namespace {

constexpr const char* events_table = "NVTX_EVENTS";
constexpr std::int64_t most_bytes_of_calls = std::int64_t{1} << 60;

/// Ranges within which NCCL's calls are made; others have one thread's begin and another's end.
constexpr std::int64_t push_pop_range = 59, mark = 34;  // ENUM_NSYS_EVENT_TYPE

/// Bytes of an entry that is a whole number, as nvToolsExtPayload.h numbers types (NVTX_PAYLOAD_ENTRY_TYPE_*): char,
/// short, int, long, long long, then int8 to uint64, and size_t. Linux on 64 bits. 0: another type.
std::size_t bytes_of_type(std::int64_t type) {
  static constexpr std::array<std::size_t, 23> sizes{0, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 1,
                                                     1, 2, 2, 4, 4, 8, 8, 0, 0, 0, 8};
  return type >= 0 && type < static_cast<std::int64_t>(sizes.size()) ? sizes[static_cast<std::size_t>(type)] : 0;
}

/// Little-endian, as all machines that Nsight Systems runs on.
std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// "64" of "..., data_size 64, ..." after the word; nothing if it is not there, or no number.
std::optional<std::uint64_t> value_after(std::string_view text, std::string_view word, int base = 10) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + word.size());
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

/// Sizes that NCCL's API gives for one rank.
bool is_share_of(CallOp op) {
  return op == CallOp::all_gather || op == CallOp::reduce_scatter || op == CallOp::all_to_all || op == CallOp::gather ||
         op == CallOp::scatter;
}

/// Calls of one group, launched together.
RangeSaid combined(const std::vector<RangeSaid>& calls) {
  if (calls.size() == 1) return calls.front();
  RangeSaid all;
  all.lost = Lost::coalesced;
  if (calls.empty()) return all;
  const RangeSaid& first = calls.front();
  const auto every = [&](auto test) { return std::all_of(calls.begin(), calls.end(), test); };
  if (every([&](const RangeSaid& call) { return call.communicator == first.communicator; }))
    all.communicator = first.communicator;
  if (every([](const RangeSaid& call) { return is_point_to_point(call.op); })) {
    all.is_send_recv = all.knows_sends = true;
    std::int64_t one = no_value;
    for (const RangeSaid& call : calls) {
      if (call.op != CallOp::send) continue;
      all.knows_sends = all.knows_sends && call.lost == Lost::nothing && call.bytes <= most_bytes_of_calls - all.sent;
      if (!all.knows_sends) break;
      all.sent += call.bytes;
      all.sends_differ = all.sends_differ || (one != no_value && call.bytes != one);
      one = call.bytes;
    }
    return all;
  }
  // NCCL launches calls of one operation as one: their sizes add up, as for coalesced calls of PyTorch.
  const bool is_one_op = every([&](const RangeSaid& call) {
    return call.op == first.op && call.root == first.root && call.communicator == first.communicator;
  });
  if (!is_one_op || first.op == CallOp::unknown) return all;
  all = first;
  for (std::size_t i = 1; i < calls.size() && all.lost == Lost::nothing; ++i) {
    all.lost = calls[i].lost;
    if (all.lost == Lost::nothing && calls[i].bytes > most_bytes_of_calls - all.bytes) all.lost = Lost::coalesced;
    if (all.lost == Lost::nothing) all.bytes += calls[i].bytes;
  }
  if (all.lost != Lost::nothing) all.bytes = no_value;
  return all;
}

}  // namespace

NsightRanges::NsightRanges(NsightDatabase& database, const NsightStrings& strings, std::size_t most) {
  read_schemas(database);
  read_events(database, strings, most);
  put_together();
}

void NsightRanges::read_schemas(NsightDatabase& database) {
  // Processes register the same schemas, so rows come several times. An offset of 0 is NULL.
  constexpr std::size_t most_entries = 10'000;
  std::size_t n = 0;
  database.each_row(
      "NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "idx", "type", "name", "offset"},
      [&](const NsightRow& row) {
        const auto domain = row.whole(0), schema = row.whole(1), index = row.whole(2), type = row.whole(3),
                   offset = row.is_null(5) ? std::optional<std::int64_t>(0) : row.whole(5);
        if (!domain || !schema || !index || !type || !offset || *offset < 0 || *offset > 4096 || ++n > most_entries)
          return;
        schemas_[{static_cast<std::uint64_t>(*domain), static_cast<std::uint64_t>(*schema)}].try_emplace(
            *index, Entry{.name = std::string(row.text(4).substr(0, 64)),
                          .type = *type,
                          .offset = static_cast<std::size_t>(*offset)});
      });
}

void NsightRanges::set(Payload& payload, std::string_view name, std::uint64_t value) {
  if (name == "NCCL communicator ID") payload.communicator = value;
  if (name == "Message size [bytes]") payload.bytes = value;
  if (name == "Root") payload.root = value;
  if (name == "No. of ranks") payload.ranks = value;
  if (name == "Rank") payload.rank = value;
  if (name == "CUDA device") payload.device = value;
}

/// A payload in the column binaryData has four numbers of 8 bytes before it: domain, schema, its size, and where it
/// begins. Two public readers of such files agree on all but the last, for which one has its end: both are read.
/// Source: GindaChen/nsys-ai src/nsys_ai/nccl_communicator.py and skills/builtins/nccl_payload_breakdown.py.
std::optional<NsightRanges::Payload> NsightRanges::decoded(std::string_view blob) const {
  constexpr std::size_t header = 32;
  if (blob.size() < header) return std::nullopt;
  const std::uint64_t size = number_at(blob, 16, 8), begin = number_at(blob, 24, 8);
  if (size > blob.size() - header) return std::nullopt;
  const bool is_begin = begin >= header && begin <= blob.size() - size;
  const std::string_view bytes = blob.substr(is_begin ? begin : header, size);
  const auto schema = schemas_.find({number_at(blob, 0, 8), number_at(blob, 8, 8)});
  if (schema == schemas_.end()) return std::nullopt;
  Payload payload;
  for (const auto& each : schema->second) {
    const Entry& entry = each.second;
    const std::size_t width = bytes_of_type(entry.type);
    if (width == 0) continue;  // such as "Reduction operation", an enumeration
    if (entry.offset + width > bytes.size()) return std::nullopt;
    set(payload, entry.name, number_at(bytes, entry.offset, width));
  }
  return payload;
}

/// A JSON object whose keys are the names of the same entries. No public report with such payloads is known.
std::optional<NsightRanges::Payload> NsightRanges::decoded_json(std::string_view text) {
  const auto value = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return std::nullopt;
  Payload payload;
  for (const auto& item : value.items())
    if (item.value().is_number_unsigned()) set(payload, item.key(), item.value().get<std::uint64_t>());
  return payload;
}

void NsightRanges::read_events(NsightDatabase& database, const NsightStrings& strings, std::size_t most) {
  const bool has_type = database.has(events_table, "eventType");
  enum { start, end, type, text, text_id, thread, binary, json };
  database.each_row(
      events_table, {"start", "end", "eventType", "text", "textId", "globalTid", "binaryData", "jsonText"},
      [&](const NsightRow& row) {
        std::string_view name = row.text(text);
        if (name.empty() && !row.is_null(text_id)) {
          const auto number = row.whole(text_id);
          if (!number) ++skipped_;
          const auto known = strings.find(number.value_or(-1));
          if (known == strings.end()) return;
          name = known->second;
        }
        const bool is_init_text = mentions(name, "commHash ") && mentions(name, " nranks ");
        if (!name.starts_with("nccl") && !is_init_text) return;
        const auto begins = row.whole(start);
        const auto kind = has_type ? row.whole(type) : std::optional(push_pop_range);
        const auto its_thread = row.whole(thread);
        // The end of a mark is NULL, and that of a range that had not ended.
        const auto ends = row.is_null(end) ? begins : row.whole(end);
        if (!begins || !kind || !ends || !its_thread || *begins < -latest_ns || *ends > latest_ns || *ends < *begins) {
          ++skipped_;
          return;
        }
        if (*kind != push_pop_range && !(*kind == mark && is_init_text)) return;
        if (ranges_.size() + pytorch_.size() >= most)
          database.fail(events_table, row.number(), fmt::format("expected at most {} ranges of NCCL, found more", most),
                        "increase --limit-records, or profile fewer steps");
        Payload payload;
        const std::string_view blob = row.text(binary), said = row.text(json);
        if (!blob.empty() || !said.empty()) {
          const auto read = !blob.empty() ? decoded(blob) : decoded_json(said);
          if (read)
            payload = *read, has_payloads_ = true;
          else
            ++unread_;
        }
        take(name, {.thread = static_cast<std::uint64_t>(*its_thread), .begin = *begins, .end = *ends}, payload);
      });
}

void NsightRanges::take(std::string_view name, Range range, const Payload& its) {
  const auto id_of = [](std::uint64_t hash) { return fmt::format("0x{:x}", hash); };
  has_events_ = true;
  if (name.starts_with("nccl:")) {
    range.kind = Kind::pytorch;
    const NamedOp named = named_op(name);
    range.said.op = named.op;
    if (named.sizes_differ) range.said.flags |= Call::sizes_differ;
    range.said.lost = named.coalesced                ? Lost::coalesced
                      : named.op == CallOp::unknown  ? Lost::unknown_op
                      : mentions(name, "sizes = [[") ? Lost::unknown_type
                                                     : Lost::no_payload;
    pytorch_.push_back(std::move(range));
    return;
  }
  Payload payload = its;
  const std::string_view call = name.substr(0, name.find('('));
  if (mentions(name, "commHash ")) {  // as text
    payload.communicator = value_after(name, "commHash ", 16);
    payload.bytes = value_after(name, "data_size ");
    payload.root = value_after(name, " root ");
    payload.ranks = value_after(name, " nranks ");
    payload.rank = value_after(name, " rank ");
  }
  constexpr std::uint32_t most_ranks = 65536;
  if (payload.ranks && payload.rank && payload.communicator) {
    if (*payload.ranks <= most_ranks && *payload.rank < *payload.ranks)
      ranks_.push_back(
          {.process = process_of(range.thread),
           .communicator = id_of(*payload.communicator),
           .rank = static_cast<std::uint32_t>(*payload.rank),
           .size = static_cast<std::uint32_t>(*payload.ranks),
           .device = payload.device ? std::optional(static_cast<std::int64_t>(*payload.device)) : std::nullopt});
    else
      ++unread_;
    return;
  }
  if (call == "ncclGroupStart" || call == "ncclGroupEnd") {
    range.kind = call == "ncclGroupStart" ? Kind::group_start : Kind::group_end;
  } else {
    if (!call.starts_with("nccl")) return;
    range.said.op = named_op(call == "ncclBcast" ? "broadcast" : call.substr(4)).op;
    if (range.said.op == CallOp::unknown) return;  // ncclCommCount and others launch nothing
    if (payload.communicator) range.said.communicator = id_of(*payload.communicator);
    if (payload.root && *payload.root < most_ranks) range.said.root = static_cast<std::int32_t>(*payload.root);
    if (payload.bytes && *payload.bytes <= static_cast<std::uint64_t>(most_bytes_of_calls)) {
      range.said.bytes = static_cast<std::int64_t>(*payload.bytes);
      range.said.lost = Lost::nothing;
      if (is_share_of(range.said.op)) range.said.flags |= Call::is_share;
    }
  }
  ranges_.push_back(std::move(range));
}

/// Leaves in ranges_ those in which kernels are launched.
void NsightRanges::put_together() {
  const auto by_time = [](const Range& a, const Range& b) {
    return std::tuple(a.thread, a.begin, b.end) < std::tuple(b.thread, b.begin, a.end);
  };
  std::stable_sort(ranges_.begin(), ranges_.end(), by_time);
  std::stable_sort(pytorch_.begin(), pytorch_.end(), by_time);
  for (std::size_t i = 0; i < pytorch_.size(); ++i) {
    const bool same_thread = i > 0 && pytorch_[i].thread == pytorch_[i - 1].thread;
    latest_.push_back(same_thread ? std::max(latest_[i - 1], pytorch_[i].end) : pytorch_[i].end);
  }
  std::vector<Range> out;
  std::vector<RangeSaid> group;
  int depth = 0;
  std::uint64_t thread = ranges_.empty() ? 0 : ranges_.front().thread;
  RangeSaid* outer = nullptr;  // of the last call, in which a patched NCCL has the same call as a second range
  std::int64_t outer_end = 0;
  for (Range& range : ranges_) {
    if (range.thread != thread) {
      thread = range.thread;
      depth = 0;
      group.clear();
      outer = nullptr;
    }
    if (range.kind == Kind::group_start) {
      if (depth++ == 0) group.clear();
      outer = nullptr;
    } else if (range.kind == Kind::group_end) {
      const bool is_whole = depth > 0;
      if (is_whole && --depth > 0) continue;
      range.said = combined(group);
      if (!is_whole) range.said = {.lost = Lost::no_launch};  // the group began before the profile
      out.push_back(std::move(range));
      group.clear();
      outer = nullptr;
    } else if (outer != nullptr && range.end <= outer_end) {
      if (outer->lost != Lost::nothing && range.said.op == outer->op) *outer = range.said;
    } else {
      outer_end = range.end;
      if (depth > 0) {
        group.push_back(std::move(range.said));
        outer = &group.back();
      } else {
        out.push_back(std::move(range));
        outer = &out.back().said;
      }
    }
  }
  ranges_ = std::move(out);
}

std::optional<NsightRanges::Found> NsightRanges::at(std::uint64_t thread, std::int64_t moment) const {
  const auto place = std::pair(thread, moment);
  const auto is_before = [](const std::pair<std::uint64_t, std::int64_t>& at, const Range& each) {
    return at < std::pair(each.thread, each.begin);
  };
  const Range* named = nullptr;
  constexpr int most_looks = 1000;  // ranges of a thread are nested a few deep
  auto after = std::upper_bound(pytorch_.begin(), pytorch_.end(), place, is_before);
  for (int looks = 0; after != pytorch_.begin() && looks < most_looks; ++looks) {
    --after;
    if (after->thread != thread || latest_[static_cast<std::size_t>(after - pytorch_.begin())] < moment) break;
    if (after->end < moment) continue;
    named = &*after;
    break;
  }
  const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), place, is_before);
  const bool is_within = next != ranges_.begin() && std::prev(next)->thread == thread && std::prev(next)->end >= moment;
  if (!is_within) {
    if (named == nullptr) return std::nullopt;
    return Found{.said = named->said, .range = ranges_.size() + static_cast<std::size_t>(named - pytorch_.data())};
  }
  Found found{.said = std::prev(next)->said, .range = static_cast<std::size_t>(std::prev(next) - ranges_.begin())};
  RangeSaid& said = found.said;
  if (named == nullptr || !said.is_send_recv) return found;
  // PyTorch's all_to_all is a group of sends and receives (torch/csrc/cuda/nccl.cpp), one of them to itself.
  said.op = named->said.op;
  said.flags |= named->said.flags;
  if (said.op == CallOp::all_to_all && said.knows_sends) {
    said.bytes = said.sent;
    said.lost = Lost::nothing;
    if (said.sends_differ) said.flags |= Call::sizes_differ;
  } else if (said.op == CallOp::all_to_all) {
    said.lost = Lost::no_payload;
  }
  return found;
}

}  // namespace ringsim::profiles
