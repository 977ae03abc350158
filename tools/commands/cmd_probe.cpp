// ringsim probe: what the links of this machine's GPUs do, measured; a scenario on them.
#include <fmt/format.h>

#include <ctime>
#include <memory>

#include "tools/commands/commands.hpp"
#include "tools/output/output.hpp"
#include "validate/replay/cuda/cuda_device.hpp"
#include "validate/replay/gpu/probe.hpp"

namespace ringsim::tools {

namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

}  // namespace

int probe_command(const ProbeArguments& arguments) {
  const auto device = replay::gpu::open_cuda();
  Output output(arguments.output);
  std::unique_ptr<Output> samples;
  if (!arguments.samples.empty()) samples = std::make_unique<Output>(arguments.samples);
  replay::gpu::ProbeOptions options = replay::gpu::usual_probe();
  options.repeats = arguments.repeats;
  options.patience = std::chrono::ceil<std::chrono::milliseconds>(arguments.timeout);
  options.stop = &stop_requested;
  std::erase_if(options.sizes, [&](Bytes size) { return size > arguments.most; });
  const replay::gpu::Probe found = replay::gpu::probe(*device, options);
  if (samples) {
    samples->write(replay::gpu::to_csv(found));
    samples->finish();
  }
  output.write(replay::gpu::to_scenario(found, arguments.ranks, today()));
  output.finish();
  return good;
}

}  // namespace ringsim::tools
