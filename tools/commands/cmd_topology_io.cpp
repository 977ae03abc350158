// ringsim topology import, export: machines and topologies from and to other programs' formats.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "scenarios/decoder/astra_import.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/foreign_format.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "topologies/formats/graph_export.hpp"
#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/nccl_xml_export.hpp"
#include "topologies/formats/nccl_xml_import.hpp"
#include "topologies/formats/smi_import.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/machine_text.hpp"
#include "topologies/machines/preset_names.hpp"
#include "validate/closed_forms/bound.hpp"

namespace ringsim::tools {

namespace {

struct ImportArguments {
  std::string file;
  std::string like;              ///< a preset, for a matrix of nvidia-smi
  std::string nvlink, nic, gpu;  ///< a preset, a rate, a model: what an XML file lacks
  std::string system;            ///< of ASTRA-sim
  std::string op = "all_reduce";
  Bytes bytes;
  std::vector<std::string> ignore;
  std::string output;

  void settle() const { expect_ending(output, {".json"}); }
};

void declare(Options& options, ImportArguments& import) {
  options
      .argument("FILE", import.file,
                "NCCL's topology XML, the output of `nvidia-smi topo -m`, or an ASTRA-sim network (network.yml)")
      .file = true;
  options.text(
      "--like", "NODE", import.like,
      "the preset that supplies what the file lacks: all speeds of `nvidia-smi topo -m`; in XML the GPU model, "
      "NVLinks, PCIe speeds and the rate of the NICs");
  options.text("--nvlink", "NODE", import.nvlink, "the preset that supplies the NVLinks, if the XML file has none");
  options.text("--nic", "RATE", import.nic,
               "the rate of the NICs, such as \"200 Gb/s\", if the file does not contain it; used as it is");
  options.text("--gpu", "MODEL", import.gpu, "the model of the GPUs, such as V100, if the XML file does not name it");
  options.file("--system", "FILE", import.system,
               "system.json of ASTRA-sim, which contains the algorithm and its costs");
  options
      .choice("--op",
              std::vector<std::pair<std::string, std::string>>{{"all_reduce", "all_reduce"},
                                                               {"reduce_scatter", "reduce_scatter"},
                                                               {"all_gather", "all_gather"},
                                                               {"all_to_all", "all_to_all"}},
              import.op, "ASTRA-sim networks: the collective of the scenario")
      .fallback = "all_reduce";
  options.size("--bytes", Bytes{1}, Bytes{std::int64_t{1} << 50}, import.bytes,
               "ASTRA-sim networks: the message size, which the files do not contain");
  options.texts("--ignore", "KEY", import.ignore,
                "ignore this key of ASTRA-sim files, even though it affects the result");
  options.output(import.output, "the machine, or the scenario of an ASTRA-sim network");
}

/// A file, once, as it may be a pipe. Refuses other programs' files as scenarios::read_text() does, but for those that
/// are `wanted`, by how foreign_format() names them.
std::string text_of(const std::string& path, const std::string& what, std::string_view wanted) {
  std::string text;
  const auto refuse = [&] {
    const std::string_view beginning = std::string_view(text).substr(0, recognized_bytes);
    const auto format = foreign_format(beginning);
    if (format && !format->name.starts_with(wanted)) refuse_foreign_format(beginning, path, what);
  };
  scenarios::read_pieces(path, what, [&](std::string_view piece) {
    text += piece;
    if (text.size() <= scenarios::most_bytes) return;
    refuse();
    throw InputError(
        path, fmt::format("expected {} of at most {} MiB, found a larger one", what, scenarios::most_bytes >> 20));
  });
  refuse();
  return text;
}

/// The scenario that ASTRA-sim's files become.
scenarios::ImportedScenario import_astra_files(const std::string& text, const ImportArguments& arguments) {
  for (const auto& [name, value] : {std::pair{"--like", arguments.like},
                                    {"--nvlink", arguments.nvlink},
                                    {"--nic", arguments.nic},
                                    {"--gpu", arguments.gpu}})
    if (!value.empty())
      throw UsageError(name, "expected this option only without an ASTRA-sim network, found it with " + arguments.file,
                       "leave it out");
  if (arguments.bytes.count == 0)
    throw UsageError("--bytes", "expected a size, which ASTRA-sim files do not contain, found none", "--bytes 64MiB");
  std::optional<scenarios::AstraFile> system;
  if (!arguments.system.empty())
    system = scenarios::AstraFile{text_of(arguments.system, "system.json of ASTRA-sim", "an ASTRA-sim system"),
                                  arguments.system};
  return scenarios::import_astra({text, arguments.file}, system,
                                 {.op = arguments.op, .bytes = arguments.bytes, .ignore = arguments.ignore});
}

void refuse_options_of_astra(const ImportArguments& arguments) {
  for (const auto& [name, is_given] : {std::pair{"--system", !arguments.system.empty()},
                                       {"--op", arguments.op != "all_reduce"},
                                       {"--bytes", arguments.bytes.count != 0},
                                       {"--ignore", !arguments.ignore.empty()}})
    if (is_given)
      throw UsageError(name,
                       "expected this option only with an ASTRA-sim network (network.yml), found " + arguments.file,
                       "leave it out");
}

enum class TopologyFormat { nccl_xml, graphml, dot, machine };

struct ExportArguments {
  std::string scenario;
  std::vector<std::string> set;
  std::optional<TopologyFormat> said_to;
  TopologyFormat to = TopologyFormat::dot;  ///< `said_to`, or what the ending of `output` says
  bool bound = false;                       ///< marks the bottleneck of the collective
  bool without_dead_links = false;
  std::string output;

  bool is_machine() const { return to == TopologyFormat::machine || to == TopologyFormat::nccl_xml; }

  void settle() {
    using enum TopologyFormat;
    to = export_format(output, said_to,
                       {{".xml", nccl_xml}, {".graphml", graphml}, {".dot", dot}, {".gv", dot}, {".json", machine}},
                       "nccl-xml|graphml|dot|machine");
  }
};

void declare(Options& options, ExportArguments& export_) {
  options.scenario(export_.scenario, export_.set);
  options
      .choice<TopologyFormat>("--to",
                              {{"nccl-xml", TopologyFormat::nccl_xml},
                               {"graphml", TopologyFormat::graphml},
                               {"dot", TopologyFormat::dot},
                               {"machine", TopologyFormat::machine}},
                              export_.said_to, "nccl-xml and machine write the machine of the first node")
      .fallback = "taken from the extension of FILE.xml, FILE.graphml, FILE.dot or FILE.json";
  options.replaced("--format", "--to");
  options.flag("--bound", export_.bound, "mark the links that limit the collective; for dot and graphml");
  options.flag("--without-dead-links", export_.without_dead_links,
               "leave out links that faults take down at the start, in both directions, so that the file describes the "
               "machine as seen by a job that starts after the faults; for machine and nccl-xml");
  options.output(export_.output, "the topology");
}

bool is_xml(const std::string& text) {
  const std::size_t first =
      text.find_first_not_of(text.starts_with("\xEF\xBB\xBF") ? "\xEF\xBB\xBF \t\r\n" : " \t\r\n");
  return first != std::string::npos && text[first] == '<';
}

/// The preset that an option names.
Machine preset_of(const std::string& name) {
  if (const std::string note = preset_note(name); !note.empty()) warn(fmt::format("\"{}\" is {}", name, note));
  return node_preset(name);
}

/// What an option's value is refused with, named after the option.
template <class Parse>
auto option(const std::string& name, const std::string& value, Parse parse) {
  try {
    return parse(value);
  } catch (const InputError& error) {
    throw InputError(name, error.message(), error.hint());
  }
}

std::optional<LinkSpec> said_nic(const ImportArguments& arguments) {
  if (arguments.nic.empty()) return std::nullopt;
  LinkSpec nic = nccl::link(LinkKind::ethernet, option("--nic", arguments.nic, parse_bandwidth), "set with --nic");
  nic.kind = LinkKind::generic;  // the file's device class, or the preset, tells
  return nic;
}

Machine import_xml(const std::string& text, const ImportArguments& arguments) {
  NcclXmlOptions options;
  if (!arguments.like.empty()) options.like = option("--like", arguments.like, preset_of);
  if (!arguments.gpu.empty()) options.gpu = arguments.gpu;
  if (!arguments.nvlink.empty()) options.nvlink_from = option("--nvlink", arguments.nvlink, preset_of);
  options.nic = said_nic(arguments);
  return import_nccl_xml(text, arguments.file, options);
}

Machine import_matrix(const std::string& text, const ImportArguments& arguments) {
  for (const auto& [name, value] : {std::pair{"--nvlink", arguments.nvlink}, std::pair{"--gpu", arguments.gpu}}) {
    if (value.empty()) continue;
    throw InputError(name, "expected this option only for NCCL topology XML, found another file: " + arguments.file,
                     "to supply the speeds, which an nvidia-smi matrix does not contain, use --like PRESET");
  }
  if (arguments.like.empty()) {
    throw InputError(arguments.file, "expected NCCL topology XML, or --like for a matrix of `nvidia-smi topo -m`",
                     "--like names a preset that supplies the speeds, which the matrix does not contain; `ringsim list "
                     "nodes` lists all presets");
  }
  return import_nvidia_smi(text, arguments.file, option("--like", arguments.like, preset_of), said_nic(arguments));
}

/// The machine of the first node.
const Machine& machine_of(const Scenario& scenario) {
  if (const auto* cluster = std::get_if<Cluster>(&scenario.topology)) return *cluster->parts.front().machine;
  throw InputError(scenario.file + ": /topology/kind",
                   "expected a topology made of machines (cluster, nccl_xml, nvidia_smi), found another kind",
                   "--to graphml and --to dot support any topology");
}

/// The machine of the first node without the links that faults take down at the start. A NIC whose cable is down has no
/// port; a cable that is down one way is left out whole, because machine files have no one-way cables. Warns if some of
/// these links are on other nodes, or if there are none. Throws InputError if all are on other nodes.
Machine without_dead_links(const Scenario& scenario) {
  Machine machine = machine_of(scenario);
  const Topology topology = topology_without_kernels(scenario);
  constexpr std::uint32_t first_node = 0;
  int elsewhere = 0, dead = 0;
  const auto index_of = [&](NodeId id) {
    const auto has_name = [&](const Machine::Device& device) {
      return device.name == local_name(topology.node(id).name);
    };
    return static_cast<std::size_t>(std::find_if(machine.devices.begin(), machine.devices.end(), has_name) -
                                    machine.devices.begin());
  };
  const auto leave_out = [&](const Link& link) {
    const bool leaves = topology.node(link.from).host == first_node, enters = topology.node(link.to).host == first_node;
    if (!leaves && !enters) {
      ++elsewhere;
    } else if (leaves && enters) {
      const std::size_t from = index_of(link.from), to = index_of(link.to);
      std::erase_if(machine.cables, [&](const Machine::Cable& cable) {
        return (cable.from == from && cable.to == to) || (cable.from == to && cable.to == from);
      });
    } else {
      machine.devices.at(index_of(leaves ? link.from : link.to)).port.reset();
    }
    ++dead;
  };
  for (const LinkChange& change : faults_of(topology, scenario))
    if (change.to == LinkChange::To::down && change.at == SimTime{})
      for (const LinkId id : change.links) leave_out(topology.link(id));
  if (dead == 0) warn("--without-dead-links: it has no effect, because no fault takes a link down at the start");
  if (dead > 0 && elsewhere == dead)
    throw InputError(
        "--without-dead-links",
        fmt::format("expected a dead link on the first node, because only this node is written, found {} elsewhere",
                    dead),
        "the nodes of a cluster are identical in the file: to exclude a NIC of one node, use library.env.NCCL_IB_HCA, "
        "or apply the fault to node0");
  if (elsewhere > 0)
    warn(fmt::format(
        "--without-dead-links: {} of {} dead links are not links of the first node, whose machine is written",
        elsewhere, dead));
  return machine;
}

/// The header of topologies/formats/nccl_xml_export.hpp as far as this machine is concerned.
void say_what_is_lost(const Machine& machine) {
  const Machine back = import_nccl_xml(to_nccl_xml(machine), "export");
  std::string lost = "latencies and rates other than NCCL's own";
  if (back.host.peer_access != machine.host.peer_access)
    lost += fmt::format(", peer access up to {} ({} when read back)", to_string(machine.host.peer_access),
                        to_string(back.host.peer_access));
  if (back.host.gpudirect_cost != machine.host.gpudirect_cost)
    lost += fmt::format(", a cost of GPUDirect of {} ({} when read back)", machine.host.gpudirect_cost,
                        back.host.gpudirect_cost);
  const auto is_bridge = [](const Machine::Device& d) { return d.kind == NodeKind::host_bridge; };
  if (std::any_of(machine.devices.begin(), machine.devices.end(), is_bridge)) lost += ", host bridges";
  Warnings().say({"NCCL's XML cannot represent " + lost});
}

/// The links that set the bound of the scenario's collective, [link].
std::vector<bool> bottleneck_of(const Scenario& scenario, const Topology& topology) {
  expect_collective(scenario);
  std::vector<bool> marked(topology.n_links());
  for (const LinkId link : own_bound(scenario).cut) marked[link.value] = true;
  return marked;
}

std::string machine_as(const Machine& machine, TopologyFormat to) {
  if (to == TopologyFormat::machine) return to_machine_file(machine);
  say_what_is_lost(machine);
  return to_nccl_xml(machine);
}

std::string topology_as(const Scenario& scenario, const ExportArguments& arguments) {
  if (arguments.is_machine())
    return machine_as(arguments.without_dead_links ? without_dead_links(scenario) : machine_of(scenario), arguments.to);
  const Topology topology = while_saying("building the topology", [&] { return topology_without_kernels(scenario); });
  const std::vector<bool> marked = arguments.bound ? bottleneck_of(scenario, topology) : std::vector<bool>{};
  return arguments.to == TopologyFormat::dot ? to_dot(topology, marked) : to_graphml(topology, marked);
}

/// Faults of the scenario that the exported topology does not show.
void warn_of_lost_faults(const Scenario& scenario, const ExportArguments& arguments) {
  const auto is_dead = [](const FaultSpec& fault) {
    return fault.change.to == LinkChange::To::down && fault.change.at == SimTime{};
  };
  const auto n = std::count_if(scenario.faults.begin(), scenario.faults.end(), is_dead);
  if (arguments.without_dead_links && n == std::ssize(scenario.faults)) return;
  std::string text = "faults: the exported topology does not contain them";
  if (n > 0 && arguments.is_machine())
    text += arguments.without_dead_links ? ", except for the links that are down at the start"
                                         : "; --without-dead-links leaves out the links that are down at the start";
  warn(text);
}

int execute(const ImportArguments& arguments) {
  refuse_as_output(arguments.file, arguments.output);
  refuse_as_output(arguments.system, arguments.output);
  const std::string text = text_of(arguments.file, "NCCL's topology XML, or the output of `nvidia-smi topo -m`",
                                   "an ASTRA-sim network (network.yml)");
  if (!is_xml(text) && is_astra_network(text)) {
    const scenarios::ImportedScenario imported = import_astra_files(text, arguments);
    Warnings().say(imported.warnings);
    Output output(arguments.output);
    output.write(imported.text);
    output.finish();
    return good;
  }
  refuse_options_of_astra(arguments);
  const Machine machine = is_xml(text) ? import_xml(text, arguments) : import_matrix(text, arguments);
  Warnings warnings;
  warnings.say(machine.warnings);
  if (const std::string denied = without_gpudirect(machine); !denied.empty())
    warnings.say({fmt::format("{}: {}", arguments.file, what_denied_gpudirect_means(denied))});
  Output output(arguments.output);
  output.write(to_machine_file(machine));
  output.finish();
  return good;
}

int execute(const ExportArguments& arguments) {
  if (arguments.bound && arguments.is_machine())
    throw UsageError("--bound", "expected --to dot or --to graphml as well, found a machine format");
  if (arguments.without_dead_links && !arguments.is_machine())
    throw UsageError("--without-dead-links", "expected --to machine or --to nccl-xml as well, found another format");
  refuse_as_output(arguments.scenario, arguments.output);
  const ScenarioFile file = load_topology(arguments.scenario, arguments.set);
  std::optional<EndsAtOnce> nothing_to_lose(std::in_place);
  const Scenario scenario = first_point(file);
  if (!scenario.faults.empty()) warn_of_lost_faults(scenario, arguments);
  const std::string text = topology_as(scenario, arguments);
  nothing_to_lose.reset();
  Output output(arguments.output);
  output.write(text);
  output.finish();
  return good;
}

}  // namespace

Command topology_import_command() {
  return {.name = "topology import",
          .group = Group::look,
          .summary = "Import NCCL topology XML, `nvidia-smi topo -m` output or ASTRA-sim network.yml",
          .example = "ringsim topology import topo.xml --nvlink dgx-1v --nic \"100 Gb/s\" -o machine.json",
          .details =
              "Writes a machine file, or a scenario if FILE is an ASTRA-sim network. `ringsim list nodes` lists the "
              "presets.",
          .prepare = with<ImportArguments>(declare, execute)};
}

Command topology_export_command() {
  return {.name = "topology export",
          .group = Group::look,
          .summary = "Write the topology of a scenario for other programs",
          .example =
              "ringsim topology export scenarios/examples/machines/two-node-server.json \\\n"
              "    --to dot -o topology.dot",
          .details = "If the scenario has several points, the first is written; choose another with --set.",
          .prepare = with<ExportArguments>(declare, execute)};
}

}  // namespace ringsim::tools
