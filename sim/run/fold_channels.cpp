#include "sim/run/fold_channels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/run/refusal.hpp"
#include "sim/schedule/piecewise.hpp"

namespace ringsim {

namespace {

/// Conditions 2 and 4.
class EqualChannels {
 public:
  EqualChannels(const Schedule& schedule, const Piecewise& made, const RunOptions& options)
      : schedule_(schedule), made_(made), options_(options), protocol_(*options.plans.front().protocol) {}

  void expect() {
    const auto is_first = [&](const Cast& cast) { return cast.rank == made_.casts.front().rank; };
    if (!std::all_of(made_.casts.begin(), made_.casts.end(), is_first))
      refuse("ranks have different positions in different channels");
    for (std::size_t b = 0; b < n_buffers; ++b) compare_chunks(b);
    for (Actor actor = 0; actor < schedule_.actors; ++actor) {
      refuse_if_stopped(options_);
      fills_.clear();
      for (Lane lane = 0; lane < made_.plain.lanes; ++lane) look_at(actor, lane);
    }
  }

 private:
  // How the chunks of a buffer compare: most messages need no look of their own then.
  void compare_chunks(std::size_t b) {
    const Layout& layout = schedule_.layout[b];
    if (layout.uniform()) return;
    const std::uint32_t n = made_.cut.chunks[b] * static_cast<std::uint32_t>(made_.rounds);
    for (std::uint32_t i = 0; i < n; ++i) {
      const Cut::Chunk of{.plain = i % made_.cut.chunks[b], .piece = i / made_.cut.chunks[b]};
      const Region chunk{static_cast<Buffer>(b), made_.cut.chunk(static_cast<Buffer>(b), of), 1};
      for (int channel = 1; channel < made_.channels; ++channel) {
        const Bytes first = layout.size(chunk.first, 1), here = size_in(channel, chunk);
        alike_[b].data = alike_[b].data && here == first;
        alike_[b].on_wire = alike_[b].on_wire && protocol_.on_wire(here) == protocol_.on_wire(first);
      }
    }
  }

  // Piece p of a channel is piece p of channel 0, moved on by as many pieces as a channel has rounds.
  Bytes size_in(int channel, const Region& region) const {
    const auto b = static_cast<std::size_t>(region.buffer);
    const std::uint32_t apart = static_cast<std::uint32_t>(made_.rounds) * (made_.cut.parts ? 1 : made_.cut.chunks[b]);
    return schedule_.layout[b].size(region.first + static_cast<std::uint32_t>(channel) * apart, region.count);
  }

  void look_at(Actor actor, Lane lane) {
    const int n_steps = schedule_.n_steps(actor, lane);
    for (int i = 0; i < n_steps; ++i) {
      step_.clear();
      schedule_.step(actor, lane, i, step_);
      for (const Op& op : step_.ops) {
        if (op.what == Do::compute) refuse("ranks compute");
        if (op.what == Do::copy || op.what == Do::add) continue;
        expect_equal_sizes(op.region);
        if (op.what == Do::send && protocol_.slots > 0) expect_whole_slots(op);
      }
    }
  }

  void expect_equal_sizes(const Region& region) const {
    const auto b = static_cast<std::size_t>(region.buffer);
    if (alike_[b].data || (alike_[b].on_wire && region.count == 1)) return;
    for (int channel = 1; channel < made_.channels; ++channel)
      if (protocol_.on_wire(size_in(channel, region)) != protocol_.on_wire(size_in(0, region)))
        refuse("{} bytes in {} chunks are not equal in all channels", schedule_.layout[b].total().count,
               schedule_.layout[b].n_chunks());
  }

  void expect_whole_slots(const Op& op) {
    const int fills = protocol_.slots_of(protocol_.on_wire(schedule_.size(op.region)));
    const bool is_same = fills_.try_emplace({op.peer, op.channel}, fills).first->second == fills;
    if (fills > protocol_.slots || protocol_.slots % fills != 0 || !is_same)
      refuse("a message can start before it has all of its {} slots", protocol_.name);
  }

  const Schedule& schedule_;
  const Piecewise& made_;
  const RunOptions& options_;
  const Protocol& protocol_;
  struct Alike {  // chunk by chunk, in all channels
    bool data = true, on_wire = true;
  };
  std::array<Alike, n_buffers> alike_;
  Step step_;
  std::map<std::pair<Actor, std::uint16_t>, int> fills_;  // [peer, channel] slots of each message of an actor
};

FoldingByChannels folded_channels(const Topology& topology, const CheckedSchedule& checked, const Piecewise& made,
                                  const RunOptions& options) {
  const Schedule& schedule = checked.schedule();
  expect_proved_from_one_channel(checked.proof(), made);
  if (moves_packets(options.model)) refuse("the network model is {}", to_string(options.model));
  if (options.routing.policy != Routing::Policy::fixed ||
      options.plans.front().transport.nics == Transport::Nics::per_channel)
    refuse("the path of a message may depend on its channel");
  if (topology.has_channel_rates()) refuse("each channel of a device has its own rate");
  if (options.record_path) refuse("the critical path is being recorded");
  if (options.record_spans || options.on_message || options.on_traffic) refuse("every message is being recorded");
  EqualChannels(schedule, made, options).expect();
  FoldingByChannels folding{.channels = made.channels,
                            .why = fmt::format("one of {} channels represents all: by the construction and proof of "
                                               "{}, they do the same, and their messages share links in the same way",
                                               made.channels, schedule.algorithm),
                            .one = schedule};
  folding.one.lanes = made.plain.lanes;
  return folding;
}

}  // namespace

void expect_proved_from_one_channel(const Proof& proof, const Piecewise& made) {
  if (proof.by == Proof::By::parts || proof.from.empty() || proof.pieces % (made.channels * made.rounds) != 0)
    refuse("the schedule is not proved from that of one channel");
}

std::optional<FoldingByChannels> fold_channels(const Topology& topology, const CheckedSchedule& checked,
                                               const RunOptions& options, std::string& why_not) {
  const Piecewise* made = piecewise(checked.schedule());
  if (made == nullptr || made->channels == 1) return std::nullopt;
  return unless_refused(why_not, [&] { return folded_channels(topology, checked, *made, options); });
}

Timeline FoldingByChannels::unfold(Timeline one_channel) const {
  Timeline all = std::move(one_channel);
  all.bytes_sent = all.bytes_sent * channels;
  for (std::int64_t* count : {&all.transfers, &all.events})
    if (__builtin_mul_overflow(*count, channels, count)) fail_too_large("more messages than can be counted (2^63)");
  all.fingerprint.reset();
  all.folded = why;
  return all;
}

}  // namespace ringsim
