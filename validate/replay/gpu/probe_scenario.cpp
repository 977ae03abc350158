// What was measured as a scenario: a graph of links that bind, and of links that do not.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "validate/replay/gpu/probe.hpp"

namespace ringsim::replay::gpu {

namespace {

/// Nodes and one-way links of a scenario's graph, as text.
class GraphText {
 public:
  void node(const std::string& name, const char* kind) {
    nodes_ += fmt::format("{}\n      {{\"name\": \"{}\", \"kind\": \"{}\"}}", nodes_.empty() ? "" : ",", name, kind);
  }
  /// A rank or a server: its additions take what was measured, of the link `over` or by themselves.
  void adder(const std::string& name, const char* kind, const Line& add, const std::string& over = "") {
    nodes_ += fmt::format(
        "{}\n      {{\"name\": \"{}\", \"kind\": \"{}\", \"rates\": {{\"reduce\": \"{}\", \"start\": \"{}\"{}}}}}",
        nodes_.empty() ? "" : ",", name, kind, format(add.rate), format(add.latency),
        over.empty() ? "" : fmt::format(", \"over\": \"{}\"", over));
  }
  void link(const std::string& from, const std::string& to, const Line& line) {
    links_ += fmt::format(
        "{}\n      {{\"from\": \"{}\", \"to\": \"{}\", \"bandwidth\": \"{}\", \"latency\": \"{}\", \"one_way\": true}}",
        links_.empty() ? "" : ",", from, to, format(line.rate), format(line.latency));
  }
  std::string text() const { return fmt::format("\"nodes\": [{}],\n    \"links\": [{}]", nodes_, links_); }

 private:
  std::string nodes_, links_;
};

/// Faster than anything that is measured: a joint, no link.
constexpr Line joint{Picoseconds(0), Bandwidth{100'000'000'000'000}};

Line measured(const Probe& probe, Asked asked, Place from, Place to) {
  if (const auto line = probe.line(asked, from, to)) return *line;
  throw EnvironmentError(
      fmt::format("measuring {}: the larger of the two largest sizes did not take longer\n  hint: use larger sizes, "
                  "more repeats or an otherwise idle machine",
                  to_string(asked)));
}

/// The line of a copy that stands for a message: it waits for an event of another stream, and costs what a hop costs
/// beyond a node.
Line link_of(const Probe& probe, Place from, Place to) {
  Line line = measured(probe, Asked::copy, from, to);
  const auto hop = probe.least(Asked::hop, 0, 0), node = probe.least(Asked::node, 0, 0);
  if (hop && node) line.latency += std::max(*hop - *node, Picoseconds(0));
  return line;
}

std::string gpu(int number) { return fmt::format("gpu{}", number); }

// Every copy reads and writes the one memory: all share what it does.
void one_gpu(const Probe& probe, int ranks, GraphText& graph) {
  graph.node("memory_out", "switch");
  graph.node("memory_in", "switch");
  graph.link("memory_out", "memory_in", link_of(probe, 0, 0));
  for (int rank = 0; rank < ranks; ++rank) {
    graph.link(gpu(rank), "memory_out", joint);
    graph.link("memory_in", gpu(rank), joint);
  }
}

// A pair has what it has alone; all of a GPU's pairs together what it sends to all at once.
void several_gpus(const Probe& probe, GraphText& graph) {
  const Line port = probe.gpus > 2 ? measured(probe, Asked::fan_out, 0, 1) : measured(probe, Asked::copy, 0, 1);
  const Line all{Picoseconds(0), Bandwidth{port.rate.bytes_per_second * (probe.gpus > 2 ? probe.gpus - 1 : 1)}};
  for (int rank = 0; rank < probe.gpus; ++rank) {
    graph.node(gpu(rank) + "_out", "switch");
    graph.node(gpu(rank) + "_in", "switch");
    graph.link(gpu(rank), gpu(rank) + "_out", all);
    graph.link(gpu(rank) + "_in", gpu(rank), all);
  }
  for (int from = 0; from < probe.gpus; ++from)
    for (int to = 0; to < probe.gpus; ++to)
      if (from != to) graph.link(gpu(from) + "_out", gpu(to) + "_in", link_of(probe, from, to));
}

// One link each way for all ranks of a GPU; with several GPUs each is taken to have what the first has.
void host(const Probe& probe, int ranks, GraphText& graph) {
  const Line up = link_of(probe, 0, host_memory), down = link_of(probe, host_memory, 0);
  graph.adder("host", "cpu", measured(probe, Asked::add, host_memory, host_memory));
  for (int gpus = 0; gpus < probe.gpus; ++gpus) {
    const std::string out = fmt::format("to_host{}", gpus), in = fmt::format("from_host{}", gpus);
    graph.node(out, "switch");
    graph.node(in, "switch");
    graph.link(out, "host", up);
    graph.link("host", in, down);
    for (int rank = gpus; rank < ranks; rank += probe.gpus) {
      graph.link(gpu(rank), out, joint);
      graph.link(in, gpu(rank), joint);
    }
  }
}

}  // namespace

std::string to_scenario(const Probe& probe, int ranks, const std::string& date) {
  if (probe.gpus > 1) ranks = probe.gpus;
  GraphText graph;
  for (int rank = 0; rank < ranks; ++rank)
    graph.adder(gpu(rank), "gpu", measured(probe, Asked::add, 0, 0), probe.gpus == 1 ? "memory_out -> memory_in" : "");
  if (probe.gpus == 1)
    one_gpu(probe, ranks, graph);
  else
    several_gpus(probe, graph);
  host(probe, ranks, graph);
  const Picoseconds node = probe.least(Asked::node, 0, 0).value_or(Picoseconds(0));
  const Picoseconds call = probe.least(Asked::call, 0, 0).value_or(Picoseconds(0));
  const Picoseconds hop = probe.least(Asked::hop, 0, 0).value_or(Picoseconds(0));
  return fmt::format(
      "{{\n  // Measured by `ringsim probe` on {}, {}. Rates are slopes between the two largest sizes; latencies are "
      "the time of\n  // the smallest size beyond its bytes, as a graph node after an event of another stream. Links "
      "of {} are joints.\n  // A graph node takes {}, a node after an event of another stream {}, a single call {}.\n  "
      "\"version\": 1,\n  \"name\": \"{} ranks on {}\",\n  \"topology\": {{\n    \"kind\": \"graph\",\n    {}\n  }},\n "
      " \"collective\": {{\"op\": \"all_reduce\", \"algorithm\": \"ring\", \"bytes\": \"1 MiB\"}}\n}}\n",
      probe.device, date, format(joint.rate), format(node), format(hop), format(call), ranks, probe.device,
      graph.text());
}

}  // namespace ringsim::replay::gpu
