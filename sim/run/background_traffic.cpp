#include "sim/run/background_traffic.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/run/device_work.hpp"

namespace ringsim {

BackgroundTraffic::BackgroundTraffic(const std::vector<Disturbance::Background>& messages, Engine<Event>& engine,
                                     Transfers& transfers, LinkFaults& faults)
    : messages_(messages), engine_(engine), transfers_(transfers), faults_(faults), last_start_(messages.size()) {
  ensure(messages.size() < (1U << 16), "background messages are numbered with 16 bits");
  for (const Disturbance::Background& each : messages) {
    ensure(each.bytes.count > 0 && each.from != each.to && (!each.every || each.every->count() > 0),
           "a background message has bytes and a way to go");
    transfers.add_place(each.from);
    transfers.add_place(each.to);
  }
  transfers.on_background([this](std::uint32_t transfer) { delivered(transfer); });
}

void BackgroundTraffic::begin() {
  for (std::uint32_t number = 0; number < messages_.size(); ++number)
    engine_.at(messages_[number].start, {Event::Kind::background, number, 0});
}

bool BackgroundTraffic::is_over(std::uint32_t number) const {
  const Disturbance::Background& each = messages_[number];
  return each.until && engine_.now() > *each.until;
}

void BackgroundTraffic::start(std::uint32_t number) {
  const Disturbance::Background& each = messages_[number];
  const SimTime now = engine_.now();
  last_start_[number] = now;
  if (each.every) engine_.after(*each.every, {Event::Kind::background, number, 0});
  const std::uint32_t index = transfers_.table().make();
  transfers_[index] = Transfer{.size = each.bytes, .start = now, .whole = first_background + number};
  faults_.set_out(index);
  faults_.expect_a_way_some_day();
}

void BackgroundTraffic::delivered(std::uint32_t transfer) {
  const std::uint32_t number = transfers_[transfer].whole - first_background;
  transfers_.drop(transfer);
  if (messages_[number].every) return;
  // Never twice at one instant, however little there is to send.
  const SimTime next = std::max(engine_.now(), SimTime{add(last_start_[number].time_since_epoch(), Picoseconds{1})});
  engine_.at(next, {Event::Kind::background, number, 0});
}

bool BackgroundTraffic::is_all_there_is(std::int64_t steps_done) {
  if (steps_done != std::exchange(steps_seen_, steps_done)) started_since_ = 0;
  return ++started_since_ % 1024 == 0 && !schedule_moves();
}

bool BackgroundTraffic::schedule_moves() const {
  const auto is_own = [&](std::uint32_t transfer) {
    while (transfers_[transfer].whole < first_background) transfer = transfers_[transfer].whole;
    return transfers_[transfer].whole == no_transfer;
  };
  const auto is_own_event = [&](const Event& event) {
    switch (event.kind()) {
      case Event::Kind::flow:  // the network says what is under way
      case Event::Kind::background:
        return false;
      case Event::Kind::within:
      case Event::Kind::posted:
        return is_own(event.id);
      case Event::Kind::local:
      case Event::Kind::told:
      case Event::Kind::device:
      case Event::Kind::link_change:
      case Event::Kind::resume:
        return true;
    }
    fail_invariant("every kind of event is known");
  };
  const auto is_own_piece = [&](std::uint64_t piece) {
    return DeviceWork::is_work(piece) || is_own(transfer_of(piece));
  };
  return engine_.any_waiting(is_own_event) || transfers_.network().any_under_way(is_own_piece);
}

}  // namespace ringsim
