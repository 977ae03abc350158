#include "topologies/nccl_search/node_search.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

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
  out.nics_join_gpus = node.nics_join_gpus;
  SearchAsked what{.cross_nic = asked.cross_nic, .doubles_any = asked.doubles_any};
  const FoundGraph ring = search_graph(node, asked.speeds, what);
  what.pattern = Pattern::balanced_tree;
  what.least_channels = what.most_channels = static_cast<int>(ring.channels.size());
  const FoundGraph tree = search_graph(node, asked.speeds, what);
  what = {.pattern = Pattern::nvls, .most_channels = 64, .cross_nic = CrossNic::never};
  if (asked.gpus.size() > 1) out.nvls = with_names(search_graph(node, asked.speeds, what), SearchGraph::Id::nvls, node);
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

/// All that the search depends on: ways between devices follow from devices, links and options.
struct Question {
  std::vector<SeenDevice> devices;
  std::vector<SeenLink> links;
  SeenOptions options;
  bool several_nodes;
  std::vector<double> inside, between;  ///< speeds that are tried
  CrossNic cross_nic;
  bool doubles_any;
  bool operator==(const Question&) const = default;
};

Question question_of(const SeenNode& node, const NodeAsked& asked) {
  const auto& [inside, between] = asked.speeds;
  return {node.devices,
          node.links,
          asked.options,
          node.several_nodes,
          {inside.begin(), inside.end()},
          {between.begin(), between.end()},
          asked.cross_nic,
          asked.doubles_any};
}

/// Results of searches, kept as long as the process runs, because the points of a sweep mostly ask for the same ones.
class Answers {
 public:
  std::shared_ptr<const NodeSearch> find(const Question& question) {
    const std::lock_guard lock(guard_);
    for (const auto& [asked, answer] : known_)
      if (asked == question) return answer;
    return nullptr;
  }
  void keep(Question question, std::shared_ptr<const NodeSearch> answer) {
    const std::lock_guard lock(guard_);
    known_.emplace_back(std::move(question), std::move(answer));
  }

 private:
  std::mutex guard_;
  std::vector<std::pair<Question, std::shared_ptr<const NodeSearch>>> known_;
};

}  // namespace

std::shared_ptr<const NodeSearch> search_node(const Machine& machine, const NodeAsked& asked) {
  static Answers answers;
  const SeenNode node(machine, asked.gpus, asked.nics, asked.nodes, asked.options);
  Question question = question_of(node, asked);
  if (auto known = answers.find(question)) return known;
  auto out = std::make_shared<const NodeSearch>(all_found(node, asked));
  answers.keep(std::move(question), out);
  return out;
}

}  // namespace ringsim::nccl
