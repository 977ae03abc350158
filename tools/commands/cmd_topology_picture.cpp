// ringsim topology picture: devices and links as a picture.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/formats/own_files.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/pictures/drawn_marks.hpp"
#include "tools/pictures/picture_file.hpp"
#include "tools/pictures/topology_svg.hpp"
#include "tools/stop.hpp"
#include "validate/closed_forms/bound.hpp"

namespace ringsim::tools {

namespace {

struct TopologyPictureArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;  ///< if the scenario is a machine: how many, and what joins them
  bool bound = false;    ///< marks the bottleneck of the collective
  std::string output;
  bool force = false;
};

void declare(Options& options, TopologyPictureArguments& picture) {
  options.scenario(picture.scenario, picture.set);
  declare_nodes(options, picture.machine);
  options.flag("--bound", picture.bound, "mark the links that limit the collective, with an explanation");
  options.picture_output(picture.output, picture.force);
}

int execute(const TopologyPictureArguments& arguments) {
  refuse_as_output(arguments.scenario, arguments.output);
  refuse_to_replace(arguments.output, arguments.force);
  const ScenarioFile file = load_topology(arguments.scenario, arguments.set, arguments.machine);
  const Scenario scenario = first_point(file);
  std::optional<EndsAtOnce> nothing_to_lose(std::in_place);
  const Topology topology = while_saying("building the topology", [&] { return topology_without_kernels(scenario); });
  const std::string name = file.name().empty() ? "topology" : file.name();
  std::vector<DrawnMark> marks = drawn_faults(topology, scenario);
  if (arguments.bound) {
    expect_collective(scenario);
    const Bound bound = while_saying("finding the bound", [&] { return own_bound(scenario); });
    marks.push_back(drawn_bottleneck(scenario.main().request.op, bound));
  }
  const std::string picture =
      while_saying("drawing", [&] { return topology_svg(topology, name, marks, nullptr, /*alone=*/true); });
  nothing_to_lose.reset();
  write_picture(arguments.output, picture);
  return good;
}

}  // namespace

Command topology_picture_command() {
  return {.name = "topology picture",
          .group = Group::look,
          .summary = "Draw devices and links (SVG, PNG)",
          .example =
              "ringsim topology picture scenarios/examples/machines/two-node-server.json \\\n"
              "    -o topology.svg",
          .details =
              "At most four identical nodes are drawn, and at most eight to sixteen identical devices per row; a note "
              "states how many are missing. Faulty links and devices are drawn and marked if there is room. With "
              "--bound, the links and devices that limit every algorithm are also drawn and marked. To draw everything "
              "with Graphviz, use `ringsim topology export --to dot`. If the scenario has several points, the first is "
              "drawn; choose another with --set.",
          .prepare = with<TopologyPictureArguments>(declare, execute)};
}

}  // namespace ringsim::tools
