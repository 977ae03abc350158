// How fast the engine is, and how much memory a rank takes. Run it by hand: nothing in the tests depends on a time.
//
//   cmake -B build -DRINGSIM_BENCH=ON && cmake --build build && build/tools/bench/ringsim_bench
//
// Figures: transfers_per_second; ns_per_transfer (topology, proof and run together); bytes_per_rank, the memory that
// the case added to the process's peak, over the ranks (run one case a process for it to mean anything:
// --benchmark_filter=ring_on_a_star/1024).
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "algorithms/halving_doubling.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/check.hpp"
#include "sim/run.hpp"
#include "topologies/catalog.hpp"

namespace {

using namespace ringsim;
using namespace ringsim::literals;

const LinkSpec port{.bandwidth = 10_GBps, .latency = Picoseconds{1'000'000}};

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// From the topology to the result, as `ringsim run` does it.
template <class MakeSchedule>
void whole_run(benchmark::State& state, NetworkModel model, MakeSchedule make) {
  const auto n = static_cast<int>(state.range(0));
  const long before = peak_kib();
  std::int64_t transfers = 0;
  for (auto _ : state) {
    const Topology topology = build(Star{n, port});
    const CheckedSchedule checked = check(make(n));
    const Timeline timeline = run(topology, checked, {.model = model});
    benchmark::DoNotOptimize(timeline.finish);
    transfers += timeline.transfers;
  }
  const auto count = static_cast<double>(transfers);
  state.counters["transfers_per_second"] = benchmark::Counter(count, benchmark::Counter::kIsRate);
  state.counters["ns_per_transfer"] =
      benchmark::Counter(count / 1e9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["bytes_per_rank"] = static_cast<double>(peak_kib() - before) * 1024 / n;
  state.counters["peak_MiB"] = static_cast<double>(peak_kib()) / 1024;
}

void ring_on_a_star(benchmark::State& state) {
  whole_run(state, NetworkModel::fair, [](int n) { return ring_all_reduce(n, 1_GiB); });
}
void ring_on_a_star_uneven(benchmark::State& state) {  // chunks of two sizes: ranks fall out of step
  whole_run(state, NetworkModel::fair, [](int n) { return ring_all_reduce(n, 1000003_KiB + 1_B); });
}
void halving_doubling_on_a_star(benchmark::State& state) {
  whole_run(state, NetworkModel::fair, [](int n) { return halving_doubling(n, 1_GiB, Fold::rabenseifner); });
}
void parameter_server_on_a_star(benchmark::State& state) {  // all flows through one port
  whole_run(state, NetworkModel::fair, [](int n) { return parameter_server(n, 1_MiB, 0); });
}

BENCHMARK(ring_on_a_star)->Arg(64)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_on_a_star_uneven)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(halving_doubling_on_a_star)->Arg(1000)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK(parameter_server_on_a_star)->Arg(64)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
