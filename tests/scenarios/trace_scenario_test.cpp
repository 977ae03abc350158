// `trace`: steps of real jobs as scenarios. What they take, which traces are refused, and what a result says of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "algorithms/traces/chakra_reader.hpp"
#include "algorithms/traces/trace_program.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/made_chakra.hpp"
#include "tests/support/message_page.hpp"

namespace trace_scenario_test {

using namespace ringsim;
using namespace ringsim::test;
using Json = nlohmann::json;

namespace {

constexpr Picoseconds us{1'000'000};

/// A folder of traces, which goes when it goes.
class Traces {
 public:
  explicit Traces(const std::vector<std::string>& texts) : folder_(fresh_folder("traces")) {
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      std::ofstream(folder_ / fmt::format("job.{}.et", rank), std::ios::binary) << texts[rank];
  }
  explicit Traces(const std::vector<std::vector<MadeNode>>& ranks) : Traces(texts_of(ranks)) {}
  ~Traces() { std::filesystem::remove_all(folder_); }
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  /// The file of a scenario next to them.
  std::string scenario() const { return (folder_ / "s.json").string(); }
  Scenario point(const Json& scenario_text) const {
    return ScenarioFile::parse(scenario_text.dump(), scenario()).point(0);
  }
  /// The error, without the folder in the names of files.
  std::string refusal(const Json& scenario_text) const {
    std::string said = complaint([&] { point(scenario_text); });
    const std::string folder = folder_.string() + "/";
    for (std::size_t at; (at = said.find(folder)) != std::string::npos;) said.erase(at, folder.size());
    return said;
  }

 private:
  static std::vector<std::string> texts_of(const std::vector<std::vector<MadeNode>>& ranks) {
    std::vector<std::string> out;
    for (const auto& nodes : ranks) out.push_back(made_chakra(nodes));
    return out;
  }
  std::filesystem::path folder_;
};

/// Ranks on a star, replaying job.{rank}.et.
Json on_star(int ranks) {
  return Json::parse(fmt::format(R"({{"version": 1, "name": "job",
      "topology": {{"kind": "star", "ranks": {}, "link": {{"bandwidth": "50 GB/s", "latency": "1 us"}}}},
      "trace": {{"files": "job.{{rank}}.et"}}}})",
                                 ranks));
}

Json one_collective(int ranks, const char* op, std::int64_t bytes, const char* algorithm = "ring") {
  Json out = on_star(ranks);
  out.erase("trace");
  out["collective"] = {{"op", op}, {"bytes", fmt::format("{} B", bytes)}, {"algorithm", algorithm}};
  return out;
}
Picoseconds alone(const Json& scenario) {
  return predict(ScenarioFile::parse(scenario.dump(), "s.json").point(0)).time;
}

}  // namespace

TEST_CASE("a trace takes as long as its critical path, its collectives as long as they take alone") {
  if (!traces::has_chakra()) return;
  constexpr std::int64_t bytes = 1 << 20;
  const auto rank = [&](std::uint64_t kernel) {
    return std::vector<MadeNode>{{.id = 1, .duration_us = 5, .stream = 1, .on_cpu = true},
                                 {.id = 2, .duration_us = kernel, .data = {1}},
                                 made_call(3, bytes, {2}),
                                 {.id = 4, .duration_us = 7, .data = {3}, .name = "adam"}};
  };
  // Rank 2 computes longest: 5 + 30 us, then the all_reduce, then 7 us.
  const Traces files({rank(20), rank(20), rank(30), rank(20)});
  const Prediction p = predict(files.point(on_star(4)));
  CHECK(p.time == 42 * us + alone(one_collective(4, "all_reduce", bytes)));
  REQUIRE(p.training.has_value());
  REQUIRE(p.training->trace.has_value());
  CHECK(p.training->trace->files == 4);
  CHECK(p.training->trace->nodes == 16);
  CHECK(p.training->trace->collectives == 4);
  CHECK(p.training->trace->unwaited == 0);
  CHECK(p.training->split.total() == p.time);
}

TEST_CASE("a PyTorch profile in place of a Chakra trace is named, with the way from one to the other") {
  if (!traces::has_chakra()) return;
  const Traces files(std::vector<std::string>{R"({"schemaVersion": 1, "deviceProperties": [], "traceEvents": []})"});
  CHECK(files.refusal(on_star(2)) ==
        "s.json: /trace/files: job.0.et: expected a Chakra trace, found a PyTorch profiler (Kineto) trace\n  hint: a "
        "profile does not say what waits for what: record PyTorch's ExecutionTraceObserver as well, and make a Chakra "
        "trace of both with "
        "chakra_trace_link and chakra_converter");
  const Traces others(std::vector<std::string>{"a secret"});
  CHECK(others.refusal(on_star(2)) ==
        "s.json: /trace/files: job.0.et: expected a Chakra trace, found something else\n  hint: the contents are not "
        "shown because the file is named in a scenario; `ringsim trace show` shows more");
}

TEST_CASE("sizes of collectives are those that the format counts at one rank") {
  if (!traces::has_chakra()) return;
  // comm_size of an all_gather is a rank's own part, of a reduce_scatter all that goes in.
  struct Size {
    int type;
    std::string op;
    int bytes;
  };
  for (const Size& size : {Size{0, "all_reduce", 65536}, {2, "all_gather", 4 * 65536}, {7, "reduce_scatter", 65536}}) {
    CAPTURE(size.op);
    const std::vector<MadeNode> rank{made_call(1, 65536, {}, size.type), {.id = 2, .data = {1}}};
    CHECK(predict(Traces({rank, rank, rank, rank}).point(on_star(4))).time ==
          alone(one_collective(4, size.op.c_str(), size.bytes)));
  }
  // Ring does no all_to_all, so so direct is used.
  const std::vector<MadeNode> rank{made_call(1, 65536, {}, 6), {.id = 2, .data = {1}}};
  const Scenario scenario = Traces({rank, rank, rank, rank}).point(on_star(4));
  CHECK(predict(scenario).time == alone(one_collective(4, "all_to_all", 65536, "direct")));
}

TEST_CASE("one rank's trace stands for all, in groups that are stated, and the result says so") {
  if (!traces::has_chakra()) return;
  const std::vector<MadeNode> rank{{.id = 1, .duration_us = 3},
                                   made_call(2, 4096, {1}, 0, "tp"),
                                   made_call(3, 1 << 16, {2}),
                                   {.id = 4, .data = {3}}};
  const Traces files({rank});
  Json scenario = on_star(4);
  scenario["trace"]["files"] = "job.0.et";
  scenario["trace"]["groups"] = Json::parse(R"([{"name": "tp", "members": [[0, 1], [2, 3]]}])");
  const Scenario point = files.point(scenario);
  CHECK(point.warnings.at(0).ends_with("/trace/files: one rank's trace represents all 4"));
  // Pairs reduce at the same time, on links of their own.
  CHECK(predict(point).time ==
        3 * us + alone(one_collective(2, "all_reduce", 4096)) + alone(one_collective(4, "all_reduce", 1 << 16)));
  scenario["trace"]["groups"] = Json::parse(R"([{"name": "tp", "members": [[0, 1]]}])");
  CHECK(files.refusal(scenario).find("expected calls only of groups that contain rank 2, found one of group tp") !=
        std::string::npos);
}

TEST_CASE("groups are those of the traces' metadata, unless the scenario states them") {
  if (!traces::has_chakra()) return;
  const auto rank = [](const char* groups) {
    traces::ChakraMessage message{.id = 1, .name = "## process_group:init ##", .type = made_metadata};
    message.input_values = fmt::format("['{}']", groups);
    std::string text = made_head();
    traces::write_chakra_node(message, text);
    return text + made_message(made_call(2, 1 << 20, {}, 0, "7")) + made_message({.id = 3, .data = {2}});
  };
  const Traces files(std::vector<std::string>{
      rank(R"([{"pg_name": "7", "ranks": [0, 1]}])"), rank(R"([{"pg_name": "7", "ranks": [0, 1]}])"),
      rank(R"([{"pg_name": "7", "ranks": [2, 3]}])"), rank(R"([{"pg_name": "7", "ranks": [2, 3]}])")});
  CHECK(predict(files.point(on_star(4))).time == alone(one_collective(2, "all_reduce", 1 << 20)));
  Json stated = on_star(4);
  stated["trace"]["groups"] = Json::parse(R"([{"name": "7", "members": [[0, 1, 2, 3]]}])");
  CHECK(predict(files.point(stated)).time == alone(one_collective(4, "all_reduce", 1 << 20)));
}

TEST_CASE("sends and receives of two ranks meet") {
  if (!traces::has_chakra()) return;
  const auto message = [](std::uint64_t id, std::int32_t type, std::int64_t from, std::int64_t to,
                          std::vector<std::uint64_t> data) {
    MadeNode out{.id = id, .data = std::move(data), .name = "ncclDevKernel_SendRecv", .type = type, .stream = 20};
    out.attributes = {attribute("comm_size", 1 << 20), attribute("comm_src", from), attribute("comm_dst", to)};
    return out;
  };
  // A pipeline of two: rank 0 computes 10 us and sends; rank 1 receives and computes 4 us.
  const Traces files({{{.id = 1, .duration_us = 10}, message(2, made_send, 0, 1, {1})},
                      {message(5, made_receive, 0, 1, {}), {.id = 6, .duration_us = 4, .data = {5}}}});
  Json broadcast = one_collective(2, "broadcast", 1 << 20, "direct");
  CHECK(predict(files.point(on_star(2))).time == 14 * us + alone(broadcast));
}

TEST_CASE("a library decides for each collective of a trace") {
  if (!traces::has_chakra()) return;
  const auto scenario = [](std::int64_t) {
    return Json::parse(
        R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1}, "library": "nccl",
                           "trace": {"files": "job.{rank}.et"}})");
  };
  const auto time = [&](const std::vector<std::int64_t>& sizes) {
    std::vector<MadeNode> rank;
    for (const std::int64_t size : sizes) {
      MadeNode call = made_call(rank.size() + 1, size);
      if (!rank.empty()) call.data = {rank.size()};
      rank.push_back(call);
    }
    rank.push_back({.id = rank.size() + 1, .data = {rank.size()}});
    return predict(Traces(std::vector<std::vector<MadeNode>>(8, rank)).point(scenario(0))).time;
  };
  // Each of two calls of 1 KiB and 64 MiB, one after the other, takes what it takes alone, though protocols differ.
  const Picoseconds small = time({1 << 10}), large = time({1 << 26}), both = time({1 << 10, 1 << 26});
  CHECK(both == small + large);
  CHECK(large > 10 * small);
}

TEST_CASE("what is left of a random trace takes as long as all of it, to the picosecond") {
  if (!traces::has_chakra()) return;
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 engine(seed);
    const auto random = [&](unsigned below) { return static_cast<unsigned>(engine() % below); };
    // Ranks have the same calls and dependencies, and times of their own.
    std::vector<MadeNode> nodes;
    const unsigned n = 4 + random(20);
    for (unsigned i = 0; i < n; ++i) {
      MadeNode node{.id = 100 + i, .duration_us = random(20), .stream = static_cast<std::int64_t>(random(3))};
      if (random(4) == 0) node = made_call(100 + i, 1000 + random(100000), {}, 0, random(2) == 0 ? "a" : "b");
      for (unsigned d = random(4); d > 0 && i > 0; --d) node.data.push_back(100 + random(i));
      nodes.push_back(node);
    }
    std::vector<std::vector<MadeNode>> ranks(3, nodes);
    for (auto& rank : ranks)
      for (MadeNode& node : rank) node.duration_us += random(5);
    const Traces files(ranks);
    Scenario scenario = files.point(on_star(3));
    const Prediction reduced = predict(scenario);
    std::vector<std::shared_ptr<const traces::RankTrace>> whole;
    traces::GraphOptions all;
    all.reduce = false;
    for (const auto& rank : ranks)
      whole.push_back(
          std::make_shared<const traces::RankTrace>(rank_trace(traces::read_chakra(made_chakra(rank), "t.et"), all)));
    scenario.training->trace = std::make_shared<const traces::TraceJob>("job", whole, 3, traces::NamedGroups{});
    CHECK(predict(scenario).time == reduced.time);
    CHECK(predict(scenario).training->trace->tasks >= reduced.training->trace->tasks);
  }
}

TEST_CASE("the result says which collectives nothing waits for, and sync makes a kernel wait") {
  if (!traces::has_chakra()) return;
  const std::vector<MadeNode> rank{{.id = 1, .duration_us = 3},
                                   made_call(2, 1 << 20, {1}),
                                   {.id = 3, .duration_us = 9, .data = {1}, .name = "void adam<float>(int)"}};
  const Traces files({rank, rank});
  Json scenario = on_star(2);
  const Picoseconds call = alone(one_collective(2, "all_reduce", 1 << 20));
  const Scenario free = files.point(scenario);
  CHECK(free.warnings.at(0).find("in the trace, no task waits for 2 of 2 collectives") != std::string::npos);
  CHECK(predict(free).time == 3 * us + std::max(call, 9 * us));
  scenario["trace"]["sync"] = "adam";
  const Scenario synced = files.point(scenario);
  CHECK(synced.warnings.back().find("/trace/sync: adam waits for all earlier collectives") != std::string::npos);
  CHECK(predict(synced).time == 12 * us + call);
  CHECK(predict(synced).training->trace->sync == "adam");
}

TEST_CASE("what a trace leaves open, and is assumed, is a warning") {
  if (!traces::has_chakra()) return;
  const auto warnings = [](const std::vector<MadeNode>& rank, const Json& scenario = on_star(2)) {
    std::string all;
    for (const std::string& each : Traces({rank, rank}).point(scenario).warnings) all += each + '\n';
    return all;
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has(warnings({made_call(1, 64, {}, 0, "7")}),
            "is not listed in the traces and is assumed to have all ranks; to change this, set \"groups\""));
  CHECK(!has(warnings({made_call(1, 64)}), "is not listed"));
  MadeNode rooted = made_call(1, 64, {}, 5);
  CHECK(has(warnings({rooted}), "1 calls do not state their root; the first rank of the group is assumed"));
  rooted.attributes.push_back(attribute("root", 1));
  CHECK(!has(warnings({rooted}), "their root"));
  // Ring is the default, and does no all_to_all.
  CHECK(has(warnings({made_call(1, 64, {}, 6)}), "ring does not support all_to_all, so direct is used"));
  Json library = on_star(2);
  library["trace"]["algorithm"] = "direct";
  CHECK(!has(warnings({made_call(1, 64, {}, 6)}, library), "so direct is used"));
}

TEST_CASE("one rank that is replayed by itself has a warning if its trace has collectives") {
  if (!traces::has_chakra()) return;
  const auto warnings = [](const std::vector<MadeNode>& rank) {
    std::string all;
    for (const std::string& each : Traces({rank}).point(on_star(2)).warnings) all += each + '\n';
    return all;
  };
  CHECK(has(warnings({made_call(1, 64)}), "only one rank is replayed, so its 1 collectives are not simulated"));
  CHECK(!has(warnings({MadeNode{.id = 1, .duration_us = 5}}), "only one rank"));
}

TEST_CASE("a job lacks no rank's file") {
  if (!traces::has_chakra()) return;
  const std::vector<MadeNode> rank{made_call(1, 64)};
  const Traces files({rank, rank, rank, rank});
  std::filesystem::remove(std::filesystem::path(files.scenario()).parent_path() / "job.2.et");
  const std::string said = files.refusal(on_star(4));
  CHECK(said.find("expected files numbered without gaps, found no number 2, but job.3.et") != std::string::npos);
}

TEST_CASE("names of kernels that are no UTF-8 are printed as far as they are") {
  if (!traces::has_chakra()) return;
  const std::vector<MadeNode> rank{made_call(1, 64), {.id = 2, .duration_us = 3, .name = "mul\xff(int)"}};
  Json scenario = on_star(2);
  scenario["trace"]["sync"] = "mul";
  CHECK(predict(Traces({rank, rank}).point(scenario)).training->trace->sync == "mul?");
}

TEST_CASE("kernels that another GPU would take longer for than times can count are refused") {
  if (!traces::has_chakra()) return;
  const std::vector<MadeNode> rank{{.id = 1, .duration_us = 4'000'000'000'000}};
  Json scenario = on_star(2);
  scenario["calibration"] = {{"scale_compute", 0.01}};
  const Traces files({rank, rank});
  const std::string said = complaint([&] { predict(files.point(scenario)); });
  CHECK(said.find("expected kernels of at most 46 days, found kernel of 4e+14 us") != std::string::npos);
}

TEST_CASE("the hash of a scenario counts what its traces say, not where they are") {
  if (!traces::has_chakra()) return;
  const std::vector<MadeNode> rank{{.id = 1, .duration_us = 3}}, other{{.id = 1, .duration_us = 4}};
  const std::string hash = Traces({rank, rank}).point(on_star(2)).hash;
  CHECK(Traces({rank, rank}).point(on_star(2)).hash == hash);
  CHECK(Traces({rank, other}).point(on_star(2)).hash != hash);
  CHECK(Traces({other, rank}).point(on_star(2)).hash != hash);
}

TEST_CASE("traces that are not one job are refused: which calls, which ranks, what to do") {
  if (!traces::has_chakra()) return;
  const MadeNode kernel{.id = 1, .duration_us = 3};
  const std::vector<MadeNode> reduces{made_call(2, 4096), made_call(3, 64)},
      gathers{made_call(7, 64, {}, 2), made_call(8, 4096)}, once{made_call(2, 4096)},
      larger{made_call(2, 8192), made_call(3, 64)}, silent{kernel};
  MadeNode send{.id = 4, .name = "send", .type = made_send};
  send.attributes = {attribute("comm_size", 64)};
  MadeNode outside = send;
  outside.attributes.push_back(attribute("comm_dst", 9));
  MadeNode no_dimension = made_call(2, 64);
  no_dimension.attributes.push_back({"involved_dim", std::vector<bool>{true, false}});
  const auto with_root = [](std::int64_t root) {
    MadeNode call = made_call(2, 64, {}, 5);
    call.attributes.push_back(attribute("root", root));
    return call;
  };
  Json stated = on_star(2), unknown = on_star(2), repeated = on_star(2), twice = on_star(2), many = on_star(2),
       synced = on_star(2), ranks = on_star(2), both = on_star(2), one = on_star(2), algorithm = on_star(2),
       server = on_star(2);
  stated["trace"]["groups"] = Json::parse(R"([{"name": "", "members": [[0, 5]]}])");
  unknown["trace"]["groups"] = Json::parse(R"([{"name": "dp", "members": [[0, 1]]}])");
  repeated["trace"]["groups"] = Json::parse(R"([{"name": "", "members": [[0, 1, 1]]}])");
  twice["trace"]["groups"] = Json::parse(R"([{"name": "", "members": [[0, 1], [1]]}])");
  synced["trace"]["sync"] = "adam";
  ranks["trace"]["ranks"] = {"gpu0"};
  both["collective"] = {{"op", "all_reduce"}, {"bytes", "1 KiB"}, {"algorithm", "ring"}};
  one["trace"]["files"] = "job.0.et";
  algorithm["trace"]["algorithm"] = "bruck";
  server["trace"]["algorithm"] = {{"name", "parameter_server"}, {"servers", 1}};
  struct Wrong {
    const char* what;
    std::vector<std::vector<MadeNode>> ranks;
    Json scenario;
  };
  const std::vector<Wrong> all{
      {"other orders", {reduces, gathers}, on_star(2)},
      {"other operations", {{made_call(2, 64)}, {made_call(2, 64, {}, 7)}}, on_star(2)},
      {"other sizes", {reduces, larger}, on_star(2)},
      {"a call less", {reduces, once}, on_star(2)},
      {"a rank that never calls", {reduces, silent}, on_star(2)},
      {"more traces than GPUs", {once, once, once}, on_star(2)},
      {"no traces", {}, on_star(2)},
      {"a send without its ends", {{send}, silent}, on_star(2)},
      {"a send without its ends next to a collective without a group",
       {{made_call(2, 64), send}, {made_call(2, 64)}},
       on_star(2)},
      {"other roots", {{with_root(0)}, {with_root(1)}}, on_star(2)},
      {"a root that is no member", {{with_root(9)}, {with_root(9)}}, on_star(2)},
      {"a send to a rank that is not there", {{outside}, silent}, on_star(2)},
      {"one rank's sends", {{outside}}, one},
      {"dimensions in place of a group", {{no_dimension}, {no_dimension}}, on_star(2)},
      {"members that are no ranks", {once, once}, stated},
      {"a group that no call has", {once, once}, unknown},
      {"a rank in two groups of a name", {once, once}, twice},
      {"a rank twice in a group", {once, once}, repeated},
      {"sync with a name that no kernel has", {{kernel}, {kernel}}, synced},
      {"other ranks than traces", {once, once}, ranks},
      {"a collective, too", {once, once}, both},
      {"an algorithm that does no all_reduce", {once, once}, algorithm},
      {"an algorithm with servers", {once, once}, server},
      {"data in a circle",
       {{{.id = 1, .data = {2}, .name = "a"}, {.id = 2, .data = {1}, .name = "b"}}, {kernel}},
       on_star(2)},
      {"missing nodes", {{{.id = 1, .data = {9}}}, {kernel}}, on_star(2)},
  };
  MessagePage page("traces");
  // Nothing is shown of a file that is no trace.
  page.add("a file that is no trace",
           Traces(std::vector<std::string>{"password: 1234", "password: 1234"}).refusal(on_star(2)));
  for (const Wrong& each : all) {
    CAPTURE(each.what);
    page.add(each.what, Traces(each.ranks).refusal(each.scenario));
  }
  page.check();
}

TEST_CASE("run, explain, --report and --trace take a trace; size sweeps and replays refuse it") {
  if (!traces::has_chakra()) return;
  const std::vector<MadeNode> rank{{.id = 1, .duration_us = 30, .name = "gemm"},
                                   made_call(2, 1 << 20, {1}),
                                   {.id = 3, .duration_us = 9, .data = {2}, .name = "adam"}};
  const Traces files({rank, rank});
  std::ofstream(files.scenario()) << on_star(2).dump();
  const Outcome run = run_command({"run", files.scenario(), "--format", "json"});
  CHECK(run.code == 0);
  CHECK(run.err.empty());
  const Json result = Json::parse(run.out)["results"][0];
  CHECK(result["trace"]["collectives"] == 2);
  CHECK(result["workload"] == "job.{rank}.et");
  CHECK(result["proof"] == "calls separately, then their order; a trace does not contain the data between calls");
  CHECK(!result.contains("batch"));
  const Outcome explained = run_command({"explain", files.scenario()});
  CHECK(explained.code == 0);
  CHECK(has(explained.out, "replay of job.{rank}.et (job)"));
  CHECK(has(explained.out, "gemm"));
  CHECK(has(run_command({"run", files.scenario()}).out,
            "\nComputation takes the recorded times, whatever GPUs the machine has; calibration.scale_compute"));
  const std::string page = files.scenario() + ".html", trace = files.scenario() + ".pftrace";
  CHECK(run_command({"run", files.scenario(), "--report", page, "--trace", trace}).code == 0);
  CHECK(std::filesystem::file_size(page) > 1000);
  CHECK(std::filesystem::file_size(trace) > 100);
  const Outcome swept = run_command(
      {"run", files.scenario(), "--set", "topology.link.bandwidth=[\"25 GB/s\", \"50 GB/s\"]", "--format", "csv"});
  CHECK(swept.code == 0);
  const Outcome replayed = run_command({"replay", files.scenario(), "--backend", "tcp"});
  CHECK(replayed.code == 3);
  CHECK(has(replayed.err, "/trace: expected a collective or a training step, found a trace"));
}

}  // namespace trace_scenario_test
