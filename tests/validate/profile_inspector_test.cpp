// Logs of NCCL Inspector, in all of their versions.
#include "validate/profiles/inspector.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/files.hpp"
#include "tests/support/made_profiles.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/packed.hpp"
#include "validate/profiles/read.hpp"
#include "validate/profiles/waiting.hpp"

namespace profile_inspector_test {

using namespace ringsim;
using namespace ringsim::profiles;
using test::read_texts;

namespace {

enum class Form { v40, v42, v43, verbose, accl };

struct MadeCall {
  std::string op;
  std::int64_t number = 0, bytes = 0;
  std::int64_t begin_us = 0, exec_us = 0;
};

/// The log of a rank of four on two hosts, as each version writes it.
std::string log_of(Form form, int rank, const std::vector<MadeCall>& calls) {
  const auto header = [&] {
    return form == Form::accl
               ? fmt::format(R"("header": {{"rank": {}, "n_ranks": 4, "nnodes": 2}})", rank)
               : fmt::format(R"("header": {{"id": "0x7f", "rank": {}, "n_ranks": 4, "nnodes": 2}})", rank);
  };
  const char* version = form == Form::v42 ? "v4.2" : form == Form::v43 ? "v4.3" : "v4.0";
  const std::string metadata = fmt::format(
      R"("metadata": {{"inspector_output_format_version": "{}", "git_rev": "", "hostname": "host{}", "pid": {}}})",
      version, rank / 2, 100 + rank);
  std::string text;
  if (form == Form::v43) text += fmt::format("{{{}, {}}}\n", header(), metadata);
  for (const MadeCall& call : calls) {
    std::string perf = fmt::format(R"("coll": "{}", "coll_sn": {}, "coll_msg_size_bytes": {}, "coll_exec_time_us": {})",
                                   call.op, call.number, call.bytes, call.exec_us);
    perf += R"(, "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 1.5, "coll_busbw_gbs": 1.0)";
    if (form == Form::v42 || form == Form::v43) perf += R"(, "coll_algo": "RING", "coll_proto": "SIMPLE")";
    if (form == Form::accl) perf += R"(, "decomposition": {"steps": 6})";
    if (form == Form::verbose)
      perf += fmt::format(
          R"(, "event_trace_sn": {{"coll_start_sn": 1}}, "event_trace_ts": {{"coll_start_ts": {}, "coll_stop_ts": {}, "kernel_events": [{{"channel_id": 0, "kernel_start_ts": {}, "kernel_stop_ts": {}, "kernel_record_ts": {}}}, {{"channel_id": 1, "kernel_start_ts": {}, "kernel_stop_ts": {}, "kernel_record_ts": {}}}]}})",
          call.begin_us - 9, call.begin_us - 5, call.begin_us, call.begin_us + call.exec_us,
          call.begin_us + call.exec_us, call.begin_us + 1, call.begin_us + call.exec_us, call.begin_us + call.exec_us);
    text += form == Form::v43 ? fmt::format("{{\"coll_perf\": {{{}}}}}\n", perf)
                              : fmt::format("{{{}, {}, \"coll_perf\": {{{}}}}}\n", header(), metadata, perf);
  }
  return text;
}

/// Three kinds of collectives in turn, each numbered by itself; rank 2 arrives 200 us late at all-gathers.
std::vector<MadeCall> calls_of(int rank) {
  std::vector<MadeCall> calls;
  for (int i = 0; i < 6; ++i) {
    const std::int64_t begin = 1'700'000'000'000'000 + 10'000 * i;
    const int late = rank == 2 ? 200 : 0;
    // Without late ranks the all-reduces take as long on every rank.
    calls.push_back({"AllReduce", i, 1 << 20, begin, 100});
    calls.push_back({"AllGather", i, 1 << 16, begin + 1000 + late, 500 - late});
    calls.push_back({"ReduceScatter", i, 1 << 18, begin + 3000, 250});
  }
  return calls;
}

Profile job(Form form) {
  std::vector<std::pair<std::string, std::string>> files;
  for (int rank = 0; rank < 4; ++rank)
    files.emplace_back(fmt::format("host{}-pid{}.log", rank / 2, 100 + rank), log_of(form, rank, calls_of(rank)));
  return read_texts(files);
}

const std::string line = log_of(Form::v40, 0, {{"AllReduce", 1, 1024, 5, 10}});

}  // namespace

TEST_CASE("one job in five forms of the log has one table") {
  const Account plain = account_of(job(Form::v40), 0);
  REQUIRE(plain.rows.size() == 3);
  CHECK(plain.matching.matched == 4 * 18);
  for (const Form form : {Form::v40, Form::v42, Form::v43, Form::accl, Form::verbose}) {
    CAPTURE(static_cast<int>(form));
    const Account account = account_of(job(form), 0);
    CHECK(account.matching.matched == plain.matching.matched);
    CHECK(account.hosts.count == 2);
    REQUIRE(account.rows.size() == plain.rows.size());
    for (std::size_t i = 0; i < plain.rows.size(); ++i) {
      const Row &a = account.rows[i], &b = plain.rows[i];
      CHECK(a.op == b.op);
      CHECK(a.bytes == b.bytes);
      CHECK(a.group_size == 4);
      CHECK(a.collectives == b.collectives);
      CHECK(a.kernel_ns == b.kernel_ns);
      CHECK(a.split == b.split);
      CHECK(a.is_partial == false);
      CHECK(a.transfer_ns == b.transfer_ns);
      CHECK(a.longest_wait_ns == b.longest_wait_ns);
      CHECK(a.waits_much() == b.waits_much());
      if (a.waits_much()) CHECK(a.late_rank() == b.late_rank());
      CHECK(a.is_by_shortest == (form != Form::verbose));  // only a verbose log has moments
    }
  }
}

TEST_CASE("a call of a verbose log begins with its first channel and lasts as long as the log says") {
  // Channel 0 starts at 100 us and channel 1 at 90; the longest of them took 50, although the last stop is at 160.
  const std::string verbose = test::replaced(
      line, R"("coll_algobw_gbs")",
      R"("event_trace_ts": {"coll_start_ts": 80, "kernel_events": [{"kernel_start_ts": 100, "kernel_stop_ts": 160}, {"kernel_start_ts": 90, "kernel_stop_ts": 140}, {"kernel_start_ts": 95, "kernel_stop_ts": 140}]}, "coll_algobw_gbs")");
  const Call call =
      read_texts({{"a.log", test::replaced(verbose, R"("coll_exec_time_us": 10)", R"("coll_exec_time_us": 50)")}})
          .calls.at(0);
  CHECK(call.begin_ns == 90'000);
  CHECK(call.duration_ns() == 50'000);
  CHECK(call.launch_ns == 80'000);
  CHECK(call.blocks == 3);
}

TEST_CASE("sizes of AllGather and ReduceScatter are one rank's share in the log, and the whole in the record") {
  const Account account = account_of(job(Form::v40), 0);
  std::map<CallOp, std::int64_t> bytes;
  for (const Row& row : account.rows) bytes[row.op] = row.bytes;
  CHECK(bytes.at(CallOp::all_reduce) == 1 << 20);
  CHECK(bytes.at(CallOp::all_gather) == 4 << 16);
  CHECK(bytes.at(CallOp::reduce_scatter) == 4 << 18);
  for (const Row& row : account.rows) {
    if (row.op != CallOp::all_gather) continue;
    CHECK(row.transfer_ns == 300'000);
    CHECK(row.longest_wait_ns == 200'000);
    CHECK(row.late_rank() == 2U);
  }
}

TEST_CASE("kinds of collectives are numbered by themselves: three of them in turn match") {
  // Number 3 of AllReduce is not number 3 of AllGather; matched by number alone half of them would be lost.
  const Account account = account_of(job(Form::v42), 0);
  CHECK(account.matching.no_partner == 0);
  for (const Row& row : account.rows) CHECK(row.collectives == 6);
}

TEST_CASE("calls that the ring of the recorder lost are counted, the total of each communicator once") {
  const auto stats = [](int coll, int p2p) {
    return fmt::format(
        R"({{"header": {{"id": "0x7f", "rank": 0, "n_ranks": 4, "nnodes": 2}}, "metadata": {{"inspector_output_format_version": "v4.1", "hostname": "host0", "pid": 100}}, "dump_stats": {{"coll_records": 1, "coll_dropped_total": {}, "coll_dropped_since_last_dump": 1, "p2p_records": 0, "p2p_dropped_total": {}, "p2p_dropped_since_last_dump": 0}}}})"
        "\n",
        coll, p2p);
  };
  // Totals grow from dump to dump: the last one counts, 7 + 2.
  const Profile profile = read_texts({{"a.log", stats(3, 0) + line + stats(7, 2)}});
  CHECK(profile.sources.at(0).dropped == 9);
  CHECK(profile.calls.size() == 1);
}

TEST_CASE("a process's rank in the job is that in its largest communicator, members are the processes seen") {
  const auto in = [](const char* id, int rank, int n, int pid, int number) {
    return fmt::format(
        R"({{"header": {{"id": "{}", "rank": {}, "n_ranks": {}, "nnodes": 1}}, "metadata": {{"inspector_output_format_version": "v4.0", "hostname": "h", "pid": {}}}, "coll_perf": {{"coll": "AllReduce", "coll_sn": {}, "coll_msg_size_bytes": 64, "coll_exec_time_us": 5}}}})"
        "\n",
        id, rank, n, pid, number);
  };
  // Ranks 1 and 3 of four are ranks 0 and 1 of a pair.
  const Profile profile = read_texts({{"a", in("zz-pair", 0, 2, 11, 1) + in("world", 1, 4, 11, 1)},
                                      {"b", in("zz-pair", 1, 2, 33, 1) + in("world", 3, 4, 33, 1)}});
  REQUIRE(profile.sources.size() == 2);
  CHECK(profile.sources[0].rank == 1);
  CHECK(profile.sources[1].rank == 3);
  for (const CallGroup& group : profile.groups) {
    if (group.name == "zz-pair") CHECK(group.members == std::vector<std::uint32_t>{1, 3});
    if (group.name == "world") CHECK(group.members.empty());  // ranks 0 and 2 have no file
  }
  // A process with a thread for each GPU writes all ranks of its communicator into one file.
  const Profile threads = read_texts({{"c", in("all", 0, 2, 7, 1) + in("all", 1, 2, 7, 1)}});
  CHECK(threads.sources.size() == 2);
  CHECK(account_of(threads, 0).matching.matched == 2);
}

TEST_CASE("a last line that is cut is left out with a warning; times of the CPU are counted") {
  const Profile cut = read_texts({{"a.log", line + line.substr(0, 100)}});
  CHECK(cut.calls.size() == 1);
  REQUIRE(cut.warnings.size() == 1);
  CHECK(cut.warnings[0] == "a.log:2: the last line is incomplete and was ignored");
  const Profile by_cpu = read_texts({{"a.log", test::replaced(line, "kernel_gpu", "kernel_cpu")}});
  REQUIRE(by_cpu.warnings.size() == 1);
  CHECK(by_cpu.warnings[0] == "a.log: 1 of 1 calls were timed by the CPU, not the GPU");
  const Profile zipped = read_texts({{"a.log.gz", test::packed(line)}});
  CHECK(zipped.calls.size() == 1);
  // RCCL has times with a fraction.
  const Profile fraction =
      read_texts({{"a.log", test::replaced(line, R"("coll_exec_time_us": 10)", R"("coll_exec_time_us": 10.5)")}});
  CHECK(fraction.calls.at(0).duration_ns() == 10'500);
}

TEST_CASE("a damaged or hostile log is refused: file and line, what was expected, what was found, what to do") {
  Limits small;
  small.event_bytes = 2000;
  small.records = 3;
  const auto with = [](const std::string& what, const std::string& instead) {
    return test::replaced(line, what, instead) + line;
  };
  const std::vector<std::pair<std::string, std::string>> all{
      {"a line that is cut in the middle of the file", line.substr(0, 150) + "\n" + line},
      {"a list", line + "[1]\n"},
      {"a word", line + "warning: something\n"},
      {"another version", with("v4.0", "v5.0")},
      {"no rank", with(R"("rank": 0, )", "")},
      {"a negative rank", with(R"("rank": 0)", R"("rank": -1)")},
      {"a rank as text", with(R"("rank": 0)", R"("rank": "0")")},
      {"a rank beyond the ranks", with(R"("rank": 0)", R"("rank": 4)")},
      {"too many ranks", with(R"("n_ranks": 4)", R"("n_ranks": 4000000000)")},
      {"no header", "{\"coll_perf\": {\"coll\": \"AllReduce\"}}\n"},
      {"a header that is a list",
       with(R"("header": {"id": "0x7f", "rank": 0, "n_ranks": 4, "nnodes": 2})", R"("header": [1])")},
      {"no size", with(R"("coll_msg_size_bytes": 1024, )", "")},
      {"a negative size", with("1024", "-1024")},
      {"a size with a fraction", with("1024", "10.5")},
      {"a size beyond 64 bits", with("1024", "99999999999999999999")},
      {"a share that overflows",
       test::replaced(test::replaced(with("1024", "1152921504606846976"), "AllReduce", "AllGather"), R"("n_ranks": 4)",
                      R"("n_ranks": 60000)")},
      {"no number", with(R"("coll_sn": 1, )", "")},
      {"no operation", with(R"("coll": "AllReduce", )", "")},
      {"an operation that is a number", with(R"("AllReduce")", "7")},
      {"no time", with(R"("coll_exec_time_us": 10, )", "")},
      {"a negative time", with(R"("coll_exec_time_us": 10)", R"("coll_exec_time_us": -10)")},
      {"a huge time", with(R"("coll_exec_time_us": 10)", R"("coll_exec_time_us": 1e300)")},
      {"a call that is no object", with(line.substr(line.find(R"({"coll")")), "1}\n")},
      {"stamps that are no object", with(R"("coll_algobw_gbs")", R"("event_trace_ts": 5, "coll_algobw_gbs")")},
      {"a stamp that is missing",
       with(R"("coll_algobw_gbs")", R"("event_trace_ts": {"kernel_events": [{}]}, "coll_algobw_gbs")")},
      {"a line that is too long", line + "{\"a\": \"" + std::string(3000, 'x') + "\"}\n" + line},
      {"more calls than allowed", line + line + line + line},
      {"statistics that are no object", with(R"("coll_perf")", R"("dump_stats": 5, "other")")},
      {"a process with several GPUs and communicators",
       line + test::replaced(line, R"("rank": 0)", R"("rank": 1)") + test::replaced(line, "0x7f", "0x80")},
  };
  test::MessagePage page("profiles_inspector");
  for (const auto& each : all) {
    CAPTURE(each.first);
    std::string said;
    try {
      read_texts({{"a.log", each.second}}, {}, small);
    } catch (const InputError& error) {
      said = error.what();
    }
    page.add(each.first, said);
  }
  std::string two;
  try {
    // Two processes say that they are rank 1 of one communicator.
    read_texts({{"a.log", line}, {"b.log", test::replaced(line, "\"pid\": 100", "\"pid\": 101")}});
  } catch (const InputError& error) {
    two = error.what();
  }
  page.add("two files of one rank", two);
  page.check();
}

TEST_CASE("nesting of a line is bounded") {
  Limits limits;
  const std::string deep = "{\"a\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}\n";
  const Profile profile = read_texts({{"a.log", line + deep + line}}, {}, limits);
  CHECK(profile.calls.size() == 2);  // a line about something else
}

}  // namespace profile_inspector_test
