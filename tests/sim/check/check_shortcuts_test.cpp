// The checker's shortcuts, one chunk for all by symmetry and passes over part of the chunks, against following all.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "algorithms/exchanges/halving_doubling.hpp"
#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/verdict.hpp"

namespace check_shortcuts_test {

using namespace ringsim;
using namespace ringsim::literals;

TEST_CASE("a claimed symmetry that is untrue at one rank is refused, and so is a true one with a wrong result") {
  Schedule untrue = ring_all_reduce(8, 64_B);
  untrue.step = [right = untrue.step](Actor r, Lane lane, int i, Step& out) {
    right(r, lane, i, out);
    if (r == 5 && i == 3) out.ops[1].what = Do::receive;
  };
  CHECK(
      verdict(untrue) ==
      "schedule ring all_reduce of 8 ranks: rank 0, data[1]: the contribution of rank 5 is missing, last changed by "
      "rank 0, lane 0, step 6, operation 1 (receive_add data[1] from rank 7)\n  hint: this breaks the claimed symmetry "
      "as well: rank 5 does not do what rank 0 does, relative to its own rank");
  CHECK(verdict(without_symmetry(untrue)) ==
        "schedule ring all_reduce of 8 ranks: rank 0, data[1]: the contribution of rank 5 is missing, last "
        "changed by rank 0, lane 0, step 6, operation 1 (receive_add data[1] from rank 7)");

  Schedule wrong = ring_all_reduce(8, 64_B);  // everybody overwrites once instead of adding
  wrong.step = [right = wrong.step](Actor r, Lane lane, int i, Step& out) {
    right(r, lane, i, out);
    if (i == 3) out.ops[1].what = Do::receive;
  };
  CHECK(verdict(wrong) ==
        "schedule ring all_reduce of 8 ranks: rank 0, data[0]: the contribution of rank 4 is missing, last "
        "changed by rank 0, lane 0, step 7, operation 1 (receive data[0] from rank 7)");
  CHECK(verdict(without_symmetry(wrong)) != "accepted");

  Schedule early = ring_all_gather(8, 64_B);  // everybody sends the chunk that it is about to receive
  early.step = [](Actor r, Lane, int i, Step& out) {
    out.send(wrap(r + 1, 8), chunk(wrap(r - i - 1, 8)));
    out.receive(wrap(r - 1, 8), chunk(wrap(r - i - 2, 8)));
  };
  CHECK(verdict(early) ==
        "schedule ring all_gather of 8 ranks: rank 0, lane 0, step 0, operation 0 (send data[7] to rank 1): reads "
        "data[7] before anything has arrived there\n  hint: before it is sent, a chunk must be received or be part of "
        "the rank's own input");
}

TEST_CASE("the verdict does not depend on how many chunks a pass follows") {
  for (const int n : {3, 5, 8, 13}) {
    CAPTURE(n);
    for (const Schedule& schedule : every_algorithm(n, {1000003})) {
      CAPTURE(schedule.algorithm);
      for (const std::uint64_t cells : {1U, 7U, 100U})
        CHECK(verdict(without_symmetry(schedule), {.cells_a_pass = cells}) == "accepted");
      Schedule broken = without_symmetry(schedule);  // whoever adds, overwrites
      bool adds = false;
      broken.step = [step = schedule.step](Actor a, Lane lane, int i, Step& out) {
        step(a, lane, i, out);
        for (Op& op : out.ops)
          if (op.what == Do::receive_add) op.what = Do::receive;
      };
      Step step;
      for (Lane lane = 0; lane < schedule.lanes; ++lane)
        for (int i = 0; i < schedule.n_steps(0, lane); ++i) schedule.step(0, lane, i, step);
      for (const Op& op : step.ops) adds = adds || op.what == Do::receive_add;
      if (!adds) continue;
      const std::string whole = verdict(broken);
      CHECK(whole != "accepted");
      CHECK(verdict(broken, {.cells_a_pass = 7}) != "accepted");
    }
  }
}

TEST_CASE("a chunk that only the last pass follows is judged as well") {
  Schedule broken = without_symmetry(ring_all_reduce(8, 64_B));
  broken.step = [step = broken.step](Actor a, Lane lane, int i, Step& out) {
    step(a, lane, i, out);
    for (Op& op : out.ops)  // chunk 7 is written over instead of added up
      if (op.what == Do::receive_add && op.region.first == 7) op.what = Do::receive;
  };
  const std::string whole = verdict(broken);
  CHECK(whole.find("data[7]: the contribution of rank") != std::string::npos);
  for (const std::uint64_t cells : {1U, 8U, 24U, 56U})  // 8, 8, 3 and 2 passes
    CHECK(verdict(broken, {.cells_a_pass = cells}) == whole);
}

TEST_CASE("a claimed symmetry proves no promise that moves chunks to other numbers") {
  // The ring's all-gather brings chunk c of rank c everywhere; an all-to-all in place wants chunk r of every rank at
  // rank r.
  Schedule schedule = ring_all_gather(16, {1600});
  schedule.collective.before = [](Actor r, Buffer b, std::uint32_t c) {
    return b == Buffer::data ? Content{Content::Who::one, r, c} : Content{};
  };
  schedule.collective.after = [](Actor r, Buffer b, std::uint32_t c) {
    return b == Buffer::data ? Content{Content::Who::one, static_cast<Actor>(c), static_cast<std::uint32_t>(r)}
                             : Content{};
  };
  CHECK(verdict(schedule) != "accepted");
  CHECK(verdict(without_symmetry(schedule)) != "accepted");
}

TEST_CASE("a claimed symmetry is held against every rank's promise of every chunk") {
  Schedule schedule = ring_all_reduce(16, {1600});
  schedule.collective.after = [after = schedule.collective.after](Actor r, Buffer b, std::uint32_t c) {
    return r == 3 && c == 5 ? Content{Content::Who::one, 0, c} : after(r, b, c);
  };
  CHECK(
      verdict(schedule) ==
      "schedule ring all_reduce of 16 ranks: rank 3, data[5]: contains the contribution of rank 1, which does not "
      "belong there, last changed by rank 3, lane 0, step 29, operation 1 (receive data[5] from rank 2)\n  hint: this "
      "breaks the claimed symmetry as well: rank 3 does not do what rank 0 does, relative to its own rank");
}

TEST_CASE(
    "promises that are known to be alike are what rank 0 is promised, moved, in every group; others are not known") {
  const auto is_moved = [](const Symmetry& group, Actor a, const Content& zero, const Content& here) {
    if (here.who != zero.who || here.who == Content::Who::nothing) return here.who == zero.who;
    const bool chunk = here.chunk == static_cast<std::uint32_t>(group.add(a, static_cast<int>(zero.chunk)));
    return chunk && (here.who == Content::Who::all || here.rank == group.add(a, zero.rank));
  };
  for (const Symmetry& group : {Symmetry({12}), Symmetry({3, 4}), Symmetry({2, 3, 2}), Symmetry({2, 2, 2})}) {
    const int n = group.order();
    for (const Collective& c : {all_reduce(n, 96_B), reduce_scatter(n, 96_B), all_gather(n, 96_B)}) {
      CHECK(promises_are_alike(c));
      for (const auto* promise : {&c.before, &c.after})
        for (Actor a = 0; a < n; ++a)
          for (int chunk = 0; chunk < n; ++chunk)
            CHECK(is_moved(group, a, (*promise)(0, Buffer::data, static_cast<std::uint32_t>(chunk)),
                           (*promise)(a, Buffer::data, static_cast<std::uint32_t>(group.add(a, chunk)))));
    }
  }
  // Any renaming of the ranks, and of the chunks alike: not only by addition.
  std::mt19937 random(1);
  std::vector<int> to(12);
  std::iota(to.begin(), to.end(), 0);
  const auto name = [&](auto old) { return static_cast<std::uint32_t>(to[static_cast<std::size_t>(old)]); };
  for (int i = 0; i < 20; ++i) {
    std::shuffle(to.begin(), to.end(), random);
    for (const Collective& c : {all_reduce(12, 96_B), reduce_scatter(12, 96_B), all_gather(12, 96_B)})
      for (const auto* promise : {&c.before, &c.after})
        for (Actor rank = 0; rank < 12; ++rank)
          for (std::uint32_t chunk = 0; chunk < 12; ++chunk) {
            Content renamed = (*promise)(rank, Buffer::data, chunk);
            if (renamed.who == Content::Who::one) renamed.rank = static_cast<Actor>(name(renamed.rank));
            if (renamed.who != Content::Who::nothing) renamed.chunk = name(renamed.chunk);
            CHECK((*promise)(static_cast<Actor>(name(rank)), Buffer::data, name(chunk)) == renamed);
          }
  }
  // All-reduce also keeps its promise if the ranks are renamed and the chunks are not, the others do not.
  for (const Collective& c : {all_reduce(12, 96_B), reduce_scatter(12, 96_B), all_gather(12, 96_B)}) {
    bool is_kept = true;
    for (const auto* promise : {&c.before, &c.after})
      for (Actor rank = 0; rank < 12; ++rank)
        for (std::uint32_t chunk = 0; chunk < 12; ++chunk) {
          Content renamed = (*promise)(rank, Buffer::data, chunk);
          if (renamed.who == Content::Who::one) renamed.rank = static_cast<Actor>(name(renamed.rank));
          is_kept = is_kept && (*promise)(static_cast<Actor>(name(rank)), Buffer::data, chunk) == renamed;
        }
    CHECK(is_kept == promises_know_no_chunk(c));
  }
  CHECK_FALSE(promises_are_alike(broadcast(12, 96_B, 0)));
  Collective changed = all_reduce(12, 96_B);
  changed.after = [](Actor, Buffer, std::uint32_t) { return Content{}; };
  CHECK_FALSE(promises_are_alike(changed));
}

TEST_CASE("a ring of very many ranks is proved at samples, and says so; a proof can be stopped") {
  const Schedule large = ring_all_reduce(10000, {10000});
  CHECK(check(large).proof().by == Proof::By::symmetry_samples);
  Schedule broken = large;  // rank 1 overwrites: a neighbor of rank 0 is always among the samples
  broken.step = [step = large.step](Actor a, Lane lane, int i, Step& out) {
    step(a, lane, i, out);
    if (a == 1 && i == 4) out.ops[1].what = Do::receive;
  };
  CHECK(verdict(broken).find("a symmetry is claimed, but rank 1 does not do what rank 0 does") != std::string::npos);
  const std::atomic<bool> stop{true};
  CHECK_THROWS_AS(check(large, {.stop = &stop}), Interrupted);
  CHECK_THROWS_AS(check(without_symmetry(ring_all_reduce(8, {800})), {.stop = &stop}), Interrupted);
}

TEST_CASE("promises in the ranks' order are compared with a symmetry whose chunks are in another order") {
  // A ring's reduce-scatter with its chunks renamed: rank a ends with chunk a % 3 * 4 + a / 3, not with chunk a as it
  // should. All ranks do the same, seen from themselves, and what becomes of chunk 0 is right.
  const Symmetry group({12}, 3);
  Schedule renamed = ring_reduce_scatter(12, 96_B);
  renamed.symmetry = group;
  renamed.step = [group, plain = renamed.step](Actor a, Lane lane, int i, Step& out) {
    plain(a, lane, i, out);
    for (Op& op : out.ops) op.region = chunk(group.chunk_of(static_cast<int>(op.region.first)));
  };
  CHECK(
      verdict(renamed) ==
      "schedule ring reduce_scatter of 12 ranks: rank 1, data[1]: the contribution of rank 2 is missing, last changed "
      "by rank 1, lane 0, step 8, operation 1 (receive_add data[1] from rank 0)\n  hint: this breaks the claimed "
      "symmetry as well: rank 1 does not do what rank 0 does, relative to its own rank");
  CHECK(verdict(without_symmetry(renamed)) != "accepted");
  renamed.collective.after = [group](Actor rank, Buffer buffer, std::uint32_t c) {
    const bool own = buffer == Buffer::data && static_cast<int>(c) == group.chunk_of(rank);
    return own ? Content{Content::Who::all, -1, c} : Content{};
  };
  CHECK(verdict(renamed) == "accepted");
}

}  // namespace check_shortcuts_test
