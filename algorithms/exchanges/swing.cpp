#include "algorithms/exchanges/swing.hpp"

#include <algorithm>
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

/// `first`: the dimension along which it starts, of those greater than 1. `reversed`: the other way round.
Swing swing_of(const std::vector<int>& dimensions, int first, bool reversed) {
  Swing swing;
  std::vector<Digit> digits;
  for (const int size : dimensions) {
    require_power_of_two("swing", size, "ring, and halving_doubling with a fold, support any number");
    swing.n *= size;
  }
  int stride = swing.n;
  for (const int size : dimensions) {
    stride /= size;
    if (size > 1) digits.push_back({size, stride, reversed});
  }
  std::rotate(digits.begin(), digits.begin() + first, digits.end());
  for (int s = 0; 1 << static_cast<int>(swing.steps.size()) < swing.n; ++s)
    for (const Digit& digit : digits)  // each dimension has log2 of its size steps, and they take turns
      if (1 << s < digit.size) swing.steps.push_back({digit, swing_distance(s)});
  swing.number.resize(static_cast<std::size_t>(swing.n));
  swing.count(0, 0, 0);
  return swing;
}

/// One for each lane.
std::vector<Swing> swings_of(const std::vector<int>& dimensions, bool all_ports) {
  const auto greater =
      static_cast<int>(std::count_if(dimensions.begin(), dimensions.end(), [](int size) { return size > 1; }));
  std::vector<Swing> swings;
  for (int first = 0; first < (all_ports ? greater : 1); ++first)
    for (const bool reversed : {false, true})
      if (all_ports || !reversed) swings.push_back(swing_of(dimensions, first, reversed));
  if (swings.empty()) swings.push_back(swing_of(dimensions, 0, false));  // one rank
  return swings;
}

/// Step i of 2m: halves out to the partner, then back. `base`: the first chunk of the lane.
void exchange_halves(const Swing& swing, Actor r, int i, int base, Lane lane, Step& out) {
  const auto m = static_cast<int>(swing.steps.size());
  const int step = i < m ? i : 2 * m - 1 - i;
  const int half = swing.n >> (step + 1);
  const int number = swing.number[static_cast<std::size_t>(r)];
  // Our run of 2*half chunks, of which we keep the half with our number.
  const int run = base + (number & ~(2 * half - 1));
  const Region mine = chunks(run + (number & half), half), other = chunks(run + (half - (number & half)), half);
  const Actor peer = swing.partner(r, step);
  if (i < m) {
    out.send(peer, other, lane);
    out.receive_add(peer, mine, lane);
  } else {
    out.send(peer, mine, lane);
    out.receive(peer, other, lane);
  }
}

/// Step i of 2m: an exchange, then the addition of what came.
void exchange_whole(const Swing& swing, Actor r, int i, Lane lane, Step& out) {
  const Region room{Buffer::scratch, static_cast<std::uint32_t>(lane), 1};
  if (i % 2 == 1) return out.add(room, chunk(lane));
  const Actor peer = swing.partner(r, i / 2);
  out.send(peer, chunk(lane), lane);
  out.receive(peer, room, lane);
}

}  // namespace

int swing_distance(int step) {
  int distance = 0;
  for (int i = 0; i <= step; ++i) distance += i % 2 == 0 ? 1 << i : -(1 << i);
  return distance;
}

Schedule swing_all_reduce(const std::vector<int>& dimensions, Bytes bytes, const SwingOptions& options) {
  const auto swings = std::make_shared<const std::vector<Swing>>(swings_of(dimensions, options.all_ports));
  const int n = swings->front().n, m = floor_log2(n), lanes = static_cast<int>(swings->size());
  const bool whole = options.whole;
  Schedule s{.algorithm = "swing", .collective = all_reduce(n, bytes), .actors = n, .lanes = lanes};
  s.layout[static_cast<std::size_t>(Buffer::data)] = Layout::near_equal(bytes, whole ? lanes : lanes * n);
  if (whole) s.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::near_equal(bytes, lanes);
  s.n_steps = [m](Actor, Lane) { return 2 * m; };
  if (whole)
    s.phases = {{"exchange"}, [](Actor, Lane, int i) { return PhaseStep{0, i / 2}; }};
  else
    s.phases = phases_in_turn({{"reduce_scatter", m}, {"all_gather", m}});
  s.step = [swings, whole](Actor r, Lane lane, int i, Step& out) {
    const Swing& swing = (*swings)[static_cast<std::size_t>(lane)];
    whole ? exchange_whole(swing, r, i, lane, out) : exchange_halves(swing, r, i, lane * swing.n, lane, out);
  };
  return s;
}

}  // namespace ringsim
