// Machines: ringsim's own files, NCCL's topology XML, the matrix of nvidia-smi.
#include <memory>
#include <string>

#include "tests/fuzz/laws.hpp"
#include "tests/fuzz/targets.hpp"
#include "topologies/catalog.hpp"
#include "topologies/formats/nccl_graph.hpp"
#include "topologies/formats/nccl_xml_export.hpp"
#include "topologies/formats/nccl_xml_import.hpp"
#include "topologies/formats/smi_import.hpp"
#include "topologies/formats/smi_matrix.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/machines/machine_text.hpp"
#include "topologies/nccl/graph_use.hpp"

namespace ringsim::fuzz {

namespace {

bool same_devices(const Machine& a, const Machine& b) {
  if (a.devices.size() != b.devices.size() || a.cables.size() != b.cables.size()) return false;
  for (std::size_t i = 0; i < a.devices.size(); ++i)
    if (a.devices[i].name != b.devices[i].name || a.devices[i].kind != b.devices[i].kind ||
        a.devices[i].attributes != b.devices[i].attributes)
      return false;
  for (std::size_t i = 0; i < a.cables.size(); ++i)
    if (a.cables[i].from != b.cables[i].from || a.cables[i].to != b.cables[i].to ||
        a.cables[i].link.bandwidth != b.cables[i].link.bandwidth ||
        a.cables[i].link.latency != b.cables[i].link.latency || a.cables[i].link.joined != b.cables[i].link.joined)
      return false;
  return true;
}

/// Whatever it came from: it can be written and read, and built.
void check_machine(const Machine& machine) {
  const std::string written = to_machine_file(machine);
  const Machine again = parse_machine(written, "again.json");
  law(same_devices(machine, again), "a machine that was written is read again");
  law(to_machine_file(again) == written, "a machine is written in one way");
  const Topology topology = build(Cluster{{{std::make_shared<Machine>(machine), 1}}, std::nullopt, {}});
  smi_matrix(topology, 0);
}

std::size_t count(const Machine& machine, NodeKind kind) {
  std::size_t n = 0;
  for (const Machine::Device& device : machine.devices) n += device.kind == kind;
  return n;
}

/// What NCCL's XML can hold of any machine.
void check_nccl_xml(const Machine& machine) {
  const std::string written = to_nccl_xml(machine);
  const Machine again = import_nccl_xml(written, "again.xml");
  for (const NodeKind kind : {NodeKind::gpu, NodeKind::nic, NodeKind::pcie_switch, NodeKind::pcie_slot})
    law(count(again, kind) == count(machine, kind), "NCCL's XML keeps GPUs, NICs, switches and slots");
  law(without_gpudirect(again) == without_gpudirect(machine), "NCCL's XML keeps which devices have no GPUDirect");
}

}  // namespace

bool read_machine_file(std::string_view text) {
  return reads_or_refuses([&] { check_machine(parse_machine(text, "machine.json")); });
}

bool read_nccl_topology(std::string_view text) {
  return reads_or_refuses([&] {
    const Machine machine = import_nccl_xml(text, "topology.xml");
    check_machine(machine);
    check_nccl_xml(machine);
  });
}

bool read_nccl_graph(std::string_view text) {
  using namespace ringsim::nccl;
  GraphReading reading;
  for (int i = 0; i < 4; ++i) {
    reading.devices.gpus.emplace(i, "gpu" + std::to_string(i));
    reading.devices.nics.emplace(i, "nic" + std::to_string(i));
  }
  bool any = false;
  for (const int nodes : {1, 2}) {
    reading.nodes = nodes;
    any = reads_or_refuses([&] {
            const GraphFile file = import_nccl_graph(text, "graph.xml", reading);
            const std::string written = to_nccl_graph(file.graphs, reading.devices);
            const GraphFile again = import_nccl_graph(written, "again.xml", reading);
            law(again.graphs.size() == file.graphs.size() && again.warnings.empty(),
                "a graph file that was written is read");
            law(to_nccl_graph(again.graphs, reading.devices) == written, "a graph file is written in one way");
            for (const SearchGraph& graph : file.graphs) {
              const int rings = rings_in(graph, nodes, "2.30.7");
              law(rings >= 1 && rings <= static_cast<int>(graph.channels.size()), "channels are at least one ring");
              nics_of(graph, rings);
            }
            TunerMachine machine{.nodes = nodes, .gpus = 4, .sm = 80, .ring = {1, 20, 20}, .tree = {1, 20, 20}};
            GraphFile taken = file;
            take_graphs(machine, taken, "graph.xml", Release::v2_30_7);
            law(machine.ring.count > 0 && machine.ring.count == machine.tree.count, "there are as many trees as rings");
          }) ||
          any;
  }
  return any;
}

bool read_smi_matrix(std::string_view text) {
  static const Machine like = node_preset("dgx-1v");
  return reads_or_refuses([&] {
    const Machine machine = import_nvidia_smi(text, "matrix.txt", like);
    check_machine(machine);
    check_nccl_xml(machine);
  });
}

}  // namespace ringsim::fuzz
