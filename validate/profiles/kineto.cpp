#include "validate/profiles/kineto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/ascii.hpp"
#include "sim/base/error.hpp"
#include "validate/profiles/call_names.hpp"
#include "validate/profiles/json_values.hpp"
#include "validate/profiles/overlap.hpp"
#include "validate/profiles/trace_events.hpp"

namespace ringsim::profiles {

namespace {

using nlohmann::json;

constexpr const char* not_a_trace = "the file is damaged or is not a PyTorch profiler trace";

/// Values such as "stackFrames", which are not wanted, may be as long as the events.
TraceEvents::Document kineto_document() {
  return {.what = "PyTorch profiler trace",
          .events = "traceEvents",
          .members = {"distributedInfo", "baseTimeNanoseconds", "deviceProperties", "record_shapes", "schemaVersion"}};
}

/// Facts about a call from a CPU event.
struct Said {
  CallOp op = CallOp::unknown;
  Lost lost = Lost::no_shapes;
  SizeFrom from = SizeFrom::none;
  std::uint8_t flags = 0;
  std::int64_t bytes = no_value, sequence = no_value;
  std::uint32_t group = 0;
  std::int32_t root = no_value;
  std::uint16_t dtype = 0;
};

/// record_param_comms or nccl:*, on a thread.
struct Annotation {
  std::uint32_t thread = 0;
  std::int64_t begin = 0, end = 0;
  Said said;
};

struct Launch {
  std::uint32_t correlation = 0, thread = 0;
  std::int64_t at = 0;
};

/// A kernel of NCCL before its launch is known.
struct Kernel {
  Call call;
  std::uint32_t correlation = 0;
  std::int64_t external_id = 0;
};

std::optional<std::int64_t> whole(const json& args, const char* key) {
  const auto found = args.find(key);
  if (found == args.end()) return std::nullopt;
  if (found->is_number_integer()) {
    if (found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{1} << 62) return std::nullopt;
    return found->get<std::int64_t>();
  }
  if (!found->is_string()) return std::nullopt;
  const auto& text = found->get_ref<const std::string&>();  // traces up to 2020 have numbers as text
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string text_of(const json& args, const char* key) {
  const auto found = args.find(key);
  return found != args.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// First value of a list such as "grid", or 0.
std::uint16_t first_of(const json& args, const char* key) {
  const auto found = args.find(key);
  if (found == args.end() || !found->is_array() || found->empty() || !found->front().is_number_integer()) return 0;
  const auto value = found->front().get<std::int64_t>();
  return value < 0 || value > 0xffff ? 0 : static_cast<std::uint16_t>(value);
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string_view in_quotes_of(std::string_view raw) {
  return raw.size() >= 2 && raw.front() == '"' ? raw.substr(1, raw.size() - 2) : std::string_view();
}

class KinetoReader {
 public:
  KinetoReader(Pieces& file, Profile& profile) : file_(file), profile_(profile), limits_(file.limits()) {}

  void read(std::optional<std::uint32_t> rank) {
    TraceEvents events(file_.name(), limits_, kineto_document(),
                       {.member = [this](std::string_view key, std::string_view value) { member(key, value); },
                        .event = [this](std::string_view event, std::uint64_t at) { take(event, at); }});
    std::string piece;
    while (file_.next(piece)) events.feed(piece);
    events.end();
    finish(rank);
  }

 private:
  [[noreturn]] void fail(std::uint64_t at, const std::string& message, const std::string& hint) const {
    throw InputError(fmt::format("{}: byte {}", file_.name(), at), message, hint);
  }

  json parsed(std::string_view text, std::uint64_t at, const char* what) const {
    json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) fail(at, fmt::format("expected {} in JSON, found text that is not", what), not_a_trace);
    return value;
  }

  json parsed_member(std::string_view text, const char* key) const {
    json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded())
      throw InputError(fmt::format("{}: /{}", file_.name(), key), "expected JSON, found text that is not", not_a_trace);
    return value;
  }

  void member(std::string_view key, std::string_view value) {
    if (key == "baseTimeNanoseconds") {
      std::int64_t base = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), base);
      if (error != std::errc() || end != value.data() + value.size() || base < 0)
        throw InputError(file_.name() + ": /baseTimeNanoseconds", "expected a whole number of ns, found something else",
                         not_a_trace);
      base_ = base;
    } else if (key == "deviceProperties") {
      const json devices = parsed_member(value, "deviceProperties");
      if (devices.is_array()) source_.gpus_on_host = static_cast<std::uint32_t>(devices.size());
      if (devices.is_array() && !devices.empty() && devices[0].is_object()) source_.gpu = text_of(devices[0], "name");
    } else if (key == "distributedInfo") {
      read_distributed(parsed_member(value, "distributedInfo"));
    }
  }

  void read_distributed(const json& info) {
    if (!info.is_object()) return;
    const auto limited = [&](const char* name, std::uint32_t most) -> std::optional<std::uint32_t> {
      const auto value = whole(info, name);
      if (!value) return std::nullopt;
      if (*value < 0 || *value > most)
        throw InputError(fmt::format("{}: /distributedInfo/{}", file_.name(), name),
                         fmt::format("expected 0 to {}, found {}", most, *value), not_a_trace);
      return static_cast<std::uint32_t>(*value);
    };
    said_rank_ = limited("rank", limits_.ranks - 1);
    source_.world = limited("world_size", limits_.ranks).value_or(0);
    source_.nccl_version = text_of(info, "nccl_version");
    const auto groups = info.find("pg_config");
    if (groups == info.end()) return;
    source_.groups = groups->dump(-1, ' ', false, json::error_handler_t::replace);
    if (!groups->is_array()) return;
    for (const json& each : *groups) {
      if (!each.is_object() || !each.contains("ranks")) continue;
      std::string name = text_of(each, "pg_name");
      if (name.empty()) {
        const auto number = whole(each, "pg_name");
        if (number) name = std::to_string(*number);
      }
      std::vector<std::uint32_t> ranks = ranks_of(each.at("ranks"), limits_.ranks);
      if (!name.empty() && !ranks.empty()) configured_[name] = std::move(ranks);
    }
  }

  /// The group that arguments of an event name.
  std::uint32_t group_of(const json& args) {
    const std::string name = text_of(args, "Process Group Name");
    const std::int64_t said = whole(args, "Group size").value_or(0);
    const auto size = static_cast<std::uint32_t>(said < 0 || said > limits_.ranks ? 0 : said);
    std::vector<std::uint32_t> members;
    if (const auto ranks = args.find("Process Group Ranks"); ranks != args.end())
      members = ranks_of(*ranks, limits_.ranks);
    if (members.empty())
      if (const auto known = configured_.find(name); known != configured_.end()) members = known->second;
    if (members.empty() && size > 0) {
      const std::int64_t start = whole(args, "Global rank start").value_or(-1);
      const std::int64_t stride = whole(args, "Global rank stride").value_or(-1);
      if (start >= 0 && stride > 0 && start + stride * (size - 1) < limits_.ranks)
        for (std::uint32_t i = 0; i < size; ++i) members.push_back(static_cast<std::uint32_t>(start + stride * i));
    }
    if (size > 0 && members.size() != size) members.clear();
    // As many as the job has: all of them.
    if (members.empty() && size > 0 && size == source_.world)
      for (std::uint32_t rank = 0; rank < size; ++rank) members.push_back(rank);
    if (name.empty() && members.empty()) return 0;
    if (profile_.groups.size() > limits_.groups)
      throw InputError(file_.name(), fmt::format("expected at most {} process groups, found more", limits_.groups),
                       not_a_trace);
    return profile_.group(name, members.empty() ? size : static_cast<std::uint32_t>(members.size()), members);
  }

  void set_op(Said& said, const NamedOp& named) const {
    said.op = named.op;
    if (named.sizes_differ) said.flags |= Call::sizes_differ;
    said.lost = Lost::no_shapes;
    // Of several calls in one kernel the sizes add up, if the operation is known.
    if (named.op == CallOp::unknown) said.lost = named.coalesced ? Lost::coalesced : Lost::unknown_op;
  }

  /// From "Collective name" and the numbers of elements: of a kernel, or of record_param_comms.
  Said by_elements(const json& args, SizeFrom from) {
    Said said;
    said.from = from;
    set_op(said, named_op(text_of(args, "Collective name")));
    said.group = group_of(args);
    said.sequence = whole(args, "Seq").value_or(no_value);
    if (const auto root = whole(args, "Root rank"); root && *root >= 0 && *root <= limits_.ranks)
      said.root = static_cast<std::int32_t>(*root);
    const std::string dtype = text_of(args, "dtype");
    said.dtype = profile_.name(std::string_view(dtype).substr(0, 64));
    if (said.lost != Lost::no_shapes) return said;
    const auto in = whole(args, "In msg nelems"), out = whole(args, "Out msg nelems");
    const bool by_output = said.op == CallOp::all_gather || said.op == CallOp::gather || said.op == CallOp::recv;
    const auto elements = by_output && out && *out > 0 ? out : in;
    const auto size = element_bytes(dtype);
    if (!size) {
      said.lost = Lost::unknown_type;
    } else if (elements) {
      if (const auto bytes = product(*elements, *size)) {
        said.bytes = *bytes;
        said.lost = Lost::nothing;
        if (said.op == CallOp::all_gather && elements == in && !(out && *out > 0)) said.flags |= Call::is_share;
      }
    }
    return said;
  }

  /// From shapes: "Input Dims": [[1, 25136]], "Input type": ["c10::BFloat16"].
  Said by_shapes(std::string_view name, const json& args) {
    Said said;
    said.from = SizeFrom::annotation;
    set_op(said, named_op(name));
    if (said.lost != Lost::no_shapes) return said;
    const auto dims = args.find("Input Dims"), types = args.find("Input type");
    if (dims == args.end() || types == args.end() || !dims->is_array() || !types->is_array()) return said;
    std::optional<std::int64_t> bytes;
    for (std::size_t i = 0; i < dims->size() && i < types->size(); ++i) {
      const json &shape = (*dims)[i], &type = (*types)[i];
      if (!shape.is_array() || shape.empty() || !type.is_string()) continue;
      std::optional<std::int64_t> elements = 1;
      for (const json& dim : shape) {
        if (!elements || !dim.is_number_integer()) {
          elements.reset();
          break;
        }
        elements = product(*elements, dim.get<std::int64_t>());
      }
      const auto size = element_bytes(type.get_ref<const std::string&>());
      if (!size) {
        said.lost = Lost::unknown_type;
        return said;
      }
      const auto one = elements ? product(*elements, *size) : std::nullopt;
      std::int64_t sum = 0;
      if (!one || __builtin_add_overflow(bytes.value_or(0), *one, &sum)) return said;
      bytes = sum;
      said.dtype = profile_.name(std::string_view(type.get_ref<const std::string&>()).substr(0, 64));
    }
    if (!bytes) return said;
    said.bytes = *bytes;
    said.lost = Lost::nothing;
    if (said.op == CallOp::all_gather || said.op == CallOp::gather) said.flags |= Call::is_share;
    return said;
  }

  void take(std::string_view event, std::uint64_t at) {
    enum class Kind { other, kernel, cpu, launch };
    Kind kind = Kind::other;
    std::string_view phase, name, time, duration, thread, args;
    bool rest_matters = true;
    const bool is_whole = for_each_member(event, [&](std::string_view key, std::string_view value) {
      if (key == "cat") {
        const std::string_view category = in_quotes_of(value);
        if (category == "kernel" || category == "Kernel")
          kind = Kind::kernel;
        else if (category == "cpu_op" || category == "user_annotation" || category == "Operator")
          kind = Kind::cpu;
        else if (category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime")
          kind = Kind::launch;
        rest_matters = kind != Kind::other;
      } else if (key == "ph") {
        phase = in_quotes_of(value);
        rest_matters = phase == "X";
      } else if (key == "name") {
        name = in_quotes_of(value);
        if (kind == Kind::cpu) rest_matters = is_of_comms(name);
      } else if (key == "ts") {
        time = value;
      } else if (key == "dur") {
        duration = value;
      } else if (key == "tid") {
        thread = value;
      } else if (key == "args") {
        args = value;
      }
      return rest_matters;
    });
    if (!is_whole) fail(at, "expected an event in JSON, found text that is not", not_a_trace);
    if (kind == Kind::other || phase != "X" || (kind == Kind::cpu && !is_of_comms(name))) return;
    const auto begin = ns_of_us(time), length = ns_of_us(duration.empty() ? "0" : duration);
    constexpr std::int64_t longest = std::int64_t{1} << 60;  // 36 years
    if (!begin || !length || *length < 0 || *begin < -longest || *begin > 2 * longest || *length > longest)
      fail(at,
           fmt::format("expected \"ts\" and \"dur\" as numbers of us, found {} and {}", printable(time),
                       printable(duration)),
           not_a_trace);
    if (kind == Kind::launch) {
      if (contains(name, "aunch")) take_launch(*begin, thread, name, args, at);
    } else if (kind == Kind::cpu) {
      const json said = parsed(args.empty() ? "{}" : args, at, "\"args\"");
      const bool is_record = name == "record_param_comms";
      if (is_record && text_of(said, "Collective name").empty()) return;  // up to 2023: the event nccl:* says more
      count_record(annotations_.size(), at);
      annotations_.push_back({.thread = number(thread),
                              .begin = *begin,
                              .end = *begin + *length,
                              .said = is_record ? by_elements(said, SizeFrom::comms) : by_shapes(name, said)});
    } else if (contains(name, "nccl")) {
      take_kernel(*begin, *length, parsed(args.empty() ? "{}" : args, at, "\"args\""), at);
    } else {
      source_.has_compute = true;
      std::uint32_t stream = number(thread);
      compute_.push_back({.begin = *begin,
                          .duration = static_cast<std::uint32_t>(std::min<std::int64_t>(*length, 0xffffffff)),
                          .stream = stream});
    }
  }

  static bool is_of_comms(std::string_view name) { return name == "record_param_comms" || name.starts_with("nccl:"); }

  static std::string printable(std::string_view raw) {
    return raw.empty() ? std::string("none") : std::string(raw.substr(0, 40));
  }

  /// A thread's or stream's number; of text a part of its hash.
  static std::uint32_t number(std::string_view raw) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
    if (error == std::errc() && end == raw.data() + raw.size()) return static_cast<std::uint32_t>(value);
    return static_cast<std::uint32_t>(std::hash<std::string_view>{}(raw));
  }

  void count_record(std::size_t n, std::uint64_t at) const {
    if (n >= limits_.records)
      fail(at, fmt::format("expected at most {} events of NCCL, found more", limits_.records),
           "increase --limit-records, or profile fewer steps");
  }

  void take_launch(std::int64_t at_ns, std::string_view thread, std::string_view name, std::string_view args,
                   std::uint64_t at) {
    std::string_view raw;
    if (!args.empty())
      for_each_member(args, [&](std::string_view key, std::string_view value) {
        if (key == "correlation") raw = value;
        return raw.empty();
      });
    if (raw.starts_with('"')) raw = in_quotes_of(raw);
    if (raw.empty()) return;
    if (launches_.size() >= 8 * limits_.records)
      fail(at, fmt::format("expected at most {} launches, found more", 8 * limits_.records), "profile fewer steps");
    launches_.push_back({.correlation = number(raw), .thread = number(thread), .at = at_ns});
    if (contains(name, "GraphLaunch")) graphs_.push_back(number(raw));
  }

  void take_kernel(std::int64_t begin, std::int64_t length, const json& args, std::uint64_t at) {
    if (!args.is_object()) fail(at, "expected \"args\" to be an object, found something else", not_a_trace);
    ++source_.kernels;
    count_record(profile_.calls.size() + kernels_.size(), at);
    Kernel kernel;
    Call& call = kernel.call;
    call.begin_ns = begin;
    call.end_ns = begin + length;
    call.flags = Call::is_timed;
    call.stream = static_cast<std::uint32_t>(whole(args, "stream").value_or(0));
    call.blocks = first_of(args, "grid");
    call.threads = first_of(args, "block");
    call.lost = Lost::no_annotation;
    kernel.correlation = static_cast<std::uint32_t>(whole(args, "correlation").value_or(0));
    if (args.contains("Collective name")) {
      apply(by_elements(args, SizeFrom::kernel), call);
      kernel.external_id = whole(args, "External id").value_or(0);
    }
    kernels_.push_back(kernel);
  }

  static void apply(const Said& said, Call& call) {
    call.op = said.op;
    call.lost = said.lost;
    call.size_from = said.lost == Lost::nothing ? said.from : SizeFrom::none;
    call.flags |= said.flags;
    call.bytes = said.bytes;
    call.sequence = said.sequence;
    call.group = said.group;
    call.root = said.root;
    call.dtype = said.dtype;
  }

  /// Kernels find their launch, and launches the event around them.
  void join() {
    std::sort(launches_.begin(), launches_.end(), [](const Launch& a, const Launch& b) {
      return std::pair(a.correlation, a.at) < std::pair(b.correlation, b.at);
    });
    std::sort(graphs_.begin(), graphs_.end());
    std::sort(annotations_.begin(), annotations_.end(), [](const Annotation& a, const Annotation& b) {
      return std::pair(a.thread, a.begin) < std::pair(b.thread, b.begin);
    });
    // The latest end of a thread's events so far: tells when no earlier one can surround a launch.
    latest_.resize(annotations_.size());
    for (std::size_t i = 0; i < annotations_.size(); ++i) {
      const bool same_thread = i > 0 && annotations_[i].thread == annotations_[i - 1].thread;
      latest_[i] = same_thread ? std::max(latest_[i - 1], annotations_[i].end) : annotations_[i].end;
    }
    std::sort(kernels_.begin(), kernels_.end(),
              [](const Kernel& a, const Kernel& b) { return a.call.begin_ns < b.call.begin_ns; });
  }

  const Launch* launch_of(const Kernel& kernel) const {
    const auto found = std::lower_bound(launches_.begin(), launches_.end(), kernel.correlation,
                                        [](const Launch& launch, std::uint32_t id) { return launch.correlation < id; });
    return found != launches_.end() && found->correlation == kernel.correlation ? &*found : nullptr;
  }

  /// The innermost event around a launch that says operation and size, else the innermost one; npos if there is none.
  std::size_t annotation_of(const Launch& launch) const {
    constexpr std::size_t none = std::string::npos;
    auto after = std::upper_bound(annotations_.begin(), annotations_.end(), std::pair(launch.thread, launch.at),
                                  [](const std::pair<std::uint32_t, std::int64_t>& place, const Annotation& each) {
                                    return place < std::pair(each.thread, each.begin);
                                  });
    std::size_t best = none;
    constexpr int most_looks = 1000;  // events of a thread are nested a few deep
    for (int looks = 0; after != annotations_.begin() && looks < most_looks; ++looks) {
      --after;
      const auto i = static_cast<std::size_t>(after - annotations_.begin());
      if (after->thread != launch.thread || latest_[i] < launch.at) break;
      if (after->end < launch.at) continue;
      if (best == none || annotations_[best].said.lost != Lost::nothing) {
        if (best == none || after->said.lost == Lost::nothing) best = i;
      }
      // The outer event record_param_comms knows the group and the number of the call.
      if (after->said.from == SizeFrom::comms && after->said.lost == Lost::nothing) return i;
    }
    return best;
  }

  void finish(std::optional<std::uint32_t> rank) {
    join();
    source_.file = file_.name();
    source_.format = "Kineto";
    source_.host = host_of_name(file_.name());
    if (!rank) rank = said_rank_;
    if (!rank) rank = rank_of_name(file_.name());
    if (!rank)
      throw InputError(file_.name(), "expected the rank in \"distributedInfo\" or in the file's name, found neither",
                       fmt::format("set the rank with --rank {}=0", file_.name()));
    source_.rank = *rank;
    std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> by_annotation;  // to the record
    std::map<std::pair<std::int64_t, std::uint32_t>, std::size_t> by_external_id;
    const std::size_t first = profile_.calls.size();
    for (Kernel& kernel : kernels_) {
      Call& call = kernel.call;
      call.rank = *rank;
      const Launch* launch = launch_of(kernel);
      if (launch != nullptr) call.launch_ns = launch->at;
      std::size_t* known = nullptr;
      bool is_new = true;
      if (kernel.external_id != 0) {
        const auto [at, inserted] =
            by_external_id.try_emplace({kernel.external_id, call.stream}, profile_.calls.size());
        known = &at->second, is_new = inserted;
      } else if (call.lost == Lost::no_annotation) {
        if (launch == nullptr) {
          call.lost = Lost::no_launch;
        } else if (std::binary_search(graphs_.begin(), graphs_.end(), kernel.correlation)) {
          call.lost = Lost::graph;
        } else if (const std::size_t i = annotation_of(*launch); i != std::string::npos) {
          apply(annotations_[i].said, call);
          const auto [at, inserted] = by_annotation.try_emplace({i, call.stream}, profile_.calls.size());
          known = &at->second, is_new = inserted;
        }
      }
      if (!is_new && known != nullptr) {
        Call& whole_call = profile_.calls[*known];
        whole_call.begin_ns = std::min(whole_call.begin_ns, call.begin_ns);
        whole_call.end_ns = std::max(whole_call.end_ns, call.end_ns);
        whole_call.blocks = std::max(whole_call.blocks, call.blocks);
        continue;
      }
      profile_.calls.push_back(call);
    }
    source_.calls = profile_.calls.size() - first;
    if (source_.has_compute) set_overlap(compute_, std::span(profile_.calls).subspan(first));
    for (std::size_t i = first; i < profile_.calls.size(); ++i) add_base(profile_.calls[i]);
    profile_.sources.push_back(std::move(source_));
  }

  void add_base(Call& call) const {
    call.begin_ns += base_;
    call.end_ns += base_;
    if (call.launch_ns != no_value) call.launch_ns += base_;
  }

  Pieces& file_;
  Profile& profile_;
  Limits limits_;
  ProfileSource source_;
  std::optional<std::uint32_t> said_rank_;
  std::int64_t base_ = 0;
  std::map<std::string, std::vector<std::uint32_t>, std::less<>> configured_;  // groups by name
  std::deque<Launch> launches_;                                                // a deque copies nothing as it grows
  std::vector<std::uint32_t> graphs_;
  std::deque<ComputeKernel> compute_;
  std::deque<Kernel> kernels_;
  std::vector<Annotation> annotations_;
  std::vector<std::int64_t> latest_;
};

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

void read_kineto(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile) {
  KinetoReader(file, profile).read(rank);
}

std::optional<std::int64_t> ns_of_us(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  std::int64_t us = 0;
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, us);
  if (error != std::errc()) return std::nullopt;
  std::int64_t ns = 0, unit = 100;
  if (at != end && *at == '.') {
    for (++at; at != end && is_digit(*at); ++at, unit /= 10) ns += (*at - '0') * unit;
  }
  if (at != end) {  // "1.5e3"
    double value = 0;
    const auto [double_end, double_error] = std::from_chars(text.data(), end, value);
    if (double_error != std::errc() || double_end != end || !(value < 9e15)) return std::nullopt;
    const auto rounded = static_cast<std::int64_t>(std::floor(value * 1000 + 0.5));
    return is_negative ? -rounded : rounded;
  }
  std::int64_t out = 0;
  if (__builtin_mul_overflow(us, std::int64_t{1000}, &out) || __builtin_add_overflow(out, ns, &out))
    return std::nullopt;
  return is_negative ? -out : out;
}

std::optional<std::uint32_t> rank_of_name(std::string_view path) {
  const std::string_view name = file_name(path);
  for (std::size_t at = name.find("rank"); at != std::string_view::npos; at = name.find("rank", at + 1)) {
    std::size_t i = at + 4;
    if (i < name.size() && (name[i] == '_' || name[i] == '-' || name[i] == '=' || name[i] == '.')) ++i;
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(name.data() + i, name.data() + name.size(), rank);
    if (error == std::errc() && end != name.data() + i) return rank;
  }
  return std::nullopt;
}

std::string host_of_name(std::string_view path) {
  const std::string_view name = file_name(path);
  const std::size_t end = name.find(".pt.trace.json");
  if (end == std::string_view::npos) return "";
  const auto are_digits = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
  };
  std::string_view worker = name.substr(0, end);
  if (const std::size_t dot = worker.rfind('.'); dot != std::string_view::npos && are_digits(worker.substr(dot + 1)))
    worker = worker.substr(0, dot);  // the time
  const std::size_t bar = worker.rfind('_');
  if (bar == std::string_view::npos || bar == 0 || !are_digits(worker.substr(bar + 1))) return "";
  return std::string(worker.substr(0, bar));
}

}  // namespace ringsim::profiles
