#include "topologies/nccl_search/node_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace ringsim::nccl {

namespace {

SearchGraph with_names(const FoundGraph& found, SearchGraph::Id id, const SeenNode& node) {
  SearchGraph out;
  out.id = id;
  out.pattern = static_cast<int>(found.pattern);
  out.cross_nic = found.cross_nic;
  out.inside = static_cast<double>(found.inside);
  out.between = static_cast<double>(found.between);
  out.type_inside = found.type_inside;
  out.type_between = found.type_between;
  out.same_channels = found.same_channels;
  out.times = found.times;
  for (const FoundChannel& channel : found.channels) {
    SearchGraph::Channel& to = out.channels.emplace_back();
    for (const std::uint32_t gpu : channel.gpus) to.gpus.push_back(node.at(SeenKind::gpu, gpu).name);
    if (!node.several_nodes) continue;
    to.enters = node.at(SeenKind::net, channel.enters).name;
    to.leaves = node.at(SeenKind::net, channel.leaves).name;
  }
  return out;
}

NodeSearch all_found(const SeenNode& node, const NodeAsked& asked) {
  NodeSearch out;
  SearchAsked what{.cross_nic = asked.cross_nic, .doubles_any = asked.doubles_any};
  const FoundGraph ring = search_channels(node, asked.speeds, what);
  what.pattern = Pattern::balanced_tree;
  what.least_channels = what.most_channels = static_cast<int>(ring.channels.size());
  const FoundGraph tree = search_channels(node, asked.speeds, what);
  what = {.pattern = Pattern::nvls, .most_channels = 64, .cross_nic = CrossNic::never};
  if (asked.gpus.size() > 1)
    out.nvls = with_names(search_channels(node, asked.speeds, what), SearchGraph::Id::nvls, node);
  out.ring = with_names(ring, SearchGraph::Id::ring, node);
  out.tree = with_names(tree, SearchGraph::Id::tree, node);
  const std::size_t both = std::min(out.ring.channels.size(), out.tree.channels.size());
  out.ring.channels.resize(both);
  out.tree.channels.resize(both);
  // As many trees are searched for as there are rings: if those are repeated, these are.
  const auto middle = out.tree.channels.begin() + static_cast<std::ptrdiff_t>(both / 2);
  if (ring.times == 2 && both % 2 == 0 && std::equal(out.tree.channels.begin(), middle, middle)) out.tree.times = 2;
  return out;
}

/// All that the search depends on.
std::string key_of(const SeenNode& node, const NodeAsked& asked) {
  std::string out =
      fmt::format("{} {} {} {} {};", node.several_nodes, static_cast<int>(asked.cross_nic), asked.doubles_any,
                  fmt::join(asked.speeds.inside, ","), fmt::join(asked.speeds.between, ","));
  for (const SeenDevice& d : node.devices)
    out += fmt::format("{} {} {} {} {} {} {} {} {} {} {};", static_cast<int>(d.kind), d.name, d.sm, d.dev, d.rate,
                       d.adapter, d.port, d.intel, d.amd, d.host, d.gpudirect);
  for (const SeenLink& l : node.links)
    out += fmt::format("{} {} {} {};", l.from, l.to, static_cast<int>(l.type), l.rate);
  return out +
         fmt::format("{} {}", static_cast<int>(asked.options.p2p_level), static_cast<int>(asked.options.gdr_level));
}

}  // namespace

std::shared_ptr<const NodeSearch> search_node(const Machine& machine, const NodeAsked& asked) {
  static std::mutex guard;
  static std::map<std::string, std::shared_ptr<const NodeSearch>> known;
  const SeenNode node(machine, asked.gpus, asked.nics, asked.nodes, asked.options);
  const std::string key = key_of(node, asked);
  {
    const std::lock_guard lock(guard);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  auto out = std::make_shared<const NodeSearch>(all_found(node, asked));
  const std::lock_guard lock(guard);
  return known.emplace(key, std::move(out)).first->second;
}

}  // namespace ringsim::nccl
