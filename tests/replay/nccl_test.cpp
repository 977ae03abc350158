// NCCL behind Communicators: on a library that does nothing but write down what it is asked, and on this machine's.
#include <doctest/doctest.h>

#include <string>

#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "tests/support/fakes/fake_device.hpp"
#include "validate/replay/cuda/cuda_device.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"
#include "validate/replay/memory.hpp"
#include "validate/replay/nccl/nccl.hpp"

#ifdef RINGSIM_FAKE_NCCL
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/support/fake_nccl/fake_nccl.hpp"
#endif

namespace nccl_test {

using namespace ringsim;
using namespace ringsim::replay;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;

namespace {

std::string what_is_said(const std::function<void()>& call) {
  try {
    call();
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

#ifndef RINGSIM_FAKE_NCCL

TEST_CASE("a build without nccl.h says so, and what to do") {
  test::FakeDevice device({});
  CHECK(what_is_said([&] { open_nccl(device); }).starts_with("this ringsim was built without NCCL\n  hint: "));
}

#else

namespace {

/// The library that stands for NCCL.
test::FakeNccl& fake() {
  static test::FakeNccl* const found = [] {
    void* library = dlopen(RINGSIM_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library != nullptr, RINGSIM_FAKE_NCCL);
    return reinterpret_cast<decltype(&test::fake_nccl)>(dlsym(library, "fake_nccl"))();
  }();
  return *found;
}

/// Names the library that is loaded, as long as it lives.
struct Named {
  explicit Named(const char* file) { setenv("RINGSIM_NCCL_LIBRARY", file, 1); }
  ~Named() { unsetenv("RINGSIM_NCCL_LIBRARY"); }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
};

/// A fake GPU of 132 multiprocessors, as an H200 has, with handles that can be told apart.
class NativeFake : public test::FakeDevice, public NativeGpus {
 public:
  explicit NativeFake(int gpus = 2) : FakeDevice({.gpus = gpus}) {}
  void use(int) const noexcept override {}
  void* native(replay::gpu::Stream stream) const override {
    static std::array<char, 16> handles;
    return &handles.at(static_cast<std::size_t>(stream));
  }
  Result choose(int gpu) override {
    fake().note("GPU " + std::to_string(gpu));
    return {};
  }
  int multiprocessors() const override { return 132; }
  std::function<void()> take_graphs() override {
    return [] { fake().graphs_are_gone(); };
  }
};

using Calls = std::vector<std::string>;

struct OnFake {
  explicit OnFake(const test::FakeNcclScript& script, std::chrono::milliseconds leave_time = 10s) {
    fake().follow(script);
    nccl = open_nccl(device, leave_time);
  }
  /// A communicator of two ranks, both ours.
  std::vector<End> join() {
    MeetingPoint point{};
    require(nccl->make_meeting_point(point), "making a meeting point");
    std::vector<End> ends;
    const std::vector<Member> members{{0, 0}, {1, 1}};
    require(nccl->join(2, members, point, ends), "joining");
    return ends;
  }
  int questions_until_done(int most = 100) {
    for (int asked = 1; asked <= most; ++asked) {
      bool done = false;
      require(nccl->query(done), "waiting for NCCL");
      if (done) return asked;
    }
    return -1;
  }

  Named named{RINGSIM_FAKE_NCCL};
  NativeFake device;
  std::unique_ptr<Communicators> nccl;
};

Calls calls() { return fake().calls(); }

}  // namespace

TEST_CASE("all ends of a communicator that are mine join in one group, each with its GPU chosen, none blocking") {
  OnFake on({.in_progress = 2});
  CHECK(on.nccl->name() == "NCCL 2.28.9");
  CHECK(on.join() == std::vector<End>{End{0}, End{1}});
  CHECK(calls() == Calls{"meeting point", "{", "GPU 0", "rank 0 of 2 at n, blocking 0, blocks any", "GPU 1",
                         "rank 1 of 2 at n, blocking 0, blocks any", "}"});
  CHECK(on.questions_until_done() == 3);  // twice it is in progress
}

TEST_CASE("kernels of communicators that run at the same time share seven eighths of a GPU's multiprocessors") {
  // 116 of 132, in powers of two.
  for (const auto& [communicators, blocks] : {std::pair{1, "any"}, {2, "32"}, {16, "4"}, {116, "1"}}) {
    const int n = communicators;
    CAPTURE(n);
    OnFake on({});
    on.nccl->expect(n);
    on.join();
    CHECK(calls().at(3) == std::string("rank 0 of 2 at n, blocking 0, blocks ") + blocks);
  }
  OnFake on({});
  on.nccl->expect(117);
  CHECK(what_is_said([&] {
          on.join();
        }).starts_with("joining: a GPU of 132 multiprocessors has no room for the kernels of 117 communicators"));
}

TEST_CASE("sends, receives and collectives are asked of NCCL with their sizes, peers and streams") {
  OnFake on({});
  const std::vector<End> ends = on.join();
  REQUIRE(on.questions_until_done() == 1);
  const std::size_t before = calls().size();
  replay::gpu::Stream stream{};
  Memory from, to;
  require(on.device.make_stream(0, stream), "making a stream");
  require(on.device.allocate(0, 12, from), "allocating");
  require(on.device.allocate(0, 6, to), "allocating");
  require(on.nccl->begin_group(), "a group");
  require(on.nccl->send(ends[0], stream, from, 1), "sending");
  require(on.nccl->receive(ends[0], stream, to, 1), "receiving");
  require(on.nccl->send(ends[1], stream, {.data = from.data, .count = 0}, 0), "sending nothing");
  require(on.nccl->end_group(), "a group");
  const Calls all = calls();
  std::array<char, 32> handle{};
  std::snprintf(handle.data(), handle.size(), " on stream %p", on.device.native(stream));
  const std::string there = handle.data();
  CHECK(Calls(all.begin() + static_cast<std::ptrdiff_t>(before), all.end()) ==
        Calls{"{", "rank 0: send 12 floats to 1" + there, "rank 0: receive 6 floats from 1" + there,
              "rank 1: send 0 floats to 0" + there, "}"});

  const auto asked = [&](CollectiveOp op) {
    require(on.nccl->begin_group(), "a group");
    require(on.nccl->collective(ends[1], stream, op, to, from, 1), "a collective");
    require(on.nccl->end_group(), "a group");
    const Calls made = calls();
    const std::string& call = made[made.size() - 2];
    return call.substr(0, call.find(" from"));
  };
  CHECK(asked(CollectiveOp::all_reduce) == "rank 1: all_reduce 12 floats");
  CHECK(asked(CollectiveOp::reduce_scatter) == "rank 1: reduce_scatter 6 floats");  // what a rank gets
  CHECK(asked(CollectiveOp::all_gather) == "rank 1: all_gather 12 floats");         // what a rank gives
  CHECK(asked(CollectiveOp::broadcast) == "rank 1: broadcast 6 floats of 1");
  CHECK(asked(CollectiveOp::reduce) == "rank 1: reduce 12 floats for 1");
  require(on.nccl->begin_group(), "a group");
  CHECK(on.nccl->collective(ends[0], stream, CollectiveOp::all_to_all, to, from, 0).fault == Fault::misuse);
}

TEST_CASE("what an end says of itself when it is asked is a failure, in NCCL's words") {
  OnFake on({.async_error = 6});  // of a peer
  on.join();
  CHECK(what_is_said([&] {
          on.questions_until_done();
        }).starts_with("waiting for NCCL: NCCL: an error: the fake was set to fail\n  hint: "));
}

TEST_CASE("a failure of a call is reported in NCCL's words, and giving up closes the group that is open") {
  OnFake on({.fails = "ncclCommInitRankConfig", .result = 2});
  CHECK(
      what_is_said([&] { on.join(); }).starts_with("joining: NCCL: system error: the fake was set to fail\n  hint: "));
  CHECK(calls().back() == "rank 0 of 2 at n, blocking 0, blocks any");
  on.nccl->abort();
  CHECK(calls().back() == "}");
}

TEST_CASE("a join that never ends is given up, all ends of all communicators at the same time") {
  OnFake on({.in_progress = -1, .aborts_together = true, .waits_for_graphs = true});
  on.join();
  on.join();
  CHECK(on.questions_until_done(1000) == -1);
  const auto begin = std::chrono::steady_clock::now();
  on.nccl->abort();
  CHECK(std::chrono::steady_clock::now() - begin < 5s);  // of 10 s, after which it would leave them alone
  CHECK(fake().open() == 0);
  const Calls all = calls();
  CHECK(std::count(all.begin(), all.end(), "abort rank 0") == 2);
  CHECK(std::count(all.begin(), all.end(), "abort rank 1") == 2);
  CHECK(!on.device.abandoned());
  on.nccl->clear();  // nothing is left to it
  CHECK(calls().size() == all.size());
}

TEST_CASE("a replay whose peers never come is given up in time, all ends aborted") {
  OnFake on({.in_progress = -1});
  const Schedule schedule = stretched(ring_all_reduce(2, {16}), element_bytes);
  const std::vector<Actor> mine{0, 1};
  const Plan plan = make_nccl_plan(schedule, mine);
  const std::string said = what_is_said([&] {
    replay_part(on.device, on.nccl.get(), schedule, plan, place_actors(schedule, 2, false), {.patience = 20ms});
  });
  CHECK_MESSAGE(said.find("not finished within 20 ms") != std::string::npos, said);
  CHECK(fake().open() == 0);
  const Calls all = calls();
  CHECK(std::count(all.begin(), all.end(), "abort rank 0") == 1);
  CHECK(std::count(all.begin(), all.end(), "abort rank 1") == 1);
}

TEST_CASE("a replay asks of NCCL what it may ask, when it may: an end in progress refuses all else") {
  OnFake on({.in_progress = 2});
  const Schedule schedule = stretched(ring_all_reduce(2, {16}), element_bytes);
  const std::vector<Actor> mine{0, 1};
  const Plan plan = make_nccl_plan(schedule, mine);
  const ActorRecord record = replay_part(on.device, on.nccl.get(), schedule, plan, place_actors(schedule, 2, false),
                                         {.repeats = {.warmups = 0, .timed = 1}, .graph = false});
  CHECK(record.wrong > 0);  // this library moves nothing, and that is seen
  const Calls all = calls();
  const auto count = [&](const std::string& what) {
    return std::count_if(all.begin(), all.end(), [&](const std::string& each) { return each.starts_with(what); });
  };
  // Two steps, and before them one element each way, all in 8 floats' chunks.
  CHECK(count("rank 0: send 8 floats to 1") == 2);
  CHECK(count("rank 1: receive 8 floats from 0") == 2);
  CHECK(count("rank 0: send 1 floats to 1") == 1);
  CHECK(count("destroy") == 2);
  CHECK(count("abort") == 0);
}

TEST_CASE("communicators are left when all is done, once graphs with their kernels are gone") {
  OnFake on({.waits_for_graphs = true});
  on.join();
  on.nccl.reset();
  CHECK(fake().open() == 0);
  const Calls all = calls();
  CHECK(Calls(all.end() - 2, all.end()) == Calls{"destroy rank 0", "destroy rank 1"});
  CHECK(!on.device.abandoned());
}

TEST_CASE("communicators that cannot be left are left alone, and so is the device") {
  OnFake on({.leaves = false}, 20ms);
  on.join();
  on.nccl->clear();
  CHECK(on.device.abandoned());
  fake().follow({});  // lets the thread go
}

TEST_CASE("a library that is too old, lacks a function or is not there is refused, with its name and what to do") {
  const std::string hint =
      "\n  hint: install NCCL 2.23 or newer (libnccl2 from NVIDIA's packages), or set RINGSIM_NCCL_LIBRARY to a "
      "libnccl.so.2";
  NativeFake device;
  const auto said = [&](const char* file) {
    const Named named(file);
    return what_is_said([&] { open_nccl(device); });
  };
  const std::string loaded = RINGSIM_FAKE_NCCL;
  fake().follow({.version = 22205});
  CHECK(said(RINGSIM_FAKE_NCCL) == "loading NCCL: " + loaded + " is version 2.22.5" + hint);
  fake().follow({.version = 2804});
  CHECK(said(RINGSIM_FAKE_NCCL) == "loading NCCL: " + loaded + " is version 2.8.4" + hint);
  fake().follow({});
  CHECK(said(RINGSIM_FAKE_NCCL) == "");
  const std::string lacking = RINGSIM_LACKING_NCCL;
  CHECK(said(RINGSIM_LACKING_NCCL) == "loading NCCL: " + lacking + ", version 2.28.9, has no ncclCommAbort" + hint);
  const std::string nowhere = said("/nowhere/libnccl.so.2");
  CHECK_MESSAGE(nowhere.starts_with("loading NCCL: /nowhere/libnccl.so.2: cannot open shared object file"), nowhere);
  CHECK_MESSAGE(nowhere.ends_with(hint), nowhere);
}

TEST_CASE("this machine's NCCL loads; without a GPU it fails in its own words, with one it sums") {
  std::unique_ptr<Device> gpus;
  const std::string why_none = what_is_said([&] { gpus = open_cuda(); });
  NativeFake none(1);
  Device& device = gpus ? *gpus : none;
  std::unique_ptr<Communicators> nccl;
  if (const std::string why = what_is_said([&] { nccl = open_nccl(device); }); !nccl) {
    MESSAGE("skipped: ", why);
    return;
  }
  MESSAGE(nccl->name());
  CHECK(nccl->name().starts_with("NCCL 2."));
  std::vector<End> ends;
  const auto join = [&] {
    MeetingPoint point{};
    require(nccl->make_meeting_point(point), "making a meeting point");
    const std::vector<Member> members{{0, 0}};
    require(nccl->join(1, members, point, ends), "joining");
    const auto begin = std::chrono::steady_clock::now();
    for (bool done = false; !done;) {
      require(nccl->query(done), "joining");
      REQUIRE(std::chrono::steady_clock::now() - begin < 60s);
    }
  };
  if (!gpus) {
    const std::string said = what_is_said(join);
    CHECK_MESSAGE(said.find("NCCL: ") != std::string::npos, said);
    CHECK_MESSAGE(said.find("\n  hint: ") != std::string::npos, said);
    MESSAGE(said);
    nccl->abort();
    return;
  }
  join();
  replay::gpu::Stream stream{};
  Event event{};
  Memory from, to;
  require(device.make_stream(0, stream), "making a stream");
  require(device.make_event(0, false, event), "making an event");
  require(device.allocate(0, 1000, from), "allocating");
  require(device.allocate(0, 1000, to), "allocating");
  require(device.put(stream, from, {.ranks = 1}), "filling");
  require(nccl->begin_group(), "a group");
  require(nccl->collective(ends[0], stream, CollectiveOp::all_reduce, to, from, 0), "all_reduce");
  require(nccl->end_group(), "a group");
  for (bool done = false; !done;) require(nccl->query(done), "all_reduce");
  require(device.record(stream, event), "recording");
  settle(device, event, 60s);
  Difference difference;
  require(device.compare(stream, to, {.ranks = 1}, difference), "comparing");
  CHECK(difference.wrong == 0);
}

#endif

}  // namespace nccl_test
