// A trace as a file for viewers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "scenarios/predict/trace.hpp"

namespace ringsim::tools {

/// What the name of a file asks for.
enum class TraceFormat : std::uint8_t {
  json,      ///< ".json": Chrome's trace events
  json_gz,   ///< ".json.gz": the same, compressed
  perfetto,  ///< ".pftrace": Perfetto's packets
};
/// Throws UsageError for other names.
TraceFormat trace_format_of(const std::string& file);

/// Takes the text of a file, piece by piece.
using Sink = std::function<void(std::string_view)>;

/// Chrome's trace events (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): slices as complete
/// events, messages as flows from the sender's slice to the receiver's, links as counters. Times in us, to the
/// picosecond.
void write_chrome_trace(const Trace& trace, const Sink& sink);

/// Perfetto's protobuf (perfetto.dev/docs/reference/synthetic-track-event): the same tracks and slices. Its times are
/// whole nanoseconds: each moment is rounded down.
void write_perfetto_trace(const Trace& trace, const Sink& sink);

/// Writes text to a file, compressed if its name ends with ".gz". Throws EnvironmentError or InputError as Output.
void write_packed(const std::string& text, const std::string& file);

/// Writes the file. Throws EnvironmentError or InputError as Output.
void write_trace(const Trace& trace, const std::string& file);

}  // namespace ringsim::tools
