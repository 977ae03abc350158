#include "validate/replay/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/base/error.hpp"

namespace ringsim::replay {

std::string to_string(const WrongElement& wrong) {
  return fmt::format("rank {}: {}, element {}: expected {}, found {}", wrong.rank,
                     to_string(Region{wrong.buffer, wrong.chunk, 1}), wrong.element, wrong.expected, wrong.found);
}

ActorMemory::ActorMemory(const Schedule& schedule, Actor actor) : schedule_(&schedule), actor_(actor) {
  for (std::size_t b = 0; b < n_buffers; ++b)
    buffers_[b].resize(static_cast<std::size_t>(schedule.layout[b].total().count / element_bytes));
}

std::int64_t ActorMemory::begin(Buffer buffer, std::uint32_t chunk) const {
  return schedule_->size({buffer, 0, chunk}).count / element_bytes;
}

std::span<float> ActorMemory::at(const Region& region) {
  const auto first = static_cast<std::size_t>(begin(region.buffer, region.first));
  const auto end = static_cast<std::size_t>(begin(region.buffer, region.first + region.count));
  return std::span(buffers_[static_cast<std::size_t>(region.buffer)]).subspan(first, end - first);
}

std::span<const float> ActorMemory::at(const Region& region) const {
  return const_cast<ActorMemory*>(this)->at(region);
}

void ActorMemory::blank() {
  const bool is_rank = actor_ < schedule_->collective.ranks;
  for (std::size_t b = 0; b < n_buffers; ++b) {
    const bool poison = is_rank && static_cast<Buffer>(b) != Buffer::scratch;
    std::fill(buffers_[b].begin(), buffers_[b].end(), poison ? std::numeric_limits<float>::quiet_NaN() : 0.0F);
  }
}

void ActorMemory::fill() {
  blank();
  const bool is_rank = actor_ < schedule_->collective.ranks;
  const int ranks = schedule_->collective.ranks;
  for (std::size_t b = 0; b < n_buffers; ++b) {
    const auto buffer = static_cast<Buffer>(b);
    const auto n_chunks = static_cast<std::uint32_t>(schedule_->layout[b].n_chunks());
    for (std::uint32_t chunk = 0; is_rank && chunk < n_chunks; ++chunk) {
      const Content content = schedule_->collective.before(actor_, buffer, chunk);
      if (content.who != Content::Who::one) continue;
      std::int64_t element = 0;
      for (float& value : at({buffer, chunk, 1})) value = contribution(ranks, content.rank, content.chunk, element++);
    }
  }
}

Verdict ActorMemory::check() const {
  Verdict verdict;
  if (actor_ >= schedule_->collective.ranks) return verdict;
  const int ranks = schedule_->collective.ranks;
  for (std::size_t b = 0; b < n_buffers; ++b) {
    const auto buffer = static_cast<Buffer>(b);
    const auto n_chunks = static_cast<std::uint32_t>(schedule_->layout[b].n_chunks());
    for (std::uint32_t chunk = 0; chunk < n_chunks; ++chunk) {
      const Content content = schedule_->collective.after(actor_, buffer, chunk);
      if (content.who == Content::Who::nothing) continue;
      const bool one = content.who == Content::Who::one;
      const Actor first = one ? content.rank : 0, last = one ? content.rank : ranks - 1;
      verdict.checked += static_cast<std::int64_t>(at(Region{buffer, chunk, 1}).size());
      std::int64_t element = 0;
      for (const float found : at(Region{buffer, chunk, 1})) {
        float expected = 0;
        for (Actor rank = first; rank <= last; ++rank) expected += contribution(ranks, rank, content.chunk, element);
        if (std::bit_cast<std::uint32_t>(found) != std::bit_cast<std::uint32_t>(expected)) {
          if (verdict.wrong++ == 0) verdict.first = WrongElement{actor_, buffer, chunk, element, expected, found};
        }
        ++element;
      }
    }
  }
  return verdict;
}

}  // namespace ringsim::replay
