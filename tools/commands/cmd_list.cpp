// ringsim list, ringsim schema: what there is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/training/regimes.hpp"
#include "scenarios/fields/workload_files.hpp"
#include "scenarios/scenario.hpp"
#include "sim/run/protocol.hpp"
#include "sim/text/json.hpp"
#include "sim/text/wrap.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "topologies/catalog.hpp"
#include "topologies/machines/preset_names.hpp"
#include "topologies/nccl/nccl_costs.hpp"
#include "topologies/rccl/rccl_library.hpp"
#include "validate/analysis/algorithms_on_machines.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/columns.hpp"

namespace ringsim::tools {

namespace {

enum class What {
  lists,
  all,
  algorithms,
  topologies,
  nodes,
  models,
  regimes,
  workloads,
  comparison,
  columns,
  costs,
  keys
};
enum class ListFormat { text, json };

struct ListArguments {
  What what = What::lists;
  ListFormat format = ListFormat::text;
};

void declare(Options& options, ListArguments& list) {
  Option& what = options.choice<What>(
      "WHAT",
      {{"algorithms", What::algorithms},
       {"topologies", What::topologies},
       {"nodes", What::nodes},
       {"models", What::models},
       {"regimes", What::regimes},
       {"workloads", What::workloads},
       {"comparison", What::comparison},
       {"columns", What::columns},
       {"costs", What::costs},
       {"keys", What::keys},
       {"all", What::all}},
      list.what,
      "one of algorithms, topologies, nodes, models, regimes, workloads, comparison, columns, costs, keys, all");
  what.aliases = {
      {"machines", "nodes"},        {"machine", "nodes"},        {"gpus", "nodes"},       {"gpu", "nodes"},
      {"clusters", "nodes"},        {"presets", "nodes"},        {"servers", "nodes"},    {"node", "nodes"},
      {"instances", "nodes"},       {"algorithm", "algorithms"}, {"algos", "algorithms"}, {"fabrics", "topologies"},
      {"topology", "topologies"},   {"networks", "models"},      {"protocols", "models"}, {"routings", "models"},
      {"training", "regimes"},      {"regime", "regimes"},       {"fields", "keys"},      {"key", "keys"},
      {"settings", "keys"},         {"workload", "workloads"},   {"cards", "workloads"},  {"dnns", "workloads"},
      {"transformers", "workloads"}};
  what.required = false;
  what.fallback = "the available lists";
  options
      .choice<ListFormat>("--format", {{"text", ListFormat::text}, {"json", ListFormat::json}}, list.format,
                          "the format of the list")
      .fallback = "text";
}

/// One list: its key in JSON, its heading, and entries that have a "name", a "summary" and perhaps more.
struct Listed {
  std::string key, heading;
  std::vector<Json> entries;
};

Json entry(std::string_view name, std::string_view summary) { return {{"name", name}, {"summary", summary}}; }

Listed listed(std::string key, std::string heading, const std::vector<CatalogEntry>& catalog) {
  Listed list{std::move(key), std::move(heading), {}};
  for (const CatalogEntry& each : catalog) list.entries.push_back(entry(each.name, each.summary));
  return list;
}

/// Machines, with their other names.
Listed node_list() {
  Listed list{"nodes", "Nodes", {}};
  for (const PresetNames& preset : preset_names()) {
    Json one = entry(preset.name, preset.summary);
    one["gpu"] = preset.gpu;
    one["also"] = preset.also;
    one["taken_for"] = preset.taken_for;
    one["near"] = Json::array();
    for (const PresetNames::Near& near : preset.near)
      one["near"].push_back({{"name", near.name}, {"differs", near.differs}});
    list.entries.push_back(std::move(one));
  }
  return list;
}

Listed algorithm_list() {
  Listed list{"algorithms", "Algorithms", {}};
  for (const Algorithm& algorithm : algorithms()) {
    Json one = entry(algorithm.name, algorithm.summary);
    one["collectives"] = Json::array();
    for (const CollectiveOp op : algorithm.ops) one["collectives"].push_back(to_string(op));
    one["parameters"] = Json::array();
    for (const Parameter& parameter : algorithm.parameters) {
      Json setting = entry(parameter.name, parameter.doc);
      if (!parameter.choices.empty()) setting["choices"] = parameter.choices;
      one["parameters"].push_back(std::move(setting));
    }
    one["source"] = algorithm.source;
    list.entries.push_back(std::move(one));
  }
  return list;
}

std::vector<Listed> model_lists() {
  Listed kinds{"protocols", "Protocols: how messages are sent", {}};
  for (const Protocol& protocol : protocols()) kinds.entries.push_back(entry(protocol.name, protocol.doc));
  return {{"models",
           "Models: which links messages share",
           {entry("fair", "every link, with max-min fairness (default)"),
            entry("ideal", "only the first and last link of a path; other links never limit messages"),
            entry("packet", "every link, packet by packet, with finite buffers and credits or pause frames")}},
          {"routings",
           "Routings: how to choose among equally short paths",
           {entry("static", "routing tables in every switch: by destination in fabrics (D-mod-k), or your own entries"),
            entry("ecmp", "a seeded hash for each connection"),
            entry("flow_spray", "successive messages take the paths in turn"),
            entry("packet_spray", "every message uses all paths, divided equally at every switch"),
            entry("auto",
                  "depends on the NICs: static for InfiniBand, ecmp for RoCE and TCP, packet_spray for EFA and "
                  "Slingshot; static without NICs (default)")}},
          std::move(kinds)};
}

Listed regime_list() {
  Listed list{"regimes", "Regimes: how GPUs train together", {}};
  for (const Regime& regime : regimes()) {
    Json one = entry(regime.name, regime.summary);
    one["travels"] = regime.travels;
    one["computes"] = regime.computes;
    one["source"] = regime.source;
    list.entries.push_back(std::move(one));
  }
  return list;
}

/// Models to train or to serve: described by their layers, or cards of transformers.
Listed workload_list() {
  Listed list{"workloads", "Workloads: models, for training.workload and inference.workload", {}};
  for (const auto& [name, text] : scenarios::workload_files()) {
    const Json file = parse_json(text, name);
    std::string summary;
    if (file.contains("transformer")) {
      const Json& card = file["transformer"];
      summary = fmt::format("transformer: {} layers, hidden size {}, sequence {}", card["layers"].get<std::int64_t>(),
                            card["hidden"].get<std::int64_t>(), file["sequence"].get<std::int64_t>());
    } else {
      std::int64_t layers = 0, parameters = 0;
      for (const Json& layer : file["layers"]) {
        const std::int64_t times = layer.value("times", std::int64_t{1});
        layers += times;
        for (const Json& tensor : layer["tensors"]) parameters += times * tensor.get<std::int64_t>();
      }
      summary = fmt::format("{} layers, {:.1f} M parameters; sample: {}", layers, static_cast<double>(parameters) / 1e6,
                            file["sample"].get<std::string>());
    }
    Json one = entry(name, summary);
    one["source"] = file["source"];
    list.entries.push_back(std::move(one));
  }
  return list;
}

Listed column_list() {
  Listed list{"columns", "Columns of a result", {}};
  for (const Column& column : result_columns()) {
    Json one = entry(column.name, column.meaning);
    one["unit"] = column.unit;
    list.entries.push_back(std::move(one));
  }
  return list;
}

/// The keys of scenarios.
Listed key_list() {
  Listed list{"keys", "Keys of a scenario, as paths for --set; 0 stands for the index of a list element", {}};
  for (const ScenarioKey& key : scenario_keys()) {
    Json one = entry(key.path, key.doc);
    one["expects"] = key.expects;
    one["default"] = key.fallback.empty() ? Json() : Json(key.fallback);
    one["kinds"] = key.kinds;
    list.entries.push_back(std::move(one));
  }
  return list;
}

Listed cost_list() {
  Listed list{"costs", "Costs of NCCL's kernels", {}};
  for (const nccl::CostLine& line : nccl::cost_table()) {
    Json one = entry(line.what, line.value);
    one["generation"] = line.generation;
    one["unit"] = line.unit;
    one["fitted_to"] = line.fitted_to;
    for (const auto& [name, value] : line.constants) one["constants"][name] = value;
    list.entries.push_back(std::move(one));
  }
  return list;
}

/// The costs as a page.
std::string costs_page() {
  std::string text =
      "# Costs of NCCL's kernels\n\n"
      "`ringsim list costs` prints this page, and a test checks that it is up to date. With the key `library`, ringsim "
      "adds these\n"
      "costs to the times of the links ([library](../guide/nccl.md)). They are fitted to published tables, by protocol "
      "and GPU\n"
      "generation, and never to a single table. A machine can state only its own launch time (`devices.gpu.launch`). "
      "Three values\n"
      "separated by slashes are for LL / LL128 / Simple. The cost of a step is `fixed + full`, where the second part "
      "grows with\n"
      "the chunk size of a channel.\n\n"
      "| GPUs | cost | value | unit | fitted to |\n| --- | --- | --- | --- | --- |\n";
  for (const nccl::CostLine& line : nccl::cost_table())
    text +=
        fmt::format("| {} | {} | {} | {} | {} |\n", line.generation, line.what, line.value, line.unit, line.fitted_to);
  text +=
      "\n## Costs of RCCL's kernels\n\nThese costs are for gfx942 ([guide](../guide/rccl.md)). Only the last one is "
      "fitted, to one table.\n\n"
      "| cost | value | source |\n| --- | --- | --- |\n";
  for (const rccl::CostLine& line : rccl::cost_lines())
    text += fmt::format("| {} | {} | {} |\n", line.what, line.value, line.from);
  return text;
}

std::vector<Listed> lists_of(What what) {
  std::vector<Listed> lists;
  const auto wanted = [&](What one) { return what == What::all || what == What::lists || what == one; };
  if (wanted(What::algorithms)) lists.push_back(algorithm_list());
  if (wanted(What::topologies)) {
    lists.push_back(listed("topologies", "Topologies", topology_catalog()));
    lists.push_back(listed("fabrics", "Fabrics of a cluster", fabric_catalog()));
  }
  if (wanted(What::nodes)) lists.push_back(node_list());
  if (wanted(What::models))
    for (Listed& list : model_lists()) lists.push_back(std::move(list));
  if (wanted(What::regimes)) lists.push_back(regime_list());
  if (wanted(What::workloads)) lists.push_back(workload_list());
  if (what == What::columns) lists.push_back(column_list());
  if (what == What::costs) lists.push_back(cost_list());
  if (what == What::keys) lists.push_back(key_list());
  return lists;
}

/// "also: p5.48xlarge", "taken for: h100".
std::string names_of_machine(const Json& one) {
  std::string text;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) text += fmt::format("\n{}: {}", what, fmt::join(names, ", "));
  };
  add("also", one["also"].get<std::vector<std::string>>());
  add("taken for", one["taken_for"].get<std::vector<std::string>>());
  std::vector<std::string> near;
  for (const Json& each : one["near"]) near.push_back(each["name"].get<std::string>());
  add("no presets, but near", near);
  return text;
}

/// The lists that there are, for `ringsim list` alone.
std::string list_of_lists() {
  const auto n = [](const auto& all) { return all.size(); };
  const std::vector<Definition> lines{
      {"algorithms", fmt::format("{} collective algorithms, with parameters and sources", n(algorithms()))},
      {"topologies", fmt::format("{} kinds of topology, and {} fabrics that connect nodes", n(topology_catalog()),
                                 n(fabric_catalog()))},
      {"nodes", fmt::format("{} machines, with aliases such as cloud instance types and GPU names", n(preset_names()))},
      {"models", fmt::format("the network models, the routings and {} protocols", n(protocols()))},
      {"regimes", fmt::format("{} ways to train on several GPUs", n(regimes()))},
      {"workloads", fmt::format("{} models to train or to serve", n(scenarios::workload_files()))},
      {"comparison", "all algorithms compared on the same five machines, as Markdown"},
      {"columns", fmt::format("the {} columns of results, as Markdown", n(result_columns()))},
      {"costs", "the costs of NCCL's kernels, as Markdown"},
      {"keys", fmt::format("{} scenario keys, as paths for --set", n(scenario_keys()))},
      {"all", "the first six lists, one after another"}};
  return "Lists; print one with `ringsim list NAME`\n" + definitions(lines, width_of(lines));
}

/// "collectives: all_reduce, broadcast", "parameters: fold=naive|rabenseifner".
std::string details_of(const Json& one) {
  if (one.contains("also")) return names_of_machine(one);
  if (one.contains("expects")) {
    std::string text = "\n" + one["expects"].get<std::string>();
    if (one["default"].is_string()) text += fmt::format("; default: {}", one["default"].get<std::string>());
    if (!one["kinds"].empty())
      text += fmt::format("\nof {}", fmt::join(one["kinds"].get<std::vector<std::string>>(), ", "));
    return text;
  }
  if (one.contains("travels"))
    return fmt::format("\ndata sent: {}\ncomputes: {}\nsource: {}", one["travels"].get<std::string>(),
                       one["computes"].get<std::string>(), one["source"].get<std::string>());
  if (!one.contains("source")) return "";
  if (!one.contains("collectives")) return fmt::format("\nsource: {}", one["source"].get<std::string>());
  std::vector<std::string> parameters;
  for (const Json& parameter : one["parameters"]) {
    std::string text = parameter["name"];
    if (parameter.contains("choices"))
      text += fmt::format("={}", fmt::join(parameter["choices"].get<std::vector<std::string>>(), "|"));
    parameters.push_back(std::move(text));
  }
  std::string text =
      fmt::format("\ncollectives: {}", fmt::join(one["collectives"].get<std::vector<std::string>>(), ", "));
  if (!parameters.empty()) text += fmt::format("\nparameters: {}", fmt::join(parameters, ", "));
  return text + fmt::format("\nsource: {}", one["source"].get<std::string>());
}

std::string text_of(const Listed& list) {
  std::vector<Definition> lines;
  for (const Json& one : list.entries)
    lines.push_back({one["name"].get<std::string>(), one["summary"].get<std::string>() + details_of(one)});
  return list.heading + '\n' + definitions(lines, width_of(lines));
}

int execute(const ListArguments& arguments) {
  Output output;
  if (arguments.what == What::comparison) {
    if (arguments.format == ListFormat::json)
      throw UsageError("--format", "expected the format text for the comparison, found \"json\"",
                       "`ringsim run --format json` prints the numbers of a scenario");
    output.write(to_markdown(algorithms_on_machines()));
  } else if (arguments.what == What::columns && arguments.format == ListFormat::text) {
    output.write(columns_page());
  } else if (arguments.what == What::costs && arguments.format == ListFormat::text) {
    output.write(costs_page());
  } else if (arguments.what == What::lists && arguments.format == ListFormat::text) {
    output.write(list_of_lists());
  } else if (arguments.format == ListFormat::json) {
    Json document = Json::object();
    for (Listed& list : lists_of(arguments.what)) document[list.key] = std::move(list.entries);
    output.write(json_text(document, 2) + '\n');
  } else {
    std::string text;
    for (const Listed& list : lists_of(arguments.what)) text += (text.empty() ? "" : "\n") + text_of(list);
    output.write(text);
  }
  output.finish();
  return good;
}

struct SchemaArguments {};

void declare(Options&, SchemaArguments&) {}

int execute(const SchemaArguments&) {
  Output output;
  output.write(scenario_schema());
  output.finish();
  return good;
}

}  // namespace

Command list_command() {
  return {.name = "list",
          .group = Group::look,
          .summary = "List algorithms, topologies, nodes, models, regimes, workloads, scenario keys",
          .example = "ringsim list algorithms",
          .details =
              "Without WHAT, prints the names of the lists, or with --format json all lists except comparison, "
              "columns, costs and keys. machines, gpus and clusters are aliases of nodes.",
          .prepare = with<ListArguments>(declare, execute)};
}

Command schema_command() {
  return {.name = "schema",
          .group = Group::look,
          .summary = "Print the JSON Schema of scenarios",
          .example = "ringsim schema > scenario.schema.json",
          .details = "",
          .prepare = with<SchemaArguments>(declare, execute)};
}

}  // namespace ringsim::tools
