#include "scenarios/fields/fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "algorithms/catalog.hpp"
#include "algorithms/formats/schedule_file.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/spelling.hpp"
#include "topologies/machines/preset_names.hpp"

namespace ringsim::scenarios {

namespace {

Field parameter_field(const Parameter& parameter) {
  Field field{.name = parameter.name, .type = Type::text, .doc = parameter.doc};
  if (!parameter.choices.empty()) {
    field.choices = parameter.choices;
    field.fallback = parameter.choices.front();
  } else if (!parameter.example.empty()) {
    field.min = 1;
    field.examples = {'"' + parameter.example + '"'};
  } else {
    field.type = Type::whole;
    field.min = parameter.min;
    field.max = parameter.max;
    // A default below the bounds means "not set": the key is then absent, and a scenario's hash does not change when an
    // algorithm gets another such parameter.
    if (parameter.fallback >= parameter.min) field.fallback = std::to_string(parameter.fallback);
  }
  return field;
}

/// Libraries, which choose algorithms themselves.
std::vector<KnownName> libraries() {
  std::vector<KnownName> names;
  for (const char* name : {"nccl", "rccl"})
    names.push_back({name, "which is a library, not an algorithm",
                     fmt::format("write \"library\": \"{0}\" at the top level and leave out \"algorithm\" (--set "
                                 "library={0} --set collective.algorithm=null)",
                                 name)});
  return names;
}

Field algorithm_field() {
  Field field{
      .name = "algorithm",
      .type = Type::variant,
      .doc =
          "The algorithm: a name, an object with the name and its parameters, or an object that names a schedule file.",
      .required = true,
      .known_names = libraries(),
      .suggest = algorithm_hint,
      .list = "algorithms",
      .examples = {R"("ring")", R"(["ring", {"name": "halving_doubling", "fold": "naive"}])",
                   R"({"file": "allreduce.xml"})"},
      .discriminator = "name",
      .named_by = "name",
      .words = {"algo"},
      .foreign = {{"file",
                   "to use a file instead of a name, write {\"file\": \"mine.json\"}, or on the command line --set "
                   "'collective.algorithm={\"file\": \"mine.json\"}'"}}};
  for (const Algorithm& algorithm : algorithms()) {
    Field variant{.name = algorithm.name, .type = Type::object, .doc = algorithm.summary};
    for (const Parameter& parameter : algorithm.parameters) variant.members.push_back(parameter_field(parameter));
    field.variants.push_back(std::move(variant));
  }
  const Algorithm& file = file_algorithm();
  field.variants.push_back(
      {.name = file.name,
       .type = Type::object,
       .doc = file.summary,
       .members = {{.name = "file",
                    .type = Type::file,
                    .doc = "A schedule file: MSCCL XML, MSCCL++ JSON, ringsim JSON or GOAL. The format is detected "
                           "from the content.",
                    .required = true,
                    .min = 1,
                    .examples = {R"("allreduce.xml")"}},
                   {.name = "sends",
                    .type = Type::text,
                    .doc = "How to run the sends of a rank that GOAL leaves unordered. at_once (default): all "
                           "together, sharing the rank's port; in_turn: one after another, as in LogGOPSim.",
                    .choices = {"at_once", "in_turn"}}},
       .implied_by = "file"});
  return field;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const CollectiveOp op : collective_ops()) names.emplace_back(to_string(op));
  return names;
}

/// As MPI and NCCL spell them: "allreduce".
std::vector<Alias> op_aliases() {
  std::vector<Alias> aliases;
  for (const std::string& name : op_names()) {
    std::string alias = name;
    alias.erase(std::remove(alias.begin(), alias.end(), '_'), alias.end());
    if (alias != name) aliases.push_back({std::move(alias), name, ""});
  }
  return aliases;
}

Field gpu_field() {
  return {.name = "gpu",
          .type = Type::text,
          .doc = "Name of a GPU.",
          .min = 1,
          .examples = {R"("node0.gpu0")"},
          .varies = false};
}

/// Needed where no library decides, which the meaning of a scenario checks.
Field algorithm_of_collective() {
  Field field = algorithm_field();
  field.required = false;
  return field;
}

Field collective_field() {
  const Field gpu = gpu_field();
  return {
      .name = "collective",
      .type = Type::object,
      .doc = "The collective that the GPUs run.",
      .members =
          {{.name = "op",
            .type = Type::text,
            .doc = "The operation, named as in MPI. send_recv: rank r sends to r + 1; pairs: rank r sends to r + n/2.",
            .required = true,
            .choices = op_names(),
            .aliases = op_aliases(),
            .words = {"operation"}},
           algorithm_of_collective(),
           {.name = "bytes",
            .type = Type::size,
            .doc = "The message size, as nccl-tests counts it for this operation; 0 B for a barrier.",
            .required = true,
            .examples = {R"("64 MiB")", R"({"from": "1 MiB", "to": "1 GiB", "factor": 4})"},
            .words = {"size", "message_size", "msg_size", "nbytes", "message_bytes"}},
           {.name = "root",
            .type = Type::whole,
            .doc = "The root of the operation, which is also the root of the tree or the parameter server.",
            .fallback = "0",
            .max = most_ranks - 1},
           {.name = "ranks",
            .type = Type::list,
            .doc = "Names of the participating GPUs, in rank order. Default: all.",
            .min = 1,
            .examples = {R"(["gpu0", "gpu2"])"},
            .members = {gpu},
            .unique = true},
           {.name = "groups",
            .type = Type::list,
            .doc =
                "Groups of equal size that run the collective at the same time, each given as a list of GPU names in "
                "rank order. `bytes` and the bandwidths apply to one group; the time is that of the slowest group.",
            .min = 1,
            .examples = {R"([["node0.gpu0", "node1.gpu0"], ["node0.gpu1", "node1.gpu1"]])"},
            .members = {{.name = "group",
                         .type = Type::list,
                         .doc = "Names of the GPUs in the group.",
                         .min = 1,
                         .members = {gpu},
                         .unique = true}}},
           {.name = "split",
            .type = Type::text,
            .doc = "Groups defined by a rule, in the syntax of NCCL_TESTS_SPLIT in nccl-tests: AND, OR, MOD or DIV, "
                   "followed by a number. Ranks with the same result form a group. DIV 8: ranks 0 to 7, ranks 8 to 15 "
                   "...; MOD 8: ranks 0, 8, 16 ...",
            .min = 1,
            .examples = {R"("DIV 8")", R"(["DIV 8", "MOD 8"])"}},
           {.name = "order",
            .type = Type::text,
            .doc = "The order of the ranks. given: as in `ranks`; shuffled: a random order determined by `seed`; "
                   "best_ring: the ring whose slowest hop is fastest; channel_rings: a separate order for each of "
                   "`transport.channels`, chosen to use all links and NICs, as NCCL does. The search for both takes "
                   "faults at the start of the run into account.",
            .fallback = "given",
            .choices = {"given", "shuffled", "best_ring", "channel_rings"}},
           {.name = "seed", .type = Type::whole, .doc = "Random seed of the shuffled order.", .fallback = "0"},
           {.name = "both_ways",
            .type = Type::boolean,
            .doc = "With pairs, the second half of the ranks also sends.",
            .fallback = "false"},
           {.name = "servers_on",
            .type = Type::text,
            .doc = "Where separate servers run. Default: on extra ports of a star. cpu: on CPUs and in their memory; "
                   "on the first CPU of each node, then on the second.",
            .choices = {"cpu"}},
           {.name = "in_place",
            .type = Type::boolean,
            .doc = "True if the input and the result share one buffer. Default: as the algorithm is written, which is "
                   "in place except for all_to_all, pairs and send_recv."}},
      .one_of = {{"algorithm", "/library"}}};
}

Field make_scenario_field() {
  return {.name = "",
          .type = Type::object,
          .doc =
              "A ringsim scenario: a collective and the topology that it runs on. Give a list or a range instead of a "
              "value to vary it.",
          .members = {{.name = "$schema",
                       .type = Type::ignored,
                       .doc = "Ignored by ringsim; used by editors.",
                       .varies = false},
                      {.name = "version",
                       .type = Type::whole,
                       .doc = "The version of this format.",
                       .required = true,
                       .min = 1,
                       .max = 1,
                       .examples = {"1"},
                       .varies = false},
                      {.name = "name",
                       .type = Type::text,
                       .doc = "The scenario's name in results. Default: the file name without its extension.",
                       .min = 1,
                       .examples = {R"("two DGX-1 over InfiniBand")"},
                       .varies = false},
                      topology_field(),
                      collective_field(),
                      training_field(algorithm_field()),
                      inference_field(algorithm_field()),
                      trace_field(algorithm_field()),
                      library_field(transport_field().members),
                      harness_field(),
                      devices_field(),
                      transport_field(),
                      network_field(),
                      faults_field(),
                      disturbance_field(),
                      jobs_field(collective_field(), training_field(algorithm_field())),
                      calibration_field(),
                      {.name = "sweep",
                       .type = Type::sweep,
                       .doc = "Dotted paths, each with a list or range of values to try at that path. The first path "
                              "varies slowest, and all of them vary slower than lists elsewhere in the scenario.",
                       .examples = {R"({"topology.nodes": [2, 4, 8, 16]})"},
                       .varies = false},
                      {.name = "where",
                       .type = Type::list,
                       .doc = "Conditions on the values of a point, written with dotted paths. Points that violate a "
                              "condition are left out.",
                       .min = 1,
                       .examples = {R"(["topology.nodes * 8 <= 64", "collective.bytes >= 1 MiB"])"},
                       .members = {{.name = "condition",
                                    .type = Type::text,
                                    .doc = "Comparisons of values, combined with and, or and not.",
                                    .min = 1,
                                    .varies = false}},
                       .varies = false}},
          .one_of = {{"collective", "training", "inference", "trace"}},
          .varies = false,
          .foreign = {{"ringsim_schedule",
                       "this file is a schedule: `ringsim schedule check FILE` checks it; in a scenario, use it as the "
                       "algorithm: {\"file\": \"FILE\"}"}}};
}

}  // namespace

const Field& scenario_field() {
  static const Field field = make_scenario_field();
  return field;
}

bool is_scalar(Type type) {
  return type == Type::whole || type == Type::size || type == Type::rate || type == Type::time;
}

const Field& chosen_variant(const Field& variants, const nlohmann::json& canonical) {
  const Field* row = find(variants.variants, canonical[variants.discriminator].get_ref<const std::string&>());
  ensure(row != nullptr, "a canonical value names one of the variants");
  return *row;
}

const Field& field_at(std::string_view path) {
  const Field* at = &scenario_field();
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    at = find(at->members, name);
    ensure(at != nullptr, "a row of the table is asked for by its path");
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return *at;
}

std::vector<std::string> names(const std::vector<Field>& fields) {
  std::vector<std::string> out;
  for (const Field& field : fields) out.push_back(field.name);
  return out;
}

const Field* find(const std::vector<Field>& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

bool can_be_left_out(const Field& field) {
  return !field.required && field.type == Type::object &&
         std::all_of(field.members.begin(), field.members.end(), [](const Field& member) { return !member.required; });
}

namespace {
bool same_name(const Field& field, const std::string& name, const std::string& text) {
  return field.loose ? plain_machine_name(name) == plain_machine_name(text) : name == text;
}
}  // namespace

const Alias* alias_of(const Field& field, const std::string& text) {
  const auto found = std::find_if(field.aliases.begin(), field.aliases.end(),
                                  [&](const Alias& each) { return same_name(field, each.name, text); });
  return found == field.aliases.end() ? nullptr : &*found;
}

const std::string* chosen(const Field& field, const std::string& text) {
  const Alias* alias = alias_of(field, text);
  const std::string& name = alias == nullptr ? text : alias->choice;
  const auto found = std::find_if(field.choices.begin(), field.choices.end(),
                                  [&](const std::string& choice) { return same_name(field, choice, name); });
  return found == field.choices.end() ? nullptr : &*found;
}

namespace {
/// The fields with aliases, each name of a key once.
void collect_named(const Field& field, std::vector<const Field*>& found) {
  const bool known =
      std::any_of(found.begin(), found.end(), [&](const Field* each) { return each->name == field.name; });
  if (!field.aliases.empty() && !known) found.push_back(&field);
  for (const Field& member : field.members) collect_named(member, found);
  for (const Field& variant : field.variants) collect_named(variant, found);
}
}  // namespace

std::string algorithm_hint(std::string_view text) {
  if (text.find_first_of("./") != std::string_view::npos)
    return fmt::format(R"(for a schedule file, write {{"file": "{0}"}}, or on the command line )"
                       R"(--set 'collective.algorithm={{"file": "{0}"}}')",
                       text);
  for (const char* nccl : {"Tree", "NVLS", "NVLSTree"})
    if (same_letters(nccl, text))
      return fmt::format(
          "{0} is an NCCL algorithm; to force it, remove the algorithm and set \"library\": {{\"name\": \"nccl\", "
          "\"env\": {{\"NCCL_ALGO\": \"{0}\"}}}} (--set collective.algorithm=null --set library=nccl --set "
          "library.env.NCCL_ALGO={0})",
          nccl);
  for (const char* nccl : {"CollnetDirect", "CollnetChain"})
    if (same_letters(nccl, text))
      return fmt::format(
          "{} is an NCCL algorithm that is not modeled; in_switch, without a library, estimates what reducing in "
          "switches gains",
          nccl);
  std::vector<std::string> known;
  for (const Algorithm& each : algorithms()) known.push_back(each.name);
  return did_you_mean(text, known);
}

std::string as_choice(const std::string& text) {
  static const std::vector<const Field*> named = [] {
    std::vector<const Field*> found;
    collect_named(scenario_field(), found);
    return found;
  }();
  for (const Field* field : named)
    if (const std::string* choice = chosen(*field, text)) return *choice;
  return text;
}

bool needs_no_key(const Field& variant) {
  return std::none_of(variant.members.begin(), variant.members.end(),
                      [](const Field& member) { return member.required; });
}

bool takes_a_name(const Field& field) {
  if (field.named_by.empty()) return false;
  if (field.type == Type::object) return needs_no_key(field);
  return std::any_of(field.variants.begin(), field.variants.end(), needs_no_key);
}

std::string example_of(const Field& field) {
  if (!field.examples.empty()) return field.examples.front();
  if (!field.choices.empty()) return '"' + field.choices.front() + '"';
  if (!field.fallback.empty()) {
    const bool bare = field.type == Type::whole || field.type == Type::boolean || field.type == Type::factor;
    return bare ? field.fallback : '"' + field.fallback + '"';
  }
  switch (field.type) {
    case Type::object: {
      std::string text;
      for (const Field& member : field.members)
        if (member.required)
          text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", member.name, example_of(member));
      return '{' + text + '}';
    }
    case Type::list:
      return '[' + example_of(field.members.front()) + ']';
    case Type::boolean:
      return "true";
    case Type::whole:
      return std::to_string(std::max<std::int64_t>(field.min, 1));
    case Type::size:
      return R"("64 MiB")";
    case Type::rate:
      return R"("25 GB/s")";
    case Type::time:
      return R"("1 us")";
    case Type::factor:
      return "1";
    case Type::portion:
      return R"("25%")";
    default:
      return R"("...")";
  }
}

std::string expectation(const Field& field) {
  const auto bounds = [&](std::string_view what) {
    if (field.min == field.max) return std::to_string(field.min);
    if (field.max == std::numeric_limits<std::int64_t>::max()) return fmt::format("{} from {}", what, field.min);
    return fmt::format("{} from {} to {}", what, field.min, field.max);
  };
  switch (field.type) {
    case Type::text:
      if (!field.list.empty()) return fmt::format("a name from `ringsim list {}`", field.list);
      if (field.choices.size() == 1) return fmt::format("\"{}\"", field.choices.front());
      if (!field.choices.empty()) return fmt::format("one of \"{}\"", fmt::join(field.choices, "\", \""));
      return (field.min > 0 ? "a non-empty string" : "text") +
             (field.examples.empty() ? "" : " such as " + field.examples.front());
    case Type::boolean:
      return "true or false";
    case Type::whole:
      return bounds("a whole number");
    case Type::size:
      return R"(a size such as "64 MiB" or "1.5 GB")";
    case Type::rate:
      return R"(a rate such as "25 GB/s" or "200 Gb/s")";
    case Type::factor:
      return fmt::format("a number from {} to {}", static_cast<double>(field.min) / 1e6,
                         static_cast<double>(field.max) / 1e6);
    case Type::portion:
      return R"(a share such as "25%" or a rate such as "25 GB/s")";
    case Type::time:
      return R"(a time such as "1.3 us" or "500 ns")";
    case Type::object:
      return takes_a_name(field) ? fmt::format("a string (the key \"{}\") or an object", field.named_by) : "an object";
    case Type::sweep:
      return "an object";
    case Type::variant:
      return takes_a_name(field) ? fmt::format("a name or an object with the key \"{}\"", field.discriminator)
                                 : fmt::format("an object with the key \"{}\"", field.discriminator);
    case Type::list:
      return "a list";
    case Type::ignored:
      return "text";
    case Type::file:
      return "a file name";
  }
  return "";
}

Field ranks_field(std::string doc) {
  return {.name = "ranks",
          .type = Type::list,
          .doc = std::move(doc),
          .min = 1,
          .examples = {R"(["gpu0", "gpu2"])"},
          .members = {gpu_field()},
          .words = {"gpus", "workers"},
          .unique = true};
}

Field duration(std::string name, std::string doc, std::string example, std::string fallback, Member into) {
  return {.name = std::move(name),
          .type = Type::time,
          .doc = std::move(doc),
          .fallback = std::move(fallback),
          .examples = {std::move(example)},
          .into = std::move(into)};
}

}  // namespace ringsim::scenarios
