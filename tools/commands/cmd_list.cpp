// ringsim list, ringsim schema: what there is.
#include <fmt/format.h>

#include "algorithms/catalog.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/run/protocol.hpp"
#include "tools/commands/commands.hpp"
#include "tools/output/output.hpp"
#include "topologies/catalog.hpp"
#include "validate/results/columns.hpp"
#include "validate/score/algorithms_on_machines.hpp"

namespace ringsim::tools {

namespace {

std::string algorithms_text() {
  Table table({"algorithm", "collectives", "parameters", "what it does", "source"});
  for (const Algorithm& algorithm : algorithms()) {
    std::string ops, parameters;
    for (const CollectiveOp op : algorithm.ops) ops += fmt::format("{}{}", ops.empty() ? "" : ", ", to_string(op));
    for (const Parameter& parameter : algorithm.parameters) {
      parameters += fmt::format("{}{}", parameters.empty() ? "" : ", ", parameter.name);
      for (std::size_t i = 0; i < parameter.choices.size(); ++i)
        parameters += fmt::format("{}{}", i == 0 ? "=" : "|", parameter.choices[i]);
    }
    table.add({algorithm.name, ops, parameters, algorithm.summary, algorithm.source});
  }
  return table.text();
}

std::string entries_text(const char* head, const std::vector<CatalogEntry>& entries) {
  Table table({head, "what it is"});
  for (const CatalogEntry& entry : entries) table.add({entry.name, entry.summary});
  return table.text();
}

std::string models_text() {
  Table table({"model", "what is shared"});
  table.add({"fair", "every link, max-min fairly (default)"});
  table.add({"ideal", "only a path's first and last link; whatever lies between has room for all"});
  table.add({"packet", "every link, packet by packet: taking turns, with finite buffers and credits or pause frames"});
  Table routing({"routing", "which of several equally short ways data takes"});
  routing.add({"static", "tables in every switch: by destination in fabrics (D-mod-k), entries of your own (default)"});
  routing.add({"ecmp", "a seeded hash for each connection"});
  routing.add({"flow_spray", "message after message in turn"});
  routing.add({"packet_spray", "all ways at once, divided equally at every switch"});
  Table kinds({"protocol", "how a message is sent"});
  for (const Protocol& protocol : protocols()) kinds.add({std::string(protocol.name), std::string(protocol.doc)});
  return table.text() + "\n" + routing.text() + "\n" + kinds.text();
}

}  // namespace

int list_command(const std::string& what) {
  Output output;
  const bool all = what.empty();
  if (all || what == "algorithms") output.write(algorithms_text() + (all ? "\n" : ""));
  if (all || what == "topologies") {
    output.write(entries_text("topology", topology_catalog()) + "\n" +
                 entries_text("fabric of a cluster", fabric_catalog()) + (all ? "\n" : ""));
  }
  if (all || what == "nodes") output.write(entries_text("node", node_catalog()) + (all ? "\n" : ""));
  if (all || what == "models") output.write(models_text());
  if (what == "comparison") output.write(to_markdown(algorithms_on_machines()));
  if (what == "columns") output.write(columns_page());
  output.finish();
  return good;
}

int schema_command() {
  Output output;
  output.write(scenario_schema());
  output.finish();
  return good;
}

}  // namespace ringsim::tools
