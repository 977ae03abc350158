// Reports of Nsight Systems in SQLite: what is read, and what is refused.
#include "validate/profiles/nsight.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/made_nsight.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/packed.hpp"
#include "validate/profiles/read.hpp"
#include "validate/profiles/waiting.hpp"

namespace profile_nsight_test {

using namespace ringsim;
using namespace ringsim::profiles;
using test::MadeKernel;
using test::NsightFolder;
using test::NsightForm;

namespace {

constexpr std::uint32_t world = 4;

/// Ten steps of three collectives; rank 2 comes 300 us late to each all-reduce. A kernel of compute runs next to the
/// all-gathers.
std::vector<MadeKernel> kernels_of(std::uint32_t rank) {
  std::vector<MadeKernel> out;
  for (int step = 0; step < 10; ++step) {
    const double at = 1000.0 + 5000.0 * step, late = rank == 2 ? 300.0 : 7.0 * rank;
    out.push_back({.begin = at + late, .duration = 900.0 - late, .op = "allreduce", .elements = 1 << 20});
    out.push_back({.begin = at + 1500 + rank, .duration = 400.0 - rank, .op = "_allgather_base", .elements = 1 << 16});
    out.push_back({.begin = at + 1600, .duration = 100, .op = "", .stream = 7});
    out.push_back(
        {.begin = at + 2500 + rank, .duration = 200.0 - rank, .op = "_reduce_scatter_base", .elements = 1 << 18});
  }
  return out;
}

Profile job_by_kineto() {
  std::vector<std::pair<std::string, std::string>> files;
  for (std::uint32_t rank = 0; rank < world; ++rank)
    files.emplace_back(fmt::format("rank{}.json", rank), test::made_trace(rank, world, kernels_of(rank)));
  return test::read_texts(files);
}

void check_same(const Account& a, const Account& b) {
  CHECK(a.usable == b.usable);
  CHECK(a.matching.matched == b.matching.matched);
  CHECK(a.hosts.count == b.hosts.count);
  CHECK(a.spread_ns == b.spread_ns);
  REQUIRE(a.rows.size() == b.rows.size());
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    const Row &x = a.rows[i], &y = b.rows[i];
    CAPTURE(to_string(y.op));
    CHECK(x.op == y.op);
    CHECK(x.bytes == y.bytes);
    CHECK(x.group_size == y.group_size);
    CHECK(x.collectives == y.collectives);
    CHECK(x.kernels == y.kernels);
    CHECK(x.kernel_ns == y.kernel_ns);
    CHECK(x.split == y.split);
    CHECK(x.is_partial == y.is_partial);
    CHECK(x.wait_ns == y.wait_ns);
    CHECK(x.transfer_ns == y.transfer_ns);
    CHECK(x.late_rank() == y.late_rank());
    CHECK(x.overlap == y.overlap);
    CHECK(x.blocks == y.blocks);
    CHECK(x.threads == y.threads);
  }
  REQUIRE(a.ranks.size() == b.ranks.size());
  for (std::size_t i = 0; i < a.ranks.size(); ++i) {
    CHECK(a.ranks[i].rank == b.ranks[i].rank);
    CHECK(a.ranks[i].wait_ns == b.ranks[i].wait_ns);
    CHECK(a.ranks[i].exposed_ns == b.ranks[i].exposed_ns);
  }
}

Profile read_one(const std::string& path, std::optional<std::uint32_t> rank = std::nullopt, const Limits& limits = {}) {
  Profile profile;
  Pieces file(path, limits);
  read_profile(file, rank, profile);
  settle(profile, {});
  return profile;
}

/// A report of one rank with one kernel, whose launch at 92 us is on the thread `made_process(0) + 7`.
std::string with_one_kernel(const NsightFolder& folder, const std::string& name, const std::string& more_sql) {
  std::string path = folder / name;
  std::filesystem::remove(path);
  // "reduce" is none of the helper's calls: it makes kernel and launch without a range.
  test::add_nsight_rank(path, NsightForm::payloads_2026, 0, 2, {{.begin = 100, .duration = 50, .op = "other"}}, false);
  test::run_sql(path, more_sql);
  return path;
}

/// Ranges of the thread that launches, from us to us.
std::string range(double begin, double end, const std::string& name, const std::string& blob = "NULL",
                  const std::string& json = "NULL") {
  return fmt::format(
      "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, binaryData, jsonText) VALUES ({}, "
      "{}, 59, '{}', {}, {}, {});",
      std::llround(begin * 1000), std::llround(end * 1000), name, test::made_process(0) + 7, blob, json);
}

std::string sized(int schema, std::uint64_t bytes, std::uint32_t root = 0) {
  return test::blob_of(test::first_schema + schema,
                       test::hex_of(test::made_communicator, 8) + test::hex_of(bytes, 8) + test::hex_of(root, 8));
}

Call only_call(const NsightFolder& folder, const std::string& ranges) {
  const Profile profile = read_one(with_one_kernel(folder, "rank0.sqlite", ranges));
  REQUIRE(profile.calls.size() == 1);
  return profile.calls.front();
}

}  // namespace

TEST_CASE("one job by Kineto and by two versions of Nsight Systems has one table, with the late rank in it") {
  const Account expected = account_of(job_by_kineto(), 0);
  REQUIRE(expected.rows.size() == 3);
  CHECK(expected.matching.matched == 4 * 30);
  CHECK(expected.rows.front().late_rank() == 2U);
  for (const NsightForm form : {NsightForm::payloads_2026, NsightForm::texts_2021}) {
    for (const bool is_one_file : {false, true}) {
      CAPTURE(static_cast<int>(form));
      CAPTURE(is_one_file);
      const NsightFolder folder;
      ReadOptions options;
      std::vector<std::string> files;
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        const std::string path = folder / (is_one_file ? "job.sqlite" : fmt::format("rank_{}.sqlite", rank));
        test::add_nsight_rank(path, form, rank, world, kernels_of(rank));
        if (files.empty() || files.back() != path) files.push_back(path);
      }
      const Profile profile = read_profiles(files, options);
      CHECK(profile.warnings.empty());
      REQUIRE(profile.sources.size() == world);
      CHECK(profile.sources[1].format ==
            (form == NsightForm::payloads_2026 ? "Nsight Systems 2026.2.1.210" : "Nsight Systems"));
      CHECK(profile.sources[1].world == world);
      CHECK(profile.sources[1].kernels == 30);
      CHECK(profile.calls.front().size_from == SizeFrom::nvtx);
      CHECK(profile.calls.front().launch_ns == profile.calls.front().begin_ns - 8000);
      check_same(account_of(profile, 0), expected);
    }
  }
}

TEST_CASE("a call in a range of its own and in a group has its operation and size, root and communicator") {
  const NsightFolder folder;
  const Call broadcast = only_call(folder, range(90, 95, "ncclBroadcast", sized(6, 4096, 1)));
  CHECK(broadcast.op == CallOp::broadcast);
  CHECK(broadcast.bytes == 4096);
  CHECK(broadcast.root == 1);
  CHECK(broadcast.is_usable());
  CHECK(broadcast.begin_ns == 1790000000000000000 + 100'000);
  CHECK(broadcast.end_ns - broadcast.begin_ns == 50'000);
  CHECK(broadcast.blocks == 16);
  CHECK(broadcast.threads == 544);
  // NCCL gives one rank's share; without ncclCommInitRank the number of ranks is not known.
  const Call gather = only_call(folder, range(90, 95, "ncclAllGather", sized(4, 4096)));
  CHECK(gather.bytes == 4096);
  CHECK(gather.has(Call::is_share));
  // Two all-reduces of one group are launched together: their sizes add up.
  const std::string two = range(80, 81, "ncclGroupStart") + range(82, 83, "ncclAllReduce", sized(5, 100)) +
                          range(84, 85, "ncclAllReduce", sized(5, 28)) + range(90, 95, "ncclGroupEnd");
  CHECK(only_call(folder, two).bytes == 128);
  CHECK(only_call(folder, range(78, 79, "ncclGroupStart") + two + range(96, 97, "ncclGroupEnd")).lost !=
        Lost::nothing);  // the inner end launches nothing
  const Call mixed =
      only_call(folder, range(80, 81, "ncclGroupStart") + range(82, 83, "ncclAllReduce", sized(5, 100)) +
                            range(84, 85, "ncclAllGather", sized(4, 28)) + range(90, 95, "ncclGroupEnd"));
  CHECK(mixed.lost == Lost::coalesced);
  // A group that began before the profile.
  CHECK(only_call(folder, range(90, 95, "ncclGroupEnd")).lost == Lost::no_launch);
  // A range of another call, and one that ended before.
  CHECK(only_call(folder, range(90, 95, "ncclCommCount")).lost == Lost::no_range);
  CHECK(only_call(folder, range(80, 85, "ncclAllReduce", sized(5, 100))).lost == Lost::no_range);
  // A patched NCCL has two ranges for one call: the outer one as text.
  const Call twice = only_call(folder, range(88, 97,
                                             "ncclReduce(): commHash 0x1, stream 0x2, data_size 64, type_size 4, "
                                             "red_op 0, root 1, pid 3") +
                                           range(90, 95, "ncclReduce", sized(8, 64)));
  CHECK(twice.op == CallOp::reduce);
  CHECK(twice.bytes == 64);
  CHECK(twice.root == 1);
}

TEST_CASE("sends and receives within PyTorch's all_to_all are one, of the bytes that are sent") {
  const NsightFolder folder;
  const auto group = [](std::uint64_t first, std::uint64_t second) {
    return range(80, 81, "ncclGroupStart") + range(82, 82.5, "ncclSend", sized(9, first)) +
           range(83, 83.5, "ncclRecv", sized(10, 500)) + range(84, 84.5, "ncclSend", sized(9, second)) +
           range(85, 85.5, "ncclRecv", sized(10, 500)) + range(90, 95, "ncclGroupEnd");
  };
  const Call alone = only_call(folder, group(100, 100));
  CHECK(alone.lost == Lost::coalesced);
  const Call equal = only_call(folder, range(70, 99, "nccl:all_to_all, op_id = 991144") + group(100, 100));
  CHECK(equal.op == CallOp::all_to_all);
  CHECK(equal.bytes == 200);
  CHECK(!equal.has(Call::sizes_differ));
  CHECK(equal.is_usable());
  CHECK(only_call(folder, range(70, 99, "nccl:all_to_all, op_id = 991144") + group(100, 60)).has(Call::sizes_differ));
  // As real reports without --include-blobs have it.
  const Call unsized =
      only_call(folder, range(70, 99, "nccl:all_to_all, op_id = 991144") + range(80, 81, "ncclGroupStart") +
                            range(82, 82.5, "ncclSend") + range(83, 83.5, "ncclRecv") + range(90, 95, "ncclGroupEnd"));
  CHECK(unsized.op == CallOp::all_to_all);
  CHECK(unsized.lost == Lost::no_payload);
}

TEST_CASE("a call without a size says why, and what records it") {
  const NsightFolder folder;
  const auto warnings = [&](const std::string& sql) {
    return read_one(with_one_kernel(folder, "rank0.sqlite", sql)).warnings;
  };
  CHECK(only_call(folder, range(90, 95, "ncclAllReduce")).lost == Lost::no_payload);
  CHECK(warnings(range(90, 95, "ncclAllReduce")).at(0) ==
        (folder / "rank0.sqlite") +
            ": the NCCL ranges have no sizes; sizes require NCCL 2.19 or later and nsys export --type sqlite "
            "--include-blobs=true");
  CHECK(only_call(folder, "").lost == Lost::no_range);
  CHECK(warnings("").at(0).find("nsys profile --trace=cuda,nvtx") != std::string::npos);
  // PyTorch's ranges have shapes and no element type.
  CHECK(only_call(folder, range(90, 95, "nccl:all_reduce, op_id = 5")).lost == Lost::no_payload);
  const Call shaped = only_call(folder, range(90, 95, "nccl:all_reduce, sizes = [[25136]], op_id = 5"));
  CHECK(shaped.lost == Lost::unknown_type);
  CHECK(shaped.op == CallOp::all_reduce);
  CHECK(only_call(folder, "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME").lost == Lost::no_launch);
  CHECK(only_call(folder, "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME").lost == Lost::no_launch);
  CHECK(only_call(folder, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId = 7").lost == Lost::graph);
  CHECK(only_call(folder, "UPDATE StringIds SET value = 'cudaGraphLaunch_v10000' WHERE id = 3").lost == Lost::graph);
  // A payload as JSON has the same entries.
  const Call json = only_call(
      folder, range(90, 95, "ncclAllReduce", "NULL", R"('{"NCCL communicator ID": 7, "Message size [bytes]": 12}')"));
  CHECK(json.bytes == 12);
  // A payload that does not fit its schema, and one without a schema.
  CHECK(warnings(range(90, 95, "ncclAllReduce", "x'0102'")).at(0).find("1 NVTX payloads of NCCL are ignored") !=
        std::string::npos);
  CHECK(only_call(folder, range(90, 95, "ncclAllReduce", sized(77, 5))).lost == Lost::no_payload);
}

TEST_CASE("the header of a payload may have its end where others have its begin") {
  const NsightFolder folder;
  std::string blob = sized(5, 4096);
  blob = test::replaced(blob, test::hex_of(24, 8) + test::hex_of(32, 8), test::hex_of(24, 8) + test::hex_of(56, 8));
  CHECK(only_call(folder, range(90, 95, "ncclAllReduce", blob)).bytes == 4096);
}

TEST_CASE("ranks: as said, by the environment, by the file's name, by the largest communicator") {
  const NsightFolder folder;
  const auto rank_of = [&](const std::string& name, const std::string& sql,
                           std::optional<std::uint32_t> said = std::nullopt) {
    return read_one(with_one_kernel(folder, name, sql), said).sources.at(0).rank;
  };
  const std::string environment =
      "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'DeviceEnvironment', 610, 'HOME=/root;LOCAL_RANK=1;RANK=5;"
      "WORLD_SIZE=16;SLURM_PROCID=3');";
  const std::string init =
      range(1, 2, "ncclCommInitRank",
            test::blob_of(test::first_schema, test::hex_of(9, 8) + test::hex_of(8, 4) + test::hex_of(6, 4) +
                                                  test::hex_of(0, 4) + test::hex_of(0, 4))) +
      range(3, 4, "ncclCommInitRank",
            test::blob_of(test::first_schema, test::hex_of(10, 8) + test::hex_of(2, 4) + test::hex_of(1, 4) +
                                                  test::hex_of(0, 4) + test::hex_of(0, 4)));
  CHECK(rank_of("rank3.sqlite", environment, 9) == 9);
  CHECK(rank_of("rank3.sqlite", environment) == 5);
  CHECK(rank_of("rank3.sqlite", init) == 3);
  CHECK(rank_of("job.sqlite", init) == 6);
  CHECK(read_one(with_one_kernel(folder, "job.sqlite", environment)).sources.at(0).world == 16);
  CHECK(read_one(with_one_kernel(folder, "job.sqlite", init)).sources.at(0).world == 8);
  CHECK(read_one(with_one_kernel(folder, "job.sqlite", init)).sources.at(0).host == "node7");
  // Several GPUs: --rank is that of the first, and the others count on.
  const std::string several = folder / "several.sqlite";
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    test::add_nsight_rank(several, NsightForm::payloads_2026, rank, 3, kernels_of(rank), false);
  const Profile counted = read_one(several, 4);
  REQUIRE(counted.sources.size() == 3);
  CHECK(counted.sources[2].rank == 6);
  const std::string refused = test::complaint([&] { static_cast<void>(read_one(several)); });
  CHECK(refused.find("expected a range of ncclCommInitRank for each of 3 GPUs, found none for GPU 0") !=
        std::string::npos);
}

TEST_CASE("sessions that do not say when they began have clocks of their own") {
  const NsightFolder folder;
  std::vector<std::string> files;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    files.push_back(folder / fmt::format("rank{}.sqlite", rank));
    test::add_nsight_rank(files.back(), NsightForm::payloads_2026, rank, 2, kernels_of(rank));
    test::run_sql(files.back(), "DROP TABLE TARGET_INFO_SESSION_START_TIME");
  }
  CHECK(account_of(read_profiles(files, {}), 0).hosts.count == 2);
}

TEST_CASE("a damaged or hostile report is refused: where, what was expected, what was found, what to do") {
  const NsightFolder folder;
  test::MessagePage page("profiles_nsight");
  const std::string path = folder / "rank0.sqlite";
  const auto refuse = [&](const std::string& what, const Limits& limits = {}) {
    const std::string text = test::complaint([&] { static_cast<void>(read_one(path, std::nullopt, limits)); });
    std::string shown = text;
    for (std::size_t at = 0; (at = shown.find(path)) != std::string::npos;) shown.replace(at, path.size(), "t.sqlite");
    page.add(what, shown);
  };
  const auto refuse_sql = [&](const std::string& what, const std::string& sql, const Limits& limits = {}) {
    with_one_kernel(folder, "rank0.sqlite", range(90, 95, "ncclAllReduce", sized(5, 64)) + sql);
    refuse(what, limits);
  };
  const auto refuse_bytes = [&](const std::string& what, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    refuse(what);
  };
  const std::string view =
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO K; CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM K;";
  refuse_sql("a view in place of a table", view);
  refuse_sql("a view that never ends",
             "DROP TABLE NVTX_EVENTS; CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT "
             "start + 1 FROM n) SELECT * FROM n;");
  refuse_sql("a virtual table in place of a table",
             "DROP TABLE StringIds; CREATE VIRTUAL TABLE StringIds USING fts5(id, value);");
  refuse_sql("no kernels recorded", "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL");
  refuse_sql("no kernel of NCCL", "UPDATE StringIds SET value = 'gemm'");
  refuse_sql("text as a start", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'now'");
  refuse_sql("a blob as an end", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = x'00'");
  refuse_sql("a fraction as a start", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 1.5");
  refuse_sql("an end before its start", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 3");
  refuse_sql("a moment beyond 73 years", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 9000000000000000000");
  refuse_sql("no stream", "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId");
  refuse_sql("a schema with a name of 10 kB",
             "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = hex(zeroblob(5000)), sql "
             "= 'create nothing' WHERE name = 'StringIds';");
  refuse_sql("a value above the limit", "INSERT INTO StringIds VALUES (99, zeroblob(70000000))");
  Limits few;
  few.records = 1;
  std::string twenty;
  for (int i = 0; i < 20; ++i) twenty += range(200 + i, 200.5 + i, "ncclAllReduce");
  refuse_sql("ranges above the limit", twenty, few);
  refuse_sql("kernels above the limit",
             "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL;", few);
  const std::string name = folder / "job.sqlite";
  with_one_kernel(folder, "job.sqlite", "");
  const std::string whole = test::read_file(name);
  std::filesystem::copy_file(name, folder / "unnamed.sqlite");
  refuse_bytes("cut", whole.substr(0, whole.size() / 2));
  refuse_bytes("a header alone", whole.substr(0, 100));
  refuse_bytes("the first bytes of a database, then others", whole.substr(0, 16) + std::string(4096, 'x'));
  refuse_bytes("packed by gzip", test::packed(whole));
  refuse_bytes("a report that is not exported", "NVIDIA Tegra Profiler Report\n2026.2.1\n");
  const std::string unnamed = test::complaint([&] { static_cast<void>(read_one(folder / "unnamed.sqlite")); });
  page.add("no rank", test::replaced(test::replaced(unnamed, folder / "unnamed.sqlite", "t.sqlite"),
                                     folder / "unnamed.sqlite", "t.sqlite"));
  page.check();
}

TEST_CASE("launches and ranges that are not numbers are counted and left out") {
  const NsightFolder folder;
  const std::string ok = range(90, 95, "ncclAllReduce", sized(5, 64));
  const Profile launches = read_one(with_one_kernel(
      folder, "rank0.sqlite", ok + "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ('x', 1, 0, 1, 1, 1, 0, 0);"));
  CHECK(launches.calls.at(0).bytes == 64);
  CHECK(launches.warnings.at(0) ==
        (folder / "rank0.sqlite") +
            ": 1 CUDA calls are ignored because their columns do not contain the expected numbers");
  const Profile ranges = read_one(with_one_kernel(
      folder, "rank0.sqlite",
      ok +
          "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES ('x', 1, 59, 'ncclAllReduce', 1);"));
  CHECK(ranges.calls.at(0).bytes == 64);
  CHECK(ranges.warnings.at(0) ==
        (folder / "rank0.sqlite") + ": 1 NVTX events are ignored because their columns do not have the expected types");
  // Code in the schema is not run: generated columns are no columns here.
  const Profile generated =
      read_one(with_one_kernel(folder, "rank0.sqlite",
                               ok + "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN gridX TO old; ALTER TABLE "
                                    "CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN gridX INTEGER AS (streamId + 1);"));
  CHECK(generated.calls.at(0).blocks == 0);
}

TEST_CASE("a damaged report is read or refused, and nothing else") {
  const NsightFolder folder;
  const std::string path = folder / "rank0.sqlite";
  test::add_nsight_rank(path, NsightForm::payloads_2026, 0, 1, kernels_of(0));
  const std::string whole = test::read_file(path);
  std::mt19937 random(7);
  int refused = 0, read = 0;
  for (int i = 0; i < 300; ++i) {
    CAPTURE(i);
    std::string text = whole;
    // Pages of 4 KiB, most of them of rows: changes among the first bytes of pages hit the trees.
    for (int k = 0; k < 4; ++k)
      text[random() % 2 == 0 ? random() % text.size() : random() % (text.size() / 4096) * 4096 + random() % 16] =
          static_cast<char>(random() & 0xFF);
    std::ofstream(path, std::ios::binary) << (i % 10 == 0 ? text.substr(0, random() % text.size()) : text);
    try {
      static_cast<void>(read_one(path));
      ++read;
    } catch (const InputError&) {
      ++refused;
    }
  }
  CHECK(refused > 30);
  CHECK(read > 30);
}

}  // namespace profile_nsight_test
