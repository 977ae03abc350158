// ringsim probe: what the links of this machine's GPUs do, measured; a scenario on them.
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <memory>

#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/stop.hpp"
#include "validate/replay/cuda/cuda_device.hpp"
#include "validate/replay/gpu/probe.hpp"

namespace ringsim::tools {

namespace {

struct ProbeArguments {
  int ranks = 16;         ///< virtual ones of the scenario, if there is one GPU
  Bytes most{256 << 20};  ///< the largest size that is measured
  int repeats = 20;
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  std::string samples;  ///< a file for every measurement; empty: none
  std::string output;   ///< a file for the scenario; empty or "-": stdout

  void settle() const { expect_ending(output, {".json"}); }
};

void declare(Options& options, ProbeArguments& probe) {
  options.whole("--ranks", "N", 1, 1024, probe.ranks, "the number of virtual ranks, if there is only one GPU")
      .fallback = "16";
  options.size("--most", Bytes{16384}, Bytes{std::int64_t{1} << 50}, probe.most, "the largest size to measure")
      .fallback = "256 MiB";
  options.whole("--repeats", "N", 1, 1000000, probe.repeats, "the number of runs per measurement").fallback = "20";
  options.time("--timeout", probe.timeout, "the time limit of each run").fallback = "30 s";
  options.file("--samples", "FILE", probe.samples, "write all measurements to FILE as CSV");
  options.output(probe.output, "the scenario");
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

int execute(const ProbeArguments& arguments) {
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

}  // namespace

Command probe_command() {
  return {.name = "probe",
          .group = Group::replay,
          .summary = "Measure the links of this machine's GPUs",
          .example = "ringsim probe --samples probe.csv -o gpu.json",
          .details = "Writes a scenario with the measured rates and latencies.",
          .prepare = with<ProbeArguments>(declare, execute)};
}

}  // namespace ringsim::tools
