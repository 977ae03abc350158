// The GPUs themselves: where there are none it says so, where there are some they do what the fake one does.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "algorithms/exchanges/halving_doubling.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "validate/replay/cuda/cuda_device.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"
#include "validate/replay/memory.hpp"

namespace cuda_device_test {

using namespace ringsim;
using namespace ringsim::replay;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;

namespace {

/// The GPUs of this machine; none, with the reason in `why`.
std::unique_ptr<Device> device_of_this_machine(std::string& why) {
  try {
    return open_cuda();
  } catch (const EnvironmentError& error) {
    why = error.what();
    return nullptr;
  }
}

}  // namespace

TEST_CASE("without CUDA, a driver or a GPU the error gives the reason and what to do") {
  std::string why;
  if (const auto device = device_of_this_machine(why)) {
    MESSAGE("this machine has ", device->name());
    CHECK(device->gpus() > 0);
    return;
  }
  const bool left_out = why.starts_with("this ringsim was built without CUDA\n  hint: ");
  const bool lacking = why.starts_with("looking for GPUs: ") && why.find("\n  hint: ") != std::string::npos;
  CHECK_MESSAGE((left_out || lacking), why);
}

TEST_CASE("on a GPU schedules come out right to the bit, as streams and as a graph, by copy engines and by kernels") {
  std::string why;
  const auto device = device_of_this_machine(why);
  if (!device) {
    MESSAGE("skipped: ", why);
    return;
  }
  // 4099 is odd: chunks of several sizes, which do not lie on 16 bytes.
  for (const Schedule& made : {ring_all_reduce(4, {4099}), halving_doubling(8, {4099}, Fold::naive),
                               parameter_server(5, {4099}, 1), sharded_parameter_server(5, {4099}, 2)}) {
    const Schedule schedule = stretched(made, element_bytes);
    for (const bool graph : {false, true}) {
      for (const int blocks : {0, 3}) {
        CAPTURE(schedule.algorithm);
        CAPTURE(graph);
        CAPTURE(blocks);
        const Measured measured =
            replay_on(*device, check(schedule), place_actors(schedule, device->gpus(), true),
                      {.repeats = {.warmups = 1, .timed = 3}, .graph = graph, .copy_blocks = blocks, .patience = 20s});
        CHECK(measured.wrong == 0);
        CHECK(measured.first_wrong == "");
        CHECK(measured.min > Picoseconds(0));
      }
    }
  }
}

TEST_CASE("on a GPU a wrong result is reported with rank, chunk, element, expected and found") {
  std::string why;
  const auto device = device_of_this_machine(why);
  if (!device) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Schedule schedule = stretched(ring_all_reduce(2, {100}), element_bytes);
  Plan plan = make_plan(schedule);
  std::erase_if(plan.commands, [](const Command& c) { return c.what == Command::What::add; });  // none adds
  const Measured measured =
      replay_plan(*device, schedule, plan, place_actors(schedule, device->gpus(), false), {.repeats = {0, 1}});
  CHECK(measured.wrong > 100);  // of 2 x 100, but for those that happen to be equal
  CHECK(measured.first_wrong.starts_with("rank 0: data[0], element 0: expected "));
}

}  // namespace cuda_device_test
