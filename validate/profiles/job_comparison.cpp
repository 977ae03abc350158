#include "validate/profiles/job_comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "scenarios/predict/predict.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "topologies/machines/scale_links.hpp"
#include "topologies/nccl/nccl_library.hpp"
#include "validate/closed_forms/bound.hpp"
#include "validate/results/result.hpp"
#include "validate/score/unlike_machine.hpp"

namespace ringsim::profiles {

namespace {

std::optional<CollectiveOp> simulated_op(CallOp op) {
  switch (op) {
    case CallOp::all_reduce:
      return CollectiveOp::all_reduce;
    case CallOp::all_gather:
      return CollectiveOp::all_gather;
    case CallOp::reduce_scatter:
      return CollectiveOp::reduce_scatter;
    case CallOp::all_to_all:
      return CollectiveOp::all_to_all;
    case CallOp::broadcast:
      return CollectiveOp::broadcast;
    case CallOp::reduce:
      return CollectiveOp::reduce;
    case CallOp::gather:
      return CollectiveOp::gather;
    case CallOp::scatter:
      return CollectiveOp::scatter;
    default:
      return std::nullopt;
  }
}

/// The version whose constants stand for the job's NCCL.
std::pair<std::string, std::string> nccl_of(const Profile& profile, const JobOptions& options, const Json& library) {
  const auto is_modeled = [](const std::string& version) {
    try {
      nccl::release_of_version(version);
      return true;
    } catch (const InputError&) {
      return false;
    }
  };
  if (!options.nccl.empty()) {
    nccl::release_of_version(options.nccl);  // throws
    return {options.nccl, "by --nccl"};
  }
  constexpr std::string_view key = "library.version=";
  for (const std::string& change : options.set)
    if (change.starts_with(key)) {
      std::string version = change.substr(key.size());
      version.erase(std::remove(version.begin(), version.end(), '"'), version.end());
      nccl::release_of_version(version);  // throws
      return {version, "by --set"};
    }
  for (const ProfileSource& source : profile.sources) {
    if (source.nccl_version.empty()) continue;
    if (is_modeled(source.nccl_version)) return {source.nccl_version, "in the files"};
    return {std::string(nccl::newest_version),
            fmt::format("the newest modeled version; the files have {}", source.nccl_version)};
  }
  if (library.is_object() && library.contains("version") && library.at("version").is_string())
    return {library.at("version").get<std::string>(), "from the scenario; the files do not contain it; --nccl sets it"};
  return {std::string(nccl::newest_version), "the newest modeled version; the files do not contain it; --nccl sets it"};
}

/// A scenario whose collective is replaced again and again.
class Predictor {
 public:
  Predictor(const Profile& profile, const std::string& text, std::string name, const JobOptions& options)
      : text_(text), name_(std::move(name)), options_(options) {
    const Json scenario = parse_json(text, name_);
    const Json library = scenario.is_object() && scenario.contains("library") ? scenario.at("library") : Json();
    std::tie(version, version_from) = nccl_of(profile, options, library);
    if (library.is_null()) common_.emplace_back(R"(library={"name": "nccl"})");
    common_.insert(common_.end(), options.set.begin(), options.set.end());
    for (const char* gone :
         {"collective.algorithm", "collective.root", "collective.ranks", "collective.groups", "training", "jobs",
          "sweep", "where", "transport.protocol", "transport.channels", "transport.chunk", "transport.launch"})
      common_.push_back(fmt::format("{}=null", gone));
    common_.push_back(fmt::format("library.version=\"{}\"", version));
    const Scenario base = scenario_of({"collective.op=\"all_reduce\"", "collective.bytes=\"1 MiB\""});
    for (const ProfileSource& source : profile.sources)
      if (const std::string own = machine_without(source.gpu, base); !own.empty() && other_gpu.empty())
        other_gpu = fmt::format("{} in the files, {} in the scenario", source.gpu, own);
    const Setup setup = set_up(base, options.stop);
    std::map<std::uint32_t, std::uint32_t> per_host;
    for (const NodeId rank : setup.collectives.front().ranks) {
      const Node& node = setup.topology.node(rank);
      gpus_.push_back(node.name);
      ++per_host[node.host.value_or(0)];
    }
    nodes = static_cast<int>(per_host.size());
    gpus_per_node = per_host.begin()->second;
    for (const auto& [host, n] : per_host)
      if (n != gpus_per_node) gpus_per_node = 0;  // nodes differ
    wiring_ = Wiring::pcie;
    for (const Link& link : setup.topology.links()) {
      const LinkClass of = class_of(setup.topology, link);
      if (of == LinkClass::nvlink || of == LinkClass::xgmi || of == LinkClass::c2c) wiring_ = Wiring::nvlink;
    }
  }

  int gpus() const { return static_cast<int>(gpus_.size()); }

  /// Fills in what is predicted of a row, or why it cannot be.
  void predict_row(const Profile& profile, ComparedCalls& out) {
    const Row& row = out.row;
    const CallGroup& group = profile.groups[row.group];
    const auto op = simulated_op(row.op);
    if (!op) return cannot(out, fmt::format("{} is not predicted", to_string(row.op)));
    if (row.group == 0 || group.size == 0) return cannot(out, "its ranks are not in the file; set them with --group");
    if (group.members.empty())
      return cannot(out, fmt::format("{} of {} ranks have a file, and the files do not contain the rank numbers",
                                     group.places.size(), group.size));
    for (const std::uint32_t rank : group.members)
      if (rank >= gpus_.size())
        return cannot(out, fmt::format("rank {} exceeds the {} GPUs of the scenario; set the number of nodes (--nodes)",
                                       rank, gpus_.size()));
    if (group.members.size() < 2) return cannot(out, "there is only one rank");
    std::vector<std::string> names;
    for (const std::uint32_t rank : group.members) names.push_back('"' + gpus_[rank] + '"');
    std::vector<std::string> set{fmt::format("collective.op=\"{}\"", ringsim::to_string(*op)),
                                 fmt::format("collective.bytes=\"{} B\"", row.bytes),
                                 fmt::format("collective.ranks=[{}]", fmt::join(names, ","))};
    if (row.algorithm != 0)
      set.push_back(fmt::format("library.env.NCCL_ALGO=\"{}\"", plain_name(profile.names[row.algorithm])));
    if (row.protocol != 0)
      set.push_back(fmt::format("library.env.NCCL_PROTO=\"{}\"", plain_name(profile.names[row.protocol])));
    try {
      const Scenario scenario = scenario_of(set);
      PredictOptions options;
      options.stop = options_.stop;
      const Result result = std::move(results_of(scenario, options, &bounds_).front());
      const Prediction& prediction = result.prediction;
      out.slowed = slowed_by(row, options_.interference);
      out.predicted_ns = microseconds(prediction.time) * 1e3 * out.slowed;
      std::optional<Picoseconds> allowed = result.bound;
      if (allowed && result.latency_floor) allowed = std::max(*allowed, *result.latency_floor);
      if (allowed) out.allowed_ns = microseconds(*allowed) * 1e3;
      out.algorithm = algorithm_text(prediction);
      out.protocol = protocol_text(prediction);
      if (scenario.library && !nccl::sends_to_peers(*op)) out.blocks = scenario.library->call.plan.launched;
      out.band = error_band(prediction.nodes > 1 ? Wiring::nodes : wiring_, row.bytes);
    } catch (const InputError& error) {
      cannot(out, error.message());
    }
  }

  std::string version, version_from;
  int nodes = 0;
  std::uint32_t gpus_per_node = 0;  ///< 0: nodes differ
  std::string other_gpu;            ///< the files' and the scenario's, if they differ

 private:
  static void cannot(ComparedCalls& out, std::string why) {
    out.verdicts = {Verdict::cannot_say};
    out.because = std::move(why);
  }

  /// NCCL's profilers write RING and NVLS_TREE, its variables take Ring and NVLSTree, in any case.
  static std::string plain_name(std::string name) {
    name.erase(std::remove_if(name.begin(), name.end(), [](char c) { return c == '_' || c == '"' || c == '\\'; }),
               name.end());
    return name;
  }

  Scenario scenario_of(const std::vector<std::string>& set) const {
    std::vector<std::string> all = common_;
    all.insert(all.end(), set.begin(), set.end());
    const ScenarioFile file = ScenarioFile::parse(text_, name_, all);
    if (file.size() != 1)
      throw InputError(name_, fmt::format("expected a scenario of one machine, found {} points", file.size()),
                       "choose one with --set, because lists of values vary");
    return file.point(0);
  }

  std::string text_, name_;
  const JobOptions& options_;
  std::vector<std::string> common_, gpus_;
  Wiring wiring_ = Wiring::pcie;
  Bounds bounds_;
};

/// Why the files are not of the scenario's machine, and what to look at.
struct OtherMachine {
  std::string difference, hint;
};

constexpr const char* check_machine =
    "check which machine the job ran on; `ringsim list nodes` lists machines with their GPUs";

/// Another machine by the blocks of the launches, weighed by the time of their kernels.
std::optional<OtherMachine> other_blocks(const std::vector<ComparedCalls>& rows) {
  double known = 0, differs = 0;
  const ComparedCalls* largest = nullptr;
  for (const ComparedCalls& calls : rows) {
    if (calls.blocks == 0 || calls.row.blocks == 0) continue;
    const double time = calls.row.kernel_ns * static_cast<double>(calls.row.kernels);
    known += time;
    if (!calls.blocks_differ()) continue;
    differs += time;
    if (largest == nullptr || calls.row.bytes > largest->row.bytes) largest = &calls;
  }
  if (largest == nullptr || differs <= 0.5 * known) return std::nullopt;
  return OtherMachine{
      fmt::format("{} blocks, plan {}", largest->row.blocks, largest->blocks),
      "NCCL launches one block per channel, and the links determine the number of channels: check which machine the "
      "job ran on, and whether its NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS are set here as well (--set "
      "library.env.NCCL_MAX_NCHANNELS=N)"};
}

/// Another machine by transfers that take less than any algorithm would on the scenario's, if they are half of the
/// kernels' time. Ranks without a file only make a transfer look longer.
std::optional<OtherMachine> other_limits(const std::vector<ComparedCalls>& rows) {
  constexpr double well_below = 0.8;  // of the bound. Assumption: clocks of hosts are off by less than a fifth of it
  double known = 0, impossible = 0;
  const ComparedCalls* largest = nullptr;
  for (const ComparedCalls& calls : rows) {
    if (calls.allowed_ns.value_or(0) <= 0 || calls.row.split_kernels == 0 || calls.row.transfer_ns <= 0) continue;
    const double time = calls.row.kernel_ns * static_cast<double>(calls.row.kernels);
    known += time;
    if (calls.row.transfer_ns >= well_below * *calls.allowed_ns) continue;
    impossible += time;
    if (largest == nullptr || calls.row.bytes > largest->row.bytes) largest = &calls;
  }
  if (largest == nullptr || impossible <= 0.5 * known) return std::nullopt;
  return OtherMachine{
      fmt::format("{} of {} took {:.3f} ms, and nothing takes less than {:.3f} ms there", to_string(largest->row.op),
                  format(Bytes{largest->row.bytes}), largest->row.transfer_ns / 1e6, *largest->allowed_ns / 1e6),
      check_machine};
}

/// Another machine by its GPUs, or by its hosts, if they have more GPUs than the scenario's nodes. They may have fewer:
/// a job need not see all.
std::optional<OtherMachine> other_gpus(const Account& account, const Predictor& predictor) {
  if (!predictor.other_gpu.empty()) return OtherMachine{predictor.other_gpu, check_machine};
  if (predictor.gpus_per_node == 0 || account.hosts.gpus <= predictor.gpus_per_node) return std::nullopt;
  return OtherMachine{
      fmt::format("{} GPUs per host in the files, {} in the scenario", account.hosts.gpus, predictor.gpus_per_node),
      check_machine};
}

/// Another machine by its hosts, if they do not have as many ranks as the scenario's nodes have GPUs.
std::optional<OtherMachine> other_hosts(const Account& account, const Predictor& predictor) {
  if (account.hosts.count < 2 || predictor.gpus_per_node == 0) return std::nullopt;
  for (const auto& a : account.hosts.by_rank)
    for (const auto& b : account.hosts.by_rank) {
      const bool one_host = a.second == b.second;
      const bool one_node = a.first / predictor.gpus_per_node == b.first / predictor.gpus_per_node;
      if (one_host != one_node)
        return OtherMachine{
            fmt::format("ranks {} and {} are on {} in the job, but on {} in the scenario", a.first, b.first,
                        one_host ? "one host" : "two hosts", one_node ? "one node" : "two nodes"),
            "set the number of nodes with --nodes or --set topology.nodes=N; ranks are the GPUs of the "
            "scenario in order"};
    }
  return std::nullopt;
}

/// `ranks`: that have a file.
void sum_up_lost_time(ComparedCalls& calls, std::size_t ranks) {
  const Row& row = calls.row;
  if (!calls.predicted_ns || ranks == 0 || row.has_no_durations) return;
  const auto of_each = [&](std::size_t kernels) { return static_cast<double>(kernels) / static_cast<double>(ranks); };
  calls.lost_ns = of_each(row.kernels) * (row.kernel_ns - *calls.predicted_ns);
  calls.lost_waiting_ns = of_each(row.split_kernels) * row.wait_ns;
}

/// Times as long as without compute, with that share in 1/1000.
double slowed_at(std::uint16_t share, double interference) { return 1 / (1 - share / 1000.0 * (1 - 1 / interference)); }

/// The overlapped_ratio that this interference would give.
double ratio_by(const Row& row, double interference) {
  double with = 0, without = 0;
  std::size_t n_with = 0, n_without = 0;
  for (const std::uint16_t share : row.overlaps) {
    if (share >= much_overlap) with += slowed_at(share, interference), ++n_with;
    if (share < no_overlap_to_speak_of) without += slowed_at(share, interference), ++n_without;
  }
  if (n_with == 0 || n_without == 0) return 1;
  return (with / static_cast<double>(n_with)) / (without / static_cast<double>(n_without));
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  static constexpr std::string_view words[] = {"late rank",         "late ranks, changing", "slow transfer",
                                               "slowed by compute", "as predicted",         "faster than the model",
                                               "cannot say"};
  return words[static_cast<std::size_t>(verdict)];
}

bool ComparedCalls::blocks_differ() const {
  if (blocks == 0 || row.blocks == 0) return false;
  const double ratio = static_cast<double>(row.blocks) / blocks;
  return ratio > 1.25 || ratio < 0.8;
}

bool ComparedCalls::threads_differ() const {
  if (blocks == 0 || row.threads == 0) return false;
  const int threads = row.threads;
  if (protocol == "LL") return threads > 512;
  if (protocol == "LL128") return threads > 640 || threads == 544;
  if (protocol != "Simple") return false;
  return (algorithm == "Ring" && (threads == 512 || threads > 544)) ||
         (algorithm == "Tree" && (threads == 512 || threads == 544));
}

bool ComparedCalls::has(Verdict verdict) const {
  return std::find(verdicts.begin(), verdicts.end(), verdict) != verdicts.end();
}

double error_band(Wiring wiring, std::int64_t bytes) {
  // 90th percentiles of |error|, column "ringsim, library", in percent: up to 64 KiB, up to 8 MiB, from 8 MiB, from 256
  // MiB on.
  static constexpr double percent[3][4] = {{16, 25, 13, 7}, {21, 29, 7, 6}, {16, 32, 17, 16}};
  const std::size_t size = bytes <= 64 << 10 ? 0 : bytes < 8 << 20 ? 1 : bytes < 256 << 20 ? 2 : 3;
  return percent[static_cast<std::size_t>(wiring)][size] / 100;
}

double ComparedCalls::transfer_over_predicted() const {
  return (slowed > 1 ? row.mean_transfer_ns : row.transfer_ns) / *predicted_ns;
}

double slowed_by(const Row& row, double interference) {
  if (row.overlaps.empty()) return 1;
  double all = 0;
  for (const std::uint16_t share : row.overlaps) all += slowed_at(share, interference);
  return all / static_cast<double>(row.overlaps.size());
}

std::optional<double> interference_of(const Row& row) {
  if (!row.overlapped_ratio || row.split == 0 || row.is_partial) return std::nullopt;
  if (*row.overlapped_ratio <= 1) return row.overlapped_ratio;
  double low = 1, high = 1000;  // more is no interference: nearly nothing moves
  if (ratio_by(row, high) < *row.overlapped_ratio) return std::nullopt;
  for (int i = 0; i < 50; ++i) {  // to 1e-12
    const double middle = (low + high) / 2;
    (ratio_by(row, middle) < *row.overlapped_ratio ? low : high) = middle;
  }
  return low;
}

MeasuredInterference measured_interference(const std::vector<Row>& rows) {
  std::vector<double> all;
  for (const Row& row : rows)
    if (const auto found = interference_of(row)) all.push_back(*found);
  if (all.empty()) return {};
  const auto [least, largest] = std::minmax_element(all.begin(), all.end());
  MeasuredInterference out{.n = all.size(), .least = *least, .median = 0, .largest = *largest};
  out.median = median_of(all);
  return out;
}

void judge(ComparedCalls& calls, double interference) {
  const Row& row = calls.row;
  calls.verdicts.clear();
  if (row.split == 0) {
    calls.verdicts = {Verdict::cannot_say};
    calls.because = not_split_because(row);
    return;
  }
  if (row.waits_much()) calls.verdicts.push_back(row.late_rank() ? Verdict::late_rank : Verdict::late_ranks);
  // Without the files of all ranks, the transfers that the ratio compares are only bounded.
  if (!row.is_partial && row.overlapped_ratio && *row.overlapped_ratio > 1.15 * ratio_by(row, interference))
    calls.verdicts.push_back(Verdict::slowed_by_compute);
  const double off = calls.transfer_over_predicted() - 1;
  const bool is_slow = off > std::max(0.25, 1.5 * calls.band);
  if (is_slow && row.is_partial && calls.verdicts.empty()) {
    // Ranks without a file may have arrived later: then this is waiting.
    calls.verdicts.push_back(Verdict::cannot_say);
    calls.because = "slow, or ranks without a file arrive later";
  } else if (is_slow && !row.is_partial && !calls.has(Verdict::slowed_by_compute)) {
    calls.verdicts.push_back(Verdict::slow_transfer);
  } else if (off < -calls.band) {
    calls.verdicts.push_back(Verdict::faster);
  } else if (calls.verdicts.empty()) {
    calls.verdicts.push_back(Verdict::as_predicted);
  }
}

JobComparison compare_job(const Profile& profile, const std::string& scenario, const std::string& scenario_name,
                          const JobOptions& options) {
  Predictor predictor(profile, scenario, scenario_name, options);
  JobComparison out;
  out.nccl = predictor.version;
  out.nccl_from = predictor.version_from;
  out.gpus = predictor.gpus();
  out.nodes = predictor.nodes;
  out.interference = options.interference;
  out.account = account_of(profile, options.ranks_per_host, predictor.gpus_per_node);
  out.rows.resize(out.account.rows.size());
  for (std::size_t i = 0; i < out.rows.size(); ++i) out.rows[i].row = out.account.rows[i];
  const auto work = [&](std::size_t i) { predictor.predict_row(profile, out.rows[i]); };
  if (options.for_each)
    options.for_each(out.rows.size(), work);
  else
    for (std::size_t i = 0; i < out.rows.size(); ++i) work(i);
  std::optional<OtherMachine> other = other_gpus(out.account, predictor);
  if (!other) other = other_blocks(out.rows);
  if (!other) other = other_hosts(out.account, predictor);
  if (!other) other = other_limits(out.rows);
  if (other) {
    out.other_machine = std::move(other->difference);
    out.other_machine_hint = std::move(other->hint);
  }
  for (ComparedCalls& calls : out.rows) {
    if (!calls.predicted_ns) continue;
    if (out.other_machine.empty()) {
      judge(calls, options.interference);
    } else {
      calls.verdicts = {Verdict::cannot_say};
      calls.because = "not this machine";
    }
    sum_up_lost_time(calls, out.account.ranks.size());
  }
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const ComparedCalls& a, const ComparedCalls& b) { return a.lost_ns > b.lost_ns; });
  return out;
}

}  // namespace ringsim::profiles
