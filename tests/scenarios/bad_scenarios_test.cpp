// Scenarios that must be refused, each with the whole message that its author gets to read.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/message_page.hpp"
#include "topologies/catalog.hpp"

namespace bad_scenarios_test {

using namespace ringsim;
using namespace std::string_literals;

namespace {

constexpr const char* plain = R"({"version": 1,
  "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})";

/// Text to replace, and by what.
using Edits = std::vector<std::pair<std::string, std::string>>;

constexpr const char* on_cluster = R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})";

std::string cluster_with(const std::string& fabric) {
  return R"("cluster", "node": "dgx-1v", "nodes": 2, "fabric": {)" + fabric + "}";
}

std::string edited(const Edits& edits) {
  std::string text = plain;
  for (const auto& [from, to] : edits) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string complaint(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return ringsim::test::complaint([&] { ScenarioFile::parse(text, "s.json", overrides); });
}

/// The message without what the catalog of algorithms knows: a new algorithm changes no page.
std::string without_catalog(std::string message) {
  std::string reducers, rooted;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.supports(CollectiveOp::all_reduce)) reducers += (reducers.empty() ? "" : ", ") + algorithm.name;
    if (algorithm.rooted) rooted += (rooted.empty() ? "" : ", ") + algorithm.name;
  }
  for (const auto& [mark, names] : {std::pair{"{REDUCERS}"s, reducers}, std::pair{"{ROOTED}"s, rooted}}) {
    if (const std::size_t at = message.find(names); at != std::string::npos) message.replace(at, names.size(), mark);
  }
  return message;
}

}  // namespace

TEST_CASE("the scenario that the bad ones are made of is good") { CHECK(complaint(plain) == ""); }

TEST_CASE("bad syntax is refused with file, line and column") {
  struct Row {
    const char* what;
    std::string text;
  };
  const std::vector<Row> rows{

      {"an empty file", ""},
      {"only a comment", "// nothing here"},
      {"a list", "[1]"},
      {"a comma after the last key", "{\n  \"version\": 1,\n}"},
      {"a comma after the last value", R"({"version": [1, 2,]})"},
      {"no comma between keys", "{\"version\": 1\n \"name\": \"x\"}"},
      {"no colon", R"({"version" 1})"},
      {"a key without quotes", "{version: 1}"},
      {"a word that JSON lacks", R"({"version": NaN})"},
      {"a number beyond 64 bits", R"({"version": 1e999})"},
      {"text over two lines", "{\"name\": \"a\nb\"}"},
      {"an unknown escape", R"({"name": "\q"})"},
      {"two documents", "{} {}"},
      {"a file cut short", R"({"version": 1,)"},
      {"a key twice", "{\"version\": 1,\n \"name\": \"a\", // é\n \"version\": 1}"},
      {"not UTF-8", "{\"n\xC3\xA9\": \"\xFF\"}"},
      {"a zero byte", "{}\0{}"s}};
  ringsim::test::MessagePage page("json_syntax");
  for (const Row& row : rows) page.add(row.what, complaint(row.text));
  page.check();
}

TEST_CASE("a bad scenario is refused with the place, what was expected, what was found and what to do") {
  struct Row {
    const char* what;
    Edits edits;
  };
  const std::vector<Row> rows{

      {"no version", {{"\"version\": 1,\n", ""}}},
      {"a version to come", {{R"("version": 1)", R"("version": 2)"}}},
      {"an unknown key", {{R"("64 MiB"}})", R"("64 MiB"}, "color": "red"})"}}},
      {"a misspelt key", {{R"("ranks")", R"("rank")"}}},
      {"a key of another object", {{R"("64 MiB"}})", R"("64 MiB"}, "harness": {"plugin": "aws-ofi-nccl"}})"}}},
      {"a variable out of place", {{R"("64 MiB"}})", R"("64 MiB"}, "NCCL_SOCKET_IFNAME": "eth0"})"}}},
      {"a misspelt variable",
       {{R"("64 MiB"}})", R"("64 MiB"}, "library": {"name": "nccl", "env": {"NCCL_ALGOS": "Ring"}}})"}}},
      {"another program's variable",
       {{R"("64 MiB"}})", R"("64 MiB"}, "library": {"name": "nccl", "env": {"FI_PROVIDER": "efa"}}})"}}},
      {"a missing key", {{R"("ranks": 8, )", ""}}},
      {"no kind", {{R"("kind": "star", )", ""}}},
      {"a kind in capitals", {{R"("star")", R"("Star")"}}},
      {"a kind unlike any", {{R"("star")", R"("butterfly")"}}},
      {"a number in quotes", {{"8,", R"("8",)"}}},
      {"no rank at all", {{"8,", "0,"}}},
      {"a fraction of a rank", {{"8,", "8.5,"}}},
      {"a number beyond every bound", {{"8,", "18446744073709551615,"}}},
      {"a rate with half a unit", {{"25 GB/s", "200G"}}},
      {"a bare number for a size", {{R"("64 MiB")", "67108864"}}},
      {"a number for a GPU's name", {{R"("64 MiB")", R"("64 MiB", "ranks": [0, 1])"}}},
      {"a rate for a size", {{R"("64 MiB")", R"("64 MB/s")"}}},
      {"a size below zero", {{R"("64 MiB")", R"("-1 B")"}}},
      {"a fraction of a byte", {{R"("64 MiB")", R"("0.1 B")"}}},
      {"null", {{R"("64 MiB")", "null"}}},
      {"text for true", {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"gpudirect": "yes"}})"}}},
      {"an empty slot", {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"staging": {"size": "0 B"}}})"}}},
      {"more channels than NCCL has", {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"channels": 65}})"}}},
      {"pieces of nothing", {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"chunk": "0 B"}})"}}},
      {"several channels of a barrier",
       {{R"("all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})",
         R"("barrier", "algorithm": "dissemination", "bytes": "0 B"}, "transport": {"channels": 2}})"}}},
      {"pieces of a barrier",
       {{R"("all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})",
         R"("barrier", "algorithm": "dissemination", "bytes": "0 B"}, "transport": {"chunk": "1 KiB"}})"}}},
      {"a barrier out of place",
       {{R"("all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})",
         R"("barrier", "algorithm": "dissemination", "bytes": "0 B", "in_place": false}})"}}},
      {"a barrier in place, as what is written on one buffer is anyhow",
       {{R"("all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})",
         R"("barrier", "algorithm": "dissemination", "bytes": "0 B", "in_place": true}})"}}},
      {"a misspelt model", {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"model": "fiar"}})"}}},
      {"packets of a model that has none",
       {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"packet": {"mtu": "1 KiB"}}})"}}},
      {"packets larger than the room for them",
       {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"model": "packet", "packet": {"buffer": "2 KiB"}}})"}}},
      {"an empty packet",
       {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"model": "packet", "packet": {"mtu": "0 B"}}})"}}},
      {"a flow control that loses packets",
       {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"model": "packet", "packet": {"flow_control": "drop"}}})"}}},
      {"a setting in two spellings",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"gdr_level": "PHB", "NCCL_NET_GDR_LEVEL": "PHB"}})"}}},
      {"no GPUDirect, but a level of it",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"gpudirect": false, "gdr_level": "PHB"}})"}}},
      {"GPUDirect, but to nowhere",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"gpudirect": true, "NCCL_NET_GDR_LEVEL": 0}})"}}},
      {"a level that NCCL does not have", {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"p2p_level": "PXC"}})"}}},
      {"a table without tables",
       {{R"("64 MiB"}})",
         R"("64 MiB"}, "network": {"routing": "ecmp", "table": [{"at": "a", "to": "*", "via": "b"}]}})"}}},
      {"a misspelt op", {{"all_reduce", "all_gater"}}},
      {"a misspelt algorithm", {{R"("ring")", R"("rign")"}}},
      {"a parameter of another algorithm", {{R"("ring")", R"({"name": "ring", "fold": "naive"})"}}},
      {"a parameter's misspelt value", {{R"("ring")", R"({"name": "halving_doubling", "fold": "navie"})"}}},
      {"no server", {{R"("ring")", R"({"name": "parameter_server", "servers": 0})"}}},
      {"servers without ports",
       {{R"("ring")", R"({"name": "parameter_server", "servers": 2})"}, {R"("star")", R"("full_mesh")"}}},
      {"an op that the algorithm lacks", {{R"("ring")", R"("pairwise")"}}},
      {"a root that nothing uses", {{R"("bytes")", R"("root": 1, "bytes")"}}},
      {"a root beyond the ranks", {{"all_reduce", "broadcast"}, {R"("bytes")", R"("root": 8, "bytes")"}}},
      {"both ways without pairs", {{R"("bytes")", R"("both_ways": false, "bytes")"}}},
      {"pairs of an odd number", {{"all_reduce", "pairs"}, {R"("ring")", R"("direct")"}, {"8,", "7,"}}},
      {"a barrier that moves data", {{"all_reduce", "barrier"}, {R"("ring")", R"("dissemination")"}}},
      {"a gpu twice", {{R"("bytes")", R"("ranks": ["gpu0", "gpu1", "gpu0"], "bytes")"}}},
      {"more gpus than there are", {{"8,", "2,"}, {R"("bytes")", R"("ranks": ["a", "b", "c"], "bytes")"}}},
      {"a torus without dimensions", {{R"("star", "ranks": 8)", R"("torus", "dimensions": [])"}}},
      {"a torus too large", {{R"("star", "ranks": 8)", R"("torus", "dimensions": [1024, 1024, 2])"}}},
      {"a misspelt preset",
       {{R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
         R"("cluster", "node": "dgx-v1", "nodes": 1)"}}},
      {"a cluster without a fabric",
       {{R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
         R"("cluster", "node": "dgx-1v", "nodes": 2)"}}},
      {"a misspelt fabric",
       {{on_cluster, cluster_with(R"("kind": "leafspine", "nodes_per_leaf": 2, "link": {"bandwidth": "1 GB/s"})")}}},
      {"a leaf without nodes",
       {{on_cluster, cluster_with(R"("kind": "leaf_spine", "link": {"bandwidth": "1 GB/s"})")}}},
      {"a key of another fabric",
       {{on_cluster, cluster_with(R"("kind": "fat_tree", "k": 4, "spines": 2, "link": {"bandwidth": "1 GB/s"})")}}},
      {"half an oversubscription",
       {{on_cluster, cluster_with(R"("kind": "rail", "nodes_per_group": 2, "oversubscription": 0.5,
                                     "link": {"bandwidth": "1 GB/s"})")}}},
      {"an uplink without a rate",
       {{on_cluster, cluster_with(R"("kind": "leaf_spine", "nodes_per_leaf": 2, "uplink": {"latency": "1 us"},
                                     "link": {"bandwidth": "1 GB/s"})")}}},
      {"a torus of nodes that stands still",
       {{on_cluster, cluster_with(R"("kind": "torus", "dimensions": [2, 0], "link": {"bandwidth": "1 GB/s"})")}}},
      {"a dragonfly with negative ports",
       {{on_cluster, cluster_with(R"("kind": "dragonfly", "groups": 2, "routers": 2, "nodes_per_router": 1,
                                     "global_links": -1, "link": {"bandwidth": "1 GB/s"})")}}},
      {"a cable with one end", {{on_cluster, cluster_with(R"("kind": "star", "link": {"bandwidth": "1 GB/s"},
                                     "cables": [{"from": "leaf0", "bandwidth": "1 Gb/s"}])")}}},
      {"a graph without a gpu",
       {{R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
         R"("graph", "nodes": [{"name": "s", "kind": "switch"}], "links": [])"}}},
      {"a node without a name",
       {{R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
         R"("graph", "nodes": [{"name": "", "kind": "gpu"}], "links": [])"}}},
      {"an object for text", {{R"("64 MiB"}})", R"("64 MiB"}, "name": {}})"}}},
      {"a list of nothing", {{R"("64 MiB")", "[]"}}},
      {"a bad value in a list", {{R"("64 MiB")", R"(["1 MiB", "2 Mib"])"}}},
      {"a list in a list", {{R"("64 MiB")", R"([["1 MiB"]])"}}},
      {"a range backwards", {{R"("64 MiB")", R"({"from": "1 MiB", "to": "1 KiB", "factor": 4})"}}},
      {"a range that stands still", {{R"("64 MiB")", R"({"from": "1 MiB", "to": "1 GiB", "factor": 1})"}}},
      {"a range from nothing by a factor", {{R"("64 MiB")", R"({"from": "0 B", "to": "1 GiB", "factor": 2})"}}},
      {"a range with neither", {{R"("64 MiB")", R"({"from": "1 MiB", "to": "1 GiB"})"}}},
      {"a range with both", {{R"("64 MiB")", R"({"from": "1 B", "to": "2 B", "factor": 2, "step": "1 B"})"}}},
      {"a range without an end", {{R"("64 MiB")", R"({"from": "1 MiB", "factor": 2})"}}},
      {"a range by no step", {{R"("64 MiB")", R"({"from": "0 B", "to": "1 GiB", "step": "0 B"})"}}},
      {"a range with a misspelt key", {{R"("64 MiB")", R"({"form": "0 B", "to": "1 GiB", "step": "1 B"})"}}},
      {"more points than can run", {{R"("64 MiB")", R"({"from": "1 B", "to": "10000001 B", "step": "1 B"})"}}},
      {"more points than can be counted",
       {{R"("64 MiB")", R"({"from": "0 B", "to": "9223372036854775807 B", "step": "1 B"})"}}},
      {"a sweep of an unknown path", {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.rank": [2, 4]}})"}}},
      {"a bad value in a sweep", {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.ranks": [2, 0]}})"}}},
      {"a sweep of a bare value", {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.ranks": 4}})"}}},
      {"a sweep of the version", {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"version": [1]}})"}}},
      {"a sweep within a sweep",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.ranks": [2], "topology": [3]}})"}}},
      {"a sweep into text", {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"collective.bytes.0": ["1 B"]}})"}}},
      {"a sweep that is a list", {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": [1]})"}}}};
  ringsim::test::MessagePage page("scenario");
  for (const Row& row : rows) {
    CAPTURE(row.what);
    page.add(row.what, without_catalog(complaint(edited(row.edits))));
  }
  page.check();
}

TEST_CASE("what --set breaks is blamed on --set") {
  struct Row {
    const char* what;
    Edits edits;
    std::string override;
  };
  const std::vector<Row> rows{

      {"an unknown path", {}, "topology.lnk.latency=1 us"},
      {"no unit", {}, "topology.link.latency=1"},
      {"a key to remove that cannot be there", {}, "topology.lnk=null"},
      {"an element of a list to remove", {{R"("64 MiB")", R"(["1 MiB", "2 MiB"])"}}, "collective.bytes.0=null"},
      {"no value", {}, "topology"},
      {"a hole in the path", {}, "topology..ranks=1"},
      {"a path into text", {}, "collective.bytes.unit=1"},
      {"an index beyond the list", {{R"("64 MiB")", R"(["1 MiB", "2 MiB"])"}}, "collective.bytes.2=1 GiB"},
      {"what a sweep replaces",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.link": [{"bandwidth": "1 GB/s"}]}})"}},
       "topology.link.latency=1 us"},
      {"a range in place of an object", {}, R"(transport={"from": 1})"}};
  ringsim::test::MessagePage page("set");
  for (const Row& row : rows) {
    CAPTURE(row.what);
    page.add(row.what, without_catalog(complaint(edited(row.edits), {row.override})));
  }
  page.check();
  CHECK(complaint(plain, {"name=\xFF"}).find("expected text in UTF-8") != std::string::npos);
}

TEST_CASE("depth and length of what is wrong do no harm") {
  const std::size_t deep = 100'000;
  CHECK(complaint(std::string(deep, '[')) == "s.json:1:65: expected at most 64 levels of nesting, found more");
  std::string objects;
  for (std::size_t i = 0; i < deep; ++i) objects += "{\"a\":";
  CHECK(complaint(objects) == "s.json:1:321: expected at most 64 levels of nesting, found more");
  std::string path = "topology";
  for (std::size_t i = 0; i < deep; ++i) path += ".a";
  CHECK(complaint(plain, {path + "=1"}).find("expected a path of keys and indices") != std::string::npos);
  CHECK(complaint(plain, {"topology.ranks=" + std::string(deep, '[')}).find("expected a whole number") !=
        std::string::npos);
  CHECK(complaint(edited({{"star", std::string(deep, 'x')}})).size() < 400);
  CHECK(complaint(edited({{"\"ranks\"", '"' + std::string(deep, 'x') + '"'}})).size() < 400);
}

}  // namespace bad_scenarios_test
