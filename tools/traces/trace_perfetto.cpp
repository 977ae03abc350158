#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "tools/traces/trace_file.hpp"

namespace ringsim::tools {

namespace {

// Numbers of fields, from github.com/google/perfetto, protos/perfetto/trace: trace.proto, trace_packet.proto, and
// track_event/{track_descriptor, process_descriptor, thread_descriptor, counter_descriptor, track_event,
// debug_annotation}.proto. "Track events are stable public API", says trace_packet.proto.
namespace field {
constexpr int trace_packet = 1;
constexpr int packet_timestamp = 8;  // ns
constexpr int packet_sequence = 10;  // trusted_packet_sequence_id: events without one are dropped
constexpr int packet_track_event = 11;
constexpr int packet_sequence_flags = 13;
constexpr int packet_track_descriptor = 60;
constexpr int track_uuid = 1;
constexpr int track_name = 2;
constexpr int track_process = 3;
constexpr int track_thread = 4;
constexpr int track_parent = 5;
constexpr int track_counter = 8;
constexpr int process_pid = 1;
constexpr int process_name = 6;
constexpr int thread_pid = 1;
constexpr int thread_tid = 2;
constexpr int thread_name = 5;
constexpr int event_annotation = 4;
constexpr int event_type = 9;
constexpr int event_track = 11;
constexpr int event_category = 22;
constexpr int event_name = 23;
constexpr int event_double_value = 44;
constexpr int event_flow = 47;              // fixed64
constexpr int event_terminating_flow = 48;  // fixed64
constexpr int annotation_int = 4;
constexpr int annotation_name = 10;
}  // namespace field
constexpr std::uint64_t slice_begin = 1, slice_end = 2, counter_sample = 4;  // TrackEvent.Type
constexpr std::uint64_t state_cleared = 1;                                   // TracePacket.SequenceFlags

/// A message of protobuf (protobuf.dev/programming-guides/encoding): fields, each after its number and type.
class ProtoMessage {
 public:
  ProtoMessage& number(int id, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(id) << 3);
    varint(value);
    return *this;
  }
  ProtoMessage& fixed(int id, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(id) << 3 | 1);
    for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(value >> (8 * byte) & 0xFF);
    return *this;
  }
  ProtoMessage& real(int id, double value) { return fixed(id, std::bit_cast<std::uint64_t>(value)); }
  ProtoMessage& text(int id, std::string_view value) {
    varint(static_cast<std::uint64_t>(id) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoMessage& message(int id, const ProtoMessage& value) { return text(id, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// Numbers of all tracks in a trace: those of processes first; 0 is taken. A thread that had the number of another
// process would be taken for its main thread.
std::uint64_t process_uuid(std::uint32_t process) { return process + 1; }
std::uint64_t uuid_of(const Trace& trace, std::uint32_t track) { return trace.processes.size() + track + 1; }

std::uint64_t whole_nanoseconds(SimTime time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count() / 1000);
}

ProtoMessage annotation(std::string_view name, std::int64_t value) {
  ProtoMessage made;
  made.number(field::annotation_int, static_cast<std::uint64_t>(value)).text(field::annotation_name, name);
  return made;
}

ProtoMessage begin_of(const Trace& trace, const Trace::Slice& slice) {
  ProtoMessage event;
  event.number(field::event_type, slice_begin)
      .number(field::event_track, uuid_of(trace, slice.track))
      .text(field::event_category, slice.category)
      .text(field::event_name, slice.name);
  if (slice.bytes) event.message(field::event_annotation, annotation("bytes", slice.bytes->count));
  if (slice.step) event.message(field::event_annotation, annotation("step", *slice.step + 1));
  if (slice.flow > 0) event.fixed(slice.flow_ends ? field::event_terminating_flow : field::event_flow, slice.flow);
  return event;
}

/// An event and its place in the file.
struct TimedEvent {
  std::uint64_t when = 0;  // ns
  std::uint32_t index = 0;
  enum class What : std::uint8_t { begin, end, sample } what = What::begin;
};

/// Begins and ends as a stack needs them, track by track; then all in order of time.
std::vector<TimedEvent> events_in_order(const Trace& trace) {
  std::vector<std::vector<std::uint32_t>> of_track(trace.tracks.size());
  for (std::uint32_t i = 0; i < trace.slices.size(); ++i) of_track[trace.slices[i].track].push_back(i);
  std::vector<TimedEvent> events;
  for (const std::vector<std::uint32_t>& slices : of_track) {
    std::vector<std::uint32_t> open;
    const auto close = [&] {
      events.push_back({whole_nanoseconds(trace.slices[open.back()].end), open.back(), TimedEvent::What::end});
      open.pop_back();
    };
    for (const std::uint32_t i : slices) {
      while (!open.empty() && trace.slices[open.back()].end <= trace.slices[i].begin) close();
      events.push_back({whole_nanoseconds(trace.slices[i].begin), i, TimedEvent::What::begin});
      open.push_back(i);
    }
    while (!open.empty()) close();
  }
  for (std::uint32_t i = 0; i < trace.samples.size(); ++i)
    events.push_back({whole_nanoseconds(trace.samples[i].when), i, TimedEvent::What::sample});
  std::stable_sort(events.begin(), events.end(),
                   [](const TimedEvent& a, const TimedEvent& b) { return a.when < b.when; });
  return events;
}

}  // namespace

void write_perfetto_trace(const Trace& trace, const Sink& sink) {
  std::string out;
  bool is_first = true;
  const auto packet = [&](ProtoMessage& content) {
    content.number(field::packet_sequence, 1);
    if (is_first) content.number(field::packet_sequence_flags, state_cleared);
    is_first = false;
    ProtoMessage whole;
    whole.message(field::trace_packet, content);
    out += whole.bytes();
    if (out.size() < std::size_t{1} << 20) return;
    sink(out);
    out.clear();
  };
  const auto describe_track = [&](const ProtoMessage& track) {
    ProtoMessage content;
    content.message(field::packet_track_descriptor, track);
    packet(content);
  };
  for (std::uint32_t p = 0; p < trace.processes.size(); ++p) {
    ProtoMessage process, track;
    process.number(field::process_pid, p + 1).text(field::process_name, trace.processes[p].name);
    describe_track(track.number(field::track_uuid, process_uuid(p)).message(field::track_process, process));
  }
  for (std::uint32_t t = 0; t < trace.tracks.size(); ++t) {
    const Trace::Track& each = trace.tracks[t];
    ProtoMessage track;
    track.number(field::track_uuid, uuid_of(trace, t)).number(field::track_parent, process_uuid(each.process));
    if (each.is_counter) {
      track.text(field::track_name, each.name).message(field::track_counter, ProtoMessage());
    } else {
      ProtoMessage thread;
      thread.number(field::thread_pid, each.process + 1)
          .number(field::thread_tid, uuid_of(trace, t))
          .text(field::thread_name, each.name);
      track.message(field::track_thread, thread);
    }
    describe_track(track);
  }
  for (const TimedEvent& event : events_in_order(trace)) {
    ProtoMessage content, what;
    content.number(field::packet_timestamp, event.when);
    switch (event.what) {
      case TimedEvent::What::begin:
        what = begin_of(trace, trace.slices[event.index]);
        break;
      case TimedEvent::What::end:
        what.number(field::event_type, slice_end)
            .number(field::event_track, uuid_of(trace, trace.slices[event.index].track));
        break;
      case TimedEvent::What::sample:
        what.number(field::event_type, counter_sample)
            .number(field::event_track, uuid_of(trace, trace.samples[event.index].track))
            .real(field::event_double_value, trace.samples[event.index].value);
        break;
    }
    packet(content.message(field::packet_track_event, what));
  }
  sink(out);
}

}  // namespace ringsim::tools
