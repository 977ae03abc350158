// Plans of MSCCL++ out: each is held to the format's documentation, proved when read again, and moves the same data.
#include "algorithms/formats/mscclpp_export.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/composed/buffers.hpp"
#include "algorithms/formats/mscclpp_import.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/schedule/collective.hpp"
#include "sim/text/json.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/written_schedule.hpp"

namespace mscclpp_export_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

/// Holds a plan to what MSCCL++ documents and its loader reads, without a line of our reader: keys and their types,
/// numbers that are declared, limits of the executor, signals that are waited for, semaphores that end where they
/// began.
class Documented {
 public:
  explicit Documented(const std::string& text) : plan_(parse_json(text, "plan")) {
    for (const char* key : {"name", "collective", "protocol"}) CHECK(plan_.at(key).is_string());
    CHECK(plan_.at("inplace").is_boolean());
    const std::set<std::string> names{"allreduce", "allgather", "reducescatter", "alltoall", "sendrecv"};
    CHECK(names.count(plan_.at("collective").get<std::string>()) == 1);
    CHECK(plan_.at("protocol") == "Simple");
    CHECK(plan_.at("buffer_alignment") == 16);
    int id = 0;
    for (const Json& gpu : plan_.at("gpus")) check_gpu(gpu, id++);
    // The channels between two GPUs pair up in their order: each has as many to the other.
    for (const auto& [pair, n] : between_) CHECK(between_[{pair.second, pair.first}] == n);
    for (const auto& [channel, n] : signals_) CHECK(waits_[channel] == n);
    for (const auto& [channel, n] : waits_) CHECK(signals_[channel] == n);
  }
  int blocks = 0, longest = 0;

 private:
  void check_gpu(const Json& gpu, int id) {
    CHECK(gpu.at("id") == id);
    const std::map<std::string, int> chunks{
        {"i", gpu.at("input_chunks")}, {"o", gpu.at("output_chunks")}, {"s", gpu.at("scratch_chunks")}};
    CHECK(chunks.at("i") > 0);  // the loader divides by both
    CHECK(chunks.at("o") > 0);
    std::vector<std::pair<int, int>> channels;  // [id] peer, number among those to it
    for (const Json& channel : gpu.at("channels")) {
      CHECK(channel.at("channel_type") == "memory");
      for (const int peer : channel.at("connected_to")) channels.emplace_back(peer, between_[{id, peer}]++);
    }
    for (const Json& buffer : gpu.at("remote_buffers")) {
      CHECK(buffer.at("rank") != id);
      CHECK(chunks.count(buffer.at("type").get<std::string>()) == 1);
      CHECK(buffer.at("access_channel_types") == Json::array({"memory"}));
    }
    std::vector<int> semaphores;
    for (const Json& semaphore : gpu.at("semaphores")) semaphores.push_back(semaphore.at("init_value").get<int>());
    std::map<int, std::map<int, int>> rounds;  // barrier -> thread block -> times
    std::map<int, int> meeting;
    int number = 0;
    for (const Json& block : gpu.at("threadblocks")) {
      CHECK(block.at("id") == number);
      ++blocks;
      std::vector<int> own, buffers;
      for (const Json& channel : block.at("channels"))
        for (const int each : channel.at("channel_ids")) own.push_back(each);
      for (const Json& buffer : block.at("remote_buffer_refs"))
        for (const int each : buffer.at("remote_buffer_ids")) buffers.push_back(each);
      CHECK(own.size() <= 16);
      CHECK(buffers.size() <= 16);
      for (const int each : own) CHECK(each < static_cast<int>(channels.size()));
      for (const int each : buffers) CHECK(each < static_cast<int>(gpu.at("remote_buffers").size()));
      CHECK(block.at("ops").size() <= 64);
      longest = std::max(longest, static_cast<int>(block.at("ops").size()));
      bool moved = false, waited = false;  // since the last nop: by all threads, by one
      for (const Json& op : block.at("ops")) {
        const std::string name = op.at("name");
        if (name == "signal" || name == "wait") {
          if (name == "signal") CHECK(!moved);
          for (const int each : op.at("channel_ids")) {
            const auto [peer, k] = channels.at(static_cast<std::size_t>(own.at(static_cast<std::size_t>(each))));
            ++(name == "signal" ? signals_[{{id, peer}, k}] : waits_[{{peer, id}, k}]);
          }
        } else if (name == "sem_acquire" || name == "sem_release") {
          if (name == "sem_release") CHECK(!moved);
          CHECK(op.at("semaphore_ids").size() <= 16);
          for (const int each : op.at("semaphore_ids"))
            semaphores.at(static_cast<std::size_t>(each)) += name == "sem_release" ? 1 : -1;
        } else if (name == "barrier") {
          const int barrier = op.at("barrier_id");
          CHECK(barrier < 16);
          ++rounds[barrier][number];
          meeting[barrier] = op.at("num_threadblocks");
        } else if (name != "nop") {
          check_move(op, name, chunks, buffers.size());
          CHECK(!moved);
          CHECK(!waited);
        }
        const bool one_thread = name == "signal" || name == "wait" || name.starts_with("sem");
        const bool in_step = name == "nop" || name == "barrier";
        moved = !in_step && (moved || !one_thread);
        waited = !in_step && (waited || name == "wait" || name == "sem_acquire");
      }
      ++number;
    }
    for (const int left : semaphores) CHECK(left == 0);
    for (const auto& [barrier, blocks_of] : rounds) {
      CHECK(static_cast<int>(blocks_of.size()) == meeting[barrier]);
      for (const auto& [block, times] : blocks_of) CHECK(times == blocks_of.begin()->second);
    }
  }

  static void check_move(const Json& op, const std::string& name, const std::map<std::string, int>& chunks,
                         std::size_t n_buffers_of_block) {
    const std::map<std::string, std::pair<std::size_t, std::size_t>> ends{
        {"put", {1, 1}}, {"rre", {2, 1}}, {"copy", {1, 1}}, {"re", {2, 1}}};
    REQUIRE(ends.count(name) == 1);
    CHECK(op.at("src_buff").size() == ends.at(name).first);
    CHECK(op.at("dst_buff").size() == ends.at(name).second);
    if (name == "put" || name == "rre") CHECK(op.at("channel_type") == "memory");
    if (name == "re" || name == "rre") CHECK(op.at("reduce_op") == "sum");
    std::set<int> sizes;
    for (const char* side : {"src_buff", "dst_buff"})
      for (const Json& end : op.at(side)) {
        sizes.insert(end.at("size").get<int>());
        if (end.contains("type"))
          CHECK(end.at("index").get<int>() + end.at("size").get<int>() <= chunks.at(end.at("type").get<std::string>()));
        else
          CHECK(end.at("buffer_id").get<std::size_t>() < n_buffers_of_block);
      }
    CHECK(sizes.size() == 1);
  }

  using Channel = std::pair<std::pair<int, int>, int>;
  Json plan_;
  std::map<std::pair<int, int>, int> between_;
  std::map<Channel, int> signals_, waits_;
};

bool has_name(const Schedule& s) {
  const CollectiveOp op = s.collective.op;
  return s.actors == s.collective.ranks && (op == CollectiveOp::all_reduce || op == CollectiveOp::all_gather ||
                                            op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_to_all);
}

CheckedSchedule read_again(const std::string& plan, Bytes bytes) {
  return check(schedule_of(std::make_shared<StoredSchedule>(import_mscclpp(plan, "plan")), bytes));
}

/// From whom to whom how many bytes go.
std::map<std::pair<Actor, Actor>, std::int64_t> traffic(const Schedule& schedule) {
  std::map<std::pair<Actor, Actor>, std::int64_t> out;
  for (Actor actor = 0; actor < schedule.actors; ++actor)
    for (Lane lane = 0; lane < schedule.lanes; ++lane)
      for (int i = 0; i < schedule.n_steps(actor, lane); ++i) {
        Step step;
        schedule.step(actor, lane, i, step);
        for (const Op& op : step.ops)
          if (op.what == Do::send)
            out[{actor, op.peer}] += schedule.layout[static_cast<std::size_t>(op.region.buffer)]
                                         .size(op.region.first, op.region.count)
                                         .count;
      }
  return out;
}

std::string refusal(const Schedule& schedule) {
  try {
    export_mscclpp(store(schedule));
    return "written";
  } catch (const InputError& error) {
    return error.what();
  }
}

const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1'000'000_ps};

Picoseconds on_star(const CheckedSchedule& schedule) {
  return run(star(schedule.schedule().collective.ranks, cable), schedule).duration();
}

}  // namespace

TEST_CASE("what the catalog makes is written as documented, proved when read again, and moves the same bytes") {
  int written = 0;
  for (int ranks = 2; ranks <= 6; ++ranks) {
    for (const Schedule& plain :
         every_algorithm(ranks, Bytes{10080})) {  // divided by every number of chunks that can come
      if (!has_name(plain)) continue;
      for (const bool elsewhere : {false, true}) {
        if (elsewhere && (ranks > 4 || plain.collective.op == CollectiveOp::all_to_all)) continue;
        const Schedule schedule = elsewhere ? out_of_place(plain) : plain;
        CAPTURE(schedule.algorithm);
        CAPTURE(ranks);
        CAPTURE(elsewhere);
        const std::string plan = export_mscclpp(store(schedule));
        const Documented documented(plan);
        const CheckedSchedule again = read_again(plan, Bytes{10080});
        CHECK(again.proof().slots_needed == 0);
        CHECK(traffic(again.schedule()) == traffic(schedule));
        ++written;
      }
    }
  }
  CHECK(written >= 400);
}

TEST_CASE("read again a plan takes the same time where a GPU adds to a chunk from one other at a time") {
  for (const int n : {2, 3, 4, 8})
    for (const Schedule& schedule :
         {ring_all_reduce(n, 1_MiB), ring_all_gather(n, 1_MiB), halving_doubling(n, 1_MiB, Fold::rabenseifner)}) {
      CAPTURE(n);
      CAPTURE(schedule.algorithm);
      CHECK(on_star(read_again(export_mscclpp(store(schedule)), 1_MiB)) == on_star(check(schedule)));
    }
}

TEST_CASE("additions to one chunk from all at once are one after the other, each rank with another peer at a time") {
  // Direct all-reduce of 8 ranks: reads and adds of 7 blocks, then 7 puts at once. On a star a path is 2 us, and a port
  // moves 7/8 of the message in either half, shared or one after the other: six latencies more.
  const Schedule schedule = two_shot_all_reduce(8, Bytes{8'000'000});
  const Picoseconds at_once = on_star(check(schedule));
  CHECK(on_star(read_again(export_mscclpp(store(schedule)), Bytes{8'000'000})) == at_once + 6 * 2'000'000_ps);
}

TEST_CASE("a lane of more operations than a thread block holds goes on in the next one") {
  // 2 (n - 1) steps of a ring in 7 or so operations each: two thread blocks of 8 ranks, which hold 64.
  const Documented small(export_mscclpp(store(ring_all_reduce(4, 4096_B)))),
      large(export_mscclpp(store(ring_all_reduce(8, 4096_B))));
  CHECK(small.blocks == 4);
  CHECK(large.blocks == 16);
  CHECK(large.longest > 48);
}

TEST_CASE("what a plan cannot hold is refused by its name") {
  CHECK(refusal(sharded_parameter_server(4, 64_B, 2)) ==
        "an MSCCL++ plan cannot represent parameter_server: it has 2 helpers, but the format supports only gpus that "
        "are ranks");
  CHECK(refusal(ring_broadcast(4, 64_B, 0, 4)) ==
        "an MSCCL++ plan cannot represent ring: the format has no name for broadcast or does not state its root\n  "
        "hint: --to json supports every collective");
  CHECK(refusal(ring_all_reduce(64, 64_KiB)) == "written");
  // 4 steps of a ring of 3, each 217 times: 868, of which a thread block holds 8. With 216 slices 108 blocks do.
  CHECK(refusal(in_pieces(ring_all_reduce(3, 1_MiB), {.slices = 216})) == "written");
  CHECK(refusal(in_pieces(ring_all_reduce(3, 1_MiB), {.slices = 217}))
            .find("needs 109 thread blocks, but only 108 fit on an A100 at the same time") != std::string::npos);
  // Both send before they receive: with memory channels each would wait for the other.
  WrittenSchedule ahead(ring_all_gather(2, 8_B));
  for (auto& lanes : ahead.steps) {
    REQUIRE(lanes[0].size() == 1);
    Step receive = lanes[0][0];
    lanes[0][0].ops.pop_back();
    receive.ops.erase(receive.ops.begin());
    lanes[0].push_back(receive);
  }
  CHECK(check(ahead.schedule()).proof().slots_needed == 1);
  CHECK(refusal(ahead.schedule()).find("waits for a signal of gpu") != std::string::npos);
  // Two lanes add to one chunk, and nothing orders them.
  WrittenSchedule t(all_reduce(3, 12_B), 3, 2, 1);
  t.step(0, 0).receive_add(1, chunk(0));
  t.step(0, 1).receive_add(2, chunk(0));
  Step& back = t.step(0, 0);
  back.send(1, chunk(0));
  back.send(2, chunk(0));
  back.wait(1, 1);
  for (const Actor r : {1, 2}) {
    t.step(r).send(0, chunk(0));
    t.step(r).receive(0, chunk(0));
  }
  CHECK(refusal(t.schedule())
            .starts_with("an MSCCL++ plan cannot represent by hand: additions to the same chunk are unordered, and "
                         "they are not atomic: rank 0, lane 0, step 0"));
}

}  // namespace mscclpp_export_test
