// Topologies for other programs.
#include "topologies/formats/graph_export.hpp"

#include <doctest/doctest.h>

#include <string>

#include "sim/text/xml_tree.hpp"
#include "topologies/catalog.hpp"

namespace graph_export_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

Topology odd() {
  return build(Graph{{{"g<0>", NodeKind::gpu}, {"s \"&\"", NodeKind::network_switch}, {"g1", NodeKind::gpu}},
                     {{"g<0>", "s \"&\"", {.bandwidth = 10_GBps, .latency = 1500ns, .source = "t"}},
                      {"g1", "s \"&\"", {.bandwidth = 2_GBps, .duplex = Duplex::half, .source = "t"}},
                      {"g<0>", "g1", {.bandwidth = 1_GBps, .source = "t"}, true}}});
}

}  // namespace

TEST_CASE("GraphML has a node a device and an edge a link, with the keys that it declares") {
  CHECK(to_graphml(odd()) == R"(<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="name" for="node" attr.name="name" attr.type="string"/>
  <key id="kind" for="node" attr.name="kind" attr.type="string"/>
  <key id="node" for="node" attr.name="node" attr.type="long"/>
  <key id="rank" for="node" attr.name="rank" attr.type="long"/>
  <key id="link_kind" for="edge" attr.name="kind" attr.type="string"/>
  <key id="bandwidth_GBps" for="edge" attr.name="bandwidth_GBps" attr.type="double"/>
  <key id="latency_us" for="edge" attr.name="latency_us" attr.type="double"/>
  <key id="duplex" for="edge" attr.name="duplex" attr.type="string"/>
  <key id="joined" for="edge" attr.name="joined" attr.type="long"/>
  <graph id="topology" edgedefault="directed">
    <node id="n0"><data key="name">g&lt;0&gt;</data><data key="kind">gpu</data><data key="rank">0</data></node>
    <node id="n1"><data key="name">s &quot;&amp;&quot;</data><data key="kind">switch</data></node>
    <node id="n2"><data key="name">g1</data><data key="kind">gpu</data><data key="rank">1</data></node>
    <edge id="e0" source="n0" target="n1"><data key="link_kind">link</data><data key="bandwidth_GBps">10</data><data key="latency_us">1.5</data><data key="duplex">full</data><data key="joined">1</data></edge>
    <edge id="e1" source="n1" target="n0"><data key="link_kind">link</data><data key="bandwidth_GBps">10</data><data key="latency_us">1.5</data><data key="duplex">full</data><data key="joined">1</data></edge>
    <edge id="e2" source="n2" target="n1"><data key="link_kind">link</data><data key="bandwidth_GBps">2</data><data key="latency_us">0</data><data key="duplex">half</data><data key="joined">1</data></edge>
    <edge id="e3" source="n1" target="n2"><data key="link_kind">link</data><data key="bandwidth_GBps">2</data><data key="latency_us">0</data><data key="duplex">half</data><data key="joined">1</data></edge>
    <edge id="e4" source="n0" target="n2"><data key="link_kind">link</data><data key="bandwidth_GBps">1</data><data key="latency_us">0</data><data key="duplex">full</data><data key="joined">1</data></edge>
  </graph>
</graphml>
)");
}

TEST_CASE("DOT has an edge a cable, an arrow a one-way link, a cluster a machine") {
  CHECK(to_dot(odd()) == R"(digraph topology {
  node [fontname="sans-serif"];
  "g<0>" [label="g<0>", shape=box];
  "s \"&\"" [label="s \"&\"", shape=ellipse];
  "g1" [label="g1", shape=box];
  "g<0>" -> "s \"&\"" [penwidth=2.5, color="#424242", tooltip="link 10 GB/s", dir=none];
  "g1" -> "s \"&\"" [penwidth=1.5, color="#424242", tooltip="link 2 GB/s", dir=none];
  "g<0>" -> "g1" [penwidth=1, color="#424242", tooltip="link 1 GB/s"];
}
)");
  const Topology two = build(cluster_of("dgx-1v", 2, StarFabric{{.bandwidth = 100_Gbps, .source = "t"}}));
  const std::string dot = to_dot(two);
  CHECK(dot.find("  subgraph cluster_node1 {\n    label=\"node1\";\n    \"node1.gpu0\" [label=\"gpu0\", shape=box];") !=
        std::string::npos);
  CHECK(dot.find("\n  \"leaf0\" [") != std::string::npos);  // in no cluster
}

TEST_CASE("GraphML of a cluster is well-formed and complete") {
  const Topology two = build(cluster_of("dgx-1v", 2, StarFabric{{.bandwidth = 100_Gbps, .source = "t"}}));
  std::string xml = to_graphml(two);
  // parse_xml takes no text between elements: <data>...</data> becomes <data/>.
  for (std::size_t at = 0; (at = xml.find("<data key=\"", at)) != std::string::npos;) {
    const std::size_t text = xml.find('>', at) + 1, end = xml.find("</data>", at);
    xml.erase(text, end - text);
    at = text;
  }
  const XmlElement root = parse_xml(xml, "t.graphml");
  std::size_t nodes = 0, edges = 0;
  for (const XmlElement& element : root.children.back().children) ++(element.name == "node" ? nodes : edges);
  CHECK(nodes == two.n_nodes());
  CHECK(edges == two.n_links());
  CHECK(to_graphml(two).find(
            "<data key=\"name\">node1.gpu0</data><data key=\"kind\">gpu</data><data key=\"node\">1</data><data "
            "key=\"rank\">8</data>") != std::string::npos);
}

}  // namespace graph_export_test
