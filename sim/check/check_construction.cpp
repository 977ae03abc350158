// Proofs by construction: what a schedule inherits from the one that it runs on pieces (check.hpp has the argument).
#include <algorithm>
#include <climits>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/check/check_detail.hpp"
#include "sim/schedule/collective.hpp"
#include "sim/schedule/piecewise.hpp"
#include "sim/schedule/relocated.hpp"

namespace ringsim::check_detail {

namespace {

std::uint32_t n_chunks(const Schedule& schedule, std::size_t buffer) {
  return static_cast<std::uint32_t>(schedule.layout[buffer].n_chunks());
}

/// Condition a. A map with an inverse gives no two chunks the same place, and as many places as chunks leave none over.
bool pieces_are_disjoint(const Schedule& whole, const Piecewise& made, const CheckOptions& options) {
  const Cut& cut = made.cut;
  if (cut.pieces != static_cast<std::uint32_t>(made.channels) * static_cast<std::uint32_t>(made.rounds)) return false;
  for (std::size_t b = 0; b < n_buffers; ++b) {
    const std::uint32_t n = n_chunks(made.plain, b), all = n_chunks(whole, b);
    if (static_cast<std::uint64_t>(n) * cut.pieces != all) return false;
    if (cut.chunks[b] == 0 && n > 0) return false;
    const auto buffer = static_cast<Buffer>(b);
    for (std::uint32_t piece = 0; piece < cut.pieces; ++piece) {
      if ((piece & 0xFFF) == 0) look_up(options);
      for (std::uint32_t c = 0; c < n; ++c) {
        const std::uint32_t place = cut.chunk(buffer, {c, piece});
        if (place >= all || cut.at(buffer, place) != Cut::Chunk{c, piece}) return false;
      }
    }
  }
  return true;
}

/// Condition b.
bool channels_are_disjoint(const Schedule& whole, const Piecewise& made, const Proof::Shape& plain) {
  constexpr std::int64_t most = UINT16_MAX + 1;
  if (whole.actors != made.plain.actors || whole.lanes != made.plain.lanes * made.channels) return false;
  return made.stride >= made.channels && std::int64_t{plain.numbers - 1} * made.stride + made.channels <= most;
}

/// Chunks of one number and one piece are of one size in both buffers.
bool chunks_agree(const Schedule& whole, const Cut& cut, std::size_t a, std::size_t b) {
  if (whole.layout[a] == whole.layout[b] && cut.chunks[a] == cut.chunks[b]) return true;
  for (std::uint32_t piece = 0; piece < cut.pieces; ++piece)
    for (std::uint32_t c = 0; c < std::min(cut.chunks[a], cut.chunks[b]); ++c)
      if (whole.layout[a].size(cut.chunk(static_cast<Buffer>(a), {c, piece}), 1) !=
          whole.layout[b].size(cut.chunk(static_cast<Buffer>(b), {c, piece}), 1))
        return false;
  return true;
}

/// Condition c.
bool sizes_agree(const Schedule& whole, const Cut& cut, const Proof::Shape& plain) {
  std::vector<std::size_t> used;
  for (std::size_t b = 0; b < n_buffers; ++b)
    if (n_chunks(whole, b) > 0) used.push_back(b);
  if (used.empty()) return true;
  const Layout& first = whole.layout[used.front()];
  const auto all_equal = [&](std::size_t b) {
    return whole.layout[b].uniform() && whole.layout[b].size(0, 1) == first.size(0, 1);
  };
  if (std::all_of(used.begin(), used.end(), all_equal)) return true;
  if (!plain.keeps_chunks) return false;
  for (const std::size_t a : used)
    for (const std::size_t b : used)
      if (a < b && !chunks_agree(whole, cut, a, b)) return false;
  return true;
}

/// What a rank has or wants, told by the plain schedule of a position and of the rank that plays it.
struct Contents {
  const Cast& cast;
  const Cut& cut;
  bool agree(const Content& position, const Content& rank) const {
    if (position.who != rank.who) return false;
    if (position.who == Content::Who::nothing) return true;
    if (position.who == Content::Who::one && cast.rank[static_cast<std::size_t>(position.rank)] != rank.rank)
      return false;
    return rank.chunk == (cut.parts ? cast.chunk_of(position.chunk, cut.contributed) : position.chunk);
  }
};

/// Condition g for one channel: its cast changes nothing in the promise.
bool promise_is_kept(const Piecewise& made, const Cast& cast, const CheckOptions& options) {
  const Collective& promise = made.plain.collective;
  const Contents contents{cast, made.cut};
  for (std::size_t b = 0; b < n_buffers; ++b) {
    const auto buffer = static_cast<Buffer>(b);
    const std::uint32_t n = made.cut.chunks[b];
    for (Actor p = 0; p < promise.ranks; ++p) {
      if ((p & 0xFF) == 0) look_up(options);
      const Actor rank = cast.rank[static_cast<std::size_t>(p)];
      for (std::uint32_t c = 0; c < n; ++c) {
        const std::uint32_t there = made.cut.parts ? cast.chunk_of(c, n) : c;
        if (!contents.agree(promise.before(p, buffer, c), promise.before(rank, buffer, there)) ||
            !contents.agree(promise.after(p, buffer, c), promise.after(rank, buffer, there)))
          return false;
      }
    }
  }
  return true;
}

/// True if every cast keeps the promise of condition g: chunks are the ranks' own and move with them, and the promise
/// is one of those that no renaming of both changes; or chunks stay where they are, and belong to nobody.
bool any_cast_keeps_the_promise(const Piecewise& made) {
  const Collective& promise = made.plain.collective;
  if (!made.cut.parts) return promises_know_no_chunk(promise);
  const auto ranks = static_cast<std::uint32_t>(promise.ranks);
  return made.cut.contributed == ranks && made.cut.chunks[static_cast<std::size_t>(Buffer::data)] == ranks &&
         promises_are_alike(promise);
}

/// Condition g. If a cast moves chunks it must move those of all buffers alike, so that sizes still agree.
bool casts_keep_the_promise(const Piecewise& made, const CheckOptions& options) {
  if (made.casts.empty()) return true;
  constexpr std::int64_t most = 300'000'000;  // questions: a few seconds
  const int ranks = made.plain.collective.ranks;
  if (made.plain.actors != ranks || made.casts.size() != static_cast<std::size_t>(made.channels)) return false;
  std::uint32_t chunks = 0;
  for (const std::uint32_t n : made.cut.chunks) {
    if (made.cut.parts && n > 0 && chunks > 0 && n != chunks) return false;
    chunks = std::max(chunks, n);
  }
  const bool is_known = any_cast_keeps_the_promise(made);
  std::vector<const Cast*> looked_at;
  for (const Cast& cast : made.casts) {
    if (cast.rank.size() != static_cast<std::size_t>(ranks) || cast.position.size() != cast.rank.size()) return false;
    for (Actor p = 0; p < ranks; ++p) {
      const Actor rank = cast.rank[static_cast<std::size_t>(p)];
      if (rank < 0 || rank >= ranks || cast.position[static_cast<std::size_t>(rank)] != p) return false;
    }
    if (is_known) continue;
    const auto same = [&](const Cast* other) { return other->rank == cast.rank; };
    if (std::any_of(looked_at.begin(), looked_at.end(), same)) continue;
    looked_at.push_back(&cast);
    if (std::int64_t{ranks} * chunks * static_cast<std::int64_t>(looked_at.size()) > most) return false;
    if (!promise_is_kept(made, cast, options)) return false;
  }
  return true;
}

/// The proof of a schedule that another one is made of; none if it is refused.
std::optional<Proof> proof_of(const Schedule& plain, const CheckOptions& options) {
  if (!plain.names_regions) return std::nullopt;
  try {
    return check(plain, options).proof();
  } catch (const ScheduleError&) {
    return std::nullopt;
  }
}

bool check_pieces(const Schedule& whole, const Piecewise& made, const CheckOptions& options, Proof& proof) {
  const Cut& cut = made.cut;
  if (made.channels < 1 || made.rounds < 1 || !pieces_are_disjoint(whole, made, options)) return false;
  const std::optional<Proof> plain = proof_of(made.plain, options);
  if (!plain || !channels_are_disjoint(whole, made, plain->shape) || !sizes_agree(whole, cut, plain->shape))
    return false;
  if (cut.parts && plain->shape.widest > 1 && plain->slots_needed > 0) return false;  // condition d
  if (!casts_keep_the_promise(made, options)) return false;
  if (plain->shape.longest > INT_MAX / made.rounds) return false;

  proof = *plain;
  proof.positions = {};
  if (!made.casts.empty()) proof.positions = std::exchange(proof.symmetry, {});
  proof.operations = (cut.parts ? plain->shape.chunks_touched : plain->operations) * cut.pieces;
  if (proof.from.empty()) proof.from = made.plain.algorithm;
  proof.pieces *= static_cast<int>(cut.pieces);
  proof.shape.numbers = (proof.shape.numbers - 1) * made.stride + made.channels;
  proof.shape.longest *= made.rounds;
  proof.shape.chunks_touched *= cut.pieces;
  if (cut.parts) proof.shape.widest = 1;
  // Stretches of buffers with unequal numbers of chunks begin at unequal places.
  for (std::size_t b = 0; b < n_buffers; ++b)
    for (std::size_t other = 0; other < b && !cut.parts; ++other)
      if (cut.chunks[b] > 0 && cut.chunks[other] > 0 && cut.chunks[b] != cut.chunks[other])
        proof.shape.keeps_chunks = false;
  return true;
}

/// True if a buffer of the whole has the chunks of the plain one, from that place on. They may all be some whole number
/// of times as large: the whole may have been stretched().
bool has_chunks(const Schedule& whole, Relocated::Place place, const Schedule& plain, std::size_t buffer) {
  const std::int64_t bytes = plain.collective.bytes.count;
  const std::int64_t times = bytes > 0 ? whole.collective.bytes.count / bytes : 1;
  const Layout& there = whole.layout[static_cast<std::size_t>(place.buffer)];
  const std::uint32_t n = n_chunks(plain, buffer);
  if (std::uint64_t{place.first} + n > static_cast<std::uint64_t>(there.n_chunks())) return false;
  for (std::uint32_t c = 0; c < n; ++c)
    if (there.size(place.first + c, 1).count != plain.layout[buffer].size(c, 1).count * times) return false;
  return true;
}

/// Condition e, and that the copy has room between two buffers.
bool places_are_disjoint(const Schedule& whole, const Relocated& made) {
  const auto input = static_cast<std::size_t>(made.input);
  if (made.place[input].buffer == made.source || !has_chunks(whole, {made.source, 0}, made.plain, input)) return false;
  for (std::size_t b = 0; b < n_buffers; ++b) {
    const Relocated::Place& place = made.place[b];
    const std::uint32_t n = n_chunks(made.plain, b);
    if (!has_chunks(whole, place, made.plain, b)) return false;
    for (std::size_t other = 0; other < b; ++other)
      if (made.place[other].buffer == place.buffer &&
          place.first < made.place[other].first + n_chunks(made.plain, other) &&
          made.place[other].first < place.first + n)
        return false;
  }
  return true;
}

/// True if the rank copies the chunks that it has something in, all of them and no others.
bool copies_what_it_has(const Relocated& made, Actor rank) {
  const Region copied = made.contributed(rank);
  for (std::size_t b = 0; b < n_buffers; ++b)
    for (std::uint32_t c = 0; c < n_chunks(made.plain, b); ++c) {
      const Content has = made.plain.collective.before(rank, static_cast<Buffer>(b), c);
      const bool is_copied =
          static_cast<Buffer>(b) == made.input && c >= copied.first && c - copied.first < copied.count;
      if ((has.who != Content::Who::nothing) != is_copied) return false;
    }
  return true;
}

/// Condition f. If ranks are known to be promised the same, seen from themselves, rank 0 is compared with its
/// promise and the others with rank 0.
bool all_copy_what_they_have(const Relocated& made, const CheckOptions& options) {
  constexpr std::int64_t most = 300'000'000;  // questions: a few seconds
  const int ranks = made.plain.collective.ranks;
  const std::uint32_t n = n_chunks(made.plain, static_cast<std::size_t>(made.input));
  const bool is_known =
      made.input == Buffer::data && n == static_cast<std::uint32_t>(ranks) && promises_are_alike(made.plain.collective);
  if (!is_known && std::int64_t{ranks} * n > most) return false;
  const Region first = made.contributed(0);
  for (Actor rank = 0; rank < ranks; ++rank) {
    if ((rank & 0xFF) == 0) look_up(options);
    const Region copied = made.contributed(rank);
    if (std::uint64_t{copied.first} + copied.count > n) return false;
    if (!is_known || rank == 0) {
      if (!copies_what_it_has(made, rank)) return false;
      continue;
    }
    const bool is_all = copied.count == n && first.count == n;
    const bool is_own =
        copied.count == 1 && first.count == 1 && copied.first == (first.first + static_cast<std::uint32_t>(rank)) % n;
    if (!is_all && !is_own) return false;
  }
  return true;
}

bool check_relocated(const Schedule& whole, const Relocated& made, const CheckOptions& options, Proof& proof) {
  if (whole.actors != made.plain.actors || whole.lanes != made.plain.lanes) return false;
  if (!places_are_disjoint(whole, made) || !all_copy_what_they_have(made, options)) return false;
  const std::optional<Proof> plain = proof_of(made.plain, options);
  if (!plain || plain->shape.longest == INT_MAX) return false;

  proof = *plain;
  if (proof.from.empty()) proof.from = made.plain.algorithm;
  proof.copies_first = true;
  ++proof.shape.longest;
  for (Actor rank = 0; rank < made.plain.collective.ranks; ++rank) {
    const Region copied = made.contributed(rank);
    proof.operations += copied.count > 0 ? 1 : 0;
    proof.shape.chunks_touched += copied.count;
  }
  for (std::size_t b = 0; b < n_buffers; ++b)
    if (n_chunks(made.plain, b) > 0 && made.place[b].first > 0) proof.shape.keeps_chunks = false;
  return true;
}

}  // namespace

bool check_by_construction(const Schedule& schedule, const CheckOptions& options, Proof& proof) {
  if (!schedule.names_regions) return false;
  if (const Piecewise* made = piecewise(schedule))
    return schedule.collective.ranks == made->plain.collective.ranks && check_pieces(schedule, *made, options, proof);
  if (const Relocated* made = relocated(schedule))
    return schedule.collective.ranks == made->plain.collective.ranks &&
           check_relocated(schedule, *made, options, proof);
  return false;
}

}  // namespace ringsim::check_detail
