// Names and keys as people type them: what is read, and where the answer leads if it is not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/decoder/key_hint.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/message_page.hpp"
#include "topologies/machines/preset_names.hpp"

namespace typed_names_test {

using namespace ringsim;

namespace {

using Texts = std::vector<std::string>;

const char* const star =
    R"("topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}})";
const char* const all_reduce = R"("collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"})";
const char* const step = R"("training": {"workload": {"model": "resnet50", "batch": 32, "compute": {"step": "100 ms"}},
                                      "regime": {"name": "ddp", "algorithm": "ring"}})";

std::string of(const Texts& keys) {
  std::string text = R"({"version": 1)";
  for (const std::string& key : keys) text += ", " + key;
  return text + "}";
}

ScenarioFile parsed(const Texts& keys, const Texts& set = {}) { return ScenarioFile::parse(of(keys), "s.json", set); }

std::string complaint(const Texts& keys, const Texts& set = {}) {
  return test::complaint([&] {
    const ScenarioFile file = parsed(keys, set);
    for (std::size_t i = 0; i < file.size(); ++i) file.point(i);
  });
}

std::string cluster(const std::string& node) {
  return R"("topology": {"kind": "cluster", "node": ")" + node + R"(", "nodes": 1})";
}

}  // namespace

TEST_CASE("a machine by any of its names is the same question, and results have the preset's name") {
  for (const PresetNames& preset : preset_names()) {
    for (const Texts& names : {preset.also, preset.taken_for})
      for (const std::string& name : names) {
        CAPTURE(name);
        const ScenarioFile file = parsed({cluster(name), all_reduce}),
                           same = parsed({cluster(preset.choice_of(name)), all_reduce});
        CHECK(file.hash() == same.hash());
        CHECK(file.point(0).hash == same.point(0).hash);
        CHECK((file.hash() == parsed({cluster(preset.name), all_reduce}).hash()) ==
              (preset.memory_of(name) == nullptr));
        const bool open = std::find(preset.taken_for.begin(), preset.taken_for.end(), name) != preset.taken_for.end();
        const Texts warnings = file.point(0).warnings;
        CHECK(std::any_of(warnings.begin(), warnings.end(), [&](const std::string& warning) {
                return warning.starts_with("s.json: /topology/node: \"" + name + "\" is assumed to be " + preset.name);
              }) == open);
      }
  }
  const std::string several =
      R"("topology": {"kind": "cluster", "node": ["P5.48xlarge", "aws_p5en", "DGX H100"], "nodes": 1})";
  const ScenarioFile file = parsed({several, all_reduce});
  const std::vector<std::string> presets{"\"aws-p5\"", "\"aws-p5en\"", "\"hgx-h100\""};
  for (std::size_t i = 0; i < presets.size(); ++i) {
    CHECK(file.point(i).varied == std::vector<std::pair<std::string, std::string>>{{"topology.node", presets[i]}});
    CHECK(file.id(i).varied == file.point(i).varied);
  }
  // Conditions compare names as they are read.
  for (const char* condition :
       {"topology.node == 'aws-p5'", "topology.node == 'p5.48xlarge'", "topology.node == 'AWS P5'",
        "topology.node != 'DGX-H100' and topology.node != 'aws-p5en'"}) {
    CAPTURE(condition);
    const ScenarioFile one = parsed({several, all_reduce, fmt::format("\"where\": [\"{}\"]", condition)});
    REQUIRE(one.size() == 1);
    CHECK(one.id(0).varied.front().second == "\"aws-p5\"");
  }
  // By --set, in a sweep, and where only a preset's links are asked for.
  CHECK(parsed({cluster("dgx-1v"), all_reduce}, {"topology.node=DGX-H100"}).hash() ==
        parsed({cluster("hgx-h100"), all_reduce}).hash());
  const ScenarioFile swept = parsed({cluster("dgx-1v"), all_reduce, R"("sweep": {"topology.node": ["h100", "a100"]})"});
  CHECK(swept.point(1).varied.front().second == "\"dgx-a100\"");
}

TEST_CASE("a name alone stands for an object whose other keys may be left out, wherever there is one") {
  struct Row {
    const char* what;
    Texts alone, spelled;
  };
  const auto training = [](const std::string& workload, const std::string& regime, const std::string& more) {
    return R"("training": {"workload": )" + workload + R"(, "regime": )" + regime + more + "}";
  };
  const std::string workload = R"({"model": "resnet50", "batch": 32, "compute": {"step": "100 ms"}})";
  const std::string ddp = R"({"name": "ddp", "algorithm": "ring"})";
  const Texts base{star, all_reduce};
  for (const Row& row : std::vector<Row>{
           {"optimizer",
            {star, training(workload, ddp, R"(, "optimizer": "adam")")},
            {star, training(workload, ddp, R"(, "optimizer": {"name": "adam"})")}},
           {"optimizers",
            {star, training(workload, ddp, R"(, "optimizer": ["sgd", "adam"])")},
            {star, training(workload, ddp, R"(, "optimizer": [{"name": "sgd"}, {"name": "adam"}])")}},
           {"regime",
            {star, training(workload, R"("parameter_server")", "")},
            {star, training(workload, R"({"name": "parameter_server"})", "")}},
           {"buckets",
            {star, training(workload, R"({"name": "ddp", "algorithm": "ring", "buckets": "horovod"})", "")},
            {star, training(workload, R"({"name": "ddp", "algorithm": "ring", "buckets": {"rule": "horovod"}})", "")}},
           {"network",
            {star, all_reduce, R"("network": "packet")"},
            {star, all_reduce, R"("network": {"model": "packet"})"}},
           {"networks",
            {star, all_reduce, R"("network": ["ideal", "fair"])"},
            {star, all_reduce, R"("network": [{"model": "ideal"}, {"model": "fair"}])"}},
           {"algorithm",
            base,
            {star, R"("collective": {"op": "all_reduce", "algorithm": {"name": "ring"}, "bytes": "1 MiB"})"}},
           {"library",
            {cluster("dgx-a100"), R"("library": "nccl")", R"("collective": {"op": "all_reduce", "bytes": "1 MiB"})"},
            {cluster("dgx-a100"), R"("library": {"name": "nccl"})",
             R"("collective": {"op": "all_reduce", "bytes": "1 MiB"})"}}}) {
    CAPTURE(row.what);
    CHECK(parsed(row.alone).hash() == parsed(row.spelled).hash());
    CHECK(parsed(row.alone).size() == parsed(row.spelled).size());
    CHECK(complaint(row.alone) == "");
  }
  // --set goes on from the name; conditions see it.
  const Texts adam{star, training(workload, ddp, R"(, "optimizer": "adam")")};
  CHECK(parsed(adam, {"training.optimizer.time=1 ms"}).hash() ==
        parsed({star, training(workload, ddp, R"(, "optimizer": {"name": "adam", "time": "1 ms"})")}).hash());
  const ScenarioFile fast =
      parsed({star, all_reduce, R"("network": ["ideal", "fair"])", R"("where": ["network.model == 'ideal'"])"});
  CHECK(fast.size() == 1);
  CHECK(fast.point(0).model == NetworkModel::ideal);
  // The text is to blame, not a key that nobody wrote.
  CHECK(complaint({star, all_reduce, R"("network": "pakcet")"}) ==
        "s.json: /network: expected one of \"ideal\", \"fair\", \"packet\", found \"pakcet\"\n  hint: did you mean "
        "\"packet\"?");
  CHECK(complaint({star, all_reduce, R"("network": 3)"}) ==
        "s.json: /network: expected a string (the key \"model\") or an object, found 3");
  CHECK(complaint({star, all_reduce, R"("transport": "ll")"}) ==
        "s.json: /transport: expected an object, found \"ll\"");
}

TEST_CASE("all keys that an object lacks are named at once, each with a value that it may have") {
  const auto on = [](const std::string& fabric) {
    return R"("topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2, "fabric": )" + fabric + "}";
  };
  struct Row {
    const char* what;
    Texts keys;
  };
  test::MessagePage page("missing_keys");
  for (const Row& row : std::vector<Row>{
           {"nothing at all", {}},
           {"a topology alone", {R"("topology": {"kind": "star"})", all_reduce}},
           {"a topology without its kind", {R"("topology": {})", all_reduce}},
           {"a kind alone", {R"("topology": "star")", all_reduce}},
           {"a cluster alone", {R"("topology": {"kind": "cluster"})", all_reduce}},
           {"a part without a machine", {R"("topology": {"kind": "cluster", "parts": [{"nodes": 2}]})", all_reduce}},
           {"a leaf-spine fabric alone", {on(R"({"kind": "leaf_spine"})"), all_reduce}},
           {"a rail fabric alone", {on(R"("rail")"), all_reduce}},
           {"a dragonfly alone", {on(R"({"kind": "dragonfly"})"), all_reduce}},
           {"a fat tree without a link", {on(R"({"kind": "fat_tree", "k": 8})"), all_reduce}},
           {"a torus alone", {R"("topology": {"kind": "torus"})", all_reduce}},
           {"a graph alone", {R"("topology": {"kind": "graph"})", all_reduce}},
           {"a link of a graph alone", {R"("topology": {"kind": "graph", "nodes": [{}], "links": [{}]})", all_reduce}},
           {"a matrix alone", {R"("topology": {"kind": "nvidia_smi"})", all_reduce}},
           {"a collective alone", {star, R"("collective": {})"}},
           {"a collective without op and algorithm", {star, R"("collective": {"bytes": "1 MiB"})"}},
           {"a collective of a library alone", {cluster("dgx-a100"), R"("library": "nccl", "collective": {})"}},
           {"an algorithm alone", {star, R"("collective": {"op": "all_reduce", "bytes": "1 MiB"})"}},
           {"training alone", {star, R"("training": {})"}},
           {"a workload alone", {star, R"("training": {"workload": {}, "regime": "single"})"}},
           {"local SGD alone",
            {star, R"("training": {"workload": {"model": "resnet50", "batch": 1}, "regime": "local_sgd"})"}},
           {"jitter alone", {star, R"("training": {"workload": {"model": "resnet50", "batch": 1}, "regime": "single",
              "jitter": {}})"}},
           {"a slow rank alone", {star, all_reduce, R"("disturbance": {"slow": [{}]})"}},
           {"a message alone", {star, all_reduce, R"("disturbance": {"background": [{}]})"}},
           {"a job alone", {star, all_reduce, R"("jobs": [{"collective": {}}])"}},
           {"a table's entry alone", {star, all_reduce, R"("network": {"table": [{}]})"}},
       }) {
    CAPTURE(row.what);
    page.add(row.what, complaint(row.keys));
  }
  page.check();
}

namespace {

/// Calls `look` for each field of the table.
void for_each_field(const scenarios::Field& field, const std::function<void(const scenarios::Field&)>& look) {
  look(field);
  for (const scenarios::Field& member : field.members) for_each_field(member, look);
  for (const scenarios::Field& variant : field.variants) for_each_field(variant, look);
}

}  // namespace

TEST_CASE("every key that is needed has an example, and every group of keys of which one is needed names keys") {
  int needed = 0, groups = 0;
  for_each_field(scenarios::scenario_field(), [&](const scenarios::Field& field) {
    CAPTURE(field.name);
    for (const scenarios::Field& member : field.members) {
      CAPTURE(member.name);
      const bool in_group = std::any_of(field.one_of.begin(), field.one_of.end(), [&](const auto& group) {
        return std::find(group.begin(), group.end(), member.name) != group.end();
      });
      if (!member.required && !in_group) continue;
      CHECK(nlohmann::json::accept(scenarios::example_of(member)));
      CHECK(scenarios::example_of(member).find("...") == std::string::npos);
      CHECK(!member.doc.empty());
      ++needed;
    }
    for (const auto& group : field.one_of)
      for (const std::string& key : group) {
        const bool at_top = key.starts_with('/');
        const auto& among = at_top ? scenarios::scenario_field().members : field.members;
        CHECK(scenarios::find(among, at_top ? key.substr(1) : key) != nullptr);
        ++groups;
      }
    if (!field.named_by.empty() && field.type == scenarios::Type::object)
      CHECK(scenarios::find(field.members, field.named_by) != nullptr);
  });
  CHECK(needed > 40);
  CHECK(groups > 10);
}

TEST_CASE("a key that stands elsewhere is answered with its place, and so is a word for one") {
  struct Row {
    const char* what;
    Texts keys;
    Texts set;
  };
  const auto in_regime = [](const std::string& key) {
    return R"("training": {"workload": {"model": "resnet50", "batch": 32, "compute": {"step": "100 ms"}},
              "regime": {"name": "ddp", "algorithm": "ring", )" +
           key + "}}";
  };
  const auto in_training = [](const std::string& key) {
    return R"("training": {"workload": {"model": "resnet50", "batch": 32, "compute": {"step": "100 ms"}},
              "regime": {"name": "ddp", "algorithm": "ring"}, )" +
           key + "}";
  };
  test::MessagePage page("elsewhere");
  for (const Row& row : std::vector<Row>{
           {"library in a regime", {star, in_regime(R"("library": "nccl")")}, {}},
           {"steps in a regime", {star, in_regime(R"("steps": 4)")}, {}},
           {"bucket_cap_mb in a regime", {star, in_regime(R"("bucket_cap_mb": 25)")}, {}},
           {"gpus in training", {star, in_training(R"("gpus": 4)")}, {}},
           {"a list of gpus in training", {star, in_training(R"("gpus": ["gpu0"])")}, {}},
           {"batch in training", {star, in_training(R"("batch": 4)")}, {}},
           {"plugin in harness", {star, all_reduce, R"("harness": {"plugin": "aws-ofi-nccl"})"}, {}},
           {"a variable of NCCL at the top", {cluster("dgx-a100"), all_reduce, R"("NCCL_ALGO": "Tree")"}, {}},
           {"nodes at the top", {cluster("dgx-a100"), all_reduce, R"("nodes": 2)"}, {}},
           {"machines at the top", {cluster("dgx-a100"), all_reduce, R"("machines": 2)"}, {}},
           {"nodes at the top, of a star", {star, all_reduce, R"("nodes": 2)"}, {}},
           {"bytes at the top", {star, all_reduce, R"("bytes": "1 MiB")"}, {}},
           {"algorithm at the top", {star, all_reduce, R"("algorithm": "ring")"}, {}},
           {"algorithm at the top, next to training", {star, step, R"("algorithm": "ring")"}, {}},
           {"protocol in a collective",
            {star, R"("collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB",
              "protocol": "ll"})"},
            {}},
           {"bandwidth of a star",
            {R"("topology": {"kind": "star", "ranks": 4, "bandwidth": "10 GB/s"})", all_reduce},
            {}},
           {"a place in a list", {star, all_reduce, R"("step_delay": "1 us")"}, {}},
           {"seed at the top", {star, all_reduce, R"("seed": 3)"}, {}},
           {"a word that nothing is called", {star, all_reduce, R"("color": "red")"}, {}},
           {"a misspelt key, though another stands elsewhere",
            {R"("topology": {"kind": "star", "rank": 4})", all_reduce},
            {}},
           {"--set of a number of ranks", {star, all_reduce}, {"ranks=16"}},
           {"--set of ranks of a cluster", {cluster("dgx-a100"), all_reduce}, {"ranks=16"}},
           {"--set of a list of ranks", {star, all_reduce}, {R"(ranks=["gpu0"])"}},
           {"--set of bytes", {star, all_reduce}, {"bytes=1GB"}},
           {"--set of a protocol", {star, all_reduce}, {"protocol=ll"}},
           {"--set of a part of a place", {star, step}, {"regime.name=ddp"}},
           {"--set of nothing", {star, all_reduce}, {"ranks=null"}},
           {"a sweep", {star, all_reduce, R"("sweep": {"ranks": [2, 4]})"}, {}},
           {"texts in a list without quotes", {star, all_reduce}, {"collective.algorithm=[ring,tree]"}},
           {"sizes in a list without quotes", {star, all_reduce}, {"collective.bytes=[1 MiB, 2 MiB]"}},
           {"an object without quotes", {star, all_reduce}, {"network={model: packet}"}},
           {"half a list", {star, all_reduce}, {"collective.algorithm=[ring"}},
       }) {
    CAPTURE(row.what);
    page.add(row.what, complaint(row.keys, row.set));
  }
  page.check();
}

TEST_CASE("the paths for a word are those that can have the value first, and never in a list") {
  using scenarios::paths_of;
  CHECK(paths_of("ranks", "16") == Texts{"topology.ranks", "collective.ranks", "training.ranks"});
  CHECK(paths_of("ranks", R"(["gpu0"])").front() == "collective.ranks");
  CHECK(paths_of("protocol", "ll") == Texts{"transport.protocol"});
  CHECK(paths_of("world_size", "8") == Texts{"topology.ranks"});
  CHECK(paths_of("optimizer", "adam") == Texts{"training.optimizer"});
  CHECK(paths_of("step_delay", "1 us") == Texts{});
  CHECK(paths_of("explain", "") == Texts{});
}

TEST_CASE("names that people know and that are not here are answered with what is here") {
  const auto regime = [](const std::string& name) {
    return R"("training": {"workload": {"model": "resnet50", "batch": 32, "compute": {"step": "100 ms"}}, "regime": )" +
           name + "}";
  };
  const auto model = [](const std::string& name) {
    return R"("training": {"workload": {"model": ")" + name + R"(", "batch": 32, "compute": {"step": "100 ms"}},
              "regime": "single"})";
  };
  test::MessagePage page("known_names");
  for (const char* name : {"fsdp", "ZeRO-3", "deepspeed", "tensor_parallel", "Megatron-LM", "1f1b", "gpipe", "horovod",
                           "async", "moe", "ddpp"})
    page.add(fmt::format("regime {}", name), complaint({star, regime('"' + std::string(name) + '"')}));
  page.add("regime {\"name\": \"fsdp\"}", complaint({star, regime(R"({"name": "fsdp"})")}));
  for (const char* name : {"gpt3", "llama4_70b", "llama3_7b", "resnet51", "resnet-50", "bert"})
    page.add(fmt::format("model {}", name), complaint({star, model(name)}));
  for (const char* name : {"nccl", "rign", "NVLSTree", "tree", "i3.json"}) {
    const std::string collective =
        fmt::format(R"("collective": {{"op": "all_reduce", "algorithm": "{}", "bytes": "1 MiB"}})", name);
    page.add(fmt::format("algorithm {}", name), complaint({star, collective}));
  }
  const std::string with_file =
      R"("collective": {"op": "all_reduce", "algorithm": {"name": "ring", "file": "i3.json"}, "bytes": "1 MiB"})";
  page.add("algorithm ring with a file", complaint({star, with_file}));
  const std::string card = R"("training": {"workload": {"transformer": "llama2_13b", "batch": 1}, "regime": "single"})";
  page.add("transformer llama2_13b", complaint({star, card}));
  for (const char* name : {"rccl", "gloo", "nncl"})
    page.add(fmt::format("library {}", name),
             complaint({cluster("dgx-a100"), all_reduce}, {std::string("library=") + name}));
  page.add("a library next to an algorithm", complaint({cluster("dgx-a100"), all_reduce}, {"library=nccl"}));
  for (const char* name : {"h100-pcie", "a4-highgpu-8g", "p5e.48xlarge", "nvl72", "azure-h100"})
    page.add(fmt::format("node {}", name), complaint({cluster(name), all_reduce}));
  page.check();
}

}  // namespace typed_names_test
