// The messages of a run that are under way, and the parts into which some of them are cut.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/schedule/lane_states.hpp"

namespace ringsim {

/// No number of a transfer.
inline constexpr std::uint32_t no_transfer = UINT32_MAX;
/// Transfer::whole of a background message: that plus its number. Above, no_transfer.
inline constexpr std::uint32_t first_background = UINT32_MAX - (1U << 16);
/// Transfer::staged of one that does not go in pieces.
inline constexpr std::uint32_t not_staged = UINT32_MAX;

/// A message under way, or a part of one.
struct alignas(64) Transfer {
  LaneNumber sender = 0, receiver = 0;
  std::uint32_t route = 0;
  std::uint16_t channel = 0;
  struct Marks {                         // as bits, so that a transfer lies in one cache line
    bool sender_was_last : 1 = false;    // the sender's step began after the receiver's: the message waited for it
    bool has_left : 1 = false;           // kept only if messages run ahead
    bool adds : 1 = false;               // its receiver adds it, which takes time
    bool starts_apart : 1 = false;       // it has a start of its own in MessagesAhead: as a message, or by slots
    bool limiter_is_unsure : 1 = false;  // as Told::is_unsure
  } marks;
  Bytes size;
  SimTime start{};
  std::uint32_t staged = not_staged;  // in StagedTransfers; only if the route has several legs
  std::uint32_t whole = no_transfer;  // of a part: the message that it belongs to
  std::uint32_t parts_under_way = 0;  // of a message that is cut into parts
  std::uint32_t parts_to_leave = 0;   // the same; 0: it is not followed
  std::int32_t step = 0;              // of the sender; of whole messages

  /// The lane that the message waited for, and the one that waited.
  LaneNumber cause() const { return marks.sender_was_last ? sender : receiver; }
  LaneNumber other() const { return marks.sender_was_last ? receiver : sender; }
};
static_assert(sizeof(Transfer) == 64);

/// A transfer on one leg of its route, as one number: what the network calls a piece.
inline std::uint64_t piece_of(std::uint32_t transfer, std::uint32_t leg) {
  return static_cast<std::uint64_t>(transfer) << 32 | leg;
}
inline std::uint32_t transfer_of(std::uint64_t piece) { return static_cast<std::uint32_t>(piece >> 32); }
inline std::uint32_t leg_of(std::uint64_t piece) { return static_cast<std::uint32_t>(piece & UINT32_MAX); }

/// The transfers of a run by number. Numbers are used again, so memory grows with what is under way at one time.
class TransferTable {
 public:
  Transfer& operator[](std::uint32_t index) { return transfers_[index]; }
  const Transfer& operator[](std::uint32_t index) const { return transfers_[index]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(transfers_.size()); }

  /// The number of a transfer that is free; its fields are those of the one that had the number before. May move all
  /// others.
  std::uint32_t make() {
    if (n_free_ > 0) return free_[--n_free_];
    transfers_.emplace_back();
    free_.resize(transfers_.capacity());
    return static_cast<std::uint32_t>(transfers_.size() - 1);
  }
  void give_back(std::uint32_t index) { free_[n_free_++] = index; }

  std::size_t in_use() const { return transfers_.size() - n_free_; }
  std::span<const std::uint32_t> free() const { return {free_.data(), n_free_}; }

 private:
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_;  // the first n_free_; room for all
  std::size_t n_free_ = 0;
};

}  // namespace ringsim
