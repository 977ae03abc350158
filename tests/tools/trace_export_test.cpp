// ringsim trace export: what is written is read back, and is what the simulation says.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "validate/profiles/read.hpp"
#include "validate/profiles/waiting.hpp"

namespace trace_export_test {

using namespace ringsim;
using namespace ringsim::test;
using profiles::Call;
using profiles::CallOp;

namespace {

std::string example(const std::string& name) { return source_dir() + "/scenarios/examples/training/" + name; }

/// What the simulation says of the last step.
Recording recorded(const std::string& file, const std::vector<std::string>& set, std::size_t& ranks) {
  Recording recording;
  recording.keep_kernels = true;
  const Scenario scenario = ScenarioFile::parse(read_file(file), file, set).point(0);
  ranks = static_cast<std::size_t>(predict(scenario, {.recording = &recording}).request.ranks);
  return recording;
}

std::int64_t whole_ns(SimTime time) { return time.time_since_epoch().count() / 1000; }

/// The export of a scenario, read as the traces of a job.
profiles::Profile exported(const std::string& scenario, const std::vector<std::string>& set, std::size_t ranks,
                           const std::string& ending) {
  const std::string base = temporary_file("step.rank", "");
  std::vector<std::string> words{"trace", "export", scenario, base + "{rank}" + ending};
  for (const std::string& each : set) words.insert(words.end(), {"--set", each});
  const Outcome outcome = run_command(words);
  CHECK(outcome.err.find("warning") == std::string::npos);
  REQUIRE(outcome.code == 0);
  std::vector<std::string> files;
  for (std::size_t rank = 0; rank < ranks; ++rank) files.push_back(base + std::to_string(rank) + ending);
  return profiles::read_profiles(files, {});
}

}  // namespace

TEST_CASE("the export of a plan whose gathers overlap with the next step says that one step has none") {
  const auto noted = [](const char* overlap, const char* ending) {
    const std::string base = temporary_file("gathers.rank", "");
    return has(
        run_command({"trace", "export", example("plans.json"), base + "{rank}" + ending, "--force", "--set",
                     "topology.nodes=1", "--set", "sweep=null", "--set", "where=null", "--set",
                     "training.memory=\"ignore\"", "--set", "training.workload.global_batch_size=2", "--set",
                     fmt::format(R"(training.parallel={{"tensor": 4, "shard": "optimizer", "overlap": {}}})", overlap)})
            .err,
        "note: the files contain one step, in which gathers of weights (param_gather) do not overlap");
  };
  CHECK(noted(R"(["grad_reduce", "param_gather"])", ".json"));
  CHECK(!noted(R"(["grad_reduce"])", ".json"));
}

TEST_CASE("an exported step is read back with the calls, sizes, groups and times of the simulation") {
  struct Case {
    std::string file;
    std::vector<std::string> set;
    bool waits;
  };
  const std::vector<Case> cases{{example("llama3-8b.json"), {}, false},
                                {example("ddp-disturbed.json"),
                                 {R"(disturbance.late=[{"rank": 3, "by": "20 ms"}])", "faults=[]", "jobs=[]"},
                                 true},
                                {example("fsdp.json"),
                                 {"topology.nodes=2", "training.workload.global_batch_size=16",
                                  R"(training.parallel={"shard": "full", "hybrid": 8})"},
                                 false}};
  for (const Case& each : cases) {
    CAPTURE(each.file);
    const auto& [file, set, waits] = each;
    std::size_t ranks = 0;
    const Recording recording = recorded(file, set, ranks);
    REQUIRE(ranks > 1);
    const profiles::Profile profile = exported(file, set, ranks, waits ? ".json" : ".json.gz");
    REQUIRE(profile.sources.size() == ranks);
    CHECK(profile.sources.front().world == ranks);
    std::size_t calls = 0, at = 0;
    std::map<std::pair<int, std::vector<Actor>>, std::pair<std::int64_t, std::int64_t>>
        truth;  // last arrival, last end
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      // Of two calls that begin in one ns, on two streams, the file's order says nothing.
      std::vector<Recording::Kernel> kernels = recording.kernels[rank];
      std::erase_if(kernels, [](const Recording::Kernel& kernel) { return kernel.call < 0; });
      std::sort(kernels.begin(), kernels.end(), [](const Recording::Kernel& x, const Recording::Kernel& y) {
        return std::pair(whole_ns(x.begin), whole_ns(x.end)) < std::pair(whole_ns(y.begin), whole_ns(y.end));
      });
      std::vector<Call> read;
      for (; at < profile.calls.size() && profile.calls[at].rank == rank; ++at) read.push_back(profile.calls[at]);
      std::sort(read.begin(), read.end(), [](const Call& x, const Call& y) {
        return std::pair(x.begin_ns, x.end_ns) < std::pair(y.begin_ns, y.end_ns);
      });
      REQUIRE(read.size() == kernels.size());
      calls += kernels.size();
      for (std::size_t k = 0; k < kernels.size(); ++k) {
        const Recording::Kernel& kernel = kernels[k];
        const Call& call = read[k];
        const Recording::Call& whole = recording.calls[static_cast<std::size_t>(kernel.call)];
        CHECK(call.rank == rank);
        CHECK(call.begin_ns == whole_ns(kernel.begin));
        CHECK(call.end_ns == whole_ns(kernel.end));
        CHECK(call.is_usable());
        CHECK(call.bytes == whole.bytes.count);
        CHECK(to_string(call.op) == to_string(whole.op));
        const auto& members = profile.groups[call.group].members;
        const std::vector<Actor> group(members.begin(), members.end());
        const auto own = std::find(whole.groups.begin(), whole.groups.end(), group);
        REQUIRE(own != whole.groups.end());
        CHECK(std::find(group.begin(), group.end(), static_cast<Actor>(rank)) != group.end());
        auto& [arrival, end] = truth[{kernel.call, group}];
        arrival = std::max(arrival, call.begin_ns);
        end = std::max(end, call.end_ns);
      }
    }
    CHECK(calls > 0);
    CHECK(profile.calls.size() == calls);
    const profiles::Account account = profiles::account_of(profile, static_cast<std::uint32_t>(ranks));
    CHECK(account.matching.matched == calls);
    CHECK(account.matching.meetings.size() == truth.size());
    std::vector<std::int64_t> expected, found;
    for (const auto& entry : truth) expected.push_back(entry.second.second - entry.second.first);
    for (const profiles::Meeting& meeting : account.matching.meetings) {
      const profiles::Split split = profiles::split(profile, account.hosts, account.clocks, meeting);
      CHECK(split.by == profiles::SplitBy::clocks);
      CHECK(split.all_there);
      found.push_back(split.transfer_ns);
    }
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    CHECK(found == expected);
    CHECK(std::any_of(account.rows.begin(), account.rows.end(),
                      [](const auto& row) { return row.late_rank() == 3U && row.waits_much(); }) == waits);
  }
}

TEST_CASE("the kernels of an exported rank have PyTorch's arguments, and its compute overlaps them") {
  const std::string base = temporary_file("step.rank", "");
  REQUIRE(run_command({"trace", "export", example("llama3-8b.json"), base + "{rank}.json"}).code == 0);
  const auto document = nlohmann::json::parse(read_file(base + "1.json"));
  CHECK(document.at("schemaVersion") == 1);
  CHECK(document.at("distributedInfo").at("backend") == "nccl");
  CHECK(document.at("distributedInfo").at("rank") == 1);
  std::size_t collectives = 0, compute = 0, steps = 0;
  for (const auto& event : document.at("traceEvents")) {
    if (event.at("name") == "ProfilerStep#0") ++steps;
    if (event.at("cat") != "kernel") continue;
    if (!event.at("name").get<std::string>().starts_with("ncclDevKernel_")) {
      ++compute;
      continue;
    }
    ++collectives;
    const auto& args = event.at("args");
    CHECK(args.at("Collective name") == "allreduce");
    CHECK(args.at("dtype") == "Byte");
    CHECK(args.at("In msg nelems") == args.at("Out msg nelems"));
    CHECK(args.at("Process Group Ranks").get<std::string>().starts_with("[0, 1, "));
    CHECK(args.at("Seq") == collectives);
  }
  CHECK(steps == 1);
  CHECK(compute > 0);
  CHECK(collectives > 1);
}

TEST_CASE("what cannot be exported is refused with what can") {
  const std::string base = temporary_file("step", "");
  const auto err = [&](const std::string& scenario, const std::string& file, int code) {
    const Outcome outcome = run_command({"trace", "export", scenario, file});
    CHECK(outcome.code == code);
    return outcome.err;
  };
  CHECK(has(err(example("llama3-8b.json"), base + ".txt", 2),
            "FILE: expected a file named *.json, *.json.gz or *.et, found "));
  CHECK(has(err(example("llama3-8b.json"), base + ".json", 2), "FILE: expected {rank} in the name, because each of "));
  const Outcome varied = run_command({"trace", "export", example("buckets.json"), base + "{rank}.json"});
  CHECK(varied.code == 2);
  CHECK(has(varied.err, "expected a scenario with one point, found 6"));
  const std::string collective = temporary_file("s.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"}})");
  CHECK(has(err(collective, base + "{rank}.json", 3),
            "/collective: expected a training step, because a trace contains its kernels"));
}

}  // namespace trace_export_test
