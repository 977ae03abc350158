// Dumps of PyTorch's Flight Recorder: what is read of them, and how bad ones are refused.
#include "validate/profiles/flight_recorder.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/utf8.hpp"
#include "tests/support/files.hpp"
#include "tests/support/made_dumps.hpp"
#include "tests/support/made_profiles.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/packed.hpp"
#include "validate/profiles/waiting.hpp"

namespace profile_flight_recorder_test {

using namespace ringsim;
using namespace ringsim::profiles;
using test::made_dump;
using test::MadeEntry;
using test::MadeGroup;
using test::read_dump;

namespace {

const MadeGroup pair{.name = "0", .description = "default_pg", .ranks = {0, 1}};

Call only_call(const MadeEntry& entry, const MadeGroup& group = pair) {
  Profile profile;
  add_calls(read_dump("trace_0", made_dump({entry}, {group})), profile);
  REQUIRE(profile.calls.size() == 1);
  return profile.calls.front();
}

}  // namespace

TEST_CASE("an entry of Flight Recorder is read with its group, number, operation, sizes and state") {
  const FlightDump dump = read_dump("job/trace_1.json", made_dump({{.name = "_all_gather_base",
                                                                    .number = 7,
                                                                    .state = "started",
                                                                    .in = "[[3, 4], [5]]",
                                                                    .out = "[[34]]",
                                                                    .type = R"(BFloat16", "BFloat16)",
                                                                    .retired = true}},
                                                                  {pair}));
  CHECK(dump.rank == 1);
  CHECK(dump.version == "2.10");
  CHECK(dump.nccl_version == "2.26.2");
  CHECK(dump.world() == 2);
  CHECK(dump.knows_starts);
  CHECK(dump.missing == 0);
  REQUIRE(dump.groups.size() == 1);
  CHECK(dump.groups[0].description == "default_pg");
  CHECK(dump.groups[0].members == std::vector<std::uint32_t>{0, 1});
  REQUIRE(dump.calls.size() == 1);
  const FlightCall& call = dump.calls[0];
  CHECK(call.number == 7);
  CHECK(call.state == CallState::started);
  CHECK(call.has_timed_out);
  CHECK(!call.is_point_to_point);
  REQUIRE(call.ops.size() == 1);
  CHECK(dump.text(call.ops[0].name) == "_all_gather_base");
  CHECK(call.ops[0].op == CallOp::all_gather);
  CHECK(call.ops[0].in.elements == 17);
  CHECK(call.ops[0].in.bytes == 34);
  CHECK(dump.text(call.ops[0].in.shapes) == "[[3, 4], [5]]");
  CHECK(dump.text(call.ops[0].out.dtypes) == "BFloat16");
}

TEST_CASE("coalesced operations are one call, whose state is that of the entry that closes them") {
  // The operations have no events, so their own state stays scheduled for ever.
  const std::vector<MadeEntry> entries{{.name = "reduce_scatter", .number = 3, .state = "scheduled"},
                                       {.name = "reduce_scatter", .number = 3, .state = "scheduled", .in = "[[8]]"},
                                       {.name = "coalesced", .number = 3, .in = "[]", .duration_ms = 2.5},
                                       {.name = "send 0->1", .number = 3, .state = "scheduled", .message = 1},
                                       {.name = "recv 0<-1", .number = 3, .state = "scheduled", .message = 1}};
  const FlightDump dump = read_dump("trace_0", made_dump(entries, {pair}));
  REQUIRE(dump.calls.size() == 2);
  CHECK(dump.calls[0].state == CallState::completed);
  CHECK(dump.calls[0].ops.size() == 2);
  CHECK(dump.calls[0].duration_ns == 2'500'000);
  CHECK(dump.calls[1].state == CallState::scheduled);
  CHECK(dump.calls[1].is_point_to_point);
  CHECK(dump.calls[1].number == 1);
  REQUIRE(dump.calls[1].ops.size() == 2);
  CHECK(dump.calls[1].ops[0].peer == 1);
  CHECK(dump.calls[1].ops[1].peer == 1);
}

TEST_CASE("durations become calls whose bytes mean what a scenario's do") {
  const auto bytes = [](const std::string& name, const std::string& in, const std::string& out) {
    return only_call({.name = name, .in = in, .out = out, .duration_ms = 1.0}).bytes;
  };
  CHECK(bytes("all_reduce", "[[1024]]", "[[1024]]") == 4096);
  CHECK(bytes("_all_gather_base", "[[1024]]", "[[2048]]") == 8192);
  CHECK(bytes("_reduce_scatter_base", "[[2048]]", "[[1024]]") == 8192);
  CHECK(bytes("all_to_all", "[[2048]]", "[[2048]]") == 8192);
  const Call call = only_call({.number = 9, .duration_ms = 1.25});
  CHECK(call.duration_ns() == 1'250'000);
  CHECK(!call.has(Call::is_timed));
  CHECK(call.sequence == 9);
  CHECK(call.size_from == SizeFrom::flight_recorder);
  CHECK(only_call({.type = "Unheard", .duration_ms = 1}).lost == Lost::unknown_type);
  CHECK(only_call({.name = "dance", .duration_ms = 1}).lost == Lost::unknown_op);
  Profile none;
  add_calls(read_dump("trace_0", made_dump({{}, {.number = 2, .state = "started", .duration_ms = 1}}, {pair})), none);
  CHECK(none.calls.empty());
}

TEST_CASE("durations of several ranks tell waiting from transfer by the shortest") {
  const auto dump = [](double ms) { return made_dump({{.duration_ms = ms}}, {pair}); };
  const Profile profile = test::read_texts({{"trace_0", dump(5.0)}, {"trace_1", dump(2.0)}});
  const Account account = account_of(profile, 0);
  REQUIRE(account.rows.size() == 1);
  CHECK(account.rows[0].is_by_shortest);
  CHECK(account.rows[0].transfer_ns == 2e6);
  CHECK(account.rows[0].longest_wait_ns == 3e6);
  CHECK(account.rows[0].late_rank() == 1U);
}

TEST_CASE("a dump as Python's json writes the pickle is the same dump; one without entries is whole") {
  // Keys in another order, null for what is not known, frames, ranks as a list.
  const FlightDump dump = read_dump(
      "3.json",
      R"({"version": "2.4", "pg_config": {"7": {"name": "7", "desc": "", "ranks": [3, 5]}}, "nccl_version": "2.21.5", "entries": [
      {"frames": [{"name": "all_reduce", "filename": "/opt/lib/site-packages/torch/distributed/distributed_c10d.py", "line": 1},
                  {"name": "train_step", "filename": "train.py", "line": 42}],
       "record_id": 12, "pg_id": 0, "process_group": ["7", "undefined"], "collective_seq_id": 5, "p2p_seq_id": 0, "op_id": 1,
       "profiling_name": "nccl:all_reduce", "time_created_ns": 1, "input_sizes": [[3, 4]], "input_dtypes": ["Float"],
       "output_sizes": [[3, 4]], "output_dtypes": ["Float"], "state": "scheduled", "time_discovered_started_ns": null,
       "time_discovered_completed_ns": null, "retired": false, "timeout_ms": 1000, "is_p2p": false}]})");
  CHECK(dump.rank == 3);
  CHECK(dump.nccl_version == "2.21.5");
  CHECK(dump.missing == 12);
  CHECK(!dump.knows_starts);
  CHECK(dump.world() == 0);
  CHECK(dump.text(dump.calls.at(0).place) == "train_step at train.py:42");
  CHECK(read_dump("trace_0", made_dump({}, {pair})).calls.empty());
  CHECK(read_dump("trace_0", test::packed(made_dump({{}}, {pair}))).calls.size() == 1);
}

TEST_CASE("the rank of a dump is in its file's name") {
  CHECK(rank_of_dump("/tmp/nccl_trace_rank_3") == 3U);
  CHECK(rank_of_dump("dumps/comm_lib_trace_rank_12.json") == 12U);
  CHECK(rank_of_dump("trace_0") == 0U);
  CHECK(rank_of_dump("torch_fr_trace_7.json.gz") == 7U);
  CHECK(rank_of_dump("rank-3") == 3U);
  CHECK(rank_of_dump("5.json") == 5U);
  CHECK(!rank_of_dump("job-2026-11-03.json"));
  CHECK(!rank_of_dump("trace_/dump.json"));
}

TEST_CASE("names of files are cut between characters, so that results stay UTF-8") {
  std::string text = made_dump({{.state = "scheduled"}}, {{"0", "", {0}}});
  for (const char* lead : {"", "x"}) {  // one of them would cut a character in two
    std::string name = lead;
    for (int i = 0; i < 150; ++i) name += "\xc3\xa9";
    std::string one = text;
    const std::string frame = R"("frames": [{"name": ")" + name + R"(", "filename": "train.py", "line": 1}], "op_id")";
    one.replace(one.find("\"op_id\""), 7, frame);
    const FlightDump dump = test::read_dump("trace_0", one);
    const std::string& place = dump.text(dump.calls.at(0).place);
    CHECK(place.size() >= 199);
    CHECK(place.size() <= 200);
    CHECK(first_not_utf8(place) == std::string_view::npos);
  }
}

TEST_CASE("without numbers of messages, sends that follow each other are calls of their own") {
  const MadeEntry first{.name = "send 0->1"}, second{.name = "recv 0<-1", .state = "scheduled"};
  std::string text = made_dump({first, second}, {{"0", "", {0, 1}}});
  CHECK(test::read_dump("trace_0", text).calls.size() == 1);  // one number: coalesced
  for (std::size_t at; (at = text.find("\"p2p_seq_id\": 0, ")) != std::string::npos;) text.erase(at, 17);
  const FlightDump dump = test::read_dump("trace_0", text);
  REQUIRE(dump.calls.size() == 2);
  CHECK(dump.calls[0].state == CallState::completed);
}

TEST_CASE("entries that the file lacks are counted up to the last one") {
  const std::vector<MadeGroup> two{{"0", "", {0, 1}}};
  CHECK(test::read_dump("trace_0", made_dump({{}, {.number = 2}}, two, 7)).missing == 7);
  std::string text = made_dump({{}, {.number = 2}}, two);
  text.replace(text.find("\"record_id\": 1"), 14, "\"record_id\": 9");
  CHECK(test::read_dump("trace_0", text).missing == 8);
}

TEST_CASE("bad dumps of Flight Recorder are refused with place, what was expected and what was found") {
  const std::string ok = made_dump({{}, {.number = 2}}, {pair});
  const auto with = [&](const std::string& what, const std::string& instead) {
    return test::replaced(ok, what, instead);
  };
  Limits small;
  small.records = 3;
  small.groups = 2;
  const std::vector<std::pair<std::string, std::string>> all{
      {"cut in an entry", ok.substr(0, 300)},
      {"cut after the entries", ok.substr(0, ok.rfind("pg_status"))},
      {"entries that are no list", R"({"version": "2.10", "pg_config": {}, "entries": {"a": 1}})"},
      {"an entry that is no object", R"({"version": "2.10", "pg_config": {}, "entries": [7]})"},
      {"an entry that is no JSON", with(R"("op_id": 1)", R"("op_id": 1x)")},
      {"no version", with(R"(, "version": "2.10")", "")},
      {"another version", with(R"("version": "2.10")", R"("version": "3.0")")},
      {"a version in numbers", with(R"("version": "2.10")", R"("version": 2.10)")},
      {"numbers of old versions", with(R"("collective_seq_id": 1, )", R"("seq_id": 1, )")},
      {"no number", with(R"("collective_seq_id": 1, )", "")},
      {"a negative number", with(R"("collective_seq_id": 1,)", R"("collective_seq_id": -1,)")},
      {"a number beyond 2^60", with(R"("collective_seq_id": 1,)", R"("collective_seq_id": 18446744073709551615,)")},
      {"a number in words", with(R"("record_id": 0)", R"("record_id": "one")")},
      {"one record twice", with(R"("record_id": 1)", R"("record_id": 0)")},
      {"a state of its own", with(R"("state": "completed")", R"("state": "lost\u001b[31m")")},
      {"sizes in words", with(R"("input_sizes": [[1024]])", R"("input_sizes": "[[1024]]")")},
      {"a size in words", with(R"("input_sizes": [[1024]])", R"("input_sizes": [["a"]])")},
      {"sizes whose product overflows",
       with(R"("input_sizes": [[1024]])", R"("input_sizes": [[4294967296, 4294967296]])")},
      {"sizes whose sum overflows",
       with(R"("input_sizes": [[1024]])", R"("input_sizes": [[1000000000000000000], [1000000000000000000]])")},
      {"types in numbers", with(R"("input_dtypes": ["Float"])", R"("input_dtypes": [6])")},
      {"a group that is no list", with(R"("process_group": ["0", ""])", R"("process_group": "0")")},
      {"retired in words",
       test::replaced(made_dump({{.state = "started"}}, {pair}), R"("retired": false)", R"("retired": "no")")},
      {"a duration in words",
       test::replaced(made_dump({{.duration_ms = 1}}, {pair}), R"("duration_ms": 1)", R"("duration_ms": "1")")},
      {"a negative duration",
       test::replaced(made_dump({{.duration_ms = 1}}, {pair}), R"("duration_ms": 1)", R"("duration_ms": -1)")},
      {"groups that are a list", with(R"("pg_config": {"0")", R"("pg_config": ["0"], "pg_other": {"0")")},
      {"a group without ranks", with(R"("ranks": "[0, 1]")", R"("rank": "[0, 1]")")},
      {"ranks that are cut", with(R"("ranks": "[0, 1]")", R"("ranks": "[0, 1...")")},
      {"a rank twice", with(R"("ranks": "[0, 1]")", R"("ranks": "[0, 1, 1]")")},
      {"a rank of other groups", with(R"("ranks": "[0, 1]")", R"("ranks": "[2, 3]")")},
      {"too many entries", made_dump({{}, {}, {}, {}}, {pair})},
      {"too many groups", made_dump({}, {pair, {"1", "", {0}}, {"2", "", {0}}})},
      {"number 0 of a collective", with(R"("collective_seq_id": 1)", R"("collective_seq_id": 0)")},
      {"deep nesting", with(R"("op_id": 1)", "\"op_id\": " + std::string(100, '[') + std::string(100, ']'))},
  };
  test::MessagePage page("profiles_flight_recorder");
  for (const auto& one : all) {
    CAPTURE(one.first);
    const auto& [what, text] = one;
    std::string said;
    try {
      read_dump("trace_0", text, small);
    } catch (const InputError& error) {
      said = error.what();
    }
    page.add(what, said);
  }
  // What only shows in the name, or together.
  const auto refused = [&](const std::string& what, const std::vector<std::pair<std::string, std::string>>& files) {
    CAPTURE(what);
    std::string said;
    try {
      test::read_texts(files);
    } catch (const InputError& error) {
      said = error.what();
    }
    page.add(what, said);
  };
  refused("no rank in the name", {{"dump.json", ok}});
  refused("a rank beyond all", {{"trace_70000", ok}});
  refused("two files of one rank", {{"trace_0", ok}, {"copies/trace_0", ok}});
  refused("two jobs", {{"trace_0", ok}, {"trace_1", made_dump({}, {{"0", "default_pg", {0, 1, 2}}})}});
  refused("two versions of NCCL", {{"trace_0", ok}, {"trace_1", with("2.26.2", "2.27.3")}});
  refused("another kind of file",
          {{"trace_0", ok}, {"rank1.json", test::replaced(test::made_trace(1, 2, {}), "2.21.5", "2.26.2")}});
  refused("a pickle", {{"trace_0", std::string("\x80\x02}q\0(X\x07\0\0\0version", 18)}});
  page.check();
}

}  // namespace profile_flight_recorder_test
