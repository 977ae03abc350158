// The cases under google-benchmark, which repeats the short ones until their mean is steady:
//
//   build/tools/bench/ringsim_bench --benchmark_filter=ring/1024
//
// A run as `ringsim run` does it, from the topology to the result. ns_per_transfer is of all of it, run_ns_per_transfer
// of the simulation alone.
#include <benchmark/benchmark.h>

#include "tools/bench/cases.hpp"

namespace {

using namespace ringsim;

void whole_run(benchmark::State& state, const bench::Case& chosen) {
  std::int64_t transfers = 0, events = 0;
  double run_seconds = 0;
  for (auto _ : state) {
    const bench::Prepared ready = bench::prepare(chosen);
    const double start = bench::cpu_seconds();
    const Timeline timeline = run(ready.topology, ready.checked, ready.options);
    run_seconds += bench::cpu_seconds() - start;
    transfers += timeline.transfers;
    events += timeline.events;
  }
  const auto count = static_cast<double>(transfers);
  state.counters["transfers_per_second"] = benchmark::Counter(count, benchmark::Counter::kIsRate);
  state.counters["ns_per_transfer"] =
      benchmark::Counter(count / 1e9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["run_ns_per_transfer"] = run_seconds * 1e9 / count;
  state.counters["events"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kAvgIterations);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const bench::Case& known : bench::cases()) {
    const auto registered =
        benchmark::RegisterBenchmark(known.name.c_str(), whole_run, known)->Unit(benchmark::kMillisecond);
    if (known.slow) registered->Iterations(1);
  }
  benchmark::RunSpecifiedBenchmarks();
}
