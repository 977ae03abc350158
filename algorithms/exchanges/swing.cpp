#include "algorithms/exchanges/swing.hpp"

#include <memory>
#include <utility>

#include "algorithms/composed/compose.hpp"
#include "algorithms/exchanges/powers.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

struct Swing {
  int n = 1;
  std::vector<std::pair<Digit, int>> steps;  // along which dimension, and how far on even places
  std::vector<int> number;                   // [rank] of the chunk that it keeps

  Actor partner(Actor r, int step) const {
    const auto& [digit, distance] = steps[static_cast<std::size_t>(step)];
    const int place = digit.of(r);
    return digit.with(r, wrap(place % 2 == 0 ? place + distance : place - distance, digit.size));
  }

  // Numbers the chunks that `r` is to have a share of from this step on: first those that it keeps, then its partner's.
  void count(Actor r, int step, int first) {
    const auto m = static_cast<int>(steps.size());
    if (step == m) {
      number[static_cast<std::size_t>(r)] = first;
      return;
    }
    count(r, step + 1, first);
    count(partner(r, step), step + 1, first + (n >> (step + 1)));
  }
};

Swing swing_of(const std::vector<int>& dimensions) {
  Swing swing;
  for (const int size : dimensions) {
    require_power_of_two("swing", size, "ring, and halving_doubling with a fold, take any number");
    swing.n *= size;
  }
  for (int s = 0; 1 << static_cast<int>(swing.steps.size()) < swing.n; ++s) {
    int stride = swing.n;
    for (const int size : dimensions) {  // each dimension has log2 of its size steps, and they take turns
      stride /= size;
      if (1 << s < size) swing.steps.push_back({{size, stride}, swing_distance(s)});
    }
  }
  swing.number.resize(static_cast<std::size_t>(swing.n));
  swing.count(0, 0, 0);
  return swing;
}

}  // namespace

int swing_distance(int step) {
  int distance = 0;
  for (int i = 0; i <= step; ++i) distance += i % 2 == 0 ? 1 << i : -(1 << i);
  return distance;
}

Schedule swing_all_reduce(const std::vector<int>& dimensions, Bytes bytes) {
  const auto swing = std::make_shared<const Swing>(swing_of(dimensions));
  const int n = swing->n, m = floor_log2(n);
  Schedule s{.algorithm = "swing", .collective = all_reduce(n, bytes), .actors = n};
  s.layout[static_cast<std::size_t>(Buffer::data)] = Layout::near_equal(bytes, n);
  s.n_steps = [m](Actor, Lane) { return 2 * m; };
  s.step = [swing, m](Actor r, Lane, int i, Step& out) {
    const int step = i < m ? i : 2 * m - 1 - i;
    const int half = swing->n >> (step + 1);
    const int number = swing->number[static_cast<std::size_t>(r)];
    const int base = number & ~(2 * half - 1);  // our run of 2*half chunks, of which we keep the half with our number
    const Region mine = chunks(base + (number & half), half), other = chunks(base + (half - (number & half)), half);
    const Actor peer = swing->partner(r, step);
    if (i < m) {
      out.send(peer, other);
      out.receive_add(peer, mine);
    } else {
      out.send(peer, mine);
      out.receive(peer, other);
    }
  };
  return s;
}

}  // namespace ringsim
