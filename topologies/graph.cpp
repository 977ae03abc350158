#include <string>
#include <unordered_map>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/text/spelling.hpp"
#include "topologies/builders.hpp"

namespace ringsim {

std::size_t n_ranks_of(const Graph& spec) {
  std::size_t n = 0;
  for (const Graph::NodeSpec& node : spec.nodes) n += node.kind == NodeKind::gpu ? 1 : 0;
  return n;
}

Topology build_graph(const Graph& spec) {
  if (n_ranks_of(spec) == 0) {
    throw InputError("/nodes", "expected at least one node of kind \"gpu\", found none",
                     "the ranks are the nodes of kind gpu");
  }
  require_size(static_cast<double>(spec.nodes.size()), static_cast<double>(spec.links.size()));

  TopologyBuilder builder;
  std::unordered_map<std::string, NodeId> ids;
  std::vector<std::string> names;
  for (std::size_t n = 0; n < spec.nodes.size(); ++n) {
    const std::string& name = spec.nodes[n].name;
    const NodeKind kind = spec.nodes[n].kind;
    const std::string where = "/nodes/" + std::to_string(n) + "/name";
    if (name.empty()) throw InputError(where, "expected a name, found \"\"");
    if (const auto first = ids.find(name); first != ids.end()) {
      throw InputError(
          where, "two nodes are named \"" + name + "\"; the first is /nodes/" + std::to_string(first->second.value));
    }
    ids.emplace(name, kind == NodeKind::gpu ? builder.add_gpu(name) : builder.add_node(name, kind));
    names.push_back(name);
  }

  for (std::size_t l = 0; l < spec.links.size(); ++l) {
    const Graph::Cable& cable = spec.links[l];
    const std::string where = "/links/" + std::to_string(l);
    const auto end = [&](const std::string& name, const char* key) {
      const auto found = ids.find(name);
      if (found == ids.end()) {
        throw InputError(where + key, "expected the name of a node, found \"" + name + "\"", did_you_mean(name, names));
      }
      return found->second;
    };
    const NodeId from = end(cable.from, "/from"), to = end(cable.to, "/to");
    if (from == to) throw InputError(where, "a link from \"" + cable.from + "\" to itself");
    require_usable(cable.link, where);
    if (cable.one_way && cable.link.duplex == Duplex::half) {
      throw InputError(where + "/duplex", "a one-way link has no reverse direction to share its bandwidth with",
                       "remove \"duplex\", or set \"one_way\" to false");
    }
    if (cable.one_way) {
      builder.add_link(from, to, cable.link);
    } else {
      builder.add_cable(from, to, cable.link);
    }
  }
  return builder.build();
}

}  // namespace ringsim
