#include "validate/profiles/inspector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "validate/profiles/call_names.hpp"

namespace ringsim::profiles {

namespace {

using nlohmann::json;

constexpr const char* not_a_log = "the line is damaged or is not output of NCCL Inspector";
constexpr std::int64_t longest_us = std::int64_t{1} << 50;  // 36 years
constexpr std::int64_t latest_us = std::int64_t{1} << 52;   // the year 2112: sums in ns fit 64 bits

/// A communicator as a line's header names it.
struct Header {
  std::string id;
  std::uint32_t rank = 0, n_ranks = 0;
};

/// A process of the log.
struct Process {
  std::string host, version;
  std::map<std::string, std::map<std::uint32_t, bool>> ranks;  ///< [communicator] ranks that it is
  std::map<std::string, std::uint32_t> sizes;                  ///< [communicator] number of ranks
  std::size_t calls = 0;
  std::map<std::string, std::uint64_t> dropped;  ///< [communicator] of all dumps
};

/// A record whose process and place in the group wait for the end of the file.
struct Waiting {
  Call call;
  std::uint32_t process = 0, place = 0;
  std::string group;
};

class InspectorReader {
 public:
  InspectorReader(Pieces& file, Profile& profile) : file_(file), profile_(profile) {}

  void read(std::optional<std::uint32_t> rank) {
    std::string piece, rest;
    while (file_.next(piece)) {
      std::size_t at = 0;
      for (;;) {
        const std::size_t end = piece.find('\n', at);
        const std::string_view found = std::string_view(piece).substr(at, end - at);
        if (rest.size() + found.size() > file_.limits().event_bytes) {
          ++line_;
          fail(fmt::format("expected a line of at most {} KiB, found a longer one", file_.limits().event_bytes >> 10),
               "increase --limit-event if the file is valid");
        }
        if (end == std::string::npos) {
          rest += found;
          break;
        }
        if (rest.empty()) {
          take(found, true);
        } else {
          rest += found;
          take(rest, true);
          rest.clear();
        }
        at = end + 1;
      }
    }
    if (!rest.empty()) take(rest, false);
    finish(rank);
  }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& hint = not_a_log) const {
    throw InputError(fmt::format("{}:{}", file_.name(), line_), message, hint);
  }

  const json& member(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) fail(fmt::format("expected \"{}\", found no such key", key));
    return *found;
  }

  std::int64_t whole(const json& object, const char* key, std::int64_t most) const {
    const json& value = member(object, key);
    const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
    if (!fits)
      fail(fmt::format("expected \"{}\" to be a whole number from 0 to {}, found {}", key, most, shown(value)));
    return value.get<std::int64_t>();
  }

  std::string text(const json& object, const char* key) const {
    const json& value = member(object, key);
    if (!value.is_string()) fail(fmt::format("expected \"{}\" to be a string, found {}", key, shown(value)));
    return value.get<std::string>();
  }

  static std::string shown(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 60);
  }

  static std::string text_or_empty(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

  void take(std::string_view line, bool is_whole_line) {
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) return;
    const json value = json::parse(line.begin(), line.end(), deeper_than_64, /*allow_exceptions=*/false);
    if (!value.is_object()) {
      if (is_whole_line) fail(fmt::format("expected a JSON object, found {}", in_quotes(line)));
      profile_.warnings.push_back(
          fmt::format("{}:{}: the last line is incomplete and was ignored", file_.name(), line_));
      return;
    }
    if (const auto header = value.find("header"); header != value.end()) take_header(*header);
    if (const auto metadata = value.find("metadata"); metadata != value.end()) take_metadata(*metadata);
    const auto collective = value.find("coll_perf"), message = value.find("p2p_perf"), stats = value.find("dump_stats");
    if (collective != value.end()) {
      take_call(*collective, "coll");
    } else if (message != value.end()) {
      take_call(*message, "p2p");
    } else if (stats != value.end()) {
      take_stats(*stats);
    } else if (!value.contains("header") && !value.contains("metadata")) {
      ++others_;
    }
  }

  /// A callback of nlohmann's parser: values below that depth are dropped.
  static bool deeper_than_64(int depth, json::parse_event_t, json&) { return depth <= 64; }

  void take_header(const json& value) {
    if (!value.is_object()) fail(fmt::format("expected \"header\" to be an object, found {}", shown(value)));
    Header header;
    header.rank = static_cast<std::uint32_t>(whole(value, "rank", file_.limits().ranks));
    header.n_ranks = static_cast<std::uint32_t>(whole(value, "n_ranks", file_.limits().ranks));
    if (header.rank >= header.n_ranks)
      fail(fmt::format("expected a rank below {}, the number of ranks, found {}", header.n_ranks, header.rank));
    header.id = text_or_empty(value, "id");
    if (header.id.empty()) header.id = text_or_empty(value, "comm_name");
    // RCCL's plugin writes no id: communicators of one size are taken for one.
    if (header.id.empty()) header.id = fmt::format("{} ranks", header.n_ranks);
    header_ = std::move(header);
  }

  void take_metadata(const json& value) {
    if (!value.is_object()) fail(fmt::format("expected \"metadata\" to be an object, found {}", shown(value)));
    if (const std::string version = text_or_empty(value, "inspector_output_format_version"); !version.empty()) {
      if (!version.starts_with("v4.") && !version.starts_with("4."))
        fail(fmt::format("expected format v4.0 to v4.3, found {}", in_quotes(version)),
             "only these versions of NCCL Inspector are supported");
      version_ = version;
    }
    const std::string host = text_or_empty(value, "hostname");
    const auto pid = value.find("pid");
    const std::int64_t number =
        pid != value.end() && pid->is_number_unsigned() && pid->get<std::uint64_t>() < std::uint64_t{1} << 62
            ? pid->get<std::int64_t>()
            : 0;
    const auto [known, is_new] =
        process_index_.try_emplace({host, number}, static_cast<std::uint32_t>(processes_.size()));
    if (is_new) {
      processes_.emplace_back();
      processes_.back().host = host;
      processes_.back().version = version_;
    }
    process_ = known->second;
  }

  void take_stats(const json& stats) {
    if (!stats.is_object()) fail(fmt::format("expected \"dump_stats\" to be an object, found {}", shown(stats)));
    Process& process = this_process();
    std::uint64_t all = 0;
    for (const char* key : {"coll_dropped_total", "p2p_dropped_total"})
      if (stats.contains(key)) all += static_cast<std::uint64_t>(whole(stats, key, std::int64_t{1} << 60));
    std::uint64_t& most = process.dropped[header_ ? header_->id : ""];
    most = std::max(most, all);
  }

  Process& this_process() {
    if (processes_.empty()) processes_.push_back({});
    return processes_[process_];
  }

  void take_call(const json& perf, const std::string& kind) {
    if (!perf.is_object()) fail(fmt::format("expected \"{}_perf\" to be an object, found {}", kind, shown(perf)));
    if (!header_)
      fail("expected a \"header\" on this line or an earlier one, found none", "the start of the file is missing");
    if (waiting_.size() + profile_.calls.size() >= file_.limits().records)
      fail(fmt::format("expected at most {} calls, found more", file_.limits().records), "increase --limit-records");
    Process& process = this_process();
    const Header& header = *header_;
    Waiting record;
    Call& call = record.call;
    const NamedOp named = named_op(text(perf, kind.c_str()));
    call.op = named.op;
    call.lost = named.op == CallOp::unknown ? Lost::unknown_op : Lost::nothing;
    call.size_from = SizeFrom::inspector;
    call.sequence = whole(perf, (kind + "_sn").c_str(), std::int64_t{1} << 60);
    call.bytes = whole(perf, (kind + "_msg_size_bytes").c_str(), std::int64_t{1} << 60);
    if (call.op == CallOp::all_gather || call.op == CallOp::reduce_scatter) {
      if (__builtin_mul_overflow(call.bytes, std::int64_t{header.n_ranks}, &call.bytes))
        fail(fmt::format("expected a size below 9.2 EB, found {} for {} ranks", shown(perf), header.n_ranks));
    }
    const json& time = member(perf, (kind + "_exec_time_us").c_str());
    if (!time.is_number() || !(time.get<double>() >= 0) || time.get<double>() > static_cast<double>(longest_us))
      fail(fmt::format("expected \"{}_exec_time_us\" to be a number of us, found {}", kind, shown(time)));
    call.end_ns = std::llround(time.get<double>() * 1000.0);
    const auto name_of = [&](const char* suffix) {
      const std::string name = text_or_empty(perf, (kind + suffix).c_str());
      return name == "unknown" ? std::uint16_t{0} : profile_.name(std::string_view(name).substr(0, 64));
    };
    call.algorithm = name_of("_algo");
    call.protocol = name_of("_proto");
    if (const std::string source = text_or_empty(perf, (kind + "_timing_source").c_str());
        !source.empty() && source != "kernel_gpu")
      ++cpu_timed_;
    if (const auto trace = perf.find("event_trace_ts"); trace != perf.end()) take_stamps(*trace, kind, call);
    record.process = process_;
    record.place = header.rank;
    record.group = header.id;
    ++process.calls;
    process.ranks[header.id][header.rank] = true;
    process.sizes[header.id] = header.n_ranks;
    waiting_.push_back(std::move(record));
  }

  /// A verbose log has when the kernel of each channel started and stopped. The call begins with the first; it lasts as
  /// long as "exec_time" says, that of the longest channel (NVIDIA/nccl issue 1900).
  void take_stamps(const json& trace, const std::string& kind, Call& call) const {
    if (!trace.is_object()) fail(fmt::format("expected \"event_trace_ts\" to be an object, found {}", shown(trace)));
    if (trace.contains(kind + "_start_ts"))
      call.launch_ns = 1000 * whole(trace, (kind + "_start_ts").c_str(), latest_us);
    const auto kernels = trace.find("kernel_events");
    if (kernels == trace.end() || !kernels->is_array()) return;
    std::int64_t begin = no_value;
    for (const json& each : *kernels) {
      if (!each.is_object()) fail(fmt::format("expected an object in \"kernel_events\", found {}", shown(each)));
      const std::int64_t at = whole(each, "kernel_start_ts", latest_us);
      begin = begin == no_value ? at : std::min(begin, at);
    }
    if (begin == no_value) return;
    const std::int64_t duration = call.duration_ns();
    call.begin_ns = 1000 * begin;
    call.end_ns = call.begin_ns + duration;
    call.flags |= Call::is_timed;
    call.blocks = static_cast<std::uint16_t>(std::min<std::size_t>(kernels->size(), 0xffff));
  }

  /// The rank of a process is that in its largest communicator, which is usually that of the whole job. A process that
  /// is several ranks of one communicator (a thread for each GPU) has a rank by line.
  struct Identity {
    std::string world;
    std::uint32_t rank = 0;
    bool is_several = false;
  };
  static Identity identity_of(const Process& process) {
    Identity identity;
    std::uint32_t most = 0;
    for (const auto& [id, size] : process.sizes) {
      identity.is_several = identity.is_several || process.ranks.at(id).size() > 1;
      if (size <= most) continue;
      most = size;
      identity.world = id;
      identity.rank = process.ranks.at(id).begin()->first;
    }
    return identity;
  }

  void finish(std::optional<std::uint32_t> said) {
    if (waiting_.empty() && processes_.empty())
      throw InputError(file_.name(), "expected calls in JSON, one per line, found none",
                       "it is not output of NCCL Inspector");
    if (said && processes_.size() > 1)
      throw InputError(file_.name(),
                       fmt::format("expected one process, because --rank sets one rank, found {}", processes_.size()),
                       "remove --rank for this file");
    std::vector<Identity> identities;
    std::map<std::uint32_t, std::size_t> sources;  // by rank, of this file
    for (const Process& process : processes_) {
      Identity identity = identity_of(process);
      if (identity.is_several && (process.sizes.size() > 1 || said))
        throw InputError(file_.name(),
                         "expected processes with one GPU or one communicator, found a process with several of each",
                         "the ranks of this process cannot be distinguished");
      if (said) identity.rank = *said;
      identities.push_back(identity);
    }
    for (Waiting& each : waiting_) {
      const Process& process = processes_[each.process];
      const Identity& identity = identities[each.process];
      Call& call = each.call;
      call.rank = identity.is_several ? each.place : identity.rank;
      const std::uint32_t size = process.sizes.at(each.group);
      call.group = profile_.group(each.group, size, {});
      if (profile_.groups.size() > file_.limits().groups)
        throw InputError(file_.name(),
                         fmt::format("expected at most {} communicators, found more", file_.limits().groups));
      const auto [place, is_new] = profile_.groups[call.group].places.try_emplace(each.place, call.rank);
      if (!is_new && place->second != call.rank)
        throw InputError(
            file_.name(),
            fmt::format("expected one process as rank {} of communicator {}, found ranks {} and {} of the job",
                        each.place, each.group, place->second, call.rank),
            "files of two jobs, or a wrong --rank");
      auto [source, is_new_source] = sources.try_emplace(call.rank, profile_.sources.size());
      if (is_new_source) {
        const auto world = process.sizes.find(identity.world);
        ProfileSource& added = profile_.sources.emplace_back();
        added.file = file_.name();
        added.format = "NCCL Inspector " + (process.version.empty() ? version_ : process.version);
        added.rank = call.rank;
        added.host = process.host;
        added.world = world == process.sizes.end() ? 0 : world->second;
        for (const auto& [id, dropped] : process.dropped) added.dropped += dropped;
      }
      ProfileSource& counted = profile_.sources[source->second];
      ++counted.kernels;
      ++counted.calls;
      profile_.calls.push_back(call);
    }
    if (cpu_timed_ > 0)
      profile_.warnings.push_back(fmt::format("{}: {} of {} calls were timed by the CPU, not the GPU", file_.name(),
                                              cpu_timed_, waiting_.size()));
    if (others_ > 0)
      profile_.warnings.push_back(fmt::format("{}: {} lines without calls are ignored", file_.name(), others_));
  }

  Pieces& file_;
  Profile& profile_;
  std::size_t line_ = 0, cpu_timed_ = 0, others_ = 0;
  std::optional<Header> header_;
  std::string version_;
  std::vector<Process> processes_;
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> process_index_;
  std::uint32_t process_ = 0;
  std::vector<Waiting> waiting_;
};

}  // namespace

void read_inspector(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile) {
  InspectorReader(file, profile).read(rank);
}

}  // namespace ringsim::profiles
