#include "tools/traces/trace_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"

namespace ringsim::tools {

namespace {

/// Pieces of text, handed on when there is enough.
class Buffered {
 public:
  explicit Buffered(const Sink& sink) : sink_(sink) {}
  Buffered(const Buffered&) = delete;
  Buffered& operator=(const Buffered&) = delete;
  ~Buffered() = default;

  void write(std::string_view text) {
    text_ += text;
    if (text_.size() > std::size_t{1} << 20) finish();
  }
  void finish() {
    sink_(text_);
    text_.clear();
  }

 private:
  const Sink& sink_;
  std::string text_;
};

/// In us, as JSON writes it: exact.
std::string trace_time(Picoseconds time) {
  return fmt::format("{}.{:06}", time.count() / 1'000'000, time.count() % 1'000'000);
}
std::string trace_time(SimTime time) { return trace_time(time.time_since_epoch()); }

/// gzip (RFC 1952).
class Compressed {
 public:
  explicit Compressed(const Sink& sink) : sink_(sink) {
    // 15 bits of window, and 16 for a gzip header (zlib.h, deflateInit2); 8 is its default memory.
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw EnvironmentError("zlib cannot compress: out of memory");
  }
  Compressed(const Compressed&) = delete;
  Compressed& operator=(const Compressed&) = delete;
  ~Compressed() { deflateEnd(&stream_); }

  void write(std::string_view text) { run(text, Z_NO_FLUSH); }
  void finish() { run("", Z_FINISH); }

 private:
  void run(std::string_view text, int flush) {
    std::string in(text);  // zlib's pointer is not to const
    stream_.next_in = reinterpret_cast<Bytef*>(in.data());
    stream_.avail_in = static_cast<uInt>(in.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      ensure(deflate(&stream_, flush) != Z_STREAM_ERROR, "zlib is asked in its own order");
      sink_({out_.data(), out_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }

  const Sink& sink_;
  z_stream stream_ = {};
  std::array<char, std::size_t{1} << 16> out_ = {};
};

}  // namespace

TraceFormat trace_format_of(const std::string& file) {
  if (file.ends_with(".json")) return TraceFormat::json;
  if (file.ends_with(".json.gz")) return TraceFormat::json_gz;
  if (file.ends_with(".pftrace")) return TraceFormat::perfetto;
  throw UsageError("--trace", fmt::format("expected a file named *.json, *.json.gz or *.pftrace, found \"{}\"", file));
}

void write_chrome_trace(const Trace& trace, const Sink& sink) {
  Buffered out(sink);
  out.write("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n");
  bool is_first = true;
  const auto event = [&](const std::string& text) {
    out.write(is_first ? "" : ",\n");
    is_first = false;
    out.write("{" + text + "}");
  };
  const auto quoted = [](std::string_view text) { return json_text(Json(text)); };
  const auto pid = [&](std::uint32_t track) { return trace.tracks[track].process + 1; };
  // Not the number of a process: a viewer would take the thread for its main one.
  const auto tid = [&](std::uint32_t track) { return trace.processes.size() + track + 1; };
  for (std::uint32_t p = 0; p < trace.processes.size(); ++p) {
    event(fmt::format(R"("ph": "M", "pid": {}, "name": "process_name", "args": {{"name": {}}})", p + 1,
                      quoted(trace.processes[p].name)));
    event(fmt::format(R"("ph": "M", "pid": {}, "name": "process_sort_index", "args": {{"sort_index": {}}})", p + 1, p));
  }
  for (std::uint32_t t = 0; t < trace.tracks.size(); ++t) {
    if (trace.tracks[t].is_counter) continue;
    event(fmt::format(R"("ph": "M", "pid": {}, "tid": {}, "name": "thread_name", "args": {{"name": {}}})", pid(t),
                      tid(t), quoted(trace.tracks[t].name)));
    event(fmt::format(R"("ph": "M", "pid": {}, "tid": {}, "name": "thread_sort_index", "args": {{"sort_index": {}}})",
                      pid(t), tid(t), t));
  }
  std::size_t sample = 0;
  const auto samples_until = [&](SimTime now) {
    for (; sample < trace.samples.size() && trace.samples[sample].when <= now; ++sample) {
      const Trace::Sample& each = trace.samples[sample];
      event(fmt::format(R"("ph": "C", "pid": {}, "name": {}, "ts": {}, "args": {{"%": {:.6g}}})", pid(each.track),
                        quoted(trace.tracks[each.track].name), trace_time(each.when), each.value));
    }
  };
  for (const Trace::Slice& slice : trace.slices) {
    samples_until(slice.begin);
    const std::string at =
        fmt::format(R"("pid": {}, "tid": {}, "ts": {})", pid(slice.track), tid(slice.track), trace_time(slice.begin));
    std::string arguments;
    if (slice.bytes) arguments += fmt::format(R"("bytes": {})", slice.bytes->count);
    if (slice.step) arguments += fmt::format(R"({}"step": {})", arguments.empty() ? "" : ", ", *slice.step + 1);
    event(fmt::format(R"("ph": "X", {}, "dur": {}, "name": {}, "cat": "{}", "args": {{{}}})", at,
                      trace_time(slice.end - slice.begin), quoted(slice.name), slice.category, arguments));
    if (slice.flow > 0)
      event(fmt::format(R"("ph": "{}", {}, "id": {}, "name": "message", "cat": "message")",
                        slice.flow_ends ? R"(f", "bp": "e)" : "s", at, slice.flow));
  }
  samples_until(SimTime::max());
  out.write("\n]}\n");
  out.finish();
}

void write_packed(const std::string& text, const std::string& file) {
  Output output(file);
  const Sink plain = [&](std::string_view piece) { output.write_styled(std::string(piece)); };
  if (file.ends_with(".gz")) {
    Compressed compressed(plain);
    compressed.write(text);
    compressed.finish();
  } else {
    plain(text);
  }
  output.finish();
}

void write_trace(const Trace& trace, const std::string& file) {
  Output output(file);
  const Sink plain = [&](std::string_view text) { output.write_styled(std::string(text)); };
  switch (trace_format_of(file)) {
    case TraceFormat::json:
      write_chrome_trace(trace, plain);
      break;
    case TraceFormat::json_gz: {
      Compressed compressed(plain);
      write_chrome_trace(trace, [&](std::string_view text) { compressed.write(text); });
      compressed.finish();
      break;
    }
    case TraceFormat::perfetto:
      write_perfetto_trace(trace, plain);
      break;
  }
  output.finish();
}

}  // namespace ringsim::tools
