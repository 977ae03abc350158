// Schedules over several channels and in pieces: what is cut how, that all of it arrives, and what it takes.
#include "algorithms/composed/channels.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/exchanges/halving_doubling.hpp"
#include "algorithms/promise.hpp"
#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/naive/interpreter.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/verdict.hpp"
#include "validate/closed_forms/closed_form.hpp"

namespace channels_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

const LinkSpec cable{.bandwidth = 10_GBps, .latency = 500'000_ps};  // a path of two of them: 1 us

std::vector<Op> ops_of(const Schedule& s, Actor actor, Lane lane, int i) {
  Step step;
  s.step(actor, lane, i, step);
  return step.ops;
}

Picoseconds simulated(const Schedule& s) {
  return run(star(s.collective.ranks, cable, s.actors - s.collective.ranks), check(s)).duration();
}

}  // namespace

TEST_CASE("a buffer is cut into the fewest pieces of at most a chunk, as many in each channel") {
  const auto cut = [](Bytes size, int channels, std::optional<Bytes> chunk) {
    const Pieces pieces = pieces_of(size, channels, chunk);
    return std::pair(pieces.channels, pieces.rounds);
  };
  CHECK(cut(1000_B, 1, std::nullopt) == std::pair(1, 1));
  CHECK(cut(1000_B, 3, std::nullopt) == std::pair(3, 1));
  CHECK(cut(1000_B, 1, 1000_B) == std::pair(1, 1));
  CHECK(cut(1000_B, 1, 999_B) == std::pair(1, 2));
  CHECK(cut(1000_B, 2, 250_B) == std::pair(2, 2));
  CHECK(cut(1001_B, 2, 250_B) == std::pair(2, 3));  // one channel has 501 bytes
  CHECK(cut(1000_B, 2, 1_MiB) == std::pair(2, 1));
  CHECK(cut(0_B, 2, 1_B) == std::pair(2, 1));
  CHECK_THROWS_WITH_AS(cut({1LL << 40}, 1, 1_B),
                       "expected at most 2^27 pieces, found 1099511627776 for each channel\n  hint: use larger pieces",
                       InputError);
}

TEST_CASE("chunks that nobody owns are cut into stretches: a channel's pieces are a contiguous run") {
  // 4 chunks of 300 bytes; 6 pieces of 200 bytes, 50 a chunk: channel 1 begins with piece 3, at byte 600.
  const Schedule s = over_channels(ring_all_reduce(4, 1200_B), {.channels = 2, .rounds = 3});
  CHECK(s.lanes == 2);
  CHECK(s.layout[0].n_chunks() == 24);
  CHECK(s.n_steps(0, 1) == 3 * 6);
  const std::vector<Op> first = ops_of(s, 2, 1, 0), third = ops_of(s, 2, 1, 2 * 6);
  REQUIRE(first.size() == 2);
  CHECK(first[0].region == chunk(3 * 4 + 2));  // rank 2 sends its own chunk of piece 3
  CHECK(first[0].peer == 3);
  CHECK(first[0].channel == 1);
  CHECK(third[0].region == chunk(5 * 4 + 2));
  CHECK(s.layout[0].size(0, 12) == 600_B);
  CHECK(s.size(first[0].region) == 50_B);
}

TEST_CASE(
    "chunks that belong to ranks are cut each: a run of them becomes a message each, and stays where it belongs") {
  const Schedule plain = halving_reduce_scatter(4, 1200_B);
  const Schedule s = over_channels(plain, {.channels = 1, .rounds = 3});
  const std::vector<Op> whole = ops_of(plain, 1, 0, 0), parts = ops_of(s, 1, 0, plain.n_steps(1, 0));  // of round 1
  REQUIRE(whole.size() == 2);
  REQUIRE(whole[0].region.count == 2);
  REQUIRE(parts.size() == 4);
  for (std::size_t o = 0; o < 4; ++o) {
    CHECK(parts[o].what == whole[o / 2].what);
    CHECK(parts[o].peer == whole[o / 2].peer);
    CHECK(parts[o].region == chunk(static_cast<int>(whole[o / 2].region.first + o % 2) * 3 + 1));
  }
  // The promise is the one that is written down for such chunks.
  const Collective known = reduce_scatter_in_pieces(4, 1200_B, 3);
  for (Actor r = 0; r < 4; ++r)
    for (std::uint32_t c = 0; c < 12; ++c) {
      const Content here = s.collective.after(r, Buffer::data, c), there = known.after(r, Buffer::data, c);
      CHECK(here.who == there.who);
      if (there.who != Content::Who::nothing) CHECK(here.chunk == there.chunk);
    }
}

TEST_CASE("the collective decides whether each chunk is cut, or the buffer into stretches") {
  // Piece 3 of 6 begins channel 1. Chunk c of C is there c * 6 + 3, or 3 * C + c.
  struct Row {
    Schedule plain;
    bool by_chunk = false;
  };
  const Row rows[] = {{ring_all_reduce(4, 1200_B)},        {ring_reduce_scatter(4, 1200_B), true},
                      {ring_all_gather(4, 1200_B), true},  {ring_broadcast(4, 1200_B, 0, 4)},
                      {direct_reduce(4, 1200_B, 1)},       {direct_scatter(4, 1200_B, 0), true},
                      {direct_gather(4, 1200_B, 1), true}, {direct_send_recv(4, 1200_B)},
                      {direct_pairs(4, 1200_B, true)},     {pairwise_all_to_all(4, 1200_B), true}};
  for (const Row& row : rows) {
    CAPTURE(to_string(row.plain.collective.op));
    const Schedule s = over_channels(row.plain, {.channels = 2, .rounds = 3});
    for (int i = 0; i < row.plain.n_steps(0, 0); ++i) {
      const Op plain = ops_of(row.plain, 0, 0, i).at(0), piece = ops_of(s, 0, 1, i).at(0);
      const auto n =
          static_cast<std::uint32_t>(row.plain.layout[static_cast<std::size_t>(plain.region.buffer)].n_chunks());
      CHECK(piece.region.first == (row.by_chunk ? plain.region.first * 6 + 3 : 3 * n + plain.region.first));
    }
  }
}

TEST_CASE("a layout that is cut counts as its chunks written out do, and takes no room for them") {
  for (const std::int64_t p : {0, 1, 7, 100, 1000003})
    for (const auto& cut : {std::pair{1, 1}, {3, 5}, {8, 2}, {7, 13}}) {
      const int n = cut.first, parts = cut.second;
      CAPTURE(p);
      CAPTURE(n);
      CAPTURE(parts);
      // Written out: every chunk near-equal by itself.
      const Layout whole = Layout::near_equal({p}, n);
      std::vector<Bytes> sizes;
      for (int c = 0; c < n; ++c) {
        const Layout part = Layout::near_equal(whole.size(static_cast<std::uint32_t>(c), 1), parts);
        for (int k = 0; k < parts; ++k) sizes.push_back(part.size(static_cast<std::uint32_t>(k), 1));
      }
      const Layout written = Layout::of_sizes(sizes);
      for (const Layout& layout : {whole.cut(parts), Layout::two_level({p}, n, parts)}) {
        CHECK(layout.n_chunks() == n * parts);
        CHECK(layout.total() == Bytes{p});
        CHECK(layout.uniform() == written.uniform());
        for (std::uint32_t c = 0; c < static_cast<std::uint32_t>(n * parts); ++c) {
          CHECK(layout.size(c, 1) == written.size(c, 1));
          CHECK(layout.size(0, c) == written.size(0, c));
        }
      }
    }
}

TEST_CASE("every algorithm is proved, and right when executed, over 1 to 3 channels, in pieces larger and smaller") {
  int n_cut = 0;
  for (int n = 2; n <= 9; ++n) {
    const Bytes size{7 * n + 3};  // chunks of unequal size
    for (const Schedule& plain : every_algorithm(n, size)) {
      if (plain.collective.op == CollectiveOp::barrier) continue;
      for (const int channels : {1, 2, 3}) {
        for (const Bytes chunk : {Bytes{1000}, Bytes{11}}) {
          const Pieces pieces = pieces_of(size, channels, chunk);
          const Schedule s = over_channels(plain, pieces);
          CAPTURE(s.algorithm);
          CAPTURE(n);
          CHECK(verdict(s) == "accepted");
          // What is promised is what the collective's name means at any grid of chunks.
          const bool both_ways = placement_of(plain, true).has_value();
          CHECK(placement_of(s, both_ways) == placement_of(plain, both_ways));
          CHECK(interpret(s, static_cast<std::uint64_t>(n_cut)) == Outcome::right);
          n_cut += pieces.count() > 1 ? 1 : 0;
        }
      }
    }
  }
  CHECK(n_cut > 3000);
}

TEST_CASE("no bytes, and fewer than pieces, are sent all the same") {
  for (const Bytes size : {0_B, 1_B, 5_B})
    for (const Schedule& plain : every_algorithm(6, size)) {
      if (plain.collective.op == CollectiveOp::barrier) continue;
      const Schedule s = over_channels(plain, {.channels = 2, .rounds = 2});
      CAPTURE(s.algorithm);
      CHECK(verdict(s) == "accepted");
      CHECK(interpret(s, 1) == Outcome::right);
    }
}

TEST_CASE("a piece that is missing, or put in another's place, is refused") {
  const Schedule good = over_channels(ring_all_reduce(4, 1200_B), {.channels = 2, .rounds = 2});
  Schedule missing = good;
  missing.n_steps = [n = good.n_steps](Actor a, Lane lane) { return lane == 1 ? n(a, lane) / 2 : n(a, lane); };
  CHECK(verdict(missing) != "accepted");
  Schedule moved = good;
  moved.step = [step = good.step](Actor a, Lane lane, int i, Step& out) {
    step(a, lane, i, out);
    for (Op& op : out.ops)
      if (lane == 1 && op.what != Do::send) op.region.first -= 4;  // into the piece before
  };
  CHECK(verdict(moved) != "accepted");
}

namespace {
/// What no longer says how it was made: all ranks are followed.
Schedule followed(Schedule schedule) {
  schedule.step = [step = schedule.step](Actor a, Lane lane, int i, Step& out) { step(a, lane, i, out); };
  return schedule;
}
std::vector<Actor> random_order(int n, std::mt19937_64& random) {
  std::vector<Actor> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}
bool can_be_ordered(const Schedule& s) {
  const CollectiveOp op = s.collective.op;
  return s.actors == s.collective.ranks &&
         (op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_gather ||
          has_root(op)) &&
         op != CollectiveOp::scatter && op != CollectiveOp::gather;
}
}  // namespace

TEST_CASE("with channels in orders of their own every algorithm delivers, proved in full and by construction alike") {
  int n_checked = 0, inherited = 0;
  std::mt19937_64 random(17);
  for (int n = 2; n <= 9; ++n) {
    for (const std::int64_t bytes : {std::int64_t{7 * n + 3}, std::int64_t{48} * n}) {
      for (const Schedule& plain : every_algorithm(n, {bytes})) {
        if (!can_be_ordered(plain)) continue;
        for (const Pieces& pieces : {Pieces{1, 1}, Pieces{3, 2}, Pieces{8, 1}}) {
          std::vector<std::vector<Actor>> orders;
          for (int k = 0; k < pieces.channels; ++k) orders.push_back(random_order(n, random));
          const Schedule whole = over_channels(plain, pieces, orders);
          CAPTURE(whole.algorithm);
          CAPTURE(to_string(plain.collective.op));
          CAPTURE(n);
          CAPTURE(bytes);
          CHECK(placement_of(whole, false) == placement_of(plain, false));  // the promise is the plain one's
          const Proof proof = check(whole).proof(), in_full = check(followed(whole)).proof();
          CHECK(in_full.from == "");
          CHECK(proof.operations == in_full.operations);
          CHECK(proof.slots_needed == in_full.slots_needed);
          CHECK(!proof.symmetry.claimed());
          inherited += proof.from.empty() ? 0 : 1;
          ++n_checked;
        }
      }
    }
  }
  CHECK(n_checked > 1000);
  CHECK(inherited > n_checked / 2);
}

TEST_CASE("in the ranks' own order, said or not, channels do the same; another order changes the peers") {
  const Schedule ring = ring_all_reduce(4, 1200_B);
  const auto fingerprint = [&](const std::vector<std::vector<Actor>>& orders) {
    return run(star(4, cable), check(over_channels(ring, {.channels = 2, .rounds = 3}, orders)), {.fold = false})
        .fingerprint;
  };
  CHECK(fingerprint({{0, 1, 2, 3}}) == fingerprint({}));
  CHECK(fingerprint({{0, 2, 1, 3}}) != fingerprint({}));
  const Schedule across = over_channels(ring, {.channels = 2}, {{0, 1, 2, 3}, {0, 2, 1, 3}});
  CHECK(ops_of(across, 0, 0, 0).front().peer == 1);
  CHECK(ops_of(across, 0, 1, 0).front().peer == 2);
}

TEST_CASE("orders that are no permutation, helpers and other ops are refused; a root keeps its place") {
  const Schedule ring = ring_all_reduce(4, 1200_B);
  const auto refused = [&](const Schedule& plain, const std::vector<std::vector<Actor>>& orders) {
    try {
      over_channels(plain, {.channels = 2}, orders);
    } catch (const InputError& error) {
      return std::string(error.message());
    }
    return std::string("accepted");
  };
  CHECK(refused(ring, {{0, 1, 2, 2}}) == "expected an order that names each of 4 ranks once, found rank 2 twice");
  CHECK(refused(ring, {{0, 1, 2, 4}}) == "expected an order that names each of 4 ranks once, found rank 4");
  CHECK(refused(ring, {{0, 1, 2}}) == "expected an order of 4 ranks, found one of 3");
  CHECK(refused(direct_send_recv(4, 100_B), {{0, 1, 2, 3}}) ==
        "expected an operation of rings or trees for another order of ranks, found send_recv");
  CHECK(refused(sharded_parameter_server(3, 90_B, 2), {{0, 1, 2}}) ==
        "expected an algorithm without helpers for another order of ranks, found parameter_server with 2 helpers");
  // The root 2 is at position 2 of every ring, so that it sends first.
  const Schedule chain = over_channels(ring_broadcast(4, 1200_B, 2, 4), {.channels = 1}, {{2, 0, 3, 1}});
  CHECK(ops_of(chain, 2, 0, 0).front().peer == 0);
  CHECK(ops_of(chain, 0, 0, 1).back().peer == 3);
}

TEST_CASE("a barrier, and more pieces than can be counted, are refused") {
  const Algorithm& dissemination = *find_algorithm("dissemination");
  CHECK_THROWS_WITH_AS(make_schedule(dissemination, {.op = CollectiveOp::barrier, .ranks = 4, .channels = 2}, {}),
                       "expected a collective that moves data, found a barrier\n  hint: a barrier has no data to cut",
                       InputError);
  CHECK_THROWS_WITH_AS(
      make_schedule(*find_algorithm("ring"), {.ranks = 4, .bytes = {1LL << 30}, .chunk = Bytes{16}}, {}),
      "expected at most 2^27 chunks, found 67108864 pieces of 4 chunks\n  hint: use larger pieces or fewer channels",
      InputError);
}

TEST_CASE("over channels a ring takes as long as over one; in r rounds it pays every latency r times") {
  // 8 ranks, 8 MB: 14 steps of 1 us + 1 MB / 10 GB/s = 100 us.
  const Schedule ring = ring_all_reduce(8, 8'000'000_B);
  CHECK(simulated(ring) == times(14, 101'000'000_ps));
  CHECK(simulated(over_channels(ring, {.channels = 4})) == times(14, 101'000'000_ps));
  // 5 rounds: 70 steps of 1 us + 20 us, over 1, 2 or 4 channels that share each port.
  for (const int channels : {1, 2, 4})
    CHECK(simulated(over_channels(ring, {.channels = channels, .rounds = 5})) == times(70, 21'000'000_ps));
}

TEST_CASE("in pieces a chain of one segment becomes a pipeline, of every other piece at a time") {
  // 4 ranks, p/b = 100 us. Whole: 3 (1 + 100) us. In 4 pieces of 25 us each rank takes the next one when it has passed
  // on the last: piece j sets out at moment 2j and arrives at the end at moment 3 + 2j, the last at moment 9.
  const Schedule plain = kary_broadcast(4, 1'000'000_B, 0, 1, 1);
  CHECK(simulated(plain) == times(3, 101'000'000_ps));
  CHECK(simulated(over_channels(plain, {.rounds = 4})) == times(9, 26'000'000_ps));
  // Over two channels, two pieces each, side by side: 3 + 2 moments of two messages on each port.
  CHECK(simulated(over_channels(plain, {.channels = 2, .rounds = 2})) == times(5, 51'000'000_ps));
}

TEST_CASE("the closed form says r rounds where all ranks go in step, equals the simulation, and else says why not") {
  int held = 0, not_held = 0;
  for (const int n : {2, 3, 4, 6, 8}) {
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.in_fabric) continue;
      for (const CollectiveOp op : algorithm.ops) {
        for (const auto& cut : {std::pair{1, 64'000}, {2, 1'000'000}, {3, 40'000}, {2, 17'000}}) {
          const int channels = cut.first, chunk = cut.second;
          for (const std::int64_t bytes : {960'000, 100'001}) {
            if (op == CollectiveOp::barrier || (op == CollectiveOp::pairs && n % 2 != 0)) continue;
            if (algorithm.name == "swing" && (n & (n - 1)) != 0) continue;
            if ((algorithm.name == "recursive_doubling" || algorithm.name == "halving_doubling") &&
                op != CollectiveOp::all_reduce && (n & (n - 1)) != 0)
              continue;
            const Arguments arguments =
                algorithm.name == "hierarchical" ? Arguments{.numbers = {{"group", n}}} : Arguments{};
            const CollectiveRequest request{
                .op = op, .ranks = n, .bytes = {bytes}, .channels = channels, .chunk = Bytes{chunk}};
            const Topology net = star(n, cable);
            const auto form =
                closed_form(algorithm, arguments, request,
                            uniform_of(net, net.ranks(), {}, {}, {}, grid_of(algorithm, arguments, request)));
            CAPTURE(algorithm.name);
            CAPTURE(to_string(op));
            CAPTURE(n);
            CAPTURE(channels);
            CAPTURE(chunk);
            CAPTURE(bytes);
            if (!form) continue;
            (form->holds() ? held : not_held) += 1;
            if (!form->holds()) continue;
            const Picoseconds time = run(net, check(make_schedule(algorithm, request, arguments))).duration();
            CAPTURE(time.count());
            CAPTURE(form->low.count());
            CAPTURE(form->time.count());
            CHECK(form->agrees(time));
          }
        }
      }
    }
  }
  CHECK(held > 100);
  CHECK(not_held > 100);

  const Uniform machine{Shape::star, 10_GBps, 1'000'000_ps};
  const auto of = [&](const char* name, CollectiveRequest request) {
    return *closed_form(*find_algorithm(name), {}, request, machine);
  };
  CHECK(of("ring", {.ranks = 4, .bytes = 1_MiB, .channels = 4, .chunk = 64_KiB}).formula ==
        "r times, p/r for p: 2(K-1)(a + p/(K b))");
  CHECK(of("ring", {.ranks = 4, .bytes = 1_MiB, .channels = 4}).formula == "2(K-1)(a + p/(K b))");
  CHECK(of("halving_doubling", {.ranks = 6, .bytes = 1_MiB, .channels = 2}).because ==
        std::vector<std::string>{"2 channels"});
  CHECK(of("halving_doubling", {.ranks = 6, .bytes = 1_MiB, .chunk = 256_KiB}).because ==
        std::vector<std::string>{"4 pieces, one after the other"});
  CHECK(of("ring", {.ranks = 4, .bytes = {1001}, .channels = 2}).because ==
        std::vector<std::string>{
            "the pieces of the channels differ by a byte, so channels that share ports get out of step"});
}

}  // namespace channels_test
