#include "topologies/nccl_search/channel_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim::nccl {

namespace {

/// Steps for the first channel, tried in the order of the GPUs.
constexpr int most_steps_in_order = 1 << 10;

/// Which GPUs may come next.
enum class Order { any, as_numbered, as_last_channel };

float rounded(float value) { return std::round(value * 1000) / 1000; }

bool is_tree(Pattern pattern) {
  return pattern == Pattern::balanced_tree || pattern == Pattern::tree || pattern == Pattern::split_tree;
}

class ChannelSearch {
 public:
  ChannelSearch(const SeenNode& node, Trial& best) : node_(node), best_(best), gpus_(node.count(SeenKind::gpu)) {
    for (const SeenLink& link : node.links) left_.push_back(link.rate);
    for (const std::uint32_t net : node.of_kind(SeenKind::net)) net_left_.push_back(node.devices[net].rate);
    used_.assign(gpus_, 0);
    nets_to_try_.resize(gpus_ + 1);
    reverse_.reserve(node.links.size());
    for (const SeenLink& link : node.links) reverse_.push_back(reverse_of(link));
  }

  /// Returns what is left of the steps, or `no_better`.
  int run(Trial trial, int steps) {
    trial_ = std::move(trial);
    trial_.channels.clear();
    if (node_.several_nodes) {
      back_to_net_ = trial_.pattern == Pattern::ring         ? static_cast<int>(gpus_) - 1
                     : trial_.pattern == Pattern::split_tree ? 1
                                                             : 0;
      back_to_first_ = none;
    } else {
      back_to_net_ = none;
      back_to_first_ = trial_.pattern == Pattern::ring ? static_cast<int>(gpus_) - 1 : none;
    }
    next_channel(steps);
    return steps;
  }

 private:
  static constexpr int none = -1;

  std::optional<std::uint32_t> reverse_of(const SeenLink& link) const {
    for (const std::uint32_t l : node_.devices[link.to].links)
      if (node_.links[l].to == link.from && node_.links[l].type == link.type) return l;
    return std::nullopt;
  }

  // ---- Room on links.

  /// Takes `rate` of the first `steps` links of a way; a negative one gives it back. Returns how many had room.
  std::size_t take(const SeenWay& way, std::uint32_t start, std::size_t steps, float rate) {
    const bool from_gpu = node_.devices[start].kind == SeenKind::gpu;
    float over_pcie = rate;
    // CPUs by Intel forward what GPUs exchange in packets of 64 B, which takes a fifth more of PCIe.
    if (way.type == PathType::phb && from_gpu)
      for (const std::uint32_t l : way.links)
        if (node_.devices[node_.links[l].to].kind == SeenKind::cpu && node_.devices[node_.links[l].to].intel)
          over_pcie = rate * 6 / 5;
    for (std::size_t i = 0; i < steps; ++i) {
      const std::uint32_t l = way.links[i];
      const SeenLink& link = node_.links[l];
      const SeenDevice& to = node_.devices[link.to];
      const float forth = link.type == PathType::pix ? over_pcie : rate;
      float back = 0;
      if (to.kind == SeenKind::board && to.sm < 80 && !from_gpu) back += forth / 8;
      if (to.kind == SeenKind::cpu && to.power && link.type == PathType::nvl) back += forth;
      if (left_[l] < forth || (back != 0 && left_[*reverse_[l]] < back)) return i;
      left_[l] = rounded(left_[l] - forth);
      if (back != 0) left_[*reverse_[l]] = rounded(left_[*reverse_[l]] - back);
    }
    return steps;
  }

  /// `times`: 1, or 2 for the head of NVLS, or their negatives to undo it. True if there was room.
  bool follow(SeenKind from, std::size_t f, SeenKind to, std::size_t t, int times) {
    const SeenWay& way = node_.way(from, f, to, t);
    const auto between_gpus = [](SeenKind kind) { return kind == SeenKind::gpu || kind == SeenKind::nvswitch; };
    const bool inside = between_gpus(from) && between_gpus(to);
    const PathType farthest = inside ? trial_.type_inside : trial_.type_between;
    if (way.type >= PathType::dir) return false;
    if (times == 1 && way.type > farthest) return false;
    if (times == 1 && is_tree(trial_.pattern) && node_.way(to, t, from, f).type > farthest) return false;
    const float rate = (inside ? trial_.inside : trial_.between) * static_cast<float>(times);
    const std::uint32_t start = node_.device_of(from, f);
    const std::size_t had_room = take(way, start, way.links.size(), rate);
    if (had_room < way.links.size()) {
      take(way, start, had_room, -rate);
      return false;
    }
    trial_.hops += times * static_cast<int>(way.links.size());
    return true;
  }

  // ---- The order in which GPUs and NICs are tried.

  struct Score {
    std::uint32_t gpu;
    int between = 0, pcie = 0, hops_between = 0, inside = 0, hops_inside = 0, place = 0;
    auto key() const { return std::tuple(-between, -pcie, hops_between, -inside, hops_inside, place); }
  };

  int pcie_of(std::size_t gpu) const {
    const std::uint32_t board = node_.at(SeenKind::gpu, gpu).board;
    for (const std::uint32_t l : node_.devices[board].links)
      if (node_.links[l].type == PathType::pix)
        for (const std::uint32_t back : node_.devices[node_.links[l].to].links)
          if (node_.links[back].to == board) return static_cast<int>(std::min(left_[l], left_[back]));
    return -1;
  }

  /// `near_net`: 1: GPUs near the NIC first; -1: last, if otherwise they are alike.
  std::vector<std::uint32_t> next_gpus(std::uint32_t gpu, int near_net) {
    const std::uint64_t flag = std::uint64_t{1} << trial_.channels.size();
    const auto n = static_cast<std::uint32_t>(gpus_);
    std::vector<Score>& scores = scores_;
    scores.clear();
    for (std::uint32_t i = 1; i < n; ++i) {
      const std::uint32_t g = (gpu + i) % n;
      const SeenWay& way = node_.way(SeenKind::gpu, gpu, SeenKind::gpu, g);
      if (way.links.empty() || (used_[g] & flag) != 0) continue;
      Score score{.gpu = g};
      score.place = static_cast<int>(i);
      score.hops_inside = static_cast<int>(way.links.size());
      score.inside = static_cast<int>(way.rate);
      if (near_net != 0) {
        const SeenWay& from_net = node_.way(SeenKind::net, open_.enters, SeenKind::gpu, g);
        score.hops_between = static_cast<int>(from_net.links.size());
        score.pcie = pcie_of(g);
        score.between = static_cast<int>(from_net.rate);
      }
      scores.push_back(score);
    }
    std::sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) { return a.key() < b.key(); });
    const bool alike = std::all_of(scores.begin(), scores.end(), [&](const Score& s) {
      return s.inside == scores.front().inside && s.hops_inside == scores.front().hops_inside;
    });
    if (near_net == -1 && alike) std::reverse(scores.begin(), scores.end());
    std::vector<std::uint32_t> next;
    next.reserve(scores.size());
    for (const Score& score : scores) next.push_back(score.gpu);
    return node_.count(SeenKind::nvswitch) == 0 ? next : neighbors_of(gpu, std::move(next));
  }

  /// On NVSwitches only the GPUs before and after are tried: they serve a GPU best that talks to few.
  std::vector<std::uint32_t> neighbors_of(std::uint32_t gpu, std::vector<std::uint32_t> next) const {
    const auto n = static_cast<std::uint32_t>(gpus_);
    const std::uint32_t before = (gpu + n - 1) % n, after = (gpu + 1) % n;
    const bool is_split = trial_.pattern == Pattern::split_tree || trial_.pattern == Pattern::balanced_tree;
    const bool both = before != after && (is_split || trial_.pattern == Pattern::ring);
    const std::array in_order = is_split ? std::array{before, after} : std::array{after, before};
    std::size_t found = 0;
    for (const std::uint32_t wanted : std::span(in_order).first(both ? 2 : 1)) {
      const auto at = std::find(next.begin(), next.end(), wanted);
      if (at == next.end()) continue;
      std::rotate(next.begin(), at, at + 1);
      ++found;
    }
    next.resize(found);
    return next;
  }

  /// The NICs that GPUs prefer, then all that are near enough. `gpu`: of one GPU only. Neither changes in a search.
  const std::vector<std::uint32_t>& nets_to_try(std::optional<std::uint32_t> gpu) {
    std::vector<std::uint32_t>& known = nets_to_try_[gpu ? *gpu : gpus_];
    if (known.empty()) known = find_nets_to_try(gpu);
    return known;
  }
  std::vector<std::uint32_t> find_nets_to_try(std::optional<std::uint32_t> gpu) const {
    std::vector<std::uint32_t> nets;
    const auto append = [&](std::uint32_t net) {
      if (std::find(nets.begin(), nets.end(), net) == nets.end()) nets.push_back(net);
    };
    const auto first = static_cast<std::uint32_t>(gpu.value_or(0));
    const auto last = gpu ? first + 1 : static_cast<std::uint32_t>(gpus_);
    if (node_.hosts > 1) {
      std::vector<std::uint32_t> open(last - first);
      std::iota(open.begin(), open.end(), first);
      for (int channel = 0; channel < most_channels_asked && !open.empty(); ++channel)
        std::erase_if(open, [&](std::uint32_t g) {
          const std::uint32_t net = node_.net_of(g, channel);
          if (channel > 0 && net == node_.net_of(g, 0)) return true;
          append(net);
          return false;
        });
    } else {
      for (std::uint32_t g = first; g < last; ++g)
        for (int channel = 0; channel < most_channels_asked; ++channel) {
          const std::uint32_t net = node_.net_of(g, channel);
          if (channel > 0 && net == node_.net_of(g, 0)) break;
          append(net);
        }
    }
    const auto n_nets =
        static_cast<std::uint32_t>(std::min(node_.count(SeenKind::net), static_cast<std::size_t>(most_channels_asked)));
    for (int type = 0; type <= static_cast<int>(trial_.type_between); ++type)
      for (std::uint32_t g = first; g < last; ++g)
        for (std::uint32_t n = 0; n < n_nets; ++n)
          if (static_cast<int>(node_.way(SeenKind::gpu, g, SeenKind::net, n).type) == type) append(n);
    return nets;
  }

  /// True if a channel that entered by open_.enters may leave by the net at this GPU.
  bool may_leave_by(std::uint32_t net, int position) const {
    const std::size_t channel = trial_.channels.size();
    if (trial_.pattern == Pattern::tree && net != open_.enters) return false;
    if (trial_.pattern == Pattern::ring && trial_.cross_nic == 2) {
      // The second of two goes the way of the first back.
      if (channel % 2 == 1 && net != trial_.channels.back().enters) return false;
    } else if (trial_.cross_nic == 0) {
      const SeenDevice &out = node_.at(SeenKind::net, net), &in = node_.at(SeenKind::net, open_.enters);
      if (out.adapter != in.adapter || out.port != in.port) return false;
    }
    return trial_.pattern != Pattern::balanced_tree || position == 0 || net == open_.leaves;
  }

  // ---- The search.

  bool is_better() const {
    const auto total = [](const Trial& t, float each) { return static_cast<float>(t.channels.size()) * each; };
    if (static_cast<int>(trial_.channels.size()) < trial_.least) return false;
    if (trial_.pattern == Pattern::nvls)
      return (trial_.channels.size() > best_.channels.size() && trial_.channels.size() <= gpus_) ||
             total(trial_, trial_.between) > total(best_, best_.between);
    const float now = total(trial_, trial_.inside), before = total(best_, best_.inside);
    if (now != before) return now > before;
    return trial_.pattern == best_.pattern && trial_.cross_nic == best_.cross_nic && trial_.hops < best_.hops;
  }

  void close_channel(int& steps) {
    trial_.channels.push_back(open_);
    if (is_better()) {
      best_ = trial_;
      if (static_cast<int>(trial_.channels.size()) == trial_.most) steps = no_better;
    }
    if (static_cast<int>(trial_.channels.size()) < trial_.most) {
      open_ = {};
      open_.gpus.resize(gpus_);
      next_channel(steps);
    }
    open_ = std::move(trial_.channels.back());
    trial_.channels.pop_back();
  }

  void at_gpu(std::uint32_t gpu, int position, int back_to_net, int back_to_first, Order order, int& steps) {
    if (steps <= 0) return;
    --steps;
    const int last = static_cast<int>(gpus_) - 1;
    if (position > last) return close_channel(steps);
    open_.gpus[static_cast<std::size_t>(position)] = gpu;
    if (position == back_to_net) {
      if (node_.several_nodes) leave_by_net(gpu, position, back_to_first, order, steps);
    } else if (trial_.pattern == Pattern::nvls) {
      pull_from_all(gpu, steps);
    } else if (position < last) {
      std::vector<std::uint32_t> next;
      if (order == Order::as_numbered)
        next = {static_cast<std::uint32_t>(position + 1)};
      else if (order == Order::as_last_channel)
        next = {trial_.channels.back().gpus[static_cast<std::size_t>(position) + 1]};
      else
        next = next_gpus(gpu, back_to_net == none ? 0 : back_to_net == position + 1 ? 1 : -1);
      for (const std::uint32_t g : next) {
        if (!follow(SeenKind::gpu, gpu, SeenKind::gpu, g, 1)) continue;
        visit(g, position + 1, back_to_net, back_to_first, order, steps);
        follow(SeenKind::gpu, gpu, SeenKind::gpu, g, -1);
      }
    } else if (position == back_to_first) {
      const std::uint32_t first = open_.gpus.front();
      if (!follow(SeenKind::gpu, gpu, SeenKind::gpu, first, 1)) return;
      at_gpu(first, position + 1, back_to_net, none, order, steps);
      follow(SeenKind::gpu, gpu, SeenKind::gpu, first, -1);
    } else {
      at_gpu(gpu, last + 1, none, none, order, steps);
    }
  }

  void visit(std::uint32_t gpu, int position, int back_to_net, int back_to_first, Order order, int& steps) {
    const std::uint64_t flag = std::uint64_t{1} << trial_.channels.size();
    used_[gpu] ^= flag;
    at_gpu(gpu, position, back_to_net, back_to_first, order, steps);
    used_[gpu] ^= flag;
  }

  void leave_by_net(std::uint32_t gpu, int position, int back_to_first, Order order, int& steps) {
    const bool shared = trial_.pattern == Pattern::balanced_tree;  // half of the rate at each of the first two GPUs
    const float between = trial_.between;
    for (const std::uint32_t net : nets_to_try(gpu)) {
      if (!may_leave_by(net, position)) continue;
      const auto use = [&](int times) {
        if (shared) trial_.between /= 2;
        const bool had_room = follow(SeenKind::gpu, gpu, SeenKind::net, net, times);
        trial_.between = between;
        return had_room;
      };
      if (!use(1)) continue;
      open_.leaves = net;
      at_gpu(gpu, position, shared && position == 0 ? 1 : none, back_to_first, order, steps);
      use(-1);
    }
  }

  /// NVLS: the head sends and receives twice what others do, and all of them at once through the NVSwitches.
  void pull_from_all(std::uint32_t head, int& steps) {
    const auto times = [&](std::uint32_t gpu) { return gpu == head ? 2 : 1; };
    std::uint32_t from = 0, to = 0;
    while (from < gpus_ && follow(SeenKind::nvswitch, 0, SeenKind::gpu, from, times(from))) ++from;
    if (from == gpus_) {
      while (to < gpus_ && follow(SeenKind::gpu, to, SeenKind::nvswitch, 0, times(to))) ++to;
      if (to == gpus_) at_gpu(head, static_cast<int>(gpus_), none, none, Order::any, steps);
      while (to > 0) --to, follow(SeenKind::gpu, to, SeenKind::nvswitch, 0, -times(to));
    }
    while (from > 0) --from, follow(SeenKind::nvswitch, 0, SeenKind::gpu, from, -times(from));
  }

  void next_channel(int& steps) {
    open_.gpus.resize(gpus_);
    if (node_.several_nodes) return enter_by_nets(steps);
    const std::size_t channel = trial_.channels.size();
    const auto begin = [&](std::uint32_t gpu, Order order) {
      visit(gpu, 0, back_to_net_, back_to_first_, order, steps);
    };
    if (trial_.pattern == Pattern::nvls) return begin(static_cast<std::uint32_t>(channel), Order::any);
    if (channel == 0)
      begin(0, Order::as_numbered);
    else
      begin(trial_.channels.back().gpus.front(), Order::as_last_channel);
    if (trial_.same_channels && channel > 0) return;
    for (std::uint32_t g = 0; g < gpus_; ++g) begin(g, Order::any);
  }

  void enter_by_nets(int& steps) {
    const int whole = static_cast<int>(trial_.between);  // NICs' ports are counted in whole GB/s
    const std::vector<std::uint32_t>& nets = nets_to_try(std::nullopt);
    const std::size_t channel = trial_.channels.size();
    bool has_head = false;
    for (std::size_t i = 0; i < nets.size(); ++i) {
      if (trial_.pattern == Pattern::nvls && has_head) break;
      const std::uint32_t net = nets[(channel + i) % nets.size()];
      if (net_left_[net] < static_cast<float>(whole)) continue;
      if (trial_.pattern == Pattern::ring && trial_.cross_nic == 2 && channel % 2 == 1 &&
          net != trial_.channels.back().leaves)
        continue;
      open_.enters = net;
      take_port(net, static_cast<float>(whole));
      const bool reached = trial_.pattern == Pattern::nvls ? enter_at_head(net, has_head, steps) : enter(net, steps);
      if (reached) take_port(net, static_cast<float>(-whole));  // NCCL keeps what it took of a NIC that no GPU reaches
    }
  }

  void take_port(std::uint32_t net, float rate) {
    const SeenDevice& taken = node_.at(SeenKind::net, net);
    for (std::uint32_t n = 0; n < net_left_.size(); ++n) {
      const SeenDevice& each = node_.at(SeenKind::net, n);
      if (each.adapter == taken.adapter && each.port == taken.port) net_left_[n] -= rate;
    }
  }

  void begin_at(std::uint32_t net, std::uint32_t gpu, Order order, int& steps) {
    if (!follow(SeenKind::net, net, SeenKind::gpu, gpu, 1)) return;
    visit(gpu, 0, back_to_net_, back_to_first_, order, steps);
    follow(SeenKind::net, net, SeenKind::gpu, gpu, -1);
  }

  bool enter_at_head(std::uint32_t net, bool& has_head, int& steps) {
    const std::uint32_t gpu = node_.at(SeenKind::net, net).nearest_gpu;
    const auto& heads = trial_.channels;
    const bool is_new = std::none_of(heads.begin(), heads.end(),
                                     [&](const FoundChannel& channel) { return channel.gpus.front() == gpu; });
    if (gpu == no_gpu || !is_new || heads.size() >= nets_to_try(std::nullopt).size()) return true;
    begin_at(net, gpu, Order::any, steps);
    has_head = true;
    return true;
  }

  /// False if no GPU reaches the NIC.
  bool enter(std::uint32_t net, int& steps) {
    if (!trial_.channels.empty() && trial_.same_channels) {
      begin_at(net, trial_.channels.back().gpus.front(), Order::as_last_channel, steps);
      return true;
    }
    if (trial_.channels.empty() && node_.count(SeenKind::nvswitch) == 0) {
      int few = most_steps_in_order;
      begin_at(net, 0, Order::as_numbered, few);
      if (few == no_better) steps = no_better;
    }
    const std::uint32_t nearest = node_.at(SeenKind::net, net).nearest_gpu;
    if (nearest != no_gpu) begin_at(net, nearest, Order::any, steps);
    const std::vector<std::uint32_t> near = node_.nearest(SeenKind::net, net, SeenKind::gpu);
    if (near.empty() || node_.way(SeenKind::net, net, SeenKind::gpu, near.front()).type == PathType::dir) return false;
    for (const std::uint32_t gpu : near)
      if (gpu != nearest) begin_at(net, gpu, Order::any, steps);
    return true;
  }

  const SeenNode& node_;
  Trial& best_;
  std::size_t gpus_;
  Trial trial_;
  FoundChannel open_;  // the channel that is being made
  int back_to_net_ = none, back_to_first_ = none;
  std::vector<Score> scores_;           // of next_gpus(): kept, because each of up to 2^19 steps of a search needs them
  std::vector<float> left_, net_left_;  // of links, of nets' ports
  std::vector<std::optional<std::uint32_t>> reverse_;    // of each link
  std::vector<std::uint64_t> used_;                      // [gpu] a bit for each channel
  std::vector<std::vector<std::uint32_t>> nets_to_try_;  // [gpu], and of all GPUs; empty if not yet asked for
};

}  // namespace

int search_channels(const SeenNode& node, const Trial& trial, int steps, Trial& best) {
  return ChannelSearch(node, best).run(trial, steps);
}

}  // namespace ringsim::nccl
