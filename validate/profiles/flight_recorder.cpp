#include "validate/profiles/flight_recorder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/ascii.hpp"
#include "sim/base/error.hpp"
#include "sim/base/utf8.hpp"
#include "sim/text/json.hpp"
#include "validate/profiles/call_names.hpp"
#include "validate/profiles/json_values.hpp"
#include "validate/profiles/kineto.hpp"
#include "validate/profiles/trace_events.hpp"

namespace ringsim::profiles {

namespace {

constexpr const char* not_a_dump = "the file is damaged or is not a PyTorch Flight Recorder dump";
constexpr std::int64_t most_number = std::int64_t{1} << 60;
constexpr std::size_t most_texts = std::size_t{1} << 20;

TraceEvents::Document dump_document() {
  // PyTorch's dump_json() leaves "entries" out if there are none.
  return {.what = "PyTorch Flight Recorder dump",
          .events = "entries",
          .members = {"version", "pg_config", "comm_lib_version", "nccl_version"},
          .may_lack_events = true};
}

bool is_installed(std::string_view file) {
  return file.find("/site-packages/") != std::string_view::npos ||
         file.find("/dist-packages/") != std::string_view::npos || file.find("/torch/") != std::string_view::npos ||
         file.starts_with("torch/") || file.starts_with('<');
}

class FlightReader {
 public:
  explicit FlightReader(Pieces& file) : file_(file), limits_(file.limits()) { dump_.texts.emplace_back(); }

  FlightDump read(std::optional<std::uint32_t> rank) {
    TraceEvents events(file_.name(), limits_, dump_document(),
                       {.member = [this](std::string_view key, std::string_view value) { member(key, value); },
                        .event = [this](std::string_view entry, std::uint64_t at) { take(entry, at); }});
    std::string piece;
    while (file_.next(piece)) events.feed(piece);
    events.end();
    finish(rank);
    return std::move(dump_);
  }

 private:
  using json = nlohmann::json;

  [[noreturn]] void fail(const std::string& message, const std::string& hint = not_a_dump) const {
    throw InputError(fmt::format("{}: byte {}", file_.name(), at_), message, hint);
  }
  [[noreturn]] void fail_at(const std::string& key, const std::string& message,
                            const std::string& hint = not_a_dump) const {
    throw InputError(fmt::format("{}: /{}", file_.name(), key), message, hint);
  }

  static std::string found(const json& value) {
    return value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace).substr(0, 60);
  }

  // The document's members.

  void member(std::string_view key, std::string_view text) {
    const json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) fail_at(std::string(key), "expected JSON, found text that is not");
    if (key == "pg_config") return take_groups(value);
    if (!value.is_string()) fail_at(std::string(key), fmt::format("expected a text, found {}", found(value)));
    (key == "version" ? dump_.version : dump_.nccl_version) = value.get<std::string>();
  }

  void take_groups(const json& groups) {
    if (!groups.is_object()) fail_at("pg_config", fmt::format("expected an object, found {}", found(groups)));
    for (const auto& item : groups.items()) {
      const json& each = item.value();
      if (!each.is_object() || !each.contains("ranks"))
        fail_at("pg_config/" + item.key(), fmt::format("expected an object with \"ranks\", found {}", found(each)));
      FlightGroup& group = dump_.groups[group_of(item.key())];
      if (const auto text = each.find("desc"); text != each.end() && text->is_string())
        group.description = text->get<std::string>();
      group.members = ranks_of(each.at("ranks"), limits_.ranks);
      std::vector<std::uint32_t> sorted = group.members;
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() ||
          (sorted.empty() && each.at("ranks") != "[]" && each.at("ranks") != nlohmann::json("")))
        fail_at("pg_config/" + item.key() + "/ranks",
                fmt::format("expected ranks below {}, each once, found {}", limits_.ranks, found(each.at("ranks"))));
    }
  }

  std::uint32_t group_of(const std::string& name) {
    const auto [known, is_new] = group_index_.try_emplace(name, static_cast<std::uint32_t>(dump_.groups.size()));
    if (is_new) {
      if (dump_.groups.size() == limits_.groups)
        throw InputError(file_.name(), fmt::format("expected at most {} process groups, found more", limits_.groups),
                         not_a_dump);
      dump_.groups.push_back({.name = name, .description = "", .members = {}});
    }
    return known->second;
  }

  std::uint32_t text(const std::string& words) {
    if (words.empty()) return 0;
    const auto [known, is_new] = text_index_.try_emplace(words, static_cast<std::uint32_t>(dump_.texts.size()));
    if (is_new) {
      if (dump_.texts.size() == most_texts)
        fail(fmt::format("expected at most {} names, shapes and places, found more", most_texts));
      dump_.texts.push_back(words);
    }
    return known->second;
  }

  // Entries.

  const json& value_of(const json& entry, const char* key) const {
    const auto at = entry.find(key);
    if (at == entry.end()) fail(fmt::format("expected \"{}\" in the entry, found no such key", key));
    return *at;
  }

  std::int64_t number_of(const json& entry, const char* key) const {
    const json& value = value_of(entry, key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(most_number))
      fail(fmt::format("expected \"{}\" to be a whole number from 0 to 2^60, found {}", key, found(value)));
    return value.get<std::int64_t>();
  }

  std::string text_of_key(const json& entry, const char* key) const {
    const json& value = value_of(entry, key);
    if (!value.is_string()) fail(fmt::format("expected \"{}\" to be a string, found {}", key, found(value)));
    return value.get<std::string>();
  }

  bool truth(const json& entry, const char* key, bool otherwise) const {
    const auto at = entry.find(key);
    if (at == entry.end()) return otherwise;
    if (!at->is_boolean()) fail(fmt::format("expected \"{}\" to be true or false, found {}", key, found(*at)));
    return at->get<bool>();
  }

  std::int64_t elements_of(const json& shape, const std::string& key) const {
    if (!shape.is_array()) fail(fmt::format("expected \"{}\" to be lists of numbers, found {}", key, found(shape)));
    std::int64_t elements = 1;
    for (const json& dim : shape) {
      const auto next = dim.is_number_unsigned() && dim.get<std::uint64_t>() <= static_cast<std::uint64_t>(most_number)
                            ? product(elements, dim.get<std::int64_t>())
                            : std::nullopt;
      if (!next || *next > most_number)
        fail(fmt::format("expected \"{}\" with at most 2^60 elements, found {}", key, found(shape)));
      elements = *next;
    }
    return elements;
  }

  FlightTensors tensors_of(const json& entry, const std::string& way) {
    const std::string shapes_key = way + "_sizes", types_key = way + "_dtypes";
    const json& shapes = value_of(entry, shapes_key.c_str());
    if (!shapes.is_array()) fail(fmt::format("expected \"{}\" to be a list, found {}", shapes_key, found(shapes)));
    const auto types = entry.find(types_key);  // older dumps lack it
    if (types != entry.end() && !types->is_array())
      fail(fmt::format("expected \"{}\" to be a list, found {}", types_key, found(*types)));
    FlightTensors tensors;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::int64_t elements = elements_of(shapes[i], shapes_key);
      tensors.elements += elements;
      std::optional<int> size;
      if (types != entry.end() && i < types->size()) {
        if (!(*types)[i].is_string())
          fail(fmt::format("expected \"{}\" to be a list of strings, found {}", types_key, found(*types)));
        const std::string name = beginning_of((*types)[i].get<std::string>(), 64);
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        size = element_bytes(name);
      }
      const auto bytes = size ? product(elements, *size) : std::nullopt;
      std::int64_t sum = 0;
      tensors.bytes =
          bytes && tensors.bytes != no_value && !__builtin_add_overflow(tensors.bytes, *bytes, &sum) ? sum : no_value;
      if (tensors.elements > most_number)
        fail(fmt::format("expected \"{}\" with at most 2^60 elements, found more", shapes_key));
    }
    constexpr std::size_t longest = 80;
    std::string spaced;
    if (!shapes.empty()) {
      for (const char c : shapes.dump().substr(0, longest + 1)) {
        spaced += c;
        if (c == ',') spaced += ' ';
      }
    }
    if (spaced.size() > longest) spaced = spaced.substr(0, longest - 3) + "...";
    tensors.shapes = text(spaced);
    tensors.dtypes = text(fmt::format("{}", fmt::join(names, ", ")));
    return tensors;
  }

  /// The innermost frame that is not PyTorch's own; else the innermost one.
  std::uint32_t place_of(const json& entry) {
    const auto frames = entry.find("frames");
    if (frames == entry.end() || !frames->is_array()) return 0;
    const json* best = nullptr;
    const auto word = [](const json& frame, const char* key) {
      const auto at = frame.find(key);
      return at != frame.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    for (const json& frame : *frames) {
      if (!frame.is_object()) continue;
      if (best == nullptr) best = &frame;
      if (is_installed(word(frame, "filename"))) continue;
      best = &frame;
      break;
    }
    if (best == nullptr) return 0;
    const auto line = best->find("line");
    return text(beginning_of(fmt::format("{} at {}:{}", word(*best, "name"), word(*best, "filename"),
                                         line != best->end() && line->is_number_integer() ? line->dump() : "?"),
                             200));
  }

  /// "nccl:send 0->1": the name and the places at both ends.
  void name_op(const std::string& whole, FlightOp& op) {
    const std::size_t colon = whole.find(':');
    const std::string words = colon == std::string::npos ? whole : whole.substr(colon + 1);
    const std::size_t blank = words.find(' ');
    op.name = text(beginning_of(words.substr(0, blank), 64));
    op.op = named_op(words).op;
    if (blank == std::string::npos || !is_point_to_point(op.op)) return;
    const std::string_view ends = std::string_view(words).substr(blank + 1);
    const std::size_t arrow = ends.find(op.op == CallOp::send ? "->" : "<-");
    if (arrow == std::string_view::npos) return;
    const std::string_view peer = ends.substr(arrow + 2);
    std::int32_t place = 0;
    const auto [end, error] = std::from_chars(peer.data(), peer.data() + peer.size(), place);
    if (error == std::errc() && end == peer.data() + peer.size() && place >= 0) op.peer = place;
  }

  void take(std::string_view raw, std::uint64_t at) {
    at_ = at;
    const json entry = json::parse(raw.begin(), raw.end(), nullptr, /*allow_exceptions=*/false);
    if (entry.is_discarded()) fail("expected an entry in JSON, found text that is not");
    if (entries_.size() == limits_.records)
      throw InputError(fmt::format("{}: byte {}", file_.name(), at_),
                       fmt::format("expected at most {} entries, found more", limits_.records),
                       "increase --limit-records");
    if (!entry.contains("collective_seq_id") && entry.contains("seq_id"))
      fail("expected \"collective_seq_id\", found \"seq_id\"",
           "this is a dump of an older PyTorch version, whose format is not supported");
    Entry out;
    FlightCall& call = out.call;
    call.record = number_of(entry, "record_id");
    const json& group = value_of(entry, "process_group");
    if (!group.is_array() || group.empty() || !group[0].is_string())
      fail(fmt::format("expected \"process_group\" to be a list of a name and a description, found {}", found(group)));
    call.group = group_of(group[0].get<std::string>());
    if (group.size() > 1 && group[1].is_string() && dump_.groups[call.group].description.empty())
      dump_.groups[call.group].description = group[1].get<std::string>();
    out.collective = number_of(entry, "collective_seq_id");
    if (entry.contains("p2p_seq_id")) out.message = number_of(entry, "p2p_seq_id");
    const std::string state = text_of_key(entry, "state");
    if (state == "completed")
      call.state = CallState::completed;
    else if (state == "started")
      call.state = CallState::started;
    else if (state != "scheduled")
      fail(fmt::format("expected \"state\" to be scheduled, started or completed, found {}", in_quotes(state)));
    call.has_timed_out = call.state != CallState::completed && truth(entry, "retired", false);
    const auto started = entry.find("time_discovered_started_ns");
    const bool saw_start = started != entry.end() && started->is_number() && *started != 0;
    dump_.knows_starts = dump_.knows_starts || saw_start || call.state == CallState::started;
    if (const auto duration = entry.find("duration_ms"); duration != entry.end() && !duration->is_null()) {
      constexpr double longest_ms = 1e12;  // 31 years
      if (!duration->is_number() || !(duration->get<double>() >= 0) || duration->get<double>() > longest_ms)
        fail(fmt::format("expected \"duration_ms\" to be a number of ms, found {}", found(*duration)));
      call.duration_ns = std::llround(duration->get<double>() * 1e6);
    }
    call.place = place_of(entry);
    FlightOp op;
    name_op(text_of_key(entry, "profiling_name"), op);
    op.in = tensors_of(entry, "input");
    op.out = tensors_of(entry, "output");
    call.is_point_to_point = truth(entry, "is_p2p", is_point_to_point(op.op)) || is_point_to_point(op.op);
    call.ops.push_back(op);
    entries_.push_back(std::move(out));
  }

  // All of them.

  void merge_coalesced() {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.call.record < b.call.record; });
    const auto twice = std::adjacent_find(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.call.record == b.call.record;
    });
    if (twice != entries_.end())
      throw InputError(file_.name(),
                       fmt::format("expected each \"record_id\" once, found {} twice", twice->call.record), not_a_dump);
    if (!entries_.empty()) dump_.missing = entries_.back().call.record + 1 - static_cast<std::int64_t>(entries_.size());
    std::map<std::uint32_t, std::size_t> last;  // [group] its latest call
    std::vector<std::pair<std::int64_t, std::optional<std::int64_t>>> numbers;
    for (Entry& entry : entries_) {
      const bool closes = dump_.text(entry.call.ops.front().name) == "coalesced";
      const std::pair own(entry.collective, entry.message);
      const auto known = last.find(entry.call.group);
      // Without a number of messages, sends that follow each other cannot be told from one coalesced call.
      const bool may_be_one = entry.message.has_value() || !entry.call.is_point_to_point;
      if (known != last.end() && may_be_one && numbers[known->second] == own) {
        FlightCall& call = dump_.calls[known->second];
        call.is_point_to_point = call.is_point_to_point || entry.call.is_point_to_point;
        if (closes) {
          call.state = entry.call.state;
          call.has_timed_out = entry.call.has_timed_out;
          call.duration_ns = entry.call.duration_ns;
        } else {
          call.state = std::min(call.state, entry.call.state);
          call.ops.push_back(entry.call.ops.front());
        }
        continue;
      }
      last[entry.call.group] = dump_.calls.size();
      numbers.push_back(own);
      dump_.calls.push_back(std::move(entry.call));
    }
    for (std::size_t i = 0; i < dump_.calls.size(); ++i) {
      FlightCall& call = dump_.calls[i];
      call.number = call.is_point_to_point ? numbers[i].second.value_or(0) : numbers[i].first;
      if (!call.is_point_to_point && call.number == 0)
        throw InputError(file_.name(),
                         fmt::format("expected \"collective_seq_id\" from 1, found 0 in record {}", call.record),
                         not_a_dump);
    }
  }

  void finish(std::optional<std::uint32_t> rank) {
    if (dump_.version.empty())
      throw InputError(file_.name(), "expected the format's \"version\", found none", not_a_dump);
    if (!dump_.version.starts_with("2."))
      fail_at("version", fmt::format("expected version 2.x, found {}", in_quotes(dump_.version)),
              "older and newer formats are not supported; the format depends on the version of PyTorch");
    if (!rank) rank = rank_of_dump(file_.name());
    if (!rank)
      throw InputError(file_.name(),
                       "expected the rank in the file's name, as in trace_3 or nccl_trace_rank_3, found none",
                       fmt::format("set the rank with --rank {}=N", file_.name()));
    if (*rank >= limits_.ranks)
      throw InputError(file_.name(), fmt::format("expected a rank below {}, found {}", limits_.ranks, *rank),
                       fmt::format("set the rank with --rank {}=N", file_.name()));
    dump_.file = file_.name();
    dump_.rank = *rank;
    for (const FlightGroup& group : dump_.groups) {
      const auto& members = group.members;
      if (members.empty() || std::find(members.begin(), members.end(), *rank) != members.end()) continue;
      throw InputError(
          file_.name(),
          fmt::format("expected a rank listed in the dump for group {}, found rank {}", in_quotes(group.name), *rank),
          fmt::format("the rank is wrong; set it with --rank {}=N", file_.name()));
    }
    merge_coalesced();
  }

  struct Entry {
    FlightCall call;
    std::int64_t collective = 0;
    std::optional<std::int64_t> message;
  };

  Pieces& file_;
  Limits limits_;
  FlightDump dump_;
  std::uint64_t at_ = 0;  // where the entry begins
  std::vector<Entry> entries_;
  std::map<std::string, std::uint32_t, std::less<>> group_index_, text_index_;
};

/// As Call::bytes; nothing if it is not known.
std::optional<std::int64_t> bytes_of(const FlightOp& op, bool& is_share) {
  const bool by_output = op.op == CallOp::all_gather || op.op == CallOp::recv || op.op == CallOp::scatter;
  is_share = op.op == CallOp::gather || op.op == CallOp::scatter;
  const std::int64_t bytes = by_output ? op.out.bytes : op.in.bytes;
  return bytes == no_value ? std::nullopt : std::optional(bytes);
}

}  // namespace

std::string_view to_string(CallState state) {
  static constexpr std::string_view words[] = {"scheduled", "started", "completed"};
  return words[static_cast<std::size_t>(state)];
}

std::uint32_t FlightDump::world() const {
  const auto all = std::find_if(groups.begin(), groups.end(),
                                [](const FlightGroup& group) { return group.description == "default_pg"; });
  return all == groups.end() ? 0 : static_cast<std::uint32_t>(all->members.size());
}

FlightDump read_flight_recorder(Pieces& file, std::optional<std::uint32_t> rank) {
  return FlightReader(file).read(rank);
}

std::optional<std::uint32_t> rank_of_dump(std::string_view path) {
  if (const auto rank = rank_of_name(path)) return rank;
  const std::size_t slash = path.rfind('/');
  std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  name = name.substr(0, name.find('.'));
  if (const std::size_t word = name.rfind("trace"); word != std::string_view::npos) {
    name.remove_prefix(word + 5);
    if (name.starts_with('_') || name.starts_with('-')) name.remove_prefix(1);
  }
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(rank) : std::nullopt;
}

void add_calls(const FlightDump& dump, Profile& profile) {
  ProfileSource source;
  source.file = dump.file;
  source.format = fmt::format("{} {}", flight_recorder_format, dump.version);
  source.rank = dump.rank;
  source.world = dump.world();
  source.nccl_version = dump.nccl_version;
  for (const FlightCall& each : dump.calls) {
    if (each.state != CallState::completed || !each.duration_ns) continue;
    Call call;
    call.rank = dump.rank;
    call.end_ns = *each.duration_ns;
    call.sequence = each.number;
    const FlightGroup& group = dump.groups[each.group];
    call.group = profile.group(group.name, static_cast<std::uint32_t>(group.members.size()), group.members);
    const FlightOp& first = each.ops.front();
    call.op = first.op;
    call.dtype = profile.name(dump.text(first.in.dtypes));
    call.size_from = SizeFrom::flight_recorder;
    std::int64_t bytes = 0;
    for (const FlightOp& op : each.ops) {
      bool is_share = false;
      const auto size = bytes_of(op, is_share);
      if (is_share) call.flags |= Call::is_share;
      if (op.op != first.op)
        call.lost = Lost::coalesced;
      else if (!size || __builtin_add_overflow(bytes, *size, &bytes))
        call.lost = Lost::unknown_type;
    }
    if (call.op == CallOp::unknown) call.lost = Lost::unknown_op;
    if (call.is_usable())
      call.bytes = bytes;
    else
      call.size_from = SizeFrom::none;
    profile.calls.push_back(call);
    ++source.kernels;
    ++source.calls;
  }
  source.dropped = static_cast<std::uint64_t>(dump.missing);
  profile.sources.push_back(std::move(source));
}

}  // namespace ringsim::profiles
