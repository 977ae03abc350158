// Traces of PyTorch's profiler: what is read, and what is refused.
#include "validate/profiles/kineto.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/files.hpp"
#include "tests/support/made_profiles.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/paths.hpp"
#include "validate/profiles/call_names.hpp"
#include "validate/profiles/read.hpp"
#include "validate/profiles/trace_events.hpp"

namespace profile_kineto_test {

using namespace ringsim;
using namespace ringsim::profiles;

namespace {

std::string sample_file(const std::string& name) {
  return (std::filesystem::path(test::source_dir()) / "tests/data/profiles" / name).string();
}

Profile of_files(const std::vector<std::string>& names, const AssumedGroups& groups = {}) {
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(sample_file(name));
  ReadOptions options;
  options.groups = groups;
  return read_profiles(paths, options);
}

/// A trace of these events, of rank 0 of 2.
std::string trace_of(const std::string& events) {
  return R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [)" + events + "]}";
}

/// A kernel of NCCL without arguments, its launch, and an event of PyTorch around the launch.
std::string old_call(const std::string& annotation, const std::string& dims, const std::string& types) {
  return R"({"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL", "tid": 7, "ts": 100, "dur": 50,
    "args": {"stream": 7, "correlation": 5, "grid": [8, 1, 1], "block": [544, 1, 1]}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 3, "ts": 90, "dur": 2, "args": {"correlation": 5}},
    {"ph": "X", "cat": "user_annotation", "name": ")" +
         annotation + R"(", "tid": 3, "ts": 85, "dur": 20, "args": {"Input Dims": )" + dims + R"(, "Input type": )" +
         types + "}}";
}

Call only_call(const std::string& text) {
  const Profile profile = test::read_texts({{"trace.json", text}});
  REQUIRE(profile.calls.size() == 1);
  return profile.calls.front();
}

}  // namespace

TEST_CASE("a trace with NCCL's arguments gives operation, size, group and launch of every kernel") {
  const Profile profile = of_files({"resnet50-2xa100.json.gz"});
  // Three steps of DDP with five buckets, and two broadcasts of buffers each.
  REQUIRE(profile.calls.size() == 21);
  REQUIRE(profile.sources.size() == 1);
  CHECK(profile.sources[0].kernels == 21);  // gpu_user_annotation repeats all of them
  CHECK(profile.sources[0].nccl_version == "2.17.1");
  CHECK(profile.sources[0].world == 2);
  CHECK(profile.sources[0].gpus_on_host == 8);
  std::map<std::int64_t, int> buckets;
  for (const Call& call : profile.calls) {
    CHECK(call.is_usable());
    CHECK(call.size_from == SizeFrom::kernel);
    CHECK(profile.groups[call.group].members == std::vector<std::uint32_t>{0, 1});
    CHECK(call.launch_ns != no_value);
    CHECK(call.launch_ns < call.begin_ns);
    if (call.op == CallOp::all_reduce) ++buckets[call.bytes];
  }
  // The trace's numbers of elements, times 4 bytes of Float.
  CHECK(buckets ==
        std::map<std::int64_t, int>{{8196000, 3}, {9724160, 3}, {26255360, 3}, {26550272, 3}, {31502336, 3}});
  const Call& first = profile.calls.front();
  CHECK(first.blocks == 8);
  CHECK(first.threads == 512);
}

TEST_CASE("a trace without arguments gives sizes by the annotation around the launch, and no group") {
  const Profile profile = of_files({"two-of-128-rank-0.json.gz", "two-of-128-rank-1.json.gz"});
  REQUIRE(profile.calls.size() == 20);
  for (const Call& call : profile.calls) {
    CHECK(call.is_usable());
    CHECK(call.size_from == SizeFrom::annotation);
    CHECK(call.group == 0);
    // An all-gather's annotation has one rank's share: 16777216 signed char.
    if (call.op == CallOp::all_gather) CHECK(call.bytes == 16777216);
    CHECK(call.has(Call::is_share) == (call.op == CallOp::all_gather));
  }
  const Profile grouped =
      of_files({"two-of-128-rank-0.json.gz", "two-of-128-rank-1.json.gz"}, read_assumed_groups("all"));
  for (const Call& call : grouped.calls) {
    CHECK(grouped.groups[call.group].size == 128);
    CHECK(!call.has(Call::is_share));
    if (call.op == CallOp::all_gather) CHECK(call.bytes == std::int64_t{16777216} * 128);
  }
}

TEST_CASE("an all-gather of PyTorch's _allgather_base counts what all ranks gather, times from baseTimeNanoseconds") {
  const Profile profile = of_files({"b200-all-gather.json"});
  REQUIRE(profile.calls.size() == 1);
  const Call& call = profile.calls.front();
  CHECK(call.op == CallOp::all_gather);
  CHECK(call.bytes == 402176);  // 8 ranks x 25136 BFloat16
  CHECK(call.blocks == 11);
  CHECK(call.threads == 512);
  CHECK(profile.groups[call.group].members.size() == 8);
  // "baseTimeNanoseconds": 1767189312000000000 and "ts": 1365627949863.953.
  CHECK(call.begin_ns == 1767189312000000000 + 1365627949863953);
  CHECK(call.duration_ns() == 21953);
}

TEST_CASE("names of operations and element types, old and new") {
  const auto op = [](const char* name) { return named_op(name).op; };
  for (const char* name : {"allreduce", "nccl:all_reduce", "AllReduce", "allreduce_coalesced"})
    CHECK(op(name) == CallOp::all_reduce);
  for (const char* name : {"_allgather_base", "nccl:_all_gather_base", "allgather_into_tensor_coalesced", "AllGather"})
    CHECK(op(name) == CallOp::all_gather);
  for (const char* name : {"_reduce_scatter_base", "nccl:reduce_scatter_tensor_coalesced", "ReduceScatter"})
    CHECK(op(name) == CallOp::reduce_scatter);
  for (const char* name : {"all_to_all", "all_to_allv", "alltoall", "nccl:alltoall_base"})
    CHECK(op(name) == CallOp::all_to_all);
  CHECK(named_op("all_to_allv").sizes_differ);
  CHECK(!named_op("all_to_all").sizes_differ);
  CHECK(named_op("allgather_into_tensor_coalesced").coalesced);
  CHECK(op("nccl:send 0->1") == CallOp::send);
  CHECK(op("Recv") == CallOp::recv);
  CHECK(op("nccl:_broadcast_oop") == CallOp::broadcast);
  CHECK(op("nccl:all_reduce_barrier") == CallOp::barrier);
  CHECK(op("nccl:coalesced") == CallOp::unknown);
  CHECK(op("") == CallOp::unknown);
  for (const char* name : {"Float", "float", "int", "Int", "UInt32"}) CHECK(element_bytes(name) == 4);
  for (const char* name : {"BFloat16", "c10::BFloat16", "Half", "c10::Half", "short"}) CHECK(element_bytes(name) == 2);
  for (const char* name : {"Long", "long int", "double", "c10::complex<float>"}) CHECK(element_bytes(name) == 8);
  for (const char* name : {"Byte", "unsigned char", "signed char", "Float8_e4m3fn", "c10::Float8_e5m2"})
    CHECK(element_bytes(name) == 1);
  CHECK(!element_bytes("TensorList"));
}

TEST_CASE("times in us keep their ns, whatever their form") {
  CHECK(ns_of_us("1365627949735.404") == 1365627949735404);
  CHECK(ns_of_us("1682725898108990") ==
        1682725898108990000);  // integers, up to 2023: beyond what a double counts in ns
  CHECK(ns_of_us("0.0005") == 0);
  CHECK(ns_of_us("-2.5") == -2500);
  CHECK(ns_of_us("1.5e3") == 1500000);
  for (const char* text : {"", "x", "1.2.3", "12us", "9223372036854775807", "\"1\"", "1e300", "-"}) {
    CAPTURE(text);
    CHECK(!ns_of_us(text));
  }
}

TEST_CASE("a call without a size says why") {
  const std::string sized = old_call("nccl:all_reduce", "[[1024]]", R"(["float"])");
  CHECK(only_call(trace_of(sized)).bytes == 4096);
  CHECK(only_call(trace_of(sized)).launch_ns == 90000);
  const auto lost = [](const std::string& events) { return only_call(trace_of(events)).lost; };
  CHECK(lost(old_call("nccl:all_reduce", "[]", "[]")) == Lost::no_shapes);
  CHECK(lost(old_call("nccl:all_reduce", "[[8]]", R"(["c10::Strange"])")) == Lost::unknown_type);
  CHECK(lost(old_call("nccl:coalesced", "[[8]]", R"(["float"])")) == Lost::coalesced);
  CHECK(lost(old_call("nccl:new_thing", "[[8]]", R"(["float"])")) == Lost::unknown_op);
  CHECK(lost(test::replaced(sized, R"("ts": 85, "dur": 20)", R"("ts": 95, "dur": 20)")) == Lost::no_annotation);
  for (const char* thread : {"2", "4"})  // of another thread, before and after the launch's in the order of threads
    CHECK(lost(test::replaced(sized, R"("tid": 3, "ts": 85)", std::string(R"("tid": )") + thread + R"(, "ts": 85)")) ==
          Lost::no_annotation);
  CHECK(lost(test::replaced(sized, R"("args": {"correlation": 5}})", R"("args": {"correlation": 6}})")) ==
        Lost::no_launch);
  CHECK(lost(test::replaced(sized, "cudaLaunchKernel", "cudaGraphLaunch")) == Lost::graph);
  const char* arguments = R"("args": {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Strange", )";
  CHECK(lost(test::replaced(sized, "\"args\": {", arguments)) == Lost::unknown_type);
  // An overflow of elements is no size.
  CHECK(lost(old_call("nccl:all_reduce", "[[9223372036854775807, 4]]", R"(["float"])")) == Lost::no_shapes);
}

TEST_CASE("the event record_param_comms gives the group and the number that a kernel lacks") {
  const std::string record =
      R"(, {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "tid": 3, "ts": 80, "dur": 40, "args": {
      "Collective name": "allreduce", "dtype": "Half", "In msg nelems": 100, "Out msg nelems": 100, "Group size": 40,
      "Process Group Name": "tp", "Process Group Ranks": "[0, 2, 4, 6, ...]", "Global rank start": 0,
      "Global rank stride": 2, "Seq": 17}})";
  const Profile profile =
      test::read_texts({{"trace.json", trace_of(old_call("nccl:all_reduce", "[[1024]]", R"(["float"])") + record)}});
  const Call& call = profile.calls.at(0);
  CHECK(call.size_from == SizeFrom::comms);
  CHECK(call.bytes == 200);
  CHECK(call.sequence == 17);
  // A list that is cut: start and stride tell the 40 members.
  REQUIRE(profile.groups[call.group].members.size() == 40);
  CHECK(profile.groups[call.group].members.back() == 78);
}

TEST_CASE("a group of as many ranks as the job has is all of them; sizes of coalesced calls add up") {
  const std::string kernel = R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "tid": 7, "ts": 100, "dur": 50,
    "args": {"stream": 7, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 64, "Group size": 2,
    "Process Group Name": "0", "Process Group Ranks": "[]"}})";
  const auto members = [](const std::string& text) {
    const Profile profile = test::read_texts({{"trace.json", trace_of(text)}});
    return profile.groups.at(profile.calls.at(0).group).members;
  };
  CHECK(members(kernel) == std::vector<std::uint32_t>{0, 1});
  CHECK(members(test::replaced(kernel, R"("Group size": 2)", R"("Group size": 1)")).empty());
  CHECK(only_call(trace_of(old_call("nccl:all_reduce_coalesced", "[[100], [28]]", R"(["float", "float"])"))).bytes ==
        512);
}

TEST_CASE("several kernels of one call are one record") {
  const std::string kernel =
      R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "tid": 7, "ts": 100, "dur": 50,
    "args": {"External id": 9, "stream": 7, "correlation": 5, "grid": [8, 1, 1], "Collective name": "all_to_all",
    "dtype": "Float", "In msg nelems": 64, "Out msg nelems": 64}})";
  const Profile profile = test::read_texts(
      {{"trace.json", trace_of(kernel + ", " + test::replaced(kernel, R"("ts": 100)", R"("ts": 160)"))}});
  REQUIRE(profile.calls.size() == 1);
  CHECK(profile.sources[0].kernels == 2);
  CHECK(profile.calls[0].duration_ns() == 110'000);  // 100 to 210 us
  CHECK(profile.calls[0].bytes == 256);
}

TEST_CASE("the share of a call in which other kernels run counts each moment once, and not the call's own stream") {
  const auto kernel = [](double begin, double duration, int stream) {
    return test::MadeKernel{.begin = begin, .duration = duration, .op = "", .stream = stream};
  };
  // The call takes 100 us from 1000 on. Others cover 1010 to 1040 and 1030 to 1060: half of it.
  const Profile profile =
      test::read_texts({{"rank0.json", test::made_trace(0, 1,
                                                        {{.begin = 1000, .duration = 100, .elements = 64},
                                                         kernel(1010, 30, 7),
                                                         kernel(1030, 30, 8),
                                                         kernel(1000, 100, 20),
                                                         kernel(900, 50, 7),
                                                         kernel(1100, 50, 7)})}});
  CHECK(profile.calls.at(0).overlap == 500);
}

TEST_CASE("a trace in pieces of any size is the same trace") {
  const std::string text = test::read_file(sample_file("b200-all-gather.json"));
  const auto read_in = [&](std::size_t piece) {
    std::vector<std::string> out;
    TraceEvents events(
        "t.json", Limits(),
        {.what = "trace", .events = "traceEvents", .members = {"schemaVersion", "distributedInfo", "deviceProperties"}},
        {.member = [&](std::string_view key,
                       std::string_view value) { out.push_back(std::string(key) + ": " + std::string(value)); },
         .event = [&](std::string_view event,
                      std::uint64_t at) { out.push_back(std::to_string(at) + ": " + std::string(event)); }});
    for (std::size_t i = 0; i < text.size(); i += piece) events.feed(std::string_view(text).substr(i, piece));
    events.end();
    return out;
  };
  const std::vector<std::string> whole = read_in(text.size());
  CHECK(whole.size() > 10);
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 100U, 4096U}) {
    CAPTURE(piece);
    CHECK(read_in(piece) == whole);
  }
}

TEST_CASE("quotes, backslashes and brackets in names are no structure") {
  const std::string name =
      R"({"ph": "X", "cat": "python_function", "name": "f(\"]}\\", "ts": 1, "dur": 1, "args": {"a": "\\"}}, )";
  const Call call = only_call(trace_of(name + old_call("nccl:all_reduce", "[[1024]]", R"(["float"])")));
  CHECK(call.bytes == 4096);
}

TEST_CASE("ranks and hosts by the file's name") {
  CHECK(rank_of_name("job/rank_3.json") == 3U);
  CHECK(rank_of_name("rank-12.json.gz") == 12U);
  CHECK(rank_of_name("trace_rank7.pt.trace.json") == 7U);
  CHECK(!rank_of_name("rank/trace.json"));
  CHECK(!rank_of_name("rankings.json"));
  CHECK(host_of_name("logs/node-1.cluster_4711.1699999999.pt.trace.json") == "node-1.cluster");
  CHECK(host_of_name("node1_4711.1699999999.pt.trace.json.gz") == "node1");
  CHECK(host_of_name("rank_3.json").empty());
}

TEST_CASE("a damaged or hostile trace is refused: where, what was expected, what was found, what to do") {
  const std::string ok = trace_of(old_call("nccl:all_reduce", "[[1024]]", R"(["float"])"));
  const std::string first = R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [)";
  const std::string event =
      R"({"ph": "X", "cat": "kernel", "name": "ncclKernel", "tid": 7, "ts": 1, "dur": 1, "args": {}})";
  Limits small;
  small.event_bytes = 2000;
  small.records = 3;
  small.groups = 2;
  struct Hostile {
    std::string what, text;
  };
  std::string many_groups = first, deep = first + R"({"args": )" + std::string(70, '[');
  for (int i = 0; i < 3; ++i)
    many_groups += (i > 0 ? ", " : "") + test::replaced(event, "{}",
                                                        R"({"Collective name": "allreduce", "Process Group Name": "g)" +
                                                            std::to_string(i) + R"("})");
  const std::vector<Hostile> all{
      {"nothing", ""},
      {"a list", "[1, 2, 3]"},
      {"another document", R"({"a": 1})"},
      {"a text", "hello"},
      {"cut in the document", ok.substr(0, 60)},
      {"cut in an event", ok.substr(0, 200)},
      {"cut before its last bracket", ok.substr(0, ok.size() - 1)},
      {"more after it", ok + "x"},
      {"two documents", ok + ok},
      {"no events", R"({"schemaVersion": 1, "distributedInfo": {}})"},
      {"events twice", R"({"schemaVersion": 1, "traceEvents": [], "traceEvents": []})"},
      {"events that are no list", R"({"schemaVersion": 1, "traceEvents": {"a": 1}})"},
      {"an event that is no object", first + "[1]]}"},
      {"a number as an event", first + "17]}"},
      {"two commas", first + event + ",," + event + "]}"},
      {"no comma", first + event + event + "]}"},
      {"a comma at the end", first + event + ",]}"},
      {"a bracket too many", first + event + "]]}"},
      {"brackets crossed", first + R"({"args": [1, 2}})"},
      {"nesting", deep},
      {"nesting in another member", R"({"schemaVersion": 1, "x": )" + std::string(100, '{')},
      {"a long event", first + R"({"ph": "X", "cat": "python_function", "name": ")" + std::string(3000, 'x') + "\"}]}"},
      {"a string without an end", first + R"({"name": ")" + std::string(3000, 'x')},
      {"a long key", R"({"schemaVersion": 1, ")" + std::string(2000, 'k') + R"(": 1, "traceEvents": []})"},
      {"a key without quotes", R"({"schemaVersion": 1, traceEvents: []})"},
      {"no colon", R"({"schemaVersion" 1})"},
      {"arguments that are no JSON", first + test::replaced(event, "{}", R"({"a": nan})") + "]}"},
      {"arguments that are no object", first + test::replaced(event, "{}", "[]") + "]}"},
      {"bytes that are not UTF-8", first + test::replaced(event, "{}", "{\"a\": \"\xff\xfe\"}") + "]}"},
      {"a time in words", first + test::replaced(event, R"("ts": 1)", R"("ts": "noon")") + "]}"},
      {"no time", first + test::replaced(event, R"("ts": 1, )", "") + "]}"},
      {"a negative duration", first + test::replaced(event, R"("dur": 1)", R"("dur": -1)") + "]}"},
      {"a huge time", first + test::replaced(event, R"("ts": 1)", R"("ts": 9e15)") + "]}"},
      {"a time beyond 64 bits", first + test::replaced(event, R"("ts": 1)", R"("ts": 99999999999999999999)") + "]}"},
      {"a rank too high", test::replaced(ok, R"("rank": 0)", R"("rank": 70000)")},
      {"a negative rank", test::replaced(ok, R"("rank": 0)", R"("rank": -1)")},
      {"too many ranks", test::replaced(ok, R"("world_size": 2)", R"("world_size": 1000000000)")},
      {"no rank", test::replaced(ok, R"("rank": 0, )", "")},
      {"a base time in words", test::replaced(ok, R"("traceEvents")", R"("baseTimeNanoseconds": "x", "traceEvents")")},
      {"devices that are no JSON", test::replaced(ok, R"("traceEvents")", R"("deviceProperties": [x], "traceEvents")")},
      {"more calls than allowed", first + event + "," + event + "," + event + "," + event + "]}"},
      {"more groups than allowed", many_groups + "]}"},
      {"gzip that ends too early", test::packed(ok).substr(0, 100)},
      {"gzip with a byte changed",
       [&] {
         std::string packed = test::packed(ok);
         packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
         return packed;
       }()},
      {"gzip in gzip", test::packed(test::packed(ok))},
      {"a pickle", std::string("\x80\x04\x95\x10\0\0\0\0\0\0\0}", 12)},
      {"a zip archive", std::string("PK\x03\x04\x14\0", 6)},
      {"SQLite", std::string("SQLite format 3\0\x10\0CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL", 57)},
      {"a Flight Recorder's dump", R"({"version": "2.4", "pg_config": {"0": {"name": "0"}}, "entries": []})"},
  };
  test::MessagePage page("profiles_kineto");
  for (const Hostile& each : all) {
    CAPTURE(each.what);
    std::string said;
    try {
      test::read_texts({{"t.json", each.text}}, {}, small);
    } catch (const InputError& error) {
      said = error.what();
    }
    page.add(each.what, said);
  }
  page.check();
}

TEST_CASE("files of two jobs, or two of one rank, are refused by name") {
  const auto text = [](std::uint32_t rank, std::uint32_t world) {
    return test::made_trace(rank, world, {{.begin = 1, .duration = 1, .elements = 1}});
  };
  CHECK_THROWS_WITH_AS(
      test::read_texts({{"a.json", text(0, 8)}, {"b.json", text(1, 16)}}),
      "b.json: expected a job with 8 ranks as in a.json, found one with 16\n  hint: use files from a single job",
      InputError);
  CHECK_THROWS_WITH_AS(test::read_texts({{"a.json", text(3, 8)}, {"b.json", text(3, 8)}}),
                       "b.json: expected one file per rank, found rank 3 in a.json as well\n  hint: remove one of "
                       "them, or set the rank with --rank b.json=N",
                       InputError);
}

TEST_CASE("a file that unpacks to a thousand times its size is refused beyond 1 GiB") {
  // Zeros pack 1:1029 or so; 64 MiB are no harm, and a limit of 10 applies only from 1 GiB on.
  Limits limits;
  limits.ratio = 10;
  std::istringstream zeros(test::packed(std::string(std::size_t{64} << 20, ' ')));
  Pieces file(std::make_unique<std::istringstream>(zeros.str()), "zeros.gz", limits);
  std::string piece;
  std::size_t all = 0, longest = 0;
  while (file.next(piece)) all += piece.size(), longest = std::max(longest, piece.size());
  CHECK(all == std::size_t{64} << 20);
  CHECK(longest <= 17'000'000);  // 16 KiB times 1032
  // 17 members of 64 MiB: the limit applies.
  std::string bomb;
  for (int i = 0; i < 17; ++i) bomb += zeros.str();
  Pieces large(std::make_unique<std::istringstream>(bomb), "bomb.gz", limits);
  CHECK_THROWS_AS(
      [&] {
        while (large.next(piece)) {
        }
      }(),
      InputError);
}

}  // namespace profile_kineto_test
