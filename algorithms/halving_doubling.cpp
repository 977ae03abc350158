#include "algorithms/halving_doubling.hpp"

#include <bit>
#include <vector>

#include "sim/collective.hpp"

namespace ringsim {

namespace {

/// The ranks of the power of two: core rank v of n_core = 2^m.
struct Core {
  int m = 0;
  int n_core = 1;
  int n_folded = 0;  // ranks beyond
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
  const int mine = base + (v & half);
  const int other = base + (half - (v & half));
  const Actor peer = rank_of(v ^ half);
  if (k < core.m) {
    out.send(peer, chunks(other, half));
    out.receive_add(peer, chunks(mine, half));
  } else {
    out.send(peer, chunks(mine, half));
    out.receive(peer, chunks(other, half));
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

int n_steps(const Core& core, Fold fold, Actor r) {
  const int core_steps = 2 * core.m;
  if (fold == Fold::naive) {
    if (r >= core.n_core) return 2;
    return r < core.n_folded ? core_steps + 2 : core_steps;
  }
  if (r >= 2 * core.n_folded) return core_steps;
  return r % 2 == 1 ? 3 : core_steps + 3;
}

}  // namespace

Schedule halving_doubling(int n, Bytes bytes, Fold fold) {
  Core core;
  core.n_core = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  core.m = static_cast<int>(std::bit_width(static_cast<unsigned>(core.n_core))) - 1;
  core.n_folded = n - core.n_core;

  Schedule s{.algorithm = "halving_doubling", .collective = all_reduce(n, bytes), .actors = n};
  s.layout[0] = Layout::near_equal(bytes, core.n_core);
  if (core.n_folded == 0 && core.m > 0) s.symmetry = Symmetry(std::vector<int>(static_cast<std::size_t>(core.m), 2));
  s.n_steps = [core, fold](Actor r, Lane) { return n_steps(core, fold, r); };
  s.step = [core, fold](Actor r, Lane, int i, Step& out) {
    if (fold == Fold::naive)
      naive(core, r, i, out);
    else
      rabenseifner(core, r, i, out);
  };
  return s;
}

}  // namespace ringsim
