#include "topologies/nccl_search/graph_search.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace ringsim::nccl {

namespace {

constexpr int most_nvls_heads = 32;  // NCCL_MAX_NVLS_ARITY

/// Steps that searches may take: of all speeds together, of one speed, of one with all channels alike.
constexpr std::int64_t most_steps_in_all = 1 << 19;
constexpr int most_steps = 1 << 14, most_steps_alike = 1 << 8;

/// The most that a channel, and that all of a GPU's together, can have.
struct Widest {
  float channel = 0, total = 0;
};
Widest widest(const SeenNode& node) {
  if (!node.several_nodes && node.count(SeenKind::gpu) == 1) return {unbounded_rate, unbounded_rate};
  Widest out;
  const SeenKind end = node.several_nodes ? SeenKind::net : SeenKind::board;
  for (const std::uint32_t board : node.of_kind(SeenKind::board)) {
    for (const std::uint32_t to : node.of_kind(end))
      if (const SeenWay& way = node.way(board, to); !way.links.empty()) out.channel = std::max(out.channel, way.rate);
    float nvlink = 0, pcie = 0;
    for (const std::uint32_t l : node.devices[board].links) {
      if (node.links[l].type == PathType::nvl) nvlink += node.links[l].rate;
      if (node.links[l].type == PathType::pix) pcie = node.links[l].rate;
    }
    out.total = std::max({out.total, nvlink, pcie});
  }
  return out;
}

struct Types {
  PathType nearest = PathType::sys, farthest = PathType::loc;
};
Types types_to(const SeenNode& node, SeenKind kind) {
  Types out;
  for (std::size_t g = 0; g < node.count(SeenKind::gpu); ++g)
    for (std::size_t i = 0; i < node.count(kind); ++i) {
      if (kind == SeenKind::gpu && i == g) continue;
      const PathType type = node.way(SeenKind::gpu, g, kind, i).type;
      out.nearest = std::min(out.nearest, type);
      out.farthest = std::max(out.farthest, type);
    }
  return out;
}

/// True if NVLink joins the GPUs to two groups, and something slower these.
bool has_two_nvlink_groups(const SeenNode& node) {
  const std::size_t gpus = node.count(SeenKind::gpu);
  std::vector<std::size_t> group(gpus), members(gpus);
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (std::size_t g = 0; g < gpus; ++g)
    for (std::size_t p = g + 1; p < gpus; ++p)
      if (node.way(SeenKind::gpu, g, SeenKind::gpu, p).type == PathType::nvl) group[p] = group[g];
  for (const std::size_t g : group) ++members[g];
  return std::count_if(members.begin(), members.end(), [](std::size_t n) { return n > 1; }) == 2;
}

/// Few fast channels become twice as many of half the speed (ncclTopoDupChannels): one thread block does not reach it.
void repeat_channels(Trial& found, int sm, bool any) {
  if (found.channels.empty() || found.pattern == Pattern::nvls || found.inside < 25.0F) return;
  if (!any && sm > 80 && found.inside < 50.0F && found.channels.size() > 4) return;
  const auto before = static_cast<int>(found.channels.size());
  const int after = std::min(2 * before, found.most);
  for (int c = before; c < after; ++c) found.channels.push_back(found.channels[static_cast<std::size_t>(c - before)]);
  found.times = (after + before - 1) / before;
  found.inside /= static_cast<float>(found.times);
  found.between /= static_cast<float>(found.times);
}

PathType farther(PathType type) { return static_cast<PathType>(static_cast<int>(type) + 1); }

/// The search over speeds and how far channels may reach.
class SpeedSearch {
 public:
  SpeedSearch(const SeenNode& node, const SearchSpeeds& speeds, const SearchAsked& asked)
      : node_(node),
        speeds_(node.several_nodes ? speeds.between : speeds.inside),
        sm_(node.least_sm()),
        doubles_any_(asked.doubles_any) {
    const std::size_t gpus = node.count(SeenKind::gpu);
    const bool may_cross =
        node.count(SeenKind::net) > 1 && (asked.pattern == Pattern::ring || asked.pattern == Pattern::balanced_tree);
    if (may_cross && asked.cross_nic == CrossNic::always) cross_nic_ = 1;
    if (may_cross && asked.cross_nic == CrossNic::if_needed) tried_last_ = 2;
    if (may_cross && asked.cross_nic == CrossNic::if_needed_by_any_nic) tried_last_ = 1;
    best_.cross_nic = cross_nic_;
    Types inside{PathType::loc, PathType::sys}, between{PathType::pix, PathType::sys};
    if (gpus > 1) inside = types_to(node, SeenKind::gpu);
    if (node.several_nodes) {
      between = types_to(node, SeenKind::net);
      inside.farthest = between.farthest;
    }
    if (sm_ < 90) between.farthest = PathType::sys;
    inside_ = inside;
    between_ = between;
    best_.pattern = asked.pattern;
    best_.least = asked.least_channels;
    best_.most = asked.most_channels;
    best_.type_inside = inside.nearest;
    best_.type_between = between.nearest;
    best_.same_channels = asked.pattern != Pattern::nvls;
    if (asked.pattern == Pattern::nvls) {
      best_.most = std::min(most_nvls_heads, static_cast<int>(gpus));
      if (!node.several_nodes) best_.least = best_.most;
    }
    if (gpus == 1 && asked.pattern != Pattern::ring) best_.pattern = Pattern::tree;
    // Trees will do better between two groups, and need two channels; rings have as many.
    if (best_.pattern == Pattern::ring && best_.most >= 2 && best_.least == 1 && has_two_nvlink_groups(node))
      best_.least = 2;
    alike_ = best_.same_channels;
  }

  Trial run() {
    if (best_.pattern == Pattern::nvls && (node_.count(SeenKind::nvswitch) == 0 || sm_ < 90)) return best_;
    lower();
    repeat_channels(best_, sm_, doubles_any_);
    raise();
    if (best_.channels.empty() && best_.pattern != Pattern::nvls) fall_back();
    return best_;
  }

 private:
  float speed(std::size_t i) const { return static_cast<float>(speeds_[i]); }
  std::size_t first_up_to(float most) const {
    std::size_t i = 0;
    while (i + 1 < speeds_.size() && speed(i) > most) ++i;
    return i;
  }

  int search(const Trial& trial) {
    const int steps = trial.same_channels ? most_steps_alike : most_steps;
    in_all_ -= steps;
    return search_channels(node_, trial, steps, best_);
  }

  /// From the highest speed down, at each with channels that reach farther and farther, until half of what was found.
  void lower() {
    const Widest most = widest(node_);
    float total = most.total;
    const auto boards = static_cast<double>(node_.count(SeenKind::board));
    // Other than rings they need not come back to the first NIC.
    if (boards > 1 && best_.pattern != Pattern::ring) total = static_cast<float>(total * (boards / (boards - 1)));
    std::size_t at = 0;
    while (at + 1 < speeds_.size() && (speed(at) > most.channel || speed(at) * static_cast<float>(best_.least) > total))
      ++at;
    Trial trial = best_;
    trial.inside = trial.between = speed(at);
    const SeenDevice& cpu = node_.at(SeenKind::cpu, 0);
    for (;;) {
      const int left = search(trial);
      if (left == no_better || static_cast<float>(best_.channels.size()) * best_.between >= most.total) return;
      if (trial.same_channels && !(cpu.amd && trial.type_inside == PathType::sys)) {
        trial.same_channels = false;
        continue;
      }
      trial.same_channels = alike_;
      in_all_ += left;
      if (in_all_ < 0 && !best_.channels.empty()) return;
      if (sm_ >= 90 && trial.pattern == Pattern::balanced_tree) {
        trial.pattern = Pattern::tree;
        continue;
      }
      trial.pattern = best_.pattern;
      const bool found = !best_.channels.empty();
      const PathType farthest_inside = node_.several_nodes ? trial.type_between : inside_.farthest;
      if (trial.type_inside < farthest_inside && (!found || trial.type_inside < best_.type_inside)) {
        trial.type_inside = farther(trial.type_inside);
        if (trial.type_inside < PathType::dir) continue;
      }
      trial.type_inside = inside_.nearest;
      if (node_.several_nodes && trial.type_between < between_.farthest &&
          (!found || trial.type_between < best_.type_between || trial.type_between < PathType::pxn)) {
        trial.type_between = farther(trial.type_between);
        if (trial.type_between < PathType::dir) continue;
      }
      trial.type_between = between_.nearest;
      if (tried_last_ != 0 && trial.cross_nic == 0 &&
          (best_.pattern == Pattern::ring || best_.pattern == Pattern::balanced_tree)) {
        trial.cross_nic = tried_last_;
        continue;
      }
      trial.cross_nic = cross_nic_;
      if (at + 1 < speeds_.size() && (!found || speed(at + 1) / best_.between > .49)) {
        ++at;
        trial.inside = trial.between = speed(at);
        continue;
      }
      return;
    }
  }

  /// Rings faster in all; trees inside a node only, up to twice their speed between nodes; heads of NVLS between nodes.
  void raise() {
    std::size_t at = first_up_to(best_.between);
    Trial trial = best_;
    trial.inside = trial.between = speed(at);
    trial.least = static_cast<int>(best_.channels.size());
    for (int left = no_better; left != 0 && at > 0; left = search(trial)) {
      if (best_.pattern == Pattern::ring) {
        trial.inside = trial.between = speed(--at);
      } else if (best_.pattern == Pattern::nvls && trial.between == best_.between && trial.between < trial.inside * 2) {
        trial.least = trial.most = static_cast<int>(best_.channels.size());
        trial.between = speed(--at);
      } else if (trial.inside == best_.inside && trial.inside < trial.between * 2) {
        trial.inside = speed(--at);
      } else {
        return;
      }
    }
  }

  void fall_back() {
    FoundChannel& only = best_.channels.emplace_back();
    only.gpus.resize(node_.count(SeenKind::gpu));
    std::iota(only.gpus.begin(), only.gpus.end(), 0U);
    best_.inside = 0.1F;
    best_.type_inside = PathType::sys;
    best_.between = 0.1F;
    best_.type_between = PathType::sys;
    if (!node_.several_nodes) return;
    only.enters = node_.net_of(0, 0);
    only.leaves = node_.net_of(only.gpus.back(), 0);
  }

  const SeenNode& node_;
  std::span<const double> speeds_;
  int sm_, cross_nic_ = 0, tried_last_ = 0;
  bool doubles_any_;
  Types inside_, between_;
  bool alike_ = true;
  Trial best_;
  std::int64_t in_all_ = most_steps_in_all;
};

}  // namespace

FoundGraph search_graph(const SeenNode& node, const SearchSpeeds& speeds, const SearchAsked& asked) {
  const Trial best = SpeedSearch(node, speeds, asked).run();
  FoundGraph found = static_cast<const FoundGraph&>(best);  // without what only the search needs
  if (found.pattern == Pattern::nvls)
    for (FoundChannel& channel : found.channels) channel.gpus.resize(1);
  return found;
}

}  // namespace ringsim::nccl
