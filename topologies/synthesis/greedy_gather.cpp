#include "topologies/synthesis/greedy_gather.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace ringsim {

namespace {

std::size_t cell(int i) { return static_cast<std::size_t>(i); }

class GreedyGather {
 public:
  GreedyGather(const Wires& wires, const WireCosts& costs, const WayBetween& way, int pieces, Bytes size)
      : n_(wires.n_ranks()), pieces_(pieces), free_(wires.edges.size()) {
    const std::set<int> ranks(wires.ranks.begin(), wires.ranks.end());
    for (int from = 0; from < n_; ++from)
      for (int to = 0; to < n_; ++to) {
        Way made{from == to ? std::vector<int>{} : way(from, to), Picoseconds{0}, Picoseconds{0}};
        for (std::size_t i = 0; i < made.edges.size(); ++i) {
          const std::size_t e = cell(made.edges[i]);
          made.latency += costs.latency[e];
          made.slowest = std::max(made.slowest, transfer_time(size, costs.rate[e]));
          if (i + 1 < made.edges.size() && ranks.contains(wires.edges[e].to)) {
            made.edges.clear();
            break;
          }
        }
        ways_.push_back(std::move(made));
      }
    for (const Bandwidth& rate : costs.rate) taken_.push_back(transfer_time(size, rate));
    has_.assign(cell(n_) * cell(n_ * pieces_), std::nullopt);
    holders_.assign(cell(n_ * pieces_), 1);
    for (int p = 0; p < n_ * pieces_; ++p) has(p / pieces_, p) = Picoseconds{0};
  }

  std::vector<PlannedMessage> run(const Breath& breath) {
    const int wanted = n_ * pieces_ * (n_ - 1);
    std::vector<PlannedMessage> messages;
    while (static_cast<int>(messages.size()) < wanted) {
      if (breath) breath();
      const std::optional<PlannedMessage> next = first_to_arrive();
      if (!next) return {};
      for (const int e : ways_[cell(next->from * n_ + next->to)].edges) free_[cell(e)] = next->start + taken_[cell(e)];
      has(next->to, next->piece) = next->arrival;
      ++holders_[cell(next->piece)];
      messages.push_back(*next);
    }
    std::stable_sort(messages.begin(), messages.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    return messages;
  }

 private:
  struct Way {
    std::vector<int> edges;  // none: cannot be taken
    Picoseconds latency, slowest;
  };
  using Order = std::tuple<Picoseconds, std::size_t, int, Picoseconds, int, int, int>;

  std::optional<Picoseconds>& has(int rank, int piece) { return has_[cell(rank) * cell(n_ * pieces_) + cell(piece)]; }

  std::optional<PlannedMessage> first_to_arrive() {
    std::optional<PlannedMessage> best;
    Order least;
    for (int from = 0; from < n_; ++from)
      for (int to = 0; to < n_; ++to) {
        const Way& way = ways_[cell(from * n_ + to)];
        if (way.edges.empty()) continue;
        Picoseconds open{0};
        for (const int e : way.edges) open = std::max(open, free_[cell(e)]);
        if (best && open + way.latency + way.slowest > std::get<0>(least)) continue;
        for (int piece = 0; piece < n_ * pieces_; ++piece) {
          if (!has(from, piece) || has(to, piece)) continue;
          const Picoseconds start = std::max(open, *has(from, piece));
          const Order order(start + way.latency + way.slowest, way.edges.size(), holders_[cell(piece)], start,
                            (to - piece / pieces_ + n_) % n_, from, piece);
          if (best && least <= order) continue;
          least = order;
          best = {from, to, piece, start, std::get<0>(order)};
        }
      }
    return best;
  }

  int n_, pieces_;
  std::vector<Way> ways_;                        // [from * ranks + to]
  std::vector<Picoseconds> taken_;               // [edge] by one message
  std::vector<Picoseconds> free_;                // [edge] the time from which it is free
  std::vector<std::optional<Picoseconds>> has_;  // [rank * pieces + piece] since when
  std::vector<int> holders_;                     // [piece]
};

}  // namespace

std::vector<PlannedMessage> greedy_gather(const Wires& wires, const WireCosts& costs, const WayBetween& way, int pieces,
                                          Bytes size, const Breath& breath) {
  return GreedyGather(wires, costs, way, pieces, size).run(breath);
}

}  // namespace ringsim
