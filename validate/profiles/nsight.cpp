#include "validate/profiles/nsight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "validate/profiles/kineto.hpp"
#include "validate/profiles/nsight_database.hpp"
#include "validate/profiles/nsight_ranges.hpp"
#include "validate/profiles/overlap.hpp"

namespace ringsim::profiles {

namespace {

constexpr const char* kernels_table = "CUPTI_ACTIVITY_KIND_KERNEL";

/// A kernel of NCCL before its launch is known.
struct NsightKernel {
  Call call;
  std::int64_t correlation = 0;
};

/// A GPU of a process: a rank.
struct NsightGpu {
  std::deque<NsightKernel> kernels;
  std::deque<ComputeKernel> compute;
};

/// Processes count their launches each for itself.
struct NsightLaunchKey {
  std::uint64_t process = 0;
  std::int64_t correlation = 0;
  auto operator<=>(const NsightLaunchKey&) const = default;
};
struct NsightLaunch {
  std::uint64_t thread = 0;
  std::int64_t at = no_value;
  bool is_graph = false;
};

struct NsightEnvironment {
  std::optional<std::uint32_t> rank, world;
  std::string host;
};

class NsightReader {
 public:
  NsightReader(Pieces& file, Profile& profile)
      : file_(file), profile_(profile), limits_(file.limits()), database_(file.name()) {}

  void read(std::optional<std::uint32_t> rank) {
    if (!database_.has(kernels_table))
      throw InputError(file_.name(),
                       fmt::format("expected kernels in the table {}, found no such table", kernels_table),
                       "record them with nsys profile --trace=cuda,nvtx, then run nsys export --type sqlite "
                       "--include-blobs=true; a file without the table StringIds is not an export of Nsight Systems");
    read_strings();
    read_kernels();
    read_launches();
    const NsightRanges ranges(database_, strings_, 8 * limits_.records);
    read_environment();
    read_session();
    finish(rank, ranges);
  }

 private:
  void read_strings() {
    // Ranges and kernels of NCCL, launches of graphs; there may be hundreds of thousands of others.
    database_.each_row("StringIds", {"id", "value"}, [&](const NsightRow& row) {
      const std::string_view text = row.text(1);
      const auto id = row.whole(0);
      if (!id || text.size() > limits_.event_bytes) return;
      if (!mentions(text, "nccl") && !mentions(text, "commHash ") && !mentions(text, "GraphLaunch")) return;
      constexpr std::size_t most_strings = std::size_t{1} << 20;  // names of kernels and ranges: some hundreds
      if (strings_.size() >= most_strings)
        database_.fail("StringIds", row.number(),
                       fmt::format("expected at most {} strings about NCCL, found more", most_strings));
      strings_.emplace(*id, text);
    });
  }

  void read_kernels() {
    enum { start, end, name, demangled, process, device, stream, correlation, grid, block, graph_node };
    database_.each_row(
        kernels_table,
        {"start", "end", "shortName", "demangledName", "globalPid", "deviceId", "streamId", "correlationId", "gridX",
         "blockX", "graphNodeId"},
        [&](const NsightRow& row) {
          const auto number = [&](int column, const char* what) {
            const auto value = row.whole(column);
            if (!value)
              database_.fail(kernels_table, row.number(),
                             fmt::format("expected a whole number as {}, found {}", what,
                                         row.is_null(column) ? "none" : "something else"));
            return *value;
          };
          const std::int64_t begins = number(start, "start"), ends = number(end, "end");
          if (begins < -latest_ns || ends > latest_ns || ends < begins)
            database_.fail(
                kernels_table, row.number(),
                fmt::format("expected a start and an end after it, in ns below 2^61, found {} and {}", begins, ends));
          const std::uint64_t pid = process_of(static_cast<std::uint64_t>(row.whole(process).value_or(0)));
          NsightGpu& gpu = gpus_[{row.whole(device).value_or(0), pid}];
          const auto its_stream = static_cast<std::uint32_t>(number(stream, "streamId"));
          const auto is_nccl = [&](int column) {
            const auto known = strings_.find(row.whole(column).value_or(-1));
            return known != strings_.end() && mentions(known->second, "nccl");
          };
          if (!is_nccl(name) && !is_nccl(demangled)) {
            gpu.compute.push_back(
                {.begin = begins,
                 .duration = static_cast<std::uint32_t>(std::min<std::int64_t>(ends - begins, 0xffffffff)),
                 .stream = its_stream});
            return;
          }
          if (++n_kernels_ + profile_.calls.size() > limits_.records)
            throw InputError(file_.name(),
                             fmt::format("expected at most {} kernels of NCCL, found more", limits_.records),
                             "increase --limit-records, or profile fewer steps");
          const auto small = [&](int column) {
            const std::int64_t value = row.whole(column).value_or(0);
            return value < 0 || value > 0xffff ? std::uint16_t{0} : static_cast<std::uint16_t>(value);
          };
          NsightKernel kernel;
          kernel.call.begin_ns = begins;
          kernel.call.end_ns = ends;
          kernel.call.stream = its_stream;
          kernel.call.blocks = small(grid);
          kernel.call.threads = small(block);
          kernel.call.flags = Call::is_timed;
          kernel.call.lost = row.whole(graph_node).value_or(0) != 0 ? Lost::graph : Lost::no_range;
          kernel.correlation = row.whole(correlation).value_or(0);
          if (kernel.correlation != 0) launches_.try_emplace({pid, kernel.correlation});
          gpu.kernels.push_back(kernel);
        });
    std::erase_if(gpus_, [](const auto& entry) { return entry.second.kernels.empty(); });
  }

  /// Calls of the runtime and, in some versions in a table of their own, of the driver.
  void read_launches() {
    for (const char* table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"})
      database_.each_row(table, {"start", "correlationId", "globalTid", "nameId"}, [&](const NsightRow& row) {
        const auto at = row.whole(0), correlation = row.whole(1), thread = row.whole(2);
        if (!at || !correlation || !thread || *at < -latest_ns || *at > latest_ns) {
          ++skipped_launches_;
          return;
        }
        const auto global = static_cast<std::uint64_t>(*thread);
        // Old exports have kernels without a process.
        const auto found = launches_.find({has_processes() ? process_of(global) : 0, *correlation});
        if (found == launches_.end() || found->second.at != no_value) return;
        found->second.thread = global;
        found->second.at = *at;
        const auto name = strings_.find(row.whole(3).value_or(-1));
        found->second.is_graph = name != strings_.end() && mentions(name->second, "GraphLaunch");
      });
  }

  bool has_processes() { return database_.has(kernels_table, "globalPid"); }

  /// Facts about the machine: host, and the variables of the profiled command, of which only ranks are looked at.
  void read_environment() {
    database_.each_row("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&](const NsightRow& row) {
      if (row.text(0) == "Hostname") environment_.host = std::string(row.text(1).substr(0, 256));
      if (row.text(0) != "DeviceEnvironment") return;
      const std::string_view variables = row.text(1);
      const auto first_of = [&](std::initializer_list<const char*> names, std::uint32_t most) {
        std::optional<std::uint32_t> out;
        for (const char* name : names)
          if (!out) out = variable(variables, name, most);
        return out;
      };
      environment_.rank =
          first_of({"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, limits_.ranks - 1);
      environment_.world = first_of({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, limits_.ranks);
    });
    std::size_t gpus = 0;
    database_.each_row("TARGET_INFO_GPU", {}, [&](const NsightRow&) { ++gpus; });
    gpus_on_host_ = static_cast<std::uint32_t>(std::min<std::size_t>(gpus, limits_.ranks));
    std::string version;
    database_.each_row("META_DATA_EXPORT", {"name", "value"}, [&](const NsightRow& row) {
      if (row.text(0) == "EXPORT_PRODUCT_VERSION") version = ' ' + std::string(row.text(1).substr(0, 32));
    });
    format_ = "Nsight Systems" + version;
  }

  /// The number after NAME= in "A=1;NAME=2;B=3".
  static std::optional<std::uint32_t> variable(std::string_view all, std::string_view name, std::uint32_t most) {
    while (!all.empty()) {
      const std::string_view each = all.substr(0, all.find(';'));
      all.remove_prefix(std::min(all.size(), each.size() + 1));
      if (!each.starts_with(name) || each.size() <= name.size() || each[name.size()] != '=') continue;
      const std::string_view value = each.substr(name.size() + 1);
      std::uint32_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error == std::errc() && end == value.data() + value.size() && number <= most) return number;
    }
    return std::nullopt;
  }

  void read_session() {
    database_.each_row("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [&](const NsightRow& row) {
      const auto since = row.whole(0);
      if (since && *since > 0 && *since < latest_ns) epoch_ = since;
    });
    std::size_t graphs = 0;
    database_.each_row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {}, [&](const NsightRow&) { ++graphs; });
    if (graphs > 0)
      profile_.warnings.push_back(
          fmt::format("{}: {} CUDA graph launches were recorded as a whole, without their collectives; to record "
                      "these, use nsys profile --cuda-graph-trace=node",
                      file_.name(), graphs));
  }

  /// A process's rank in its largest communicator, which is usually that of the whole job.
  const CommunicatorRank* largest_of(const NsightRanges& ranges, std::uint64_t process, std::int64_t device) const {
    std::size_t gpus = 0;
    for (const auto& entry : gpus_) gpus += entry.first.second == process;
    const CommunicatorRank* largest = nullptr;
    for (const CommunicatorRank& each : ranges.ranks()) {
      if (has_pids_ && each.process != process) continue;
      if (gpus > 1 && each.device != device) continue;
      if (largest == nullptr || each.size > largest->size) largest = &each;
    }
    return largest;
  }

  std::vector<std::uint32_t> ranks_of_gpus(std::optional<std::uint32_t> said, const NsightRanges& ranges) const {
    std::vector<std::uint32_t> out;
    const bool is_one = gpus_.size() == 1;
    if (is_one && !said) said = environment_.rank;
    if (is_one && !said) said = rank_of_name(file_.name());
    for (const auto& entry : gpus_) {
      const CommunicatorRank* known = largest_of(ranges, entry.first.second, entry.first.first);
      if (said)
        out.push_back(*said + static_cast<std::uint32_t>(out.size()));
      else if (known != nullptr)
        out.push_back(known->rank);
      else if (is_one)
        throw InputError(file_.name(),
                         "expected the rank in the environment, in the file's name or in a range of ncclCommInitRank, "
                         "found none",
                         fmt::format("set the rank with --rank {}=0", file_.name()));
      else
        throw InputError(file_.name(),
                         fmt::format("expected a range of ncclCommInitRank for each of {} GPUs, found none for GPU {}",
                                     gpus_.size(), entry.first.first),
                         fmt::format("the profile started later; set the rank of the first GPU, from which the others "
                                     "are counted, with --rank {}=0",
                                     file_.name()));
      if (out.back() >= limits_.ranks)
        throw InputError(file_.name(), fmt::format("expected ranks below {}, found {}", limits_.ranks, out.back()),
                         "with --rank FILE=N, the ranks of further GPUs follow N");
    }
    return out;
  }

  void finish(std::optional<std::uint32_t> said, const NsightRanges& ranges) {
    if (gpus_.empty())
      throw InputError(file_.name(), "expected kernels of NCCL, found none", "profile steps that contain collectives");
    has_pids_ = has_processes();
    const std::vector<std::uint32_t> ranks = ranks_of_gpus(said, ranges);
    std::size_t i = 0;
    for (auto& [key, gpu] : gpus_) add_source(key, gpu, ranks[i++], ranges);
    const auto warn = [&](std::size_t n, const char* what) {
      if (n > 0) profile_.warnings.push_back(fmt::format("{}: {} {}", file_.name(), n, what));
    };
    warn(skipped_launches_, "CUDA calls are ignored because their columns do not contain the expected numbers");
    warn(ranges.skipped(), "NVTX events are ignored because their columns do not have the expected types");
    warn(ranges.unread(), "NVTX payloads of NCCL are ignored because they do not match their schema");
    if (unsized_ > 0 && !ranges.has_events())
      profile_.warnings.push_back(
          fmt::format("{}: there are no NVTX ranges of NCCL; to record them, use nsys profile --trace=cuda,nvtx "
                      "without NCCL_NVTX_DISABLE",
                      file_.name()));
    else if (unsized_ > 0 && !ranges.has_payloads())
      profile_.warnings.push_back(
          fmt::format("{}: the NCCL ranges have no sizes; sizes require NCCL 2.19 or later and nsys export --type "
                      "sqlite --include-blobs=true",
                      file_.name()));
  }

  void add_source(const std::pair<std::int64_t, std::uint64_t>& key, NsightGpu& gpu, std::uint32_t rank,
                  const NsightRanges& ranges) {
    const auto [device, process] = key;
    ProfileSource source{.file = file_.name(), .format = format_, .rank = rank};
    source.host = environment_.host;
    // Moments of sessions without a start have nothing in common.
    if (!epoch_) source.host = fmt::format("{} ({})", source.host, file_.name());
    source.gpus_on_host = gpus_on_host_;
    if (const CommunicatorRank* known = largest_of(ranges, process, device)) source.world = known->size;
    if (gpus_.size() == 1 && environment_.world && *environment_.world > rank) source.world = *environment_.world;
    source.has_compute = !gpu.compute.empty();
    source.kernels = gpu.kernels.size();
    const std::size_t first = profile_.calls.size();
    std::sort(gpu.kernels.begin(), gpu.kernels.end(),
              [](const NsightKernel& a, const NsightKernel& b) { return a.call.begin_ns < b.call.begin_ns; });
    std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> by_range;  // and stream, to the record
    for (NsightKernel& kernel : gpu.kernels) {
      Call& call = kernel.call;
      call.rank = rank;
      const auto launch = launches_.find({process, kernel.correlation});
      const bool is_known = launch != launches_.end() && launch->second.at != no_value;
      if (is_known) call.launch_ns = launch->second.at;
      if (call.lost == Lost::graph || (is_known && launch->second.is_graph)) {
        call.lost = Lost::graph;
      } else if (!is_known) {
        call.lost = Lost::no_launch;
      } else if (const auto found = ranges.at(launch->second.thread, launch->second.at)) {
        const auto [known, is_new] = by_range.try_emplace({found->range, call.stream}, profile_.calls.size());
        if (!is_new) {
          Call& whole_call = profile_.calls[known->second];
          whole_call.begin_ns = std::min(whole_call.begin_ns, call.begin_ns);
          whole_call.end_ns = std::max(whole_call.end_ns, call.end_ns);
          whole_call.blocks = std::max(whole_call.blocks, call.blocks);
          continue;
        }
        apply(found->said, process, device, ranges, call);
      }
      unsized_ += call.lost == Lost::no_payload || call.lost == Lost::no_range;
      profile_.calls.push_back(call);
    }
    const std::span<Call> calls = std::span(profile_.calls).subspan(first);
    source.calls = calls.size();
    if (source.has_compute) set_overlap(gpu.compute, calls);
    for (Call& call : calls) {
      call.begin_ns += epoch_.value_or(0);
      call.end_ns += epoch_.value_or(0);
      if (call.launch_ns != no_value) call.launch_ns += epoch_.value_or(0);
    }
    profile_.sources.push_back(std::move(source));
  }

  void apply(const RangeSaid& said, std::uint64_t process, std::int64_t device, const NsightRanges& ranges,
             Call& call) {
    call.op = said.op;
    call.lost = said.lost;
    call.bytes = said.bytes;
    call.flags |= said.flags;
    call.root = said.root;
    if (said.lost == Lost::nothing) call.size_from = SizeFrom::nvtx;
    if (said.communicator.empty()) return;
    std::uint32_t size = 0;
    std::optional<std::uint32_t> place;
    std::size_t gpus = 0;
    for (const auto& entry : gpus_) gpus += entry.first.second == process;
    for (const CommunicatorRank& each : ranges.ranks()) {
      if (each.communicator != said.communicator) continue;
      size = each.size;
      if ((!has_pids_ || each.process == process) && (gpus == 1 || each.device == device)) place = each.rank;
    }
    call.group = profile_.group(said.communicator, size, {});
    if (profile_.groups.size() > limits_.groups)
      throw InputError(file_.name(), fmt::format("expected at most {} communicators, found more", limits_.groups));
    if (!place) return;
    const auto [known, is_new] = profile_.groups[call.group].places.try_emplace(*place, call.rank);
    if (!is_new && known->second != call.rank)
      throw InputError(file_.name(),
                       fmt::format("expected one GPU as rank {} of communicator {}, found ranks {} and {} of the job",
                                   *place, said.communicator, known->second, call.rank),
                       "files of two jobs, or a wrong --rank");
  }

  Pieces& file_;
  Profile& profile_;
  Limits limits_;
  NsightDatabase database_;
  NsightStrings strings_;
  std::map<std::pair<std::int64_t, std::uint64_t>, NsightGpu> gpus_;  // by device and process
  std::map<NsightLaunchKey, NsightLaunch> launches_;                  // of kernels of NCCL
  NsightEnvironment environment_;
  std::string format_;
  std::uint32_t gpus_on_host_ = 0;
  std::optional<std::int64_t> epoch_;
  bool has_pids_ = false;
  std::size_t n_kernels_ = 0, skipped_launches_ = 0, unsized_ = 0;
};

}  // namespace

void read_nsight(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile) {
  if (file.is_packed())
    throw InputError(file.name(), "expected an uncompressed SQLite file, found one compressed with gzip",
                     "unpack it: gunzip --keep FILE");
  NsightReader(file, profile).read(rank);
}

}  // namespace ringsim::profiles
