// Proofs by construction: what a schedule on pieces inherits, what it must not, and that nothing is taken on trust.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "algorithms/composed/buffers.hpp"
#include "algorithms/composed/channels.hpp"
#include "algorithms/ring.hpp"
#include "sim/schedule/collective.hpp"
#include "sim/schedule/piecewise.hpp"
#include "sim/schedule/relocated.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/verdict.hpp"

namespace check_construction_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

constexpr auto data = static_cast<std::size_t>(Buffer::data);

/// The same schedule, which no longer says how it was made: all ranks are followed.
Schedule by_itself(Schedule schedule) {
  schedule.step = [step = schedule.step](Actor a, Lane lane, int i, Step& out) { step(a, lane, i, out); };
  schedule.symmetry = {};
  return schedule;
}

/// How over_channels() makes a ring of 4 over 2 channels: 2 stretches of 4 chunks.
Piecewise two_stretches() {
  Piecewise made{.plain = ring_all_reduce(4, 1200_B), .channels = 2, .stride = 2};
  made.cut = {.pieces = 2, .contributed = 4};
  made.cut.chunks[data] = 4;
  return made;
}

Schedule on_stretches(const Piecewise& made) {
  Schedule s = run_piecewise(made);
  s.layout[data] = Layout::two_level(1200_B, 2, 4);
  return s;
}

bool by_construction(const Schedule& schedule) { return !check(schedule).proof().from.empty(); }

/// Refused, and not only because it is by construction that it is not proved.
void check_refused(const Schedule& schedule, const std::string& because) {
  const std::string said = verdict(schedule);
  CAPTURE(said);
  CHECK(said.find(because) != std::string::npos);
  CHECK(said == verdict(by_itself(schedule)));
}

/// Two ranks exchange all chunks of their input; rank r puts chunk c where `to` says.
Schedule exchange(Bytes bytes, int n, int to) {
  Schedule s{.algorithm = "by hand", .collective = pairs(2, bytes, true), .actors = 2};
  s.layout[static_cast<std::size_t>(Buffer::input)] = Layout::near_equal(bytes, n);
  s.layout[static_cast<std::size_t>(Buffer::output)] = Layout::near_equal(bytes, n);
  s.collective.after = [n, to](Actor rank, Buffer buffer, std::uint32_t chunk) {
    if (buffer != Buffer::output) return Content{};
    return Content{Content::Who::one, 1 - rank, static_cast<std::uint32_t>(wrap(static_cast<int>(chunk) - to, n))};
  };
  s.n_steps = [n](Actor, Lane) { return n; };
  s.step = [n, to](Actor r, Lane, int i, Step& out) {
    out.send(1 - r, {Buffer::input, static_cast<std::uint32_t>(i), 1});
    out.receive(1 - r, {Buffer::output, static_cast<std::uint32_t>(wrap(i + to, n)), 1});
  };
  return s;
}

}  // namespace

TEST_CASE(
    "on channels and in pieces every algorithm is proved as it is by itself, with the same slots and operations") {
  int inherited = 0, by_symmetry = 0;
  for (int n = 2; n <= 9; ++n) {
    for (const std::int64_t bytes : {std::int64_t{7 * n + 3}, std::int64_t{48} * n}) {
      for (const Schedule& plain : every_algorithm(n, {bytes})) {
        if (plain.collective.op == CollectiveOp::barrier) continue;
        const Proof before = check(plain).proof();
        for (const Pieces& pieces : {Pieces{2, 1}, Pieces{1, 3}, Pieces{3, 2}}) {
          const Schedule whole = over_channels(plain, pieces);
          CAPTURE(whole.algorithm);
          CAPTURE(to_string(plain.collective.op));
          CAPTURE(n);
          CAPTURE(bytes);
          const Proof proof = check(whole).proof(), in_full = check(by_itself(whole)).proof();
          CHECK(in_full.from == "");
          CHECK(in_full.by == Proof::By::all_ranks);
          CHECK(proof.operations == in_full.operations);
          CHECK(proof.slots_needed == in_full.slots_needed);
          if (proof.from.empty()) continue;
          ++inherited;
          CHECK(proof.from == plain.algorithm);
          CHECK(proof.pieces == pieces.count());
          CHECK(proof.by == before.by);
          CHECK(proof.symmetry.radices() == before.symmetry.radices());
          CHECK(proof.symmetry.claimed() == (before.by == Proof::By::symmetry));
          by_symmetry += proof.symmetry.claimed() ? 1 : 0;
        }
      }
    }
  }
  CHECK(inherited > 1500);
  CHECK(by_symmetry > 300);
}

TEST_CASE("a proof by construction says so, and from what") {
  const Schedule ring = ring_all_reduce(4, 1200_B);
  CHECK(to_string(check(over_channels(ring, {.channels = 2, .rounds = 3})).proof()) ==
        "288 operations, 0 slots needed: by construction from the proof of ring: 6 pieces share no chunk and no "
        "connection; in it one chunk represents all chunks; the symmetry was checked at every step of every rank");
  CHECK(to_string(check(over_channels(without_symmetry(ring), {.channels = 2})).proof()) ==
        "96 operations, 0 slots needed: by construction from the proof of ring: 2 pieces share no chunk and no "
        "connection; in it every operation of every actor was checked");
  const Proof nested =
      check(over_channels(over_channels(without_symmetry(ring), {.rounds = 3}), {.channels = 2})).proof();
  CHECK(nested.from == "ring");
  CHECK(nested.pieces == 6);
  CHECK(nested.operations == 288);
}

TEST_CASE("however many channels, the proof looks at the steps of one") {
  const auto looks = [](int channels) {
    const auto count = std::make_shared<std::int64_t>(0);
    Schedule ring = ring_all_reduce(32, 32_KiB);
    ring.step = [plain = ring.step, count](Actor a, Lane lane, int i, Step& out) {
      ++*count;
      plain(a, lane, i, out);
    };
    check(over_channels(ring, {.channels = channels}));
    return *count;
  };
  const std::int64_t one = looks(1);
  CHECK(one >= 32 * 62);
  for (const int channels : {2, 8, 64}) CHECK(looks(channels) == one);
}

TEST_CASE("pieces that overlap, or leave chunks over, are refused") {
  REQUIRE(by_construction(on_stretches(two_stretches())));
  Piecewise overlapping = two_stretches();
  overlapping.cut.chunks[data] = 3;  // piece 1 begins within piece 0
  check_refused(on_stretches(overlapping), "both access data[");
  overlapping.cut.chunks[data] = 5;  // apart, and the last one beyond the end
  check_refused(on_stretches(overlapping), "is outside its buffer");
  Piecewise same = two_stretches();
  same.cut.parts = true;
  same.cut.pieces = 1;  // both pieces in one place
  check_refused(on_stretches(same), "both access data[");
  Schedule missing = on_stretches(two_stretches());
  missing.layout[data] = Layout::near_equal(1200_B, 12);  // room for three pieces
  check_refused(missing, "data[");
}

TEST_CASE(
    "a cast keeps the promise of an all-reduce where chunks stay, and of an all-gather where they go with ranks") {
  Piecewise made = two_stretches();
  made.casts = {Cast::of({0, 1, 2, 3}), Cast::of({1, 0, 2, 3})};
  CHECK(by_construction(on_stretches(made)));
  made.plain = ring_all_gather(4, 1200_B);
  // Rank 1 plays position 0, and so begins with chunk 0 of the second stretch, which is rank 0's.
  check_refused(on_stretches(made), "data[");
  made.cut.parts = true;
  Schedule parts = run_piecewise(made);
  parts.layout[data] = Layout::two_level(1200_B, 4, 2);
  CHECK(by_construction(parts));
}

TEST_CASE("channels that share a connection are refused") {
  // Two lanes on channels 0 and 1, twice: with a stride of 1 both have a channel 1.
  Piecewise made = two_stretches();
  made.plain = over_channels(ring_all_reduce(4, 600_B), {.channels = 2});
  made.cut = {.pieces = 2, .contributed = 8};
  made.cut.chunks[data] = 8;
  const auto whole = [&](int stride) {
    made.stride = stride;
    Schedule s = run_piecewise(made);
    s.layout[data] = Layout::near_equal(1200_B, 16);
    return s;
  };
  check_refused(whole(0), "they must all be in one lane");
  check_refused(whole(1), "they must all be in one lane");
  CHECK(by_construction(whole(2)));
  CHECK(by_construction(whole(65534)));
  check_refused(whole(65535), "they must all be in one lane");  // 65535 + 1 is 0, the first channel's
}

TEST_CASE("a schedule that was changed after it was made is proved as it is now") {
  const Schedule good = on_stretches(two_stretches());
  const auto changed = [&](auto change) {
    Schedule s = good;
    change(s);
    return s;
  };
  check_refused(changed([](Schedule& s) { s.lanes = 1; }), "data[4]");
  check_refused(changed([](Schedule& s) {
                  s.collective.after = [](Actor rank, Buffer, std::uint32_t chunk) {
                    return Content{Content::Who::one, rank, chunk};
                  };
                }),
                "data[0]");
  check_refused(changed([](Schedule& s) { std::swap(s.collective.before, s.collective.after); }), "data[0]");
  check_refused(changed([](Schedule& s) { s.n_steps = [](Actor, Lane) { return 5; }; }), "data[");
  // Steps of one schedule and promises of another, though both are made of the same.
  Schedule mixed = good;
  mixed.step = on_stretches(two_stretches()).step;
  CHECK_FALSE(by_construction(mixed));
  const Schedule wrapped = changed(
      [](Schedule& s) { s.step = [step = s.step](Actor a, Lane lane, int i, Step& out) { step(a, lane, i, out); }; });
  CHECK_FALSE(by_construction(wrapped));
}

TEST_CASE("where the plain schedule is wrong the whole is refused, at its own place") {
  Schedule wrong = ring_all_reduce(4, 1200_B);
  wrong.symmetry = {};
  wrong.step = [plain = wrong.step](Actor a, Lane lane, int i, Step& out) {
    plain(a, lane, i, out);
    if (a == 2 && i == 4) out.ops[1].what = Do::receive_add;
  };
  check_refused(over_channels(wrong, {.channels = 2}), "schedule ring channels=2 rounds=1 all_reduce of 4 ranks");
}

TEST_CASE("messages whose ends are unequal in some piece are refused; where all chunks are equal none can be") {
  // 4 bytes in 4 chunks are equal; in 3 stretches of 1, 1 and 2 bytes they are not.
  CHECK(verdict(exchange(4_B, 4, 1)) == "accepted");
  check_refused(over_channels(exchange(4_B, 4, 1), {.rounds = 3}), "the message has 1 chunks");
  CHECK(by_construction(over_channels(exchange(12_B, 4, 1), {.rounds = 3})));
  CHECK(by_construction(over_channels(exchange(4_B, 4, 0), {.rounds = 3})));  // a chunk keeps its number
  // It keeps its number, but the buffers are cut otherwise.
  Schedule uneven = exchange(4_B, 4, 0);
  const Schedule whole = over_channels(uneven, {.rounds = 3});
  Schedule other = whole;
  other.layout[static_cast<std::size_t>(Buffer::output)] = Layout::near_equal(4_B, 12);
  check_refused(other, "the message has 1 chunks");
}

TEST_CASE("an operation that is taken apart may need more slots: then all ranks are followed") {
  // Each of two ranks sends both its blocks in a step, and only then receives: one slot, or one for each block.
  Schedule s{.algorithm = "by hand", .collective = all_to_all(2, 8_B), .actors = 2};
  s.collective.after = [](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::output ? Content{Content::Who::one, 1 - rank, chunk} : Content{};
  };
  s.layout[static_cast<std::size_t>(Buffer::input)] = Layout::near_equal(8_B, 2);
  s.layout[static_cast<std::size_t>(Buffer::output)] = Layout::near_equal(8_B, 2);
  s.n_steps = [](Actor, Lane) { return 2; };
  s.step = [](Actor r, Lane, int i, Step& out) {
    if (i == 0) out.send(1 - r, {Buffer::input, 0, 2});
    if (i == 1) out.receive(1 - r, {Buffer::output, 0, 2});
  };
  CHECK(check(s).proof().slots_needed == 1);
  const Proof proof = check(over_channels(s, {.channels = 2})).proof();
  CHECK(proof.slots_needed == 2);
  CHECK(proof.from == "");
}

TEST_CASE("out of place and in place are proved as the plain schedule is, over channels too") {
  int inherited = 0, by_symmetry = 0, followed = 0;
  for (int n = 2; n <= 9; ++n) {
    for (const std::int64_t bytes : {std::int64_t{7 * n + 3}, std::int64_t{48} * n}) {
      for (const Schedule& plain : every_algorithm(n, {bytes})) {
        if (plain.collective.op == CollectiveOp::barrier) continue;
        for (const Schedule& copied : {out_of_place(plain), in_place(plain)}) {
          for (const Pieces& pieces : {Pieces{1, 1}, Pieces{2, 2}}) {
            for (const int element : {1, 4}) {
              const Schedule whole = stretched(over_channels(copied, pieces), element);
              CAPTURE(whole.algorithm);
              CAPTURE(to_string(plain.collective.op));
              CAPTURE(n);
              CAPTURE(bytes);
              const Proof proof = check(whole).proof(), in_full = check(by_itself(whole)).proof();
              CHECK(proof.operations == in_full.operations);
              CHECK(proof.slots_needed == in_full.slots_needed);
              if (proof.copies_first) {
                ++inherited;
                CHECK(proof.from == plain.algorithm);
                by_symmetry += proof.symmetry.claimed() ? 1 : 0;
              } else if (piecewise(copied) == nullptr && relocated(copied) != nullptr) {
                ++followed;
              }
            }
          }
        }
      }
    }
  }
  CHECK(inherited > 3000);
  CHECK(by_symmetry > 300);
  CHECK(followed < inherited / 10);
  CHECK(to_string(check(over_channels(out_of_place(ring_all_reduce(4, 1200_B)), {.channels = 2})).proof()) ==
        "104 operations, 0 slots needed: by construction from the proof of ring: each rank first copies its "
        "contribution, 2 pieces share no chunk and no connection; in it one chunk represents all chunks; the symmetry "
        "was checked at every step of every rank");
}

TEST_CASE("a copy of too little or too much, or to a place that is taken, is refused") {
  const auto copied = [](auto change) {
    Relocated made{.plain = ring_all_reduce(4, 1200_B),
                   .place = {{{Buffer::output, 0}, {Buffer::input, 0}, {Buffer::output, 0}, {Buffer::scratch, 0}}},
                   .contributed = [](Actor) { return chunks(0, 4); }};
    made.plain.layout[static_cast<std::size_t>(Buffer::scratch)] = made.plain.layout[data];
    Layout input = made.plain.layout[data], output = input;
    change(made, input, output);
    Schedule s = run_relocated(made);
    s.layout[data] = {};
    s.layout[static_cast<std::size_t>(Buffer::input)] = input;
    s.layout[static_cast<std::size_t>(Buffer::output)] = output;
    return s;
  };
  REQUIRE(by_construction(copied([](Relocated&, Layout&, Layout&) {})));
  const auto contributing = [&](auto contributed) {
    return copied([&](Relocated& made, Layout&, Layout&) { made.contributed = contributed; });
  };
  check_refused(contributing([](Actor) { return chunks(0, 3); }), "output[3]");
  check_refused(contributing([](Actor rank) { return chunks(0, rank == 2 ? 3 : 4); }), "output[3]");
  check_refused(contributing([](Actor rank) { return chunks(0, rank == 2 ? 5 : 4); }), "is outside its buffer");
  const auto all_gather = [&](auto contributed) {
    return copied([&](Relocated& made, Layout&, Layout&) {
      made.plain.collective = ring_all_gather(4, 1200_B).collective;
      made.plain.n_steps = ring_all_gather(4, 1200_B).n_steps;
      made.plain.step = ring_all_gather(4, 1200_B).step;
      made.contributed = contributed;
    });
  };
  REQUIRE(by_construction(all_gather([](Actor rank) { return chunk(rank); })));
  check_refused(all_gather([](Actor rank) { return chunk(rank == 2 ? 3 : rank); }), "before anything has arrived");
  check_refused(all_gather([](Actor) { return chunks(0, 4); }), "before anything has arrived");
  // Of ranks that are promised different things each is asked.
  const auto broadcast = [&](auto contributed) {
    return copied([&](Relocated& made, Layout&, Layout&) {
      made.plain = ring_broadcast(4, 1200_B, 1, 4);
      made.contributed = contributed;
    });
  };
  REQUIRE(by_construction(broadcast([](Actor rank) { return chunks(0, rank == 1 ? 4 : 0); })));
  check_refused(broadcast([](Actor rank) { return chunks(0, rank == 1 ? 2 : 0); }), "before anything has arrived");

  // Scratch in the place of the data: harmless where nobody uses it, but not by construction.
  CHECK_FALSE(by_construction(copied([](Relocated& made, Layout&, Layout&) { made.place[3] = {Buffer::output, 3}; })));
  check_refused(copied([](Relocated& made, Layout&, Layout&) {
                  made.place[data] = {Buffer::output, 1};
                }),
                "is outside its buffer");
  check_refused(copied([](Relocated& made, Layout&, Layout&) {
                  made.place[data] = {Buffer::input, 0};
                }),
                "the two regions overlap");
  // Other chunks in the copy than in the input.
  CHECK_FALSE(by_construction(copied([](Relocated&, Layout&, Layout& output) {
    output = Layout::of_sizes({1_B, 2_B, 3_B, 1194_B});
  })));
  const auto unlike = [](Relocated&, Layout& input, Layout&) { input = Layout::of_sizes({1_B, 2_B, 3_B, 1194_B}); };
  CHECK_FALSE(by_construction(copied(unlike)));
  check_refused(copied([](Relocated&, Layout& input, Layout&) { input = Layout::near_equal(900_B, 3); }),
                "is outside its buffer");
}

TEST_CASE("a proof by construction can be stopped") {
  const std::atomic<bool> stop = true;
  CHECK_THROWS_AS(check(over_channels(ring_all_reduce(4, 1200_B), {.channels = 2}), {.stop = &stop}), Interrupted);
}

}  // namespace check_construction_test
