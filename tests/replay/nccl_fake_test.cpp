// The fake NCCL refuses what the real one would hang or crash on: else tests by it would prove little.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/support/fakes/fake_nccl.hpp"

namespace nccl_fake_test {

using namespace ringsim;
using namespace ringsim::replay::gpu;
using ringsim::replay::gpu::Result;  // not ringsim::Result
using ringsim::test::FakeDevice;
using ringsim::test::FakeNccl;

namespace {

constexpr Member members[] = {{0, 0}, {1, 1}};

/// Two GPUs with an end of one communicator each.
struct Pair {
  FakeDevice device{{.gpus = 2}};
  FakeNccl nccl{device};
  MeetingPoint where{};
  std::vector<End> ends;
  std::array<replay::gpu::Stream, 2> stream{};
  std::array<Memory, 2> memory;

  Pair() {
    good(nccl.make_meeting_point(where));
    good(nccl.join(2, members, where, ends));
    settle();
    for (const int gpu : {0, 1}) {
      const auto i = static_cast<std::size_t>(gpu);
      good(device.make_stream(gpu, stream[i]));
      good(device.allocate(gpu, 4, memory[i]));
    }
  }
  static void good(const Result& result) {
    CAPTURE(result.said);
    REQUIRE(result.good());
  }
  static std::string refused(const Result& result) { return result.fault == Fault::misuse ? result.said : ""; }
  void settle() {
    for (bool done = false; !done;) good(nccl.query(done));
  }
  Result send() { return nccl.send(ends[0], stream[0], memory[0], 1); }
  Result receive(std::int64_t count = 4) {
    return nccl.receive(ends[1], stream[1], {memory[1].place, memory[1].data, count}, 0);
  }
  void connect() {
    good(nccl.begin_group());
    good(send());
    good(receive());
    good(nccl.end_group());
    settle();
  }
};

}  // namespace

TEST_CASE("the fake NCCL refuses calls at the wrong time") {
  Pair pair;
  CHECK(Pair::refused(pair.send()) == "a call outside a group");
  CHECK(Pair::refused(pair.nccl.end_group()) == "the end of no group");
  Pair::good(pair.nccl.begin_group());
  CHECK(Pair::refused(pair.nccl.begin_group()) == "a group while something else is under way");
  Pair::good(pair.send());
  Pair::good(pair.receive());
  Pair::good(pair.nccl.end_group());
  CHECK(Pair::refused(pair.nccl.begin_group()) == "a group while something else is under way");  // it is not done yet
  pair.settle();
  Pair::good(pair.nccl.begin_group());
  pair.nccl.abort();
  CHECK(Pair::refused(pair.send()) == "a call after all was given up");
}

TEST_CASE("the fake NCCL refuses ranks, GPUs, streams and memory that are others'") {
  Pair pair;
  std::vector<End> ends;
  MeetingPoint where{};
  CHECK(Pair::refused(pair.nccl.join(2, members, where, ends)) == "a meeting point that nobody made");
  Pair::good(pair.nccl.make_meeting_point(where));
  CHECK(Pair::refused(pair.nccl.join(2, std::array{Member{0, 1}, Member{1, 1}}, where, ends)) ==
        "two ranks on one GPU, or on none");
  Pair::good(pair.nccl.make_meeting_point(where));
  CHECK(Pair::refused(pair.nccl.join(2, std::array{Member{2, 0}}, where, ends)) ==
        "a rank that joins twice, or is none");
  Pair::good(pair.nccl.begin_group());
  const auto send = [&](replay::gpu::Stream stream, Memory memory, int to) {
    return Pair::refused(pair.nccl.send(pair.ends[0], stream, memory, to));
  };
  CHECK(send(pair.stream[1], pair.memory[0], 1) == "a stream of another GPU");
  CHECK(send(pair.stream[0], pair.memory[1], 1) == "memory that is not there");
  CHECK(send(pair.stream[0], {0, nullptr, 0}, 1) == "memory that is not there");
  CHECK(send(pair.stream[0], pair.memory[0], 2) == "no such rank");
  CHECK(send(pair.stream[0], pair.memory[0], 0) == "a message to oneself");
  Pair::good(pair.send());
  replay::gpu::Stream other{};
  Pair::good(pair.device.make_stream(0, other));
  CHECK(send(other, pair.memory[0], 1) == "one end on two streams of a group");
}

TEST_CASE("the fake NCCL refuses a first use without its other end, or in a capture, and messages of two lengths") {
  {
    Pair pair;
    Pair::good(pair.nccl.begin_group());
    Pair::good(pair.send());
    CHECK(Pair::refused(pair.nccl.end_group()) == "a first use in a group without its other end");
  }
  {
    Pair pair;
    Pair::good(pair.device.begin_capture(pair.stream[0]));
    Pair::good(pair.nccl.begin_group());
    Pair::good(pair.send());
    Pair::good(pair.receive());
    CHECK(Pair::refused(pair.nccl.end_group()) == "a first use within a capture");
  }
  Pair pair;
  pair.connect();
  Pair::good(pair.nccl.begin_group());  // each for itself, now that they know each other
  Pair::good(pair.send());
  Pair::good(pair.nccl.end_group());
  pair.settle();
  Pair::good(pair.nccl.begin_group());
  Pair::good(pair.receive(3));
  Pair::good(pair.nccl.end_group());
  pair.settle();
  replay::gpu::Event event{};
  bool done = false;
  Pair::good(pair.device.make_event(1, false, event));
  Pair::good(pair.device.record(pair.stream[1], event));
  Pair::good(pair.device.query(event, done));
  CHECK(!done);
  CHECK(Pair::refused(pair.nccl.query(done)) == "a message of 4 elements met a receive of 3");
}

TEST_CASE("the fake NCCL refuses collectives without all local ends, mixed with messages, or on buffers that overlap") {
  struct Part {
    int rank = 0;
    std::int64_t to = 0, from = 0, count = 4;
  };
  const auto ended = [](const std::vector<Part>& parts, bool sends) {
    Pair pair;
    Pair::good(pair.nccl.begin_group());
    for (const auto& [rank, to, from, count] : parts) {
      const auto i = static_cast<std::size_t>(rank);
      float* data = pair.memory[i].data;
      Pair::good(pair.nccl.collective(pair.ends[i], pair.stream[i], CollectiveOp::all_reduce, {rank, data + to, count},
                                      {rank, data + from, count}, 0));
    }
    if (sends) Pair::good(pair.send());
    return Pair::refused(pair.nccl.end_group());
  };
  CHECK(ended({{.rank = 0}}, false) == "a collective without all ends of this process");
  CHECK(ended({{.rank = 0}, {.rank = 1}}, true) == "a collective and something else in one group");
  CHECK(ended({{.rank = 0}, {.rank = 0}}, false) == "a collective and something else in one group");
  CHECK(ended({{.rank = 0}, {.rank = 1, .to = 1, .from = 0, .count = 2}}, false) ==
        "a collective on buffers that overlap");
  CHECK(ended({{.rank = 0}, {.rank = 1}}, false).empty());  // in place
  CHECK(
      ended({{.rank = 0, .to = 2, .from = 0, .count = 2}, {.rank = 1, .to = 0, .from = 2, .count = 2}}, false).empty());
}

}  // namespace nccl_fake_test
