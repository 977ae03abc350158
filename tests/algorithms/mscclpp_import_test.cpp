// Plans of MSCCL++ in: one-sided operations become messages with two ends, signals become waits.
#include "algorithms/formats/mscclpp_import.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/formats/json_schedule.hpp"
#include "algorithms/formats/schedule_file.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/tiny.hpp"

namespace mscclpp_import_test {

using namespace ringsim;
using namespace ringsim::literals;
using test::replaced;

namespace {

std::string sample(const std::string& name) {
  return test::read_file(std::filesystem::path(test::source_dir()) / "tests/data/mscclpp" / (name + ".json"));
}

CheckedSchedule proved(const std::string& text, Bytes bytes) {
  return check(schedule_of(std::make_shared<StoredSchedule>(import_mscclpp(text, "plan.json")), bytes));
}

/// What is said against a plan, by its reader or by the proof.
std::string against(const std::string& text) {
  try {
    proved(text, 4096_B);
    return "proved";
  } catch (const InputError& error) {
    return error.what();
  }
}

const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1'000'000_ps};  // a path of a star has two: 2 us

}  // namespace

TEST_CASE("plans with reads, puts, packets, ports, semaphores, barriers and groups of thread blocks are proved") {
  for (const char* name : {"read-and-put-2", "packets-2", "ports-and-barriers-2"}) {
    CAPTURE(name);
    CHECK(is_schedule(sample(name)));
    CHECK(against(sample(name)) == "proved");
    // As above, through the reader that a scenario's "file" uses, and through ringsim's own format.
    const StoredSchedule stored = read_schedule(sample(name), "plan.json");
    CHECK(same_schedule(import_json(export_json(stored), "again.json"), stored));
  }
  CHECK(import_mscclpp(sample("packets-2"), "p").max_bytes == 65536);
}

TEST_CASE("what a thread block does to another GPU's memory has a lane there") {
  const StoredSchedule stored = import_mscclpp(sample("read-and-put-2"), "p");
  REQUIRE(stored.lanes == 3);  // the thread block; what the other one reads; what it writes
  const auto& own = stored.lane(0, 0);
  REQUIRE(own.size() == 2);
  CHECK(own[0].ops[0].what == Do::receive_add);
  CHECK(own[1].ops[0].what == Do::send);
  CHECK(own[1].ops[0].region == chunk(0));
  REQUIRE(stored.lane(0, 1).size() == 1);
  CHECK(stored.lane(0, 1)[0].ops[0].what == Do::send);
  CHECK(stored.lane(0, 1)[0].ops[0].region == chunk(1));
  // The other puts its sum after it has read: the same thread block does both.
  const Step& written = stored.lane(0, 2)[0];
  CHECK(written.ops[0].what == Do::receive);
  REQUIRE(written.waits.size() == 1);
  CHECK(written.waits[0].lane == 1);
  CHECK(written.waits[0].steps == 1);
}

TEST_CASE("a read and a put of half the message each take two latencies and the whole message's time") {
  // Both GPUs read at once, 2 MB at 10 GB/s: 200 us and 2 us; then both put.
  const CheckedSchedule schedule = proved(sample("read-and-put-2"), Bytes{4'000'000});
  CHECK(run(star(2, cable), schedule).duration() == 2 * (2'000'000_ps + 200'000'000_ps));
}

TEST_CASE("a port channel's puts leave together, memory channels' one after the other") {
  // Three sends of 1 MB to three GPUs through one port of 10 GB/s take 300 us in both cases, and 2 us once or thrice.
  const auto plan = [](const std::string& type) {
    std::string gpus;
    for (int rank = 0; rank < 4; ++rank) {
      std::string peers, buffers, from, to;
      for (int peer = 0; peer < 4; ++peer) {
        if (peer == rank) continue;
        const std::string comma = peers.empty() ? "" : ", ";
        peers += comma + std::to_string(peer);
        buffers += comma + R"({"rank": )" + std::to_string(peer) + R"(, "type": "o", "access_channel_types": [")" +
                   type + R"("]})";
        const std::string at = R"("index": )" + std::to_string(rank) + R"(, "size": 1})";
        to += comma + R"({"buffer_id": )" + std::to_string(peer - (peer > rank ? 1 : 0)) + ", " + at;
        from += comma + R"({"type": "o", )" + at;
      }
      const std::string with = R"(, "channel_type": ")" + type + R"(", "channel_ids": [0, 1, 2])";
      gpus += (rank == 0 ? "" : ", ") + (R"({"id": )" + std::to_string(rank)) +
              R"(, "input_chunks": 1, "output_chunks": 4, "scratch_chunks": 0, "channels": [{"channel_type": ")" +
              type + R"(", "connected_to": [)" + peers + R"(]}], "remote_buffers": [)" + buffers +
              R"(], "threadblocks": [{"id": 0, "channels": [{"channel_type": ")" + type +
              R"(", "channel_ids": [0, 1, 2]}], "remote_buffer_refs": [{"access_channel_type": ")" + type +
              R"(", "remote_buffer_ids": [0, 1, 2]}], "ops": [{"name": "put", "src_buff": [)" + from +
              R"(], "dst_buff": [)" + to + "]" + with + R"(}, {"name": "signal")" + with + R"(}, {"name": "wait")" +
              with + "}]}]}";
    }
    return R"({"name": "all", "collective": "allgather", "protocol": "Simple", "inplace": true, "gpus": [)" + gpus +
           "]}";
  };
  const Bytes bytes{4'000'000};
  CHECK(run(star(4, cable), proved(plan("port"), bytes)).duration() == 302'000'000_ps);
  CHECK(run(star(4, cable), proved(plan("memory"), bytes)).duration() > 302'000'000_ps);
}

// A plan says for which sizes it is meant; other sizes are timed, with a warning.
TEST_CASE("the sizes for which a plan is meant are read, kept when it is written, and looked at") {
  const std::string plan = replaced(sample("packets-2"), R"("max_message_size": 65536)",
                                    R"("min_message_size": 4096, "max_message_size": 65536)");
  const StoredSchedule stored = read_schedule(plan, "plan.json");
  CHECK(stored.min_bytes == 4096);
  CHECK(stored.max_bytes == 65536);
  CHECK(outside_of_range(stored, 4096_B) == "");
  CHECK(outside_of_range(stored, 65536_B) == "");
  for (const Bytes bytes : {4095_B, 65537_B}) {
    CAPTURE(bytes.count);
    CHECK(outside_of_range(stored, bytes) ==
          fmt::format("{} is intended for 4096 to 65536 B; it is timed for {} B anyway", stored.name, bytes.count));
  }
  StoredSchedule made = store(ring_all_reduce(4, 4096_B));
  CHECK(import_mscclpp(export_mscclpp(made), "again.json").min_bytes == 0);
  made.min_bytes = 1024;
  made.max_bytes = 1 << 20;
  const StoredSchedule again = import_mscclpp(export_mscclpp(made), "again.json");
  CHECK(again.min_bytes == 1024);
  CHECK(again.max_bytes == 1 << 20);
}

TEST_CASE("what no signal orders is a race") {
  // Without the first signal and wait, rank 1 reads what rank 0 may not have: that is free here, as all inputs are
  // there. Without the last ones nothing is wrong either: the run's end orders them. But a copy that does not wait is
  // wrong.
  CHECK(against(replaced(sample("ports-and-barriers-2"), R"({"name": "sem_acquire", "semaphore_ids": [0]},)", ""))
            .find("both access scratch[0], at least one of them writes, and nothing orders them") != std::string::npos);
  CHECK(against(replaced(sample("ports-and-barriers-2"), R"("ops": [
          {"name": "copy", "src_buff": [{"type": "i", "index": 0, "size": 1}],
           "dst_buff": [{"type": "o", "index": 1, "size": 1}]},
          {"name": "barrier", "barrier_id": 3, "num_threadblocks": 2},)",
                         R"("ops": [
          {"name": "barrier", "barrier_id": 3, "num_threadblocks": 2},
          {"name": "copy", "src_buff": [{"type": "i", "index": 0, "size": 1}],
           "dst_buff": [{"type": "o", "index": 1, "size": 1}]},)")) == "proved");
}

TEST_CASE("a plan that sums twice is read, and refused by the proof") {
  const std::string twice =
      replaced(sample("read-and-put-2"), R"([{"type": "i", "index": 1, "size": 1}, {"buffer_id": 0,)",
               R"([{"type": "i", "index": 1, "size": 1}, {"buffer_id": 0, "index": 1, "size": 1}, {"buffer_id": 0,)");
  CHECK(against(twice).find("rank 0") != std::string::npos);
  CHECK(against(twice) != "proved");
}

TEST_CASE("mistakes of a plan are named at their place") {
  struct Mistake {
    const char *file, *what, *with, *message;
  };
  const std::vector<Mistake> mistakes{
      {"read-and-put-2", R"("collective": "allreduce")", R"("collective": "broadcast")",
       "plan.json: /collective: expected allreduce, allgather, reducescatter, alltoall or sendrecv, found "
       "\"broadcast\"\n  hint: the file does not define the result of other collectives, so they cannot be proved"},
      {"read-and-put-2", R"("inplace": true)", R"("inplace": 1)",
       "plan.json: /inplace: expected true or false, found 1"},
      {"read-and-put-2", R"("input_chunks": 2)", R"("input_chunks": 99999999999)",
       "plan.json: /gpus/0/input_chunks: expected a whole number from 0 to 1048576, found 99999999999"},
      {"read-and-put-2", R"("input_chunks": 2)", R"("input_chunks": 3)",
       "plan.json: /gpus/0: expected the input_chunks and output_chunks of all_reduce on 2 gpus, found 3 and 2"},
      {"packets-2", R"("max_message_size": 65536)", R"("min_message_size": 9, "max_message_size": 8)",
       "plan.json: /min_message_size: expected at most max_message_size, 8, found 9"},
      {"read-and-put-2", R"("name": "rres")", R"("name": "rrres")",
       "plan.json: /gpus/0/threadblocks/0/ops/3/name: expected the name of an operation, found \"rrres\"\n"
       "  hint: did you mean \"rres\"?"},
      {"read-and-put-2", R"({"name": "signal", "channel_ids": [0])", R"({"name": "signal", "channel_ids": [1])",
       "plan.json: /gpus/0/threadblocks/0/ops/0/channel_ids/0: expected a whole number from 0 to 0, found 1"},
      {"read-and-put-2", R"("channels": [{"channel_type": "memory", "channel_ids": [0]}])", R"("channels": [])",
       "plan.json: /gpus/0/threadblocks/0/ops/0/channel_ids/0: expected a number of a channel of the thread block, but "
       "none is declared"},
      {"read-and-put-2", R"("connected_to": [1])", R"("connected_to": [0])",
       "plan.json: /gpus/0/channels/0/connected_to/0: expected another gpu as the peer of gpu 0, found itself"},
      {"read-and-put-2", R"("connected_to": [1])", R"("connected_to": [7])",
       "plan.json: /gpus/0/channels/0/connected_to/0: expected a whole number from 0 to 1, found 7"},
      {"read-and-put-2", R"("channel_type": "memory", "connected_to")", R"("channel_type": "switch", "connected_to")",
       "plan.json: /gpus/0/channels/0/channel_type: expected memory or port, found switch\n  hint: additions and "
       "multicasts in switches are not supported in files; to time them, use ringsim's algorithm in_switch"},
      {"read-and-put-2", R"("name": "nop")", R"("name": "pipeline")",
       "plan.json: /gpus/0/threadblocks/0/ops/2/name: expected another operation, found a pipeline\n  hint: its number "
       "of rounds depends on the message size, but a schedule has the same steps for all sizes"},
      {"read-and-put-2", R"("index": 0, "size": 1}, {"buffer_id": 0)", R"("index": 2, "size": 1}, {"buffer_id": 0)",
       "plan.json: /gpus/0/threadblocks/0/ops/3/src_buff/0: expected chunks within buffer i of 2, found 1 starting at "
       "2"},
      {"read-and-put-2", R"("reduce_op": "sum")", R"("reduce_op": "max")",
       "plan.json: /gpus/0/threadblocks/0/ops/3/reduce_op: expected sum, found \"max\""},
      {"packets-2", R"("dst_buff": [{"buffer_id": 0, "index": 0, "size": 2}])",
       R"("dst_buff": [{"type": "s", "index": 0, "size": 2}])",
       "plan.json: /gpus/0/threadblocks/0/ops/0: expected ppkt to have as many sources of its own gpu as targets of "
       "others"},
      {"ports-and-barriers-2", R"("num_threadblocks": 2)", R"("num_threadblocks": 3)",
       "plan.json: /gpus/1/threadblocks/0/ops/4: expected barrier 3 to be in 3 thread blocks, found it in 2"},
      {"ports-and-barriers-2", R"("semaphore_ids": [0])", R"("semaphore_ids": [4])",
       "plan.json: /gpus/0/threadblocks/0/ops/2/semaphore_ids/0: expected a whole number from 0 to 0, found 4"},
  };
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.with);
    CHECK(against(replaced(sample(mistake.file), mistake.what, mistake.with)) == mistake.message);
  }
}

TEST_CASE("a plan that waits for what never comes is refused, and so is one whose order is not decided") {
  // No signal from rank 0: rank 1 waits for it.
  CHECK(against(replaced(sample("read-and-put-2"),
                         R"({"name": "signal", "channel_ids": [0], "channel_type": "memory"},)", "")) ==
        "plan.json: /gpus/1/threadblocks/0/ops/8: gpu 1, thread block 0 waits for a signal of gpu 0 on its channel 0 "
        "to gpu 1, which never comes\n  hint: no other thread block can continue either, or none has a matching "
        "operation left");
  // Each waits first: a circle.
  std::string circle = sample("read-and-put-2");
  for (int rank = 0; rank < 2; ++rank)
    circle = replaced(circle, R"({"name": "signal", "channel_ids": [0], "channel_type": "memory"},
          {"name": "wait", "channel_ids": [0], "channel_type": "memory"},)",
                      R"({"name": "wait", "channel_ids": [0], "channel_type": "memory"},
          {"name":  "signal", "channel_ids": [0], "channel_type": "memory"},)");
  CHECK(
      against(circle).starts_with("plan.json: /gpus/0/threadblocks/0/ops/0: gpu 0, thread block 0 waits for a signal"));
  CHECK(against(replaced(sample("packets-2"), R"({"name": "ppkt")",
                         R"({"name": "cpkt", "src_buff": [{"type": "i", "index": 0, "size": 1}],
           "dst_buff": [{"type": "s", "index": 0, "size": 1}]},
          {"name": "ppkt")"))
            .find("expected each packet to be written only once, found chunk 0 of the scratch of gpu 0 again") !=
        std::string::npos);
  CHECK(against(replaced(sample("ports-and-barriers-2"), R"({"name": "sem_acquire", "semaphore_ids": [0]},)",
                         R"({"name": "sem_release", "semaphore_ids": [0]},
          {"name": "sem_acquire", "semaphore_ids": [0]},)"))
            .find("expected one thread block in which this channel or semaphore is counted up, found 1 and 0") !=
        std::string::npos);
}

TEST_CASE("a signal that nobody waits for is warned of") {
  const std::string more = replaced(sample("read-and-put-2"), R"({"name": "nop"},)",
                                    R"({"name": "signal", "channel_ids": [0], "channel_type": "memory"},)");
  const StoredSchedule stored = import_mscclpp(more, "plan.json");
  REQUIRE(stored.warnings.size() == 1);
  CHECK(stored.warnings[0] ==
        "plan.json: on 1 channel, no rank waits for a signal, which would remain for the next run of the plan");
}

TEST_CASE("a damaged plan is read or refused, in words") {
  std::mt19937 random(20);  // any: 3000 accidents
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    CAPTURE(i);
    const char* names[] = {"read-and-put-2", "packets-2", "ports-and-barriers-2"};
    const std::string said = against(test::damaged(sample(names[i % 3]), random));
    CHECK_FALSE(said.empty());
    refused += said == "proved" ? 0 : 1;
  }
  CHECK(refused > 1000);
}

}  // namespace mscclpp_import_test
