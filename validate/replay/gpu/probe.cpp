#include "validate/replay/gpu/probe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::replay::gpu {

namespace {

constexpr int warmups = 3;
// Calls go to so many streams in turn that a GPU is done with one before the next on its stream comes; and they are so
// many times ProbeOptions::operations that what goes on at the beginning and the end does not count.
constexpr int n_issued_on = 4, n_rounds = 16;

bool is_by_call(Asked asked) { return asked == Asked::call || asked == Asked::issue || asked == Asked::events; }
bool is_round(Asked asked) { return asked == Asked::issue || asked == Asked::events; }

struct Question {
  Asked asked = Asked::copy;
  Place from = 0, to = 0;
  int blocks = 0;
  Bytes bytes;
};

/// One question at one size: what it needs on the device, a graph of one operation and one of n + 1.
class Asking {
 public:
  Asking(Device& device, const Question& question, const ProbeOptions& options)
      : device_(device), q_(question), options_(options) {
    const int partners = q_.asked == Asked::fan_out ? device.gpus() - 1 : 1;
    for (int i = 0; i < 2 * partners; ++i) {
      Place place = i % 2 == 0 ? q_.from : q_.to;
      if (q_.asked == Asked::fan_out && i % 2 == 1) place = (q_.from + 1 + i / 2) % device.gpus();
      require(device.allocate(place, q_.bytes.count / element_bytes, rooms_.emplace_back()), doing());
    }
    // The first stream begins and ends it; the others run in parallel.
    const int n_streams = is_round(q_.asked) ? n_issued_on : q_.asked == Asked::fan_out ? partners : 2;
    for (int i = 0; i < n_streams; ++i) require(device.make_stream(gpu(), streams_.emplace_back()), doing());
    require(device.make_event(gpu(), true, begin_), doing());
    require(device.make_event(gpu(), true, end_), doing());
    if (q_.asked == Asked::events)
      for (int i = 0; i < n_streams; ++i) require(device.make_event(gpu(), false, standing_.emplace_back()), doing());
    for (const Memory& room : rooms_)  // never read what was never written
      require(device.set(stream_of(room.place), room, 1.0F), doing());
    for (const auto& [place, stream] : setters_) {
      Event done{};
      require(device.make_event(place, false, done), doing());
      require(device.record(stream, done), doing());
      settle(device_, done, options_.patience, options_.stop);
    }
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  Sample answer() {
    const std::vector<Picoseconds> times = q_.asked == Asked::launch ? beyond_nodes() : each_more();
    return {.asked = q_.asked,
            .from = q_.from,
            .to = q_.to,
            .blocks = q_.blocks,
            .bytes = q_.bytes,
            .time = median(times),
            .min = times.front(),
            .max = times.back()};
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  static Picoseconds median(const std::vector<Picoseconds>& sorted) { return sorted[sorted.size() / 2]; }

  std::vector<Picoseconds> each_more() {
    const Picoseconds one = median(sorted_times(1));
    const int more = options_.operations * (is_round(q_.asked) ? n_rounds : 1);
    std::vector<Picoseconds> times = sorted_times(1 + more);
    for (Picoseconds& time : times) time = std::max(time - one, Picoseconds(0)) / more;
    return times;
  }

  // Takes graphs of several nodes: the event behind a graph of one may come from the host only when its node has long
  // been done.
  std::vector<Picoseconds> beyond_nodes() {
    const int n = options_.operations;
    std::vector<Picoseconds> times = sorted_times(1 + n);
    const Picoseconds node = (median(sorted_times(1 + 2 * n)) - median(times)) / n;
    for (Picoseconds& time : times) time = std::max(time - (1 + n) * node, Picoseconds(0));
    return times;
  }
  int gpu() const { return std::max({q_.from == host_memory ? q_.to : q_.from, 0}); }
  std::string doing() const { return fmt::format("measuring {} of {}", to_string(q_.asked), format(q_.bytes)); }

  // Kernels that set memory run where it lies.
  Stream stream_of(Place place) {
    const int on = std::max(place, 0);
    for (const auto& [gpu, stream] : setters_)
      if (gpu == on) return stream;
    setters_.emplace_back(on, Stream{});
    require(device_.make_stream(on, setters_.back().second), doing());
    return setters_.back().second;
  }

  std::vector<Picoseconds> sorted_times(int operations) {
    std::optional<Graph> graph;
    if (!is_by_call(q_.asked)) {
      graph.emplace();
      require(device_.begin_capture(streams_[0]), doing());
      issue(operations);
      require(device_.end_capture(streams_[0], *graph), doing());
    }
    std::vector<Picoseconds> times;
    for (int run = 0; run < warmups + options_.repeats; ++run) {
      require(device_.record(streams_[0], begin_), doing());
      if (graph)
        require(device_.launch(streams_[0], *graph), doing());
      else
        issue(operations);
      require(device_.record(streams_[0], end_), doing());
      settle(device_, end_, options_.patience, options_.stop);
      std::chrono::nanoseconds time{0};
      require(device_.elapsed(begin_, end_, time), doing());
      if (run >= warmups) times.emplace_back(time);
    }
    std::sort(times.begin(), times.end());
    return times;
  }

  void issue(int operations) {
    if (q_.asked == Asked::hop) return hops(operations);
    const bool parallel = q_.asked == Asked::both_ways || q_.asked == Asked::fan_out || is_round(q_.asked);
    const std::size_t n = parallel ? streams_.size() : 1;
    for (std::size_t i = 1; i < n; ++i) follow(streams_[i], streams_[0]);
    if (is_round(q_.asked))
      in_turn(operations);
    else
      for (std::size_t i = 0; i < n; ++i)
        for (int k = 0; k < operations; ++k) require(operation(i), doing());
    for (std::size_t i = 1; i < n; ++i) follow(streams_[0], streams_[i]);
  }

  Result operation(std::size_t i) {
    const Memory &from = rooms_[0], &to = rooms_[1];
    switch (q_.asked) {
      case Asked::copy:
      case Asked::kernel:
        return device_.copy(streams_[i], to, from, q_.blocks);
      case Asked::both_ways:
        return i == 0 ? device_.copy(streams_[i], to, from, 0) : device_.copy(streams_[i], from, to, 0);
      case Asked::fan_out:
        return device_.copy(streams_[i], rooms_[2 * i + 1], rooms_[2 * i], 0);
      default:
        return device_.add(streams_[i], to, to, from);
    }
  }

  void in_turn(int operations) {
    for (std::size_t k = 0; k < at(operations); ++k) {
      const std::size_t i = k % streams_.size();
      require(operation(i), doing());
      if (q_.asked != Asked::events) continue;
      require(device_.record(streams_[i], standing_[i]), doing());
      require(device_.wait(streams_[i], standing_[i]), doing());  // for itself: the GPU has nothing to do for it
    }
  }

  void hops(int operations) {
    for (int k = 0; k < operations; ++k) {
      if (k > 0) follow(streams_[at(k % 2)], streams_[at((k + 1) % 2)]);
      require(operation(at(k % 2)), doing());
    }
    if (operations % 2 == 0) follow(streams_[0], streams_[1]);  // where the last is on
  }

  // What comes next on the stream waits for what the other has done so far. A stream that has none has done nothing.
  void follow(Stream stream, Stream other) {
    Event done{};
    require(device_.make_event(gpu(), false, done), doing());
    require(device_.record(other, done), doing());
    require(device_.wait(stream, done), doing());
  }

  Device& device_;
  Question q_;
  const ProbeOptions& options_;
  std::vector<Memory> rooms_;  // [2 i] from, [2 i + 1] to
  std::vector<Stream> streams_;
  std::vector<std::pair<int, Stream>> setters_;  // {gpu, its stream}
  Event begin_{}, end_{};
  std::vector<Event> standing_;  // of events: one a stream
};

std::vector<Question> questions(const Device& device, const ProbeOptions& options) {
  std::vector<Question> all;
  const Bytes one{element_bytes};
  for (const Asked asked : {Asked::call, Asked::node, Asked::hop, Asked::issue, Asked::events, Asked::launch})
    all.push_back({asked, 0, 0, 0, one});
  for (const Bytes size : options.sizes) {
    all.push_back({Asked::copy, 0, 0, 0, size});
    all.push_back({Asked::add, 0, 0, 0, size});
    all.push_back({Asked::copy, 0, host_memory, 0, size});
    all.push_back({Asked::copy, host_memory, 0, 0, size});
    all.push_back({Asked::both_ways, 0, host_memory, 0, size});
    if (size <= options.most_on_host) all.push_back({Asked::add, host_memory, host_memory, 0, size});
    for (const int blocks : options.blocks) all.push_back({Asked::kernel, 0, 0, blocks, size});
    for (Place from = 0; from < device.gpus(); ++from)
      for (Place to = 0; to < device.gpus(); ++to)
        if (from != to) all.push_back({Asked::copy, from, to, 0, size});
    if (device.gpus() > 1) all.push_back({Asked::both_ways, 0, 1, 0, size});
    if (device.gpus() > 2) all.push_back({Asked::fan_out, 0, 1, 0, size});
  }
  return all;
}

}  // namespace

std::string name_of(Place place) { return place == host_memory ? "host" : fmt::format("gpu{}", place); }

std::string_view to_string(Asked asked) {
  switch (asked) {
    case Asked::copy:
      return "copy";
    case Asked::kernel:
      return "copy_kernel";
    case Asked::both_ways:
      return "both_ways";
    case Asked::fan_out:
      return "fan_out";
    case Asked::add:
      return "add";
    case Asked::call:
      return "call";
    case Asked::node:
      return "node";
    case Asked::hop:
      return "hop";
    case Asked::issue:
      return "issue";
    case Asked::events:
      return "issue_and_events";
    case Asked::launch:
      return "launch";
  }
  fail_invariant("a question is one of those");
}

std::optional<Line> Probe::line(Asked asked, Place from, Place to, int blocks) const {
  std::vector<Sample> of;
  for (const Sample& s : samples)
    if (s.asked == asked && s.from == from && s.to == to && s.blocks == blocks) of.push_back(s);
  if (of.size() < 2) return std::nullopt;
  const Sample &large = of.back(), &less = of[of.size() - 2], &least = of.front();
  if (large.time <= less.time || large.bytes <= less.bytes) return std::nullopt;
  const double rate = static_cast<double>((large.bytes.count - less.bytes.count)) /
                      static_cast<double>((large.time - less.time).count());  // bytes a picosecond
  constexpr double least_rate = 1e-12, most_rate = 1e6;                       // 1 B/s, 10^18 B/s: what a link may have
  if (rate < least_rate || rate > most_rate) return std::nullopt;
  const double bytes_take = static_cast<double>(least.bytes.count) / rate;
  const bool has_latency = bytes_take < static_cast<double>(least.time.count());
  return Line{has_latency ? least.time - Picoseconds(static_cast<std::int64_t>(bytes_take)) : Picoseconds(0),
              Bandwidth{static_cast<std::int64_t>(rate * 1e12)}};
}

std::optional<Picoseconds> Probe::least(Asked asked, Place from, Place to) const {
  for (const Sample& s : samples)
    if (s.asked == asked && s.from == from && s.to == to) return s.time;
  return std::nullopt;
}

ProbeOptions usual_probe() {
  ProbeOptions options;
  for (std::int64_t size = 4096; size <= 256 << 20; size *= 4) options.sizes.push_back({size});
  for (int blocks = 1; blocks <= 128; blocks *= 2) options.blocks.push_back(blocks);
  return options;
}

Probe probe(Device& device, const ProbeOptions& options) {
  ensure(options.repeats >= 1 && options.operations >= 1, "something is measured");
  Probe all{.device = device.name(), .gpus = device.gpus(), .samples = {}};
  for (const Question& question : questions(device, options)) {
    const Cleared cleared(device);
    all.samples.push_back(Asking(device, question, options).answer());
  }
  return all;
}

std::string to_csv(const Probe& probe) {
  std::string text = "what,from,to,blocks,bytes,time_us,min_us,max_us,GBps\n";
  const auto us = [](Picoseconds time) { return static_cast<double>(time.count()) / 1e6; };
  for (const Sample& s : probe.samples)
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{}\n", to_string(s.asked), name_of(s.from), name_of(s.to), s.blocks, s.bytes.count,
        us(s.time), us(s.min), us(s.max),
        s.time.count() > 0 ? fmt::format("{:.3f}", static_cast<double>(s.bytes.count) / us(s.time) / 1e3) : "");
  return text;
}

}  // namespace ringsim::replay::gpu
