// What devices do with data within themselves, as fields.
#include <fmt/format.h>

#include <utility>

#include "scenarios/fields/fields.hpp"
#include "scenarios/scenario.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim::scenarios {

namespace {

bool is_gpu(const EffectOf& of) { return of.object == "gpu"; }

Effect sends(const EffectOf& of, LinkKind link) {
  return {"", of.run.works_within(is_gpu(of), link) ? "" : fmt::format("no {} sends data in this run", of.object)};
}
Effect of_copy(const EffectOf& of) { return sends(of, LinkKind::copy); }
Effect of_channel(const EffectOf& of) { return sends(of, LinkKind::channel); }

Effect of_reduce(const EffectOf& of) {
  const bool adds = of.run.works_within(is_gpu(of), LinkKind::reduce);
  return {"", adds ? "" : fmt::format("no {} reduces data in this run", of.object)};
}

Effect of_start(const EffectOf& of) {
  const auto& rates = of.of<DeviceRates>();
  return {"", rates.reduce || rates.copy ? "" : "it applies to additions and copies, and neither has a rate"};
}

Effect of_post(const EffectOf& of) {
  const bool posts = of.run.sends_to_other_host(is_gpu(of));
  return {"", posts ? "" : fmt::format("no {} sends data to another host in this run", of.object)};
}

Field rate(std::string name, std::string doc, std::string example, Member into, Effect (*effect)(const EffectOf&)) {
  return {.name = std::move(name),
          .type = Type::rate,
          .doc = std::move(doc),
          .min = 1,
          .max = max_bandwidth.bytes_per_second,
          .examples = {std::move(example)},
          .into = std::move(into),
          .effect = effect};
}

}  // namespace

std::vector<Field> device_rates_fields() {
  return {
      rate("copy",
           "The combined rate of sends over links and copies within the device. With a library: the rate at which a "
           "rank copies its own part.",
           R"("1088 GB/s")", &DeviceRates::copy, of_copy),
      rate("reduce",
           "The rate of additions; a message is added after all of it has arrived. With a library: the rate at which a "
           "rank adds its own part.",
           R"("1300 GB/s")", &DeviceRates::reduce, of_reduce),
      rate("channel",
           "The rate at which one channel of the device sends. With a library: the rate of one thread block, in rings "
           "and trees.",
           R"("20 GB/s")", &DeviceRates::channel, of_channel),
      {.name = "start",
       .type = Type::time,
       .doc =
           "The delay before the first byte of an addition, or of a copy within the device, such as a kernel launch.",
       .examples = {R"("2 us")"},
       .into = &DeviceRates::start,
       .effect = of_start},
      {.name = "post",
       .type = Type::time,
       .doc = "The time to post one message to another host, as a library's proxy thread does. Messages are posted one "
              "after another.",
       .examples = {R"("0.5 us")"},
       .into = &DeviceRates::post,
       .effect = of_post}};
}

Field devices_field() {
  std::vector<Field> gpu = device_rates_fields();
  const auto of_library = [](std::string name, std::string doc, std::string example) {
    return Field{.name = std::move(name), .type = Type::time, .doc = std::move(doc), .examples = {std::move(example)}};
  };
  gpu.insert(
      gpu.begin(),
      {of_library("launch",
                  "With a library: the time from the call to the kernel's first step, including the benchmark harness.",
                  R"("4.7 us")"),
       of_library("launch_channel",
                  "With a library: the time that each thread block after the first adds to the launch, as in old "
                  "releases such as NCCL 2.8.",
                  R"("1.3 us")")});
  return {.name = "devices",
          .type = Type::object,
          .doc =
              "The time that devices need to process their own data. Default: none, or with a library the modeled "
              "times for the GPU generation.",
          .members = {{.name = "gpu",
                       .type = Type::object,
                       .doc = "Every GPU.",
                       .members = std::move(gpu),
                       .into = &DeviceSpec::gpu},
                      {.name = "cpu",
                       .type = Type::object,
                       .doc = "Every CPU, and the memory of the servers that run on it.",
                       .members = device_rates_fields(),
                       .into = &DeviceSpec::cpu}}};
}

}  // namespace ringsim::scenarios
