// Scenarios that must be refused, each with the whole message that its author gets to read.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
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
  try {
    ScenarioFile::parse(text, "s.json", overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// The message with what the catalogue of algorithms knows.
std::string filled(std::string message) {
  std::string reducers, rooted;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.supports(CollectiveOp::all_reduce)) reducers += (reducers.empty() ? "" : ", ") + algorithm.name;
    if (algorithm.rooted) rooted += (rooted.empty() ? "" : ", ") + algorithm.name;
  }
  for (const auto& [mark, names] : {std::pair{"{REDUCERS}"s, reducers}, std::pair{"{ROOTED}"s, rooted}}) {
    if (const std::size_t at = message.find(mark); at != std::string::npos) message.replace(at, mark.size(), names);
  }
  return message;
}

}  // namespace

TEST_CASE("the scenario that the bad ones are made of is good") { CHECK(complaint(plain) == ""); }

TEST_CASE("bad syntax is refused with file, line and column") {
  struct Row {
    const char* what;
    std::string text, message;
  };
  const std::vector<Row> rows{

      {"an empty file", "",
       "s.json:1:1: expected a value: an object, a list, text in double quotes, a number, true or false, found the end "
       "of the file"},
      {"only a comment", "// nothing here",
       "s.json:1:16: expected a value: an object, a list, text in double quotes, a number, true or false, found the "
       "end of the file"},
      {"a list", "[1]", "s.json: expected an object, found a list"},
      {"a comma after the last key", "{\n  \"version\": 1,\n}",
       R"(s.json:3:1: expected a key in double quotes, found "}")"
       "\n  hint: "
       "no comma after the last key"},
      {"a comma after the last value", R"({"version": [1, 2,]})",
       R"(s.json:1:19: expected a value: an object, a list, text in double quotes, a number, true or false, found "]")"
       "\n  hint: "
       "no comma after the last value"},
      {"no comma between keys", "{\"version\": 1\n \"name\": \"x\"}",
       R"(s.json:2:2: expected ',' or '}', found "name")"},
      {"no colon", R"({"version" 1})", R"(s.json:1:12: expected ':' after the key, found "1")"},
      {"a key without quotes", "{version: 1}",
       R"(s.json:1:2: expected a key in double quotes or '}', found "version")"},
      {"a word that JSON lacks", R"({"version": NaN})",
       R"(s.json:1:13: expected a value: an object, a list, text in double quotes, a number, true or false, found "NaN")"},
      {"a number beyond 64 bits", R"({"version": 1e999})",
       "s.json:1:13: expected a number that fits 64 bits, found 1e999"},
      {"text over two lines", "{\"name\": \"a\nb\"}",
       "s.json:1:10: expected text that ends with a double quote on the same line, found none"},
      {"an unknown escape", R"({"name": "\q"})", R"(s.json:1:10: expected text with valid escapes, found "\q")"},
      {"two documents", "{} {}", R"(s.json:1:4: expected the end of the file, found "{")"},
      {"a file cut short", R"({"version": 1,)",
       "s.json:1:15: expected a key in double quotes, found the end of the file"},
      {"a key twice", "{\"version\": 1,\n \"name\": \"a\", // é\n \"version\": 1}",
       R"(s.json:3:2: expected each key once, found "version" again (first on line 1))"},
      {"not UTF-8", "{\"n\xC3\xA9\": \"\xFF\"}", "s.json:1:9: expected text in UTF-8, found byte 0xff"},
      {"a zero byte", "{}\0{}"s, "s.json:1:3: expected text, found byte 0x00"}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(complaint(row.text) == row.message);
  }
}

TEST_CASE("a bad scenario is refused with the place, what was expected, what was found and what to do") {
  struct Row {
    const char* what;
    Edits edits;
    std::string message;
  };
  const std::vector<Row> rows{

      {"no version",
       {{"\"version\": 1,\n", ""}},
       R"(s.json: expected the key "version", found none)"
       "\n  hint: "
       "version: Version of this format. For example: 1"},
      {"a version to come", {{R"("version": 1)", R"("version": 2)"}}, "s.json: /version: expected 1, found 2"},
      {"an unknown key",
       {{R"("64 MiB"}})", R"("64 MiB"}, "colour": "red"})"}},
       R"(s.json: /colour: expected a known key, found "colour")"
       "\n  hint: "
       "known here: $schema, version, name, topology, collective, transport, network, faults, disturbance, jobs, "
       "calibration, "
       "sweep, where"},
      {"a misspelt key",
       {{R"("ranks")", R"("rank")"}},
       R"(s.json: /topology/rank: expected a known key of star, found "rank")"
       "\n  hint: "
       R"(did you mean "ranks"? known here: kind, ranks, link)"},
      {"a missing key",
       {{R"("ranks": 8, )", ""}},
       R"(s.json: /topology: expected the key "ranks", found none)"
       "\n  hint: "
       "ranks: Number of GPUs. For example: 8"},
      {"no kind",
       {{R"("kind": "star", )", ""}},
       R"(s.json: /topology: expected the key "kind", found none)"
       "\n  hint: "
       R"(kind: The devices and the links between them. Here: one of "star", "ring", "full_mesh", "torus", "graph", "cluster", "nccl_xml", "nvidia_smi")"},
      {"a kind in capitals",
       {{R"("star")", R"("Star")"}},
       R"(s.json: /topology/kind: expected one of "star", "ring", "full_mesh", "torus", "graph", "cluster", "nccl_xml", "nvidia_smi", found "Star")"
       "\n  hint: "
       R"(did you mean "star"?)"},
      {"a kind unlike any",
       {{R"("star")", R"("butterfly")"}},
       R"(s.json: /topology/kind: expected one of "star", "ring", "full_mesh", "torus", "graph", "cluster", "nccl_xml", "nvidia_smi", found "butterfly")"},
      {"a number in quotes",
       {{"8,", R"("8",)"}},
       R"(s.json: /topology/ranks: expected a whole number from 1 to 1048576, found "8")"
       "\n  hint: "
       "a number stands without quotes"},
      {"no rank at all", {{"8,", "0,"}}, "s.json: /topology/ranks: expected a whole number from 1 to 1048576, found 0"},
      {"a fraction of a rank",
       {{"8,", "8.5,"}},
       "s.json: /topology/ranks: expected a whole number from 1 to 1048576, found 8.5"},
      {"a number beyond every bound",
       {{"8,", "18446744073709551615,"}},
       "s.json: /topology/ranks: expected a whole number from 1 to 1048576, found 18446744073709551615"},
      {"a rate with half a unit",
       {{"25 GB/s", "200G"}},
       R"(s.json: /topology/link/bandwidth: expected a rate such as "25 GB/s" or "200 Gb/s", found "200G")"
       "\n  hint: "
       "Gb/s is bits, GB/s is bytes; G is 10^9, Gi is 2^30"},
      {"a bare number for a size",
       {{R"("64 MiB")", "67108864"}},
       R"(s.json: /collective/bytes: expected a size such as "64 MiB" or "1.5 GB", found 67108864)"
       "\n  hint: "
       R"(a number needs a unit, and both are text: "64 MiB")"},
      {"a rate for a size",
       {{R"("64 MiB")", R"("64 MB/s")"}},
       R"(s.json: /collective/bytes: expected a size such as "64 MiB" or "1.5 GB", found "64 MB/s")"
       "\n  hint: "
       "units are B, kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024)"},
      {"a size below zero",
       {{R"("64 MiB")", R"("-1 B")"}},
       R"(s.json: /collective/bytes: expected a size such as "64 MiB" or "1.5 GB", not negative, found "-1 B")"},
      {"a fraction of a byte",
       {{R"("64 MiB")", R"("0.1 B")"}},
       R"(s.json: /collective/bytes: expected a whole number of bytes, found "0.1 B")"},
      {"null",
       {{R"("64 MiB")", "null"}},
       R"(s.json: /collective/bytes: expected a size such as "64 MiB" or "1.5 GB", found null)"},
      {"text for true",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"gpudirect": "yes"}})"}},
       R"(s.json: /transport/gpudirect: expected true or false, found "yes")"
       "\n  hint: "
       "true and false stand without quotes"},
      {"an empty slot",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"staging": {"size": "0 B"}}})"}},
       R"(s.json: /transport/staging/size: expected at least 1 B, found "0 B")"},
      {"more channels than NCCL has",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"channels": 65}})"}},
       "s.json: /transport/channels: expected a whole number from 1 to 64, found 65"},
      {"pieces of nothing",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"chunk": "0 B"}})"}},
       R"(s.json: /transport/chunk: expected at least 1 B, found "0 B")"},
      {"several channels of a barrier",
       {{R"("all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})",
         R"("barrier", "algorithm": "dissemination", "bytes": "0 B"}, "transport": {"channels": 2}})"}},
       "s.json: /transport/channels: expected several channels only for what can be divided, found a barrier"
       "\n  hint: a barrier moves no data"},
      {"pieces of a barrier",
       {{R"("all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})",
         R"("barrier", "algorithm": "dissemination", "bytes": "0 B"}, "transport": {"chunk": "1 KiB"}})"}},
       "s.json: /transport/chunk: expected a chunk only for what can be divided, found a barrier"
       "\n  hint: a barrier moves no data"},
      {"a barrier out of place",
       {{R"("all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})",
         R"("barrier", "algorithm": "dissemination", "bytes": "0 B", "in_place": false}})"}},
       "s.json: /collective/in_place: expected in_place only for what can be put into other buffers, found a barrier"
       "\n  hint: a barrier moves no data"},
      {"a barrier in place, as what is written on one buffer is anyhow",
       {{R"("all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})",
         R"("barrier", "algorithm": "dissemination", "bytes": "0 B", "in_place": true}})"}},
       "s.json: /collective/in_place: expected in_place only for what can be put into other buffers, found a barrier"
       "\n  hint: a barrier moves no data"},
      {"a misspelt model",
       {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"model": "fiar"}})"}},
       R"(s.json: /network/model: expected one of "ideal", "fair", "packet", found "fiar")"
       "\n  hint: "
       R"(did you mean "fair"?)"},
      {"packets of a model that has none",
       {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"packet": {"mtu": "1 KiB"}}})"}},
       "s.json: /network/packet: expected settings of packets only with the model packet, found the model fair"
       "\n  hint: "
       R"(to compare models: "network": [{"model": "fair"}, {"model": "packet", "packet": {"mtu": "1 KiB"}}])"},
      {"packets larger than the room for them",
       {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"model": "packet", "packet": {"buffer": "2 KiB"}}})"}},
       "s.json: /network/packet/buffer: expected room for a packet at least, 4 KiB, found 2 KiB"},
      {"an empty packet",
       {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"model": "packet", "packet": {"mtu": "0 B"}}})"}},
       R"(s.json: /network/packet/mtu: expected at least 1 B, found "0 B")"},
      {"a flow control that loses packets",
       {{R"("64 MiB"}})", R"("64 MiB"}, "network": {"model": "packet", "packet": {"flow_control": "drop"}}})"}},
       R"(s.json: /network/packet/flow_control: expected one of "credit", "pause", found "drop")"},
      {"a setting in two spellings",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"gdr_level": "PHB", "NCCL_NET_GDR_LEVEL": "PHB"}})"}},
       "s.json: /transport/NCCL_NET_GDR_LEVEL: expected either gdr_level or NCCL_NET_GDR_LEVEL, found both"
       "\n  hint: they set the same; leave one out"},
      {"no GPUDirect, but a level of it",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"gpudirect": false, "gdr_level": "PHB"}})"}},
       "s.json: /transport/gdr_level: expected either gpudirect or gdr_level, found both"
       "\n  hint: they set the same; leave one out"},
      {"GPUDirect, but to nowhere",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"gpudirect": true, "NCCL_NET_GDR_LEVEL": 0}})"}},
       "s.json: /transport/NCCL_NET_GDR_LEVEL: expected either gpudirect or NCCL_NET_GDR_LEVEL, found both"
       "\n  hint: they set the same; leave one out"},
      {"a level that NCCL does not have",
       {{R"("64 MiB"}})", R"("64 MiB"}, "transport": {"p2p_level": "PXC"}})"}},
       R"(s.json: /transport/p2p_level: expected one of "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PHB", "SYS", )"
       R"(found "PXC")"
       "\n  hint: "
       R"(did you mean "PXB"?)"},
      {"a table without tables",
       {{R"("64 MiB"}})",
         R"("64 MiB"}, "network": {"routing": "ecmp", "table": [{"at": "a", "to": "*", "via": "b"}]}})"}},
       "s.json: /network/table: expected a table only with static routing, found ecmp"},
      {"a misspelt op",
       {{"all_reduce", "all_gater"}},
       R"(s.json: /collective/op: expected one of "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "pairs", "reduce", "scatter", "gather", "send_recv", "barrier", found "all_gater")"
       "\n  hint: "
       R"(did you mean "all_gather"?)"},
      {"a misspelt algorithm",
       {{R"("ring")", R"("rign")"}},
       R"(s.json: /collective/algorithm: expected a name that `ringsim list algorithms` shows, found "rign")"
       "\n  hint: "
       R"(did you mean "ring"?)"},
      {"a parameter of another algorithm",
       {{R"("ring")", R"({"name": "ring", "fold": "naive"})"}},
       R"(s.json: /collective/algorithm/fold: expected a known key of ring, found "fold")"
       "\n  hint: "
       "known here: name, segments, rings, slices"},
      {"a parameter's misspelt value",
       {{R"("ring")", R"({"name": "halving_doubling", "fold": "navie"})"}},
       R"(s.json: /collective/algorithm/fold: expected one of "rabenseifner", "naive", "binary_blocks", found "navie")"
       "\n  hint: "
       R"(did you mean "naive"?)"},
      {"no server",
       {{R"("ring")", R"({"name": "parameter_server", "servers": 0})"}},
       "s.json: /collective/algorithm/servers: expected a whole number from 1 to 65536, found 0"},
      {"servers without ports",
       {{R"("ring")", R"({"name": "parameter_server", "servers": 2})"}, {R"("star")", R"("full_mesh")"}},
       "s.json: /collective/algorithm: expected a topology of kind star, whose extra ports hold the 2 helpers of "
       "parameter_server, found full_mesh"
       "\n  hint: "
       "use a star, \"servers_on\": \"cpu\" where there are CPUs, or leave out the parameter that asks for helpers"},
      {"an op that the algorithm lacks",
       {{R"("ring")", R"("pairwise")"}},
       R"(s.json: /collective/algorithm: expected an algorithm for all_reduce, found "pairwise")"
       "\n  hint: "
       "pairwise does all_to_all; all_reduce is done by {REDUCERS}"},
      {"a root that nothing uses",
       {{R"("bytes")", R"("root": 1, "bytes")"}},
       "s.json: /collective/root: expected a root only for one of broadcast, reduce, scatter, gather, {ROOTED}, found "
       "op all_reduce by ring"
       "\n  hint: "
       R"(leave "root" out)"},
      {"a root beyond the ranks",
       {{"all_reduce", "broadcast"}, {R"("bytes")", R"("root": 8, "bytes")"}},
       "s.json: /collective/root: expected a rank from 0 to 7, found 8"},
      {"both ways without pairs",
       {{R"("bytes")", R"("both_ways": false, "bytes")"}},
       "s.json: /collective/both_ways: expected both_ways only for op pairs, found op all_reduce by ring"
       "\n  hint: "
       R"(leave "both_ways" out)"},
      {"pairs of an odd number",
       {{"all_reduce", "pairs"}, {R"("ring")", R"("direct")"}, {"8,", "7,"}},
       "s.json: /collective/op: expected an even number of ranks for pairs, found 7"},
      {"a barrier that moves data",
       {{"all_reduce", "barrier"}, {R"("ring")", R"("dissemination")"}},
       R"(s.json: /collective/bytes: expected "0 B", since a barrier moves no data, found "64 MiB")"},
      {"a gpu twice",
       {{R"("bytes")", R"("ranks": ["gpu0", "gpu1", "gpu0"], "bytes")"}},
       R"(s.json: /collective/ranks/2: expected each gpu once, found "gpu0" again)"},
      {"more gpus than there are",
       {{"8,", "2,"}, {R"("bytes")", R"("ranks": ["a", "b", "c"], "bytes")"}},
       "s.json: /collective/ranks: expected at most 2 names, one for each gpu, found 3"},
      {"a torus without dimensions",
       {{R"("star", "ranks": 8)", R"("torus", "dimensions": [])"}},
       "s.json: /topology/dimensions: expected at least 1 element, found 0"},
      {"a torus too large",
       {{R"("star", "ranks": 8)", R"("torus", "dimensions": [1024, 1024, 2])"}},
       "s.json: /topology/dimensions: expected dimensions that multiply to at most 1048576 ranks, found 1024 x 1024 x "
       "2"},
      {"a misspelt preset",
       {{R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
         R"("cluster", "node": "dgx-v1", "nodes": 1)"}},
       R"(s.json: /topology/node: expected a name that `ringsim list nodes` shows, found "dgx-v1")"
       "\n  hint: "
       R"(did you mean "dgx-1v"?)"},
      {"a cluster without a fabric",
       {{R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
         R"("cluster", "node": "dgx-1v", "nodes": 2)"}},
       R"(s.json: /topology: expected the key "fabric" where there is more than one node, found none)"
       "\n  hint: "
       R"(for example {"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}})"},
      {"a misspelt fabric",
       {{on_cluster, cluster_with(R"("kind": "leafspine", "nodes_per_leaf": 2, "link": {"bandwidth": "1 GB/s"})")}},
       R"(s.json: /topology/fabric/kind: expected one of "star", "leaf_spine", "fat_tree", "rail", "torus", "dragonfly", found "leafspine")"
       "\n  hint: "
       R"(did you mean "leaf_spine"?)"},
      {"a leaf without nodes",
       {{on_cluster, cluster_with(R"("kind": "leaf_spine", "link": {"bandwidth": "1 GB/s"})")}},
       R"(s.json: /topology/fabric: expected the key "nodes_per_leaf", found none)"
       "\n  hint: "
       "nodes_per_leaf: How many nodes share a leaf, with all of their NICs. For example: 4"},
      {"a key of another fabric",
       {{on_cluster, cluster_with(R"("kind": "fat_tree", "k": 4, "spines": 2, "link": {"bandwidth": "1 GB/s"})")}},
       R"(s.json: /topology/fabric/spines: expected a known key of fat_tree, found "spines")"
       "\n  hint: "
       "known here: kind, k, oversubscription, link, cables"},
      {"half an oversubscription",
       {{on_cluster, cluster_with(R"("kind": "rail", "nodes_per_group": 2, "oversubscription": 0.5,
                                     "link": {"bandwidth": "1 GB/s"})")}},
       "s.json: /topology/fabric/oversubscription: expected a whole number from 1 to 65536, found 0.5"},
      {"an uplink without a rate",
       {{on_cluster, cluster_with(R"("kind": "leaf_spine", "nodes_per_leaf": 2, "uplink": {"latency": "1 us"},
                                     "link": {"bandwidth": "1 GB/s"})")}},
       R"(s.json: /topology/fabric/uplink: expected the key "bandwidth", found none)"
       "\n  hint: "
       R"(bandwidth: What payload can reach, one direction. For example: "25 GB/s")"},
      {"a torus of nodes that stands still",
       {{on_cluster, cluster_with(R"("kind": "torus", "dimensions": [2, 0], "link": {"bandwidth": "1 GB/s"})")}},
       "s.json: /topology/fabric/dimensions/1: expected a whole number from 1 to 65536, found 0"},
      {"a dragonfly with negative ports",
       {{on_cluster, cluster_with(R"("kind": "dragonfly", "groups": 2, "routers": 2, "nodes_per_router": 1,
                                     "global_links": -1, "link": {"bandwidth": "1 GB/s"})")}},
       "s.json: /topology/fabric/global_links: expected a whole number from 0 to 65536, found -1"},
      {"a cable with one end",
       {{on_cluster, cluster_with(R"("kind": "star", "link": {"bandwidth": "1 GB/s"},
                                     "cables": [{"from": "leaf0", "bandwidth": "1 Gb/s"}])")}},
       R"(s.json: /topology/fabric/cables/0: expected the key "to", found none)"
       "\n  hint: "
       R"(to: Name of the other end. For example: "spine1")"},
      {"a graph without a gpu",
       {{R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
         R"("graph", "nodes": [{"name": "s", "kind": "switch"}], "links": [])"}},
       R"(s.json: /topology/nodes: expected at least one node of kind "gpu", found none)"},
      {"a node without a name",
       {{R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
         R"("graph", "nodes": [{"name": "", "kind": "gpu"}], "links": [])"}},
       R"(s.json: /topology/nodes/0/name: expected text that is not empty, found "")"},
      {"an object for text",
       {{R"("64 MiB"}})", R"("64 MiB"}, "name": {}})"}},
       "s.json: /name: expected text that is not empty, found an object"},
      {"a list of nothing",
       {{R"("64 MiB")", "[]"}},
       "s.json: /collective/bytes: expected at least one value, found an empty list"},
      {"a bad value in a list",
       {{R"("64 MiB")", R"(["1 MiB", "2 Mib"])"}},
       R"(s.json: /collective/bytes/1: expected a size such as "64 MiB" or "1.5 GB", found "2 Mib")"
       "\n  hint: "
       "units are B, kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024)"},
      {"a list in a list",
       {{R"("64 MiB")", R"([["1 MiB"]])"}},
       R"(s.json: /collective/bytes/0: expected a size such as "64 MiB" or "1.5 GB", found a list)"},
      {"a range backwards",
       {{R"("64 MiB")", R"({"from": "1 MiB", "to": "1 KiB", "factor": 4})"}},
       R"(s.json: /collective/bytes/to: expected at least "1 MiB", where the range begins, found "1 KiB")"},
      {"a range that stands still",
       {{R"("64 MiB")", R"({"from": "1 MiB", "to": "1 GiB", "factor": 1})"}},
       "s.json: /collective/bytes/factor: expected a factor above 1, with at most 6 decimals, found 1"},
      {"a range from nothing by a factor",
       {{R"("64 MiB")", R"({"from": "0 B", "to": "1 GiB", "factor": 2})"}},
       R"(s.json: /collective/bytes/factor: expected a factor that leads on from "0 B", found 2)"
       "\n  hint: "
       R"(use "step", or begin higher)"},
      {"a range with neither",
       {{R"("64 MiB")", R"({"from": "1 MiB", "to": "1 GiB"})"}},
       R"(s.json: /collective/bytes: expected either "factor" or "step", found neither)"},
      {"a range with both",
       {{R"("64 MiB")", R"({"from": "1 B", "to": "2 B", "factor": 2, "step": "1 B"})"}},
       R"(s.json: /collective/bytes: expected either "factor" or "step", found both)"},
      {"a range without an end",
       {{R"("64 MiB")", R"({"from": "1 MiB", "factor": 2})"}},
       R"(s.json: /collective/bytes: expected the key "to" of a range, found none)"},
      {"a range by no step",
       {{R"("64 MiB")", R"({"from": "0 B", "to": "1 GiB", "step": "0 B"})"}},
       R"(s.json: /collective/bytes/step: expected a step above 0, found "0 B")"},
      {"a range with a misspelt key",
       {{R"("64 MiB")", R"({"form": "0 B", "to": "1 GiB", "step": "1 B"})"}},
       R"(s.json: /collective/bytes/form: expected a key of a range, found "form")"
       "\n  hint: "
       R"(did you mean "from"? known here: from, to, factor, step)"},
      {"more points than can run",
       {{R"("64 MiB")", R"({"from": "1 B", "to": "10000001 B", "step": "1 B"})"}},
       "s.json: expected at most 10000000 points, found 10000001"
       "\n  hint: "
       "the lists, ranges and sweeps of a scenario multiply"},
      {"more points than can be counted",
       {{R"("64 MiB")", R"({"from": "0 B", "to": "9223372036854775807 B", "step": "1 B"})"}},
       "s.json: expected at most 10000000 points, found at least 10^18"
       "\n  hint: "
       "the lists, ranges and sweeps of a scenario multiply"},
      {"a sweep of an unknown path",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.rank": [2, 4]}})"}},
       R"(s.json: /sweep/topology.rank: expected a known key of star, found "rank")"
       "\n  hint: "
       R"(did you mean "ranks"? known here: kind, ranks, link)"},
      {"a bad value in a sweep",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.ranks": [2, 0]}})"}},
       "s.json: /sweep/topology.ranks/1: expected a whole number from 1 to 1048576, found 0"},
      {"a sweep of a bare value",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.ranks": 4}})"}},
       "s.json: /sweep/topology.ranks: expected a list of values, found 4"},
      {"a sweep of the version",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"version": [1]}})"}},
       R"(s.json: /sweep/version: expected a path in topology, collective, transport, network, faults, disturbance, jobs or calibration, found "version")"},
      {"a sweep within a sweep",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.ranks": [2], "topology": [3]}})"}},
       R"(s.json: /sweep/topology: expected paths of which none lies within another, found "topology.ranks" and "topology")"},
      {"a sweep into text",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"collective.bytes.0": ["1 B"]}})"}},
       R"(s.json: /sweep/collective.bytes.0: expected an object at /collective/bytes that may have the key "0", found "64 MiB")"},
      {"a sweep that is a list",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": [1]})"}},
       "s.json: /sweep: expected an object of paths and their values, found a list"}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(complaint(edited(row.edits)) == filled(row.message));
  }
}

TEST_CASE("what --set breaks is blamed on --set") {
  struct Row {
    const char* what;
    Edits edits;
    std::string override, message;
  };
  const std::vector<Row> rows{

      {"an unknown path",
       {},
       "topology.lnk.latency=1 us",
       R"(--set topology.lnk.latency=1 us: /topology/lnk: expected a known key of star, found "lnk")"
       "\n  hint: "
       R"(did you mean "link"? known here: kind, ranks, link)"},
      {"no unit",
       {},
       "topology.link.latency=1",
       R"(--set topology.link.latency=1: /topology/link/latency: expected a time such as "1.3 us" or "500 ns", found 1)"
       "\n  hint: "
       R"(a number needs a unit, and both are text: "1.3 us")"},
      {"a key to remove that cannot be there",
       {},
       "topology.lnk=null",
       R"(--set topology.lnk=null: expected a known key to remove, found /topology/lnk)"
       "\n  hint: "
       R"(did you mean "link"?)"},
      {"an element of a list to remove",
       {{R"("64 MiB")", R"(["1 MiB", "2 MiB"])"}},
       "collective.bytes.0=null",
       "--set collective.bytes.0=null: expected a key to remove, found an element of a list at /collective/bytes/0"
       "\n  hint: set the whole list"},
      {"no value", {}, "topology", R"(--set topology: expected PATH=VALUE, found no "=")"},
      {"a hole in the path",
       {},
       "topology..ranks=1",
       R"(--set topology..ranks=1: expected a path of keys and indices such as "topology.links.0.bandwidth", found "topology..ranks")"},
      {"a path into text",
       {},
       "collective.bytes.unit=1",
       R"(--set collective.bytes.unit=1: expected an object at /collective/bytes that may have the key "unit", found "64 MiB")"},
      {"an index beyond the list",
       {{R"("64 MiB")", R"(["1 MiB", "2 MiB"])"}},
       "collective.bytes.2=1 GiB",
       R"(--set collective.bytes.2=1 GiB: expected an index from 0 to 1 at /collective/bytes, found "2")"},
      {"what a sweep replaces",
       {{R"("64 MiB"}})", R"("64 MiB"}, "sweep": {"topology.link": [{"bandwidth": "1 GB/s"}]}})"}},
       "topology.link.latency=1 us",
       R"(--set topology.link.latency=1 us: expected a path that no sweep replaces, found "topology.link.latency" within the sweep of "topology.link")"},
      {"a range in place of an object",
       {},
       R"(transport={"from": 1})",
       R"(--set transport={"from": 1}: /transport/from: expected a known key of transport, found "from")"
       "\n  hint: "
       "known here: gpudirect, gdr_level, p2p_level, pxn, nics, protocol, launch, channels, chunk, staging, "
       "NCCL_NET_GDR_LEVEL, "
       "NCCL_P2P_LEVEL, NCCL_P2P_DISABLE, NCCL_PXN_DISABLE"}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(complaint(edited(row.edits), {row.override}) == filled(row.message));
  }
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
