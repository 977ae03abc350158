// Proofs by construction: what a schedule inherits from the one that it runs on pieces (check.hpp has the argument).
#include <algorithm>
#include <climits>
#include <cstdint>

#include "sim/base/error.hpp"
#include "sim/check/check_detail.hpp"
#include "sim/schedule/piecewise.hpp"

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
  if (made.channels > 1 && made.numbers < plain.numbers) return false;
  return std::int64_t{made.channels - 1} * made.numbers + plain.numbers <= most;
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

}  // namespace

bool check_by_construction(const Schedule& schedule, const CheckOptions& options, Proof& proof) {
  const Piecewise* made = piecewise(schedule);
  if (made == nullptr || !schedule.names_regions || !made->plain.names_regions) return false;
  if (schedule.collective.ranks != made->plain.collective.ranks || made->channels < 1 || made->rounds < 1) return false;
  if (!pieces_are_disjoint(schedule, *made, options)) return false;
  Proof plain;
  try {
    plain = check(made->plain, options).proof();
  } catch (const ScheduleError&) {
    return false;
  }
  const Cut& cut = made->cut;
  if (!channels_are_disjoint(schedule, *made, plain.shape) || !sizes_agree(schedule, cut, plain.shape)) return false;
  if (cut.parts && plain.shape.widest > 1 && plain.slots_needed > 0) return false;  // condition d
  if (plain.shape.longest > INT_MAX / made->rounds) return false;

  proof = plain;
  proof.operations = (cut.parts ? plain.shape.chunks_touched : plain.operations) * cut.pieces;
  proof.from = plain.from.empty() ? made->plain.algorithm : plain.from;
  proof.pieces = plain.pieces * static_cast<int>(cut.pieces);
  proof.shape.numbers = (made->channels - 1) * made->numbers + plain.shape.numbers;
  proof.shape.longest = plain.shape.longest * made->rounds;
  proof.shape.chunks_touched = plain.shape.chunks_touched * cut.pieces;
  if (cut.parts) proof.shape.widest = 1;
  // Stretches of buffers with unequal numbers of chunks begin at unequal places.
  for (std::size_t b = 0; b < n_buffers; ++b)
    for (std::size_t other = 0; other < b && !cut.parts; ++other)
      if (cut.chunks[b] > 0 && cut.chunks[other] > 0 && cut.chunks[b] != cut.chunks[other])
        proof.shape.keeps_chunks = false;
  return true;
}

}  // namespace ringsim::check_detail
