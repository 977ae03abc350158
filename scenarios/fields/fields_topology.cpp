// The part of the table that describes topologies.
#include <utility>

#include "scenarios/fields/fields.hpp"
#include "topologies/catalog.hpp"
#include "topologies/formats/nccl_rules.hpp"
#include "topologies/machines/preset_names.hpp"

namespace ringsim::scenarios {

namespace {

Field ranks_field(std::int64_t most, Member into) {
  return {.name = "ranks",
          .type = Type::whole,
          .doc = "The number of GPUs.",
          .required = true,
          .min = 1,
          .max = most,
          .examples = {"8"},
          .words = {"gpus", "n_gpus", "num_gpus", "gpu_count", "n_ranks", "num_ranks", "world_size"},
          .into = std::move(into)};
}

/// One of ranks and equal links.
template <class Kind>
Field plain_topology(const std::string& name, const std::string& doc, std::int64_t most) {
  return {.name = name,
          .type = Type::object,
          .doc = doc,
          .members = {ranks_field(most, &Kind::ranks),
                      link_field("link", "The properties of every link.", stated_link(&Kind::link))},
          .into = Member::alternative<TopologySpec, Kind>()};
}

Field graph_topology() {
  std::vector<Field> rates = device_rates_fields();
  rates.push_back({.name = "over",
                   .type = Type::text,
                   .doc = "The link, FROM -> TO, whose bandwidth the device's copies and additions use, such as a "
                          "memory shared by several ranks. Default: each device has its own.",
                   .min = 1,
                   .examples = {R"("memory_out -> memory_in")"}});
  const Field node{.name = "node",
                   .type = Type::object,
                   .doc = "A device.",
                   .members = {{.name = "name",
                                .type = Type::text,
                                .doc = "The unique name of the device.",
                                .required = true,
                                .min = 1,
                                .examples = {R"("g0")"},
                                .into = &Graph::NodeSpec::name},
                               {.name = "kind",
                                .type = Type::text,
                                .doc = "The kind of the device. Each gpu is a rank.",
                                .required = true,
                                .choices = {"gpu", "cpu", "memory", "pcie_switch", "nvswitch", "nic", "switch"},
                                .into = {&Graph::NodeSpec::kind,
                                         {{"gpu", NodeKind::gpu},
                                          {"cpu", NodeKind::cpu},
                                          {"memory", NodeKind::memory},
                                          {"pcie_switch", NodeKind::pcie_switch},
                                          {"nvswitch", NodeKind::nvswitch},
                                          {"nic", NodeKind::nic},
                                          {"switch", NodeKind::network_switch}}}},
                               {.name = "rates",
                                .type = Type::object,
                                .doc = "The processing rates of the device, instead of `devices`.",
                                .examples = {R"({"reduce": "800 GB/s", "start": "2 us"})"},
                                .members = std::move(rates),
                                .only_said = true}}};
  Field link = link_field("link", "A cable between two nodes.");
  const auto end = [](std::string name, std::string doc) {
    return Field{.name = std::move(name),
                 .type = Type::text,
                 .doc = std::move(doc),
                 .required = true,
                 .min = 1,
                 .examples = {R"("g0")"}};
  };
  link.examples = {R"({"from": "g0", "to": "s", "bandwidth": "10 GB/s", "latency": "0 us"})"};
  link.members.insert(link.members.begin(),
                      {end("from", "The name of one end."), end("to", "The name of the other end.")});
  link.members.push_back({.name = "duplex",
                          .type = Type::text,
                          .doc = "full: each direction has the full bandwidth; half: both directions share it.",
                          .fallback = "full",
                          .choices = {"full", "half"},
                          .into = {&LinkSpec::duplex, {{"full", Duplex::full}, {"half", Duplex::half}}}});
  link.members.push_back({.name = "one_way",
                          .type = Type::boolean,
                          .doc = "True for a link only from `from` to `to`.",
                          .fallback = "false"});
  return {.name = "graph",
          .type = Type::object,
          .doc = "An arbitrary graph. Its nodes of kind gpu are the ranks, in the order listed.",
          .members = {{.name = "nodes",
                       .type = Type::list,
                       .doc = "The devices.",
                       .required = true,
                       .min = 1,
                       .examples = {R"([{"name": "g0", "kind": "gpu"}, {"name": "s", "kind": "switch"}])"},
                       .members = {node}},
                      {.name = "links",
                       .type = Type::list,
                       .doc = "The cables. They are full duplex unless `duplex` is half or `one_way` is true.",
                       .required = true,
                       .examples = {R"([{"from": "g0", "to": "s", "bandwidth": "10 GB/s", "latency": "0 us"}])"},
                       .members = {link}}}};
}

Field preset_field(std::string name, std::string doc, bool required = false) {
  Field field{.name = std::move(name),
              .type = Type::text,
              .doc = std::move(doc),
              .required = required,
              .loose = true,
              .suggest = preset_hint,
              .list = "nodes",
              .examples = {R"("dgx-a100")"}};
  for (const PresetNames& preset : preset_names()) {
    field.choices.push_back(preset.name);
    for (const PresetNames::Memory& memory : preset.memories)
      field.choices.push_back(preset.choice_of(memory.names.front()));
    for (const std::string& name_of_it : preset.also)
      if (const std::string choice = preset.choice_of(name_of_it); choice != plain_machine_name(name_of_it))
        field.aliases.push_back({name_of_it, choice, ""});
    for (const std::string& open : preset.taken_for)
      field.aliases.push_back({open, preset.choice_of(open), preset_note(open)});
  }
  return field;
}

Field file_field(std::string name, std::string doc, bool required, std::string example) {
  return {.name = std::move(name),
          .type = Type::file,
          .doc = std::move(doc),
          .required = required,
          .min = 1,
          .examples = {std::move(example)}};
}

/// How many nodes; without a fallback it has to be said, or stand elsewhere.
Field nodes_field(std::string fallback = "") {
  return {.name = "nodes",
          .type = Type::whole,
          .doc = "The number of nodes.",
          .fallback = std::move(fallback),
          .min = 1,
          .max = 65'536,
          .examples = {"2"},
          .words = {"machines", "hosts", "n_nodes", "num_nodes", "node_count", "nnodes"}};
}

Field node_field() {
  Field field = preset_field("node", "A preset machine; `ringsim list nodes` lists them.");
  field.words = {"machine", "preset", "instance", "instance_type", "host", "server"};
  return field;
}
Field node_file_field() {
  return file_field("node_file", "A machine file, in the format of the presets.", false, R"("my-server.json")");
}

Field cluster_topology() {
  const Field part{.name = "part",
                   .type = Type::object,
                   .doc = "A number of identical nodes.",
                   .members = {node_field(), node_file_field(), nodes_field("1")},
                   .one_of = {{"node", "node_file"}}};
  return {.name = "cluster",
          .type = Type::object,
          .doc =
              "Nodes connected by a fabric. Use `node` or `node_file` with `nodes` for identical nodes, `parts` for "
              "different ones.",
          .members = {node_field(),
                      node_file_field(),
                      nodes_field(),
                      {.name = "parts",
                       .type = Type::list,
                       .doc = "Groups of different nodes, in order.",
                       .min = 1,
                       .max = 65'536,
                       .examples = {R"([{"node": "dgx-1v", "nodes": 2}, {"node_file": "my-server.json"}])"},
                       .members = {part}},
                      fabric_field()},
          .one_of = {{"node", "node_file", "parts"}, {"nodes", "parts"}}};
}

Field nic_field(std::string doc) {
  Field nic = link_field("nic", std::move(doc));
  nic.required = false;
  for (Field& member : nic.members)
    if (member.name == "latency") member.fallback = "500 ns";  // as `topology import --nic` has it: nccl_rules.cpp
  nic.examples = {R"({"bandwidth": "200 Gb/s", "latency": "0.5 us"})"};
  return nic;
}

Field nccl_xml_topology() {
  return {.name = "nccl_xml",
          .type = Type::object,
          .doc = "Nodes connected by a fabric. An NCCL topology XML file describes one node.",
          .members = {file_field("file", "A file written by NCCL_TOPO_DUMP_FILE or supplied by a cloud provider.", true,
                                 R"("topo.xml")"),
                      nodes_field("1"),
                      {.name = "gpu",
                       .type = Type::text,
                       .doc = "The GPU model, if the file does not state the compute capability.",
                       .choices = nccl::gpu_models(),
                       .numbers = Numbers::exact},
                      preset_field("nvlink", "A preset whose NVLinks to use if the file lists none."),
                      preset_field("like",
                                   "A preset that supplies what the file lacks: the GPU model, NVLinks, PCIe speeds, "
                                   "the rate of the NICs."),
                      nic_field("The link of NICs whose speed the file does not state."),
                      fabric_field()}};
}

Field nvidia_smi_topology() {
  return {.name = "nvidia_smi",
          .type = Type::object,
          .doc = "Nodes connected by a fabric. The matrix of `nvidia-smi topo -m` describes one node.",
          .members = {
              file_field("file", "The output of `nvidia-smi topo -m`.", true, R"("topo.txt")"),
              preset_field("like", "A preset that supplies the link speeds, which the matrix does not contain.", true),
              nodes_field("1"), nic_field("The link of the NICs. Default: as in the preset `like`."), fabric_field()}};
}

}  // namespace

Field topology_field() {
  const Field dimension{.name = "dimension",
                        .type = Type::whole,
                        .doc = "The number of GPUs along this dimension.",
                        .min = 1,
                        .max = most_ranks,
                        .varies = false};
  const Field torus{.name = "torus",
                    .type = Type::object,
                    .doc = "A torus with any number of dimensions. Ranks are numbered along the last dimension first.",
                    .members = {{.name = "dimensions",
                                 .type = Type::list,
                                 .doc = "The number of GPUs along each dimension. Use `sweep` to vary this key.",
                                 .required = true,
                                 .min = 1,
                                 .max = 16,
                                 .examples = {"[4, 4]", "[2, 2, 2]"},
                                 .members = {dimension},
                                 .into = &Torus::dimensions},
                                link_field("link", "The properties of every link.", stated_link(&Torus::link))},
                    .into = Member::alternative<TopologySpec, Torus>()};
  return {.name = "topology",
          .type = Type::variant,
          .doc = "The devices and the links between them.",
          .required = true,
          .examples = {R"({"kind": "star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1 us"}})"},
          .discriminator = "kind",
          .named_by = "kind",
          .variants = {
              plain_topology<Star>("star", "Every rank is connected to a port of one non-blocking switch.", most_ranks),
              plain_topology<Ring>(
                  "ring", "Every rank is connected to the next one; the last is connected to the first.", most_ranks),
              // Cables grow with the square of the ranks: 4096 ranks have 8 million.
              plain_topology<FullMesh>("full_mesh", "Every rank is connected to every other rank.", 4096), torus,
              graph_topology(), cluster_topology(), nccl_xml_topology(), nvidia_smi_topology()}};
}

}  // namespace ringsim::scenarios
