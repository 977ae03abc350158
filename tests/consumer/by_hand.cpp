// Builds a topology and a schedule by hand, proves the schedule, and runs it.
//
// A broadcast down a chain of three GPUs over two cables of 10 GB/s and 1 us: two hops of 1 us + 100 us each for 1 MB.
#include <cstdio>
#include <ringsim/ringsim.hpp>

int main() {
  using namespace ringsim;
  using namespace ringsim::literals;

  TopologyBuilder builder;
  for (const char* name : {"gpu0", "gpu1", "gpu2"}) builder.add_gpu(name);
  const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1'000'000_ps};
  builder.add_cable(NodeId{0}, NodeId{1}, cable);
  builder.add_cable(NodeId{1}, NodeId{2}, cable);
  const Topology topology = builder.build();

  // Rank r receives in its first step what its predecessor sends, then sends it on.
  Schedule chain;
  chain.algorithm = "chain by hand";
  chain.collective = broadcast(3, 1'000'000_B, /*root=*/0);
  chain.actors = 3;
  chain.layout[0] = Layout::of_sizes({1'000'000_B});  // of the data buffer: one chunk
  chain.n_steps = [](Actor r, Lane) { return r == 1 ? 2 : 1; };
  chain.step = [](Actor r, Lane, int i, Step& out) {
    if (r > 0 && i == 0)
      out.receive(r - 1, chunk(0));
    else
      out.send(r + 1, chunk(0));
  };
  const Timeline timeline = run(topology, check(chain));
  std::printf("%lld ps, %lld messages\n", static_cast<long long>(timeline.duration().count()),
              static_cast<long long>(timeline.transfers));
}
