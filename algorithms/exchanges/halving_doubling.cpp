#include "algorithms/exchanges/halving_doubling.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "algorithms/exchanges/powers.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

/// The ranks of the power of two: core rank v of n_core = 2^m.
struct Core {
  int m = 0;
  int n_core = 1;
  int n_folded = 0;  // ranks beyond
  int scale = 1;     // chunks of the buffer to each of the n_core
  Region whole() const { return chunks(0, n_core); }
  Region lower() const { return chunks(0, n_core / 2); }
  Region upper() const { return chunks(n_core / 2, n_core / 2); }
};

// Step k of 2m among the core ranks; `rank_of` turns a core rank into an actor.
template <class RankOf>
void exchange(const Core& core, int v, int k, RankOf rank_of, Step& out) {
  const int level = k < core.m ? k : 2 * core.m - 1 - k;  // halving: far to near; doubling: the same way back
  const int half = core.n_core >> (level + 1);
  const int base = v & ~(2 * half - 1);  // our block of 2*half chunks, of which we keep the half that v lies in
  const Region mine = chunks((base + (v & half)) * core.scale, half * core.scale);
  const Region other = chunks((base + (half - (v & half))) * core.scale, half * core.scale);
  const Actor peer = rank_of(v ^ half);
  if (k < core.m) {
    out.send(peer, other);
    out.receive_add(peer, mine);
  } else {
    out.send(peer, mine);
    out.receive(peer, other);
  }
}

void naive(const Core& core, Actor r, int i, Step& out) {
  if (r >= core.n_core) {  // extra rank
    const Actor partner = r - core.n_core;
    if (i == 0)
      out.send(partner, core.whole());
    else
      out.receive(partner, core.whole());
    return;
  }
  const bool has_extra = r < core.n_folded;
  const int k = has_extra ? i - 1 : i;
  if (k < 0)
    out.receive_add(core.n_core + r, core.whole());
  else if (k < 2 * core.m)
    exchange(
        core, r, k, [](int v) { return v; }, out);
  else
    out.send(core.n_core + r, core.whole());
}

void rabenseifner(const Core& core, Actor r, int i, Step& out) {
  const bool in_pair = r < 2 * core.n_folded;
  if (in_pair && r % 2 == 1) {  // folded: adds up the upper half, hands it over, waits for the result
    if (i == 0) {
      out.send(r - 1, core.lower());
      out.receive_add(r - 1, core.upper());
    } else if (i == 1) {
      out.send(r - 1, core.upper());
    } else {
      out.receive(r - 1, core.whole());
    }
    return;
  }
  const int k = in_pair ? i - 2 : i;
  if (k == -2) {
    out.send(r + 1, core.upper());
    out.receive_add(r + 1, core.lower());
  } else if (k == -1) {
    out.receive(r + 1, core.upper());
  } else if (k < 2 * core.m) {
    const int v = in_pair ? r / 2 : r - core.n_folded;
    exchange(
        core, v, k,
        [&](int core_rank) { return core_rank < core.n_folded ? 2 * core_rank : core_rank + core.n_folded; }, out);
  } else {
    out.send(r + 1, core.whole());
  }
}

/// Binary blocks: rank first + v is the v-th of a block of `size`.
struct Block {
  int first = 0, size = 1;
  int larger = 0, smaller = 0;  // sizes of the blocks before and after it; 0: there is none
  int v = 0;
  int neighbors() const { return (larger > 0 ? 1 : 0) + (smaller > 0 ? 1 : 0); }
};

Block block_of(int n, Actor r) {
  Block block{.first = 0, .size = 1 << floor_log2(n)};
  while (r >= block.first + block.size) {
    const int first = block.first + block.size;
    block = {.first = first, .size = 1 << floor_log2(n - first), .larger = block.size};
  }
  if (const int behind = n - block.first - block.size; behind > 0) block.smaller = 1 << floor_log2(behind);
  block.v = r - block.first;
  return block;
}

// Steps: halving; up from the smaller block, up to the larger one; down from the larger, down to the smaller; doubling.
void blockwise(int n, Actor r, int i, Step& out) {
  const Block block = block_of(n, r);
  const int n_chunks = 1 << floor_log2(n);  // the size of the largest block
  const Core core{.m = floor_log2(block.size), .n_core = block.size, .n_folded = 0, .scale = n_chunks / block.size};
  const auto rank_of = [&](int v) { return block.first + v; };
  if (i < core.m) return exchange(core, block.v, i, rank_of, out);
  const int after = i - core.m - 2 * block.neighbors();
  if (after >= 0) return exchange(core, block.v, core.m + after, rank_of, out);

  const bool up = i - core.m < block.neighbors();
  const bool first_of_two = (i - core.m) % block.neighbors() == 0;
  const bool with_smaller = block.larger == 0 || (block.smaller > 0 && first_of_two == up);
  if (with_smaller) {  // what we keep is a piece of what one rank there keeps
    const Actor peer = block.first + block.size + block.v / (block.size / block.smaller);
    const Region mine = chunks(block.v * core.scale, core.scale);
    return up ? out.receive_add(peer, mine) : out.send(peer, mine);
  }
  const int pieces = block.larger / block.size;
  for (int j = 0; j < pieces; ++j) {
    const int v = block.v * pieces + j, scale = core.scale / pieces;
    const Actor peer = block.first - block.larger + v;
    if (up)
      out.send(peer, chunks(v * scale, scale));
    else
      out.receive(peer, chunks(v * scale, scale));
  }
}

int n_steps(const Core& core, Fold fold, Actor r) {
  const int core_steps = 2 * core.m;
  if (fold == Fold::binary_blocks) {
    const Block block = block_of(core.n_core + core.n_folded, r);
    return 2 * floor_log2(block.size) + 2 * block.neighbors();
  }
  if (fold == Fold::naive) {
    if (r >= core.n_core) return 2;
    return r < core.n_folded ? core_steps + 2 : core_steps;
  }
  if (r >= 2 * core.n_folded) return core_steps;
  return r % 2 == 1 ? 3 : core_steps + 3;
}

/// "fold" and "unfold": between the ranks beyond the power of two and their partners.
PhaseStep folded_phase_of(const Core& core, Fold fold, Actor r, int i) {
  enum : std::uint8_t { folding, halving, doubling, unfolding };
  const bool naive_extra = fold == Fold::naive && r >= core.n_core;
  const bool in_pair = fold == Fold::rabenseifner && r < 2 * core.n_folded;
  if (naive_extra || (in_pair && r % 2 == 1)) {
    const int folds = naive_extra ? 1 : 2;
    return i < folds ? PhaseStep{folding, i} : PhaseStep{unfolding, i - folds};
  }
  const int folds = in_pair ? 2 : fold == Fold::naive && r < core.n_folded ? 1 : 0;
  if (i < folds) return {folding, i};
  const int k = i - folds;
  if (k < core.m) return {halving, k};
  return k < 2 * core.m ? PhaseStep{doubling, k - core.m} : PhaseStep{unfolding, 0};
}

/// "up": sums go to the largest block; "down": they come back.
PhaseStep blockwise_phase_of(int n, Actor r, int i) {
  enum : std::uint8_t { halving, up, down, doubling };
  const Block block = block_of(n, r);
  const int m = floor_log2(block.size), neighbors = block.neighbors();
  if (i < m) return {halving, i};
  const int k = i - m;
  if (k < neighbors) return {up, k};
  return k < 2 * neighbors ? PhaseStep{down, k - neighbors} : PhaseStep{doubling, k - 2 * neighbors};
}

Phases phases_with_fold(const Core& core, Fold fold) {
  if (core.n_folded == 0) return phases_in_turn({{"reduce_scatter", core.m}, {"all_gather", core.m}});
  if (fold == Fold::binary_blocks)
    return {{"reduce_scatter", "up", "down", "all_gather"},
            [n = core.n_core + core.n_folded](Actor r, Lane, int i) { return blockwise_phase_of(n, r, i); }};
  return {{"fold", "reduce_scatter", "all_gather", "unfold"},
          [core, fold](Actor r, Lane, int i) { return folded_phase_of(core, fold, r, i); }};
}

Core core_of(int n) {
  const int m = floor_log2(n);
  return {.m = m, .n_core = 1 << m, .n_folded = n - (1 << m)};
}

Schedule among_core(const Core& core, Collective collective) {
  const int n = collective.ranks;
  Schedule s{.algorithm = "halving_doubling", .collective = std::move(collective), .actors = n};
  s.layout[0] = Layout::near_equal(s.collective.bytes, core.n_core);
  if (core.n_folded == 0 && core.m > 0) s.symmetry = Symmetry(std::vector<int>(static_cast<std::size_t>(core.m), 2));
  return s;
}

// Half of the exchanges, from `first` on.
Schedule half_of(Collective collective, int first) {
  const Core core = core_of(collective.ranks);
  Schedule s = among_core(core, std::move(collective));
  s.n_steps = [m = core.m](Actor, Lane) { return m; };
  s.step = [core, first](Actor r, Lane, int i, Step& out) {
    exchange(
        core, r, first + i, [](int v) { return v; }, out);
  };
  return s;
}

}  // namespace

Schedule halving_doubling(int n, Bytes bytes, Fold fold) {
  const Core core = core_of(n);
  Schedule s = among_core(core, all_reduce(n, bytes));
  s.n_steps = [core, fold](Actor r, Lane) { return n_steps(core, fold, r); };
  s.phases = phases_with_fold(core, fold);
  s.step = [core, fold](Actor r, Lane, int i, Step& out) {
    switch (fold) {
      case Fold::naive:
        return naive(core, r, i, out);
      case Fold::rabenseifner:
        return rabenseifner(core, r, i, out);
      case Fold::binary_blocks:
        return blockwise(core.n_core + core.n_folded, r, i, out);
    }
  };
  return s;
}

Schedule halving_reduce_scatter(int n, Bytes bytes) {
  require_power_of_two("halving_doubling reduce_scatter", n, "pat and ring support any number");
  return half_of(reduce_scatter(n, bytes), 0);
}

Schedule doubling_all_gather(int n, Bytes bytes) {
  require_power_of_two("halving_doubling all_gather", n, "bruck, pat and ring support any number");
  return half_of(all_gather(n, bytes), core_of(n).m);
}

std::vector<int> binary_blocks(int n) {
  std::vector<int> sizes;
  for (int rest = n; rest > 0; rest -= sizes.back()) sizes.push_back(1 << floor_log2(rest));
  return sizes;
}

}  // namespace ringsim
